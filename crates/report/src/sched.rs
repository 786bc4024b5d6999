//! Scheduling.

use render::{perf_stat, sched, sched_page};

use crate::Recording;
use crate::out::{PageWriter, TableLabel};

/// Writes the section.
pub(crate) fn section(recording: &Recording<'_>, out: &mut PageWriter) {
    let picture = recording.picture;
    counts(recording, out);
    let Some(report) = &picture.sched else {
        out.nothing(match recording.is_printed() {
            true => "None of these tables is of scheduling.",
            false if recording.is_filtered() => {
                "No sched_switch event passes the filters, so nothing can be said about scheduling here."
            }
            false if picture.recorded("sched_switch") == Some(true) => {
                "sched_switch was recorded and did not occur, so there is nothing to say about scheduling."
            }
            false => {
                "There are no sched_switch events, so nothing can be said about scheduling. Record with \
                 'trapline record --for sched'."
            }
        });
        return;
    };
    let first = sched::summary(report, recording.layout());
    out.paragraph(first.lines().next().unwrap_or_default());
    let tasks = recording.invocation.command("sched", "--sort max");
    let cpus = recording.invocation.command("sched", "--by cpu");
    let histogram = recording.invocation.command("sched", "--histogram");
    let label = |name, caption, command| TableLabel {
        name,
        caption,
        command,
    };
    if let Some(note) = sched::note(report) {
        out.paragraph(note);
    }
    let table = label("sched-tasks", "delays and run times of tasks", &tasks);
    out.table(recording, table, |frame| sched_page::html(report, frame));
    let table = label("sched-preempted", "who preempted whom", &tasks);
    out.table(recording, table, |frame| {
        sched_page::preempted_html(report, frame)
    });
    if !report.cpus.is_empty() {
        let table = label("sched-cpus", "CPUs", &cpus);
        out.table(recording, table, |frame| {
            sched_page::cpus_html(report, frame)
        });
    }
    let table = label(
        "sched-delays",
        "how long tasks waited for a CPU",
        &histogram,
    );
    out.table(recording, table, |frame| {
        sched_page::delays_html(report, frame)
    });
    let table = label("sched-work", "what kworkers ran", &tasks);
    out.table(recording, table, |frame| {
        sched_page::work_html(report, frame)
    });
}

/// Writes what perf stat counted.
fn counts(recording: &Recording<'_>, out: &mut PageWriter) {
    let picture = recording.picture;
    if picture.counts.is_empty() {
        return;
    }
    let rows = analysis::ratios(picture);
    let command = recording.invocation.command("report", "");
    let caption = format!("what {} counted", picture.counted_by.name());
    let label = TableLabel {
        name: "counts",
        caption: &caption,
        command: &command,
    };
    out.table(recording, label, |frame| perf_stat::html(&rows, frame));
}
