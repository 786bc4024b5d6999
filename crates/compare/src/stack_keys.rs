//! What stacks are compared by: the functions in them, and the thread.

use std::collections::{BTreeMap, HashMap};

use analysis::{ProfileThread, RecorderReport};
use stacks::FrameOwner;

use crate::names::group;

/// A thread, or a function, by what it is called on any host.
pub(crate) type FunctionKey = (FrameOwner, String);

/// Returns the key of a thread.
pub(crate) fn thread_key(thread: &ProfileThread) -> FunctionKey {
    (FrameOwner::Group, group(&thread.comm))
}

/// Finds the keys of stacks, each once.
pub(crate) struct StackKeys<'k> {
    keys: &'k HashMap<FunctionKey, usize>,
    recorder: &'k RecorderReport,
    /// By thread's name, its key.
    threads: BTreeMap<String, Option<usize>>,
    /// By key, the last stack that it was in.
    last: Vec<u32>,
    now: u32,
    all: Vec<usize>,
}

impl<'k> StackKeys<'k> {
    /// Returns one that has seen no stack.
    pub(crate) fn new(
        keys: &'k HashMap<FunctionKey, usize>,
        recorder: &'k RecorderReport,
    ) -> StackKeys<'k> {
        StackKeys {
            keys,
            recorder,
            threads: BTreeMap::new(),
            last: vec![0; keys.len()],
            now: 0,
            all: Vec::new(),
        }
    }

    /// Returns the key of the innermost function and all keys of a stack, innermost first and the thread last; `None`
    /// of idle CPUs and recorders.
    pub(crate) fn keys(
        &mut self,
        thread: &ProfileThread,
        path: &[u32],
        frames: &[Option<usize>],
    ) -> Option<(Option<usize>, &[usize])> {
        if thread.is_idle() || self.recorder.has(thread.tid, &thread.comm) {
            return None;
        }
        self.now += 1;
        self.all.clear();
        let key = |frame: &u32| frames.get(*frame as usize).copied().flatten();
        let of_thread = match self.threads.get(&thread.comm) {
            Some(key) => *key,
            None => {
                let key = self.keys.get(&thread_key(thread)).copied();
                self.threads.insert(thread.comm.clone(), key);
                key
            }
        };
        for key in path.iter().filter_map(key).chain(of_thread) {
            if let Some(last) = self.last.get_mut(key)
                && *last != self.now
            {
                *last = self.now;
                self.all.push(key);
            }
        }
        Some((path.first().and_then(key), &self.all))
    }
}
