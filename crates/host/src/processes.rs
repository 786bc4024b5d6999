//! VMMs, their threads, and other threads that matter to VMs (`proc(5)`, `Documentation/filesystems/proc.rst`).

use std::collections::BTreeMap;

use cpuset::CpuSet;
use facts::{Facts, Policy, ReportedThread, ReportedVcpu, ReportedVm, vm_of_args};
use model::{NamedRole, vcpu_from_comm};

use crate::tree::{HostTree, cpu_list};

/// Most threads that are kept; a large host's VMMs have some ten thousand.
const MAX_THREADS: usize = 1 << 16;
/// Most VMMs that are kept.
const MAX_VMS: usize = 1 << 12;
/// The text of `/proc/PID/status` has some 1,500 bytes.
const MAX_STATUS: u64 = 16 << 10;

/// Reads all processes. Returns how many values of command lines were masked.
///
/// Kept are the VMMs' threads; the kernel's that work for VMs or devices (`vhost-PID`, `kvm-…`, `irq/…`); and those
/// of other processes that may not run on all CPUs: somebody pinned them, as a poll-mode driver does.
pub(crate) fn read(tree: &mut HostTree, facts: &mut Facts, online: Option<&CpuSet>) -> u64 {
    tree.expect("/proc");
    let mut masked = 0;
    let mut found: Vec<VmmProcess> = Vec::new();
    let mut kernels = Vec::new();
    for pid in ids(tree, "/proc") {
        let Some(process) = Process::read(tree, pid) else {
            continue;
        };
        let vmm = vm_of_args(&process.args);
        let is_vmm = vmm.is_some();
        let threads = threads(tree, pid, |thread| {
            let pinned = |online: &CpuSet| {
                let affinity = thread.affinity.as_ref();
                affinity.is_some_and(|set| set.len() < online.len())
            };
            if is_vmm {
                true
            } else if process.is_kernels() {
                let comm = thread.comm.as_deref().unwrap_or_default();
                let role = NamedRole::from(comm);
                matches!(
                    role,
                    NamedRole::Vhost(_) | NamedRole::Kvm(_) | NamedRole::Irq
                )
            } else {
                online.is_some_and(pinned)
            }
        });
        if process.is_kernels() {
            kernels.extend(threads.keys().copied());
        }
        if let Some((vm, count)) = vmm {
            masked += count;
            found.push(VmmProcess {
                parent: process.parent,
                threads: threads.keys().copied().collect(),
                vm: ReportedVm {
                    pid: Some(pid),
                    ..vm
                },
            });
        }
        for (tid, thread) in threads {
            if facts.threads.len() < MAX_THREADS {
                facts.threads.insert(tid, thread);
            } else {
                tree.refuse(
                    "/proc",
                    format!("more than {MAX_THREADS} threads that matter"),
                );
            }
        }
    }
    vms(tree, facts, found, &kernels);
    masked
}

/// A process of a VMM.
struct VmmProcess {
    vm: ReportedVm,
    parent: Option<i32>,
    threads: Vec<i32>,
}

/// Takes the VMMs. What a VMM forked off and did not start anew has its command line too, and no VM of its own.
fn vms(tree: &mut HostTree, facts: &mut Facts, found: Vec<VmmProcess>, kernels: &[i32]) {
    let lines: BTreeMap<i32, Vec<String>> = found
        .iter()
        .filter_map(|vmm| Some((vmm.vm.pid?, vmm.vm.args.clone())))
        .collect();
    let comm = |tid: &i32| facts.threads.get(tid)?.comm.as_deref();
    for VmmProcess {
        mut vm,
        parent,
        threads,
    } in found
    {
        let of_parent = parent.and_then(|parent| lines.get(&parent));
        let mut vcpus: Vec<ReportedVcpu> = threads
            .iter()
            .filter_map(|tid| {
                let id = vcpu_from_comm(comm(tid)?)?;
                let thread = facts.threads.get(tid)?;
                Some(ReportedVcpu {
                    id,
                    tid: *tid,
                    affinity: thread.affinity.clone(),
                    policy: thread.policy.clone(),
                })
            })
            .collect();
        if vcpus.is_empty() && of_parent == Some(&vm.args) {
            continue;
        }
        if facts.vms.len() >= MAX_VMS {
            tree.refuse("/proc", format!("more than {MAX_VMS} VMMs"));
            break;
        }
        if vcpus.is_empty() {
            let pid = vm.pid.unwrap_or_default();
            tree.refuse(
                &format!("/proc/{pid}/task"),
                "no thread is called as a vCPU's are: QEMU names them with -name debug-threads=on, or 'info cpus'",
            );
        }
        vcpus.sort_by_key(|vcpu| (vcpu.id, vcpu.tid));
        vm.vcpus = vcpus;
        // The kernel's threads carry the number of the thread that asked for them (vhost_dev_set_owner of
        // drivers/vhost/vhost.c); since Linux 6.4 they are threads of the process itself.
        let of_kernel = kernels.iter().filter(|tid| {
            let owner = comm(tid).and_then(|comm| match NamedRole::from(comm) {
                NamedRole::Vhost(pid) => pid,
                _ => None,
            });
            owner.is_some_and(|owner: i32| threads.binary_search(&owner).is_ok())
        });
        let own = threads
            .iter()
            .filter(|tid| comm(tid).is_some_and(|comm| NamedRole::from(comm).is_vhost()));
        vm.vhost = of_kernel.chain(own).copied().collect();
        facts.vms.push(vm);
    }
}

/// What is read of every process.
struct Process {
    args: Vec<String>,
    parent: Option<i32>,
    pid: i32,
}

impl Process {
    fn read(tree: &mut HostTree, pid: i32) -> Option<Process> {
        let status = tree.head(&format!("/proc/{pid}/status"), MAX_STATUS)?;
        let text = tree
            .text(&format!("/proc/{pid}/cmdline"))
            .unwrap_or_default();
        let text = text.strip_suffix('\0').unwrap_or(&text);
        let args = if text.is_empty() {
            Vec::new()
        } else {
            text.split('\0').map(str::to_owned).collect()
        };
        Some(Process {
            args,
            parent: field(&status, "PPid").and_then(|parent| parent.parse().ok()),
            pid,
        })
    }

    /// Whether it is the kernel's: `kthreadd` and its children.
    fn is_kernels(&self) -> bool {
        self.args.is_empty() && (self.pid == 2 || self.parent == Some(2))
    }
}

/// Returns the process or thread ids that a folder's names are; none is above `PID_MAX_LIMIT` of `linux/threads.h`.
fn ids(tree: &mut HostTree, folder: &str) -> Vec<i32> {
    let mut ids = tree.numbered::<i32>(folder, "");
    ids.retain(|id| (1..=4 << 20).contains(id));
    ids
}

/// Returns the threads of a process that are wanted.
fn threads(
    tree: &mut HostTree,
    pid: i32,
    is_wanted: impl Fn(&ReportedThread) -> bool,
) -> BTreeMap<i32, ReportedThread> {
    let mut threads = BTreeMap::new();
    let folder = format!("/proc/{pid}/task");
    for tid in ids(tree, &folder) {
        let path = format!("{folder}/{tid}/status");
        let Some(status) = tree.head(&path, MAX_STATUS) else {
            continue;
        };
        let list = field(&status, "Cpus_allowed_list");
        let affinity = list.and_then(cpu_list);
        if list.is_some() && affinity.is_none() {
            tree.refuse(&path, "expected a list of CPUs in Cpus_allowed_list");
        }
        let mut thread = ReportedThread {
            pid: Some(pid),
            comm: field(&status, "Name")
                .map(plain)
                .filter(|name| !name.is_empty()),
            affinity,
            policy: None,
        };
        if is_wanted(&thread) {
            let stat = tree.head(&format!("{folder}/{tid}/stat"), MAX_STATUS);
            thread.policy = stat.as_deref().and_then(policy);
            threads.insert(tid, thread);
        }
    }
    threads
}

/// Returns a field of `/proc/PID/status`.
fn field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    lines.find_map(|(key, value)| (key == name).then(|| value.trim()))
}

/// Returns a name without the marks that `status` puts before line breaks and backslashes (`proc_task_name` of
/// `fs/proc/array.c`).
fn plain(name: &str) -> String {
    name.replace("\\n", " ")
        .replace("\\\\", "\\")
        .trim()
        .to_owned()
}

/// Returns how a thread is scheduled, from `/proc/PID/task/TID/stat` (`do_task_stat` of `fs/proc/array.c`). Its name
/// may have blanks and brackets in it: fields are counted from its end.
fn policy(stat: &str) -> Option<Policy> {
    /// Fields 19, 40 and 41 of `proc(5)`; the first one behind the name is 3.
    const NICE: usize = 19 - 3;
    const RT_PRIORITY: usize = 40 - 3;
    const POLICY: usize = 41 - 3;
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number: u32 = fields.get(POLICY)?.parse().ok()?;
    let name = match number {
        0 => "SCHED_OTHER",
        1 => "SCHED_FIFO",
        2 => "SCHED_RR",
        3 => "SCHED_BATCH",
        5 => "SCHED_IDLE",
        6 => "SCHED_DEADLINE",
        7 => "SCHED_EXT",
        _ => "",
    };
    Some(Policy {
        name: if name.is_empty() {
            number.to_string()
        } else {
            name.to_owned()
        },
        rt_priority: fields.get(RT_PRIORITY)?.parse().ok()?,
        nice: fields.get(NICE)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_behind_whatever_the_thread_is_called() {
        let numbers = |nice: &str, priority: &str, policy: &str| {
            let mut fields = vec!["0"; 50];
            fields[0] = "S";
            (fields[16], fields[37], fields[38]) = (nice, priority, policy);
            fields.join(" ")
        };
        for (name, nice, priority, number, expected) in [
            ("CPU 0/KVM", "0", "0", "0", Some(("SCHED_OTHER", 0, 0))),
            ("a) R 1 (b", "0", "50", "1", Some(("SCHED_FIFO", 50, 0))),
            ("x", "-20", "0", "5", Some(("SCHED_IDLE", 0, -20))),
            ("x", "0", "0", "99", Some(("99", 0, 0))),
            ("x", "0", "0", "-1", None),
        ] {
            let found = policy(&format!("17 ({name}) {}", numbers(nice, priority, number)));
            let found = found.map(|p| (p.name, p.rt_priority, p.nice));
            let expected = expected.map(|(name, priority, nice)| (name.to_owned(), priority, nice));
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(policy("17 (x) S 1 2"), None);
        assert_eq!(policy(""), None);
    }
}
