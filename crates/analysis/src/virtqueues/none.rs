//! What was recorded and did not happen to a device.

use super::device_names::is_tap;
use super::fields::CountedAlike::{self, Completions, Issues, Receives, Sends};
use super::row::{VirtqueueRow, VirtqueueSource, VirtqueueTraffic};

/// Returns a row of requests or frames in which what was recorded, and did not happen to this device, is none.
pub(super) fn with_none(
    mut row: VirtqueueRow,
    recorded: impl Fn(CountedAlike) -> bool,
) -> VirtqueueRow {
    let fill = |traffic: &mut Option<VirtqueueTraffic>, recorded: bool| {
        if recorded {
            traffic.get_or_insert(VirtqueueTraffic {
                count: 0,
                bytes: Some(0),
            });
        }
    };
    match row.source {
        VirtqueueSource::Requests => {
            row.added = row.added.or(recorded(Issues).then_some(0));
            row.used = row.used.or(recorded(Completions).then_some(0));
            // A request is counted either way when it is issued, else when it is completed.
            for way in [&mut row.sent, &mut row.received] {
                fill(way, recorded(Issues) || recorded(Completions));
            }
        }
        VirtqueueSource::Frames => {
            // What a tap device sends the guest receives.
            let [sent, received] = match is_tap(&row.device) {
                true => [Receives, Sends],
                false => [Sends, Receives],
            };
            fill(&mut row.sent, recorded(sent));
            fill(&mut row.received, recorded(received));
        }
        _ => {}
    }
    row
}
