//! Which events count, where filters choose vCPUs, a time or CPUs.

use std::collections::HashSet;

use cpuset::CpuSet;
use event::{Event, NONE};
use model::Span;

/// What filters leave out: the vCPUs that were not chosen, and the processes of the VMs of which none was.
///
/// Everything else is looked at: a chosen vCPU's back ends, and who woke or preempted it, may be any thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Threads of vCPUs.
    pub threads: HashSet<i32>,
    /// Processes of VMs.
    pub processes: HashSet<i32>,
}

impl LeftOut {
    /// Returns whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.processes.is_empty()
    }

    /// Returns whether a thread is left out.
    pub fn has(&self, tid: i32) -> bool {
        self.threads.contains(&tid)
    }

    /// Returns whether an event is by what is left out.
    #[inline]
    pub fn made(&self, event: &Event<'_>) -> bool {
        if self.is_empty() {
            return false;
        }
        let process = event.pid != NONE && self.processes.contains(&event.pid);
        process || self.threads.contains(&event.tid)
    }

    /// Returns whether an event is by a VM of which no vCPU was chosen; by a vCPU that was not, where it is not known
    /// which is its process.
    #[inline]
    pub fn other_vm(&self, event: &Event<'_>) -> bool {
        match event.pid {
            NONE => self.threads.contains(&event.tid),
            pid => self.processes.contains(&pid),
        }
    }
}

/// The time and the CPUs to look at.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// First and last instant, both included.
    pub time: Option<(u64, u64)>,
    /// CPUs that a vCPU's time counts on.
    pub cpus: Option<CpuSet>,
}

impl Window {
    /// Returns whether everything is in it.
    pub(crate) fn is_all(&self) -> bool {
        self.time.is_none() && self.cpus.is_none()
    }

    pub(crate) fn has_cpu(&self, cpu: i32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.has(cpu))
    }

    /// Returns what of a span is in it: from when until when. `None` if nothing is.
    #[inline]
    pub fn part(&self, span: &Span) -> Option<(u64, u64)> {
        let (mut start, mut end) = (span.start, span.end);
        if let Some((from, to)) = self.time {
            start = start.max(from);
            end = end.min(to);
        }
        (start < end && self.has_cpu(span.cpu)).then_some((start, end))
    }

    /// Returns how much of a time on a CPU is in it, in nanoseconds.
    #[inline]
    pub(crate) fn ns(&self, start: u64, end: u64, cpu: i32) -> u64 {
        let (from, to) = self.time.unwrap_or((0, u64::MAX));
        match self.has_cpu(cpu) {
            true => end.min(to).saturating_sub(start.max(from)),
            false => 0,
        }
    }

    /// Returns whether an instant on a CPU is in it.
    #[inline]
    pub fn has(&self, time: u64, cpu: i32) -> bool {
        self.has_time(time) && self.has_cpu(cpu)
    }

    /// Returns whether an instant is in it, whatever the CPU.
    #[inline]
    pub fn has_time(&self, time: u64) -> bool {
        let (from, to) = self.time.unwrap_or((0, u64::MAX));
        from <= time && time <= to
    }
}

/// Whether an event is one of those that were asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chosen {
    /// Its time is.
    pub in_time: bool,
    /// Its time and its CPU are.
    pub inside: bool,
    /// These are, and it is not of a vCPU that is left out.
    pub counts: bool,
    /// Its time is, and it concerns a chosen vCPU: its own events, and all of the scheduler, since who had a CPU and
    /// whom an event woke concerns a vCPU whoever's event it is.
    pub follows: bool,
}

impl Chosen {
    /// An event where nothing is left out.
    pub(crate) const ALL: Chosen = Chosen {
        in_time: true,
        inside: true,
        counts: true,
        follows: true,
    };

    /// Looks at an event.
    #[inline]
    pub(crate) fn of(event: &Event<'_>, window: &Window, left_out: &LeftOut) -> Chosen {
        let in_time = window.has_time(event.time);
        let inside = in_time && window.has_cpu(event.cpu);
        // What filters leave out are threads of the first machine.
        let made = event.machine() == 0 && left_out.made(event);
        Chosen {
            in_time,
            inside,
            counts: inside && !made,
            follows: in_time && (event.ty.kind.is_sched() || !made),
        }
    }
}
