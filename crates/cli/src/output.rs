//! Standard output.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use analysis::Picture;
use anyhow::Result;
use event::Quality;
use render::screen::{self, Line};
use render::{Layout, neutral};

use crate::colour;

/// Returns buffered standard output.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 << 10, io::stdout().lock())
}

/// Prints a whole text. Whatever names a recording has, nothing in it steers the terminal.
pub(crate) fn print(text: &str) -> Result<()> {
    exactly(&neutral::text(text))
}

/// Prints a text for people, its labels in colour where that is wanted.
pub(crate) fn table(text: &str) -> Result<()> {
    let plain = neutral::text(text);
    match colour::is_wanted() {
        true => exactly(&colour::labels(&plain)),
        false => exactly(&plain),
    }
}

/// Prints screens with an empty line between them, in colour where that is wanted.
pub(crate) fn screens(screens: &[Vec<Line>]) -> Result<()> {
    let colour = colour::is_wanted();
    let screens = screens.iter().map(|lines| match colour {
        true => lines.iter().map(|line| colour::line(line) + "\n").collect(),
        false => neutral::text(&screen::plain(lines)).into_owned(),
    });
    let screens: Vec<String> = screens.collect();
    exactly(&screens.join("\n"))
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

/// Returns how tables are laid out here, of at most so many rows.
pub(crate) fn layout(limit: usize, nanoseconds: bool) -> Layout {
    Layout {
        width: width(),
        limit,
        nanoseconds,
    }
}

/// Returns the lines that stand below a table: the doubts about the recording of this name.
pub(crate) fn quality(name: &str, quality: &Quality) -> String {
    render::quality::lines(name, quality, width())
}

/// Returns the same of several, each below an empty line.
pub(crate) fn qualities<'p>(pictures: impl IntoIterator<Item = &'p Picture>) -> String {
    let pictures = pictures.into_iter();
    pictures
        .map(|one| {
            let names: Vec<&str> = one
                .names
                .iter()
                .chain(&one.guests)
                .map(String::as_str)
                .collect();
            format!("\n{}", quality(&names.join(", "), &one.quality))
        })
        .collect()
}

/// Returns what several lack together.
pub(crate) fn merged<'p>(pictures: impl IntoIterator<Item = &'p Picture>) -> Quality {
    let mut all = Quality::default();
    for picture in pictures {
        all.merge(picture.quality.clone());
    }
    all
}

/// Whether a doubt touches what was printed: `--strict` ends with another status then.
static DOUBTED: AtomicBool = AtomicBool::new(false);

/// Notes the doubts that touch what is printed.
pub(crate) fn note_doubts(quality: &Quality) {
    if !quality.all_doubts().is_empty() {
        DOUBTED.store(true, Ordering::Relaxed);
    }
}

/// Returns whether a doubt touches what was printed.
pub(crate) fn is_doubted() -> bool {
    DOUBTED.load(Ordering::Relaxed)
}

/// Says on standard error the doubts about an input, where what is asked for goes into a file, or has no place for
/// them.
pub(crate) fn say_doubts(name: &str, about: &Quality) -> Result<()> {
    note_doubts(about);
    if !about.all_doubts().is_empty() {
        io::stderr().write_all(quality(name, about).as_bytes())?;
    }
    Ok(())
}
