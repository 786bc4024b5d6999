//! Names in place of names.

use std::collections::HashMap;

/// More names than this of a kind become one.
const MAX_NAMES: usize = 1 << 20;

/// Names of one kind, and what stands in their place: a word, and how many there were before. The same name has always
/// the same.
#[derive(Debug)]
pub struct Pseudonyms {
    word: &'static str,
    numbers: HashMap<Vec<u8>, usize>,
}

impl Pseudonyms {
    /// Returns none yet; what will stand in place of names begins with a word.
    pub fn new(word: &'static str) -> Pseudonyms {
        Pseudonyms {
            word,
            numbers: HashMap::new(),
        }
    }

    /// Returns what stands in place of a name. There is nothing private in an empty one.
    pub fn of(&mut self, name: &[u8]) -> String {
        if name.is_empty() {
            return String::new();
        }
        let next = self.numbers.len() + 1;
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None if next > MAX_NAMES => next,
            None => {
                self.numbers.insert(name.to_vec(), next);
                next
            }
        };
        format!("{}{number}", self.word)
    }

    /// Returns whether a name was replaced.
    pub fn has(&self, name: &[u8]) -> bool {
        self.numbers.contains_key(name)
    }

    /// Returns the names that were replaced, in no order.
    pub fn originals(&self) -> impl Iterator<Item = &[u8]> {
        self.numbers.keys().map(Vec::as_slice)
    }

    /// Returns how many names were replaced.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }
}
