//! `trapline record --store`: what stays of a recording is its sums.

use std::fs;
use std::path::Path;

use crate::common::{json, trapline};
use crate::record_command::{possible, record};

/// Returns the names of a store's recordings.
pub(crate) fn runs(store: &Path) -> Vec<String> {
    let Ok(days) = fs::read_dir(store.join("runs")) else {
        return Vec::new();
    };
    let files = days.flat_map(|day| fs::read_dir(day.expect("a day").path()).expect("a folder"));
    let names = files.map(|file| file.expect("a file").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn sums_are_stored_and_the_recording_goes_unless_it_has_a_name() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("fleet");
    let label = ["--label", "role=web", "--", "sleep", "0.3"];
    let said = |more: &[&str]| {
        let mut command = record(folder.path(), &["--for", "sched", "--store", "fleet"]);
        let output = command.args(more).args(label).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{output:?}");
        text
    };
    let text = said(&[]);
    assert!(text.contains("next: trapline fleet fleet"), "{text}");
    assert!(!folder.path().join("trapline-1").exists(), "{text}");
    assert_eq!(runs(&store).len(), 1, "{text}");
    let text = said(&["-o", "kept"]);
    assert!(text.contains("next: trapline report kept"), "{text}");
    assert_eq!(runs(&store).len(), 2, "{text}");
    // What was stored of it is what its file says.
    let kept = folder.path().join("kept");
    json(&["sched"], &kept).expect("it is a recording");
    let again = trapline()
        .current_dir(folder.path())
        .args(["export", "--as", "parquet", "-o", "fleet", "kept"])
        .args(["--label", "role=web"])
        .output()
        .expect("it runs");
    assert!(again.status.success(), "{again:?}");
    assert_eq!(runs(&store).len(), 2, "the same run");
    // What cannot be a store is said before anything is recorded, and what cannot be stored stays.
    fs::write(folder.path().join("full"), "no folder").expect("a file");
    let failed = |more: &[&str]| {
        let mut command = record(folder.path(), &["--for", "sched"]);
        let output = command.args(more).args(label).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = failed(&["--store", "full"]);
    assert!(error.contains("full"), "{error}");
    assert!(!folder.path().join("trapline-1").exists(), "{error}");
    fs::write(folder.path().join("key"), "0123456789abcdef".repeat(4)).expect("a key");
    let error = failed(&["--store", "fleet", "--mask", "key"]);
    assert!(error.contains("stays in trapline-1"), "{error}");
    json(&["sched"], &folder.path().join("trapline-1")).expect("it is a recording");
    // A command that fails does not keep its recording out of the store.
    let mut command = record(
        folder.path(),
        &["--for", "sched", "--store", "fleet", "--", "false"],
    );
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(runs(&store).len(), 3);
}
