//! The longest waits for a CPU, and behind whom.

use std::cmp::Reverse;
use std::fmt::Write;

use analysis::{LongestWait, SchedReport, TaskRow};
use words::counted;

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

/// Says that a mean is not of all waits, where it is not: who multiplies it by the switches gets another time than the
/// waits have together, since perf counts no delay that began before a task's first switch or that no switch ended.
pub(crate) fn beyond_delays(out: &mut String, report: &SchedReport, layout: Layout) {
    let differs = |row: &&TaskRow| {
        let waits = u128::from(row.woken_waits.total()) + u128::from(row.preempted.total());
        let delays = u128::from(row.delays.total());
        // Less than the last of four digits is nothing that the table shows.
        waits > 0 && waits.abs_diff(delays) * 2_000 > waits
    };
    let shown = report.rows.iter().take(layout.limit);
    let tasks = shown.filter(differs).count();
    if tasks > 0 {
        let tasks = counted(tasks, "task", "tasks");
        let text = format!(
            "In {tasks} the delays of 'mean' and 'max', as 'perf sched latency' counts them, are not the same as the \
             waits of 'woken' and 'preempted'."
        );
        for line in textwrap::wrap(&text, layout.width.max(40)) {
            out.push_str(&line);
            out.push('\n');
        }
    }
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
