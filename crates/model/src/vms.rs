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
    /// Slot of that thread in [`Threads`].
    pub thread: u32,
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
    let all = threads.iter().zip(0u32..);
    let mut vcpus: Vec<Member<'_>> = all
        .filter(|((_, thread), _)| thread.is_vcpu)
        .map(|((tid, thread), slot)| Member { tid, slot, thread })
        .collect();
    vcpus.sort_by_key(|member| member.tid);
    let mut by_pid: BTreeMap<i32, Vec<Member<'_>>> = BTreeMap::new();
    let mut without: Vec<Member<'_>> = Vec::new();
    for member in vcpus {
        match member.thread.pid {
            Some(pid) => by_pid.entry(pid).or_default().push(member),
            None => without.push(member),
        }
    }
    let mut vms: Vec<Vm> = by_pid
        .into_iter()
        .map(|(pid, members)| vm(threads, Some(pid), &members))
        .collect();
    let named = pids_in_names(threads);
    let groups = split(&without, &named);
    let owners: Vec<Option<i32>> = groups.iter().map(|group| owner(&named, group)).collect();
    for (group, owner) in groups.iter().zip(&owners) {
        // Two groups cannot be one process's: then nobody knows whose either is.
        let claims = owners.iter().filter(|other| *other == owner).count();
        vms.push(vm(threads, owner.filter(|_| claims == 1), group));
    }
    vms
}

/// A vCPU thread.
#[derive(Clone, Copy)]
struct Member<'t> {
    tid: i32,
    slot: u32,
    thread: &'t Thread,
}

/// Splits vCPU threads, sorted by id, where the next VM's begin.
fn split<'t>(threads: &[Member<'t>], named: &[i32]) -> Vec<Vec<Member<'t>>> {
    let mut groups: Vec<Vec<Member<'_>>> = Vec::new();
    for &member in threads {
        let goes_on = groups
            .last()
            .and_then(|group| group.last())
            .is_some_and(|last| {
                let numbers = last.thread.vcpu.zip(member.thread.vcpu);
                let number_falls = numbers.is_some_and(|(a, b)| b <= a);
                // A process id between two vCPU threads belongs to a VMM that started between them.
                let between = last.tid..member.tid;
                let other_between = named
                    .iter()
                    .any(|pid| *pid != last.tid && between.contains(pid));
                !number_falls && !other_between
            });
        match groups.last_mut() {
            Some(group) if goes_on => group.push(member),
            _ => groups.push(vec![member]),
        }
    }
    groups
}

fn vm(threads: &Threads, pid: Option<i32>, members: &[Member<'_>]) -> Vm {
    let mut vcpus: Vec<Vcpu> = Vec::new();
    for (position, member) in members.iter().enumerate() {
        vcpus.push(Vcpu {
            id: member.thread.vcpu.unwrap_or(position as u32),
            tid: member.tid,
            thread: member.slot,
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
fn owner(named: &[i32], group: &[Member<'_>]) -> Option<i32> {
    let first = group.first()?.tid;
    let below = named.partition_point(|pid| *pid < first);
    named.get(below.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use event::{Body, Decoder, Event, EventType, Kind, NONE};

    use super::*;

    /// Threads that entered a guest, as ftrace tells of them: no process ids.
    fn threads(names: &[(i32, &str)], vcpus: &[i32]) -> Threads {
        let mut threads = Threads::default();
        threads.saved_names(names.iter().copied());
        let ty = EventType {
            index: 0,
            system: "kvm",
            name: "kvm_entry",
            label: "kvm_entry",
            kind: Kind::KvmEntry,
            format: None,
            decoder: Decoder::default(),
            recorded: true,
        };
        for &tid in vcpus {
            let event = Event {
                time: 1,
                cpu: 0,
                tid,
                pid: NONE,
                ty: &ty,
                body: Body::None,
                sample: None,
                buffer: 0,
                comm: None,
            };
            threads.vcpu_event(&event, None);
        }
        threads
    }

    #[test]
    fn a_kernel_threads_name_tells_the_process_of_the_vcpus_behind_it() {
        let names = [
            (100, "qemu"),
            (105, "kvm-pit/100"),
            (103, "CPU 0/KVM"),
            (104, "CPU 1/KVM"),
        ];
        let vms = find_vms(&threads(&names, &[103, 104]));
        assert_eq!(vms.len(), 1);
        assert_eq!(
            (vms[0].pid, vms[0].name.as_deref()),
            (Some(100), Some("qemu"))
        );
        let ids: Vec<u32> = vms[0].vcpus.iter().map(|v| v.id).collect();
        assert_eq!(ids, [0, 1]);
    }

    #[test]
    fn vcpu_numbers_that_fall_begin_another_vm_and_one_process_is_not_given_to_two() {
        let names = [
            (856, "qemu"),
            (870, "vhost-856"),
            (866, "CPU 0/KVM"),
            (867, "CPU 1/KVM"),
            (871, "CPU 0/KVM"),
            (872, "CPU 1/KVM"),
        ];
        let vms = find_vms(&threads(&names, &[866, 867, 871, 872]));
        assert_eq!(vms.len(), 2);
        assert!(vms.iter().all(|vm| vm.pid.is_none() && vm.vcpus.len() == 2));
    }
}
