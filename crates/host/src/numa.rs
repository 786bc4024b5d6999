//! On which NUMA nodes the memory of VMs lies (`/proc/PID/numa_maps`, `Documentation/filesystems/proc.rst`).
//!
//! The kernel counts it page by page for who reads it, so it is not read where the host has memory on one node alone.

use std::collections::BTreeMap;

use facts::Facts;

use crate::tree::HostTree;

/// A VMM has some hundred mappings, each a line.
const MAX_MAPS: u64 = 4 << 20;

/// Reads it for all VMs.
pub(crate) fn read(tree: &mut HostTree, facts: &mut Facts) {
    let nodes = facts.host.iter().flat_map(|host| &host.nodes);
    if nodes.filter(|node| node.memory_bytes != Some(0)).count() < 2 {
        return;
    }
    for vm in &mut facts.vms {
        let Some(pid) = vm.pid else {
            continue;
        };
        if let Some(text) = tree.text_within(&format!("/proc/{pid}/numa_maps"), MAX_MAPS) {
            (vm.node_bytes, vm.memory_policy) = sums(&text);
        }
    }
}

/// Returns the bytes on each node, and the policy of the mapping that has most:
/// `7f1c00000000 interleave:0-1 anon=1024 dirty=1024 N0=512 N1=512 kernelpagesize_kB=4`.
fn sums(text: &str) -> (BTreeMap<u32, u64>, Option<String>) {
    let mut all: BTreeMap<u32, u64> = BTreeMap::new();
    let mut largest: (u64, Option<&str>) = (0, None);
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(1);
        let policy = words.next();
        let mut pages = Vec::new();
        let mut page_kib = 4;
        for word in words {
            if let Some(kib) = word.strip_prefix("kernelpagesize_kB=") {
                page_kib = kib.parse().unwrap_or(page_kib);
            } else if let Some((node, count)) =
                word.strip_prefix('N').and_then(|word| word.split_once('='))
                && let (Ok(node), Ok(count)) = (node.parse::<u32>(), count.parse::<u64>())
            {
                pages.push((node, count));
            }
        }
        let bytes = |count: u64| count.saturating_mul(page_kib).saturating_mul(1024);
        let mapped = pages
            .iter()
            .map(|(_, count)| bytes(*count))
            .fold(0, u64::saturating_add);
        if mapped > largest.0 {
            largest = (mapped, policy);
        }
        for (node, count) in pages {
            let sum = all.entry(node).or_default();
            *sum = sum.saturating_add(bytes(count));
        }
    }
    (all, largest.1.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_summed_by_their_size_and_the_largest_mapping_has_the_policy() {
        let (all, policy) = sums(
            "55d0c0000000 default file=/usr/bin/qemu-system-x86_64 mapped=900 N0=900 kernelpagesize_kB=4\n\
             7f1c00000000 bind:1 file=/dev/hugepages/x huge anon=8 N0=1 N1=7 kernelpagesize_kB=2048\n\
             7f1d00000000 default anon=x N1=x Nx=1\n\n",
        );
        assert_eq!(
            all,
            BTreeMap::from([(0, (900 << 12) + (1 << 21)), (1, 7 << 21)])
        );
        assert_eq!(policy.as_deref(), Some("bind:1"));
        assert_eq!(sums(""), (BTreeMap::new(), None));
    }
}
