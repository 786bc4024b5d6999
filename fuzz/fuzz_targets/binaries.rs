//! An object file: its symbols and its DWARF, at places all over it; and the names in it.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use binaries::{Binaries, CodeMapping, SearchOptions, UserRegisters};
use libfuzzer_sys::fuzz_target;

/// A folder of this process, since object files are read from files.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("fuzz-binaries-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is room for it");
        folder
    })
}

fuzz_target!(|data: &[u8]| {
    std::fs::write(folder().join("file"), data).expect("there is room for it");
    let mut binaries = Binaries::new(SearchOptions {
        symfs: Some(folder().clone()),
        inlines: true,
        ..SearchOptions::default()
    });
    for offset in (0..data.len() as u64).step_by(1 + data.len() / 256) {
        if let Ok(names) = binaries.names(b"/file", None, offset) {
            assert!(!names.is_empty() && names.len() < 256);
        }
    }
    let mapping = CodeMapping {
        start: 0x10_0000,
        end: 0x10_0000 + data.len() as u64,
        pgoff: 0,
        path: b"/file",
        build_id: None,
    };
    // What is on the stack is what ends the file.
    let stack = &data[data.len().saturating_sub(512)..];
    for aarch64 in [false, true] {
        let mut unwinding = binaries.unwinding(aarch64, &[mapping]);
        for offset in (0..data.len() as u64).step_by(1 + data.len() / 64) {
            let (ip, at) = (0x10_0000 + offset, 0x7000);
            let registers = match aarch64 {
                false => UserRegisters::X86_64 { ip, all: [at; 16] },
                true => UserRegisters::Aarch64 { pc: ip, lr: ip, sp: at, fp: at },
            };
            assert!(unwinding.stack(&registers, stack, 64).len() <= 64);
        }
    }
    assert!(binaries::demangle(data).len() <= 1 << 14);
});
