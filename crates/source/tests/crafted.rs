//! Recordings made to cost more than they should. The largest that reading each may hold at once is bounded
//! by [`crate::support::read`]; those that once took time by the square of their length do not end in a lifetime
//! when they do so again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use source::{OpenOptions, ReadProgress, ReadStep, ReaderOptions, RecordingBytes};

use crate::packed::All;
use crate::support::read;
use crate::writer::*;

fn attr(sample_type: u64) -> Attr {
    Attr {
        sample_type,
        read_format: 0,
        sample_id_all: true,
        ids: Vec::new(),
    }
}

/// Returns a pipe of one event with these records behind its definitions.
fn pipe(attr: Attr, records: &[u8]) -> Vec<u8> {
    let recording = Recording {
        big: false,
        pipe: true,
        storage: Storage::Plain,
        attrs: vec![attr],
        items: Vec::new(),
    };
    let mut bytes = recording.write().bytes;
    bytes.extend(records);
    bytes
}

fn sample(time: u64) -> Vec<u8> {
    let mut n = Numbers::new(false);
    n.u64(time);
    framed(false, 9, 0, &n.out)
}

/// Returns `PERF_RECORD_COMPRESSED` with a raw zstd block, the first one with the header of a frame that never
/// ends.
fn compressed(first: bool, content: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    if first {
        payload.extend([0x28, 0xb5, 0x2f, 0xfd, 0, 0]);
    }
    payload.extend(&((content.len() as u32) << 3).to_le_bytes()[..3]);
    payload.extend(content);
    framed(false, COMPRESSED, 0, &payload)
}

#[test]
fn compressed_records_that_run_backwards() {
    // Each record is older than the one before and lies in a piece of its own: all wait for the end.
    const COUNT: u64 = 30_000;
    let records: Vec<u8> = (0..COUNT)
        .flat_map(|n| compressed(n == 0, &sample(1 + COUNT - n)))
        .collect();
    assert_eq!(read(&pipe(attr(TIME), &records), false).events, COUNT);
}

#[test]
fn data_of_a_size_that_no_file_has() {
    let mut n = Numbers::new(false);
    n.u64(1 << 62).u64s(&[0; 4]);
    let mut records = sample(5);
    records.extend(framed(false, AUXTRACE, 0, &n.out));
    assert_eq!(read(&pipe(attr(TIME), &records), false).events, 1);
}

#[test]
fn a_record_that_comes_in_many_small_pieces() {
    // A record of 64 KiB, whose end never comes, in pieces of one byte.
    let mut records = compressed(true, &[9, 0, 0, 0, 0, 0, 0xff, 0xff]);
    for _ in 0..60_000 {
        records.extend(compressed(false, &[0]));
    }
    assert_eq!(read(&pipe(attr(TIME), &records), false).events, 0);
}

#[test]
fn blocks_of_compressed_data_without_content() {
    // Thousands of blocks in each record, of three bytes and with nothing in them.
    let mut records = compressed(true, &[]);
    for _ in 0..30 {
        records.extend(framed(false, COMPRESSED, 0, &[0; 65_400]));
    }
    records.extend(compressed(false, &sample(5)));
    assert_eq!(read(&pipe(attr(TIME), &records), false).events, 1);
}

#[test]
fn one_long_name_for_many_threads() {
    let record = |tid: u32, body| {
        let record = Record {
            attr: 0,
            time: 1,
            cpu: 0,
            pid: 1,
            tid,
            misc: 0,
            body,
        };
        record.bytes(false, &attr(TIME))
    };
    let mut records = record(2, Body::Comm(vec![b'x'; 60_000]));
    for tid in (3..60_000).step_by(2) {
        // Forked by the thread whose number is one higher: name that one too.
        let mut n = Numbers::new(false);
        n.u32(1).u32(1).u32(tid).u32(2).u64(1).u64(1);
        records.extend(framed(false, 7, 0, &n.out));
    }
    records.extend(sample(5));
    assert_eq!(read(&pipe(attr(TIME), &records), false).events, 1);
}

#[test]
fn names_for_events_of_which_there_are_many() {
    // Every update searches the ids of the attributes before it.
    let mut bytes = pipe(attr(TIME | IDENTIFIER), &[]);
    for number in 0..1500u64 {
        let mut body = attr(TIME | IDENTIFIER).bytes(false, number);
        let mut ids = Numbers::new(false);
        ids.u64s(&(number * 100..number * 100 + 100).collect::<Vec<u64>>());
        body.extend(ids.out);
        bytes.extend(framed(false, 64, 0, &body));
    }
    for _ in 0..40_000 {
        let mut n = Numbers::new(false);
        // PERF_EVENT_UPDATE__NAME for the last id of all.
        n.u64(2)
            .u64(1500 * 100 - 1)
            .u64(u64::from_le_bytes(*b"the name"));
        bytes.extend(framed(false, 78, 0, &n.out));
    }
    assert!(read(&bytes, false).recording);
}

#[test]
fn zstd_frames_with_nothing_in_them() {
    // Each asks for a window of 128 MiB.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3, 1, 0, 0];
    assert!(!read(&frame.repeat(20_000), false).recording);
}

#[test]
fn gzip_members_with_nothing_in_them() {
    let member = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert!(!read(&member.repeat(20_000), false).recording);
}

/// Keeps whether code may run in mappings.
#[derive(Default)]
struct Mappings(Vec<bool>);

impl event::Sink for Mappings {
    fn wants(&mut self, _: &event::EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, _: &event::Event<'_>) -> std::ops::ControlFlow<()> {
        std::ops::ControlFlow::Continue(())
    }

    fn side(&mut self, side: &event::Side<'_>) {
        if let event::Side::Mmap { exec, .. } = side {
            self.0.push(*exec);
        }
    }
}

#[test]
fn a_mapping_is_executable_if_its_protection_says_so() {
    const DATA: u16 = 1 << 13;
    let mmap2 = |misc: u16, prot: u32| {
        let mut n = Numbers::new(false);
        n.u32(7).u32(7).u64(0x1000).u64(0x2000).u64(0);
        n.u64(0).u64(0).u64(0).u32(prot).u32(2);
        n.out.extend(b"//anon\0\0");
        n.u64(5);
        framed(false, 10, misc, &n.out)
    };
    // Read and write, once as the kernel gives it and once without the bit; read and execute, with and without.
    let records = [
        mmap2(2 | DATA, 3),
        mmap2(2, 3),
        mmap2(2, 5),
        mmap2(2 | DATA, 5),
        sample(9),
    ];
    let bytes = pipe(attr(TIME), &records.concat());
    let recording = RecordingBytes::from_bytes("a", bytes).expect("a recording");
    let reader = recording.reader(ReaderOptions::default());
    let mut mappings = Mappings::default();
    reader.expect("one").walk(&mut mappings);
    assert_eq!(mappings.0, [false, false, true, true]);
}

#[test]
fn events_are_counted_while_they_are_read_with_any_number_of_threads() {
    const COUNT: u64 = 1_000_000;
    let mut records = Vec::new();
    for n in 1..=COUNT {
        records.extend(sample(n));
        if n % 1000 == 0 {
            records.extend(framed(false, FINISHED_ROUND, 0, &[]));
        }
    }
    assert!(records.len() > 15 << 20);
    for threads in [1, 2] {
        let counted = Arc::new(AtomicU64::new(0));
        let counts = Arc::clone(&counted);
        let progress = ReadProgress::new(move |step| {
            if let ReadStep::Counted { kinds, lost } = step {
                assert_eq!((kinds.len(), lost), (1, 0));
                counts.fetch_add(kinds[0].1, Ordering::Relaxed);
            }
        });
        let options = OpenOptions {
            progress: Some(progress),
            ..OpenOptions::default()
        };
        let bytes = pipe(attr(TIME), &records);
        let recording = RecordingBytes::from_bytes_with("a", bytes, options);
        let recording = recording.expect("a recording");
        let options = ReaderOptions {
            threads,
            ..ReaderOptions::default()
        };
        let reader = recording.reader(options).expect("a perf.data");
        reader.walk(&mut All);
        // But for what is found behind the last megabytes.
        let counted = counted.load(Ordering::Relaxed);
        assert!((COUNT / 2..=COUNT).contains(&counted), "{counted}");
    }
}
