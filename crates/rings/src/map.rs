//! The memory of a ring: a page that says how far it is written and read, and the bytes behind it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::call::page_size;

/// Where `data_head` and `data_tail` stand in `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// A ring's memory.
#[derive(Debug)]
pub(crate) struct RingMemory {
    base: NonNull<u8>,
    /// Bytes of the first page, and of all that follows, a power of two.
    first: usize,
    size: usize,
}

// SAFETY: the memory belongs to the map alone and is unmapped with it; what the kernel writes meanwhile is read through
// atomics (the head) and only where it has said that it is done (`bytes`).
unsafe impl Send for RingMemory {}

impl RingMemory {
    /// Maps the ring of an event; `consumed` where the kernel is notified how far it has been read, so that nothing
    /// unread is overwritten.
    pub(crate) fn of(
        event: BorrowedFd<'_>,
        pages: usize,
        consumed: bool,
    ) -> io::Result<RingMemory> {
        let first = page_size();
        let size = pages
            .checked_next_power_of_two()
            .and_then(|pages| pages.max(1).checked_mul(first));
        let all = size.and_then(|size| size.checked_add(first));
        let (Some(size), Some(all)) = (size, all) else {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        };
        let protection = match consumed {
            true => libc::PROT_READ | libc::PROT_WRITE,
            false => libc::PROT_READ,
        };
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let base = unsafe {
            let fd = event.as_raw_fd();
            libc::mmap(
                std::ptr::null_mut(),
                all,
                protection,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(RingMemory { base, first, size })
    }

    /// Returns the bytes that records take.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: both places lie in the first page, which is mapped as long as this lives, and are aligned to 8 bytes.
        unsafe { &*self.base.as_ptr().add(at).cast::<AtomicU64>() }
    }

    /// Returns how far the kernel has written: what is before that can be read.
    pub(crate) fn head(&self) -> u64 {
        self.word(HEAD).load(Ordering::Acquire)
    }

    /// Notifies the kernel how far it has been read. Only for rings that are `consumed`: the page of others cannot be
    /// written.
    pub(crate) fn set_tail(&mut self, tail: u64) {
        self.word(TAIL).store(tail, Ordering::Release);
    }

    /// Returns the bytes from one position on, up to where the ring begins anew, at most so many.
    ///
    /// The kernel must not be writing them: they lie before its head and behind the tail, or its output is paused, and
    /// they are not the oldest, which a record that was begun before may still go over (`Paused`).
    pub(crate) fn bytes(&self, from: u64, length: usize) -> &[u8] {
        // The size is a power of two.
        let from = usize::try_from(from & (self.size as u64 - 1)).unwrap_or(0);
        let length = length.min(self.size - from);
        // SAFETY: the range lies in the mapping. The kernel writes there only once it has been notified that it was
        // read (`set_tail`, which needs this map mutably, so that no slice is left), or after its output goes on (the
        // same).
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(self.first + from), length) }
    }
}

/// Words of memory that the kernel writes while they are read: those of a map of BPF programs (`BPF_F_MMAPABLE`).
#[derive(Debug)]
pub struct SharedWords {
    base: NonNull<u8>,
    words: usize,
}

// SAFETY: the memory belongs to the map alone and is unmapped with it, and it is read through atomics alone.
unsafe impl Send for SharedWords {}

impl SharedWords {
    /// Maps so many words of eight bytes of a map.
    ///
    /// # Errors
    ///
    /// Those of mmap(2): EINVAL where the map is shorter, or is none that can be mapped.
    pub fn of(map: BorrowedFd<'_>, words: usize) -> io::Result<SharedWords> {
        let size = words.checked_mul(8).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let base = unsafe {
            let (fd, none) = (map.as_raw_fd(), std::ptr::null_mut());
            libc::mmap(none, size, libc::PROT_READ, libc::MAP_SHARED, fd, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedWords { base, words })
    }

    /// Returns a word as it is now: what was written before it is seen by who reads behind it. 0 beyond the last.
    pub fn word(&self, at: usize) -> u64 {
        if at >= self.words {
            return 0;
        }
        // SAFETY: the place lies in the mapping, which lives as long as this, and is aligned to 8 bytes, as the mapping
        // is to a page.
        let word = unsafe { &*self.base.as_ptr().cast::<AtomicU64>().add(at) };
        word.load(Ordering::Acquire)
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `of` made, and nothing borrows of it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.words * 8) };
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `of` made, and nothing borrows of it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.first + self.size) };
    }
}
