/*!
What vCPUs do, counted inside the kernel while they do it.

[`LivePrograms`] loads BPF programs that follow every vCPU through its states, and add up its exits, accesses, halts
and waits for a CPU, by the rules by which `model` and `analysis` count recordings. [`LivePrograms::snapshot`] returns
the sums; what two snapshots differ by ([`counts::Snapshot::since`]) is what happened between them. Where a kernel
allows no BPF, [`EventCounter`] makes the same sums out of events that somebody reads from the kernel's rings.

The programs stand in `bpf/`; `bpf/build` compiles them with Debian's clang into `bpf/live.bpf.o`, which is committed.
They know no struct of KVM's: an exit's reason is read out of its record, at the place that the running kernel's format
says.
*/
#![deny(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod error;
mod events;
mod layout;
mod load;
mod places;
#[allow(
    unsafe_code,
    reason = "says of the programs' structs that they are plain numbers"
)]
mod raw;
mod read;
#[cfg(test)]
mod replay;
mod seeds;

pub use error::LiveError;
pub use events::{EVENTS, EventCounter};
pub use load::{LiveOptions, LivePrograms};
pub use seeds::{Seed, ThreadSeed, seeds, thread_seeds};
