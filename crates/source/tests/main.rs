//! The tests of this crate, in one binary: a file is a module, and `cargo test -p source --test all -- crafted::` runs
//! those of one file.

mod support;
#[path = "../../perfdata/tests/writer/mod.rs"]
mod writer;

mod crafted;
mod cut_meanwhile;
mod evidence;
mod growth;
mod mutations;
mod own_clock;
mod packed;
mod redact;
mod redact_text;
mod salvage;
