//! Any text and any number: no panic, and what is found has a name.

use devices::{AddressNames, Arch};
use proptest::prelude::*;

/// Texts that are nearly `info mtree`'s, so that arbitrary ones reach past the first check.
fn lines() -> impl Strategy<Value = String> {
    let heading = prop_oneof![
        Just("address-space: memory".to_string()),
        Just("address-space: I/O".to_string()),
        Just("memory-region: a".to_string()),
        Just("FlatView #0".to_string()),
        Just(" AS \"memory\", root: a".to_string()),
        Just("aliases".to_string()),
    ];
    let name = prop_oneof![
        "[a-c]",
        "alias [a-c] @[a-c] [0-9a-f]{1,16}-[0-9a-f]{1,16}",
        "[a-c] @[0-9a-f]{1,17}",
        "(serial|hpet|virtio-mmio|msix-table|ioapic|control|fwcfg.dma|gicv3_redist_region\\[0\\])",
        "virtio-pci-(notify|common|isr|other)-[a-z]{0,3}( \\[disabled\\])?",
        ".{0,8}",
    ];
    let region = (
        0usize..8,
        any::<u64>(),
        any::<u64>(),
        0u32..64,
        any::<i8>(),
        name,
    )
        .prop_map(|(indent, base, size, shift, prio, name)| {
            let base = base >> shift;
            let last = base.wrapping_add(size >> shift);
            format!(
                "{}{base:016x}-{last:016x} (prio {prio}, i/o): {name}",
                "  ".repeat(indent)
            )
        });
    let line = prop_oneof![1 => heading, 6 => region, 1 => ".{0,40}"];
    prop::collection::vec(line, 0..40).prop_map(|lines| lines.join("\n"))
}

fn arch() -> impl Strategy<Value = Arch> {
    prop_oneof![Just(Arch::X86), Just(Arch::Arm64), Just(Arch::Other)]
}

fn ask(names: &AddressNames, number: u64, write: bool) {
    let found = [
        names.mmio(number, write),
        names.port(number as u16, write),
        names.msr(number as u32),
    ];
    for name in found.into_iter().flatten() {
        assert!(!name.to_string().starts_with(' '));
    }
}

proptest! {
    #[test]
    fn any_text(text in any::<String>(), number in any::<u64>(), arch in arch()) {
        let (names, _) = AddressNames::builtin(arch).with_mtree(&text);
        ask(&names, number, true);
    }

    #[test]
    fn nearly_right_text(
        text in lines(),
        numbers in prop::collection::vec((any::<u64>(), 0u32..64, any::<bool>()), 8),
        arch in arch(),
    ) {
        let (names, _) = AddressNames::builtin(arch).with_mtree(&text);
        for (number, shift, write) in numbers {
            ask(&names, number >> shift, write);
        }
    }

    #[test]
    fn any_number(number in any::<u64>(), shift in 0u32..64, write in any::<bool>(), arch in arch()) {
        ask(&AddressNames::builtin(arch), number >> shift, write);
    }
}
