//! The channel's protection: which protocol of the Noise framework both sides speak, and what they make of their token.
//!
//! Source: The Noise Protocol Framework, revision 34 (noiseprotocol.org), sections 5 (processing rules), 7.5 (the
//! pattern NN) and 9 (pre-shared keys). The `snow` crate implements it.

use snow::{Builder, HandshakeState, TransportState};

use crate::error::AgentError;
use crate::secret::SharedToken;

/// Neither side has a key of its own (`NN`): who has the token is who may talk. The token's key goes in first
/// (`psk0`), so that an agent sends nothing that depends on it to a peer that has not shown it.
const PROTOCOL: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// Bytes that encryption adds to a message: the tag of ChaCha20-Poly1305.
pub(crate) const TAG: usize = 16;
/// Bytes of either message of the handshake: an ephemeral public key of Curve25519, and the tag of an empty content.
pub(crate) const HANDSHAKE: usize = 32 + TAG;

/// A handshake that both sides have still to end.
pub(crate) struct NoiseHandshake(HandshakeState);

/// Which side is made of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoiseSide {
    Host,
    Guest,
}

impl NoiseHandshake {
    /// Begins one. `greetings` are the bytes of both greetings: sides that have not seen the same ones do not come
    /// together.
    pub(crate) fn begin(
        side: NoiseSide,
        token: &SharedToken,
        greetings: &[u8],
    ) -> Result<NoiseHandshake, AgentError> {
        let key = token.key();
        let protocol = PROTOCOL.parse().map_err(AgentError::of_noise)?;
        let builder = Builder::new(protocol)
            .psk(0, &key)
            .map_err(AgentError::of_noise)?;
        let builder = builder.prologue(greetings).map_err(AgentError::of_noise)?;
        let state = match side {
            NoiseSide::Host => builder.build_initiator(),
            NoiseSide::Guest => builder.build_responder(),
        };
        state.map(NoiseHandshake).map_err(AgentError::of_noise)
    }

    /// Returns this side's message.
    pub(crate) fn write(&mut self) -> Result<[u8; HANDSHAKE], AgentError> {
        let mut message = [0; HANDSHAKE];
        let written = self.0.write_message(&[], &mut message);
        written.map_err(AgentError::of_noise)?;
        Ok(message)
    }

    /// Reads the other side's message. What cannot be read is not of one that has the token.
    pub(crate) fn read(&mut self, message: &[u8]) -> Result<(), AgentError> {
        let mut nothing = [0; HANDSHAKE];
        match self.0.read_message(message, &mut nothing) {
            Ok(0) => Ok(()),
            Ok(_) | Err(_) => Err(AgentError::WrongToken),
        }
    }

    /// Returns the keys that are used from now on.
    pub(crate) fn end(self) -> Result<NoiseKeys, AgentError> {
        let state = self.0.into_transport_mode();
        state.map(NoiseKeys).map_err(AgentError::of_noise)
    }
}

/// The keys of both directions, and how many messages there were in each: one of another connection, direction or turn
/// cannot be read.
pub(crate) struct NoiseKeys(TransportState);

impl std::fmt::Debug for NoiseKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NoiseKeys(..)")
    }
}

impl NoiseKeys {
    /// Appends a message, encrypted.
    pub(crate) fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), AgentError> {
        let at = out.len();
        out.resize(at + plain.len() + TAG, 0);
        let written = self.0.write_message(plain, &mut out[at..]);
        written.map(drop).map_err(AgentError::of_noise)
    }

    /// Returns what a message says.
    pub(crate) fn decrypt(&mut self, message: &[u8]) -> Result<Vec<u8>, AgentError> {
        let mut plain = vec![0; message.len()];
        let read = self.0.read_message(message, &mut plain);
        plain.truncate(read.map_err(|_| AgentError::Forged)?);
        Ok(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &[u8]) -> SharedToken {
        SharedToken::of(text).expect("a token")
    }

    /// What becomes of two sides with these tokens that have seen these greetings.
    fn met(tokens: [&[u8]; 2], greetings: [&[u8]; 2]) -> Result<[NoiseKeys; 2], AgentError> {
        let [host, guest] = tokens.map(token);
        let mut host = NoiseHandshake::begin(NoiseSide::Host, &host, greetings[0])?;
        let mut guest = NoiseHandshake::begin(NoiseSide::Guest, &guest, greetings[1])?;
        guest.read(&host.write()?)?;
        host.read(&guest.write()?)?;
        Ok([host.end()?, guest.end()?])
    }

    const SAME: [&[u8]; 2] = [b"0123456789abcdef"; 2];

    #[test]
    fn a_message_is_read_once_in_its_turn_and_direction() {
        let [mut host, mut guest] = met(SAME, [b"x"; 2]).expect("the same token");
        let mut encrypted = Vec::new();
        host.encrypt(b"one", &mut encrypted).expect("room");
        assert!(!encrypted.windows(3).any(|piece| piece == b"one"));
        assert!(matches!(host.decrypt(&encrypted), Err(AgentError::Forged)));
        assert_eq!(guest.decrypt(&encrypted).expect("it is whole"), b"one");
        assert!(guest.decrypt(&encrypted).is_err(), "a message counts once");
        let [mut other, _] = met(SAME, [b"x"; 2]).expect("the same token");
        let mut second = Vec::new();
        host.encrypt(b"two", &mut second).expect("room");
        second[0] ^= 1;
        assert!(guest.decrypt(&second).is_err(), "it was changed");
        assert!(other.decrypt(&second).is_err(), "of another connection");
        assert!(guest.decrypt(&[]).is_err());
    }

    #[test]
    fn another_token_or_another_greeting_ends_it() {
        let other: [&[u8]; 2] = [SAME[0], b"0123456789abcdeg"];
        let error = met(other, [b"x"; 2]).expect_err("another token");
        assert!(matches!(error, AgentError::WrongToken), "{error}");
        let error = met(SAME, [b"x", b"y"]).expect_err("another greeting");
        assert!(matches!(error, AgentError::WrongToken), "{error}");
    }
}
