//! Folders as `perf record --threads` makes them: a recording cut into several files is the same recording.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use fixtures::{FixtureQuestion, case, read};
use serde_json::Value;

/// `struct perf_file_header`: where the records are, and the bits of features.
const DATA_OFFSET: usize = 40;
const DATA_SIZE: usize = 48;
const FEATURES: usize = 72;
/// `HEADER_DIR_FORMAT`.
const DIR_FORMAT: usize = 24;
/// `PERF_RECORD_FINISHED_ROUND`.
const FINISHED_ROUND: u32 = 68;

fn word(bytes: &[u8], at: usize) -> usize {
    let bytes: [u8; 8] = bytes[at..at + 8].try_into().expect("eight bytes");
    usize::try_from(u64::from_le_bytes(bytes)).expect("it fits")
}

fn put(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 8].copy_from_slice(&(value as u64).to_le_bytes());
}

/// Returns where the rounds of some records end.
fn rounds(records: &[u8]) -> Vec<usize> {
    let (mut at, mut ends) = (0, Vec::new());
    while at + 8 <= records.len() {
        let kind = u32::from_le_bytes(records[at..at + 4].try_into().expect("four bytes"));
        let size = usize::from(u16::from_le_bytes([records[at + 6], records[at + 7]]));
        at += size;
        if kind == FINISHED_ROUND {
            ends.push(at);
        }
    }
    ends
}

/// Cuts a perf.data into the files of a folder: `data` with some records, as perf writes those of processes there, and
/// two files with the others.
fn cut(bytes: &[u8], folder: &Path) {
    let (offset, size) = (word(bytes, DATA_OFFSET), word(bytes, DATA_SIZE));
    let has = |bit: usize| bytes[FEATURES + bit / 8] >> (bit % 8) & 1 == 1;
    assert!(!has(DIR_FORMAT), "it is of no folder");
    let records = &bytes[offset..offset + size];
    let ends = rounds(records);
    let (first, middle) = (ends[0], ends[ends.len() / 2]);
    assert!(0 < first && first < middle && middle < size, "{ends:?}");
    let before = (0..DIR_FORMAT).filter(|bit| has(*bit)).count();
    let all = (0..256).filter(|bit| has(*bit)).count();
    let mut data = bytes[..offset + first].to_vec();
    put(&mut data, DATA_SIZE, first);
    data[FEATURES + DIR_FORMAT / 8] |= 1 << (DIR_FORMAT % 8);
    let mut tail = bytes[offset + size..].to_vec();
    for entry in 0..all {
        let moved = word(&tail, entry * 16) - (size - first) + 16;
        put(&mut tail, entry * 16, moved);
    }
    // Its version, which stands at the end.
    let place = data.len() + tail.len() + 16;
    let entry = [place as u64, 8].map(u64::to_le_bytes).concat();
    tail.splice(before * 16..before * 16, entry);
    tail.extend(1u64.to_le_bytes());
    data.extend(tail);
    let files = [
        ("data", &data[..]),
        ("data.0", &records[first..middle]),
        ("data.1", &records[middle..]),
    ];
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).expect("a written file");
    }
}

fn documents(path: &Path) -> Vec<Value> {
    let question = FixtureQuestion::new();
    let documents = [
        question.exits_document(path),
        question.vcpus_document(path),
        question.sched_document(path),
        question.paths_document(path),
    ];
    documents
        .into_iter()
        .map(|document| document.expect("it reads"))
        .collect()
}

#[test]
fn files_of_a_folder_are_read_as_one() {
    let path = case("x86/preempted-sick/perf.data.zst").path;
    let folder = tempfile::tempdir().expect("a folder");
    cut(&read(&path), folder.path());
    // Links are not followed, and a pipe is not waited for.
    symlink("/etc/passwd", folder.path().join("data.7")).expect("a link");
    let pipe = folder.path().join("data.8");
    let made = Command::new("mkfifo").arg(pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    assert_eq!(documents(folder.path()), documents(&path));
    // What is asked of a part of it says that it is a part.
    let question = FixtureQuestion::new();
    let info = question.info_document(&folder.path().join("data"));
    let info = info.expect("it reads");
    let doubts = info["quality"]["doubts"].as_array().expect("doubts");
    let id = "files-not-read";
    assert!(doubts.iter().any(|one| one["id"] == id), "{info}");
    let info = question.info_document(folder.path()).expect("it reads");
    let doubts = info["quality"]["doubts"].as_array().expect("doubts");
    assert!(doubts.iter().all(|one| one["id"] != id), "{info}");
}
