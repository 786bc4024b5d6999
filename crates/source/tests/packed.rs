//! What is packed, or comes without an end, costs no more than its beginning is worth.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use event::{Event, EventType, Sink};
use source::{
    OpenError, OpenOptions, ReadActivity, ReadProgress, ReadStep, ReaderOptions, RecordingBytes,
};

/// Returns a zstd frame of blocks: the bytes of each, and how often its last byte is repeated.
fn frame(blocks: &[(&[u8], u32)]) -> Vec<u8> {
    // Magic, no checksum, no size of the content; a window of 8 MiB.
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x68];
    let header = |out: &mut Vec<u8>, kind: u32, size: u32| {
        out.extend(&(size << 3 | kind << 1).to_le_bytes()[..3]);
    };
    for (bytes, repeated) in blocks {
        if *repeated == 0 {
            for piece in bytes.chunks(128 << 10) {
                header(&mut out, 0, piece.len() as u32);
                out.extend(piece);
            }
        } else {
            header(&mut out, 1, *repeated);
            out.extend(*bytes);
        }
    }
    // The last block.
    out.extend([1, 0, 0]);
    out
}

/// Returns some bytes and as many zeros behind them as fill so many blocks, packed.
fn zeros(begin: &[u8], blocks: usize) -> Vec<u8> {
    let mut list: Vec<(&[u8], u32)> = vec![(begin, 0)];
    list.extend(vec![(&[0u8][..], 128 << 10); blocks]);
    frame(&list)
}

/// Packs once more, as it is.
fn wrap(bytes: &[u8]) -> Vec<u8> {
    frame(&[(bytes, 0)])
}

fn said(result: Result<RecordingBytes, OpenError>) -> String {
    result.expect_err("an error").to_string()
}

#[test]
fn what_does_not_begin_as_a_recording_is_not_unpacked() {
    // 8 GiB in 256 KiB, of which nobody needs more than a little.
    let bomb = zeros(b"", 64 << 10);
    for packed in [bomb.clone(), wrap(&bomb), wrap(&wrap(&bomb))] {
        let recording = RecordingBytes::from_bytes("bomb", packed).expect("bytes");
        assert!(
            recording.bytes().len() <= 16 << 20,
            "{} bytes were unpacked",
            recording.bytes().len()
        );
        let error = recording.reader(ReaderOptions::default()).map(|_| ());
        assert!(matches!(error, Err(OpenError::NotARecording { .. })));
    }
}

#[test]
fn what_has_no_end_is_not_read_to_it() {
    let recording = RecordingBytes::open(Path::new("/dev/zero")).expect("bytes");
    assert!(recording.bytes().len() <= 16 << 20);
    assert!(recording.reader(ReaderOptions::default()).is_err());
}

#[test]
fn what_unpacks_to_more_than_a_recording_does_is_refused() {
    let error = said(RecordingBytes::from_bytes(
        "bomb",
        zeros(b"PERFILE2", 64 << 10),
    ));
    assert!(error.contains("--spool-limit"), "{error}");
}

#[test]
fn a_limit_is_a_limit_and_names_its_flag() {
    let packed = zeros(b"PERFILE2", 16);
    let limit = |bytes: u64| OpenOptions {
        spool_limit: Some(bytes),
        ..OpenOptions::default()
    };
    let whole = RecordingBytes::from_bytes_with("a", packed.clone(), limit(16 * (128 << 10) + 8));
    assert_eq!(
        whole.expect("a recording").bytes().len(),
        16 * (128 << 10) + 8
    );
    let error = said(RecordingBytes::from_bytes_with("a", packed, limit(2 << 20)));
    assert!(
        error.contains("--spool-limit") && error.contains("2M"),
        "{error}"
    );
}

/// Wants every event.
pub(crate) struct All;

impl Sink for All {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[test]
fn how_far_reading_is_is_reported() {
    // Lines of a text of a few MiB, as it is and packed.
    let lines = (0..60_000).map(|at| {
        format!(
            "qemu 12 [000] 1.{at:06}: kvm:kvm_entry: vcpu 0, rip 0x1{:60}\n",
            ' '
        )
    });
    let text = lines.collect::<String>().into_bytes();
    let length = text.len() as u64;
    assert!(length > 4 << 20);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    std::io::Write::write_all(&mut packed, &text).expect("bytes in memory");
    let packed = packed.finish().expect("bytes in memory");
    for (bytes, begins) in [
        (text, vec![(ReadActivity::Reading, Some(length))]),
        (
            packed.clone(),
            vec![
                (ReadActivity::Unpacking, Some(packed.len() as u64)),
                (ReadActivity::Reading, Some(length)),
            ],
        ),
    ] {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&reported);
        let counted = Arc::new(Mutex::new(0));
        let counts = Arc::clone(&counted);
        let progress = ReadProgress::new(move |step| {
            let step = match step {
                ReadStep::Begin { doing, bytes } => ReadStep::Begin { doing, bytes },
                ReadStep::Read(bytes) => ReadStep::Read(bytes),
                ReadStep::Counted { kinds, lost } => {
                    assert_eq!(lost, 0);
                    for (name, count) in kinds {
                        assert_eq!(*name, "kvm_entry");
                        *counts.lock().expect("no panic") += count;
                    }
                    return;
                }
                ReadStep::End => ReadStep::End,
            };
            to.lock().expect("no panic").push(step);
        });
        let options = OpenOptions {
            progress: Some(progress),
            ..OpenOptions::default()
        };
        let recording = RecordingBytes::from_bytes_with("a", bytes, options).expect("a recording");
        let reader = recording.reader(ReaderOptions::default()).expect("a text");
        reader.walk(&mut All);
        let steps = reported.lock().expect("no panic");
        let mut found = Vec::new();
        let (mut under_way, mut read) = (0, 0);
        for step in steps.iter() {
            match step {
                ReadStep::Begin { doing, bytes } => {
                    found.push((*doing, *bytes));
                    under_way += 1;
                    read = 0;
                }
                ReadStep::Read(bytes) => read += bytes,
                ReadStep::Counted { .. } => panic!("these are added up"),
                ReadStep::End => {
                    under_way -= 1;
                    let all = found
                        .last()
                        .and_then(|(_, bytes)| *bytes)
                        .expect("a length");
                    // All but what is left of the last megabytes.
                    assert!(read <= all && all - read <= 2 << 20, "{read} of {all}");
                }
            }
            assert!((0..=1).contains(&under_way));
        }
        assert_eq!(under_way, 0);
        assert_eq!(found, begins);
        // But for those of the last megabytes, too.
        let counted = *counted.lock().expect("no panic");
        assert!((30_000..=60_000).contains(&counted), "{counted} events");
        assert!(steps.len() < 40, "{} calls", steps.len());
    }
}

#[test]
fn layers_are_followed_to_a_bound() {
    let text = b"qemu 12 [000] 1.000001: kvm:kvm_entry: vcpu 0, rip 0x1\n";
    let mut packed = text.to_vec();
    for _ in 0..3 {
        packed = wrap(&packed);
        let recording = RecordingBytes::from_bytes("a", packed.clone()).expect("a recording");
        assert_eq!(recording.bytes(), text);
    }
    let error = said(RecordingBytes::from_bytes("a", wrap(&packed)));
    assert!(error.contains("packed more than 3 times"), "{error}");
}

#[test]
fn damaged_layers_are_reported_in_words() {
    for bytes in [
        &b"\x28\xb5\x2f\xfd"[..],
        b"\x28\xb5\x2f\xfd\x04",
        b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let error = said(RecordingBytes::from_bytes("a", bytes.to_vec()));
        assert!(
            error.contains("zstd data") && !error.contains(['{', '(']),
            "{error}"
        );
    }
}

#[test]
fn of_what_is_cut_all_that_came_before_is_used() {
    let line = b"qemu 12 [000] 1.000001: kvm:kvm_entry: vcpu 0, rip 0x1\n";
    // Less than the decoder's window, and more.
    for length in [300 << 10, 9 << 20] {
        let text: Vec<u8> = line.iter().copied().cycle().take(length).collect();
        let mut cut = frame(&[(&text, 0)]);
        cut.truncate(cut.len() - 5);
        for packed in [cut.clone(), wrap(&cut)] {
            let recording = RecordingBytes::from_bytes("a", packed).expect("a recording");
            let unpacked = recording.bytes();
            assert!(text.starts_with(unpacked));
            let lost = text.len() - unpacked.len();
            assert!(lost <= 128 << 10, "{lost} of {length}");
            let reader = recording.reader(ReaderOptions::default()).expect("one");
            let outcome = reader.walk(&mut Nothing);
            assert!(outcome.quality.truncated);
        }
    }
}

/// Wants nothing.
struct Nothing;

impl Sink for Nothing {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        false
    }

    fn event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
