//! What recordings lack that were walked together.

use event::Quality;
use source::Outcome;

use super::Guest;

/// Returns what recordings lack that were walked together, the host's first ([`crate::Opened::walk_with`]). What is said of a guest's
/// names it.
pub fn quality_with(outcomes: Vec<Outcome>, guests: &[Guest<'_>]) -> Quality {
    let mut outcomes = outcomes.into_iter();
    let mut all = outcomes.next().unwrap_or_default().quality;
    for (outcome, guest) in outcomes.zip(guests) {
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
    all
}
