//! What the program prints of the shipped corpus, held against what is kept in `corpus/golden`.
//!
//! `TRAPLINE_WRITE_GOLDEN=1 cargo test -p trapline golden::` writes those files again, and `git diff corpus/golden`
//! then shows what a change did to the output. Another value than 1 writes only the outputs that have it in their file
//! or command.
//! `corpus/golden/README.md` says which file holds what.
//!
//! `cargo test` runs the outputs that are kept in full of a part of the recordings and the report of each; with
//! `TRAPLINE_SWEEP=all`, as `.ci/run` sets it, every output of every recording is run.

mod asked;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{shipped, sweeping, trapline};

use asked::{COMMANDS, IN_FULL, QUESTIONS, others};

/// How many lines of events are kept.
const EVENTS_KEPT: usize = 20;

/// How an output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// In a file of its own.
    InFull,
    /// The first lines in a file of its own, and a digest of all.
    Beginning,
    /// By a digest alone.
    Digest,
}

/// A run of the program.
#[derive(Debug, Clone)]
struct Job {
    /// The file below `corpus/golden`.
    file: String,
    args: Vec<String>,
    kept: Kept,
    /// Whether `cargo test` runs it without `TRAPLINE_SWEEP=all`.
    always: bool,
}

impl Job {
    fn new(file: String, args: &str, kept: Kept, always: bool) -> Job {
        let args = args.split_ascii_whitespace().map(str::to_owned).collect();
        Job {
            file,
            args,
            kept,
            always,
        }
    }

    fn command(&self) -> String {
        format!("trapline {}", self.args.join(" "))
    }
}

/// What was printed, as it is kept.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Outputs {
    /// Files below `corpus/golden` and their text.
    files: BTreeMap<String, String>,
    /// Digests by command.
    digests: BTreeMap<String, String>,
    /// What was refused, by command.
    refused: BTreeMap<String, String>,
}

fn recordings() -> BTreeSet<String> {
    let root = shipped();
    let mut all: BTreeSet<String> = crate::common::corpus(&root, None)
        .into_iter()
        .map(|case| case.name)
        .collect();
    let seeds = fs::read_dir(root.join("seed-text")).expect("the corpus has seed-text");
    for seed in seeds {
        let name = seed.expect("a readable folder").file_name();
        let name = name.to_str().expect("a plain name");
        if name.ends_with(".txt") {
            all.insert(format!("seed-text/{name}"));
        }
    }
    all
}

fn jobs() -> Vec<Job> {
    let mut jobs = Vec::new();
    let recordings = recordings();
    for name in &recordings {
        let full = IN_FULL.contains(&name.as_str());
        for (question, args) in QUESTIONS {
            for (format, extension) in [("table", "txt"), ("json", "json"), ("csv", "csv")] {
                let kept = match full {
                    true => Kept::InFull,
                    false => Kept::Digest,
                };
                // JSON has both tables of sched.
                if question == "sched-by-cpu" && format == "json" {
                    continue;
                }
                let always = full || (question == "report" && format == "table");
                let args = match format {
                    "table" => format!("{args} {name}"),
                    _ => format!("{args} --format {format} {name}"),
                };
                let file = format!("{name}/{question}.{extension}");
                jobs.push(Job::new(file, &args, kept, always));
            }
        }
        let file = format!("{name}/events.txt");
        let args = format!("events {name}");
        let kept = match full {
            true => Kept::Beginning,
            false => Kept::Digest,
        };
        jobs.push(Job::new(file, &args, kept, full));
        for convention in ["perf", "trace-cmd"] {
            let args = format!("events --ns --as {convention} {name}");
            jobs.push(Job::new(String::new(), &args, Kept::Digest, full));
        }
        let healthy = name.replace("-sick/", "-healthy/");
        if healthy != *name && recordings.contains(&healthy) {
            let folder = name.split("-sick/").next().unwrap_or_default();
            let always = folder.ends_with("preempted");
            for (format, extension) in [("table", "txt"), ("json", "json"), ("csv", "csv")] {
                let file = format!("{folder}-compare.{extension}");
                let args = format!("compare --format {format} {healthy} {name}");
                jobs.push(Job::new(file, &args, Kept::InFull, always));
            }
        }
    }
    for (file, args) in others() {
        let always = !args.contains("console-sick") && !args.contains("hpet");
        jobs.push(Job::new(
            format!("others/{file}.txt"),
            args,
            Kept::InFull,
            always,
        ));
    }
    jobs.push(Job::new(
        "help/trapline.txt".into(),
        "--help",
        Kept::InFull,
        true,
    ));
    for command in COMMANDS {
        let file = format!("help/{command}.txt");
        jobs.push(Job::new(
            file,
            &format!("{command} --help"),
            Kept::InFull,
            true,
        ));
    }
    jobs
}

/// The digest FNV-1a, 64 bits: it shows that something changed, no more is needed.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Takes the number of the version out of a document.
fn without_version(text: &str) -> String {
    let version = concat!("\"trapline\": \"", env!("CARGO_PKG_VERSION"), "\"");
    text.replacen(version, "\"trapline\": \"VERSION\"", 1)
}

fn run(job: &Job, into: &Mutex<Outputs>) {
    let mut program = trapline();
    let output = program
        .current_dir(shipped())
        .env("COLUMNS", "80")
        .args(&job.args);
    let output = output.output().expect("the program starts");
    let command = job.command();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.stdout.is_empty() {
        let status = output.status.code().unwrap_or(-1);
        // Messages about many recordings are the same but for the recording.
        let recording = job.args.last().map_or("", String::as_str);
        let lines: Vec<&str> = errors.lines().map(str::trim).collect();
        let message = lines.join(" ").replace(recording, "RECORDING");
        let refused = format!("exit status {status}: {message}");
        into.lock()
            .expect("no panic")
            .refused
            .insert(command, refused);
        return;
    }
    let text = without_version(&String::from_utf8_lossy(&output.stdout));
    let mut kept = match job.kept {
        Kept::InFull => Some(text.clone()),
        Kept::Beginning => Some(
            text.split_inclusive('\n')
                .take(EVENTS_KEPT)
                .collect::<String>(),
        ),
        Kept::Digest => None,
    };
    let status = output.status.code().unwrap_or(-1);
    if let Some(kept) = &mut kept {
        if status != 0 {
            kept.push_str(&format!("--- exit status {status}\n"));
        }
        if !errors.is_empty() {
            kept.push_str(&format!("--- standard error\n{errors}"));
        }
    }
    let mut into = into.lock().expect("no panic");
    if job.kept != Kept::InFull {
        let all = format!("{text}{errors}{status}");
        let line = format!("{:016x} {:>8}", digest(all.as_bytes()), text.len());
        into.digests.insert(command, line);
    }
    if let Some(kept) = kept {
        let twice = into.files.insert(job.file.clone(), kept);
        assert!(twice.is_none(), "two outputs in {}", job.file);
    }
}

fn run_all(jobs: &[Job]) -> Outputs {
    let outputs = Mutex::new(Outputs::default());
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(job, &outputs);
                }
            });
        }
    });
    outputs.into_inner().expect("no panic")
}

/// Digests as they are kept: a line for each command.
fn digest_list(digests: &BTreeMap<String, String>) -> String {
    let lines = digests
        .iter()
        .map(|(command, digest)| format!("{digest}  {command}\n"));
    lines.collect()
}

fn parse_digests(text: &str) -> BTreeMap<String, String> {
    let lines = text
        .lines()
        .filter_map(|line| Some(line.split_at(line.find("  trapline ")?)));
    lines
        .map(|(digest, command)| (command.trim_start().to_owned(), digest.to_owned()))
        .collect()
}

/// What was refused as it is kept: each message once, with the commands that it answers below it.
fn refusal_list(refused: &BTreeMap<String, String>) -> String {
    let mut messages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (command, message) in refused {
        messages.entry(message).or_default().push(command);
    }
    let mut text = String::new();
    for (message, commands) in messages {
        text.push_str(&format!("{message}\n"));
        for command in commands {
            text.push_str(&format!("    {command}\n"));
        }
    }
    text
}

fn parse_refusals(text: &str) -> BTreeMap<String, String> {
    let mut refused = BTreeMap::new();
    let mut message = "";
    for line in text.lines() {
        match line.strip_prefix("    ") {
            Some(command) => drop(refused.insert(command.to_owned(), message.to_owned())),
            None => message = line,
        }
    }
    refused
}

/// Writes outputs; where they are not all, those of other commands stay.
fn write(folder: &Path, jobs: &[Job], all: bool, outputs: &Outputs) {
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let mut digests = parse_digests(&read("digests.txt"));
    let mut refused = parse_refusals(&read("refused.txt"));
    if all {
        (digests, refused) = (BTreeMap::new(), BTreeMap::new());
        for old in files_below(folder) {
            if old != "README.md" {
                fs::remove_file(folder.join(old)).expect("a file that can be removed");
            }
        }
    }
    for command in jobs.iter().map(Job::command) {
        digests.remove(&command);
        refused.remove(&command);
    }
    digests.extend(outputs.digests.clone());
    refused.extend(outputs.refused.clone());
    let lists = [
        ("digests.txt".to_owned(), digest_list(&digests)),
        ("refused.txt".to_owned(), refusal_list(&refused)),
    ];
    for (file, text) in outputs.files.clone().into_iter().chain(lists) {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder that can be made");
        fs::write(path, text).expect("a file that can be written");
    }
}

fn files_below(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it is below");
                found.insert(name.to_string_lossy().into_owned());
            }
        }
    }
    found
}

/// Returns the first lines in which two texts differ.
fn difference(kept: &str, ours: &str) -> String {
    let mut sides = (kept.lines(), ours.lines());
    let mut at = 1;
    loop {
        match (sides.0.next(), sides.1.next()) {
            (None, None) => return "only the end of the last line differs".to_owned(),
            (a, b) if a == b => at += 1,
            (a, b) => {
                let shown = |line: Option<&str>| line.unwrap_or("(the end)").to_owned();
                return format!(
                    "line {at}\n    kept    {}\n    printed {}",
                    shown(a),
                    shown(b)
                );
            }
        }
    }
}

fn differences(folder: &Path, jobs: &[Job], all: bool, outputs: &Outputs) -> Vec<String> {
    let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let mut list = Vec::new();
    for (file, ours) in &outputs.files {
        match read(file) {
            None => list.push(format!("{file}: not kept yet")),
            Some(kept) if kept != *ours => {
                list.push(format!("{file}: {}", difference(&kept, ours)));
            }
            Some(_) => {}
        }
    }
    let run: BTreeSet<String> = jobs.iter().map(Job::command).collect();
    let digests = parse_digests(&read("digests.txt").unwrap_or_default());
    let refused = parse_refusals(&read("refused.txt").unwrap_or_default());
    let lists = [
        ("digests.txt", digests, &outputs.digests),
        ("refused.txt", refused, &outputs.refused),
    ];
    for (file, mut kept, ours) in lists {
        if !all {
            kept.retain(|command, _| run.contains(command));
        }
        for command in kept.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
            let (kept, ours) = (kept.get(command), ours.get(command));
            if kept != ours {
                list.push(format!(
                    "{file}: {command}\n    kept    {kept:?}\n    printed {ours:?}"
                ));
            }
        }
    }
    if all {
        let known = ["README.md", "digests.txt", "refused.txt"];
        for file in files_below(folder) {
            if !outputs.files.contains_key(&file) && !known.contains(&file.as_str()) {
                list.push(format!("{file}: nothing prints it any more"));
            }
        }
    }
    list
}

fn set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

#[test]
fn outputs_are_those_that_are_kept() {
    let folder = shipped().join("golden");
    let only = std::env::var("TRAPLINE_WRITE_GOLDEN").unwrap_or_default();
    let all = only == "1" || sweeping();
    let chosen = |job: &Job| job.file.contains(&only) || job.command().contains(&only);
    let jobs = jobs().into_iter().filter(|job| match only.as_str() {
        "" | "0" | "1" => all || job.always,
        _ => chosen(job),
    });
    let jobs: Vec<Job> = jobs.collect();
    let outputs = run_all(&jobs);
    if set("TRAPLINE_WRITE_GOLDEN") {
        write(&folder, &jobs, all, &outputs);
        return;
    }
    let differences = differences(&folder, &jobs, all, &outputs);
    assert!(
        differences.is_empty(),
        "{} outputs are not those of corpus/golden:\n{}\n\
         If that is as it should be, write them again with\n\
         TRAPLINE_WRITE_GOLDEN=1 cargo test -p trapline golden::\n\
         and look at git diff corpus/golden",
        differences.len(),
        differences
            .iter()
            .take(40)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}
