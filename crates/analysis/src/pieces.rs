//! A recording that is looked at while it is made, piece by piece.

use std::ops::ControlFlow;

use event::{Event, EventType, Order, Side, Sink};

use crate::Study;

/// How far a recording that comes in pieces was looked at.
///
/// Pieces overlap: each begins with the round of reading the kernel's rings that the one before ended with. What is older than the newest
/// event of that round cannot come any more, as in perf's own files, and is looked at; the rest waits for the next piece.
#[derive(Debug, Default)]
pub struct Pieces {
    /// By kind of event, whether it is wanted, once that was asked.
    kinds: Vec<Option<bool>>,
    /// Up to which time events were looked at, and the newest that was seen.
    done: u64,
    newest: u64,
}

impl Pieces {
    /// Begins to walk a piece. Behind the `last` one nothing can come any more, so all of it is looked at.
    pub fn next<'p>(&'p mut self, study: &'p mut Study, last: bool) -> Piece<'p> {
        let until = if last { u64::MAX } else { self.newest };
        Piece {
            pieces: self,
            study,
            until,
        }
    }

    /// Returns up to which time events were looked at.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Asks a new study again which kinds of events it wants.
    pub fn forget_kinds(&mut self) {
        self.kinds.clear();
    }

    /// Leaves out all that was seen so far and not looked at.
    pub fn skip(&mut self) {
        self.done = self.newest;
    }
}

/// The walk over one piece.
#[derive(Debug)]
pub struct Piece<'p> {
    pieces: &'p mut Pieces,
    study: &'p mut Study,
    /// Up to which time nothing older can come.
    until: u64,
}

impl Piece<'_> {
    /// Ends the walk: what it looked at the next one leaves out.
    pub fn end(self) {
        self.pieces.done = self.pieces.done.max(self.until.min(self.pieces.newest));
    }
}

impl Sink for Piece<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let index = ty.index as usize;
        let kinds = &mut self.pieces.kinds;
        if kinds.len() <= index {
            kinds.resize(index + 1, None);
        }
        // All pieces have the same kinds: who asks is asked once.
        if let Some(wanted) = kinds[index] {
            return wanted;
        }
        let wanted = self.study.wants(ty);
        self.pieces.kinds[index] = Some(wanted);
        wanted
    }

    fn order(&self, _: &EventType<'_>) -> Order {
        Order::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let pieces = &mut *self.pieces;
        pieces.newest = pieces.newest.max(event.time);
        if pieces.done < event.time && event.time <= self.until {
            return self.study.event(event);
        }
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        // What has a time has its place among the events; what has none stands before them.
        if let Some(time) = time(side) {
            let pieces = &mut *self.pieces;
            pieces.newest = pieces.newest.max(time);
            if time <= pieces.done || self.until < time {
                return;
            }
        }
        self.study.side(side);
    }
}

fn time(side: &Side<'_>) -> Option<u64> {
    let time = match *side {
        Side::Comm { time, .. }
        | Side::Fork { time, .. }
        | Side::Exit { time, .. }
        | Side::Mmap { time, .. }
        | Side::Ksymbol { time, .. }
        | Side::Lost { time, .. } => time,
        _ => 0,
    };
    (time > 0).then_some(time)
}
