//! The same inputs through the program: its exit status, what it prints, and which files it leaves.

use std::fs;
use std::path::Path;

use super::checks;
use crate::common::trapline;

const COMMANDS: [&[&str]; 10] = [
    &["report", "--format", "json"],
    &["report", "--full"],
    &["info", "--format", "json"],
    &["events"],
    &["exits", "--format", "json", "--by", "vcpu"],
    &["diagnose", "--format", "json"],
    &["facts", "--format", "json"],
    &["flame", "--format", "json"],
    &["paths", "--format", "csv"],
    &["vcpus", "--strict", "--format", "json"],
];

/// Runs a command that prints, and one that writes a file.
pub(super) fn run(path: &Path, which: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let start = |args: &[&str]| {
        let mut program = trapline();
        program.current_dir(folder.path()).args(args).arg(path);
        let output = program.output().expect("the program starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let status = output.status.code();
        assert!(
            matches!(status, Some(0..=3)),
            "{args:?}: {status:?} {stderr}"
        );
        assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
        (status == Some(0), output.stdout)
    };
    let args = COMMANDS[which as usize % COMMANDS.len()];
    let (done, printed) = start(args);
    // Lines of events have the bytes that perf prints: a name that was cut within a letter ends in half of it.
    let text = match args == ["events"] {
        true => {
            let c1 = |chunk: std::str::Utf8Chunk<'_>| chunk.invalid().iter().any(|b| *b < 0xa0);
            assert!(!printed.utf8_chunks().any(c1), "a byte steers a terminal");
            String::from_utf8_lossy(&printed).into_owned()
        }
        false => String::from_utf8(printed).expect("what is printed is text"),
    };
    if done && args.contains(&"json") {
        checks::numbers(&serde_json::from_str(&text).expect("JSON"));
    }
    let names = || {
        let left = fs::read_dir(folder.path()).expect("a folder").flatten();
        left.map(|one| one.file_name().to_string_lossy().into_owned())
            .collect::<Vec<_>>()
    };
    assert!(names().is_empty(), "{args:?} left {:?}", names());
    let (command, file) = [
        ("report", "page.html"),
        ("export", "x.pftrace"),
        ("export", "x.md"),
        ("salvage", "x.salvaged"),
        ("redact", "x.redacted"),
    ][which as usize % 5];
    // A link in the place of the file is replaced, or refused: what it leads to stays.
    let outside = folder.path().join("outside");
    fs::write(&outside, "mine").expect("a file");
    let (done, _) = start(&[command, "-o", file]);
    assert_eq!(fs::read(&outside).expect("it is there"), b"mine");
    let mut left = names();
    left.sort();
    let wanted: &[&str] = if done {
        &["outside", file]
    } else {
        &["outside"]
    };
    assert_eq!(left, wanted, "{command} -o {file}");
}
