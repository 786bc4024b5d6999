//! Whether events are missing within a recording, though nobody said that they were lost.
//!
//! Some events come in turns. KVM leaves a guest (`kvm_exit`) and enters it (`kvm_entry`), always one after the other
//! (`vmx_vcpu_run`, `svm_vcpu_run`, `kvm_arch_vcpu_ioctl_run`). The task that a CPU switches from is the one it
//! switched to before. A thread that was woken runs before it can be woken again (`try_to_wake_up` wakes nobody who is
//! awake). Where turns are missed, events are missing: a text from which every second line was taken, a filter, a CPU
//! that was not recorded, losses. Recordings that lost nothing miss no turn of vCPUs, and of other tasks a few at their
//! beginning, while perf begins to record one kind of event after the other.
//!
//! It costs more than 2 ns an event, because a missing event shows only if the turn of every exit, entry, switch and
//! wake-up is looked up and changed, and it is called by itself, not together with other analyses.

use doubts::{Doubt, DoubtKind, Doubts};
use event::sched::Leaves;
use event::{Data, Event, EventType, Kind, cpu_index};
use model::{ByNumber, Machine, RetiredThreads};
use rustc_hash::FxHashMap;

use crate::analysis::{Analysis, Context, EventDetail, Turn, WalkState};
use crate::thread_turns::{ThreadTurns, thread_id, thread_number};

/// Turns that may be missed for each vCPU or CPU: where the recording begins, where it ends.
const EACH: u64 = 2;
/// And in all, whoever missed them: a handful is no hole.
const FEW: u64 = 4;
/// One missed turn in so many: fewer change no sum by more than the last digits that tables show.
const RARE: u64 = 200;
/// Tasks went to a CPU for certain if one was moved there or woken there, or if as many had been there before.
const CERTAIN: u64 = 3;

/// Turns of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turns {
    /// How many there should have been.
    pub all: u64,
    /// How many were missed.
    pub missed: u64,
    /// Of how many vCPUs or CPUs.
    pub of: u64,
}

impl Turns {
    /// Returns whether so many were missed that the recording has holes.
    pub fn torn(&self) -> bool {
        self.missed > EACH.saturating_mul(self.of).saturating_add(FEW) && !self.is_rare()
    }

    /// Returns whether so few were missed that no sum changes.
    fn is_rare(&self) -> bool {
        self.missed.saturating_mul(RARE) <= self.all
    }

    /// Returns the share that was missed, 0 to 1.
    pub fn share(&self) -> f64 {
        self.missed as f64 / self.all.max(1) as f64
    }
}

/// What is missing within a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContinuityReport {
    /// Exits, and those that another exit of their vCPU followed.
    pub exits: Turns,
    /// Entries, and those that another entry of their vCPU followed.
    pub entries: Turns,
    /// Switches to and away from vCPUs, and those that do not follow each other; of CPUs where there are no vCPUs.
    pub switches: Turns,
    /// Wake-ups, and those of a thread that had been woken before and was not seen running since.
    pub wakeups: Turns,
    /// Wake-ups of vCPUs that were seen going to sleep, and those that say that it was on another CPU: it ran there
    /// meanwhile, and nobody saw it. One is proof; sleeping threads stay where they are (`sched_waking` has
    /// `task_cpu`).
    pub asleep: Turns,
    /// Switches on all CPUs, and those away from another task than the one that their CPU had switched to; nothing
    /// where switches were recorded of some threads alone.
    pub chain: Turns,
    /// CPUs to which tasks went, and on which no switch was recorded.
    pub absent_cpus: Vec<u32>,
}

impl ContinuityReport {
    /// Returns whether times between events cannot be trusted.
    pub fn torn(&self) -> bool {
        let Self {
            exits,
            entries,
            switches,
            wakeups,
            asleep,
            ..
        } = self;
        let elsewhere = asleep.missed > 0 && !asleep.is_rare();
        exits.torn() || entries.torn() || switches.torn() || wakeups.torn() || elsewhere
    }

    /// Says what is missing, each as `N of M ...`; nothing where the recording has no holes.
    pub fn holes(&self) -> Vec<String> {
        let kinds = [
            (
                &self.exits,
                "exits are followed by another exit of their vCPU, with no entry between them",
            ),
            (
                &self.entries,
                "entries are followed by another entry of their vCPU, with no exit between them",
            ),
            (&self.switches, "switches do not follow from the one before"),
            (
                &self.wakeups,
                "wake-ups are of a thread that had been woken and was not seen running since",
            ),
        ];
        let torn = kinds.iter().filter(|(turns, _)| turns.torn());
        let mut out: Vec<String> = torn
            .map(|(turns, what)| format!("{} of {} {what}", turns.missed, turns.all))
            .collect();
        let Turns { all, missed, .. } = self.asleep;
        if missed > 0 && !self.asleep.is_rare() {
            out.push(format!(
                "{missed} of {all} wake-ups of vCPUs are on a CPU other than the one where they were seen going to \
                 sleep"
            ));
        }
        out
    }

    /// Raises what is missing, where anything is.
    pub fn raise(&self, doubts: &mut Doubts) {
        let holes = self.holes();
        if !holes.is_empty() {
            doubts.raise(DoubtKind::TurnsMissed { holes });
        }
        for &cpu in &self.absent_cpus {
            doubts.raise(Doubt::from(DoubtKind::CpuNotRecorded { cpu }).on_cpu(cpu));
        }
    }
}

/// Where CPUs are of: events of another ring buffer may be another machine's, with numbers of its own.
type CpuKey = (u16, i64);

/// Watches the turns.
#[derive(Debug, Default)]
pub struct Continuity {
    /// By [`thread_number`].
    threads: ByNumber<ThreadTurns>,
    /// Sums of those that are not kept apart any more: vCPUs, and other threads.
    others: [ThreadTurns; 2],
    /// The task that each CPU switched to.
    cpus: FxHashMap<CpuKey, i32>,
    /// By CPU, tasks that were woken for it or moved to it.
    aimed: FxHashMap<CpuKey, u64>,
    chain: Turns,
    /// Whether a CPU was seen leaving its idle task: then switches to threads were recorded, and not those away from
    /// them alone.
    from_idle: bool,
    /// Whether `sched_waking` was seen: `sched_wakeup` then says the same again.
    waking: bool,
}

impl Continuity {
    /// Returns a watcher that has seen nothing.
    pub fn new() -> Continuity {
        Continuity::default()
    }

    #[inline]
    fn take(&mut self, event: &Event<'_>, data: &Data) {
        match data {
            Data::KvmExit(exit) => {
                let thread = self.vcpu(event, exit.vcpu);
                // What the exit before really was is no exit of its own.
                let known = |thread: &&mut ThreadTurns| !exit.inner || thread.exited != Some(true);
                if let Some(thread) = thread.filter(known) {
                    thread.exits += 1;
                    thread.exits_missed += u64::from(thread.exited == Some(true));
                    thread.exited = Some(true);
                }
            }
            Data::KvmEntry(entry) => {
                if let Some(thread) = self.vcpu(event, entry.vcpu) {
                    thread.entries += 1;
                    thread.entries_missed += u64::from(thread.exited == Some(false));
                    thread.exited = Some(false);
                }
            }
            Data::SchedSwitch(switch) => {
                let sleeps = switch.prev_state.leaves() == Leaves::Blocked;
                self.switch(event, switch.prev_tid, switch.next_tid, sleeps);
            }
            Data::SchedWaking(wakeup) => {
                self.waking = true;
                // The CPU that it had last; it may be woken for another.
                self.aim(event, wakeup.target_cpu, 1);
                let thread = self.wake(event, wakeup.tid);
                if let (Some(known), Some(recorded)) = (thread.asleep_on, wakeup.target_cpu) {
                    thread.asleep += 1;
                    thread.asleep_missed += u64::from(known != recorded);
                }
            }
            Data::SchedWakeup(wakeup) => {
                self.aim(event, wakeup.target_cpu, CERTAIN);
                if !self.waking {
                    self.wake(event, wakeup.tid);
                }
            }
            Data::SchedMigrateTask(migrate) => self.aim(event, Some(migrate.dest_cpu), CERTAIN),
            _ => {}
        }
    }

    fn aim(&mut self, event: &Event<'_>, cpu: Option<i32>, weight: u64) {
        if let Some(cpu) = cpu.filter(|cpu| cpu_index(*cpu).is_some()) {
            *self
                .aimed
                .entry((event.buffer, i64::from(cpu)))
                .or_default() += weight;
        }
    }

    /// The thread of a vCPU's event. Texts may be without thread ids: then the vCPU's number stands for it.
    fn vcpu(&mut self, event: &Event<'_>, vcpu: Option<u32>) -> Option<&mut ThreadTurns> {
        let id = match vcpu {
            _ if event.tid >= 0 => i64::from(event.tid),
            Some(vcpu) => -1 - i64::from(vcpu),
            None => return None,
        };
        let number = thread_number(event.buffer, id);
        Some(self.threads.entry(number, ThreadTurns::default))
    }

    fn switch(&mut self, event: &Event<'_>, prev: i32, next: i32, sleeps: bool) {
        if cpu_index(event.cpu).is_some() {
            let place = (event.buffer, i64::from(event.cpu));
            if let Some(before) = self.cpus.insert(place, next) {
                self.chain.all += 1;
                self.chain.missed += u64::from(before != prev);
            }
        }
        // Every CPU has an idle task, all with the same number.
        self.from_idle |= prev == 0;
        if prev != 0 {
            let number = thread_number(event.buffer, i64::from(prev));
            let thread = self.threads.entry(number, ThreadTurns::default);
            thread.outs += 1;
            thread.switches_missed += u64::from(thread.on_cpu == Some(false));
            thread.on_cpu = Some(false);
            thread.woken = false;
            thread.asleep_on = (sleeps && event.cpu >= 0).then_some(event.cpu);
        }
        if next != 0 {
            let number = thread_number(event.buffer, i64::from(next));
            let thread = self.threads.entry(number, ThreadTurns::default);
            thread.ins += 1;
            thread.switches_missed += u64::from(thread.on_cpu == Some(true));
            thread.on_cpu = Some(true);
            thread.woken = false;
            thread.asleep_on = None;
        }
    }

    fn wake(&mut self, event: &Event<'_>, tid: i32) -> &mut ThreadTurns {
        let number = thread_number(event.buffer, i64::from(tid));
        let thread = self.threads.entry(number, ThreadTurns::default);
        thread.wakeups += 1;
        // A thread on its way to sleep is woken before it has left its CPU, as often as it tries.
        if thread.on_cpu != Some(true) {
            thread.wakeups_missed += u64::from(thread.woken);
            thread.woken = true;
        }
        thread
    }

    /// Returns what was found.
    pub fn report(&self) -> ContinuityReport {
        let mut report = ContinuityReport::default();
        let add = |turns: &mut Turns, all: u64, missed: u64| {
            turns.all += all;
            turns.missed += missed;
            turns.of += u64::from(all > 0);
        };
        let cpus = self.cpus.len() as u64;
        let chain = Turns {
            of: cpus,
            ..self.chain
        };
        // A recorder that follows some threads alone does not know when others run: their wake-ups show nothing.
        let all_threads = self.from_idle && !chain.torn();
        let mut vcpus = 0u64;
        let mut whole = self.from_idle;
        for thread in self.threads.values().chain(&self.others) {
            let ThreadTurns { exits, entries, .. } = *thread;
            let is_vcpu = exits + entries > 0;
            vcpus += u64::from(is_vcpu);
            add(&mut report.exits, exits, thread.exits_missed);
            add(&mut report.entries, entries, thread.entries_missed);
            // perf record -p has the switches away from its threads, and to them only those away from another of them.
            let both = self.from_idle || thread.ins.saturating_mul(10) >= thread.outs * 9;
            whole |= is_vcpu && both && thread.ins > 0;
            if is_vcpu && both {
                let all = thread.ins + thread.outs;
                add(&mut report.switches, all, thread.switches_missed);
            }
            if is_vcpu {
                add(&mut report.asleep, thread.asleep, thread.asleep_missed);
            }
            // One that never ran where anybody looked, on a CPU that was not recorded by intent, is no hole.
            if (is_vcpu || all_threads) && thread.ins + thread.outs > 0 {
                report.wakeups.all += thread.wakeups;
                report.wakeups.missed += thread.wakeups_missed;
            }
        }
        report.wakeups.of = cpus;
        if vcpus == 0 {
            report.switches = chain;
        }
        // Where one process is recorded, all switches to its threads are missing.
        if whole {
            report.chain = chain;
            let absent = self
                .aimed
                .iter()
                .filter(|(place, aimed)| **aimed >= CERTAIN && !self.cpus.contains_key(place));
            report.absent_cpus = absent.map(|((_, cpu), _)| *cpu as u32).collect();
            report.absent_cpus.sort_unstable();
        }
        report
    }
}

impl Analysis for Continuity {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        let numbers = self.threads.numbers().filter(|number| {
            let tid = i32::try_from(thread_id(*number));
            tid.is_ok_and(|tid| retired.has_tid(tid))
        });
        for number in numbers.collect::<Vec<_>>() {
            if let Some(turns) = self.threads.remove(number) {
                let is_vcpu = turns.exits + turns.entries > 0;
                self.others[usize::from(is_vcpu)].merge(&turns);
            }
        }
    }

    fn turn(&self) -> Turn {
        Turn::Before
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind {
            Kind::KvmExit | Kind::KvmInnerExit | Kind::KvmEntry => EventDetail::Thread,
            Kind::SchedSwitch | Kind::SchedWaking | Kind::SchedWakeup | Kind::SchedMigrateTask => {
                EventDetail::Order
            }
            _ => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, _: &mut Context<'_>) {
        self.take(event, data);
    }

    fn doubts(&self, _: &WalkState<'_>, doubts: &mut Doubts) {
        self.report().raise(doubts);
    }
}

#[cfg(test)]
mod tests {
    use event::sched::{SchedSwitch, SchedWakeup, TaskComm, TaskState};
    use event::{Body, Decoder, ExitReason, Isa, KvmEntry, KvmExit};

    use super::*;

    /// Events, one after the other.
    #[derive(Default)]
    struct Replay(Continuity);

    impl Replay {
        fn event(&mut self, cpu: i32, tid: i32, data: Data) {
            let ty = EventType {
                index: 0,
                machine: 0,
                system: "",
                name: "",
                label: "",
                kind: Kind::Other,
                format: None,
                decoder: Decoder::default(),
                recorded: true,
            };
            let event = Event {
                time: 0,
                cpu,
                tid,
                pid: -1,
                ty: &ty,
                body: Body::None,
                sample: None,
                buffer: 0,
                comm: None,
            };
            self.0.take(&event, &data);
        }

        fn exit(&mut self, tid: i32) {
            let reason = ExitReason {
                isa: Isa::Svm,
                code: 0x78,
            };
            let exit = KvmExit {
                reason,
                vcpu: Some(0),
                guest_pc: None,
                info: None,
                inner: false,
            };
            self.event(0, tid, Data::KvmExit(exit));
        }

        fn entry(&mut self, tid: i32) {
            let entry = KvmEntry {
                vcpu: Some(0),
                guest_pc: None,
            };
            self.event(0, tid, Data::KvmEntry(entry));
        }

        fn switch(&mut self, cpu: i32, prev_tid: i32, next_tid: i32) {
            let switch = SchedSwitch {
                prev_tid,
                prev_comm: TaskComm::default(),
                prev_state: TaskState(1),
                next_tid,
                next_comm: TaskComm::default(),
            };
            self.event(cpu, prev_tid, Data::SchedSwitch(switch));
        }

        fn wake(&mut self, tid: i32) {
            self.wake_on(tid, None);
        }

        fn wake_on(&mut self, tid: i32, target_cpu: Option<i32>) {
            let wakeup = SchedWakeup {
                tid,
                comm: TaskComm::default(),
                target_cpu,
            };
            self.event(0, 0, Data::SchedWaking(wakeup));
        }

        /// A vCPU halts, is woken and goes on, so many times; `keep` says which of the six events were recorded.
        fn halts(&mut self, times: usize, keep: &dyn Fn(usize) -> bool) {
            for event in (0..times * 6).filter(|event| keep(*event)) {
                match event % 6 {
                    0 => self.entry(7),
                    1 => self.exit(7),
                    2 => self.switch(1, 7, 0),
                    3 => self.wake(7),
                    4 => self.switch(1, 0, 7),
                    _ => {}
                }
            }
        }
    }

    fn report(times: usize, keep: &dyn Fn(usize) -> bool) -> ContinuityReport {
        let mut replay = Replay::default();
        replay.halts(times, keep);
        replay.0.report()
    }

    #[test]
    fn a_recording_that_lost_nothing_misses_no_turn() {
        let whole = report(1000, &|_| true);
        assert_eq!((whole.exits.all, whole.entries.all), (1000, 1000));
        assert!(!whole.torn() && whole.holes().is_empty());
        let missed = [whole.exits, whole.entries, whole.switches, whole.wakeups];
        assert!(missed.iter().all(|turns| turns.missed == 0));
        // A few at one place are a hole, and no more than that.
        let one_hole = report(1000, &|event| !(3000..3017).contains(&event));
        assert!(!one_hole.torn(), "{one_hole:?}");
    }

    #[test]
    fn whatever_is_taken_out_all_through_is_noticed() {
        for n in [2, 3, 5, 7, 50, 300] {
            let thinned = report(2000, &|event| event % n != n / 2);
            assert!(thinned.torn(), "every {n}th: {thinned:?}");
            assert!(!thinned.holes().is_empty());
        }
        for class in [0, 1] {
            let without = report(1000, &|event| event % 6 != class);
            assert!(without.torn(), "without {class}: {without:?}");
        }
    }

    #[test]
    fn perf_record_p_has_the_switches_away_alone() {
        let mut replay = Replay::default();
        for _ in 0..1000 {
            replay.entry(7);
            replay.exit(7);
            replay.switch(1, 7, 9);
            replay.wake(7);
        }
        assert!(!replay.0.report().torn(), "{:?}", replay.0.report());
    }

    #[test]
    fn a_cpu_that_was_not_recorded_shows_in_wake_ups_that_nobody_followed() {
        let mut replay = Replay::default();
        for _ in 0..100 {
            replay.switch(0, 0, 5);
            replay.switch(0, 5, 0);
            // It runs elsewhere two times of three.
            replay.wake(5);
            replay.wake(5);
            replay.wake(5);
        }
        assert!(replay.0.report().wakeups.torn(), "{:?}", replay.0.report());
        // One that never runs where anybody looks: the CPUs were chosen.
        let mut replay = Replay::default();
        for _ in 0..100 {
            replay.switch(0, 0, 5);
            replay.switch(0, 5, 0);
            replay.wake(5);
            replay.wake(6);
        }
        assert!(!replay.0.report().torn(), "{:?}", replay.0.report());
    }

    #[test]
    fn a_vcpu_that_sleeps_where_it_was_not_seen_has_run_elsewhere() {
        let report = |elsewhere: i32| {
            let mut replay = Replay::default();
            for _ in 0..20 {
                replay.entry(7);
                replay.exit(7);
                replay.switch(1, 7, 0);
                replay.wake_on(7, Some(1));
                replay.switch(1, 0, 7);
            }
            replay.switch(1, 7, 0);
            replay.wake_on(7, Some(1));
            replay.wake_on(7, Some(elsewhere));
            replay.0.report()
        };
        assert!(!report(1).torn(), "{:?}", report(1));
        let torn = report(2);
        assert_eq!((torn.asleep.missed, torn.torn()), (1, true));
        assert!(
            torn.holes()
                .iter()
                .any(|text| text.contains("1 of 22 wake-ups of vCPUs"))
        );
    }

    #[test]
    fn texts_without_threads_go_by_the_vcpu() {
        let mut replay = Replay::default();
        for _ in 0..100 {
            replay.exit(-1);
            replay.entry(-1);
        }
        let report = replay.0.report();
        assert_eq!((report.exits.all, report.exits.missed), (100, 0));
    }
}
