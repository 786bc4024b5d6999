//! What was collected, with names.

use model::{Machine, Vm, vcpu_from_comm};
use rustc_hash::{FxHashMap, FxHashSet};
use stacks::{Function, ROOT, Stacks, Weight};
use symbols::ThreadName;

use super::build::Builder;
use super::calls::{Mode, NOBODY, Row};
use super::doing::Doing;
use super::naming::{Namer, Signs};
use super::{Profile, ProfileBy, ProfileOf};
use crate::analysis::Walked;
use crate::recorder::vhost_of;

/// What weights count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
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
    fn add(&mut self, row: &Row, signs: Signs, weight: Weight) {
        self.all.add(weight);
        let part = match (row.doing, row.mode) {
            (Doing::Sleeps('D'), _) => &mut self.uninterruptible,
            (Doing::Sleeps(_), _) => &mut self.asleep,
            (Doing::Preempted | Doing::Woken, _) => &mut self.runnable,
            (Doing::Runs, Mode::Guest) => &mut self.guest,
            (Doing::Runs, Mode::Kernel) if signs.kvm => &mut self.kvm,
            (Doing::Runs, Mode::Kernel) => &mut self.kernel,
            (Doing::Runs, Mode::User) => &mut self.user,
        };
        part.add(weight);
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
    pub unit: Unit,
    /// All samples of that event.
    pub samples: Weight,
    /// What is left out: samples of idle CPUs and in idle guests, and the time in which guests had asked to wait. With
    /// `--idle`, that too is shown.
    pub idle: Weight,
    /// Of the samples of idle CPUs, those in interrupts.
    pub idle_interrupts: u64,
    /// Those shown in which some function has no name.
    pub unresolved: Weight,
    /// Of those, samples in guests' kernels.
    pub unresolved_guest: Weight,
    /// Of those shown, those without a stack: away from a CPU, or woken, without saying where.
    pub without_stack: Weight,
    /// Time of threads that were still away from their CPU when the recording ended.
    pub still_off: Weight,
    /// Those whose stacks are damaged: the innermost address alone is used.
    pub damaged: u64,
    /// Those whose outer frames, or inner ones where there are too many stacks, are left out.
    pub shortened: u64,
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
}

impl ProfileReport {
    /// Returns what is shown.
    pub fn shown(&self) -> Weight {
        self.rows.iter().fold(Weight::default(), |mut sum, row| {
            sum.add(row.all);
            sum
        })
    }

    /// Returns the functions that were sampled, heaviest first.
    pub fn functions(&self) -> Vec<Function> {
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
struct Known {
    tid: i32,
    pid: Option<i32>,
    comm: String,
    vm_pid: Option<i32>,
    back_end: bool,
}

/// Which threads are asked for, by thread and process.
pub(crate) type Keep<'k> = &'k dyn Fn(i32, Option<i32>) -> bool;

impl Profile {
    /// Returns what was found of the threads that `keep` asks for.
    pub fn report(&self, walked: &Walked<'_>, namer: Namer<'_>, keep: Keep<'_>) -> ProfileReport {
        let known = self.known(walked.machine);
        let named = self.calls.named(namer);
        let mut builder = Builder::new(&self.calls, &named);
        let signs = builder.signs();
        let event = self.event.as_ref().map(|(_, label)| label.clone());
        let mut report = ProfileReport {
            of: self.options.of,
            unit: self.unit(),
            event,
            samples: self.samples,
            idle: Weight::default(),
            idle_interrupts: 0,
            unresolved: Weight::default(),
            unresolved_guest: Weight::default(),
            without_stack: Weight::default(),
            still_off: Weight::default(),
            damaged: self.calls.damaged,
            shortened: self.calls.deep + self.calls.beyond.samples,
            other_events: self.other_events,
            switches: self.off.switches,
            with_idle: self.options.idle,
            rows: Vec::new(),
            stacks: Stacks::new(1),
        };
        let mut rows: FxHashMap<(i32, &str), ProfileRow> = FxHashMap::default();
        for (row, weight) in self.weights() {
            let Some(thread) = known.get(row.thread as usize) else {
                continue;
            };
            let signs = signs.get(row.stack as usize).copied().unwrap_or_default();
            if !keep(thread.tid, thread.pid) {
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
            report.note(&row, signs, weight);
            let sums = rows.entry((thread.tid, &thread.comm)).or_default();
            sums.add(&row, signs, weight);
            (sums.tid, sums.vm_pid, sums.back_end) = (thread.tid, thread.vm_pid, thread.back_end);
            let mut node = builder.group(ROOT, &self.group(row.thread as usize, thread));
            if self.options.of != ProfileOf::OnCpu {
                node = builder.group(node, row.doing.text());
            }
            if row.stack == ROOT && row.doing != Doing::Runs {
                node = builder.group(node, "[no stack]");
            }
            node = builder.stack(node, row.stack, thread.vm_pid.is_some());
            if self.options.wakers && matches!(row.doing, Doing::Sleeps(_)) {
                let waker = known
                    .get(row.waker as usize)
                    .filter(|_| row.waker != NOBODY);
                node = builder.waker(node, &row, waker.map(|waker| waker.comm.as_str()));
            }
            builder.weigh(node, weight);
        }
        let shown: FxHashSet<i32> = rows.keys().map(|(tid, _)| *tid).collect();
        for (slot, ns) in &self.off.still {
            let thread = walked.machine.threads().at(*slot);
            if thread.is_some_and(|(tid, _)| shown.contains(&tid)) {
                report.still_off.add(Weight {
                    samples: 1,
                    amount: *ns,
                });
            }
        }
        report.rows = sorted(rows);
        report.stacks = builder.stacks;
        report
    }

    /// What weights count. The period of these clocks is their time; that of other events is how often they happened.
    fn unit(&self) -> Unit {
        let event = self.event.as_ref().map(|(_, label)| label.as_str());
        let is_clock =
            |label: &str| label.starts_with("cpu-clock") || label.starts_with("task-clock");
        match self.options.of {
            ProfileOf::OffCpu | ProfileOf::Both => Unit::Nanoseconds,
            ProfileOf::OnCpu if event.is_some_and(is_clock) => Unit::Nanoseconds,
            ProfileOf::OnCpu | ProfileOf::Exits => Unit::Events,
        }
    }

    /// Returns all rows, in an order that does not change from walk to walk. Where on and off CPU are shown together, the
    /// time that a thread had CPUs is shared out to its samples.
    fn weights(&self) -> Vec<(Row, Weight)> {
        let mut rows: Vec<(Row, Weight)> = self.calls.rows.iter().map(|(r, w)| (*r, *w)).collect();
        rows.sort_unstable_by_key(|(row, _)| *row);
        if self.options.of == ProfileOf::Both {
            self.share_out(&mut rows);
        }
        rows
    }

    fn share_out(&self, rows: &mut Vec<(Row, Weight)>) {
        let slot = |row: &Row| self.calls.threads.get(row.thread as usize).map(|t| t.slot);
        let mut on_cpu: FxHashMap<u32, u64> = self.off.on_cpu().collect();
        let mut sums: FxHashMap<u32, u64> = FxHashMap::default();
        for (row, weight) in rows.iter().filter(|(row, _)| row.doing == Doing::Runs) {
            if let Some(slot) = slot(row) {
                *sums.entry(slot).or_default() += weight.amount;
            }
        }
        // What is left of each thread's time and samples, so that nothing is lost by rounding.
        for (row, weight) in rows.iter_mut().filter(|(row, _)| row.doing == Doing::Runs) {
            let Some(slot) = slot(row) else {
                continue;
            };
            let left = sums.entry(slot).or_default();
            let time = on_cpu.entry(slot).or_default();
            let part = u128::from(*time) * u128::from(weight.amount) / u128::from((*left).max(1));
            *left -= weight.amount.min(*left);
            weight.amount = u64::try_from(part).unwrap_or(u64::MAX).min(*time);
            *time -= weight.amount;
        }
        // Threads that had CPUs and no sample.
        let mut by_slot: FxHashMap<u32, u32> = FxHashMap::default();
        for (thread, number) in self.calls.threads.iter().zip(0u32..) {
            by_slot.entry(thread.slot).or_insert(number);
        }
        let mut unsampled: Vec<(u32, u64)> = on_cpu.into_iter().filter(|(_, ns)| *ns > 0).collect();
        unsampled.sort_unstable();
        for (slot, ns) in unsampled {
            if let Some(thread) = by_slot.get(&slot) {
                let row = Row {
                    thread: *thread,
                    doing: Doing::Runs,
                    mode: Mode::Kernel,
                    stack: ROOT,
                    waker: NOBODY,
                    waker_stack: ROOT,
                };
                rows.push((
                    row,
                    Weight {
                        samples: 0,
                        amount: ns,
                    },
                ));
            }
        }
    }

    /// Returns what is known of each thread.
    fn known(&self, machine: &Machine) -> Vec<Known> {
        let threads = machine.threads();
        let vms = machine.vms();
        let processes = vm_processes(machine);
        let known = self.calls.threads.iter().map(|thread| {
            let tid = threads.at(thread.slot).map_or(0, |(tid, _)| tid);
            let comm = String::from_utf8_lossy(thread.comm.comm()).into_owned();
            // A vhost worker is a kernel thread, and called after the process that it works for.
            let vhost = vhost_of(&comm);
            let pid = threads.get(tid).and_then(|thread| thread.pid);
            let vm_pid = vm_of(&vms, &processes, tid, vhost.flatten().or(pid));
            Known {
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
    fn group(&self, number: usize, known: &Known) -> String {
        let cpu = self
            .calls
            .threads
            .get(number)
            .map_or(event::NONE, |t| t.cpu);
        let Known { tid, comm, .. } = known;
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
    fn note(&mut self, row: &Row, signs: Signs, weight: Weight) {
        if signs.unresolved {
            self.unresolved.add(weight);
            if signs.guest {
                self.unresolved_guest.add(weight);
            }
        }
        if row.stack == ROOT {
            self.without_stack.add(weight);
        }
    }
}

/// Whether a row is of an idle CPU or guest.
fn is_idle(thread: &Known, row: &Row, signs: Signs) -> bool {
    match row.doing {
        Doing::Runs => thread.tid == 0 || signs.guest_idle,
        // A guest that asked to wait has no use for its CPU until it is woken.
        Doing::Sleeps(_) => signs.halts,
        Doing::Preempted | Doing::Woken => false,
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
    let named = machine.threads().iter().filter(|(_, thread)| {
        let comm = thread.comm.as_deref();
        comm.is_some_and(|comm| vcpu_from_comm(comm).is_some())
    });
    named.filter_map(|(_, thread)| thread.pid).collect()
}

/// Returns the process of the VM that a thread is of.
fn vm_of(vms: &[Vm], processes: &FxHashSet<i32>, tid: i32, pid: Option<i32>) -> Option<i32> {
    let of = |vm: &&Vm| vm.is_of(tid) || pid.is_some() && vm.pid == pid;
    let known = vms.iter().find(of).and_then(|vm| vm.pid);
    known.or(pid.filter(|pid| processes.contains(pid)))
}
