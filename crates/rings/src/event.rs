//! An event that is open.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::attr::{RingAttr, format};
use crate::call;

/// An event that is open on one CPU.
#[derive(Debug)]
pub struct RingEvent {
    file: File,
    id: u64,
    read: u64,
}

/// What an event has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventCounts {
    /// Its value: how often a tracepoint was hit, those that a filter left out not counted.
    pub value: u64,
    /// How long it was enabled, ns.
    pub enabled_ns: u64,
    /// How long it ran, ns.
    pub running_ns: u64,
    /// Records that found no room in the ring; `None` before Linux 6.0.
    pub lost: Option<u64>,
}

impl RingEvent {
    /// Opens an event of whatever runs on a CPU. It begins disabled.
    ///
    /// # Errors
    ///
    /// Fails as perf_event_open(2) says: EACCES and EPERM without CAP_PERFMON (or CAP_SYS_ADMIN), ENODEV and EINVAL
    /// where the CPU is off line, ENOENT where there is no such event, EMFILE where the process may have no more files.
    pub fn open(attr: &RingAttr, cpu: i32) -> io::Result<RingEvent> {
        RingEvent::of(attr, -1, cpu)
    }

    /// Opens an event of the calling thread, on whatever CPU it runs. It begins disabled.
    ///
    /// # Errors
    ///
    /// As [`RingEvent::open`].
    pub fn open_own(attr: &RingAttr) -> io::Result<RingEvent> {
        RingEvent::of(attr, 0, -1)
    }

    fn of(attr: &RingAttr, pid: i32, cpu: i32) -> io::Result<RingEvent> {
        let mut read = attr.read;
        let opened = match call::open(&attr.bytes(), pid, cpu) {
            // Kernels before 6.0 do not count what is lost.
            Err(error)
                if error.raw_os_error() == Some(libc::EINVAL) && read & format::LOST != 0 =>
            {
                read &= !format::LOST;
                call::open(&RingAttr { read, ..*attr }.bytes(), pid, cpu)?
            }
            other => other?,
        };
        let id = call::id(opened.as_fd())?;
        Ok(RingEvent {
            file: File::from(opened),
            id,
            read,
        })
    }

    /// Returns the id that its records carry.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns what reading it gives ([`mod@format`]): less than was asked for where the kernel is too old.
    pub fn read_format(&self) -> u64 {
        self.read
    }

    /// Lets it count, or stops it.
    ///
    /// # Errors
    ///
    /// Fails when the kernel refuses.
    pub fn enable(&self, on: bool) -> io::Result<()> {
        call::enable(self.as_fd(), on)
    }

    /// Lets only those events of a tracepoint through that a filter takes: an expression over the fields of its format,
    /// as tracefs takes it.
    ///
    /// # Errors
    ///
    /// EINVAL where the expression is wrong or names a field that there is not.
    pub fn filter(&self, filter: &str) -> io::Result<()> {
        let filter = CString::new(filter)?;
        call::filter(self.as_fd(), &filter)
    }

    /// Lets its records go to the ring of another event ([`crate::Ring::event`]).
    ///
    /// # Errors
    ///
    /// EINVAL where the ring is that of another CPU, or written in another direction.
    pub fn write_to(&self, of_ring: &RingEvent) -> io::Result<()> {
        call::write_to(self.as_fd(), of_ring.as_fd())
    }

    /// Reads what it has counted.
    ///
    /// # Errors
    ///
    /// Fails when the kernel refuses.
    pub fn counts(&self) -> io::Result<EventCounts> {
        let mut bytes = [0; 5 * 8];
        let length = (&self.file).read(&mut bytes)?;
        let mut words = bytes[..length].as_chunks::<8>().0.iter();
        let mut word = || words.next().map_or(0, |word| u64::from_ne_bytes(*word));
        let has = |bit: u64| self.read & bit != 0;
        let value = word();
        let enabled_ns = if has(format::TOTAL_TIME_ENABLED) {
            word()
        } else {
            0
        };
        let running_ns = if has(format::TOTAL_TIME_RUNNING) {
            word()
        } else {
            0
        };
        if has(format::ID) {
            word();
        }
        Ok(EventCounts {
            value,
            enabled_ns,
            running_ns,
            lost: has(format::LOST).then(word),
        })
    }
}

impl AsFd for RingEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl From<RingEvent> for OwnedFd {
    fn from(event: RingEvent) -> OwnedFd {
        event.file.into()
    }
}
