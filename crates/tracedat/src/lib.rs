/*!
The trace.dat container of trace-cmd, versions 6 and 7, and the ring buffer pages in it.

[`TraceDat::parse`] takes a whole file as bytes and reads everything but the events: formats, saved names,
options, and where each CPU's data lies. [`TraceDat::walk`] then visits the records of all CPUs and buffers in the
order, and with the times, of `trace-cmd report`.

The crate does no I/O and never panics. A file that is cut off or damaged gives what can be read of it, with
diagnostics that say what is missing. Uncompressed data is borrowed from the input.

Sources: `Documentation/trace-cmd/trace-cmd.dat.v6.5.txt` and `trace-cmd.dat.v7.5.txt` of trace-cmd (the files),
`kernel/trace/ring_buffer.c` of the kernel (the pages), trace-cmd 3.1.6 and libtraceevent 1.7.1 (order and times).
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod ahead;
mod chunks;
mod clock;
mod compress;
mod error;
mod file;
mod info;
mod masked;
mod options;
mod page;
mod recover;
mod salvage;
mod sections;
mod stream;
mod v6;
mod v7;
mod walk;
#[cfg(feature = "c-zstd")]
mod zstd_c;
#[cfg(any(test, not(feature = "c-zstd")))]
mod zstd_rust;

pub use self::salvage::DatSalvage;
pub use compress::Compression;
pub use error::TraceDatError;
pub use file::{TraceDat, is_trace_dat};
pub use info::{
    Buffer, CpuPages, CpuStats, ShiftSample, TextBuffer, TimeShift, TraceGuest, TraceMetadata,
    TraceModule, TraceTimeUnit, Tsc2Nsec,
};
pub use masked::{MaskableDat, TracePrivacyMask};
pub use walk::{LostGap, RingRecord, TraceVisitor, WalkEnd};
