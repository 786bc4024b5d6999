//! The columns in front of an event's own text, put together without a formatter: this is what every line
//! costs.

use crate::perf_digits::{decimal, nine, signed, six};

const NANOSECONDS: u64 = 1_000_000_000;
/// Bytes of a thread's name that are kept. The kernel's are at most 15, those of its workers 63.
const MAX_COMM: usize = 127;
/// How many columns a thread's name takes up at least.
const COMM_WIDTH: usize = 16;
/// How many columns a thread id takes up at least.
const TID_WIDTH: usize = 5;

/// A short text that is copied as a whole, whatever its length: copies of a known size need no call.
#[derive(Debug, Clone)]
pub(crate) struct Piece<const N: usize> {
    bytes: [u8; N],
    len: u8,
    /// The text, where it does not fit.
    long: Option<Box<[u8]>>,
}

impl<const N: usize> Piece<N> {
    pub fn new(text: Vec<u8>) -> Piece<N> {
        let mut piece = Piece {
            bytes: [0; N],
            len: 0,
            long: None,
        };
        match piece.bytes.get_mut(..text.len()) {
            Some(place) => {
                place.copy_from_slice(&text);
                piece.len = text.len() as u8;
            }
            None => piece.long = Some(text.into_boxed_slice()),
        }
        piece
    }

    /// Appends the text.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>) {
        match &self.long {
            None => {
                let end = out.len() + self.len as usize;
                out.extend_from_slice(&self.bytes);
                out.truncate(end);
            }
            Some(long) => out.extend_from_slice(long),
        }
    }

    /// Returns the text.
    pub fn text(&self) -> &[u8] {
        match &self.long {
            Some(long) => long,
            None => self.bytes.get(..self.len as usize).unwrap_or_default(),
        }
    }
}

/// Name and id of a thread, with a space behind each.
#[derive(Debug, Clone)]
pub(crate) struct ThreadColumns {
    piece: Piece<32>,
    /// Spaces in front of the name, which lines with call chains leave out.
    pad: u8,
    comm: u8,
}

impl ThreadColumns {
    pub fn new(comm: &[u8], tid: i32) -> ThreadColumns {
        let comm = &comm[..comm.len().min(MAX_COMM)];
        let pad = COMM_WIDTH.saturating_sub(comm.len());
        let mut text = vec![b' '; pad];
        text.extend_from_slice(comm);
        text.push(b' ');
        signed(&mut text, i64::from(tid), TID_WIDTH);
        text.push(b' ');
        ThreadColumns {
            piece: Piece::new(text),
            pad: pad as u8,
            comm: comm.len() as u8,
        }
    }

    /// Returns the columns of a thread whose name nothing tells.
    pub fn nameless(tid: i32) -> ThreadColumns {
        ThreadColumns::new(format!(":{tid}").as_bytes(), tid)
    }

    /// Returns the name.
    pub fn comm(&self) -> &[u8] {
        let from = self.pad as usize;
        self.piece
            .text()
            .get(from..from + self.comm as usize)
            .unwrap_or_default()
    }

    /// Returns both columns, the name without the spaces in front of it.
    fn narrow(&self) -> &[u8] {
        self.piece
            .text()
            .get(self.pad as usize..)
            .unwrap_or_default()
    }
}

/// Name of a kind of event, with colon and space behind it.
#[derive(Debug, Clone)]
pub(crate) struct NameColumn(Piece<{ NameColumn::USUAL }>);

impl NameColumn {
    /// Bytes that are enough for all but the longest names.
    const USUAL: usize = 64;

    pub fn new(label: &[u8], width: usize) -> NameColumn {
        let mut text = vec![b' '; width.saturating_sub(label.len())];
        text.extend_from_slice(label);
        text.extend_from_slice(b": ");
        NameColumn(Piece::new(text))
    }
}

/// Time stamps: the second hardly changes from one line to the next.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Nanoseconds at which the second in `text` begins.
    second: u64,
    /// The second with its point, which are 12 bytes at most, and how many they are.
    text: [u8; 16],
    len: u8,
    /// Whether there are nine decimals instead of six.
    nanoseconds: bool,
}

impl Clock {
    pub fn new(nanoseconds: bool) -> Clock {
        let mut clock = Clock {
            second: 0,
            text: [0; 16],
            len: 0,
            nanoseconds,
        };
        clock.set(0);
        clock
    }

    /// A time takes up 12 columns at least, six of them decimals (`%12s`, or `%5lu.%09llu`).
    #[cold]
    fn set(&mut self, second: u64) {
        let mut text = Vec::with_capacity(16);
        decimal(&mut text, second, 5);
        text.push(b'.');
        self.second = second.wrapping_mul(NANOSECONDS);
        self.len = text.len().min(self.text.len()) as u8;
        for (place, byte) in self.text.iter_mut().zip(text) {
            *place = byte;
        }
    }

    /// Moves on to the second of a time, and returns its nanoseconds.
    #[inline]
    fn advance(&mut self, time: u64) -> u32 {
        let part = time.wrapping_sub(self.second);
        if part < NANOSECONDS {
            return part as u32;
        }
        self.set(time / NANOSECONDS);
        (time % NANOSECONDS) as u32
    }
}

/// What the columns are made of.
#[derive(Debug)]
pub(crate) struct Head<'h> {
    pub thread: &'h ThreadColumns,
    /// Whether the thread's name has no spaces in front of it.
    pub narrow: bool,
    pub cpu: Option<i32>,
    pub time: Option<u64>,
    pub period: Option<u64>,
    pub name: &'h NameColumn,
}

/// Bytes in front of the name where all columns are of usual size: 32 of the thread, 6 of the CPU, 12 and 11
/// of the time.
const USUAL_START: usize = 61;
/// All columns of usual size.
const USUAL: usize = USUAL_START + NameColumn::USUAL;

/// The column of the CPU (`[%03d]`), as six bytes and two to make it a copy of known size.
const CPUS: [[u8; 8]; 1000] = {
    let mut cpus = [*b"[000]   "; 1000];
    let mut n = 0;
    while n < 1000 {
        cpus[n][1] += (n / 100) as u8;
        cpus[n][2] += (n / 10 % 10) as u8;
        cpus[n][3] += (n % 10) as u8;
        n += 1;
    }
    cpus
};

impl Head<'_> {
    /// Appends the columns.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>, clock: &mut Clock) {
        if let (Some(cpu), Some(time), None, false) =
            (self.cpu, self.time, self.period, self.narrow)
            && let Some(cpu) = CPUS.get(cpu as usize)
            && self.thread.piece.long.is_none()
            && self.name.0.long.is_none()
        {
            let part = clock.advance(time);
            let start = out.len();
            out.extend_from_slice(&[0; USUAL]);
            let rest = out.get_mut(start..).unwrap_or_default();
            if let Some(line) = rest.first_chunk_mut::<USUAL>() {
                let mut at = copy(line, 0, &self.thread.piece.bytes, self.thread.piece.len);
                at = copy(line, at, cpu, 6);
                at = copy(line, at, &clock.text, clock.len);
                at = if clock.nanoseconds {
                    let [a, b, c, d, e, f, g, h, i] = nine(part);
                    copy(line, at, &[a, b, c, d, e, f, g, h, i, b':', b' '], 11)
                } else {
                    let [a, b, c, d, e, f] = six(part / 1000);
                    copy(line, at, &[a, b, c, d, e, f, b':', b' '], 8)
                };
                at = copy(line, at, &self.name.0.bytes, self.name.0.len);
                out.truncate(start + at);
            }
            return;
        }
        self.put_any(out, clock);
    }

    /// Appends the columns, whichever there are and however long.
    fn put_any(&self, out: &mut Vec<u8>, clock: &mut Clock) {
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
            out.extend_from_slice(clock.text.get(..clock.len as usize).unwrap_or_default());
            if clock.nanoseconds {
                out.extend_from_slice(&nine(part));
            } else {
                out.extend_from_slice(&six(part / 1000));
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

/// Copies bytes to a place in a line, and returns where the first `len` of them end. Those behind are there to
/// make it a copy of known size; the next one goes over them.
#[inline]
fn copy<const N: usize>(line: &mut [u8; USUAL], at: usize, bytes: &[u8; N], len: u8) -> usize {
    match line.get_mut(at..at + N) {
        Some(place) => {
            place.copy_from_slice(bytes);
            at + len as usize
        }
        None => at,
    }
}
