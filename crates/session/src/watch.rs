//! A path that is watched while it is recorded.

use std::sync::Arc;

use analysis::{SharedAnalysis, SlowInstance, SlowInstances, Study};
use facts::Facts;
use paths::{Paths, lang};
use source::{RecordingPieces, RecordingReader};
use tracefmt::Kallsyms;

use crate::{Error, host_facts};

/// Follows a path through a recording while it is made, and says which of its instances take longer than a bound: those
/// that are found by looking at all of the recording afterwards.
#[derive(Debug)]
pub struct PathWatch<'r> {
    study: Study,
    slow: SharedAnalysis<SlowInstances>,
    pieces: RecordingPieces<'r>,
}

impl<'r> PathWatch<'r> {
    /// Watches a path for instances that take longer than `bound_ns`. `head` is the recording without the events that
    /// are still to come; `facts` name threads and VMs; `kallsyms` returns the text of /proc/kallsyms, and is asked
    /// where the path names functions.
    ///
    /// # Errors
    ///
    /// Fails where the recording is of a kind whose records cannot come in pieces.
    pub fn new(
        head: &'r RecordingReader<'_>,
        path: lang::PathDefinition,
        bound_ns: u64,
        facts: &Facts,
        kallsyms: impl FnOnce() -> Vec<u8>,
    ) -> Result<PathWatch<'r>, Error> {
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
        let mut study = Study::default();
        study.add(paths);
        let slow = study.share(SlowInstances::above(bound_ns));
        study.add_facts(&host_facts::thread_facts(facts));
        let mut pieces = head.pieces()?;
        pieces.ask(&mut study);
        Ok(PathWatch {
            study,
            slow,
            pieces,
        })
    }

    /// Looks at the next piece of the recording's data, which is of whole records, and returns the slow instances that
    /// have completed by what is settled then. Behind the `last` piece nothing can come any more, so all of it is
    /// looked at.
    pub fn look(&mut self, piece: &Arc<Vec<u8>>, last: bool) -> Vec<SlowInstance> {
        self.pieces.walk(piece, &mut self.study);
        if last {
            self.pieces.finish(&mut self.study);
        }
        self.slow.get_mut().take()
    }

    /// Returns how many instances have completed so far, slow or not.
    pub fn seen(&self) -> u64 {
        self.slow.get().seen()
    }
}
