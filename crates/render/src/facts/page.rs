//! Lines for people: names in the first columns.

use std::fmt::Write;

use crate::{Layout, clean};

/// Columns of the names of lines.
pub(super) const LABEL: usize = 11;

/// A page of lines.
pub(super) struct Page {
    pub(super) out: String,
    pub(super) layout: Layout,
}

impl Page {
    /// Appends a text behind its name, if there is one, broken between words.
    pub(super) fn line(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let first = format!("{:<LABEL$}", clean(name));
        let indent = " ".repeat(LABEL);
        let options = textwrap::Options::new(self.layout.width.max(40))
            .initial_indent(&first)
            .subsequent_indent(&indent)
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
            .break_words(false);
        for line in textwrap::wrap(&clean(text), options) {
            self.out.push_str(line.trim_end());
            self.out.push('\n');
        }
    }

    /// Appends a row as it is, cut off at the width.
    pub(super) fn row(&mut self, text: &str) {
        let text = clean(text.trim_end());
        let width = self.layout.width.max(40);
        if text.chars().count() <= width || self.layout.limit == usize::MAX {
            self.out.push_str(&text);
        } else {
            self.out.extend(text.chars().take(width - 1));
            self.out.push('…');
        }
        self.out.push('\n');
    }

    /// Appends how many rows are left out.
    pub(super) fn left_out(&mut self, all: usize, shown: usize, what: &str) {
        let left = all.saturating_sub(shown);
        if left > 0 {
            let indent = " ".repeat(LABEL);
            let _ = writeln!(self.out, "{indent}{left} more {what}; --wide shows all");
        }
    }

    pub(super) fn gap(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }
}
