/*!
Numbers to text, JSON, CSV and HTML.

Nothing here counts or decides: it prints what analyses found. Names of JSON fields are a contract with
other people's scripts.
*/
#![forbid(unsafe_code)]

pub mod compare;
pub mod compare_each;
pub mod console;
#[cfg(test)]
mod contract;
pub mod csv;
pub mod diagnose;
pub mod exits;
pub mod facts;
pub mod html;
pub mod info;
pub mod json;
mod layout;
pub mod neutral;
pub mod paths;
pub mod paths_instance;
pub mod perf_kvm;
pub mod perf_stat;
pub mod quality;
pub mod rules;
pub mod sched;
mod table;
mod times;
pub mod vcpus;
mod vms;

pub use layout::Layout;

/// Returns a name as it may stand in a line.
fn clean(text: &str) -> String {
    neutral::name(text).into_owned()
}
