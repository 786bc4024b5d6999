//! Standard output.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anyhow::Result;
use render::neutral;

/// Returns buffered standard output.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// Prints a whole text. Whatever names a recording has, nothing in it steers the terminal.
pub(crate) fn print(text: &str) -> Result<()> {
    exactly(&neutral::text(text))
}

/// Prints a text that another program is to read as it is, such as a patch; a terminal gets it as [`print()`] has it.
pub(crate) fn print_exact(text: &str) -> Result<()> {
    if io::stdout().is_terminal() {
        print(text)
    } else {
        exactly(text)
    }
}

fn exactly(text: &str) -> Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Returns the width lines are wrapped at: the terminal's, and 80 where there is none.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0).clamp(40, 120))
}
