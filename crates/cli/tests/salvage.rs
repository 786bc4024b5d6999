//! `trapline salvage`: files that are cut off, and what perf and trace-cmd say of what comes out.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Failures, case, list, note, number, read, run, tools_are_required};

/// Salvages the first part of a recording. Returns the account.
fn salvage(part: &Path, to: &Path, formats: Option<&Path>) -> Result<serde_json::Value, String> {
    let mut args = vec![
        "salvage".into(),
        "--json".into(),
        part.to_owned(),
        "-o".into(),
        to.to_owned(),
    ];
    args.extend(
        formats
            .into_iter()
            .flat_map(|path| [PathBuf::from("--formats"), path.to_owned()]),
    );
    run(&args).json()
}

/// Returns how many lines a tool prints, each of which is an event; `None` where it is not on this machine.
pub(crate) fn lines(tool: &str, args: &[&str], file: &Path) -> Option<Result<usize, String>> {
    let output = Command::new(tool).args(args).arg("-i").arg(file).output();
    match output {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            assert!(!tools_are_required(), "{tool} is missing");
            note(&format!("skipped: no {tool} here"));
            None
        }
        Err(error) => Some(Err(error.to_string())),
        Ok(output) if !output.status.success() => {
            Some(Err(String::from_utf8_lossy(&output.stderr).into_owned()))
        }
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let events = text
                .lines()
                .filter(|line| line.contains(": ") && !line.starts_with("cpus="));
            Some(Ok(events.count()))
        }
    }
}

#[test]
fn what_is_left_is_opened_by_perf_and_trace_cmd() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let (part, to) = (folder.path().join("part"), folder.path().join("whole"));
    let whole = folder.path().join("lent.data");
    for (name, tool, args) in [
        (
            "x86/format-variants/plain.perf.data.zst",
            "perf",
            &["script", "-F", "event,time"][..],
        ),
        (
            "x86/format-variants/pipe.perf.data.zst",
            "perf",
            &["script", "-F", "event,time"],
        ),
        (
            "x86/format-variants/compressed.perf.data.zst",
            "perf",
            &["script", "-F", "event,time"],
        ),
        ("x86/format-variants/v6.dat.zst", "trace-cmd", &["report"]),
        ("x86/format-variants/v7.dat.zst", "trace-cmd", &["report"]),
        (
            "x86/format-variants/v7-none.dat.zst",
            "trace-cmd",
            &["report"],
        ),
        ("x86/format-variants/lost.dat.zst", "trace-cmd", &["report"]),
        (
            "x86/format-variants/x86-tsc.dat.zst",
            "trace-cmd",
            &["report"],
        ),
    ] {
        let bytes = read(&case(name).path);
        fs::write(&whole, &bytes).expect("a written file");
        // perf leaves out what the idle task of a machine has, so it is asked for the same events of both.
        let of_whole = |file: &Path| lines(tool, args, file);
        let all = of_whole(&whole);
        for per_mille in [955, 970, 985, 999] {
            fs::write(&part, &bytes[..bytes.len() * per_mille / 1000]).expect("a written file");
            let formats = (tool == "perf" && !name.contains("pipe")).then_some(whole.as_path());
            let account = match salvage(&part, &to, formats) {
                Ok(account) => account,
                Err(error) => {
                    failures.check(false, || format!("{name} {per_mille}: {error}"));
                    continue;
                }
            };
            let kept = number(&account, "events");
            failures.check(kept > 0, || format!("{name} {per_mille}: {account}"));
            let length = fs::metadata(&to).map_or(0, |meta| meta.len());
            failures.equal(name, &number(&account, "output_bytes"), &length);
            let by_cpu: u64 = list(&account["cpus"])
                .iter()
                .map(|cpu| number(cpu, "events"))
                .sum();
            failures.equal(name, &by_cpu, &kept);
            if let (Some(Ok(all)), Some(found)) = (&all, of_whole(&to)) {
                let close = found.as_ref().is_ok_and(|found| {
                    // What it leaves out of the whole file it leaves out of the part.
                    *found <= *all && (*found as u64) <= kept && (*found as u64) + 4 >= kept
                });
                failures.check(close, || format!("{name} {per_mille}: {found:?} of {kept}"));
            }
        }
    }
    failures.finish(90);
}

#[test]
fn a_whole_recording_keeps_its_bytes_and_no_input_is_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.dat");
    let bytes = read(&case("x86/format-variants/v6.dat.zst").path);
    fs::write(&file, &bytes).expect("a written file");
    let said = run(["salvage".as_ref(), file.as_os_str()]);
    assert!(
        said.status == 0 && said.text().contains("nothing is missing"),
        "{}",
        said.stderr
    );
    assert!(read(&folder.path().join("trace.dat.salvaged")) == bytes);
    let over = run([
        "salvage".as_ref(),
        file.as_os_str(),
        "-o".as_ref(),
        file.as_os_str(),
    ]);
    assert!(
        over.status == 2 && over.stderr.contains("is read"),
        "{}",
        over.stderr
    );
    assert!(read(&file) == bytes, "it is as it was");
}

#[test]
fn what_cannot_be_made_whole_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let (part, to) = (folder.path().join("part"), folder.path().join("whole"));
    for (name, per_cent, words) in [
        (
            "x86/format-variants/plain.perf.data.zst",
            50,
            "the formats of its events are gone",
        ),
        (
            "x86/format-variants/plain.perf.data.zst",
            1,
            "before its first event",
        ),
        (
            "x86/format-variants/v7.dat.zst",
            30,
            "before its first event",
        ),
    ] {
        let bytes = read(&case(name).path);
        fs::write(&part, &bytes[..bytes.len() * per_cent / 100]).expect("a written file");
        let said = run([
            "salvage".as_ref(),
            part.as_os_str(),
            "-o".as_ref(),
            to.as_os_str(),
        ]);
        assert!(
            said.status == 1 && said.stderr.contains(words),
            "{name}: {}",
            said.stderr
        );
        assert!(said.stderr.lines().count() == 1 && !to.exists(), "{name}");
    }
    let text = run_text(&folder.path().join("ticket.txt"));
    assert!(text.contains("expected a perf.data or trace.dat"), "{text}");
}

fn run_text(file: &Path) -> String {
    fs::write(file, "Dear all,\n").expect("a written file");
    run(["salvage".as_ref(), file.as_os_str()]).stderr
}
