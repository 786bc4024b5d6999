//! Damaged files: whatever is in them, there is an answer, and soon.

use std::fs;
use std::time::{Duration, Instant};

use binaries::{Binaries, CodeMapping, SearchOptions, UserRegisters};
use proptest::prelude::*;

use crate::common::{Readelf, compile, have};

const CPP: &str = r#"
#include <map>
#include <string>
int main(int argc, char **argv) {
    std::map<std::string, int> all;
    for (int i = 0; i < argc; i++) all[argv[i]]++;
    return all.size();
}
"#;

/// One change of a file.
#[derive(Debug, Clone)]
enum Change {
    /// Other bytes at a place, counted in parts of the file.
    Bytes(u32, Vec<u8>),
    /// Its end cut off.
    Cut(u32),
    /// A piece of it at another place.
    Copy(u32, u32, u16),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (any::<u32>(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Change::Bytes(at, bytes)),
        // Numbers that are much too high are what sizes and offsets are tried with.
        2 => any::<u32>().prop_map(|at| Change::Bytes(at, vec![0xff; 8])),
        1 => any::<u32>().prop_map(Change::Cut),
        2 => (any::<u32>(), any::<u32>(), any::<u16>()).prop_map(|(from, to, size)| Change::Copy(from, to, size)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change, from: usize, to: usize) {
    let to = to.min(bytes.len());
    if from >= to {
        return;
    }
    let place = |at: u32| from + at as usize % (to - from);
    match change {
        Change::Bytes(at, new) => {
            let at = place(*at);
            for (byte, new) in bytes[at..].iter_mut().zip(new) {
                *byte = *new;
            }
        }
        Change::Cut(at) => {
            let at = place(*at);
            bytes.truncate(at);
        }
        Change::Copy(from, to, size) => {
            let (from, to) = (place(*from), place(*to));
            let end = (from + usize::from(*size)).min(bytes.len());
            let piece = bytes[from..end].to_vec();
            for (byte, new) in bytes[to..].iter_mut().zip(piece) {
                *byte = new;
            }
        }
    }
}

#[test]
fn damaged_files_are_read_to_an_end() {
    if !have(&["g++", "readelf"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = compile(folder.path(), "g++", ("map.cpp", CPP), &["-O2", "-g"]);
    let elf = Readelf::of(&whole);
    let offsets: Vec<u64> = elf
        .code(61)
        .into_iter()
        .filter_map(|a| elf.offset(a))
        .collect();
    let whole = fs::read(whole).unwrap();
    let length = whole.len();
    // Headers are at the beginning and at the end, DWARF is between.
    let parts = [
        (0, length),
        (0, 0x400),
        (length - 0x1000, length),
        (length / 4, length),
    ];
    let part = prop::sample::select(parts.to_vec());
    let changes = prop::collection::vec((part, change()), 1..6);
    let cases = std::env::var("TRAPLINE_MUTATIONS").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(300);
    let config = ProptestConfig::with_cases(cases);
    let file = folder.path().join("bin");
    let longest = std::cell::Cell::new(Duration::ZERO);
    proptest!(config, |(changes in changes)| {
        let mut bytes = whole.clone();
        for ((from, to), change) in &changes {
            apply(&mut bytes, change, *from, *to);
        }
        fs::write(&file, bytes).unwrap();
        let begun = Instant::now();
        let mut binaries = Binaries::new(SearchOptions {
            symfs: Some(folder.path().to_owned()),
            inlines: true,
            ..SearchOptions::default()
        });
        for offset in &offsets {
            if let Ok(names) = binaries.names(b"/bin", None, *offset) {
                prop_assert!(!names.is_empty() && names.len() <= 129);
            }
        }
        // The same file as code that is mapped, and a stack with something of everything on it.
        let mapping = CodeMapping {
            start: 0x10_0000,
            end: 0x10_0000 + length as u64,
            pgoff: 0,
            path: b"/bin",
            build_id: None,
        };
        for aarch64 in [false, true] {
            let mut unwinding = binaries.unwinding(aarch64, &[mapping]);
            for (offset, more) in offsets.iter().zip(offsets.iter().rev()) {
                let (ip, at) = (0x10_0000 + offset, 0x7000);
                let words = [ip, at + 16, 0x10_0000 + more, 0, u64::MAX, at, ip + 1, at + 24];
                let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let registers = match aarch64 {
                    false => UserRegisters::X86_64 { ip, all: [at; 16] },
                    true => UserRegisters::Aarch64 { pc: ip, lr: ip + 8, sp: at, fp: at },
                };
                prop_assert!(unwinding.stack(&registers, &stack, 64).len() <= 64);
            }
        }
        longest.set(longest.get().max(begun.elapsed()));
    });
    // What a whole file takes is some milliseconds.
    assert!(
        longest.get() < Duration::from_secs(30),
        "{:?}",
        longest.get()
    );
}
