//! How much memory this program takes at most, and what it says where there is no more.
//!
//! The limit is the kernel's own (`RLIMIT_DATA`, `setrlimit(2)`): since Linux 4.7 it counts what a process may write to
//! and nobody else sees, which is heap and stacks, and not files that are mapped for reading.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::options::values;
use model::{STATE_LIMITS, StateLimits};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What any recording takes: buffers of readers and stacks of threads, measured with `report` of a recording of 64
/// CPUs, and some air.
const FIXED_BYTES: u64 = 96 << 20;
/// What a thread, and a vCPU, that is kept apart takes in `report`, measured with a million of either.
const THREAD_BYTES: u64 = 2 << 10;
const VCPU_BYTES: u64 = 8 << 10;

/// The limit that holds, in bytes; 0 where there is none.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// The allocator of the standard library. Where it has nothing, the program ends with a sentence in place of a
/// backtrace.
struct SpokenAllocator;

#[global_allocator]
static ALLOCATOR: SpokenAllocator = SpokenAllocator;

// SAFETY: everything is handed on to the standard library's allocator as it comes, and a pointer that it returns is
// returned as it is; where there is none, the process ends.
unsafe impl GlobalAlloc for SpokenAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `GlobalAlloc::alloc`, which is the same.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer is the standard library's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; the pointer is the standard library's.
        given(unsafe { System.realloc(pointer, layout, size) }, size)
    }
}

#[inline(always)]
fn given(pointer: *mut u8, size: usize) -> *mut u8 {
    if pointer.is_null() {
        exhausted(size);
    }
    pointer
}

/// Says that there is no memory, without taking any, and ends the process.
#[cold]
#[inline(never)]
fn exhausted(size: usize) -> ! {
    let mut line = LineBuffer::default();
    line.text("trapline: out of memory: another ");
    line.number(size as u64);
    line.text(" bytes are not to be had");
    match LIMIT.load(Ordering::Relaxed) {
        0 => line.text("; use a machine with more, or a part of the recording (--time)\n"),
        limit => {
            line.text(" within ");
            line.number(limit >> 20);
            line.text(" MiB; raise --max-memory, or use a part of the recording (--time)\n");
        }
    }
    let _ = rustix::io::write(rustix::stdio::stderr(), line.written());
    // SAFETY: `_exit` takes any number, and ends the process without running anything else of it.
    unsafe { libc::_exit(1) }
}

/// A line that is put together without the heap.
struct LineBuffer {
    bytes: [u8; 256],
    len: usize,
}

impl Default for LineBuffer {
    fn default() -> LineBuffer {
        LineBuffer {
            bytes: [0; 256],
            len: 0,
        }
    }
}

impl LineBuffer {
    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = byte;
                self.len += 1;
            }
        }
    }

    fn number(&mut self, number: u64) {
        self.text(itoa::Buffer::new().format(number));
    }

    fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Parses a size that is enough for any recording.
///
/// # Errors
/// It is no size, or less than any recording takes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    match values::size(text)? {
        bytes if bytes < FIXED_BYTES => Err(format!(
            "reading a recording takes {} MiB at least",
            FIXED_BYTES >> 20
        )),
        bytes => Ok(bytes),
    }
}

/// Sets the limit, which is half of what is available where none is given, and returns how much of a recording's
/// threads may be kept apart within it.
pub(crate) fn limit(asked: Option<u64>) -> StateLimits {
    let available = || host::available_memory(Path::new("/"));
    let half = || available().map(|bytes| (bytes / 2).max(FIXED_BYTES));
    let Some(limit) = asked.or_else(half) else {
        return STATE_LIMITS;
    };
    let before = getrlimit(Resource::Data);
    let lower = |known: Option<u64>| Some(known.map_or(limit, |known| known.min(limit)));
    let new = Rlimit {
        current: lower(before.current),
        maximum: before.maximum,
    };
    // Who may not lower it has a lower one.
    if setrlimit(Resource::Data, new).is_ok() {
        LIMIT.store(limit, Ordering::Relaxed);
    }
    state_limits(limit)
}

/// Returns how many threads and vCPUs may be kept apart within a limit: half of it is theirs, and the other half is
/// that of what is found of them.
fn state_limits(limit: u64) -> StateLimits {
    let quarter = limit.saturating_sub(FIXED_BYTES / 2) / 4;
    let within = |bytes: u64, most: usize| {
        let many = usize::try_from(quarter / bytes).unwrap_or(usize::MAX);
        many.clamp(256, most)
    };
    StateLimits {
        threads: within(THREAD_BYTES, STATE_LIMITS.threads),
        vcpus: within(VCPU_BYTES, STATE_LIMITS.vcpus),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_memory_keeps_fewer_threads_apart() {
        assert_eq!(state_limits(8 << 30), STATE_LIMITS);
        let least = state_limits(FIXED_BYTES);
        assert!(
            least.threads >= 4096 && least.threads < STATE_LIMITS.threads,
            "{least:?}"
        );
        assert!(
            least.vcpus >= 1024 && least.vcpus < STATE_LIMITS.vcpus,
            "{least:?}"
        );
        assert!(size("1M").unwrap_err().contains("96 MiB"));
        assert_eq!(size("1G"), Ok(1 << 30));
    }
}
