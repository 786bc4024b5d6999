/*!
How a recording of this machine is made, on top of `record` (events, rings, files) and `agent` (the protocol): what its
file says of the machine ([`before`]), which events answer a host's questions within the bounds of a file
([`open_for_guest`]), and this machine as the guest whose recording a host asks for ([`AskedMachine`]).

It talks to the kernel, since that is what it is for. It prints nothing and knows no command line.
*/
#![forbid(unsafe_code)]

mod clocks;
mod guest;
mod machine;
mod questions;

pub use clocks::clock_comparisons;
pub use guest::{AskedMachine, DATA, GuestFile};
pub use machine::{Program, before, missing_sentences, of_machine};
pub use questions::{open_for_guest, too_small};
