/*!
One file a question: push sinks that turn events into numbers.

An analysis keeps state that grows with threads and rows, never with the length of the recording, and
knows nothing of containers, files or output.
*/
#![forbid(unsafe_code)]

mod analysis;
mod chosen;
mod console;
mod continuity;
mod exits;
mod faults;
mod follow_paths;
mod info;
mod ipis;
mod moves;
mod names;
mod picture;
mod ratios;
mod record;
mod recorder;
mod sched;
mod series;
mod signs;
mod sleeps;
mod slices;
mod stalls;
mod study;
mod tables;
mod timers;
mod vcpus;
mod waits;

pub use analysis::{Analysis, Context, Needs, Note, Notes, States, Turn, Walked, Want};
pub use chosen::{Chosen, LeftOut, Window};
pub use console::{Console, ConsoleLine, ConsoleSums, Uart};
pub use continuity::{Continuity, ContinuityReport, Turns};
pub use exits::{
    By, Convention, ExitRow, ExitTable, Exits, ExitsReport, HandledBy, MAX_EXIT_ROWS,
    MAX_GROUPED_ROWS, OTHERS, Options, Unpaired, access_key,
};
pub use faults::{APIC_PAGE, Faults, FaultsReport, Taken};
pub use info::{EventCount, Info, InfoReport};
pub use ipis::{IpiSums, Ipis, IpisReport};
pub use moves::{Moves, MovesRow, Runs};
pub use names::{builtin_names, name_access, name_causes, name_rows};
pub use picture::{About, NamesOf, Origin, Picture};
pub use ratios::{RatioRow, ratios};
pub use recorder::{Recorder, RecorderReport, RecorderThread, Role, is_recorder};
pub use sched::{CpuRow, MAX_TASKS, Merge, Other, Sched, SchedReport, TaskRow, WorkRow};
pub use series::{Measured, Series};
pub use signs::{CpuSigns, Signs, is_interrupt};
pub use sleeps::{SleepRow, Sleeps};
pub use slices::{Amount, Counter, MAX_SLICES, Slice, Slices};
pub use stalls::{Held, LONG_NS, Ran, Stall, Stalls, StallsReport};
pub use stats::Stats;
pub use study::Study;
pub use tables::{ambiguous, of_tables};
pub use timers::{HOST_TIMER_VECTOR, TimerRow, TimerTold, Timers, TimersReport};
pub use vcpus::{
    Behind, LISTED, MAX_VCPUS, Unknowable, UserCause, VcpuRow, Vcpus, VcpusReport, unknowable,
};
pub use waits::{Crowd, VcpuWaits, WaitsReport, Who};
