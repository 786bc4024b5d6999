//! The tests of this crate, in one binary: a file is a module, and `cargo test -p paths --test all -- anything::` runs
//! those of one file.

mod common;

mod anything;
mod bounds;
mod by_hand;
mod forwarding;
mod guests;
mod guests_answers;
mod guests_ipis;
mod guests_its;
mod guests_polled;
mod joins;
mod joins_numbers;
mod language;
mod ledgers;
mod numa;
mod parts;
