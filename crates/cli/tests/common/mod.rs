//! What the integration tests share: the corpus, the binary, and reading the standard tools' outputs.
//!
//! The tests run over the smaller recordings of the corpus that this repository ships. With `TRAPLINE_SWEEP=all` they
//! run over all of them, and with `TRAPLINE_CORPUS` naming the folder of another corpus over that as well; `TRAPLINE_REFERENCES` then names where `corpus/make-references` put
//! what the standard tools say of it (default: `references` below that corpus).

// Every test binary uses its own part of this.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

pub(crate) mod agents;
pub(crate) mod browser;
pub(crate) mod expected;
pub(crate) mod fixtures;
pub(crate) mod instances;
pub(crate) mod lines;
pub(crate) mod page;
pub(crate) mod perf_kvm;
pub(crate) mod perfetto;
pub(crate) mod pings;
pub(crate) mod process;
pub(crate) mod related;
pub(crate) mod walk;

/// A recording of a corpus, and what the standard tools say of it.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Its path below the corpus.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// `x86` or `arm64`.
    pub arch: String,
    /// `perf.data`, `trace.dat` or `text`.
    pub kind: String,
    /// References by name: `script`, `report-N`, `kvm-stat-vmexit` and so on.
    pub references: BTreeMap<String, PathBuf>,
    /// What a guest counted of its own exits.
    pub guest_counts: Option<PathBuf>,
    /// The recording this one was cut from.
    pub cut_from: Option<PathBuf>,
}

impl Case {
    /// Returns a reference's text, if there is one.
    pub(crate) fn reference(&self, name: &str) -> Option<String> {
        self.references.get(name).map(|path| read_text(path))
    }
}

/// Returns the text of axe-core, which finds what cannot be read by everybody. `None`, which is said, where `npm ci` was not run in
/// `web`, unless `TRAPLINE_REQUIRE_TOOLS=1` is set.
pub(crate) fn axe() -> Option<String> {
    let file = "../../web/node_modules/axe-core/axe.min.js";
    let axe = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).ok();
    if axe.is_none() {
        let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
        assert!(!required, "axe-core is missing: run `npm ci` in web");
        tell("skipped: no axe-core here; run `npm ci` in web");
    }
    axe
}

/// Returns the folder of the corpus that the repository ships.
pub(crate) fn shipped() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    root.canonicalize()
        .expect("the repository has a folder corpus")
}

/// Returns the path of a file of the shipped corpus.
pub(crate) fn file(name: &str) -> PathBuf {
    shipped().join(name)
}

/// Recordings of more bytes are for sweeps: a dozen commands read each of them, unoptimised.
const SMALL: u64 = 180_000;

/// Whether every recording is read in every way (`TRAPLINE_SWEEP=all`, or another corpus is named), as `.ci/run` does.
/// An ordinary run takes what shows most mistakes in a minute.
pub(crate) fn sweeping() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    set("TRAPLINE_SWEEP") || set("TRAPLINE_CORPUS")
}

/// Whether an ordinary run reads a recording too.
pub(crate) fn small(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() <= SMALL)
}

/// Returns the recordings to read: all in a sweep, or else the small ones.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = all_cases();
    if !sweeping() {
        cases.retain(|case| small(&case.path));
    }
    cases
}

/// Returns all recordings, for tests that choose theirs by what they hold.
pub(crate) fn all_cases() -> Vec<Case> {
    let mut cases = corpus(&shipped(), None);
    if let Some(folder) = std::env::var_os("TRAPLINE_CORPUS") {
        let references = std::env::var_os("TRAPLINE_REFERENCES");
        let more = corpus(Path::new(&folder), references.as_deref().map(Path::new));
        assert!(!more.is_empty(), "TRAPLINE_CORPUS names an empty corpus");
        // What is shipped as it is there is there once: many tests run for minutes over all of them.
        let shipped = cases.len();
        for case in more {
            let same = |one: &&Case| one.name == case.name;
            let twin = cases[..shipped].iter().find(same);
            if twin.is_none_or(|twin| fs::read(&twin.path).ok() != fs::read(&case.path).ok()) {
                cases.push(case);
            }
        }
    }
    cases
}

/// Returns one recording of the shipped corpus.
pub(crate) fn case(name: &str) -> Case {
    let found = corpus(&shipped(), None)
        .into_iter()
        .find(|c| c.name == name);
    found.unwrap_or_else(|| panic!("the corpus has no recording {name}"))
}

/// Returns the recordings of a corpus.
pub(crate) fn corpus(root: &Path, references: Option<&Path>) -> Vec<Case> {
    let manifest = fs::read_to_string(root.join("manifest.json")).expect("a corpus has a manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("the manifest is JSON");
    let made = references.map_or_else(|| root.join("references"), Path::to_path_buf);
    let mut cases = Vec::new();
    for entry in manifest.as_array().expect("the manifest is a list") {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let name = text("recording").expect("an entry names its recording");
        // Recordings for speed and memory alone would be gigabytes of text.
        if name.starts_with("large/") {
            continue;
        }
        let mut all = BTreeMap::new();
        // Tables beside a recording, made on the machine that recorded it.
        if let Some(tables) = entry.get("perf_kvm_stat").and_then(Value::as_object) {
            for (event, path) in tables {
                let path = path.as_str().expect("a path");
                all.insert(format!("kvm-stat-{event}"), root.join(path));
            }
        }
        for file in fs::read_dir(made.join(name))
            .into_iter()
            .flatten()
            .flatten()
        {
            let file = file.path();
            let base = file.file_name().unwrap_or_default().to_string_lossy();
            let base = base.split('.').next().unwrap_or_default().to_owned();
            all.insert(base, file);
        }
        cases.push(Case {
            name: name.to_owned(),
            path: root.join(name),
            arch: text("arch").unwrap_or_default().to_owned(),
            kind: text("kind").unwrap_or_default().to_owned(),
            references: all,
            guest_counts: text("guest_counts").map(|f| root.join(f)),
            cut_from: text("cut_from").map(|f| root.join(f)),
        });
    }
    cases
}

/// Writes a text into a folder and returns its path.
pub(crate) fn write_text(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("a file that can be written");
    path
}

/// Opens a file, unwrapped by its content.
pub(crate) fn open(path: &Path) -> Box<dyn BufRead + Send> {
    let open = || File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut magic = [0u8; 4];
    let read = open().read(&mut magic).expect("a readable file");
    let buffered = BufReader::with_capacity(1 << 18, open());
    match magic {
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let frame = ruzstd::decoding::StreamingDecoder::new(buffered).expect("a zstd frame");
            Box::new(BufReader::with_capacity(1 << 18, frame))
        }
        [0x1f, 0x8b, ..] if read > 2 => Box::new(BufReader::with_capacity(
            1 << 18,
            flate2::read::MultiGzDecoder::new(buffered),
        )),
        _ => Box::new(buffered),
    }
}

/// Reads a file, unwrapped by its content.
pub(crate) fn read(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = open(path).read_to_end(&mut bytes);
    read.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    bytes
}

/// Reads a text, unwrapped by its content.
pub(crate) fn read_text(path: &Path) -> String {
    String::from_utf8_lossy(&read(path)).into_owned()
}

/// Folds white space: what columns and tabs look like is no difference.
pub(crate) fn fold(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for word in line.split_ascii_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// What a run of the program left behind.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Exit status; -1 when a signal ended it.
    pub status: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// Returns standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns standard output as JSON, if it succeeded and is.
    pub(crate) fn json(&self) -> Result<Value, String> {
        if self.status != 0 {
            return Err(format!("exit status {}: {}", self.status, self.stderr));
        }
        serde_json::from_slice(&self.stdout).map_err(|e| format!("not JSON: {e}"))
    }

    /// Returns the document with its times under one name, in whichever unit the recording's clock has them.
    pub(crate) fn json_with_times_under_one_name(&self) -> Result<Value, String> {
        let mut document = self.json()?;
        under_one_name(&mut document);
        Ok(document)
    }
}

/// Returns the program, ready for arguments: the one that was built with the tests, or the one that `TRAPLINE_PROGRAM`
/// names, for long runs with a release build.
pub(crate) fn trapline() -> Command {
    let named = std::env::var_os("TRAPLINE_PROGRAM");
    let mut command = Command::new(named.unwrap_or_else(|| env!("CARGO_BIN_EXE_trapline").into()));
    command.env_clear().stdin(Stdio::null());
    // What is printed is not to depend on the machine: some have the very files that were recorded.
    command.env("TRAPLINE_NO_LOCAL_FILES", "1");
    command
}

/// Runs the program.
pub(crate) fn run<I: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = I>) -> Run {
    let output = trapline().args(args).output().expect("the program starts");
    Run {
        status: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the program with bytes on its standard input.
pub(crate) fn run_with<I: AsRef<std::ffi::OsStr>>(
    args: impl IntoIterator<Item = I>,
    input: &[u8],
) -> Run {
    let mut child = trapline()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        // It need not read all of it: a program that is done closes the pipe.
        scope.spawn(move || {
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().expect("it ends")
    });
    Run {
        status: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the program on a file and returns its JSON, times under the name that they have in nanoseconds, whatever they count. Of a
/// recording as a whole (`start_ns` of `info`) they stay null where they are ticks.
pub(crate) fn json(args: &[&str], path: &Path) -> Result<Value, String> {
    raw_json(args, path).map(|mut document| {
        under_one_name(&mut document);
        document
    })
}

fn under_one_name(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let whole = object.contains_key("duration_ns");
            for (name, mut inner) in std::mem::take(object) {
                under_one_name(&mut inner);
                match name.strip_suffix("_ticks") {
                    Some(_) if whole => {}
                    Some(stem) => drop(object.insert(format!("{stem}_ns"), inner)),
                    None => drop(object.insert(name, inner)),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(under_one_name),
        _ => {}
    }
}

/// Runs the program on a file and returns its JSON as it is.
pub(crate) fn raw_json(args: &[&str], path: &Path) -> Result<Value, String> {
    let path = path.to_string_lossy();
    let mut all = vec![args[0], path.as_ref(), "--format", "json"];
    all.extend_from_slice(&args[1..]);
    run(all).json()
}

/// Returns a number of a JSON object, or 0 where it has none.
pub(crate) fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// Tells something that `cargo test -- --nocapture` shows.
#[allow(clippy::print_stdout)]
pub(crate) fn tell(text: &str) {
    println!("{text}");
}

/// Collects failures, so that one run tells all of them.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    list: Vec<String>,
    checks: usize,
}

impl Failures {
    /// Counts a check that holds, or keeps what failed.
    pub(crate) fn check(&mut self, holds: bool, message: impl FnOnce() -> String) {
        self.checks += 1;
        if !holds {
            self.list.push(message());
        }
    }

    /// Checks that two things are equal.
    pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        ours: &T,
        expected: &T,
    ) {
        self.check(ours == expected, || {
            format!("{what}\n    ours     {ours:?}\n    expected {expected:?}")
        });
    }

    /// Ends a test: fails if anything did, or if fewer checks ran than there must be.
    pub(crate) fn finish(self, at_least: usize) {
        let shown: Vec<&str> = self.list.iter().take(40).map(String::as_str).collect();
        assert!(
            self.list.is_empty(),
            "{} of {} checks failed:\n{}",
            self.list.len(),
            self.checks,
            shown.join("\n")
        );
        assert!(
            self.checks >= at_least,
            "only {} checks ran, expected {at_least}: is the corpus complete?",
            self.checks
        );
    }
}
