/*!
How a host has its guests recorded: the protocol between `trapline record --agent` on the host and `trapline agent` in a guest.

[`Connection`] is the host's side: it connects, proves that it has the token, starts a recording, compares clocks, stops it and fetches
the file. [`serve`] is the guest's side of one connection; what records there is a [`GuestRecorder`], so this crate knows neither events nor files.
`docs/agent.md` has the messages byte by byte.

Whoever is at the other end may be hostile. Lengths are checked before anything is allocated, everything has a time by which it has to be
there, and nothing but a greeting is read of a peer that has not proved that it has the token. This crate talks over sockets, since that is what
it is for; it prints nothing and reads no clock but the one that tells when waiting ends.
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod address;
mod channel;
mod clock;
mod error;
mod greeting;
mod host;
mod link;
mod message;
#[cfg(test)]
mod peers;
mod secret;
mod server;

pub use address::{AgentAddress, Listen};
pub use clock::{ClockSample, ClockSamples};
pub use error::AgentError;
pub use greeting::VERSION;
pub use host::Connection;
pub use link::{Link, Listener};
pub use message::{CPU, EndReason, IO, RecordingEnd, RecordingStart, SOCKETS, Start};
pub use secret::{SharedToken, TokenError, number};
pub use server::{ConnectionOutcome, GuestRecorder, Limits, RecordedGuest, serve};
