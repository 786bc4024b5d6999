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
    /// Process of the virtual machine monitor, if the recording (or what is told beside it) tells.
    pub pid: Option<i32>,
    /// The guest's name where it is told beside the recording, else the name of the process.
    pub name: Option<String>,
    /// Name of the process.
    pub process: Option<String>,
    /// The guest's UUID where it is told beside the recording.
    pub uuid: Option<String>,
    /// Its vCPUs by number.
    pub vcpus: Vec<Vcpu>,
}

impl Vm {
    /// Returns whether the VM is meant by a name: the guest's, its UUID, that of its process, or the
    /// process id.
    pub fn is_called(&self, name: &str) -> bool {
        [&self.name, &self.process, &self.uuid]
            .iter()
            .any(|known| known.as_deref() == Some(name))
            || self.pid.is_some_and(|pid| name.parse() == Ok(pid))
            || self.vcpus.iter().any(|vcpu| name.parse() == Ok(vcpu.tid))
    }
}

/// Groups vCPU threads into VMs.
///
/// With process ids (perf.data) that is certain. ftrace records thread ids only. There, what is told beside
/// the recording says whose a thread is: by its process, or as one of a VM's vCPUs. The threads of a VM of
/// which nothing is told are taken to be made one after the other, as every VMM does: in the order of thread
/// ids, a vCPU number that is not higher than the one before begins the next VM. Kernel threads that carry
/// the VMM's process id in their name (`kvm-pit/PID`, `kvm-nx-lpage-recovery-PID`, `vhost-PID`) tell that id, if
/// that process is known too: ftrace also saves names of threads that are long gone.
pub fn find_vms(threads: &Threads) -> Vec<Vm> {
    let all = threads.iter().zip(0u32..);
    let mut vcpus: Vec<Member<'_>> = all
        .filter(|((_, thread), _)| thread.is_vcpu)
        .map(|((tid, thread), slot)| Member { tid, slot, thread })
        .collect();
    vcpus.sort_by_key(|member| member.tid);
    let mut by_pid: BTreeMap<i32, Vec<Member<'_>>> = BTreeMap::new();
    let mut by_told: BTreeMap<u32, Vec<Member<'_>>> = BTreeMap::new();
    let mut without: Vec<Member<'_>> = Vec::new();
    for member in vcpus {
        match (member.thread.pid, member.thread.told) {
            (Some(pid), _) => by_pid.entry(pid).or_default().push(member),
            (None, Some(told)) => by_told.entry(told.vm).or_default().push(member),
            (None, None) => without.push(member),
        }
    }
    let named = pids_in_names(threads);
    let mut groups: Vec<Vec<Member<'_>>> = by_told.into_values().collect();
    groups.extend(split(&without, &named));
    let owners: Vec<Option<i32>> = groups.iter().map(|group| owner(&named, group)).collect();
    let mut vms: Vec<Vm> = by_pid
        .iter()
        .map(|(pid, members)| vm(threads, Some(*pid), members))
        .collect();
    let mut claimed: BTreeMap<Option<i32>, usize> = BTreeMap::new();
    for owner in &owners {
        *claimed.entry(*owner).or_default() += 1;
    }
    for (group, owner) in groups.iter().zip(&owners) {
        // Two groups cannot be one process's: then nobody knows whose either is.
        let claims = claimed.get(owner).copied().unwrap_or(0);
        let known = |pid: i32| threads.get(pid).is_some_and(|thread| thread.comm.is_some());
        let fits = |pid: &i32| claims == 1 && !by_pid.contains_key(pid) && known(*pid);
        vms.push(vm(threads, owner.filter(fits), group));
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
                let next = named.partition_point(|pid| *pid <= last.tid);
                let other_between = named.get(next).is_some_and(|pid| *pid < member.tid);
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
    let process = pid
        .and_then(|pid| threads.get(pid)?.comm.as_deref())
        .map(str::to_owned);
    let by_vcpu = || {
        let mut told = members.iter().filter_map(|member| member.thread.told);
        told.find_map(|told| threads.told_vms.get(told.vm as usize))
    };
    let by_process = pid.and_then(|pid| threads.told_of_process(pid));
    let told = || by_process.into_iter().chain(by_vcpu());
    Vm {
        pid,
        name: told()
            .find_map(|vm| vm.name.clone())
            .or_else(|| process.clone()),
        uuid: told().find_map(|vm| vm.uuid.clone()),
        process,
        vcpus,
    }
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
    use crate::{Told, ToldThread, ToldVcpu, ToldVm};

    /// Threads that entered a guest, as ftrace tells of them: no process ids.
    fn threads(names: &[(i32, &str)], vcpus: &[i32]) -> Threads {
        let mut threads = Threads::default();
        threads.saved_names(names.iter().copied());
        let vcpus: Vec<_> = vcpus.iter().map(|tid| (*tid, None)).collect();
        enter(&mut threads, &vcpus);
        threads
    }

    /// Threads enter a guest, with the vCPU's number where it is recorded.
    fn enter(threads: &mut Threads, vcpus: &[(i32, Option<u32>)]) {
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
        for &(tid, vcpu) in vcpus {
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
            threads.vcpu_event(&event, vcpu);
        }
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
    fn a_name_that_outlived_its_process_tells_nothing() {
        let names = [(110, "vhost-100"), (903, "CPU 0/KVM"), (904, "CPU 1/KVM")];
        let vms = find_vms(&threads(&names, &[903, 904]));
        assert_eq!((vms.len(), vms[0].pid), (1, None));
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

    /// Process, name, and vCPUs with their threads.
    type Said<'t> = (Option<i32>, &'t str, &'t [(u32, i32)]);

    fn told(threads: &[(i32, i32)], vms: &[Said<'_>]) -> Told {
        let thread = |&(tid, pid): &(i32, i32)| ToldThread {
            tid,
            pid: Some(pid),
            comm: Some("told".into()),
        };
        let vm = |(pid, name, vcpus): &Said<'_>| ToldVm {
            pid: *pid,
            name: (!name.is_empty()).then(|| (*name).to_owned()),
            uuid: None,
            vcpus: vcpus
                .iter()
                .map(|&(id, tid)| ToldVcpu { id, tid })
                .collect(),
        };
        Told {
            threads: threads.iter().map(thread).collect(),
            vms: vms.iter().map(vm).collect(),
        }
    }

    /// The same of what is found.
    type Found = (Option<i32>, Option<String>, Vec<(u32, i32)>);

    fn found(told: &Told, vcpus: &[(i32, Option<u32>)]) -> Vec<Found> {
        let mut all = threads(&[], &[]);
        all.told(told);
        enter(&mut all, vcpus);
        let vcpus = |vm: &Vm| vm.vcpus.iter().map(|v| (v.id, v.tid)).collect();
        let vms = find_vms(&all);
        vms.iter()
            .map(|vm| (vm.pid, vm.name.clone(), vcpus(vm)))
            .collect()
    }

    #[test]
    fn what_is_told_parts_vms_whose_threads_interleave() {
        let none = [(10, None), (11, None), (12, None), (13, None)];
        let (a, b) = (Some("a".to_owned()), Some("b".to_owned()));
        // By the vCPUs alone.
        let by_vcpus = told(
            &[],
            &[
                (None, "a", &[(0, 10), (1, 12)]),
                (None, "b", &[(0, 11), (1, 13)]),
            ],
        );
        let parted = vec![
            (None, a.clone(), vec![(0, 10), (1, 12)]),
            (None, b.clone(), vec![(0, 11), (1, 13)]),
        ];
        assert_eq!(found(&by_vcpus, &none), parted);
        // By the threads' processes, and names by the processes'.
        let by_process = told(
            &[(10, 5), (12, 5), (11, 6), (13, 6)],
            &[(Some(5), "a", &[]), (Some(6), "b", &[])],
        );
        let parted = vec![
            (Some(5), a, vec![(0, 10), (1, 12)]),
            (Some(6), b, vec![(0, 11), (1, 13)]),
        ];
        assert_eq!(found(&by_process, &none), parted);
    }

    #[test]
    fn a_recording_knows_better_than_what_is_told() {
        // Its numbers; and who enters no guest is no vCPU.
        let wrong = told(&[], &[(Some(5), "a", &[(7, 10), (8, 11), (9, 99)])]);
        let vms = found(&wrong, &[(10, Some(0)), (11, None)]);
        assert_eq!(
            vms,
            [(Some(5), Some("a".to_owned()), vec![(0, 10), (8, 11)])]
        );
        // Its names.
        let mut all = threads(&[(10, "CPU 3/KVM"), (5, "qemu")], &[]);
        all.told(&told(&[(10, 5), (5, 5)], &[(None, "", &[(7, 10)])]));
        enter(&mut all, &[(10, None)]);
        let vms = find_vms(&all);
        assert_eq!(all.get(10).unwrap().comm.as_deref(), Some("CPU 3/KVM"));
        assert_eq!(
            (vms[0].vcpus[0].id, vms[0].name.as_deref()),
            (3, Some("qemu"))
        );
        // A number that is recorded later than the thread's name is told.
        enter(&mut all, &[(10, Some(1)), (10, Some(2))]);
        assert_eq!(find_vms(&all)[0].vcpus[0].id, 1);
    }

    #[test]
    fn a_vm_is_called_by_all_its_names() {
        let mut all = threads(&[(5, "qemu")], &[]);
        let mut told = told(&[(10, 5)], &[(Some(5), "web", &[])]);
        told.vms[0].uuid = Some("8d2f".to_owned());
        all.told(&told);
        enter(&mut all, &[(10, None)]);
        let vm = &find_vms(&all)[0];
        for name in ["web", "qemu", "8d2f", "5", "10"] {
            assert!(vm.is_called(name), "{name}");
        }
        assert!(!vm.is_called("db") && !vm.is_called("11"));
    }
}
