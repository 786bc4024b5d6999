//! Events as rows of CSV. Cells that hardly change are made once; an event's own text is written where it stands, and
//! made anew only where something in it has to be quoted or shown.

use event::{Event, index_of};
use eventtext::EventPrinter;
use model::Threads;
use render::csv;
use tracefmt::FormatText;

/// Threads whose cells are kept, a power of two.
const THREADS: usize = 256;

/// Rows of the events of one recording.
#[derive(Debug, Default)]
pub(super) struct EventRows {
    /// What stands before the time.
    before: String,
    /// By the low bits of the thread id.
    threads: Vec<Option<ThreadCells>>,
    /// Names of kinds of events.
    kinds: Vec<Option<Box<str>>>,
    cells: String,
}

/// The cells of a thread, with a comma behind each.
#[derive(Debug)]
struct ThreadCells {
    pid: i32,
    tid: i32,
    text: Box<str>,
}

impl EventRows {
    /// Says what a recording is called, where there are several, and whether its times are nanoseconds.
    pub(super) fn begin_with(&mut self, name: Option<&str>, nanoseconds: bool) {
        self.before.clear();
        if let Some(name) = name {
            csv::field(&mut self.before, name);
            self.before.push(',');
        }
        // The column of nanoseconds is empty where times are ticks.
        if !nanoseconds {
            self.before.push(',');
        }
    }

    /// Takes note that kinds of events have come.
    pub(super) fn declare(&mut self) {
        self.kinds.clear();
    }

    /// Takes note that threads may have other names.
    pub(super) fn forget_threads(&mut self) {
        self.threads.clear();
    }

    /// Appends an event as a row, in which nothing steers a terminal.
    pub(super) fn put(
        &mut self,
        event: &Event<'_>,
        printer: &EventPrinter<'_>,
        threads: &Threads,
        out: &mut FormatText,
    ) {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(self.before.as_bytes());
        out.extend_from_slice(digits.format(event.time).as_bytes());
        out.push(b',');
        if event.cpu >= 0 {
            out.extend_from_slice(digits.format(event.cpu).as_bytes());
        }
        out.push(b',');
        out.extend_from_slice(self.thread(event, threads).as_bytes());
        out.extend_from_slice(self.kind(event).as_bytes());
        let start = out.len();
        printer.body(event, out);
        close_text(out, start, &mut self.cells);
        out.push(b'\n');
    }

    fn thread(&mut self, event: &Event<'_>, threads: &Threads) -> &str {
        if event.comm.is_some() {
            self.cells.clear();
            thread_cells(event, threads, &mut self.cells);
            return &self.cells;
        }
        if self.threads.is_empty() {
            self.threads.resize_with(THREADS, || None);
        }
        let at = event.tid as usize & (THREADS - 1);
        let Some(place) = self.threads.get_mut(at) else {
            return "";
        };
        let same = |one: &&ThreadCells| one.tid == event.tid && one.pid == event.pid;
        if place.as_ref().filter(same).is_none() {
            *place = None;
        }
        &place
            .get_or_insert_with(|| {
                let mut text = String::new();
                thread_cells(event, threads, &mut text);
                ThreadCells {
                    pid: event.pid,
                    tid: event.tid,
                    text: text.into(),
                }
            })
            .text
    }

    fn kind(&mut self, event: &Event<'_>) -> &str {
        let at = index_of(event.ty.index);
        if self.kinds.len() <= at {
            self.kinds.resize_with(at.saturating_add(1), || None);
        }
        let Some(place) = self.kinds.get_mut(at) else {
            return "";
        };
        place.get_or_insert_with(|| {
            let mut text = String::new();
            csv::field(&mut text, event.ty.label);
            text.push(',');
            text.into()
        })
    }
}

/// Appends the process, the id and the name of the thread of an event. What is not known is empty.
fn thread_cells(event: &Event<'_>, threads: &Threads, out: &mut String) {
    let known = |n: i32| (n >= 0).then_some(n);
    let thread = threads.get(event.tid);
    let pid = known(event.pid).or_else(|| thread.and_then(|one| one.pid));
    let comm = thread.and_then(|one| one.comm.as_deref());
    for number in [pid, known(event.tid)] {
        if let Some(number) = number {
            csv::field(out, itoa::Buffer::new().format(number));
        }
        out.push(',');
    }
    csv::field(out, event.comm.or(comm).unwrap_or(""));
    out.push(',');
}

/// Makes a cell of the text that begins at a place and ends with all that was written, without white space behind it.
fn close_text(out: &mut FormatText, start: usize, cell: &mut String) {
    let text = out.as_bytes().get(start..).unwrap_or_default();
    let kept = text.trim_ascii_end();
    if csv::stands_as_it_is(kept) {
        let end = start + kept.len();
        return out.truncate(end);
    }
    cell.clear();
    csv::field(cell, String::from_utf8_lossy(text).trim_end());
    out.truncate(start);
    out.extend_from_slice(cell.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a cell is by the rules, one character after the other.
    fn by_the_rules(text: &[u8]) -> String {
        let text = String::from_utf8_lossy(text);
        let shown = render::neutral::cell(text.trim_end());
        if shown.chars().any(|c| ",\"\n\r".contains(c)) {
            return format!("\"{}\"", shown.replace('"', "\"\""));
        }
        shown.into_owned()
    }

    #[test]
    fn texts_are_quoted_wherever_something_in_them_needs_it() {
        let special: [&[u8]; 20] = [
            b",",
            b"\"",
            b"\n",
            b"\r",
            b"\r\n",
            b"\t",
            b"\x0b",
            b"\x0c",
            b"\x1b",
            b"\0",
            b"\x7f",
            b"=",
            b"-",
            b"@",
            b" ",
            b"\xff",
            b"\xe2\x80",
            "\u{9b}".as_bytes(),
            "\u{202e}".as_bytes(),
            "\u{a0}é".as_bytes(),
        ];
        for length in [0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100] {
            for part in special {
                for at in 0..=length {
                    let text = [&vec![b'a'; at], part, &vec![b'b'; length - at]].concat();
                    let mut out = FormatText::new();
                    out.extend_from_slice(b"1,");
                    out.extend_from_slice(&text);
                    close_text(&mut out, 2, &mut String::from("old"));
                    let expected = format!("1,{}", by_the_rules(&text));
                    let made = String::from_utf8_lossy(out.as_bytes());
                    assert_eq!(made, expected, "{text:?}");
                }
            }
        }
    }
}
