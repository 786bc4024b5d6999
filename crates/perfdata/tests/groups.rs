//! Sampled groups (`{a,b}:S`): a leader's sample is one of each event that counted anything since the last one, as
//! `perf script` prints them.

use std::ops::ControlFlow;

use perfdata::{PerfRecording, PerfSample, PerfVisitor, SampleWish, Totals};

use crate::writer::*;

/// `PERF_FORMAT_ID`.
const BY_ID: u64 = 1 << 2;
/// Ids of the leader on two CPUs, and of the member.
const LEADER: [u64; 2] = [10, 11];
const MEMBER: [u64; 2] = [12, 13];

/// Attribute, time, thread, period.
type Row = (u32, u64, i32, Option<u64>);

#[derive(Default)]
struct Rows {
    all: Vec<Row>,
    raw: Vec<bool>,
}

impl PerfVisitor for Rows {
    type Tally = ();

    fn sample(&mut self, sample: &PerfSample<'_>) -> ControlFlow<()> {
        self.all
            .push((sample.attr, sample.time, sample.tid, sample.period()));
        self.raw.push(sample.raw().is_some());
        ControlFlow::Continue(())
    }
}

/// What a leader's sample says: on which CPU, when, of which thread, and what both have counted.
struct Counted(usize, u64, u32, u64, u64);

fn recording(big: bool, inherit: bool, samples: &[Counted]) -> Vec<u8> {
    let sample_type = IDENTIFIER | TID | TIME | READ | CPU | PERIOD | RAW;
    let mut head = Numbers::new(big);
    head.out.extend(magic(big));
    head.u64(16);
    for (config, ids) in [LEADER, MEMBER].into_iter().enumerate() {
        let attr = Attr {
            sample_type,
            read_format: GROUP | BY_ID,
            sample_id_all: true,
            ids: ids.to_vec(),
        };
        let mut body = attr.bytes(big, config as u64);
        if config == 1 {
            // A member has no samples of its own.
            body[16..24].fill(0);
        }
        if inherit {
            // The second flag; bit fields fill words from the other end on big-endian machines.
            body[40] |= if big { 1 << 6 } else { 1 << 1 };
        }
        let mut listed = Numbers::new(big);
        listed.u64s(&ids);
        body.extend(listed.out);
        head.out.extend(framed(big, 64, 0, &body));
    }
    for &Counted(cpu, time, tid, leader, member) in samples {
        let mut n = Numbers::new(big);
        n.u64(LEADER[cpu]).u32(1).u32(tid).u64(time);
        n.u32(cpu as u32).u32(0).u64(4000);
        n.u64(2).u64s(&[leader, LEADER[cpu], member, MEMBER[cpu]]);
        n.u32(4).u32(0xdead);
        head.out.extend(framed(big, 9, 2, &n.out));
    }
    head.out
}

fn rows(bytes: &[u8], threads: usize, wanted: &[SampleWish]) -> (Rows, Totals) {
    let data = PerfRecording::parse(bytes).expect("a header that can be read");
    let mut rows = Rows::default();
    let totals = data.walk_on(threads, wanted, &mut rows);
    (rows, totals)
}

const SAMPLES: [Counted; 4] = [
    Counted(0, 100, 7, 4000, 3),
    Counted(1, 110, 8, 4000, 0),
    Counted(0, 200, 7, 9000, 3),
    Counted(0, 300, 8, 9500, 8),
];

#[test]
fn a_member_has_a_sample_where_it_counted_something() {
    for big in [false, true] {
        let bytes = recording(big, false, &SAMPLES);
        let expected = [
            (0, 100, 7, Some(4000)),
            (1, 100, 7, Some(3)),
            (0, 110, 8, Some(4000)),
            (0, 200, 7, Some(5000)),
            (0, 300, 8, Some(500)),
            (1, 300, 8, Some(5)),
        ];
        for threads in [1, 2] {
            let (rows, totals) = rows(&bytes, threads, &[]);
            assert_eq!(rows.all, expected);
            assert_eq!(totals.samples, [4, 2]);
            // What the leader recorded besides is not the members'.
            assert_eq!(rows.raw, [true, false, true, true, true, false]);
        }
    }
}

#[test]
fn members_are_counted_and_come_without_their_leader() {
    let bytes = recording(false, false, &SAMPLES);
    let wanted = [SampleWish::No, SampleWish::AnyOrder];
    let (members, totals) = rows(&bytes, 1, &wanted);
    assert_eq!(members.all, [(1, 100, 7, Some(3)), (1, 300, 8, Some(5))]);
    assert_eq!(totals.samples, [4, 2]);
    let (none, totals) = rows(&bytes, 1, &[SampleWish::No; 2]);
    assert!(none.all.is_empty());
    assert_eq!(totals.samples, [4, 2]);
}

#[test]
fn inherited_events_count_by_thread() {
    let (rows, _) = rows(&recording(false, true, &SAMPLES), 1, &[]);
    let of_8 = rows.all.iter().filter(|row| row.2 == 8 && row.1 == 300);
    let of_8: Vec<_> = of_8.copied().collect();
    assert_eq!(of_8, [(0, 300, 8, Some(9500)), (1, 300, 8, Some(8))]);
}

#[test]
fn pieces_go_on_from_what_was_counted() {
    let whole = recording(true, false, &SAMPLES);
    let head = recording(true, false, &[]);
    let data = PerfRecording::parse(&head).expect("a header that can be read");
    let mut pieces = data.pieces();
    let mut found = Rows::default();
    let mut samples = [0, 0];
    // Each sample is a piece, with the end of a round behind it.
    let size = (whole.len() - head.len()) / SAMPLES.len();
    for piece in whole[head.len()..].chunks(size) {
        let mut piece = piece.to_vec();
        piece.extend(framed(true, FINISHED_ROUND, 0, &[]));
        let totals = pieces.walk(&std::sync::Arc::new(piece), &mut found);
        samples[0] += totals.samples[0];
        samples[1] += totals.samples[1];
    }
    samples[1] += pieces.finish(&mut found).samples[1];
    assert_eq!(found.all, rows(&whole, 1, &[]).0.all);
    assert_eq!(samples, [4, 2]);
}

#[test]
fn a_sample_that_is_cut_gives_what_it_has() {
    let bytes = recording(false, false, &SAMPLES);
    for count in [0, 1, 3, u64::MAX] {
        let mut odd = bytes.clone();
        // The number of values of the last sample: two values and the tracepoint's record stand behind it.
        let at = odd.len() - 8 - 4 * 8 - 8;
        odd[at..at + 8].copy_from_slice(&count.to_le_bytes());
        let (rows, _) = rows(&odd, 1, &[]);
        assert_eq!(rows.all.len() as u64, 4 + count.min(2), "{count}");
    }
}

#[test]
fn counters_beyond_those_that_are_followed_are_said() {
    // Of an event that is inherited each thread has its own: 265 threads of 4,000 ids are more than 2^20.
    let members: Vec<u64> = (100..4_100).collect();
    let sample_type = IDENTIFIER | TID | TIME | READ;
    let mut bytes = Numbers::new(false);
    bytes.out.extend(magic(false));
    bytes.u64(16);
    for (config, ids) in [&LEADER[..], &members].into_iter().enumerate() {
        let attr = Attr {
            sample_type,
            read_format: GROUP | BY_ID,
            sample_id_all: true,
            ids: ids.to_vec(),
        };
        let mut body = attr.bytes(false, config as u64);
        if config == 1 {
            body[16..24].fill(0);
        }
        body[40] |= 1 << 1;
        let mut listed = Numbers::new(false);
        listed.u64s(ids);
        body.extend(listed.out);
        bytes.out.extend(framed(false, 64, 0, &body));
    }
    let sample = |tid: u32, time: u64, counted: u64| {
        let mut n = Numbers::new(false);
        n.u64(LEADER[0]).u32(1).u32(tid).u64(time);
        n.u64(1 + members.len() as u64).u64s(&[5, LEADER[0]]);
        for id in &members {
            n.u64s(&[counted, *id]);
        }
        framed(false, 9, 2, &n.out)
    };
    for tid in 0..265 {
        let sample = sample(tid, 100 + u64::from(tid), 7);
        bytes.out.extend(sample);
    }
    let (first, totals) = rows(&bytes.out, 1, &[]);
    assert_eq!(totals.samples[0], 265);
    let followed = (1 << 20) - 264;
    let of_members = |rows: &Rows| rows.all.iter().filter(|row| row.0 == 1).count();
    // The last thread's leader is followed no more either.
    assert!((followed..followed + 8).contains(&of_members(&first)));
    let said = |totals: &Totals| {
        totals
            .diagnostics
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let said_first = said(&totals);
    assert!(
        said_first.len() == 1
            && said_first[0].contains("more than 1048576 counters of sampled groups"),
        "{said_first:?}"
    );
    // Those that are followed go on.
    let again = sample(3, 1_000, 9);
    bytes.out.extend(again);
    let (second, _) = rows(&bytes.out, 1, &[]);
    assert_eq!(of_members(&second), of_members(&first) + 4_000);
    assert_eq!(second.all.last().and_then(|row| row.3), Some(2));
}
