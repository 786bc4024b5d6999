/*!
The report as one HTML file, from the same tables as the terminal's text and JSON.

It works from a file, loads nothing, and shows names of a recording as text, whatever is in them. All that it says
stands in it as HTML, so that it can be read without its script, and printed. [`Page`] makes it of what was found of
each [`Recording`]; it does no I/O.
*/
#![forbid(unsafe_code)]

mod against;
mod bars;
mod exits;
mod findings;
mod flame;
mod invocation;
mod out;
mod overview;
mod page;
mod paths;
mod quality;
mod recording;
mod sched;
mod sequence;
mod timeline;
pub mod timeline_data;
mod vcpus;
mod waterfall;

pub use against::ReportComparison;
pub use invocation::{Invocation, quoted};
pub use page::Page;
pub use recording::{Flame, Recording};
