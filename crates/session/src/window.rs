//! A sink behind filters.

use std::collections::HashSet;
use std::ops::ControlFlow;

use cpuset::CpuSet;
use event::{Event, EventType, Kind, NONE, Side, Sink};

/// How many of the host's events passed filters, by the index of their type.
#[derive(Debug, Default)]
pub(crate) struct FilterPasses {
    pub(crate) counts: Vec<(Kind, u64)>,
}

/// Lets through what the filters ask for.
pub(crate) struct FilterSink<'s, S: Sink + ?Sized> {
    sink: &'s mut S,
    pid: Option<i32>,
    cpus: Option<&'s CpuSet>,
    time: Option<(u64, u64)>,
    threads: Option<&'s [i32]>,
    of_process: &'s HashSet<i32>,
    passed: FilterPasses,
}

impl<'s, S: Sink + ?Sized> FilterSink<'s, S> {
    /// Puts a window of time and CPUs before a sink.
    pub(crate) fn window(
        sink: &'s mut S,
        time: Option<(u64, u64)>,
        cpus: Option<&'s CpuSet>,
        of_process: &'s HashSet<i32>,
    ) -> FilterSink<'s, S> {
        FilterSink {
            sink,
            pid: None,
            cpus,
            time,
            threads: None,
            of_process,
            passed: FilterPasses::default(),
        }
    }

    /// Lets through threads only: `threads`, if any are named, and those of a process. `of_process`, as the window was
    /// given it, are those of the process where the recording does not say whose they are.
    pub(crate) fn of(self, pid: Option<i32>, threads: Option<&'s [i32]>) -> FilterSink<'s, S> {
        FilterSink {
            pid,
            threads,
            ..self
        }
    }

    /// Returns how many events of the host passed.
    pub(crate) fn passed(self) -> FilterPasses {
        self.passed
    }

    /// Whether there is nothing to filter.
    pub(crate) fn is_idle(&self) -> bool {
        self.pid.is_none() && self.cpus.is_none() && self.time.is_none() && self.threads.is_none()
    }
}

impl<S: Sink + ?Sized> Sink for FilterSink<'_, S> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let wanted = self.sink.wants(ty);
        let index = ty.index as usize;
        if ty.machine == 0 {
            let counts = &mut self.passed.counts;
            if counts.len() <= index {
                counts.resize(index + 1, (Kind::Other, 0));
            }
            counts[index].0 = ty.kind;
        }
        wanted
    }

    fn wants_samples(&self, ty: &EventType<'_>) -> bool {
        self.sink.wants_samples(ty)
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
            if let Some((_, count)) = self.passed.counts.get_mut(event.ty.index as usize) {
                *count += 1;
            }
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
