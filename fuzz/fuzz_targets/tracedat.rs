//! trace.dat: everything around the records, and every record.
#![no_main]

use std::hint::black_box;
use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use tracedat::{LostGap, RingRecord, TraceDat, TraceVisitor};

#[derive(Default)]
struct Look {
    records: u64,
    lost: u64,
}

impl TraceVisitor for Look {
    fn record(&mut self, record: &RingRecord<'_>) -> ControlFlow<()> {
        black_box(record.data.iter().fold(0, |sum, b| sum ^ b));
        self.records += 1;
        ControlFlow::Continue(())
    }

    fn lost(&mut self, lost: &LostGap) {
        black_box(lost);
        self.lost += 1;
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(mut recording) = TraceDat::parse(data) else {
        return;
    };
    recording.load_symbols();
    let mut all = Look::default();
    let end = recording.walk(&[], &mut all);
    assert_eq!(end.records, all.records);
    // Records that are not wanted are skipped; what is lost between them is not.
    let mut none = Look::default();
    let again = recording.walk(&[false], &mut none);
    assert_eq!(again.skipped, all.records);
    assert_eq!(none.lost, all.lost);
    for text in &recording.info().texts {
        black_box(recording.read_text(text, &mut |piece| {
            black_box(piece);
        }));
    }
});
