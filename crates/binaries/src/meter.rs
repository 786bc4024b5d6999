//! A reader of DWARF that stops when too much was read: parts of DWARF can refer to others over and over.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gimli::{EndianArcSlice, Error, Reader, ReaderOffsetId, Result, RunTimeEndian};

/// How much may still be read, in bytes.
#[derive(Debug)]
pub(crate) struct ReadMeter(AtomicU64);

impl ReadMeter {
    /// Returns one that lets so many bytes be read.
    pub(crate) fn new(bytes: u64) -> Arc<ReadMeter> {
        Arc::new(ReadMeter(AtomicU64::new(bytes)))
    }

    /// Takes bytes that are read, or work that costs as much.
    pub(crate) fn take(&self, bytes: usize) -> Result<()> {
        // Whoever has the reader is alone with it, so nothing comes between these two.
        let left = self.0.load(Ordering::Relaxed);
        match left.checked_sub(bytes as u64) {
            Some(left) => {
                self.0.store(left, Ordering::Relaxed);
                Ok(())
            }
            None => {
                self.0.store(0, Ordering::Relaxed);
                Err(Error::Io)
            }
        }
    }

    /// Returns whether nothing may be read any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// A part of a section.
#[derive(Debug, Clone)]
pub(crate) struct MeteredSection {
    inner: EndianArcSlice<RunTimeEndian>,
    meter: Arc<ReadMeter>,
}

impl MeteredSection {
    /// Returns the reader of a whole section.
    pub(crate) fn new(
        bytes: Arc<[u8]>,
        endian: RunTimeEndian,
        meter: &Arc<ReadMeter>,
    ) -> MeteredSection {
        MeteredSection {
            inner: EndianArcSlice::new(bytes, endian),
            meter: Arc::clone(meter),
        }
    }

    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.inner.bytes()
    }
}

impl Reader for MeteredSection {
    type Endian = RunTimeEndian;
    type Offset = usize;

    fn endian(&self) -> RunTimeEndian {
        self.inner.endian()
    }

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn empty(&mut self) {
        self.inner.empty();
    }

    fn truncate(&mut self, len: usize) -> Result<()> {
        self.inner.truncate(len)
    }

    fn offset_from(&self, base: &MeteredSection) -> usize {
        self.inner.offset_from(&base.inner)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        self.inner.offset_id()
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        self.inner.lookup_offset_id(id)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let found = self.inner.find(byte);
        let looked_at = match found {
            Ok(at) => at,
            Err(_) => self.inner.len(),
        };
        self.meter.take(looked_at)?;
        found
    }

    fn skip(&mut self, len: usize) -> Result<()> {
        self.meter.take(1)?;
        self.inner.skip(len)
    }

    fn split(&mut self, len: usize) -> Result<MeteredSection> {
        self.meter.take(1)?;
        Ok(MeteredSection {
            inner: self.inner.split(len)?,
            meter: Arc::clone(&self.meter),
        })
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.inner.to_slice()
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        self.inner.to_string()
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        self.inner.to_string_lossy()
    }

    fn read_slice(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.meter.take(buffer.len())?;
        self.inner.read_slice(buffer)
    }
}
