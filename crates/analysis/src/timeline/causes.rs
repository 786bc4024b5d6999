//! Causes of vCPUs' stretches, as numbers.

use event::index_of;
use model::Cause;
use rustc_hash::FxHashMap;

/// How many causes have a number of their own. A later one keeps its exit and loses its access; beyond twice as many it
/// loses the exit too.
const MOST: usize = 1 << 14;

/// Causes by number; 0 is none.
#[derive(Debug)]
pub(crate) struct Causes {
    numbers: FxHashMap<Cause, u32>,
    list: Vec<Cause>,
    last: (Cause, u32),
}

impl Default for Causes {
    fn default() -> Causes {
        Causes {
            numbers: FxHashMap::default(),
            list: vec![Cause::default()],
            last: (Cause::default(), 0),
        }
    }
}

impl Causes {
    /// Returns the number of a cause.
    #[inline]
    pub(crate) fn number(&mut self, cause: &Cause) -> u32 {
        if cause.reason.is_none() && cause.access.is_none() {
            return 0;
        }
        if self.last.0 != *cause {
            self.last = (*cause, self.find(cause));
        }
        self.last.1
    }

    fn find(&mut self, cause: &Cause) -> u32 {
        if let Some(number) = self.numbers.get(cause) {
            return *number;
        }
        if self.list.len() >= MOST && cause.access.is_some() {
            let bare = Cause {
                access: None,
                ..*cause
            };
            return self.find(&bare);
        }
        if self.list.len() >= 2 * MOST {
            return 0;
        }
        let number = self.list.len() as u32;
        self.list.push(*cause);
        self.numbers.insert(*cause, number);
        number
    }

    /// Returns whether there were so many that some lost their access.
    pub(crate) fn are_many(&self) -> bool {
        self.list.len() >= MOST
    }

    /// Returns the cause that has a number.
    pub(crate) fn get(&self, number: u32) -> Option<&Cause> {
        self.list.get(index_of(number)).filter(|_| number > 0)
    }
}
