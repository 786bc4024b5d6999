//! Asks the processor for bytes that will be read soon.

/// Bytes of a line of the processor's cache.
pub(super) const LINE: usize = 64;

/// Asks for the line of the cache that holds a byte. A place beyond the end is not asked for.
#[inline(always)]
#[allow(unsafe_code)]
pub(super) fn prefetch(data: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = data.get(at) {
        // SAFETY: the instruction is a hint; it neither reads nor faults, whatever the address.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, at);
}
