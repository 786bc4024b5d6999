//! VMs, found from their vCPU threads.

use std::collections::BTreeMap;

use crate::{Thread, Threads};

/// One vCPU of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vcpu {
    /// Its number: recorded, told by the thread's name, or counted by thread id where neither is there.
    pub id: u32,
    /// Its thread.
    pub tid: i32,
}

/// One VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vm {
    /// Process of the virtual machine monitor, if the recording tells.
    pub pid: Option<i32>,
    /// Name of that process.
    pub name: Option<String>,
    /// Its vCPUs by number.
    pub vcpus: Vec<Vcpu>,
}

impl Vm {
    /// Returns whether the VM is meant by a name: that of its process, or the process id.
    pub fn is_called(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
            || self.pid.is_some_and(|pid| name.parse() == Ok(pid))
            || self.vcpus.iter().any(|vcpu| name.parse() == Ok(vcpu.tid))
    }
}

/// Groups vCPU threads into VMs.
///
/// With process ids (perf.data) that is certain. ftrace records thread ids only. There, a VM's threads are
/// taken to be made one after the other, as every VMM does: in the order of thread ids, a vCPU number that
/// is not higher than the one before begins the next VM. Kernel threads that carry the VMM's process id in
/// their name (`kvm-pit/PID`, `kvm-nx-lpage-recovery-PID`, `vhost-PID`) tell that id.
pub fn find_vms(threads: &Threads) -> Vec<Vm> {
    let mut vcpus: Vec<(i32, &Thread)> = threads.iter().filter(|(_, t)| t.is_vcpu).collect();
    vcpus.sort_by_key(|(tid, _)| *tid);
    let mut by_pid: BTreeMap<i32, Vec<(i32, &Thread)>> = BTreeMap::new();
    let mut without: Vec<(i32, &Thread)> = Vec::new();
    for (tid, thread) in vcpus {
        match thread.pid {
            Some(pid) => by_pid.entry(pid).or_default().push((tid, thread)),
            None => without.push((tid, thread)),
        }
    }
    let mut vms: Vec<Vm> = by_pid
        .into_iter()
        .map(|(pid, members)| vm(threads, Some(pid), &members))
        .collect();
    let named = pids_in_names(threads);
    let mut group: Vec<(i32, &Thread)> = Vec::new();
    for (tid, thread) in without {
        let starts_anew = group
            .last()
            .is_some_and(|(_, last)| match (last.vcpu, thread.vcpu) {
                (Some(before), Some(now)) => now <= before,
                _ => false,
            })
            || group.last().is_some_and(|(last, _)| {
                // A process id between two vCPU threads belongs to a VMM that started between them.
                let above = named.partition_point(|pid| pid <= last);
                named.get(above).is_some_and(|pid| *pid < tid)
            });
        if starts_anew {
            vms.push(vm(threads, owner(&named, &group), &group));
            group.clear();
        }
        group.push((tid, thread));
    }
    if !group.is_empty() {
        vms.push(vm(threads, owner(&named, &group), &group));
    }
    vms
}

fn vm(threads: &Threads, pid: Option<i32>, members: &[(i32, &Thread)]) -> Vm {
    let mut vcpus: Vec<Vcpu> = Vec::new();
    for (position, (tid, thread)) in members.iter().enumerate() {
        vcpus.push(Vcpu {
            id: thread.vcpu.unwrap_or(position as u32),
            tid: *tid,
        });
    }
    vcpus.sort_by_key(|v| (v.id, v.tid));
    let name = pid
        .and_then(|pid| threads.get(pid)?.comm.as_deref())
        .map(str::to_owned);
    Vm { pid, name, vcpus }
}

/// Process ids of VMMs that kernel threads carry in their names, sorted.
fn pids_in_names(threads: &Threads) -> Vec<i32> {
    let mut pids: Vec<i32> = threads
        .iter()
        .filter_map(|(_, thread)| {
            let comm = thread.comm.as_deref()?;
            let rest = comm
                .strip_prefix("kvm-pit/")
                .or_else(|| comm.strip_prefix("kvm-nx-lpage-recovery-"))
                .or_else(|| comm.strip_prefix("vhost-"))?;
            rest.parse().ok()
        })
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// The process that made a group of threads: the highest id below them.
fn owner(named: &[i32], group: &[(i32, &Thread)]) -> Option<i32> {
    let first = group.first()?.0;
    let below = named.partition_point(|pid| *pid < first);
    named.get(below.checked_sub(1)?).copied()
}
