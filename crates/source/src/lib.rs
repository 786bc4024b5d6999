/*!
Opens any recording, whatever its container and wrapping, and pushes its events to a sink.

This is the one place that touches files: it maps them, unpacks what is wrapped in gzip or zstd, decides by
content what a recording is, and binds the containers' records to the event vocabulary.
*/

mod beside;
mod bytes;
mod dat;
mod error;
mod formats_dir;
mod header;
mod input;
mod layers;
mod map;
mod perf;
mod reader;
mod sniff;
mod spool;
mod text;
mod unthreaded;
mod walked;

pub use beside::read_beside;
pub use error::OpenError;
pub use formats_dir::formats_of_dir;
pub use header::{GuestMap, Header, TimeUnit};
pub use input::{OpenOptions, Recording};
pub use map::outlive_truncation;
pub use reader::{Reader, ReaderOptions};
pub use sniff::{Content, sniff};
pub use walked::Outcome;
