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
    assert_eq!(totals.skipped_bytes, 11 * 64);
    assert_eq!(out.len() as u64, COUNT);
    assert!(out.iter().zip(1000..).all(|(o, time)| o.time() == time));
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
    let data = perfdata::PerfData::parse(&bytes).unwrap();
    let ids: usize = data.attrs().iter().map(|a| a.ids.len()).sum();
    assert_eq!(ids as u64, len / 8, "the first one's");
    assert_eq!(data.attrs().len(), 100);
    assert_eq!(data.diagnostics().len(), 99);
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
    let data = perfdata::PerfData::parse(&written.bytes).unwrap();
    let (out, totals) = walk_wanting(&data, &[perfdata::Want::InOrder, perfdata::Want::No]);
    assert!(!totals.truncated);
    assert_eq!((out.len(), totals.samples), (1, vec![1, 1]));
}
