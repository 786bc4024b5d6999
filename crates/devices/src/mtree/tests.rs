use crate::{AddressNames, Arch};

/// A small q35, as printed through a serial monitor: CRLF, the prompt, and the command's echo.
const Q35: &str = "QEMU 8.0.0 monitor - type 'help' for more information\r
(qemu) info mtree\r
address-space: cpu-memory-0\r
address-space: memory\r
  0000000000000000-ffffffffffffffff (prio 0, i/o): system\r
    0000000000000000-000000007fffffff (prio 0, ram): alias ram-below-4g @pc.ram 0000000000000000-000000007fffffff\r
    0000000000000000-ffffffffffffffff (prio -1, i/o): pci\r
      00000000fe000000-00000000fe000fff (prio 1, i/o): virtio-net-pci-msix\r
        00000000fe000000-00000000fe00003f (prio 0, i/o): msix-table\r
        00000000fe000800-00000000fe000807 (prio 0, i/o): msix-pba\r
      00000000fe004000-00000000fe007fff (prio 1, i/o): virtio-pci\r
        00000000fe004000-00000000fe004fff (prio 0, i/o): virtio-pci-common-virtio-net\r
        00000000fe007000-00000000fe007fff (prio 0, i/o): virtio-pci-notify-virtio-net\r
      00000000fe008000-00000000fe008fff (prio 1, i/o): edu-mmio\r
    00000000fec00000-00000000fec00fff (prio 0, i/o): kvm-ioapic\r
    00000000fed10000-00000000fed103ff (prio 0, i/o): hpet\r
    00000000fee00000-00000000feefffff (prio 4096, i/o): kvm-apic-msi\r
\r
address-space: I/O\r
  0000000000000000-000000000000ffff (prio 0, i/o): io\r
    0000000000000070-0000000000000071 (prio 0, i/o): rtc\r
      0000000000000070-0000000000000070 (prio 0, i/o): rtc-index\r
    00000000000003f8-00000000000003ff (prio 0, i/o): serial\r
    0000000000000600-000000000000067f (prio 0, i/o): ich9-pm\r
      0000000000000608-000000000000060b (prio 0, i/o): acpi-tmr\r
    0000000000000cf8-0000000000000cfb (prio 0, i/o): pci-conf-idx\r
    0000000000000cf9-0000000000000cf9 (prio 1, i/o): lpc-reset-control\r
    000000000000c000-000000000000c01f (prio 1, i/o): virtio-pci\r
\r
address-space: ich9-ahci\r
  0000000000000000-ffffffffffffffff (prio 0, i/o): bus master container\r
    00000000fe008000-00000000fe008fff (prio 9, i/o): of another address space\r
\r
memory-region: pc.ram\r
  0000000000000000-000000007fffffff (prio 0, ram): pc.ram\r
\r
(qemu) ";

fn names(arch: Arch, text: &str) -> (AddressNames, Vec<String>) {
    AddressNames::builtin(arch).with_mtree(text)
}

fn mmio(names: &AddressNames, gpa: u64) -> Option<String> {
    names.mmio(gpa, true).map(|name| name.to_string())
}

fn port(names: &AddressNames, port: u16) -> Option<String> {
    names.port(port, true).map(|name| name.to_string())
}

fn check_q35(names: &AddressNames) {
    for (gpa, expected) in [
        (0xfe00_001c, "virtio-net-pci MSI-X entry 1 vector control"),
        (0xfe00_0800, "msix-pba"),
        (0xfe00_0900, "virtio-net-pci-msix"),
        (0xfe00_4014, "virtio-net status"),
        (0xfe00_5000, "virtio-pci"),
        (0xfe00_7004, "virtio-net queue notify (queue 1)"),
        (0xfe00_8010, "edu-mmio"),
        (0xfec0_0010, "IOAPIC data"),
        // Moved, with its registers.
        (0xfed1_00f0, "HPET main counter"),
        // Not in the text: the built-in machine's.
        (0xfed0_00f0, "HPET main counter"),
        (0xfee0_00b0, "LAPIC EOI"),
        (0xfe10_0000, "PCI device memory"),
        (0x0000_1000, "pc.ram"),
    ] {
        assert_eq!(mmio(names, gpa).as_deref(), Some(expected), "{gpa:#x}");
    }
    for (number, expected) in [
        (0x70, "RTC/CMOS index"),
        (0x71, "RTC/CMOS data"),
        (0x3fd, "serial COM1 LSR"),
        (0x608, "acpi-tmr"),
        (0x60b, "acpi-tmr"),
        (0x610, "ich9-pm"),
        (0xcf8, "PCI config address"),
        (0xcf9, "PCI reset control"),
        (0xc010, "virtio-pci queue notify"),
        (0x60, "i8042 data"),
    ] {
        assert_eq!(
            port(names, number).as_deref(),
            Some(expected),
            "{number:#x}"
        );
    }
}

#[test]
fn a_whole_text() {
    let (names, notes) = names(Arch::X86, Q35);
    assert_eq!(notes, Vec::<String>::new());
    check_q35(&names);
}

#[test]
fn damage_from_pasting_is_undone() {
    let unix = Q35.replace('\r', "");
    let quoted: String = unix.lines().map(|line| format!("> {line}\n")).collect();
    let indented: String = unix
        .lines()
        .map(|line| format!("        {line}\n"))
        .collect();
    let json = format!("{{\"return\": \"{}\"}}", unix.replace('\n', "\\r\\n"));
    let flush: String = unix
        .lines()
        .map(|line| format!("{}\n", line.trim()))
        .collect();
    for text in [
        unix,
        quoted,
        indented,
        json,
        flush.replace("memory-region", "\nmemory-region"),
    ] {
        let (names, notes) = names(Arch::X86, &text);
        assert_eq!(notes, Vec::<String>::new());
        for (number, expected) in [(0x608, "acpi-tmr"), (0x70, "RTC/CMOS index")] {
            assert_eq!(port(&names, number).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(
            mmio(&names, 0xfe00_7004).as_deref(),
            Some("virtio-net queue notify (queue 1)")
        );
        assert_eq!(mmio(&names, 0xfe00_8010).as_deref(), Some("edu-mmio"));
    }
    let (names, _) = names(Arch::X86, &Q35.replace('\r', "").replace('\n', "\n  "));
    check_q35(&names);
}

#[test]
fn without_headings_small_addresses_are_ports() {
    let picked: String = Q35
        .lines()
        .filter(|line| line.contains("acpi-tmr") || line.contains("edu-mmio"))
        .map(|line| format!("{line}\n"))
        .collect();
    let (names, notes) = names(Arch::Other, &picked);
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(port(&names, 0x609).as_deref(), Some("acpi-tmr"));
    assert_eq!(mmio(&names, 0xfe00_8000).as_deref(), Some("edu-mmio"));
    assert_eq!(mmio(&names, 0x609), None);
}

/// `virt` shows its PCI window through an alias, so the devices are under another heading.
const VIRT: &str = "\
address-space: memory
  0000000000000000-ffffffffffffffff (prio 0, i/o): system
    0000000008000000-000000000800ffff (prio 0, i/o): gicv3_dist
    0000000008080000-000000000809ffff (prio 0, i/o): gicv3_its
      0000000008080000-000000000808ffff (prio 0, i/o): control
      0000000008090000-000000000809ffff (prio 0, i/o): translation
    00000000080a0000-00000000080dffff (prio 0, i/o): gicv3_redist_region[0]
    0000000009000000-0000000009000fff (prio 0, i/o): pl011
    000000000a000000-000000000a0001ff (prio 0, i/o): virtio-mmio
    000000000a000200-000000000a0003ff (prio 0, i/o): virtio-mmio
    000000000a000400-000000000a0005ff (prio 0, i/o): virtio-mmio
    0000000010000000-000000003efeffff (prio 0, i/o): alias pcie-mmio @gpex_mmio_window 0000000010000000-000000003efeffff
    0000004010000000-000000401fffffff (prio 0, i/o): alias pcie-ecam @pcie-mmcfg-mmio 0000000000000000-000000000fffffff
    0000008000000000-000000ffffffffff (prio 0, i/o): alias pcie-mmio-high @gpex_mmio_window \
0000008000000000-000000ffffffffff

memory-region: gpex_mmio_window
  0000000000000000-ffffffffffffffff (prio 0, i/o): gpex_mmio_window
    0000000000000000-ffffffffffffffff (prio 0, i/o): gpex_mmio
      0000008000000000-0000008000003fff (prio 1, i/o): virtio-pci
        0000008000003000-0000008000003fff (prio 0, i/o): virtio-pci-notify-vhost-vsock

memory-region: pcie-mmcfg-mmio
  0000000000000000-000000000fffffff (prio 0, i/o): pcie-mmcfg-mmio
";

#[test]
fn aliases_are_followed() {
    let (names, notes) = names(Arch::Arm64, VIRT);
    assert_eq!(notes, Vec::<String>::new());
    for (gpa, expected) in [
        (0x80_0000_3004, "vhost-vsock queue notify (queue 1)"),
        (0x40_1000_9010, "PCI config 00:01.1 +0x10"),
        (0x0a00_0450, "virtio-mmio 2 queue notify"),
        (0x0800_0f00, "GIC distributor GICD_SGIR"),
        (0x080c_0014, "GICv3 redistributor 1 GICR_WAKER"),
        (0x0808_0088, "GICv3 ITS GITS_CWRITER"),
        (0x0809_0040, "GICv3 ITS GITS_TRANSLATER"),
        (0x0900_0000, "PL011 UARTDR"),
        (0x0a00_3e50, "virtio-mmio 31 queue notify"),
    ] {
        assert_eq!(mmio(&names, gpa).as_deref(), Some(expected), "{gpa:#x}");
    }
}

#[test]
fn moved_transports_are_counted_from_the_first() {
    let text = "\
address-space: memory
  0000000000000000-ffffffffffffffff (prio 0, i/o): system
    00000000feb00000-00000000feb001ff (prio 0, i/o): virtio-mmio
    00000000feb00200-00000000feb003ff (prio 0, i/o): virtio-mmio
";
    let (names, _) = names(Arch::X86, text);
    assert_eq!(
        mmio(&names, 0xfeb0_0250).as_deref(),
        Some("virtio-mmio 1 queue notify")
    );
}

const FLAT: &str = "\
FlatView #0
 AS \"virtio-net-pci\", root: bus master container
 Root memory region: (none)
  No rendered FlatView

FlatView #1
 AS \"I/O\", root: io
 Root memory region: io
  0000000000000010-000000000000001f (prio 0, i/o): io @0000000000000010
  0000000000000070-0000000000000070 (prio 0, i/o): rtc-index
  0000000000000071-0000000000000071 (prio 0, i/o): rtc @0000000000000001
  0000000000000608-000000000000060b (prio 0, i/o): acpi-tmr

FlatView #2
 AS \"memory\", root: system
 AS \"cpu-memory-0\", root: system
 Root memory region: system
  0000000000000000-000000000009ffff (prio 0, ram): pc.ram KVM
  0000000008080000-000000000808ffff (prio 0, i/o): control
  000000000a000000-000000000a0001ff (prio 0, i/o): virtio-mmio
  000000000a000200-000000000a0003ff (prio 0, i/o): virtio-mmio
  00000000fed00080-00000000fed003ff (prio 0, i/o): hpet @0000000000000080
";

#[test]
fn flat_views() {
    let (names, notes) = names(Arch::Other, FLAT);
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(port(&names, 0x10), None);
    assert_eq!(port(&names, 0x70).as_deref(), Some("RTC/CMOS index"));
    assert_eq!(port(&names, 0x71).as_deref(), Some("RTC/CMOS data"));
    assert_eq!(port(&names, 0x608).as_deref(), Some("acpi-tmr"));
    assert_eq!(
        mmio(&names, 0xfed0_00f4).as_deref(),
        Some("HPET main counter (high)")
    );
    assert_eq!(
        mmio(&names, 0x0a00_0250).as_deref(),
        Some("virtio-mmio 1 queue notify")
    );
    assert_eq!(
        mmio(&names, 0x0808_0088).as_deref(),
        Some("GICv3 ITS GITS_CWRITER")
    );
    assert_eq!(mmio(&names, 0x1000).as_deref(), Some("pc.ram"));
    assert_eq!(mmio(&names, 0x5000_0000), None);
}

#[test]
fn a_tree_after_a_flat_view_is_a_tree() {
    let (names, _) = names(
        Arch::Other,
        &format!("FlatView #0\n AS \"memory\", root: system\n{Q35}"),
    );
    assert_eq!(port(&names, 0x608).as_deref(), Some("acpi-tmr"));
    assert_eq!(port(&names, 0x610).as_deref(), Some("ich9-pm"));
    assert_eq!(
        mmio(&names, 0xfe00_4014).as_deref(),
        Some("virtio-net status")
    );
}

#[test]
fn old_headings() {
    let text = "\
memory
0000000000000000-7ffffffffffffffe (prio 0, RW): system
  00000000fed00000-00000000fed003ff (prio 0, RW): hpet
I/O
0000000000000000-000000000000ffff (prio 0, RW): io
  000000000000b008-000000000000b00b (prio 0, RW): acpi-tmr
  0000000000000cfc-0000000000000cff (prio 0, RW): alias conf @elsewhere 0000000000000004-0000000000000007
aliases
elsewhere
0000000000000000-000000000000000f (prio 0, RW): elsewhere
  0000000000000004-0000000000000007 (prio 0, RW): pci-conf-data
";
    let (names, notes) = names(Arch::Other, text);
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(
        mmio(&names, 0xfed0_00f0).as_deref(),
        Some("HPET main counter")
    );
    assert_eq!(port(&names, 0xb00a).as_deref(), Some("acpi-tmr"));
    assert_eq!(port(&names, 0xcfd).as_deref(), Some("PCI config data"));
}

#[test]
fn what_is_not_mapped_is_not_found() {
    let text = "\
address-space: I/O
  0000000000000000-000000000000ffff (prio 0, i/o): io
      0000000000000000-0000000000000003 (prio 0, i/o): acpi-evt
    0000000000000000-0000000000000007 (prio 0, i/o): dma-chan
    0000000000000010-000000000000002f (prio 0, i/o): dma-cont
        0000000000000020-0000000000000023 (prio 0, i/o): acpi-gpe0
    0000000000000100-000000000000010f (prio 0, i/o): off [disabled]
      0000000000000100-000000000000010f (prio 0, i/o): inside
    0000000000000200-000000000000020f (prio 1, i/o): above
    0000000000000200-0000000000000207 (prio 0, i/o): below
";
    let (names, _) = names(Arch::Other, text);
    assert_eq!(port(&names, 0).as_deref(), Some("dma-chan"));
    assert_eq!(port(&names, 0x20).as_deref(), Some("dma-cont"));
    assert_eq!(port(&names, 0x100), None);
    assert_eq!(port(&names, 0x200).as_deref(), Some("above"));
}

#[test]
fn what_cannot_be_read_is_reported() {
    let text = "address-space: memory\n  0000-zzzz (prio 0, i/o): a\n  00000000-0000ffff (prio 0, i/o): b\n";
    let (names, notes) = names(Arch::Other, text);
    assert_eq!(
        notes,
        ["line 2 (byte 22): the range of addresses cannot be read"]
    );
    assert_eq!(mmio(&names, 0x10).as_deref(), Some("b"));

    let (_, notes) = super::Mtree::parse(&"0-z (prio 0, i/o): a\n".repeat(100));
    assert_eq!(notes.len(), super::MAX_NOTES + 2);
    assert_eq!(notes[super::MAX_NOTES], "84 more lines could not be read");

    let (_, notes) = super::Mtree::parse("unknown command: 'info mtree'");
    assert_eq!(
        notes,
        ["no memory or I/O regions found: not the text of info mtree"]
    );
}

#[test]
fn aliases_in_a_circle_and_deep_trees_end() {
    let circle = "\
address-space: memory
  0-ffff (prio 0, i/o): system
    0-ffff (prio 0, i/o): alias again @system 0-ffff
    0-ffff (prio 0, i/o): alias more @system 0-ffff
    0-ffff (prio 0, i/o): alias most @system 0-ffff
";
    let (circle, _) = names(Arch::Other, circle);
    assert_eq!(mmio(&circle, 0x10), None);

    let mut deep = String::from("address-space: memory\n");
    for depth in 0..2000 {
        deep.push_str(&" ".repeat(depth));
        deep.push_str("0-ffff (prio 0, i/o): level\n");
    }
    let (deep, _) = names(Arch::Other, &deep);
    assert_eq!(mmio(&deep, 0x10).as_deref(), Some("level"));
}

#[test]
fn regions_are_bounded() {
    let mut text = String::from("address-space: memory\n");
    for index in 0..super::MAX_REGIONS + 3 {
        text.push_str(&format!(
            "  {index:x}0-{index:x}f (prio 0, i/o): {}\n",
            "n".repeat(300)
        ));
    }
    let (names, notes) = names(Arch::Other, &text);
    assert_eq!(notes, ["3 regions after the first 65536 were left out"]);
    assert_eq!(mmio(&names, 0x1234).map(|name| name.len()), Some(200));
}
