//! Cut and damaged recordings made whole: what a walk over the new file gives is what one over the old file gives, and
//! lost events beside it.

use crate::walk::{recordings, storage};
use crate::writer::*;
use ::salvage::{SalvageAccount, SalvageOutlet, SalvageRefusal};
use perfdata::{PerfRecording, PerfSalvage, tracing_section};
use proptest::prelude::*;
use std::io;

/// Keeps the new file.
#[derive(Default)]
struct NewFile(Vec<u8>);

impl SalvageOutlet for NewFile {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Tracing data in which nothing is: the events of these recordings have no formats.
const FORMATS: &[u8] = b"\x17\x08\x44tracing0.6\0";

fn salvage(bytes: &[u8]) -> Result<(Vec<u8>, SalvageAccount), SalvageRefusal> {
    let recording = PerfRecording::parse(bytes).expect("a header that can be read");
    let salvage = PerfSalvage::new(recording, Some(FORMATS), &mut |_| {})?;
    let mut file = NewFile::default();
    salvage.write(&mut file).expect("memory");
    Ok((file.0, salvage.account().clone()))
}

/// Returns what a walk gave without lost events of which nobody knows how many they were, in an order of its own for
/// records without time.
fn without_gaps(out: Vec<Out>) -> (Vec<Out>, Vec<Out>) {
    let gap = |out: &Out| match out {
        Out::Side { text, .. } => {
            let few = ["Lost { count: 0,", "Lost { count: 1,"];
            few.iter().any(|few| text.starts_with(few))
        }
        Out::Sample { .. } => false,
    };
    out.into_iter()
        .filter(|out| !gap(out))
        .partition(|out| out.time() != 0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_whole_recording_keeps_its_bytes(recording in recordings(storage())) {
        let written = recording.write();
        let (file, account) = salvage(&written.bytes).expect("nothing is missing");
        prop_assert!(account.whole);
        prop_assert!(file == written.bytes);
    }

    #[test]
    fn a_cut_recording_keeps_what_a_walk_finds(
        recording in recordings(storage()),
        place in any::<prop::sample::Index>(),
    ) {
        let written = recording.write();
        let cut = written.start + place.index(written.bytes.len() - written.start + 1);
        let cut = &written.bytes[..cut];
        let (before, counted, truncated) = walk(cut);
        match salvage(cut) {
            Ok((file, account)) => {
                let (after, totals, still) = walk(&file);
                prop_assert!(!still, "{:?}", totals.diagnostics);
                prop_assert_eq!(account.whole, !truncated);
                prop_assert_eq!(account.output_bytes, file.len() as u64);
                prop_assert_eq!(account.events, counted.samples.iter().sum::<u64>());
                prop_assert_eq!(totals.samples, counted.samples);
                prop_assert_eq!(totals.lost_ring, counted.lost_ring + account.places);
                prop_assert_eq!(without_gaps(after), without_gaps(before));
                // What is whole stays as it is.
                let (again, account) = salvage(&file).expect("a whole file");
                prop_assert!(account.whole && again == file);
            }
            Err(SalvageRefusal::NoEvents(_)) => {
                prop_assert_eq!(counted.samples.iter().sum::<u64>(), 0);
            }
            Err(SalvageRefusal::FormatsGone) => prop_assert!(recording.pipe),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn a_killed_recorders_file_gets_its_size(recording in recordings(storage())) {
        let mut recording = recording;
        recording.pipe = false;
        let mut written = recording.write();
        written.bytes.truncate(written.bytes.len() - 28);
        written.bytes[48..56].fill(0);
        let (before, _, _) = walk(&written.bytes);
        if let Ok((file, account)) = salvage(&written.bytes) {
            let (after, totals, truncated) = walk(&file);
            prop_assert!(!truncated, "{:?}", totals.diagnostics);
            prop_assert_eq!((account.places, account.missing_bytes), (1, None));
            prop_assert_eq!(without_gaps(after), without_gaps(before));
        }
    }

    #[test]
    fn damage_is_no_reason_to_panic_and_leaves_a_file_without_holes(
        recording in recordings(storage()),
        damage in prop::collection::vec(
            (any::<prop::sample::Index>(), prop_oneof![Just(0u8), Just(0xff), any::<u8>()]), 1..20,
        ),
    ) {
        let mut bytes = recording.write().bytes;
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(parsed) = PerfRecording::parse(&bytes)
            && let Ok(salvage) = PerfSalvage::new(parsed, Some(FORMATS), &mut |_| {})
        {
            let mut file = NewFile::default();
            salvage.write(&mut file).expect("memory");
            prop_assert_eq!(salvage.account().output_bytes, file.0.len() as u64);
            let again = PerfRecording::parse(&file.0).expect("a header that can be read");
            let (_, totals) = walk_wanting(&again, &[]);
            prop_assert_eq!(totals.skipped_bytes, 0, "{:?}", totals.diagnostics);
        }
    }
}

#[test]
fn without_formats_tracepoints_are_refused() {
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
        items: (0..4)
            .map(|n| {
                Item::Kernel(Record {
                    attr: 0,
                    time: 10 + n,
                    cpu: 0,
                    pid: 1,
                    tid: 1,
                    misc: 0,
                    body: Body::empty_sample(),
                })
            })
            .collect(),
    };
    let written = recording.write();
    let cut = &written.bytes[..written.ends[2] + 3];
    let parsed = PerfRecording::parse(cut).expect("a header");
    let refused = PerfSalvage::new(parsed, None, &mut |_| {}).err();
    assert_eq!(refused, Some(SalvageRefusal::FormatsGone));
    let (file, account) = salvage(cut).expect("three samples");
    assert_eq!(
        (account.events, account.places, account.left_out_bytes),
        (3, 1, 3)
    );
    assert_eq!(account.times(), Some((10, 12)));
    assert_eq!(tracing_section(&file), Some(FORMATS));
    let info = PerfRecording::parse(&file).expect("a header");
    assert_eq!(info.info().sample_time, Some((10, 12)), "made again");
}
