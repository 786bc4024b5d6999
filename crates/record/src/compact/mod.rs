/*!
Events that programs in the kernel write as records of 24 bytes (`bpf/compact.bpf.c`), and that become perf's records
here.

What perf's tracepoints cost is mostly the record that they make and its way to the ring. The scheduler's events and
KVM's come often, and what their records have is mostly in the arguments of the tracepoint. So programs write these
into slots that no lock guards, and the recorder puts the records together, as perf would have written them, with names
of threads that it knows. All other events are perf's own, on the same clock (CLOCK_MONOTONIC), in the same file.

Who keeps the last seconds lets programs go on over what is old. When something has happened they pause, and what their
slots have is put together then (`held`).

A field that no program can know is left out of the event's format: readers see a format with fewer fields.
*/

mod expanded_record;
mod held;
mod kinds;
mod loaded;
mod open;
mod reduced_format;
mod slot_reader;
mod thread_names;

pub(crate) use held::HeldSlots;
pub(crate) use open::OpenCompact;
