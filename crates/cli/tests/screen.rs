//! What `report` prints on a terminal: one screen, which begins with the sentence that counts, whatever the recording;
//! and every number in it is one of its JSON.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fixtures::many_vcpus::many_vcpus_text;
use serde_json::Value;

use crate::common::expected::tables;
use crate::common::{Failures, all_cases, file, json, run, shipped, small, sweeping, write_text};

const WIDTH: usize = 80;
const LINES: usize = 40;
const BRIEF_WIDTH: usize = 72;
const BRIEF_LINES: usize = 10;

/// Returns all recordings and printed tables: in an ordinary run those that are read fast.
fn inputs() -> Vec<PathBuf> {
    let cases = all_cases().into_iter().map(|case| case.path);
    let mut all: BTreeSet<PathBuf> = cases.filter(|path| sweeping() || small(path)).collect();
    let texts = std::fs::read_dir(shipped().join("seed-text")).expect("the corpus has seed-text");
    all.extend(texts.flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.to_string_lossy();
        name.ends_with(".txt")
    }));
    // What the five cases are about.
    all.extend(CASES.iter().map(|(name, ..)| file(name)));
    all.into_iter().collect()
}

/// Returns the screens of a run, which has one for each set of tables.
fn screens(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\nmore: trapline report --full ") {
        let line = rest[at + 1..]
            .find('\n')
            .map_or(rest.len(), |end| at + 1 + end + 1);
        let screen = rest[..line].trim_start_matches('\n');
        // What distinguishes several stands above them.
        let titled = screen
            .starts_with("=== ")
            .then(|| screen.split_once("\n\n"));
        out.push(titled.flatten().map_or(screen, |(_, screen)| screen));
        rest = &rest[line..];
    }
    assert!(
        rest.trim().is_empty(),
        "something behind the last line: {rest}"
    );
    out
}

/// Returns the columns that a line takes: of the names in the corpus every sign takes one.
fn columns(line: &str) -> usize {
    line.chars().count()
}

fn fits(failures: &mut Failures, what: &str, screen: &str, lines: usize, width: usize) {
    let count = screen.lines().count();
    failures.check(count <= lines, || {
        format!("{what}: {count} lines\n{screen}")
    });
    for line in screen.lines() {
        // A command is whole, however long the name is.
        let command = line.starts_with("more: ");
        failures.check(command || columns(line) <= width, || {
            format!("{what}: too wide: {line}")
        });
        failures.check(!line.contains('\x1b'), || {
            format!("{what}: colour in a pipe: {line}")
        });
    }
}

#[test]
fn every_recording_fits_one_screen_whose_numbers_are_its_documents() {
    let mut failures = Failures::default();
    for path in inputs() {
        let what = path.display().to_string();
        let Ok(document) = json(&["report"], &path) else {
            continue;
        };
        let text = run(["report".as_ref(), path.as_os_str()]).text();
        // Above the screens of a text's parts stands which there are.
        let text = match document["tickets"].is_array() {
            true => text
                .get(text.find("=== ").unwrap_or(0)..)
                .unwrap_or_default()
                .to_owned(),
            false => text,
        };
        let brief = run(["report".as_ref(), "--brief".as_ref(), path.as_os_str()]).text();
        let full = run(["report".as_ref(), "--full".as_ref(), path.as_os_str()]).text();
        let recordings = document["recordings"].as_array().expect("recordings");
        let (one, short) = (screens(&text), screens(&brief));
        failures.equal(&format!("{what}: screens"), &one.len(), &recordings.len());
        failures.equal(&format!("{what}: briefs"), &short.len(), &recordings.len());
        let causes = causes(&path);
        for ((recording, screen), short) in recordings.iter().zip(one).zip(short) {
            fits(&mut failures, &what, screen, LINES, WIDTH);
            fits(&mut failures, &what, short, BRIEF_LINES, BRIEF_WIDTH);
            begins(&mut failures, &what, recording, screen);
            begins(&mut failures, &what, recording, short);
            let known = Known::of(recording, &document["quality"], causes);
            for word in words(screen).into_iter().chain(words(short)) {
                failures.check(known.has(&word), || {
                    format!("{what}: {word} is not in the JSON\n{screen}\n{short}")
                });
            }
        }
        for finding in recordings.iter().flat_map(|one| list(&one["findings"])) {
            let title = finding["title"].as_str().unwrap_or_default();
            failures.check(folded(&full).contains(&folded(title)), || {
                format!("{what}: --full has no: {title}")
            });
        }
    }
    failures.finish(3000);
}

/// Returns how many causes could not be checked, and how many there are.
fn causes(path: &Path) -> (usize, usize) {
    let Ok(diagnosis) = json(&["diagnose"], path) else {
        return (0, 0);
    };
    let count = |name: &str| list(&diagnosis[name]).len();
    let unknown = count("unknown");
    (unknown, unknown + count("not_found") + count("findings"))
}

/// A screen begins with a sentence, and where there is a grave finding with that, by its name.
fn begins(failures: &mut Failures, what: &str, recording: &Value, screen: &str) {
    let head: Vec<&str> = screen.lines().take_while(|line| !line.is_empty()).collect();
    let head = head.join(" ");
    let sentence = head.starts_with(|c: char| c.is_alphanumeric()) && head.contains('.');
    failures.check(sentence, || format!("{what}: no sentence: {head}"));
    let Some(first) = list(&recording["findings"]).first() else {
        return failures.check(head.contains("found"), || {
            format!("{what}: nothing said of there being no finding: {head}")
        });
    };
    let grave = first["severity"] != "low" || first["cost_ns"].is_u64();
    let begin = folded(first["title"].as_str().unwrap_or_default());
    let begin: Vec<&str> = begin.split(' ').take(2).collect();
    let said = !grave
        || head.contains(&begin.join(" "))
        || head.contains("was printing on its serial console");
    failures.check(said, || {
        format!("{what}: not the first finding: {head}\n{first}")
    });
    let sure = first["confidence"].as_f64().unwrap_or(1.0) >= 0.9;
    let doubted = head.starts_with("Likely: ") || head.starts_with("Possibly: ");
    failures.check(!grave || sure != doubted, || {
        format!("{what}: how sure is it? {head}")
    });
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a text with one space between words.
fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the words of a text that have a digit; what was cut off is none.
fn words(text: &str) -> Vec<String> {
    let text = text.split_whitespace();
    let words = text.flat_map(|word| word.split([',', ';', '(', ')', '\'', '"', '→', '=']));
    words
        .filter(|word| !word.ends_with("...") && word.contains(|c: char| c.is_ascii_digit()))
        .map(|word| word.trim_end_matches([':', '.']).to_owned())
        .collect()
}

/// The numbers and words of a document.
struct Known {
    words: BTreeSet<String>,
    numbers: Vec<f64>,
    /// The recording's name, which may be broken into lines.
    input: String,
}

impl Known {
    fn of(recording: &Value, quality: &Value, causes: (usize, usize)) -> Known {
        let mut known = Known {
            words: BTreeSet::new(),
            numbers: vec![causes.0 as f64, causes.1 as f64],
            input: String::new(),
        };
        known.take(recording);
        known.take(quality);
        known.derive(recording, quality);
        known.numbers.sort_by(f64::total_cmp);
        known
    }

    fn take(&mut self, value: &Value) {
        match value {
            Value::Number(number) => self.numbers.extend(number.as_f64()),
            Value::String(text) => self.words.extend(words(text)),
            Value::Array(list) => list.iter().for_each(|one| self.take(one)),
            Value::Object(map) => map.values().for_each(|one| self.take(one)),
            _ => {}
        }
    }

    /// Adds what follows from the document: sums, shares, and how many there are.
    fn derive(&mut self, recording: &Value, quality: &Value) {
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let numbers = &mut self.numbers;
        let mut put = |value: f64| numbers.push(value);
        let counts = list(&recording["events"]).iter();
        put(counts.map(|event| number(&event["count"])).sum());
        let kinds = list(&recording["events"]).iter();
        let kinds = kinds.filter(|kind| kind["count"] != 0).count();
        for exits in list(&recording["exits"]) {
            put(number(&exits["total_ns"]) - number(&exits["handling_ns"]));
        }
        for path in list(&recording["paths"]) {
            for stage in list(&path["stages"]) {
                put(number(&stage["total_ns"]) / number(&path["total"]["total_ns"]));
            }
        }
        // States: of each vCPU, of each VM, of all.
        let vcpus = list(&recording["vcpus"]["rows"]);
        // A VM without a name is called after a thread.
        let threads = vcpus.iter().map(|row| format!("t{}", row["tid"]));
        self.words.extend(threads);
        let mut vms: Vec<&Value> = Vec::new();
        for row in vcpus {
            if !vms.contains(&&row["vm_pid"]) {
                vms.push(&row["vm_pid"]);
            }
        }
        let one = |row: &Value| vec![row.clone()];
        let mut groups: Vec<Vec<Value>> = vcpus.iter().map(one).collect();
        for vm in &vms {
            let of = |row: &&Value| row["vm_pid"] == **vm;
            groups.push(vcpus.iter().filter(of).cloned().collect());
        }
        groups.push(vcpus.to_vec());
        for group in &groups {
            let sum = |name: &str| group.iter().map(|row| number(&row[name])).sum::<f64>();
            put(sum("observed_ns"));
            put(sum("exits"));
            put(group.len() as f64);
            for state in [
                "guest", "kernel", "user", "poll", "halted", "runnable", "unknown",
            ] {
                put(sum(&format!("{state}_ns")) / sum("observed_ns").max(1.0));
            }
        }
        let tasks = list(&recording["sched"]["rows"]);
        let sum = |name: &str| tasks.iter().map(|row| number(&row[name])).sum::<f64>();
        let delays = sum("switches");
        put(delays);
        put((sum("delay_total_ns") / delays.max(1.0)).floor());
        for task in tasks {
            let (comm, pid) = (task["comm"].as_str().unwrap_or_default(), &task["pid"]);
            let called = [
                format!("{comm}:{pid}"),
                format!("{comm}:({})", task["threads"]),
            ];
            self.words
                .extend(called.iter().flat_map(|name| words(name)));
            put(number(&task["delay_total_ns"]) / sum("delay_total_ns").max(1.0));
        }
        // How many there are, and how many more than are listed.
        for all in [
            vcpus.len(),
            vms.len(),
            list(&recording["vms"]).len(),
            list(&recording["findings"]).len(),
            list(&recording["counts"]).len(),
            list(&quality["warnings"]).len(),
            tasks.len(),
            kinds,
        ] {
            put(all as f64);
            for shown in [1, 3, 4, 5, 6, 10] {
                put(all.saturating_sub(shown) as f64);
            }
        }
        // What stands beside percentiles, and what is said of a clock that counts ticks.
        self.words.extend(["p99", "p50", "1ms"].map(str::to_owned));
        self.input = recording["input"].as_str().unwrap_or_default().to_owned();
    }

    /// Returns whether a word is one of the document's, or a number of it as printed.
    fn has(&self, word: &str) -> bool {
        let file = self.input.rsplit('/').next();
        // A name that is longer than a line goes on in the next one.
        let rest = self.input.ends_with(word) && !word.ends_with(|c: char| c.is_ascii_digit());
        let of_input =
            word.contains('/') && self.input.contains(word) || file == Some(word) || rest;
        if of_input || self.words.contains(word) {
            return true;
        }
        let end = word.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (digits, unit) = word.split_at(end.unwrap_or(word.len()));
        let scales: &[f64] = match unit {
            "" => &[1.0, 0.01],
            "ns" => &[1.0],
            "us" => &[1e3],
            "ms" | "M" => &[1e6],
            "s" | "G" => &[1e9],
            _ => return false,
        };
        let Ok(value) = digits.parse::<f64>() else {
            return false;
        };
        let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
        let precision = 0.500_001 * 10f64.powi(-i32::try_from(decimals).unwrap_or(0));
        scales.iter().any(|scale| {
            let (low, high) = ((value - precision) * scale, (value + precision) * scale);
            let at = self.numbers.partition_point(|number| *number < low);
            self.numbers.get(at).is_some_and(|number| *number <= high)
        })
    }
}

/// The five cases: a recording of each, its finding, and what the sentence names.
const CASES: [(&str, &str, &[&str]); 6] = [
    (
        "x86/console-sick/perf.data.zst",
        "console-on-irq-vcpu",
        &[
            "16 of 295 device interrupts",
            "vCPU 1",
            "84.59ms",
            "272.4us",
            "serial console",
        ],
    ),
    (
        "x86/clocksource-acpi_pm/loop/perf.data.guest.zst",
        "timer-port-exits",
        &["reads time from I/O ports", "12635 exits", "608.4ms"],
    ),
    (
        "seed-text/case2-windows-before.perf-kvm-stat-ioport.txt",
        "timer-port-exits",
        &["reads time from I/O ports", "254370 exits"],
    ),
    (
        "x86/ipi-default/perf.kvm.pingpong.data.zst",
        "halted-target-ipi",
        &["1462 of 1481 IPIs", "halt", "51.46us"],
    ),
    (
        "arm64/virtio-mmio/boot1/trace.dat.zst",
        "userspace-virtio-backend",
        &[
            "thread of the VMM",
            "qemu-system-aar",
            "122 loops",
            "741.2us",
        ],
    ),
    (
        "seed-text/case5-slow-host.perf-sched-latency.txt",
        "cpufreq-governor-kworker",
        &["kworkers switched 327563 times", "cpufreq governor"],
    ),
];

#[test]
fn the_five_cases_are_reported_in_the_first_sentence() {
    let mut failures = Failures::default();
    for (name, id, parts) in CASES {
        for option in [None, Some("--brief")] {
            let path = file(name);
            let args = ["report"].into_iter().chain(option);
            let mut args: Vec<&std::ffi::OsStr> = args.map(AsRef::as_ref).collect();
            args.push(path.as_os_str());
            let text = run(args).text();
            let first: Vec<&str> = text.lines().take(4).collect();
            let first = folded(&first.join(" "));
            for part in parts {
                failures.check(first.contains(part), || {
                    format!("{name}: no {part}: {first}")
                });
            }
            let named = match option {
                None => text.contains(&format!(", {id}: ")),
                Some(_) => first.contains(&format!("[{id}, ")),
            };
            failures.check(named, || format!("{name}: no {id}: {text}"));
        }
    }
    failures.finish(30);
}

/// What a corpus says has to be found is what the screen begins with.
#[test]
fn the_first_finding_is_an_expected_one() {
    let mut failures = Failures::default();
    for (_, table) in tables() {
        for expected in table {
            let quick = |path: &PathBuf| sweeping() || small(path);
            let one = expected.files.len() == 1 && expected.files.iter().all(quick);
            if !one || expected.must.is_empty() {
                continue;
            }
            let text = run(["report".as_ref(), expected.files[0].as_os_str()]).text();
            let line = text.lines().find(|line| {
                ["high, ", "medium, ", "low, "]
                    .iter()
                    .any(|begin| line.starts_with(begin))
            });
            let id = line.and_then(|line| line.split([' ', ':']).nth(1));
            failures.check(id.is_some_and(|id| expected.lists(id)), || {
                format!("{}: {id:?} first\n{text}", expected.name)
            });
        }
    }
    failures.finish(8);
}

#[test]
fn colour_comes_where_it_is_asked_for() {
    let path = file("x86/clocksource-acpi_pm/loop/perf.data.guest.zst");
    let printed = |args: &[&str], environment: &[(&str, &str)]| {
        let mut program = crate::common::trapline();
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            program.env_remove(name);
        }
        program
            .args(args)
            .arg(&path)
            .envs(environment.iter().copied());
        let output = program.output().expect("the program starts");
        String::from_utf8(output.stdout).expect("text")
    };
    let plain = printed(&["report"], &[]);
    assert!(!plain.contains('\x1b'));
    for (args, environment, coloured) in [
        (&["report", "--color", "always"][..], &[][..], true),
        (&["--color=always", "report"], &[("NO_COLOR", "1")], true),
        (&["report"], &[("CLICOLOR_FORCE", "1")], true),
        (
            &["report"],
            &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")],
            false,
        ),
        (
            &["report", "--color", "never"],
            &[("CLICOLOR_FORCE", "1")],
            false,
        ),
        (&["report", "--color", "auto"], &[], false),
    ] {
        let text = printed(args, environment);
        assert_eq!(text.contains('\x1b'), coloured, "{args:?} {environment:?}");
        assert_eq!(without_colour(&text), plain, "{args:?}");
    }
    // Neither a text for a ticket nor one for a program.
    for args in [
        &["report", "--brief", "--color", "always"][..],
        &["report", "--format", "json", "--color", "always"],
        &["report", "--format", "csv", "--color", "always"],
    ] {
        assert!(!printed(args, &[]).contains('\x1b'), "{args:?}");
    }
    let diagnosis = printed(&["diagnose", "--color", "always"], &[]);
    assert!(diagnosis.contains("timer-port-exits, \x1b[1m\x1b[31mhigh\x1b[0m, "));
    assert_eq!(without_colour(&diagnosis), printed(&["diagnose"], &[]));
}

/// Takes what sets colours out of a text.
fn without_colour(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once('m').map_or("", |(_, rest)| rest));
    rest.fold(first, |text, part| text + part)
}

#[test]
fn all_of_it_is_one_option_away_and_options_that_differ_are_refused() {
    let path = file("x86/clocksource-acpi_pm/loop/perf.data.guest.zst");
    let path = path.to_str().expect("a plain name");
    let full = run(["report", "--full", path]).text();
    for part in [
        "remedy 1: ",
        "could not check:",
        "looked for and not found; at least this would have been:",
        "where that time went",
    ] {
        assert!(full.contains(part), "{part}");
    }
    for args in [
        ["report", "--full", "--brief", path].as_slice(),
        &["report", "--full", "-o", "x.html", path],
        &["report", "--brief", "-o", "x.html", path],
    ] {
        assert_eq!(run(args).status, 2, "{args:?}");
    }
}

/// A hundred and twenty vCPUs of forty VMs take no more than a screen either.
#[test]
fn many_vcpus_fit_one_screen() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write_text(folder.path(), "many.txt", &many_vcpus_text(40));
    let screen = run(["report".as_ref(), path.as_os_str()]).text();
    assert!(screen.contains("  others "), "{screen}");
    let mut failures = Failures::default();
    fits(&mut failures, "many", &screen, LINES, WIDTH);
    failures.finish(1);
}

/// What README.md and docs/screen.md show is what is printed.
#[test]
fn the_documentation_shows_what_is_printed() {
    let root = shipped().join("..");
    for (file, option) in [("README.md", None), ("docs/screen.md", Some("--brief"))] {
        let mut program = crate::common::trapline();
        let output = program
            .current_dir(&root)
            .arg("report")
            .args(option)
            .arg("corpus/x86/clocksource-acpi_pm/loop/perf.data.guest.zst")
            .output()
            .expect("the program starts");
        let text = std::fs::read_to_string(root.join(file)).expect("documentation");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains(&format!("\n{printed}```\n")),
            "{file} does not show\n{printed}"
        );
    }
}
