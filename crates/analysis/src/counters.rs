//! What the processor counted of each vCPU: cycles, instructions and cache misses, of the guest apart from the host.
//!
//! The values are those of `PERF_RECORD_READ`: counted, not sampled. A processor has a few counters, and where more
//! events are asked for than it has they take turns: what was counted is then scaled up by how long the event was
//! enabled and how long it ran (perf-stat(1), "NOTES" of multiplexing), and how long it ran is reported with it.

use event::{CounterMode, EventType, Side};
use rustc_hash::FxHashMap;

use crate::analysis::{
    AccountScope, AccountedEvents, Analysis, EventAccount, EventDetail, Needs, WalkState,
};
use crate::chosen::Window;

/// Threads that have a row; those beyond are counted.
const MAX_THREADS: usize = 1 << 14;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CounterKind {
    Cycles,
    Instructions,
    CacheMisses,
    TaskClock,
    PageFaults,
}

impl CounterKind {
    /// Reads an event's name as perf has it: `cycles:G`, `cpu/instructions/H`, `page-faults`.
    fn of(name: &str) -> Option<CounterKind> {
        let inner = name.split_once('/').map_or(name, |(_, rest)| rest);
        let end = inner.find([':', '/', ',']).unwrap_or(inner.len());
        Some(match &inner[..end] {
            "cycles" | "cpu-cycles" => CounterKind::Cycles,
            "instructions" => CounterKind::Instructions,
            "cache-misses" => CounterKind::CacheMisses,
            "task-clock" => CounterKind::TaskClock,
            "page-faults" | "faults" => CounterKind::PageFaults,
            _ => return None,
        })
    }
}

/// What an event counted of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterSum {
    /// As it was counted.
    counted: u128,
    /// How long the event was enabled while the thread ran, ns.
    enabled_ns: u128,
    /// How long of that it was counted, ns.
    running_ns: u128,
}

impl CounterSum {
    /// Adds what was counted in a while that the event was enabled, and counted, for so long (ns).
    pub fn add(&mut self, value: u64, times_ns: (u64, u64)) {
        let more = |sum: &mut u128, one: u64| *sum = sum.saturating_add(one.into());
        more(&mut self.counted, value);
        more(&mut self.enabled_ns, times_ns.0);
        more(&mut self.running_ns, times_ns.1.min(times_ns.0));
    }

    /// Returns what was counted since an earlier reading of the same counter.
    pub fn since(&self, earlier: &CounterSum) -> CounterSum {
        CounterSum {
            counted: self.counted.saturating_sub(earlier.counted),
            enabled_ns: self.enabled_ns.saturating_sub(earlier.enabled_ns),
            running_ns: self.running_ns.saturating_sub(earlier.running_ns),
        }
    }

    /// Returns how many there were, scaled up where the event was counted a part of the time; `None` where the thread
    /// ran and it was never counted.
    pub fn scaled(&self) -> Option<u64> {
        let value = match (self.enabled_ns, self.running_ns) {
            (0, _) => self.counted,
            (_, 0) => return None,
            (enabled, running) if enabled == running => self.counted,
            // Both are below 2^64, or the product would be no count of events.
            (enabled, running) => self.counted.checked_mul(enabled)? / running,
        };
        u64::try_from(value).ok()
    }

    /// Returns how much of the time it was counted, 0 to 1; `None` where the thread did not run.
    pub fn share(&self) -> Option<f64> {
        (self.enabled_ns > 0).then(|| self.running_ns as f64 / self.enabled_ns as f64)
    }
}

/// What was counted of a thread in one mode; what is `None` was not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModeCounts {
    /// Cycles of the processor.
    pub cycles: Option<CounterSum>,
    /// Instructions that were completed.
    pub instructions: Option<CounterSum>,
    /// Accesses that no cache answered.
    pub cache_misses: Option<CounterSum>,
}

impl ModeCounts {
    /// Returns instructions per cycle.
    pub fn ipc(&self) -> Option<f64> {
        let cycles = self.cycles?.scaled().filter(|cycles| *cycles > 0)?;
        Some(self.instructions?.scaled()? as f64 / cycles as f64)
    }

    /// Returns cache misses of 1,000 instructions.
    pub fn misses_per_1000(&self) -> Option<f64> {
        let instructions = self.instructions?.scaled().filter(|count| *count > 0)?;
        Some(self.cache_misses?.scaled()? as f64 * 1000.0 / instructions as f64)
    }

    fn since(&self, earlier: &ModeCounts) -> ModeCounts {
        ModeCounts {
            cycles: since(self.cycles, earlier.cycles),
            instructions: since(self.instructions, earlier.instructions),
            cache_misses: since(self.cache_misses, earlier.cache_misses),
        }
    }

    /// Returns how much of the time that was counted least was.
    fn share(&self) -> Option<f64> {
        let all = [self.cycles, self.instructions, self.cache_misses];
        let shares = all.iter().flatten().filter_map(CounterSum::share);
        shares.reduce(f64::min)
    }
}

/// What was counted of a vCPU, or of another thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CountersRow {
    /// The VM, as a place in the list of them ([`model::Machine::vms`]).
    pub vm: Option<usize>,
    /// Number of the vCPU, where the thread is known to be one.
    pub vcpu: Option<u32>,
    /// The thread.
    pub tid: i32,
    /// Its name, if known.
    pub comm: Option<String>,
    /// While it executed its guest.
    pub guest: ModeCounts,
    /// While it executed the host.
    pub host: ModeCounts,
    /// Of events that count both together.
    pub both: ModeCounts,
    /// How long it had a CPU, ns (`task-clock`).
    pub clock: Option<CounterSum>,
    /// Its page faults in the host.
    pub faults: Option<CounterSum>,
}

impl CountersRow {
    /// Returns how long it had a CPU, ns; `None` where that was not counted.
    pub fn cpu_ns(&self) -> Option<u64> {
        self.clock?.scaled()
    }

    /// Returns its page faults in the host; `None` where they were not counted.
    pub fn page_faults(&self) -> Option<u64> {
        self.faults?.scaled()
    }

    /// Returns how much of the time that event was counted which was counted least, 0 to 1.
    pub fn share(&self) -> Option<f64> {
        least_share([self.guest, self.host, self.both])
    }

    /// Returns whether the processor counted anything of it.
    pub fn has_processor(&self) -> bool {
        [self.guest, self.host, self.both]
            .iter()
            .any(|mode| *mode != ModeCounts::default())
    }
}

/// The counters of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CountersReport {
    /// By thread: vCPUs by VM and number, then others by thread.
    pub rows: Vec<CountersRow>,
    /// Readings of more threads than are kept.
    pub beyond: u64,
}

impl CountersReport {
    /// Returns what was counted of all threads together, by the events' names as perf has them, scaled. What was never
    /// counted of a thread that ran is left out.
    pub fn counts(&self) -> Vec<(String, u64)> {
        type RowMode = fn(&CountersRow) -> &ModeCounts;
        type CounterCount = fn(&ModeCounts) -> Option<CounterSum>;
        let modes: [(&str, RowMode); 3] = [
            (":G", |row| &row.guest),
            (":H", |row| &row.host),
            ("", |row| &row.both),
        ];
        let events: [(&str, CounterCount); 3] = [
            ("cycles", |mode| mode.cycles),
            ("instructions", |mode| mode.instructions),
            ("cache-misses", |mode| mode.cache_misses),
        ];
        let mut out = Vec::new();
        for (modifier, mode) in modes {
            for (event, of) in events {
                let mut there = self.rows.iter().filter_map(|row| of(mode(row))).peekable();
                if there.peek().is_none() {
                    continue;
                }
                let sum = there.try_fold(0u64, |sum, one| sum.checked_add(one.scaled()?));
                out.extend(sum.map(|sum| (format!("{event}{modifier}"), sum)));
            }
        }
        let faults = self.rows.iter().filter_map(CountersRow::page_faults);
        let faults = faults.reduce(u64::saturating_add);
        out.extend(faults.map(|faults| ("page-faults".to_owned(), faults)));
        out
    }
}

/// What was counted of a thread, by whose execution it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    /// While it executed its guest.
    pub guest: ModeCounts,
    /// While it executed the host.
    pub host: ModeCounts,
    /// Of events that count both together.
    pub both: ModeCounts,
    /// How long it had a CPU, ns (`task-clock`).
    pub clock: Option<CounterSum>,
    /// Its page faults in the host.
    pub page_faults: Option<CounterSum>,
}

fn since(now: Option<CounterSum>, earlier: Option<CounterSum>) -> Option<CounterSum> {
    now.map(|now| now.since(&earlier.unwrap_or_default()))
}

/// Returns how much of the time that event was counted which was counted least.
fn least_share(modes: [ModeCounts; 3]) -> Option<f64> {
    let shares = modes.iter().filter_map(ModeCounts::share);
    shares.reduce(f64::min)
}

impl ThreadCounts {
    /// Adds what an event counted, by its name as perf has it (`cycles:G`), in a while that it was enabled, and
    /// counted, for so long (ns). Other events are nothing here.
    pub fn add(&mut self, event: &str, mode: CounterMode, value: u64, times_ns: (u64, u64)) {
        if let Some(kind) = CounterKind::of(event) {
            let sum = self.sum_of(kind, mode).get_or_insert_default();
            sum.add(value, times_ns);
        }
    }

    fn sum_of(&mut self, kind: CounterKind, mode: CounterMode) -> &mut Option<CounterSum> {
        let counts = match mode {
            CounterMode::Both => &mut self.both,
            CounterMode::Guest => &mut self.guest,
            CounterMode::Host => &mut self.host,
        };
        match kind {
            CounterKind::Cycles => &mut counts.cycles,
            CounterKind::Instructions => &mut counts.instructions,
            CounterKind::CacheMisses => &mut counts.cache_misses,
            CounterKind::TaskClock => &mut self.clock,
            CounterKind::PageFaults => &mut self.page_faults,
        }
    }

    /// Returns what was counted since an earlier reading of the same thread.
    pub fn since(&self, earlier: &ThreadCounts) -> ThreadCounts {
        ThreadCounts {
            guest: self.guest.since(&earlier.guest),
            host: self.host.since(&earlier.host),
            both: self.both.since(&earlier.both),
            clock: since(self.clock, earlier.clock),
            page_faults: since(self.page_faults, earlier.page_faults),
        }
    }

    /// Returns how much of the time that event was counted which was counted least, 0 to 1.
    pub fn share(&self) -> Option<f64> {
        least_share([self.guest, self.host, self.both])
    }
}

/// A number of a thread's row that is made of readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterColumn {
    kind: CounterKind,
    mode: Option<CounterMode>,
}

impl CounterColumn {
    /// Returns the one that tables call so: `guest_cycles`, `both_instructions`, `cpu` (which is in ns), `page_faults`.
    pub fn of(name: &str) -> Option<CounterColumn> {
        let (kind, mode) = match name {
            "cpu" => (CounterKind::TaskClock, None),
            "page_faults" => (CounterKind::PageFaults, None),
            _ => {
                let (mode, kind) = name.split_once('_')?;
                let mode = match mode {
                    "guest" => CounterMode::Guest,
                    "host" => CounterMode::Host,
                    "both" => CounterMode::Both,
                    _ => return None,
                };
                let kind = match kind {
                    "cycles" => CounterKind::Cycles,
                    "instructions" => CounterKind::Instructions,
                    "cache_misses" => CounterKind::CacheMisses,
                    _ => return None,
                };
                (kind, Some(mode))
            }
        };
        Some(CounterColumn { kind, mode })
    }

    /// Returns whether a reading of an event, which perf calls so, counts in it.
    pub fn has(self, event: &str, mode: CounterMode) -> bool {
        CounterKind::of(event) == Some(self.kind) && self.mode.is_none_or(|own| own == mode)
    }

    /// Returns what a thread's row has in it; `None` where it was not counted, or never while the thread ran.
    pub fn sum(self, row: &CountersRow) -> Option<CounterSum> {
        let mode = match self.mode {
            Some(CounterMode::Guest) => &row.guest,
            Some(CounterMode::Host) => &row.host,
            Some(CounterMode::Both) | None => &row.both,
        };
        match self.kind {
            CounterKind::Cycles => mode.cycles,
            CounterKind::Instructions => mode.instructions,
            CounterKind::CacheMisses => mode.cache_misses,
            CounterKind::TaskClock => row.clock,
            CounterKind::PageFaults => row.faults,
        }
    }
}

/// What was read of a thread, and how many readings that were.
#[derive(Debug, Clone, Copy, Default)]
struct ReadThread {
    counts: ThreadCounts,
    readings: u64,
}

/// Adds up what was counted.
#[derive(Debug, Default)]
pub struct Counters {
    window: Window,
    threads: FxHashMap<i32, ReadThread>,
    beyond: u64,
    /// All readings, and those that are in no row: of another time, or of events that no row has.
    seen: u64,
    aside: u64,
    /// The thread and the number whose readings are listed, and when each was made.
    listed: Option<(i32, CounterColumn)>,
    times: Vec<u64>,
}

impl Counters {
    /// Returns one that has seen nothing. Readings within the time of a window count: each is of the second or so
    /// before it. CPUs of the window choose nothing, since a thread is counted wherever it runs.
    pub fn new(window: Window) -> Counters {
        Counters {
            window,
            ..Counters::default()
        }
    }

    /// Lists when the readings were made that a number of a thread's row is the sum of, for [`Counters::take_listed`].
    pub fn list(&mut self, tid: i32, column: CounterColumn) {
        self.listed = Some((tid, column));
    }

    /// Returns the times of the readings since this was asked last.
    pub fn take_listed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.times)
    }

    /// Returns the sums of a walk that has ended, of the threads that are not left out.
    pub fn report(&self, walked: &WalkState<'_>) -> CountersReport {
        let vms = walked.machine.vms();
        let mut owners = FxHashMap::default();
        for (at, vm) in vms.iter().enumerate() {
            owners.extend(vm.vcpus.iter().map(|vcpu| (vcpu.tid, (at, vcpu.id))));
        }
        let threads = self.threads.iter();
        let threads = threads.filter(|(tid, _)| !walked.left_out.has(**tid));
        let rows = threads.map(|(tid, ReadThread { counts, .. })| {
            let owner = owners.get(tid);
            let known = walked.machine.threads().get(*tid);
            CountersRow {
                vm: owner.map(|(vm, _)| *vm),
                vcpu: owner.map(|(_, vcpu)| *vcpu),
                tid: *tid,
                comm: known.and_then(|thread| thread.comm.as_deref().map(str::to_owned)),
                guest: counts.guest,
                host: counts.host,
                both: counts.both,
                clock: counts.clock,
                faults: counts.page_faults,
            }
        });
        let mut rows: Vec<CountersRow> = rows.collect();
        rows.sort_by_key(|row| (row.vm.is_none(), row.vm, row.vcpu, row.tid));
        CountersReport {
            rows,
            beyond: self.beyond,
        }
    }

    /// Returns in how many readings that is which is in rows, or is said to be in none.
    fn account(&self) -> EventAccount {
        let in_rows = self.threads.values().map(|thread| thread.readings);
        let in_rows = in_rows.fold(0, u64::saturating_add);
        EventAccount {
            which: AccountedEvents::Own {
                noun: "reading",
                count: self.seen,
            },
            name: "of counters",
            of: AccountScope::Read,
            events: in_rows
                .saturating_add(self.beyond)
                .saturating_add(self.aside),
        }
    }

    fn take(&mut self, tid: i32) -> Option<&mut ReadThread> {
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&tid) {
            self.beyond += 1;
            return None;
        }
        Some(self.threads.entry(tid).or_default())
    }
}

impl Analysis for Counters {
    fn needs(&self) -> Needs {
        Needs {
            vcpus: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, _: &EventType<'_>) -> EventDetail {
        EventDetail::Nothing
    }

    fn counted(&self, _: &WalkState<'_>) -> Vec<EventAccount> {
        vec![self.account()]
    }

    fn side(&mut self, side: &Side<'_>) {
        let Side::Counter {
            time,
            tid,
            event,
            mode,
            value,
            times_ns,
            ..
        } = *side
        else {
            return;
        };
        self.seen += 1;
        let inside = |(from, to): (u64, u64)| (from..=to).contains(&time);
        if !self.window.time.is_none_or(inside) || CounterKind::of(event).is_none() {
            self.aside += 1;
            return;
        }
        // Where only the value was read nothing says that the event was not counted all the time.
        if let Some(thread) = self.take(tid) {
            thread.readings += 1;
            thread
                .counts
                .add(event, mode, value, times_ns.unwrap_or((0, 0)));
            let is_listed =
                |(of, column): (i32, CounterColumn)| of == tid && column.has(event, mode);
            if self.listed.is_some_and(is_listed) {
                self.times.push(time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(readings: &[(u64, u64, u64)]) -> CounterSum {
        let mut count = CounterSum::default();
        for (value, enabled, running) in readings {
            count.add(*value, (*enabled, *running));
        }
        count
    }

    #[test]
    fn events_that_took_turns_are_scaled() {
        // Counted all the time, half of it, and never.
        let whole = count(&[(100, 1_000, 1_000), (50, 500, 500)]);
        assert_eq!((whole.scaled(), whole.share()), (Some(150), Some(1.0)));
        let half = count(&[(100, 1_000, 500), (50, 500, 250)]);
        assert_eq!((half.scaled(), half.share()), (Some(300), Some(0.5)));
        let never = count(&[(0, 1_000, 0)]);
        assert_eq!((never.scaled(), never.share()), (None, Some(0.0)));
        // A thread that did not run had no cycles; that is known.
        let asleep = count(&[(0, 0, 0)]);
        assert_eq!((asleep.scaled(), asleep.share()), (Some(0), None));
        let hostile = count(&[(u64::MAX, u64::MAX, 1); 3]);
        assert_eq!(hostile.scaled(), None);
    }

    #[test]
    fn ratios_are_of_what_was_counted() {
        let mode = ModeCounts {
            cycles: Some(count(&[(2_000, 10, 5)])),
            instructions: Some(count(&[(3_000, 10, 5)])),
            cache_misses: Some(count(&[(6, 10, 5)])),
        };
        assert_eq!((mode.ipc(), mode.misses_per_1000()), (Some(1.5), Some(2.0)));
        assert_eq!(mode.share(), Some(0.5));
        let nothing = ModeCounts::default();
        assert_eq!((nothing.ipc(), nothing.misses_per_1000()), (None, None));
    }

    #[test]
    fn what_was_added_between_two_readings_is_scaled_alone() {
        let mut thread = ThreadCounts::default();
        thread.add("cycles:G", CounterMode::Guest, 1_000, (10, 10));
        thread.add("dummy:u", CounterMode::Guest, 7, (1, 1));
        let before = thread;
        thread.add("cycles:G", CounterMode::Guest, 100, (10, 5));
        thread.add("page-faults", CounterMode::Both, 3, (10, 10));
        let between = thread.since(&before);
        let scaled = |sum: Option<CounterSum>| sum.and_then(|sum| sum.scaled());
        assert_eq!(scaled(between.guest.cycles), Some(200));
        assert_eq!(scaled(between.page_faults), Some(3));
        assert_eq!((between.share(), between.host.cycles), (Some(0.5), None));
    }

    #[test]
    fn each_reading_is_accounted_for() {
        let mut counters = Counters::new(Window {
            time: Some((100, 200)),
            ..Window::default()
        });
        let mut read = |time, tid, event| {
            counters.side(&Side::Counter {
                pid: tid,
                time,
                tid,
                event,
                mode: CounterMode::Guest,
                value: 3,
                times_ns: None,
            });
        };
        for tid in 0..20_000 {
            read(150, tid, "cycles:G");
        }
        read(150, 1, "instructions:G");
        read(99, 1, "cycles:G");
        read(150, 1, "bus-cycles");
        let AccountedEvents::Own { count, .. } = counters.account().which else {
            panic!("readings are no events");
        };
        assert_eq!((count, counters.account().events), (20_003, 20_003));
        assert_eq!((counters.beyond, counters.aside), (20_000 - (1 << 14), 2));
        // A thread that gets lost is missed.
        counters.threads.remove(&1);
        assert_eq!(counters.account().events, 20_001);
    }

    #[test]
    fn names_are_read_as_perf_has_them() {
        for (name, kind) in [
            ("cycles:G", CounterKind::Cycles),
            ("cpu-cycles", CounterKind::Cycles),
            ("cpu/instructions/H", CounterKind::Instructions),
            ("cpu_core/cache-misses,name=x/", CounterKind::CacheMisses),
            ("task-clock:u", CounterKind::TaskClock),
            ("faults", CounterKind::PageFaults),
        ] {
            assert_eq!(CounterKind::of(name), Some(kind), "{name}");
        }
        for name in ["", "kvm:kvm_exit", "dummy:u", "bus-cycles", "/"] {
            assert_eq!(CounterKind::of(name), None, "{name}");
        }
    }
}
