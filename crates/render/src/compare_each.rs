//! Several sides in one table.

use compare::{ChangeUnit, Difference, EachCell, EachRow, EachSide, SideAmount};
use serde::Serialize;
use serde_json::{Map, Value};
use words::{duration, share};

use crate::compare::{self as two, plain, side};
use crate::quality::wrap;
use crate::schema::HasShape;
use crate::shape;
use crate::table::Table;
use crate::{ClockUnit, Layout, json};

/// What something is worth on each side, that somebody measured beside the recordings: a benchmark's result.
#[derive(Debug, Clone, PartialEq)]
pub struct EachScore {
    /// What was measured.
    pub name: String,
    /// Its value on each side, as it was written; `None` where nothing was printed.
    pub values: Vec<Option<String>>,
}

impl EachScore {
    /// Returns how much a side's value is more than the first's, as a share of it.
    fn change(&self, side: usize) -> Option<f64> {
        let number = |side: usize| -> Option<f64> { self.values.get(side)?.as_ref()?.parse().ok() };
        let base = number(0).filter(|base| *base != 0.0)?;
        Some(number(side)? / base - 1.0)
    }
}

/// A line of the table.
pub(crate) enum Line<'r> {
    /// What somebody measured beside the recordings.
    Score(&'r EachScore),
    /// What it is more or less than on the first side; on terminals alone.
    Change(&'r EachScore),
    /// What changed.
    Row(&'r EachRow),
}

impl Line<'_> {
    fn row(&self) -> Option<&EachRow> {
        match self {
            Line::Row(row) => Some(row),
            Line::Score(_) | Line::Change(_) => None,
        }
    }

    fn cell(&self, side: usize) -> Option<&EachCell> {
        self.row()?.cells.get(side)
    }

    /// Returns a side's value as CSV has it: no digit is left out.
    fn exact(&self, side: usize) -> String {
        match self {
            Line::Row(_) => self
                .cell(side)
                .and_then(|cell| cell.value.as_ref())
                .map(plain),
            Line::Score(score) => score.values.get(side).cloned().flatten(),
            Line::Change(_) => None,
        }
        .unwrap_or_default()
    }

    /// Returns a side's value as a terminal shows it, with a mark or a blank behind it.
    fn shown(&self, side: usize) -> String {
        match self {
            Line::Row(row) => self
                .cell(side)
                .map_or_else(String::new, |cell| words(cell, row.unit)),
            Line::Score(score) => {
                let value = score.values.get(side).and_then(Option::as_deref);
                format!("{} ", value.unwrap_or("-"))
            }
            Line::Change(score) => match score.change(side) {
                Some(change) if side > 0 => format!("{} ", share::signed(change)),
                _ => String::new(),
            },
        }
    }

    fn title(&self) -> String {
        match self {
            Line::Row(row) => {
                let bound = row.bound_ns.map(duration::round);
                let bound = bound.map(|bound| format!(", {bound} on"));
                format!("{}{}", row.what, bound.unwrap_or_default())
            }
            Line::Score(score) => score.name.clone(),
            Line::Change(_) => "  against A".to_owned(),
        }
    }
}

/// Columns of the table: those of each side are called as it is, A, B and so on.
pub(crate) fn columns<'r>(sides: usize) -> Table<'r, Line<'r>> {
    use crate::table::Unit::{Name, Nanoseconds, Nested, Text, Value as Number};
    let mut table = Table::new()
        .column("what", Name, |line: &Line<'_>| match line {
            Line::Row(row) => row.what.clone(),
            Line::Score(score) | Line::Change(score) => score.name.clone(),
        })
        .left("", NAMES)
        .show(|line, _| line.title())
        .column("unit", Text, |line| {
            line.row().map_or("score", |row| row.unit.name())
        })
        .column("bound_ns", Nanoseconds, |line| line.row()?.bound_ns)
        .json_only()
        .column("effect_ns", Nanoseconds, |line| {
            Some(line.row()?.effect_ns.round() as i64)
        })
        .column("sides", Nested, |line| {
            let row = line.row()?;
            let cells = row.cells.iter();
            Some(json::list(cells.map(|cell| on_side(cell, row.unit))))
        })
        .within(Vec::<OnSide<'static>>::shape().or_null());
    for at in 0..sides {
        table = table
            .column(letter(at), Number, move |line: &Line<'_>| line.exact(at))
            .csv_only()
            .heading(letter(at), NARROW)
            .show(move |line, _| line.shown(at));
        if at > 0 {
            let name = format!("{} confidence", letter(at));
            table = table
                .column(name, Number, move |line: &Line<'_>| {
                    line.cell(at)?.confidence
                })
                .csv_only();
        }
    }
    table
}

/// A row's value on one side.
#[derive(Debug, Serialize)]
struct OnSide<'a> {
    /// Null where it is not there, and where it was not compared.
    value: Option<Value>,
    compared: bool,
    confidence: Option<f64>,
    /// `news` or `likely`; null where it is neither.
    tier: Option<&'static str>,
    text: Option<&'a str>,
}

shape!(OnSide<'static> {
    value: crate::compare::amount(), compared, confidence, tier, text,
});

fn on_side(cell: &EachCell, unit: ChangeUnit) -> OnSide<'_> {
    OnSide {
        value: cell.value.as_ref().map(|one| side(one, unit)),
        compared: cell.value.is_some(),
        confidence: cell.confidence,
        tier: match (cell.reported, cell.likely) {
            (true, _) => Some("news"),
            (false, true) => Some("likely"),
            (false, false) => None,
        },
        text: cell.text.as_deref(),
    }
}

/// Columns of numbers are as wide at least.
const NARROW: usize = 9;
/// The names of rows are as wide at least.
const NAMES: usize = 24;

/// Returns the table. `names` has the inputs of each side.
pub fn text(
    each: &EachSide,
    names: &[Vec<String>],
    scores: &[EachScore],
    limit: usize,
    width: usize,
) -> String {
    let mut out = String::new();
    for (side, names) in names.iter().enumerate() {
        wrap(
            &mut out,
            &format!("{}: ", letter(side)),
            &names.join(", "),
            width,
        );
    }
    let mut noted: Vec<String> = Vec::new();
    for (side, difference) in &each.differs {
        let text = difference.of_side(*side);
        if !noted.contains(&text) {
            wrap(&mut out, "! ", &text, width);
            noted.push(text);
        }
    }
    for note in &each.notes {
        wrap(&mut out, "", note, width);
    }
    out.push('\n');
    let columns = columns(names.len());
    let layout = Layout {
        width,
        limit,
        nanoseconds: true,
    };
    let cells = |line| {
        let mut cells = columns.shown(&line, layout);
        (cells.remove(0), cells)
    };
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for score in scores {
        rows.push(cells(Line::Score(score)));
        let (name, changes) = cells(Line::Change(score));
        if changes.iter().any(|change| !change.is_empty()) {
            rows.push((name, changes));
        }
    }
    let more = each.rows.len().saturating_sub(limit);
    let first = each.rows.iter().take(limit);
    rows.extend(first.map(|row| cells(Line::Row(row))));
    let heads: Vec<String> = (0..names.len()).map(|side| letter(side) + " ").collect();
    blocks(&mut out, &heads, &rows, NAMES, width);
    if each.rows.is_empty() {
        out.push_str("No change is larger than noise.\n");
    } else {
        wrap(
            &mut out,
            "",
            "* changed against A, ? likely to have; - is not there, n/a not recorded or not to be compared. Shares are \
             of the vCPUs' time, or of the instances of a path; times of exits and tasks are for each second, where \
             recordings say how long they are.",
            width,
        );
    }
    if more > 0 {
        out.push_str(&format!("{more} more rows are not shown (--limit)\n"));
    }
    out
}

/// Lays out rows whose names are so wide at least, with a heading for each side; in several blocks, each with the first
/// column, where not all columns have room.
pub(crate) fn blocks(
    out: &mut String,
    heads: &[String],
    rows: &[(String, Vec<String>)],
    least: usize,
    width: usize,
) {
    let sides = heads.len();
    let chars = |text: &String| text.chars().count();
    let cells = rows.iter().flat_map(|row| &row.1).chain(heads);
    let column = cells.map(chars).max().unwrap_or(0).max(NARROW) + 1;
    let room = (width.saturating_sub(least) / column).max(2);
    let mut from = 1;
    loop {
        let to = sides.min(from + room - 1);
        let shown: Vec<usize> = std::iter::once(0).chain(from..to).collect();
        let names = width.saturating_sub(shown.len() * column);
        let mut line = |name: &str, cells: &[String]| {
            // A long name has a line of its own.
            if name.chars().count() > names {
                out.push_str(name);
                out.push_str(&format!("\n{:names$}", ""));
            } else {
                out.push_str(&format!("{name:names$}"));
            }
            let text: String = cells
                .iter()
                .map(|cell| format!("{cell:>column$}"))
                .collect();
            out.push_str(text.trim_end());
            out.push('\n');
        };
        let above: Vec<String> = shown
            .iter()
            .map(|side| heads.get(*side).cloned().unwrap_or_default())
            .collect();
        line("", &above);
        for (name, cells) in rows {
            let cells: Vec<String> = shown
                .iter()
                .map(|side| cells.get(*side).cloned().unwrap_or_default())
                .collect();
            line(name, &cells);
        }
        out.push('\n');
        from = to;
        if from >= sides {
            break;
        }
    }
}

/// A value with the mark of how sure it is.
fn words(cell: &EachCell, unit: ChangeUnit) -> String {
    let mark = match (cell.reported, cell.likely) {
        (true, _) => '*',
        (false, true) => '?',
        (false, false) => ' ',
    };
    let value = match &cell.value {
        None => "n/a".to_owned(),
        Some(SideAmount::Absent) => "-".to_owned(),
        Some(SideAmount::Word(word)) => word.clone(),
        Some(SideAmount::Number(value)) => match unit {
            ChangeUnit::Nanoseconds => duration::of_f64(*value),
            ChangeUnit::Share => share::tenths(*value),
            ChangeUnit::PerSecond => format!("{}/s", short(*value)),
            ChangeUnit::BitsPerSecond => format!("{} bit/s", short(*value)),
            ChangeUnit::BytesPerSecond => format!("{} B/s", short(*value)),
            ChangeUnit::Count | ChangeUnit::Ratio | ChangeUnit::Number | ChangeUnit::Word => {
                short(*value)
            }
        },
    };
    format!("{value}{mark}")
}

fn short(value: f64) -> String {
    match value {
        _ if value.fract() == 0.0 || value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Returns what a side is called: A, B, and so on.
pub fn letter(side: usize) -> String {
    compare::letter(side)
}

/// The fields of a document: the contract's `changes` of every side against the first, and the table.
#[derive(Debug, Serialize)]
pub struct CompareEachDocument<'a> {
    sides: Vec<Inputs<'a>>,
    scores: Vec<ScoreRow<'a>>,
    rows: Value,
    against: Vec<ComparedSide<'a>>,
    changes: Vec<ChangeOfSide>,
}

shape!(CompareEachDocument<'static> { sides, scores, rows: columns(0).shape().list(), against, changes });

/// What a side is of.
#[derive(Debug, Serialize)]
struct Inputs<'a> {
    side: String,
    inputs: &'a [String],
}

shape!(Inputs<'static> { side, inputs });

/// A score in a document.
#[derive(Debug, Serialize)]
struct ScoreRow<'a> {
    name: &'a str,
    /// By side; null where nothing was printed.
    values: Vec<Option<f64>>,
}

shape!(ScoreRow<'static> { name, values });

/// A side against the first.
#[derive(Debug, Serialize)]
struct ComparedSide<'a> {
    side: String,
    differs: &'a [Difference],
    notes: &'a [String],
    likely: Value,
    once: Value,
    noise: Value,
}

shape!(ComparedSide<'static> {
    side, differs, notes, likely: crate::compare::columns().shape().list(),
    once: crate::compare::columns().shape().list(),
    noise: crate::compare::columns().shape().list(),
});

/// A change, and the side that it is of.
#[derive(Debug, Serialize)]
struct ChangeOfSide {
    #[serde(flatten)]
    change: Map<String, Value>,
    side: String,
}

shape!(ChangeOfSide { ..change: crate::compare::columns().shape(), side });

/// Returns the fields of a document.
pub fn document<'a>(
    each: &'a EachSide,
    names: &'a [Vec<String>],
    scores: &'a [EachScore],
) -> CompareEachDocument<'a> {
    let changes = &two::columns();
    let sides = names.iter().enumerate().map(|(at, inputs)| Inputs {
        side: letter(at),
        inputs,
    });
    let number = |value: &Option<String>| value.as_ref()?.parse().ok();
    let scores = scores.iter().map(|score| ScoreRow {
        name: &score.name,
        values: score.values.iter().map(number).collect(),
    });
    let others = || each.against.iter().zip((1..).map(letter));
    let against = others().map(|(one, side)| ComparedSide {
        side,
        differs: &one.differs,
        notes: &one.notes,
        likely: changes.json(&one.likely),
        once: changes.json(&one.once),
        noise: changes.json(&one.unreported),
    });
    let changed = others().flat_map(|(one, side)| {
        one.changes.iter().map(move |change| ChangeOfSide {
            change: changes.object(change),
            side: side.clone(),
        })
    });
    CompareEachDocument {
        sides: sides.collect(),
        scores: scores.collect(),
        rows: columns(names.len()).json(each.rows.iter().map(Line::Row)),
        against: against.collect(),
        changes: changed.collect(),
    }
}

/// Returns the table as comma separated values: each side's value, and of each but the first its confidence.
pub fn csv(each: &EachSide, sides: usize, scores: &[EachScore], clock: ClockUnit) -> String {
    let scores = scores.iter().map(Line::Score);
    columns(sides)
        .counted_in(clock)
        .csv(scores.chain(each.rows.iter().map(Line::Row)))
}
