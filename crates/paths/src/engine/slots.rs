//! What is known by a number that mostly is a low one: a thread's slot, a CPU.

use event::index_of;
use rustc_hash::FxHashMap;

/// Numbers below this have their place in a list.
const LOW: usize = 1 << 12;

/// Returns a number's place in the list, if it has one.
#[inline]
fn low(key: u64) -> Option<usize> {
    usize::try_from(key).ok().filter(|at| *at < LOW)
}

/// Values by number: in a list where numbers are low, and in a table where they are not, as addresses are.
#[derive(Debug, Default)]
pub(super) struct SlotMap<T> {
    low: Vec<T>,
    high: FxHashMap<u64, T>,
}

impl<T: Default> SlotMap<T> {
    /// Returns the value of a number, if there was one.
    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<&T> {
        match low(key) {
            Some(at) => self.low.get(at),
            None => self.high.get(&key),
        }
    }

    /// The same, to change it.
    #[inline]
    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        match low(key) {
            Some(at) => self.low.get_mut(at),
            None => self.high.get_mut(&key),
        }
    }

    /// Returns the value of a number, which is an empty one if there was none.
    #[inline]
    pub(super) fn entry(&mut self, key: u64) -> &mut T {
        match low(key) {
            Some(at) => {
                if self.low.len() <= at {
                    self.grow(at);
                }
                &mut self.low[at]
            }
            None => self.high.entry(key).or_default(),
        }
    }

    #[cold]
    fn grow(&mut self, at: usize) {
        self.low.resize_with(at + 1, T::default);
    }

    /// Forgets the values that are not to be kept; those of low numbers have their place anyway.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.high.retain(|_, value| keep(value));
        if self.high.len() < self.high.capacity() / 4 {
            self.high.shrink_to_fit();
        }
    }

    /// A number's value is an empty one now: the table forgets it.
    #[inline]
    pub(super) fn empties(&mut self, key: u64) {
        if low(key).is_none() {
            self.high.remove(&key);
        }
    }
}

/// A set of numbers that are few: alternatives, and what ends instances.
#[derive(Debug, Default)]
pub(super) struct NumberSet(Vec<u64>);

impl NumberSet {
    pub(super) fn new(numbers: usize) -> NumberSet {
        NumberSet(vec![0; numbers.div_ceil(64)])
    }

    #[inline]
    pub(super) fn set(&mut self, number: u32) {
        if let Some(word) = self.0.get_mut(index_of(number) / 64) {
            *word |= 1 << (number % 64);
        }
    }

    #[inline]
    pub(super) fn clear(&mut self, number: u32) {
        if let Some(word) = self.0.get_mut(index_of(number) / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    #[inline]
    fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }
}

/// Which numbers a list has that is in their order, by words of 64: what is due of it is found without going through
/// it.
#[derive(Debug, Default)]
pub(crate) struct DueWords(pub(super) Vec<DueWord>);

/// Up to 64 numbers.
#[derive(Debug)]
pub(crate) struct DueWord {
    /// Which word of all numbers.
    at: usize,
    /// The list's own of them, and those that are due whoever waits.
    pub(super) own: u64,
    always: u64,
    /// By bit, where in the list it is.
    places: [u16; 64],
}

impl DueWords {
    /// Takes numbers in their order, each with whether it is always due.
    pub(super) fn of(numbers: impl Iterator<Item = (u32, bool)>) -> DueWords {
        let mut words: Vec<DueWord> = Vec::new();
        // Path files have some hundred alternatives at most.
        for ((number, always), place) in numbers.zip(0..=u16::MAX) {
            let at = index_of(number) / 64;
            let bit = 1 << (number % 64);
            if words.last().is_none_or(|word| word.at != at) {
                words.push(DueWord {
                    at,
                    own: 0,
                    always: 0,
                    places: [0; 64],
                });
            }
            if let Some(word) = words.last_mut() {
                word.own |= bit;
                word.always |= if always { bit } else { 0 };
                word.places[index_of(number) % 64] = place;
            }
        }
        DueWords(words)
    }
}

impl DueWord {
    /// Returns the place in the list of the first number of `left` that is always due or in a set, and takes it and
    /// those before it out of `left`. What is done with one may change what is due behind it.
    #[inline]
    pub(super) fn due(&self, left: &mut u64, set: &NumberSet) -> Option<usize> {
        let due = (set.word(self.at) | self.always) & *left;
        if due == 0 {
            return None;
        }
        let first = due & due.wrapping_neg();
        *left &= !(first | (first - 1));
        Some(usize::from(
            self.places[index_of(due.trailing_zeros()) % 64],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_is_found_in_order() {
        let numbers = [3u32, 5, 63, 64, 200, 255, 256];
        let always = [5u32, 255];
        let words = DueWords::of(numbers.iter().map(|n| (*n, always.contains(n))));
        let mut set = NumberSet::new(257);
        for number in [0, 63, 64, 70, 256] {
            set.set(number);
        }
        set.clear(64);
        let mut found = Vec::new();
        for word in &words.0 {
            let mut left = word.own;
            while let Some(place) = word.due(&mut left, &set) {
                found.push(numbers[place]);
                // What comes to be due meanwhile is found, behind this one.
                set.set(200);
                set.set(3);
            }
        }
        assert_eq!(found, [5, 63, 200, 255, 256]);
    }
}
