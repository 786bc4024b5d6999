//! A command's answer, in the format that was asked for.

use std::io::Write;

use anyhow::Result;
use event::Quality;
use render::clock_unit::ClockedDocument;
use render::{ClockUnit, Layout, json};
use serde::Serialize;

use crate::options::Format;
use crate::output;

/// The version that JSON documents carry.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What an answer says of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'a> {
    /// The format.
    pub format: Format,
    /// The command's name.
    pub command: &'static str,
    /// The recordings that were read.
    pub inputs: &'a [String],
    /// What has to be known of them, together.
    pub quality: &'a Quality,
    /// What the recordings' times count.
    pub clock: ClockUnit,
}

impl Answer<'_> {
    /// Prints the answer in its format; only that one is made.
    pub(crate) fn print<D: Serialize>(
        self,
        text: impl FnOnce() -> String,
        document: impl FnOnce() -> D,
        csv: impl FnOnce(ClockUnit) -> String,
    ) -> Result<()> {
        output::note_doubts(self.quality);
        match self.format {
            Format::Table => output::table(&text()),
            Format::Json => self.print_document(document()),
            Format::Csv => {
                output::print(&csv(self.clock))?;
                output::say_doubts(&self.inputs.join(", "), self.quality)
            }
        }
    }

    /// Returns the beginning of the JSON document up to the first item of a list, which is written as it is found.
    pub(crate) fn up_to(self, list: &str) -> String {
        self.up_to_in((), list)
    }

    /// Does the same where a document has other fields before the list.
    pub(crate) fn up_to_in(self, part: impl Serialize, list: &str) -> String {
        let document = self.document(part);
        let open = document.trim_end().trim_end_matches('}').trim_end();
        format!("{open},\n  \"{list}\": [")
    }

    /// Prints the document as it is made: that of a large host takes more memory than all that was found.
    fn print_document(self, part: impl Serialize) -> Result<()> {
        let clock = self.clock;
        let own = ClockedDocument { clock, part };
        let mut out = output::stdout();
        json::write_document(
            &mut out,
            VERSION,
            self.command,
            self.inputs,
            self.quality,
            own,
        )?;
        Ok(out.flush()?)
    }

    /// Returns the document.
    pub(crate) fn document(self, part: impl Serialize) -> String {
        output::note_doubts(self.quality);
        let clock = self.clock;
        let own = ClockedDocument { clock, part };
        json::document(VERSION, self.command, self.inputs, self.quality, own)
    }

    /// Returns how tables of at most so many rows are laid out here.
    pub(crate) fn layout(self, limit: usize) -> Layout {
        output::layout(limit, self.clock.is_nanoseconds())
    }
}
