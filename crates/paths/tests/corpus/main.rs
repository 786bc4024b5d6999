//! Paths of recordings of the corpus, beside what is known of them otherwise.

mod bounds;
mod contract;
mod counts;
mod kicks;
mod ledgers;
mod packets;
mod truth;
