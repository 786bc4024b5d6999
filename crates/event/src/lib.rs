/*!
The event vocabulary: what an event is, whatever recording it came from.

Containers (perf.data, trace.dat, their texts) push [`Event`]s and [`Side`] records into a [`Sink`], in
time order. An event that trapline reasons about has a typed view, [`Data`], that reads the same whether
the event came from a binary record or from a line of text. Every other event is passed on as it is.

This crate does no I/O and knows no container.
*/
#![forbid(unsafe_code)]

mod data;
mod decode;
mod decode_sched;
mod kind;
mod quality;
pub mod reasons;
pub mod sched;
mod sink;
mod stack;

pub use data::{
    Data, KvmEntry, KvmExit, KvmHaltPollNs, KvmMmio, KvmMsr, KvmPio, KvmUserspaceExit,
    KvmVcpuWakeup, MmioAccess,
};
pub use decode::Decoder;
pub use kind::Kind;
pub use quality::Quality;
pub use reasons::{ExitReason, Isa};
pub use sink::{Body, Event, EventType, LostKind, NONE, Sample, Side, Sink};
pub use stack::{CallChain, KERNEL_STACK, kernel_stack};
