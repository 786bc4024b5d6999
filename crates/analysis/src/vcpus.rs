//! Where each vCPU's time went, which tasks had its CPU while it waited for one, and which exits sent it to
//! the VMM.
//!
//! It costs more than 2 ns an event, because each span of a vCPU's state, of which an exit makes several, is added
//! to sums and to what is kept of the exit that it belongs to.

use doubts::{Concern, Concerns, Doubts};
use event::{Data, Event, EventType, ExitReason, Kind, index_of};
use model::{Cause, GuestAccess, Machine, Polls, SeenEvents, Span, State, Times, vm_names};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::Stats;
use crate::analysis::{
    AccountScope, Analysis, Context, EventAccount, EventDetail, FilterScope, Needs, States,
    WalkState,
};
use crate::chosen::Window;
use crate::guests::{GuestTasks, GuestTasksReport};
use crate::series::SliceMeasure;
use crate::slices::Amount;
use crate::unknowable::{Unknowable, unknowable};

/// Tasks and causes that a row lists; what is beyond is summed up in the last one.
pub const LISTED: usize = 16;

/// vCPUs that have a row of their own; those beyond are one row together. KVM allows a VM 4096 (`KVM_MAX_VCPUS`), and a
/// host with as many threads of all its VMs as this has more of them than its CPUs can run.
pub const MAX_VCPUS: usize = 1 << 14;

/// Pairs of a vCPU and a task that it waited behind, or an access that the VMM handled, that are counted apart; what is
/// beyond is in the item of each vCPU's list that says "others".
const MAX_PAIRS: usize = 1 << 20;

/// A task that had a CPU which a runnable vCPU waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuHolder {
    /// Its name, if known.
    pub comm: Option<String>,
    /// Its thread id; 0 is the idle task: the CPU was free and had yet to come out of idling. `None` where
    /// it is not known who ran, and for the sum of what is not listed.
    pub tid: Option<i32>,
    /// How many times it ran there meanwhile.
    pub count: u64,
    /// For how long.
    #[serde(rename = "ran_ns")]
    pub ns: u64,
}

/// An exit that the VMM handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCause {
    /// The exit; `None` where its `kvm_exit` was not seen, and for the sum of what is not listed.
    pub reason: Option<ExitReason>,
    /// The access that made it, where it was recorded.
    pub access: Option<GuestAccess>,
    /// Device and register behind the access, where [`crate::name_access`] found it.
    pub name: Option<String>,
    /// How many times the VMM had it.
    pub count: u64,
    /// For how long.
    pub ns: u64,
}

/// One vCPU.
#[derive(Debug, Clone, PartialEq)]
pub struct VcpuRow {
    /// Process of its VM, if known.
    pub vm_pid: Option<i32>,
    /// Name of its VM, if known.
    pub vm_name: Option<String>,
    /// What its VM is called, as no other VM of the recording is ([`model::vm_names`]).
    pub vm: String,
    /// Whether which VM it is of is a guess.
    pub guessed: bool,
    /// Whether names or facts alone say that it is a vCPU: there is no exit and no entry.
    pub presumed: bool,
    /// What it is called: `vCPU 1`, and where there are several VMs `web, vCPU 1` ([`model::vcpu_name`]).
    pub called: String,
    /// Its number in the VM.
    pub vcpu: u32,
    /// Its thread; -1 in the row of the others.
    pub tid: i32,
    /// How many vCPUs beyond the first [`MAX_VCPUS`] this row is the sum of: 0 in the row of a single one.
    pub others: u32,
    /// From when it was observed: its first exit or entry, or the beginning of the window.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// Time by state. It adds up to the time observed.
    pub times: Times,
    /// Exits.
    pub exits: u64,
    /// Halts that were polled.
    pub polls: Polls,
    /// How long it waited for a CPU, each time.
    pub waits: Stats,
    /// Behind whom, most time first.
    pub behind: Vec<CpuHolder>,
    /// What it was in the VMM for, most time first.
    pub user: Vec<UserCause>,
    /// What its guest did, where the guest's recording was walked too.
    pub guest: Option<GuestTasksReport>,
}

impl VcpuRow {
    /// Returns a row of nothing, at an instant.
    fn at(time: u64) -> VcpuRow {
        VcpuRow {
            vm_pid: None,
            vm_name: None,
            vm: String::new(),
            guessed: false,
            presumed: false,
            called: String::new(),
            vcpu: 0,
            tid: -1,
            others: 0,
            from: time,
            to: time,
            times: Times::default(),
            exits: 0,
            polls: Polls::default(),
            waits: Stats::default(),
            behind: Vec::new(),
            user: Vec::new(),
            guest: None,
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct VcpusReport {
    /// vCPUs by VM and number.
    pub rows: Vec<VcpuRow>,
    /// What the recording has.
    pub seen: SeenEvents,
}

impl VcpusReport {
    /// Adds what guests did whose recordings were walked too.
    pub fn with_guests(&mut self, tasks: &GuestTasks, walked: &WalkState<'_>) {
        for row in &mut self.rows {
            row.guest = tasks.report(walked, row.tid);
        }
    }

    /// Returns what cannot be known.
    pub fn unknowable(&self) -> Vec<Unknowable> {
        unknowable(&self.seen)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct WaitSum {
    count: u64,
    ns: u64,
}

impl WaitSum {
    #[inline]
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
    }
}

/// What goes on in a vCPU.
#[derive(Debug, Clone, Copy, Default)]
struct VcpuProgress {
    /// Exits that the machine has counted.
    exits: u64,
    /// A wait for a CPU that goes on: it may have been behind several tasks.
    wait_ns: u64,
    /// It is in the VMM, if with its CPU taken away.
    in_user: bool,
    /// Whether it was observed.
    observed: bool,
    /// Its polls as the machine had them last.
    polls: Polls,
}

/// What is counted of a vCPU.
#[derive(Debug, Default)]
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
#[derive(Debug)]
pub struct Vcpus {
    window: Window,
    /// How many are counted apart; the sums of the others are behind theirs.
    most: usize,
    vcpus: Vec<VcpuSums>,
    now: Vec<VcpuProgress>,
    /// Exits outside of the window, and those of threads that are no vCPU's.
    elsewhere: u64,
    /// Exits that only an inner event shows.
    inner: u64,
    behind: FxHashMap<(u32, Option<u32>), WaitSum>,
    user: FxHashMap<(u32, Cause), WaitSum>,
}

impl Vcpus {
    /// Returns a sum of nothing.
    pub fn new(window: Window) -> Vcpus {
        Vcpus {
            window,
            most: MAX_VCPUS,
            vcpus: Vec::new(),
            now: Vec::new(),
            elsewhere: 0,
            inner: 0,
            behind: FxHashMap::default(),
            user: FxHashMap::default(),
        }
    }

    /// Returns the number by which a vCPU is counted.
    #[inline]
    fn row(&self, vcpu: u32) -> u32 {
        vcpu.min(self.most as u32)
    }

    #[inline]
    fn now(&mut self, vcpu: u32) -> &mut VcpuProgress {
        let index = index_of(vcpu);
        if self.now.len() <= index {
            self.now.resize(index + 1, VcpuProgress::default());
        }
        &mut self.now[index]
    }

    #[inline]
    fn vcpu(&mut self, vcpu: u32) -> &mut VcpuSums {
        let index = self.row(vcpu) as usize;
        if self.vcpus.len() <= index {
            self.vcpus.resize_with(index + 1, VcpuSums::default);
        }
        &mut self.vcpus[index]
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

    /// Returns what was found.
    pub fn report(&self, walked: &WalkState<'_>) -> VcpusReport {
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
        let mut behind = by_vcpu(&self.behind);
        let mut user = by_vcpu(&self.user);
        let mut rows: Vec<(Option<usize>, VcpuRow)> = Vec::new();
        for (known, index) in machine.vcpus().zip(0u32..).take(self.most) {
            if walked.left_out.has(known.tid) {
                continue;
            }
            let place = places.get(&known.thread);
            let at = place.map(|(at, _)| *at);
            let vm = at.map(|at| &vms[at]);
            let number = place.map_or(0, |(_, id)| *id);
            let waits = self.now.get(index_of(index)).map_or(0, |now| now.wait_ns);
            let row = self.report_row(index, &[waits], seen);
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
                    behind: tasks(behind.remove(&index).unwrap_or_default(), machine),
                    user: causes(user.remove(&index).unwrap_or_default()),
                    ..row
                };
                rows.push((at, row));
            }
        }
        rows.sort_by_key(|(vm, row)| (*vm, row.vcpu, row.from, row.tid));
        let mut rows: Vec<VcpuRow> = rows.into_iter().map(|(_, row)| row).collect();
        let beyond = self.now.get(self.most..).unwrap_or_default();
        let waits: Vec<u64> = beyond.iter().map(|now| now.wait_ns).collect();
        let index = self.most as u32;
        if let Some(row) = self.report_row(index, &waits, seen) {
            let others = beyond.iter().filter(|now| now.observed).count();
            rows.push(VcpuRow {
                others: others as u32,
                behind: tasks(behind.remove(&index).unwrap_or_default(), machine),
                user: causes(user.remove(&index).unwrap_or_default()),
                ..row
            });
        }
        VcpusReport { rows, seen }
    }

    /// Returns of each vCPU behind which task (its slot) it waited, how often and for how long.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (u32, Option<u32>, u64, u64)> + '_ {
        let all = self.behind.iter();
        all.map(|((vcpu, task), sum)| (*vcpu, *task, sum.count, sum.ns))
    }

    /// Returns the sums of a row, with waits that went on to the end; `None` if nothing of it was observed.
    fn report_row(&self, index: u32, going_on: &[u64], seen: SeenEvents) -> Option<VcpuRow> {
        let vcpu = self.vcpus.get(index_of(index))?;
        let (from, to) = vcpu.span?;
        let mut waits = vcpu.waits.clone();
        for &ns in going_on.iter().filter(|ns| **ns > 0) {
            waits.add(ns);
        }
        Some(VcpuRow {
            to,
            times: seen.settle(&vcpu.times, vcpu.kernel_waiting_ns),
            exits: vcpu.exits,
            polls: vcpu.polls,
            waits,
            ..VcpuRow::at(from)
        })
    }
}

/// Adds to a pair, or where there are too many to what stands for all others of the vCPU.
#[inline]
fn pair<K: Copy + Eq + std::hash::Hash>(
    sums: &mut FxHashMap<(u32, K), WaitSum>,
    vcpu: u32,
    of: K,
    others: K,
) -> &mut WaitSum {
    let full = sums.len() >= MAX_PAIRS;
    let of = if full && !sums.contains_key(&(vcpu, of)) {
        others
    } else {
        of
    };
    sums.entry((vcpu, of)).or_default()
}

/// Sorts sums by vCPU.
fn by_vcpu<K: Copy>(sums: &FxHashMap<(u32, K), WaitSum>) -> FxHashMap<u32, Vec<(K, WaitSum)>> {
    let mut out: FxHashMap<u32, Vec<(K, WaitSum)>> = FxHashMap::default();
    for ((vcpu, of), sum) in sums {
        out.entry(*vcpu).or_default().push((*of, *sum));
    }
    out
}

/// Returns the tasks that a vCPU waited behind, most time first.
fn tasks(of_vcpu: Vec<(Option<u32>, WaitSum)>, machine: &Machine) -> Vec<CpuHolder> {
    let mut list: Vec<CpuHolder> = of_vcpu
        .into_iter()
        .map(|(task, sum)| {
            let task = task.and_then(|slot| machine.threads().at(slot));
            CpuHolder {
                tid: task.map(|(tid, _)| tid),
                comm: task.and_then(|(_, thread)| thread.comm.as_deref().map(str::to_owned)),
                count: sum.count,
                ns: sum.ns,
            }
        })
        .collect();
    list.sort_by(|a, b| b.ns.cmp(&a.ns).then(a.tid.cmp(&b.tid)));
    fold(
        list,
        |behind| (behind.count, behind.ns),
        |count, ns| CpuHolder {
            tid: None,
            comm: None,
            count,
            ns,
        },
    )
}

/// Returns what a vCPU was in the VMM for, most time first.
fn causes(of_vcpu: Vec<(Cause, WaitSum)>) -> Vec<UserCause> {
    let mut list: Vec<UserCause> = of_vcpu
        .into_iter()
        .map(|(cause, sum)| UserCause {
            reason: cause.reason,
            access: cause.access,
            name: None,
            count: sum.count,
            ns: sum.ns,
        })
        .collect();
    list.sort_by(|a, b| (b.ns.cmp(&a.ns)).then((a.reason, a.access).cmp(&(b.reason, b.access))));
    fold(
        list,
        |cause| (cause.count, cause.ns),
        |count, ns| UserCause {
            reason: None,
            access: None,
            name: None,
            count,
            ns,
        },
    )
}

/// Cuts a list to what is listed, and sums up the rest in its last item.
fn fold<T>(
    mut list: Vec<T>,
    of: impl Fn(&T) -> (u64, u64),
    make: impl Fn(u64, u64) -> T,
) -> Vec<T> {
    if list.len() > LISTED {
        let rest = list.split_off(LISTED - 1);
        let sums = rest.iter().map(of);
        let (count, ns) = sums.fold((0, 0u64), |sum, one| {
            (sum.0 + one.0, sum.1.saturating_add(one.1))
        });
        list.push(make(count, ns));
    }
    list
}

impl Analysis for Vcpus {
    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Whole)
    }

    fn counted(&self, _: &WalkState<'_>) -> Vec<EventAccount> {
        let exits = self.vcpus.iter().map(|vcpu| vcpu.exits);
        vec![EventAccount {
            kinds: &[Kind::KvmExit],
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
        let any = self.vcpus.iter().any(|vcpu| vcpu.span.is_some());
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

    fn counters(&self, walked: &WalkState<'_>, report: &mut dyn FnMut(u8, u32, Amount)) {
        let chosen: Vec<&VcpuSums> = (self.vcpus.iter().zip(walked.machine.vcpus()))
            .filter(|(_, known)| !walked.left_out.has(known.tid))
            .map(|(vcpu, _)| vcpu)
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
        let row = self.row(span.vcpu);
        let now = self.now(span.vcpu);
        now.observed = true;
        if span.state == State::Runnable {
            now.wait_ns += ns;
            pair(&mut self.behind, row, span.behind, None).add(ns);
            return;
        }
        let wait = std::mem::take(&mut now.wait_ns);
        let user = matches!(span.state, State::User | State::UserBlocked);
        let goes_on = std::mem::replace(&mut now.in_user, user) && user;
        if wait > 0 {
            self.vcpu(span.vcpu).waits.add(wait);
        }
        if user {
            let sum = pair(&mut self.user, row, span.cause, Cause::default());
            sum.ns = sum.ns.saturating_add(ns);
            sum.count += u64::from(!goes_on);
        }
    }
}

#[cfg(test)]
#[path = "many_vcpus.rs"]
mod many_vcpus;
