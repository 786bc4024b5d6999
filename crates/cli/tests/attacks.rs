//! Inputs that are well formed and mean nothing: recordings in which every part fits its container and contradicts the
//! others, texts and documents with numbers that nothing counts, object files that go round in circles.
//!
//! `crates/source/tests/mutations.rs` harms bytes; what is wrong here is what they mean. An attack is made of a number,
//! so each can be made again: `TRAPLINE_ATTACKS` says how many there are, `TRAPLINE_ATTACK_SEED` which others, and
//! `TRAPLINE_ATTACK` runs the one of that number alone and leaves its file where `TRAPLINE_ATTACK_FILE` says.

mod checks;
mod definitions;
mod documents;
mod draw;
mod event_formats;
mod mended;
mod objects;
mod perf_files;
mod printed_texts;
mod story;
mod through_program;
mod trace_files;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use draw::Draw;

/// Attacks of an ordinary run.
const ATTACKS: u64 = 1500;
const THREADS: usize = 2;
/// Of how many attacks one goes through the program too.
const THROUGH_PROGRAM: u64 = 50;
/// An attack takes milliseconds. One that takes this long on the slowest of machines will not end.
const HANGS: Duration = Duration::from_secs(300);
/// Memory of the whole test, in bytes: what it takes more than this has no bound.
const TOO_LARGE: u64 = 4 << 30;
/// Failures that are listed before the rest is not worth waiting for.
const ENOUGH: usize = 10;

/// What is attacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttackKind {
    PerfData,
    TraceDat,
    EventLines,
    PrintedText,
    Definition,
    Document,
    Object,
}

const KINDS: [AttackKind; 10] = [
    AttackKind::PerfData,
    AttackKind::TraceDat,
    AttackKind::EventLines,
    AttackKind::PrintedText,
    AttackKind::PerfData,
    AttackKind::Definition,
    AttackKind::TraceDat,
    AttackKind::Document,
    AttackKind::PrintedText,
    AttackKind::Object,
];

/// Makes the input of an attack.
fn make(kind: AttackKind, number: u64, base: u64) -> Vec<u8> {
    let draw = &mut Draw::new(base.rotate_left(32) ^ number.wrapping_mul(0xa076_1d64_78bd_642f));
    match kind {
        AttackKind::PerfData => perf_files::write(draw),
        AttackKind::TraceDat => trace_files::write(draw),
        AttackKind::EventLines => printed_texts::write_events(draw),
        AttackKind::PrintedText => printed_texts::write(draw),
        AttackKind::Definition => definitions::write(draw),
        AttackKind::Document => documents::write(draw),
        AttackKind::Object => objects::write(draw),
    }
}

/// Attacks, and returns what went wrong.
fn run(number: u64, base: u64, folder: &Path, recording: &Path) -> Option<String> {
    let kind = KINDS[number as usize % KINDS.len()];
    let which = number / KINDS.len() as u64;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let bytes = make(kind, number, base);
        let name = format!("input-{number}");
        let path = folder.join(&name);
        fs::write(&path, &bytes).expect("a file");
        if let Some(kept) = std::env::var_os("TRAPLINE_ATTACK_FILE") {
            fs::write(kept, &bytes).expect("a file");
        }
        match kind {
            AttackKind::PerfData | AttackKind::TraceDat | AttackKind::EventLines => {
                checks::recording(&path, which)
            }
            AttackKind::PrintedText if which.is_multiple_of(4) => checks::facts(&path, recording),
            AttackKind::PrintedText => checks::recording(&path, which),
            AttackKind::Definition if which.is_multiple_of(4) => checks::recording(&path, which),
            AttackKind::Definition => checks::definition(&bytes),
            AttackKind::Document => checks::facts(&path, recording),
            AttackKind::Object => checks::object(folder, &name, bytes.len() as u64),
        }
        if number % THROUGH_PROGRAM == base % THROUGH_PROGRAM {
            through_program::run(&path, which);
        }
        fs::remove_file(&path).expect("it is there");
    }));
    let panic = result.err()?;
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("a panic without a text");
    Some(format!("attack {number} of seed {base} ({kind:?}): {text}"))
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is no number: {text}")),
    )
}

/// Returns how much memory this process has (`/proc/self/statm`, in pages).
fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

#[test]
fn absurd_inputs_are_answered_within_bounds() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = folder.path().join("healthy.txt");
    fs::write(&recording, include_bytes!("cases/hlt-healthy.txt")).expect("a file");
    let base = number("TRAPLINE_ATTACK_SEED").unwrap_or(1);
    if let Some(one) = number("TRAPLINE_ATTACK") {
        assert_eq!(run(one, base, folder.path(), &recording), None);
        return;
    }
    let attacks = number("TRAPLINE_ATTACKS").unwrap_or(ATTACKS);
    let next = AtomicU64::new(0);
    let failures = Mutex::new(Vec::new());
    // By thread, the attack it is at, and since when.
    let at: Vec<Mutex<Option<(u64, Instant)>>> = (0..THREADS).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        let workers: Vec<_> = at
            .iter()
            .map(|at| {
                scope.spawn(|| {
                    loop {
                        let attack = next.fetch_add(1, Ordering::Relaxed);
                        if attack >= attacks || failures.lock().unwrap().len() >= ENOUGH {
                            *at.lock().unwrap() = None;
                            return;
                        }
                        *at.lock().unwrap() = Some((attack, Instant::now()));
                        // Run before the lock is taken: in one expression it would be held all along.
                        let failure = run(attack, base, folder.path(), &recording);
                        failures.lock().unwrap().extend(failure);
                    }
                })
            })
            .collect();
        let mut ends = false;
        while workers.iter().any(|worker| !worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            let is_large = resident_bytes().is_some_and(|bytes| bytes > TOO_LARGE);
            for at in &at {
                if let Some((attack, since)) = *at.lock().unwrap() {
                    let fault = match since.elapsed() > HANGS {
                        true => "does not end",
                        // One of them it is.
                        false if is_large => "is under way where memory has no bound",
                        false => continue,
                    };
                    let text = format!("attack {attack} of seed {base} {fault}\n");
                    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
                    // A thread cannot be ended from outside; the test can.
                    ends = true;
                }
            }
            if ends {
                std::process::abort();
            }
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
