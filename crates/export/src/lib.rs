/*!
Recordings as files of other tools: Perfetto's traces, tables for spreadsheets, a summary for tickets.

What is exported of single spans, exits, instances of paths and switches is made while the recording is walked
([`ExportWalk`]): memory grows with threads, CPUs and names, never with length. Names of vCPUs and VMs, and what the
recording cannot tell, are known at a recording's end only, so that it is walked twice: [`FirstWalk`] is what the first
walk found.

Nothing is written here: what was made waits in [`ExportFile::made`], to be taken and written by the caller.
*/
#![forbid(unsafe_code)]

mod ctf;
mod known;
mod lines;
pub mod markdown;
mod perfetto;
mod pprof;
mod proto;
mod rows;
mod stored;
mod tap;
mod walk;

pub use ctf::{CtfFiles, CtfTrace};
pub use known::{FirstWalk, VcpuName};
pub use perfetto::{Perfetto, TraceMachine};
pub use pprof::PprofProfile;
pub use rows::{ExitRows, InstanceRows, SpanRows};
pub use stored::{StoredDetail, StoredRowsTaker};
pub use tap::{ExportWish, Tap};
pub use walk::{ExportFile, ExportSources, ExportWalk, ExportedThing, Scene};
