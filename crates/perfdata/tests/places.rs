//! From a place that a walk reports, another goes on with just what the first one had yet to push, in the same order,
//! whatever came late.

use std::ops::ControlFlow;

use perfdata::{PerfRecording, PerfVisitor, SampleWish, SideRecord, WalkPlace};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::walk::recordings;
use crate::writer::*;

/// Collects places, with how much had been pushed.
#[derive(Default)]
struct Places {
    collect: Collect,
    places: Vec<(usize, WalkPlace)>,
}

impl PerfVisitor for Places {
    type Tally = ();

    fn sample(&mut self, sample: &perfdata::PerfSample<'_>) -> ControlFlow<()> {
        self.collect.sample(sample)
    }

    fn side(&mut self, time: u64, cpu: i32, misc: u16, record: &SideRecord<'_>) {
        self.collect.side(time, cpu, misc, record);
    }

    fn places(&self) -> bool {
        true
    }

    fn place(&mut self, place: WalkPlace) {
        self.places.push((self.collect.0.len(), place));
    }
}

fn walked(data: &PerfRecording<'_>, threads: usize, wants: &[SampleWish]) -> Places {
    let mut places = Places::default();
    data.walk_on(threads, wants, &mut places);
    places
}

/// Checks all places of a walk, and returns how many there are.
fn check(data: &PerfRecording<'_>) -> usize {
    let one = walked(data, 1, &[]);
    let two = walked(data, 2, &[]);
    assert_eq!(
        one.places, two.places,
        "they come in order with the records"
    );
    for (pushed, place) in &one.places {
        let mut rest = Collect::default();
        data.walk_from(place, &[], &mut rest);
        assert_eq!(rest.0, one.collect.0[*pushed..], "{place:?}");
    }
    one.places.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_walk_goes_on_from_any_place(
        recording in recordings(Just(Storage::Plain)),
        times in vec(0..30u64, 1..40),
        late in 0..3u64,
    ) {
        let mut recording = recording;
        let mut next = times.iter().cycle();
        let mut round = 0;
        for item in &mut recording.items {
            match item {
                Item::Kernel(record) => {
                    // In rounds that follow each other, but for what comes late.
                    record.time = (round * 20 + next.next().unwrap_or(&0)).saturating_sub(late * 7);
                }
                _ => round += 1,
            }
        }
        let written = recording.write();
        let data = PerfRecording::parse(&written.bytes).unwrap();
        check(&data);
    }
}

/// A recording of two kinds in rounds, one CPU after the other. `late` is how much later than it should some of it
/// comes.
fn in_rounds(late: u64) -> Vec<u8> {
    let attr = |id: u64| Attr {
        sample_type: TID | TIME | ID | CPU,
        read_format: 0,
        sample_id_all: true,
        ids: vec![id],
    };
    let sample = |number: u64, cpu: u32| {
        Item::Kernel(Record {
            attr: usize::from(number.is_multiple_of(3)),
            time: (10 * number + u64::from(cpu)).saturating_sub(late * (number % 97)),
            cpu,
            pid: 7,
            tid: 7,
            misc: 0,
            body: Body::empty_sample(),
        })
    };
    let mut items = Vec::new();
    for round in 0..8u64 {
        for cpu in 0..4 {
            let numbers = round * 100..(round + 1) * 100;
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
    recording.write().bytes
}

#[test]
fn there_are_places_all_over_a_recording() {
    let bytes = in_rounds(0);
    let data = PerfRecording::parse(&bytes).unwrap();
    let count = check(&data);
    assert!((200..=512).contains(&count), "{count}");
    // What nobody wants is in no run, and what needs no order goes out before its time.
    for other in [SampleWish::No, SampleWish::OfThread, SampleWish::AnyOrder] {
        assert!(
            walked(&data, 1, &[other, SampleWish::InOrder])
                .places
                .is_empty()
        );
    }
}

#[test]
fn what_comes_late_is_found_where_it_came() {
    let bytes = in_rounds(40);
    let data = PerfRecording::parse(&bytes).unwrap();
    assert!(check(&data) > 200);
}
