//! Who had the time between two steps of an instance.
//!
//! An instance keeps what the threads that it knows have done up to its last step. Who makes the next step's event had
//! the time up to it, if that is one of them: what it did since then is the difference. A thread that an instance did
//! not know may have done anything before it came in.
//!
//! That is what makes it cost more than other sums: at each step of each instance, also of those that complete in
//! nothing, the times of all threads that it knows are read.

use event::index_of;
use model::{Machine, State, Times};

use super::asks::works_for;
use super::bind::{AttributeReader, BoundAlternative};
use super::instance::ReachedStep;
use super::{EventContext, Paths};
use crate::ledger::{LedgerPart, TimeHolder, TimeManner};
use crate::tasks::{IDLE, NamedOwner, TaskKind, TaskRun};

/// vCPUs that an interrupt may be for of which it is not known yet whose it is, at most.
const MAYBE: usize = 8;

/// A stage that has just ended.
#[derive(Clone, Copy)]
struct EndedStage {
    from: ReachedStep,
    to: ReachedStep,
    /// Who made the event that ended it.
    actor: u32,
    /// From when on it is not accounted for.
    since: u64,
    /// The actor polls, and has had the time though the instance did not know it.
    polls: bool,
    /// It began with the exit of its thread, from which on nothing is known of other threads.
    exit: bool,
    /// It followed at once: within one call of the kernel, if the same thread made both events.
    soon: bool,
    /// Both events were made in interrupts.
    in_irq: bool,
    /// The vCPU whose guest comes first on the way.
    home: Option<u32>,
}

impl EndedStage {
    fn ns(&self) -> u64 {
        self.to.time.saturating_sub(self.since)
    }

    /// Whether one thread made both events, on the host.
    fn is_of_one(&self) -> bool {
        let on_host = self.from.machine == 0 && self.to.machine == 0;
        on_host && self.from.thread == self.to.thread && self.actor == self.to.thread
    }

    /// Whether the actor was woken when it began.
    fn woke_actor(&self) -> bool {
        !self.from.switch && self.from.machine == 0 && self.from.task == Some(self.actor)
    }
}

impl Paths {
    /// An instance has just reached a step: says who had the time since the one before, and keeps what threads have
    /// done up to here.
    pub(super) fn account(
        &mut self,
        at: u32,
        bound: &BoundAlternative,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
    ) {
        if !self.sums {
            return;
        }
        let in_irq = now.guest.is_none() && model::in_interrupt(now.event) == Some(true);
        let live = &self.live[index_of(at)];
        match *live.reached() {
            [.., from, to] => {
                let gets = to.switch && is_about_task(bound);
                let actor = to.task.filter(|_| gets).unwrap_or(to.thread);
                let step = &self.index.steps[index_of(bound.number)];
                let soon = step.soon || self.index.alts[index_of(bound.alt)].soon;
                let stage = EndedStage {
                    from,
                    to,
                    actor,
                    since: live.marked_at.max(from.time),
                    polls: step.polls,
                    exit: step.from_exit,
                    soon,
                    in_irq: in_irq && live.marked_in_irq,
                    home: self.home(live.reached()),
                };
                self.retract(at, &stage);
                self.enter(at, &stage, machine);
            }
            _ => self.begin_account(at, now.event.time),
        }
        self.mark(at, now, machine);
        self.live[index_of(at)].marked_in_irq = in_irq;
    }

    /// An instance begins: of what an earlier one left in its place nothing counts.
    pub(super) fn begin_account(&mut self, at: u32, time: u64) {
        let live = &mut self.live[index_of(at)];
        live.ledger.clear();
        live.marks.clear();
        live.marked_at = time;
        live.marked_in_irq = false;
    }

    /// The vCPU that comes first.
    fn home(&self, reached: &[ReachedStep]) -> Option<u32> {
        let threads = reached.iter().flat_map(|one| [Some(one.thread), one.task]);
        let mut threads = threads.flatten();
        threads.find(|slot| self.tasks.get(*slot).what == TaskKind::Vcpu)
    }

    /// Steps that were taken back end no stage any more. Their time is that of the stage which ends now; who had it is
    /// known if the same thread did.
    fn retract(&mut self, at: u32, stage: &EndedStage) {
        let live = &mut self.live[index_of(at)];
        let (from, to) = (stage.from.step, stage.to.step);
        for entry in live.ledger.iter_mut().filter(|entry| entry.step > from) {
            if entry.actor != stage.actor {
                entry.holder = TimeHolder::Unknown;
                entry.manner = TimeManner::Unknown;
            }
            entry.step = to;
        }
    }

    /// Enters the time since the last step, or since one that was taken back.
    fn enter(&mut self, at: u32, stage: &EndedStage, machine: &mut Machine) {
        let ns = stage.ns();
        if ns == 0 {
            return;
        }
        let ledger = &mut self.live[index_of(at)].ledger;
        let mut ledger = std::mem::take(ledger);
        let mut put = |(holder, manner): (TimeHolder, TimeManner), ns: u64| {
            if ns == 0 {
                return;
            }
            ledger.push(LedgerPart {
                step: stage.to.step,
                actor: stage.actor,
                holder,
                manner,
                ns,
            });
        };
        if let Some(whole) = self.whole(stage) {
            put(whole, ns);
        } else {
            let marks = &self.live[index_of(at)].marks;
            let mark = marks.iter().find(|(slot, _)| *slot == stage.actor);
            match mark {
                Some((_, before)) => {
                    let times = self.done(stage.actor, stage.to.time, machine);
                    let times = exactly(times.since(before), ns);
                    for state in State::ALL {
                        put(self.held(stage, state, machine), times.get(state));
                    }
                }
                None if stage.polls => put(self.untimed(stage, machine), ns),
                None => put((TimeHolder::Unknown, TimeManner::Unknown), ns),
            }
        }
        self.live[index_of(at)].ledger = ledger;
    }

    /// Who had the time of an actor that is no vCPU, and of which no switch has shown whether it had a CPU then.
    fn untimed(&mut self, stage: &EndedStage, machine: &Machine) -> (TimeHolder, TimeManner) {
        let task = self.tasks.entry(stage.actor, machine.threads());
        // One that has never been switched to has had its CPU all the time.
        let ran = match task.run {
            TaskRun::Running => task.since <= stage.since,
            TaskRun::Unknown => task.since == 0 && machine.seen().switches,
            TaskRun::Runnable | TaskRun::Asleep => false,
        };
        let manner = if ran {
            TimeManner::Work
        } else {
            TimeManner::Unknown
        };
        (self.holder(stage, machine), manner)
    }

    /// Who had a whole stage, where its two events say it.
    fn whole(&self, stage: &EndedStage) -> Option<(TimeHolder, TimeManner)> {
        // From a wake-up until it has its CPU a task waits for one.
        if stage.woke_actor() && stage.to.switch && stage.to.task == Some(stage.actor) {
            return Some((TimeHolder::Kernel, TimeManner::Runnable));
        }
        if stage.exit {
            // KVM handles it, unless the thread lost its CPU meanwhile.
            let task = self.tasks.get(stage.actor);
            let has_cpu = task.run != TaskRun::Runnable && task.since <= stage.from.time;
            return Some(if has_cpu {
                (TimeHolder::Kernel, TimeManner::Work)
            } else {
                (TimeHolder::Unknown, TimeManner::Unknown)
            });
        }
        let one_interrupt = stage.in_irq && stage.is_of_one() && stage.from.cpu == stage.to.cpu;
        // An idle task does no more than the kernel's work, mostly in interrupts.
        let idle = stage.actor >= IDLE && stage.is_of_one();
        (one_interrupt || idle).then_some((TimeHolder::Kernel, TimeManner::Work))
    }

    /// Who had the time in which the actor of a stage was in a state, and how.
    fn held(
        &mut self,
        stage: &EndedStage,
        state: State,
        machine: &Machine,
    ) -> (TimeHolder, TimeManner) {
        let woken = stage.woke_actor();
        match state {
            State::Runnable if self.was_running_unseen(stage) => {
                (self.holder(stage, machine), TimeManner::Unknown)
            }
            State::Runnable => (TimeHolder::Kernel, TimeManner::Runnable),
            // Between its wake-up and the event that says that it is on a run queue.
            State::Halted | State::KernelBlocked | State::UserBlocked if woken => {
                (TimeHolder::Kernel, TimeManner::Runnable)
            }
            State::Halted => (TimeHolder::Unknown, TimeManner::Asleep),
            State::Unknown if self.tasks.get(stage.actor).what == TaskKind::Vcpu => {
                (TimeHolder::Unknown, TimeManner::Unknown)
            }
            State::Unknown => self.untimed(stage, machine),
            state if self.tasks.get(stage.actor).what == TaskKind::Vcpu => {
                self.vcpu_held(stage, state, machine)
            }
            _ => (self.holder(stage, machine), TimeManner::Work),
        }
    }

    /// Whether the actor made its event though it was last seen waiting for a CPU: when it got one was not recorded.
    fn was_running_unseen(&self, stage: &EndedStage) -> bool {
        let task = self.tasks.get(stage.actor);
        let makes = stage.to.machine == 0 && stage.to.thread == stage.actor && !stage.to.switch;
        makes && task.what != TaskKind::Vcpu && task.run == TaskRun::Runnable
    }

    /// The same of a vCPU that is neither runnable nor halted.
    fn vcpu_held(
        &self,
        stage: &EndedStage,
        state: State,
        machine: &Machine,
    ) -> (TimeHolder, TimeManner) {
        let task = self.tasks.get(stage.actor);
        let one_halt = task.halts && task.exit_at <= stage.since;
        match state {
            State::Guest => {
                let other = stage
                    .home
                    .is_some_and(|home| self.are_of_two_vms(home, stage.actor, machine));
                let guest = if other {
                    TimeHolder::OtherGuest
                } else {
                    TimeHolder::Guest
                };
                (guest, TimeManner::Work)
            }
            // Whether it slept is not recorded.
            State::Kernel if one_halt && !machine.seen().switches => {
                (TimeHolder::Unknown, TimeManner::Asleep)
            }
            State::Kernel if one_halt || stage.soon && stage.is_of_one() => {
                (TimeHolder::Kernel, TimeManner::Work)
            }
            State::Kernel => (TimeHolder::Exit, TimeManner::Work),
            State::KernelBlocked => (TimeHolder::Exit, TimeManner::Asleep),
            State::Poll => (TimeHolder::Kernel, TimeManner::Polling),
            State::User if machine.vcpu_in(stage.actor).is_some() => {
                (TimeHolder::Vmm, TimeManner::Work)
            }
            State::UserBlocked => (TimeHolder::Vmm, TimeManner::Asleep),
            // It had a CPU: whether in its guest is not recorded.
            _ => (TimeHolder::Unknown, TimeManner::Work),
        }
    }

    /// Who a thread is that is no vCPU's and has a CPU.
    fn holder(&mut self, stage: &EndedStage, machine: &Machine) -> TimeHolder {
        let slot = stage.actor;
        let threads = machine.threads();
        match self.tasks.entry(slot, threads).what {
            TaskKind::Other => {}
            _ => return TimeHolder::Kernel,
        }
        // What follows at once does so in the same system call.
        if stage.soon && stage.is_of_one() {
            return TimeHolder::Kernel;
        }
        let task = self.tasks.get(slot);
        let (named, raises) = (task.named, task.raises);
        let has_process = || {
            threads
                .at(slot)
                .is_some_and(|(_, thread)| thread.pid.is_some())
        };
        match named {
            Some(NamedOwner::Vmm) => TimeHolder::Vmm,
            _ if self.is_of_vm(slot, threads) => TimeHolder::Vmm,
            Some(NamedOwner::Switch) => TimeHolder::Switch,
            // It interrupts guests, and its process has none.
            None if raises && has_process() => TimeHolder::Switch,
            None => TimeHolder::Unknown,
        }
    }

    /// Whether two vCPUs are certainly of two VMs.
    fn are_of_two_vms(&self, one: u32, other: u32, machine: &Machine) -> bool {
        if one == other {
            return false;
        }
        let guest = |slot: u32| self.guest_of(u64::from(slot));
        if let (Some(one), Some(other)) = (guest(one), guest(other)) {
            return one != other;
        }
        let threads = machine.threads();
        let pid = |slot: u32| threads.at(slot).and_then(|(_, thread)| thread.pid);
        match (pid(one), pid(other)) {
            (Some(_), Some(_)) => !works_for(one, other, threads),
            // A VM has one vCPU of each number.
            _ => {
                let number = |slot: u32| self.tasks.get(slot).vcpu;
                number(one).is_some() && number(one) == number(other)
            }
        }
    }

    /// Keeps what the threads that an instance knows have done.
    fn mark(&mut self, at: u32, now: &EventContext<'_, '_>, machine: &Machine) {
        let mut marks = std::mem::take(&mut self.live[index_of(at)].marks);
        marks.clear();
        let live = &self.live[index_of(at)];
        let last = live.last();
        let roles = &self.index.roles[index_of(live.chain)].threads;
        let held = roles
            .iter()
            .filter_map(|role| u32::try_from(live.known(*role)?).ok());
        let open = roles.iter().filter(|role| live.is_pending(**role));
        let open = open.filter_map(|role| live.role(*role));
        let maybe = open.flat_map(|ticket| self.interrupts.few_of(ticket, &self.tasks, MAYBE));
        let seen = [Some(now.thread), now.task.filter(|_| now.guest.is_none())];
        for slot in held.chain(maybe).chain(seen.into_iter().flatten()) {
            if slot < IDLE && marks.iter().all(|(known, _)| *known != slot) {
                marks.push((slot, self.done(slot, last.time, machine)));
            }
        }
        let live = &mut self.live[index_of(at)];
        live.marks = marks;
        live.marked_at = last.time;
    }

    /// What a thread has done up to now, by state; a thread that is no vCPU's and has a CPU is in [`State::User`].
    fn done(&self, slot: u32, time: u64, machine: &Machine) -> Times {
        let task = self.tasks.get(slot);
        if task.what == TaskKind::Vcpu
            && let Some(vcpu) = machine.vcpu_in(slot)
        {
            return machine.times_at(vcpu, time);
        }
        let mut times = Times::default();
        let done = task.done_at(time);
        for (run, state) in [
            (TaskRun::Running, State::User),
            (TaskRun::Runnable, State::Runnable),
            (TaskRun::Asleep, State::Halted),
            (TaskRun::Unknown, State::Unknown),
        ] {
            times.add(state, done[run as usize]);
        }
        times
    }
}

/// Returns whether it is the task that a switch gives the CPU to which makes an event this alternative.
fn is_about_task(bound: &BoundAlternative) -> bool {
    let keys = bound.keys.iter().map(|(read, _)| read);
    let mut all = keys.chain(bound.binds.iter().map(|(_, read)| read));
    !all.any(|read| matches!(read, AttributeReader::Prev))
}

/// Makes times add up to what passed. There may be less where the thread became known in between, and more where it
/// turned out later that it had been in another state before the stage began, as halt polling does: then too much is
/// in one of them.
fn exactly(mut times: Times, ns: u64) -> Times {
    times.add(State::Unknown, ns.saturating_sub(times.total()));
    // Of a damaged recording they may be more than 64 bits hold, and a total that ends there would become no less.
    let sum: u128 = State::ALL
        .iter()
        .map(|state| u128::from(times.get(*state)))
        .sum();
    let mut too_much = sum.saturating_sub(ns.into());
    while too_much > 0 {
        let most = State::ALL.into_iter().max_by_key(|state| times.get(*state));
        let most = most.unwrap_or(State::Unknown);
        let taken = u64::try_from(too_much)
            .unwrap_or(u64::MAX)
            .min(times.get(most));
        times.take(most, taken);
        too_much -= u128::from(taken);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clocks that step back leave more time in states than 64 bits hold: it comes to an end.
    #[test]
    fn times_add_up_to_what_passed_however_much_they_are() {
        for ns in [0, 7, u64::MAX / 2, u64::MAX - 5, u64::MAX] {
            for first in [0, 3, u64::MAX] {
                let mut times = Times::ZERO;
                times.add(State::Guest, first);
                times.add(State::Halted, u64::MAX - 1);
                times.add(State::Kernel, 9);
                assert_eq!(exactly(times, ns).total(), ns, "{first} {ns}");
            }
            assert_eq!(exactly(Times::ZERO, ns).get(State::Unknown), ns);
        }
    }
}
