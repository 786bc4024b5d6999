//! `trapline virtqueues`: what went through virtqueues, by device and queue.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use render::ClockUnit;
use render::virtqueues;
use session::RecordingVirtqueues;

use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::options::{Common, GuestArgs, RowLimit, RowSort};
use crate::output;

/// `trapline virtqueues`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct VirtqueuesArgs {
    #[command(flatten)]
    guests: GuestArgs,

    /// Read where the VM's devices are from FILE, the output of 'info mtree' in QEMU's monitor. It names the
    /// registers by which a guest notifies a device.
    #[arg(long, value_name = "FILE")]
    mtree: Option<PathBuf>,

    /// Show all columns, for terminals wider than 80 columns.
    #[arg(long)]
    wide: bool,

    #[command(flatten)]
    limit: RowLimit,

    #[command(flatten)]
    sort: RowSort,

    #[command(flatten)]
    common: Common,
}

const HELP: &str = "A row is a queue, or a device where events do not separate its queues, as one kind \
of events shows it. Rows of different kinds are of the same traffic: do not add them up.

Columns:
  seen      below the row: in the guest, or on the host
  by        driver: functions of the guest's virtio driver (virtqueue_add_*,
            virtqueue_get_buf, virtqueue_notify) and its devices' interrupts
            (irq_handler_entry)
            frames: net_dev_xmit and netif_receive_skb, of a guest's interfaces or of
            the host's tap devices (tapN, vnetN, macvtapN)
            requests: block_rq_issue and block_rq_complete of a guest's disks
            notifications: writes of notification registers (kvm_mmio, kvm_pio,
            kvm_fast_mmio)
            back end: a thread of the host, a vhost worker or one of the VMM's:
            buffers given back (vhost_add_used_and_signal), interrupts raised
            (irqfd_wakeup), frames taken from the guest (tun_get_user;
            not those that vhost hands over in batches)
  queue     below the row, behind the device: the driver's name for it or its
            number; of vhost the address of its structure
  added     buffers that the driver added, requests that it issued
  used      buffers that came back used, requests that were completed
  notified  how often the guest notified the device (kick)
  each      with --wide, as are numbers of frames and requests: buffers added for
            each notification
  irqs      interrupts of the device that were handled, or raised by the back end
  sent B    bytes of the frames sent or requests written by the guest
  received B
            bytes of the frames received or requests read by the guest
  -         the recording does not say it

Bytes are those of frames and requests, not of the ring, which has virtio's headers \
too. Received frames are without their 14 bytes of Ethernet header. JSON and CSV have rates as well: by the time \
from the first to the last event that is counted.

This needs 'trapline record --for virtqueues' on the host, with --agent in the guest too.

Examples:
  trapline record --for virtqueues -o net -- sleep 10
  trapline virtqueues net
  trapline virtqueues host.dat guest.dat --mtree mtree.txt
  trapline virtqueues --format json guest.dat";

/// Runs the command.
pub(crate) fn run(args: &VirtqueuesArgs) -> Result<()> {
    let beside = AccompanyingFiles {
        mtree: args.mtree.as_deref(),
        with_guests: true,
        ..AccompanyingFiles::default()
    };
    let named = args.guests.host()?;
    let inputs = named.inputs();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let host = session.host(&named.recording, &named.guests)?;
    let recording = host.input().recording()?;
    let paired = host.paired(&recording)?;
    let RecordingVirtqueues {
        mut report,
        vms,
        quality,
    } = recording.virtqueues(&paired)?;
    args.sort
        .apply(|column| virtqueues::sort(&mut report, &vms, column))?;
    let names = host.names();
    let clock = ClockUnit::of(recording.nanoseconds());
    let answer = Answer {
        format: args.common.format,
        command: "virtqueues",
        inputs: &names,
        quality: &quality,
        clock,
    };
    answer.print(
        || {
            let layout = answer.layout(args.limit.rows());
            let mut text = virtqueues::table(&report, &vms, args.wide, layout);
            text.push('\n');
            text.push_str(&output::quality(&names.join(", "), &quality));
            text
        },
        || virtqueues::document(&report, &vms, clock, &quality.all_doubts()),
        |clock| virtqueues::csv(&report, &vms, clock),
    )
}
