//! Errors: one line on standard error that says what was expected and what to do, exit status 1 (2 for wrong
//! usage), nothing on standard output.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{Failures, Run, case, run, run_with, trapline};

const COMMANDS: [&str; 6] = ["info", "events", "exits", "vcpus", "sched", "report"];

/// Checks that a run failed as it should.
fn refused(failures: &mut Failures, what: &str, run: &Run, words: &[&str]) {
    failures.equal(&format!("{what}: exit status"), &run.status, &1);
    failures.check(run.stdout.is_empty(), || {
        format!("{what}: prints {}", run.text())
    });
    failures.equal(
        &format!("{what}: lines: {}", run.stderr),
        &run.stderr.lines().count(),
        &1,
    );
    failures.check(run.stderr.starts_with("trapline: "), || {
        format!("{what}: {} does not say who speaks", run.stderr)
    });
    for word in words {
        failures.check(run.stderr.contains(word), || {
            format!("{what}: {} does not say {word:?}", run.stderr)
        });
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("a written file");
    path
}

#[test]
fn what_is_no_recording_is_refused_in_one_line() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path();
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01".to_vec();
    png.extend((0..2000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()));
    let noise: Vec<u8> = png[20..].to_vec();
    let inputs = [
        (
            "missing",
            dir.join("nowhere.data"),
            &["no such file", "expected"][..],
        ),
        ("a directory", dir.to_path_buf(), &["directory", "expected"]),
        ("empty", write(dir, "empty", b""), &["empty", "expected"]),
        (
            "a picture",
            write(dir, "picture.data", &png),
            &["PNG", "expected"],
        ),
        ("noise", write(dir, "noise.dat", &noise), &["expected"]),
        (
            "a text without events",
            write(
                dir,
                "letter.txt",
                b"Dear all,\n\nnothing was traced today.\n",
            ),
            &["event", "expected"],
        ),
        ("one byte", write(dir, "byte", b"P"), &["expected"]),
    ];
    for (what, path, words) in &inputs {
        for command in COMMANDS {
            let run = run([command.as_ref(), path.as_os_str()]);
            let name = path.display().to_string();
            let words: Vec<&str> = words.iter().copied().chain([name.as_str()]).collect();
            refused(&mut failures, &format!("{command}: {what}"), &run, &words);
        }
    }
    // The beginnings of recordings, with nothing behind.
    for (what, bytes) in [
        ("8 bytes of a perf.data", &b"PERFILE2"[..]),
        ("10 bytes of a trace.dat", b"\x17\x08\x44tracing"),
        ("a gzip header", b"\x1f\x8b\x08\0\0\0\0\0\0\x03"),
        ("a zstd header", b"\x28\xb5\x2f\xfd\x04"),
    ] {
        let path = write(dir, "beginning", bytes);
        for command in COMMANDS {
            let run = run([command.as_ref(), path.as_os_str()]);
            let name = path.display().to_string();
            refused(&mut failures, &format!("{command}: {what}"), &run, &[&name]);
        }
    }
    for command in COMMANDS {
        let run = run_with([command, "-"], &png);
        let words = ["standard input", "PNG", "expected"];
        refused(
            &mut failures,
            &format!("{command}: a picture on a pipe"),
            &run,
            &words,
        );
        let run = run_with([command, "-"], b"");
        let words = ["standard input", "empty"];
        refused(
            &mut failures,
            &format!("{command}: an empty pipe"),
            &run,
            &words,
        );
    }
    failures.finish(300);
}

#[test]
fn a_recording_without_exits_is_refused_by_exits_alone() {
    let mut failures = Failures::default();
    let path = case("host/sender-flows/perf.data.zst").path;
    let run_on = |command: &str| run([command.as_ref(), path.as_os_str()]);
    let words = ["kvm_exit", "'trapline record --for exits'"];
    refused(
        &mut failures,
        "exits without exits",
        &run_on("exits"),
        &words,
    );
    for command in ["info", "events", "report"] {
        let run = run_on(command);
        failures.equal(command, &run.status, &0);
        failures.check(!run.stdout.is_empty(), || {
            format!("{command} prints nothing")
        });
    }
    // The front door shows what there is, and says what is missing.
    let report = run_on("report").text();
    failures.check(report.contains("kvm_exit"), || report.clone());
    // An event nobody recorded.
    let run = run([
        "events".as_ref(),
        path.as_os_str(),
        "--event".as_ref(),
        "kvm_*".as_ref(),
    ]);
    refused(
        &mut failures,
        "events of no such name",
        &run,
        &["kvm_*", "info"],
    );
    // A perf.data whose end is missing has no formats: exits cannot be distinguished from other events.
    let cut = case("x86/format-variants/truncated.perf.data.zst").path;
    let run = crate::common::run(["exits".as_ref(), cut.as_os_str()]);
    refused(&mut failures, "exits without formats", &run, &["--formats"]);
    failures.finish(20);
}

/// Root may read everything, so for root the program runs as somebody else.
#[test]
fn permission_denied_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own file");
    };
    let folder = tempfile::tempdir().expect("a folder");
    mode(folder.path(), 0o755);
    let secret = write(folder.path(), "perf.data", b"PERFILE2");
    mode(&secret, 0o000);
    let output = if fs::File::open(&secret).is_err() {
        trapline()
            .arg("info")
            .arg(&secret)
            .output()
            .expect("the program starts")
    } else {
        let program = folder.path().join("trapline");
        fs::copy(env!("CARGO_BIN_EXE_trapline"), &program).expect("a copy");
        mode(&program, 0o755);
        let output = std::process::Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .arg("info")
            .arg(&secret)
            .output();
        output.expect("setpriv, which util-linux brings, runs a program as another user")
    };
    let run = Run::of(output);
    let mut failures = Failures::default();
    let words = ["permission denied", "perf.data", "sudo"];
    refused(&mut failures, "permission denied", &run, &words);
    failures.finish(6);
}

#[test]
fn wrong_usage_is_status_2() {
    let mut failures = Failures::default();
    let path = case("vmx/tiny-irqchip/perf.data.kvmstat.zst").path;
    let path = path.to_string_lossy();
    for (args, word) in [
        (vec!["--strict"], "Usage"),
        (vec!["frobnicate"], "frobnicate"),
        (vec!["exits", &path, "--event", "vmexits"], "vmexit"),
        (vec!["exits", &path, "--frob"], "--frob"),
        (vec!["exits", &path, "--cpu", "3-1"], "3-1"),
        (vec!["exits", &path, "--cpu", "one"], "0-3,8"),
        (vec!["exits", &path, "--time", "5"], "FROM,TO"),
        (vec!["exits", &path, "--time", "2,1"], "2,1"),
        (vec!["exits", &path, "--pid", "many"], "many"),
        (vec!["exits", &path, "--vcpu", "-1"], "-1"),
        (vec!["info", &path, "--format", "yaml"], "json"),
        (vec!["events", &path, "--as", "strace"], "trace-cmd"),
        (vec!["exits", &path, "--as", "trace-cmd"], "perf"),
        (vec!["report", &path, "-o", "x.txt"], ".html"),
        (
            vec!["report", &path, "-o", "q.html", "--format", "json"],
            "--format json and -o",
        ),
        (
            vec!["report", &path, "--brief", "--format", "csv"],
            "--brief",
        ),
        (vec!["export", &path, "-o", "x.foo"], ".pftrace"),
        (vec!["export", &path], "--as"),
        (
            vec!["export", &path, "-o", "x.md", "--table", "exits"],
            "--table",
        ),
        (
            vec!["export", &path, "-o", "x.md", "--path", "nope"],
            "nope",
        ),
        (vec!["compare", &path], "missing"),
        (vec!["compare", &path, &path, &path], "--with"),
        (vec!["compare", "--each", &path], "missing"),
        (vec!["paths", &path, "--path", "nope"], "nope"),
        (vec!["paths", &path, "--instance", "1"], "--path"),
    ] {
        let run = run(&args);
        let what = format!("{args:?}");
        failures.equal(&what, &run.status, &2);
        failures.check(run.stdout.is_empty(), || {
            format!("{what} prints {}", run.text())
        });
        failures.check(run.stderr.contains(word), || {
            format!("{what}: {} does not say {word:?}", run.stderr)
        });
    }
    for args in [vec!["--help"], vec!["--version"], vec!["exits", "--help"]] {
        let run = run(&args);
        failures.equal(&format!("{args:?}"), &run.status, &0);
        failures.check(!run.stdout.is_empty(), || {
            format!("{args:?} prints nothing")
        });
    }
    failures.finish(40);
}

/// Whoever reads our output may stop at any time: that is no error of ours.
#[test]
fn a_closed_pipe_ends_it_silently() {
    let mut failures = Failures::default();
    let path = case("vmx/linux-boot/perf.data.kvmstat.zst").path;
    for args in [
        &["events"][..],
        &["events", "--format", "json"],
        &["events", "--format", "csv"],
        &[
            "exits",
            "--event",
            "vmexit,ioport,mmio,msr",
            "--format",
            "json",
        ],
        &["info"],
        &["report"],
    ] {
        let mut child = trapline()
            .args(args)
            .arg(&path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdout = BufReader::with_capacity(16, child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("one line");
        drop(stdout);
        let mut stderr = String::new();
        let mut pipe = child.stderr.take().expect("a pipe");
        pipe.read_to_string(&mut stderr).expect("text");
        let status = child.wait().expect("it ends");
        failures.check(!line.is_empty(), || format!("{args:?} prints nothing"));
        failures.equal(&format!("{args:?} | head -1"), &status.code(), &Some(0));
        failures.equal(&format!("{args:?} | head -1"), &stderr.as_str(), &"");
    }
    failures.finish(18);
}

/// Facts are files as recordings are.
#[test]
fn facts_that_say_nothing_are_refused() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path();
    let recording = case("vmx/tiny-irqchip/perf.data.kvmstat.zst").path;
    for (what, path, words) in [
        ("missing", dir.join("nowhere.txt"), &["no such file"][..]),
        ("a directory", dir.to_path_buf(), &["directory"]),
        ("empty", write(dir, "empty", b""), &["says nothing"]),
        (
            "a letter",
            write(dir, "letter.txt", b"Dear all,\n\nregards\n"),
            &["says nothing"],
        ),
        (
            "other JSON",
            write(dir, "other.json", b"{\"a\": [1, 2]}\n"),
            &["says nothing"],
        ),
        (
            "a picture",
            write(dir, "picture", b"\x89PNG\r\n\x1a\n\0\0\0"),
            &["says nothing"],
        ),
    ] {
        for command in COMMANDS {
            let run = run([
                command.as_ref(),
                recording.as_os_str(),
                "--facts".as_ref(),
                path.as_os_str(),
            ]);
            let name = path.display().to_string();
            let words: Vec<&str> = words
                .iter()
                .copied()
                .chain(["ps -eLo", "info cpus", &name])
                .collect();
            refused(
                &mut failures,
                &format!("{command}: facts: {what}"),
                &run,
                &words,
            );
        }
    }
    failures.finish(150);
}

/// Filters that let nothing through are not taken for recordings that hold nothing.
#[test]
fn filters_that_nothing_passes_are_named() {
    let mut failures = Failures::default();
    let path = case("vmx/linux-boot/perf.data.kvmstat.zst").path;
    for (filter, words) in [
        (["--vm", "nosuch"], &["called nosuch", "trapline info"][..]),
        (["--vcpu", "77"], &["vCPU 77", "trapline info"]),
        (["--cpu", "4000"], &["filters", "trapline info"]),
        (["--time", "0,0.000000001"], &["filters", "trapline info"]),
        (["--pid", "1999999999"], &["filters", "trapline info"]),
    ] {
        let run = run([
            "exits".as_ref(),
            filter[0].as_ref(),
            filter[1].as_ref(),
            path.as_os_str(),
        ]);
        refused(&mut failures, &filter.join(" "), &run, words);
    }
    failures.finish(20);
}

/// Where filters leave nothing, nobody is asked to record what is recorded.
#[test]
fn filters_that_leave_nothing_are_no_lack_of_the_recording() {
    let mut failures = Failures::default();
    let path = case("x86/console-sick/perf.data.zst").path;
    for filter in [["--time", "0,1"], ["--cpu", "8000"]] {
        for command in ["report", "diagnose"] {
            let arguments = [command.as_ref(), filter[0].as_ref(), filter[1].as_ref()];
            let run = run(arguments.into_iter().chain([path.as_os_str()]));
            let what = format!("{command} {}", filter.join(" "));
            refused(
                &mut failures,
                &what,
                &run,
                &["passes the filters", "trapline info"],
            );
        }
    }
    let screen = run([
        "report".as_ref(),
        "--cpu".as_ref(),
        "0".as_ref(),
        path.as_os_str(),
    ]);
    let text: Vec<String> = screen
        .text()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let text = text.join(" ");
    failures.equal("--cpu 0", &screen.status, &0);
    failures.check(!text.contains("record on the host"), || text.clone());
    failures.check(
        text.contains("No kvm_exit event passes the filters"),
        || text.clone(),
    );
    failures.finish(15);
}

/// Of a perf.data that was cut off while it was recorded, the screen says what can still be done.
#[test]
fn a_recording_without_formats_says_who_has_them() {
    let whole = crate::common::read(&case("x86/console-sick/perf.data.zst").path);
    let folder = tempfile::tempdir().expect("a folder");
    let cut = folder.path().join("cut.data");
    fs::write(&cut, &whole[..3_000_000]).expect("a written file");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for option in ["--color=never", "--brief"] {
        let screen = run(["report".as_ref(), option.as_ref(), cut.as_os_str()]).text();
        let text = words(&screen);
        assert!(
            text.contains(&words(
                "--formats OTHER takes it from another recording of the same kernel."
            )),
            "{screen}"
        );
        assert!(!text.contains("kvm_exit"), "{screen}");
    }
}

/// What is wrong and what to do fits a few lines of a terminal.
#[test]
fn errors_are_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let nothing = write(folder.path(), "f.txt", b"this is no fact\n");
    let path = case("x86/console-sick/perf.data.zst").path;
    let (recording, facts) = (path.to_string_lossy(), nothing.to_string_lossy());
    for option in [["--vm", "nosuch"], ["--facts", &facts]] {
        let run = run(["exits", option[0], option[1], &recording]);
        let error = run.stderr.replace(&*recording, "REC").replace(&*facts, "F");
        assert!(error.len() < 260, "{} signs: {error}", error.len());
    }
}

/// What is shown of a file is in it.
#[test]
fn a_map_of_devices_that_is_no_text_is_shown_as_it_is() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let recording = case("vmx/tiny-irqchip/perf.data.kvmstat.zst").path;
    let mut noise = vec![0xfe, 0xed, 0x00, 0x10];
    noise.extend((0..2000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()));
    let map = write(folder.path(), "map", &noise);
    let run = run([
        "exits".as_ref(),
        "--mtree".as_ref(),
        map.as_os_str(),
        recording.as_os_str(),
    ]);
    refused(&mut failures, "noise", &run, &["beginning fe ed 00 10"]);
    failures.finish(4);
}

#[test]
fn help_that_cannot_be_written_is_no_success() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        return;
    };
    let output = trapline()
        .arg("--help")
        .stdout(Stdio::from(full))
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("trapline: standard output: "));
}

#[test]
fn what_cannot_be_unpacked_is_reported_with_its_own_cause() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path();
    // A raw zstd frame of 17 MiB of a text: more than stays in memory.
    let line = b"qemu 12 [000] 1.000001: kvm:kvm_entry: vcpu 0, rip 0x1\n";
    let text: Vec<u8> = line.iter().copied().cycle().take(17 << 20).collect();
    let mut packed = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x68];
    for piece in text.chunks(128 << 10) {
        packed.extend(&((piece.len() as u32) << 3).to_le_bytes()[..3]);
        packed.extend(piece);
    }
    packed.extend([1, 0, 0]);
    let path = write(dir, "packed.txt.zst", &packed);
    let nowhere = dir.join("nowhere");
    let output = trapline()
        .env("TMPDIR", &nowhere)
        .args(["info".as_ref(), path.as_os_str()])
        .output()
        .expect("the program starts");
    let reported = Run::of(output);
    let words = ["TMPDIR", "temporary folder", &nowhere.display().to_string()];
    refused(&mut failures, "TMPDIR that is missing", &reported, &words);
    let args = ["info", "--spool-limit", "1M"].map(AsRef::<std::ffi::OsStr>::as_ref);
    let reported = run(args.into_iter().chain([path.as_os_str()]));
    refused(
        &mut failures,
        "a limit",
        &reported,
        &["--spool-limit", "1M"],
    );
    let reported = run_with(["info", "--spool-limit", "1M", "-"], &text);
    let words = ["standard input", "--spool-limit", "1M"];
    refused(&mut failures, "a limit of a pipe", &reported, &words);
    let path = write(dir, "short.zst", b"\x28\xb5\x2f\xfd");
    let reported = run(["info".as_ref(), path.as_os_str()]);
    refused(
        &mut failures,
        "4 bytes of zstd",
        &reported,
        &["zstd data ends"],
    );
    failures.check(!reported.stderr.contains(['{', '(']), || {
        reported.stderr.clone()
    });
    let reported = run(["info", "/dev/zero"]);
    refused(
        &mut failures,
        "zeros without an end",
        &reported,
        &["expected"],
    );
    let reported = run(["paths", "--path", "foo", "packed.txt.zst"]);
    failures.equal("no path: exit status", &reported.status, &2);
    for word in ["--path foo", "no built-in path", "halt-wake, irqfd"] {
        failures.check(reported.stderr.contains(word), || reported.stderr.clone());
    }
    failures.check(!reported.stderr.contains("os error"), || {
        reported.stderr.clone()
    });
    failures.finish(30);
}
