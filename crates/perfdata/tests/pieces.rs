//! Records that come in pieces are walked as the whole recording is: the same ones, in the same order, each as soon as
//! it is settled.

use std::ops::Range;
use std::sync::Arc;

use perfdata::{PerfPieces, PerfRecording, SampleWish, Totals};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::walk::recordings;
use crate::writer::*;

/// What a walk over pieces gave.
#[derive(Default)]
struct Walked {
    out: Vec<Out>,
    /// How much of it there was behind each piece.
    behind: Vec<usize>,
    /// Whether each piece was still needed behind the next one.
    kept: Vec<bool>,
    samples: Vec<u64>,
    lost: [u64; 3],
    out_of_order: u64,
    aux_bytes: u64,
    skipped: u64,
}

impl Walked {
    fn add(&mut self, totals: &Totals) {
        self.samples.resize(totals.samples.len(), 0);
        for (sum, count) in self.samples.iter_mut().zip(&totals.samples) {
            *sum += count;
        }
        self.lost[0] += totals.lost_ring;
        self.lost[1] += totals.lost_records;
        self.lost[2] += totals.lost_samples;
        self.out_of_order += totals.out_of_order;
        self.aux_bytes += totals.aux_bytes;
        self.skipped += totals.skipped_bytes;
    }
}

/// Walks a head, and then these pieces.
fn walk_pieces(head: &[u8], pieces: &[&[u8]], wanted: &[SampleWish]) -> Walked {
    let head = PerfRecording::parse(head).expect("a header that can be read");
    let mut walk = head.pieces();
    walk.want(wanted);
    let (mut walked, mut collect) = (Walked::default(), Collect::default());
    let mut before: Option<Arc<Vec<u8>>> = None;
    for piece in pieces {
        let piece = Arc::new(piece.to_vec());
        let totals = walk.walk(&piece, &mut collect);
        walked.add(&totals);
        if let Some(before) = before.replace(piece) {
            walked.kept.push(Arc::strong_count(&before) > 1);
        }
        walked.behind.push(collect.0.len());
        check_settled(&walk, &collect.0);
    }
    let totals = walk.finish(&mut collect);
    walked.add(&totals);
    walked.out = collect.0;
    walked
}

/// What was pushed is settled.
fn check_settled(walk: &PerfPieces<'_, '_>, out: &[Out]) {
    let newest = out.iter().map(Out::time).max().unwrap_or(0);
    assert!(newest <= walk.settled(), "{newest} > {}", walk.settled());
    assert!(walk.settled() <= walk.newest());
}

/// Returns the items behind the first `own` ones, cut into pieces of so many items, again and again.
fn cuts(written: &Written, own: usize, sizes: &[usize]) -> Vec<Range<usize>> {
    let mut ends = written.ends[own..].iter();
    let mut start = match own {
        0 => written.start,
        _ => written.ends[own - 1],
    };
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        // A piece may be empty, as where all rings were.
        let end = match size.checked_sub(1) {
            Some(more) => ends.nth(more.min(ends.len().saturating_sub(1))),
            None => Some(&start),
        };
        let Some(end) = end else { break };
        pieces.push(start..*end);
        start = *end;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_give_what_the_whole_gives(
        recording in recordings(Just(Storage::Plain)),
        own in 1..4usize,
        sizes in vec(0..9usize, 1..12),
        unwanted in any::<bool>(),
        times in proptest::option::of(vec(0..30u64, 1..40)),
    ) {
        prop_assume!(sizes.iter().any(|size| *size > 0) && !recording.items.is_empty());
        let mut recording = recording;
        if let Some(times) = times {
            // Some of it comes later than a round is long.
            let mut next = times.iter().cycle();
            let mut round = 0;
            for item in &mut recording.items {
                match item {
                    Item::Kernel(record) => {
                        record.time = round * 10 + next.next().unwrap_or(&0);
                    }
                    _ => round += 1,
                }
            }
        }
        let written = recording.write();
        let own = own.min(recording.items.len());
        let head = Recording {
            items: recording.items[..own].to_vec(),
            ..recording.clone()
        };
        let wanted: &[SampleWish] = match unwanted {
            true => &[SampleWish::No],
            false => &[SampleWish::OfThread],
        };
        let cuts = cuts(&written, own, &sizes);
        let pieces: Vec<&[u8]> = cuts.iter().map(|cut| &written.bytes[cut.clone()]).collect();
        let walked = walk_pieces(&head.write().bytes, &pieces, wanted);

        let data = PerfRecording::parse(&written.bytes).expect("a header that can be read");
        let in_order: &[SampleWish] = if unwanted { wanted } else { &[] };
        let (out, totals) = walk_wanting(&data, in_order);
        prop_assert_eq!(&walked.out, &out);
        prop_assert_eq!(&walked.samples, &totals.samples);
        let lost = [totals.lost_ring, totals.lost_records, totals.lost_samples];
        prop_assert_eq!(walked.lost, lost);
        prop_assert_eq!(walked.out_of_order, totals.out_of_order);
        prop_assert_eq!((walked.aux_bytes, walked.skipped), (totals.aux_bytes, 0));
    }
}

/// Two CPUs whose rings are read one after the other: what the second one has is newer than some of what the first one
/// has in the next round.
fn rounds(count: u64) -> Recording {
    let attr = Attr {
        sample_type: TID | TIME | ID | CPU,
        read_format: 0,
        sample_id_all: true,
        ids: vec![1],
    };
    let sample = |time: u64, cpu: u32| {
        Item::Kernel(Record {
            attr: 0,
            time,
            cpu,
            pid: 7,
            tid: 7,
            misc: 0,
            body: Body::empty_sample(),
        })
    };
    let mut items = Vec::new();
    for round in 0..count {
        let first = 1 + round * 10;
        items.extend((first..first + 10).map(|at| sample(2 * at, 0)));
        items.extend((first + 5..first + 15).map(|at| sample(2 * at + 1, 1)));
        items.push(Item::Round);
    }
    Recording {
        big: false,
        pipe: false,
        storage: Storage::Plain,
        attrs: vec![attr],
        items,
    }
}

/// The same without any record: a file that says that it has no data is one whose recorder was killed.
fn head() -> Recording {
    Recording {
        items: vec![Item::Round],
        ..rounds(0)
    }
}

#[test]
fn a_round_goes_out_with_the_next_one() {
    let (head, written) = (head(), rounds(5).write());
    let cuts = cuts(&written, 0, &[21]);
    let mut pieces: Vec<&[u8]> = cuts.iter().map(|cut| &written.bytes[cut.clone()]).collect();
    // A round in which there was nothing.
    let nothing = framed(false, FINISHED_ROUND, 0, &[]);
    pieces.push(&nothing);
    let walked = walk_pieces(&head.write().bytes, &pieces, &[]);
    // With a round goes all that is no newer than the newest of the round before: ten more of the first CPU, as far as
    // it came, and all of the second one's.
    assert_eq!(walked.behind, [0, 25, 45, 65, 85, 100]);
    let times: Vec<u64> = walked.out.iter().map(Out::time).collect();
    assert!(times.is_sorted());
    // A piece goes when the next one has come.
    assert_eq!(walked.kept, [false; 5]);
}

#[test]
fn a_broken_piece_loses_its_rest_and_no_other() {
    let (head, written) = (head(), rounds(3).write());
    let cuts = cuts(&written, 0, &[21]);
    let mut pieces: Vec<Vec<u8>> = cuts
        .iter()
        .map(|cut| written.bytes[cut.clone()].to_vec())
        .collect();
    let record = (pieces[1].len() - 8) / 20;
    // Its size is less than that of a header.
    pieces[1][10 * record + 6..][..2].fill(0);
    let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    let walked = walk_pieces(&head.write().bytes, &pieces, &[]);
    assert_eq!(walked.out.len(), 50);
    assert_eq!(walked.skipped, 10 * record as u64 + 8);
}
