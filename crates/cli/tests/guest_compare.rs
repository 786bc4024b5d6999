//! `compare` of hosts' recordings with those of their guests: which it takes, and what it refuses. Its values are
//! tested in
//! `crates/compare/tests/corpus/guests.rs`.

use std::path::Path;

use fixtures::json::{list, text};
use fixtures::pairs::{GUEST, HOST};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{file, write_text};
use crate::guests::{document, over, recorded};

const ARM_HOST: &str = "arm64/virtio-mmio/boot2-vsock/trace.dat.zst";
const ARM_GUEST: &str = "arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst";

/// Returns all that was compared, reported or not.
fn all(document: &Value) -> Vec<&Value> {
    let lists = ["changes", "likely", "noise"].iter();
    lists.flat_map(|name| list(&document[*name])).collect()
}

fn is_of_guest(change: &Value) -> bool {
    text(&change["what"]).starts_with("guest ")
}

fn notes(document: &Value) -> String {
    list(&document["notes"])
        .iter()
        .map(text)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Recordings, options, the exit status, and words of the error.
type Refused<'r> = (&'r [&'r Path], &'r [&'r str], i32, &'r [&'r str]);

#[test]
fn guests_that_do_not_fit_are_refused() {
    let (host, guest, arm) = (file(HOST), file(GUEST), file(ARM_HOST));
    let other = file(ARM_GUEST).display().to_string();
    let own = guest.display().to_string();
    let arm_text = arm.display().to_string();
    let one = [host.as_path(), host.as_path()];
    let two = [host.as_path(), arm.as_path()];
    let of_guest = format!("--guest={other}");
    let with_other = format!("--with-guest={other}");
    let of_own = format!("--guest={own}");
    let with_own = format!("--with-guest={own}");
    let cases: [Refused<'_>; 8] = [
        (&one, &[&of_guest], 1, &["trace-guest1.dat", "another"]),
        (&one, &[&with_other], 1, &["trace-guest1.dat"]),
        (
            &two,
            &["--with", &arm_text, &of_own],
            2,
            &[
                "--guest names recordings of one host's guests",
                "A has 2 recordings",
            ],
        ),
        (
            &one[..1],
            &["--with", &arm_text, &arm_text, &with_own],
            2,
            &["--with-guest names", "B has 2 recordings"],
        ),
        (&two, &["--each", &of_own], 2, &["--each", "--guest"]),
        (
            &[&host, &guest],
            &[],
            2,
            &["the host's recording to compare it with is missing"],
        ),
        (
            &[&host, &arm, &host, &guest],
            &[],
            2,
            &["3 recordings: say which are to be compared"],
        ),
        (
            &one[..1],
            &[&of_own],
            2,
            &["the one to compare it with is missing"],
        ),
    ];
    for (paths, more, status, words) in cases {
        let run = over("compare", paths, more);
        assert_eq!(run.status, status, "{more:?}: {}", run.stderr);
        for word in words {
            assert!(
                run.stderr.contains(word),
                "{more:?}, {word}: {}",
                run.stderr
            );
        }
    }
}

#[test]
fn a_folder_brings_its_hosts_guests() {
    let folders = [recorded(), recorded()];
    for folder in &folders {
        std::fs::remove_file(folder.path().join("guest-b.perf.data")).expect("it is there");
    }
    let [a, b] = folders.each_ref().map(TempDir::path);
    let found = document("compare", &[a, b], &[]);
    assert!(all(&found).into_iter().any(is_of_guest), "{found}");
    assert_eq!((list(&found["a"]).len(), list(&found["b"]).len()), (2, 2));
    assert_eq!(list(&found["changes"]).len(), 0);
    let each = document("compare", &[a, b], &["--each"]);
    assert_eq!(list(&each["inputs"]).len(), 4);
    // One that cannot be used is left out, and its reason is reported.
    write_text(b, "guest-a.perf.data", "broken\n");
    let found = document("compare", &[a, b], &[]);
    assert!(notes(&found).contains("B has no guest's recording"));
    let warnings = found["quality"]["warnings"].to_string();
    assert!(warnings.contains("guest-a.perf.data"), "{warnings}");
}
