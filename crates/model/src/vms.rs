//! VMs, found from their vCPU threads.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Other threads that are of it where its process is not recorded: its VMM's, and of the kernel those that work for
    /// it alone.
    pub helpers: Vec<i32>,
    /// Whether nothing but the order of thread ids says that these vCPUs are one VM's.
    pub guessed: bool,
}

impl Vm {
    /// Returns whether a process or thread id is that of its process, or of a thread of it.
    pub fn is_of(&self, id: i32) -> bool {
        self.pid == Some(id)
            || self.helpers.contains(&id)
            || self.vcpus.iter().any(|vcpu| vcpu.tid == id)
    }

    fn is_pid(&self, name: &str) -> bool {
        let id = name.parse().ok();
        id.is_some_and(|id| self.pid == Some(id) || self.helpers.contains(&id))
    }

    /// Returns whether the VM is meant by a name: the guest's, its UUID, that of its process, or the
    /// process id.
    pub fn is_called(&self, name: &str) -> bool {
        [&self.name, &self.process, &self.uuid]
            .iter()
            .any(|known| known.as_deref() == Some(name))
            || self.is_pid(name)
            || self
                .name
                .as_deref()
                .and_then(|own| own.strip_prefix("guest "))
                == Some(name)
            || self.vcpus.iter().any(|vcpu| name.parse() == Ok(vcpu.tid))
    }
}

/// Groups vCPU threads into VMs.
///
/// With process ids (perf.data) that is certain. ftrace records thread ids only. There, the recording's own map of a
/// guest, and what is told beside the recording, says whose a thread is: by its process, or as one of a VM's vCPUs. Of
/// the others wake-ups tell which are of one VM (`bonds`). What is left is guessed: the threads of a VM are taken to be
/// made one after the other, so in the order of thread ids a vCPU number that is not higher than the one before begins
/// the next VM. VMs that start at the same time break that, so a guess is marked as one ([`Vm::guessed`]), unless all
/// threads fit into one VM by their numbers. Kernel threads that carry the VMM's process id in their name
/// (`kvm-pit/PID`, `kvm-nx-lpage-recovery-PID`, `vhost-PID`) tell that id, if that process is known too: ftrace also
/// saves names of threads that are long gone.
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
    let known = |pid: i32| threads.get(pid).is_some_and(|thread| thread.comm.is_some());
    let told = by_told.into_values().map(|members| Group {
        members,
        ..Group::default()
    });
    let mut groups: Vec<Group<'_>> = told.collect();
    groups.extend(bonded(threads, without, &named));
    let several = by_pid.len() + groups.len() > 1;
    let owners: Vec<Option<i32>> = groups
        .iter()
        .map(|group| group.owner(&named).filter(|pid| known(*pid)))
        .collect();
    let mut vms: Vec<Vm> = by_pid
        .iter()
        .map(|(pid, members)| vm(threads, Some(*pid), members))
        .collect();
    let mut claimed: BTreeMap<Option<i32>, usize> = BTreeMap::new();
    for owner in &owners {
        *claimed.entry(*owner).or_default() += 1;
    }
    for (group, owner) in groups.into_iter().zip(&owners) {
        // Two groups cannot be one process's: then nobody knows whose either is.
        let claims = claimed.get(owner).copied().unwrap_or(0);
        let fits = |pid: &i32| claims == 1 && !by_pid.contains_key(pid);
        vms.push(Vm {
            guessed: group.by_order && (several || !group.numbered()),
            helpers: group.helpers,
            ..vm(threads, owner.filter(fits), &group.members)
        });
    }
    vms
}

/// Threads of one VM whose process is not recorded.
#[derive(Default)]
struct Group<'t> {
    members: Vec<Member<'t>>,
    /// Other threads that are of it.
    helpers: Vec<i32>,
    /// Whether only the order of thread ids makes it one.
    by_order: bool,
}

impl Group<'_> {
    /// Whether the vCPUs' numbers allow one VM only: they are known, or there is one vCPU.
    fn numbered(&self) -> bool {
        self.members.len() < 2
            || self
                .members
                .iter()
                .all(|member| member.thread.vcpu.is_some())
    }

    /// Whether threads made later may be of the same VM.
    fn goes_on(&self, next: &Group<'_>, named: &[i32]) -> bool {
        let (Some(last), Some(first)) = (self.members.last(), next.members.first()) else {
            return false;
        };
        let numbers = |group: &Group<'_>| -> Vec<u32> {
            let all = group.members.iter().filter_map(|member| member.thread.vcpu);
            all.collect()
        };
        let highest = numbers(self).into_iter().max();
        let lowest = numbers(next).into_iter().min();
        let falls = highest.zip(lowest).is_some_and(|(a, b)| b <= a);
        // A VM has one main loop. Without numbers nothing else tells VMs apart whose threads wake each other.
        let apart =
            highest.zip(lowest).is_none() && !self.helpers.is_empty() && !next.helpers.is_empty();
        // A process id between two vCPU threads belongs to a VMM that started between them.
        let next = named.partition_point(|pid| *pid <= last.tid);
        let other = named.get(next).is_some_and(|pid| *pid < first.tid);
        !falls && !apart && !other
    }

    /// The process that made its threads: one of them that names of the kernel's threads know for a VMM's, else the
    /// highest id of such below them.
    fn owner(&self, named: &[i32]) -> Option<i32> {
        let mut of_it = self.helpers.iter().filter(|tid| named.contains(tid));
        if let Some(pid) = of_it.next() {
            return of_it.next().is_none().then_some(*pid);
        }
        let first = self.members.first()?.tid;
        let below = named.partition_point(|pid| *pid < first);
        named.get(below.checked_sub(1)?).copied()
    }
}

/// Groups threads that neither a process nor a map tells of. Threads that wake each other stay together; these and all
/// others are put to what comes before them in the order of thread ids, as long as that goes on with higher numbers.
fn bonded<'t>(threads: &'t Threads, without: Vec<Member<'t>>, named: &[i32]) -> Vec<Group<'t>> {
    let numbers = without
        .iter()
        .map(|member| (member.tid, member.thread.vcpu))
        .collect();
    let comm = |tid: i32| threads.get(tid)?.comm.as_deref();
    let mut parts: Vec<Group<'_>> = Vec::new();
    let mut left = without;
    for (vcpus, helpers) in threads.bonds.groups(&numbers, comm) {
        let (members, others) = left
            .into_iter()
            .partition(|member| vcpus.binary_search(&member.tid).is_ok());
        left = others;
        parts.push(Group {
            members,
            helpers,
            by_order: false,
        });
    }
    parts.extend(left.into_iter().map(|member| Group {
        members: vec![member],
        ..Group::default()
    }));
    for part in &mut parts {
        // One vCPU says nothing of others, and a VM has a vCPU 0.
        let first = part.members.iter().map(|member| member.thread.vcpu).min();
        part.by_order = part.members.len() < 2 || !matches!(first, None | Some(None | Some(0)));
    }
    parts.retain(|part| !part.members.is_empty());
    parts.sort_by_key(|part| part.members.first().map(|member| member.tid));
    let mut out: Vec<Group<'_>> = Vec::new();
    for part in parts {
        match out.last_mut() {
            Some(group) if group.goes_on(&part, named) => {
                group.members.extend(part.members);
                group.members.sort_by_key(|member| member.tid);
                group.helpers.extend(part.helpers);
                group.by_order = true;
            }
            _ => out.push(part),
        }
    }
    out
}

/// A vCPU thread.
#[derive(Clone, Copy)]
struct Member<'t> {
    tid: i32,
    slot: u32,
    thread: &'t Thread,
}

fn vm(threads: &Threads, pid: Option<i32>, members: &[Member<'_>]) -> Vm {
    let taken: BTreeSet<u32> = members.iter().filter_map(|m| m.thread.vcpu).collect();
    let mut free = (0u32..).filter(|number| !taken.contains(number));
    let mut vcpus: Vec<Vcpu> = Vec::new();
    for member in members {
        vcpus.push(Vcpu {
            id: member.thread.vcpu.or_else(|| free.next()).unwrap_or(0),
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
        helpers: Vec::new(),
        guessed: false,
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

    /// A wake-up outside of interrupts, or in one, as ftrace records it.
    fn wakes(threads: &mut Threads, waker: i32, target: i32, flags: u8) {
        const FORMAT: &[u8] = b"name: sched_waking
ID: 4
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

print fmt: \"\"
";
        let mut formats = tracefmt::Formats::default();
        formats.add("sched", FORMAT);
        let ty = EventType {
            index: 0,
            system: "sched",
            name: "sched_waking",
            label: "sched_waking",
            kind: Kind::SchedWaking,
            format: formats.by_id(4),
            decoder: Decoder::default(),
            recorded: true,
        };
        let event = Event {
            time: 1,
            cpu: 0,
            tid: waker,
            pid: NONE,
            ty: &ty,
            body: Body::Raw(&[4, 0, flags, 0, 0, 0, 0, 0]),
            sample: None,
            buffer: 0,
            comm: None,
        };
        threads.wakes(&event, target);
    }

    /// Two VMs that started at once: in the order of thread ids vCPU 0 of both comes first.
    #[test]
    fn who_wakes_whom_parts_vms_whose_threads_interleave() {
        let numbers = [
            (194, Some(0)),
            (195, Some(0)),
            (196, Some(1)),
            (197, Some(1)),
        ];
        let grouped = |all: &Threads| -> Vec<(Vec<i32>, bool)> {
            let vms = find_vms(all);
            let tids = |vm: &Vm| vm.vcpus.iter().map(|vcpu| vcpu.tid).collect();
            vms.iter().map(|vm| (tids(vm), vm.guessed)).collect()
        };
        let mut all = threads(&[(180, "qemu-system-x86"), (182, "qemu-system-x86")], &[]);
        enter(&mut all, &numbers);
        let guess = [(vec![194], true), (vec![195, 196], true), (vec![197], true)];
        assert_eq!(grouped(&all), guess);
        // In an interrupt of the host anybody may wake anybody.
        for _ in 0..9 {
            wakes(&mut all, 195, 194, 0x08);
            wakes(&mut all, 195, 197, 0x10);
        }
        assert_eq!(grouped(&all), guess);
        for _ in 0..2 {
            wakes(&mut all, 182, 194, 0x01);
            wakes(&mut all, 182, 197, 0x01);
            wakes(&mut all, 195, 196, 0x01);
        }
        let vms = find_vms(&all);
        assert_eq!(
            grouped(&all),
            [(vec![194, 197], false), (vec![195, 196], false)]
        );
        assert!(vms[0].is_called("182") && vms[0].is_of(182) && !vms[1].is_called("182"));
    }

    #[test]
    fn threads_of_one_vm_are_not_parted_and_no_guess() {
        let mut all = threads(&[(9, "vmm")], &[]);
        enter(
            &mut all,
            &[(10, Some(0)), (11, Some(1)), (12, Some(2)), (13, Some(3))],
        );
        for _ in 0..3 {
            wakes(&mut all, 10, 11, 0);
            wakes(&mut all, 12, 13, 0);
        }
        let vms = find_vms(&all);
        assert_eq!(
            (vms.len(), vms[0].vcpus.len(), vms[0].guessed),
            (1, 4, false)
        );
        // Without numbers a second vCPU may be another VM's.
        let none = threads(&[], &[20, 21]);
        assert!(find_vms(&none)[0].guessed);
    }

    #[test]
    fn the_recordings_own_map_counts_more_than_facts_and_takes_their_names() {
        let mut all = threads(&[], &[]);
        // As the command line hands them over: the map first.
        all.told(&told(&[], &[(None, "guest 3", &[(0, 10), (1, 12)])]));
        all.told(&told(
            &[],
            &[(None, "db", &[(0, 11), (1, 12)]), (None, "web", &[(0, 10)])],
        ));
        enter(&mut all, &[(10, None), (11, None), (12, None)]);
        let vms = find_vms(&all);
        let tids = |vm: &Vm| vm.vcpus.iter().map(|vcpu| vcpu.tid).collect::<Vec<_>>();
        assert_eq!(tids(&vms[0]), [10, 12]);
        assert!(vms[0].is_called("3") && vms[0].is_called("guest 3"));
        assert_eq!(
            (tids(&vms[1]), vms[1].name.as_deref()),
            (vec![11], Some("db"))
        );
        assert!(vms.iter().all(|vm| !vm.guessed));
    }

    #[test]
    fn numbers_that_nobody_tells_are_those_that_are_free() {
        let mut all = threads(&[(5, "qemu"), (10, "CPU 1/KVM")], &[]);
        all.told(&told(&[(9, 5), (10, 5), (11, 5)], &[]));
        let mut all = {
            all.saved_names([(9, "qemu"), (11, "qemu")]);
            all
        };
        enter(&mut all, &[(9, None), (10, None), (11, None)]);
        let vcpus: Vec<(u32, i32)> = find_vms(&all)[0]
            .vcpus
            .iter()
            .map(|v| (v.id, v.tid))
            .collect();
        assert_eq!(vcpus, [(0, 9), (1, 10), (2, 11)]);
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
