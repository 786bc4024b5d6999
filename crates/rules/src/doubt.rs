//! How far a recording can be believed where events are missing.

use analysis::Turns;
use words::duration::seconds_us;

use crate::evidence::{Evidence, Id, ShowCommand, says};
use crate::{Case, TimeWindow};

/// What a finding is worth at most where events are missing: others that are missing as well may explain it.
const UNSURE: f64 = 0.45;

/// One in so many that does not fit: fewer are what the beginning and the end of a recording leave.
const ONE_IN: u64 = 500;
/// A share of fewer waits than this is chance.
const WAITS: u64 = 10;

/// And so many at least.
const AT_LEAST: u64 = 3;

impl Case<'_> {
    /// Returns why what seems to take long, or not to happen, may be events that are missing; a full sentence.
    pub(crate) fn doubt(&self) -> Option<Evidence> {
        let told = &self.picture.continuity;
        let many = |turns: &Turns| turns.missed >= AT_LEAST && turns.missed > turns.all / ONE_IN;
        let events = self.picture.info.events.iter();
        let all: u64 = events.map(|event| event.count).sum();
        let lost = self.picture.quality.lost_events;
        if lost > 0 && lost > all / 100 {
            return Some(says!(
                "The recorder lost {lost} events and kept {all}: that may explain part of this.",
                lost = lost,
                all = all,
            ));
        }
        if many(&told.exits) {
            return Some(says!(
                "{missed} of {all} exits are followed by another without an entry between: events are missing, which may explain \
                 part of this.",
                missed = told.exits.missed,
                all = told.exits.all,
            ));
        }
        if many(&told.chain) {
            return Some(says!(
                "{missed} of {all} switches leave another task than the one before had switched to: events are missing, which \
                 may explain part of this.",
                missed = told.chain.missed,
                all = told.chain.all,
            ));
        }
        if let Some(cpu) = told.absent_cpus.first() {
            return Some(says!(
                "Tasks went to CPU {cpu}, of which nothing was recorded: what happened there is unknown, which may explain part \
                 of this.",
                cpu = Id(u64::from(*cpu)),
            ));
        }
        None
    }

    /// Returns how sure a finding is, given how well the recording fits together.
    pub(crate) fn sure(&self, confidence: f64) -> f64 {
        match self.doubt() {
            Some(_) => confidence.min(UNSURE),
            None => confidence,
        }
    }

    /// Returns whether vCPUs waited for a CPU so often that a share of their time means something.
    pub(crate) fn waits_often(&self) -> bool {
        let rows = self.picture.vcpus.iter().flat_map(|report| &report.rows);
        rows.map(|row| row.waits.count()).sum::<u64>() >= WAITS
    }

    /// Returns the command that shows what happened in a time.
    pub(crate) fn command(&self, from: u64, to: u64) -> ShowCommand {
        let name = self.picture.names.first().map_or("REC", String::as_str);
        let command = format!(
            "trapline events {name} --time {},{}",
            seconds_us(from / 1_000),
            seconds_us(to.div_ceil(1_000))
        );
        let window = TimeWindow {
            start_ns: from,
            end_ns: to,
        };
        ShowCommand { command, window }
    }

    /// Returns whether so much was lost, or cut off, that what did not happen may have.
    pub(crate) fn doubtful(&self) -> bool {
        let quality = &self.picture.quality;
        let counts = self.picture.info.events.iter();
        let events: u64 = counts.map(|kind| kind.count).sum();
        // One in a hundred: then about every other chain of a dozen events and more has a gap in ten.
        quality.lost_events.saturating_mul(100) > events
    }
}
