//! A file that is made shorter while it is read gives what was read until then, with a warning.

use std::fs::{self, File};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use event::{Event, EventType, Sink};
use source::{ReaderOptions, RecordingBytes, WalkOutcome};

/// Counts events, and at one of them makes the file shorter.
#[derive(Default)]
struct Cut<'p> {
    events: u64,
    first: Option<u64>,
    at: Option<(u64, u64, &'p Path)>,
}

impl Sink for Cut<'_> {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.events += 1;
        self.first = Some(self.first.map_or(event.time, |first| first.min(event.time)));
        if let Some((events, length, path)) = self.at
            && events == self.events
        {
            shorten(path, length);
        }
        ControlFlow::Continue(())
    }
}

fn shorten(path: &Path, length: u64) {
    let file = File::options().write(true).open(path).expect("the file");
    file.set_len(length).expect("a shorter file");
}

/// Returns recordings of each kind, unpacked.
fn inputs() -> Vec<(&'static str, Vec<u8>)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let manifest = fs::read_to_string(corpus.join("manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let mut found: Vec<(&'static str, Vec<u8>)> = Vec::new();
    for entry in manifest.as_array().expect("a list") {
        let name = entry["recording"].as_str().expect("a name");
        let kind = match entry["kind"].as_str() {
            Some("perf.data") => "perf.data",
            Some("trace.dat") => "trace.dat",
            Some("text") => "text",
            _ => continue,
        };
        let path = corpus.join(name);
        let Ok(recording) = RecordingBytes::open(&path) else {
            continue;
        };
        let bytes = recording.bytes();
        // The largest: what is packed within a recording ends with the piece that is cut.
        match found.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, known)) if known.len() >= bytes.len() => {}
            Some((_, known)) => *known = bytes.to_vec(),
            None => found.push((kind, bytes.to_vec())),
        }
    }
    assert_eq!(found.len(), 3, "a recording of each kind");
    found
}

fn write(folder: &Path, kind: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(kind);
    fs::write(&path, bytes).expect("a written file");
    path
}

fn reported(kind: &str, outcome: &WalkOutcome) {
    let quality = &outcome.quality;
    assert!(quality.truncated, "{kind}: is said to be complete");
    let warned = |warning: &String| warning.contains("while it was read");
    assert!(
        quality.texts().iter().any(warned),
        "{kind}: {:?}",
        quality.texts()
    );
}

/// Walks over a file that is cut before the walk begins, or at one of its events.
fn walk(
    path: &Path,
    before: Option<u64>,
    at: Option<(u64, u64)>,
) -> (u64, Option<u64>, WalkOutcome) {
    let recording = RecordingBytes::open(path).expect("a recording");
    let reader = recording.reader(ReaderOptions::default()).expect("one");
    if let Some(length) = before {
        shorten(path, length);
    }
    let mut sink = Cut {
        at: at.map(|(event, length)| (event, length, path)),
        ..Cut::default()
    };
    let outcome = reader.walk(&mut sink);
    (sink.events, sink.first, outcome)
}

#[test]
fn before_the_walk_it_is_read_as_the_shorter_file() {
    source::outlive_truncation();
    let folder = tempfile::tempdir().expect("a folder");
    for (kind, bytes) in inputs() {
        // In the middle of a page, and of a record.
        let length = (bytes.len() as u64 * 19 / 20) | 0x123;
        let path = write(folder.path(), kind, &bytes);
        let (events, first, outcome) = walk(&path, Some(length), None);
        reported(kind, &outcome);
        // The same as of a file that ends there; formats that stand behind its end were read before.
        let (expected, expected_first, _) = if kind == "trace.dat" {
            // Where its data lies was read before as well, which the shorter file does not say.
            fs::write(&path, &bytes).expect("a written file");
            let (all, first, _) = walk(&path, None, None);
            assert!(events < all, "{kind}: {events} of {all}");
            (all / 2, first, WalkOutcome::default())
        } else {
            walk(&path, None, None)
        };
        assert!(
            events >= expected && events > 100,
            "{kind}: {events}, {expected}"
        );
        // Nothing is made of bytes that are gone.
        assert!(first >= expected_first, "{kind}: {first:?}");
        assert!(kind == "trace.dat" || first == expected_first, "{kind}");
    }
}

#[test]
fn during_the_walk_what_was_read_is_kept() {
    source::outlive_truncation();
    let folder = tempfile::tempdir().expect("a folder");
    for (kind, bytes) in inputs() {
        let path = write(folder.path(), kind, &bytes);
        let (all, ..) = walk(&path, None, None);
        // All of it is gone but the first page; and not even that is left.
        for length in [4096, 0] {
            fs::write(&path, &bytes).expect("a written file");
            let (events, _, outcome) = walk(&path, None, Some((all / 3, length)));
            reported(kind, &outcome);
            assert!(
                events >= all / 3 && events < all,
                "{kind}: {events} of {all}"
            );
        }
    }
}

#[test]
fn packed_files_are_not_mapped() {
    // They are read as streams, which end early at worst; nothing can fault.
    let folder = tempfile::tempdir().expect("a folder");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let packed = walk_dir(&corpus)
        .into_iter()
        .find(|path| path.ends_with("trace.dat.zst"))
        .expect("a packed recording");
    let bytes = fs::read(packed).expect("a file");
    let path = write(folder.path(), "packed", &bytes);
    let recording = RecordingBytes::open(&path).expect("a recording");
    shorten(&path, 10);
    let mut all = Vec::new();
    recording.bytes().read_to_end(&mut all).expect("bytes");
    assert!(all.len() > bytes.len());
}

fn walk_dir(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            out.extend(walk_dir(&path));
        } else {
            out.push(path);
        }
    }
    out
}
