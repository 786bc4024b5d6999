//! Where goes what is printed while a recording is walked: standard output, or a file.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use anyhow::Result;
use render::clock_unit::ClockedDocument;
use render::{ClockUnit, json, neutral};
use serde::Serialize;
use tracefmt::{FormatText, is_plain};

use crate::progress;

/// What has gathered is written out when it is as large as this.
const BUFFER: usize = 32 << 10;

/// Gathers what is printed, and writes it out now and then.
pub(crate) struct Stream<'o> {
    out: Box<dyn Write + 'o>,
    pending: FormatText,
    /// Whether there may be something in it that steers the terminal.
    suspect: bool,
    items: u64,
    failed: Option<io::Error>,
}

impl fmt::Debug for Stream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl<'o> Stream<'o> {
    /// Returns one to standard output that begins with this text.
    pub(crate) fn new(begin: &str) -> Stream<'static> {
        progress::streams();
        Stream::to(Box::new(io::stdout().lock()), begin)
    }

    /// Returns one to somewhere else.
    pub(crate) fn to(out: Box<dyn Write + 'o>, begin: &str) -> Stream<'o> {
        let mut pending = FormatText::with_capacity(BUFFER + (8 << 10));
        pending.extend_from_slice(begin.as_bytes());
        Stream {
            out,
            pending,
            suspect: true,
            items: 0,
            failed: None,
        }
    }

    /// Has lines appended by a function that returns whether they are known to be plain. Others are looked at when they
    /// are written, so that nothing in them steers the terminal.
    #[inline]
    pub(crate) fn lines(&mut self, append: impl FnOnce(&mut FormatText) -> bool) {
        let start = self.pending.len();
        if !append(&mut self.pending) {
            self.suspect |= self.pending.len() > start;
        }
    }

    /// Appends a text.
    pub(crate) fn text(&mut self, text: &str) {
        self.pending.extend_from_slice(text.as_bytes());
        self.suspect = true;
    }

    /// Appends an item of a JSON document's list that is open ([`crate::answer::Answer::up_to`]). Its times count what
    /// `clock` says.
    pub(crate) fn item(&mut self, part: impl Serialize, clock: ClockUnit) {
        self.text(if self.items == 0 { "\n    " } else { ",\n    " });
        self.text(&json::line(ClockedDocument { clock, part }));
        self.items += 1;
    }

    /// Writes out what has gathered, if that is enough. The walk ends when nobody reads what is printed.
    #[inline]
    pub(crate) fn flow(&mut self) -> ControlFlow<()> {
        if self.pending.len() < BUFFER {
            return ControlFlow::Continue(());
        }
        match self.write() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let pending = self.pending.as_bytes();
        if self.suspect && !is_plain(pending) {
            self.out.write_all(&neutral::lines(pending))?;
        } else {
            self.out.write_all(pending)?;
        }
        self.pending.clear();
        self.suspect = false;
        Ok(())
    }

    /// Returns why writing failed, if it did.
    ///
    /// # Errors
    /// It could not be written to.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Writes out the rest.
    ///
    /// # Errors
    /// It could not be written to, now or before.
    pub(crate) fn end(mut self) -> Result<()> {
        self.check()?;
        self.write()?;
        Ok(self.out.flush()?)
    }
}
