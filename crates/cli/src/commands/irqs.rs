//! `trapline irqs`: the interrupts of each vCPU, by vector.

use std::path::PathBuf;

use analysis::{Irqs, Study};
use anyhow::Result;
use clap::Args;
use render::irqs;

use crate::answer::Answer;
use crate::args::Common;
use crate::opening::{self, Beside};
use crate::output;

/// `trapline irqs`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct IrqsArgs {
    /// Recording, or - for standard input.
    #[arg(value_name = "REC")]
    recording: PathBuf,

    /// Show only the first N rows.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    #[command(flatten)]
    common: Common,
}

const HELP: &str = "Columns:
  accepted  interrupts that the vCPU's local APIC took (kvm_apic_accept_irq)
  posted    those of them that the processor takes by itself (APICv, AVIC)
  injected  interrupts that KVM put into the guest (kvm_inj_virq); with APICv or
            AVIC there are none
  repeated  injections that an exit undid, and that KVM repeated
  -         not recorded, or not known for which VM

Interrupts that came while the same vector was still waiting are accepted and not
injected: the guest gets them once. What a vector is for, the guest's
/proc/interrupts says. This needs 'trace-cmd record -e kvm', or 'perf record -a -e
\"kvm:*\"'; KVM on arm64 does not have these events.

Examples:
  trapline irqs trace.dat
  trapline irqs --vcpu 1 --format csv perf.data";

/// Runs the command.
pub(crate) fn run(args: &IrqsArgs) -> Result<()> {
    let session = opening::session(&args.common, &Beside::default(), &[&args.recording])?;
    let input = session.input(&args.recording)?;
    let recording = input.recording()?;
    let name = recording.name().to_owned();
    let mut study = Study::default().with(Irqs::new());
    study = study.choose(recording.window(), recording.left_out());
    recording.prepare(&mut study);
    let mut outcome = recording.walk(&mut study);
    study.finish();
    let walked = study.walked();
    let report = study.get::<Irqs>().map(|irqs| irqs.report(&walked));
    let report = report.unwrap_or_default();
    recording.require(
        report.recorded,
        "interrupts",
        "kvm_apic_accept_irq and no kvm_inj_virq",
        "record on an x86 host with 'trace-cmd record -e kvm' or 'perf record -a -e \"kvm:*\"'",
    )?;
    session.host_facts().warn(&mut outcome.quality);
    recording.warn_of_guess(&mut outcome.quality);
    if report.unresolved > 0 {
        outcome.quality.warn(format!(
            "{} accepted that are in no row: the recording does not show whose vCPU they were for.",
            words::plural(report.unresolved, "interrupt")
        ));
    }
    if report.beyond > 0 {
        outcome.quality.warn(format!(
            "{} of more threads than a host has are in no row: the recording is damaged.",
            words::plural(report.beyond, "interrupt")
        ));
    }
    let vms = walked.machine.vms();
    let answer = Answer {
        format: args.common.format,
        command: "irqs",
        inputs: std::slice::from_ref(&name),
        quality: &outcome.quality,
    };
    answer.print(
        || {
            let layout = output::layout(args.limit.unwrap_or(usize::MAX), recording.nanoseconds());
            let mut text = irqs::table(&report, &vms, layout);
            text.push('\n');
            text.push_str(&output::quality(&name, &outcome.quality));
            text
        },
        || irqs::document(&report, &vms),
        || irqs::csv(&report, &vms),
    )
}
