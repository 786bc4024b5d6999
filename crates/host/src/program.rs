//! What a QEMU program says of itself.
//!
//! `version()` of QEMU's `system/vl.c` (`vl.c` before 4.2, `softmmu/vl.c` before 8.2) prints one text that is put
//! together when QEMU is compiled, so the program has it in one piece: `QEMU emulator version 8.2.2 (Debian
//! 1:8.2.2+ds-1)`; before 3.0 without a space, or with two brackets in the package's part. Nothing has to be started to
//! read it, and it is that of the program that runs, whatever was installed since.

use std::io::{self, Read};

/// What stands before the version.
const BEFORE: &[u8] = b"QEMU emulator version ";
/// Most bytes behind that are looked at: a version, and a package's in brackets.
const MAX_VERSION: usize = 256;
/// Most bytes of a program that are read. QEMU's have 15 to 40 MB, and what debuggers need stands behind their texts.
const MAX_PROGRAM: u64 = 128 << 20;
/// How much is looked at at once.
const PIECE: usize = 1 << 20;

/// Returns the version of a program of QEMU: `8.2.2 (Debian 1:8.2.2+ds-1)`; `None` if it has none.
pub(crate) fn version(program: impl Read) -> io::Result<Option<String>> {
    let mut program = program.take(MAX_PROGRAM);
    let mut piece = Vec::with_capacity(PIECE + BEFORE.len() + MAX_VERSION);
    loop {
        let kept = piece.len();
        let read = program
            .by_ref()
            .take(PIECE as u64)
            .read_to_end(&mut piece)?;
        let at_end = read == 0;
        if kept == 0 && !piece.starts_with(b"\x7fELF") {
            return Ok(None);
        }
        // What begins near the end is looked at again with what follows.
        let room = match at_end {
            true => 0,
            false => BEFORE.len() + MAX_VERSION,
        };
        let ends = piece.len().saturating_sub(room);
        let places = memchr::memmem::find_iter(&piece, BEFORE);
        let behind = places
            .take_while(|at| *at <= ends)
            .filter_map(|at| piece.get(at + BEFORE.len()..));
        if let Some(found) = behind.filter_map(text).next() {
            return Ok(Some(found));
        }
        if at_end {
            return Ok(None);
        }
        piece.drain(..ends);
    }
}

/// Returns the version that a text begins with, up to the end of its line or the program's copyright.
fn text(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.get(..MAX_VERSION).unwrap_or(bytes);
    let end = bytes.iter().position(|byte| !(b' '..=b'~').contains(byte));
    let line = std::str::from_utf8(bytes.get(..end?)?).ok()?;
    let line = line.split(", Copyright").next().unwrap_or_default().trim();
    let (major, rest) = line.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    (digits(major) && digits(minor)).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with a text at a place.
    fn program(at: usize, text: &[u8]) -> Vec<u8> {
        let mut bytes = vec![7; at];
        bytes[..4].copy_from_slice(b"\x7fELF");
        bytes.extend(text);
        bytes.extend([0; 9]);
        bytes
    }

    fn of(bytes: &[u8]) -> Option<String> {
        version(bytes).expect("bytes can be read")
    }

    #[test]
    fn a_version_is_found_wherever_it_stands() {
        let text =
            b"QEMU emulator version 6.2.0 (qemu-kvm-6.2.0-53.el8)\nCopyright (c) 2003-2021\0";
        for at in [
            4,
            77,
            PIECE - 300,
            PIECE - 1,
            PIECE,
            2 * PIECE - BEFORE.len() - 3,
            3 * PIECE + 5,
        ] {
            let found = of(&program(at, text));
            assert_eq!(
                found.as_deref(),
                Some("6.2.0 (qemu-kvm-6.2.0-53.el8)"),
                "{at}"
            );
        }
    }

    #[test]
    fn forms_of_other_releases_are_known_and_others_are_none() {
        for (text, found) in [
            (&b"QEMU emulator version 9.0.2\n"[..], Some("9.0.2")),
            (
                b"QEMU emulator version 2.0.0 (Debian 2.0.0), Copyright (c) 2003-2008",
                Some("2.0.0 (Debian 2.0.0)"),
            ),
            (b"QEMU emulator version %s\n", None),
            (b"QEMU emulator version 9\n", None),
            (b"QEMU emulator version \xff\n", None),
            (
                b"QEMU emulator version %s\0QEMU emulator version 8.1.50\0",
                Some("8.1.50"),
            ),
            (b"QEMU PC emulator version 0.9.1\n", None),
        ] {
            assert_eq!(of(&program(99, text)).as_deref(), found, "{found:?}");
        }
        // What is no program, what ends early, and what has no end.
        assert_eq!(of(b"QEMU emulator version 9.0.2\n"), None);
        assert_eq!(of(b""), None);
        let mut cut = program(99, b"QEMU emulator version 9.0");
        cut.truncate(99 + BEFORE.len() + 3);
        assert_eq!(of(&cut), None);
        let endless = [&program(99, b"")[..], BEFORE, &[b'7'; 3 * PIECE]].concat();
        assert_eq!(of(&endless), None);
    }

    #[test]
    fn no_more_than_a_programs_bytes_are_read() {
        let endless = (&b"\x7fELF"[..]).chain(io::repeat(7));
        assert_eq!(version(endless).expect("bytes"), None);
    }
}
