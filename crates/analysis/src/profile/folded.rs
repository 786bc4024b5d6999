//! Folded text as a profile: what it does not say stays unknown.

use stacks::Folded;

use super::{ProfileReport, ProfileRow};

impl From<Folded> for ProfileReport {
    fn from(folded: Folded) -> ProfileReport {
        let rows = folded.bottoms.into_iter().map(|bottom| ProfileRow {
            vm_pid: None,
            comm: bottom.name,
            tid: bottom.tid,
            all: bottom.all,
            guest: bottom.guest,
            kernel: bottom.kernel,
            user: bottom.user,
        });
        ProfileReport {
            event: None,
            unit: folded.unit,
            samples: folded.all,
            idle: folded.idle,
            unresolved: None,
            damaged: 0,
            shortened: folded.shortened.samples,
            other_events: 0,
            rows: rows.collect(),
            stacks: folded.stacks,
        }
    }
}
