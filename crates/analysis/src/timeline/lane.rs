//! A lane: what one vCPU, thread or CPU did, in a bounded number of cells whose sums are exact.
//!
//! Each lane has a grain, a power of two of nanoseconds. Stretches as long as the grain or longer stay as they are.
//! Shorter ones that begin between the same two multiples of the grain are one sum. When there are too many cells the
//! grain doubles. A sum of one grain is shorter than the next grain, and its bucket is a part of the next one's, so
//! cells are always those that the final grain makes of all stretches, whenever it was reached.

use super::cell::{Cell, KINDS, OUTSIDE, Stretch, StretchSum};

/// The largest grain is 2 to this many nanoseconds: 292 years.
const LARGEST: u32 = 63;
/// A lane has this many cells at least, so that the largest grain fits.
pub(crate) const FEWEST: usize = 16;

/// Parts of a lane that are wanted stretch by stretch, in order and apart from each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ranges {
    list: Vec<(u64, u64)>,
    at: usize,
}

impl Ranges {
    /// Takes a list that is in order.
    pub(crate) fn new(list: Vec<(u64, u64)>) -> Ranges {
        Ranges { list, at: 0 }
    }

    /// Returns whether a time is in one of them; times are asked for in order.
    #[inline]
    fn has(&mut self, time: u64) -> bool {
        while self.list.get(self.at).is_some_and(|(_, end)| *end <= time) {
            self.at += 1;
        }
        self.list
            .get(self.at)
            .is_some_and(|(start, _)| *start <= time)
    }

    /// Returns the end of the last of those that begin up to a time.
    fn end_up_to(&self, time: u64) -> Option<u64> {
        let count = self.list.partition_point(|(start, _)| *start <= time);
        let (_, end) = self.list.get(count.checked_sub(1)?)?;
        Some(*end)
    }

    /// Returns whether the first of them begins up to a time.
    pub(super) fn begins_by(&self, time: u64) -> bool {
        self.list.first().is_some_and(|(start, _)| *start <= time)
    }

    /// Returns whether all of them are past.
    fn is_past(&self) -> bool {
        self.at >= self.list.len()
    }
}

/// A lane.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lane {
    /// The grain is 2 to this many nanoseconds. At 0 nothing is shorter.
    shift: u32,
    cells: Vec<Cell>,
    /// The last stretch, which may go on.
    pending: Option<Stretch>,
    /// What is kept, where only parts are wanted.
    only: Option<Box<Ranges>>,
    spare: Spare,
}

/// Memory of sums that became one with others: a lane that coarsens needs as many again soon.
#[derive(Debug, Clone, Default)]
struct Spare(
    #[expect(
        clippy::vec_box,
        reason = "they go from cell to cell, and cells are small"
    )]
    Vec<Box<StretchSum>>,
);

impl Spare {
    /// Returns a sum in a place of its own.
    #[inline]
    fn place(&mut self, sum: StretchSum) -> Box<StretchSum> {
        match self.0.pop() {
            Some(mut free) => {
                *free = sum;
                free
            }
            None => Box::new(sum),
        }
    }

    /// Takes the memory of a cell that is one with another.
    #[inline]
    fn take(&mut self, cell: &mut Cell) {
        if let Cell::Sum(_) = cell
            && let Cell::Sum(free) = std::mem::replace(cell, Cell::One(outside(0, 0)))
        {
            self.0.push(free);
        }
    }
}

impl Lane {
    /// Returns a lane that keeps the stretches of some ranges, each as it is.
    pub(crate) fn of_ranges(ranges: Ranges) -> Lane {
        Lane {
            only: Some(Box::new(ranges)),
            ..Lane::default()
        }
    }

    /// Returns how many cells there are.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Returns whether only parts are wanted, and all of them are past.
    pub(crate) fn is_past(&self) -> bool {
        self.only.as_ref().is_none_or(|only| only.is_past()) || self.has_all_up_to(u64::MAX)
    }

    /// Returns the last stretch, which may go on.
    pub(crate) fn pending(&self) -> Option<Stretch> {
        self.pending
    }

    /// Returns whether it has all that is wanted of what begins up to a time.
    pub(crate) fn has_all_up_to(&self, time: u64) -> bool {
        let end = self.only.as_ref().and_then(|only| only.end_up_to(time));
        let known = self.pending.map_or(0, |last| last.end);
        end.is_none_or(|end| end <= known)
    }

    /// Returns whether nothing wanted that begins up to a time is left out if the lane goes on where its last stretch
    /// is another.
    pub(crate) fn may_skip_to(&self, last: Option<&Stretch>, time: u64) -> bool {
        let end = |one: Option<&Stretch>| one.map_or(0, |one| one.end);
        self.has_all_up_to(time) || end(self.pending.as_ref()) == end(last)
    }

    /// Goes on where the last stretch is another: what lies between was not looked at.
    pub(crate) fn skip_to(&mut self, last: Option<Stretch>, cap: usize) {
        let before = std::mem::replace(&mut self.pending, last);
        if let Some(before) = before
            && last.is_none_or(|last| last.start != before.start)
        {
            self.store(before, cap, &|one| one.kind);
        }
    }

    /// Changes what stretches have, as their numbers are others from now on.
    pub(crate) fn renumber(&mut self, change: impl Fn(&mut Stretch)) {
        let cells = self.cells.iter_mut();
        let ones = cells.filter_map(|cell| match cell {
            Cell::One(one) => Some(one),
            Cell::Sum(_) => None,
        });
        ones.chain(&mut self.pending).for_each(change);
    }

    /// Takes the next stretch. What lies between it and the one before was not looked at. `cap` is how many cells there
    /// may be; `settle` says as which state a stretch is summed.
    #[inline]
    pub(crate) fn push(&mut self, next: Stretch, cap: usize, settle: &impl Fn(&Stretch) -> u8) {
        let mut next = next;
        if let Some(last) = &mut self.pending {
            // Clocks that step back tell nothing new.
            next.start = next.start.max(last.end);
            if next.start >= next.end {
                return;
            }
            if last.goes_on(&next) {
                last.end = next.end;
                return;
            }
            let last = *last;
            self.store(last, cap, settle);
            if last.end < next.start {
                self.store(outside(last.end, next.start), cap, settle);
            }
        } else if next.start >= next.end {
            return;
        }
        self.pending = Some(next);
    }

    /// Ends the lane.
    pub(crate) fn finish(&mut self, cap: usize, settle: &impl Fn(&Stretch) -> u8) {
        if let Some(last) = self.pending.take() {
            self.store(last, cap, settle);
        }
        self.spare = Spare::default();
    }

    #[inline]
    fn store(&mut self, one: Stretch, cap: usize, settle: &impl Fn(&Stretch) -> u8) {
        if let Some(only) = &mut self.only {
            if only.has(one.start) && self.cells.len() < cap {
                self.cells.push(Cell::One(one));
            }
            return;
        }
        if one.ns() >> self.shift == 0
            && let Some(last) = self.cells.last_mut()
            && last.start() >> self.shift == one.start >> self.shift
        {
            return add_to(last, &mut self.spare, settle, |sum| sum.add(&one, settle));
        }
        self.cells.push(Cell::One(one));
        if self.cells.len() > cap.max(FEWEST) {
            self.coarsen(cap, settle);
        }
    }

    /// Makes the grain as large as it takes for the cells to be fewer.
    #[cold]
    fn coarsen(&mut self, cap: usize, settle: &impl Fn(&Stretch) -> u8) {
        let most = cap.max(FEWEST) / 4 * 3;
        while self.cells.len() > most && self.shift < LARGEST {
            self.shift += 1;
            self.regrain(settle);
        }
        // The one that is too many is there for a moment each time.
        self.cells.shrink_to(cap.max(FEWEST) + 1);
    }

    /// Makes the cells fit into a number, at the end.
    pub(crate) fn fit(&mut self, cap: usize, settle: &impl Fn(&Stretch) -> u8) {
        while self.cells.len() > cap.max(FEWEST) && self.shift < LARGEST {
            self.shift += 1;
            self.regrain(settle);
        }
    }

    /// Sums up what is shorter than the grain.
    fn regrain(&mut self, settle: &impl Fn(&Stretch) -> u8) {
        let shift = self.shift;
        let mut kept: usize = 0;
        for at in 0..self.cells.len() {
            let (before, rest) = self.cells.split_at_mut(at);
            let Some(cell) = rest.first_mut() else {
                break;
            };
            if cell.ns() >> shift == 0
                && let Some(last) = kept.checked_sub(1).and_then(|last| before.get_mut(last))
                && last.start() >> shift == cell.start() >> shift
            {
                add_to(last, &mut self.spare, settle, |sum| match cell {
                    Cell::One(one) => sum.add(one, settle),
                    Cell::Sum(other) => sum.merge(other),
                });
                self.spare.take(cell);
                continue;
            }
            if let Some(free) = before.get_mut(kept) {
                std::mem::swap(free, cell);
            }
            kept += 1;
        }
        self.cells.truncate(kept);
    }

    /// Takes the cells out, after its end.
    pub(crate) fn into_cells(self) -> Vec<Cell> {
        self.cells
    }

    /// Returns the cells.
    #[cfg(test)]
    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }
}

/// Returns time that was not looked at.
fn outside(start: u64, end: u64) -> Stretch {
    Stretch {
        start,
        end,
        kind: OUTSIDE,
        cpu: event::NONE,
        what: 0,
        behind: 0,
    }
}

/// Makes a cell a sum, if it is none, and adds to it.
#[inline]
fn add_to(
    cell: &mut Cell,
    spare: &mut Spare,
    settle: &impl Fn(&Stretch) -> u8,
    add: impl FnOnce(&mut StretchSum),
) {
    match cell {
        Cell::Sum(sum) => add(sum),
        Cell::One(one) => {
            let mut sum = spare.place(StretchSum {
                start: one.start,
                end: one.start,
                count: 0,
                ns: [0; KINDS],
            });
            sum.add(one, settle);
            add(&mut sum);
            *cell = Cell::Sum(sum);
        }
    }
}

impl StretchSum {
    /// Adds the stretch that follows.
    #[inline]
    fn add(&mut self, one: &Stretch, settle: &impl Fn(&Stretch) -> u8) {
        let kind = match one.kind {
            OUTSIDE => OUTSIDE,
            _ => settle(one),
        };
        if let Some(sum) = self.ns.get_mut(usize::from(kind)) {
            *sum += one.ns();
        }
        self.count += u64::from(kind != OUTSIDE);
        self.end = one.end;
    }

    /// Adds the sum that follows.
    fn merge(&mut self, other: &StretchSum) {
        for (sum, ns) in self.ns.iter_mut().zip(other.ns) {
            *sum += ns;
        }
        self.count += other.count;
        self.end = other.end;
    }
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod lane_tests;
