//! Damaged recordings: whatever is done to the bytes, reading them does not panic, ends, and takes up no more
//! memory than it may.
//!
//! Each case takes a small recording, harms it and reads it with everything that reads recordings. Cases are
//! numbered and repeatable: `TRAPLINE_MUTATIONS` says how many to run, `TRAPLINE_MUTATION_SEED` which other
//! ones, and `TRAPLINE_MUTATION_CASE` runs a single one again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::seeds::{Seed, seeds};

/// Cases of an ordinary test run.
const CASES: u64 = 5000;
const THREADS: usize = 2;
/// A case takes milliseconds. One that takes this long on the slowest of machines will not end.
const HANGS: Duration = Duration::from_secs(300);
/// Failures that are listed before the rest is not worth waiting for.
const ENOUGH: usize = 10;

/// Numbers that look random and are the same in every run (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = self.0;
        n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ n >> 31
    }

    /// A number below `end`, 0 if there is none.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % (end as u64).max(1)) as usize
    }

    /// A place in the bytes: headers stand at the beginning and, in perf.data, at the end, and are worth more
    /// harm than their share of the bytes.
    fn place(&mut self, len: usize) -> usize {
        match self.below(4) {
            0 => self.below(len.min(2048)),
            1 => len - 1 - self.below(len.min(2048)),
            _ => self.below(len),
        }
    }

    /// A range of up to `most` bytes.
    fn range(&mut self, len: usize, most: usize) -> std::ops::Range<usize> {
        let start = self.place(len);
        let most = 1 + self.below(most);
        start..len.min(start + most)
    }
}

/// Does one thing to the bytes, and says what.
fn harm(bytes: &mut Vec<u8>, random: &mut Random, others: &[Seed]) -> String {
    let len = bytes.len();
    if len == 0 {
        return "nothing is left".to_owned();
    }
    match random.below(13) {
        0 | 1 => {
            let count = 1 + random.below(8);
            let places: Vec<usize> = (0..count).map(|_| random.place(len)).collect();
            for &at in &places {
                bytes[at] ^= 1 << random.below(8);
            }
            format!("bits flipped at {places:?}")
        }
        2 => {
            let at = random.place(len);
            bytes[at] = random.next() as u8;
            format!("byte {at} set to {}", bytes[at])
        }
        3 => {
            let at = random.place(len);
            bytes.truncate(at);
            format!("cut at {at}")
        }
        4 => {
            let range = random.range(len, 4096);
            bytes.drain(range.clone());
            format!("{range:?} taken out")
        }
        width @ 5..=7 => {
            // Lengths, offsets and counts stand at multiples of their size in most formats, not in all.
            let width = 2 << (width - 5);
            let mut at = random.place(len);
            if random.below(4) > 0 {
                at = at / width * width;
            }
            let width = width.min(len - at);
            let mut old = [0; 8];
            old[..width].copy_from_slice(&bytes[at..at + width]);
            let old = u64::from_le_bytes(old);
            let top = 1u64 << (8 * width - 1);
            let new = match random.below(12) {
                0 => 0,
                1 => u64::MAX,
                2 => top,
                3 => top - 1,
                4 => old.wrapping_add(1),
                5 => old.wrapping_sub(1),
                6 => old.wrapping_neg(),
                7 => old.wrapping_mul(2),
                8 => len as u64,
                9 => len as u64 + 1 + random.below(1000) as u64,
                10 => 1u64 << random.below(64),
                _ => random.next(),
            };
            bytes[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
            format!("{width} bytes at {at}, which were {old:#x}, made {new:#x}")
        }
        8 => {
            let range = random.range(len, 8192);
            let block = bytes[range.clone()].to_vec();
            let at = random.place(len);
            bytes.splice(at..at, block);
            format!("{range:?} inserted again at {at}")
        }
        9 => {
            let a = random.range(len, 4096);
            let b = random.range(len, 4096);
            let size = a.len().min(b.len());
            let (low, high) = (a.start.min(b.start), a.start.max(b.start));
            let size = size.min(high - low).min(len - high);
            let (left, right) = bytes.split_at_mut(high);
            left[low..low + size].swap_with_slice(&mut right[..size]);
            format!("{size} bytes at {low} and {high} swapped")
        }
        10 => {
            let range = random.range(len, 4096);
            let byte = [0, 0xff, b'0', b' '][random.below(4)];
            bytes[range.clone()].fill(byte);
            format!("{range:?} filled with {byte}")
        }
        11 => {
            // Numbers in texts, and in the formats of events.
            let from = random.place(len);
            let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit) else {
                return "no digits".to_owned();
            };
            let start = from + start;
            let digits = bytes[start..].iter().take_while(|b| b.is_ascii_digit());
            let end = start + digits.count();
            let number = [
                "0",
                "-1",
                "65536",
                "2147483648",
                "4294967295",
                "18446744073709551615",
                "99999999999999999999999",
                "",
            ][random.below(8)];
            bytes.splice(start..end, number.bytes());
            format!("number at {start} made {number:?}")
        }
        _ => {
            let other = &others[random.below(others.len())];
            let range = random.range(other.bytes.len(), 8192);
            let at = random.place(len);
            let size = range.len().min(len - at);
            bytes[at..at + size].copy_from_slice(&other.bytes[range.start..range.start + size]);
            format!(
                "{size} bytes at {at} taken from {} at {}",
                other.name, range.start
            )
        }
    }
}

/// Makes the bytes of a case, and says how.
fn make(case: u64, base: u64, seeds: &[Seed]) -> (Vec<u8>, String) {
    let mut random = Random(base ^ case.wrapping_mul(0xa076_1d64_78bd_642f));
    let seed = &seeds[random.below(seeds.len())];
    let mut bytes = seed.bytes.clone();
    let mut story = seed.name.clone();
    for _ in 0..1 + random.below(3) {
        story.push_str("; ");
        story.push_str(&harm(&mut bytes, &mut random, seeds));
    }
    (bytes, story)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is no number: {text}")),
    )
}

/// Returns what went wrong in a case, if anything did.
fn run(case: u64, base: u64, seeds: &[Seed]) -> Option<String> {
    let (bytes, story) = make(case, base, seeds);
    let result = catch_unwind(AssertUnwindSafe(|| {
        crate::support::read(&bytes, case.is_multiple_of(4))
    }));
    let panic = result.err()?;
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a text");
    Some(format!("case {case} of seed {base}: {text}\n    {story}"))
}

#[test]
fn damaged_recordings_are_read_within_bounds() {
    let seeds = seeds();
    assert!(
        !seeds.is_empty(),
        "there are recordings in the repository's corpus"
    );
    let base = number("TRAPLINE_MUTATION_SEED").unwrap_or(1);
    if let Some(case) = number("TRAPLINE_MUTATION_CASE") {
        assert_eq!(run(case, base, &seeds), None);
        return;
    }
    let cases = number("TRAPLINE_MUTATIONS").unwrap_or(CASES);
    let next = AtomicU64::new(0);
    let failures = Mutex::new(Vec::new());
    // By thread, the case it is at, and since when.
    let at: Vec<Mutex<Option<(u64, Instant)>>> = (0..THREADS).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        let workers: Vec<_> = at
            .iter()
            .map(|at| {
                scope.spawn(|| {
                    loop {
                        let case = next.fetch_add(1, Ordering::Relaxed);
                        if case >= cases || failures.lock().unwrap().len() >= ENOUGH {
                            *at.lock().unwrap() = None;
                            return;
                        }
                        *at.lock().unwrap() = Some((case, Instant::now()));
                        // Read before the lock is taken: in one expression it would be held all along, and no two cases
                        // would run at once.
                        let failure = run(case, base, &seeds);
                        failures.lock().unwrap().extend(failure);
                    }
                })
            })
            .collect();
        while workers.iter().any(|w| !w.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            for at in &at {
                if let Some((case, since)) = *at.lock().unwrap()
                    && since.elapsed() > HANGS
                {
                    // A thread cannot be ended from outside; the test can.
                    let story = make(case, base, &seeds).1;
                    let text = format!("case {case} of seed {base} does not end\n    {story}\n");
                    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
                    std::process::abort();
                }
            }
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The seeds are what they are meant to be: recordings that can be read, of every kind.
#[test]
fn seeds_are_recordings_of_every_kind() {
    let seeds = seeds();
    let mut kinds = std::collections::BTreeSet::new();
    for seed in &seeds {
        let seen = crate::support::read(&seed.bytes, false);
        assert!(seen.recording, "{}", seed.name);
        assert!(seen.printed >= 20 * seen.events, "{}", seed.name);
        // Recordings of processes that did nothing are in the corpus too.
        if seen.events == 0 {
            continue;
        }
        let kind = match seed.bytes.as_slice() {
            [0x1f, 0x8b, ..] => "gzip",
            [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
            [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', 16, ..] => "perf.data, pipe",
            [b'P', b'E', b'R', b'F', ..] => "perf.data",
            [0x17, ..] if seed.bytes.get(10) == Some(&b'6') => "trace.dat 6",
            [0x17, ..] => "trace.dat 7",
            _ => "text",
        };
        kinds.insert(kind);
    }
    let all = [
        "gzip",
        "perf.data",
        "perf.data, pipe",
        "text",
        "trace.dat 6",
        "trace.dat 7",
        "zstd",
    ];
    assert!(kinds.iter().eq(&all), "{kinds:?}");
}
