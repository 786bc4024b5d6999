//! Watching a path while it is recorded finds what looking at all of the recording afterwards finds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use analysis::{SlowInstance, SlowInstances, Study};
use facts::Facts;
use paths::{Paths, lang};
use proptest::prelude::*;
use session::PathWatch;
use source::{ReaderOptions, RecordingBytes};

/// Longer than the quickest instances, so that not all are found.
const BOUND_NS: u64 = 100_000;
/// `PERF_RECORD_SAMPLE`, the first kind of perf's own, `PERF_RECORD_FINISHED_ROUND`, and a kind that says nothing of
/// events (`PERF_RECORD_TIME_CONV`).
const SAMPLE: u32 = 9;
const OWN: u32 = 64;
const ROUND: u32 = 68;
const NOTHING: u32 = 79;

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("so many bytes")
}

fn long(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(number(bytes, at)) as usize
}

fn header(kind: u32, size: usize) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&kind.to_le_bytes());
    bytes[6..].copy_from_slice(&(size as u16).to_le_bytes());
    bytes
}

/// A recording of perf that came as it was recorded: what stands around its records, and these by CPU.
struct Rings {
    head: Vec<u8>,
    /// Records without a time, which perf made itself before all others.
    own: Vec<u8>,
    /// By CPU its records, each with its time, as its ring had them.
    rings: BTreeMap<u32, Vec<(u64, Vec<u8>)>>,
    first: u64,
    last: u64,
}

/// Takes a recording of the corpus apart. Its samples are laid out as perf does for tracepoints: id, address, thread,
/// time, CPU.
fn taken_apart(bytes: &[u8]) -> Rings {
    assert_eq!(&bytes[..8], b"PERFILE2");
    assert_eq!(long(bytes, long(bytes, 24) + 24), 0x10587);
    let (start, size) = (long(bytes, 40), long(bytes, 48));
    let mut rings = Rings {
        head: bytes.to_vec(),
        own: Vec::new(),
        rings: BTreeMap::new(),
        first: u64::MAX,
        last: 0,
    };
    let mut at = start;
    while at < start + size {
        let kind = u32::from_le_bytes(number(bytes, at));
        let length = usize::from(u16::from_le_bytes(number(bytes, at + 6)));
        let record = &bytes[at..at + length];
        at += length;
        if kind >= OWN {
            continue;
        }
        let (time, cpu) = match kind {
            SAMPLE => (8 + 24, 8 + 32),
            _ => (length - 24, length - 16),
        };
        let time = long(record, time) as u64;
        if time == 0 {
            rings.own.extend(record);
            continue;
        }
        let cpu = u32::from_le_bytes(number(record, cpu));
        let ring = rings.rings.entry(cpu).or_default();
        ring.push((time, record.to_vec()));
        rings.first = rings.first.min(time);
        rings.last = rings.last.max(time);
    }
    // The same head, with records in it that say nothing: features stand behind the data.
    let mut at = start;
    while at < start + size {
        let length = (start + size - at).min(0xfff8);
        rings.head[at..at + 8].copy_from_slice(&header(NOTHING, length));
        at += length;
    }
    rings
}

impl Rings {
    /// Reads the rings, one after the other and again and again, as at these parts of the whole time. Returns what each
    /// round brought.
    fn rounds(&self, parts: &[u32], apart_ns: u64) -> Vec<Vec<u8>> {
        let span = self.last - self.first;
        let time = |part: &u32| self.first + span / 1000 * u64::from(*part);
        let mut parts = parts.to_vec();
        parts.sort_unstable();
        let times = parts.iter().map(time).chain([u64::MAX]);
        let mut read: BTreeMap<u32, usize> = BTreeMap::new();
        let mut before = 0;
        let rounds = times.map(|time| {
            let mut round = Vec::new();
            for ((cpu, ring), number) in self.rings.iter().zip(0..) {
                // The last ring of a round is read before the first one of the next.
                before = before.max(time.saturating_add(number * apart_ns));
                let from = read.entry(*cpu).or_default();
                while let Some((_, record)) = ring.get(*from).filter(|one| one.0 < before) {
                    round.extend(record);
                    *from += 1;
                }
            }
            round.extend(header(ROUND, 8));
            round
        });
        let mut pieces = vec![self.own.clone()];
        pieces.extend(rounds);
        pieces
    }
}

fn corpus(name: &str) -> RecordingBytes {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    RecordingBytes::open(&file.join(name)).expect("a recording")
}

fn path(name: &str) -> lang::PathDefinition {
    paths::builtin(name).expect("a path")
}

/// Finds the slow instances of a whole recording, and how many instances there are.
fn found(recording: &RecordingBytes, name: &str) -> (Vec<SlowInstance>, u64) {
    let mut paths = Paths::new(vec![path(name)]);
    paths.list();
    let slow = SlowInstances::above(BOUND_NS);
    let mut study = Study::default();
    study.add(paths);
    let slow = study.share(slow);
    let reader = recording.reader(ReaderOptions::default());
    reader.expect("a recording").walk(&mut study);
    let mut slow = slow.get_mut();
    (slow.take(), slow.seen())
}

/// Watches a path while these pieces come. Returns what was found by each, and how many instances there were.
fn watched(head: &[u8], pieces: &[Vec<u8>], name: &str) -> (Vec<Vec<SlowInstance>>, u64) {
    let head = RecordingBytes::from_bytes("a head", head.to_vec()).expect("a recording");
    let head = head.reader(ReaderOptions::default()).expect("a recording");
    let watch = PathWatch::new(&head, path(name), BOUND_NS, &Facts::default(), Vec::new);
    let mut watch = watch.expect("a perf.data");
    let count = pieces.len();
    let found = pieces
        .iter()
        .zip(1..)
        .map(|(piece, number)| watch.look(&Arc::new(piece.clone()), number == count));
    (found.collect(), watch.seen())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_watched_is_what_is_found_afterwards(
        parts in proptest::collection::vec(0..1000u32, 1..60),
        apart_ns in 0..20_000_000u64,
    ) {
        let recording = corpus("arm64/vhost-mmio/boot1/perf.data.tracepoints.zst");
        let (all, count) = found(&recording, "device-irq");
        prop_assert!(all.len() > 100 && count > all.len() as u64, "{} of {}", all.len(), count);
        let rings = taken_apart(recording.bytes());
        prop_assert!(rings.rings.len() > 1);
        let (slow, seen) = watched(&rings.head, &rings.rounds(&parts, apart_ns), "device-irq");
        prop_assert_eq!(slow.concat(), all);
        prop_assert_eq!(seen, count);
    }
}

#[test]
fn an_instance_is_found_two_rounds_after_it_completed() {
    let recording = corpus("x86/console-sick/perf.data.zst");
    let (all, count) = found(&recording, "irqfd");
    assert_eq!(count, 597);
    assert!(all.len() > 100, "{}", all.len());
    let rings = taken_apart(recording.bytes());
    let parts: Vec<u32> = (1..100).map(|part| 10 * part).collect();
    let pieces = rings.rounds(&parts, 1000);
    let (slow, seen) = watched(&rings.head, &pieces, "irqfd");
    assert_eq!(slow.concat(), all);
    assert_eq!(seen, count);
    // Piece by piece: each was found as soon as the round behind that of its end was read.
    let span = rings.last - rings.first;
    let read_at = |piece: usize| rings.first + span / 1000 * 10 * piece as u64;
    for (piece, found) in slow.iter().enumerate().take(parts.len()) {
        for one in found {
            // Rings are read one after the other, for less than a millisecond.
            let end = one.begin_ns + one.total_ns + 1_000_000;
            assert!(end > read_at(piece - 2), "{one:?} by piece {piece}");
        }
    }
}

#[test]
fn only_what_perf_records_comes_in_pieces() {
    let text = "  qemu-1 [000] 1.0: kvm:kvm_entry: vcpu 0, rip 0x0\n";
    let text = RecordingBytes::from_bytes("a text", text.as_bytes().to_vec()).expect("bytes");
    let reader = text.reader(ReaderOptions::default()).expect("a text");
    let none = PathWatch::new(&reader, path("irqfd"), 1, &Facts::default(), Vec::new);
    let error = none.expect_err("no perf.data").to_string();
    assert!(error.starts_with("a text: is no perf.data"), "{error}");
}
