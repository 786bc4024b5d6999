//! The longest times in which a vCPU did nothing for its guest though the guest had not asked to wait, and what went on
//! meanwhile.
//!
//! A stall is the time between an exit and the next entry, if the guest did not ask to wait, or, of any exit, a wait
//! for a CPU. The scheduler's events show what held the vCPU: it slept, in KVM or in the VMM, and somebody woke it; it
//! was stopped by a signal (state `T`); it could run, and other tasks had its CPU; or it had its CPU, or an idle one
//! was there for it, and nothing whatever happened on that CPU: then the host itself stood still.
//!
//! It costs more than 2 ns an event, because any exit may become a stall: what would explain it is noted at each
//! exit, entry, span and switch of a vCPU, and nearly always dropped at the entry.

mod close;
mod report;

use event::sched::{Leaves, TaskState};
use event::{Data, Event, EventType, ExitReason, Kind};
use model::{
    BySlot, CpuSwitch, GuestAccess, Machine, RetiredThreads, Span, State, TaskChanges, TaskStates,
};

use crate::analysis::{Analysis, Context, EventDetail, FilterScope, Needs, States};
pub use report::{Ran, Stall, StallCause, StallsReport};

/// What a guest's users notice: a stall is no shorter.
pub const LONG_NS: u64 = 100_000_000;
/// vCPUs for which it is noted at once who runs while they sleep.
const MAX_ASLEEP: usize = 64;
/// Tasks that are noted for one of them.
const MAX_RAN: usize = 24;

/// `TASK_STOPPED` and `TASK_TRACED`; `TASK_UNINTERRUPTIBLE` (`include/linux/sched.h`).
const STOPPED: u64 = 0xc;
const UNINTERRUPTIBLE: u64 = 0x2;

/// Time of a stall under way, by what held the vCPU.
#[derive(Debug, Clone, Copy, Default)]
struct StallTimes {
    known: u64,
    vmm: u64,
    /// In the VMM, with a CPU.
    user: u64,
    kernel: u64,
    behind: u64,
    /// Runnable, and the CPU idle.
    idle: u64,
    running: u64,
    /// It slept, interruptibly, in KVM.
    asked: u64,
}

#[derive(Debug, Default)]
struct StallVcpu {
    /// Whether there is anything of a stall, or of the exit under way, that its end has to look at.
    held: bool,
    /// The stall under way.
    from: Option<u64>,
    to: u64,
    split: StallTimes,
    reason: Option<ExitReason>,
    access: Option<GuestAccess>,
    cpu: i32,
    /// Behind whom it waited longest at once.
    longest_behind: Option<(u32, u64)>,
    /// It sleeps: since when, in what state, and whether KVM has it and the guest did not ask to wait.
    asleep: Option<(u64, TaskState, bool)>,
    /// All that it slept uninterruptibly there.
    kernel_ns: u64,
    /// Who runs while it sleeps.
    ran: Vec<(u32, u64)>,
    /// Of the exit under way: the longest sleep, who ended it, who ran.
    slept: u64,
    woken_by: Option<u32>,
    beside: Vec<(u32, u64)>,
    stopped: u64,
    stopped_at: Option<(u64, u64)>,
    uninterruptible: u64,
}

/// What is kept of a stall until names are asked for.
#[derive(Debug, Clone)]
struct KeptStall {
    tid: i32,
    from: u64,
    to: u64,
    held: StallCause,
    held_ns: u64,
    vmm_ns: u64,
    reason: Option<ExitReason>,
    access: Option<GuestAccess>,
    waker: Option<KeptTask>,
    behind: Option<KeptTask>,
    is_open: bool,
}

/// A task that a stall is to be explained with.
#[derive(Debug, Clone)]
enum KeptTask {
    /// By its slot, with the time that it ran.
    Slot(u32, u64),
    /// With its name, where it is not kept apart any more.
    Named(Ran),
}

impl KeptTask {
    fn ran(&self, machine: &Machine) -> Ran {
        match self {
            KeptTask::Named(ran) => ran.clone(),
            KeptTask::Slot(slot, ns) => {
                let thread = machine.threads().at(*slot);
                Ran {
                    tid: thread.map_or(0, |(tid, _)| tid),
                    comm: thread.and_then(|(_, one)| one.comm.as_deref().map(str::to_owned)),
                    ns: *ns,
                }
            }
        }
    }

    fn retire(&mut self, retired: &RetiredThreads, machine: &Machine) {
        if let KeptTask::Slot(slot, _) = self
            && retired.has_slot(*slot)
        {
            *self = KeptTask::Named(self.ran(machine));
        }
    }
}

/// Looks for stalls.
#[derive(Debug, Default)]
pub struct Stalls {
    vcpus: BySlot<StallVcpu>,
    /// vCPUs that sleep outside halts, for which it is noted who runs.
    asleep: Vec<u32>,
    sums: [(u64, u64); StallCause::COUNT],
    kept: Vec<KeptStall>,
    ticks: bool,
    switches: bool,
    userspace: bool,
    /// Slot of the idle tasks.
    idle: Option<u32>,
}

impl Stalls {
    /// Returns one that has seen nothing.
    pub fn new() -> Stalls {
        Stalls::default()
    }

    fn vcpu(&mut self, vcpu: u32) -> &mut StallVcpu {
        self.vcpus.entry(vcpu, StallVcpu::default)
    }

    #[inline(always)]
    fn take(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        let machine = &mut *context.machine;
        match data {
            Data::KvmExit(_) | Data::KvmEntry(_) => {
                if let Some(vcpu) = machine.vcpu_of(event.tid)
                    && self.vcpus.get(vcpu).is_some_and(|one| one.held)
                {
                    self.close(vcpu, machine, context.activity);
                    self.vcpu(vcpu).goes_on();
                }
            }
            Data::KvmUserspaceExit(_) => self.userspace = true,
            Data::SchedStatRuntime(_) => self.ticks = true,
            _ => {}
        }
    }

    /// A CPU went from one task to another.
    fn switched(&mut self, switch: CpuSwitch, changes: &TaskChanges, machine: &Machine) {
        self.switches = true;
        if switch.prev_idle {
            self.idle = Some(switch.prev);
        }
        // It ran while vCPUs slept.
        if let Some(ran) = changes.cpu.filter(|ran| !ran.idle)
            && let Some(task) = ran.thread
        {
            for &vcpu in &self.asleep {
                if let Some(vcpu) = self.vcpus.get_mut(vcpu) {
                    vcpu.beside(task, ran.start, ran.end);
                }
            }
        }
        if let Some(vcpu) = machine.vcpu_in(switch.prev)
            && switch.left_as.leaves() == Leaves::Blocked
        {
            self.sleeps(vcpu, switch.time, switch.left_as, machine);
        }
        if let Some(vcpu) = machine.vcpu_in(switch.next) {
            let waited = changes.tasks.last();
            let waker = waited.filter(|span| span.thread == switch.next);
            let waker = waker.and_then(|span| span.waker);
            let woken = waited.filter(|span| span.thread == switch.next);
            let woken = woken.map_or(switch.time, |span| span.since);
            self.wakes_up(vcpu, (woken, switch.time), waker, machine.task_states());
        }
    }

    fn sleeps(&mut self, number: u32, time: u64, state: TaskState, machine: &Machine) {
        let does = machine.state(number);
        let halted = does == State::Halted;
        let vcpu = self.vcpu(number);
        vcpu.asleep = Some((time, state, does == State::KernelBlocked));
        vcpu.ran.clear();
        if !halted && self.asleep.len() < MAX_ASLEEP && !self.asleep.contains(&number) {
            self.asleep.push(number);
        }
    }

    /// It has a CPU again, some time after it was woken.
    fn wakes_up(
        &mut self,
        number: u32,
        (woken, time): (u64, u64),
        waker: Option<u32>,
        tasks: &TaskStates,
    ) {
        self.asleep.retain(|other| *other != number);
        let Some((since, state, in_kernel)) = self.vcpu(number).asleep.take() else {
            return;
        };
        self.vcpu(number).held = true;
        let ns = time.saturating_sub(since);
        if ns >= LONG_NS {
            // Who still runs has had no event.
            for ran in tasks.running(time) {
                if let Some(task) = ran.thread
                    && let Some(vcpu) = self.vcpus.get_mut(number)
                {
                    vcpu.beside_from(task, ran.start.max(since), ran.end);
                }
            }
        }
        let vcpu = self.vcpu(number);
        if state.0 & STOPPED != 0 {
            vcpu.stopped = vcpu.stopped.saturating_add(ns);
            if vcpu.stopped_at.is_none_or(|(from, to)| to - from < ns) {
                vcpu.stopped_at = Some((since, since.saturating_add(ns)));
            }
        } else if state.0 & UNINTERRUPTIBLE != 0 {
            vcpu.uninterruptible = vcpu.uninterruptible.saturating_add(ns);
            if in_kernel {
                // That it then waited for a CPU is no sleep. The clock may have gone back meanwhile.
                let asleep = woken.min(time).saturating_sub(since);
                vcpu.kernel_ns = vcpu.kernel_ns.saturating_add(asleep);
            }
        }
        if ns > vcpu.slept {
            vcpu.slept = ns;
            vcpu.woken_by = waker;
            vcpu.beside = std::mem::take(&mut vcpu.ran);
        }
    }

    /// Returns what was found, after the walk.
    pub fn report(&self, machine: &Machine) -> StallsReport {
        let mut longest: Vec<Stall> = self
            .kept
            .iter()
            .map(|kept| Stall {
                tid: kept.tid,
                from: kept.from,
                to: kept.to,
                held: kept.held,
                held_ns: kept.held_ns,
                vmm_ns: kept.vmm_ns,
                reason: kept.reason,
                access: kept.access,
                waker: kept.waker.as_ref().map(|one| one.ran(machine)),
                behind: kept.behind.as_ref().map(|one| one.ran(machine)),
                is_open: kept.is_open,
            })
            .collect();
        longest.sort_by_key(|stall| (std::cmp::Reverse(stall.ns()), stall.from));
        StallsReport {
            sums: self.sums,
            longest,
            asleep: (self.vcpus.iter())
                .filter(|(_, vcpu)| vcpu.kernel_ns > 0)
                .filter_map(|(number, vcpu)| Some((machine.vcpu(number)?.tid, vcpu.kernel_ns)))
                .collect(),
            ticks: self.ticks,
        }
    }
}

impl StallVcpu {
    /// The exit that it was in is over, or what its guest ran.
    fn goes_on(&mut self) {
        self.held = false;
        self.slept = 0;
        self.woken_by = None;
        self.beside.clear();
        self.stopped = 0;
        self.stopped_at = None;
        self.uninterruptible = 0;
    }

    /// Forgets tasks that are not kept apart any more: they had the least time.
    fn retire(&mut self, retired: &RetiredThreads) {
        let past = |slot: u32| retired.has_slot(slot);
        self.longest_behind = self.longest_behind.filter(|(slot, _)| !past(*slot));
        self.woken_by = self.woken_by.filter(|slot| !past(*slot));
        self.ran.retain(|(slot, _)| !past(*slot));
        self.beside.retain(|(slot, _)| !past(*slot));
    }

    /// A task ran from one time to another.
    fn beside(&mut self, task: u32, from: u64, to: u64) {
        if let Some((since, ..)) = self.asleep {
            self.beside_from(task, from.max(since), to);
        }
    }

    fn beside_from(&mut self, task: u32, from: u64, to: u64) {
        let ns = to.saturating_sub(from);
        if ns == 0 {
            return;
        }
        if let Some(known) = self.ran.iter_mut().find(|(known, _)| *known == task) {
            known.1 = known.1.saturating_add(ns);
        } else if self.ran.len() < MAX_RAN {
            self.ran.push((task, ns));
        } else if let Some(least) = self.ran.iter_mut().min_by_key(|(_, ns)| *ns)
            && least.1 < ns
        {
            *least = (task, ns);
        }
    }
}

/// Whether the guest may have asked for it: on arm64 it turns vCPUs off, and suspends them, by a call (PSCI).
fn asks(reason: ExitReason) -> bool {
    reason.is_waiting() || reason.is_arm64_call()
}

impl Analysis for Stalls {
    fn retire(&mut self, retired: &RetiredThreads, machine: &Machine) {
        for vcpu in retired.vcpus() {
            self.vcpus.remove(vcpu);
        }
        self.asleep.retain(|vcpu| !retired.has_vcpu(*vcpu));
        for (_, vcpu) in self.vcpus.iter_mut() {
            vcpu.retire(retired);
        }
        for kept in &mut self.kept {
            let tasks = kept.waker.iter_mut().chain(&mut kept.behind);
            tasks.for_each(|task| task.retire(retired, machine));
        }
    }

    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Whole)
    }

    fn needs(&self) -> Needs {
        Needs {
            states: States::All,
            spans: true,
            task_spans: true,
            activity: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind {
            Kind::KvmExit | Kind::KvmEntry | Kind::KvmUserspaceExit | Kind::SchedStatRuntime => {
                EventDetail::Order
            }
            _ => EventDetail::Nothing,
        }
    }

    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if context.chosen.follows {
            self.take(event, data, context);
        }
    }

    fn task_spans(&mut self, changes: &TaskChanges, context: &Context<'_>) {
        if context.chosen.follows
            && let Some(switch) = changes.switch
        {
            self.switched(switch, changes, context.machine);
        }
    }

    fn spans(&mut self, spans: &[Span], context: &Context<'_>) {
        for span in spans {
            self.span(span, context);
        }
    }

    /// A vCPU that still sleeps when the recording ends did so at least until then. Of one that runs, or waits for a
    /// CPU, the next event may be missing.
    fn finish(&mut self, context: &mut Context<'_>) {
        let asleep = self.vcpus.iter();
        let asleep = asleep.filter(|(_, vcpu)| vcpu.asleep.is_some() && vcpu.from.is_some());
        let asleep: Vec<(u32, u64)> = asleep.map(|(number, vcpu)| (number, vcpu.to)).collect();
        for (number, end) in asleep {
            self.wakes_up(number, (end, end), None, context.machine.task_states());
            self.close_at_end(number, context.machine, context.activity);
        }
    }
}

impl Stalls {
    /// Returns whether a vCPU is in what may become a stall.
    fn is_stalled(&self, vcpu: u32) -> bool {
        let vcpu = self.vcpus.get(vcpu);
        vcpu.is_some_and(|vcpu| vcpu.from.is_some())
    }

    #[inline]
    fn span(&mut self, span: &Span, context: &Context<'_>) {
        let call = || (span.cause.reason).is_none_or(ExitReason::is_arm64_call);
        let counts = match span.state {
            State::Guest | State::Poll | State::Halted => false,
            State::Runnable => true,
            // Whatever the guest asked for, its VMM sleeps: a VM that is paused while it is halted, for one.
            State::UserBlocked if self.userspace && !call() => true,
            // Between two of these sleeps its VMM's thread runs.
            State::User if self.userspace && self.is_stalled(span.vcpu) && !call() => true,
            _ => !span.cause.reason.is_none_or(asks),
        };
        if !counts {
            // What the guest asked for is no stall; a wait for a CPU in it is one by itself.
            if self.vcpus.get(span.vcpu).is_some_and(|one| one.held) {
                self.close(span.vcpu, context.machine, context.activity);
            }
            return;
        }
        let idle = span.behind.is_some() && span.behind == self.idle;
        let vcpu = self.vcpu(span.vcpu);
        let ns = span.ns();
        vcpu.held = true;
        vcpu.from.get_or_insert(span.start);
        vcpu.to = span.end;
        vcpu.reason = span.cause.reason;
        vcpu.access = span.cause.access;
        vcpu.cpu = span.cpu;
        let split = &mut vcpu.split;
        if span.state == State::User {
            split.user = split.user.saturating_add(ns);
        }
        let unknown = span.state == State::Runnable && span.behind.is_none();
        if span.state != State::Unknown && !unknown {
            split.known = split.known.saturating_add(ns);
        }
        let sum = match span.state {
            State::UserBlocked => &mut split.vmm,
            State::KernelBlocked => {
                split.asked = split.asked.saturating_add(ns);
                &mut split.kernel
            }
            State::Runnable if idle => &mut split.idle,
            State::Runnable => {
                if let Some(task) = span.behind
                    && vcpu.longest_behind.is_none_or(|(_, longest)| longest < ns)
                {
                    vcpu.longest_behind = Some((task, ns));
                }
                &mut split.behind
            }
            State::Unknown => return,
            _ => &mut split.running,
        };
        *sum = sum.saturating_add(ns);
    }
}
