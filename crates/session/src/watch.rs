//! A path that is watched while it is recorded.

use std::ops::ControlFlow;

use analysis::{SlowInstance, SlowInstances, Study};
use event::{Event, EventType, Order, Side, Sink};
use facts::Facts;
use paths::{Paths, lang};
use source::{ReaderOptions, Recording};

use crate::{Error, host_facts};

/// Follows a path through a recording that comes in pieces, and says which of its instances take longer than a bound.
///
/// Pieces overlap: each begins with the round of reading the kernel's rings that the one before ended with. What is older than the newest
/// event of that round cannot come any more, as in perf's own files, and is looked at; the rest waits for the next piece.
#[derive(Debug)]
pub struct PathWatch {
    study: Study,
    /// By kind of event, whether it is wanted, once that was asked.
    kinds: Vec<Option<bool>>,
    /// Up to which time events were looked at, and the newest that was seen.
    done: u64,
    newest: u64,
}

impl PathWatch {
    /// Watches a path for instances that take longer than `bound_ns`. `facts` name threads and VMs.
    pub fn new(path: lang::Path, bound_ns: u64, facts: &Facts) -> PathWatch {
        let mut paths = Paths::new(vec![path]);
        paths.list();
        let mut study = Study::default()
            .with(paths)
            .with(SlowInstances::above(bound_ns));
        study.told(&host_facts::told(facts));
        PathWatch {
            study,
            kinds: Vec::new(),
            done: 0,
            newest: 0,
        }
    }

    /// Looks at one piece, and returns the slow instances that completed in it. Behind the `last` piece nothing can come any more, so all
    /// of it is looked at.
    ///
    /// # Errors
    ///
    /// Fails where the piece is no recording.
    pub fn look(&mut self, piece: Vec<u8>, last: bool) -> Result<Vec<SlowInstance>, Error> {
        let recording = Recording::from_bytes("what is recorded", piece)?;
        let reader = recording.reader(ReaderOptions::default())?;
        let mut piece = Piece {
            until: if last { u64::MAX } else { self.newest },
            watch: self,
        };
        reader.walk(&mut piece);
        let until = piece.until;
        self.done = self.done.max(until);
        let found = self.study.get_mut::<SlowInstances>();
        Ok(found.map(SlowInstances::take).unwrap_or_default())
    }

    /// Returns how many instances have completed so far, slow or not.
    pub fn seen(&self) -> u64 {
        self.study
            .get::<SlowInstances>()
            .map_or(0, SlowInstances::seen)
    }
}

/// The walk over one piece.
struct Piece<'w> {
    watch: &'w mut PathWatch,
    /// Up to which time nothing older can come.
    until: u64,
}

impl Sink for Piece<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let index = ty.index as usize;
        let kinds = &mut self.watch.kinds;
        if kinds.len() <= index {
            kinds.resize(index + 1, None);
        }
        // All pieces have the same kinds: who asks is asked once.
        if let Some(wanted) = kinds[index] {
            return wanted;
        }
        let wanted = self.watch.study.wants(ty);
        self.watch.kinds[index] = Some(wanted);
        wanted
    }

    fn order(&self, _: &EventType<'_>) -> Order {
        Order::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let watch = &mut *self.watch;
        watch.newest = watch.newest.max(event.time);
        if watch.done < event.time && event.time <= self.until {
            return watch.study.event(event);
        }
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        self.watch.study.side(side);
    }
}
