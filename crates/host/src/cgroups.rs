//! Control groups of VMs, and what the kernel counts of memory and pressure.

use std::collections::{BTreeMap, BTreeSet};

use facts::{ControlGroup, Facts, Host};

use crate::tree::HostTree;

/// The second version of control groups is mounted here; so are folders with the controllers of the first one.
const CGROUP: &str = "/sys/fs/cgroup";
/// Most groups; each VM has some, and one for each vCPU.
const MAX_GROUPS: usize = 1 << 14;
/// Most letters of a group's path, and most groups above one.
const MAX_PATH: usize = 4096;
const MAX_DEPTH: usize = 64;
/// Text of `/proc/PID/cgroup`, and of a file of a group.
const MAX_TEXT: u64 = 16 << 10;

/// Files of a group that are limits, each of one line (`io.max` of one for each device).
const LIMITS: [&str; 7] = [
    "cpu.max",
    "cpu.weight",
    "memory.low",
    "memory.high",
    "memory.max",
    "memory.swap.max",
    "io.max",
];
/// Files of a group with lines of a name and a number, and which of them are kept.
const COUNTERS: [(&str, &[&str]); 2] = [
    (
        "cpu.stat",
        &["usage_usec", "nr_periods", "nr_throttled", "throttled_usec"],
    ),
    ("memory.events", &["low", "high", "max", "oom", "oom_kill"]),
];
/// Files of pressure: of a group, and of the host in `/proc/pressure`.
const PRESSURE: [&str; 3] = ["cpu.pressure", "memory.pressure", "io.pressure"];
/// What is kept of `/proc/vmstat` (`vmstat_text` of `mm/vmstat.c`).
const VMSTAT: [&str; 18] = [
    "pswpin",
    "pswpout",
    "pgmajfault",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "compact_stall",
    "thp_fault_alloc",
    "thp_collapse_alloc",
    "thp_split_page",
    "numa_hint_faults",
    "numa_pages_migrated",
    "balloon_inflate",
    "balloon_deflate",
    "cow_ksm",
    "ksm_swpin_copy",
    "oom_kill",
];
/// What is kept of `/sys/kernel/mm/ksm`.
const KSM: [&str; 4] = [
    "pages_shared",
    "pages_sharing",
    "pages_unshared",
    "full_scans",
];

/// Which group a process, or a thread of it, is in: the one that has CPU limits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupPath {
    path: String,
    /// The folder of the controller, of the first version: `cpu,cpuacct`.
    controller: Option<String>,
}

impl GroupPath {
    /// Returns the path in `/proc/PID/cgroup` (`proc_cgroup_show` of `kernel/cgroup/cgroup.c`): a hierarchy's number,
    /// its controllers, and the path, with colons between.
    fn of(text: &str) -> Option<GroupPath> {
        let lines = text.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            (path.starts_with('/') && path.len() <= MAX_PATH && !path.contains(".."))
                .then_some((controllers, path))
        });
        let of_cpu = lines
            .clone()
            .find(|(controllers, _)| controllers.split(',').any(|one| one == "cpu"));
        let (controllers, path) = of_cpu.or_else(|| lines.clone().find(|one| one.0.is_empty()))?;
        Some(GroupPath {
            path: path.to_owned(),
            controller: Some(controllers.to_owned()).filter(|text| !text.is_empty()),
        })
    }

    /// Returns it and all above it but the root, which has no limits.
    fn and_above(&self) -> impl Iterator<Item = GroupPath> + '_ {
        let ends = self.path.match_indices('/').map(|(at, _)| at).skip(1);
        ends.chain([self.path.len()])
            .take(MAX_DEPTH)
            .map(|end| GroupPath {
                path: self.path[..end].to_owned(),
                controller: self.controller.clone(),
            })
    }

    fn folder(&self) -> String {
        match &self.controller {
            None => format!("{CGROUP}{}", self.path),
            Some(controller) => format!("{CGROUP}/{controller}{}", self.path),
        }
    }
}

/// Reads the groups of all VMs' processes and vCPUs into the facts.
pub(crate) fn read(tree: &mut HostTree, facts: &mut Facts) {
    let mut paths: BTreeSet<GroupPath> = BTreeSet::new();
    for vm in &mut facts.vms {
        let Some(pid) = vm.pid else {
            continue;
        };
        let of_vcpus = vm
            .vcpus
            .iter()
            .map(|vcpu| format!("/proc/{pid}/task/{}/cgroup", vcpu.tid));
        let files = [format!("/proc/{pid}/cgroup")].into_iter().chain(of_vcpus);
        let mut own: BTreeSet<GroupPath> = BTreeSet::new();
        for file in files {
            let text = tree.head(&file, MAX_TEXT);
            own.extend(
                text.as_deref()
                    .and_then(GroupPath::of)
                    .filter(|group| group.path != "/"),
            );
        }
        vm.cgroups = own.iter().map(|group| group.path.clone()).collect();
        paths.extend(own.iter().flat_map(GroupPath::and_above));
    }
    if paths.len() > MAX_GROUPS {
        tree.refuse(CGROUP, format!("more than {MAX_GROUPS} groups of VMs"));
    }
    let groups = paths.iter().take(MAX_GROUPS).map(|path| group(tree, path));
    let groups = groups.collect();
    if let Some(host) = &mut facts.host {
        host.cgroups = groups;
    }
}

/// Reads the counters again, of groups that are known.
pub(crate) fn read_again(tree: &mut HostTree, facts: &Facts) -> Host {
    let mut again = Facts::default();
    again.vms.clone_from(&facts.vms);
    again.host = Some(Host::default());
    read(tree, &mut again);
    let mut host = again.host.unwrap_or_default();
    host.counters = counters(tree);
    host
}

fn group(tree: &mut HostTree, at: &GroupPath) -> ControlGroup {
    let folder = at.folder();
    let mut group = ControlGroup {
        path: at.path.clone(),
        ..ControlGroup::default()
    };
    if at.controller.is_some() {
        first_version(tree, &folder, &mut group);
        return group;
    }
    for name in LIMITS {
        let text = tree.head(&format!("{folder}/{name}"), MAX_TEXT);
        let text = text
            .as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty());
        if let Some(text) = text {
            group
                .limits
                .insert(name.to_owned(), text.replace('\n', "; "));
        }
    }
    for (file, names) in COUNTERS {
        let text = tree
            .head(&format!("{folder}/{file}"), MAX_TEXT)
            .unwrap_or_default();
        named_numbers(&text, file, names, &mut group.counters);
    }
    for file in PRESSURE {
        let text = tree
            .head(&format!("{folder}/{file}"), MAX_TEXT)
            .unwrap_or_default();
        pressure(&text, file, &mut group.counters);
    }
    group
}

/// Reads a group of the first version, by the names of the second (`Documentation/scheduler/sched-bwc.rst`): its quota
/// is -1 without a limit, and its times are nanoseconds.
fn first_version(tree: &mut HostTree, folder: &str, group: &mut ControlGroup) {
    let quota: Option<i64> = tree.number(&format!("{folder}/cpu.cfs_quota_us"));
    let period: Option<u64> = tree.number(&format!("{folder}/cpu.cfs_period_us"));
    if let (Some(quota), Some(period)) = (quota, period) {
        let quota = u64::try_from(quota).map_or_else(|_| "max".to_owned(), |us| us.to_string());
        group
            .limits
            .insert("cpu.max".to_owned(), format!("{quota} {period}"));
    }
    let text = tree
        .head(&format!("{folder}/cpu.stat"), MAX_TEXT)
        .unwrap_or_default();
    let names = ["nr_periods", "nr_throttled", "throttled_time"];
    named_numbers(&text, "cpu.stat", &names, &mut group.counters);
    if let Some(ns) = group.counters.remove("cpu.stat.throttled_time") {
        group
            .counters
            .insert("cpu.stat.throttled_usec".to_owned(), ns / 1000);
    }
}

/// Returns what the kernel counts of the host's memory and pressure.
pub(crate) fn counters(tree: &mut HostTree) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let text = tree.head("/proc/vmstat", 4 * MAX_TEXT).unwrap_or_default();
    named_numbers(&text, "vmstat", &VMSTAT, &mut all);
    for name in KSM {
        if let Some(value) = tree.number(&format!("/sys/kernel/mm/ksm/{name}")) {
            all.insert(format!("ksm.{name}"), value);
        }
    }
    for file in PRESSURE {
        let name = file.trim_end_matches(".pressure");
        // A kernel with psi=0 has the file and answers that it is not supported.
        let path = format!("/proc/pressure/{name}");
        if tree.is_readable(&path) {
            let text = tree.head(&path, MAX_TEXT).unwrap_or_default();
            pressure(&text, file, &mut all);
        }
    }
    all
}

/// Takes the numbers behind some names, each in a line of its own.
fn named_numbers(text: &str, file: &str, names: &[&str], out: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        if let Some((name, value)) = line.split_once(' ')
            && names.contains(&name)
            && let Ok(value) = value.trim().parse()
        {
            out.insert(format!("{file}.{name}"), value);
        }
    }
}

/// Takes the totals of pressure, microseconds: `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`.
fn pressure(text: &str, file: &str, out: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(kind @ ("some" | "full")) = words.next() else {
            continue;
        };
        let total = words.find_map(|word| word.strip_prefix("total=")?.parse().ok());
        if let Some(total) = total {
            out.insert(format!("{file}.{kind}"), total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_with_cpu_limits_is_taken() {
        let of = |text: &str| GroupPath::of(text).map(|group| group.folder());
        let unified = of("0::/machine.slice/vm.scope/libvirt/vcpu0\n");
        assert_eq!(
            unified.as_deref(),
            Some("/sys/fs/cgroup/machine.slice/vm.scope/libvirt/vcpu0")
        );
        let first = "12:memory:/a\n4:cpu,cpuacct:/machine/vm\n1:name=systemd:/b\n0::/c\n";
        assert_eq!(
            of(first).as_deref(),
            Some("/sys/fs/cgroup/cpu,cpuacct/machine/vm")
        );
        // Paths that lead elsewhere, and what is none.
        assert_eq!(of("0::/../../etc"), None);
        assert_eq!(of("0:x"), None);
        let group = GroupPath::of("0::/a/b/c").expect("a group");
        let above: Vec<String> = group.and_above().map(|group| group.path).collect();
        assert_eq!(above, ["/a", "/a/b", "/a/b/c"]);
    }

    #[test]
    fn counters_are_taken_by_their_names() {
        let mut out = BTreeMap::new();
        named_numbers(
            "nr_periods 7\nnr_bursts 9\nnr_throttled x\n",
            "cpu.stat",
            COUNTERS[0].1,
            &mut out,
        );
        pressure(
            "some avg10=1.50 total=77\nfull avg10=0.00 total=5\nnone total=1\n",
            "io.pressure",
            &mut out,
        );
        let all: Vec<(&str, u64)> = out
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        assert_eq!(
            all,
            [
                ("cpu.stat.nr_periods", 7),
                ("io.pressure.full", 5),
                ("io.pressure.some", 77)
            ]
        );
    }
}
