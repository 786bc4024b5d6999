//! The tests of this crate, in one binary: a file is a module.

mod accounted;
mod guest_pictures;
mod guests;
mod watch;
