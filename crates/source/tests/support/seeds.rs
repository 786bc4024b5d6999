//! Small recordings of every kind, made of those that the repository ships.

use std::io::Read;
use std::path::{Path, PathBuf};

use source::RecordingBytes;

use super::trim_dat::{Dat, Pack};
use super::trim_perf;

/// Bytes of records kept of a perf.data.
const PERF_BYTES: usize = 24 << 10;
/// Pages kept of each CPU of a trace.dat.
const DAT_PAGES: usize = 2;
/// Bytes kept of a text, up to the end of a line.
const TEXT_BYTES: usize = 12 << 10;

/// A small recording.
pub(crate) struct Seed {
    /// The file it was made of, and how.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// The folder of recordings in the repository.
fn corpus() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(1);
    let mut folders = above.map(|folder| folder.join("corpus"));
    folders
        .find(|folder| folder.is_dir())
        .expect("the repository has a folder of recordings")
}

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, out);
        } else {
            out.push(path);
        }
    }
}

/// Makes the seeds: always the same ones in the same order.
pub(crate) fn seeds() -> Vec<Seed> {
    let root = corpus();
    let mut paths = Vec::new();
    files(&root, &mut paths);
    paths.sort();
    let mut out = Vec::new();
    for path in paths {
        let name = path.strip_prefix(&root).unwrap_or(&path);
        let name = name.display().to_string();
        if let Ok(recording) = RecordingBytes::open(&path) {
            add(&name, recording.bytes(), &mut out);
        }
    }
    // Some of them wrapped, as files are sent around.
    let every = (out.len() / 6).max(1);
    for at in (0..out.len()).step_by(every) {
        let seed = &out[at];
        let (name, gzip, zstd) = (seed.name.clone(), gzip(&seed.bytes), zstd(&seed.bytes));
        let wrapped = |how: &str, bytes| Seed {
            name: format!("{name}, {how}"),
            bytes,
        };
        out.push(wrapped("gzip", gzip));
        out.push(wrapped("zstd", zstd));
    }
    out
}

fn add(name: &str, bytes: &[u8], out: &mut Vec<Seed>) {
    let mut push = |how: &str, bytes: Vec<u8>| {
        let name = format!("{name}{how}");
        out.push(Seed { name, bytes });
    };
    if let Some(small) = trim_perf::trim(bytes, PERF_BYTES) {
        push("", small);
    } else if let Some(mut dat) = Dat::read(bytes) {
        dat.trim(DAT_PAGES);
        push(", version 6", dat.v6());
        push(", version 7", dat.v7(Pack::None));
        push(", version 7, zlib", dat.v7(Pack::Zlib));
        push(", version 7, zstd", dat.v7(Pack::Zstd));
    } else if !bytes.contains(&0) {
        let cut = bytes.len().min(TEXT_BYTES);
        let end = bytes[..cut].iter().rposition(|&b| b == b'\n');
        let text = bytes[..end.unwrap_or(cut)].to_vec();
        // Tables, logs and notes stand beside the recordings.
        if is_recording(&text) {
            push("", text);
        }
    }
}

fn is_recording(bytes: &[u8]) -> bool {
    let Ok(recording) = RecordingBytes::from_bytes("", bytes.to_vec()) else {
        return false;
    };
    let mut study = analysis::Study::default();
    let info = study.add(analysis::RecordingContents::new());
    if let Ok(reader) = recording.reader(source::ReaderOptions::default()) {
        let _ = reader.walk(&mut study);
    }
    let info = study.finish().take(info);
    info.report(&study.walked()).start.is_some()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzEncoder::new(bytes, flate2::Compression::fast())
        .read_to_end(&mut out)
        .expect("memory does not fail to be read");
    out
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}
