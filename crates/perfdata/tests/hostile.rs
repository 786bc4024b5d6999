//! Files that perf does not write: each once broke the reader.

use crate::writer::*;

/// One event whose samples hold their time alone, 16 bytes a record.
fn timed() -> Attr {
    Attr {
        sample_type: TIME,
        read_format: 0,
        sample_id_all: true,
        ids: Vec::new(),
    }
}

fn sample(time: u64) -> Vec<u8> {
    let mut n = Numbers::new(false);
    n.u64(time);
    framed(false, 9, 0, &n.out)
}

/// Returns a pipe with these records.
fn pipe(records: &[u8]) -> Vec<u8> {
    let recording = Recording {
        big: false,
        pipe: true,
        storage: Storage::Plain,
        attrs: vec![timed()],
        items: Vec::new(),
    };
    let mut bytes = recording.write().bytes;
    bytes.extend(records);
    bytes
}

#[test]
fn records_behind_garbage_survive_where_there_are_too_many_for_the_index() {
    // More than are indexed, without rounds, so that they are walked again byte by byte.
    const COUNT: u64 = 1_100_000;
    let mut records = Vec::new();
    for time in 0..COUNT {
        records.extend(sample(1000 + time));
        if time % 100_000 == 50_000 {
            records.extend([0xff; 64]);
        }
    }
    let (out, totals, truncated) = walk(&pipe(&records));
    assert!(!truncated);
    assert_eq!((totals.skipped_bytes, totals.holes), (11 * 64, 11));
    let is_sample = |one: &&Out| matches!(one, Out::Sample { .. });
    // The record before a hole is taken for a part of it.
    let samples: Vec<u64> = out.iter().filter(is_sample).map(Out::time).collect();
    let kept = (0..COUNT).filter(|time| time % 100_000 != 50_000);
    assert!(samples.into_iter().eq(kept.map(|time| 1000 + time)));
    assert_eq!(totals.samples, [COUNT - 11]);
    // Each hole behind the record before that, and the last one once more at the end.
    let holes = out.iter().filter(|one| !is_sample(one)).map(Out::time);
    let behind = (0..11).map(|hole| 50_999 + hole * 100_000);
    assert!(holes.eq(behind.chain([1000 + COUNT - 1])));
}

#[test]
fn sizes_of_aux_data_add_up_to_no_more_than_a_number_holds() {
    let aux = |size: u64| {
        let mut n = Numbers::new(false);
        n.u64(size).u64s(&[0; 4]);
        framed(false, AUXTRACE, 0, &n.out)
    };
    let mut records = aux(16);
    records.extend([0; 16]);
    records.extend(sample(5));
    records.extend(aux(u64::MAX));
    let (out, totals, truncated) = walk(&pipe(&records));
    assert_eq!(out.len(), 1);
    assert!(truncated);
    assert_eq!(totals.aux_bytes, u64::MAX);
}

#[test]
fn lists_of_ids_hold_no_more_than_the_file() {
    let recording = Recording {
        big: false,
        pipe: false,
        storage: Storage::Plain,
        attrs: vec![
            Attr {
                ids: vec![1, 2, 3],
                sample_type: TIME | IDENTIFIER,
                ..timed()
            };
            100
        ],
        items: vec![Item::Round],
    };
    let mut bytes = recording.write().bytes;
    // Every attribute says that its ids are all the file.
    let len = bytes.len() as u64 / 8 * 8;
    let attrs_at = FILE_HEADER + 100 * 3 * 8;
    for attr in 0..100 {
        let at = attrs_at + attr * 152 + 136;
        bytes[at..at + 8].fill(0);
        bytes[at + 8..at + 16].copy_from_slice(&len.to_le_bytes());
    }
    let data = perfdata::PerfRecording::parse(&bytes).unwrap();
    let ids: usize = data.attrs().iter().map(|a| a.ids.len()).sum();
    assert_eq!(ids as u64, len / 8, "the first one's");
    assert_eq!(data.attrs().len(), 100);
    assert_eq!(data.diagnostics().len(), 99);
}

/// Attributes beyond the limit are not read, in a file and in a pipe, and that is said once.
#[test]
fn that_there_are_too_many_attributes_is_said() {
    const MOST: usize = 60_000;
    for pipe in [false, true] {
        for (attrs, said) in [(MOST, 0), (MOST + 2, 1)] {
            let recording = Recording {
                big: false,
                pipe,
                storage: Storage::Plain,
                attrs: vec![timed(); attrs],
                items: Vec::new(),
            };
            let bytes = recording.write().bytes;
            let data = perfdata::PerfRecording::parse(&bytes).unwrap();
            assert_eq!(data.attrs().len(), MOST);
            let all = data.diagnostics().iter().map(ToString::to_string);
            let about = all.filter(|text| text.contains("more than 60000 attributes"));
            assert_eq!(about.count(), said, "pipe: {pipe}, {attrs}");
        }
    }
}

#[test]
fn a_recording_that_ends_in_unwanted_samples_is_complete() {
    let attr = |id: u64| Attr {
        ids: vec![id],
        sample_type: TIME | IDENTIFIER,
        ..timed()
    };
    let record = |attr: usize, time: u64| {
        Item::Kernel(Record {
            attr,
            time,
            cpu: 0,
            pid: 1,
            tid: 1,
            misc: 0,
            body: Body::empty_sample(),
        })
    };
    let recording = Recording {
        big: false,
        pipe: true,
        storage: Storage::Plain,
        attrs: vec![attr(1), attr(2)],
        items: vec![record(0, 10), record(1, 11)],
    };
    let written = recording.write();
    let data = perfdata::PerfRecording::parse(&written.bytes).unwrap();
    let (out, totals) = walk_wanting(
        &data,
        &[perfdata::SampleWish::InOrder, perfdata::SampleWish::No],
    );
    assert!(!totals.truncated);
    assert_eq!((out.len(), totals.samples), (1, vec![1, 1]));
}

/// What a visitor hears of a recording with holes: times of samples, and of holes as negative numbers.
#[derive(Default)]
struct Collected(Vec<i64>);

impl perfdata::PerfVisitor for Collected {
    type Tally = ();

    fn sample(&mut self, sample: &perfdata::PerfSample<'_>) -> std::ops::ControlFlow<()> {
        self.0.push(sample.time.cast_signed());
        std::ops::ControlFlow::Continue(())
    }

    fn side(&mut self, time: u64, cpu: i32, _: u16, record: &perfdata::SideRecord<'_>) {
        if *record == perfdata::SideRecord::Skipped {
            assert_eq!(cpu, -1);
            self.0.push(-time.cast_signed());
        }
    }
}

#[test]
fn a_hole_is_reported_where_each_cpu_misses_something() {
    let round = framed(false, 68, 0, &[]);
    let mut records = Vec::new();
    // Two CPUs, one after the other in each round. The hole takes the end of what the first one had and the beginning
    // of the other's.
    records.extend(
        [
            sample(10),
            sample(20),
            sample(15),
            sample(25),
            round.clone(),
        ]
        .concat(),
    );
    // It begins in the middle of a record, which is given up.
    records.extend([sample(30), sample(32), sample(33)].concat());
    records.extend([0; 48]);
    records.extend([sample(48), round.clone()].concat());
    records.extend([sample(40), sample(60), sample(50), round].concat());
    let bytes = pipe(&records);
    let data = perfdata::PerfRecording::parse(&bytes).unwrap();
    for threads in [1, 2] {
        for want in [
            perfdata::SampleWish::InOrder,
            perfdata::SampleWish::OfThread,
        ] {
            let mut collected = Collected::default();
            let totals = data.walk_on(threads, &[want], &mut collected);
            assert_eq!((totals.holes, totals.skipped_bytes), (1, 48));
            let expected = [10, 15, 20, 25, -25, 30, 32, -32, 40, 48, -48, 50, 60];
            assert_eq!(collected.0, expected, "{threads} {want:?}");
        }
    }
}

/// Newer kernels and perfs add types one at a time, and say nothing of it in the header.
#[test]
fn records_of_a_type_that_came_later_are_passed_over_and_counted() {
    let mut records = sample(1000);
    for kind in [85, 86, 87, 99, 23] {
        records.extend(framed(false, kind, 0, &[7; 24]));
        records.extend(sample(1000 + u64::from(kind)));
    }
    let (out, totals, truncated) = walk(&pipe(&records));
    assert!(!truncated && out.len() == 6, "{out:?}");
    assert_eq!((totals.skipped_bytes, totals.holes), (0, 0));
    // perf 7.2 has 85 and 86.
    assert_eq!((totals.unknown_records, totals.unknown_kind), (3, 87));
}

/// What a filter leaves out is in a record of losses, with a bit that says so.
#[test]
fn samples_that_a_filter_left_out_are_not_lost() {
    let lost = |misc: u16, count: u64| {
        let mut body = Numbers::new(false);
        body.u64(count).u64(1000);
        framed(false, 13, misc, &body.out)
    };
    let mut records = sample(1000);
    records.extend(lost(1 << 15, 500));
    records.extend(lost(0, 3));
    let (_, totals, _) = walk(&pipe(&records));
    assert_eq!(totals.lost_samples, 3);
}

/// `PERF_RECORD_CALLCHAIN_DEFERRED`: the part of a stack that was walked when its thread went back to user space.
#[test]
fn stacks_that_come_later_are_read() {
    let mut recording = Recording {
        big: false,
        pipe: true,
        storage: Storage::Plain,
        attrs: vec![timed()],
        items: Vec::new(),
    };
    recording.attrs[0].sample_type |= TID;
    let mut body = Numbers::new(false);
    // Number, length, address, process and thread, time.
    body.u64(7).u64(1).u64(0x4000).u32(40).u32(41).u64(1000);
    let mut bytes = recording.write().bytes;
    bytes.extend(framed(false, 22, 2, &body.out));
    let (out, totals, _) = walk(&bytes);
    let [Out::Side { text, .. }] = out.as_slice() else {
        panic!("{out:?}");
    };
    assert!(
        text.starts_with("DeferredStack { tid: 41, cookie: 7,"),
        "{text}"
    );
    assert_eq!(totals.unknown_records, 0);
}
