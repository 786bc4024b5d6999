//! What a comparison is of, and what it finds.

use analysis::Picture;
use rules::Diagnosis;
use serde::Serialize;

/// One side of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct ComparedSide<'a> {
    /// What its recordings and tables tell.
    pub pictures: &'a [Picture],
    /// What rules find in them.
    pub diagnosis: &'a Diagnosis,
}

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ChangeUnit {
    /// Events for each second.
    PerSecond,
    /// Events of a printed table, which does not say in how long; the mean of several.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// A share, 0 to 1.
    Share,
    /// Events for each of another kind: instructions for each cycle.
    Ratio,
    /// Bits for each second.
    BitsPerSecond,
    /// Bytes for each second.
    BytesPerSecond,
    /// A number of which nobody said in what it is.
    Number,
    /// No number: a word.
    #[default]
    Word,
}

impl ChangeUnit {
    /// Returns its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            ChangeUnit::PerSecond => "per_second",
            ChangeUnit::Count => "count",
            ChangeUnit::Nanoseconds => "ns",
            ChangeUnit::Share => "share",
            ChangeUnit::Ratio => "ratio",
            ChangeUnit::BitsPerSecond => "bits_per_second",
            ChangeUnit::BytesPerSecond => "bytes_per_second",
            ChangeUnit::Number => "number",
            ChangeUnit::Word => "word",
        }
    }
}

/// A value of one side.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum SideAmount {
    /// A number of the change's unit.
    Number(f64),
    /// A word.
    Word(String),
    /// Nothing: it is not there.
    #[default]
    Absent,
}

impl SideAmount {
    fn number(&self) -> Option<f64> {
        match self {
            SideAmount::Number(number) => Some(*number),
            SideAmount::Word(_) | SideAmount::Absent => None,
        }
    }
}

/// The same for each unit of work.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
pub enum SideName {
    /// The first.
    A,
    /// The second.
    B,
}

impl SideName {
    /// Returns its name, as texts have it.
    pub fn name(self) -> &'static str {
        match self {
            SideName::A => "A",
            SideName::B => "B",
        }
    }

    /// Returns the sentence that says which side is worse, if one is.
    pub(crate) fn verdict(worse: Option<SideName>) -> &'static str {
        match worse {
            Some(SideName::A) => "A is worse.",
            Some(SideName::B) => "B is worse.",
            None => "Neither is worse by that alone.",
        }
    }

    /// Returns the side that has more of something of which less is better.
    pub(crate) fn more(a: f64, b: f64) -> Option<SideName> {
        if b > a {
            Some(SideName::B)
        } else if a > b {
            Some(SideName::A)
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
    /// Threads and functions that were sampled.
    Function,
}

/// One thing that changed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SideChange {
    /// What: `vmexit IO_INSTRUCTION`, `path kick p50`, `finding timer-port-exits`.
    pub what: String,
    /// What the values are.
    pub unit: ChangeUnit,
    /// On the first side.
    pub a: SideAmount,
    /// On the second.
    pub b: SideAmount,
    /// That it is more than noise, 0 to 1, after all that was compared was taken into account: of changes distinguished
    /// from a confidence of 0.99 on, one in a hundred is noise. `None` where that is not known.
    pub confidence: Option<f64>,
    /// By how much the time changed for each second recorded (or in all, where it is not known in how long), in
    /// nanoseconds. What ranks: time that nobody misses counts less than what is lost.
    pub effect_ns: f64,
    /// The same for each unit of work, where both sides have one.
    pub per_work: Vec<PerWork>,
    /// The side that is worse off; `None` where that depends on what the guest or the task does.
    pub worse: Option<SideName>,
    /// One sentence.
    pub text: String,
    /// Of a tail, from which duration on instances are counted.
    pub bound_ns: Option<u64>,
    pub(crate) level: Level,
    /// Too few to be compared: nothing was tested.
    pub(crate) few: bool,
    /// What one side has more was one burst.
    pub(crate) burst: bool,
    /// The same by its time where `what` is by number, or the other way round: what, unit, and both values.
    pub(crate) also: Option<(String, ChangeUnit, SideAmount, SideAmount)>,
}

impl SideChange {
    /// Returns the difference of the values, of numbers.
    pub fn delta(&self) -> Option<f64> {
        match (&self.a, &self.b) {
            (SideAmount::Absent, SideAmount::Number(b)) => Some(*b),
            (SideAmount::Number(a), SideAmount::Absent) => Some(-a),
            (a, b) => Some(b.number()? - a.number()?),
        }
    }

    /// Returns its sentence without the verdict that stands at its end, of which side is worse.
    pub fn sentence(&self) -> &str {
        let verdict = SideName::verdict(self.worse);
        self.text
            .strip_suffix(verdict)
            .map_or(&*self.text, str::trim_end)
    }

    /// Returns whether it is of a finding that came or went.
    pub fn is_finding(&self) -> bool {
        self.what.starts_with("finding ")
    }

    /// Returns whether it is of a benchmark's result.
    pub fn is_score(&self) -> bool {
        self.what.starts_with("score ")
    }

    /// Returns whether it is of an event that a printed table counts: sums for each unit of work are then events, also
    /// where the values are shares.
    pub fn is_counter(&self) -> bool {
        self.what.starts_with("counter ")
    }

    /// Returns whether both sides are the same, also for each unit of work.
    pub fn is_none(&self) -> bool {
        self.a == self.b && self.per_work.iter().all(|work| work.a == work.b)
    }

    /// Returns the second value as a multiple of the first; `None` where the first is nothing.
    pub fn ratio(&self) -> Option<f64> {
        let a = self.a.number().filter(|a| *a != 0.0)?;
        match &self.b {
            SideAmount::Number(b) => Some(b / a),
            SideAmount::Absent => Some(0.0),
            SideAmount::Word(_) => None,
        }
    }
}

/// What is reported, and what is not.
#[derive(Debug, Clone, Copy)]
pub struct CompareOptions {
    /// Changes with less confidence are not certain.
    pub confidence: f64,
    /// Changes with less confidence are noise; those from here to `confidence` are likely.
    pub likely: f64,
    /// Changes by less than this share of a value are not worth a word.
    pub least: f64,
}

impl Default for CompareOptions {
    fn default() -> CompareOptions {
        CompareOptions {
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
    pub changes: Vec<SideChange>,
    /// Changes that are likely and not certain, in the same order.
    pub likely: Vec<SideChange>,
    /// What one side has more of in one short stretch of one recording, and as much as would matter: it happened once,
    /// which cannot be distinguished from chance. In the same order.
    pub once: Vec<SideChange>,
    /// Differences that are not reported, since they may be noise or are small.
    pub unreported: Vec<SideChange>,
    /// In what the recordings differ before anything is measured: machines, recorders, events, work. They are reported
    /// first.
    pub differs: Vec<Difference>,
    /// What is to be known of the comparison, a full sentence each.
    pub notes: Vec<String>,
}

/// By path, the bound of its tail, where it is given.
pub(crate) type TailBounds = std::collections::BTreeMap<String, u64>;

/// One thing in which the two sides differ as recordings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// `definition`, `machine`, `recorder`, `events`, `lost`, `work`.
    pub what: &'static str,
    /// A full sentence.
    pub text: String,
}
