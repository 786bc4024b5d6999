//! What is kept of each of some slots, in pages: numbers that are never used again, of which most may be past.

use event::index_of;

/// Slots below this stand in one list, where each is found at once: most recordings have no others.
const LOW: usize = 1 << 12;

/// Slots in a page.
const IN_PAGE: usize = 16;

/// Slots side by side.
#[derive(Debug, Clone)]
struct SlotPage<T> {
    /// How many there are.
    used: u8,
    list: [Option<T>; IN_PAGE],
}

/// Something for each of some slots.
///
/// A slot beyond the first 4096 is found by two steps through memory. Of slots there that were removed side by side no
/// more is left than a word for each sixteen of them.
#[derive(Debug, Clone)]
pub struct BySlot<T> {
    low: Vec<Option<T>>,
    /// By number of the page, the first of which is that of slot [`LOW`].
    pages: Vec<Option<Box<SlotPage<T>>>>,
    used: usize,
}

impl<T> Default for BySlot<T> {
    fn default() -> BySlot<T> {
        BySlot {
            low: Vec::new(),
            pages: Vec::new(),
            used: 0,
        }
    }
}

impl<T> BySlot<T> {
    /// Returns what there is of a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&T> {
        let at = index_of(slot);
        if at < LOW {
            return self.low.get(at)?.as_ref();
        }
        let at = at - LOW;
        let page = self.pages.get(at / IN_PAGE)?.as_deref()?;
        page.list[at % IN_PAGE].as_ref()
    }

    /// Returns the same, to change it.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let at = index_of(slot);
        if at < LOW {
            return self.low.get_mut(at)?.as_mut();
        }
        let at = at - LOW;
        let page = self.pages.get_mut(at / IN_PAGE)?.as_deref_mut()?;
        page.list[at % IN_PAGE].as_mut()
    }

    /// Returns the same, and makes it if there is none.
    #[inline]
    pub fn entry(&mut self, slot: u32, make: impl FnOnce() -> T) -> &mut T {
        let at = index_of(slot);
        // Mostly it is there, in the list.
        if matches!(self.low.get(at), Some(Some(_))) {
            return self.low[at].get_or_insert_with(make);
        }
        if self.get(slot).is_none() {
            self.add(at);
        }
        self.place(at).get_or_insert_with(make)
    }

    /// Makes room for a slot that is not there.
    #[cold]
    fn add(&mut self, at: usize) {
        self.used += 1;
        if at < LOW {
            if self.low.len() <= at {
                self.low.resize_with(at + 1, || None);
            }
            return;
        }
        let at = at - LOW;
        if self.pages.len() <= at / IN_PAGE {
            self.pages.resize_with(at / IN_PAGE + 1, || None);
        }
        self.pages[at / IN_PAGE].get_or_insert_with(new_page).used += 1;
    }

    /// Returns the place of a slot for which there is room.
    #[inline]
    fn place(&mut self, at: usize) -> &mut Option<T> {
        if at < LOW {
            return &mut self.low[at];
        }
        let at = at - LOW;
        let page = self.pages[at / IN_PAGE].get_or_insert_with(new_page);
        &mut page.list[at % IN_PAGE]
    }

    /// Removes what there is of a slot.
    pub fn remove(&mut self, slot: u32) -> Option<T> {
        let at = index_of(slot);
        if at < LOW {
            let one = self.low.get_mut(at)?.take()?;
            self.used -= 1;
            return Some(one);
        }
        let at = at - LOW;
        let place = self.pages.get_mut(at / IN_PAGE)?;
        let page = place.as_deref_mut()?;
        let one = page.list[at % IN_PAGE].take()?;
        page.used -= 1;
        if page.used == 0 {
            *place = None;
        }
        self.used -= 1;
        Some(one)
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns all that there is, with its slots, in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &T)> {
        let low = self.low.iter().enumerate();
        let low = low.filter_map(|(at, one)| Some((at as u32, one.as_ref()?)));
        let pages = self.pages.iter().enumerate();
        let pages = pages.filter_map(|(number, page)| Some((number, page.as_deref()?)));
        let beyond = pages.flat_map(|(number, page)| {
            let list = page.list.iter().enumerate();
            list.filter_map(move |(at, one)| {
                let slot = (LOW + number * IN_PAGE + at) as u32;
                Some((slot, one.as_ref()?))
            })
        });
        low.chain(beyond)
    }

    /// Returns the same, to change it.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let low = self.low.iter_mut().enumerate();
        let low = low.filter_map(|(at, one)| Some((at as u32, one.as_mut()?)));
        let pages = self.pages.iter_mut().enumerate();
        let pages = pages.filter_map(|(number, page)| Some((number, page.as_deref_mut()?)));
        let beyond = pages.flat_map(|(number, page)| {
            let list = page.list.iter_mut().enumerate();
            list.filter_map(move |(at, one)| {
                let slot = (LOW + number * IN_PAGE + at) as u32;
                Some((slot, one.as_mut()?))
            })
        });
        low.chain(beyond)
    }

    /// Hands out all that there is, with its slots, in their order. Pages are given back on the way.
    pub fn into_all(self) -> impl Iterator<Item = (u32, T)> {
        let low = self.low.into_iter().enumerate();
        let low = low.filter_map(|(at, one)| Some((at as u32, one?)));
        let pages = self.pages.into_iter().enumerate();
        let pages = pages.filter_map(|(number, page)| Some((number, page?)));
        let beyond = pages.flat_map(|(number, page)| {
            let list = page.list.into_iter().enumerate();
            list.filter_map(move |(at, one)| {
                let slot = (LOW + number * IN_PAGE + at) as u32;
                Some((slot, one?))
            })
        });
        low.chain(beyond)
    }
}

fn new_page<T>() -> Box<SlotPage<T>> {
    Box::new(SlotPage {
        used: 0,
        list: std::array::from_fn(|_| None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_found_until_it_is_removed() {
        let mut slots = BySlot::default();
        // On both sides of where pages begin.
        for slot in 3500..4500u32 {
            *slots.entry(slot, || 0) += slot;
            *slots.entry(slot, || 1) += 0;
        }
        for slot in (3500..4500).filter(|slot| slot % 100 != 7) {
            assert_eq!(slots.remove(slot), Some(slot));
            assert_eq!(slots.remove(slot), None);
        }
        let left: Vec<(u32, u32)> = slots.iter().map(|(slot, one)| (slot, *one)).collect();
        let expected: Vec<(u32, u32)> = (35..45).map(|n| (100 * n + 7, 100 * n + 7)).collect();
        assert_eq!((left, slots.len()), (expected, 10));
        // As many pages as have anything in them.
        assert_eq!(slots.pages.iter().flatten().count(), 4);
        for (_, one) in slots.iter_mut() {
            *one += 1;
        }
        assert_eq!(
            (slots.get(3507), slots.get(4407)),
            (Some(&3508), Some(&4408))
        );
        assert_eq!((slots.get(3508), slots.get(4408)), (None, None));
        assert_eq!(slots.get_mut(u32::MAX), None);
        let all: Vec<u32> = slots.into_all().map(|(slot, _)| slot).collect();
        assert_eq!(all, (35..45).map(|n| 100 * n + 7).collect::<Vec<u32>>());
    }
}
