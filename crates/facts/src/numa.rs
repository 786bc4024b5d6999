//! NUMA nodes and memory by node, as `numactl -H` and `numastat -p` print them.
//!
//! Both are of numactl (`numactl.c`, `hardware`; `numastat.c`, `show_process_info`), whose "MB" are 2^20 bytes.

use std::collections::BTreeMap;

use forms::InputForm;

use crate::keep::id;
use crate::{Host, HostNode, ReportedVm};

pub(crate) const FORM: InputForm = InputForm {
    printed_by: "numactl -H, numastat -p",
    recognised_by: "lines `node 0 cpus:`, `node distances:`; `Per-node process memory usage`",
    yields: "NUMA nodes with their CPUs, memory and distances; on which nodes a process has its memory",
    fixtures: &["tests/texts/numactl.txt", "tests/texts/numastat.txt"],
};

/// Most nodes: `MAX_NUMNODES` of the largest configurations is 1024.
pub(crate) const MAX_NODES: usize = 1 << 12;
/// Most processes of one table.
const MAX_PROCESSES: usize = 1 << 12;

/// What stands in such texts, line by line.
#[derive(Debug, Default)]
pub(crate) struct NumaText {
    nodes: BTreeMap<u32, HostNode>,
    /// Processes' memory by node, bytes.
    processes: BTreeMap<i32, BTreeMap<u32, u64>>,
    /// The process of the table, and its columns' nodes.
    process: Option<i32>,
    columns: Vec<u32>,
    /// Whether a column of sums is the last one.
    has_total: bool,
    /// Lines of distances follow.
    in_distances: bool,
}

impl NumaText {
    /// Takes a line; returns whether it is one of these texts.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        let line = line.trim();
        self.node(line) || self.table(line)
    }

    /// Returns the host's nodes, if there are any, and the processes with their memory.
    pub(crate) fn finish(self) -> (Option<Host>, Vec<ReportedVm>) {
        let nodes: Vec<HostNode> = self.nodes.into_values().collect();
        let host = (!nodes.is_empty()).then(|| Host {
            nodes,
            ..Host::default()
        });
        let vms = self
            .processes
            .into_iter()
            .map(|(pid, node_bytes)| ReportedVm {
                pid: Some(pid),
                node_bytes,
                ..ReportedVm::default()
            });
        (host, vms.collect())
    }

    /// `node 0 cpus: 0 1 2 3`, `node 0 size: 64215 MB`, and what stands around them.
    fn node(&mut self, line: &str) -> bool {
        if line.starts_with("available: ") && line.contains(" nodes (") {
            return true;
        }
        if line == "node distances:" {
            self.in_distances = true;
            return true;
        }
        if self.in_distances {
            if self.distances(line) {
                return true;
            }
            self.in_distances = false;
        }
        let Some((node, rest)) = line
            .strip_prefix("node ")
            .and_then(|rest| rest.split_once(' '))
        else {
            return false;
        };
        let Ok(node) = node.parse::<u32>() else {
            return false;
        };
        let Some((what, value)) = rest.split_once(':') else {
            return false;
        };
        if !matches!(what, "cpus" | "size" | "free") {
            return false;
        }
        if self.nodes.len() >= MAX_NODES && !self.nodes.contains_key(&node) {
            return true;
        }
        let known = self.nodes.entry(node).or_insert_with(|| HostNode {
            node,
            ..HostNode::default()
        });
        match what {
            "cpus" => {
                let cpus = value
                    .split_ascii_whitespace()
                    .filter_map(|cpu| cpu.parse().ok());
                cpus.for_each(|cpu| known.cpus.insert(cpu));
            }
            "size" => {
                let mib = value.trim().strip_suffix(" MB");
                let mib: Option<u64> = mib.and_then(|mib| mib.parse().ok());
                known.memory_bytes = mib.and_then(|mib| mib.checked_mul(1 << 20));
            }
            _ => {}
        }
        true
    }

    /// A row of the distances, `  0:  10  21`, or the heading above them: its columns are the nodes in order.
    fn distances(&mut self, line: &str) -> bool {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default().trim_end_matches(':');
        let numbers: Option<Vec<u32>> = words.map(|word| word.parse().ok()).collect();
        let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) else {
            return false;
        };
        let node = first.parse::<u32>();
        if let Ok(node) = &node
            && let Some(known) = self.nodes.get_mut(node)
        {
            known.distances = numbers.into_iter().take(MAX_NODES).collect();
        }
        first == "node" || node.is_ok()
    }

    /// The table of a process, or a row for each of several.
    fn table(&mut self, line: &str) -> bool {
        if let Some(rest) = line.strip_prefix("Per-node process memory usage (in MBs)") {
            let pid = rest.strip_prefix(" for PID ");
            let pid = pid.and_then(|rest| rest.split(' ').next()?.parse().ok());
            self.process = pid.and_then(id);
            self.columns.clear();
            return true;
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let pairs = words.strip_prefix(&["PID"]).unwrap_or(&words);
        if pairs.first() == Some(&"Node") {
            let nodes = pairs.chunks(2).take(MAX_NODES);
            let nodes = nodes.map_while(|pair| match pair {
                ["Node", number] => number.parse().ok(),
                _ => None,
            });
            self.columns = nodes.collect();
            self.has_total = pairs.last() == Some(&"Total");
            return !self.columns.is_empty();
        }
        if self.columns.is_empty() {
            return false;
        }
        if !words.is_empty() && words.iter().all(|word| word.bytes().all(|b| b == b'-')) {
            return true;
        }
        // A name in parentheses may have blanks in it, or be cut off: values are the last words.
        let count = self.columns.len() + usize::from(self.has_total);
        let values = words
            .len()
            .checked_sub(count)
            .and_then(|at| words.get(at..));
        let values = values.into_iter().flatten().map(|word| word.parse().ok());
        let values: Vec<f64> = values.collect::<Option<_>>().unwrap_or_default();
        let pid = match self.process {
            Some(pid) => Some(pid).filter(|_| words.first() == Some(&"Total")),
            None => words.first().and_then(|pid| pid.parse().ok()).and_then(id),
        };
        let is_row = !values.is_empty();
        let Some(pid) = pid.filter(|_| is_row) else {
            return is_row;
        };
        if self.processes.len() < MAX_PROCESSES || self.processes.contains_key(&pid) {
            let memory = self.processes.entry(pid).or_default();
            for (node, mib) in self.columns.iter().zip(values) {
                if mib.is_finite() && (0.0..1e12).contains(&mib) && memory.len() < MAX_NODES {
                    memory.insert(*node, bytes(mib));
                }
            }
        }
        true
    }
}

/// Returns the bytes of a number of MiB with two decimals, which is in range.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn bytes(mib: f64) -> u64 {
    (mib * f64::from(1 << 20)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_numactl_and_numastat_print_is_read() {
        let mut text = NumaText::default();
        for line in [
            "available: 2 nodes (0-1)",
            "node 0 cpus: 0 1 2 3",
            "node 0 size: 64215 MB",
            "node 0 free: 12 MB",
            "node 1 cpus: 4 5 6 7",
            "node 1 size: 64491 MB",
            "node distances:",
            "node   0   1 ",
            "  0:  10  21 ",
            "  1:  21  10 ",
            "Per-node process memory usage (in MBs) for PID 1689 (qemu-system-x86)",
            "                           Node 0          Node 1           Total",
            "                  --------------- --------------- ---------------",
            "Heap                         0.00           12.31           12.31",
            "Private                    412.50         7700.00         8112.50",
            "----------------  --------------- --------------- ---------------",
            "Total                      412.50         7712.31         8124.81",
            "Per-node process memory usage (in MBs)",
            "PID                       Node 0          Node 1           Total",
            "-----------------  --------------- --------------- ---------------",
            "1690 (CPU 0 (x))            1.00            2.00            3.00",
            "24463 (qemu_hotr      6      6    12",
            "---------------  ------ ------ -----",
            "Total                64    553   616",
        ] {
            assert!(text.line(line), "{line}");
        }
        for line in [
            "",
            "node 0 is full",
            "PID TID COMMAND",
            "  1690  1691 CPU 0/KVM",
        ] {
            assert!(!NumaText::default().line(line), "{line}");
        }
        let (host, vms) = text.finish();
        let nodes = host.expect("nodes").nodes;
        assert_eq!(
            (nodes[1].cpus.to_string(), nodes[1].memory_bytes),
            ("4-7".to_owned(), Some(64491 << 20))
        );
        assert_eq!(nodes[1].distances, [21, 10]);
        let memory: Vec<_> = vms
            .iter()
            .map(|vm| (vm.pid, vm.node_bytes[&0], vm.node_bytes[&1] >> 20))
            .collect();
        assert_eq!(
            memory,
            [
                (Some(1689), 825 << 19, 7712),
                (Some(1690), 1 << 20, 2),
                (Some(24463), 6 << 20, 6)
            ]
        );
    }
}
