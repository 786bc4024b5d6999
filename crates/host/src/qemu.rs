//! Which QEMU runs VMs: what its program says, else what the package manager's list says of the program's package.
//!
//! Nothing is started to ask it. The program is read by the kernel's own link `/proc/PID/exe`, which leads to it in
//! whatever container it is, and after its file was replaced (`proc_pid_exe(5)`). In a copied tree that link is a text,
//! and the program is there where somebody copied it too; else the list of dpkg may have its package. A file that was
//! replaced since the VM was started is another version: the link ends with ` (deleted)` then (`d_path` of
//! `fs/d_path.c`), and nothing is known.
//!
//! RPM's list is a database of its own form (Berkeley DB, ndb or SQLite), and paths of its packages have no version in
//! them (`/usr/share/doc/qemu-kvm` of RHEL 8): of such hosts only the program says it, or the text that `rpm -qa`
//! prints, which sosreport has in `installed-rpms`.

use std::fs::File;

use facts::{Facts, ReportedVm, qemu_of_line, release};

use crate::program;
use crate::tree::HostTree;

/// dpkg's list of packages (`dpkg(1)`): paragraphs of `Package:`, `Status:` and `Version:`.
const DPKG: &str = "/var/lib/dpkg/status";
/// Arch's list: a folder for each package, named by it and its version (`alpm-db(7)`).
const PACMAN: &str = "/var/lib/pacman/local";
/// Alpine's list: paragraphs in which `P:` is a package and `V:` its version (`apk-package(5)`, index characters).
const APK: &str = "/lib/apk/db/installed";
/// What sosreport has of `rpm -qa` and of `dpkg -l`.
const OF_SOSREPORT: [&str; 2] = ["/installed-rpms", "/installed-debs"];
/// Most bytes of a list; thousands of packages have some megabytes, and Alpine's has all their files.
const MAX_LIST: u64 = 32 << 20;
/// Most programs that are read: hosts have one or two.
const MAX_PROGRAMS: usize = 16;
/// Packages with QEMU's program in dpkg's list.
const OF_DPKG: [&str; 3] = ["qemu-system-x86", "qemu-system-arm", "pve-qemu-kvm"];

/// Reads the version of each VM's QEMU, and which one the host has where that leaves some unknown.
pub(crate) fn read(tree: &mut HostTree, facts: &mut Facts) {
    let mut programs = ReadPrograms::default();
    let mut list: Option<Option<String>> = None;
    for vm in facts.vms.iter_mut().filter(|vm| is_qemu(vm)) {
        let Some(pid) = vm.pid else {
            continue;
        };
        let Some(program) = tree.link(&format!("/proc/{pid}/exe")) else {
            continue;
        };
        vm.version = tree
            .program(pid, &program)
            .and_then(|file| programs.version(file));
        if vm.version.is_none()
            && let Some(package) = package(&program)
        {
            let list = list.get_or_insert_with(|| tree.text_within(DPKG, MAX_LIST));
            vm.version = list.as_deref().and_then(|list| version(list, package));
        }
    }
    let unknown = |vm: &ReportedVm| is_qemu(vm) && vm.version.is_none();
    if !facts.vms.iter().any(unknown) {
        return;
    }
    let list = list.unwrap_or_else(|| tree.text_within(DPKG, MAX_LIST));
    let all = installed(tree, list.as_deref());
    if let Some(host) = &mut facts.host {
        host.qemu = only(all);
    }
}

/// Whether a VM's program is QEMU, by its name.
fn is_qemu(vm: &ReportedVm) -> bool {
    let name = vm
        .emulator
        .as_deref()
        .and_then(|path| path.rsplit('/').next());
    name.is_some_and(|name| name.starts_with("qemu") || name == "kvm")
}

/// The programs that were read so far, by device and number of their files: many VMs run one.
#[derive(Debug, Default)]
struct ReadPrograms(Vec<((u64, u64), Option<String>)>);

impl ReadPrograms {
    fn version(&mut self, file: File) -> Option<String> {
        use std::os::unix::fs::MetadataExt;
        let data = file.metadata().ok()?;
        let id = (data.dev(), data.ino());
        if let Some((_, version)) = self.0.iter().find(|(known, _)| *known == id) {
            return version.clone();
        }
        if self.0.len() >= MAX_PROGRAMS {
            return None;
        }
        let version = program::version(file).ok().flatten();
        self.0.push((id, version.clone()));
        version
    }
}

/// Returns the versions of QEMU that lists of packages have.
fn installed(tree: &mut HostTree, dpkg: Option<&str>) -> Vec<String> {
    let of_dpkg = OF_DPKG.iter().filter_map(|name| version(dpkg?, name));
    let mut all: Vec<String> = of_dpkg.collect();
    let folders = tree.names(PACMAN);
    all.extend(folders.iter().filter_map(|name| qemu_of_line(name)));
    let apk = tree.text_within(APK, MAX_LIST).unwrap_or_default();
    let mut package = "";
    for line in apk.lines() {
        if let Some(name) = line.strip_prefix("P:") {
            package = name;
        } else if let Some(version) = line.strip_prefix("V:") {
            all.extend(qemu_of_line(&format!("{package}-{version}")));
        }
    }
    if !tree.is_running() {
        for list in OF_SOSREPORT {
            let text = tree.text_within(list, MAX_LIST).unwrap_or_default();
            all.extend(text.lines().filter_map(qemu_of_line));
        }
    }
    all
}

/// Returns the first version, if the others are of the same release.
fn only(all: Vec<String>) -> Option<String> {
    let mut all = all.into_iter();
    let first = all.next()?;
    all.all(|other| release(&other) == release(&first))
        .then_some(first)
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
