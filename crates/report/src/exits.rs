//! Exits.

use analysis::{ExitTable, ExitsReport};
use render::exits;

use crate::Recording;
use crate::out::{PageWriter, TableLabel};

/// Writes the section.
pub(crate) fn section(recording: &Recording<'_>, out: &mut PageWriter) {
    let picture = recording.picture;
    let with_rows = picture.exits.iter().filter(|one| !one.rows.is_empty());
    let mut with_rows: Vec<&ExitsReport> = with_rows.collect();
    if with_rows.is_empty() {
        out.nothing(match recording.is_printed() {
            true => "None of these tables is of exits.",
            false if recording.is_filtered() => {
                "No kvm_exit event passes the filters, so nothing can be said about exits here."
            }
            false if picture.recorded("kvm_exit") == Some(true) => {
                "kvm_exit was recorded and did not occur, so there is nothing to say about exits."
            }
            false => {
                "There are no kvm_exit events, so nothing can be said about exits. Record on the host with \
                 'trapline record --for exits'."
            }
        });
        return;
    }
    let mut split = None;
    let is_evidence = |report: &ExitsReport| recording.rests_on_exits(report.table.name());
    let rests_on_some = picture.exits.iter().any(is_evidence);
    with_rows.sort_by_key(|report| !is_evidence(report));
    for report in with_rows {
        let which = report.table.name();
        let caption = caption(report.table);
        out.part(caption, is_evidence(report) || !rests_on_some);
        out.paragraph(&exits::summary(picture.isa, report, recording.layout()));
        let own = format!("--event {which} --sort time --wide");
        let command = recording.invocation.command("exits", &own);
        let label = TableLabel {
            name: &format!("exits-{which}"),
            caption,
            command: &command,
        };
        out.table(recording, label, |frame| {
            exits::html(picture.isa, report, frame)
        });
        if let Some(note) = exits::note(report) {
            out.paragraph(note);
        }
        out.end_part();
        split = split.or(report.seen);
    }
    if let Some(seen) = split
        && !seen.userspace_exits
        && !seen.switches
    {
        out.paragraph(
            "Where that time went is unknown: there are no kvm_userspace_exit or sched_switch events.",
        );
    }
    guests(recording, out);
    let none = picture.exits.iter().filter(|one| one.rows.is_empty());
    let none: Vec<&str> = none.map(|one| one.table.name()).collect();
    if !none.is_empty() {
        out.paragraph(&format!("Without any: {}.", none.join(", ")));
    }
}

/// Returns what a table of exits is of.
fn caption(table: ExitTable) -> &'static str {
    match table {
        ExitTable::Vmexit => "exits by reason, and where their time went",
        ExitTable::Ioport => "accesses to I/O ports",
        ExitTable::Mmio => "memory-mapped I/O",
        ExitTable::Msr => "accesses to model-specific registers",
    }
}

/// Writes which of the guests' tasks, interrupts and softirqs made them, where guests' recordings say it.
fn guests(recording: &Recording<'_>, out: &mut PageWriter) {
    let picture = recording.picture;
    let tables = picture.guest_exits.iter();
    for report in tables.filter(|one| !one.rows.is_empty()) {
        let which = report.table.name();
        let by = match report.rows.iter().any(|row| row.vm.is_some()) {
            true => "vm,task",
            false => "task",
        };
        let own = format!("--event {which} --by {by} --sort time --wide");
        let command = recording.invocation.command_with_guests("exits", &own);
        let label = TableLabel {
            name: &format!("exits-{which}-guest"),
            caption: match report.table {
                ExitTable::Vmexit => "what guests did that made the exits",
                ExitTable::Ioport => "what guests did that accessed I/O ports",
                ExitTable::Mmio => "what guests did that made memory-mapped I/O",
                ExitTable::Msr => "what guests did that accessed model-specific registers",
            },
            command: &command,
        };
        out.table(recording, label, |frame| {
            exits::html(picture.isa, report, frame)
        });
    }
}
