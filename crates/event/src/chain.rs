//! Call chains that perf samples with an event.

/// User space's part comes in a record of its own, which has the number that follows (`PERF_CONTEXT_USER_DEFERRED` of
/// `include/uapi/linux/perf_event.h`, Linux 6.19).
pub const USER_DEFERRED: u64 = 0u64.wrapping_sub(640);

/// A call chain, innermost first, as 8-byte numbers in the recording's byte order: addresses, and markers
/// (`PERF_CONTEXT_*`) that tell whose the following ones are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallChain<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> CallChain<'a> {
    /// Takes the numbers as they were recorded.
    pub fn new(bytes: &'a [u8], big_endian: bool) -> CallChain<'a> {
        CallChain { bytes, big_endian }
    }

    /// Returns the number that stands in the place of user space's part, where that comes later.
    pub fn deferred(self) -> Option<u64> {
        let mut words = self.words().skip_while(|word| *word != USER_DEFERRED);
        words.next().and_then(|_| words.next())
    }

    /// Returns addresses and markers. What is left of less than eight bytes is no number.
    #[inline]
    pub fn words(self) -> impl Iterator<Item = u64> + use<'a> {
        let (chunks, _) = self.bytes.as_chunks::<8>();
        chunks.iter().map(move |chunk| {
            if self.big_endian {
                u64::from_be_bytes(*chunk)
            } else {
                u64::from_le_bytes(*chunk)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_the_recordings_byte_order() {
        let bytes = [0, 0, 0, 0, 0, 0, 0, 1, 9];
        let words = |big| CallChain::new(&bytes, big).words().collect::<Vec<_>>();
        assert_eq!(words(true), [1]);
        assert_eq!(words(false), [1 << 56]);
    }
}
