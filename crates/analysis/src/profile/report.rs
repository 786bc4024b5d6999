//! What was collected, with names.

use std::fmt;

use event::index_of;
use model::{Machine, NamedRole, Vm};
use rustc_hash::{FxHashMap, FxHashSet};
use stacks::{FunctionWeight, ROOT, Stacks, Weight};
use symbols::{ThreadName, UserNames};

use super::build::StackBuilder;
use super::calls::{Mode, NOBODY, StackRow};
use super::doing::ThreadState;
use super::naming::{FunctionNamer, NamedPlace, PlaceSigns};
use super::share::{self, WeighedRow};
use super::splice::{GuestSide, Splice, SplicedVcpu};
use super::{Profile, ProfileBy, ProfileOf};
use crate::analysis::WalkState;

/// What weights count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Ticks of the recording's clock.
    Ticks,
    /// How often the event happened.
    Events,
}

/// What one thread weighs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileRow {
    /// The process of the VM that it is of, if it is of one.
    pub vm_pid: Option<i32>,
    /// The name that it had.
    pub comm: String,
    /// Its id.
    pub tid: i32,
    /// Whether it is a worker of the VM in the host's kernel (vhost).
    pub back_end: bool,
    /// Its samples, or times that it was away from its CPU.
    pub all: Weight,
    /// Those in a guest.
    pub guest: Weight,
    /// Of those, the ones in a guest's user space.
    pub guest_user: Weight,
    /// Of those, the ones in functions in which a guest is idle.
    pub guest_idle: Weight,
    /// Those in KVM.
    pub kvm: Weight,
    /// Those in the rest of the host's kernel.
    pub kernel: Weight,
    /// Those in user space of the host.
    pub user: Weight,
    /// Asleep, and could not be killed meanwhile.
    pub uninterruptible: Weight,
    /// Asleep otherwise.
    pub asleep: Weight,
    /// Without a CPU though it could go on.
    pub runnable: Weight,
}

impl ProfileRow {
    fn add(&mut self, row: &StackRow, signs: PlaceSigns, weight: Weight) {
        self.all.add(weight);
        let part = match (row.doing, row.mode) {
            (ThreadState::Sleeps('D'), _) => &mut self.uninterruptible,
            (ThreadState::Sleeps(_), _) => &mut self.asleep,
            (ThreadState::Preempted | ThreadState::Woken, _) => &mut self.runnable,
            (ThreadState::Runs, Mode::Guest) => &mut self.guest,
            (ThreadState::Runs, Mode::Kernel) if signs.kvm => &mut self.kvm,
            (ThreadState::Runs, Mode::Kernel) => &mut self.kernel,
            (ThreadState::Runs, Mode::User) => &mut self.user,
        };
        part.add(weight);
        if (row.doing, row.mode) == (ThreadState::Runs, Mode::Guest) {
            match signs {
                signs if signs.guest_user => self.guest_user.add(weight),
                signs if signs.guest_idle => self.guest_idle.add(weight),
                _ => {}
            }
        }
    }
}

/// What the threads of one VM weigh together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileVm {
    /// The process of the VM.
    pub vm_pid: i32,
    /// All of it.
    pub all: Weight,
    /// In its guest.
    pub guest: Weight,
    /// In KVM, of the threads of its process.
    pub kvm: Weight,
    /// In its VMM: user space of its process, and what that asked of the kernel.
    pub vmm: Weight,
    /// In its workers in the host's kernel (vhost).
    pub back_end: Weight,
}

/// What was collected.
#[derive(Debug, Clone)]
pub struct ProfileReport {
    /// Which time is shown.
    pub of: ProfileOf,
    /// The event that was sampled, as the recording calls it; `None` where nothing was.
    pub event: Option<String>,
    /// What weights count.
    pub unit: ProfileUnit,
    /// All samples of that event.
    pub samples: Weight,
    /// What is left out: samples of idle CPUs and in idle guests, and the time in which guests had asked to wait. With
    /// `--idle`, that too is shown.
    pub idle: Weight,
    /// Of the samples of idle CPUs, those in interrupts.
    pub idle_interrupts: u64,
    /// Those shown in which some function has no name.
    pub unresolved: Weight,
    /// The same by whose function it is: the host's kernel's, its user space's, a guest's kernel's, a guest's user
    /// space's.
    pub unresolved_by: [Weight; 4],
    /// Whether KVM can be separated from the rest of the kernel: no function of the host's kernel has a name otherwise.
    pub kvm_known: bool,
    /// vCPUs in whose place stacks of a recording made in their guest stand.
    pub spliced: Vec<SplicedVcpu>,
    /// Of those shown, waits without a stack: away from a CPU, or woken, without saying where.
    pub without_stack: Weight,
    /// Time of threads that were still away from their CPU when the recording ended.
    pub still_off: Weight,
    /// Those whose stacks are damaged: the innermost address alone is used.
    pub damaged: u64,
    /// Those that end at the system call: their callers in user space come in a record of its own, and did not.
    pub deferred: u64,
    /// Those whose outer frames, or inner ones where there are too many stacks, are left out.
    pub shortened: u64,
    /// Those that are not shown, since there are more threads and stacks than are kept.
    pub left_out: Weight,
    /// Samples of other events, which are not shown.
    pub other_events: u64,
    /// Switches between threads.
    pub switches: u64,
    /// Whether idle time is shown.
    pub with_idle: bool,
    /// Threads, heaviest first.
    pub rows: Vec<ProfileRow>,
    /// Stacks: group, then frames from the outermost on.
    pub stacks: Stacks,
    /// By row of what was collected, the node that it is now.
    pub(super) nodes: Vec<Option<u32>>,
}

impl ProfileReport {
    /// Returns how many samples of the event are accounted for: shown, of idle CPUs and guests, or left out. All are.
    pub fn accounted(&self) -> u64 {
        let idle = if self.with_idle { 0 } else { self.idle.samples };
        self.shown().samples + idle + self.left_out.samples
    }

    /// Returns what is shown.
    pub fn shown(&self) -> Weight {
        self.rows.iter().fold(Weight::default(), |mut sum, row| {
            sum.add(row.all);
            sum
        })
    }

    /// Returns whether a stack that is shown has a frame: waits may all be without one.
    pub fn has_frames(&self) -> bool {
        self.shown().samples > self.without_stack.samples
    }

    /// Returns the functions that were sampled, heaviest first.
    pub fn functions(&self) -> Vec<FunctionWeight> {
        self.stacks.functions()
    }

    /// Returns what the threads of each VM weigh together, heaviest first.
    pub fn vms(&self) -> Vec<ProfileVm> {
        let mut vms: Vec<ProfileVm> = Vec::new();
        for row in &self.rows {
            let Some(vm_pid) = row.vm_pid else {
                continue;
            };
            let at = vms.iter().position(|vm| vm.vm_pid == vm_pid);
            let at = at.unwrap_or_else(|| {
                vms.push(ProfileVm {
                    vm_pid,
                    all: Weight::default(),
                    guest: Weight::default(),
                    kvm: Weight::default(),
                    vmm: Weight::default(),
                    back_end: Weight::default(),
                });
                vms.len() - 1
            });
            let vm = &mut vms[at];
            vm.all.add(row.all);
            vm.guest.add(row.guest);
            if row.back_end {
                for part in [row.kvm, row.kernel, row.user] {
                    vm.back_end.add(part);
                }
            } else {
                vm.kvm.add(row.kvm);
                vm.vmm.add(row.kernel);
                vm.vmm.add(row.user);
            }
        }
        vms.sort_by_key(|vm| (std::cmp::Reverse(vm.all.amount), vm.vm_pid));
        vms
    }
}

/// What is known of a thread.
#[derive(Debug)]
struct ThreadIdentity {
    tid: i32,
    pid: Option<i32>,
    comm: String,
    vm_pid: Option<i32>,
    back_end: bool,
}

/// What is known beside the samples.
#[derive(Clone, Copy)]
pub struct ProfileContext<'k> {
    /// What names functions.
    pub namer: FunctionNamer<'k>,
    /// Which threads are asked for, by thread and process.
    pub keep: &'k dyn Fn(i32, Option<i32>) -> bool,
    /// What recordings made in guests have to say of them, each of other vCPUs.
    pub guests: &'k [&'k GuestSide],
    /// By thread of a vCPU, how long it was in its guest, where events of KVM say so.
    pub guest_ns: &'k [(i32, u64)],
}

impl fmt::Debug for ProfileContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside")
            .field("namer", &self.namer)
            .field("guests", &self.guests)
            .field("guest_ns", &self.guest_ns)
            .finish_non_exhaustive()
    }
}

impl Profile {
    /// Returns what was found, with what is known beside it.
    /// `user` names functions of user space.
    pub fn report(
        &self,
        walked: &WalkState<'_>,
        beside: ProfileContext<'_>,
        user: &mut dyn UserNames,
    ) -> ProfileReport {
        let known = self.known(walked.machine);
        let named = self.calls.named(beside.namer, user);
        let mut builder = StackBuilder::new(&self.calls, &named);
        let signs = builder.signs();
        let mut report = self.empty(&named, walked.machine);
        let mut splice = Splice::new(beside.guests);
        let mut rows: FxHashMap<(i32, &str), ProfileRow> = FxHashMap::default();
        for WeighedRow {
            row,
            weight,
            number,
        } in self.weights(walked.machine, beside.guest_ns)
        {
            let Some(thread) = known.get(index_of(row.thread)) else {
                continue;
            };
            let signs = signs.get(index_of(row.stack)).copied().unwrap_or_default();
            // Idle tasks of all CPUs are one thread here, whose switches are not followed.
            if thread.tid == 0 && self.options.of == ProfileOf::Both {
                continue;
            }
            if !(beside.keep)(thread.tid, thread.pid) {
                continue;
            }
            if is_idle(thread, &row, signs) {
                report.idle.add(weight);
                if signs.interrupt {
                    report.idle_interrupts += weight.samples;
                }
                if !self.options.idle {
                    continue;
                }
            }
            let splice = splice.as_mut().filter(|splice| {
                row.mode == Mode::Guest && row.doing == ThreadState::Runs && splice.has(thread.tid)
            });
            if splice.is_none() {
                report.note(&row, signs, weight);
            }
            let sums = rows.entry((thread.tid, &thread.comm)).or_default();
            sums.add(&row, signs, weight);
            (sums.tid, sums.vm_pid, sums.back_end) = (thread.tid, thread.vm_pid, thread.back_end);
            let mut node = builder.group(ROOT, &self.group(index_of(row.thread), thread));
            if self.options.of != ProfileOf::OnCpu {
                node = builder.group(node, row.doing.text());
            }
            if let Some(splice) = splice {
                splice.take(thread.tid, node, weight);
                continue;
            }
            let on_cpu = self.options.of == ProfileOf::OnCpu;
            if row.stack == ROOT && !on_cpu {
                node = match (row.doing, row.mode) {
                    (ThreadState::Runs, Mode::Guest) => builder.group(node, "[guest]"),
                    (ThreadState::Runs, _) => builder.group(node, "[not sampled]"),
                    _ => builder.group(node, "[no stack]"),
                };
            }
            let in_vm = thread.vm_pid.is_some() && !thread.back_end;
            let whole;
            (node, whole) = builder.stack(node, row.stack, in_vm);
            if !whole {
                report.shortened += weight.samples;
            }
            if self.options.wakers && matches!(row.doing, ThreadState::Sleeps(_)) {
                let waker = known
                    .get(index_of(row.waker))
                    .filter(|_| row.waker != NOBODY);
                node = builder.waker(node, &row, waker.map(|waker| waker.comm.as_str()));
            }
            builder.weigh(node, weight);
            if let Some(known) = number.and_then(|number| report.nodes.get_mut(index_of(number))) {
                *known = Some(node);
            }
        }
        report.still_off =
            self.still_off(walked.machine, &rows.keys().map(|(tid, _)| *tid).collect());
        report.rows = sorted(rows);
        if let Some(splice) = splice {
            report.spliced = splice.put(&mut builder);
        }
        report.stacks = builder.stacks;
        report
    }

    /// Returns how long those of some threads were away from their CPU that still were when the recording ended.
    fn still_off(&self, machine: &Machine, shown: &FxHashSet<i32>) -> Weight {
        let mut sum = Weight::default();
        for (slot, ns) in &self.off.still {
            let thread = machine.threads().at(*slot);
            if thread.is_some_and(|(tid, _)| shown.contains(&tid)) {
                sum.add(Weight {
                    samples: 1,
                    amount: *ns,
                });
            }
        }
        sum
    }

    /// Returns a report of nothing yet.
    fn empty(&self, named: &[NamedPlace], machine: &Machine) -> ProfileReport {
        let shown = self.shown_event();
        let shown = shown.and_then(|shown| self.events.get(index_of(shown)));
        let samples = shown.map_or_else(Weight::default, |(_, _, sum)| *sum);
        let all: u64 = self
            .events
            .iter()
            .map(|(_, _, sum)| sum.samples)
            .fold(0, u64::saturating_add);
        ProfileReport {
            of: self.options.of,
            unit: self.unit(machine),
            event: shown.map(|(_, label, _)| label.clone()),
            samples,
            idle: Weight::default(),
            idle_interrupts: 0,
            unresolved: Weight::default(),
            unresolved_by: [Weight::default(); 4],
            kvm_known: kvm_known(named),
            spliced: Vec::new(),
            without_stack: Weight::default(),
            still_off: Weight::default(),
            damaged: self.calls.damaged,
            deferred: self.deferred.without,
            shortened: self.calls.deep,
            left_out: self.calls.beyond,
            other_events: all - samples.samples + self.nowhere,
            switches: self.off.switches,
            with_idle: self.options.idle,
            rows: Vec::new(),
            stacks: Stacks::new(1),
            nodes: vec![None; self.calls.rows.len()],
        }
    }

    /// What weights count. The period of these clocks is their time; that of other events is how often they happened.
    fn unit(&self, machine: &Machine) -> ProfileUnit {
        let shown = self.shown_event();
        let event = shown.and_then(|shown| Some(self.events.get(index_of(shown))?.1.as_str()));
        let is_clock =
            |label: &str| label.starts_with("cpu-clock") || label.starts_with("task-clock");
        match self.options.of {
            ProfileOf::OffCpu | ProfileOf::Both if machine.in_ticks() => ProfileUnit::Ticks,
            ProfileOf::OffCpu | ProfileOf::Both => ProfileUnit::Nanoseconds,
            ProfileOf::OnCpu if event.is_some_and(is_clock) => ProfileUnit::Nanoseconds,
            ProfileOf::OnCpu | ProfileOf::Exits => ProfileUnit::Events,
        }
    }

    /// Returns all rows, in an order that does not change from walk to walk. Where on and off CPU are shown together,
    /// the time that a thread had CPUs is shared out to its samples.
    fn weights(&self, machine: &Machine, guest_ns: &[(i32, u64)]) -> Vec<WeighedRow> {
        let rows = self.calls.rows.iter().zip(0u32..);
        let shown = self.shown_event();
        let rows =
            rows.filter(|((row, _), _)| row.doing != ThreadState::Runs || Some(row.event) == shown);
        let rows = rows.map(|((row, weight), number)| WeighedRow {
            row: *row,
            weight: *weight,
            number: Some(number),
        });
        let mut rows: Vec<WeighedRow> = rows.collect();
        rows.sort_unstable_by_key(|weighed| weighed.row);
        if self.options.of == ProfileOf::Both {
            let threads = machine.threads().slots();
            let in_guest = threads.filter_map(|(slot, tid, _)| {
                let (_, ns) = guest_ns.iter().find(|(of, _)| *of == tid)?;
                Some((slot, *ns))
            });
            share::share_out(&mut rows, &self.calls, &self.off, in_guest.collect());
        }
        rows
    }

    /// Returns what is known of each thread.
    fn known(&self, machine: &Machine) -> Vec<ThreadIdentity> {
        let threads = machine.threads();
        let owners = VmOwners::of(&machine.vms());
        let processes = vm_processes(machine);
        let known = self.calls.threads.iter().map(|thread| {
            let tid = self.calls.tid(thread, threads);
            let comm = String::from_utf8_lossy(thread.comm.comm()).into_owned();
            // ftrace saves names apart from its events.
            let saved = threads.get(tid).and_then(|thread| thread.comm.as_deref());
            let comm = match saved {
                Some(saved) if comm.strip_prefix(':') == Some(&tid.to_string()) => saved.to_owned(),
                _ => comm,
            };
            // A vhost worker is a kernel thread, and called after the process that it works for.
            let vhost = match NamedRole::from(comm.as_str()) {
                NamedRole::Vhost(pid) => Some(pid),
                _ => None,
            };
            let pid = threads.get(tid).and_then(|thread| thread.pid);
            let vm_pid = owners.vm_of(&processes, tid, vhost.flatten().or(pid));
            ThreadIdentity {
                tid,
                pid,
                comm,
                vm_pid,
                back_end: vhost.is_some(),
            }
        });
        known.collect()
    }

    /// Returns what stands below the stacks of a thread.
    fn group(&self, number: usize, known: &ThreadIdentity) -> String {
        let cpu = self
            .calls
            .threads
            .get(number)
            .map_or(event::NONE, |t| t.cpu);
        let ThreadIdentity { tid, comm, .. } = known;
        match (self.options.by, known.vm_pid) {
            (ProfileBy::Comm, _) => comm.clone(),
            (ProfileBy::Thread, _) => format!("{comm}/{tid}"),
            (ProfileBy::Cpu, _) if cpu < 0 => "no CPU".to_owned(),
            (ProfileBy::Cpu, _) => format!("CPU {cpu}"),
            (ProfileBy::Vm, Some(pid)) => format!("VM {pid}"),
            (ProfileBy::Vm, None) => "no VM".to_owned(),
        }
    }
}

impl ProfileReport {
    /// Notes what is not known of a row that is shown.
    fn note(&mut self, row: &StackRow, signs: PlaceSigns, weight: Weight) {
        if signs.unresolved.contains(&true) {
            self.unresolved.add(weight);
        }
        for (sum, is) in self.unresolved_by.iter_mut().zip(signs.unresolved) {
            if is {
                sum.add(weight);
            }
        }
        if row.stack == ROOT && row.doing != ThreadState::Runs {
            self.without_stack.add(weight);
        }
    }
}

/// Whether KVM can be separated from the rest of the host's kernel.
fn kvm_known(named: &[NamedPlace]) -> bool {
    let named_here =
        |place: &NamedPlace| place.signs.kvm || place.is_kernel && !place.signs.unresolved[0];
    named.iter().any(named_here) || !named.iter().any(|place| place.is_kernel)
}

/// Whether a row is of an idle CPU or guest.
fn is_idle(thread: &ThreadIdentity, row: &StackRow, signs: PlaceSigns) -> bool {
    match row.doing {
        ThreadState::Runs => thread.tid == 0 || signs.guest_idle,
        // A guest that asked to wait has no use for its CPU until it is woken.
        ThreadState::Sleeps(_) => signs.halts,
        ThreadState::Preempted | ThreadState::Woken => false,
    }
}

/// Returns rows of threads, heaviest first.
fn sorted(rows: FxHashMap<(i32, &str), ProfileRow>) -> Vec<ProfileRow> {
    let rows = rows.into_iter().map(|((_, comm), row)| ProfileRow {
        comm: comm.to_owned(),
        ..row
    });
    let mut rows: Vec<ProfileRow> = rows.collect();
    rows.sort_by(|a, b| {
        let heavier = b.all.amount.cmp(&a.all.amount);
        heavier.then_with(|| (a.tid, &a.comm).cmp(&(b.tid, &b.comm)))
    });
    rows
}

/// Processes of which a thread is called as vCPUs are: VMs, though no event of KVM's says so.
fn vm_processes(machine: &Machine) -> FxHashSet<i32> {
    let all = machine.threads().iter();
    let named = all.filter(|(_, thread)| thread.named_role().is_vcpu());
    named.filter_map(|(_, thread)| thread.pid).collect()
}

/// Whose threads and processes are of which VM.
struct VmOwners {
    /// By the id of a process or thread, the place and process of the first VM that it is of.
    of_id: FxHashMap<i32, (usize, Option<i32>)>,
    /// By process, the place of the first VM.
    of_pid: FxHashMap<i32, usize>,
}

impl VmOwners {
    fn of(vms: &[Vm]) -> VmOwners {
        let (mut of_id, mut of_pid) = (FxHashMap::default(), FxHashMap::default());
        for (at, vm) in vms.iter().enumerate() {
            let threads = vm.vcpus.iter().map(|vcpu| vcpu.tid);
            for id in threads.chain(vm.pid).chain(vm.helpers.iter().copied()) {
                of_id.entry(id).or_insert((at, vm.pid));
            }
            if let Some(pid) = vm.pid {
                of_pid.entry(pid).or_insert(at);
            }
        }
        VmOwners { of_id, of_pid }
    }

    /// Returns the process of the VM that a thread is of.
    fn vm_of(&self, processes: &FxHashSet<i32>, tid: i32, pid: Option<i32>) -> Option<i32> {
        let by_id = self.of_id.get(&tid).copied();
        let by_pid = pid.and_then(|pid| Some((*self.of_pid.get(&pid)?, Some(pid))));
        let first = by_id.into_iter().chain(by_pid).min_by_key(|(at, _)| *at);
        let known = first.and_then(|(_, pid)| pid);
        known.or(pid.filter(|pid| processes.contains(pid)))
    }
}
