//! The columns in front of an event's own text, put together without a formatter: this is what every line
//! costs.

use symbols::ThreadName;
use tracefmt::FormatText;

use crate::columns::{CPUS, LINE, ShortText, StampCache, copy};
use crate::digits::{decimal, signed, six, three, three_and_colon};

/// Bytes of a thread's name that are kept. The kernel's are at most 15, those of its workers 63.
const MAX_COMM: usize = 127;
/// How many columns a thread's name takes up at least.
const COMM_WIDTH: usize = 16;
/// How many columns a thread id takes up at least.
const TID_WIDTH: usize = 5;

/// Name and id of a thread, with a space behind each.
#[derive(Debug, Clone)]
pub(crate) struct ThreadColumns {
    piece: ShortText<32>,
    /// Spaces in front of the name, which lines with call chains leave out.
    pad: u8,
    comm: u8,
}

impl ThreadName for ThreadColumns {
    fn named(comm: &[u8], tid: i32) -> ThreadColumns {
        let comm = &comm[..comm.len().min(MAX_COMM)];
        let pad = COMM_WIDTH.saturating_sub(comm.len());
        let mut text = FormatText::new();
        text.fill(b' ', pad);
        text.extend_from_slice(comm);
        text.push(b' ');
        signed(&mut text, i64::from(tid), TID_WIDTH);
        text.push(b' ');
        ThreadColumns {
            piece: ShortText::new(text.as_bytes()),
            pad: pad as u8,
            comm: comm.len() as u8,
        }
    }

    fn unnamed(tid: i32) -> ThreadColumns {
        ThreadColumns::named(format!(":{tid}").as_bytes(), tid)
    }

    fn comm(&self) -> &[u8] {
        let from = usize::from(self.pad);
        self.piece
            .text()
            .get(from..from + usize::from(self.comm))
            .unwrap_or_default()
    }
}

impl ThreadColumns {
    /// Returns both columns, the name without the spaces in front of it.
    fn narrow(&self) -> &[u8] {
        self.piece
            .text()
            .get(usize::from(self.pad)..)
            .unwrap_or_default()
    }
}

/// Name of a kind of event, with colon and space behind it.
#[derive(Debug, Clone)]
pub(crate) struct NameColumn(ShortText<{ NameColumn::USUAL }>);

impl NameColumn {
    /// Bytes that are enough for all but the longest names.
    const USUAL: usize = 64;

    /// Whether nothing in the name steers a terminal.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.plain
    }

    pub(crate) fn new(label: &[u8], width: usize) -> NameColumn {
        let mut text = vec![b' '; width.saturating_sub(label.len())];
        text.extend_from_slice(label);
        text.extend_from_slice(b": ");
        NameColumn(ShortText::new(&text))
    }
}

/// What the columns are made of.
#[derive(Debug)]
pub(crate) struct ColumnParts<'h> {
    pub thread: &'h ThreadColumns,
    /// Whether the thread's name has no spaces in front of it.
    pub narrow: bool,
    pub cpu: Option<i32>,
    pub time: Option<u64>,
    pub period: Option<u64>,
    pub name: &'h NameColumn,
}

/// Appends the columns of a tracepoint, if all are of usual size. Returns nothing if they are not, and whether it is
/// known that nothing in them steers a terminal.
#[inline(always)]
pub(crate) fn put_usual(
    out: &mut FormatText,
    thread: &ThreadColumns,
    cpu: i32,
    clock: &mut StampCache,
    time: u64,
    name: &NameColumn,
) -> Option<bool> {
    let cpu = CPUS.get(cpu as usize)?;
    if time == 0 || thread.piece.is_long() || name.0.is_long() {
        return None;
    }
    let part = clock.advance(time);
    let line = out.room(LINE).first_chunk_mut()?;
    let mut at = copy(line, 0, &thread.piece.bytes, thread.piece.len);
    at = copy(line, at, cpu, 6);
    at = copy(line, at, &clock.text, clock.len);
    at = if clock.nanoseconds {
        let [a, b, c, d, e, f] = six(part);
        copy(line, at, &[a, b, c, d, e, f, b':', b' '], 8)
    } else {
        copy(line, at, &three_and_colon(part / 1000), 5)
    };
    at = copy(line, at, &name.0.bytes, name.0.len);
    out.advance(at);
    Some(thread.piece.plain)
}

impl ColumnParts<'_> {
    /// Appends the columns, whichever there are and however long.
    pub(crate) fn put(&self, out: &mut FormatText, clock: &mut StampCache) {
        let thread = self.thread;
        out.extend_from_slice(if self.narrow {
            thread.narrow()
        } else {
            thread.piece.text()
        });
        match self.cpu {
            Some(cpu @ 0..) => {
                let [_, _, _, a, b, c] = six(cpu as u32 % 1000);
                out.push(b'[');
                if cpu >= 1000 {
                    decimal(out, cpu as u64 / 1000, 0);
                }
                out.extend_from_slice(&[a, b, c, b']', b' ']);
            }
            Some(cpu) => out.extend_from_slice(format!("[{cpu:03}] ").as_bytes()),
            None => {}
        }
        if let Some(time) = self.time {
            let part = clock.advance(time);
            out.extend_from_slice(clock.millisecond());
            if clock.nanoseconds {
                out.extend_from_slice(&six(part));
            } else {
                out.extend_from_slice(&three(part / 1000));
            }
            out.extend_from_slice(b": ");
        }
        if let Some(period) = self.period {
            decimal(out, period, 10);
            out.push(b' ');
        }
        out.extend_from_slice(self.name.0.text());
    }
}
