//! Files that are cut off: every whole record before the cut is there, and what is missing is said.

use crate::writer::{BufferSpec, FileSpec, Machine, Pack, Page};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tracedat::{RingRecord, TraceDat, TraceVisitor, WalkEnd};

/// The records of each CPU of each buffer, by the number in them.
#[derive(Debug, Default)]
pub(crate) struct ByCpu(pub(crate) Numbers);

impl TraceVisitor for ByCpu {
    fn record(&mut self, r: &RingRecord<'_>) -> ControlFlow<()> {
        let value = r.data[8..12].try_into().unwrap();
        self.0
            .entry((r.buffer, r.cpu))
            .or_default()
            .push(u32::from_le_bytes(value));
        ControlFlow::Continue(())
    }
}

pub(crate) type Numbers = BTreeMap<(u16, u32), Vec<u32>>;

pub(crate) fn walk(data: &[u8]) -> (Numbers, WalkEnd, bool, Vec<String>) {
    let file = TraceDat::parse(data).unwrap();
    let mut seen = ByCpu::default();
    let end = file.walk(&[], &mut seen);
    let reported = file
        .diagnostics()
        .iter()
        .chain(&end.diagnostics)
        .map(|d| d.to_string())
        .collect();
    (seen.0, end, file.truncated(), reported)
}

/// Pages of a CPU whose records carry numbers from `first` on; `count` pages of three records.
fn pages(m: Machine, start: u64, first: u32, count: u32) -> Vec<Page> {
    (0..count)
        .map(|n| {
            let mut page = Page::new(m, start + 1000 * u64::from(n));
            for r in 0..3 {
                page = page.record(10, &m.payload(300, 1, first + 3 * n + r));
            }
            page
        })
        .collect()
}

/// What the kernel says of a CPU with so many events.
fn stats(cpu: u32, read: u32) -> Vec<u8> {
    format!(
        "CPU: {cpu}\nentries: 1\noverrun: 0\nread events: {}\n\0",
        read - 1
    )
    .into_bytes()
}

/// Three CPUs with data, of which the third begins later than the second ends; CPU 1 has none.
fn spec(m: Machine) -> FileSpec {
    let (a, b, c) = (
        pages(m, 500, 0, 4),
        pages(m, 100, 100, 5),
        pages(m, 90_000, 200, 3),
    );
    let top = BufferSpec::new("", &[(0, &a), (1, &[]), (2, &b), (3, &c)]);
    let instance = BufferSpec::new(
        "inst",
        &[(0, &pages(m, 700, 300, 2)), (1, &[]), (2, &[]), (3, &[])],
    );
    FileSpec::new(m, vec![top, instance])
}

pub(crate) fn with_stats(m: Machine) -> FileSpec {
    let idle = "CPU: 1\nentries: 0\noverrun: 0\nread events: 0\n\0";
    spec(m)
        .option(2, stats(0, 12))
        .option(2, idle)
        .option(2, stats(2, 15))
        .option(2, stats(3, 9))
}

fn expected() -> Numbers {
    BTreeMap::from([
        ((0, 0), (0..12).collect()),
        ((0, 2), (100..115).collect()),
        ((0, 3), (200..209).collect()),
        ((1, 0), (300..306).collect()),
    ])
}

/// Where each CPU's data lies in a whole file.
fn places(data: &[u8]) -> Vec<((u16, u32), usize, usize)> {
    let file = TraceDat::parse(data).unwrap();
    let mut out = Vec::new();
    for (index, buffer) in file.info().buffers.iter().enumerate() {
        for cpu in buffer.cpus.iter().filter(|c| c.size > 0) {
            out.push((
                (index as u16, cpu.cpu),
                cpu.offset as usize,
                cpu.size as usize,
            ));
        }
    }
    out
}

/// How many records of uncompressed data end before a cut.
fn whole_records(place: (usize, usize), cut: usize) -> usize {
    let (offset, size) = place;
    let there = cut.clamp(offset, offset + size) - offset;
    // Three records of 16 bytes after a header of 16.
    let (pages, rest) = (there / 4096, there % 4096);
    3 * pages + rest.saturating_sub(16).min(48) / 16
}

#[test]
fn uncompressed_files_keep_every_whole_record_wherever_they_are_cut() {
    let m = Machine::default();
    let spec = with_stats(m);
    for (data, v7) in [(spec.v6(), false), (spec.v7(), true)] {
        let (all, end, truncated, reported) = walk(&data);
        assert_eq!(all, expected());
        assert!(
            !truncated && !end.truncated && reported.is_empty(),
            "{reported:?}"
        );
        let places = places(&data);
        let first = places.iter().map(|p| p.1).min().unwrap();
        for cut in (0..data.len()).filter(|cut| cut % 509 == 0 || cut % 4096 < 80) {
            if cut < 80 {
                let _ = TraceDat::parse(&data[..cut]);
                continue;
            }
            let (seen, end, truncated, reported) = walk(&data[..cut]);
            assert!(truncated, "cut at {cut}");
            assert!(!reported.is_empty(), "cut at {cut}");
            let file = TraceDat::parse(&data[..cut]).unwrap();
            let nothing = file.ends_before_data();
            assert!(nothing || cut > first, "cut at {cut}");
            assert!(!nothing || seen.is_empty(), "cut at {cut}");
            assert!(!nothing || cut < first + 16, "cut at {cut}");
            // An instance's data has a place of its own behind all of the top buffer's.
            let of_top = places.iter().filter(|p| p.0.0 == 0);
            let last = of_top.map(|p| p.1 + p.2).max().unwrap();
            if cut >= first && cut < last {
                assert!(end.uneven_from.is_some(), "v7 {v7}, cut at {cut}");
            }
            for &(key, offset, size) in &places {
                let count = if cut >= first {
                    whole_records((offset, size), cut)
                } else {
                    0
                };
                let seen = seen.get(&key).map_or(&[][..], |s| s);
                assert_eq!(
                    seen,
                    &expected()[&key][..count],
                    "v7 {v7}, cut at {cut}, {key:?}"
                );
            }
        }
    }
}

#[test]
fn compressed_files_keep_every_whole_chunk_wherever_they_are_cut() {
    let m = Machine::default();
    for pack in [Pack::Zlib, Pack::Zstd] {
        let mut spec = with_stats(m).pack(pack);
        spec.chunk = 2;
        let data = spec.v7();
        let (all, end, truncated, reported) = walk(&data);
        assert_eq!(all, expected());
        assert!(
            !truncated && !end.truncated && reported.is_empty(),
            "{reported:?}"
        );
        let places = places(&data);
        let first = places.iter().map(|p| p.1).min().unwrap();
        for cut in (first..data.len()).filter(|cut| cut % 61 == 0) {
            let (seen, _, truncated, reported) = walk(&data[..cut]);
            assert!(truncated && !reported.is_empty(), "cut at {cut}");
            for &(key, offset, size) in &places {
                // Count the chunks that are whole; each has two pages but for a last one.
                let mut at = offset + 4;
                let mut chunks = 0;
                while at < offset + 4 + size {
                    let packed = u32::from_le_bytes(data[at..at + 4].try_into().unwrap()) as usize;
                    at += 8 + packed;
                    chunks += usize::from(at <= cut);
                }
                let all = &expected()[&key];
                let count = (6 * chunks).min(all.len());
                let seen = seen.get(&key).map_or(&[][..], |s| s);
                assert_eq!(seen, &all[..count], "{pack:?}, cut at {cut}, {key:?}");
            }
        }
    }
}

#[test]
fn the_last_list_of_options_may_be_all_that_is_missing() {
    let m = Machine::default();
    for pack in [Pack::None, Pack::Zlib] {
        let mut spec = with_stats(m).pack(pack);
        spec.buffers.truncate(1);
        let data = spec.v7();
        let (seen, _, truncated, reported) = walk(&data[..data.len() - 30]);
        assert!(truncated);
        let mut all = expected();
        all.remove(&(1, 0));
        assert_eq!(seen, all, "{pack:?} {reported:?}");
        let file = TraceDat::parse(&data[..data.len() - 30]).unwrap();
        assert!(file.info().buffers[0].recovered);
        assert!(
            reported
                .iter()
                .any(|t| t.contains("list of this buffer's CPU data is missing")),
            "{reported:?}"
        );
    }
}

#[test]
fn without_counts_a_cpu_ends_where_time_goes_back() {
    let m = Machine::default();
    let mut spec = spec(m);
    spec.buffers.truncate(1);
    let data = spec.v7();
    let (seen, ..) = walk(&data[..data.len() - 30]);
    // The third CPU's pages are later than the second's, and no count says that it begins there.
    let numbers: Vec<(u32, usize)> = seen.iter().map(|(key, list)| (key.1, list.len())).collect();
    assert_eq!(numbers, [(0, 12), (1, 24)]);
    // Chunks tell where each CPU ends, whatever the times.
    let data = spec.pack(Pack::Zstd).v7();
    let (seen, ..) = walk(&data[..data.len() - 30]);
    let numbers: Vec<(u32, usize)> = seen.iter().map(|(key, list)| (key.1, list.len())).collect();
    assert_eq!(numbers, [(0, 12), (1, 15), (2, 9)]);
}

#[test]
fn looking_for_cpus_gives_back_what_it_looked_at() {
    let m = Machine::default();
    let many = pages(m, 0, 0, 700);
    for pack in [Pack::None, Pack::Zlib] {
        let mut spec = FileSpec::new(m, vec![BufferSpec::new("", &[(0, &many)])]).pack(pack);
        spec.chunk = 1;
        let mut data = spec.v7();
        let place = places(&data)[0];
        data.truncate(data.len() - 30);
        let mut given = 0;
        let mut at = 0;
        TraceDat::parse_with(&data, &mut |range| {
            assert!(range.start >= at && range.end <= data.len());
            at = range.end;
            given += range.len();
        })
        .unwrap();
        assert!(
            given + (1 << 20) + 4096 >= place.2,
            "{given} of {}",
            place.2
        );
    }
}

#[test]
fn a_file_with_nothing_but_its_start_is_no_error() {
    let m = Machine::default();
    let data = spec(m).v7();
    let file = TraceDat::parse(&data[..40]).unwrap();
    assert!(file.truncated());
    assert!(file.info().buffers.is_empty());
    let text: Vec<_> = file.diagnostics().iter().map(|d| d.to_string()).collect();
    assert!(text[0].contains("the file ends before"), "{text:?}");
    let data = spec(m).v6();
    let file = TraceDat::parse(&data[..40]).unwrap();
    assert!(file.truncated());
}

/// CPUs stand one behind another: what the first one recorded is there, and of the last one nothing.
#[test]
fn a_cut_takes_the_end_of_one_cpu_and_all_of_those_behind_it() {
    let m = Machine::default();
    let mut spec = spec(m);
    spec.buffers.truncate(1);
    let (v6, v7) = (spec.v6(), spec.v7());
    let whole = |data: &[u8]| walk(data).1.uneven_from;
    assert_eq!((whole(&v6), whole(&v7)), (None, None));
    let of = |cpu: u32| places(&v6).into_iter().find(|p| p.0.1 == cpu).unwrap();
    // Within the last CPU's second page: that ends there, and all others are whole.
    let (_, offset, _) = of(3);
    assert_eq!(whole(&v6[..offset + 4096 + 20]), Some(91_010));
    assert_eq!(whole(&v6[..offset + 4096]), Some(90_030));
    // Within the one before it: of the last one nothing is left.
    let (_, offset, _) = of(2);
    assert_eq!(whole(&v6[..offset + 4096 + 20]), Some(0));
    // Without the list of CPUs nobody knows how many there were.
    let (_, offset, _) = places(&v7).into_iter().max_by_key(|p| p.1).unwrap();
    assert_eq!(whole(&v7[..offset + 4096 + 20]), Some(0));
}
