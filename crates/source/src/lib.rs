/*!
Opens any recording, whatever its container and wrapping, and pushes its events to a sink.

This is the one place that touches files: it maps them, unpacks what is wrapped in gzip or zstd, decides by
content what a recording is, and binds the containers' records to the event vocabulary.

```
use std::ops::ControlFlow;

use event::{Event, EventType, Sink};
use source::{ReaderOptions, RecordingBytes};

/// Counts exits.
#[derive(Default)]
struct Exits(u64);

impl Sink for Exits {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        ty.name == "kvm_exit"
    }

    fn event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/vmx/tiny-irqchip/trace.dat");
let recording = RecordingBytes::open(file.as_ref())?;
let mut exits = Exits::default();
let outcome = recording.reader(ReaderOptions::default())?.walk(&mut exits);
assert_eq!((exits.0, outcome.quality.lost_events), (6625, 0));
# Ok::<(), source::OpenError>(())
```
*/
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod beside;
mod bytes;
mod dat;
mod error;
mod formats_dir;
mod header;
mod input;
mod kept;
mod layers;
mod lines;
mod map;
mod pairs;
mod perf;
mod perf_folder;
mod perf_push;
mod progress;
mod reader;
mod redacted;
mod salvaged;
mod sniff;
mod spool;
mod text;
mod together;
mod unthreaded;
mod walked;

pub use beside::{guests_in_folder, may_be_short, read_beside};
pub use error::OpenError;
pub use formats_dir::formats_of_dir;
pub use header::{
    GuestMap, JointRecordings, RecordingHeader, TimeStampUnit, WallClock, WallClockSource,
};
pub use input::{OpenOptions, RecordingBytes};
pub use map::outlive_truncation;
pub use perf::RecordingPieces;
pub use progress::{ReadActivity, ReadProgress, ReadStep};
pub use reader::{ReaderOptions, RecordingReader};
pub use redacted::RedactableRecording;
pub use salvaged::RecordingSalvage;
pub use sniff::{FileContent, sniff};
pub use walked::WalkOutcome;
