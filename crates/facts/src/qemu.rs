//! Which QEMU a host has, as QEMU itself and package managers print it.
//!
//! `qemu-system-x86_64 --version` (`version()` of QEMU's `system/vl.c`); `dpkg -l`, `dpkg-query -W` (dpkg-query(1));
//! `rpm -q`, `rpm -qa`, sosreport's `installed-rpms` (rpm-query(8): name, version, release and architecture, of which
//! version and release have no dash); `dnf list --installed`; `pacman -Q` (pacman(8)); `apk list` (apk-package(5)).
//! Lists of all packages are understood, and all but QEMU is passed over.

use forms::InputForm;

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "qemu-system-… --version, dpkg -l, rpm -qa, dnf list, pacman -Q, apk list",
    recognised_by: "`QEMU emulator version`; names of packages in the form of each package manager",
    yields: "which QEMU the host has installed",
    fixtures: &["tests/texts/packages.txt"],
};

/// Packages that have the program of QEMU which runs VMs on x86 and on arm64, or come with the same version: of Debian
/// and Ubuntu, Proxmox, Fedora, RHEL and CentOS, SUSE, Arch, Alpine.
const PACKAGES: [&str; 15] = [
    "qemu-system-x86",
    "qemu-system-arm",
    "pve-qemu-kvm",
    "qemu-kvm",
    "qemu-kvm-core",
    "qemu-kvm-ev",
    "qemu-kvm-ma",
    "qemu-kvm-rhev",
    "qemu-system-x86-core",
    "qemu-system-aarch64",
    "qemu-system-aarch64-core",
    "qemu-x86",
    "qemu-arm",
    "qemu-system-x86_64",
    "qemu-base",
];
/// Architectures at the end of what RPM prints.
const OF_RPM: [&str; 4] = [".x86_64", ".aarch64", ".noarch", ".i686"];
/// What stands above the packages of `dpkg -l`.
const DPKG_HEAD: [&str; 5] = [
    "Desired=Unknown/",
    "| Status=Not/",
    "|/ Err?=",
    "||/ Name",
    "+++-",
];

/// A line that says which packages a host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PackageLine {
    /// QEMU's version, without an epoch before it.
    Qemu(String),
    /// Another package, or what stands around them.
    Other,
}

/// Returns the numbers that a version begins with: `5.15.0-91-generic` is (5, 15).
pub fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split(|at: char| !at.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

/// Returns QEMU's version of a line that a package manager or QEMU itself prints; `None` of any other line.
pub fn qemu_of_line(line: &str) -> Option<String> {
    match read(line)? {
        PackageLine::Qemu(version) => Some(version),
        PackageLine::Other => None,
    }
}

/// Reads a line.
pub(crate) fn read(line: &str) -> Option<PackageLine> {
    if let Some(version) = line.strip_prefix("QEMU emulator version ") {
        let version = version.split(", Copyright").next().unwrap_or_default();
        release(version)?;
        return Some(PackageLine::Qemu(version.trim().to_owned()));
    }
    let of_qemu = line.starts_with("Copyright (c) 2003-") && line.contains("Fabrice Bellard");
    if of_qemu || DPKG_HEAD.iter().any(|head| line.starts_with(head)) {
        return Some(PackageLine::Other);
    }
    let mut words = line.split_ascii_whitespace();
    let first = words.next()?;
    let rest: Vec<&str> = words.take(4).collect();
    if let Some(state) = dpkg_state(first)
        && let [name, version, arch, ..] = rest.as_slice()
        && is_version(version)
        && arch
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    {
        let name = name.split(':').next().unwrap_or_default();
        return Some(match state {
            b'i' => of(name, version),
            _ => PackageLine::Other,
        });
    }
    let bare = OF_RPM.iter().find_map(|arch| first.strip_suffix(arch));
    if let Some((name, version)) = name_and_version(bare.unwrap_or(first))
        && (bare.is_some() || name.starts_with("qemu-"))
    {
        return Some(of(name, version));
    }
    let name = bare.unwrap_or(first);
    match rest.as_slice() {
        [version] | [version, _]
            if PACKAGES.contains(&name)
                && is_version(version)
                && release(without_epoch(version)).is_some() =>
        {
            Some(of(name, version))
        }
        _ => None,
    }
}

/// Returns the second letter of what `dpkg -l` has before a package: `i` of one that is installed.
fn dpkg_state(word: &str) -> Option<u8> {
    let [wanted, is, error @ ..] = word.as_bytes() else {
        return None;
    };
    let known =
        b"uihrp".contains(wanted) && b"ncHUFWti".contains(is) && matches!(error, [] | [b'R']);
    known.then_some(*is)
}

/// Takes a name apart from version and release, neither of which has a dash: `qemu-kvm-6.2.0-53.el8`.
fn name_and_version(text: &str) -> Option<(&str, &str)> {
    let (before, _) = text.rsplit_once('-')?;
    let (name, _) = before.rsplit_once('-')?;
    let version = text.get(name.len() + 1..)?;
    (!name.is_empty() && is_version(version)).then_some((name, version))
}

fn is_version(text: &str) -> bool {
    text.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

fn of(name: &str, version: &str) -> PackageLine {
    let version = without_epoch(version);
    match PACKAGES.contains(&name) && release(version).is_some() {
        true => PackageLine::Qemu(version.to_owned()),
        false => PackageLine::Other,
    }
}

/// Returns a version without its epoch, as QEMU has it first: `1:7.2+dfsg-7+deb12u13` is `7.2+dfsg-7+deb12u13`.
fn without_epoch(version: &str) -> &str {
    let epoch = version.split_once(':');
    let rest = epoch.filter(|(epoch, _)| epoch.bytes().all(|b| b.is_ascii_digit()));
    rest.map_or(version, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_every_package_manager_are_read() {
        for (line, version) in [
            (
                "QEMU emulator version 6.2.0 (Debian 1:6.2+dfsg-2ubuntu6.21)",
                "6.2.0 (Debian 1:6.2+dfsg-2ubuntu6.21)",
            ),
            (
                "QEMU emulator version 2.0.0, Copyright (c) 2003-2008 Fabrice Bellard",
                "2.0.0",
            ),
            (
                "ii  qemu-system-x86            1:6.2+dfsg-2ubuntu6.21  amd64        QEMU full system",
                "6.2+dfsg-2ubuntu6.21",
            ),
            (
                "hi  qemu-system-arm:arm64  1:8.2.2+ds-0ubuntu1  arm64  QEMU",
                "8.2.2+ds-0ubuntu1",
            ),
            (
                "qemu-system-x86\t1:7.2+dfsg-7+deb12u13",
                "7.2+dfsg-7+deb12u13",
            ),
            (
                "ii  pve-qemu-kvm  8.1.5-5  amd64  Full virtualization on x86 hardware",
                "8.1.5-5",
            ),
            (
                "qemu-kvm-core-6.2.0-53.module+el8.10.0+2055+8eb7870b.4.x86_64",
                "6.2.0-53.module+el8.10.0+2055+8eb7870b.4",
            ),
            (
                "qemu-kvm-rhev-2.12.0-48.el7.x86_64                 Mon Dec 11 19:55:09 2017",
                "2.12.0-48.el7",
            ),
            (
                "qemu-system-aarch64-core-2:6.1.0-5.fc35.aarch64",
                "6.1.0-5.fc35",
            ),
            (
                "qemu-kvm-core.x86_64   17:8.2.0-11.el9_4.4   @appstream",
                "8.2.0-11.el9_4.4",
            ),
            ("qemu-x86-8.2.2-150600.1.1.x86_64", "8.2.2-150600.1.1"),
            ("qemu-system-x86 9.0.2-1", "9.0.2-1"),
            (
                "qemu-system-x86_64-9.1.2-r1 x86_64 {qemu} (GPL-2.0-only) [installed]",
                "9.1.2-r1",
            ),
        ] {
            assert_eq!(qemu_of_line(line).as_deref(), Some(version), "{line}");
        }
    }

    #[test]
    fn other_packages_are_passed_over_and_other_lines_are_none() {
        for line in [
            "rc  qemu-system-x86  1:6.2+dfsg-2ubuntu6.21  amd64  QEMU full system emulation binaries (x86)",
            "ii  qemu-block-extra  1:6.2+dfsg-2ubuntu6.21  amd64  extra block backend modules",
            "ii  adduser  3.118ubuntu5  all  add and remove users and groups",
            "qemu-img-6.2.0-53.module+el8.10.0+2055+8eb7870b.4.x86_64",
            "libvirt-daemon-driver-qemu-9.0.0-3.fc38.x86_64",
            "qemu-system-x86-firmware-9.0.2-1.noarch",
            "||/ Name           Version      Architecture Description",
            "Copyright (c) 2003-2022 Fabrice Bellard and the QEMU Project developers",
        ] {
            assert_eq!(read(line), Some(PackageLine::Other), "{line}");
        }
        for line in [
            "",
            "package qemu-kvm is not installed",
            "QEMU emulator version x",
            "qemu-system-x86 1689",
            "qemu-kvm 1689 1700",
            "1689 1700 qemu-kvm",
            "CPU 0/KVM 1-2-3",
            "0000-1111-2222",
            "up 3 days, 1:23",
            "ii",
            "* CPU #0: thread_id=1700",
            "2026-11-27 03:50:11 x86_64",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
