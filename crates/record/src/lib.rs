/*!
Records the events of a host that its guests' time is explained by: opens them on every CPU, and writes what the kernel
says to a perf.data file that can be read at any moment.

A [`RecordPlan`] says what is wanted, [`OpenedEvents::open`] opens it, a [`HostRecorder`] writes. This crate talks to
the kernel, since that is what it is for; its system calls stand in `rings`. It prints nothing.
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

pub mod check;
mod clock;
mod compact;
pub mod cost;
mod counters;
mod error;
pub mod file;
mod filters;
mod flight;
mod folder;
mod live;
pub mod machine;
pub mod mappings;
mod opened;
mod overwriting;
mod pairs;
mod plan;
mod probes;
mod questions;
mod reasons;
mod recorder;
mod side;
mod summary;
mod target;
pub mod tasks;
pub mod together;
mod tracefs;
pub mod tracing_data;

pub use clock::{ClockSource, EventClock};
pub use counters::{CounterReading, ThreadCounters};
pub use error::RecordError;
pub use flight::{Flight, KeepLimit};
pub use folder::{Folder, has_name};
pub use opened::{Missing, OpenedEvents};
pub use overwriting::{HeldRings, Overwriting, ShortRing, ring_bytes};
pub use pairs::PairSummary;
pub use plan::{CompactUse, PlannedEvent, PlannedPair, ProbeKind, RecordPlan};
pub use probes::Probes;
pub use questions::{Question, events};
pub use recorder::HostRecorder;
pub use summary::{RecordSummary, RecordedCount};
pub use target::{TargetVm, narrow};
pub use tracefs::{Tracefs, Tracepoint};
