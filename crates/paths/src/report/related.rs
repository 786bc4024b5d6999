//! What can be said of a path when the others are known, and what recording it cost.

use super::data::{ClearedPath, PathReport};

/// The path of a switch's own work, which is a part of the way of a packet.
const FORWARDING: &str = "forwarding";
/// Paths that a packet goes which such a switch has passed on: it raises the interrupt that an irqfd is for.
const BEHIND_A_SWITCH: [&str; 3] = ["packet", "irqfd", "device-irq"];
/// It is not at fault if what slow ones lose is at least so many times as much as it took at most.
const TIMES: u64 = 4;

/// Completes what [`crate::Paths::report`] returned, when all of it is there. `event_ns` is what recording an event
/// cost the thread that made it, where the recorder measured that.
pub fn complete(reports: &mut [PathReport], event_ns: Option<u64>) {
    for report in &mut *reports {
        report.recording_ns = event_ns.map(|ns| recording_ns(report, ns));
    }
    let cleared = reports.iter().find_map(|one| cleared(reports, one));
    let switch = reports.iter_mut().find(|one| one.name == FORWARDING);
    if let Some(switch) = switch {
        switch.clears = cleared;
    }
}

/// Returns what the events of the steps had of the mean total. An event is written after its time was taken, so the
/// last one is not in it.
fn recording_ns(report: &PathReport, event_ns: u64) -> u64 {
    let stages = report.stages.iter().map(|stage| stage.stats.count());
    let events: u64 = stages.fold(0, u64::saturating_add);
    let all = u128::from(events) * u128::from(event_ns);
    let mean = all / u128::from(report.count.max(1));
    u64::try_from(mean)
        .unwrap_or(u64::MAX)
        .min(report.total.mean())
}

/// Returns what a switch is not at fault for, if a path is one behind it and has slow instances.
fn cleared(reports: &[PathReport], path: &PathReport) -> Option<ClearedPath> {
    let switch = reports.iter().find(|one| one.name == FORWARDING)?;
    let slow = path.slow.as_ref().filter(|slow| slow.count > 0)?;
    let slow_by_ns = slow.mean_ns.saturating_sub(slow.fast_mean_ns);
    let longest_ns = switch.total.max();
    let behind = BEHIND_A_SWITCH.contains(&path.name.as_str());
    let is_clear = switch.count > 0 && longest_ns.saturating_mul(TIMES) <= slow_by_ns;
    (behind && is_clear).then(|| ClearedPath {
        path: path.name.clone(),
        slow_by_ns,
        longest_ns,
    })
}
