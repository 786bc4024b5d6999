//! One sample, read as far as it is asked.

use tracefmt::Endian;
use tracefmt::index_of;

use crate::attr::{EventAttr, SampleLayout, bits, format};
use crate::record::{PerfRecordHeader, u64_at};

/// `PERF_SAMPLE_BRANCH_HW_INDEX` and `PERF_SAMPLE_BRANCH_COUNTERS`: a branch stack has a word before, and one for each
/// branch behind.
const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;
/// `PERF_SAMPLE_BRANCH_CALL_STACK`: branches are the calls under way, not the last ones taken (`--call-graph lbr`).
const BRANCH_CALL_STACK: u64 = 1 << 11;

/// What was recorded of user space to make a stack of: registers, and a piece of the stack (`--call-graph dwarf`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledUserStack<'a> {
    /// Which registers there are, a bit each, by the numbers of `PERF_REG_*` (`arch/*/include/uapi/asm/perf_regs.h`).
    pub mask: u64,
    /// Whether the program is of 32 bits (`PERF_SAMPLE_REGS_ABI_32`).
    pub is_32: bool,
    /// The registers, in the order of their numbers, as 8-byte numbers in the recording's byte order.
    pub registers: &'a [u8],
    /// What was on the stack, from the stack pointer on.
    pub stack: &'a [u8],
}

/// Returns the thread and the CPU of a sample, each -1 when it is not recorded.
#[inline(always)]
pub(crate) fn place_of<const BIG: bool>(attrs: &[EventAttr], body: &[u8], attr: u32) -> (i32, i32) {
    let layout = &attrs[index_of(attr)].layout;
    (
        int::<BIG>(body, layout.tid, true),
        int::<BIG>(body, layout.cpu, false),
    )
}

/// The record of a tracepoint, with when, where and by whom it was made.
#[derive(Debug, Clone, Copy)]
pub struct TracepointRecord<'a> {
    /// Position in the recording's list of attributes.
    pub attr: u32,
    /// Time stamp in nanoseconds; 0 when the events carry none.
    pub time: u64,
    /// Process id, -1 when not recorded.
    pub pid: i32,
    /// Thread id, -1 when not recorded.
    pub tid: i32,
    /// CPU, -1 when not recorded.
    pub cpu: i32,
    /// The record, its common fields included.
    pub raw: &'a [u8],
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
pub struct PerfSample<'a> {
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
    pub(crate) layout: &'a SampleLayout,
    pub(crate) read_format: u64,
    pub(crate) endian: Endian,
    /// Of an event of a sampled group: how many events it counted since the sample before.
    pub(crate) counted: Option<u64>,
    /// Whether the leader of its group made the sample.
    pub(crate) is_members: bool,
}

impl<'a> PerfSample<'a> {
    /// Reads what every sample has.
    #[inline(always)]
    pub(crate) fn of<const BIG: bool>(
        attrs: &'a [EventAttr],
        endian: Endian,
        header: PerfRecordHeader,
        body: &'a [u8],
        time: u64,
        attr: u32,
    ) -> PerfSample<'a> {
        let description = &attrs[index_of(attr)];
        let layout = &description.layout;
        PerfSample {
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
            counted: None,
            is_members: false,
        }
    }

    /// Returns what a leader's sample says of an event of its group.
    pub(crate) fn of_member(&self, attr: u32, counted: u64) -> PerfSample<'a> {
        PerfSample {
            attr,
            counted: Some(counted),
            is_members: attr != self.attr,
            ..*self
        }
    }

    /// Returns ids and values of the events of the group, as far as the record holds them.
    pub(crate) fn group_values(&self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let has = |bit: u64| usize::from(self.read_format & bit != 0);
        let times = has(format::TOTAL_TIME_ENABLED) + has(format::TOTAL_TIME_RUNNING);
        let each = 8 * (2 + has(format::LOST));
        let at = usize::from(self.layout.fixed);
        let count = self.endian.u64(self.body, at).unwrap_or(0);
        let values = self.body.get(at + 8 * (1 + times)..).unwrap_or_default();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let endian = self.endian;
        let each = values.chunks_exact(each).take(count);
        each.filter_map(move |one| Some((endian.u64(one, 8)?, endian.u64(one, 0)?)))
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
        if self.counted.is_some() {
            return self.counted;
        }
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
    /// distinguished: the kernel pads records to 8 bytes together with their length. That of a group's leader is not
    /// its members'.
    #[inline]
    pub fn raw(&self) -> Option<&'a [u8]> {
        let at = match self.layout.raw {
            Some(at) if !self.is_members => usize::from(at),
            _ => self.behind_chain()?,
        };
        let size = self.endian.u32(self.body, at)? as usize;
        self.body.get(at + 4..(at + 4).checked_add(size)?)
    }

    /// Returns where the tracepoint's record is behind parts of variable size.
    #[inline(never)]
    fn behind_chain(&self) -> Option<usize> {
        let kinds = self.layout.sample_type;
        if kinds & bits::RAW == 0 || self.is_members {
            return None;
        }
        let at = self.after_read()?;
        if kinds & bits::CALLCHAIN == 0 {
            return Some(at);
        }
        let count = usize::try_from(self.endian.u64(self.body, at)?).ok()?;
        at.checked_add(8)?.checked_add(count.checked_mul(8)?)
    }

    /// Returns where the entries of the branch stack at `at` begin and end.
    fn branches(&self, at: usize) -> Option<(usize, usize)> {
        let count = usize::try_from(self.endian.u64(self.body, at)?).ok()?;
        let index = 8 * usize::from(self.layout.branches & BRANCH_HW_INDEX != 0);
        let begin = at.checked_add(8 + index)?;
        let end = begin.checked_add(count.checked_mul(24)?)?;
        (end <= self.body.len()).then_some((begin, end))
    }

    /// Returns the calls that were under way in user space as the CPU's last branch records had them (`--call-graph
    /// lbr`), innermost first: from and to where, and flags, 8-byte numbers in the recording's byte order.
    pub fn call_branches(&self) -> Option<&'a [u8]> {
        let has = self.layout.sample_type & bits::BRANCH_STACK != 0;
        if !has || self.layout.branches & BRANCH_CALL_STACK == 0 {
            return None;
        }
        let (begin, end) = self.branches(self.after_raw()?)?;
        self.body.get(begin..end)
    }

    /// Returns what was recorded of user space to make a stack of. `None` where nothing was: kernel threads have none.
    pub fn user_stack(&self) -> Option<SampledUserStack<'a>> {
        let kinds = self.layout.sample_type;
        if kinds & (bits::REGS_USER | bits::STACK_USER) != bits::REGS_USER | bits::STACK_USER {
            return None;
        }
        let mut at = self.after_raw()?;
        if kinds & bits::BRANCH_STACK != 0 {
            let has = |bit: u64| u64::from(self.layout.branches & bit != 0);
            let (_, end) = self.branches(at)?;
            let counters = self
                .endian
                .u64(self.body, at)?
                .checked_mul(8 * has(BRANCH_COUNTERS))?;
            at = end.checked_add(usize::try_from(counters).ok()?)?;
        }
        // PERF_SAMPLE_REGS_ABI_NONE, 32, 64.
        let abi = self.endian.u64(self.body, at)?;
        if abi == 0 {
            return None;
        }
        let mask = self.layout.user_regs;
        let end = at + 8 + 8 * index_of(mask.count_ones());
        let registers = self.body.get(at + 8..end)?;
        // A size; so many bytes, and how many of them are the stack's. Where the size is 0 there is nothing behind it.
        let room = usize::try_from(self.endian.u64(self.body, end)?).ok()?;
        let stack = self.body.get(end + 8..(end + 8).checked_add(room)?)?;
        let used = match room {
            0 => 0,
            _ => self.endian.u64(self.body, end + 8 + room)?,
        };
        let used = usize::try_from(used).unwrap_or(room).min(room);
        Some(SampledUserStack {
            mask,
            is_32: abi == 1,
            registers,
            stack: &stack[..used],
        })
    }

    /// Returns where the part behind the tracepoint's record begins.
    pub(crate) fn after_raw(&self) -> Option<usize> {
        let kinds = self.layout.sample_type;
        let mut at = self.after_read()?;
        if kinds & bits::CALLCHAIN != 0 {
            let count = usize::try_from(self.endian.u64(self.body, at)?).ok()?;
            at = at.checked_add(8)?.checked_add(count.checked_mul(8)?)?;
        }
        if kinds & bits::RAW != 0 {
            let size = self.endian.u32(self.body, at)? as usize;
            at = at.checked_add(4)?.checked_add(size)?;
        }
        Some(at)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample with these parts, of events that record six registers.
    fn sample<'a>(
        kinds: u64,
        branches: u64,
        body: &'a [u8],
        layout: &'a mut SampleLayout,
    ) -> PerfSample<'a> {
        *layout = SampleLayout::new(kinds, false);
        layout.branches = branches;
        layout.user_regs = 0b11_1111;
        PerfSample {
            attr: 0,
            misc: 2,
            time: 0,
            pid: 1,
            tid: 1,
            cpu: 0,
            body,
            layout,
            read_format: 0,
            endian: Endian::Little,
            counted: None,
            is_members: false,
        }
    }

    #[test]
    fn what_stacks_are_made_of_stands_behind_all_that_may_be_before_it() {
        let words = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let user = words(&[2, 10, 11, 12, 13, 14, 15, 24, 1, 2, 3, 16]);
        let kinds = bits::REGS_USER | bits::STACK_USER;
        let chain = words(&[2, 100, 101]);
        let raw = [&12u32.to_le_bytes()[..], &[7; 12]].concat();
        let branches = words(&[1, 5, 6, 7]);
        let indexed = words(&[1, 9, 5, 6, 7, 8]);
        let index = BRANCH_HW_INDEX | BRANCH_COUNTERS;
        let cases = [
            (kinds, 0, user.clone()),
            (kinds | bits::CALLCHAIN, 0, [&chain[..], &user].concat()),
            (
                kinds | bits::CALLCHAIN | bits::RAW | bits::BRANCH_STACK,
                0,
                [&chain[..], &raw, &branches, &user].concat(),
            ),
            (
                kinds | bits::BRANCH_STACK,
                index,
                [&indexed[..], &user].concat(),
            ),
        ];
        let mut layout = SampleLayout::default();
        for (kinds, branches, body) in &cases {
            let found = sample(*kinds, *branches, body, &mut layout).user_stack();
            let found = found.expect("it is there");
            assert_eq!((found.mask, found.is_32), (0b11_1111, false));
            assert_eq!(found.registers, words(&[10, 11, 12, 13, 14, 15]));
            // Of 24 bytes 16 were the stack's.
            assert_eq!(found.stack, words(&[1, 2]));
            for end in 0..body.len() {
                let cut = sample(*kinds, *branches, &body[..end], &mut layout);
                assert_eq!(cut.user_stack(), None, "{end}");
            }
        }
        // A kernel thread has no registers of user space, and nothing may be on the stack.
        let none = words(&[0, 0]);
        assert_eq!(sample(kinds, 0, &none, &mut layout).user_stack(), None);
        let empty = words(&[1, 10, 11, 12, 13, 14, 15, 0]);
        let found = sample(kinds, 0, &empty, &mut layout).user_stack();
        assert_eq!(
            found.map(|found| (found.is_32, found.stack.len())),
            Some((true, 0))
        );
    }
}
