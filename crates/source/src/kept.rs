//! What a flight recorder says of the time that it could keep.

use doubts::DoubtKind;
use serde::Deserialize;

/// The part of trapline's own section that is about it.
#[derive(Debug, Deserialize)]
struct KeptReport {
    kept: KeptEvents,
}

/// What was asked for, and what is there.
#[derive(Debug, Deserialize)]
struct KeptEvents {
    asked_ns: u64,
    since_ns: u64,
    until_ns: u64,
    short: Vec<ShortCpu>,
}

/// A CPU whose ring held less.
#[derive(Debug, Deserialize)]
struct ShortCpu {
    cpu: u32,
    since_ns: u64,
    ring_bytes: u64,
}

/// CPUs that are listed at most.
const MOST: usize = 8;

/// Returns a doubt where less was kept than was asked for; none where all of it is there, or nothing is said of it.
pub(crate) fn less(json: &str) -> Option<DoubtKind> {
    let KeptReport { kept } = serde_json::from_str(json).ok()?;
    if kept.short.is_empty() {
        return None;
    }
    let mut rings: Vec<String> = kept.short.iter().take(MOST).map(of_cpu).collect();
    if kept.short.len() > MOST {
        let more = kept.short.len() - MOST;
        rings.push(words::plural(
            u64::try_from(more).unwrap_or(u64::MAX),
            "more CPU",
        ));
    }
    Some(DoubtKind::KeptLess {
        held_ns: kept.until_ns.saturating_sub(kept.since_ns),
        asked_ns: kept.asked_ns,
        rings,
    })
}

fn of_cpu(short: &ShortCpu) -> String {
    format!(
        "CPU {} ({} KiB, since {})",
        short.cpu,
        short.ring_bytes / 1024,
        words::duration::seconds(short.since_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_overwritten_is_said_by_cpu() {
        let json = r#"{"cost":1,"kept":{"asked_ns":5000000000,"since_ns":12500000000,"until_ns":15000000000,
            "short":[{"cpu":3,"since_ns":12500000000,"ring_bytes":262144},{"cpu":5,"since_ns":11000000000,"ring_bytes":262144}]}}"#;
        let less = less(json).expect("a doubt");
        assert_eq!(
            less.text(),
            "The recorder was asked to keep 5.000s and kept 2.500s: older events were overwritten in the rings of CPU \
             3 (256 KiB, since 12.500000000) and CPU 5 (256 KiB, since 11.000000000). More --memory keeps more."
        );
    }

    #[test]
    fn where_all_is_there_nothing_is_said() {
        assert_eq!(
            less(r#"{"kept":{"asked_ns":5,"since_ns":1,"until_ns":6,"short":[]}}"#),
            None
        );
        assert_eq!(less(""), None);
        assert_eq!(less(r#"{"kept":{"short":7}}"#), None);
    }
}
