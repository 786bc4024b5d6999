/*!
What changed between two recordings, or two groups of them.

Each side is what its recordings (or printed tables) tell. Rates are for each second that was recorded; where tables
do not say how long they are of, counts are compared as they stand, and where a recording stands against a table only
shares and means (`basis.rs`). Each change has a confidence that it is more than what varies within the recordings
anyway (`chance.rs`), and an effect on time, by which changes are ranked.
*/
#![forbid(unsafe_code)]

mod basis;
mod chance;
mod counters;
mod differs;
mod each;
mod exits;
mod findings;
mod latency;
mod rows;
mod sched;
mod side;
mod states;
mod student;
mod tails;

pub use differs::Difference;

pub use each::{Cell, Each, EachRow, each, letter};

use analysis::Picture;
use rules::Diagnosis;

/// One side of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// What its recordings and tables tell.
    pub pictures: &'a [Picture],
    /// What rules find in them.
    pub diagnosis: &'a Diagnosis,
}

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Events for each second.
    PerSecond,
    /// Events of a printed table, where nothing tells in how long; the mean of several.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// A share, 0 to 1.
    Share,
    /// No number: a word.
    #[default]
    Word,
}

impl Unit {
    /// Returns its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Unit::PerSecond => "per_second",
            Unit::Count => "count",
            Unit::Nanoseconds => "ns",
            Unit::Share => "share",
            Unit::Word => "word",
        }
    }
}

/// A value of one side.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// A number of the change's unit.
    Number(f64),
    /// A word.
    Word(String),
    /// Nothing: it is not there.
    #[default]
    Absent,
}

impl Value {
    fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Word(_) | Value::Absent => None,
        }
    }
}

/// The same for each unit of work.
#[derive(Debug, Clone, PartialEq)]
pub struct PerWork {
    /// What one is: `tun_get_user`, `second of guest time`.
    pub of: String,
    /// On the one side.
    pub a: f64,
    /// On the other.
    pub b: f64,
}

/// One of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The first.
    A,
    /// The second.
    B,
}

impl Which {
    /// Returns its name, as texts have it.
    pub fn name(self) -> &'static str {
        match self {
            Which::A => "A",
            Which::B => "B",
        }
    }

    /// Returns the side that has more of something of which less is better.
    pub(crate) fn more(a: f64, b: f64) -> Option<Which> {
        if b > a {
            Some(Which::B)
        } else if a > b {
            Some(Which::A)
        } else {
            None
        }
    }
}

/// What is compared together: how much was compared is taken into account among questions of one kind, so that the
/// hundreds of rows of a table do not drown the few sums above them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Level {
    /// Sums: exits, states, paths.
    Whole,
    /// Rows of tables.
    #[default]
    Row,
    /// Stages of paths.
    Stage,
}

/// One thing that changed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// What: `vmexit IO_INSTRUCTION`, `path kick p50`, `finding timer-port-exits`.
    pub what: String,
    /// What the values are.
    pub unit: Unit,
    /// On the first side.
    pub a: Value,
    /// On the second.
    pub b: Value,
    /// That it is more than noise, 0 to 1, after all that was compared was taken into account: of changes told from a
    /// confidence of 0.99 on, one in a hundred is noise. `None` where nothing tells.
    pub confidence: Option<f64>,
    /// By how much the time changed for each second recorded (or in all, where nothing tells in how long), in
    /// nanoseconds. What ranks: time that nobody lacks counts less than what is lost.
    pub effect_ns: f64,
    /// The same for each unit of work, where both sides have one.
    pub per_work: Vec<PerWork>,
    /// The side that is worse off; `None` where that depends on what the guest or the task does.
    pub worse: Option<Which>,
    /// One sentence.
    pub text: String,
    /// Of a tail, from which duration on instances are counted.
    pub bound_ns: Option<u64>,
    pub(crate) level: Level,
    /// Too few to be compared: nothing was tested.
    pub(crate) few: bool,
    /// The same by its time where `what` is by number, or the other way round: what, unit, and both values.
    pub(crate) also: Option<(String, Unit, Value, Value)>,
}

impl Change {
    /// Returns the difference of the values, of numbers.
    pub fn delta(&self) -> Option<f64> {
        match (&self.a, &self.b) {
            (Value::Absent, Value::Number(b)) => Some(*b),
            (Value::Number(a), Value::Absent) => Some(-a),
            (a, b) => Some(b.number()? - a.number()?),
        }
    }

    /// Returns the second value as a multiple of the first; `None` where the first is nothing.
    pub fn ratio(&self) -> Option<f64> {
        let a = self.a.number().filter(|a| *a != 0.0)?;
        match &self.b {
            Value::Number(b) => Some(b / a),
            Value::Absent => Some(0.0),
            Value::Word(_) => None,
        }
    }
}

/// What is told, and what is not.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Changes with less confidence are not certain.
    pub confidence: f64,
    /// Changes with less confidence are noise; those from here to `confidence` are likely.
    pub likely: f64,
    /// Changes by less than this share of a value are not worth a word.
    pub least: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            confidence: 0.99,
            likely: 0.8,
            least: 0.1,
        }
    }
}

/// What changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// Changes, largest effect on time first.
    pub changes: Vec<Change>,
    /// Changes that are likely and not certain, in the same order.
    pub likely: Vec<Change>,
    /// Differences that are not told, since they may be noise or are small.
    pub untold: Vec<Change>,
    /// In what the recordings differ before anything is measured: machines, recorders, events, work. To be told first.
    pub differs: Vec<Difference>,
    /// What is to be known of the comparison, a full sentence each.
    pub notes: Vec<String>,
}

/// Compares two sides. `work` names an event that counts units of work, if the usual ones are not it.
///
/// # Errors
/// A sentence, if the work that was asked for is not counted on both sides.
pub fn compare(
    a: Side<'_>,
    b: Side<'_>,
    work: Option<&str>,
    options: Options,
) -> Result<Comparison, String> {
    against(a, b, work, options, &Bounds::new())
}

/// By path, the bound of its tail, where it is told.
pub(crate) type Bounds = std::collections::BTreeMap<String, u64>;

/// Compares two sides, with these bounds of tails.
pub(crate) fn against(
    a: Side<'_>,
    b: Side<'_>,
    work: Option<&str>,
    options: Options,
    bounds: &Bounds,
) -> Result<Comparison, String> {
    let sides = [a.pictures, b.pictures];
    let pair = side::Pair {
        sides,
        work: side::work(sides, work)?,
    };
    let mut all = Vec::new();
    let mut notes = pair.notes();
    exits::changes(&pair, &mut all, &mut notes);
    states::changes(&pair, &mut all, &mut notes);
    latency::changes(&pair, bounds, &mut all, &mut notes);
    sched::changes(&pair, &mut all, &mut notes);
    counters::changes(&pair, &mut all, &mut notes);
    adjust(&mut all);
    let mut out = Comparison {
        notes,
        differs: differs::all(sides),
        ..Comparison::default()
    };
    for change in all {
        let sure = |bound: f64| change.confidence.is_none_or(|c| c >= bound);
        let large = change
            .ratio()
            .is_none_or(|ratio| (ratio - 1.0).abs() >= options.least);
        if change.a == change.b || !large {
            out.untold.push(change);
        } else if sure(options.confidence) {
            out.changes.push(change);
        } else if sure(options.likely) {
            out.likely.push(change);
        } else {
            out.untold.push(change);
        }
    }
    let mut found = Vec::new();
    findings::changes(&pair, a.diagnosis, b.diagnosis, &mut found);
    let (mut news, mut threshold): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|finding| findings::is_news(finding, &out));
    out.changes.append(&mut news);
    out.untold.append(&mut threshold);
    for change in out.changes.iter_mut().chain(&mut out.likely) {
        change.text.push_str(match change.worse {
            Some(Which::A) => " A is worse.",
            Some(Which::B) => " B is worse.",
            None => " Neither is worse by that alone.",
        });
    }
    for list in [&mut out.changes, &mut out.likely, &mut out.untold] {
        list.sort_by(|x, y| {
            let effect = y.effect_ns.abs().total_cmp(&x.effect_ns.abs());
            effect.then_with(|| x.what.cmp(&y.what))
        });
    }
    Ok(out)
}

/// Takes into account how much was compared. First of everything together: if that is no more than chance, nothing of it
/// is surer than all of it. Then of each level by itself. What is too few to be told apart at all was not compared.
fn adjust(all: &mut [Change]) {
    let tested = |change: &Change| !change.few;
    let chances: Vec<f64> = all
        .iter()
        .filter(|change| tested(change))
        .filter_map(|change| Some(1.0 - change.confidence?))
        .collect();
    let joint = chance::adjust(&chances).into_iter().fold(1.0, f64::min);
    for level in [Level::Whole, Level::Row, Level::Stage] {
        let of_level = |change: &Change| tested(change) && change.level == level;
        let chances: Vec<f64> = all
            .iter()
            .filter(|change| of_level(change))
            .filter_map(|change| Some(1.0 - change.confidence?))
            .collect();
        let mut adjusted = chance::adjust(&chances).into_iter();
        for confidence in all
            .iter_mut()
            .filter(|change| of_level(change))
            .filter_map(|change| change.confidence.as_mut())
        {
            *confidence = 1.0 - adjusted.next().unwrap_or(1.0).max(joint);
        }
    }
}
