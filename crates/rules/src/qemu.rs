//! Which QEMU runs the recorded VMs.

use domain::{machine_of_args, machine_release};
use facts::{ReportedVm, release};

/// What is known of the QEMU that runs the recorded VMs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunningQemu<'a> {
    version: Option<QemuVersion<'a>>,
    /// It is this release or a later one, as the VMs' machine types show.
    at_least: Option<(u32, u32)>,
}

/// A version of QEMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct QemuVersion<'a> {
    text: &'a str,
    release: (u32, u32),
    /// Whether it is that of the program that runs, and not only what the host has.
    runs: bool,
}

impl<'a> RunningQemu<'a> {
    /// Returns what is known of some VMs' QEMU: `installed` is the version that their host has, `machine` the type in
    /// the VM's definition. Versions of several VMs that differ are none.
    pub(crate) fn of(
        vms: &[&'a ReportedVm],
        installed: Option<&'a str>,
        machine: Option<&str>,
    ) -> RunningQemu<'a> {
        let least_of = |vm: &&ReportedVm| machine_release(&machine_of_args(&vm.args)?);
        let of_vms = || {
            let all: Option<Vec<(u32, u32)>> = vms.iter().map(least_of).collect();
            all?.into_iter().min()
        };
        let at_least = machine.and_then(machine_release).or_else(of_vms);
        let mut versions = vms.iter().filter_map(|vm| vm.version.as_deref());
        let version = match versions.next() {
            Some(first) => versions
                .all(|other| other == first)
                .then_some(first)
                .and_then(|text| QemuVersion::of(text, true)),
            // What else a host has is not what its package manager or its PATH have.
            None => installed
                .filter(|_| vms.iter().all(|vm| may_be_installed(vm)))
                .and_then(|text| QemuVersion::of(text, false)),
        };
        RunningQemu {
            // A QEMU does not have machine types of later ones: it is another one's version then.
            version: version.filter(|one| at_least.is_none_or(|least| one.release >= least)),
            at_least,
        }
    }

    /// Says which QEMU it is, where that is known and it is older than a release. That it is at least some release
    /// shows only that it is not.
    pub(crate) fn older_than(&self, since: (u32, u32)) -> Option<String> {
        let version = self.version.filter(|one| one.release < since)?;
        if self.at_least >= Some(since) {
            return None;
        }
        Some(match version.runs {
            true => format!("QEMU {} runs the VM", version.text),
            false => format!("The host has QEMU {}", version.text),
        })
    }
}

impl QemuVersion<'_> {
    fn of(text: &str, runs: bool) -> Option<QemuVersion<'_>> {
        Some(QemuVersion {
            text,
            release: release(text)?,
            runs,
        })
    }
}

/// Whether a VM's program may be what its host has installed: one that stands elsewhere somebody has built.
fn may_be_installed(vm: &ReportedVm) -> bool {
    let folder = vm
        .emulator
        .as_deref()
        .and_then(|path| path.rsplit_once('/'));
    folder.is_none_or(|(folder, _)| matches!(folder, "/usr/bin" | "/bin" | "/usr/libexec"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(version: Option<&str>, args: &[&str]) -> ReportedVm {
        ReportedVm {
            pid: Some(7),
            version: version.map(str::to_owned),
            emulator: args.first().map(|path| (*path).to_owned()),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            ..ReportedVm::default()
        }
    }

    fn of(
        vms: &[ReportedVm],
        installed: Option<&str>,
        machine: Option<&str>,
        since: (u32, u32),
    ) -> Option<String> {
        let vms: Vec<&ReportedVm> = vms.iter().collect();
        RunningQemu::of(&vms, installed, machine).older_than(since)
    }

    #[test]
    fn a_lower_bound_is_enough_for_since_and_never_for_before() {
        let bound = [vm(
            None,
            &[
                "/usr/bin/qemu-system-x86_64",
                "-machine",
                "pc-q35-7.2,accel=kvm",
            ],
        )];
        let vms: Vec<&ReportedVm> = bound.iter().collect();
        assert_eq!(RunningQemu::of(&vms, None, None).at_least, Some((7, 2)));
        // It may be any later one.
        assert_eq!(of(&bound, None, None, (9, 0)), None);
        // What the host has is older than what runs: that is no version of it.
        assert_eq!(of(&bound, Some("6.2.0-53.el8"), None, (9, 0)), None);
        assert_eq!(of(&bound, Some("6.2.0-53.el8"), None, (7, 0)), None);
        assert_eq!(
            of(&bound, Some("7.2.0"), None, (9, 0)).as_deref(),
            Some("The host has QEMU 7.2.0")
        );
        // A definition's machine is of its VM; a distribution's own has no number of QEMU's.
        assert_eq!(of(&[], Some("6.2.0"), Some("pc-q35-8.0"), (9, 0)), None);
        assert_eq!(
            of(&[], Some("6.2.0"), Some("pc-q35-rhel9.2.0"), (9, 0)).as_deref(),
            Some("The host has QEMU 6.2.0")
        );
    }

    #[test]
    fn of_several_vms_all_have_to_be_known() {
        let path = "/usr/bin/qemu-system-x86_64";
        let both = [
            vm(None, &[path, "-M", "pc-i440fx-6.0"]),
            vm(None, &[path, "-machine", "hpet=off,type=pc-q35-8.1+pve0"]),
        ];
        let vms: Vec<&ReportedVm> = both.iter().collect();
        assert_eq!(RunningQemu::of(&vms, None, None).at_least, Some((6, 0)));
        let one = [both[0].clone(), vm(None, &[path, "-M", "q35"])];
        let vms: Vec<&ReportedVm> = one.iter().collect();
        assert_eq!(RunningQemu::of(&vms, None, None).at_least, None);
        let differ = [vm(Some("6.0.0"), &[path]), vm(Some("8.0.0"), &[path])];
        assert_eq!(of(&differ, Some("6.0.0"), None, (9, 0)), None);
    }

    #[test]
    fn what_a_host_has_is_not_what_somebody_has_built() {
        let own = [vm(None, &["/opt/qemu/bin/qemu-system-x86_64"])];
        assert_eq!(of(&own, Some("6.2.0"), None, (9, 0)), None);
        for path in ["/usr/libexec/qemu-kvm", "qemu-system-x86_64"] {
            let installed = [vm(None, &[path])];
            assert!(
                of(&installed, Some("6.2.0"), None, (9, 0)).is_some(),
                "{path}"
            );
        }
        let runs = [vm(Some("6.2.0"), &["/opt/qemu/bin/qemu-system-x86_64"])];
        assert_eq!(
            of(&runs, None, None, (9, 0)).as_deref(),
            Some("QEMU 6.2.0 runs the VM")
        );
        assert_eq!(of(&runs, None, None, (6, 2)), None);
    }
}
