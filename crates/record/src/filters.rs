//! Which records of an event are wanted, as expressions over its fields.
//!
//! Source: `Documentation/trace/events.rst`, "Event filtering".

use crate::tracefs::Tracepoint;

/// Bytes of a filter that the kernel takes at most: a page, with its end (`perf_event_set_filter`).
const MOST: usize = 4095;

/// Fields that name a thread to which something is done: switched from or to, woken, moved, forked
/// (`include/trace/events/sched.h`).
const OF_OTHERS: [&str; 5] = ["prev_pid", "next_pid", "pid", "child_pid", "parent_pid"];

/// Returns a filter that takes what threads do, and what the scheduler does to them; `None` without threads, and where
/// the kernel would not take so long a one.
pub(crate) fn of_threads(tracepoint: &Tracepoint, threads: &[i32]) -> Option<String> {
    let mut parts = vec![threads_filter("common_pid", threads)?];
    if tracepoint.system == "sched" {
        let fields = OF_OTHERS.iter().filter(|name| tracepoint.has_field(name));
        parts.extend(fields.filter_map(|name| threads_filter(name, threads)));
    }
    let filter = parts.join("||");
    (filter.len() <= MOST).then_some(filter)
}

/// Returns a filter that takes records in which a field is one of these threads; `None` where the kernel would not take
/// so long a one, and all are recorded.
pub(crate) fn threads_filter(field: &str, threads: &[i32]) -> Option<String> {
    let mut sorted = threads.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges: Vec<(i32, i32)> = Vec::new();
    for tid in sorted {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(tid) => *last = tid,
            _ => ranges.push((tid, tid)),
        }
    }
    let parts = ranges.iter().map(|(first, last)| match last - first {
        0 => format!("{field}=={first}"),
        _ => format!("({field}>={first}&&{field}<={last})"),
    });
    let filter = parts.collect::<Vec<_>>().join("||");
    (!filter.is_empty() && filter.len() <= MOST).then_some(filter)
}

/// Returns a filter that takes what both take.
pub(crate) fn joined(one: Option<&str>, other: Option<String>) -> Option<String> {
    match (one, other) {
        (Some(one), Some(other)) => Some(format!("({one})&&({other})")),
        (one, other) => one.map(str::to_owned).or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracepoint(system: &str, fields: &[&str]) -> Tracepoint {
        let lines = fields
            .iter()
            .map(|name| format!("\tfield:pid_t {name};\toffset:8;\tsize:4;\tsigned:1;\n"));
        Tracepoint {
            system: system.to_owned(),
            name: "one".to_owned(),
            id: 1,
            format: lines.collect::<String>().into_bytes(),
        }
    }

    #[test]
    fn a_thread_is_seen_doing_and_being_switched() {
        let switch = tracepoint("sched", &["common_pid", "prev_pid", "next_pid"]);
        let filter = of_threads(&switch, &[7]);
        assert_eq!(
            filter.as_deref(),
            Some("common_pid==7||prev_pid==7||next_pid==7")
        );
        // Other events' fields of these names are something else.
        let signal = tracepoint("signal", &["common_pid", "pid"]);
        assert_eq!(of_threads(&signal, &[7]).as_deref(), Some("common_pid==7"));
        assert_eq!(of_threads(&switch, &[]), None);
    }

    #[test]
    fn threads_in_a_row_are_one_range() {
        let filter = threads_filter("common_pid", &[12, 10, 11, 20, 10]).expect("a filter");
        assert_eq!(filter, "(common_pid>=10&&common_pid<=12)||common_pid==20");
        assert_eq!(threads_filter("common_pid", &[]), None);
        let many: Vec<i32> = (0..1000).map(|n| n * 2).collect();
        assert_eq!(threads_filter("common_pid", &many), None);
    }

    #[test]
    fn two_filters_take_what_both_take() {
        assert_eq!(joined(None, None), None);
        assert_eq!(
            joined(Some("a==1||b==2"), None).as_deref(),
            Some("a==1||b==2")
        );
        let both = joined(Some("a==1||b==2"), Some("common_pid==7".to_owned()));
        assert_eq!(both.as_deref(), Some("(a==1||b==2)&&(common_pid==7)"));
    }
}
