//! What alternatives ask of an event: its attributes, and of whom.

use model::{Halt, Machine};

use super::bind::{AttributeReader, BoundCondition};
use super::compare::compare;
use super::guest_tasks as guest;
use super::{EventContext, Paths};
use crate::interrupts::UNRESOLVED;
use crate::lang::{ComparisonOperand, ComparisonOperator, ThreadClass};
use crate::notes::WakeSource;
use crate::tasks::{InterruptSource, TaskKind};
use event::{ExitReason, FieldScalar};

impl Paths {
    /// Returns the value of an attribute, as joins compare it.
    pub(super) fn read(
        &self,
        read: &AttributeReader,
        now: &EventContext<'_, '_>,
        machine: &Machine,
    ) -> Option<u64> {
        let process = |slot: Option<u32>| {
            let process = process_of(slot?, machine.threads())?;
            Some(u64::from(process.cast_unsigned()))
        };
        match read {
            AttributeReader::Thread => Some(u64::from(now.thread)),
            AttributeReader::Task => now.task.map(u64::from),
            AttributeReader::Prev => now.prev.map(u64::from),
            AttributeReader::Cpu => Some(u64::from(now.event.cpu.cast_unsigned())),
            AttributeReader::Any => Some(0),
            AttributeReader::Target => now.target,
            AttributeReader::Raised => Some(now.raised as u64),
            AttributeReader::Reason => None,
            AttributeReader::Inside => now.guest.map(|guest| guest.inside),
            AttributeReader::GuestTask => now.guest.and_then(|guest| guest.task),
            AttributeReader::GuestPrev => now.guest.and_then(|guest| guest.prev),
            AttributeReader::Machine => Some(guest::number(now.event.machine())),
            AttributeReader::Process => process(Some(now.thread)),
            AttributeReader::TaskProcess => process(now.task),
            AttributeReader::ThreadMachine => {
                self.guest_of(u64::from(now.thread)).map(guest::number)
            }
            AttributeReader::TaskMachine => self.guest_of(u64::from(now.task?)).map(guest::number),
            AttributeReader::Frame(len, header) => {
                let len = len.number(now.event, now.data);
                len.map(|len| len.saturating_add(*header))
            }
            AttributeReader::Field(getter) => {
                getter.get(now.event, now.data).map(|value| value.key())
            }
        }
    }

    /// The thread that an attribute is, for questions about it.
    fn thread_of(&self, read: &AttributeReader, now: &EventContext<'_, '_>) -> Option<u32> {
        match read {
            AttributeReader::Thread => Some(now.thread),
            AttributeReader::Task => now.task,
            AttributeReader::Prev => now.prev,
            AttributeReader::Target => now
                .target
                .filter(|target| target & UNRESOLVED == 0)
                .and_then(|target| u32::try_from(target).ok()),
            _ => None,
        }
    }

    pub(super) fn ask(
        &mut self,
        ask: &BoundCondition,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
    ) -> bool {
        match ask {
            BoundCondition::Compare(AttributeReader::Raised, op, wanted) => compare(
                &FieldScalar::Text(raised_word(now.raised).into()),
                *op,
                wanted,
            ),
            BoundCondition::Reason(ask) => ask.is(reason(now, machine)),
            BoundCondition::Sleeps => match now.data {
                event::Data::SchedSwitch(switch) => {
                    switch.prev_state.leaves() == event::sched::Leaves::Blocked
                }
                _ => false,
            },
            BoundCondition::InTask => model::in_interrupt(now.event) == Some(false),
            BoundCondition::Halts => match now.data {
                event::Data::KvmExit(exit) => exit.reason.is_waiting(),
                _ => false,
            },
            BoundCondition::Compare(AttributeReader::Field(getter), op, wanted) => getter
                .get(now.event, now.data)
                .is_some_and(|value| compare(&value, *op, wanted)),
            BoundCondition::Compare(AttributeReader::Thread, op, wanted) => {
                self.compare_tid(now.tid, *op, wanted)
            }
            BoundCondition::Compare(read, op, wanted) => {
                let value = match read {
                    AttributeReader::Cpu => Some(as_field(now.event.cpu)),
                    AttributeReader::Machine => Some(u64::from(now.event.machine())),
                    AttributeReader::Inside => now.guest.and_then(|guest| guest::tid(guest.inside)),
                    AttributeReader::GuestTask => {
                        now.guest.and_then(|guest| guest::tid(guest.task?))
                    }
                    AttributeReader::GuestPrev => {
                        now.guest.and_then(|guest| guest::tid(guest.prev?))
                    }
                    AttributeReader::ThreadMachine | AttributeReader::TaskMachine => self
                        .read(read, now, machine)
                        .and_then(guest::machine_of_task)
                        .map(u64::from),
                    read @ (AttributeReader::Process
                    | AttributeReader::TaskProcess
                    | AttributeReader::Frame(..)) => self.read(read, now, machine),
                    read => self
                        .thread_of(read, now)
                        .and_then(|slot| machine.threads().at(slot))
                        .map(|(tid, _)| as_field(tid)),
                };
                value.is_some_and(|value| compare(&FieldScalar::Number(value), *op, wanted))
            }
            BoundCondition::Is(read, class, yes) => {
                // What is not known to be something is not.
                let is = self
                    .thread_of(read, now)
                    .is_some_and(|slot| self.is(slot, *class, now, machine));
                is == *yes
            }
            BoundCondition::Within(getter, ranges) => getter
                .number(now.event, now.data)
                .is_some_and(|number| ranges.iter().any(|range| range.contains(&number))),
            BoundCondition::Rises(level, line) => {
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

    fn compare_tid(&self, tid: i32, op: ComparisonOperator, wanted: &ComparisonOperand) -> bool {
        compare(&FieldScalar::Number(as_field(tid)), op, wanted)
    }

    fn is(
        &mut self,
        slot: u32,
        class: ThreadClass,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
    ) -> bool {
        let what = self.tasks.entry(slot, machine.threads()).what;
        let halt = |machine: &mut Machine| {
            let tid = machine.threads().at(slot).map(|(tid, _)| tid);
            let vcpu = tid.and_then(|tid| machine.vcpu_of(tid));
            vcpu.and_then(|vcpu| machine.halt(vcpu))
        };
        match class {
            ThreadClass::Vcpu => what == TaskKind::Vcpu,
            ThreadClass::Kworker => what == TaskKind::Kworker,
            ThreadClass::Kernel => what == TaskKind::Kernel,
            ThreadClass::Vhost => what == TaskKind::Vhost,
            ThreadClass::Idle => what == TaskKind::Idle,
            ThreadClass::Guest => self.in_guest(slot, machine),
            ThreadClass::Halted => what == TaskKind::Vcpu && halt(machine) == Some(Halt::Asleep),
            ThreadClass::Polling => what == TaskKind::Vcpu && halt(machine) == Some(Halt::Running),
            ThreadClass::BackEnd => {
                let threads = machine.threads();
                let of_vm = || self.tasks.get(slot).raises || self.is_of_vm(slot, threads);
                what == TaskKind::Vhost || what == TaskKind::Other && of_vm()
            }
            ThreadClass::Raiser => self.tasks.get(slot).raises,
            ThreadClass::OwnVcpu => {
                what == TaskKind::Vcpu && works_for(now.thread, slot, machine.threads())
            }
            ThreadClass::Vmm => {
                what == TaskKind::Other && works_for(now.thread, slot, machine.threads())
            }
            ThreadClass::OfVm => {
                what == TaskKind::Vhost
                    || what == TaskKind::Vcpu
                    || self.is_of_vm(slot, machine.threads())
            }
            ThreadClass::Other => what == TaskKind::Vcpu && slot != now.thread,
        }
    }
}

impl Paths {
    /// Returns who woke a vCPU, where no event of its interrupt was recorded. arm64's ITS has none: there a vhost
    /// worker, a kworker that has raised one, or another thread of the vCPU's own VMM, raises a device's interrupt; so
    /// it is without the local APIC's events on x86. Where those are recorded such a thread woke it for something else,
    /// as to stop it.
    pub(super) fn unseen_waker(
        &self,
        now: &EventContext<'_, '_>,
        vcpu: u32,
        threads: &model::Threads,
    ) -> WakeSource {
        let waker = now.thread;
        let of_a_device = match self.tasks.get(waker).what {
            TaskKind::Vhost => true,
            TaskKind::Kworker => self.raised.contains_key(&waker),
            TaskKind::Other => works_for(waker, vcpu, threads),
            _ => false,
        };
        match of_a_device && !self.sees_apic && model::in_interrupt(now.event) == Some(false) {
            true => WakeSource::Device,
            false => WakeSource::Unknown,
        }
    }

    /// Returns whether a thread is one of a process that has vCPUs.
    pub(super) fn is_of_vm(&self, slot: u32, threads: &model::Threads) -> bool {
        let of = process_of(slot, threads);
        let pid = |vcpu| threads.at(vcpu).and_then(|(_, thread)| thread.pid);
        of.is_some() && self.tasks.all_vcpus().any(|vcpu| pid(vcpu) == of)
    }
}

/// Returns the process that a thread works for: its own, or the one that a vhost worker has in its name. Where
/// recordings say of vCPUs alone which process they are of, as ftrace does at most, any other thread may be the first
/// one of its process, and no other one is known.
fn process_of(slot: u32, threads: &model::Threads) -> Option<i32> {
    let (tid, thread) = threads.at(slot)?;
    (thread.works_for()).or((!thread.is_vcpu).then_some(tid))
}

/// Returns whether a thread belongs to the process that another one works for.
pub(super) fn works_for(worker: u32, thread: u32, threads: &model::Threads) -> bool {
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

fn raised_word(raised: InterruptSource) -> &'static str {
    match raised {
        InterruptSource::Local => "local",
        InterruptSource::Ipi => "ipi",
        InterruptSource::Msi => "msi",
        InterruptSource::Pin => "pin",
    }
}

/// Returns the reason of the exit that the event is, or that its vCPU is in.
#[inline]
fn reason(now: &EventContext<'_, '_>, machine: &mut Machine) -> Option<ExitReason> {
    match now.data {
        event::Data::KvmExit(exit) => Some(exit.reason),
        _ => machine
            .vcpu_of(now.tid)
            .and_then(|vcpu| machine.cause(vcpu).reason),
    }
}
