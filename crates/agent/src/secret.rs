//! What both sides know and nobody else: the token, and the key that is made of it.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

/// Bytes that a token has at least, and at most.
const SHORTEST: usize = 16;
const LONGEST: usize = 4096;
/// Bits of a file's mode by which others than its owner may read or write it.
const OTHERS: u32 = 0o077;

/// Bytes of the key that a channel is made of.
pub(crate) const KEY: usize = 32;

/// What the key is the hash of, before the token: a token that something else uses too gives another key here.
const PURPOSE: &[u8] = b"trapline agent 2: pre-shared key";

/// The secret that both sides have.
#[derive(Clone)]
pub struct SharedToken(Vec<u8>);

impl std::fmt::Debug for SharedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Why a file is no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It cannot be read.
    #[error("{path}: cannot be read: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is a folder, a pipe or the like.
    #[error("{path}: is no file, and a token is read from one")]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// Others may read it.
    #[error(
        "{path}: others than its owner may read or write it (mode {mode:03o}), so it is no secret: 'chmod 600 {path}'"
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is too short, or too long.
    #[error(
        "{path}: has {length} bytes, and a token has {SHORTEST} to {LONGEST}: make one with 'head -c 32 /dev/urandom | \
         base64 > {path}'"
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// Its bytes, without blanks around them; one more than the most where there are more.
        length: usize,
    },
}

impl SharedToken {
    /// Reads a token from a file that nobody but its owner may read. Blanks around it do not count.
    ///
    /// # Errors
    ///
    /// [`TokenError`].
    pub fn read(path: &Path) -> Result<SharedToken, TokenError> {
        let read = |error| TokenError::Read {
            path: path.to_owned(),
            error,
        };
        // A pipe would wait for somebody who writes.
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = file.map_err(read)?;
        // Of the file that is open, not of whatever has its name by now.
        let data = file.metadata().map_err(read)?;
        if !data.is_file() {
            return Err(TokenError::NoFile {
                path: path.to_owned(),
            });
        }
        let mode = data.mode() & 0o777;
        if mode & OTHERS != 0 {
            return Err(TokenError::Open {
                path: path.to_owned(),
                mode,
            });
        }
        let mut bytes = Vec::new();
        let most = LONGEST as u64 + 1;
        file.take(most).read_to_end(&mut bytes).map_err(read)?;
        SharedToken::of(&bytes).map_err(|length| TokenError::Length {
            path: path.to_owned(),
            length,
        })
    }

    /// Returns the token that these bytes are, without blanks around them.
    ///
    /// # Errors
    ///
    /// Returns how many bytes there are where these are too few or too many.
    pub fn of(bytes: &[u8]) -> Result<SharedToken, usize> {
        let bytes = bytes.trim_ascii();
        match bytes.len() {
            SHORTEST..=LONGEST => Ok(SharedToken(bytes.to_vec())),
            length => Err(length),
        }
    }

    /// Returns the key that both sides make of it.
    pub(crate) fn key(&self) -> [u8; KEY] {
        let mut hash = Sha256::new();
        hash.update(PURPOSE);
        hash.update(&self.0);
        hash.finalize().into()
    }
}

/// Returns a number that no other recording has.
///
/// # Errors
///
/// Those of getrandom(2).
pub fn number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn written(mode: u32, text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
        (folder, path)
    }

    #[test]
    fn a_token_is_a_secret_of_some_length() {
        let (_folder, path) = written(0o600, "  0123456789abcdef\n");
        let token = SharedToken::read(&path).expect("a token");
        assert_eq!(token.0, b"0123456789abcdef");
        assert_eq!(format!("{token:?}"), "Token(..)");
        for mode in [0o640, 0o604, 0o620, 0o666, 0o610] {
            let (_folder, path) = written(mode, "0123456789abcdef");
            let error = SharedToken::read(&path).expect_err("others may read it");
            assert!(
                matches!(error, TokenError::Open { .. }),
                "{mode:o}: {error}"
            );
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
        for text in [
            "",
            "   \n",
            "0123456789abcde",
            &"x".repeat(LONGEST + 1),
            &"x".repeat(LONGEST * 3),
        ] {
            let (_folder, path) = written(0o600, text);
            let error = SharedToken::read(&path).expect_err("its length");
            assert!(matches!(error, TokenError::Length { .. }), "{error}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let error = SharedToken::read(folder.path()).expect_err("a folder");
        assert!(matches!(error, TokenError::NoFile { .. }), "{error}");
        let error = SharedToken::read(&folder.path().join("none")).expect_err("nothing");
        assert!(error.to_string().contains("No such file"), "{error}");
    }

    #[test]
    fn a_key_is_of_its_whole_token() {
        let key = |token: &[u8]| SharedToken::of(token).expect("a token").key();
        assert_eq!(key(b"0123456789abcdef"), key(b" 0123456789abcdef\n"));
        assert_ne!(key(b"0123456789abcdef"), key(b"0123456789abcdeg"));
        let long = vec![b'x'; LONGEST];
        assert_ne!(key(&long), key(&long[1..]));
    }
}
