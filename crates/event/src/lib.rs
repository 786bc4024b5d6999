/*!
The event vocabulary: what an event is, whatever recording it came from.

Containers (perf.data, trace.dat, their texts) push [`Event`]s and [`Side`] records into a [`Sink`], in
time order. An event that trapline reasons about has a typed view, [`Data`], that reads the same whether
the event came from a binary record or from a line of text. Every other event is passed on as it is.

What an event says stands in one place. An event with a typed view is declared once, in the file of its subsystem
(`kvm/`, `sched/`, `workqueue.rs`) with its fields, their names in records and the wording of its text, and has its line
in `vocabulary.rs`. Fields that only path conditions ask for are a table in `named.rs`.

This crate does no I/O and knows no container.
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod asked;
mod chain;
mod cost;
mod define;
mod fields;
mod heads;
mod kvm;
mod losses;
mod named;
mod owned;
mod quality;
pub mod reasons;
mod record;
pub mod sched;
#[cfg(test)]
mod shortcuts;
mod sink;
mod stack;
mod stack_line;
pub mod text;
mod text_reasons;
mod vocabulary;
mod workqueue;

pub use asked::{AskedEvents, EXIT_EVENTS, PATH_EVENTS, QUEUE_EVENTS, SCHED_EVENTS};
pub use chain::{CallChain, USER_DEFERRED};
pub use cost::RecordingCost;
pub use cpuset::{MAX_CPUS, cpu_index};
pub use fields::{FieldReader, FieldScalar};
pub use heads::{CpuPause, CpuPauses, HeadTally, SILENCE_NS};
pub use kvm::{
    ExitDetail, ExitQualification, KvmApicvInhibitChanged, KvmEntry, KvmExit, KvmFpu,
    KvmHaltPollNs, KvmMmio, KvmMsr, KvmPio, KvmSysAccess, KvmUnmapHvaRange, KvmUserspaceExit,
    KvmVcpuWakeup, MmioAccess, SystemRegister,
};
pub use losses::{CpuLoss, CpuLosses};
pub use owned::OwnedType;
pub use quality::{EventAccounting, Quality};
pub use reasons::{ExitClass, ExitReason, Isa};
pub use sink::{
    Body, CallBranches, CounterMode, Event, EventOrder, EventSample, EventType, LostKind, NONE,
    ResumePlace, Side, Sink, UserStackBytes,
};
pub use stack::{KERNEL_STACK, kernel_stack};
pub use stack_line::StackFrame;
pub use tracefmt::index_of;
pub use vocabulary::{Data, Decoder, Kind, TextReader, TextReading};
pub use workqueue::{WorkqueueExecuteEnd, WorkqueueExecuteStart};
