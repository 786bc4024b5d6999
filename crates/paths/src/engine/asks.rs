//! What alternatives ask of an event: its attributes, and of whom.

use model::{Halt, Machine};

use super::bind::{Ask, Read};
use super::compare::compare;
use super::guest_tasks as guest;
use super::{Now, Paths};
use crate::interrupts::UNRESOLVED;
use crate::lang::{Class, Op, Value};
use crate::tasks::{Raised, What};
use event::{ExitReason, FieldScalar};

impl Paths {
    /// Returns the value of an attribute, as joins compare it.
    pub(super) fn read(&self, read: &Read, now: &Now<'_, '_>, machine: &Machine) -> Option<u64> {
        let process = |slot: Option<u32>| {
            let process = process_of(slot?, machine.threads())?;
            Some(u64::from(process.cast_unsigned()))
        };
        match read {
            Read::Thread => Some(u64::from(now.thread)),
            Read::Task => now.task.map(u64::from),
            Read::Prev => now.prev.map(u64::from),
            Read::Cpu => Some(u64::from(now.event.cpu.cast_unsigned())),
            Read::Any => Some(0),
            Read::Target => now.target,
            Read::Raised => Some(now.raised as u64),
            Read::Reason => None,
            Read::Inside => now.guest.map(|guest| guest.inside),
            Read::GuestTask => now.guest.and_then(|guest| guest.task),
            Read::GuestPrev => now.guest.and_then(|guest| guest.prev),
            Read::Machine => Some(guest::number(now.event.machine())),
            Read::Process => process(Some(now.thread)),
            Read::TaskProcess => process(now.task),
            Read::ThreadMachine => self.guest_of(u64::from(now.thread)).map(guest::number),
            Read::TaskMachine => self.guest_of(u64::from(now.task?)).map(guest::number),
            Read::Frame(len, header) => {
                let len = len.number(now.event, now.data);
                len.map(|len| len.saturating_add(*header))
            }
            Read::Field(getter) => getter.get(now.event, now.data).map(|value| value.key()),
        }
    }

    /// The thread that an attribute is, for questions about it.
    fn thread_of(&self, read: &Read, now: &Now<'_, '_>) -> Option<u32> {
        match read {
            Read::Thread => Some(now.thread),
            Read::Task => now.task,
            Read::Prev => now.prev,
            Read::Target => now
                .target
                .filter(|target| target & UNRESOLVED == 0)
                .and_then(|target| u32::try_from(target).ok()),
            _ => None,
        }
    }

    pub(super) fn ask(&mut self, ask: &Ask, now: &Now<'_, '_>, machine: &mut Machine) -> bool {
        match ask {
            Ask::Compare(Read::Raised, op, wanted) => compare(
                &FieldScalar::Text(raised_word(now.raised).into()),
                *op,
                wanted,
            ),
            Ask::Reason(ask) => ask.is(reason(now, machine)),
            Ask::Sleeps => match now.data {
                event::Data::SchedSwitch(switch) => {
                    switch.prev_state.leaves() == event::sched::Leaves::Blocked
                }
                _ => false,
            },
            Ask::Halts => match now.data {
                event::Data::KvmExit(exit) => exit.reason.is_waiting(),
                _ => false,
            },
            Ask::Compare(Read::Field(getter), op, wanted) => getter
                .get(now.event, now.data)
                .is_some_and(|value| compare(&value, *op, wanted)),
            Ask::Compare(Read::Thread, op, wanted) => self.compare_tid(now.tid, *op, wanted),
            Ask::Compare(read, op, wanted) => {
                let value = match read {
                    Read::Cpu => Some(as_field(now.event.cpu)),
                    Read::Machine => Some(u64::from(now.event.machine())),
                    Read::Inside => now.guest.and_then(|guest| guest::tid(guest.inside)),
                    Read::GuestTask => now.guest.and_then(|guest| guest::tid(guest.task?)),
                    Read::GuestPrev => now.guest.and_then(|guest| guest::tid(guest.prev?)),
                    Read::ThreadMachine | Read::TaskMachine => self
                        .read(read, now, machine)
                        .and_then(guest::machine_of_task)
                        .map(u64::from),
                    read @ (Read::Process | Read::TaskProcess | Read::Frame(..)) => {
                        self.read(read, now, machine)
                    }
                    read => self
                        .thread_of(read, now)
                        .and_then(|slot| machine.threads().at(slot))
                        .map(|(tid, _)| as_field(tid)),
                };
                value.is_some_and(|value| compare(&FieldScalar::Number(value), *op, wanted))
            }
            Ask::Is(read, class, yes) => {
                // What is not known to be something is not.
                let is = self
                    .thread_of(read, now)
                    .is_some_and(|slot| self.is(slot, *class, now, machine));
                is == *yes
            }
            Ask::Within(getter, ranges) => getter
                .number(now.event, now.data)
                .is_some_and(|number| ranges.iter().any(|range| range.contains(&number))),
            Ask::Rises(level, line) => {
                let Some(level) = level.number(now.event, now.data) else {
                    return false;
                };
                let line = line.number(now.event, now.data).unwrap_or(0);
                let key = (now.event.ty.index, now.thread, line);
                // Two paths may ask about one event: the level is remembered after it.
                self.rising.push((key, level));
                level != 0 && self.levels.get(&key).copied().unwrap_or(0) == 0
            }
        }
    }

    fn compare_tid(&self, tid: i32, op: Op, wanted: &Value) -> bool {
        compare(&FieldScalar::Number(as_field(tid)), op, wanted)
    }

    fn is(&mut self, slot: u32, class: Class, now: &Now<'_, '_>, machine: &mut Machine) -> bool {
        let what = self.tasks.entry(slot, machine.threads()).what;
        let halt = |machine: &mut Machine| {
            let tid = machine.threads().at(slot).map(|(tid, _)| tid);
            let vcpu = tid.and_then(|tid| machine.vcpu_of(tid));
            vcpu.and_then(|vcpu| machine.halt(vcpu))
        };
        match class {
            Class::Vcpu => what == What::Vcpu,
            Class::Kworker => what == What::Kworker,
            Class::Kernel => what == What::Kernel,
            Class::Vhost => what == What::Vhost,
            Class::Idle => what == What::Idle,
            Class::Guest => self.in_guest(slot, machine),
            Class::Halted => what == What::Vcpu && halt(machine) == Some(Halt::Asleep),
            Class::Polling => what == What::Vcpu && halt(machine) == Some(Halt::Running),
            Class::BackEnd => {
                let threads = machine.threads();
                let of_vm = || self.tasks.get(slot).raises || self.is_of_vm(slot, threads);
                what == What::Vhost || what == What::Other && of_vm()
            }
            Class::Raiser => self.tasks.get(slot).raises,
            Class::OwnVcpu => what == What::Vcpu && works_for(now.thread, slot, machine.threads()),
            Class::Vmm => what == What::Other && works_for(now.thread, slot, machine.threads()),
            Class::OfVm => {
                what == What::Vhost || what == What::Vcpu || self.is_of_vm(slot, machine.threads())
            }
            Class::Other => what == What::Vcpu && slot != now.thread,
        }
    }
}

impl Paths {
    /// Whether a thread is one of a process that has vCPUs.
    fn is_of_vm(&self, slot: u32, threads: &model::Threads) -> bool {
        let of = process_of(slot, threads);
        let pid = |vcpu| threads.at(vcpu).and_then(|(_, thread)| thread.pid);
        of.is_some() && self.tasks.all_vcpus().any(|vcpu| pid(vcpu) == of)
    }
}

/// Returns the process that a thread works for: its own, or the one that a vhost worker has in its name. Where recordings say of vCPUs alone which
/// process they are of, as ftrace does at most, any other thread may be the first one of its process, and no other one is known.
fn process_of(slot: u32, threads: &model::Threads) -> Option<i32> {
    let (tid, thread) = threads.at(slot)?;
    let comm = thread.comm.as_deref();
    let named = comm.and_then(|comm| comm.strip_prefix("vhost-")?.parse().ok());
    named.or(thread.pid).or((!thread.is_vcpu).then_some(tid))
}

/// Whether a thread belongs to the process that another one works for.
fn works_for(worker: u32, thread: u32, threads: &model::Threads) -> bool {
    let Some((tid, thread)) = threads.at(thread) else {
        return false;
    };
    match (process_of(worker, threads), thread.pid) {
        (Some(process), Some(pid)) => process == pid,
        (Some(process), None) => process == tid,
        (None, _) => false,
    }
}

/// Returns a number as a field of 64 bits has it: below 0 its high bits are set.
fn as_field(number: i32) -> u64 {
    i64::from(number).cast_unsigned()
}

fn raised_word(raised: Raised) -> &'static str {
    match raised {
        Raised::Local => "local",
        Raised::Ipi => "ipi",
        Raised::Msi => "msi",
        Raised::Pin => "pin",
    }
}

/// Returns the reason of the exit that the event is, or that its vCPU is in.
#[inline]
fn reason(now: &Now<'_, '_>, machine: &mut Machine) -> Option<ExitReason> {
    match now.data {
        event::Data::KvmExit(exit) => Some(exit.reason),
        _ => machine
            .vcpu_of(now.tid)
            .and_then(|vcpu| machine.cause(vcpu).reason),
    }
}
