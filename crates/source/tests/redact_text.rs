//! What tools print of the corpus' recordings, without what is private: no name of the recording is left, and all of
//! its events are.

use std::collections::BTreeSet;

use fixtures::{Failures, cases, read};
use source::RecordingBytes;

use crate::redact::{PrivateNames, found, may_stay};

const RANDOM: u64 = 987_654_321;
/// Bytes of the longest text of an ordinary run.
const SMALL: usize = 1 << 20;

/// Returns the texts that tools printed of a recording, or the recording where it is one.
fn texts(case: &fixtures::CorpusCase) -> Vec<(String, String)> {
    let printed = ["script", "script-plain", "report", "report-N"];
    let mut all: Vec<(String, String)> = printed
        .iter()
        .filter_map(|name| Some((format!("{} {name}", case.name), case.reference(name)?)))
        .collect();
    if case.kind == "text" {
        let text = String::from_utf8_lossy(&read(&case.path)).into_owned();
        all.push((case.name.clone(), text));
    }
    all
}

/// Words that stand in a text as names do.
fn words(text: &str) -> BTreeSet<&str> {
    let of_word = |c: char| c.is_alphanumeric() || "_-./+@".contains(c);
    text.split(|c| !of_word(c)).collect()
}

#[test]
fn no_name_is_left_in_a_text_and_all_events_are() {
    let mut failures = Failures::default();
    let (mut looked_for, mut events) = (0, 0);
    for case in cases() {
        let private: PrivateNames = match case.kind.as_str() {
            "text" => PrivateNames::default(),
            _ => found(
                &RecordingBytes::from_bytes(&case.name, read(&case.path)).expect("it is there"),
            ),
        };
        for (name, text) in texts(&case) {
            // An unoptimised build takes seconds for the large ones.
            if text.len() > SMALL && !fixtures::sweeping() {
                continue;
            }
            let whole = RecordingBytes::from_bytes(&name, text.into_bytes()).expect("a text");
            let Ok(redactable) = whole.redactable() else {
                continue;
            };
            let mut file = Vec::new();
            let (counts, replaced) = redactable.write(RANDOM, &mut file).expect("memory");
            let redacted = RecordingBytes::from_bytes(&name, file).expect("some bytes");
            let check = redactable
                .check(&redacted, &replaced)
                .expect("both are read");
            failures.check(check.is_same && check.remaining.is_empty(), || {
                format!("{name}: {check:?}")
            });
            let (before, after) = (found(&whole), found(&redacted));
            failures.equal(
                &name,
                &(after.events, after.sum),
                &(before.events, before.sum),
            );
            events += after.events;
            failures.check(counts.replaced.comms > 0 || before.texts.len() < 3, || {
                format!("{name}: {counts:?}")
            });
            let text = String::from_utf8_lossy(redacted.bytes());
            let left = words(&text);
            let names = private.texts.iter().chain(&before.texts);
            for one in names.filter(|one| !may_stay(one)) {
                looked_for += 1;
                // What stands for another name may be the name of a third.
                let is_new = one.starts_with("task_") || one.starts_with("/file-");
                failures.check(is_new || !left.contains(one.as_str()), || {
                    format!("{name}: {one:?} is left")
                });
            }
        }
    }
    failures.check(events > 10_000, || format!("{events} events"));
    failures.check(looked_for > 200, || format!("{looked_for} names"));
    failures.finish(100);
}

/// What people paste: every kind of line, each with something that must not leave the house.
#[test]
fn what_stands_for_what() {
    let text = include_str!("redact_text/pasted.txt");
    let recording = RecordingBytes::from_bytes("paste", text.as_bytes().to_vec()).expect("a text");
    let redactable = recording.redactable().expect("events");
    let mut file = Vec::new();
    let (_, replaced) = redactable.write(0, &mut file).expect("memory");
    let redacted = RecordingBytes::from_bytes("paste", file).expect("a text");
    let check = redactable
        .check(&redacted, &replaced)
        .expect("both are read");
    assert!(check.is_same && check.remaining.is_empty(), "{check:?}");
    let expected = include_str!("redact_text/redacted.txt");
    let made = String::from_utf8_lossy(redacted.bytes()).into_owned();
    assert_eq!(made, expected, "{made}");
    for secret in [
        "acme", "alice", "Bob", "Initech", "10.20", "52:54", "fe80", "0x41", "81234567", "db1",
    ] {
        assert!(!made.contains(secret), "{secret}: {made}");
    }
}
