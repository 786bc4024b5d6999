//! What recordings lack that were walked together.

use event::Quality;
use source::WalkOutcome;

use super::Paired;

impl Paired<'_> {
    /// Returns what recordings lack that were walked together ([`crate::Opened::walk_with`]), the host's first. What is said of a guest's
    /// names it. What could not be taken of the host's folder is a warning.
    pub fn quality(&self, outcomes: Vec<WalkOutcome>) -> Quality {
        let mut outcomes = outcomes.into_iter();
        let mut all = outcomes.next().unwrap_or_default().quality;
        for (outcome, guest) in outcomes.zip(&self.guests) {
            let mut own = outcome.quality;
            // Where parts of the guest's recording end does not bound what the host's says.
            own.uneven_from = None;
            for warning in &mut own.warnings {
                *warning = format!("{}: {warning}", guest.name());
            }
            if own.lost_events > 0 {
                own.warn(format!(
                    "{}: {} lost while the guest was recorded.",
                    guest.name(),
                    words::plural(own.lost_events, "event")
                ));
            }
            all.merge(own);
        }
        for sentence in &self.left_out {
            all.warn(sentence.clone());
        }
        all
    }
}
