//! One sample, read as far as it is asked.

use tracefmt::Endian;

use crate::attr::{Attr, Layout, bits};
use crate::record::{Header, u64_at};

/// `PERF_FORMAT_*` bits.
mod format {
    pub(super) const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    pub(super) const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

/// Returns the thread of a sample, -1 when it is not recorded.
#[inline(always)]
pub(crate) fn tid_of<const BIG: bool>(attrs: &[Attr], body: &[u8], attr: u32) -> i32 {
    int::<BIG>(body, attrs[attr as usize].layout.tid, true)
}

/// Reads one of two 32-bit numbers that stand behind each other.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "each half of the word is a number"
)]
fn int<const BIG: bool>(body: &[u8], at: Option<u16>, second: bool) -> i32 {
    let word = at.and_then(|at| u64_at::<BIG>(body, usize::from(at)));
    // The first is the low half in one byte order, the high in the other.
    word.map_or(-1, |w| {
        if second != BIG {
            (w >> 32) as i32
        } else {
            w as i32
        }
    })
}

/// One sample, borrowed from the recording.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Position in the recording's list of attributes.
    pub attr: u32,
    /// `misc` of the record's header.
    pub misc: u16,
    /// Time stamp in nanoseconds; 0 when the events carry none.
    pub time: u64,
    /// Process id, -1 when not recorded.
    pub pid: i32,
    /// Thread id, -1 when not recorded.
    pub tid: i32,
    /// CPU, -1 when not recorded.
    pub cpu: i32,
    pub(crate) body: &'a [u8],
    pub(crate) layout: &'a Layout,
    pub(crate) read_format: u64,
    pub(crate) endian: Endian,
}

impl<'a> Sample<'a> {
    /// Reads what every sample has.
    #[inline(always)]
    pub(crate) fn of<const BIG: bool>(
        attrs: &'a [Attr],
        endian: Endian,
        header: Header,
        body: &'a [u8],
        time: u64,
        attr: u32,
    ) -> Sample<'a> {
        let description = &attrs[attr as usize];
        let layout = &description.layout;
        Sample {
            attr,
            misc: header.misc,
            time,
            pid: int::<BIG>(body, layout.tid, false),
            tid: int::<BIG>(body, layout.tid, true),
            cpu: int::<BIG>(body, layout.cpu, false),
            body,
            layout,
            read_format: description.read_format,
            endian,
        }
    }

    /// Returns the instruction pointer.
    pub fn ip(&self) -> Option<u64> {
        self.endian.u64(self.body, usize::from(self.layout.ip?))
    }

    /// Returns the address the sample is about.
    pub fn addr(&self) -> Option<u64> {
        self.endian.u64(self.body, usize::from(self.layout.addr?))
    }

    /// Returns how many events the sample stands for.
    pub fn period(&self) -> Option<u64> {
        self.endian.u64(self.body, usize::from(self.layout.period?))
    }

    /// Returns the call chain: 8-byte numbers in the recording's byte order, innermost first.
    pub fn callchain(&self) -> Option<&'a [u8]> {
        if self.layout.sample_type & bits::CALLCHAIN == 0 {
            return None;
        }
        let at = self.after_read()?;
        let count = self.endian.u64(self.body, at)?;
        let bytes = usize::try_from(count).ok()?.checked_mul(8)?;
        self.body.get(at + 8..(at + 8).checked_add(bytes)?)
    }

    /// Returns the tracepoint's record, its common fields included, without the padding behind it being
    /// told apart: the kernel pads records to 8 bytes together with their length.
    #[inline]
    pub fn raw(&self) -> Option<&'a [u8]> {
        let kinds = self.layout.sample_type;
        if kinds & bits::RAW == 0 {
            return None;
        }
        let mut at = usize::from(self.layout.fixed);
        if kinds & (bits::READ | bits::CALLCHAIN) != 0 {
            at = self.after_read()?;
            if kinds & bits::CALLCHAIN != 0 {
                let count = usize::try_from(self.endian.u64(self.body, at)?).ok()?;
                at = at.checked_add(8)?.checked_add(count.checked_mul(8)?)?;
            }
        }
        let size = self.endian.u32(self.body, at)? as usize;
        self.body.get(at + 4..(at + 4).checked_add(size)?)
    }

    /// Returns where the part behind the counter values begins.
    fn after_read(&self) -> Option<usize> {
        let at = usize::from(self.layout.fixed);
        if self.layout.sample_type & bits::READ == 0 {
            return Some(at);
        }
        let has = |bit: u64| usize::from(self.read_format & bit != 0);
        let times = has(format::TOTAL_TIME_ENABLED) + has(format::TOTAL_TIME_RUNNING);
        let each = 1 + has(format::ID) + has(format::LOST);
        let words = if self.read_format & format::GROUP != 0 {
            let count = usize::try_from(self.endian.u64(self.body, at)?).ok()?;
            1usize
                .checked_add(times)?
                .checked_add(count.checked_mul(each)?)?
        } else {
            times + each
        };
        at.checked_add(words.checked_mul(8)?)
    }
}
