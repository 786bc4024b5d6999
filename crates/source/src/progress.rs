//! How far the reading of an input is, told to whoever wants to show it.

use std::fmt;
use std::sync::Arc;

/// What happened while an input was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An input begins to be read, or to be read again. Every step up to [`Step::End`] is about an input that was begun.
    Begin {
        /// What is done with its bytes.
        doing: Doing,
        /// How many there are; `None` where that is not known, as of a pipe.
        bytes: Option<u64>,
    },
    /// So many bytes more were read.
    Read(u64),
    /// It was read to its end, or as far as it can be.
    End,
}

/// What is done with the bytes of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// They are taken from a pipe or unpacked, before they are read.
    Unpacking,
    /// Their events are read.
    Reading,
}

/// The callback that hears how far reading is. The thread that reads calls it a few times for each megabyte at most.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(Step) + Send + Sync>);

impl Progress {
    /// Returns one that calls a function, which is to return at once.
    pub fn new(tell: impl Fn(Step) + Send + Sync + 'static) -> Progress {
        Progress(Arc::new(tell))
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

/// Something under way, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Way<'p>(Option<&'p Progress>);

impl<'p> Way<'p> {
    pub(crate) fn begin(to: Option<&'p Progress>, doing: Doing, bytes: Option<u64>) -> Way<'p> {
        let way = Way(to);
        way.tell(Step::Begin { doing, bytes });
        way
    }

    pub(crate) fn read(&self, bytes: u64) {
        if bytes > 0 {
            self.tell(Step::Read(bytes));
        }
    }

    fn tell(&self, step: Step) {
        if let Some(Progress(tell)) = self.0 {
            tell(step);
        }
    }
}

impl Drop for Way<'_> {
    fn drop(&mut self) {
        self.tell(Step::End);
    }
}
