//! Where each vCPU's time went, which tasks had its CPU while it waited for one, and which exits sent it to
//! the VMM.
//!
//! It costs more than 2 ns an event, because each span of a vCPU's state, of which an exit makes several, is added
//! to sums and to what is kept of the exit that it belongs to.

use doubts::{Concern, Concerns, Doubts};
use event::{Data, Event, EventType, ExitReason, Kind};
use model::{
    BySlot, Cause, Machine, Polls, RetiredThreads, SeenEvents, Span, State, Times, vm_names,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Stats;
use crate::analysis::{
    AccountScope, AccountedEvents, Analysis, Context, EventAccount, EventDetail, FilterScope,
    Needs, States, WalkState,
};
use crate::chosen::Window;
use crate::retired_names::{RetiredName, RetiredNames};
use crate::series::SliceMeasure;
use crate::slices::Amount;
use crate::unknowable::unknowable;

use crate::vcpu_pairs::{PairsByVcpu, VcpuPair, fold, pair, renumber};
use crate::vcpu_rows::{CpuHolder, UserCause, VcpuRow, VcpusReport};

/// What goes on in a vCPU.
#[derive(Debug, Clone, Copy, Default)]
struct VcpuProgress {
    /// Exits that the machine has counted.
    exits: u64,
    /// A wait for a CPU that goes on: it may have been behind several tasks.
    wait_ns: u64,
    /// It is in the VMM, if with its CPU taken away.
    in_user: bool,
    /// Its polls as the machine had them last.
    polls: Polls,
}

/// What is counted of a vCPU.
#[derive(Debug, Clone, Default)]
struct VcpuSums {
    times: Times,
    /// Of the kernel's part, what was in exits in which the guest asked to wait.
    kernel_waiting_ns: u64,
    span: Option<(u64, u64)>,
    exits: u64,
    polls: Polls,
    waits: Stats,
}

/// Adds up spans.
#[derive(Debug, Clone)]
pub struct Vcpus {
    window: Window,
    vcpus: BySlot<VcpuSums>,
    now: BySlot<VcpuProgress>,
    /// What is counted of those that are not kept apart any more, and how many they are.
    others: VcpuSums,
    other_vcpus: u32,
    retired: RetiredNames,
    /// Exits outside of the window, and those of threads that are no vCPU's.
    elsewhere: u64,
    /// Exits that only an inner event shows.
    inner: u64,
    behind: FxHashMap<(u32, CpuUser), Amount>,
    user: FxHashMap<(u32, Cause), Amount>,
}

/// Who had a CPU that a vCPU waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CpuUser {
    /// Nothing shows it.
    Unknown,
    /// A task, by its slot.
    Task(u32),
    /// Tasks of a name that are not kept apart any more, by the name's number.
    Retired(u32),
}

/// A vCPU's waits behind somebody.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitBehind<'v> {
    pub(crate) vcpu: u32,
    /// The slot of the task.
    pub(crate) task: Option<u32>,
    /// The tasks, where they are not kept apart any more.
    pub(crate) retired: Option<&'v RetiredName>,
    pub(crate) count: u64,
    pub(crate) ns: u64,
}

/// Stands for all vCPUs that are not kept apart any more.
const OTHER_VCPUS: u32 = u32::MAX;

impl Vcpus {
    /// Returns a sum of nothing.
    pub fn new(window: Window) -> Vcpus {
        Vcpus {
            window,
            vcpus: BySlot::default(),
            now: BySlot::default(),
            others: VcpuSums::default(),
            other_vcpus: 0,
            retired: RetiredNames::default(),
            elsewhere: 0,
            inner: 0,
            behind: FxHashMap::default(),
            user: FxHashMap::default(),
        }
    }

    #[inline]
    fn now(&mut self, vcpu: u32) -> &mut VcpuProgress {
        self.now.entry(vcpu, VcpuProgress::default)
    }

    #[inline]
    fn vcpu(&mut self, vcpu: u32) -> &mut VcpuSums {
        self.vcpus.entry(vcpu, VcpuSums::default)
    }

    /// A vCPU left its guest.
    #[inline]
    fn exit(&mut self, vcpu: u32, time: u64, cpu: i32) {
        match self.window.has(time, cpu) {
            true => self.vcpu(vcpu).exits += 1,
            false => self.elsewhere += 1,
        }
    }

    /// A vCPU was halted, which changed the count of its polls.
    fn halt(&mut self, vcpu: u32, time: u64, cpu: i32, after: &Polls) {
        let before = std::mem::replace(&mut self.now(vcpu).polls, *after);
        if self.window.has(time, cpu) {
            let polls = &mut self.vcpu(vcpu).polls;
            polls.succeeded += after.succeeded - before.succeeded;
            polls.succeeded_ns += after.succeeded_ns - before.succeeded_ns;
            polls.failed += after.failed - before.failed;
            polls.failed_ns += after.failed_ns - before.failed_ns;
            polls.unpolled += after.unpolled - before.unpolled;
            polls.unpolled_ns += after.unpolled_ns - before.unpolled_ns;
        }
    }

    /// Returns what was found. The sums of pairs are gone before rows are made of them: a large host has a million.
    pub fn report(mut self, walked: &WalkState<'_>) -> VcpusReport {
        let machine = walked.machine;
        let vms = machine.vms();
        let names = vm_names(&vms);
        let seen = machine.seen();
        let mut places: FxHashMap<u32, (usize, u32)> = FxHashMap::default();
        for (at, vm) in vms.iter().enumerate() {
            for vcpu in &vm.vcpus {
                places.entry(vcpu.thread).or_insert((at, vcpu.id));
            }
        }
        let behind = PairsByVcpu::of(std::mem::take(&mut self.behind));
        let user = PairsByVcpu::of(std::mem::take(&mut self.user));
        let mut rows: Vec<(Option<usize>, VcpuRow)> = Vec::new();
        for known in machine.vcpus() {
            let index = known.number;
            if walked.left_out.has(known.tid) {
                continue;
            }
            let place = places.get(&known.thread);
            let at = place.map(|(at, _)| *at);
            let vm = at.map(|at| &vms[at]);
            let number = place.map_or(0, |(_, id)| *id);
            let waits = self.now.get(index).map_or(0, |now| now.wait_ns);
            let row = self.vcpus.get(index).and_then(|vcpu| vcpu.row(waits, seen));
            // One that was woken with the last event has had no time yet.
            let named = seen.presumed && self.window.has(known.from, event::NONE);
            let row = row.or_else(|| named.then(|| VcpuRow::at(known.from)));
            if let Some(row) = row {
                let row = VcpuRow {
                    vm_pid: vm.and_then(|vm| vm.pid),
                    vm_name: vm.and_then(|vm| vm.name.clone()),
                    vm: at.map(|at| names[at].clone()).unwrap_or_default(),
                    guessed: vm.is_some_and(|vm| vm.guessed),
                    presumed: seen.presumed,
                    called: match at {
                        Some(at) if vms.len() > 1 => words::vcpu(Some(&names[at]), number),
                        _ => words::vcpu(None, number),
                    },
                    vcpu: number,
                    tid: known.tid,
                    behind: self.tasks(behind.get(index), machine),
                    user: causes(user.get(index)),
                    ..row
                };
                rows.push((at, row));
            }
        }
        rows.sort_by_key(|(vm, row)| (*vm, row.vcpu, row.from, row.tid));
        let mut rows: Vec<VcpuRow> = rows.into_iter().map(|(_, row)| row).collect();
        if let Some(row) = self.others.row(0, seen) {
            let of = OTHER_VCPUS;
            rows.push(VcpuRow {
                others: self.other_vcpus,
                behind: self.tasks(behind.get(of), machine),
                user: causes(user.get(of)),
                ..row
            });
        }
        VcpusReport { rows, seen }
    }

    /// Returns of each vCPU behind whom it waited, how often and for how long.
    pub(crate) fn waits(&self) -> impl Iterator<Item = WaitBehind<'_>> + '_ {
        self.behind.iter().map(|((vcpu, who), sum)| WaitBehind {
            vcpu: *vcpu,
            task: match who {
                CpuUser::Task(slot) => Some(*slot),
                CpuUser::Retired(_) | CpuUser::Unknown => None,
            },
            retired: match who {
                CpuUser::Retired(number) => self.retired.get(*number),
                CpuUser::Task(_) | CpuUser::Unknown => None,
            },
            count: sum.count,
            ns: sum.ns,
        })
    }

    /// Returns the tasks that a vCPU waited behind, most time first.
    fn tasks(&self, of_vcpu: &[VcpuPair<CpuUser>], machine: &Machine) -> Vec<CpuHolder> {
        let threads = machine.threads();
        let who = |who: CpuUser| match who {
            CpuUser::Unknown => (None, None),
            CpuUser::Task(slot) => threads.at(slot).map_or((None, None), |(tid, thread)| {
                (Some(tid), thread.comm.as_deref())
            }),
            CpuUser::Retired(number) => (None, self.retired.get(number).map(|name| &*name.comm)),
        };
        let mut list: Vec<VcpuPair<(Option<i32>, Option<&str>)>> =
            of_vcpu.iter().map(|pair| pair.with(who(pair.of))).collect();
        list.sort_by(|a, b| b.sum.ns.cmp(&a.sum.ns).then(a.of.cmp(&b.of)));
        fold(list, (None, None), |pair| CpuHolder {
            tid: pair.of.0,
            comm: pair.of.1.map(str::to_owned),
            count: pair.sum.count,
            ns: pair.sum.ns,
        })
    }
}

impl VcpuSums {
    /// Returns the row of these sums, with a wait that went on to the end; `None` if nothing was observed.
    fn row(&self, wait_ns: u64, seen: SeenEvents) -> Option<VcpuRow> {
        let (from, to) = self.span?;
        let mut waits = self.waits.clone();
        if wait_ns > 0 {
            waits.add(wait_ns);
        }
        Some(VcpuRow {
            to,
            times: seen.settle(&self.times, self.kernel_waiting_ns),
            exits: self.exits,
            polls: self.polls,
            waits,
            ..VcpuRow::at(from)
        })
    }

    /// Adds what was counted of a vCPU that is not kept apart any more, with a wait that it was in.
    fn merge(&mut self, other: &VcpuSums, wait_ns: u64) {
        self.times.merge(&other.times);
        self.kernel_waiting_ns = self
            .kernel_waiting_ns
            .saturating_add(other.kernel_waiting_ns);
        self.span = match (self.span, other.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.exits += other.exits;
        self.polls.merge(&other.polls);
        self.waits.merge(&other.waits);
        if wait_ns > 0 {
            self.waits.add(wait_ns);
        }
    }
}

/// Returns what a vCPU was in the VMM for, most time first.
fn causes(of_vcpu: &[VcpuPair<Cause>]) -> Vec<UserCause> {
    let mut list = of_vcpu.to_vec();
    let by = |cause: Cause| (cause.reason, cause.access);
    list.sort_by(|a, b| (b.sum.ns.cmp(&a.sum.ns)).then_with(|| by(a.of).cmp(&by(b.of))));
    fold(list, Cause::default(), |pair| UserCause {
        reason: pair.of.reason,
        access: pair.of.access,
        name: None,
        count: pair.sum.count,
        ns: pair.sum.ns,
    })
}

impl Analysis for Vcpus {
    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Whole)
    }

    fn counted(&self, _: &WalkState<'_>) -> Vec<EventAccount> {
        let exits = self.all().map(|(_, vcpu)| vcpu.exits);
        vec![EventAccount {
            which: AccountedEvents::Kinds(&[Kind::KvmExit]),
            name: "kvm_exit",
            of: AccountScope::Read,
            events: exits
                .fold(self.elsewhere, u64::saturating_add)
                .saturating_sub(self.inner),
        }]
    }

    fn concerns(&self) -> Concerns {
        Concerns::of(&[Concern::States, Concern::Vms, Concern::Names])
    }

    fn doubts(&self, walked: &WalkState<'_>, doubts: &mut Doubts) {
        // Without rows there is nothing of which a part could be unknown.
        let mut all = self.all().map(|(_, vcpu)| vcpu);
        let any = all.any(|vcpu| vcpu.span.is_some());
        let unknown = unknowable(&walked.machine.seen());
        for one in unknown.into_iter().filter(|_| any) {
            doubts.raise(one.doubt());
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            states: States::All,
            spans: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind {
            Kind::KvmExit | Kind::KvmInnerExit | Kind::KvmVcpuWakeup => EventDetail::Thread,
            _ => EventDetail::Nothing,
        }
    }

    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        let Some(vcpu) = context.machine.vcpu_of(event.tid) else {
            self.elsewhere += u64::from(matches!(data, Data::KvmExit(exit) if !exit.inner));
            return;
        };
        match data {
            Data::KvmExit(exit) => {
                let exits = context.machine.exits(vcpu);
                let before = std::mem::replace(&mut self.now(vcpu).exits, exits);
                if !exit.inner {
                    self.exit(vcpu, event.time, event.cpu);
                } else if before != exits && self.window.has(event.time, event.cpu) {
                    // It stands for an exit of which no event was recorded.
                    self.vcpu(vcpu).exits += 1;
                    self.inner += 1;
                }
            }
            Data::KvmVcpuWakeup(_) => {
                let polls = context.machine.polls(vcpu);
                self.halt(vcpu, event.time, event.cpu, &polls);
            }
            _ => {}
        }
    }

    fn spans(&mut self, spans: &[Span], _: &Context<'_>) {
        for span in spans {
            self.span(span);
        }
    }

    fn retire(&mut self, retired: &RetiredThreads, machine: &Machine) {
        for vcpu in retired.vcpus() {
            let wait_ns = self.now.remove(vcpu).map_or(0, |now| now.wait_ns);
            if let Some(sums) = self.vcpus.remove(vcpu) {
                self.other_vcpus += u32::from(sums.span.is_some());
                self.others.merge(&sums, wait_ns);
            }
        }
        let slots = self.behind.keys().filter_map(|(_, who)| match who {
            CpuUser::Task(slot) if retired.has_slot(*slot) => Some(*slot),
            _ => None,
        });
        let slots: FxHashSet<u32> = slots.collect();
        let names = (self.retired).take(retired, machine, |slot| slots.contains(&slot));
        let row = |vcpu: u32| match retired.has_vcpu(vcpu) {
            true => OTHER_VCPUS,
            false => vcpu,
        };
        renumber(&mut self.behind, |vcpu, who| {
            let who = match who {
                CpuUser::Task(slot) => names.get(&slot).map_or(who, |name| CpuUser::Retired(*name)),
                CpuUser::Unknown | CpuUser::Retired(_) => who,
            };
            (row(vcpu), who)
        });
        renumber(&mut self.user, |vcpu, cause| (row(vcpu), cause));
    }

    fn counters(&self, walked: &WalkState<'_>, report: &mut dyn FnMut(u8, u32, Amount)) {
        let chosen: Vec<&VcpuSums> = self
            .all()
            .filter(|(number, _)| {
                let known = walked.machine.vcpu(*number);
                !known.is_some_and(|known| walked.left_out.has(known.tid))
            })
            .map(|(_, vcpu)| vcpu)
            .collect();
        for state in State::ALL {
            let times = chosen.iter().map(|vcpu| vcpu.times.get(state));
            let ns = times.fold(0u64, u64::saturating_add);
            report(0, u32::from(state as u8), Amount { count: 0, ns });
        }
    }

    fn measured(&self, _: u8, number: u32, _: &WalkState<'_>) -> Option<SliceMeasure> {
        u8::try_from(number).ok().map(SliceMeasure::State)
    }
}

impl Vcpus {
    /// Returns the sums of all vCPUs, with their numbers, and of those that are not kept apart any more.
    fn all(&self) -> impl Iterator<Item = (u32, &VcpuSums)> {
        let others = std::iter::once((OTHER_VCPUS, &self.others));
        self.vcpus.iter().chain(others)
    }

    #[inline]
    fn span(&mut self, span: &Span) {
        let Some((start, end)) = self.window.part(span) else {
            return;
        };
        let ns = end - start;
        let vcpu = self.vcpu(span.vcpu);
        vcpu.times.add(span.state, ns);
        if span.state == State::Kernel && span.cause.reason.is_some_and(ExitReason::is_waiting) {
            vcpu.kernel_waiting_ns += ns;
        }
        vcpu.span = Some(match vcpu.span {
            Some((from, to)) => (from.min(start), to.max(end)),
            None => (start, end),
        });
        let now = self.now.entry(span.vcpu, VcpuProgress::default);
        if span.state == State::Runnable {
            now.wait_ns += ns;
            let who = span.behind.map_or(CpuUser::Unknown, CpuUser::Task);
            pair(&mut self.behind, span.vcpu, who, CpuUser::Unknown).add(ns);
            return;
        }
        let wait = std::mem::take(&mut now.wait_ns);
        let user = matches!(span.state, State::User | State::UserBlocked);
        let goes_on = std::mem::replace(&mut now.in_user, user) && user;
        if wait > 0 {
            self.vcpu(span.vcpu).waits.add(wait);
        }
        if user {
            let sum = pair(&mut self.user, span.vcpu, span.cause, Cause::default());
            sum.ns = sum.ns.saturating_add(ns);
            sum.count += u64::from(!goes_on);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vcpu_pairs::LISTED;

    #[test]
    fn lists_of_all_vcpus_are_made_in_one_pass() {
        let mut sums: FxHashMap<(u32, CpuUser), Amount> = FxHashMap::default();
        for n in 0..10_000u32 {
            pair(&mut sums, n / 2, CpuUser::Task(n), CpuUser::Unknown).add(1);
        }
        let sorted = PairsByVcpu::of(sums);
        assert!((0..5000).all(|vcpu| sorted.get(vcpu).len() == 2));
        assert!(sorted.get(5000).is_empty());
    }

    #[test]
    fn what_is_beyond_the_list_is_its_last_item() {
        let pairs: Vec<VcpuPair<Cause>> = (1..=20)
            .map(|ns| VcpuPair {
                vcpu: 0,
                of: Cause::default(),
                sum: Amount { count: 1, ns },
            })
            .collect();
        let listed = causes(&pairs);
        assert_eq!(listed.len(), LISTED);
        assert_eq!((listed[0].ns, listed[LISTED - 2].ns), (20, 6));
        let last = &listed[LISTED - 1];
        assert_eq!((last.count, last.ns), (5, 15));
    }
}
