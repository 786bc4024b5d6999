//! Texts that are no recordings, line by line.

use doubts::DoubtKind;
use event::Quality;

use crate::RecordingBytes;
use crate::map::PAGE;

/// Pages are given back, and the file's length is looked at, when this much was read.
const STEP: usize = 1 << 20;

impl RecordingBytes {
    /// Hands out all lines without their line feeds, and the number of each, from 1 on. Says what is missing from the
    /// text.
    ///
    /// Nothing is copied, and pages are given back behind the line that was read.
    pub fn lines(&self, mut each: impl FnMut(u64, &[u8])) -> Quality {
        let bytes = self.present();
        let (mut at, mut number, mut released) = (0, 0, 0);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            number += 1;
            each(number, &rest[..end]);
            at += end + 1;
            if at - released >= STEP {
                self.release(released..at.min(bytes.len()));
                // What was left of the last page goes with the next.
                released = at / PAGE * PAGE;
                if self.cut_at().is_some() {
                    break;
                }
            }
        }
        self.completeness()
    }

    /// What is missing of the file, and what was odd in unpacking it.
    fn completeness(&self) -> Quality {
        let mut quality = Quality::default();
        if let Some(byte) = self.cut_at() {
            quality.truncated = true;
            quality.raise(DoubtKind::CutWhileRead { byte });
        }
        for reason in self.warnings() {
            quality.truncated = true;
            quality.raise(DoubtKind::InputBroken {
                reason: reason.clone(),
            });
        }
        quality
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_are_those_of_the_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        let long = "x".repeat(3 * STEP);
        let many = "a line\n".repeat(STEP / 2);
        let both = format!("{long}\n{many}end");
        for text in ["a\n\nb", "a\n", "\n", &long, &many, &both] {
            fs::write(&path, text).expect("a file");
            let expected: Vec<&str> = text.lines().collect();
            let mut found = 0;
            let recording = RecordingBytes::open(&path).expect("a text");
            let quality = recording.lines(|number, line| {
                let at = usize::try_from(number).expect("a number") - 1;
                assert_eq!((at, line), (found, expected[at].as_bytes()));
                found += 1;
            });
            assert_eq!((found, quality), (expected.len(), Quality::default()));
        }
    }

    #[test]
    fn a_file_that_is_cut_meanwhile_is_read_up_to_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        fs::write(&path, "a line\n".repeat(STEP)).expect("a file");
        let recording = RecordingBytes::open(&path).expect("a text");
        let mut lines = 0u64;
        let quality = recording.lines(|number, _| {
            lines = number;
            if number == 10 {
                let file = fs::File::options().write(true).open(&path);
                // Beyond what is read before the next look.
                let length = 4 * STEP as u64;
                file.and_then(|file| file.set_len(length))
                    .expect("a shorter file");
            }
        });
        assert!(quality.truncated);
        assert!(lines < STEP as u64, "{lines}");
    }
}
