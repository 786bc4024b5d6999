//! What went through virtqueues.

use analysis::{Virtqueues, VirtqueuesReport};
use event::{Isa, Quality};
use model::Vm;

use crate::{Error, GuestPairing, OpenRecording, RequiredEvents};

/// What a recording says of virtqueues.
#[derive(Debug)]
pub struct RecordingVirtqueues {
    /// By VM, device and queue.
    pub report: VirtqueuesReport,
    /// The VMs whose devices they are of.
    pub vms: Vec<Vm>,
    /// What has to be known of the recording.
    pub quality: Quality,
}

/// What is required of a host's recording, or a guest's.
const REQUIRED: RequiredEvents<'static> = RequiredEvents {
    what: "virtqueues",
    events: &["net_dev_xmit", "netif_receive_skb"],
    called: Some("kvm_mmio, net_dev_xmit and netif_receive_skb"),
    stacks: false,
    otherwise: "",
};

impl OpenRecording<'_> {
    /// Returns what went through virtqueues, as the host saw it and as guests did whose recordings are given.
    ///
    /// # Errors
    ///
    /// No event was recorded that says anything of them, or none of what the filters choose.
    pub fn virtqueues(&self, paired: &GuestPairing<'_>) -> Result<RecordingVirtqueues, Error> {
        let mut question = self.question(paired);
        let guests = paired.guests.iter().zip(1..);
        let guests = guests.filter_map(|(guest, machine)| {
            let (_, tid) = guest.vcpus().first()?;
            Some((machine, *tid))
        });
        let queues = question.add(Virtqueues::new(guests));
        let answers = question.walk();
        let walked = answers.walked();
        let queues = answers.take(queues);
        let isa = match self.header().arch.as_deref() {
            Some("aarch64" | "arm64") => Some(Isa::Arm64),
            // Devices do not depend on which of x86's it is.
            Some("x86_64" | "i686") => Some(Isa::Vmx),
            _ => queues.isa(),
        };
        let report = queues.report(&walked, &self.session.devices().names(isa));
        self.require(report.recorded, &REQUIRED)?;
        self.require_choice(!report.rows.is_empty())?;
        Ok(RecordingVirtqueues {
            report,
            vms: walked.machine.vms(),
            quality: answers.quality.clone(),
        })
    }
}
