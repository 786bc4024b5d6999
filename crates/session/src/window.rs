//! A sink behind filters.

use std::collections::HashSet;
use std::ops::ControlFlow;

use cpuset::CpuSet;
use event::{Event, EventType, NONE, Side, Sink};

/// Lets through what the filters ask for.
pub(crate) struct Filtered<'s, S: Sink + ?Sized> {
    sink: &'s mut S,
    pid: Option<i32>,
    cpus: Option<&'s CpuSet>,
    time: Option<(u64, u64)>,
    threads: Option<&'s [i32]>,
    of_process: &'s HashSet<i32>,
}

impl<'s, S: Sink + ?Sized> Filtered<'s, S> {
    /// Puts a window of time and CPUs before a sink.
    pub(crate) fn window(
        sink: &'s mut S,
        time: Option<(u64, u64)>,
        cpus: Option<&'s CpuSet>,
        of_process: &'s HashSet<i32>,
    ) -> Filtered<'s, S> {
        Filtered {
            sink,
            pid: None,
            cpus,
            time,
            threads: None,
            of_process,
        }
    }

    /// Lets through threads only: `threads`, if any are named, and those of a process. `of_process`, as the window was
    /// given it, are those of the process where the recording does not say whose they are.
    pub(crate) fn of(self, pid: Option<i32>, threads: Option<&'s [i32]>) -> Filtered<'s, S> {
        Filtered {
            pid,
            threads,
            ..self
        }
    }

    /// Whether there is nothing to filter.
    pub(crate) fn is_idle(&self) -> bool {
        self.pid.is_none() && self.cpus.is_none() && self.time.is_none() && self.threads.is_none()
    }
}

impl<S: Sink + ?Sized> Sink for Filtered<'_, S> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.sink.wants(ty)
    }

    fn wants_samples(&self) -> bool {
        self.sink.wants_samples()
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if let Some((from, to)) = self.time {
            if event.time > to {
                return ControlFlow::Break(());
            }
            if event.time < from {
                return ControlFlow::Continue(());
            }
        }
        if event.machine() != 0 {
            // Threads and CPUs that were asked for are the host's.
            return self.sink.event(event);
        }
        let pid = self.pid.is_none_or(|pid| {
            event.tid == pid
                || match event.pid {
                    NONE => self.of_process.contains(&event.tid),
                    process => process == pid,
                }
        });
        let cpu = self.cpus.is_none_or(|cpus| cpus.has(event.cpu));
        let thread = self
            .threads
            .is_none_or(|threads| threads.contains(&event.tid));
        if pid && cpu && thread {
            self.sink.event(event)
        } else {
            ControlFlow::Continue(())
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        self.sink.side(side);
    }

    fn side_of(&mut self, machine: u16, side: &Side<'_>) {
        self.sink.side_of(machine, side);
    }
}
