//! The kernel's symbols that a recording has addresses of.

use std::collections::{BTreeMap, BTreeSet};

use tracefmt::{Kallsyms, KallsymsLines};

/// Modules of the kernel's own tree that work for virtual machines: their names are no secret, nor are those of their
/// functions (`arch/*/kvm`, `drivers/vhost`, `drivers/virtio`, `drivers/vfio`, `drivers/net`, `net/bridge`).
const MODULES: [&str; 24] = [
    "kvm",
    "kvm_intel",
    "kvm_amd",
    "irqbypass",
    "vhost",
    "vhost_net",
    "vhost_scsi",
    "vhost_vsock",
    "vhost_iotlb",
    "vfio",
    "vfio_pci",
    "vfio_pci_core",
    "vfio_iommu_type1",
    "tun",
    "tap",
    "macvtap",
    "bridge",
    "virtio",
    "virtio_ring",
    "virtio_pci",
    "virtio_mmio",
    "virtio_net",
    "virtio_blk",
    "virtio_scsi",
];

/// Returns whether a module's name, and those of its functions, are no secret.
pub(crate) fn is_public_module(module: &str) -> bool {
    MODULES.contains(&module)
}

/// Decides what stands in place of what a symbol has.
pub(crate) trait SymbolMask {
    /// Returns what stands in place of its address.
    fn moved(&self, address: u64) -> u64;

    /// Returns what stands in place of the name of a module that nobody else may have, or of a function of it.
    fn symbol(&mut self, name: &str) -> String;
}

/// Returns those lines of `/proc/kallsyms` that name a used address, or end what is named so, with their addresses
/// moved. An address has the name in them that it had in all lines.
pub(crate) fn reduced(
    text: &[u8],
    used: &BTreeSet<u64>,
    long_size: u8,
    mask: &mut dyn SymbolMask,
) -> Vec<u8> {
    let table = Kallsyms::parse(text);
    let starts: Vec<u64> = table.starts().collect();
    let mut kept: BTreeMap<u64, &str> = BTreeMap::new();
    for address in used {
        let Some((name, offset)) = table.lookup(*address) else {
            continue;
        };
        let start = address - offset;
        kept.insert(start, name);
        let behind = starts.partition_point(|other| *other <= start);
        if let Some((end, (name, _))) = starts
            .get(behind)
            .and_then(|end| Some((*end, table.lookup(*end)?)))
        {
            kept.entry(end).or_insert(name);
        }
    }
    // What else a line says of them.
    let mut about: BTreeMap<u64, (u8, Option<&str>)> = BTreeMap::new();
    for line in KallsymsLines::of(text) {
        if kept.get(&line.address) == Some(&line.name) {
            about.insert(line.address, (line.kind, line.module));
        }
    }
    let mut out = String::new();
    for (address, name) in kept {
        let (kind, module) = about.get(&address).copied().unwrap_or((b't', None));
        let moved = mask.moved(address);
        let digits = 2 * usize::from(long_size);
        let is_public = module.is_none_or(is_public_module);
        let name = match is_public {
            true => name.to_owned(),
            false => mask.symbol(name),
        };
        out.push_str(&format!("{moved:0digits$x} {} {name}", char::from(kind)));
        if let Some(module) = module {
            let module = match is_public {
                true => module.to_owned(),
                false => mask.symbol(module),
            };
            out.push_str(&format!("\t[{module}]"));
        }
        out.push('\n');
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Down;

    impl SymbolMask for Down {
        fn moved(&self, address: u64) -> u64 {
            address - 0x1000
        }

        fn symbol(&mut self, name: &str) -> String {
            format!("s{}", name.len())
        }
    }

    const TEXT: &str = "ffffffff81000000 T _text\nffffffff81001000 t one\nffffffff81001100 T two\n\
        ffffffff81001100 t two_alias\nffffffff81001200 T three\nffffffffc0000000 t kvm_set_irq\t[kvm]\n\
        ffffffffc0000100 t acme_secret\t[acme]\nffffffffc0000200 t acme_more\t[acme]\nffffffffc0000300 t last\t[kvm]\n";

    #[test]
    fn what_is_used_keeps_its_name_and_all_else_is_gone() {
        let used = [
            0xffff_ffff_8100_1110,
            0xffff_ffff_c000_0004,
            0xffff_ffff_c000_0150,
        ];
        let text = reduced(TEXT.as_bytes(), &used.into(), 8, &mut Down);
        let text = String::from_utf8(text).expect("text");
        assert!(
            !text.contains("acme") && !text.contains("one") && !text.contains("_text"),
            "{text}"
        );
        let (whole, part) = (
            Kallsyms::parse(TEXT.as_bytes()),
            Kallsyms::parse(text.as_bytes()),
        );
        for address in used {
            let (name, offset) = whole.lookup(address).expect("a name");
            let found = part.lookup(address - 0x1000).expect("it stays");
            let name = if name == "acme_secret" { "s11" } else { name };
            assert_eq!(found, (name, offset), "{text}");
        }
        // One alias of two, and what ends each.
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(text.contains("ffffffffbffff100 t s11\t[s4]\n"), "{text}");
    }

    #[test]
    fn nothing_is_used_and_nothing_is_hidden() {
        assert!(reduced(TEXT.as_bytes(), &BTreeSet::new(), 8, &mut Down).is_empty());
        let hidden = b"0000000000000000 T _text\n0000000000000000 T two\n";
        assert!(reduced(hidden, &[0xffff_ffff_8100_1110].into(), 8, &mut Down).is_empty());
    }
}
