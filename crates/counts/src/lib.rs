/*!
What vCPUs and the threads that work for them did in an interval: the sums that `live` counts in the kernel or from its
events, the differences of two readings ([`Snapshot::since`]), and the same with names ([`named`]). What shows
that a VM is not well is a symptom ([`CONDITIONS`], [`SymptomJudge`]), and symptoms are put together into incidents
([`IncidentTracker`]).

This crate is data: it talks to no kernel, so that whoever shows the sums needs nothing that counts them.
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod conditions;
mod incidents;
mod named;
mod roles;
mod snapshot;

pub use conditions::{
    CONDITIONS, Condition, ConditionLimit, IncidentSubject, LimitUnit, PATH_CONDITION, Symptom,
    SymptomJudge, condition,
};
pub use incidents::{IncidentRules, IncidentStep, IncidentTracker};
pub use named::{
    Choice, CountingWay, NamedBehind, NamedCounters, NamedCounts, NamedRow, NamedThread, NamedVcpu,
    RowOwner, RowTable, named,
};
pub use roles::{ThreadRole, threads_of_vms};
pub use snapshot::{
    DroppedCounts, DurationBuckets, LiveRow, LiveThread, LiveVcpu, RowSubject, SEVERAL, Snapshot,
    WaitBehind,
};
