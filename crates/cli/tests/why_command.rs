//! `trapline why` on the machine that runs the tests: each step is the command that it prints, and where nothing can be
//! recorded it says what stops it.

use std::fs;
use std::path::Path;

use crate::common::{json, trapline};
use crate::record_command::possible;
use crate::record_user::{as_nobody, error, folder_of_nobody};

#[test]
fn a_dry_run_names_the_commands_and_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = trapline();
    command.current_dir(folder.path());
    let output = command.args(["why", "--dry-run", "--seconds", "2.5"]);
    let output = output.output().expect("the program");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in [
        "$ trapline top --once",
        "$ trapline record --for exits,sched,paths --seconds 2.5",
        "$ trapline report trapline-N -o trapline-N/report.html",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

/// The program alone, on a host of VMs, says what it would do.
#[test]
fn the_program_alone_is_a_dry_run_where_kvm_is() {
    let mut command = trapline();
    let output = command.output().expect("the program");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if Path::new("/sys/module/kvm").exists() {
        assert!(text.contains("'trapline why' would run"), "{text}");
        assert!(
            text.contains("trapline --help lists all commands"),
            "{text}"
        );
    } else {
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn a_vm_that_is_not_there_is_said_before_anything_is_done() {
    let mut command = trapline();
    let output = command.args(["why", "--vm", "no-such-vm"]).output();
    let output = output.expect("the program");
    let text = error(&output);
    assert!(!output.status.success());
    assert!(text.contains("--vm no-such-vm"), "{text}");
    assert!(!text.contains("counted"), "{text}");
}

#[test]
fn one_command_counts_records_and_reports() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = trapline();
    command.current_dir(folder.path());
    let output = command.args(["why", "--seconds", "0.5", "-o", "out"]);
    let output = output.output().expect("the program");
    let said = error(&output);
    assert!(output.status.success(), "{said}");
    let screen = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(screen.contains("wrote out/report.html"), "{screen}");
    assert!(said.contains("$ trapline record --for "), "{said}");
    assert!(said.contains("chosen: "), "{said}");
    // The page is what 'report' writes of the folder, and the recording is whole.
    let page = folder.path().join("out/report.html");
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("<title>trapline report: out"));
    let report = json(&["report"], &folder.path().join("out")).expect("a document");
    let found = report["recordings"].as_array().cloned().unwrap_or_default();
    assert_eq!(found.len(), 1, "{report}");
    assert_eq!(report["quality"]["truncated"], false, "{report}");
    // Without vCPUs there is no verdict, and whoever asks is not shown any.
    assert!(!screen.contains("Nothing is wrong"), "{screen}");
}

#[test]
fn without_permission_it_says_what_stops_it_and_gives_what_it_can() {
    if !possible() {
        return;
    }
    let (folder, _) = folder_of_nobody();
    let output = as_nobody(folder.path(), "", &["why", "--seconds", "0.5", "-o", "out"]);
    let said = error(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("missing: events"), "{said}");
    assert!(said.contains("nothing could be recorded"), "{said}");
    assert!(folder.path().join("out/facts.json").exists(), "{said}");
}
