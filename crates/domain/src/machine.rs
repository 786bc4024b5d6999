//! What a machine type says of the QEMU that runs it.
//!
//! A versioned machine type comes with the release of its number, and stays for some years (`hw/i386/pc_piix.c`,
//! `hw/i386/pc_q35.c` and `hw/arm/virt.c` of QEMU; the development before a release has it under that number already).
//! Proxmox puts a number of its own behind it (`pc-i440fx-8.1+pve0`), which QEMU's release is no part of. Distributions
//! have types with names of their own (`pc-q35-rhel9.2.0`, `pc-i440fx-jammy`): which release each needs is not written
//! in its name, so nothing is known of it here.

/// What stands before the number.
const BEFORE: [&str; 4] = ["pc-i440fx-", "pc-q35-", "virt-", "pc-"];

/// Returns the release of QEMU that brought a machine type: a QEMU that has it is that one or a later one. `None` where
/// the type has no number, as `q35`, or one that is no release of QEMU.
pub fn machine_release(machine: &str) -> Option<(u32, u32)> {
    let number = BEFORE
        .iter()
        .find_map(|before| machine.strip_prefix(before))?;
    let number = match number.split_once('+') {
        Some((number, own)) => number_of(own.strip_prefix("pve")?).map(|_| number)?,
        None => number,
    };
    let (major, minor) = number.split_once('.')?;
    Some((number_of(major)?, number_of(minor)?))
}

/// Reads digits alone.
fn number_of(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_of_qemus_releases_are_taken() {
        for (machine, release) in [
            ("pc-q35-7.2", Some((7, 2))),
            ("pc-i440fx-2.12", Some((2, 12))),
            ("pc-1.3", Some((1, 3))),
            ("virt-9.0", Some((9, 0))),
            ("pc-i440fx-8.1+pve0", Some((8, 1))),
            ("pc-q35-9.2+pve1", Some((9, 2))),
            ("pc-q35-8.1+other", None),
            ("pc-q35-8.1+pve", None),
            ("pc-i440fx-rhel7.6.0", None),
            ("pc-q35-rhel9.2.0", None),
            ("pc-i440fx-jammy", None),
            ("pc-q35-noble-hpb", None),
            ("virt-rhel9.2.0", None),
            ("pc-q35-7.2.0", None),
            ("pc-q35-+7.2", None),
            ("pc-q35-7", None),
            ("q35", None),
            ("pc", None),
            ("virt", None),
            ("microvm", None),
            ("xenfv-4.2", None),
            ("", None),
        ] {
            assert_eq!(machine_release(machine), release, "{machine}");
        }
    }
}
