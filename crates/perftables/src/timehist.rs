//! `perf sched timehist` (`timehist_print_sample` and `timehist_print_summary` in `tools/perf/builtin-sched.c`, Linux
//! 4.10 to 6.12): a row each time that a task leaves a CPU, added up by task.

use std::collections::HashMap;

use forms::InputForm;

use crate::lines::{CleanLine, joined, squeezed};
use crate::number::{count, scaled, words};
use crate::open::{MAX_ROWS, too_many};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{PerfTable, SchedLatency, SchedPrinter, SchedRow, TableNote};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "perf sched timehist",
    recognised_by: "the heading `time cpu task name wait time sch delay run time`, or rows of a time, `[CPU]`, a task \
                    with its thread, and three times; the heading of `Runtime summary`",
    yields: "run time, delays of wake-ups and the longest of each task, as `perf sched latency` has them; of a summary \
             alone the run times",
    fixtures: &[
        "tests/tables/timehist-6.1.txt",
        "tests/tables/timehist-6.1-all-columns.txt",
        "tests/tables/timehist-6.1-call-chains.txt",
        "tests/tables/timehist-6.1-summary.txt",
        "tests/tables/timehist-4.10.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: Some(first_row),
};

/// Lines in a row of other text, after which it is over: people write between rows, and leave some out.
const PATIENCE: u32 = 12;

fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let first = &view.first()?.text;
    let mut open = OpenTimehist::default();
    let titled = first.trim() == "Runtime summary";
    let next = view.get(1).map_or("", |line| line.text.as_str());
    if is_summary_heading(first) || titled && is_summary_heading(next) {
        open.summed = true;
        return Some((Box::new(open), 1 + usize::from(titled)));
    }
    if !is_heading(first) {
        return None;
    }
    Some((Box::new(open), 1))
}

fn first_row(view: &[CleanLine]) -> Option<TableBeginning> {
    let mut open = OpenTimehist::default();
    // A line of a wake-up has no times, and is the table's only behind others.
    let (row, used) = row_of(view)?;
    open.push(row, view.first()?.number);
    Some((Box::new(open), used))
}

/// Reads the beginning of `time cpu task name wait time sch delay run time`; `-V` has a digit for each CPU between.
fn is_heading(text: &str) -> bool {
    let bare = text.trim_start();
    if !bare.starts_with("time") {
        return false;
    }
    let squeezed = squeezed(bare);
    let Some((before, after)) = squeezed.split_once("taskname") else {
        return false;
    };
    let cpus = before.strip_prefix("timecpu");
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    cpus.is_some_and(hex) && after.trim_start_matches("prio").starts_with("waittime")
}

fn is_summary_heading(text: &str) -> bool {
    let bare = text.trim_start();
    bare.starts_with("comm") && squeezed(bare).starts_with("commparentsched-inrun-time")
}

/// What stands in the lines of a heading below its first one, or at the end of one that was broken.
fn is_below_heading(text: &str) -> bool {
    let known = |word: &str| {
        let names = [
            "[tid/pid]",
            "(msec)",
            "(count)",
            "%",
            "time",
            "run",
            "delay",
            "sch",
            "state",
            "stddev",
            "migrations",
            "max-run",
            "avg-run",
            "iowait",
            "preempt",
        ];
        names.contains(&word) || word.bytes().all(|byte| byte == b'-')
    };
    !text.trim().is_empty() && text.split_whitespace().all(known)
}

/// A row: when a task left its CPU, and its times before.
#[derive(Debug, PartialEq, Eq)]
struct TimehistRow {
    at_ns: u64,
    cpu: u64,
    /// `None` of an idle CPU.
    task: Option<TimehistTask>,
    /// From leaving a CPU to the next run; 0 of a task's first run.
    wait_ns: u64,
    /// The part of it behind a wake-up.
    delay_ns: u64,
    run_ns: u64,
    /// In which state it left, where that is printed.
    state: Option<char>,
}

impl TimehistRow {
    /// Returns when it got the CPU.
    fn begin_ns(&self) -> u64 {
        self.at_ns.saturating_sub(self.run_ns)
    }

    /// Returns whether the delay is one that was seen: perf prints one of a task's first run that is from its first
    /// wake-up on, whatever it did since.
    fn is_woken(&self) -> bool {
        self.delay_ns > 0 && self.delay_ns <= self.wait_ns.saturating_add(ROUNDING_NS)
    }
}

/// What times that are printed to a microsecond may differ by.
const ROUNDING_NS: u64 = 2_000;

/// A task as `timehist_get_commstr` prints it: `sh[586]`, `CPU 0/KVM[171/165]`.
#[derive(Debug, PartialEq, Eq)]
struct TimehistTask {
    comm: String,
    tid: i32,
}

/// Reads a time that is printed with three decimals.
fn msec(word: &str) -> Option<u64> {
    let (_, part) = word.split_once(['.', ','])?;
    (part.len() == 3)
        .then(|| scaled(word, 6))
        .flatten()
        .map(|time| time.ns)
}

/// Reads what begins every line: the time and the CPU. Returns both and what stands behind.
fn begin(text: &str) -> Option<(u64, u64, &str)> {
    let (time, rest) = text.trim_start().split_once(char::is_whitespace)?;
    let (_, part) = time.split_once(['.', ','])?;
    if part.len() != 6 {
        return None;
    }
    let at_ns = scaled(time, 9)?.ns;
    let (cpu, rest) = rest.trim_start().strip_prefix('[')?.split_once(']')?;
    let number = count(cpu).filter(|_| cpu.len() >= 4)?;
    Some((at_ns, number, rest))
}

/// Reads a task. Returns none inside for an idle CPU.
fn task(text: &str) -> Option<Option<TimehistTask>> {
    let text = text.trim();
    if text == "<idle>" || text.starts_with("swapper") {
        return Some(None);
    }
    let (comm, ids) = text.strip_suffix(']')?.rsplit_once('[')?;
    let tid = ids.split('/').next()?.parse().ok()?;
    let comm = comm.to_owned();
    Some(Some(TimehistTask { comm, tid }))
}

/// Reads a row of one line.
fn row(text: &str) -> Option<TimehistRow> {
    let (at_ns, cpu, rest) = begin(text)?;
    let words = words(rest);
    let time = |at: usize| words.get(at).and_then(|(_, word)| msec(word));
    let (at, [wait_ns, delay_ns, run_ns]) =
        (0..words.len()).find_map(|at| Some((at, [time(at)?, time(at + 1)?, time(at + 2)?])))?;
    let (name_end, _) = *words.get(at)?;
    let state = words.get(at + 3).and_then(|(_, word)| state(word));
    let mut name = rest.get(..name_end)?.trim();
    // What -V prints below the CPU's digit: a switch, or one to idle.
    if let Some((mark, behind)) = name.split_once(char::is_whitespace)
        && matches!(mark, "s" | "i")
    {
        name = behind.trim_start();
    }
    // perf 6.13 and later may print priorities behind the name.
    let task = task(name).or_else(|| task(name.rsplit_once(char::is_whitespace)?.0))?;
    Some(TimehistRow {
        at_ns,
        cpu,
        task,
        wait_ns,
        delay_ns,
        run_ns,
        state,
    })
}

/// Reads the state that a task leaves a CPU in (`task_state_char`).
fn state(word: &str) -> Option<char> {
    let mut chars = word.chars();
    let first = chars.next().filter(|c| "RSDTtXxZPIKWN?".contains(*c))?;
    chars.next().is_none().then_some(first)
}

/// Whether a task that left a CPU in a state could have gone on. Kernels since 4.14 have a bit of their own for a
/// preempted task, which perf 6.1 takes for `W`.
fn is_runnable(state: char) -> bool {
    matches!(state, 'R' | 'W')
}

/// Reads a row that may be broken. Returns it and how many lines it takes.
fn row_of(view: &[CleanLine]) -> Option<(TimehistRow, usize)> {
    let first = &view.first()?.text;
    if let Some(row) = row(first) {
        return Some((row, 1));
    }
    begin(first)?;
    // The next row is none's rest.
    let rest = view.iter().skip(1);
    let rest = rest.take_while(|line| begin(&line.text).is_none() && !line.text.trim().is_empty());
    (2..=1 + rest.count()).find_map(|lines| {
        let texts = joined(view, lines);
        Some((texts.iter().find_map(|text| row(text))?, lines))
    })
}

/// Whether a line is of a wake-up or of a migration (`-w`, `-M`): it has no times.
fn is_event(text: &str) -> bool {
    begin(text)
        .is_some_and(|(_, _, rest)| rest.contains("awakened: ") || rest.contains("migrated: "))
}

/// A row of `Runtime summary`: a task, how often it got a CPU and how long it ran.
fn summed(text: &str, line: u64) -> Option<SchedRow> {
    let words = words(text);
    // Counts behind the parent: `sched-in`, then times.
    let at = (2..words.len()).find(|at| {
        let word = |at: usize| words.get(at).map(|(_, word)| *word);
        let whole = |at: usize| word(at).and_then(count);
        let parent = |at: usize| word(at).and_then(|word| word.parse::<i32>().ok());
        let time = |at: usize| word(at).and_then(msec);
        parent(at - 1).is_some()
            && whole(*at).is_some()
            && time(at + 1).is_some()
            && time(at + 2).is_some()
    })?;
    let (parent, _) = words.get(at - 1)?;
    let task = task(text.get(..*parent)?)??;
    let (_, run) = words.get(at + 1)?;
    Some(run_alone(line, task.tid, task.comm, msec(run)?))
}

/// What stands around the rows of a summary.
fn is_around_summary(text: &str) -> bool {
    let text = text.trim();
    let starts = [
        "Runtime summary",
        "Terminated tasks:",
        "Idle stats:",
        "Idle stats by callchain:",
        "Idle time (msec)",
        "Total number of unique tasks:",
        "Total number of context switches:",
        "Total run time (msec):",
        "Total scheduling time (msec):",
        "<no still running tasks>",
        "<no terminated tasks>",
    ];
    let cpu =
        || text.starts_with("CPU ") && (text.contains("idle for") || text.contains("idle entire"));
    starts.iter().any(|start| text.starts_with(start)) || cpu()
}

/// How a task left its CPU the last time.
#[derive(Debug, Clone, Copy)]
struct LeftCpu {
    cpu: u64,
    ran_ns: u64,
    state: Option<char>,
}

/// A task, as rows add up.
#[derive(Debug)]
struct TaskSum {
    row: SchedRow,
    /// Delays together.
    delay_ns: u64,
    left: Option<LeftCpu>,
}

impl TaskSum {
    fn new(tid: i32, line: u64) -> TaskSum {
        TaskSum {
            row: run_alone(line, tid, String::new(), 0),
            delay_ns: 0,
            left: None,
        }
    }

    /// Adds a delay that ended when the task got its CPU.
    fn push_delay(&mut self, ns: u64, end_ns: u64) {
        let row = &mut self.row;
        row.switches += 1;
        self.delay_ns = self.delay_ns.saturating_add(ns);
        if ns > row.delay_max_ns {
            row.delay_max_ns = ns;
            row.delay_max_at_ns = Some(end_ns);
            row.delay_max_start_ns = end_ns.checked_sub(ns);
        }
    }

    /// Returns its row with the mean, which is not printed.
    fn row(self) -> SchedRow {
        SchedRow {
            delay_mean_ns: self.delay_ns / self.row.switches.max(1),
            ..self.row
        }
    }
}

/// Returns a row of a task that ran, and whose delays are not known.
fn run_alone(line: u64, tid: i32, comm: String, runtime_ns: u64) -> SchedRow {
    SchedRow {
        line,
        comm,
        tid: Some(tid),
        threads: None,
        runtime_ns,
        switches: 0,
        delay_mean_ns: 0,
        delay_max_ns: 0,
        delay_max_start_ns: None,
        delay_max_at_ns: None,
    }
}

/// A task that ran for less seldom lost its CPU to another: it slept, and its wake-up was not recorded.
const PREEMPTED_NS: u64 = 1_000_000;
/// CPUs whose idle time is followed.
const MAX_CPUS: usize = 8192;

/// A table under way. It holds tasks and CPUs, however many rows there are.
#[derive(Debug, Default)]
struct OpenTimehist {
    tasks: Vec<TaskSum>,
    /// Where each thread is.
    places: HashMap<i32, usize>,
    left_out: u64,
    /// When each CPU was idle the last time.
    idle: HashMap<u64, u64>,
    /// Whether the rows now are those of `Runtime summary`.
    summed: bool,
    /// Its rows. They count only where nothing better was pasted.
    sums: Vec<SchedRow>,
    /// Whether a row was read.
    begun: bool,
}

impl OpenTimehist {
    fn push(&mut self, row: TimehistRow, line: u64) {
        self.begun = true;
        let Some(task) = &row.task else {
            if self.idle.len() < MAX_CPUS || self.idle.contains_key(&row.cpu) {
                self.idle.insert(row.cpu, row.at_ns);
            }
            return;
        };
        let new = self.tasks.len();
        let place = self.places.get(&task.tid).copied().unwrap_or(new);
        if place == new {
            if new >= MAX_ROWS {
                self.left_out += 1;
                return;
            }
            self.places.insert(task.tid, new);
            self.tasks.push(TaskSum::new(task.tid, line));
        }
        let Some(sum) = self.tasks.get_mut(place) else {
            return;
        };
        if sum.row.comm != task.comm {
            sum.row.comm.clone_from(&task.comm);
        }
        sum.row.runtime_ns = sum.row.runtime_ns.saturating_add(row.run_ns);
        let left = sum.left.replace(LeftCpu {
            cpu: row.cpu,
            ran_ns: row.run_ns,
            state: row.state,
        });
        if row.is_woken() {
            sum.push_delay(row.delay_ns, row.begin_ns());
        } else if row.delay_ns == 0
            && row.wait_ns > 0
            && left.is_some_and(|left| is_preemption(left, &row, &self.idle))
        {
            sum.push_delay(row.wait_ns, row.begin_ns());
        }
    }
}

/// Whether a wait without a wake-up began by preemption, as perf's own table of latencies has it. Without the state's
/// column it is one where the CPU was not idle since, and the task ran for long.
fn is_preemption(left: LeftCpu, row: &TimehistRow, idle: &HashMap<u64, u64>) -> bool {
    let since = row.begin_ns().saturating_sub(row.wait_ns);
    match left.state {
        Some(state) => is_runnable(state),
        None => {
            let idle_at = idle.get(&left.cpu).copied().unwrap_or(0);
            !idle.is_empty()
                && left.ran_ns >= PREEMPTED_NS
                && idle_at <= since.saturating_add(ROUNDING_NS)
        }
    }
}

impl OpenTable for OpenTimehist {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        let text = &first.text;
        if let Some((row, used)) = row_of(view) {
            // Behind a summary another recording begins.
            return (!self.summed).then(|| {
                self.push(row, first.number);
                used
            });
        }
        if is_event(text) || is_around_summary(text) {
            return Some(1);
        }
        if !self.summed && self.begun && is_summary_heading(text) {
            self.summed = true;
            return Some(1);
        }
        let begins = match self.summed {
            true => self.sums.is_empty(),
            false => !self.begun,
        };
        if begins && is_below_heading(text) {
            return Some(1);
        }
        let row = summed(text, first.number).filter(|_| self.summed)?;
        match self.sums.len() < MAX_ROWS {
            true => self.sums.push(row),
            false => self.left_out += 1,
        }
        Some(1)
    }

    fn patience(&self) -> u32 {
        PATIENCE
    }

    fn close(self: Box<Self>, place: TablePlace, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        too_many(place.line, self.left_out, notes);
        let printer = match self.begun {
            true => SchedPrinter::Timehist,
            false => SchedPrinter::TimehistSummary,
        };
        let rows: Vec<SchedRow> = match self.begun {
            true => self.tasks.into_iter().map(TaskSum::row).collect(),
            false => self.sums,
        };
        (!rows.is_empty()).then_some(PerfTable::SchedLatency(SchedLatency {
            printer,
            line: place.line,
            label: place.label,
            rows,
            total_runtime_ns: None,
            total_switches: None,
            lost_events: None,
            notes: Vec::new(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<CleanLine> {
        let numbered = text.lines().zip(1..);
        let line = |(text, number): (&str, u64)| CleanLine {
            number,
            text: text.to_owned(),
        };
        numbered.map(line).collect()
    }

    const ROW: &str =
        "      88.724277 [0002]  CPU 1/KVM[173/165]                  230.000    227.343     44.392";

    #[test]
    fn rows_of_all_options_are_the_same() {
        let (want, _) = row_of(&lines(ROW)).expect("a row");
        let task = want.task.as_ref().expect("a task");
        assert_eq!((task.comm.as_str(), task.tid), ("CPU 1/KVM", 173));
        assert_eq!((want.at_ns, want.cpu), (88_724_277_000, 2));
        assert_eq!(
            (want.wait_ns, want.delay_ns, want.run_ns),
            (230_000_000, 227_343_000, 44_392_000)
        );
        let visual = ROW.replace("]  CPU", "]    s    CPU");
        let prio = ROW.replace("165]   ", "165]  120 ");
        let stacks = format!("{ROW}    io_schedule <- wait_on_page_bit_common <- filemap_read");
        let comma = ROW.replace('.', ",");
        for text in [visual, prio, stacks, comma] {
            assert_eq!(
                row_of(&lines(&text)).map(|(row, _)| row),
                Some(row(ROW).unwrap()),
                "{text}"
            );
        }
        let state = format!("{ROW}      R  next: swapper/2[0]");
        assert_eq!(row(&state).unwrap().state, Some('R'));
    }

    #[test]
    fn a_row_broken_anywhere_is_the_same_row() {
        for at in 30..ROW.len() {
            let (a, b) = ROW.split_at(at);
            if a.trim_end().len() < a.len() && b.trim().is_empty() {
                continue;
            }
            let (found, used) = row_of(&lines(&format!("{a}\n{b}\n{ROW}"))).expect("a row");
            assert_eq!((found, used), (row(ROW).unwrap(), 2), "{a:?} {b:?}");
        }
    }

    #[test]
    fn other_lines_are_no_rows() {
        for text in [
            "88.724277 [0002] CPU 1/KVM[173/165] 0.000 227.343",
            "88.724277 [0002] CPU 1/KVM 0.000 227.343 1.000",
            "CPU 0/KVM-1010  [001]    10.000000: kvm_exit:  reason HLT",
            "perf 548 [000] 88.428733: sched:sched_wakeup: comm=migration/0 pid=16",
            "[   88.724277] [0002] a[1] 1.000 2.000 3.000",
        ] {
            assert_eq!(row_of(&lines(text)), None, "{text}");
        }
    }
}
