//! What a thread sleeps on until another rings it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::futex;

use crate::why::why;

/// What a thread sleeps on. One thread rings, one waits.
#[derive(Debug)]
pub(crate) enum Bell {
    /// A word in memory.
    Futex(AtomicU32),
    /// A pipe's end to read, and its end to write.
    Pipe(OwnedFd, OwnedFd),
    /// An eventfd.
    Eventfd(OwnedFd),
}

/// The kinds, by their names.
pub(crate) const KINDS: [&str; 3] = ["futex", "pipe", "eventfd"];

impl Bell {
    /// Returns one of a kind.
    pub(crate) fn new(kind: &str) -> Result<Bell, String> {
        let made = match kind {
            "pipe" => pipe_with(PipeFlags::CLOEXEC).map(|(read, write)| Bell::Pipe(read, write)),
            "eventfd" => eventfd(0, EventfdFlags::CLOEXEC).map(Bell::Eventfd),
            _ => Ok(Bell::Futex(AtomicU32::new(0))),
        };
        made.map_err(|error| format!("{kind} cannot be made: {}", why(&error)))
    }

    /// Wakes who waits, or lets it go on at once when it comes.
    #[inline]
    pub(crate) fn ring(&self) {
        match self {
            Bell::Futex(word) => {
                word.store(1, Ordering::Release);
                let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
            }
            Bell::Pipe(_, to) => {
                let _ = write(to, &[1]);
            }
            Bell::Eventfd(file) => {
                let _ = write(file, &1u64.to_ne_bytes());
            }
        }
    }

    /// Sleeps until somebody rings.
    #[inline]
    pub(crate) fn wait(&self) -> Result<(), String> {
        let mut bytes = [0; 8];
        loop {
            let done = match self {
                Bell::Futex(word) => {
                    if word.swap(0, Ordering::Acquire) == 1 {
                        return Ok(());
                    }
                    match futex::wait(word, futex::Flags::PRIVATE, 0, None) {
                        // It was rung before this thread slept.
                        Ok(()) | Err(Errno::AGAIN) => continue,
                        Err(error) => Err(error),
                    }
                }
                Bell::Pipe(from, _) => read(from, &mut bytes[..1]).map(drop),
                Bell::Eventfd(file) => read(file, &mut bytes).map(drop),
            };
            match done {
                Err(Errno::INTR) => {}
                Err(error) => return Err(format!("waiting failed: {}", why(&error))),
                Ok(()) => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_wakes_and_remembers() {
        for kind in KINDS {
            let bell = Bell::new(kind).expect("a bell");
            bell.ring();
            bell.wait().expect("rung before");
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| bell.wait());
                bell.ring();
                waiting.join().expect("no panic").expect("rung");
            });
        }
    }
}
