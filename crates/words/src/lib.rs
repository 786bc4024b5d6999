/*!
How numbers and names are put into sentences and tables: durations, shares, counts, lists, what VMs and vCPUs are called.

Everything that a person reads is written with these, so that a number looks the same wherever it stands. This crate
depends on nothing.
*/
#![forbid(unsafe_code)]

mod count;
pub mod duration;
mod list;
mod number;
pub mod share;
mod who;

pub use count::{counted, plural, times};
pub use list::{capital, list, list_first};
pub use number::{change, number, rose};
pub use who::{vcpu, with_thread};
