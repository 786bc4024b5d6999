//! A walk with two threads is the same as with one, wherever it ends. That it is when it goes on to the end is seen in
//! all other tests: `walk_wanting` walks with both.

use std::ops::{ControlFlow, Range};

use perfdata::{PerfRecording, PerfVisitor, SampleWish, SideRecord, Totals};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::walk::recordings;
use crate::writer::*;

/// Collects so many samples, and then wants no more. Pages that are released belong to it too.
struct Part {
    samples: usize,
    collect: Collect,
    released: Vec<Range<usize>>,
}

impl PerfVisitor for Part {
    type Tally = ();

    fn sample(&mut self, sample: &perfdata::PerfSample<'_>) -> ControlFlow<()> {
        if self.samples == 0 {
            return ControlFlow::Break(());
        }
        self.samples -= 1;
        self.collect.sample(sample)
    }

    fn side(&mut self, time: u64, cpu: i32, misc: u16, record: &SideRecord<'_>) {
        self.collect.side(time, cpu, misc, record);
    }

    fn release(&mut self, range: Range<usize>) {
        self.released.push(range);
    }
}

fn part(
    data: &PerfRecording<'_>,
    threads: usize,
    wants: &[SampleWish],
    samples: usize,
) -> (Part, Totals) {
    let mut part = Part {
        samples,
        collect: Collect::default(),
        released: Vec::new(),
    };
    let totals = data.walk_on(threads, wants, &mut part);
    (part, totals)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_walk_that_is_ended_is_the_same(
        recording in recordings(Just(Storage::Plain)),
        wants in vec(prop_oneof![Just(SampleWish::No), Just(SampleWish::InOrder), Just(SampleWish::OfThread)], 4),
        samples in 0..30usize,
        times in vec(0..80u64, 1..40),
    ) {
        let mut recording = recording;
        let mut next = times.iter().cycle();
        for item in &mut recording.items {
            if let (Item::Kernel(record), Some(&time)) = (item, next.next()) {
                record.time = time;
                record.tid %= 3;
            }
        }
        let written = recording.write();
        let data = PerfRecording::parse(&written.bytes).unwrap();
        let (one, counted) = part(&data, 1, &wants, samples);
        let (two, also) = part(&data, 2, &wants, samples);
        prop_assert_eq!(one.collect.0, two.collect.0);
        prop_assert_eq!(counted, also);
    }
}

#[test]
fn a_long_walk_is_ended_anywhere() {
    let attr = |id: u64| Attr {
        sample_type: TID | TIME | ID | CPU,
        read_format: 0,
        sample_id_all: true,
        ids: vec![id],
    };
    let sample = |number: u64, cpu: u32| {
        Item::Kernel(Record {
            attr: usize::from(number.is_multiple_of(3)),
            time: 10 * number + u64::from(cpu),
            cpu,
            pid: 7,
            tid: 7 + (number / 1_000) as u32 % 2,
            misc: 0,
            body: Body::empty_sample(),
        })
    };
    let mut items = Vec::new();
    for round in 0..10u64 {
        for cpu in 0..4 {
            let numbers = round * 20_000..(round + 1) * 20_000;
            items.extend(numbers.map(|number| sample(number, cpu)));
        }
        items.push(Item::Round);
    }
    let recording = Recording {
        big: false,
        pipe: false,
        storage: Storage::Plain,
        attrs: vec![attr(1), attr(2)],
        items,
    };
    let bytes = recording.write().bytes;
    let data = PerfRecording::parse(&bytes).unwrap();
    assert!(bytes.len() > 30_000_000, "{} bytes", bytes.len());
    for wants in [
        [SampleWish::InOrder; 2],
        [SampleWish::OfThread, SampleWish::InOrder],
    ] {
        // Before, at and behind the end of a batch, far in, and all.
        for samples in [0, 1, 4_095, 4_096, 4_097, 150_000, 700_000, usize::MAX] {
            let (one, counted) = part(&data, 1, &wants, samples);
            let (two, also) = part(&data, 2, &wants, samples);
            assert_eq!(counted, also, "{samples}");
            assert!(one.collect.0 == two.collect.0, "{samples}");
            if samples == usize::MAX {
                assert_eq!(one.released, two.released);
            }
        }
    }
}
