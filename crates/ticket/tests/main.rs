//! The tests of this crate, in one binary: a file is a module.

mod anything;
mod documents;
mod parts;
