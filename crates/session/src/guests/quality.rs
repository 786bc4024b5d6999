//! What has to be known of recordings that were walked together.

use doubts::DoubtKind;
use event::Quality;
use source::WalkOutcome;

use super::GuestPairing;

impl GuestPairing<'_> {
    /// Returns what has to be known of recordings that were walked together ([`crate::OpenRecording::walk_with`]), the
    /// host's first. Doubts about a guest's name it. What could not be taken of the host's folder is one.
    pub fn quality(&self, outcomes: Vec<WalkOutcome>) -> Quality {
        let mut outcomes = outcomes.into_iter();
        let mut all = outcomes.next().unwrap_or_default().quality;
        for (outcome, guest) in outcomes.zip(&self.guests) {
            let mut own = outcome.quality;
            // Where parts of the guest's recording end does not bound what the host's says.
            own.uneven_from = None;
            if own.lost_events > 0 {
                own.raise(DoubtKind::GuestEventsLost {
                    events: own.lost_events,
                });
            }
            own.doubts.name_input(guest.name());
            all.merge(own);
        }
        for text in &self.left_out {
            all.raise(DoubtKind::GuestLeftOut { text: text.clone() });
        }
        all
    }
}
