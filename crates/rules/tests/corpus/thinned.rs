//! Recordings of which events are missing, though nothing in them says so: every n-th event, one kind of event, or
//! all events of one CPU. What is missing must not become a cause: a finding that the whole recording does not
//! lead to has a confidence of at most 0.5.
//!
//! Each recording is thinned as a text of its events. A perf.data is thinned in its own form as well, where every n-th
//! sample becomes a record of another type.
//!
//! An ordinary run thins the small recordings of the shipped corpus in the ways that harm most. With
//! `TRAPLINE_SWEEP=all` every recording is thinned in every way, and with `TRAPLINE_CORPUS` that corpus too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fixtures::expected::{ExpectedFindings, tables};
use fixtures::{Failures, events_text, note, read, small, sweeping};
use rules::Severity;

use crate::{CaseFiles, diagnosed};

/// The most that may be said of what the whole recording does not show.
const UNSURE: f64 = 0.5;

/// Texts longer than this are recordings for speed.
const LONG: usize = 200 << 20;

/// An event of a text: the bytes of its line and of the call chain below it, its kind and its CPU.
struct Piece<'t> {
    text: &'t [u8],
    kind: &'t str,
    cpu: u32,
}

/// Cuts a text of events into its events. What is none (headers, notes) belongs to nobody, and stays.
fn pieces(text: &[u8]) -> Vec<Result<Piece<'_>, &[u8]>> {
    let mut pieces: Vec<Result<Piece<'_>, &[u8]>> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let start = at;
        at += line.len();
        let of_chain = line.starts_with(b"\t") || line.starts_with(b" => ") || line == b"\n";
        match (pieces.last_mut(), of_chain) {
            (Some(Ok(piece)), true) => {
                let begin = piece.text.as_ptr().addr() - text.as_ptr().addr();
                piece.text = &text[begin..at];
            }
            _ => pieces.push(match head(line) {
                Some((kind, cpu)) => Ok(Piece {
                    text: &text[start..at],
                    kind,
                    cpu,
                }),
                None => Err(&text[start..at]),
            }),
        }
    }
    pieces
}

/// Finds `[CPU] TIME: EVENT:` in a line. Of samples, perf script prints the period before the event's name.
fn head(line: &[u8]) -> Option<(&str, u32)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut from = 0;
    loop {
        let at = from + line.get(from..)?.find('[')?;
        from = at + 1;
        let Some((cpu, rest)) = line[from..].split_once(']') else {
            continue;
        };
        let Ok(cpu) = cpu.parse() else { continue };
        let (time, rest) = rest.trim_start().split_once(": ")?;
        if !time
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            return None;
        }
        let mut words = rest.split_whitespace();
        let is_period = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
        let event = words.next().unwrap_or_default();
        let event = Some(event).filter(|word| !is_period(word));
        let event = event.or_else(|| words.next()).unwrap_or_default();
        return Some((event.trim_end_matches(':'), cpu));
    }
}

/// A way to thin a recording.
#[derive(Debug, Clone)]
enum Way {
    /// Every n-th event from one on is gone.
    Every(usize, usize),
    /// Only every n-th event is left.
    Only(usize),
    /// Events of a kind are gone.
    Kind(String),
    /// Events of a CPU are gone.
    Cpu(u32),
}

fn thin(pieces: &[Result<Piece<'_>, &[u8]>], way: &Way) -> Vec<u8> {
    let mut out = Vec::new();
    let mut count = 0;
    for piece in pieces {
        match piece {
            Err(text) => out.extend_from_slice(text),
            Ok(piece) => {
                count += 1;
                let gone = match way {
                    Way::Every(n, first) => count % n == first % n,
                    Way::Only(n) => count % n != 0,
                    Way::Kind(kind) => piece.kind == kind,
                    Way::Cpu(cpu) => piece.cpu == *cpu,
                };
                if !gone {
                    out.extend_from_slice(piece.text);
                }
            }
        }
    }
    out
}

/// Returns the ways in which a text can be thinned, those that harm most first.
fn ways(pieces: &[Result<Piece<'_>, &[u8]>], all: bool) -> Vec<Way> {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut cpus: BTreeMap<u32, usize> = BTreeMap::new();
    for piece in pieces.iter().flatten() {
        *kinds.entry(piece.kind).or_default() += 1;
        *cpus.entry(piece.cpu).or_default() += 1;
    }
    let mut ways = vec![Way::Every(2, 0)];
    let often = [
        "kvm_entry",
        "kvm_exit",
        "sched_switch",
        "sched_waking",
        "sched_wakeup",
        "kvm_userspace_exit",
        "kvm_vcpu_wakeup",
    ];
    let bare = |kind: &str| kind.rsplit(':').next().unwrap_or_default().to_owned();
    if all {
        ways.extend([
            Way::Every(2, 1),
            Way::Every(10, 3),
            Way::Every(3, 0),
            Way::Every(100, 7),
            Way::Only(10),
        ]);
        ways.extend(kinds.keys().map(|kind| Way::Kind((*kind).to_owned())));
        ways.extend(cpus.keys().map(|cpu| Way::Cpu(*cpu)));
    } else {
        let harmful = kinds
            .keys()
            .filter(|kind| often.contains(&bare(kind).as_str()));
        ways.extend(harmful.map(|kind| Way::Kind((*kind).to_owned())));
        // The CPU with most events is a vCPU's, or its back end's.
        ways.extend(
            cpus.iter()
                .max_by_key(|(_, count)| **count)
                .map(|(cpu, _)| Way::Cpu(*cpu)),
        );
    }
    ways
}

/// Type of `PERF_RECORD_SAMPLE`, and of a record that says nothing (`PERF_RECORD_FINISHED_INIT`; both from
/// tools/lib/perf/include/perf/event.h and include/uapi/linux/perf_event.h).
const SAMPLE: u32 = 9;
const NOTHING: u32 = 82;

/// Makes every n-th sample of a perf.data one that says nothing; `None` if it has no plain samples.
fn thin_perf_data(bytes: &[u8], n: usize, first: usize) -> Option<Vec<u8>> {
    let word = |at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
    };
    // perf_file_header: magic, size, attr_size, attrs (offset, size), data (offset, size); a pipe's header has 16
    // bytes.
    if bytes.get(..8)? != b"PERFILE2" {
        return None;
    }
    let (from, to) = match word(8)? {
        16 => (16, bytes.len()),
        _ => {
            let from = usize::try_from(word(40)?).ok()?;
            (from, from.checked_add(usize::try_from(word(48)?).ok()?)?)
        }
    };
    let mut out = bytes.to_vec();
    let (mut at, mut count, mut gone) = (from, 0, 0);
    while at + 8 <= to.min(bytes.len()) {
        let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().ok()?);
        let size = usize::from(u16::from_le_bytes(bytes[at + 6..at + 8].try_into().ok()?));
        if size < 8 {
            break;
        }
        if kind == SAMPLE {
            count += 1;
            if count % n == first % n {
                out[at..at + 4].copy_from_slice(&NOTHING.to_le_bytes());
                gone += 1;
            }
        }
        // Bytes that follow a record of tracing data and of the like (HEADER_TRACING_DATA) are in its first word.
        let behind = match kind {
            66 => u32::from_le_bytes(bytes.get(at + 8..at + 12)?.try_into().ok()?) as usize,
            71 => usize::try_from(word(at + 8)?).ok()?,
            _ => 0,
        };
        at = at.checked_add(size)?.checked_add(behind)?;
    }
    (gone > 100).then_some(out)
}

/// A recording, and the rules that find something in it as a whole.
struct Input<'e> {
    expected: &'e ExpectedFindings,
    whole: Vec<&'static str>,
}

/// Checks what a thinned recording leads to. Of nothing, nothing is said, and what remains may be no recording any
/// more.
fn check(failures: &Mutex<Failures>, input: &Input<'_>, form: &str, way: &str, bytes: &[u8]) {
    let Input { expected, whole } = input;
    let name = &expected.name;
    let thinned = tempfile::NamedTempFile::new().expect("a file");
    fs::write(thinned.path(), bytes).expect("a written file");
    let found = diagnosed(&[thinned.path().to_owned()], CaseFiles::default());
    let findings = found.map(|found| found.diagnosis.findings);
    let mut failures = failures.lock().expect("nobody panics");
    failures.check(true, String::new);
    for one in findings.unwrap_or_default() {
        // What was thinned out was lost, and may be said so.
        let id = one.rule.id;
        let right = expected.lists(id) || id == "lossy-recording" || whole.contains(&id);
        failures.check(right || one.confidence <= UNSURE, || {
            let severity = one.severity().name();
            format!(
                "{name}, {form}, {way}: {id} ({severity}, {:.2}): {}",
                one.confidence, one.title
            )
        });
    }
}

fn thin_all_ways(failures: &Mutex<Failures>, expected: &ExpectedFindings, all: bool) {
    let [file] = expected.files.as_slice() else {
        return;
    };
    let whole = diagnosed(&expected.files, CaseFiles::default());
    let whole = whole
        .map(|found| found.diagnosis.findings)
        .unwrap_or_default();
    let whole = whole.into_iter().filter(|found| {
        let is_low = found.severity() == Severity::Low;
        expected.allows(found.rule.id, is_low)
    });
    let input = Input {
        expected,
        whole: whole.map(|found| found.rule.id).collect(),
    };
    let bytes = read(file);
    for (n, first) in [(2, 0), (3, 1)].into_iter().take(if all { 2 } else { 1 }) {
        if let Some(thinned) = thin_perf_data(&bytes, n, first) {
            let way = format!("every {n}th sample gone");
            check(failures, &input, "perf.data", &way, &thinned);
        }
    }
    drop(bytes);
    // A printed table, or a recording without events, has no text.
    let text = events_text(file).unwrap_or_default();
    if text.len() > LONG {
        return;
    }
    let pieces = pieces(&text);
    for way in ways(&pieces, all) {
        let text = thin(&pieces, &way);
        check(failures, &input, "text", &format!("{way:?}"), &text);
    }
}

/// Returns what an input is and what is expected of it, to compare.
fn what_is_asked(
    input: &ExpectedFindings,
) -> (String, Vec<Vec<u8>>, Vec<BTreeMap<String, String>>) {
    let files = input.files.iter().map(fs::read);
    let files = files.map(Result::unwrap_or_default);
    let expected = [&input.must, &input.may, &input.not];
    (
        input.name.clone(),
        files.collect(),
        expected.map(Clone::clone).to_vec(),
    )
}

#[test]
fn what_is_missing_is_no_cause() {
    let all = sweeping();
    let only = std::env::var("TRAPLINE_THIN_ONLY").unwrap_or_default();
    let failures = Mutex::new(Failures::default());
    let inputs = tables().into_iter().flat_map(|(_, table)| table);
    let mut seen = BTreeSet::new();
    // What both corpora have is thinned once.
    let inputs = inputs.filter(|input| seen.insert(what_is_asked(input)));
    let inputs: Vec<ExpectedFindings> = inputs.collect();
    let inputs: Vec<ExpectedFindings> = inputs
        .into_iter()
        .filter(|input| !input.name.starts_with("large/") && input.name.contains(&only))
        .filter(|input| all || input.files.iter().all(|file| small(file)))
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(input) = inputs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    thin_all_ways(&failures, input, all);
                }
            });
        }
    });
    note(&format!("{} inputs", inputs.len()));
    let failures = failures.into_inner().expect("nobody panics");
    failures.finish(if only.is_empty() { 20 } else { 0 });
}

#[test]
fn texts_are_cut_into_events() {
    let text = b"cpus=2\n  CPU 0/KVM-10 [001]  1.000001: kvm_exit:  reason HLT\n \
                 a 1 [000] 2.5: kvm:kvm_entry: vcpu 0\n\tffff f\n\n";
    let sample = b"CPU 0/KVM 10 [001] 3.5:     2500 cycles:P:  ffff f (x)\n";
    assert_eq!(head(sample), Some(("cycles:P", 1)));
    let pieces = pieces(text);
    let kinds: Vec<(&str, u32)> = pieces
        .iter()
        .flatten()
        .map(|piece| (piece.kind, piece.cpu))
        .collect();
    assert_eq!(kinds, [("kvm_exit", 1), ("kvm:kvm_entry", 0)]);
    let left = thin(&pieces, &Way::Kind("kvm:kvm_entry".to_owned()));
    assert_eq!(
        left,
        text[..text.iter().rposition(|b| *b == b'a').unwrap() - 1]
    );
}
