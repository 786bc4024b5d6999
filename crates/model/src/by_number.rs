//! What is known of each of some numbers, as thread ids.

use event::index_of;
use rustc_hash::FxHashMap;

/// How many numbers are found at once if they were asked for lately, as a power of two.
const LATELY_BITS: u32 = 7;

/// Something for each of some numbers, in the order in which they were met.
///
/// Nearly every event is looked up by its thread, of which there are few, and a hash table costs as much for each as
/// the rest of what an analysis does. So a small table of those asked for lately stands in front of it, where each has
/// one place.
#[derive(Debug, Clone)]
pub struct ByNumber<T> {
    /// By [`place`]: a number, and where it is in the list.
    lately: Vec<(i64, u32)>,
    index: FxHashMap<i64, u32>,
    list: Vec<(i64, T)>,
}

impl<T> Default for ByNumber<T> {
    fn default() -> ByNumber<T> {
        ByNumber {
            lately: vec![NOBODY; 1 << LATELY_BITS],
            index: FxHashMap::default(),
            list: Vec::new(),
        }
    }
}

/// A place where nobody is: this is not the number's own place.
const NOBODY: (i64, u32) = (i64::MIN, u32::MAX);

/// Returns the place of a number. Numbers in a row, and numbers in steps, have places of their own (Knuth, The Art of
/// Computer Programming, volume 3, 6.4: Fibonacci hashing).
#[inline(always)]
fn place(number: i64) -> usize {
    (number.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - LATELY_BITS)) as usize
}

impl<T> ByNumber<T> {
    /// Returns what there is of a number.
    #[inline]
    pub fn get(&self, number: impl Into<i64>) -> Option<&T> {
        let number = number.into();
        let at = match self.lately.get(place(number)) {
            Some((known, at)) if *known == number => *at,
            _ => *self.index.get(&number)?,
        };
        self.list.get(index_of(at)).map(|(_, one)| one)
    }

    /// Returns the same, to change it.
    #[inline]
    pub fn get_mut(&mut self, number: impl Into<i64>) -> Option<&mut T> {
        let number = number.into();
        let at = match self.lately.get(place(number)) {
            Some((known, at)) if *known == number => *at,
            _ => self.find(number)?,
        };
        self.list.get_mut(index_of(at)).map(|(_, one)| one)
    }

    /// Returns the same, and makes it if there is none.
    #[inline]
    pub fn entry(&mut self, number: impl Into<i64>, make: impl FnOnce() -> T) -> &mut T {
        let at = self.place(number, make);
        &mut self.list[index_of(at)].1
    }

    /// Returns where in the list a number is, and puts it there if it is not.
    #[inline]
    fn place(&mut self, number: impl Into<i64>, make: impl FnOnce() -> T) -> u32 {
        let number = number.into();
        match self.lately.get(place(number)) {
            Some((known, at)) if *known == number && *at != NOBODY.1 => *at,
            _ => match self.find(number) {
                Some(at) => at,
                None => self.add(number, make()),
            },
        }
    }

    /// Finds a number by the hash table, and remembers it.
    #[inline(never)]
    fn find(&mut self, number: i64) -> Option<u32> {
        let at = *self.index.get(&number)?;
        self.lately[place(number)] = (number, at);
        Some(at)
    }

    #[cold]
    fn add(&mut self, number: i64, one: T) -> u32 {
        let at = self.list.len() as u32;
        self.list.push((number, one));
        self.index.insert(number, at);
        self.lately[place(number)] = (number, at);
        at
    }

    /// Forgets a number. The last one takes its place in the list.
    pub fn remove(&mut self, number: impl Into<i64>) -> Option<T> {
        let number = number.into();
        let at = self.index.remove(&number)?;
        let (_, one) = self.list.swap_remove(index_of(at));
        self.lately[place(number)] = NOBODY;
        if let Some((moved, _)) = self.list.get(index_of(at)) {
            self.index.insert(*moved, at);
            self.lately[place(*moved)] = (*moved, at);
        }
        Some(one)
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns all numbers, in the order in which they were met where none was forgotten.
    pub fn numbers(&self) -> impl Iterator<Item = i64> + '_ {
        self.list.iter().map(|(number, _)| *number)
    }

    /// Returns all that there is, in the order in which it was met where nothing was forgotten.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.list.iter().map(|(_, one)| one)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn what_was_put_in_is_found() {
        let mut numbers = ByNumber::default();
        let mut known: HashMap<i64, u64> = HashMap::new();
        // Numbers that share their low bits, and some that are negative.
        let number = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as i64 * 32 - 1000;
        for n in 0..20_000u64 {
            let one = number(n);
            match n % 7 {
                0 => assert_eq!(numbers.remove(one), known.remove(&one)),
                1 | 2 => assert_eq!(numbers.get(one), known.get(&one)),
                3 => assert_eq!(numbers.get_mut(one), known.get_mut(&one)),
                _ => {
                    *numbers.entry(one, || n) += 1;
                    *known.entry(one).or_insert(n) += 1;
                }
            }
        }
        let mut values: Vec<u64> = numbers.values().copied().collect();
        let mut expected: Vec<u64> = known.values().copied().collect();
        values.sort_unstable();
        expected.sort_unstable();
        assert_eq!(values, expected);
    }

    #[test]
    fn nothing_is_found_where_nothing_was_put() {
        let mut numbers: ByNumber<u8> = ByNumber::default();
        for number in [0, 1, -1, 63, 64, -64, i64::MAX, i64::MIN] {
            assert_eq!(numbers.get(number), None, "{number}");
            assert_eq!(numbers.get_mut(number), None, "{number}");
            assert_eq!(numbers.remove(number), None, "{number}");
        }
    }
}
