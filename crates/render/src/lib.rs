/*!
Numbers and events to text, JSON, CSV and HTML.

Nothing here counts or decides: it prints what analyses found. Names of JSON fields are a contract with
other people's scripts.
*/
#![forbid(unsafe_code)]

mod columns;
pub mod compare;
pub mod compare_each;
pub mod console;
pub mod csv;
pub mod diagnose;
mod digits;
use stats::duration;
mod event_line;
pub mod exits;
pub mod facts;
pub mod html;
pub mod info;
pub mod json;
pub mod neutral;
pub mod paths;
pub mod paths_instance;
mod perf_columns;
mod perf_kernel;
pub mod perf_kvm;
mod perf_line;
mod perf_maps;
mod perf_stack;
pub mod perf_stat;
mod perf_threads;
pub mod quality;
pub mod rules;
pub mod sched;
pub mod text_line;
mod times;
mod tracecmd_line;
pub mod vcpus;
mod vms;

pub use event_line::{EventPrinter, Times};
pub use perf_kernel::KernelFile;
pub use perf_line::{PerfPrinter, PerfStyle};

/// Returns a name as it may stand in a line.
fn clean(text: &str) -> String {
    neutral::name(text).into_owned()
}
