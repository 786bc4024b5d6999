//! The tests of this crate, in one binary: a file is a module.

mod guests;
mod watch;
