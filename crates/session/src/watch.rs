//! A path that is watched while it is recorded.

use analysis::{Pieces, SlowInstance, SlowInstances, Study};
use facts::Facts;
use paths::{Paths, lang};
use source::{ReaderOptions, Recording};
use tracefmt::Kallsyms;

use crate::{Error, host_facts};

/// Follows a path through a recording that comes in [`Pieces`], and says which of its instances take longer than a bound.
#[derive(Debug)]
pub struct PathWatch {
    study: Study,
    pieces: Pieces,
}

impl PathWatch {
    /// Watches a path for instances that take longer than `bound_ns`. `facts` name threads and VMs; `kallsyms` returns the text of
    /// /proc/kallsyms, and is asked where the path names functions.
    pub fn new(
        path: lang::Path,
        bound_ns: u64,
        facts: &Facts,
        kallsyms: impl FnOnce() -> Vec<u8>,
    ) -> PathWatch {
        let mut paths = Paths::new(vec![path]);
        let functions = paths.functions();
        if !functions.is_empty() {
            let symbols = Kallsyms::parse(&kallsyms());
            for function in functions {
                if let Some(range) = symbols.range(&function) {
                    paths.function_at(&function, range);
                }
            }
        }
        paths.list();
        let mut study = Study::default()
            .with(paths)
            .with(SlowInstances::above(bound_ns));
        study.told(&host_facts::told(facts));
        PathWatch {
            study,
            pieces: Pieces::default(),
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
        let mut piece = self.pieces.next(&mut self.study, last);
        reader.walk(&mut piece);
        piece.end();
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
