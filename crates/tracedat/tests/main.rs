//! The tests of this crate, in one binary: a file is a module, and `cargo test -p tracedat --test all -- cut::` runs
//! those of one file.

mod writer;

mod cut;
mod events;
mod header;
mod masked;
mod salvage;
mod threads;
