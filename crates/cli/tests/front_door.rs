//! What stands between a new user and an answer: a file alone, no file at all, and perf's way to name one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::{Failures, Run, case, run, trapline};

/// Commands that read recordings and have their events.
const COMMANDS: [&str; 6] = ["report", "diagnose", "info", "events", "exits", "vcpus"];

fn run_in(folder: &Path, args: &[&str]) -> Run {
    let mut program = trapline();
    let output = program.args(args).current_dir(folder).output();
    let output = output.expect("the program starts");
    Run::of(output)
}

fn recording() -> PathBuf {
    case("vmx/tiny-irqchip/perf.data.kvmstat.zst").path
}

/// Copies the recording, as if it had been written at this second.
fn place(folder: &Path, name: &str, second: u64) {
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).expect("a folder");
    }
    fs::copy(recording(), &path).expect("a copy");
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
    let file = File::options().append(true).open(&path).expect("the copy");
    file.set_modified(time).expect("its time");
}

#[test]
fn a_file_alone_is_reported() {
    let mut failures = Failures::default();
    let path = recording().display().to_string();
    for options in [&[][..], &["--full"], &["--format", "json"], &["--brief"]] {
        let with = run(["report", &path].iter().chain(options));
        let without = run([path.as_str()].iter().chain(options));
        failures.equal(&format!("{options:?}"), &without.text(), &with.text());
        failures.equal(&format!("{options:?}: status"), &without.status, &0);
    }
    let perfs_way = run(["-i", &path]);
    failures.equal("-i", &perfs_way.text(), &run(["report", &path]).text());
    let missing = run(["nowhere.dat"]);
    failures.equal("missing", &missing.status, &1);
    failures.check(missing.stderr.contains("nowhere.dat: no such file"), || {
        missing.stderr.clone()
    });
    // A command's name wins over a file of that name.
    let folder = tempfile::tempdir().expect("a folder");
    place(folder.path(), "rules", 1);
    let rules = run_in(folder.path(), &["rules"]);
    failures.equal("rules", &rules.text(), &run(["rules"]).text());
    let mistyped = run(["exist"]);
    failures.equal("mistyped", &mistyped.status, &2);
    failures.check(mistyped.stderr.contains("'exits'"), || {
        mistyped.stderr.clone()
    });
    failures.finish(14);
}

#[test]
fn without_a_file_the_newest_recording_is_read() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path();
    for command in COMMANDS {
        let none = run_in(dir, &[command]);
        failures.equal(&format!("{command}: none here"), &none.status, &1);
        for word in [
            "trapline-N/perf.data",
            "perf.data.guest",
            "trace.dat",
            "'trapline record'",
        ] {
            failures.check(none.stderr.contains(word), || {
                format!("{command}: {}", none.stderr)
            });
        }
    }
    // What is not recorded by anybody's defaults is none of them.
    place(dir, "other.data", 9_000);
    place(dir, "trapline-x/perf.data", 9_000);
    fs::create_dir(dir.join("trapline-7")).expect("a folder");
    for (name, second, newest) in [
        ("perf.data", 1_000, "perf.data"),
        ("trace.dat", 2_000, "trace.dat"),
        ("trapline-2/perf.data", 3_000, "trapline-2/perf.data"),
        ("perf.data.guest", 2_500, "trapline-2/perf.data"),
        ("trapline-10/perf.data", 3_000, "trapline-10/perf.data"),
        ("perf.data.guest", 4_000, "perf.data.guest"),
    ] {
        place(dir, name, second);
        let info = run_in(dir, &["info"]);
        let said = format!("reading {newest}, the newest here\n");
        failures.equal(name, &info.stderr, &said);
        failures.equal(name, &info.status, &0);
    }
    for command in COMMANDS {
        let named = run_in(dir, &[command, "perf.data.guest"]);
        let newest = run_in(dir, &[command]);
        failures.equal(command, &newest.text(), &named.text());
        failures.equal(command, &newest.status, &0);
    }
    // A definition alone is an input, and a comparison has two.
    let definition = run_in(dir, &["diagnose", "--domain", "nowhere.xml"]);
    failures.check(definition.stderr.contains("nowhere.xml"), || {
        definition.stderr.clone()
    });
    failures.equal("compare", &run_in(dir, &["compare"]).status, &2);
    failures.equal(
        "flame",
        &run_in(dir, &["flame", "--diff", "perf.data"]).status,
        &2,
    );
    failures.finish(50);
}

#[test]
fn a_folder_of_record_is_read_with_its_facts() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path();
    place(dir, "trapline-3/perf.data", 1_000);
    let facts = dir.join("trapline-3/facts.json");
    let good = "{\"facts_version\": 1, \"threads\": [], \"host\": {\"hz\": 250}}\n";
    fs::write(&facts, good).expect("a file");
    for command in COMMANDS {
        for args in [&[command, "trapline-3"][..], &[command]] {
            fs::write(&facts, good).expect("a file");
            let read = run_in(dir, args);
            failures.equal(&format!("{args:?}: {}", read.stderr), &read.status, &0);
            fs::write(&facts, "Dear all\n").expect("a file");
            let refused = run_in(dir, args);
            failures.equal(&format!("{args:?}"), &refused.status, &1);
            failures.check(refused.stderr.contains("trapline-3/facts.json"), || {
                format!("{args:?}: {}", refused.stderr)
            });
        }
    }
    failures.finish(36);
}

#[test]
fn recordings_are_named_as_perf_names_them() {
    let mut failures = Failures::default();
    let path = recording().display().to_string();
    let other = case("vmx/tiny-irqchip/perf.data.zst").path;
    let other = other.display().to_string();
    for command in COMMANDS {
        let named = run([command, path.as_str()]);
        for args in [["-i", path.as_str()], ["--input", &path]] {
            let perfs_way = run([command].iter().chain(&args));
            failures.equal(command, &perfs_way.text(), &named.text());
        }
    }
    // In the order of the command line, whichever way each is named.
    let named = run(["compare", &path, &other]);
    failures.equal("status", &named.status, &0);
    for args in [
        ["-i", &path, "-i", &other].as_slice(),
        &["-i", &path, &other],
        &[&path, "-i", &other],
    ] {
        let run = run(["compare"].iter().chain(args));
        failures.equal(&format!("{args:?}"), &run.text(), &named.text());
    }
    failures.finish(15);
}

#[test]
fn formats_have_short_names() {
    let mut failures = Failures::default();
    let path = recording().display().to_string();
    for command in COMMANDS {
        for format in ["json", "csv"] {
            let long = run([command, &path, "--format", format]);
            let short = run([command, &path, &format!("--{format}")]);
            failures.equal(
                &format!("{command} --{format}"),
                &short.text(),
                &long.text(),
            );
        }
    }
    let long = run(["rules", "--format", "json"]);
    failures.equal("rules", &run(["rules", "--json"]).text(), &long.text());
    let both = ["--json", "--csv"];
    failures.equal("both", &run(["rules"].iter().chain(&both)).status, &2);
    failures.finish(14);
}
