//! The tests of this crate, in one binary: a file is a module, and `cargo test -p facts --test all -- documents::` runs
//! those of one file.

mod documents;
mod domstats;
mod forms;
mod texts;
