/*!
perf.data: the recordings of `perf record`, file mode and pipe mode, in exact time order.

[`PerfRecording::parse`] reads what stands around the data (attributes, features, tracing data);
[`PerfRecording::walk`] pushes samples and side records to a [`PerfVisitor`], borrowed from the input. The input is
one slice: whoever owns it maps the file, and learns through [`PerfVisitor::release`] which part was read and
may leave memory.

Nothing here does I/O, and nothing fails as a whole: a cut-off file yields every complete record before the
cut, and diagnostics that say what was expected.

Sources: `tools/perf/Documentation/perf.data-file-format.txt`, `tools/perf/util/{header,session,evsel}.c`,
`tools/lib/perf/include/perf/event.h`, `include/uapi/linux/perf_event.h` (kernel 6.1 to 6.18).
*/
#![deny(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod attr;
mod byte_source;
mod chunks;
mod compressed;
mod error;
mod feature;
mod file;
mod folder;
mod header;
mod ids;
mod masked;
mod merge;
mod pipe;
mod record;
mod salvage;
mod sample;
mod sample_head;
mod walk;

pub use self::salvage::{PerfSalvage, tracing_section};
pub use attr::{AttrType, EventAttr, SampleLayout};
pub use byte_source::ByteSource;
pub use error::PerfFileError;
pub use feature::{BuildId, PerfMachine};
pub use file::PerfRecording;
pub use folder::{FILE_HEADER, join_records, records_end};
pub use header::is_perf_data;
pub use masked::{OmittedParts, PrivacyMask};
pub use record::{LostSource, SideRecord};
pub use sample::{PerfSample, SampledUserStack, TracepointRecord};
pub use walk::{PerfPieces, PerfVisitor, SampleTally, SampleWish, Totals, WalkPlace};
