//! Which QEMU runs VMs, where a package manager's list says so.
//!
//! Nothing is started to ask it. A file of a package that was replaced since the VM was started is another version: the
//! link `/proc/PID/exe` ends with ` (deleted)` then (`d_path` of `fs/d_path.c`), and nothing is known.

use facts::Facts;

use crate::tree::HostTree;

/// dpkg's list of packages (`dpkg(1)`): paragraphs of `Package:`, `Status:` and `Version:`.
const DPKG: &str = "/var/lib/dpkg/status";
/// Most bytes of it; thousands of packages have some megabytes.
const MAX_LIST: u64 = 32 << 20;

/// Reads the version of each VM's QEMU.
pub(crate) fn read(tree: &mut HostTree, facts: &mut Facts) {
    let mut list: Option<Option<String>> = None;
    for vm in &mut facts.vms {
        let Some(program) = vm
            .pid
            .and_then(|pid| tree.link(&format!("/proc/{pid}/exe")))
        else {
            continue;
        };
        let Some(package) = package(&program) else {
            continue;
        };
        let list = list.get_or_insert_with(|| tree.text_within(DPKG, MAX_LIST));
        vm.version = list.as_deref().and_then(|list| version(list, package));
    }
}

/// Returns the package that has a program (`debian/control` of qemu).
fn package(program: &str) -> Option<&'static str> {
    let name = program.strip_prefix("/usr/bin/qemu-system-")?;
    match name {
        "x86_64" | "i386" => Some("qemu-system-x86"),
        "aarch64" | "arm" => Some("qemu-system-arm"),
        _ => None,
    }
}

/// Returns a package's version without its epoch, as QEMU has it first: `1:7.2+dfsg-7+deb12u13` is
/// `7.2+dfsg-7+deb12u13`.
fn version(list: &str, package: &str) -> Option<String> {
    let mut paragraphs = list.split("\n\n");
    let value = |paragraph: &str, name: &str| {
        let mut lines = paragraph.lines().filter_map(|line| line.strip_prefix(name));
        lines.next().map(|value| value.trim().to_owned())
    };
    let paragraph =
        paragraphs.find(|text| value(text, "Package:").is_some_and(|name| name == package))?;
    let installed = value(paragraph, "Status:")?.ends_with(" installed");
    let version = value(paragraph, "Version:").filter(|_| installed)?;
    let version = version
        .split_once(':')
        .map_or(version.as_str(), |(_, rest)| rest);
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_packages_that_are_installed() {
        let list = "Package: qemu-system-arm\nStatus: deinstall ok config-files\nVersion: 1:6.2\n\n\
                    Package: qemu-system-x86\nStatus: install ok installed\nVersion: 1:7.2+dfsg-7+deb12u13\n";
        let of = |program| version(list, package(program)?);
        assert_eq!(
            of("/usr/bin/qemu-system-x86_64").as_deref(),
            Some("7.2+dfsg-7+deb12u13")
        );
        for program in [
            "/usr/bin/qemu-system-aarch64",
            "/usr/bin/qemu-system-x86_64 (deleted)",
            "/opt/qemu/bin/qemu-system-x86_64",
            "/usr/bin/qemu-system-riscv64",
        ] {
            assert_eq!(of(program), None, "{program}");
        }
    }
}
