//! `trapline export --as ctf`: babeltrace2 reads the trace back, and its events are those of `events`: their number,
//! times, CPUs, threads, and the numbers in their fields.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{Failures, file, json, note, run, tools_are_required, write_text};

/// Recordings of both containers and of text, with lost events and samples among them.
const RECORDINGS: [&str; 5] = [
    "vmx/tiny-irqchip/trace.dat",
    "x86/format-variants/lost.dat.zst",
    "x86/format-variants/plain.perf.data.zst",
    "arm64/virtio-mmio/boot1/perf.data.tracepoints.zst",
    "seed-text/case1-irqfd.trace-cmd.txt",
];

/// An event, however it was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ReadEvent {
    time: u64,
    /// -1 where it is not known, as are threads.
    cpu: i64,
    tid: i64,
    /// Without its subsystem.
    name: String,
}

/// The numbers of an event's fields, by name; a name may have several.
type FieldNumbers = BTreeMap<String, Vec<i128>>;

/// Returns a number as texts print them.
fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Reads a line of babeltrace2's: `[CYCLES] (+DELTA) NAME: { cpu_id = 1 }, { pid = 7, ... }, { FIELD = VALUE, ... }`.
fn of_babeltrace(line: &str) -> (ReadEvent, FieldNumbers) {
    let (time, rest) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] ("))
        .expect("a time");
    let (_, rest) = rest.split_once(") ").expect("a difference");
    let (name, rest) = rest.split_once(": {").expect("a name");
    let (contexts, fields) = rest.split_once("procname = ").expect("a thread");
    let of = |name: &str, text: &str| {
        let (_, value) = text.split_once(&format!("{name} = "))?;
        number(value.split([',', ' ', '}']).next()?)
    };
    let (_, fields) = fields.split_once("}, {").unwrap_or((fields, ""));
    let mut numbers = FieldNumbers::new();
    for field in fields.split(", ") {
        let Some((name, value)) = field.split_once(" = ") else {
            continue;
        };
        let value = value.trim_end_matches([' ', '}']);
        if let Some(value) = number(value) {
            numbers
                .entry(name.trim().to_owned())
                .or_default()
                .push(value);
        }
    }
    let short = |number: Option<i128>| {
        number
            .and_then(|number| i64::try_from(number).ok())
            .unwrap_or(-1)
    };
    let event = ReadEvent {
        time: time.parse().expect("a time"),
        cpu: short(of("cpu_id", contexts)),
        tid: short(of(" tid", contexts)),
        name: name.rsplit(':').next().unwrap_or(name).to_owned(),
    };
    (event, numbers)
}

/// Reads an event of `events`. Its text has numbers as `name=number`, and instruction pointers behind a word.
fn of_events(item: &Value) -> (ReadEvent, FieldNumbers) {
    let text = item["text"].as_str().unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut numbers = FieldNumbers::new();
    for (at, word) in words.iter().enumerate() {
        let named = match word.split_once('=') {
            Some((name, value)) => Some((name, value)),
            None if *word == "rip" => words.get(at + 1).map(|value| ("rip", *value)),
            None => None,
        };
        if let Some((name, value)) =
            named.and_then(|(name, value)| Some((name, number(value.trim_matches(','))?)))
        {
            numbers.entry(name.to_owned()).or_default().push(value);
        }
    }
    let known = |name: &str| item[name].as_i64().unwrap_or(-1);
    let name = item["event"].as_str().expect("a name");
    let event = ReadEvent {
        time: item["time_ns"].as_u64().expect("a time"),
        cpu: known("cpu"),
        tid: known("tid"),
        name: name.rsplit(':').next().unwrap_or(name).to_owned(),
    };
    (event, numbers)
}

/// Adds up events that are alike: how many they are, and their numbers in order.
fn grouped(
    events: impl Iterator<Item = (ReadEvent, FieldNumbers)>,
) -> BTreeMap<ReadEvent, (u64, FieldNumbers)> {
    let mut groups: BTreeMap<ReadEvent, (u64, FieldNumbers)> = BTreeMap::new();
    for (event, numbers) in events {
        let (count, all) = groups.entry(event).or_default();
        *count += 1;
        for (name, mut values) in numbers {
            let known = all.entry(name).or_default();
            known.append(&mut values);
            known.sort_unstable();
        }
    }
    groups
}

/// Returns what babeltrace2 prints of a trace; nothing where there is none. `said` is what it writes beside that.
fn babeltrace(folder: &Path) -> Option<(String, String)> {
    let output = Command::new("babeltrace2")
        .args(["--clock-cycles", "--color=never"])
        .arg(folder)
        .output();
    let Ok(output) = output else {
        assert!(!tools_are_required(), "there is no babeltrace2");
        note("SKIPPED: babeltrace2 is not here");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), said))
}

#[test]
fn babeltrace_reads_the_events_that_there_are() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let mut compared = 0;
    for (at, recording) in RECORDINGS.iter().enumerate() {
        let path = file(recording);
        let trace = folder.path().join(format!("trace-{at}"));
        let [input, output] = [&path, &trace].map(|path| path.to_str().expect("a plain name"));
        let written = run(["export", "--as", "ctf", input, "-o", output]);
        assert_eq!(written.status, 0, "{recording}: {}", written.stderr);
        let Some((text, said)) = babeltrace(&trace) else {
            return;
        };
        let document = json(&["events"], &path).expect("a document");
        let items = document["events"].as_array().expect("events");
        failures.equal(
            &format!("{recording}: number"),
            &text.lines().count(),
            &items.len(),
        );
        let theirs = grouped(text.lines().map(of_babeltrace));
        let ours = grouped(items.iter().map(of_events));
        let keys = |groups: &BTreeMap<ReadEvent, (u64, FieldNumbers)>| {
            groups
                .iter()
                .map(|(event, (count, _))| (event.clone(), *count))
                .collect::<Vec<_>>()
        };
        failures.check(keys(&ours) == keys(&theirs), || {
            let missing = ours.keys().find(|event| !theirs.contains_key(event));
            format!("{recording}: events differ, first {missing:?}")
        });
        for (event, (_, numbers)) in &ours {
            let fields = theirs.get(event).map(|(_, fields)| fields);
            for (name, values) in numbers {
                let field = match (name.as_str(), event.name.as_str()) {
                    ("rip", "kvm_exit") => "guest_rip",
                    _ => name,
                };
                // What a print format makes of several fields has another name.
                let Some(found) = fields.and_then(|fields| fields.get(field)) else {
                    continue;
                };
                failures.check(found == values, || {
                    format!("{recording}: {event:?} {name} {found:?}, not {values:?}")
                });
                compared += 1;
            }
        }
        let lost = document["quality"]["lost_events"].as_u64();
        failures.check(lost == Some(0) || said.contains("discarded"), || {
            format!("{recording}: {lost:?} events were lost, and babeltrace2 says: {said}")
        });
    }
    failures.check(compared > 1_000, || {
        format!("only {compared} numbers were compared")
    });
    failures.finish(compared);
}

#[test]
fn a_trace_is_a_folder_that_is_there_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let text = "sh 10/11 [002] 1.000000: probe:one: a=1\nsh 10/11 [003] 1.000001: probe:one: a=2\n";
    let text = write_text(folder.path(), "a.txt", text)
        .display()
        .to_string();
    let export = |output: &str, more: &[&str]| {
        run([&["export", "--as", "ctf", &text, "-o", output], more].concat())
    };
    let done = export(&at("new"), &[]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let mut names: Vec<String> = fs::read_dir(at("new"))
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    assert_eq!(names, ["cpu_2", "cpu_3", "metadata"]);
    let metadata = fs::read_to_string(at("new/metadata")).expect("text");
    assert!(metadata.starts_with("/* CTF 1.8 */"), "{metadata}");
    assert!(metadata.contains("domain = \"kernel\""), "{metadata}");
    // What is there already stays, but for an empty folder.
    let again = export(&at("new"), &[]);
    assert_eq!(again.status, 1, "{}", again.stderr);
    assert!(again.stderr.contains("not empty"), "{}", again.stderr);
    assert_eq!(export(&at("a.txt"), &[]).status, 1);
    fs::create_dir(at("empty")).expect("a folder");
    assert_eq!(export(&at("empty"), &[]).status, 0);
    // Filters that leave nothing leave no folder.
    let nothing = export(&at("nothing"), &["--cpu", "9"]);
    assert_eq!(nothing.status, 1, "{}", nothing.stderr);
    assert!(
        nothing.stderr.contains("no event passes the filters"),
        "{}",
        nothing.stderr
    );
    assert!(!Path::new(&at("nothing")).exists());
    let hidden = fs::read_dir(folder.path()).expect("a folder").flatten();
    let hidden: Vec<_> = hidden
        .filter(|entry| entry.file_name().to_string_lossy().starts_with('.'))
        .collect();
    assert!(hidden.is_empty(), "{hidden:?}");
    // Standard output is no folder.
    let refused = run(["export", "--as", "ctf", &text]);
    assert_eq!(refused.status, 2, "{}", refused.stderr);
}
