//! Folded stacks: what stands below them, and functions, by what they weigh.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;
use stacks::{Bottom, FoldedText, FunctionWeight, Weight, WeightUnit};
use words::{plural, share};

use crate::flame::{Heavy, functions, of};
use crate::shape;
use crate::table::{Table, Unit, Views};
use crate::{Layout, speedscope};

/// A row, what all that is shown weighs, and in what.
pub(crate) struct Row<'r> {
    bottom: &'r Bottom,
    whole: Weight,
    unit: WeightUnit,
}

impl Row<'_> {
    /// A part's share; `None` where the owner of some of the row's code is not known.
    fn part(&self, part: Weight) -> Option<f64> {
        let known = [self.bottom.guest, self.bottom.kernel, self.bottom.user];
        let known = known.iter().map(|part| part.amount);
        let known = known.fold(0, u64::saturating_add);
        of(part, self.whole).filter(|_| known >= self.bottom.all.amount)
    }
}

/// What stands below stacks, where counts are times.
const TIMES: Views = Views::own(0);

/// Counts, where they are no times.
fn count(weight: Weight, unit: WeightUnit) -> Option<u64> {
    (unit != WeightUnit::Nanoseconds).then_some(weight.samples)
}

/// Columns of the table of what stands below stacks: as of recordings, as far as the text says it.
pub(crate) fn columns<'r>() -> Table<'r, Row<'r>> {
    use Unit::{Count, Name, Nanoseconds, Number, Share};
    let all = Views::TERMINAL | TIMES;
    Table::new()
        .column("vm_pid", Number, |_: &Row<'_>| Value::Null)
        .column("comm", Name, |r| r.bottom.name.as_str())
        .left("THREAD", 26)
        .views(all)
        .column("tid", Number, |r| r.bottom.tid)
        .heading("TID", 8)
        .views(all)
        .column("samples", Count, |r| count(r.bottom.all, r.unit))
        .heading("count", 11)
        .column("share", Share, |r| of(r.bottom.all, r.whole))
        .heading("share%", 8)
        .views(all)
        .column("guest", Share, |r| r.part(r.bottom.guest))
        .heading("guest%", 8)
        .views(all)
        .column("kernel", Share, |r| r.part(r.bottom.kernel))
        .heading("kernel%", 8)
        .views(all)
        .column("user", Share, |r| r.part(r.bottom.user))
        .heading("user%", 8)
        .views(all)
        .only_if(
            |r| r.unit == WeightUnit::Nanoseconds,
            |table| {
                let table = table.column("time_ns", Nanoseconds, |r| r.bottom.all.amount);
                table.heading("time", 11).views(TIMES).after("samples")
            },
        )
}

fn rows(folded: &FoldedText) -> impl Iterator<Item = Row<'_>> {
    let (whole, unit) = (folded.shown(), folded.unit);
    let bottoms = folded.bottoms.iter();
    bottoms.map(move |bottom| Row {
        bottom,
        whole,
        unit,
    })
}

fn heavy<'r>(
    folded: &FoldedText,
    functions: &'r [FunctionWeight],
) -> impl Iterator<Item = Heavy<'r>> {
    let (whole, unit) = (folded.shown(), folded.unit);
    functions.iter().map(move |function| Heavy {
        function,
        whole,
        counted: unit != WeightUnit::Nanoseconds,
    })
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct FlameFoldedDocument {
    /// What was sampled: folded text does not say that.
    event: Option<String>,
    /// What its counts say; `null` where they are times.
    samples: Option<u64>,
    idle_samples: Option<u64>,
    unresolved_samples: Option<u64>,
    /// What counts are: `count`, `samples` or `nanoseconds`.
    unit: &'static str,
    /// All that is shown, and what is left out, in that unit.
    total: u64,
    idle: u64,
    rows: Value,
    functions: Value,
}

shape!(FlameFoldedDocument {
    event,
    samples,
    idle_samples,
    unresolved_samples,
    unit,
    total,
    idle,
    rows: columns().shape().list(),
    functions: functions().shape().list(),
});

/// Returns the fields of a document.
pub fn document(folded: &FoldedText) -> FlameFoldedDocument {
    let all = folded.stacks.functions();
    FlameFoldedDocument {
        event: None,
        samples: count(folded.all, folded.unit),
        idle_samples: count(folded.idle, folded.unit),
        unresolved_samples: None,
        unit: match folded.unit {
            WeightUnit::Samples => "samples",
            WeightUnit::Nanoseconds => "nanoseconds",
            _ => "count",
        },
        total: folded.shown().amount,
        idle: folded.idle.amount,
        rows: columns().json(rows(folded)),
        functions: functions().json(heavy(folded, &all)),
    }
}

/// Returns the rows of threads as CSV.
pub fn csv(folded: &FoldedText) -> String {
    columns().csv(rows(folded))
}

/// Returns the tables for a terminal: threads, and functions by what they and those they called weigh.
pub fn table(folded: &FoldedText, layout: Layout) -> String {
    let amount = |weight: Weight| match folded.unit {
        WeightUnit::Nanoseconds => layout.time(weight.amount),
        WeightUnit::Samples => plural(weight.samples, "sample"),
        _ => weight.amount.to_string(),
    };
    let all = amount(folded.all);
    let mut text = match folded.unit {
        WeightUnit::Count => {
            format!("flame: folded stacks, {all} together; --unit says what they count")
        }
        _ => format!("flame: folded stacks, {all}"),
    };
    let idle = amount(folded.idle);
    if folded.left_out() {
        let share = share::tenths(of(folded.idle, folded.all).unwrap_or_default());
        let _ = write!(text, "\nleft out: {idle} of idle CPUs, {share} of all");
    } else if folded.idle.amount > 0 {
        let _ = write!(text, "\nwith {idle} of idle CPUs");
    }
    text.push('\n');
    let view = match folded.unit {
        WeightUnit::Nanoseconds => TIMES,
        _ => Views::TERMINAL,
    };
    text.push_str(&columns().view(view).text(rows(folded), layout));
    let all = folded.stacks.functions();
    if !all.is_empty() {
        text.push('\n');
        let heavy = heavy(folded, &all);
        text.push_str(&functions().view(Views::TERMINAL).text(heavy, layout));
    }
    text
}

/// What the counts are of: the text does not say more.
pub const EVENT: &str = "folded stacks";

/// Returns the stacks as a file of speedscope's. `name` is the text's.
///
/// # Errors
///
/// As serde_json.
pub fn speedscope(folded: &FoldedText, name: &str) -> serde_json::Result<String> {
    let nanoseconds = folded.unit == WeightUnit::Nanoseconds;
    let whole = folded.shown();
    speedscope::sampled(&folded.stacks, whole, EVENT, nanoseconds, name)
}
