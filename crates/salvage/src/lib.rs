/*!
What is kept and what is lost where a cut or damaged recording is made whole.

The containers (`perfdata` and `tracedat`, which have a salvage of their own each) go over a recording twice: once to
learn what is whole, and once to write it. Both count into a [`SalvageAccount`] and write through a [`SalvageOutlet`].
Nothing here does I/O.
*/
#![forbid(unsafe_code)]

mod account;
mod outlet;

pub use account::{SalvageAccount, SalvageRefusal, SalvagedCpu};
pub use outlet::{CountingOutlet, SalvageOutlet, WriteOutlet, copy_range};
