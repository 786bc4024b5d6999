/*!
Events to lines, in the form of `perf script` and of `trace-cmd report`.

An [`EventPrinter`] appends the line of each event to a buffer. Lines equal those of the other tools to the byte,
because people compare them. Nothing here counts or decides.
*/
#![forbid(unsafe_code)]

mod columns;
mod digits;
mod event_line;
mod perf_columns;
mod perf_line;
mod perf_stack;
mod text_line;
mod tracecmd_line;

pub use columns::TimeColumns;
pub use event_line::EventPrinter;
pub use perf_line::{PerfPrinter, PerfStyle};
pub use text_line::TextStyle;
