//! Interrupts that devices use, and where they are handled (`Documentation/core-api/irq/irq-affinity.rst`).

use std::collections::BTreeMap;

use facts::Irq;

use crate::tree::{HostTree, MAX_FILE};

/// Most interrupts that are kept; large hosts have some ten thousand.
const MAX_IRQS: usize = 1 << 16;
/// Longest name in bytes; those of shared lines are long.
const MAX_NAME: usize = 256;

/// Reads them, in the order of their numbers.
pub(crate) fn read(tree: &mut HostTree) -> Vec<Irq> {
    tree.expect("/proc/interrupts");
    // It has a column for each CPU: those of large hosts are longer than what is read. Folders tell the rest.
    let text = tree.head("/proc/interrupts", MAX_FILE).unwrap_or_default();
    let mut names = names(&text);
    let mut irqs = Vec::new();
    for irq in tree.numbered::<u32>("/proc/irq", "") {
        let folder = format!("/proc/irq/{irq}");
        let name = match names.remove(&irq) {
            Some(name) => name,
            // Each handler of an interrupt has a folder of its name.
            None => {
                let entries = tree.names(&folder).into_iter();
                let handlers = entries.filter(|name| tree.is_folder(&format!("{folder}/{name}")));
                short(&handlers.collect::<Vec<_>>().join(", "))
            }
        };
        // Nobody handles it.
        if name.is_empty() {
            continue;
        }
        if irqs.len() >= MAX_IRQS {
            tree.refuse("/proc/irq", format!("more than {MAX_IRQS} interrupts"));
            break;
        }
        irqs.push(Irq {
            irq,
            name,
            affinity: tree.cpus(&format!("{folder}/smp_affinity_list")),
            effective: tree.cpus(&format!("{folder}/effective_affinity_list")),
        });
    }
    irqs
}

fn short(name: &str) -> String {
    name[..name.floor_char_boundary(MAX_NAME)].to_owned()
}

/// Returns who handles which interrupt, from the text of `/proc/interrupts` (`show_interrupts` of
/// `kernel/irq/proc.c`): number, a count for each CPU, the controller, its own number for it and how it is triggered
/// (`5-edge`, or `27 Level`), and the handlers' names.
fn names(text: &str) -> BTreeMap<u32, String> {
    let mut lines = text.split_inclusive('\n');
    let header = lines.next().unwrap_or_default();
    let cpus = header.split_ascii_whitespace().count();
    let mut names = BTreeMap::new();
    // A line that was cut off is none.
    for line in lines.filter(|line| line.ends_with('\n')) {
        let Some((number, rest)) = line.split_once(':') else {
            continue;
        };
        let Ok(irq) = number.trim().parse::<u32>() else {
            continue;
        };
        let mut rest = rest.trim();
        let mut word = || {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            rest = behind.trim_start();
            (word, rest)
        };
        for _ in 0..cpus {
            word();
        }
        let (_controller, mut name) = word();
        // Its own number, which some controllers have none of.
        if name.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            name = word().1;
        }
        if name.starts_with("Level") || name.starts_with("Edge") {
            name = word().1;
        }
        names.insert(irq, short(name));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interrupts_are_what_stands_behind_the_controller() {
        let x86 = "            CPU0       CPU1       \n\
            \x20  4:         10          0  IR-IO-APIC    4-edge      ttyS0\n\
            \x20 16:          0          0  IR-IO-APIC   16-fasteoi   i801_smbus, ehci_hcd:usb1\n\
            \x20 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n\
            \x20122:        510          7  IR-PCI-MSIX-0000:01:00.0    1-edge      eth0 rx 0\n\
            \x20 55:          0          0  PCI-MSI 512000-edge\n\
            \x20 56:          3          4  xen-dyn    -event     eth1\n\
            LOC:      17344      33002   Local timer interrupts\n\
            ERR:          0\n\
            \x20 57:          0";
        let found = names(x86);
        let expected = [
            (4, "ttyS0"),
            (16, "i801_smbus, ehci_hcd:usb1"),
            (24, "ACPI:Ged"),
            (55, ""),
            (56, "eth1"),
            (122, "eth0 rx 0"),
        ];
        let expected = expected.map(|(irq, name)| (irq, name.to_owned()));
        assert_eq!(found, BTreeMap::from(expected));
        let arm64 = "           CPU0       CPU1       \n\
            \x20 9:          0          0     GICv3  25 Level     vgic\n\
            \x2011:       8142       7003     GICv3  27 Level     kvm guest vtimer\n\
            \x2048:          0         12   ITS-MSI 8388608 Edge      nvme0q0\n\
            IPI0:        71        103       Rescheduling interrupts\n";
        let expected = [(9, "vgic"), (11, "kvm guest vtimer"), (48, "nvme0q0")];
        let expected = expected.map(|(irq, name)| (irq, name.to_owned()));
        assert_eq!(names(arm64), BTreeMap::from(expected));
        assert!(names("").is_empty() && names("\n:\n1\n").is_empty());
    }
}
