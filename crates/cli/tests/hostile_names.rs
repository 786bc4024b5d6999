//! Whatever threads, events, files and VMs are called, nothing that is printed steers a terminal or is run by a
//! spreadsheet; JSON says the names as they are.

use std::fs;
use std::path::Path;

use crate::common::{Failures, case, read, run};
use serde_json::Value;

/// Nine bytes, as `CPU 0/KVM` has: clears the screen, and turns the text around.
const EVIL: &[u8] = b"\x1b[2J\xe2\x80\xae/M";
const FORMULA: &[u8] = b"=1+2+A1+9";

const COMMANDS: [&[&str]; 15] = [
    &["info"],
    &["events"],
    &["events", "--as", "trace-cmd"],
    &["exits", "--event", "vmexit,ioport,mmio,msr", "--by", "vcpu"],
    &["vcpus"],
    &["sched"],
    &["paths"],
    &["paths", "--path", "halt-wake", "--each"],
    &["report"],
    &["diagnose"],
    &["export", "--as", "md"],
    &["export", "--as", "json"],
    &["export", "--as", "csv", "--table", "spans"],
    &["export", "--as", "csv", "--table", "instances"],
    &["export", "--as", "csv", "--table", "events"],
];

/// Returns the first character that steers, if there is one.
fn steering(bytes: &[u8]) -> Option<char> {
    String::from_utf8_lossy(bytes).chars().find(|&c| {
        let mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}');
        let marks = mark || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        marks || c.is_control() && c != '\n' && c != '\t'
    })
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut out = bytes.to_vec();
    let found: Vec<usize> = memchr::memmem::find_iter(bytes, from).collect();
    for at in &found {
        out[*at..at + to.len()].copy_from_slice(to);
    }
    assert!(!found.is_empty(), "nothing to replace");
    out
}

/// Writes recordings whose vCPU threads have another name.
fn recordings(folder: &Path, name: &[u8]) -> Vec<std::path::PathBuf> {
    let write = |number: usize| {
        let bytes = replaced(&read(&case(&one_of(number)).path), b"CPU 0/KVM", name);
        let path = folder.join(format!("{number}.rec"));
        fs::write(&path, bytes).expect("a written file");
        path
    };
    (0..2).map(write).collect()
}

/// Returns a recording of perf or of trace-cmd in which a thread is called as QEMU's first vCPU is.
fn one_of(number: usize) -> String {
    let kind = ["perf.data", "trace.dat"][number];
    let found = crate::common::cases().into_iter().find(|one| {
        let named = || memchr::memmem::find(&read(&one.path), b"CPU 0/KVM").is_some();
        let switches = || run(["sched".as_ref(), one.path.as_os_str()]).status == 0;
        one.kind == kind && named() && switches()
    });
    found.expect("one with a vCPU").name
}

/// What colours put around parts of lines.
const COLOURS: [&str; 4] = ["\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[0m"];

/// Colours are the program's own: without them a text is what it is without colours, and nothing in it steers.
#[test]
fn names_make_no_colours() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let mut coloured = 0;
    for path in recordings(folder.path(), EVIL) {
        for command in [
            &["report"][..],
            &["report", "--full"],
            &["report", "--brief"],
            &["diagnose"],
            &["vcpus"],
        ] {
            let with = |when: &str| {
                let mut args: Vec<&std::ffi::OsStr> = command.iter().map(AsRef::as_ref).collect();
                args.extend(["--color", when].map(AsRef::<std::ffi::OsStr>::as_ref));
                args.push(path.as_os_str());
                run(args).text()
            };
            let (mut text, plain) = (with("always"), with("never"));
            for colour in COLOURS {
                coloured += text.matches(colour).count();
                text = text.replace(colour, "");
            }
            let what = format!("{command:?} {}", path.display());
            failures.equal(&what, &text, &plain);
            failures.check(steering(text.as_bytes()).is_none(), || {
                format!("{what}: {text}")
            });
            let screen = command == ["report"];
            let wide = text.lines().any(|line| line.chars().count() > 80);
            failures.check(!screen || !wide && text.lines().count() <= 40, || {
                text.clone()
            });
        }
    }
    assert!(coloured > 20, "{coloured} colours");
    failures.finish(20);
}

#[test]
fn names_do_not_steer_the_terminal() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let mut shown = 0;
    for path in recordings(folder.path(), EVIL) {
        for command in COMMANDS {
            for format in ["table", "json", "csv"] {
                let mut args: Vec<&std::ffi::OsStr> = command.iter().map(AsRef::as_ref).collect();
                args.extend(["--format", format].map(AsRef::<std::ffi::OsStr>::as_ref));
                args.push(path.as_os_str());
                let run = run(args);
                let what = format!("{command:?} {format} {}", path.display());
                failures.equal(&format!("{what}: {}", run.stderr), &run.status, &0);
                failures.equal(&what, &steering(&run.stdout), &None);
                failures.equal(&what, &steering(run.stderr.as_bytes()), &None);
                shown += usize::from(run.text().contains("\\x1b[2J\\u{202e}/M"));
                // What is exported is the kind that --as says.
                let other = command.contains(&"md") || command.contains(&"csv");
                if format == "json" && !other {
                    let document: Value = serde_json::from_slice(&run.stdout).expect("JSON");
                    let names = document.to_string();
                    if command == ["sched"] || command == ["events"] {
                        let exact = names.contains("\\u001b[2J\u{202e}/M");
                        failures.check(exact, || format!("{what}: the name is another"));
                    }
                }
            }
        }
    }
    failures.check(shown >= 4, || format!("shown {shown} times"));
    failures.finish(180);
}

#[test]
fn names_of_files_and_facts_do_not_steer_the_terminal() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let name = "a\x1b[2J\u{202e}\u{9b}7m\n.data";
    let path = folder.path().join(name);
    let mut reported = |what: &str, run: &crate::common::Run| {
        failures.equal(what, &steering(&run.stdout), &None);
        failures.equal(what, &steering(run.stderr.as_bytes()), &None);
        let text = run.text() + &run.stderr;
        failures.check(text.contains("a\\x1b[2J\\u{202e}\\x9b7m"), || {
            format!("{what}: {text}")
        });
    };
    for command in ["info", "events", "exits", "compare", "diagnose", "report"] {
        let again = (command == "compare").then_some(path.as_os_str());
        let args = [command.as_ref(), path.as_os_str()]
            .into_iter()
            .chain(again);
        let run = run(args);
        reported(command, &run);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
    fs::copy(&case(&one_of(0)).path, &path).expect("a copy");
    reported("exits", &run(["exits".as_ref(), path.as_os_str()]));
    // A file's name may be taken for an option.
    let wrong = run(["exits", "--a\x1b[2J\u{202e}\u{9b}7m"]);
    assert_eq!((wrong.status, steering(wrong.stderr.as_bytes())), (2, None));
    assert!(wrong.stderr.contains("\\u{202e}\\x9b"), "{}", wrong.stderr);
    let facts = folder.path().join("ps.txt");
    let line = "    PID     TID COMMAND         COMMAND\n   4711    4711 qemu-system-x86 /usr/bin/qemu-system-x86_64 \
                -name a\x1b[2J\u{202e}\u{9b}7m,debug-threads=on -m 1G\n";
    fs::write(&facts, line).expect("a written file");
    let run = run(["facts".as_ref(), facts.as_os_str()]);
    assert_eq!(
        (steering(&run.stdout), steering(run.stderr.as_bytes())),
        (None, None)
    );
    failures.finish(20);
}

#[test]
fn spreadsheets_run_no_names() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in recordings(folder.path(), FORMULA) {
        for command in ["sched", "events"] {
            let run = run([
                command.as_ref(),
                "--format".as_ref(),
                "csv".as_ref(),
                path.as_os_str(),
            ]);
            let text = run.text();
            assert!(text.contains("'=1+2+A1+9"), "{command}");
            let cells = text.lines().flat_map(|line| line.split([',', '"']));
            let runs = |cell: &&str| {
                cell.starts_with(['=', '+', '-', '@'])
                    && cell.len() > 1
                    && cell.parse::<f64>().is_err()
            };
            // What stands behind a comma within a quoted cell begins no cell.
            if command == "sched" {
                assert_eq!(cells.clone().find(runs), None, "{command}");
            }
        }
    }
}
