/*!
Numbers and events to text, JSON, CSV and HTML.

Nothing here counts or decides: it prints what analyses found. Names of JSON fields are a contract with
other people's scripts.
*/
#![forbid(unsafe_code)]

mod csv;
pub mod duration;
pub mod exits;
pub mod html;
pub mod info;
pub mod json;
pub mod perf_kvm;
pub mod quality;
// mod perf_line;
mod tracecmd_line;

// pub use perf_line::PerfPrinter;
pub use tracecmd_line::{LineHead, LineStyle, TimeStyle, line_head, lost_line};
