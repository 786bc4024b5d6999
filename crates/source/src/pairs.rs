//! What trapline's own recorder says of pairs: events of which it wrote a part on purpose.

use doubts::DoubtKind;
use serde::Deserialize;

/// The part of trapline's own section that is about them.
#[derive(Debug, Deserialize)]
struct PairsReport {
    pairs: Vec<PairReport>,
}

/// A pair, as `record` has it (`PairSummary`).
#[derive(Debug, Deserialize)]
struct PairReport {
    first: String,
    second: String,
    least_ns: u64,
    firsts: u64,
    written: u64,
    unseen: u64,
    seen_ns: u64,
    recorded_ns: u64,
}

/// Systems whose events analyses count and follow.
const COUNTED: [&str; 3] = ["kvm:", "kvmmmu:", "sched:"];

/// Pairs that are read at most: each becomes a path.
const MOST: usize = 16;

fn reported(json: &str) -> impl Iterator<Item = PairReport> {
    let report: Option<PairsReport> = serde_json::from_str(json).ok();
    let pairs = report.map(|report| report.pairs).unwrap_or_default();
    pairs.into_iter().take(MOST)
}

/// Returns a doubt for each pair.
pub(crate) fn doubts(json: &str) -> Vec<DoubtKind> {
    reported(json).map(doubt).collect()
}

/// Returns the names of both events of each pair.
pub(crate) fn names(json: &str) -> Vec<(String, String)> {
    reported(json)
        .map(|pair| (pair.first, pair.second))
        .collect()
}

fn doubt(pair: PairReport) -> DoubtKind {
    let events = match pair.least_ns {
        0 => pair.first.clone(),
        _ => format!("{} and {}", pair.first, pair.second),
    };
    let mut kept = match pair.least_ns {
        0 => format!("each thread's last before {}", pair.second),
        least => format!("pairs of both of {} or more", words::duration::human(least)),
    };
    // A recorder that did not end in order has not said.
    if pair.firsts > 0 {
        kept.push_str(&format!(" ({} of {})", pair.written, pair.firsts));
    }
    if pair.seen_ns < pair.recorded_ns {
        let share = pair.seen_ns as f64 / pair.recorded_ns as f64;
        kept.push_str(&format!(
            ", looking in windows of {} of the time in all; {} of the second event came outside of them",
            words::share::rough(share),
            pair.unseen,
        ));
    }
    let is_counted = |name: &str| COUNTED.iter().any(|system| name.starts_with(system));
    match is_counted(&pair.first) || pair.least_ns > 0 && is_counted(&pair.second) {
        true => DoubtKind::EventsPaired { events, kept },
        false => DoubtKind::ExtrasPaired { events, kept },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(first: &str, least_ns: u64, seen_ns: u64) -> Vec<DoubtKind> {
        let json = format!(
            r#"{{"cost":{{}},"pairs":[{{"first":"{first}","second":"kvm:kvm_entry","least_ns":{least_ns},
            "firsts":9224453,"seconds":130,"written":120,"unseen":10,"short":0,"seen_ns":{seen_ns},
            "recorded_ns":1000}}]}}"#
        );
        doubts(&json)
    }

    #[test]
    fn what_is_left_out_of_an_event_is_said() {
        let all = said("kvm:kvm_exit", 1_000_000, 1000);
        let [one @ DoubtKind::EventsPaired { .. }] = all.as_slice() else {
            panic!("{all:?}");
        };
        let text = one.text();
        assert!(text.contains("kvm:kvm_exit and kvm:kvm_entry"), "{text}");
        assert!(text.contains("120 of 9224453"), "{text}");
    }

    #[test]
    fn windows_are_said() {
        let all = said("trapline_7:poll", 0, 30);
        let [one @ DoubtKind::ExtrasPaired { .. }] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert!(one.text().contains("3.0 % of the time"), "{}", one.text());
        assert!(doubts("{}").is_empty() && doubts("no JSON").is_empty());
    }
}
