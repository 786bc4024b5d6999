//! Recordings that are written again: made whole, and without what is private.
#![no_main]

use std::hint::black_box;
use std::io::{self, Write};

use libfuzzer_sys::fuzz_target;
use source::RecordingBytes;

/// A new file longer than this is not looked at: a few bytes of compressed data may become very many.
const LONGEST: usize = 8 << 20;

/// Keeps a new file, but for the end of a long one.
#[derive(Default)]
struct NewFile {
    bytes: Vec<u8>,
    length: u64,
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = LONGEST - self.bytes.len().min(LONGEST);
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl NewFile {
    fn opened(self) -> Option<RecordingBytes> {
        let whole = self.bytes.len() as u64 == self.length;
        RecordingBytes::from_bytes("new", self.bytes).ok().filter(|_| whole)
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(recording) = RecordingBytes::from_bytes("input", data.to_vec()) else {
        return;
    };
    if let Ok(salvage) = recording.salvage(None) {
        let mut file = NewFile::default();
        salvage.write(&mut file).expect("memory");
        assert_eq!(salvage.account().output_bytes, file.length);
        if let Some(file) = file.opened() {
            let again = file.salvage(None).expect("what was made whole can be read");
            black_box(again.account().events);
        }
    }
    if let Ok(redactable) = recording.redactable() {
        let mut file = NewFile::default();
        redactable.write(7, &mut file).expect("memory");
        if let Some(file) = file.opened() {
            black_box(file.redactable().is_ok());
        }
    }
});
