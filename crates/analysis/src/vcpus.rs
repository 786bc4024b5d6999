//! Where each vCPU's time went, which tasks had its CPU while it waited for one, and which exits sent it to
//! the VMM.

use std::collections::HashSet;
use std::fmt;

use cpuset::CpuSet;
use event::ExitReason;
use model::{Access, Cause, Machine, Polls, Seen, Span, SpanSink, State, Times, Vm, vm_names};
use rustc_hash::FxHashMap;

use crate::{Amount, Counter, Stats};

/// Tasks and causes that a row lists; what is beyond is summed up in the last one.
pub const LISTED: usize = 16;

/// What to look at.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// First and last instant, both included.
    pub time: Option<(u64, u64)>,
    /// CPUs that a vCPU's time counts on.
    pub cpus: Option<CpuSet>,
}

impl Window {
    fn has_cpu(&self, cpu: i32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.has(cpu))
    }

    /// Returns whether an instant on a CPU is in it.
    #[inline]
    pub fn has(&self, time: u64, cpu: i32) -> bool {
        self.has_time(time) && self.has_cpu(cpu)
    }

    /// Returns whether an instant is in it, whatever the CPU.
    #[inline]
    pub fn has_time(&self, time: u64) -> bool {
        let (from, to) = self.time.unwrap_or((0, u64::MAX));
        from <= time && time <= to
    }
}

/// A task that had a CPU which a runnable vCPU waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// Its thread id; 0 is the idle task: the CPU was free and had yet to come out of idling. `None` where
    /// nothing tells who ran, and for the sum of what is not listed.
    pub tid: Option<i32>,
    /// Its name, if known.
    pub comm: Option<String>,
    /// How many times it ran there meanwhile.
    pub count: u64,
    /// For how long.
    pub ns: u64,
}

/// An exit that the VMM handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCause {
    /// The exit; `None` where its `kvm_exit` was not seen, and for the sum of what is not listed.
    pub reason: Option<ExitReason>,
    /// The access that made it, where it was recorded.
    pub access: Option<Access>,
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
    /// What its VM is called to tell it from the others of the recording ([`model::vm_names`]).
    pub vm: String,
    /// Whether which VM it is of is a guess.
    pub guessed: bool,
    /// What it is called: `vCPU 1`, and where there are several VMs `web, vCPU 1` ([`model::vcpu_name`]).
    pub called: String,
    /// Its number in the VM.
    pub vcpu: u32,
    /// Its thread.
    pub tid: i32,
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
    pub behind: Vec<Behind>,
    /// What it was in the VMM for, most time first.
    pub user: Vec<UserCause>,
}

/// Time of which the recording does not tell enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknowable {
    /// Fields that cannot be known, or only in part.
    pub fields: &'static [&'static str],
    /// Why, and where the time is instead.
    pub why: &'static str,
}

impl fmt::Display for Unknowable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Cannot be known: {}: {}.",
            self.fields.join(" and "),
            self.why
        )
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct VcpusReport {
    /// vCPUs by VM and number.
    pub rows: Vec<VcpuRow>,
    /// What the recording has.
    pub seen: Seen,
}

impl VcpusReport {
    /// Returns what cannot be known.
    pub fn unknowable(&self) -> Vec<Unknowable> {
        unknowable(&self.seen)
    }
}

/// Returns what cannot be known of vCPUs' time without the events that a recording lacks.
pub fn unknowable(seen: &Seen) -> Vec<Unknowable> {
    let mut out = Vec::new();
    if !seen.switches {
        out.push(Unknowable {
            fields: &["runnable_ns"],
            why: "there are no sched_switch events: time without a CPU is within kernel_ns, user_ns and \
                  halted_ns, and all of an exit in which the guest asked to wait is in halted_ns",
        });
    } else if !seen.returns {
        out.push(Unknowable {
            fields: &["runnable_ns"],
            why: "threads are seen to leave their CPUs and not to get them again, as where one process was \
                  recorded (perf record -p): halted_ns and runnable_ns last until a vCPU's next event",
        });
    } else if !seen.wakeups {
        out.push(Unknowable {
            fields: &["runnable_ns"],
            why: "there are no sched_wakeup events: it holds what followed preemption, and how long a woken \
                  vCPU waited for its CPU is within halted_ns",
        });
    }
    if !seen.userspace_exits {
        out.push(Unknowable {
            fields: &["kernel_ns", "user_ns"],
            why: "there are no kvm_userspace_exit events: handling by KVM and by the VMM cannot be told \
                  apart, and is in unknown_ns but for exits in which the guest asked to wait (all of it is KVM's \
                  if they were recorded and none came)",
        });
    }
    if !seen.halts {
        out.push(Unknowable {
            fields: &["poll_ns"],
            why: if seen.switches {
                "there are no kvm_vcpu_wakeup events, or their nanoseconds cannot be compared with the \
                 recording's ticks: halt polling is within kernel_ns"
            } else {
                "there are no kvm_vcpu_wakeup events: halt polling is within halted_ns"
            },
        });
    } else if !seen.switches {
        out.push(Unknowable {
            fields: &["poll_ns"],
            why: "there are no sched_switch events: it holds polls that succeeded, and those that failed are \
                  within halted_ns",
        });
    } else if !seen.poll_lengths {
        out.push(Unknowable {
            fields: &["poll_ns"],
            why: "there are no kvm_halt_poll_ns events: whether a halt was polled in vain is guessed, by 10 us or more \
                  on the CPU before it slept, which a slow host takes to go to sleep",
        });
    }
    out
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: u64,
    ns: u64,
}

impl Sum {
    #[inline]
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
    }
}

#[derive(Debug, Default)]
struct Vcpu {
    times: Times,
    /// Of the kernel's part, what was in exits in which the guest asked to wait.
    kernel_waiting_ns: u64,
    span: Option<(u64, u64)>,
    exits: u64,
    polls: Polls,
    /// A wait for a CPU that goes on: it may have been behind several tasks.
    wait_ns: u64,
    waits: Stats,
    /// It is in the VMM, if with its CPU taken away.
    in_user: bool,
}

/// Adds up spans.
#[derive(Debug, Default)]
pub struct Vcpus {
    window: Window,
    /// Threads of vCPUs that are not told of.
    left_out: HashSet<i32>,
    vcpus: Vec<Vcpu>,
    behind: FxHashMap<(u32, Option<u32>), Sum>,
    user: FxHashMap<(u32, Cause), Sum>,
}

impl Vcpus {
    /// Returns a sum of nothing.
    pub fn new(window: Window) -> Vcpus {
        Vcpus {
            window,
            ..Vcpus::default()
        }
    }

    #[inline]
    fn vcpu(&mut self, vcpu: u32) -> &mut Vcpu {
        let index = vcpu as usize;
        if self.vcpus.len() <= index {
            self.vcpus.resize_with(index + 1, Vcpu::default);
        }
        &mut self.vcpus[index]
    }

    /// Leaves out vCPUs, by their threads.
    pub fn leave_out(&mut self, threads: HashSet<i32>) {
        self.left_out = threads;
    }

    /// Tells the sums so far of every state, over all chosen vCPUs.
    pub(crate) fn counters(&self, machine: &Machine, tell: &mut dyn FnMut(Counter, Amount)) {
        let chosen: Vec<&Vcpu> = (self.vcpus.iter().zip(machine.vcpus()))
            .filter(|(_, known)| !self.left_out.contains(&known.tid))
            .map(|(vcpu, _)| vcpu)
            .collect();
        for state in State::ALL {
            let times = chosen.iter().map(|vcpu| vcpu.times.get(state));
            let ns = times.fold(0u64, u64::saturating_add);
            tell(Counter::State(state as u8), Amount { count: 0, ns });
        }
    }

    /// A vCPU left its guest.
    #[inline]
    pub fn exit(&mut self, vcpu: u32, time: u64, cpu: i32) {
        if self.window.has(time, cpu) {
            self.vcpu(vcpu).exits += 1;
        }
    }

    /// A vCPU was halted, which changed the count of its polls.
    pub fn halt(&mut self, vcpu: u32, time: u64, cpu: i32, before: &Polls, after: &Polls) {
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
    pub fn report(&self, machine: &Machine) -> VcpusReport {
        let vms = machine.vms();
        let names = vm_names(&vms);
        let seen = machine.seen();
        let mut rows: Vec<(Option<usize>, VcpuRow)> = Vec::new();
        for (known, index) in machine.vcpus().zip(0u32..) {
            let Some(vcpu) = self.vcpus.get(index as usize) else {
                continue;
            };
            let Some((from, to)) = vcpu.span else {
                continue;
            };
            if self.left_out.contains(&known.tid) {
                continue;
            }
            let (at, number) = place(&vms, known.thread);
            let vm = at.map(|at| &vms[at]);
            let mut waits = vcpu.waits.clone();
            if vcpu.wait_ns > 0 {
                waits.add(vcpu.wait_ns);
            }
            let row = VcpuRow {
                vm_pid: vm.and_then(|vm| vm.pid),
                vm_name: vm.and_then(|vm| vm.name.clone()),
                vm: at.map(|at| names[at].clone()).unwrap_or_default(),
                guessed: vm.is_some_and(|vm| vm.guessed),
                called: match at {
                    Some(at) if vms.len() > 1 => format!("{}, vCPU {number}", names[at]),
                    _ => format!("vCPU {number}"),
                },
                vcpu: number,
                tid: known.tid,
                from,
                to,
                times: seen.settle(&vcpu.times, vcpu.kernel_waiting_ns),
                exits: vcpu.exits,
                polls: vcpu.polls,
                waits,
                behind: self.behind(index, machine),
                user: self.user(index),
            };
            rows.push((at, row));
        }
        rows.sort_by_key(|(vm, row)| (*vm, row.vcpu, row.from));
        VcpusReport {
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            seen,
        }
    }

    /// Returns of each vCPU behind which task (its slot) it waited, how often and for how long.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (u32, Option<u32>, u64, u64)> + '_ {
        let all = self.behind.iter();
        all.map(|((vcpu, task), sum)| (*vcpu, *task, sum.count, sum.ns))
    }

    fn behind(&self, vcpu: u32, machine: &Machine) -> Vec<Behind> {
        let of_vcpu = self.behind.iter().filter(|((of, _), _)| *of == vcpu);
        let mut list: Vec<Behind> = of_vcpu
            .map(|((_, task), sum)| {
                let task = task.and_then(|slot| machine.threads().at(slot));
                Behind {
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
            |count, ns| Behind {
                tid: None,
                comm: None,
                count,
                ns,
            },
        )
    }

    fn user(&self, vcpu: u32) -> Vec<UserCause> {
        let of_vcpu = self.user.iter().filter(|((of, _), _)| *of == vcpu);
        let mut list: Vec<UserCause> = of_vcpu
            .map(|((_, cause), sum)| UserCause {
                reason: cause.reason,
                access: cause.access,
                name: None,
                count: sum.count,
                ns: sum.ns,
            })
            .collect();
        list.sort_by(|a, b| {
            (b.ns.cmp(&a.ns)).then((a.reason, a.access).cmp(&(b.reason, b.access)))
        });
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

/// Returns position of the VM and number of the vCPU that a thread is.
fn place(vms: &[Vm], thread: u32) -> (Option<usize>, u32) {
    for (at, vm) in vms.iter().enumerate() {
        if let Some(vcpu) = vm.vcpus.iter().find(|vcpu| vcpu.thread == thread) {
            return (Some(at), vcpu.id);
        }
    }
    (None, 0)
}

impl SpanSink for Vcpus {
    fn span(&mut self, span: &Span) {
        let (mut start, mut end) = (span.start, span.end);
        if let Some((from, to)) = self.window.time {
            start = start.max(from);
            end = end.min(to);
        }
        if start >= end || !self.window.has_cpu(span.cpu) {
            return;
        }
        let ns = end - start;
        let vcpu = self.vcpu(span.vcpu);
        vcpu.times.add(span.state, ns);
        let waiting = span.cause.reason.is_some_and(ExitReason::is_waiting);
        if span.state == State::Kernel && waiting {
            vcpu.kernel_waiting_ns += ns;
        }
        vcpu.span = Some(match vcpu.span {
            Some((from, to)) => (from.min(start), to.max(end)),
            None => (start, end),
        });
        if span.state == State::Runnable {
            vcpu.wait_ns += ns;
            self.behind
                .entry((span.vcpu, span.behind))
                .or_default()
                .add(ns);
            return;
        }
        if vcpu.wait_ns > 0 {
            let wait = std::mem::take(&mut vcpu.wait_ns);
            vcpu.waits.add(wait);
        }
        let user = matches!(span.state, State::User | State::UserBlocked);
        let goes_on = std::mem::replace(&mut vcpu.in_user, user) && user;
        if user {
            let sum = self.user.entry((span.vcpu, span.cause)).or_default();
            sum.ns = sum.ns.saturating_add(ns);
            sum.count += u64::from(!goes_on);
        }
    }
}
