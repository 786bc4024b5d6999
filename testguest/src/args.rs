//! The command line.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::Parser;

use crate::layout::MAX_VCPUS;
use crate::machine::is_operation;
use crate::plan::{Operation, Plan};
use crate::run::Settings;

/// Most vCPUs where each has a pin of the IOAPIC.
const MAX_PINS: u32 = 24;

/// Run a KVM guest that exits a known number of times, and print as JSON what it did.
///
/// Each vCPU does every operation as often as asked, and that in each round. A round ends in one more return to user
/// space.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct PlanArgs {
    /// Number of vCPUs.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_VCPUS))
    )]
    vcpus: u32,
    /// Writes to a port (x86).
    #[arg(long, value_name = "N", default_value_t = 0)]
    pio_out: u32,
    /// Reads from a port (x86).
    #[arg(long, value_name = "N", default_value_t = 0)]
    pio_in: u32,
    /// Reads by MMIO.
    #[arg(long, value_name = "N", default_value_t = 0)]
    mmio_read: u32,
    /// Writes by MMIO.
    #[arg(long, value_name = "N", default_value_t = 0)]
    mmio_write: u32,
    /// HLTs: they return to user space, or with --irqfd or --irqfd-pin the timer of the local APIC ends them. On
    /// aarch64, WFIs, which an interrupt line ends.
    #[arg(long, value_name = "N", default_value_t = 0)]
    hlt: u32,
    /// CPUIDs (x86).
    #[arg(long, value_name = "N", default_value_t = 0)]
    cpuid: u32,
    /// Hypercalls that the kernel answers: VMCALL or VMMCALL, HVC on aarch64. They never end where KVM emulates real
    /// mode.
    #[arg(long, value_name = "N", default_value_t = 0)]
    hypercall: u32,
    /// Writes to a port that is an ioeventfd (x86).
    #[arg(long, value_name = "N", default_value_t = 0)]
    ioeventfd: u32,
    /// Writes by MMIO to what is an ioeventfd.
    #[arg(long, value_name = "N", default_value_t = 0)]
    ioeventfd_mmio: u32,
    /// HLTs that an irqfd ends, a message (MSI); each is asked for by an ioeventfd (x86).
    #[arg(long, value_name = "N", default_value_t = 0)]
    irqfd: u32,
    /// The same by an irqfd that is a pin of the IOAPIC (x86).
    #[arg(long, value_name = "N", default_value_t = 0)]
    irqfd_pin: u32,
    /// Number of rounds.
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rounds a second that each vCPU starts at most.
    #[arg(long, value_name = "HZ")]
    rate: Option<f64>,
    /// Microseconds from a device's being asked to its interrupt.
    #[arg(long, value_name = "US", default_value_t = 200)]
    device_delay: u64,
    /// Keep the first vCPU in user space for so many milliseconds while a message of --irqfd is pending, once.
    #[arg(long, value_name = "MS")]
    slow_irqfd: Option<u64>,
    /// Name threads as QEMU does: "CPU 0/KVM".
    #[arg(long)]
    threads_named_as_qemu: bool,
    /// Say on standard error that all threads are there, and begin when a byte comes on standard input.
    #[arg(long)]
    wait: bool,
    /// Give up after so many seconds; 0 for never.
    #[arg(long, value_name = "S", default_value_t = 60)]
    timeout: u64,
}

impl PlanArgs {
    /// Returns what the guest is to do.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let per_round = [
            self.pio_out,
            self.pio_in,
            self.mmio_read,
            self.mmio_write,
            self.hlt,
            self.cpuid,
            self.hypercall,
            self.ioeventfd,
            self.ioeventfd_mmio,
            self.irqfd,
            self.irqfd_pin,
        ];
        let period = match self.rate {
            None => None,
            Some(rate) => match Duration::try_from_secs_f64(1.0 / rate) {
                Ok(period) => Some(period),
                Err(_) => bail!("--rate {rate}: a number above 0 is needed"),
            },
        };
        let plan = Plan {
            vcpus: self.vcpus,
            rounds: self.rounds,
            per_round,
            period,
            device_delay: Duration::from_micros(self.device_delay),
            hold: self.slow_irqfd.map(Duration::from_millis),
        };
        for operation in Operation::ALL {
            ensure!(
                plan.each_round(operation) == 0 || is_operation(operation),
                "--{}: this architecture has none",
                operation.name()
            );
        }
        ensure!(
            plan.each_round(Operation::IrqfdPin) == 0 || plan.vcpus <= MAX_PINS,
            "--irqfd-pin: the IOAPIC has {MAX_PINS} pins, and {} vCPUs want one each",
            plan.vcpus
        );
        ensure!(
            plan.hold.is_none() || plan.each_round(Operation::Irqfd) > 0,
            "--slow-irqfd: there is no message to keep waiting; add --irqfd"
        );
        Ok(plan)
    }

    /// Returns how it is run.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            names_of_qemu: self.threads_named_as_qemu,
            wait: self.wait,
            timeout: (self.timeout > 0).then(|| Duration::from_secs(self.timeout)),
        }
    }
}

#[cfg(test)]
mod tests;
