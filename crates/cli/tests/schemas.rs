//! PyPI's `jsonschema-rs` says of what the commands print of the corpus that it is as `docs/schema` says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{cases, note, run};

/// What is asked of every recording; what one cannot answer it refuses.
const QUESTIONS: [&[&str]; 20] = [
    &["info"],
    &["events"],
    &["events", "--console"],
    &["exits"],
    &[
        "exits",
        "--event",
        "vmexit,ioport,mmio,msr",
        "--by",
        "vm,vcpu",
    ],
    &["vcpus"],
    &["sched"],
    &["paths"],
    &["paths", "--each"],
    &["paths", "--by", "vcpu"],
    &["paths", "--path", "kick", "--instance", "1"],
    &["flame"],
    &["flame", "--off-cpu"],
    &["diagnose"],
    &["report"],
    &["irqs"],
    &["export"],
    &["facts"],
    &["rules"],
    &["compare"],
];

/// Returns a python that has `jsonschema_rs`.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("TRAPLINE_JSONSCHEMA").filter(|name| !name.is_empty());
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    let python = named.map_or_else(|| "python3".into(), PathBuf::from);
    let import = "from jsonschema_rs import Draft202012Validator";
    let found = Command::new(&python).args(["-c", import]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    assert!(
        !required,
        "TRAPLINE_REQUIRE_TOOLS=1 is set, and no python has the package jsonschema-rs"
    );
    note("skipped: no python with the package jsonschema-rs of PyPI here (TRAPLINE_JSONSCHEMA)");
    None
}

#[test]
fn documents_of_the_corpus_are_valid() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut count = 0;
    for case in cases() {
        let path = case.path.display().to_string();
        for question in QUESTIONS {
            let mut args: Vec<&str> = question.to_vec();
            match question[0] {
                "rules" if count > 0 && case.name != cases()[0].name => continue,
                "rules" => {}
                "facts" => continue,
                "compare" => args.extend([path.as_str(), path.as_str()]),
                _ => args.push(&path),
            }
            args.extend(["--format", "json"]);
            let printed = run(&args);
            // What a recording cannot answer is refused, which other tests look at.
            if printed.status == 0 {
                let file = folder.path().join(format!("{count}.json"));
                fs::write(file, &printed.stdout).expect("it can be written");
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count} documents");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas");
    let output = Command::new(&python)
        .arg(tests.join("validate.py"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema"))
        .arg(folder.path())
        .output()
        .expect("python starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let checked = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(checked, format!("{count} documents are valid"));
}
