//! Recordings written at random come back as they were written, in time order.

use crate::writer::*;
use perfdata::{PerfRecording, SampleWish};
use proptest::collection::vec;
use proptest::prelude::*;

/// Bits of `sample_type` that may be there or not.
const FREE: u64 = IP | TID | ADDR | READ | CALLCHAIN | CPU | PERIOD | STREAM_ID | RAW;

/// How samples find their event.
#[derive(Debug, Clone, Copy)]
enum Ids {
    /// One event, no ids.
    None,
    /// `ID`, so that all events have the same layout.
    Id,
    /// `IDENTIFIER`, so that layouts may differ.
    Identifier,
}

fn attrs() -> impl Strategy<Value = Vec<Attr>> {
    let ids = prop_oneof![Just(Ids::None), Just(Ids::Id), Just(Ids::Identifier)];
    // Ids are small and close together, or far apart, as after weeks of recording.
    let step = prop_oneof![Just(1u64), Just(1 << 40)];
    let each = (any::<u64>(), 0..32u64, 1..4usize);
    (ids, step, vec(each, 1..5), any::<bool>(), any::<bool>()).prop_map(
        |(ids, step, each, has_time, sample_id_all)| {
            let first = (each[0].0, each[0].1);
            let count = if matches!(ids, Ids::None) {
                1
            } else {
                each.len()
            };
            let mut next_id = 5;
            let attrs = each
                .into_iter()
                .take(count)
                .map(|(bits, format, ids_here)| {
                    let (bits, read_format) = match ids {
                        Ids::Identifier => (bits, format),
                        _ => first,
                    };
                    let mut sample_type = bits & FREE;
                    sample_type |= match ids {
                        Ids::None => 0,
                        Ids::Id => ID,
                        Ids::Identifier => IDENTIFIER | bits & ID,
                    };
                    if has_time {
                        sample_type |= TIME;
                    }
                    let ids = match ids {
                        Ids::None => Vec::new(),
                        _ => (0..ids_here)
                            .map(|_| {
                                next_id += step;
                                next_id
                            })
                            .collect(),
                    };
                    Attr {
                        sample_type,
                        read_format,
                        sample_id_all,
                        ids,
                    }
                });
            attrs.collect()
        },
    )
}

/// A record before its time is known: nanoseconds since the one before on its CPU, kind, event, and content.
type Draft = (u64, u8, usize, Vec<u64>, u16);

fn drafts() -> impl Strategy<Value = Vec<Vec<Vec<Draft>>>> {
    let record = (
        0..4u64,
        0..24u8,
        0..4usize,
        vec(any::<u64>(), 1..5),
        any::<u16>(),
    );
    // Rounds, CPUs of a round, records of a CPU.
    vec(vec(vec(record, 0..8), 1..5), 0..6)
}

fn body(kind: u8, words: &[u64]) -> Body {
    let name = || {
        let letters = words.iter().flat_map(|w| w.to_le_bytes());
        letters.map(|b| b'a' + b % 26).collect::<Vec<u8>>()
    };
    match kind {
        0 => Body::Comm(name()),
        1 => Body::Fork,
        2 => Body::Exit,
        3 => Body::Mmap(name()),
        4 => Body::Mmap2(name()),
        5 => Body::Ksymbol(name()),
        6 => Body::Lost(words[0] >> 8),
        7 => Body::LostSamples(words[0] >> 8),
        8 => Body::Aux,
        _ => {
            let mut raw: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            // With the length in front, the record stays a multiple of 8 bytes.
            raw.truncate(raw.len() - 4);
            Body::Sample {
                ip: words[0],
                addr: !words[0],
                period: words[0] >> 3,
                counters: words.to_vec(),
                callchain: words[1..].to_vec(),
                raw,
            }
        }
    }
}

/// How long a round lasts, in nanoseconds.
const ROUND: u64 = 20;

/// Gives the drafts times. A round reaches into the next one, and not further: what comes two rounds later is
/// newer, which is what `PERF_RECORD_FINISHED_ROUND` stands for.
fn items(
    rounds: Vec<Vec<Vec<Draft>>>,
    attrs: &[Attr],
    aux: Option<usize>,
    open_end: bool,
) -> Vec<Item> {
    let mut items = Vec::new();
    for (number, cpus) in rounds.into_iter().enumerate() {
        let begin = 1000 + number as u64 * ROUND;
        for (cpu, drafts) in cpus.into_iter().enumerate() {
            let mut time = begin;
            for (step, kind, attr, words, misc) in drafts {
                time = (time + step).min(begin + 2 * ROUND - 1);
                items.push(Item::Kernel(Record {
                    attr: attr % attrs.len(),
                    time,
                    cpu: cpu as u32,
                    pid: words[0] as u32 >> 8,
                    tid: words[0] as u32 >> 4,
                    misc,
                    body: body(kind, &words),
                }));
            }
        }
        if let Some(size) = aux {
            items.push(Item::AuxTrace(size * 8));
        }
        items.push(Item::Round);
    }
    if items.is_empty() {
        // perf takes a file whose header says that it has no data for one whose recorder was killed.
        items.push(Item::Round);
    } else if open_end && items.len() > 1 {
        items.pop();
    }
    items
}

pub(crate) fn storage() -> impl Strategy<Value = Storage> {
    let kind = || prop_oneof![Just(COMPRESSED), Just(COMPRESSED2)];
    prop_oneof![
        2 => Just(Storage::Plain),
        1 => (kind(), 1..700usize, 1..2000usize)
            .prop_map(|(kind, block, piece)| Storage::Endless { kind, block, piece }),
        1 => (kind(), 1..2000usize).prop_map(|(kind, piece)| Storage::Frames { kind, piece }),
    ]
}

pub(crate) fn recordings(
    storage: impl Strategy<Value = Storage>,
) -> impl Strategy<Value = Recording> {
    let aux = proptest::option::weighted(0.2, 0..40usize);
    let bits = (any::<bool>(), any::<bool>(), any::<bool>());
    (bits, storage, attrs(), drafts(), aux).prop_map(
        |((big, pipe, open_end), storage, attrs, drafts, aux)| Recording {
            big,
            pipe,
            storage,
            items: items(drafts, &attrs, aux, open_end),
            attrs,
        },
    )
}

/// Splits into what has a time and what has none. Records without are handed on at once: before whatever waits for
/// its turn.
fn split(out: Vec<Out>) -> (Vec<Out>, Vec<Out>) {
    out.into_iter().partition(|o| o.time() != 0)
}

/// Returns what has to come of these records: by time, those of equal time as in the file.
fn expected<'r>(
    records: impl Iterator<Item = &'r Record>,
    recording: &Recording,
) -> (Vec<Out>, Vec<Out>) {
    let all = records
        .filter_map(|r| Out::expected(r, recording))
        .collect();
    let (mut timed, untimed) = split(all);
    timed.sort_by_key(Out::time);
    (timed, untimed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_written_is_read_in_time_order(recording in recordings(storage())) {
        let written = recording.write();
        let (out, totals, truncated) = walk(&written.bytes);
        prop_assert!(!truncated, "{:?}", totals.diagnostics);
        prop_assert_eq!(split(out), expected(recording.records(), &recording));
        let samples = recording
            .records()
            .filter(|r| matches!(r.body, Body::Sample { .. }));
        let mut counts = vec![0; recording.attrs.len()];
        samples.for_each(|r| counts[r.attr] += 1);
        prop_assert_eq!(totals.samples, counts);
        let lost = |r: &Record| match r.body {
            Body::Lost(count) => (count, 0),
            Body::LostSamples(count) if r.misc & 1 << 15 == 0 => (0, count),
            _ => (0, 0),
        };
        let sum = recording.records().map(lost).fold((0u64, 0u64), |sum, (ring, samples)| {
            (sum.0 + ring, sum.1 + samples)
        });
        prop_assert_eq!((totals.lost_ring, totals.lost_samples), sum);
        let aux: usize = recording
            .items
            .iter()
            .map(|i| if let Item::AuxTrace(size) = i { *size } else { 0 })
            .sum();
        prop_assert_eq!(totals.aux_bytes, aux as u64);
        prop_assert_eq!((totals.unknown_id, totals.out_of_order, totals.skipped_bytes), (0, 0, 0));
    }

    #[test]
    fn events_that_are_not_wanted_are_counted_alone(
        recording in recordings(storage()),
        wanted in vec(any::<bool>(), 4),
    ) {
        let written = recording.write();
        let data = PerfRecording::parse(&written.bytes).unwrap();
        let wants = wanted.iter().map(|wanted| match wanted {
            true => SampleWish::InOrder,
            false => SampleWish::No,
        });
        let (out, totals) = walk_wanting(&data, &wants.collect::<Vec<_>>());
        let left = recording
            .records()
            .filter(|r| wanted[r.attr] || !matches!(r.body, Body::Sample { .. }));
        prop_assert!(!totals.truncated, "{:?}", totals.diagnostics);
        prop_assert_eq!(split(out), expected(left, &recording));
        let samples = recording.records().filter(|r| matches!(r.body, Body::Sample { .. }));
        prop_assert_eq!(totals.samples.iter().sum::<u64>(), samples.count() as u64);
    }

    #[test]
    fn a_cut_file_gives_every_record_before_the_cut(
        recording in recordings(Just(Storage::Plain)),
        place in any::<prop::sample::Index>(),
    ) {
        let written = recording.write();
        let data_end = written.ends.last().copied().unwrap_or(written.start);
        let cut = written.start + place.index(data_end - written.start + 1);
        let complete = recording
            .items
            .iter()
            .zip(&written.ends)
            .take_while(|(_, end)| **end <= cut)
            .filter_map(|(item, _)| if let Item::Kernel(r) = item { Some(r) } else { None });
        let expected = expected(complete, &recording);
        let (out, totals, truncated) = walk(&written.bytes[..cut]);
        prop_assert_eq!(split(out), expected);
        // A file's header says how long it should be; a pipe may end behind any record.
        let at_boundary = cut == written.start || written.ends.contains(&cut);
        prop_assert_eq!(truncated, !recording.pipe && written.bytes.len() > cut || !at_boundary);
        prop_assert_eq!(totals.skipped_bytes, 0);
    }

    #[test]
    fn a_killed_recorders_file_is_read_to_its_end(recording in recordings(storage())) {
        let mut recording = recording;
        recording.pipe = false;
        let mut written = recording.write();
        // No size of the data in the header, and no features behind it.
        written.bytes.truncate(written.bytes.len() - 28);
        written.bytes[48..56].fill(0);
        let (out, totals, truncated) = walk(&written.bytes);
        prop_assert!(truncated);
        prop_assert!(!totals.truncated, "all records are complete");
        prop_assert_eq!(split(out), expected(recording.records(), &recording));
    }

    #[test]
    fn compressed_data_that_is_cut_gives_nothing_but_what_was_written(
        recording in recordings(storage()),
        place in any::<prop::sample::Index>(),
    ) {
        let written = recording.write();
        let cut = written.start + place.index(written.bytes.len() - written.start + 1);
        let (out, _, _) = walk(&written.bytes[..cut]);
        let (timed, untimed) = split(out);
        prop_assert!(timed.is_sorted_by_key(Out::time));
        let (all_timed, all_untimed) = expected(recording.records(), &recording);
        prop_assert!(untimed.len() <= all_untimed.len());
        prop_assert_eq!(&untimed[..], &all_untimed[..untimed.len()]);
        let mut rest = all_timed.iter();
        prop_assert!(timed.iter().all(|o| rest.any(|e| e == o)));
    }

    #[test]
    fn no_order_of_times_loses_a_record(
        recording in recordings(Just(Storage::Plain)),
        times in vec(prop_oneof![0..50u64, any::<u64>()], 1..40),
    ) {
        let mut recording = recording;
        let mut next = times.iter().cycle();
        for item in &mut recording.items {
            if let (Item::Kernel(record), Some(&time)) = (item, next.next()) {
                record.time = time;
            }
        }
        let written = recording.write();
        let (out, totals, truncated) = walk(&written.bytes);
        prop_assert!(!truncated);
        // Which is late and which is not shows in the order alone: nothing else may differ.
        let mut late = 0;
        let mut newest = 0;
        for sample in out.iter().filter(|o| matches!(o, Out::Sample { .. })) {
            late += u64::from(sample.time() < newest);
            newest = newest.max(sample.time());
        }
        prop_assert_eq!(totals.out_of_order, late);
        let sorted = |mut out: Vec<Out>| {
            out.sort_by_key(|o| format!("{o:?}"));
            out
        };
        let all = recording.records().filter_map(|r| Out::expected(r, &recording)).collect();
        prop_assert_eq!(sorted(out), sorted(all));
    }

    #[test]
    fn bytes_at_random_are_no_reason_to_panic(
        big in any::<bool>(),
        head in 0..4u8,
        words in vec(prop_oneof![0..300u64, any::<u64>()], 0..300),
    ) {
        let mut n = Numbers::new(big);
        n.out.extend(magic(big));
        match head {
            0 => {}
            1 => drop(n.u64(16)),
            _ => drop(n.u64(104).u64(152).u64(104).u64(304).u64(408).u64(600)),
        }
        n.u64s(&words);
        if let Ok(data) = PerfRecording::parse(&n.out) {
            let (out, _) = walk_wanting(&data, &[]);
            prop_assert!(out.len() <= n.out.len() / 8);
        }
    }

    #[test]
    fn damaged_recordings_are_no_reason_to_panic(
        recording in recordings(storage()),
        damage in vec((any::<prop::sample::Index>(), prop_oneof![Just(0u8), Just(0xff), any::<u8>()]), 1..20),
    ) {
        let mut bytes = recording.write().bytes;
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(data) = PerfRecording::parse(&bytes) {
            walk_wanting(&data, &[]);
        }
    }
}

/// What the second last round ended with is all there once the last one is whole: perf has read every CPU's buffer
/// since.
#[test]
fn up_to_the_round_before_the_last_whole_one_nothing_is_missing() {
    let sample = |time: u64, cpu: u32| {
        Item::Kernel(Record {
            attr: 0,
            time,
            cpu,
            pid: 1,
            tid: 1,
            misc: 0,
            body: Body::empty_sample(),
        })
    };
    let rounds = [
        vec![sample(10, 0), sample(20, 0), sample(12, 1)],
        vec![sample(30, 0), sample(25, 1)],
        vec![sample(40, 0), sample(31, 1)],
    ];
    for (count, known) in [(0, 0), (1, 0), (2, 20), (3, 30)] {
        let mut items = Vec::new();
        for round in &rounds[..count] {
            items.extend(round.iter().cloned());
            items.push(Item::Round);
        }
        items.push(sample(50, 0));
        let recording = Recording {
            big: false,
            pipe: false,
            storage: Storage::Plain,
            attrs: vec![Attr {
                sample_type: TID | TIME | ID | CPU,
                read_format: 0,
                sample_id_all: true,
                ids: vec![1],
            }],
            items,
        };
        let bytes = recording.write().bytes;
        let data = PerfRecording::parse(&bytes).unwrap();
        let (_, totals) = walk_wanting(&data, &[SampleWish::InOrder]);
        assert_eq!(totals.whole_until, Some(known), "{count} rounds");
    }
}
