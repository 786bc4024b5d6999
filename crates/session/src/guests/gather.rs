//! What of a host's recording and of a guest's says how their clocks read: when vCPUs were in their guests, and when
//! guests had events.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use clocks::{Density, GuestWindow};
use event::{Event, EventOrder, EventType, Kind, Sink};
use model::Vm;

use super::spread::Spread;

/// Windows or events that are kept at most; beyond that, only those of a part of the time are.
const MOST: usize = 1 << 20;

/// When each thread was in its guest.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    pub(crate) spread: Spread,
    /// The number of the VM whose vCPU a thread is, and when each VM entered its guest.
    vms: BTreeMap<i32, usize>,
    densities: Vec<Density>,
    entered: BTreeMap<i32, u64>,
    pub(crate) by_tid: BTreeMap<i32, Vec<GuestWindow>>,
    count: usize,
    most: Option<usize>,
}

impl Windows {
    /// Returns what gathers windows of these VMs.
    pub(crate) fn new(vms: &[Vm]) -> Windows {
        let threads = vms.iter().zip(0..);
        let threads =
            threads.flat_map(|(vm, number)| vm.vcpus.iter().map(move |vcpu| (vcpu.tid, number)));
        Windows {
            vms: threads.collect(),
            densities: vec![Density::default(); vms.len()],
            ..Windows::default()
        }
    }

    /// Returns when the VM entered its guest whose vCPU a thread is.
    pub(crate) fn density(&self, tid: i32) -> Option<&Density> {
        self.densities.get(*self.vms.get(&tid)?)
    }

    fn add(&mut self, tid: i32, window: GuestWindow) {
        if !self.spread.has(window.entry) && !self.spread.has(window.exit) {
            return;
        }
        self.by_tid.entry(tid).or_default().push(window);
        self.count += 1;
        if self.count > self.most.unwrap_or(MOST) && self.spread.thin() {
            self.keep(self.spread);
        }
    }

    /// Puts windows in their order, as whoever looks events up in them needs it. Those of a thread overlap in damaged
    /// recordings alone; the shorter ones stay then.
    pub(crate) fn put_in_order(&mut self) {
        for windows in self.by_tid.values_mut() {
            if windows.is_sorted_by(|one, next| one.exit <= next.entry) {
                continue;
            }
            windows.sort_unstable_by_key(|one| (one.entry, one.exit));
            let mut apart: Vec<GuestWindow> = Vec::with_capacity(windows.len());
            for window in windows.drain(..) {
                let long = |one: &GuestWindow| one.exit - one.entry;
                match apart.last_mut().filter(|last| last.exit > window.entry) {
                    Some(last) if long(last) > long(&window) => *last = window,
                    Some(_) => {}
                    None => apart.push(window),
                }
            }
            *windows = apart;
        }
        self.count = self.by_tid.values().map(Vec::len).sum();
    }

    /// Keeps what lies in some stretches.
    pub(crate) fn keep(&mut self, spread: Spread) {
        self.spread = spread;
        for windows in self.by_tid.values_mut() {
            windows.retain(|one| spread.has(one.entry) || spread.has(one.exit));
        }
        self.count = self.by_tid.values().map(Vec::len).sum();
    }
}

impl Sink for Windows {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        matches!(ty.kind, Kind::KvmEntry | Kind::KvmExit)
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        // Each thread's are looked at by themselves.
        EventOrder::Thread
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if event.ty.kind == Kind::KvmEntry {
            self.entered.insert(event.tid, event.time);
            let vm = self.vms.get(&event.tid);
            if let Some(density) = vm.and_then(|vm| self.densities.get_mut(*vm)) {
                density.add(event.time);
            }
        } else if let Some(entry) = self.entered.remove(&event.tid)
            && event.time >= entry
        {
            let exit = event.time;
            self.add(event.tid, GuestWindow { entry, exit });
        }
        ControlFlow::Continue(())
    }
}

/// When there was something on each CPU of a guest.
#[derive(Debug, Default)]
pub(crate) struct GuestTimes {
    pub(crate) spread: Spread,
    /// What is to be added to the guest's time, so that its stretches are the host's, as far as that is known
    /// beforehand.
    offset_ns: i64,
    pub(crate) by_cpu: BTreeMap<u32, Vec<u64>>,
    /// When there was something on any CPU.
    pub(crate) density: Density,
    /// The last time that there was something, by CPU.
    last: Vec<Option<u64>>,
    count: usize,
    most: Option<usize>,
}

impl GuestTimes {
    /// Returns what gathers times of a guest whose clock is so far behind its host's.
    pub(crate) fn new(offset_ns: i64) -> GuestTimes {
        GuestTimes {
            offset_ns,
            ..GuestTimes::default()
        }
    }

    /// Returns when there was something last on each CPU.
    pub(crate) fn ends(&self) -> Vec<(u64, i32)> {
        let cpus = self.last.iter().zip(0i32..);
        cpus.filter_map(|(time, cpu)| Some(((*time)?, cpu)))
            .collect()
    }

    fn add(&mut self, cpu: u32, time: u64) {
        let at = cpu as usize;
        if at < event::MAX_CPUS {
            if self.last.len() <= at {
                self.last.resize(at + 1, None);
            }
            self.last[at] = Some(time);
        }
        if !self.spread.has(time.saturating_add_signed(self.offset_ns)) {
            return;
        }
        self.by_cpu.entry(cpu).or_default().push(time);
        self.count += 1;
        if self.count > self.most.unwrap_or(MOST) && self.spread.thin() {
            self.keep(self.spread, 0);
        }
    }

    /// Puts times in their order: those of a damaged recording may go back.
    pub(crate) fn put_in_order(&mut self) {
        for times in self.by_cpu.values_mut() {
            if !times.is_sorted() {
                times.sort_unstable();
            }
        }
    }

    /// Keeps what lies in some stretches with all that is so near to it.
    pub(crate) fn keep(&mut self, spread: Spread, within_ns: u64) {
        self.spread = spread;
        let offset_ns = self.offset_ns;
        for times in self.by_cpu.values_mut() {
            times.retain(|time| {
                let host = time.saturating_add_signed(offset_ns);
                let (from, to) = (
                    host.saturating_sub(within_ns),
                    host.saturating_add(within_ns),
                );
                spread.has_all(from, to)
            });
        }
        self.count = self.by_cpu.values().map(Vec::len).sum();
    }
}

impl Sink for GuestTimes {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.density.add(event.time);
        if let Ok(cpu) = u32::try_from(event.cpu) {
            self.add(cpu, event.time);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a tenth of a second.
    const STEP: u64 = 100_000_000;

    #[test]
    fn what_is_kept_does_not_grow_and_both_sides_keep_the_same_time() {
        let mut windows = Windows {
            most: Some(100),
            ..Windows::default()
        };
        let mut times = GuestTimes {
            most: Some(30),
            ..GuestTimes::new(500)
        };
        for n in 0..10_000 {
            let entry = n * STEP;
            windows.add(
                7,
                GuestWindow {
                    entry,
                    exit: entry + 1000,
                },
            );
            times.add(0, entry);
            let kept = |count: usize, most: usize| count <= most + 1;
            assert!(kept(windows.by_tid[&7].len(), 100), "{n}");
            assert!(kept(times.by_cpu.values().map(Vec::len).sum(), 30), "{n}");
        }
        let spread = windows.spread.and(times.spread);
        windows.keep(spread);
        times.keep(spread, 10);
        let (windows, times) = (&windows.by_tid[&7], &times.by_cpu[&0]);
        assert!(times.len() > 10, "{}", times.len());
        // Each that is kept has its window.
        for time in times {
            assert!(windows.iter().any(|one| one.entry == *time), "{time}");
        }
    }
    #[test]
    fn what_goes_back_in_time_is_put_in_order() {
        let mut times = GuestTimes::default();
        for time in [5, 9, 7, 1 << 40, 8] {
            times.add(1, time);
        }
        times.put_in_order();
        assert_eq!(times.by_cpu[&1], [5, 7, 8, 9, 1 << 40]);
        let mut windows = Windows::default();
        let all = [(10, 20), (5, 9), (1, 1 << 40), (30, 40), (12, 14)];
        for (entry, exit) in all {
            windows.add(7, GuestWindow { entry, exit });
        }
        windows.put_in_order();
        let kept = windows.by_tid[&7].iter().map(|one| (one.entry, one.exit));
        assert_eq!(kept.collect::<Vec<_>>(), [(5, 9), (12, 14), (30, 40)]);
    }
}
