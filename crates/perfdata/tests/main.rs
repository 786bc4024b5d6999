//! The tests of this crate, in one binary: a file is a module, and `cargo test -p perfdata --test all -- hostile::`
//! runs those of one file.

mod writer;

mod groups;
mod hostile;
mod pieces;
mod places;
mod salvage;
mod tally;
mod threads;
mod unordered;
mod walk;
