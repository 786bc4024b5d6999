//! Stacks of recordings in which events are missing though nobody lost any say so. What other questions answer then is
//! in `crates/analysis/tests/corpus/holes.rs`.

use std::path::Path;

use fixtures::holes::{each_with_holes, warns_of_holes};

use crate::common::{Failures, cases, json};

/// Checks what is said of a text with holes.
fn check(failures: &mut Failures, what: &str, path: &Path) {
    // Without a switch there is nothing for it.
    if let Ok(document) = json(&["flame", "--off-cpu"], path) {
        failures.check(warns_of_holes(&document), || {
            format!("{what}: it is silent")
        });
    }
}

#[test]
fn thinned_recordings_are_noticed() {
    let mut failures = Failures::default();
    each_with_holes(|what, path| check(&mut failures, what, path));
    failures.finish(10);
}

#[test]
fn recordings_that_lost_nothing_have_no_holes() {
    let mut failures = Failures::default();
    for case in cases() {
        // Some have no switches.
        let Ok(document) = json(&["flame", "--off-cpu"], &case.path) else {
            continue;
        };
        let lost = document["quality"]["lost_events"].as_u64();
        failures.check(!warns_of_holes(&document) || lost > Some(0), || {
            format!("{}: {}", case.name, document["quality"])
        });
    }
    failures.finish(15);
}
