//! The host takes memory away from a VM.

use crate::define::{TextForm, event};
use crate::text::{behind, number, word};

event! {
    /// `kvm:kvm_unmap_hva_range`: a range of the VMM's memory is unmapped, and with it what guests have of it
    /// (`include/trace/events/kvm.h` since 5.13; before, `trace.h` of each architecture).
    KvmUnmapHvaRange at UnmapPlaces {
        /// The first address.
        start: u64 = "start",
        /// The first address behind it.
        end: u64 = "end",
    }
    text: TextForm::Whole(unmap)
}

impl KvmUnmapHvaRange {
    /// Returns how many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// Reads `mmu notifier unmap range: 0x007f10bf7f0000 -- 0x007f10bf7f1000`.
fn unmap(text: &[u8]) -> Option<KvmUnmapHvaRange> {
    let Some(rest) = behind(text, b"range:") else {
        return KvmUnmapHvaRange::from_fields(text);
    };
    let rest = rest.trim_ascii_start();
    Some(KvmUnmapHvaRange {
        start: number(word(rest))?,
        end: number(word(behind(rest, b"--")?.trim_ascii_start()))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_kernels_print_it() {
        let range = unmap(b"mmu notifier unmap range: 0x007f10bf7f0000 -- 0x007f10bf7f1000");
        assert_eq!(range.map(|range| range.bytes()), Some(4096));
        let range = unmap(b"start=0x7f0000000000 end=0x7f0000200000");
        assert_eq!(range.map(|range| range.bytes()), Some(2 << 20));
        for damaged in [
            &b"mmu notifier unmap range: 0x7f"[..],
            b"",
            b"range: -- 0x1",
        ] {
            assert_eq!(unmap(damaged), None);
        }
    }
}
