//! What a walk leaves behind.

use doubts::{Concerns, DoubtKind, Doubts};
use event::Kind;
use model::Machine;

use crate::analysis::{Analysis, EventAccount, WalkState};
use crate::handle::Handle;
use crate::resume::Resume;
use crate::series::Series;

/// Events of one kind that the filters of a walk left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilteredCount {
    /// The kind.
    pub kind: Kind,
    /// Those outside of the window of time and CPUs.
    pub outside: u64,
    /// Those in it that vCPUs or processes made which are left out.
    pub left_out: u64,
}

/// What analyses found in a walk that has ended, and what has to be known of it.
#[derive(Debug, Default)]
pub struct Answers {
    /// How much of everything happened when, where that was asked for.
    pub series: Series,
    /// Moments from which another walk can go on, first things first, where they were asked for.
    pub resumes: Vec<Resume>,
    /// The kinds of numbers that the host's analyses made.
    pub concerns: Concerns,
    /// By machine, what analyses raise.
    pub doubts: Vec<(u16, Doubts)>,
    /// By the number of a kind of events, those that filters left out.
    pub passed_over: Vec<FilteredCount>,
    /// By machine, what analyses have counted.
    pub counted: Vec<(u16, EventAccount)>,
}

impl Answers {
    pub(crate) fn new(
        resumes: Vec<Resume>,
        series: Series,
        passed_over: Vec<FilteredCount>,
    ) -> Answers {
        Answers {
            series,
            resumes,
            passed_over,
            ..Answers::default()
        }
    }

    /// Asks an analysis what has to be known beside its numbers.
    pub(crate) fn ask(&mut self, machine: u16, analysis: &dyn Analysis, walked: &WalkState<'_>) {
        if machine == 0 {
            self.concerns = self.concerns.and(analysis.concerns());
        }
        let mut doubts = Doubts::default();
        analysis.doubts(walked, &mut doubts);
        if !doubts.is_empty() {
            self.doubts.push((machine, doubts));
        }
        let counted = analysis.counted(walked);
        self.counted
            .extend(counted.into_iter().map(|one| (machine, one)));
    }

    /// Says how many threads of a machine were not kept apart, if any were.
    pub(crate) fn say_retired(&mut self, number: u16, machine: &Machine) {
        let retired = machine.retired();
        if retired.threads > 0 {
            let mut doubts = Doubts::default();
            doubts.raise(DoubtKind::ThreadsMerged {
                threads: retired.threads,
                vcpus: retired.vcpus,
                most: (machine.limits().threads, machine.limits().vcpus),
                busy_ns: machine.busy_sums_ns(),
            });
            self.doubts.push((number, doubts));
        }
    }

    /// Returns an analysis with what it found.
    ///
    /// # Panics
    ///
    /// Where the handle is of another walk than the one that left these answers, which is a mistake of the caller's.
    pub fn take<A>(&self, handle: Handle<A>) -> A {
        handle
            .take()
            .expect("the handle is of the walk that left these answers")
    }
}
