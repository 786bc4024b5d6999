//! perf.data: everything around the records, and every part of every record.
#![no_main]

use std::hint::black_box;
use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use perfdata::{PerfRecording, PerfSample, SideRecord, PerfVisitor, SampleWish};

/// Looks at all there is.
#[derive(Default)]
struct Look {
    samples: u64,
    stop_at: Option<u64>,
}

impl PerfVisitor for Look {
    type Tally = ();

    fn sample(&mut self, sample: &PerfSample<'_>) -> ControlFlow<()> {
        black_box((sample.ip(), sample.addr(), sample.period()));
        black_box((sample.callchain(), sample.raw(), sample.user_stack()));
        self.samples += 1;
        if self.stop_at == Some(self.samples) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn side(&mut self, _time: u64, _cpu: i32, _misc: u16, record: &SideRecord<'_>) {
        black_box(record);
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(recording) = PerfRecording::parse(data) else {
        return;
    };
    let mut all = Look::default();
    let totals = recording.walk(&[], &mut all);
    assert!(all.samples <= totals.samples.iter().sum::<u64>());
    // Samples that are not wanted are skipped by another way; the counts must be the same.
    let orders = [SampleWish::InOrder, SampleWish::No, SampleWish::OfThread, SampleWish::AnyOrder];
    let wanted: Vec<SampleWish> = (0..recording.attrs().len()).map(|n| orders[n % 4]).collect();
    let mut some = Look::default();
    let again = recording.walk(&wanted, &mut some);
    // Before bytes that are no record one record is given up if it waits for its turn; one that needs none is gone.
    let holes = again.diagnostics.len() as u64;
    assert!(some.samples <= all.samples + holes);
    let given_up = again.samples.iter().zip(&totals.samples);
    let given_up: u64 = given_up.map(|(again, all)| again.abs_diff(*all)).sum();
    assert!(given_up <= holes, "{given_up} samples, {holes} holes");
    assert_eq!(totals.unknown_id, again.unknown_id);
    assert_eq!(totals.truncated, again.truncated);
    let mut few = Look {
        stop_at: Some(3),
        ..Look::default()
    };
    recording.walk(&[], &mut few);
    assert_eq!(few.samples, all.samples.min(3));
});
