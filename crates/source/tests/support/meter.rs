//! Counts the memory that a thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes this thread holds now, and the most it held since the meter was set. What one thread takes and
    /// another gives back would be counted wrongly; a case is read by one thread from beginning to end.
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    /// Bytes that this thread has asked for, whether it has given them back or not.
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with a count.
struct Meter;

#[global_allocator]
static METER: Meter = Meter;

impl Meter {
    fn count(bytes: isize) {
        // While a thread ends its counters may be gone; nobody looks at them then.
        let _ = NOW.try_with(|now| {
            now.set(now.get() + bytes);
            let more = u64::try_from(bytes).unwrap_or(0);
            let _ = ASKED.try_with(|asked| asked.set(asked.get() + more));
            let _ = MOST.try_with(|most| most.set(most.get().max(now.get())));
        });
    }
}

// SAFETY: every call goes on to the system's allocator with the arguments it came with, so what the caller
// promises is what that needs; the counters are plain cells of the thread, which never allocate.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Meter::count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Meter::count(layout.size() as isize);
        // SAFETY: as above. Large zeroed blocks are fresh pages of the kernel, which cost nothing until they
        // are written; they count all the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new block may both exist for a moment.
        Meter::count(size as isize);
        Meter::count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Meter::count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Runs `work` and returns the most memory it held at once beyond what was held before.
pub(crate) fn peak(work: impl FnOnce()) -> usize {
    let before = NOW.get();
    MOST.set(before);
    work();
    usize::try_from(MOST.get() - before).unwrap_or(0)
}

/// Runs `work` and returns how many bytes it asked for, all together.
pub(crate) fn asked(work: impl FnOnce()) -> u64 {
    let before = ASKED.get();
    work();
    ASKED.get() - before
}
