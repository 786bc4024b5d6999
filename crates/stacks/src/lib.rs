/*!
Call stacks and what they weigh, as a tree: what profiles, flame graphs and folded text are made of.

A [`StackTree`] has frames as numbers, so that whoever collects stacks decides what a frame is. [`Stacks`] has frames
with names, and is what is shown. This crate knows nothing of recordings and does no I/O.
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

pub use diff::{Diff, FunctionChange, folded_pair};
pub use folded::folded;
pub use layout::{Block, BoxContent, FlameLayout, LayoutBounds, LeftOutFrames};
pub use named::{FrameName, FrameOwner, FunctionWeight, Stacks};
pub use read::{
    Bottom, CountMeaning, FoldedReader, FoldedText, LineCount, ReadOptions, ReportedLine,
    WeightUnit, looks_folded,
};
pub use tree::{ROOT, StackNode, StackTree, Weight};
