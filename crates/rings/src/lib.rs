/*!
Events of the running kernel, and the ring buffers that it writes them to: `perf_event_open(2)`, its `ioctl`s and its
maps.

An [`RingAttr`] says what is to be recorded of an event, [`RingEvent::open`] opens it on one CPU, and a [`Ring`] is what
the kernel writes the records of all events of that CPU to ([`Ring::of`]). [`Ring::written`] is what waits there, in
place: nothing is copied; [`Ring::take`] says that it was read. A ring that goes on over what is old is read while it is
paused ([`Ring::pause`]).

All system calls and all `unsafe` of recording stand in this crate, in `call.rs` and `map.rs`.

Source: `include/uapi/linux/perf_event.h`, `kernel/events/core.c` and `ring_buffer.c` of Linux 6.1 to 6.18,
perf_event_open(2).
*/
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod attr;
mod call;
mod event;
mod map;
mod record_layout;
mod ring;

pub use attr::{CountedMode, EventSource, RingAttr, SIZE, format, sample};
pub use call::{more_files, page_size, wait_for, write_at};
pub use event::{EventCounts, RingEvent};
pub use map::SharedWords;
pub use record_layout::{SIZE_PLACE, TIME_FROM_END, record_type, sample_place};
pub use ring::{PausedRing, Ring, RingPlace, RingRecords, SplitRecord, WrittenBytes};
