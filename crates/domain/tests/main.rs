//! The tests of this crate, in one binary: a file is a module, and `cargo test -p domain --test all -- apply::` runs
//! those of one file.

mod common;

mod apply;
mod damage;
mod forms;
mod parse;
mod validates;
