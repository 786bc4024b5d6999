//! Names of user space's functions, from whoever has the files.

use std::fmt::Debug;

use event::UserStackBytes;

use crate::spaces::SpaceId;

/// Names functions of user space.
pub trait UserNames {
    /// Adds the names of the functions at a place in a file, innermost first: those that a compiler put into the
    /// function there, then the function itself. Adds nothing where nothing names it. `file` and `build_id` are as the
    /// recording gives them with the mapping; of a just-in-time compiler's `/tmp/perf-PID.map` the place is an address.
    fn names(&mut self, file: &[u8], build_id: Option<&[u8]>, offset: u64, names: &mut Vec<String>);
}

/// What a process has mapped of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserMapping<'m> {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Where in the file it begins.
    pub pgoff: u64,
    /// The file, as the recording has it.
    pub path: &'m [u8],
    /// Its build id, if the mapping gave it.
    pub build_id: Option<&'m [u8]>,
}

/// Hands out what a process has mapped.
pub type EachMapping<'e> = &'e dyn Fn(&mut dyn FnMut(UserMapping<'_>));

/// Makes stacks of user space out of registers and a piece of the stack (`perf record --call-graph dwarf`).
pub trait UserUnwinder: Debug {
    /// Adds addresses, innermost first, at most so many: where the CPU was, and of each caller the last byte of its
    /// call, as perf has them. `process` stands for a process and what it has mapped at a time: it is another one when
    /// that changes, and `mappings` then says what that is.
    fn unwind(
        &mut self,
        process: (SpaceId, u64),
        mappings: EachMapping<'_>,
        stack: &UserStackBytes<'_>,
        most: usize,
        addresses: &mut Vec<u64>,
    );
}

/// Names nothing.
impl UserNames for () {
    fn names(&mut self, _: &[u8], _: Option<&[u8]>, _: u64, _: &mut Vec<String>) {}
}
