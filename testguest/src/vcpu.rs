//! A vCPU's thread: KVM_RUN, and a count of why it returned.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kvm_ioctls::VcpuFd;
use rustix::io::Errno;

use crate::device::AccessAnswers;
use crate::here::{now_ns, thread_name, tid};
use crate::layout::{HOLD, IrqVector, page};
use crate::machine::{Register, TestMachine, line, register_of};
use crate::plan::{Operation, Plan};

/// What a vCPU's thread needs.
#[derive(Debug)]
pub(crate) struct RunnerThread {
    pub(crate) vcpu: u32,
    pub(crate) fd: VcpuFd,
    pub(crate) machine: Arc<TestMachine>,
    pub(crate) plan: Arc<Plan>,
    /// Of the device that sends this vCPU messages, if there is one.
    pub(crate) answers: Option<Arc<AccessAnswers>>,
}

/// What a vCPU's thread counted.
#[derive(Clone, Debug)]
pub(crate) struct VcpuOutcome {
    pub(crate) vcpu: u32,
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// CLOCK_MONOTONIC, before the first KVM_RUN and after the last.
    pub(crate) started_ns: u64,
    pub(crate) ended_ns: u64,
    /// Returns of KVM_RUN for an operation, in the order of [`Operation::ALL`].
    pub(crate) operations: [u64; Operation::ALL.len()],
    /// Returns at the end of a round.
    pub(crate) rounds: u64,
    /// Returns to be held.
    pub(crate) holds: u64,
    /// Returns to have the interrupt line lowered.
    pub(crate) lowers: u64,
    /// Returns because of a signal, which this program sends to nobody.
    pub(crate) interrupted: u64,
    /// Interrupts that the guest took by its own count, in the order of [`IrqVector::ALL`].
    pub(crate) taken: [u32; IrqVector::ALL.len()],
    pub(crate) held: Option<HeldInterrupt>,
}

/// An interrupt that was pending while its vCPU was kept in user space. All are CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldInterrupt {
    pub(crate) vcpu: u32,
    /// Just before the device wrote its irqfd.
    pub(crate) signalled_ns: u64,
    /// Just before KVM_RUN was called again.
    pub(crate) entered_ns: u64,
}

impl VcpuOutcome {
    /// Returns how often KVM_RUN returned in all.
    pub(crate) fn returns(&self) -> u64 {
        let others = self.rounds + self.holds + self.lowers + self.interrupted;
        self.operations.iter().sum::<u64>() + others
    }
}

/// `EINTR` and `EAGAIN`: KVM_RUN is to be called again. The second is what a vCPU's first call returns if it was
/// waiting to be started.
const AGAIN: [Errno; 2] = [Errno::INTR, Errno::AGAIN];

impl RunnerThread {
    /// Runs the vCPU until it has done its rounds.
    pub(crate) fn run(mut self) -> Result<VcpuOutcome> {
        let started = Instant::now();
        let mut outcome = VcpuOutcome {
            vcpu: self.vcpu,
            tid: tid(),
            name: thread_name()?,
            started_ns: now_ns(),
            ended_ns: 0,
            operations: [0; Operation::ALL.len()],
            rounds: 0,
            holds: 0,
            lowers: 0,
            interrupted: 0,
            taken: [0; IrqVector::ALL.len()],
            held: None,
        };
        while outcome.rounds < u64::from(self.plan.rounds) {
            match self.enter()? {
                None => outcome.interrupted += 1,
                Some(Register::Operation(operation)) => {
                    if let Some(count) = outcome.operations.get_mut(operation as usize) {
                        *count += 1;
                    }
                }
                Some(Register::Hold) => {
                    outcome.holds += 1;
                    outcome.held = Some(self.hold()?);
                }
                Some(Register::Lower) => {
                    outcome.lowers += 1;
                    self.lower()?;
                }
                Some(Register::Round) => {
                    outcome.rounds += 1;
                    self.end_round(started, outcome.rounds)?;
                }
            }
        }
        outcome.ended_ns = now_ns();
        for (count, vector) in outcome.taken.iter_mut().zip(IrqVector::ALL) {
            *count = self.taken(vector)?;
        }
        Ok(outcome)
    }

    /// Calls KVM_RUN and returns what came out; `None` if a signal did.
    fn enter(&mut self) -> Result<Option<Register>> {
        let vcpu = self.vcpu;
        match self.fd.run() {
            Ok(mut exit) => match register_of(&mut exit) {
                Some(register) => Ok(Some(register)),
                None => bail!("vCPU {vcpu} came out for what it was not asked to do: {exit:x?}"),
            },
            Err(error) if AGAIN.contains(&Errno::from_raw_os_error(error.errno())) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("KVM does not run vCPU {vcpu}")),
        }
    }

    /// Returns how many interrupts of a kind the guest took, by its own count.
    fn taken(&self, vector: IrqVector) -> Result<u32> {
        let counter = page(self.vcpu) + u32::from(vector.counter());
        self.machine.memory.read(counter)
    }

    /// Asks the guest to be held in the next round, if it is to be, and waits until that begins.
    fn end_round(&self, started: Instant, rounds: u64) -> Result<()> {
        if rounds >= u64::from(self.plan.rounds) {
            return Ok(());
        }
        if self.plan.holds(self.vcpu) && rounds == u64::from(self.plan.hold_round()) {
            self.machine
                .memory
                .write(page(self.vcpu) + u32::from(HOLD), 1)?;
        }
        if let Some(period) = self.plan.period {
            let next = started + period.mul_f64(rounds as f64);
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    /// Stays in user space until the message that the guest has asked for is pending, and then as long as asked.
    fn hold(&self) -> Result<HeldInterrupt> {
        let (Some(answers), Some(hold)) = (&self.answers, self.plan.hold) else {
            bail!(
                "vCPU {} wants to be held, which nobody asked for",
                self.vcpu
            );
        };
        let pending = u64::from(self.taken(IrqVector::Message)?) + 1;
        while answers.count.load(Ordering::SeqCst) < pending {
            thread::sleep(Duration::from_micros(100));
        }
        let count = answers.count.load(Ordering::SeqCst);
        ensure!(
            count == pending,
            "{count} messages were sent, and {pending} asked for"
        );
        let signalled_ns = answers.last_ns.load(Ordering::SeqCst);
        thread::sleep(hold);
        self.machine
            .memory
            .write(page(self.vcpu) + u32::from(HOLD), 0)?;
        Ok(HeldInterrupt {
            vcpu: self.vcpu,
            signalled_ns,
            entered_ns: now_ns(),
        })
    }

    /// Lowers the vCPU's interrupt line.
    fn lower(&self) -> Result<()> {
        let line = line(self.vcpu);
        let lowered = self.machine.vm.set_irq_line(line, false);
        lowered.context("KVM does not lower an interrupt line")
    }
}
