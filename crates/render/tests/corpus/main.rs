//! What is rendered of recordings of the corpus. A file is a module: `cargo test -p render --test corpus -- contract::`
//! runs the tests of one.

mod contract;
mod screen;
