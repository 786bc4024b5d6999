//! What programs have written into a CPU's slots.

use rings::SharedWords;

use super::kinds::{MORE, MOST_SLOTS};

/// Words of a slot.
pub(super) const SLOT_WORDS: usize = 3;

/// An event, as its slots have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CompactSample {
    pub time_ns: u64,
    /// The thread that made it, and 32 bits more.
    pub tid: u32,
    pub word: u32,
    /// Of which kind it is.
    pub kind: u8,
    pub bytes: [u8; 3],
    /// The words of the slots behind the first.
    pub more: [u64; 2 * (MOST_SLOTS - 1)],
}

/// Where words are read: the slots of a CPU.
pub(super) trait SlotWords {
    /// Returns a word of the slots; what was written before it is seen by who reads behind it.
    fn word(&self, at: usize) -> u64;
}

/// The slots of a CPU among those of all.
#[derive(Debug)]
pub(super) struct CpuSlots<'w> {
    words: &'w SharedWords,
    first: usize,
}

impl<'w> CpuSlots<'w> {
    /// Returns those of a CPU, of which each has so many.
    pub(super) fn of(words: &'w SharedWords, cpu: u32, count: usize) -> CpuSlots<'w> {
        CpuSlots {
            words,
            first: cpu as usize * count * SLOT_WORDS,
        }
    }
}

impl SlotWords for CpuSlots<'_> {
    fn word(&self, at: usize) -> u64 {
        self.words.word(self.first + at)
    }
}

/// How far a CPU's slots were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SlotCursor {
    at: u64,
}

/// A slot that was read.
enum ReadSlot {
    /// What it has: its two words, and its last without the number.
    Whole(u64, u64, u64),
    /// It is not written yet.
    Waits,
    /// It was gone over: the number that stands in it now.
    Gone(u64),
}

impl SlotCursor {
    /// Returns where the oldest of a CPU's slots is, of which so many were taken.
    pub(super) fn of_oldest(taken: u64, count: usize) -> SlotCursor {
        SlotCursor {
            at: taken.saturating_sub(count as u64),
        }
    }

    /// Returns whether slots were gone over before it.
    pub(super) fn is_wrapped(self) -> bool {
        self.at > 0
    }

    /// Appends the events that are whole, those of one round of the slots at most. `count` is the number of slots, a
    /// power of two.
    pub(super) fn read(
        &mut self,
        slots: &impl SlotWords,
        count: usize,
        of: SlotsOf<'_>,
        out: &mut Vec<CompactSample>,
    ) {
        self.read_some(slots, count, of, out, count);
    }

    /// The same of so many slots. Returns whether there may be more.
    pub(super) fn read_some(
        &mut self,
        slots: &impl SlotWords,
        count: usize,
        of: SlotsOf<'_>,
        out: &mut Vec<CompactSample>,
        some: usize,
    ) -> bool {
        let mut left = some as u64;
        while left > 0 {
            match entry(slots, self.at, count, of) {
                EntryRead::Whole(entry, taken) => {
                    out.extend(entry);
                    self.at += taken;
                    left = left.saturating_sub(taken);
                }
                EntryRead::Waits => return false,
                // Some room ahead of who writes.
                EntryRead::Gone(now) => {
                    let oldest = (now + 1).saturating_sub((count - count / 4) as u64);
                    self.at = oldest.max(self.at + 1);
                }
            }
        }
        true
    }
}

/// Says how many slots an event of a kind has; 0 for what is none.
pub(super) type SlotsOf<'k> = &'k dyn Fn(u8) -> usize;

enum EntryRead {
    /// It took so many slots; a slot that goes with one that was gone over is no event.
    Whole(Option<CompactSample>, u64),
    Waits,
    Gone(u64),
}

fn entry(slots: &impl SlotWords, at: u64, count: usize, of: SlotsOf<'_>) -> EntryRead {
    let (time_ns, second, last) = match slot(slots, at, count) {
        ReadSlot::Whole(first, second, last) => (first, second, last),
        ReadSlot::Waits => return EntryRead::Waits,
        ReadSlot::Gone(now) => return EntryRead::Gone(now),
    };
    let [kind, a, b, c] = last
        .to_le_bytes()
        .last_chunk::<4>()
        .copied()
        .unwrap_or_default();
    let taken = of(kind);
    if kind == MORE || taken == 0 {
        return EntryRead::Whole(None, 1);
    }
    let mut entry = CompactSample {
        time_ns,
        tid: low(second),
        word: low(second >> 32),
        kind,
        bytes: [a, b, c],
        ..CompactSample::default()
    };
    for (more, behind) in entry.more.chunks_mut(2).zip(1..taken as u64) {
        match slot(slots, at + behind, count) {
            ReadSlot::Whole(first, second, _) => more.copy_from_slice(&[first, second]),
            ReadSlot::Waits => return EntryRead::Waits,
            ReadSlot::Gone(now) => return EntryRead::Gone(now),
        }
    }
    EntryRead::Whole(Some(entry), taken as u64)
}

/// Returns the low half of a word.
fn low(word: u64) -> u32 {
    u32::try_from(word & 0xffff_ffff).unwrap_or(0)
}

fn slot(slots: &impl SlotWords, at: u64, count: usize) -> ReadSlot {
    let place = usize::try_from(at & (count as u64 - 1)).unwrap_or(0) * SLOT_WORDS;
    let last = slots.word(place + 2);
    // Numbers are 32 bits of the slot's own, which grow by the number of slots each round.
    let ahead = low(last).wrapping_sub(low(at + 1)).cast_signed();
    match ahead {
        0 => {
            let (first, second) = (slots.word(place), slots.word(place + 1));
            // It may have been gone over meanwhile.
            match slots.word(place + 2) == last {
                true => ReadSlot::Whole(first, second, last & !0xffff_ffff),
                false => ReadSlot::Gone(at + count as u64),
            }
        }
        1.. => ReadSlot::Gone(at + ahead.unsigned_abs() as u64),
        _ => ReadSlot::Waits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slots of a CPU as programs write them.
    struct WrittenSlots {
        words: Vec<u64>,
        taken: u64,
        count: usize,
    }

    impl WrittenSlots {
        fn new(count: usize) -> WrittenSlots {
            WrittenSlots {
                words: vec![0; count * SLOT_WORDS],
                taken: 0,
                count,
            }
        }

        fn put(&mut self, at: u64, words: [u64; 2], kind: u8) {
            let place = low(at) as usize % self.count * SLOT_WORDS;
            let last = u64::from(kind) << 32 | (at + 1) & 0xffff_ffff;
            self.words[place..place + 3].copy_from_slice(&[words[0], words[1], last]);
        }

        /// An event of two slots.
        fn event(&mut self, time: u64) {
            self.put(self.taken, [time, 7], 5);
            self.put(self.taken + 1, [time + 1, time + 2], MORE);
            self.taken += 2;
        }
    }

    impl SlotWords for WrittenSlots {
        fn word(&self, at: usize) -> u64 {
            self.words[at]
        }
    }

    const TWO: SlotsOf<'_> = &|kind| if kind == 5 { 2 } else { 0 };

    fn times(cursor: &mut SlotCursor, slots: &WrittenSlots) -> Vec<u64> {
        let mut read = Vec::new();
        cursor.read(slots, slots.count, TWO, &mut read);
        read.iter()
            .inspect(|one| assert_eq!(one.more[..2], [one.time_ns + 1, one.time_ns + 2]))
            .map(|one| one.time_ns)
            .collect()
    }

    #[test]
    fn events_are_read_once_and_in_order() {
        let mut slots = WrittenSlots::new(16);
        let mut cursor = SlotCursor::default();
        assert!(times(&mut cursor, &slots).is_empty());
        for round in 0..20 {
            (0..5).for_each(|at| slots.event(round * 10 + at));
            let expected: Vec<u64> = (0..5).map(|at| round * 10 + at).collect();
            assert_eq!(times(&mut cursor, &slots), expected);
        }
    }

    #[test]
    fn an_event_that_is_not_whole_is_read_later() {
        let mut slots = WrittenSlots::new(16);
        let mut cursor = SlotCursor::default();
        slots.put(0, [40, 7], 5);
        assert!(times(&mut cursor, &slots).is_empty());
        slots.put(1, [41, 42], MORE);
        assert_eq!(times(&mut cursor, &slots), [40]);
    }

    #[test]
    fn what_was_gone_over_is_left_out() {
        let mut slots = WrittenSlots::new(16);
        let mut cursor = SlotCursor::default();
        (0..29).for_each(|at| slots.event(at));
        let read = times(&mut cursor, &slots);
        assert!((4..=8).contains(&read.len()), "{read:?}");
        assert_eq!(read.last(), Some(&28));
        assert!(read.is_sorted());
        slots.event(99);
        assert_eq!(times(&mut cursor, &slots), [99]);
    }

    #[test]
    fn all_slots_are_read_from_the_oldest_one() {
        let mut slots = WrittenSlots::new(16);
        (0..3).for_each(|at| slots.event(at));
        let mut cursor = SlotCursor::of_oldest(slots.taken, slots.count);
        assert!(!cursor.is_wrapped());
        assert_eq!(times(&mut cursor, &slots), [0, 1, 2]);
        (3..29).for_each(|at| slots.event(at));
        // An odd slot more, so that the oldest event is cut.
        slots.put(slots.taken, [100, 7], 4);
        slots.taken += 1;
        let mut cursor = SlotCursor::of_oldest(slots.taken, slots.count);
        assert!(cursor.is_wrapped());
        let (mut read, mut pieces) = (Vec::new(), 0);
        while cursor.read_some(&slots, slots.count, TWO, &mut read, 4) {
            pieces += 1;
        }
        let read: Vec<u64> = read.iter().map(|one| one.time_ns).collect();
        assert_eq!(read, (22..29).collect::<Vec<u64>>());
        assert_eq!(pieces, 3);
    }

    #[test]
    fn numbers_that_begin_anew_are_no_gap() {
        let mut slots = WrittenSlots::new(16);
        slots.taken = u64::from(u32::MAX) - 7;
        let mut cursor = SlotCursor { at: slots.taken };
        (0..6).for_each(|at| slots.event(at));
        assert_eq!(times(&mut cursor, &slots), [0, 1, 2, 3, 4, 5]);
    }
}
