//! What is kept of each thread, in lists: threads have small numbers, which are looked up once an event.

use event::index_of;

use crate::by_number::ByNumber;

/// A thread's number in one walk: they are given in the order in which threads are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadHandle(u32);

/// Gives threads their numbers.
#[derive(Debug, Clone, Default)]
pub struct ThreadHandles {
    by_tid: ByNumber<()>,
}

impl ThreadHandles {
    /// Returns the number of a thread id, which has one from now on.
    #[inline]
    pub fn of(&mut self, tid: i32) -> ThreadHandle {
        ThreadHandle(self.by_tid.place(tid, || ()))
    }

    /// Returns the number of a thread id, if it has one.
    #[inline]
    pub fn find(&self, tid: i32) -> Option<ThreadHandle> {
        self.by_tid.find_place(tid).map(ThreadHandle)
    }
}

/// Stands for a thread of which nothing is kept.
const NOTHING: u32 = u32::MAX;

/// Something for each of some threads, in the order in which they were met.
#[derive(Debug, Clone)]
pub struct ByThread<T> {
    /// By handle, where in the list.
    places: Vec<u32>,
    list: Vec<T>,
}

impl<T> Default for ByThread<T> {
    fn default() -> ByThread<T> {
        ByThread {
            places: Vec::new(),
            list: Vec::new(),
        }
    }
}

impl<T> ByThread<T> {
    /// Returns what there is of a thread, to change it.
    #[inline]
    pub fn get_mut(&mut self, thread: ThreadHandle) -> Option<&mut T> {
        let place = *self.places.get(index_of(thread.0))?;
        self.list.get_mut(index_of(place))
    }

    /// Returns the same, and makes it if there is none.
    #[inline]
    pub fn entry(&mut self, thread: ThreadHandle, make: impl FnOnce() -> T) -> &mut T {
        let place = match self.places.get(index_of(thread.0)) {
            Some(place) if *place != NOTHING => *place,
            _ => self.add(thread, make()),
        };
        &mut self.list[index_of(place)]
    }

    #[cold]
    fn add(&mut self, thread: ThreadHandle, one: T) -> u32 {
        let at = index_of(thread.0);
        if self.places.len() <= at {
            self.places.resize(at + 1, NOTHING);
        }
        let place = self.list.len() as u32;
        self.places[at] = place;
        self.list.push(one);
        place
    }

    /// Returns all that there is, in the order in which it was met.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.list.iter()
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
    }
}
