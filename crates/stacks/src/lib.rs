/*!
Call stacks and what they weigh, as a tree: what profiles, flame graphs and folded text are made of.

A [`Tree`] has frames as numbers, so that whoever collects stacks decides what a frame is. [`Stacks`] has frames with names,
and is what is shown. This crate knows nothing of recordings and does no I/O.
*/
#![forbid(unsafe_code)]

mod diff;
mod folded;
mod layout;
mod line;
mod named;
mod read;
#[cfg(test)]
mod samples;
mod tree;

pub use diff::{Change, Diff, folded_pair};
pub use folded::folded;
pub use layout::{Block, Bounds, Content, Layout, LeftOut};
pub use named::{Function, Name, Part, Stacks};
pub use read::{
    Bottom, Counts, Folded, FoldedReader, Lines, ReadOptions, Told, Unit, looks_folded,
};
pub use tree::{Node, ROOT, Tree, Weight};
