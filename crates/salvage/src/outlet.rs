//! Where the bytes of the new file go.

use std::io::{self, Write};
use std::ops::Range;

/// Takes the new file's bytes in their order.
pub trait SalvageOutlet {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// They cannot be written.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Learns that a range of the input was read and is not needed for now.
    fn consumed(&mut self, _range: Range<usize>) {}
}

/// Bytes of the input that are written at once, and given back.
const STEP: usize = 1 << 20;

/// Writes a range of the input as it is, by pieces that are given back.
///
/// # Errors
/// Those of the outlet.
pub fn copy_range(data: &[u8], range: Range<usize>, out: &mut dyn SalvageOutlet) -> io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        let next = range.end.min(at.saturating_add(STEP));
        out.put(data.get(at..next).unwrap_or_default())?;
        out.consumed(at..next);
        at = next;
    }
    Ok(())
}

/// Writes the bytes, and says which of the input are not needed any more.
pub struct WriteOutlet<'o> {
    out: &'o mut dyn Write,
    consumed: &'o dyn Fn(Range<usize>),
}

impl<'o> WriteOutlet<'o> {
    /// Returns an outlet to a writer.
    pub fn new(out: &'o mut dyn Write, consumed: &'o dyn Fn(Range<usize>)) -> WriteOutlet<'o> {
        WriteOutlet { out, consumed }
    }
}

impl std::fmt::Debug for WriteOutlet<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteOutlet").finish_non_exhaustive()
    }
}

impl SalvageOutlet for WriteOutlet<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    fn consumed(&mut self, range: Range<usize>) {
        (self.consumed)(range);
    }
}

/// Takes what a pass that only counts would write, and says which bytes of the input are not needed any more.
pub struct CountingOutlet<'o>(&'o mut dyn FnMut(Range<usize>));

impl<'o> CountingOutlet<'o> {
    /// Returns one that says so to `consumed`.
    pub fn new(consumed: &'o mut dyn FnMut(Range<usize>)) -> CountingOutlet<'o> {
        CountingOutlet(consumed)
    }
}

impl std::fmt::Debug for CountingOutlet<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CountingOutlet").finish_non_exhaustive()
    }
}

impl SalvageOutlet for CountingOutlet<'_> {
    fn put(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn consumed(&mut self, range: Range<usize>) {
        (self.0)(range);
    }
}
