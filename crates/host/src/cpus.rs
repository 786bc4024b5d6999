//! CPUs: where they are, how fast they go, how they idle.
//!
//! `Documentation/ABI/stable/sysfs-devices-system-cpu`, `…/sysfs-devices-node` and
//! `Documentation/admin-guide/pm/cpufreq.rst`.

use std::collections::BTreeMap;

use cpuset::CpuSet;
use facts::{CpuIdle, FreqPolicy, Host, HostCpu, HostNode};

use crate::tree::HostTree;

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// Reads all of it.
pub(crate) fn read(tree: &mut HostTree, host: &mut Host) {
    tree.expect(&format!("{CPU}/online"));
    host.online = tree.cpus(&format!("{CPU}/online"));
    host.nodes = nodes(tree);
    host.cpus = topology(tree, host.online.as_ref(), &host.nodes);
    host.cpufreq = cpufreq(tree);
    host.cpuidle = cpuidle(tree);
    host.smt = tree.line(&format!("{CPU}/smt/control"));
}

fn nodes(tree: &mut HostTree) -> Vec<HostNode> {
    let mut nodes = Vec::new();
    for node in tree.numbered::<u32>(NODE, "node") {
        let folder = format!("{NODE}/node{node}");
        let meminfo = tree.text(&format!("{folder}/meminfo"));
        // Node 0 MemTotal:       131891556 kB
        let total = meminfo.as_deref().and_then(|text| {
            let (_, rest) = text.split_once("MemTotal:")?;
            let kib: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
            kib.checked_mul(1024)
        });
        nodes.push(HostNode {
            node,
            cpus: tree.cpus(&format!("{folder}/cpulist")).unwrap_or_default(),
            memory_bytes: total,
            distances: tree
                .line(&format!("{folder}/distance"))
                .map(|line| numbers(&line))
                .unwrap_or_default(),
        });
    }
    nodes
}

/// `10 21`: to each node that is online, in their order (`node_read_distance`, `drivers/base/node.c`).
fn numbers(line: &str) -> Vec<u32> {
    let numbers = line.split_ascii_whitespace().map(str::parse);
    numbers.collect::<Result<_, _>>().unwrap_or_default()
}

fn topology(tree: &mut HostTree, online: Option<&CpuSet>, nodes: &[HostNode]) -> Vec<HostCpu> {
    let mut cpus = Vec::new();
    for cpu in tree.numbered::<u32>(CPU, "cpu") {
        // Those that are offline have no place.
        if cpu > cpuset::MAX_CPU || online.is_some_and(|online| !online.contains(cpu)) {
            continue;
        }
        let folder = format!("{CPU}/cpu{cpu}/topology");
        // -1 is for what the firmware does not say.
        let mut number = |name: &str| {
            let number: i64 = tree.number(&format!("{folder}/{name}"))?;
            u32::try_from(number).ok()
        };
        let (package, die, core) = (
            number("physical_package_id"),
            number("die_id"),
            number("core_id"),
        );
        // core_cpus_list is the newer name.
        let siblings = tree
            .cpus(&format!("{folder}/core_cpus_list"))
            .or_else(|| tree.cpus(&format!("{folder}/thread_siblings_list")));
        let node = nodes.iter().find(|node| node.cpus.contains(cpu));
        cpus.push(HostCpu {
            cpu,
            package,
            die,
            core,
            node: node.map(|node| node.node),
            siblings: siblings.unwrap_or_default(),
        });
    }
    cpus
}

pub(crate) fn cpufreq(tree: &mut HostTree) -> Vec<FreqPolicy> {
    let numbers = tree.numbered::<u32>(&format!("{CPU}/cpufreq"), "policy");
    let mut folders: Vec<String> = numbers
        .iter()
        .map(|number| format!("{CPU}/cpufreq/policy{number}"))
        .collect();
    // Kernels before 4.3 have them with the CPUs.
    if folders.is_empty() {
        let cpus = tree.numbered::<u32>(CPU, "cpu");
        folders = cpus
            .iter()
            .map(|n| format!("{CPU}/cpu{n}/cpufreq"))
            .collect();
        folders.retain(|folder| tree.is_folder(folder));
    }
    let mut policies: BTreeMap<String, FreqPolicy> = BTreeMap::new();
    for folder in folders {
        let Some(line) = tree.line(&format!("{folder}/affected_cpus")) else {
            continue;
        };
        let list: Vec<&str> = line.split_whitespace().collect();
        let Ok(cpus) = list.join(",").parse::<CpuSet>() else {
            tree.refuse(&format!("{folder}/affected_cpus"), "expected CPUs");
            continue;
        };
        // All CPUs of the policy are offline.
        if cpus.is_empty() {
            continue;
        }
        let policy = FreqPolicy {
            cpus,
            driver: tree.line(&format!("{folder}/scaling_driver")),
            governor: tree.line(&format!("{folder}/scaling_governor")),
            governors: tree.words(&format!("{folder}/scaling_available_governors")),
            min_khz: tree.number(&format!("{folder}/scaling_min_freq")),
            max_khz: tree.number(&format!("{folder}/scaling_max_freq")),
            // Some drivers answer <unknown>.
            cur_khz: cur_khz(tree, &folder),
            end_khz: None,
        };
        policies.entry(policy.cpus.to_string()).or_insert(policy);
    }
    let mut policies: Vec<FreqPolicy> = policies.into_values().collect();
    policies.sort_by_key(|policy| policy.cpus.iter().next());
    policies
}

/// Returns the frequency that the CPUs have; drivers that do not know it say so in words (`show_cpuinfo_cur_freq` of
/// `drivers/cpufreq/cpufreq.c`).
fn cur_khz(tree: &mut HostTree, folder: &str) -> Option<u64> {
    let path = format!("{folder}/scaling_cur_freq");
    tree.line(&path)?.parse().ok()
}

fn cpuidle(tree: &mut HostTree) -> Option<CpuIdle> {
    let driver = tree.line(&format!("{CPU}/cpuidle/current_driver"));
    let governor = tree
        .line(&format!("{CPU}/cpuidle/current_governor"))
        .or_else(|| tree.line(&format!("{CPU}/cpuidle/current_governor_ro")));
    (driver.is_some() || governor.is_some()).then_some(CpuIdle { driver, governor })
}
