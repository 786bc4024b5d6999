//! Folded stacks in the place of a recording.

use event::Quality;
use stacks::{FoldedReader, FoldedText, ReadOptions};

use crate::kind::is_folded;
use crate::{Error, Input};

impl Input<'_> {
    /// Returns whether it is a text of folded stacks.
    pub fn is_folded(&self) -> bool {
        is_folded(self.bytes())
    }

    /// Returns the stacks that a folded text holds, and what it does not have; `None` where it is something else.
    ///
    /// # Errors
    ///
    /// Fails when filters were asked for: the text has sums, of which nothing can be left out. Fails when it is the
    /// difference of two files.
    pub fn folded(&self, options: ReadOptions) -> Result<Option<(FoldedText, Quality)>, Error> {
        if !self.is_folded() {
            return Ok(None);
        }
        let refused = |reason: &str| Error::Folded {
            name: self.name().to_owned(),
            reason: reason.to_owned(),
        };
        if self.session.options().filters.any() {
            return Err(refused("cannot be filtered, because they are sums"));
        }
        let mut reader = FoldedReader::new(options);
        let quality = self
            .source()
            .lines(|number, line| reader.line(number, line));
        let folded = reader.finish();
        if folded.two_counts {
            return Err(refused(
                "have two counts in every line, as difffolded.pl and inferno-diff-folded write the difference of two \
                 files; give the files themselves, one at a time",
            ));
        }
        Ok(Some((folded, quality)))
    }
}
