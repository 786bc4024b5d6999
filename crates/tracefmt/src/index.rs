//! The place of a numbered thing in its list, and of a byte in a file that was read into memory.

/// Returns the place in a list of what has this number: event types, tasks, vCPUs and stacks are numbered in 32 bits,
/// since tables of them are half as large then, and lists are indexed by `usize`, which has at least as many on each
/// target that this is built for.
#[inline(always)]
pub const fn index_of(number: u32) -> usize {
    const { assert!(usize::BITS >= u32::BITS) };
    number as usize
}
