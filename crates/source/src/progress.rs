//! How far the reading of an input is, for whoever shows it.

use std::fmt;
use std::sync::Arc;

/// What happened while an input was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStep<'s> {
    /// An input begins to be read, or to be read again. Every step up to [`ReadStep::End`] is about an input that was
    /// begun.
    Begin {
        /// What is done with its bytes.
        doing: ReadActivity,
        /// How many there are; `None` where that is not known, as of a pipe.
        bytes: Option<u64>,
    },
    /// So many bytes more were read.
    Read(u64),
    /// So many events more were found. It comes at most as often as [`ReadStep::Read`], and what is found behind the
    /// last of those is in none.
    Counted {
        /// By the name of their kind, as `kvm_exit`: those of which there are more. Kinds may share a name.
        kinds: &'s [(&'s str, u64)],
        /// Events that the recorder lost where it was read. A sum at the end of a recording, which counts these
        /// again, is not among them.
        lost: u64,
    },
    /// It was read to its end, or as far as it can be.
    End,
}

/// What is done with the bytes of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadActivity {
    /// They are taken from a pipe or unpacked, before they are read.
    Unpacking,
    /// Their events are read.
    Reading,
}

/// The callback that hears how far reading is. The thread that reads calls it a few times for each megabyte at most.
#[derive(Clone)]
pub struct ReadProgress(Arc<dyn Fn(ReadStep<'_>) + Send + Sync>);

impl ReadProgress {
    /// Returns one that calls a function, which is to return at once.
    pub fn new(tell: impl Fn(ReadStep<'_>) + Send + Sync + 'static) -> ReadProgress {
        ReadProgress(Arc::new(tell))
    }
}

impl fmt::Debug for ReadProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

/// Something under way, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ActivityGuard<'p>(Option<&'p ReadProgress>);

impl<'p> ActivityGuard<'p> {
    pub(crate) fn begin(
        to: Option<&'p ReadProgress>,
        doing: ReadActivity,
        bytes: Option<u64>,
    ) -> ActivityGuard<'p> {
        let way = ActivityGuard(to);
        way.tell(ReadStep::Begin { doing, bytes });
        way
    }

    pub(crate) fn read(&self, bytes: u64) {
        if bytes > 0 {
            self.tell(ReadStep::Read(bytes));
        }
    }

    pub(crate) fn counted(&self, kinds: &[(&str, u64)], lost: u64) {
        if !kinds.is_empty() || lost > 0 {
            self.tell(ReadStep::Counted { kinds, lost });
        }
    }

    fn tell(&self, step: ReadStep<'_>) {
        if let Some(ReadProgress(tell)) = self.0 {
            tell(step);
        }
    }
}

impl Drop for ActivityGuard<'_> {
    fn drop(&mut self) {
        self.tell(ReadStep::End);
    }
}
