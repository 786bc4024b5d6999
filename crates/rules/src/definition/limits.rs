//! Limits: CPU bandwidth and disks.

use domain::{Disk, Domain};

use super::remark::{BY_LOAD, DefinitionRemark, RemarkKind, in_form};
use crate::RecordNeeds::{Exits, Paths, Sched};

pub(super) static CPU_QUOTA: RemarkKind = RemarkKind {
    id: "cpu-quota",
    why: "A thread that has used its quota stands still until the next period begins, whatever CPUs are idle, and \
        with it what the guest holds: locks, interrupts, answers.",
    price: "Without the limit the guest can take CPU time from others. A longer period with the same share makes \
        stops rarer and longer.",
    refuted_by: "nr_throttled in the cgroup's cpu.stat does not grow (vcpu-throttled finds nothing).",
    confidence: BY_LOAD,
    record: &[Exits, Sched],
    sources: &[
        "libvirt, docs/formatdomain.rst (CPU Tuning: a quota below zero is none, one of 0 means no value)",
        "Linux, Documentation/scheduler/sched-bwc.rst",
    ],
};

pub(super) static DISK_LIMIT: RemarkKind = RemarkKind {
    id: "disk-limit",
    why: "QEMU holds requests beyond a limit back in its own queue: the guest waits, while the host's disk has \
        nothing to do.",
    price: "Without the limit the guest can take the disk from others.",
    refuted_by: "A recording under load in which the disk gets fewer requests than the limit allows.",
    confidence: BY_LOAD,
    record: &[Paths],
    sources: &[
        "QEMU, docs/throttle.txt",
        "libvirt, docs/formatdomain.rst (iotune)",
    ],
};

/// What a quota is of: its element, that of its period, whose time it limits.
const QUOTAS: [(&str, &str, &str); 4] = [
    ("quota", "period", "each vCPU"),
    ("emulator_quota", "emulator_period", "the VMM's own threads"),
    ("iothread_quota", "iothread_period", "each iothread"),
    (
        "global_quota",
        "global_period",
        "the whole VM, vCPUs and the VMM's threads together,",
    ),
];

/// Microseconds of a period where the definition names none: the kernel's, which libvirt leaves as it is
/// (Documentation/scheduler/sched-bwc.rst: 100 ms).
const PERIOD_US: i64 = 100_000;

pub(super) fn limits(domain: &Domain, out: &mut Vec<DefinitionRemark>) {
    for (element, period, whose) in QUOTAS {
        let quota = domain.cputune.get(element).copied().unwrap_or(0);
        let period = domain.cputune.get(period).copied();
        let period = period.filter(|us| *us > 0).unwrap_or(PERIOD_US);
        if quota <= 0 {
            continue;
        }
        let share = quota as f64 / period as f64;
        // One thread can use one CPU at most.
        let vcpus = f64::from(domain.vcpus.unwrap_or(0));
        let free = match element {
            "quota" | "iothread_quota" => share >= 1.0,
            "global_quota" => vcpus > 0.0 && share > vcpus,
            _ => false,
        };
        if free {
            continue;
        }
        let name = in_form(domain, element, element, "cpulimit");
        let mut what = format!(
            "{name} allows {whose} {:.0} % of a CPU: {:.1} ms in each {:.1} ms.",
            share * 100.0,
            quota as f64 / 1e3,
            period as f64 / 1e3
        );
        if element == "global_quota" && vcpus > 0.0 {
            what.push_str(&format!(" The guest has {vcpus:.0} vCPUs."));
        }
        let change = in_form(
            domain,
            "Raise the quota, or take it away (virsh schedinfo, at run time), and limit by <shares> where that is \
             enough.",
            "Raise the limit of its cgroup.",
            "Raise cpulimit:, or set 0, and limit by cpuunits: where that is enough.",
        );
        out.push(CPU_QUOTA.remark(domain, what, change));
    }
    for disk in domain.disks.iter().filter(|disk| !disk.limits.is_empty()) {
        let list: Vec<String> = disk
            .limits
            .iter()
            .map(|(name, value)| limit(name, *value))
            .collect();
        let what = format!("Disk {} is limited: {}.", name_of(disk), list.join(", "));
        let change = in_form(
            domain,
            "Raise or remove what <iotune> limits (virsh blkdeviotune, at run time).",
            "Raise or remove throttling. of its -drive, or the throttle-group.",
            "Raise or remove the limits of its line (iops, mbps).",
        );
        out.push(DISK_LIMIT.remark(domain, what, change));
    }
}

fn name_of(disk: &Disk) -> &str {
    disk.target.as_deref().unwrap_or("?")
}

/// Returns a limit in words: requests or bytes a second.
fn limit(name: &str, value: u64) -> String {
    match name.ends_with("bytes_sec") {
        true => format!("{name} {:.1} MiB/s", value as f64 / f64::from(1 << 20)),
        false => format!("{name} {value}"),
    }
}
