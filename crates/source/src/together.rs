//! What trapline's own recorder says of recordings that were made together.

use serde::Deserialize;

use crate::header::JointRecordings;

/// The part of trapline's own section that is about it.
#[derive(Debug, Deserialize)]
struct JointReport {
    together: JointSide,
}

#[derive(Debug, Deserialize)]
struct JointSide {
    own: String,
    #[serde(default)]
    guests: Vec<JointGuest>,
    host: Option<String>,
    offset_ns: Option<i64>,
    #[serde(default)]
    clocks: Vec<ComparedClocks>,
}

#[derive(Debug, Deserialize)]
struct ComparedClocks {
    round_ns: u64,
}

/// How long the answers may have taken that an offset was found by: half of that is what it is wrong by at most, and
/// who looks near it looks two milliseconds around (`session`). Without one it is looked for everywhere.
const LONGEST_NS: u64 = 4_000_000;

#[derive(Debug, Deserialize)]
struct JointGuest {
    id: String,
}

/// Returns what is said; nothing where it is damaged, or none of trapline's recordings.
pub(crate) fn reported(json: &str) -> JointRecordings {
    let mut reported = JointRecordings::default();
    if let Ok(JointReport { together }) = serde_json::from_str(json) {
        reported.own = number(&together.own);
        reported.guests = together
            .guests
            .iter()
            .filter_map(|one| number(&one.id))
            .collect();
        reported.host = together.host.as_deref().and_then(number);
        let mut rounds = together.clocks.iter().map(|one| one.round_ns);
        reported.offset_ns = together
            .offset_ns
            .filter(|_| rounds.all(|round_ns| round_ns <= LONGEST_NS));
    }
    reported
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_guests_and_a_guests_host_are_known() {
        let host = reported(
            r#"{"cost":1,"together":{"own":"0xffffffffffffffff","guests":[{"id":"0x2a","name":"a"},{"id":"none","name":"b"}]}}"#,
        );
        assert_eq!((host.own, host.host), (Some(u64::MAX), None));
        assert_eq!((host.guests, host.offset_ns), (vec![42], None));
        let guest = reported(
            r#"{"together":{"own":"0x2a","host":"0x1","offset_ns":-7,"clocks":[{"round_ns":4000000,"x":1}]}}"#,
        );
        assert_eq!((guest.own, guest.host), (Some(42), Some(1)));
        assert_eq!((guest.guests.len(), guest.offset_ns), (0, Some(-7)));
    }

    #[test]
    fn what_was_measured_badly_is_not_where_one_looks() {
        let guest = reported(
            r#"{"together":{"own":"0x2a","offset_ns":-7,"clocks":[{"round_ns":4000},{"round_ns":4000001}]}}"#,
        );
        assert_eq!((guest.own, guest.offset_ns), (Some(42), None));
    }

    #[test]
    fn where_nothing_is_said_nothing_is_known() {
        for text in [
            "",
            "{}",
            r#"{"together":7}"#,
            r#"{"together":{"own":5}}"#,
            r#"{"together":{}}"#,
        ] {
            assert_eq!(reported(text), JointRecordings::default(), "{text}");
        }
    }
}
