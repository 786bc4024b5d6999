/*!
Pairs of events: of the first one no more is recorded than each thread's last before the second.

A loop that polls runs through its first function hundreds of thousands of times a second, and to its second a few
times: all but those few are noise. Programs in the kernel (`bpf/pair.bpf.c`) keep each thread's last record of the
first event, and write it when the second comes. What they write is in the recording what perf would have written: a
record of the first event with its time, thread and CPU.

Where the first event is a probe of a program, each hit is a trap, which costs the loop more than it does itself. Then
the probe is there in windows only (`windows.rs`), and pairs between two windows are not seen.
*/

mod loaded;
mod open;
mod pair_summary;
mod probe_profile;
mod record_shape;
mod sample_patch;
mod windows;

pub(crate) use open::{KeepingProbe, OpenPair};
pub use pair_summary::PairSummary;
