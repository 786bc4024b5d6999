//! Names of user space's functions, from whoever has the files.

/// Names functions of user space.
pub trait UserNames {
    /// Adds the names of the functions at a place in a file, innermost first: those that a compiler put into the function there, then
    /// the function itself. Adds nothing where nothing names it. `file` and `build_id` are as the recording tells them with the
    /// mapping; of a just-in-time compiler's `/tmp/perf-PID.map` the place is an address.
    fn names(&mut self, file: &[u8], build_id: Option<&[u8]>, offset: u64, names: &mut Vec<String>);
}

/// Names nothing.
impl UserNames for () {
    fn names(&mut self, _: &[u8], _: Option<&[u8]>, _: u64, _: &mut Vec<String>) {}
}
