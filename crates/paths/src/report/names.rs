//! What steps, threads, accesses and traits are called.

use event::ExitReason;
use model::{Access, Machine};

use crate::lang::Path;
use crate::notes::{Waker, Was};
use crate::tasks::{Run, What};
use crate::traits::Trait;

/// What texts are made with.
pub(super) struct Words<'a> {
    pub(super) path: &'a Path,
    pub(super) machine: &'a Machine,
    pub(super) names: NameAccess<'a>,
}

/// Names a device and register behind an access, if it can.
pub type NameAccess<'n> = &'n dyn Fn(&Access) -> Option<String>;

impl Words<'_> {
    pub(super) fn step(&self, chain: u8, step: u8) -> &str {
        let steps = self
            .path
            .chains
            .get(chain as usize)
            .map(|chain| &chain.steps);
        steps
            .and_then(|steps| steps.get(step as usize))
            .map_or("?", |step| step.name.as_str())
    }

    pub(super) fn features(&self, traits: &[Trait]) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for (at, one) in traits.iter().enumerate() {
            // Of the levels of a count the highest says it all.
            let higher = match (one, traits.get(at + 1)) {
                (Trait::Exits(a, _), Some(Trait::Exits(b, _))) => a == b,
                (Trait::Accesses(a, x, _), Some(Trait::Accesses(b, y, _))) => (a, x) == (b, y),
                (Trait::HostIrq(a, _), Some(Trait::HostIrq(b, _))) => a == b,
                _ => false,
            };
            // Steps tell these.
            let stands = matches!(
                one,
                Trait::Reached(..) | Trait::Longest(..) | Trait::Chain(_)
            );
            if !higher && !stands {
                out.push(self.feature(one));
            }
        }
        out
    }

    pub(super) fn tid(&self, slot: u32) -> i32 {
        if slot >= crate::tasks::IDLE {
            return 0;
        }
        self.machine.threads().at(slot).map_or(-1, |(tid, _)| tid)
    }

    pub(super) fn task(&self, slot: u32) -> String {
        if slot >= crate::tasks::IDLE {
            return format!("swapper/{}", slot & !crate::tasks::IDLE);
        }
        match self.machine.threads().at(slot) {
            Some((tid, thread)) => match thread.comm.as_deref() {
                Some(comm) => format!("{comm}:{tid}"),
                None => format!(":{tid}"),
            },
            None => "?".to_owned(),
        }
    }

    pub(super) fn access(&self, access: &Access) -> String {
        let key = match *access {
            Access::Port { port, write } => {
                format!("port {port:#x} {}", if write { "write" } else { "read" })
            }
            Access::Mmio { gpa, write } => {
                format!("MMIO {gpa:#x} {}", if write { "write" } else { "read" })
            }
            Access::Msr { msr, write } => {
                format!("MSR {msr:#x} {}", if write { "write" } else { "read" })
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

    pub(super) fn group(&self, what: &Trait) -> String {
        match what {
            Trait::Others => "others".to_owned(),
            Trait::Waker(waker) => waker_name(*waker).to_owned(),
            Trait::BackEnd(what) => back_end(*what).to_owned(),
            Trait::For(_, Some(access)) => self.access(access),
            Trait::For(Some(reason), None) => self.reason(reason),
            Trait::For(None, None) => "unknown".to_owned(),
            Trait::Chain(chain) => self
                .path
                .chains
                .get(*chain as usize)
                .and_then(|chain| chain.name.clone())
                .unwrap_or_default(),
            other => self.feature(other),
        }
    }

    /// A trait in few words.
    pub(super) fn feature(&self, what: &Trait) -> String {
        match what {
            Trait::Others => "others".to_owned(),
            Trait::Chain(_) => format!("went: {}", self.group(what)),
            Trait::Reached(chain, step) => format!("reached: {}", self.step(*chain, *step)),
            Trait::Longest(chain, from, to) => format!(
                "longest stage: {} → {}",
                self.step(*chain, *from),
                self.step(*chain, *to)
            ),
            Trait::Coalesced => "other interrupts coalesced with it".to_owned(),
            Trait::Vector(vector) => format!("vector {vector}"),
            Trait::Address(address) => format!("address {address:#x}"),
            Trait::Vcpu(slot) => format!("vCPU {}", self.task(*slot)),
            Trait::For(..) => format!("for {}", self.group(what)),
            Trait::Was(was) => format!("vCPU was {}", was_name(*was)),
            Trait::Busy => "vCPU was running".to_owned(),
            Trait::BusyWith(access) => format!("vCPU was busy with {}", self.access(access)),
            Trait::Cpu(cpu) => format!("CPU {cpu}"),
            Trait::Exits(reason, level) => {
                format!("vCPU exits, {}: at least {level}", self.reason(reason))
            }
            Trait::Accesses(access, vmm, level) => format!(
                "vCPU exits{} on {}: at least {level}",
                if *vmm { " to the VMM" } else { "" },
                self.access(access)
            ),
            Trait::Beside(slot) => format!("on its CPU ran {}", self.task(*slot)),
            Trait::HostIrq(irq, level) => {
                format!("host interrupts {irq} on its CPU: at least {level}")
            }
            Trait::Migrated => "migrated".to_owned(),
            Trait::Polled(true) => "halt polling hit".to_owned(),
            Trait::Polled(false) => "halt polling missed, or was not tried".to_owned(),
            Trait::Behind(slot) => format!("got its CPU after {}", self.task(*slot)),
            Trait::Waker(waker) => format!("woken by {}", waker_name(*waker)),
            Trait::BackEnd(what) => format!("back end is a {}", back_end(*what)),
            Trait::BackEndWas(run) => format!("back end was {}", run_name(*run)),
            Trait::BackEndThread(slot) => format!("back end {}", self.task(*slot)),
        }
    }

    /// A trait as the beginning of a sentence.
    pub(super) fn sentence(&self, what: &Trait) -> String {
        match what {
            Trait::Longest(chain, from, to) => format!(
                "Most of the time went from '{}' to '{}'",
                self.step(*chain, *from),
                self.step(*chain, *to)
            ),
            Trait::Reached(chain, step) => {
                format!("They went through '{}'", self.step(*chain, *step))
            }
            Trait::Was(Was::Halted) => "The vCPU was halted and had to be woken".to_owned(),
            Trait::Was(Was::User) => {
                "The vCPU was in user space, its VMM handling an exit".to_owned()
            }
            Trait::Busy => {
                "The vCPU was already running instead of halted, so it was not woken".to_owned()
            }
            Trait::Vcpu(slot) => format!("It was vCPU thread {}", self.task(*slot)),
            Trait::Cpu(cpu) => format!("The vCPU was on CPU {cpu}"),
            Trait::BusyWith(access) => {
                format!("The vCPU was handling its guest's {}", self.access(access))
            }
            Trait::Accesses(access, vmm, level) => format!(
                "Meanwhile the vCPU exited{} at least {} on {}",
                if *vmm { " to user space" } else { "" },
                words::times((*level).into()),
                self.access(access)
            ),
            Trait::Exits(reason, level) => format!(
                "Meanwhile the vCPU had at least {}",
                words::plural(*level, &format!("{} exit", self.reason(reason)))
            ),
            Trait::Beside(slot) => {
                format!("Meanwhile {} ran on the vCPU's CPU", self.task(*slot))
            }
            Trait::Behind(slot) => {
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

fn waker_name(waker: Waker) -> &'static str {
    match waker {
        Waker::Unknown => "unknown",
        Waker::Timer => "timer",
        Waker::Device => "device",
        Waker::Vcpu => "other vCPU",
        Waker::Poll => "halt-poll hit",
    }
}

fn back_end(what: What) -> &'static str {
    match what {
        What::Vcpu => "vCPU thread",
        What::Kworker | What::Kernel | What::Idle => "kernel thread",
        What::Vhost => "vhost thread",
        What::Other => "VMM thread",
    }
}

pub(super) fn was_name(was: Was) -> &'static str {
    match was {
        Was::Unknown => "unknown",
        Was::Guest => "in its guest",
        Was::Kernel => "in KVM",
        Was::User => "in user space",
        Was::Polling => "polling in a halt",
        Was::Running => "running",
        Was::Runnable => "runnable without a CPU",
        Was::Halted => "halted",
        Was::Asleep => "asleep",
        Was::Halting => "in a halt and not seen to sleep",
    }
}

fn run_name(run: Run) -> &'static str {
    match run {
        Run::Unknown => "unknown",
        Run::Running => "running",
        Run::Runnable => "runnable without a CPU",
        Run::Asleep => "asleep",
    }
}
