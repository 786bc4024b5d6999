//! What the processor counted of vCPUs.

use analysis::{Counters, CountersReport};
use event::Quality;
use model::Vm;

use crate::{Error, GuestPairing, OpenRecording};

/// What a recording says of counters.
#[derive(Debug)]
pub struct RecordingCounters {
    /// By vCPU.
    pub report: CountersReport,
    /// The VMs whose vCPUs they are.
    pub vms: Vec<Vm>,
    /// What has to be known of the recording.
    pub quality: Quality,
}

impl OpenRecording<'_> {
    /// Returns what the processor counted of the vCPUs, or of the threads that were counted.
    ///
    /// # Errors
    ///
    /// No counters were recorded, or none of what the filters choose.
    pub fn counters(&self) -> Result<RecordingCounters, Error> {
        let paired = GuestPairing::default();
        let mut question = self.question(&paired);
        let counters = question.add(Counters::new(self.window()));
        let answers = question.walk();
        let walked = answers.walked();
        let report = answers.take(counters).report(&walked);
        if report.rows.is_empty() && !self.session.options().filters.any() {
            return Err(self.missing(
                "no counters were recorded: 'trapline record --counters' counts cycles, instructions and cache misses \
                 of each vCPU"
                    .to_owned(),
            ));
        }
        self.require_choice(!report.rows.is_empty())?;
        Ok(RecordingCounters {
            report,
            vms: walked.machine.vms(),
            quality: answers.quality.clone(),
        })
    }
}
