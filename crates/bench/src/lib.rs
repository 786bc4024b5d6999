/*!
Measures what things cost on the machine that it runs on, in a guest or on a host, from user space and without a kernel module: IPIs, wake-ups,
clocks, timers, exits, round trips over a network and to a disk. [`run()`] measures one of them and returns a [`results::BenchResults`].

It talks to the kernel, since that is what it is for: it pins threads, keeps CPUs busy, reads clocks and files of `/proc` and `/sys`, opens
sockets and files. It prints nothing. Threads that it starts are gone when it returns, and the calling thread's CPUs stay as they are. All `unsafe`
stands in `call.rs`.

What cannot be measured here is a row that says why, and the others are measured.
*/
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod bell;
mod call;
mod clock;
mod disk;
mod error;
mod exits;
mod interrupts;
mod ipi;
mod machine;
mod measure;
mod net;
mod noise;
mod now;
mod place;
mod run;
mod samples;
mod thread;
mod timer;
mod wake;
mod why;

pub use error::BenchError;
pub use ipi::MAX_PAIRED;
pub use measure::{MeasuredThing, Setup, run};
pub use net::{SIZES, Server};
