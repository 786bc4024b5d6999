//! The longest waits for a CPU, and behind whom.

use std::cmp::Reverse;
use std::fmt::Write;

use analysis::{LongestWait, SchedReport, TaskRow};

use crate::{Layout, clean};

/// Waits that are listed.
const LISTED: usize = 5;

/// Returns who had the CPU at the end of a wait: thread and name. The idle task is called as perf calls it.
pub(crate) fn behind(wait: &LongestWait) -> Option<(i32, Option<&str>)> {
    let (tid, comm) = wait.behind.as_ref()?;
    Some(match tid {
        0 => (0, Some("swapper")),
        tid => (*tid, comm.as_deref()),
    })
}

/// Lists the longest waits, whether the task had been woken or preempted.
pub(crate) fn longest(out: &mut String, report: &SchedReport, layout: Layout) {
    let waits = report.rows.iter().filter(|row| !row.is_others());
    let waits = waits.filter_map(|row| Some((row, row.longest_wait.as_ref()?)));
    let mut waits: Vec<(&TaskRow, &LongestWait)> = waits.collect();
    waits.sort_by_key(|(_, wait)| Reverse(wait.ns));
    if waits.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nlongest waits for a CPU of 1 ms and more, and behind whom"
    );
    for (row, wait) in waits.into_iter().take(LISTED) {
        let who = match &wait.behind {
            Some((0, _)) => "while that CPU was idle".to_owned(),
            Some((tid, Some(comm))) => format!("behind {}", clean(&format!("{comm}:{tid}"))),
            Some((tid, None)) => format!("behind :{tid}"),
            None => "behind whom is not known".to_owned(),
        };
        // As --time takes it.
        let at = match layout.nanoseconds {
            true => words::duration::seconds_us(wait.since / 1000),
            false => wait.since.to_string(),
        };
        let _ = writeln!(
            out,
            "  {:>9}  {} {who}, from {at}",
            layout.time(wait.ns),
            clean(&format!("{}:{}", row.comm, row.tid))
        );
    }
}
