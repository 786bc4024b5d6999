//! Shares of samples that `perf report` printed: tasks without what was idle, and functions.

use std::fmt::Write;

use analysis::{ModeShares, Picture, PrintedShares, ShareLine};
use serde::Serialize;
use serde_json::Value;

use crate::html::Frame;
use crate::part::PicturePart;
use crate::schema::HasShape;
use crate::shape;
use crate::table::{Table, Unit, Views};
use crate::{Layout, clean};

/// The table of functions, which have no share without idling.
const FUNCTIONS: Views = Views::own(0);

/// Returns a share with as many digits as perf prints, so that people find their numbers again.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.2}", share * 100.0))
}

/// Columns of tasks and of functions.
pub(crate) fn columns() -> Table<'static, ShareLine> {
    use Unit::{Name, Share};
    let both = Views::TERMINAL | FUNCTIONS;
    let mode = |of: fn(&ModeShares) -> f64| move |line: &ShareLine| line.modes.as_ref().map(of);
    Table::new()
        .column("comm", Name, |line: &ShareLine| line.comm.clone())
        .left("task", 16)
        .views(both)
        .where_known()
        .page("task")
        .column("share", Share, |line| line.share)
        .heading("share", 8)
        .show(|line, _| percent(Some(line.share)))
        .views(both)
        .page("share")
        .column("with_callees", Share, |line| line.with_callees)
        .show(|line, _| percent(line.with_callees))
        .heading("with callees", 14)
        .views(FUNCTIONS)
        .where_known()
        .page("with callees")
        .column("idle", Share, |line| line.idle)
        .show(|line, _| percent(line.idle))
        .heading("idle", 8)
        .where_known()
        .page("idle")
        .column("busy", Share, |line| line.busy)
        .show(|line, _| percent(line.busy))
        .heading("without", 9)
        .where_known()
        .page("without idle")
        .column("sys", Share, mode(|modes| modes.sys))
        .show(|line, _| percent(line.modes.map(|modes| modes.sys)))
        .heading("sys", 8)
        .views(both)
        .where_known()
        .page("sys")
        .column("usr", Share, mode(|modes| modes.usr))
        .show(|line, _| percent(line.modes.map(|modes| modes.usr)))
        .heading("usr", 8)
        .views(both)
        .where_known()
        .page("usr")
        .column("guest_sys", Share, mode(|modes| modes.guest_sys))
        .show(|line, _| percent(line.modes.map(|modes| modes.guest_sys)))
        .heading("guest sys", 11)
        .views(both)
        .where_known()
        .page("guest sys")
        .column("guest_usr", Share, mode(|modes| modes.guest_usr))
        .show(|line, _| percent(line.modes.map(|modes| modes.guest_usr)))
        .heading("guest usr", 11)
        .views(both)
        .where_known()
        .page("guest usr")
        .column("object", Name, |line| line.object.clone())
        .left("file", 24)
        .gap("  ")
        .views(FUNCTIONS)
        .where_known()
        .page("file")
        .column("function", Name, |line| line.function.clone())
        .left("function", 0)
        .gap("  ")
        .views(FUNCTIONS)
        .where_known()
        .page("function")
}

/// Returns the tables for a terminal.
pub fn table(shares: &PrintedShares, layout: Layout) -> String {
    let mut out = modes(shares);
    let (tasks, functions) = (shares.tasks(), shares.functions());
    if !tasks.is_empty() {
        let _ = writeln!(
            out,
            "{}",
            title(
                shares,
                match shares.has_all_of_tasks() {
                    true => "by task, in %",
                    false => "by task, as far as rows are listed, in %",
                }
            )
        );
        let columns = columns();
        let view = columns.view(Views::TERMINAL);
        out.push_str(&view.known_of(&tasks).text(&tasks, layout));
    }
    if !functions.is_empty() {
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "{}", title(shares, "by function but idle ones, in %"));
        let columns = columns();
        let view = columns.view(FUNCTIONS);
        out.push_str(&view.known_of(&functions).text(&functions, layout));
        if !shares.has_all_functions() {
            out.push_str("not all rows are there: what is not listed may have been sampled too\n");
        }
    }
    out
}

/// Returns a line of where the CPUs were, where guests were sampled: kernels apart from programs.
fn modes(shares: &PrintedShares) -> String {
    let guests = |modes: &ModeShares| modes.guest_sys + modes.guest_usr > 0.0;
    let Some(modes) = shares.modes().filter(guests) else {
        return String::new();
    };
    format!(
        "modes: {} % in guests' kernels, {} in their user space, {} in the host's kernel, {} in its user space\n",
        percent(Some(modes.guest_sys)),
        percent(Some(modes.guest_usr)),
        percent(Some(modes.sys)),
        percent(Some(modes.usr))
    )
}

fn title(shares: &PrintedShares, by: &str) -> String {
    let event = shares.event().map(|event| format!(" of {}", clean(event)));
    let count = shares.samples().map(|count| format!("; {count} or more"));
    let (event, count) = (event.unwrap_or_default(), count.unwrap_or_default());
    format!("shares: samples{event} {by}{count}")
}

/// The fields of a document.
#[derive(Debug, Serialize)]
struct SharesDocument<'a> {
    /// The event that was sampled; null where the text does not say.
    event: Option<&'a str>,
    /// How many samples there are at least.
    samples: Option<u64>,
    lost_samples: Option<u64>,
    /// Whether the functions are all that there are.
    all_functions: bool,
    /// Whether shares of tasks are all that these have.
    all_of_tasks: bool,
    /// Where the CPUs were, of all samples; null where that was not printed, or not of all.
    modes: Option<ModesDocument>,
    tasks: Value,
    /// Those in which CPUs are idle are left out.
    functions: Value,
}

/// Shares by where the CPUs were.
#[derive(Debug, Serialize)]
struct ModesDocument {
    sys: f64,
    usr: f64,
    guest_sys: f64,
    guest_usr: f64,
}

shape!(ModesDocument {
    sys,
    usr,
    guest_sys,
    guest_usr
});

shape!(SharesDocument<'static> {
    event, samples, lost_samples, all_functions, all_of_tasks, modes, tasks: columns().shape().list(),
    functions: columns().shape().list()
});

fn document(shares: &PrintedShares) -> SharesDocument<'_> {
    SharesDocument {
        event: shares.event(),
        samples: shares.samples(),
        lost_samples: shares.lost_samples(),
        all_functions: shares.has_all_functions(),
        all_of_tasks: shares.has_all_of_tasks(),
        modes: shares.modes().map(|modes| ModesDocument {
            sys: modes.sys,
            usr: modes.usr,
            guest_sys: modes.guest_sys,
            guest_usr: modes.guest_usr,
        }),
        tasks: columns().json(shares.tasks()),
        functions: columns().json(shares.functions()),
    }
}

/// Shares as a part of a report.
pub(crate) const PART: PicturePart = PicturePart {
    name: "shares",
    heading: "Shares of samples",
    caption: "shares of samples, as perf report printed them",
    nothing: "",
    document: |picture| {
        let shares = picture.shares.as_ref()?;
        serde_json::to_value(document(shares)).ok()
    },
    shape: SharesDocument::shape,
    html,
    text: |picture, layout| {
        let shares = picture.shares.as_ref();
        shares.map_or_else(String::new, |shares| table(shares, layout))
    },
};

/// Returns tasks, where a table has them alone, else functions.
fn html(picture: &Picture, frame: &Frame<'_>) -> String {
    let Some(shares) = &picture.shares else {
        return String::new();
    };
    let lines = match shares.by_task {
        Some(_) => shares.tasks(),
        None => shares.functions(),
    };
    columns().html(&lines, frame)
}
