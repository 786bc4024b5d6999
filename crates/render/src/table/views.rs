//! Where columns stand beside documents and pages.

use std::ops::BitOr;

/// A set of views of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Views(u8);

impl Views {
    /// None: the column stands in documents and on pages alone.
    pub(crate) const NONE: Views = Views(0);
    /// A terminal, where nothing else is asked for.
    pub(crate) const TERMINAL: Views = Views(1);
    /// A terminal of any width, for those who ask for all.
    pub(crate) const WIDE: Views = Views(2);
    /// Markdown, as tickets show it.
    pub(crate) const TICKET: Views = Views(4);

    /// Returns a view that a table has for itself, by number: there may be five.
    pub(crate) const fn own(number: u8) -> Views {
        Views(8 << number)
    }

    /// Returns these views and others.
    pub(crate) const fn and(self, others: Views) -> Views {
        Views(self.0 | others.0)
    }

    /// Returns whether any of these views is among them.
    pub(crate) fn any(self, views: Views) -> bool {
        self.0 & views.0 != 0
    }
}

impl BitOr for Views {
    type Output = Views;

    fn bitor(self, other: Views) -> Views {
        self.and(other)
    }
}
