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
        RingEvent::of(attr, -1, cpu, None)
    }

    /// Opens an event of whatever runs on the CPU of another one, its leader, behind that: it counts while its leader
    /// is enabled. So one call lets any number of events begin and end at the same moment. A call for each interrupts
    /// the CPU each time, and what happens meanwhile is seen by a part of the events.
    ///
    /// The leader has to outlive it: where that is closed first, the kernel makes it an event by itself.
    ///
    /// # Errors
    ///
    /// As [`RingEvent::open`]; EINVAL where the leader is of another CPU, or behind another itself.
    pub fn open_behind(leader: &RingEvent, attr: &RingAttr, cpu: i32) -> io::Result<RingEvent> {
        RingEvent::of(attr, -1, cpu, Some(leader))
    }

    /// Opens an event of the calling thread, on whatever CPU it runs. It begins disabled.
    ///
    /// # Errors
    ///
    /// As [`RingEvent::open`].
    pub fn open_own(attr: &RingAttr) -> io::Result<RingEvent> {
        RingEvent::of(attr, 0, -1, None)
    }

    /// Opens an event of a thread, on whatever CPU it runs: behind another one of that thread, its leader, which it is
    /// counted with and begins with, or by itself. Without a leader it begins disabled.
    ///
    /// # Errors
    ///
    /// As [`RingEvent::open`]; ESRCH where there is no such thread, EINVAL where its leader is of another one or the
    /// processor cannot count so many events at once, EOPNOTSUPP where it cannot tell guests from the host.
    pub fn open_thread(
        attr: &RingAttr,
        tid: i32,
        leader: Option<&RingEvent>,
    ) -> io::Result<RingEvent> {
        RingEvent::of(attr, tid, -1, leader)
    }

    fn of(
        attr: &RingAttr,
        pid: i32,
        cpu: i32,
        leader: Option<&RingEvent>,
    ) -> io::Result<RingEvent> {
        let mut read = attr.read;
        let group = leader.map(AsFd::as_fd);
        let open = |attr: RingAttr| {
            let bytes = match group {
                Some(_) => attr.enabled_bytes(),
                None => attr.bytes(),
            };
            call::open(&bytes, pid, cpu, group)
        };
        let opened = match open(*attr) {
            // Kernels before 6.0 do not count what is lost.
            Err(error)
                if error.raw_os_error() == Some(libc::EINVAL) && read & format::LOST != 0 =>
            {
                read &= !format::LOST;
                open(RingAttr { read, ..*attr })?
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

    /// Lets a BPF program run whenever the event happens, on any CPU and whether or not it is enabled: until it is
    /// closed. The program's type has to be that of the event: tracepoint, or kprobe for probes.
    ///
    /// # Errors
    ///
    /// EINVAL where the type is another, or the program reads more of a record than there is.
    pub fn attach(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        call::attach(self.as_fd(), program)
    }

    /// Lets BPF programs on a CPU write to this event, of [`crate::EventSource::BpfOutput`], through a map of theirs
    /// (`BPF_MAP_TYPE_PERF_EVENT_ARRAY`).
    ///
    /// # Errors
    ///
    /// Those of bpf(2), `BPF_MAP_UPDATE_ELEM`.
    pub fn written_by(&self, map: BorrowedFd<'_>, cpu: u32) -> io::Result<()> {
        call::put_event(map, cpu, self.as_fd())
    }

    /// Lets its records go to the ring of another event ([`crate::Ring::event`]).
    ///
    /// # Errors
    ///
    /// EINVAL where the ring is that of another CPU, or written in another direction.
    pub fn write_to(&self, of_ring: &RingEvent) -> io::Result<()> {
        call::write_to(self.as_fd(), of_ring.as_fd())
    }

    /// Reads what it and the events behind it have counted, by their ids, in the order in which they were opened. All
    /// must be read with [`format::GROUP`], and at most so many are there.
    ///
    /// # Errors
    ///
    /// Fails when the kernel refuses.
    pub fn group_counts(&self, at_most: usize) -> io::Result<Vec<(u64, EventCounts)>> {
        // How many, enabled, running, and two words of each.
        let mut bytes = vec![0; (3 + 2 * at_most) * 8];
        let length = (&self.file).read(&mut bytes)?;
        let mut words = bytes[..length].as_chunks::<8>().0.iter();
        let mut word = || Some(u64::from_ne_bytes(*words.next()?));
        let (Some(_), Some(enabled_ns), Some(running_ns)) = (word(), word(), word()) else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        while let (Some(value), Some(id)) = (word(), word()) {
            let counts = EventCounts {
                value,
                enabled_ns,
                running_ns,
                lost: None,
            };
            all.push((id, counts));
        }
        Ok(all)
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::EventSource;

    #[test]
    fn events_behind_another_count_while_that_is_enabled() {
        let clock = RingAttr::each(EventSource::CpuClock);
        let clock = RingAttr {
            period: 0,
            read: 0,
            ..clock
        };
        // Not everybody may count what others do on a CPU.
        let Ok(leader) = RingEvent::open(&RingAttr::each(EventSource::Nothing), 0) else {
            return;
        };
        let behind = [(); 2].map(|()| RingEvent::open_behind(&leader, &clock, 0).expect("opens"));
        let counted = || {
            behind
                .each_ref()
                .map(|one| one.counts().expect("reads").value)
        };
        let until = Instant::now() + Duration::from_millis(5);
        while Instant::now() < until {}
        assert_eq!(counted(), [0, 0], "before its leader is enabled");
        leader.enable(true).expect("the kernel takes it");
        let until = Instant::now() + Duration::from_secs(5);
        while counted().contains(&0) && Instant::now() < until {}
        leader.enable(false).expect("the kernel takes it");
        let there = counted();
        assert!(!there.contains(&0), "{there:?}");
        let until = Instant::now() + Duration::from_millis(5);
        while Instant::now() < until {}
        assert_eq!(counted(), there, "after its leader was disabled");
    }
}
