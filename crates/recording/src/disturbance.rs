//! How probes disturb the loops that they are in.

use record::cost::EventCosts;
use record::{RecordSummary, RecordedCount};
use words::{duration, share};

/// From this part of a CPU's time on it is said.
const SHARE: f64 = 0.05;
/// Beyond this what is left of the time is less than what the cost is uncertain by.
const ALL: f64 = 0.95;

/// Returns a sentence for each probe that took a visible part of a CPU's time: how often it was run into, and how often
/// the code would have run without it, where one thread runs it again and again.
pub(crate) fn sentences(summary: &RecordSummary, cost: &EventCosts, seconds: f64) -> Vec<String> {
    let probes = summary.events.iter().filter(|one| one.probe.is_some());
    probes
        .filter_map(|one| sentence(one, cost.of(one), seconds))
        .collect()
}

fn sentence(event: &RecordedCount, each_ns: u64, seconds: f64) -> Option<String> {
    let (cpu, count) = event.by_cpu.iter().max_by_key(|(_, count)| *count)?;
    let per_s = *count as f64 / seconds.max(1e-3);
    let taken = per_s * each_ns as f64 / 1e9;
    if taken < SHARE {
        return None;
    }
    let without = match taken < ALL {
        true => format!("some {}/s", words::large(per_s / (1.0 - taken))),
        false => "many times as often".to_owned(),
    };
    Some(format!(
        "{}: {}/s on CPU {cpu}, {} each, {} of its time: a loop around it runs {without} without the probe.",
        event.name,
        words::large(per_s),
        duration::human(each_ns),
        share::rough(taken.min(1.0)),
    ))
}

#[cfg(test)]
mod tests {
    use record::ProbeKind;

    use super::*;

    fn said(count: u64, probe: Option<ProbeKind>) -> Vec<String> {
        let summary = RecordSummary {
            events: vec![RecordedCount {
                name: "trapline_1:netdev_rxq_recv".to_owned(),
                probe,
                count,
                by_cpu: vec![(2, 10), (3, count)],
                ..RecordedCount::default()
            }],
            ..RecordSummary::default()
        };
        let cost = EventCosts {
            event_ns: 700,
            uprobe_ns: Some(10_000),
            ..EventCosts::default()
        };
        sentences(&summary, &cost, 1.0)
    }

    #[test]
    fn a_loop_that_polls_runs_slower_by_what_a_hit_costs() {
        // 52000 hits of 10 us leave 0.48 s for what made them.
        let loops = said(52_000, Some(ProbeKind::User));
        assert_eq!(loops.len(), 1, "{loops:?}");
        assert!(loops[0].contains("52 % of its time"), "{loops:?}");
        assert!(loops[0].contains("108"), "{loops:?}");
    }

    #[test]
    fn what_is_seldom_or_no_probe_is_not_said() {
        assert!(said(1_000, Some(ProbeKind::User)).is_empty());
        assert!(said(52_000, None).is_empty());
        let all = said(200_000, Some(ProbeKind::User));
        assert!(all[0].contains("many times"), "{all:?}");
    }
}
