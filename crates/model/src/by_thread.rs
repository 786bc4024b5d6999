//! What is kept of each thread, in lists: threads have small numbers, which are looked up once an event.

use event::index_of;

use crate::by_number::ByNumber;
use crate::by_slot::BySlot;

/// A thread's number in one walk: they are given in the order in which threads are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadHandle(u32);

/// Gives threads their numbers.
#[derive(Debug, Clone, Default)]
pub struct ThreadHandles {
    by_tid: ByNumber<u32>,
    next: u32,
}

impl ThreadHandles {
    /// Returns the number of a thread id, which has one from now on.
    #[inline]
    pub fn of(&mut self, tid: i32) -> ThreadHandle {
        let next = &mut self.next;
        ThreadHandle(*self.by_tid.entry(tid, || {
            let number = *next;
            *next = number.saturating_add(1);
            number
        }))
    }

    /// Returns the number of a thread id, if it has one.
    #[inline]
    pub fn find(&self, tid: i32) -> Option<ThreadHandle> {
        self.by_tid.get(tid).copied().map(ThreadHandle)
    }

    /// Returns how many threads have a number.
    pub fn len(&self) -> usize {
        self.by_tid.len()
    }

    /// Returns whether none has one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the thread ids that have a number.
    pub(crate) fn tids(&self) -> impl Iterator<Item = i32> + '_ {
        let numbers = self.by_tid.numbers();
        numbers.filter_map(|number| i32::try_from(number).ok())
    }

    /// Takes a thread id's number away: if it makes an event once more, it gets another one.
    pub fn remove(&mut self, tid: i32) -> Option<ThreadHandle> {
        self.by_tid.remove(tid).map(ThreadHandle)
    }
}

/// Something for each of some threads, in the order in which they were met.
#[derive(Debug, Clone)]
pub struct ByThread<T> {
    /// By handle, where in the list.
    places: BySlot<u32>,
    list: Vec<(ThreadHandle, T)>,
}

impl<T> Default for ByThread<T> {
    fn default() -> ByThread<T> {
        ByThread {
            places: BySlot::default(),
            list: Vec::new(),
        }
    }
}

impl<T> ByThread<T> {
    /// Returns what there is of a thread, to change it.
    #[inline]
    pub fn get_mut(&mut self, thread: ThreadHandle) -> Option<&mut T> {
        let place = *self.places.get(thread.0)?;
        self.list.get_mut(index_of(place)).map(|(_, one)| one)
    }

    /// Returns the same, and makes it if there is none.
    #[inline]
    pub fn entry(&mut self, thread: ThreadHandle, make: impl FnOnce() -> T) -> &mut T {
        let place = match self.places.get(thread.0) {
            Some(place) => *place,
            None => self.add(thread, make()),
        };
        &mut self.list[index_of(place)].1
    }

    #[cold]
    fn add(&mut self, thread: ThreadHandle, one: T) -> u32 {
        let place = self.list.len() as u32;
        self.places.entry(thread.0, || place);
        self.list.push((thread, one));
        place
    }

    /// Removes what there is of a thread. The last one takes its place in the order.
    pub fn remove(&mut self, thread: ThreadHandle) -> Option<T> {
        let place = self.places.remove(thread.0)?;
        let (_, one) = self.list.swap_remove(index_of(place));
        if let Some((moved, _)) = self.list.get(index_of(place))
            && let Some(of_moved) = self.places.get_mut(moved.0)
        {
            *of_moved = place;
        }
        Some(one)
    }

    /// Returns all that there is, in the order in which it was met where nothing was removed.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.list.iter().map(|(_, one)| one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_kept_in_the_order_in_which_they_were_met() {
        let (mut handles, mut kept) = (ThreadHandles::default(), ByThread::default());
        let tids = [70_001, -1, 0, 7, 4_000_000, 7, -1];
        let threads = tids.map(|tid| handles.of(tid));
        assert_eq!((threads[1], threads[3]), (threads[6], threads[5]));
        for (thread, tid) in threads.iter().zip(tids).rev() {
            let had = kept.get_mut(*thread).is_some();
            *kept.entry(*thread, || 0) += tid;
            assert_eq!(had, kept.get_mut(*thread).is_some_and(|sum| *sum != tid));
        }
        let sums: Vec<i32> = kept.values().copied().collect();
        assert_eq!(sums, [-2, 14, 4_000_000, 0, 70_001]);
        assert_eq!(handles.find(7), Some(threads[3]));
        assert_eq!(handles.find(8), None);
        assert!(kept.get_mut(handles.of(8)).is_none());
        // A thread that comes back is another one.
        assert_eq!(handles.remove(7), Some(threads[3]));
        assert_eq!(kept.remove(threads[3]), Some(14));
        assert_eq!(kept.remove(threads[3]), None);
        assert_ne!(handles.of(7), threads[3]);
        assert_eq!(kept.get_mut(threads[0]), Some(&mut 70_001));
        assert_eq!(kept.values().count(), 4);
    }
}
