//! What is kept of each of some slots, in pages: numbers that are never used again, of which most may be past.

use event::index_of;

/// Slots below this stand in one list, where each is found at once: most recordings have no others.
const LOW: usize = 1 << 12;

/// Slots in a page.
const IN_PAGE: usize = 16;

/// Pages in a group.
const IN_GROUP: usize = 64;

/// Slots side by side.
#[derive(Debug, Clone)]
struct SlotPage<T> {
    /// How many there are.
    used: u8,
    list: [Option<T>; IN_PAGE],
}

/// Pages side by side.
#[derive(Debug, Clone)]
struct PageGroup<T> {
    /// How many there are.
    used: u8,
    pages: [Option<Box<SlotPage<T>>>; IN_GROUP],
}

/// Something for each of some slots.
///
/// A slot beyond the first 4096 is found by three steps through memory. Of slots there that were removed side by side
/// no more is left than a word for each thousand of them: a host has tens of millions of threads over days.
#[derive(Debug, Clone)]
pub struct BySlot<T> {
    low: Vec<Option<T>>,
    /// By number of the group, the first of which begins with slot [`LOW`].
    groups: Vec<Option<Box<PageGroup<T>>>>,
    used: usize,
}

impl<T> Default for BySlot<T> {
    fn default() -> BySlot<T> {
        BySlot {
            low: Vec::new(),
            groups: Vec::new(),
            used: 0,
        }
    }
}

/// Where a slot beyond the low ones stands: the group, the page in it and the place there.
#[inline]
fn place_of(at: usize) -> (usize, usize, usize) {
    let at = at - LOW;
    let page = at / IN_PAGE;
    (page / IN_GROUP, page % IN_GROUP, at % IN_PAGE)
}

impl<T> BySlot<T> {
    /// Returns what there is of a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&T> {
        let at = index_of(slot);
        if at < LOW {
            return self.low.get(at)?.as_ref();
        }
        let (group, page, place) = place_of(at);
        let group = self.groups.get(group)?.as_deref()?;
        group.pages[page].as_deref()?.list[place].as_ref()
    }

    /// Returns the same, to change it.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        let at = index_of(slot);
        if at < LOW {
            return self.low.get_mut(at)?.as_mut();
        }
        let (group, page, place) = place_of(at);
        let group = self.groups.get_mut(group)?.as_deref_mut()?;
        group.pages[page].as_deref_mut()?.list[place].as_mut()
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
        let (group, page, _) = place_of(at);
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, || None);
        }
        let group = self.groups[group].get_or_insert_with(new_group);
        if group.pages[page].is_none() {
            group.used += 1;
        }
        group.pages[page].get_or_insert_with(new_page).used += 1;
    }

    /// Returns the place of a slot for which there is room.
    #[inline]
    fn place(&mut self, at: usize) -> &mut Option<T> {
        if at < LOW {
            return &mut self.low[at];
        }
        let (group, page, place) = place_of(at);
        let group = self.groups[group].get_or_insert_with(new_group);
        &mut group.pages[page].get_or_insert_with(new_page).list[place]
    }

    /// Removes what there is of a slot.
    pub fn remove(&mut self, slot: u32) -> Option<T> {
        let at = index_of(slot);
        if at < LOW {
            let one = self.low.get_mut(at)?.take()?;
            self.used -= 1;
            return Some(one);
        }
        let (group, page, place) = place_of(at);
        let whole = self.groups.get_mut(group)?;
        let group = whole.as_deref_mut()?;
        let of_page = &mut group.pages[page];
        let page = of_page.as_deref_mut()?;
        let one = page.list[place].take()?;
        self.used -= 1;
        page.used -= 1;
        if page.used == 0 {
            *of_page = None;
            group.used -= 1;
        }
        if group.used == 0 {
            *whole = None;
        }
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
        let groups = self.groups.iter().enumerate();
        let groups = groups.filter_map(|(number, group)| Some((number, group.as_deref()?)));
        let pages = groups.flat_map(|(number, group)| {
            let pages = group.pages.iter().enumerate();
            pages.filter_map(move |(at, page)| Some((number * IN_GROUP + at, page.as_deref()?)))
        });
        let beyond = pages.flat_map(|(number, page)| {
            let list = page.list.iter().enumerate();
            list.filter_map(move |(at, one)| Some((slot_of(number, at), one.as_ref()?)))
        });
        low.chain(beyond)
    }

    /// Returns the same, to change it.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let low = self.low.iter_mut().enumerate();
        let low = low.filter_map(|(at, one)| Some((at as u32, one.as_mut()?)));
        let groups = self.groups.iter_mut().enumerate();
        let groups = groups.filter_map(|(number, group)| Some((number, group.as_deref_mut()?)));
        let pages = groups.flat_map(|(number, group)| {
            let pages = group.pages.iter_mut().enumerate();
            pages.filter_map(move |(at, page)| Some((number * IN_GROUP + at, page.as_deref_mut()?)))
        });
        let beyond = pages.flat_map(|(number, page)| {
            let list = page.list.iter_mut().enumerate();
            list.filter_map(move |(at, one)| Some((slot_of(number, at), one.as_mut()?)))
        });
        low.chain(beyond)
    }

    /// Hands out all that there is, with its slots, in their order. Pages are given back on the way.
    pub fn into_all(self) -> impl Iterator<Item = (u32, T)> {
        let low = self.low.into_iter().enumerate();
        let low = low.filter_map(|(at, one)| Some((at as u32, one?)));
        let groups = self.groups.into_iter().enumerate();
        let groups = groups.filter_map(|(number, group)| Some((number, group?)));
        let pages = groups.flat_map(|(number, group)| {
            let pages = group.pages.into_iter().enumerate();
            pages.filter_map(move |(at, page)| Some((number * IN_GROUP + at, page?)))
        });
        let beyond = pages.flat_map(|(number, page)| {
            let list = page.list.into_iter().enumerate();
            list.filter_map(move |(at, one)| Some((slot_of(number, at), one?)))
        });
        low.chain(beyond)
    }
}

/// Returns the slot at a place of a page, of which the number is among all.
fn slot_of(page: usize, place: usize) -> u32 {
    (LOW + page * IN_PAGE + place) as u32
}

fn new_group<T>() -> Box<PageGroup<T>> {
    Box::new(PageGroup {
        used: 0,
        pages: [const { None }; IN_GROUP],
    })
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
        let groups = slots.groups.iter().flatten();
        assert_eq!(groups.map(|group| group.used).sum::<u8>(), 4);
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

    /// Threads that came and went leave next to nothing behind.
    #[test]
    fn slots_of_the_past_take_no_memory() {
        let mut slots = BySlot::default();
        let last = 1_000_000;
        for slot in 0..last {
            slots.entry(slot, || slot);
            if slot >= 100 {
                assert_eq!(slots.remove(slot - 100), Some(slot - 100));
            }
        }
        assert_eq!((slots.len(), slots.iter().count()), (100, 100));
        assert_eq!(slots.iter().next_back(), Some((last - 1, &(last - 1))));
        assert!(slots.groups.iter().flatten().count() <= 2);
        assert!(slots.groups.len() <= 1000, "{}", slots.groups.len());
    }
}
