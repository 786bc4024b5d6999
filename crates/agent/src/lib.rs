/*!
How a host has its guests recorded: the protocol between `trapline record --agent` on the host and `trapline agent` in a
guest.

[`Connection`] is the host's side: it connects, proves that it has the token, starts a recording, compares clocks, stops
it and fetches the file. [`serve`] is the guest's side of one connection; what records there is a [`GuestRecorder`], so
this crate knows neither events nor files.

Whoever is at the other end may be hostile. Lengths are checked before anything is allocated, everything has a time by
which it has to be there, and nothing but a greeting is read of a peer that has not proved that it has the token. This
crate talks over sockets, since that is what it is for; it prints nothing and reads no clock but the one that says when
waiting ends.

# The protocol

Version 2. Numbers are little-endian. A message is

| bytes | |
| --- | --- |
| 4 | how many bytes follow: at most 256 before both sides know each other, then 32,785 |
| 1 | its kind |
| ... | its contents |
| 16 | once both sides know each other, when kind and contents are encrypted: the tag |

Lengths are checked before anything else. A message that is too long, ends early, has bytes left over or is of a kind
whose turn it is not ends the connection. Each has to arrive within ten seconds of its beginning.

| kind | from | contents |
| --- | --- | --- |
| 1 hello | host, then agent | `trapline`, version (2), length of a name (1, at most 64), the name |
| 2 handshake | host | the first message of the Noise handshake (48) |
| 3 handshake | agent | the second (48) |
| 4 wrong token | agent | nothing |
| 5 ready | host | nothing: the first message that is encrypted |
| 16 start | host | questions (1), longest time in ms (8), largest file (8), id of the host's recording (8) |
| 17 started | agent | its own id (8), allowed time (8) and size (8), the guest's name, what is not recorded |
| 18 clock | host | its time, ns (8) |
| 19 time | agent | the host's time again (8), whether it knows its own (1), its own, ns (8) |
| 20 stop | host | two comparisons of clocks, before and after the recording |
| 21 stopped | agent | why (1), bytes of the file (8), events (8), losses known? (1), lost events (8), a text |
| 22 fetch | host | nothing |
| 23 chunk | agent | up to 32,768 bytes of the file |
| 24 end | agent | SHA-256 of the file (32) |
| 25 done | host | nothing: it has the file, and the agent removes its own |
| 31 failed | either | why it cannot go on |

- All of a hello up to the name is the same in all versions; a side of another version names both and ends.
- The handshake is `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s` (The Noise Protocol Framework, revision 34) with empty
  contents. The host is the initiator. The prologue is the contents of the host's hello and of the agent's. The
  pre-shared key is the SHA-256 of `trapline agent 2: pre-shared key` and the token.
- From `ready` on, kind and contents are a transport message of Noise: encrypted with keys of this connection, and
  refused out of their order and direction. Who overheard a connection and learns the token later cannot read it, since
  both ephemeral keys are gone.
- Questions are bits: 0 `cpus`, 1 `io`, 2 `sockets`. Texts are a length (2) and UTF-8.
- A comparison of clocks is whether there is one (1), the middle between question and answer on the host's clock (8),
  the guest's time (8), and how long the answer took (8).
- Why it stopped: 0 it was asked to, 1 time, 2 size, 3 it failed; then the text says why.

The clocks are those of the events, which no system call returns (`record/src/clock.rs`): each side gives its own thread
the name that it has, and reads the time that the kernel records for that. Of 32 questions before and 32 after the
recording the quickest answer counts. Another one every two seconds shows each side that the other is there. In the
laboratory (an emulated x86 host, vsock, quickest answer 1.4 ms) the result was 58 us away from what the events of the
same two files say: 15.890804 s, give or take 14 us, by which 14,028 of 14,028 events of the guest lie in their vCPU's
windows.
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
mod noise;
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
