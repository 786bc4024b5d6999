//! `trapline irqs`: the interrupts of each vCPU, by vector (x86) or INTID (arm64).

use anyhow::Result;
use clap::Args;
use render::ClockUnit;
use render::{ipis, irqs};
use session::RecordingInterrupts;

use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::options::{Common, GuestArgs, RowLimit, RowSort};
use crate::output;

/// `trapline irqs`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct IrqsArgs {
    #[command(flatten)]
    guests: GuestArgs,

    #[command(flatten)]
    limit: RowLimit,

    #[command(flatten)]
    sort: RowSort,

    #[command(flatten)]
    common: Common,
}

const HELP: &str = "Columns:
  accepted  interrupts that the vCPU's local APIC took (kvm_apic_accept_irq)
  posted    those of them that the processor takes by itself (APICv, AVIC)
  injected  interrupts that KVM put into the guest (kvm_inj_virq); with APICv or
            AVIC there are none
  repeated  injections that an exit undid, and that KVM repeated
  INTID     arm64: the number of the interrupt; 27 is the guest's timer, 32 and more
            are devices' and shared by the vCPUs of a VM
  raised    how often its line was raised (vgic_update_irq_pending), also while it
            was pending already
  lowered   how often it was lowered
  -         not recorded, or not known for which VM

Interrupts that came while the same vector was still waiting are accepted and not
injected: the guest gets them once. What a vector is for, the guest's own recording
says, or its /proc/interrupts. This needs 'trapline record --for paths' (or
'trace-cmd record -e kvm').

Where interrupts from vCPU to vCPU were recorded, another table has them by how
far the host CPU of the target is from that of the sender: the same CPU, the same
NUMA node, or another node and its distance, as the firmware has it (10 is the
node itself). The nodes are the host's, from --facts (the JSON of 'trapline
facts'), else from the recording, which has no distances.
  IPIs         how many, without those that the recorder's agent in a guest causes
  halted       how many of them were for a halted vCPU, which has to be woken
  p50 p99 max  from sending to the entry of the target

With recordings of guests beside it, two more tables say what the guests did. The
first has a row for each vector that was injected:
  handled      injections behind which a handler began
  unseen       the guest's recording covers that time, and no handler began
  uncovered    the recordings do not say it: events were not recorded or lost, or
               it was before a recording began or behind its end
  p50 p99 max  from the injection, which is before the entry, to the first handler,
               of those that were handled
  -            the guest recorded no events for this vector: irq_handler_entry for
               devices, irq_vectors for Linux's own (0xec timer, 0xfb to 0xfd IPIs)
The three counts add up to 'injected'. The second has a row for each handler:
  runs         how often it began
  total        how long it ran on the clock, time out of the guest included
  out          the part of the total in which the vCPU was out of the guest
  p99 max      how long one run took
  handler      number and name of the interrupt (irq_handler_entry), or the event of
               irq_vectors
Where several handlers ran for one vector, each has a row: they share a line, or the
vector went to another device. A handler without a vector (-) is one whose injection
was not seen: so it is with APICv and AVIC, and on arm64, where this table is all.
Record guests with 'trapline agent' (or 'trace-cmd record -e irq -e irq_vectors -e
sched').

Examples:
  trapline irqs trace.dat
  trapline irqs host.dat guest.dat
  trapline irqs --vcpu 1 --format csv perf.data";

/// Runs the command.
pub(crate) fn run(args: &IrqsArgs) -> Result<()> {
    let beside = AccompanyingFiles {
        with_guests: true,
        ..AccompanyingFiles::default()
    };
    let named = args.guests.host()?;
    let inputs = named.inputs();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let host = session.host(&named.recording, &named.guests)?;
    let recording = host.input().recording()?;
    let paired = host.paired(&recording)?;
    let RecordingInterrupts {
        mut report,
        ipis: sent,
        vms,
        quality,
    } = recording.interrupts(&paired)?;
    recording.require_choice(!report.rows.is_empty())?;
    args.sort
        .apply(|column| irqs::sort(&mut report, &vms, column))?;
    let (names, quality) = (host.names(), &quality);
    let answer = Answer {
        format: args.common.format,
        command: "irqs",
        inputs: &names,
        quality,
        clock: ClockUnit::of(recording.nanoseconds()),
    };
    answer.print(
        || {
            let layout = answer.layout(args.limit.rows());
            let mut text = irqs::table(&report, &vms, layout);
            let ipis = ipis::table(&sent, layout);
            if !ipis.is_empty() {
                text.push('\n');
                text.push_str(&ipis);
            }
            text.push('\n');
            text.push_str(&output::quality(&names.join(", "), quality));
            text
        },
        || irqs::document(&report, &vms, &quality.all_doubts()).with_ipis(&sent),
        |clock| irqs::csv(&report, &vms, clock),
    )
}
