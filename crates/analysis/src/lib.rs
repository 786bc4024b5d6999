/*!
One file a question: push sinks that turn events into numbers.

An analysis keeps state that grows with threads and rows, never with the length of the recording, and
knows nothing of containers, files or output.
*/
#![forbid(unsafe_code)]

mod exits;
mod info;
mod names;
mod picture;
mod sched;
mod signs;
mod sleeps;
mod slices;
mod stack;
mod study;
mod tables;
mod vcpus;

pub use exits::{
    By, Convention, ExitRow, ExitTable, Exits, ExitsReport, HandledBy, MAX_EXIT_ROWS,
    MAX_GROUPED_ROWS, OTHERS, Options, Unpaired, access_key,
};
pub use info::{EventCount, Info, InfoReport};
pub use names::{builtin_names, name_access, name_causes, name_rows};
pub use picture::{Measured, NamesOf, Origin, Picture, Series};
pub use sched::{CpuRow, MAX_TASKS, Merge, Other, Sched, SchedReport, TaskRow, WorkRow};
pub use signs::{CpuSigns, Signs, is_interrupt};
pub use sleeps::{SleepRow, Sleeps};
pub use slices::{Amount, Counter, MAX_SLICES, Slice, Slices};
pub use stats::Stats;
pub use study::Study;
pub use tables::{ambiguous, of_tables};
pub use vcpus::{
    Behind, LISTED, MAX_VCPUS, Unknowable, UserCause, VcpuRow, Vcpus, VcpusReport, Window,
    unknowable,
};
