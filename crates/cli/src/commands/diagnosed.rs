//! A picture with its causes, ready to be shown: what `report` and `export` have in common.

use std::cmp::Reverse;

use analysis::{ExitRow, Picture};
use doubts::DoubtKind;
use rules::{Case, Diagnosis};
use session::Session;

/// Warns where a recording has no exits, or filters leave none of them. Of events without formats nobody knows what
/// they are, and another warning says so.
pub(super) fn warn_without_exits(picture: &mut Picture, formats_missing: bool, session: &Session) {
    if picture.info.has_exits || formats_missing {
        return;
    }
    let did_not_occur = picture.recorded("kvm_exit") == Some(true);
    picture
        .quality
        .raise(match session.options().filters.any() {
            true => DoubtKind::NoExitsPass,
            false if did_not_occur => DoubtKind::ExitsDidNotOccur,
            false => DoubtKind::NoExits,
        });
}

/// Looks for causes, then leaves what was asked for, what took most time first.
pub(super) fn diagnosed(picture: &mut Picture, session: &Session) -> Diagnosis {
    let diagnosis = rules::diagnose(&[Case {
        picture,
        facts: Some(session.facts()),
        domain: session.domain_of(picture),
    }]);
    // Causes may be tasks that nobody asked for.
    picture.only_asked();
    for report in picture.exits.iter_mut().chain(&mut picture.guest_exits) {
        let time = |row: &ExitRow| Reverse(row.stats.total());
        report.rows.sort_by_key(time);
    }
    if let Some(report) = &mut picture.sched {
        report.rows.sort_by_key(|row| Reverse(row.delays.max()));
    }
    diagnosis
}
