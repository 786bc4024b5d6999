/*!
What changed between two recordings, or two groups of them.

Each side is what its recordings (or printed tables) tell. Rates are for each second that was recorded; where tables
do not say how long they are of, counts are compared as they stand. Each change has a confidence that it is more than
what varies within the recordings anyway (`chance.rs`), and an effect on time, by which changes are ranked.
*/
#![forbid(unsafe_code)]

mod chance;
mod exits;
mod findings;
mod latency;
mod sched;
mod side;
mod states;
mod words;

use analysis::Picture;
use rules::Diagnosis;
use side::Totals;

/// One side of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// What its recordings and tables tell.
    pub pictures: &'a [Picture],
    /// What rules find in them.
    pub diagnosis: &'a Diagnosis,
}

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Events for each second.
    PerSecond,
    /// Events in all, where nothing tells in how long.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// A share, 0 to 1.
    Share,
    /// No number: a word.
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
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number of the change's unit.
    Number(f64),
    /// A word.
    Word(String),
    /// Nothing: it is not there.
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

/// One thing that changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What: `vmexit IO_INSTRUCTION`, `path kick p50`, `finding timer-port-exits`.
    pub what: String,
    /// What the values are.
    pub unit: Unit,
    /// On the first side.
    pub a: Value,
    /// On the second.
    pub b: Value,
    /// That it is more than noise, 0 to 1; `None` where nothing tells.
    pub confidence: Option<f64>,
    /// By how much the time changed for each second recorded (or in all, where nothing tells in how long), in
    /// nanoseconds; what ranks.
    pub effect_ns: f64,
    /// The same for each unit of work, where both sides have one.
    pub per_work: Vec<PerWork>,
    /// One sentence.
    pub text: String,
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
    /// Changes with less confidence are noise.
    pub confidence: f64,
    /// Changes by less than this share of a value are not worth a word.
    pub least: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            confidence: 0.99,
            least: 0.1,
        }
    }
}

/// What changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// Changes, largest effect on time first.
    pub changes: Vec<Change>,
    /// Differences that are not told, since they may be noise or are small.
    pub untold: Vec<Change>,
    /// What is to be known of the comparison, a full sentence each.
    pub notes: Vec<String>,
}

/// Compares two sides. `work` names an event that counts units of work, if the usual ones are not it.
pub fn compare(a: Side<'_>, b: Side<'_>, work: Option<&str>, options: Options) -> Comparison {
    let (ta, tb) = (Totals::of(a.pictures), Totals::of(b.pictures));
    let rates = ta.seconds.is_some() && tb.seconds.is_some();
    let pair = side::Pair {
        a: ta,
        b: tb,
        rates,
        work: side::work(a.pictures, b.pictures, work),
    };
    let mut all = Vec::new();
    exits::changes(&pair, a.pictures, b.pictures, &mut all);
    states::changes(&pair, a.pictures, b.pictures, &mut all);
    latency::changes(&pair, a.pictures, b.pictures, &mut all);
    sched::changes(&pair, a.pictures, b.pictures, &mut all);
    findings::changes(&pair, a.diagnosis, b.diagnosis, &mut all);
    let mut out = Comparison {
        notes: pair.notes(),
        ..Comparison::default()
    };
    for change in all {
        let sure = change.confidence.is_none_or(|c| c >= options.confidence);
        let large = change
            .ratio()
            .is_none_or(|ratio| (ratio - 1.0).abs() >= options.least);
        let news = change.a != change.b && sure && large;
        if news {
            out.changes.push(change);
        } else {
            out.untold.push(change);
        }
    }
    for list in [&mut out.changes, &mut out.untold] {
        list.sort_by(|x, y| {
            let effect = y.effect_ns.abs().total_cmp(&x.effect_ns.abs());
            effect.then_with(|| x.what.cmp(&y.what))
        });
    }
    out
}
