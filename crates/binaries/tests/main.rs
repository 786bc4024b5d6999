//! The crate beside the tools that everybody has: nm, addr2line, c++filt, objcopy, perf.

mod common;
mod finding;
mod hostile;
mod names;
mod unwinding;
