//! Records out of compressed data, with the ends of rounds where they belong (see `walk/stream.rs`).

use std::collections::VecDeque;
use std::io;

use tracefmt::Endian;

use crate::compressed::ZstdStream;
use crate::record::{HEADER, PerfRecordHeader, kind};

/// Decompressed bytes gathered before they are cut into records.
const CHUNK: usize = 256 << 10;

/// Returns the compressed bytes of a record's body.
pub(super) fn payload(number: u32, body: &[u8], endian: Endian) -> &[u8] {
    if number == kind::COMPRESSED {
        return body;
    }
    let size = endian.u64(body, 0).and_then(|s| usize::try_from(s).ok());
    let payload = body.get(8..).unwrap_or_default();
    &payload[..size.unwrap_or(0).min(payload.len())]
}

/// Takes records as they are decompressed.
pub(super) trait UnpackedSink {
    /// Takes a record.
    fn unpacked_record(&mut self, record: &[u8]) -> io::Result<()>;

    /// Hears of bytes of which no record is known.
    fn unpacked_garbage(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Hears that a round ends here.
    fn unpacked_round(&mut self) -> io::Result<()>;
}

/// What is decompressed and not yet cut into records.
#[derive(Default)]
pub(super) struct UnpackedRecords {
    zstd: Option<ZstdStream>,
    tail: Vec<u8>,
    /// Where in the stream that begins.
    tail_at: u64,
    /// Ends of rounds, as places in the stream.
    rounds: VecDeque<u64>,
}

impl UnpackedRecords {
    /// Hears of the end of a round. `None` where nothing is compressed; else whether the round ends now.
    pub(super) fn round(&mut self) -> Option<bool> {
        let position = self.zstd.as_ref()?.position();
        Some(match position {
            Some(position) if position > self.tail_at + self.tail.len() as u64 => {
                self.rounds.push_back(position);
                false
            }
            known => known.is_some(),
        })
    }

    /// Takes the payload of one record. Returns `false` if it cannot be decompressed.
    pub(super) fn take<const BIG: bool>(
        &mut self,
        payload: &[u8],
        sink: &mut impl UnpackedSink,
    ) -> io::Result<bool> {
        let mut zstd = self.zstd.take().unwrap_or_else(ZstdStream::new);
        zstd.feed(payload);
        let mut good = true;
        loop {
            match zstd.step(&mut self.tail) {
                Ok(true) if self.tail.len() < CHUNK => {}
                Ok(true) => good &= self.cut::<BIG>(sink)?,
                Ok(false) => break,
                Err(_) => {
                    good = false;
                    break;
                }
            }
        }
        good &= self.cut::<BIG>(sink)?;
        self.zstd = Some(zstd);
        Ok(good)
    }

    /// Cuts what is there into records. Returns `false` if it holds something else.
    fn cut<const BIG: bool>(&mut self, sink: &mut impl UnpackedSink) -> io::Result<bool> {
        let mut at = 0;
        let mut good = true;
        loop {
            while self
                .rounds
                .front()
                .is_some_and(|&r| r <= self.tail_at + at as u64)
            {
                self.rounds.pop_front();
                sink.unpacked_round()?;
            }
            let Some(header) = PerfRecordHeader::read::<BIG>(&self.tail, at) else {
                break;
            };
            if header.size < HEADER {
                good = false;
                break;
            }
            let Some(record) = self.tail.get(at..at + header.size) else {
                break;
            };
            match header.kind {
                kind::FINISHED_ROUND => sink.unpacked_round()?,
                _ if header.is_none() => sink.unpacked_garbage(record)?,
                _ => sink.unpacked_record(record)?,
            }
            at += header.size;
        }
        self.tail.drain(..at);
        self.tail_at += at as u64;
        Ok(good)
    }

    /// Lets out what the decoder kept back. Returns the part of a record that is left.
    pub(super) fn finish<const BIG: bool>(
        &mut self,
        sink: &mut impl UnpackedSink,
    ) -> io::Result<Vec<u8>> {
        if let Some(mut zstd) = self.zstd.take() {
            // What cannot be decompressed is missing, as what is behind it.
            let _ = zstd.finish(&mut self.tail);
            self.cut::<BIG>(sink)?;
        }
        Ok(std::mem::take(&mut self.tail))
    }
}
