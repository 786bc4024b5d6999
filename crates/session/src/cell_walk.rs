//! What a cell of a table is made of: the single things that it counts, found by a walk that looks at the cell's sum
//! after each event.

use std::ops::ControlFlow;

use analysis::{CellSum, Study};
use event::{Event, EventOrder, EventType, Side, Sink};

use crate::question::{RecordingAnswers, RecordingQuestion, StudySink};

/// Parts that are kept at most; those that are beyond are counted.
pub const MAX_CELL_PARTS: usize = 1 << 21;

/// One thing that a cell counts: it lasts from one event to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellPart {
    /// When it began, on the recording's clock.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The thread whose event began it; [`event::NONE`] where that is not known.
    pub begin_tid: i32,
    /// The thread whose event ended it, in the same way.
    pub tid: i32,
}

/// All things that a cell counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CellParts {
    /// In the order in which they ended.
    pub parts: Vec<CellPart>,
    /// Those that are not kept, since there are too many.
    pub more: u64,
    /// What the cell had counted at the end.
    pub sum: CellSum,
}

impl CellParts {
    /// Takes one more.
    pub fn push(&mut self, part: CellPart) {
        self.sum = self.sum.and(CellSum {
            count: 1,
            total_ns: part.end.saturating_sub(part.start),
        });
        match self.parts.len() < MAX_CELL_PARTS {
            true => self.parts.push(part),
            false => self.more += 1,
        }
    }
}

/// Walks a study, and asks for what has ended after each event.
struct CellWalk<F> {
    study: Study,
    found: CellParts,
    /// Adds what an event has ended; there is no event any more at the end.
    take: F,
}

impl<F: FnMut(&Study, Option<&Event<'_>>, &mut CellParts)> CellWalk<F> {
    fn take(&mut self, event: Option<&Event<'_>>) {
        (self.take)(&self.study, event, &mut self.found);
    }
}

impl<F: FnMut(&Study, Option<&Event<'_>>, &mut CellParts)> Sink for CellWalk<F> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.study.wants(ty)
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        // Parts come in the order of the recording, whichever CPU they are of.
        EventOrder::Time
    }

    fn wants_samples(&self, ty: &EventType<'_>) -> bool {
        self.study.wants_samples(ty)
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let flow = self.study.event(event);
        self.take(Some(event));
        flow
    }

    fn side(&mut self, side: &Side<'_>) {
        self.study.side(side);
    }

    fn side_of(&mut self, machine: u16, side: &Side<'_>) {
        self.study.side_of(machine, side);
    }
}

impl<F: FnMut(&Study, Option<&Event<'_>>, &mut CellParts)> StudySink for CellWalk<F> {
    fn study(&mut self) -> &mut Study {
        &mut self.study
    }

    fn ended(&mut self) {
        self.take(None);
    }
}

impl RecordingQuestion<'_> {
    /// Walks the recording and has `take` add, after each event and at the end, the parts that have ended.
    pub fn walk_parts(
        self,
        take: impl FnMut(&Study, Option<&Event<'_>>, &mut CellParts),
    ) -> (RecordingAnswers, CellParts) {
        let (answers, walk) = self.walk_by(|study| CellWalk {
            study,
            found: CellParts::default(),
            take,
        });
        (answers, walk.found)
    }

    /// Does the same where a cell has sums of which each part's end is an event: `sum` says what it has counted so far.
    pub fn walk_cell(
        self,
        mut sum: impl FnMut(&Study) -> CellSum,
    ) -> (RecordingAnswers, CellParts) {
        let mut before = CellSum::default();
        self.walk_parts(move |study, event, found| {
            let (Some(event), now) = (event, sum(study)) else {
                return;
            };
            if now == before {
                return;
            }
            let new = now.since(before);
            before = now;
            found.push(CellPart {
                start: event.time.saturating_sub(new.total_ns),
                end: event.time,
                begin_tid: event.tid,
                tid: event.tid,
            });
        })
    }
}
