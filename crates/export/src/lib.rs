/*!
Recordings as files of other tools: Perfetto's traces, tables for spreadsheets, a summary for tickets.

What is exported of single spans, exits, instances of paths and switches is made while the recording is walked ([`Walk`]): memory
grows with threads, CPUs and names, never with length. Names of vCPUs and VMs, and what the recording cannot tell, are known at a
recording's end only, so that it is walked twice: [`Known`] is what the first walk found.

Nothing is written here: what was made waits in [`Take::made`], to be taken and written by the caller.
*/
#![forbid(unsafe_code)]

mod known;
pub mod markdown;
mod perfetto;
mod rows;
mod tap;
mod walk;

pub use known::{Known, VcpuName};
pub use perfetto::{About, Perfetto};
pub use rows::{ExitRows, InstanceRows, SpanRows};
pub use tap::{Tap, Wanted};
pub use walk::{Found, Scene, Take, Walk};
