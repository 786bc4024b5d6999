//! A tally has every sample that is wanted, each before it goes out, and those of each CPU in the order of the file.

use std::ops::ControlFlow;

use perfdata::{PerfRecording, PerfVisitor, SampleTally, SampleWish, SideRecord, Totals};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::walk::{recordings, storage};
use crate::writer::*;

/// A sample: its attribute, its time, its thread and its CPU.
type SampleSight = (u32, u64, (i32, i32));

#[derive(Debug, Clone, Default)]
struct SeenSamples(Vec<SampleSight>, Vec<(u32, i32)>);

impl SampleTally for SeenSamples {
    fn seen(&mut self, attr: u32, time: u64, place: (i32, i32)) {
        self.0.push((attr, time, place));
    }

    fn lost(&mut self, _: i32) {}

    fn given_up(&mut self, attr: u32, cpu: i32) {
        self.1.push((attr, cpu));
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty() && self.1.is_empty()
    }

    fn clear(&mut self) {
        self.0.clear();
        self.1.clear();
    }
}

/// Collects what a walk hands out, and what its tally has.
#[derive(Default)]
struct Tallying {
    out: Vec<SampleSight>,
    seen: Vec<SampleSight>,
    given_up: Vec<(u32, i32)>,
    /// Whether some sample went out that no tally had.
    behind: bool,
}

impl PerfVisitor for Tallying {
    type Tally = SeenSamples;

    fn tally(&self) -> Option<SeenSamples> {
        Some(SeenSamples::default())
    }

    fn tallied(&mut self, tally: &mut SeenSamples) {
        self.seen.append(&mut tally.0);
        self.given_up.append(&mut tally.1);
    }

    fn sample(&mut self, sample: &perfdata::PerfSample<'_>) -> ControlFlow<()> {
        let one = (sample.attr, sample.time, (sample.tid, sample.cpu));
        self.behind |= !self.seen.contains(&one);
        self.out.push(one);
        ControlFlow::Continue(())
    }

    fn side(&mut self, _: u64, _: i32, _: u16, _: &SideRecord<'_>) {}
}

fn walk(data: &PerfRecording<'_>, threads: usize, wants: &[SampleWish]) -> (Tallying, Totals) {
    let mut found = Tallying::default();
    let totals = data.walk_on(threads, wants, &mut found);
    (found, totals)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_missing_and_nothing_comes_before_its_tally(
        recording in recordings(storage()),
        tallied in vec(any::<bool>(), 4),
        threads in 1..4u32,
    ) {
        let mut recording = recording;
        for item in &mut recording.items {
            if let Item::Kernel(record) = item {
                record.tid %= threads;
            }
        }
        let bytes = recording.write().bytes;
        let data = PerfRecording::parse(&bytes).unwrap();
        prop_assume!(!data.has_groups());
        let wants: Vec<SampleWish> = tallied
            .iter()
            .map(|tallied| match tallied {
                true => SampleWish::Tallied,
                false => SampleWish::OfThread,
            })
            .collect();
        let (all, totals) = walk(&data, 1, &[SampleWish::InOrder; 4]);
        let (one, of_one) = walk(&data, 1, &wants);
        let (two, of_two) = walk(&data, 2, &wants);
        prop_assert!(!all.behind && !one.behind && !two.behind);
        prop_assert_eq!((&totals, &totals), (&of_one, &of_two));
        // Whatever is handed out, and by how many threads, it is seen in the order of the file.
        prop_assert_eq!(&all.seen, &one.seen);
        prop_assert_eq!(&all.seen, &two.seen);
        let sorted = |list: &[SampleSight]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list
        };
        prop_assert_eq!(sorted(&all.seen), sorted(&all.out));
        let handed_out = |one: &&SampleSight| wants[one.0 as usize] != SampleWish::Tallied;
        let left: Vec<SampleSight> = all.out.iter().filter(handed_out).copied().collect();
        prop_assert_eq!(sorted(&left), sorted(&one.out));
    }
}

/// A sample that bytes follow which are no record is given up, where it waits: the tally has seen it, and hears of it.
#[test]
fn what_is_given_up_is_taken_from_the_tally() {
    let attr = Attr {
        sample_type: TIME | CPU,
        read_format: 0,
        sample_id_all: true,
        ids: Vec::new(),
    };
    let item = |time: u64| {
        Item::Kernel(Record {
            attr: 0,
            time,
            cpu: 3,
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
        attrs: vec![attr],
        items: vec![item(10), item(20), item(30)],
    };
    let written = recording.write();
    let mut bytes = written.bytes;
    let hole = written.ends[1];
    bytes.splice(hole..hole, [0; 48]);
    let data = PerfRecording::parse(&bytes).unwrap();
    for threads in [1, 2] {
        let (found, totals) = walk(&data, threads, &[SampleWish::InOrder]);
        let times: Vec<u64> = found.out.iter().map(|one| one.1).collect();
        assert_eq!((totals.holes, times), (1, vec![10, 30]));
        assert_eq!(totals.samples, [2]);
        assert_eq!((found.seen.len(), found.given_up), (3, vec![(0, 3)]));
        // Of one that is counted alone nobody has made use yet: it is one of those that happened.
        let (found, totals) = walk(&data, threads, &[SampleWish::Tallied]);
        assert_eq!(
            totals.samples,
            [found.seen.len() as u64 - found.given_up.len() as u64]
        );
    }
}
