//! Threads grouped into VMs.

use event::{Body, Decoder, Event, EventType, Kind};

use super::*;
use crate::{ThreadFact, ThreadFacts, VcpuFact, VmFact};

/// Threads that entered a guest, as ftrace records them: no process ids.
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
        machine: 0,
        system: "kvm",
        name: "kvm_entry",
        label: "kvm_entry",
        kind: Kind::KvmEntry,
        format: None,
        decoder: Decoder::default(),
        recorded: true,
    };
    for &(tid, vcpu) in vcpus {
        let event = Event::bare(&ty, (1, 0, tid), Body::None);
        threads.vcpu_event(&event, vcpu);
    }
}

#[test]
fn a_kernel_threads_name_has_the_process_of_the_vcpus_behind_it() {
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
fn a_name_that_outlived_its_process_shows_nothing() {
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
type VmSource<'t> = (Option<i32>, &'t str, &'t [(u32, i32)]);

fn facts(threads: &[(i32, i32)], vms: &[VmSource<'_>]) -> ThreadFacts {
    let thread = |&(tid, pid): &(i32, i32)| ThreadFact {
        tid,
        pid: Some(pid),
        comm: Some("thread".into()),
    };
    let vm = |(pid, name, vcpus): &VmSource<'_>| VmFact {
        pid: *pid,
        name: (!name.is_empty()).then(|| (*name).to_owned()),
        uuid: None,
        vcpus: vcpus
            .iter()
            .map(|&(id, tid)| VcpuFact { id, tid })
            .collect(),
    };
    ThreadFacts {
        threads: threads.iter().map(thread).collect(),
        vms: vms.iter().map(vm).collect(),
        ..ThreadFacts::default()
    }
}

/// The same of what is found.
type VmSummary = (Option<i32>, Option<String>, Vec<(u32, i32)>);

fn found(facts: &ThreadFacts, vcpus: &[(i32, Option<u32>)]) -> Vec<VmSummary> {
    let mut all = threads(&[], &[]);
    all.add_facts(facts);
    enter(&mut all, vcpus);
    let vcpus = |vm: &Vm| vm.vcpus.iter().map(|v| (v.id, v.tid)).collect();
    let vms = find_vms(&all);
    vms.iter()
        .map(|vm| (vm.pid, vm.name.clone(), vcpus(vm)))
        .collect()
}

#[test]
fn facts_part_vms_whose_threads_interleave() {
    let none = [(10, None), (11, None), (12, None), (13, None)];
    let (a, b) = (Some("a".to_owned()), Some("b".to_owned()));
    // By the vCPUs alone.
    let by_vcpus = facts(
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
    let by_process = facts(
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
fn a_recording_knows_better_than_facts() {
    // Its numbers; and who enters no guest is no vCPU.
    let wrong = facts(&[], &[(Some(5), "a", &[(7, 10), (8, 11), (9, 99)])]);
    let vms = found(&wrong, &[(10, Some(0)), (11, None)]);
    assert_eq!(
        vms,
        [(Some(5), Some("a".to_owned()), vec![(0, 10), (8, 11)])]
    );
    // Its names.
    let mut all = threads(&[(10, "CPU 3/KVM"), (5, "qemu")], &[]);
    all.add_facts(&facts(&[(10, 5), (5, 5)], &[(None, "", &[(7, 10)])]));
    enter(&mut all, &[(10, None)]);
    let vms = find_vms(&all);
    assert_eq!(all.get(10).unwrap().comm.as_deref(), Some("CPU 3/KVM"));
    assert_eq!(
        (vms[0].vcpus[0].id, vms[0].name.as_deref()),
        (3, Some("qemu"))
    );
    // A number that is recorded later than the thread's name counts.
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
    let mut formats = tracefmt::FormatCatalog::default();
    formats.add("sched", FORMAT);
    let ty = EventType {
        index: 0,
        machine: 0,
        system: "sched",
        name: "sched_waking",
        label: "sched_waking",
        kind: Kind::SchedWaking,
        format: formats.by_id(4),
        decoder: Decoder::default(),
        recorded: true,
    };
    let record = [4, 0, flags, 0, 0, 0, 0, 0];
    let event = Event::bare(&ty, (1, 0, waker), Body::Raw(&record));
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
    all.add_facts(&facts(&[], &[(None, "guest 3", &[(0, 10), (1, 12)])]));
    all.add_facts(&facts(
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
fn numbers_that_nobody_knows_are_those_that_are_free() {
    let mut all = threads(&[(5, "qemu"), (10, "CPU 1/KVM")], &[]);
    all.add_facts(&facts(&[(9, 5), (10, 5), (11, 5)], &[]));
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
fn a_process_is_not_that_of_threads_that_are_older() {
    let names = [
        (90, "qemu"),
        (100, "qemu"),
        (101, "vhost-100"),
        (103, "x"),
        (104, "x"),
    ];
    let mut all = threads(&names, &[]);
    enter(&mut all, &[(103, Some(0)), (104, Some(1))]);
    assert_eq!(find_vms(&all)[0].pid, Some(100));
    for _ in 0..2 {
        wakes(&mut all, 90, 103, 0);
        wakes(&mut all, 90, 104, 0);
    }
    let vms = find_vms(&all);
    assert_eq!((vms[0].pid, vms[0].helpers.as_slice()), (None, &[90][..]));
}

/// perf.data and ftrace without numbers in their events (arm64): the scheduler's events may have names later.
#[test]
fn a_name_that_comes_later_has_the_number() {
    let mut all = threads(&[], &[10, 11]);
    all.saved_names([(10, "fc_vcpu 2"), (11, "fc_vcpu 5")]);
    let vms = find_vms(&all);
    let vcpus: Vec<(u32, i32)> = vms[0].vcpus.iter().map(|v| (v.id, v.tid)).collect();
    assert_eq!((vcpus, vms.len()), (vec![(2, 10), (5, 11)], 1));
}

#[test]
fn a_vm_is_called_by_all_its_names() {
    let mut all = threads(&[(5, "qemu")], &[]);
    let mut facts = facts(&[(10, 5)], &[(Some(5), "web", &[])]);
    facts.vms[0].uuid = Some("8d2f".to_owned());
    all.add_facts(&facts);
    enter(&mut all, &[(10, None)]);
    let vm = &find_vms(&all)[0];
    for name in ["web", "qemu", "8d2f", "5", "10"] {
        assert!(vm.is_called(name), "{name}");
    }
    assert!(!vm.is_called("db") && !vm.is_called("11"));
}
