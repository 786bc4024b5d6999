//! System calls that `strace` and `perf trace` print, a line each, added up: by thread and call, and what is written by
//! thread and file descriptor. Formats: [`crate::syscall_line`].

use std::collections::HashMap;

use forms::InputForm;

use crate::lines::{CleanLine, joined};
use crate::open::{MAX_ROWS, too_many};
use crate::syscall_line::{self, CallLine, CallThread, CallTime, CallTracer, SystemCall};
use crate::table_form::{OpenTable, TableBeginning, TableForm, TablePlace};
use crate::types::{
    CountPrinter, FileWrites, PerfTable, SyscallRow, SyscallThread, SyscallTotals, TableNote,
};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "strace, perf trace",
    recognised_by: "lines of calls: `ioctl(32, KVM_RUN, 0) = 0`, with a thread, a time, or what it took, or without; \
                    three of them, or one of KVM's",
    yields: "counts by thread and call; of each file descriptor the writes, their bytes, and how often the thread came \
             back from `KVM_RUN` meanwhile",
    fixtures: &[
        "tests/tables/strace-vcpu-tt.txt",
        "tests/tables/strace-f-T.txt",
        "tests/tables/perf-trace.txt",
    ],
};

pub(crate) const TABLE: TableForm = TableForm {
    form: &FORM,
    heading,
    row: Some(first_row),
};

/// Lines in a row of other text, after which it is over.
const PATIENCE: u32 = 4;
/// File descriptors that writes are counted of.
const MAX_FILES: usize = 4096;
/// Calls that are more than an example in prose.
const MIN_CALLS: u64 = 3;
/// Nanoseconds of a day: the time of day begins anew.
const DAY_NS: u64 = 86_400_000_000_000;

/// The command that attaches says the thread, which lines of one thread leave out.
fn heading(view: &[CleanLine]) -> Option<TableBeginning> {
    let tid = attached(&view.first()?.text)?;
    let open = OpenCalls {
        tid: Some(tid),
        ..OpenCalls::default()
    };
    Some((Box::new(open), 1))
}

/// Reads `strace -tt -p 38613`.
fn attached(text: &str) -> Option<i32> {
    let mut words = text.split_whitespace().skip_while(|word| *word != "strace");
    words.next()?;
    let rest: Vec<&str> = words.collect();
    let at = rest.iter().position(|word| *word == "-p")?;
    rest.get(at + 1)?.parse().ok()
}

fn first_row(view: &[CleanLine]) -> Option<TableBeginning> {
    let (text, _) = whole(view)?;
    // Anything may be a call without a thread and a time; what is KVM's is none of prose.
    let begins = match syscall_line::line(&text)? {
        CallLine::Call(call) => {
            call.time.is_some() || call.thread.tid.is_some() || call.name.starts_with("ioctl(KVM_")
        }
        CallLine::Begun { thread, time, .. } => thread.tid.is_some() || time.is_some(),
        CallLine::Resumed { .. } | CallLine::Other => false,
    };
    let mut open = OpenCalls::default();
    let used = begins.then(|| open.take(view)).flatten()?;
    Some((Box::new(open), used))
}

/// Writes of a thread to a file descriptor.
#[derive(Debug, Default)]
struct OpenWrites {
    writes: FileWrites,
    first_ns: Option<u64>,
    /// Returns from `KVM_RUN` and interrupts up to the last write.
    before: RunCounts,
}

/// What a thread did of what matters between writes.
#[derive(Debug, Clone, Copy, Default)]
struct RunCounts {
    runs: u64,
    irq_lines: u64,
}

/// A table under way. It holds threads, calls and file descriptors, however many lines there are.
#[derive(Debug, Default)]
struct OpenCalls {
    /// The thread of lines that do not say it.
    tid: Option<i32>,
    by: Option<CallTracer>,
    rows: Vec<SyscallRow>,
    places: HashMap<(Option<i32>, String), usize>,
    names: HashMap<i32, String>,
    files: Vec<OpenWrites>,
    file_places: HashMap<(Option<i32>, u64), usize>,
    runs: HashMap<Option<i32>, RunCounts>,
    /// What a thread's call that did not return yet began with, and when.
    begun: HashMap<Option<i32>, String>,
    calls: u64,
    of_kvm: bool,
    /// Whether another text was announced.
    over: bool,
    left_out: u64,
    first_ns: Option<u64>,
    last_ns: u64,
}

/// Whether a call writes bytes, and returns how many.
fn is_write(name: &str) -> bool {
    matches!(
        name,
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" | "sendto" | "sendmsg" | "send"
    )
}

impl OpenCalls {
    fn thread(&mut self, thread: CallThread<'_>) -> Option<i32> {
        if let (Some(tid), Some(comm)) = (thread.tid, thread.comm)
            && self.names.len() < MAX_ROWS
            && self.names.get(&tid).is_none_or(|name| name != comm)
        {
            self.names.insert(tid, comm.to_owned());
        }
        thread.tid.or(self.tid)
    }

    /// Notes when a line was, and returns that.
    fn at(&mut self, time: Option<CallTime>) -> Option<u64> {
        let at = match time? {
            CallTime::At(mut ns) => {
                // Lines of several threads may be a little out of order; a day is not.
                while ns.saturating_add(DAY_NS / 2) < self.last_ns {
                    ns = ns.saturating_add(DAY_NS);
                }
                ns
            }
            CallTime::Since(ns) => self.last_ns.saturating_add(ns),
        };
        self.first_ns.get_or_insert(at);
        self.last_ns = self.last_ns.max(at);
        Some(at)
    }

    fn push(&mut self, call: &SystemCall<'_>, tid: Option<i32>, at: Option<u64>) {
        self.calls += 1;
        self.of_kvm |= call.name.starts_with("ioctl(KVM_");
        if self.runs.len() < MAX_ROWS || self.runs.contains_key(&tid) {
            let runs = self.runs.entry(tid).or_default();
            runs.runs += u64::from(call.name == "ioctl(KVM_RUN)");
            runs.irq_lines += u64::from(call.name.starts_with("ioctl(KVM_IRQ_LINE"));
        }
        if is_write(&call.name) {
            self.push_write(call, tid, at);
        }
        let key = (tid, call.name.clone());
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if self.rows.len() >= MAX_ROWS => {
                self.left_out += 1;
                return;
            }
            None => {
                self.places.insert(key, self.rows.len());
                self.rows.push(SyscallRow {
                    thread: SyscallThread { tid, comm: None },
                    call: call.name.clone(),
                    count: 0,
                    errors: 0,
                });
                self.rows.len() - 1
            }
        };
        if let Some(row) = self.rows.get_mut(place) {
            row.count += 1;
            row.errors += u64::from(call.result.is_none());
        }
    }

    fn push_write(&mut self, call: &SystemCall<'_>, tid: Option<i32>, at: Option<u64>) {
        let (Some(file), Some(bytes)) = (call.file, call.result) else {
            return;
        };
        let new = self.files.len();
        let place = match self.file_places.get(&(tid, file.fd)) {
            Some(place) => *place,
            None if new >= MAX_FILES => return,
            None => {
                self.file_places.insert((tid, file.fd), new);
                self.files.push(OpenWrites::default());
                new
            }
        };
        let now = self.runs.get(&tid).copied().unwrap_or_default();
        let Some(open) = self.files.get_mut(place) else {
            return;
        };
        let writes = &mut open.writes;
        if writes.count == 0 {
            writes.thread.tid = tid;
            writes.fd = file.fd;
            open.before = now;
            open.first_ns = at;
        }
        if let Some(path) = file.path {
            writes.path = Some(path.to_owned());
        }
        writes.count += 1;
        writes.bytes = writes.bytes.saturating_add(bytes);
        writes.of_one_byte += u64::from(bytes == 1);
        writes.runs = now.runs.saturating_sub(open.before.runs);
        writes.irq_lines = now.irq_lines.saturating_sub(open.before.irq_lines);
        let first = open.first_ns;
        writes.span_ns = at.zip(first).map(|(at, first)| at.saturating_sub(first));
    }

    fn begin(&mut self, tid: Option<i32>, text: &str) {
        if self.begun.len() < MAX_ROWS || self.begun.contains_key(&tid) {
            self.begun.insert(tid, text.to_owned());
        }
    }

    /// Puts a call that went on together, and takes it.
    fn resume(&mut self, tid: Option<i32>, text: &str, at: Option<u64>) {
        let Some(mut whole) = self.begun.remove(&tid) else {
            return;
        };
        whole.push_str(text);
        // perf trace prints the arguments at the beginning alone, with their parenthesis.
        let whole = whole.replace("))", ")");
        if let Some(call) = syscall_line::call(&whole) {
            self.push(&call, tid, at);
        }
    }
}

impl OpenTable for OpenCalls {
    fn take(&mut self, view: &[CleanLine]) -> Option<usize> {
        let first = view.first()?;
        if self.over || attached(&first.text).is_some() {
            return None;
        }
        if first.text.trim_matches(['.', ' ']).is_empty() {
            return Some(1);
        }
        let Some((text, used)) = whole(view) else {
            // What another text is announced with.
            self.over = first.text.ends_with(':');
            return None;
        };
        match syscall_line::line(&text)? {
            CallLine::Call(call) => {
                self.by.get_or_insert(call.by);
                let tid = self.thread(call.thread);
                let at = self.at(call.time);
                self.push(&call, tid, at);
            }
            CallLine::Begun { thread, time, text } => {
                let tid = self.thread(thread);
                self.at(time);
                self.begin(tid, text);
            }
            CallLine::Resumed { thread, time, text } => {
                let tid = self.thread(thread);
                let at = self.at(time);
                self.resume(tid, text, at);
            }
            CallLine::Other => {}
        }
        Some(used)
    }

    fn patience(&self) -> u32 {
        PATIENCE
    }

    fn close(self: Box<Self>, place: TablePlace, notes: &mut Vec<TableNote>) -> Option<PerfTable> {
        if self.calls == 0 || self.calls < MIN_CALLS && !self.of_kvm {
            return None;
        }
        too_many(place.line, self.left_out, notes);
        let names = self.names;
        let named = |thread: &mut SyscallThread| {
            thread.comm = thread.tid.and_then(|tid| names.get(&tid).cloned());
        };
        let mut rows = self.rows;
        rows.iter_mut().for_each(|row| named(&mut row.thread));
        let mut writes: Vec<FileWrites> = self.files.into_iter().map(|open| open.writes).collect();
        writes.iter_mut().for_each(|one| named(&mut one.thread));
        let span_ns = self
            .first_ns
            .map(|first| self.last_ns.saturating_sub(first));
        Some(PerfTable::SyscallTotals(SyscallTotals {
            printer: match self.by {
                Some(CallTracer::PerfTrace) => CountPrinter::PerfTrace,
                _ => CountPrinter::Strace,
            },
            line: place.line,
            label: place.label,
            rows,
            writes,
            span_ns: span_ns.filter(|ns| *ns > 0),
        }))
    }
}

/// Reads a line that may be broken. Returns it as it was, and how many it takes.
fn whole(view: &[CleanLine]) -> Option<(String, usize)> {
    let first = &view.first()?.text;
    if syscall_line::line(first).is_some() {
        return Some((first.clone(), 1));
    }
    let opens = first.find('(').is_some_and(|at| at > 1) && !first.contains(") = ");
    if !opens {
        return None;
    }
    let rest = view.iter().skip(1);
    let rest = rest.take_while(|line| {
        !line.text.trim().is_empty() && syscall_line::line(&line.text).is_none()
    });
    (2..=1 + rest.count()).find_map(|lines| {
        let texts = joined(view, lines).into_iter();
        let found = texts
            .rev()
            .find(|text| syscall_line::line(text).is_some())?;
        Some((found, lines))
    })
}
