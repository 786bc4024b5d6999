//! What steps, threads, accesses and traits are called.

use std::fmt::Write;

use cpuset::NodeDistance;
use event::{ExitReason, SystemRegister};
use model::{GuestAccess, Machine};

use crate::engine::Paths;
use crate::lang::PathDefinition;
use crate::notes::{VcpuActivity, WakeSource};
use crate::tasks::{TaskKind, TaskRun};
use crate::traits::{InstanceTrait, InterruptLine};

/// Bytes of a thread's name (`TASK_COMM_LEN`), and of a thread id behind a colon.
const TASK_NAME: usize = 28;

/// What texts are made with.
pub(super) struct PathWords<'a> {
    pub(super) path: &'a PathDefinition,
    pub(super) machine: &'a Machine,
    pub(super) names: AccessNamer<'a>,
    /// All paths that are followed.
    pub(super) paths: &'a Paths,
}

/// Names a device and register behind an access, if it can.
pub type AccessNamer<'n> = &'n dyn Fn(&GuestAccess) -> Option<String>;

impl Paths {
    /// Returns what texts about a path are made with, by its number.
    pub(super) fn words_of<'a>(
        &'a self,
        path: usize,
        machine: &'a Machine,
        names: AccessNamer<'a>,
    ) -> Option<PathWords<'a>> {
        let path = self.paths().get(path)?;
        Some(PathWords {
            path,
            machine,
            names,
            paths: self,
        })
    }
}

impl PathWords<'_> {
    pub(super) fn step(&self, chain: u8, step: u8) -> &str {
        let steps = self
            .path
            .chains
            .get(usize::from(chain))
            .map(|chain| &chain.steps);
        steps
            .and_then(|steps| steps.get(usize::from(step)))
            .map_or("?", |step| step.name.as_str())
    }

    pub(super) fn features(&self, traits: &[InstanceTrait]) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for (at, one) in traits.iter().enumerate() {
            // Of the levels of a count the highest says it all.
            let higher = match (one, traits.get(at + 1)) {
                (InstanceTrait::Exits(a, _), Some(InstanceTrait::Exits(b, _))) => a == b,
                (InstanceTrait::Accesses(a, x, _), Some(InstanceTrait::Accesses(b, y, _))) => {
                    (a, x) == (b, y)
                }
                (InstanceTrait::HostIrq(a, _), Some(InstanceTrait::HostIrq(b, _))) => a == b,
                _ => false,
            };
            // Steps tell these.
            let stands = matches!(
                one,
                InstanceTrait::Reached(..) | InstanceTrait::Longest(..) | InstanceTrait::Chain(_)
            );
            if !higher && !stands {
                out.push(self.feature(one));
            }
        }
        out
    }

    pub(super) fn task(&self, slot: u32) -> String {
        task(self.machine, slot)
    }

    /// Which devices a back end works for: the addresses by which guests notify it.
    fn works_for(&self, slot: u32) -> String {
        const LISTED: usize = 2;
        let addresses = self.paths.notified(slot);
        if addresses.is_empty() {
            return String::new();
        }
        let mut listed: Vec<String> = addresses
            .iter()
            .take(LISTED)
            .map(|address| {
                let access = match u16::try_from(*address) {
                    Ok(port) => GuestAccess::Port { port, write: true },
                    Err(_) => GuestAccess::Mmio {
                        gpa: *address,
                        write: true,
                    },
                };
                match (self.names)(&access) {
                    Some(name) => format!("{address:#x} ({name})"),
                    None => format!("{address:#x}"),
                }
            })
            .collect();
        if addresses.len() > LISTED {
            listed.push(format!("{} more", addresses.len() - LISTED));
        }
        format!(", for {}", listed.join(", "))
    }

    pub(super) fn access(&self, access: &GuestAccess) -> String {
        let key = match *access {
            GuestAccess::Port { port, write } => {
                format!("port {port:#x} {}", if write { "write" } else { "read" })
            }
            GuestAccess::Mmio { gpa, write } => {
                format!("MMIO {gpa:#x} {}", if write { "write" } else { "read" })
            }
            GuestAccess::Msr { msr, write } => {
                let direction = if write { "write" } else { "read" };
                match SystemRegister::from_number(msr) {
                    Some(register) => format!("system register {register} {direction}"),
                    None => format!("MSR {msr:#x} {direction}"),
                }
            }
        };
        match (self.names)(access) {
            Some(name) => format!("{key} ({name})"),
            None => key,
        }
    }

    fn reason(&self, reason: &ExitReason) -> String {
        reason.key().into_owned()
    }

    pub(super) fn group(&self, what: &InstanceTrait) -> String {
        match what {
            InstanceTrait::Others => "others".to_owned(),
            InstanceTrait::Waker(waker) => waker_name(*waker).to_owned(),
            InstanceTrait::BackEnd(what) => back_end(*what).to_owned(),
            InstanceTrait::For(_, Some(access)) => self.access(access),
            InstanceTrait::For(Some(reason), None) => self.reason(reason),
            InstanceTrait::For(None, None) => "unknown".to_owned(),
            InstanceTrait::Raiser(slot, line) => {
                let line = match line {
                    InterruptLine::Vector(vector) => format!(", vector {vector}"),
                    InterruptLine::Gsi(gsi) => format!(", GSI {gsi}"),
                    InterruptLine::Unknown => String::new(),
                };
                format!("{}{line}{}", self.task(*slot), self.works_for(*slot))
            }
            InstanceTrait::NodeDistance(distance) => match distance {
                NodeDistance::Same => "same NUMA node".to_owned(),
                NodeDistance::Other(None) => "another NUMA node".to_owned(),
                NodeDistance::Other(Some(far)) => format!("another NUMA node, distance {far}"),
            },
            InstanceTrait::Chain(chain) => self
                .path
                .chains
                .get(usize::from(*chain))
                .and_then(|chain| chain.name.clone())
                .unwrap_or_default(),
            other => self.feature(other),
        }
    }

    /// A trait in few words.
    pub(super) fn feature(&self, what: &InstanceTrait) -> String {
        match what {
            InstanceTrait::Others => "others".to_owned(),
            InstanceTrait::Chain(_) => format!("went: {}", self.group(what)),
            InstanceTrait::Reached(chain, step) => format!("reached: {}", self.step(*chain, *step)),
            InstanceTrait::Longest(chain, from, to) => format!(
                "longest stage: {} → {}",
                self.step(*chain, *from),
                self.step(*chain, *to)
            ),
            InstanceTrait::Coalesced => "other interrupts coalesced with it".to_owned(),
            InstanceTrait::Vector(vector) => format!("vector {vector}"),
            InstanceTrait::Address(address) => format!("address {address:#x}"),
            InstanceTrait::Vcpu(slot) => format!("vCPU {}", self.task(*slot)),
            InstanceTrait::For(..) => format!("for {}", self.group(what)),
            InstanceTrait::Was(was) => format!("vCPU was {}", was_name(*was)),
            InstanceTrait::Busy => "vCPU was running".to_owned(),
            InstanceTrait::BusyWith(access) => {
                format!("vCPU was busy with {}", self.access(access))
            }
            InstanceTrait::Cpu(cpu) => format!("CPU {cpu}"),
            InstanceTrait::Exits(reason, level) => {
                format!("vCPU exits, {}: at least {level}", self.reason(reason))
            }
            InstanceTrait::Accesses(access, vmm, level) => format!(
                "vCPU exits{} on {}: at least {level}",
                if *vmm { " to the VMM" } else { "" },
                self.access(access)
            ),
            InstanceTrait::Beside(slot) => format!("on its CPU ran {}", self.task(*slot)),
            InstanceTrait::HostIrq(irq, level) => {
                format!("host interrupts {irq} on its CPU: at least {level}")
            }
            InstanceTrait::Migrated => "migrated".to_owned(),
            InstanceTrait::Polled(true) => "halt polling hit".to_owned(),
            InstanceTrait::Polled(false) => "halt polling missed, or was not tried".to_owned(),
            InstanceTrait::Behind(slot) => format!("got its CPU after {}", self.task(*slot)),
            InstanceTrait::Waker(waker) => format!("woken by {}", waker_name(*waker)),
            InstanceTrait::BackEnd(what) => format!("back end is a {}", back_end(*what)),
            InstanceTrait::BackEndWas(run) => format!("back end was {}", run_name(*run)),
            InstanceTrait::Raiser(..) => format!("raised by {}", self.group(what)),
            InstanceTrait::NodeDistance(_) => format!("NUMA distance: {}", self.group(what)),
            InstanceTrait::BackEndThread(slot) => format!("back end {}", self.task(*slot)),
        }
    }

    /// A trait as the beginning of a sentence.
    pub(super) fn sentence(&self, what: &InstanceTrait) -> String {
        match what {
            InstanceTrait::Longest(chain, from, to) => format!(
                "Most of the time went from '{}' to '{}'",
                self.step(*chain, *from),
                self.step(*chain, *to)
            ),
            InstanceTrait::Reached(chain, step) => {
                format!("They went through '{}'", self.step(*chain, *step))
            }
            InstanceTrait::Was(VcpuActivity::Halted) => {
                "The vCPU was halted and had to be woken".to_owned()
            }
            InstanceTrait::Was(VcpuActivity::User) => {
                "The vCPU was in user space, its VMM handling an exit".to_owned()
            }
            InstanceTrait::Busy => {
                "The vCPU was already running instead of halted, so it was not woken".to_owned()
            }
            InstanceTrait::Vcpu(slot) => format!("It was vCPU thread {}", self.task(*slot)),
            InstanceTrait::Cpu(cpu) => format!("The vCPU was on CPU {cpu}"),
            InstanceTrait::BusyWith(access) => {
                format!("The vCPU was handling its guest's {}", self.access(access))
            }
            InstanceTrait::Accesses(access, vmm, level) => format!(
                "Meanwhile the vCPU exited{} at least {} on {}",
                if *vmm { " to user space" } else { "" },
                words::times((*level).into()),
                self.access(access)
            ),
            InstanceTrait::Exits(reason, level) => format!(
                "Meanwhile the vCPU had at least {}",
                words::plural(*level, &format!("{} exit", self.reason(reason)))
            ),
            InstanceTrait::Beside(slot) => {
                format!("Meanwhile {} ran on the vCPU's CPU", self.task(*slot))
            }
            InstanceTrait::Behind(slot) => {
                format!("The vCPU waited for its CPU behind {}", self.task(*slot))
            }
            other => {
                let feature = self.feature(other);
                let mut chars = feature.chars();
                match chars.next() {
                    Some(first) if !feature.starts_with("vCPU") => {
                        first.to_uppercase().chain(chars).collect()
                    }
                    _ => format!("The {feature}"),
                }
            }
        }
    }
}

/// Returns a task's thread id; -1 where its thread is not known.
pub(super) fn tid(machine: &Machine, slot: u32) -> i32 {
    if slot >= crate::tasks::IDLE {
        return 0;
    }
    machine.threads().at(slot).map_or(-1, |(tid, _)| tid)
}

/// Returns what a task is called.
pub(super) fn task(machine: &Machine, slot: u32) -> String {
    if slot >= crate::tasks::IDLE {
        return format!("swapper/{}", slot & !crate::tasks::IDLE);
    }
    let Some((tid, thread)) = machine.threads().at(slot) else {
        return "?".to_owned();
    };
    // An instance has a dozen of these: the room is made at once.
    let mut name = String::with_capacity(TASK_NAME);
    name.push_str(thread.comm.as_deref().unwrap_or_default());
    name.push(':');
    let _ = write!(name, "{tid}");
    name
}

fn waker_name(waker: WakeSource) -> &'static str {
    match waker {
        WakeSource::Unknown => "unknown",
        WakeSource::Timer => "timer",
        WakeSource::Device => "device",
        WakeSource::Vcpu => "other vCPU",
        WakeSource::Poll => "halt-poll hit",
    }
}

fn back_end(what: TaskKind) -> &'static str {
    match what {
        TaskKind::Vcpu => "vCPU thread",
        TaskKind::Kworker | TaskKind::Kernel | TaskKind::Idle => "kernel thread",
        TaskKind::Vhost => "vhost thread",
        TaskKind::Other => "VMM thread",
    }
}

pub(super) fn was_name(was: VcpuActivity) -> &'static str {
    match was {
        VcpuActivity::Unknown => "unknown",
        VcpuActivity::Guest => "in its guest",
        VcpuActivity::Kernel => "in KVM",
        VcpuActivity::User => "in user space",
        VcpuActivity::Polling => "polling in a halt",
        VcpuActivity::Running => "running",
        VcpuActivity::Runnable => "runnable without a CPU",
        VcpuActivity::Halted => "halted",
        VcpuActivity::Asleep => "asleep",
        VcpuActivity::Halting => "in a halt and not seen to sleep",
    }
}

fn run_name(run: TaskRun) -> &'static str {
    match run {
        TaskRun::Unknown => "unknown",
        TaskRun::Running => "running",
        TaskRun::Runnable => "runnable without a CPU",
        TaskRun::Asleep => "asleep",
    }
}
