//! What a finding rests on: a sentence, and the numbers, times, threads and rows that it is made of.
//!
//! Rules write evidence with [`says!`](crate::evidence::says): each number stands once, and both the sentence and the
//! data come from it.

use std::fmt::{self, Display};

use analysis::{ExitRow, ExitTable};
use paths::PathReport;
use words::{duration, share};

/// One piece of evidence.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// A full sentence.
    pub text: String,
    /// The numbers in it, in its order.
    pub numbers: Vec<SentenceNumber>,
    /// The names in it: tasks, events, addresses, settings. A number in a name is none of the numbers above.
    pub names: Vec<String>,
    /// The times that it is about, where it is not about the whole recording.
    pub windows: Vec<TimeWindow>,
    /// The threads that it is about: vCPUs', and those of tasks that it names.
    pub threads: Vec<i32>,
    /// Instances of paths that show it: the slowest.
    pub instances: Vec<PathInstance>,
    /// The rows of tables that it is about.
    pub rows: Vec<TableRow>,
}

/// A number of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct SentenceNumber {
    /// What it is, in one word or two (`exits`, `share`).
    pub name: &'static str,
    /// What it amounts to, with its unit.
    pub value: EvidenceNumber,
    /// The same as the sentence has it.
    pub text: String,
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EvidenceNumber {
    /// How many.
    Count(u64),
    /// A duration in nanoseconds.
    Nanoseconds(u64),
    /// A share of a whole, 0 to 1; of times that overlap it may be more.
    Share(f64),
    /// How many in a second.
    PerSecond(f64),
    /// How many times as much.
    Ratio(f64),
    /// The number of a CPU, a vector or an interrupt line: nothing to add up.
    Id(u64),
}

impl EvidenceNumber {
    /// Returns its unit: `ns`, `share`, `per_second`, `ratio`; empty for counts and for numbers that are names.
    pub fn unit(self) -> &'static str {
        match self {
            EvidenceNumber::Count(_) | EvidenceNumber::Id(_) => "",
            EvidenceNumber::Nanoseconds(_) => "ns",
            EvidenceNumber::Share(_) => "share",
            EvidenceNumber::PerSecond(_) => "per_second",
            EvidenceNumber::Ratio(_) => "ratio",
        }
    }
}

/// A time within the recording, in nanoseconds of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// From when.
    pub start_ns: u64,
    /// Until when.
    pub end_ns: u64,
}

impl TimeWindow {
    /// Returns it as `--time` takes it: in seconds, whose last microsecond is whole, or in ticks.
    pub fn argument(&self, in_ticks: bool) -> String {
        let (start, end) = (self.start_ns, self.end_ns);
        if in_ticks {
            return format!("{start},{end}");
        }
        let seconds = duration::seconds_us;
        format!(
            "{},{}",
            seconds(start / 1_000),
            seconds(end.div_ceil(1_000))
        )
    }
}

/// An instance of a path: its first event's time distinguishes it from the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathInstance {
    /// The path's name.
    pub path: String,
    /// When it began.
    pub begin_ns: u64,
    /// How long it took.
    pub total_ns: u64,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    /// The table's name, as `trapline exits --event` has it.
    pub table: &'static str,
    /// The row's key.
    pub key: String,
}

impl Evidence {
    /// Returns a sentence that has no data yet.
    pub(crate) fn new(text: String) -> Evidence {
        Evidence {
            text,
            ..Evidence::default()
        }
    }

    /// Says of which input it is, where it stands beside that of another.
    pub(crate) fn of_input(mut self, name: &str) -> Evidence {
        self.text.insert_str(0, &format!("{name}: "));
        self.names.push(name.to_owned());
        // Times and rows are found in the input that is quoted first.
        self.windows.clear();
        self.instances.clear();
        self.rows.clear();
        self
    }

    /// Appends another piece, whose text goes on with this sentence.
    pub(crate) fn then(mut self, more: Evidence) -> Evidence {
        self.text.push_str(&more.text);
        self.numbers.extend(more.numbers);
        self.names.extend(more.names);
        self.windows.extend(more.windows);
        for tid in more.threads {
            self.put_thread(tid);
        }
        self.instances.extend(more.instances);
        self.rows.extend(more.rows);
        self
    }

    /// Adds a thread that it is about.
    pub(crate) fn thread(mut self, tid: i32) -> Evidence {
        self.put_thread(tid);
        self
    }

    fn put_thread(&mut self, tid: i32) {
        if !self.threads.contains(&tid) {
            self.threads.push(tid);
        }
    }

    /// Adds a row of a table that it is about.
    pub(crate) fn row(mut self, table: ExitTable, row: &ExitRow) -> Evidence {
        self.rows.push(TableRow {
            table: table.name(),
            key: row.key.clone(),
        });
        self
    }

    /// Adds several rows of a table.
    pub(crate) fn rows_of(self, table: ExitTable, rows: &[&ExitRow]) -> Evidence {
        rows.iter()
            .fold(self, |evidence, row| evidence.row(table, row))
    }

    /// Adds a time that it is about, if it is known.
    pub(crate) fn window(mut self, span: Option<(u64, u64)>) -> Evidence {
        let window = |(start_ns, end_ns)| TimeWindow { start_ns, end_ns };
        self.windows.extend(span.map(window));
        self
    }

    /// Returns several as one, with commas between.
    pub(crate) fn join(all: Vec<Evidence>) -> Evidence {
        let mut all = all.into_iter();
        let first = all.next().unwrap_or_default();
        all.fold(first, |sum, one| sum.then(", ".into()).then(one))
    }

    /// Adds an instance of a path: what it took, and when it began, if there is one.
    pub(crate) fn instance(mut self, path: &str, one: Option<(u64, u64)>) -> Evidence {
        self.instances
            .extend(one.map(|(total_ns, begin_ns)| PathInstance {
                path: path.to_owned(),
                begin_ns,
                total_ns,
            }));
        self
    }

    /// Adds the slowest instances of a path.
    pub(crate) fn slowest(mut self, path: &PathReport) -> Evidence {
        let slowest = path.longest.first(SLOWEST).into_iter();
        self.instances
            .extend(slowest.map(|(total_ns, begin_ns)| PathInstance {
                path: path.name.clone(),
                begin_ns,
                total_ns,
            }));
        self
    }
}

/// Instances that stand for a path.
const SLOWEST: usize = 3;

impl From<&str> for Evidence {
    fn from(text: &str) -> Evidence {
        Evidence::new(text.to_owned())
    }
}

impl Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a sentence is made of: it prints itself, and says what it is.
pub(crate) trait SentencePart: Display {
    /// Adds what it is to the data.
    fn put(&self, name: &'static str, evidence: &mut Evidence);
}

/// Adds a number to the data, as the sentence has it.
fn number(part: &impl Display, name: &'static str, value: EvidenceNumber, evidence: &mut Evidence) {
    let text = part.to_string();
    evidence.numbers.push(SentenceNumber { name, value, text });
}

/// Makes a kind of number: how it is printed, and its value.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident($($field:ty),*), |$of:ident| $print:expr, $value:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name($(pub $field),*);

        impl Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $of = self;
                f.write_str(&$print)
            }
        }

        impl SentencePart for $name {
            fn put(&self, name: &'static str, evidence: &mut Evidence) {
                let $of = self;
                number(self, name, $value, evidence);
            }
        }
    };
}

number!(
    /// A duration.
    Ns(u64), |of| duration::human(of.0), EvidenceNumber::Nanoseconds(of.0)
);
number!(
    /// A part of a whole in per cent.
    Of(u64, u64), |of| share::of(of.0, of.1), EvidenceNumber::Share(of.0 as f64 / of.1.max(1) as f64)
);
number!(
    /// A share in per cent, with one decimal.
    Share(f64), |of| share::tenths(of.0), EvidenceNumber::Share(of.0)
);
number!(
    /// A count with its noun.
    Many(u64, &'static str), |of| words::plural(of.0, of.1), EvidenceNumber::Count(of.0)
);
number!(
    /// How often: once, 3 times.
    Times(u64), |of| words::times(of.0), EvidenceNumber::Count(of.0)
);
number!(
    /// How many in a second.
    PerSecond(f64), |of| format!("{:.0}", of.0), EvidenceNumber::PerSecond(of.0)
);
number!(
    /// How many times as much.
    Ratio(f64), |of| format!("{:.1}", of.0), EvidenceNumber::Ratio(of.0)
);
number!(
    /// The number of a CPU, a vector or an interrupt line.
    Id(u64), |of| of.0.to_string(), EvidenceNumber::Id(of.0)
);

impl SentencePart for u64 {
    fn put(&self, name: &'static str, evidence: &mut Evidence) {
        number(self, name, EvidenceNumber::Count(*self), evidence);
    }
}

impl SentencePart for &str {
    fn put(&self, _: &'static str, evidence: &mut Evidence) {
        evidence.names.push((*self).to_owned());
    }
}

impl SentencePart for String {
    fn put(&self, name: &'static str, evidence: &mut Evidence) {
        self.as_str().put(name, evidence);
    }
}

impl SentencePart for Evidence {
    fn put(&self, _: &'static str, evidence: &mut Evidence) {
        let data = Evidence {
            text: String::new(),
            ..self.clone()
        };
        let whole = std::mem::take(evidence);
        *evidence = whole.then(data);
    }
}

/// A task or a vCPU by what it is called, with its thread.
#[derive(Debug, Clone)]
pub(crate) struct ThreadMention {
    /// As the sentence has it.
    pub called: String,
    /// Its id.
    pub tid: i32,
}

impl ThreadMention {
    /// Returns it as a sentence begins with it.
    pub(crate) fn capital(mut self) -> ThreadMention {
        self.called = words::capital(&self.called);
        self
    }

    /// Returns a task: `comm (thread 12)`.
    pub(crate) fn named(comm: &str, tid: i32) -> ThreadMention {
        ThreadMention {
            called: words::with_thread(comm, tid),
            tid,
        }
    }
}

impl Display for ThreadMention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.called)
    }
}

impl SentencePart for ThreadMention {
    fn put(&self, _: &'static str, evidence: &mut Evidence) {
        evidence.names.push(self.called.clone());
        evidence.put_thread(self.tid);
    }
}

/// The command that shows what happened in a time.
#[derive(Debug, Clone)]
pub(crate) struct ShowCommand {
    /// The command.
    pub command: String,
    /// The time.
    pub window: TimeWindow,
}

impl Display for ShowCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.command)
    }
}

impl SentencePart for ShowCommand {
    fn put(&self, _: &'static str, evidence: &mut Evidence) {
        evidence.names.push(self.command.clone());
        evidence.windows.push(self.window);
    }
}

/// Makes a sentence of its parts, and the data of the same parts: `says!("{exits} exits took {time}.", exits = count,
/// time = Ns(ns))`.
macro_rules! says {
    ($text:literal $(, $name:ident = $value:expr)* $(,)?) => {
        match ($($value,)*) {
            ($($name,)*) => {
                #[allow(unused_mut)]
                let mut evidence = $crate::evidence::Evidence::new(format!($text $(, $name = $name)*));
                $($crate::evidence::SentencePart::put(&$name, stringify!($name), &mut evidence);)*
                evidence
            }
        }
    };
}
pub(crate) use says;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_and_its_data_are_one() {
        let evidence = says!(
            "{vcpu} left its guest {exits} for {time} ({share}).",
            vcpu = ThreadMention::named("vCPU 1", 12),
            exits = Times(3),
            time = Ns(1_500),
            share = Of(1, 8),
        );
        assert_eq!(
            evidence.text,
            "vCPU 1 (thread 12) left its guest 3 times for 1.500us (12.50 %)."
        );
        let numbers = evidence.numbers.iter();
        let numbers: Vec<_> = numbers.map(|one| (one.name, one.value)).collect();
        assert_eq!(
            numbers,
            [
                ("exits", EvidenceNumber::Count(3)),
                ("time", EvidenceNumber::Nanoseconds(1_500)),
                ("share", EvidenceNumber::Share(0.125))
            ]
        );
        assert_eq!(evidence.threads, [12]);
        let more = evidence.then(says!(" It ran on CPU {cpu}.", cpu = Id(7)));
        assert!(more.text.ends_with("(12.50 %). It ran on CPU 7."));
        assert_eq!(more.numbers.len(), 4);
    }
}
