//! Nothing vanishes: of a recording that is cut off, every complete record before the cut is there; of one that
//! lost events, the number lost is the standard tool's.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fixtures::json::number;
use fixtures::{
    CorpusCase, Failures, FixtureQuestion, case, cases, events_text_with, fold, read, walk,
};
use serde_json::Value;

/// Where to cut, in thousandths of what may be cut.
const CUTS: [usize; 8] = [3, 41, 200, 333, 500, 667, 901, 999];

/// Returns the lines of events by CPU, without the thread's name: an event that renames a thread may itself be behind
/// the cut. `lender` has the formats of a recording that has lost its own.
fn lines_by_cpu(lender: Option<&Path>, path: &Path) -> BTreeMap<String, Vec<String>> {
    let text = events_text_with(path, lender, true);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&text).lines() {
        let line = fold(line);
        let Some((before, rest)) = line.split_once(" [") else {
            continue;
        };
        let Some((cpu, rest)) = rest.split_once("] ") else {
            continue;
        };
        let thread = before.rsplit([' ', '-']).next().unwrap_or_default();
        let lines = lines.entry(cpu.to_owned()).or_default();
        lines.push(format!("{thread} {rest}"));
    }
    lines
}

/// Checks what a cut recording says of itself.
fn says_truncated(failures: &mut Failures, what: &str, path: &Path) {
    let info = FixtureQuestion::new().info_document(path);
    let info = info.unwrap_or_else(|error| panic!("{what}: {error}"));
    let quality = &info["quality"];
    failures.equal(
        &format!("{what}: truncated"),
        &quality["truncated"],
        &Value::Bool(true),
    );
    let warned = quality["warnings"]
        .as_array()
        .is_some_and(|w| !w.is_empty());
    failures.check(warned, || {
        format!("{what}: no warning says what is missing")
    });
}

/// Checks that the lines of a cut recording are lines of the whole one, and how many.
fn complete(
    failures: &mut Failures,
    what: &str,
    cut: &BTreeMap<String, Vec<String>>,
    whole: &BTreeMap<String, Vec<String>>,
    expected: usize,
) {
    let found: usize = cut.values().map(Vec::len).sum();
    failures.equal(&format!("{what}: complete records"), &found, &expected);
    for (cpu, lines) in cut {
        let mut left: BTreeMap<&str, usize> = BTreeMap::new();
        for line in whole.get(cpu).into_iter().flatten() {
            *left.entry(line).or_default() += 1;
        }
        for line in lines {
            let known = left.get_mut(line.as_str()).filter(|count| **count > 0);
            let is_known = known.is_some();
            if let Some(count) = known {
                *count -= 1;
            }
            failures.check(is_known, || {
                format!("{what}: CPU {cpu} has of its own: {line}")
            });
        }
        let sorted = |lines: &[String]| {
            let time = |line: &String| -> Option<u128> {
                let text = line.split(' ').nth(1)?.trim_end_matches(':');
                let (seconds, nanos) = text.split_once('.')?;
                Some(seconds.parse::<u128>().ok()? * 1_000_000_000 + nanos.parse::<u128>().ok()?)
            };
            lines.iter().map(time).collect::<Vec<_>>().is_sorted()
        };
        failures.check(sorted(lines), || {
            format!("{what}: CPU {cpu} is out of order")
        });
    }
}

#[test]
fn every_sample_before_the_cut_is_there() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    for (name, first) in [
        ("x86/format-variants/plain.perf.data.zst", 0),
        ("vmx/tiny-irqchip/perf.data.kvmstat.zst", 0),
        ("x86/format-variants/compressed.perf.data.zst", 0),
        // In pipe mode what describes the events stands in front of them.
        ("x86/format-variants/pipe.perf.data.zst", 30),
        ("arm64/virtio-mmio/boot1/perf.data.tracepoints.zst", 0),
    ] {
        let bytes = read(&case(name).path);
        let whole_path = folder.path().join("whole");
        fs::write(&whole_path, &bytes).expect("a written file");
        let whole = lines_by_cpu(None, &whole_path);
        let total: usize = whole.values().map(Vec::len).sum();
        failures.equal(
            &format!("{name}: samples"),
            &total,
            &walk::samples(&bytes, bytes.len()),
        );
        let pipe = bytes[8] == 16;
        let end = if pipe {
            bytes.len()
        } else {
            let at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
            (at(40) + at(48)) as usize
        };
        let begin = if pipe {
            end * first / 100
        } else {
            0x2000.min(end / 50)
        };
        for cut in CUTS {
            let len = begin + (end - begin) * cut / 1000;
            let what = format!("{name} cut at {len} of {end}");
            let path = folder.path().join("cut");
            fs::write(&path, &bytes[..len]).expect("a written file");
            // The formats stand behind the data in a file, and are lost with its end.
            let lender = (!pipe).then_some(whole_path.as_path());
            let lines = lines_by_cpu(lender, &path);
            complete(
                &mut failures,
                &what,
                &lines,
                &whole,
                walk::samples(&bytes, len),
            );
            says_truncated(&mut failures, &what, &path);
            if !pipe {
                // Without a lender the samples are still there, as bytes.
                let bare: usize = lines_by_cpu(None, &path).values().map(Vec::len).sum();
                failures.equal(
                    &format!("{what}, no formats"),
                    &bare,
                    &walk::samples(&bytes, len),
                );
            }
        }
    }
    failures.finish(10_000);
}

/// A recorder that is killed leaves a file whose header says that it holds no data.
#[test]
fn a_killed_recorder_leaves_all_its_samples() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let name = "x86/format-variants/plain.perf.data.zst";
    let mut bytes = read(&case(name).path);
    let whole_path = folder.path().join("whole");
    fs::write(&whole_path, &bytes).expect("a written file");
    let at =
        |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")) as usize;
    let end = at(40) + at(48);
    let expected = walk::samples(&bytes, end);
    bytes.truncate(end);
    // Size of the data, and the bits of the features behind it.
    bytes[48..56].fill(0);
    bytes[72..104].fill(0);
    let path = folder.path().join("killed");
    fs::write(&path, &bytes).expect("a written file");
    let whole = lines_by_cpu(None, &whole_path);
    let lines = lines_by_cpu(Some(&whole_path), &path);
    complete(&mut failures, name, &lines, &whole, expected);
    says_truncated(&mut failures, name, &path);
    failures.finish(1000);
}

#[test]
fn every_event_before_the_cut_is_there() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    for name in [
        "x86/format-variants/v6.dat.zst",
        "x86/format-variants/v7-none.dat.zst",
    ] {
        let bytes = read(&case(name).path);
        let cpus = walk::cpu_data(&bytes);
        let count = |cpu: &(u32, usize, usize), len| walk::ring_events(&bytes, len, cpu.1, cpu.2);
        let whole_path = folder.path().join("whole");
        fs::write(&whole_path, &bytes).expect("a written file");
        let whole = lines_by_cpu(None, &whole_path);
        for cpu in &cpus {
            let found = whole.get(&format!("{:03}", cpu.0)).map_or(0, Vec::len);
            let what = format!("{name} CPU {}", cpu.0);
            failures.equal(&what, &found, &count(cpu, bytes.len()));
        }
        let begin = cpus.iter().map(|c| c.1).min().expect("a CPU") + 100;
        let end = cpus.iter().map(|c| c.1 + c.2).max().expect("a CPU");
        for cut in CUTS {
            let len = begin + (end - begin) * cut / 1000;
            let what = format!("{name} cut at {len} of {end}");
            let path = folder.path().join("cut");
            fs::write(&path, &bytes[..len]).expect("a written file");
            let lines = lines_by_cpu(None, &path);
            // Of each CPU what comes first, in its order.
            for cpu in &cpus {
                let key = format!("{:03}", cpu.0);
                let ours = lines.get(&key).cloned().unwrap_or_default();
                let all = whole.get(&key).cloned().unwrap_or_default();
                let expected = count(cpu, len);
                let first = &all[..expected.min(all.len())];
                let differs = ours.iter().zip(first).position(|(a, b)| a != b);
                failures.check(ours == first, || {
                    format!(
                        "{what}, CPU {key}: {} events, expected {expected}; the first that differs \
                         is {differs:?}",
                        ours.len()
                    )
                });
            }
            says_truncated(&mut failures, &what, &path);
        }
    }
    failures.finish(80);
}

/// Whole chunks of a compressed trace.dat are there, and what is there is the beginning of each CPU.
#[test]
fn a_compressed_trace_that_is_cut_keeps_its_beginning() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    for name in [
        "x86/format-variants/v7.dat.zst",
        "vmx/tiny-irqchip/trace.dat",
    ] {
        let bytes = read(&case(name).path);
        let whole_path = folder.path().join("whole");
        fs::write(&whole_path, &bytes).expect("a written file");
        let whole = lines_by_cpu(None, &whole_path);
        let total: usize = whole.values().map(Vec::len).sum();
        let mut least = usize::MAX;
        let mut most = 0;
        for cut in [996, 990, 980, 970] {
            let len = bytes.len() * cut / 1000;
            let what = format!("{name} cut at {len} of {}", bytes.len());
            let path = folder.path().join("cut");
            fs::write(&path, &bytes[..len]).expect("a written file");
            let lines = lines_by_cpu(None, &path);
            for (cpu, lines) in &lines {
                let all = &whole[cpu];
                failures.check(all.starts_with(lines), || {
                    format!("{what}: CPU {cpu} is not the beginning of the whole")
                });
            }
            let found = lines.values().map(Vec::len).sum();
            least = least.min(found);
            most = most.max(found);
            says_truncated(&mut failures, &what, &path);
        }
        failures.check(most <= total && most > total / 2 && least < most, || {
            format!("{name}: {least} to {most} of {total} events survive")
        });
    }
    failures.finish(20);
}

/// The cut-off recordings of the corpus, from which the standard tools print nothing.
#[test]
fn the_corpus_own_cut_recordings_are_read() {
    let mut failures = Failures::default();
    for case in cases() {
        let Some(whole) = &case.cut_from else {
            continue;
        };
        let standard = case
            .references
            .keys()
            .any(|name| name.starts_with("script"));
        failures.check(!standard, || format!("{}: perf reads it", case.name));
        let bytes = read(&case.path);
        let lines = lines_by_cpu(Some(whole), &case.path);
        let all = lines_by_cpu(None, whole);
        complete(
            &mut failures,
            &case.name,
            &lines,
            &all,
            walk::samples(&bytes, bytes.len()),
        );
        says_truncated(&mut failures, &case.name, &case.path);
        // Exit statistics of what is left, and of all of it, have the same kinds of exits.
        let ours = FixtureQuestion::new()
            .formats(whole)
            .exits_document(&case.path);
        let ours = ours.expect("exits");
        failures.check(number(&ours, "total_count") > 0, || {
            format!("{}: no exits", case.name)
        });
    }
    failures.finish(1000);
}

/// `perf report --stats` counts what each event lost.
fn lost_by_perf(stats: &str) -> u64 {
    let mut in_event = false;
    let mut lost = 0;
    for line in stats.lines() {
        // The aggregate comes first, then a part for each event; the former counts records, not events.
        in_event |= line.ends_with(" stats:") && !line.starts_with("Aggregated");
        if let Some(count) = line.trim().strip_prefix("LOST_SAMPLES events:")
            && in_event
        {
            lost += count.trim().parse::<u64>().expect("a count");
        }
    }
    lost
}

/// `trace-cmd report --stat` has the kernel's own counters of each CPU's buffer.
fn lost_by_trace_cmd(stat: &str) -> u64 {
    let counters = ["overrun:", "commit overrun:", "dropped events:"];
    let lines = stat.lines().filter_map(|line| {
        let count = counters.iter().find_map(|name| line.strip_prefix(name))?;
        Some(count.trim().parse::<u64>().expect("a count"))
    });
    lines.sum()
}

/// What the report itself says: `CPU:1 [724 EVENTS DROPPED]`, and `[EVENTS DROPPED]` where the kernel did not
/// leave the number.
fn lost_lines(report: &str) -> (u64, u64) {
    let lines = report.lines().filter(|l| l.ends_with("EVENTS DROPPED]"));
    lines.fold((0, 0), |(known, unknown), line| {
        let count = line.split_once('[').expect("a bracket").1.split(' ').next();
        match count.and_then(|count| count.parse::<u64>().ok()) {
            Some(count) => (known + count, unknown),
            None => (known, unknown + 1),
        }
    })
}

fn lost_events(case: &CorpusCase) -> Option<u64> {
    let info = FixtureQuestion::new().info_document(&case.path).ok()?;
    Some(number(&info["quality"], "lost_events"))
}

#[test]
fn the_number_lost_is_the_standard_tools() {
    let mut failures = Failures::default();
    let mut with_loss = 0;
    for case in cases() {
        let Some(ours) = lost_events(&case) else {
            continue;
        };
        if let Some(stats) = case.reference("stats") {
            let expected = lost_by_perf(&stats);
            with_loss += usize::from(expected > 0);
            failures.equal(&format!("{}: lost", case.name), &ours, &expected);
        }
        if let Some(stat) = case.reference("stat") {
            let expected = lost_by_trace_cmd(&stat);
            with_loss += usize::from(expected > 0);
            failures.equal(&format!("{}: lost", case.name), &ours, &expected);
            let report = case.reference("report-N").expect("beside it");
            let (known, unknown) = lost_lines(&report);
            failures.check(known + unknown <= ours, || {
                format!(
                    "{}: {known} and {unknown} gaps are more than {ours}",
                    case.name
                )
            });
            failures.equal(
                &format!("{}: gaps", case.name),
                &(known + unknown > 0),
                &(ours > 0),
            );
        }
    }
    failures.check(with_loss >= 2, || "no recording lost anything".to_owned());
    failures.finish(30);
}

/// An intact recording says so.
#[test]
fn intact_recordings_are_not_called_truncated() {
    let mut failures = Failures::default();
    for case in cases() {
        if case.kind == "text" || case.name.contains("truncated") {
            continue;
        }
        let info = FixtureQuestion::new().info_document(&case.path);
        let info = info.unwrap_or_else(|e| panic!("{}: {e}", case.name));
        failures.equal(
            &case.name,
            &info["quality"]["truncated"],
            &Value::Bool(false),
        );
    }
    failures.finish(40);
}
