//! Places in a line.

/// A stretch of a line, which has at most [`crate::lines::MAX_LINE`] bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LineSpan {
    pub start: u16,
    pub end: u16,
}

/// Makes a place in a line short: lines of more than [`crate::lines::MAX_LINE`] bytes are not read.
#[inline]
pub(crate) fn short(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}

impl LineSpan {
    pub(crate) fn new(start: usize, end: usize) -> LineSpan {
        LineSpan {
            start: short(start),
            end: short(end.max(start)),
        }
    }

    #[inline]
    pub(crate) fn of(self, line: &[u8]) -> &[u8] {
        line.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }

    #[inline]
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }
}
