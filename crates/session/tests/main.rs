//! The tests of this crate, in one binary: a file is a module. Those with recordings of the corpus are in `corpus`.

mod accounted;
mod deferred_stacks;
mod doubted_clock;
mod folded_stacks;
mod guest_pictures;
mod guest_stacks;
mod guests;
mod ipis_by_distance;
mod kept_apart;
mod kernel_names;
mod watch;
