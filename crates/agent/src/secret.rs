//! What both sides know and nobody else: the token, and what is made of it.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::Sha256;

/// Bytes that a token has at least, and at most.
const SHORTEST: usize = 16;
const LONGEST: usize = 4096;
/// Bits of a file's mode by which others than its owner may read or write it.
const OTHERS: u32 = 0o077;

/// Bytes of a number that is used once.
pub(crate) const NONCE: usize = 32;
/// Bytes of a proof.
pub(crate) const PROOF: usize = 32;
/// Bytes by which a message is known to be the other side's.
pub(crate) const TAG: usize = 16;

/// What each thing that is made of the token begins with, so that none can stand for another.
const HOST: &[u8] = b"trapline agent 1: the host has the token";
const GUEST: &[u8] = b"trapline agent 1: the guest has the token";
const FROM_HOST: &[u8] = b"trapline agent 1: key of the host's messages";
const FROM_GUEST: &[u8] = b"trapline agent 1: key of the guest's messages";

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

    fn mac(&self, parts: [&[u8]; 3]) -> Hmac<Sha256> {
        mac(&self.0, &parts)
    }
}

/// Returns the HMAC-SHA256 of parts of known length.
fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    // A key may have any length.
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()));
    parts.iter().for_each(|part| mac.update(part));
    mac
}

/// What each side chose for this connection alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nonces {
    pub host: [u8; NONCE],
    pub guest: [u8; NONCE],
}

impl Nonces {
    fn proof(&self, token: &SharedToken, whose: &[u8]) -> Hmac<Sha256> {
        token.mac([whose, &self.host, &self.guest])
    }

    /// Returns by what the host shows that it has the token.
    pub(crate) fn of_host(&self, token: &SharedToken) -> [u8; PROOF] {
        self.proof(token, HOST).finalize().into_bytes().into()
    }

    /// Returns by what the guest shows it.
    pub(crate) fn of_guest(&self, token: &SharedToken) -> [u8; PROOF] {
        self.proof(token, GUEST).finalize().into_bytes().into()
    }

    /// Returns whether the host has shown it, in the same time whatever it sent.
    pub(crate) fn is_hosts(&self, token: &SharedToken, proof: &[u8]) -> bool {
        self.proof(token, HOST).verify_slice(proof).is_ok()
    }

    /// The same of the guest.
    pub(crate) fn is_guests(&self, token: &SharedToken, proof: &[u8]) -> bool {
        self.proof(token, GUEST).verify_slice(proof).is_ok()
    }

    /// Returns the keys of this connection's messages: the host's, and the guest's.
    pub(crate) fn keys(&self, token: &SharedToken) -> [MessageKey; 2] {
        [FROM_HOST, FROM_GUEST].map(|whose| MessageKey {
            key: self.proof(token, whose).finalize().into_bytes().into(),
            count: 0,
        })
    }
}

/// The key of messages in one direction, and how many there were.
pub(crate) struct MessageKey {
    key: [u8; 32],
    count: u64,
}

impl std::fmt::Debug for MessageKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key(.., {})", self.count)
    }
}

impl MessageKey {
    /// Begins the next message.
    fn next(&mut self, message: &[u8]) -> Hmac<Sha256> {
        let count = self.count.to_le_bytes();
        self.count += 1;
        mac(&self.key, &[&count, message])
    }

    /// Returns what the next message is known by.
    pub(crate) fn tag(&mut self, message: &[u8]) -> [u8; TAG] {
        let whole = self.next(message).finalize().into_bytes();
        let mut tag = [0; TAG];
        tag.copy_from_slice(&whole[..TAG]);
        tag
    }

    /// Returns whether the next message is known by this, in the same time whatever it is.
    pub(crate) fn fits(&mut self, message: &[u8], tag: &[u8]) -> bool {
        tag.len() == TAG && self.next(message).verify_truncated_left(tag).is_ok()
    }
}

/// Returns bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Returns a number that no other recording has.
///
/// # Errors
///
/// Those of getrandom(2).
pub fn number() -> io::Result<u64> {
    random().map(u64::from_le_bytes)
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
    fn a_proof_is_of_one_side_of_one_connection() {
        let token = SharedToken::of(b"0123456789abcdef").expect("a token");
        let other = SharedToken::of(b"0123456789abcdeg").expect("a token");
        let nonces = Nonces {
            host: [1; NONCE],
            guest: [2; NONCE],
        };
        let proof = nonces.of_host(&token);
        assert!(nonces.is_hosts(&token, &proof));
        assert!(!nonces.is_hosts(&other, &proof));
        assert!(!nonces.is_guests(&token, &proof), "it cannot be sent back");
        assert!(!nonces.is_hosts(&token, &proof[..31]) && !nonces.is_hosts(&token, &[]));
        let later = Nonces {
            guest: [3; NONCE],
            ..nonces
        };
        assert!(!later.is_hosts(&token, &proof), "it cannot be used again");
    }

    #[test]
    fn a_message_is_known_by_its_turn_and_direction() {
        let token = SharedToken::of(b"0123456789abcdef").expect("a token");
        let nonces = Nonces {
            host: [1; NONCE],
            guest: [2; NONCE],
        };
        let [mut host, _] = nonces.keys(&token);
        let [mut same, mut guest] = nonces.keys(&token);
        let tag = host.tag(b"one");
        assert!(!guest.fits(b"one", &tag));
        assert!(same.fits(b"one", &tag));
        assert!(!same.fits(b"one", &tag), "a message counts once");
        let tag = host.tag(b"two");
        let [mut fresh, _] = nonces.keys(&token);
        assert!(!fresh.fits(b"two", &tag), "it is the second");
        assert!(!fresh.fits(b"x", &[]));
    }

    /// RFC 4231, test case 2.
    #[test]
    fn the_mac_is_hmac_sha256() {
        let whole = mac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        let bytes = whole.finalize().into_bytes();
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            text,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
