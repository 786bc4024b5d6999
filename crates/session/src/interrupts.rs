//! The interrupts of vCPUs, and what handled them in their guests.

use analysis::{GuestIrqs, Ipis, IpisReport, Irqs, IrqsReport, Recorder};
use event::Quality;
use model::Vm;
use paths::Paths;

use crate::picture::has_agents;
use crate::{Error, GuestPairing, OpenRecording, RequiredEvents};

/// What a recording says of interrupts.
#[derive(Debug)]
pub struct RecordingInterrupts {
    /// By vCPU and vector.
    pub report: IrqsReport,
    /// Those that vCPUs send each other, by how far their CPUs are apart.
    pub ipis: IpisReport,
    /// The VMs whose vCPUs they are.
    pub vms: Vec<Vm>,
    /// What has to be known of the recordings.
    pub quality: Quality,
}

impl OpenRecording<'_> {
    /// Returns the interrupts of the vCPUs, with what handled them where guests' recordings are given.
    ///
    /// # Errors
    ///
    /// No interrupts were recorded.
    pub fn interrupts(&self, paired: &GuestPairing<'_>) -> Result<RecordingInterrupts, Error> {
        let guests = &paired.guests;
        let mut question = self.question(paired);
        let irqs = question.add(Irqs::new());
        let mut follower = Paths::new(paths::builtin("ipi").into_iter().collect());
        follower.only(self.instances());
        self.locate(&mut follower);
        let ipis = question.add(Ipis::new(&mut follower).on_nodes(&self.nodes()));
        question.add(follower);
        // Interrupts that the recorder's agent in a guest causes are not the guest's.
        question.add(Recorder::new(has_agents(self.header()), self.window()));
        let vcpus = guests.iter().zip(1..).flat_map(|(guest, machine)| {
            let vcpus = guest.vcpus().iter();
            vcpus.map(move |(number, tid)| (machine, *number, *tid))
        });
        let handlers =
            (!guests.is_empty()).then(|| question.add(GuestIrqs::new(self.window(), vcpus)));
        let answers = question.walk();
        let walked = answers.walked();
        let mut report = answers.take(irqs).report(&walked);
        let mut recorded = report.recorded;
        if let Some(handlers) = handlers {
            let handlers = answers.take(handlers);
            recorded |= handlers.has_handlers();
            report.with_guests(&handlers, &walked);
        }
        self.require(
            recorded,
            &RequiredEvents {
                what: "interrupts",
                events: &[
                    "kvm_apic_accept_irq",
                    "kvm_inj_virq",
                    "vgic_update_irq_pending",
                ],
                ..RequiredEvents::default()
            },
        )?;
        Ok(RecordingInterrupts {
            report,
            ipis: answers.take(ipis).report(),
            vms: walked.machine.vms(),
            quality: answers.quality.clone(),
        })
    }
}
