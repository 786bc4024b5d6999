//! The file is whole after every write: what a reader finds of it, whenever the recorder is killed.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::path::Path;
use std::rc::Rc;

use perfdata::{PerfRecording, PerfVisitor, SampleWish, Totals};
use proptest::prelude::*;
use record::file::{Feature, Features, FileEvent, PerfFile, ROUND, WritableFile};
use rings::{EventSource, RingAttr};

/// Bytes of a sample: header, id, thread, time, CPU, and its raw part's size and bytes.
const SAMPLE: usize = 8 + 4 * 8 + 8;

/// The file's formats: enough for a reader to know the one event.
fn formats() -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing0.6\0".to_vec();
    out.extend([0, 8]);
    out.extend(4096u32.to_ne_bytes());
    for name in [&b"header_page\0"[..], b"header_event\0"] {
        out.extend_from_slice(name);
        out.extend(0u64.to_ne_bytes());
    }
    out.extend(0u32.to_ne_bytes());
    out.extend(1u32.to_ne_bytes());
    out.extend_from_slice(b"kvm\0");
    out.extend(1u32.to_ne_bytes());
    let format = b"name: kvm_exit\nID: 7\nformat:\n\nprint fmt: \"\"\n";
    out.extend((format.len() as u64).to_ne_bytes());
    out.extend_from_slice(format);
    out.extend([0; 4 + 4 + 8]);
    out
}

fn create(path: &Path) -> File {
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path);
    file.expect("a file")
}

fn begin<P: WritableFile>(file: P) -> io::Result<PerfFile<P>> {
    let events = [FileEvent {
        name: "kvm:kvm_exit".to_owned(),
        attr: RingAttr::each(EventSource::Tracepoint(7)).bytes(),
        ids: vec![70, 71],
    }];
    let mut features = Features::default();
    features.set(Feature::TracingData(formats()));
    features.set(Feature::Hostname("host".to_owned()));
    features.set(Feature::CommandLine(vec![
        "trapline".to_owned(),
        "record".to_owned(),
    ]));
    PerfFile::begin(file, &events, features)
}

fn samples(count: usize, first_time: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0..count as u64 {
        out.extend(9u32.to_ne_bytes());
        out.extend(0u16.to_ne_bytes());
        out.extend((SAMPLE as u16).to_ne_bytes());
        for word in [70, 1, first_time + number, 0] {
            out.extend(u64::to_ne_bytes(word));
        }
        out.extend(4u32.to_ne_bytes());
        out.extend([7, 0, 0, 0]);
    }
    out
}

/// Counts samples and looks that they come in order.
#[derive(Default)]
struct Count {
    samples: u64,
    last: u64,
}

impl PerfVisitor for Count {
    type Tally = ();

    fn sample(&mut self, sample: &perfdata::PerfSample<'_>) -> std::ops::ControlFlow<()> {
        assert!(sample.time >= self.last, "out of order");
        self.last = sample.time;
        self.samples += 1;
        std::ops::ControlFlow::Continue(())
    }
}

/// Reads what is there now, as whoever comes after a recorder that was killed.
fn read(bytes: &[u8]) -> (u64, Totals) {
    let recording = PerfRecording::parse(bytes).expect("a recording");
    assert!(recording.has_formats(), "formats");
    assert_eq!(recording.attrs().len(), 1);
    assert_eq!(recording.attrs()[0].name, "kvm:kvm_exit");
    assert_eq!(recording.info().hostname.as_deref(), Some("host"));
    assert_eq!(recording.info().cmdline, ["trapline", "record"]);
    assert!(
        recording.diagnostics().is_empty(),
        "{:?}",
        recording.diagnostics()
    );
    let mut count = Count::default();
    let totals = recording.walk(&[SampleWish::InOrder], &mut count);
    (count.samples, totals)
}

/// A file in memory that takes so many bytes and then no more, wherever in a write that is, as when the recorder is
/// killed or the disk is full. Eight bytes at a multiple of eight are written at once: the kernel looks for signals
/// between pages.
#[derive(Clone, Default)]
struct Dying {
    bytes: Rc<RefCell<Vec<u8>>>,
    taken: Rc<RefCell<usize>>,
    most: Option<usize>,
}

impl WritableFile for Dying {
    fn write_at(&mut self, pieces: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
        let all: Vec<u8> = pieces
            .iter()
            .flat_map(|piece| piece.iter().copied())
            .collect();
        let mut taken = self.taken.borrow_mut();
        let length = match self.most {
            Some(most) if *taken + all.len() > most => (most - *taken) / 8 * 8,
            _ => all.len(),
        };
        if length == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let at = usize::try_from(at).expect("a place");
        let mut bytes = self.bytes.borrow_mut();
        let there = bytes.len().max(at + length);
        bytes.resize(there, 0);
        bytes[at..at + length].copy_from_slice(&all[..length]);
        *taken += length;
        Ok(length)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).expect("a length");
        self.bytes.borrow_mut().truncate(length);
        Ok(())
    }
}

/// Writes samples until the file takes no more. Returns how many were written before the write that failed, and with
/// it.
fn write_all(place: &Dying, writes: &[(usize, usize)]) -> (u64, u64) {
    let Ok(mut file) = begin(place.clone()) else {
        return (0, 0);
    };
    let mut written = 0;
    for (count, cut) in writes {
        let bytes = samples(*count, written);
        let cut = (cut / 8 * 8).min(bytes.len());
        let appended = file.append(&[&bytes[..cut], &bytes[cut..], &ROUND]);
        let with = written + *count as u64;
        if appended.is_err() {
            // It knows which part is there.
            assert!((written..=with).contains(&file.samples()));
            return (file.samples(), with);
        }
        assert_eq!(file.samples(), with);
        written = with;
    }
    file.set(Feature::Hostname("host".to_owned()));
    let _ = file.finish();
    (written, written)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_write_that_is_cut_anywhere_leaves_a_whole_file(
        writes in proptest::collection::vec((0usize..9000, 0usize..=400_000), 1..8),
        after in proptest::collection::vec(0.0f64..1.0, 6),
    ) {
        let whole = Dying::default();
        write_all(&whole, &writes);
        let all = *whole.taken.borrow();
        let (found, totals) = read(&whole.bytes.borrow());
        prop_assert_eq!(found, writes.iter().map(|(count, _)| *count as u64).sum::<u64>());
        prop_assert!(!totals.truncated);
        for part in after {
            // The end is where most happens in few bytes.
            let most = match part < 0.2 {
                true => all - (part * 3000.0) as usize,
                false => (all as f64 * part) as usize,
            };
            let place = Dying { most: Some(most / 8 * 8), ..Dying::default() };
            let (before, with) = write_all(&place, &writes);
            let bytes = place.bytes.borrow();
            if !bytes.starts_with(b"PERFILE2") {
                prop_assert_eq!(with, 0, "a recording that was begun");
                continue;
            }
            let (found, totals) = read(&bytes);
            prop_assert!((before..=with).contains(&found), "{} of {} to {}", found, before, with);
            prop_assert_eq!(totals.skipped_bytes, 0);
            prop_assert!(totals.truncated || found == with);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_write_leaves_a_whole_file(
        writes in proptest::collection::vec((0usize..40_000, 0usize..=SAMPLE), 1..12),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("perf.data");
        let mut file = begin(create(&path)).expect("a recording");
        let mut written = 0;
        let check = |written: usize, over: bool| {
            let (found, totals) = read(&fs::read(&path).expect("a file"));
            prop_assert_eq!(found, written as u64);
            prop_assert_eq!(totals.truncated, !over, "whether the recorder ended is known");
            prop_assert_eq!(totals.skipped_bytes, 0);
            Ok(())
        };
        check(0, false)?;
        for (count, cut) in writes {
            let bytes = samples(count, written as u64);
            // A ring ends anywhere in a record, at a multiple of 8.
            let cut = (cut / 8 * 8).min(bytes.len());
            file.append(&[&bytes[..cut], &bytes[cut..], &ROUND]).expect("a write");
            written += count;
            check(written, false)?;
        }
        file.set(Feature::Trapline(b"{}".to_vec()));
        file.finish().expect("an end");
        check(written, true)?;
        // Nothing is left that was made ahead.
        let length = fs::metadata(&path).expect("a file").len();
        prop_assert!(length < (written * SAMPLE) as u64 + 8192, "{} bytes", length);
    }
}
