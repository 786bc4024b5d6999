//! Tests of names.

use super::*;
use crate::snapshot::WaitBehind;

fn vcpu(pid: i32, tid: i32) -> LiveVcpu {
    LiveVcpu {
        tid,
        pid,
        number: None,
        ended: false,
        times: Times::default(),
        exits: 0,
        before_first_entry: 0,
        without_entry: 0,
        polls: model::Polls::default(),
        woken: DurationBuckets::default(),
        preempted: DurationBuckets::default(),
    }
}

fn row(tid: i32, code: u32, ns: u64) -> LiveRow {
    LiveRow {
        tid,
        what: RowSubject::Exit(ExitReason {
            isa: Isa::Vmx,
            code,
        }),
        durations: DurationBuckets {
            count: 1,
            total_ns: ns,
            max_ns: ns,
            buckets: vec![1],
        },
        min_ns: Some(ns),
        user_count: 0,
        whole_ns: 0,
        times: Times::default(),
    }
}

fn interval() -> Snapshot {
    let behind = |tid, by_tid, comm: &str, ns| WaitBehind {
        tid,
        by_tid,
        comm: Some(comm.to_owned()),
        count: 1,
        ns,
    };
    Snapshot {
        from_ns: 0,
        to_ns: 1000,
        vcpus: vec![vcpu(10, 11), vcpu(10, 12), vcpu(20, 21)],
        threads: Vec::new(),
        rows: vec![row(11, 12, 5), row(12, 12, 7), row(21, 30, 9)],
        behind: vec![
            behind(11, 21, "CPU 0/KVM", 3),
            behind(11, 70, "sh", 1),
            behind(11, 71, "sh", 1),
        ],
        ..Snapshot::default()
    }
}

fn facts() -> Facts {
    let mut facts = Facts::default();
    for (pid, name, tids) in [(10, "web", vec![11, 12]), (20, "db", vec![21])] {
        let vcpus = tids.into_iter().zip(0..);
        facts.vms.push(facts::ReportedVm {
            pid: Some(pid),
            name: Some(name.to_owned()),
            vcpus: vcpus
                .map(|(tid, id)| facts::ReportedVcpu::new(id, tid))
                .collect(),
            ..facts::ReportedVm::default()
        });
    }
    facts
}

#[test]
fn rows_have_the_names_of_vms_and_the_numbers_of_vcpus() {
    let named = named(&interval(), &facts(), None, &Choice::default());
    let rows = named.rows.iter();
    let rows: Vec<_> = rows
        .map(|row| (&*row.whose.vm, row.whose.vcpu, &*row.key, row.waiting))
        .collect();
    let expected = [
        ("db", Some(0), "IO_INSTRUCTION", false),
        ("web", Some(1), "HLT", true),
        ("web", Some(0), "HLT", true),
    ];
    assert_eq!(rows, expected);
    let behind = named.behind.iter();
    let behind: Vec<_> = behind
        .map(|one| (one.comm.as_deref(), one.vm.as_deref(), one.ns))
        .collect();
    assert_eq!(
        behind,
        [(Some("CPU 0/KVM"), Some("db"), 3), (Some("sh"), None, 2)]
    );
}

#[test]
fn vcpus_of_a_vm_can_be_added_up_and_others_left_out() {
    let choice = Choice {
        vm: Some("web".to_owned()),
        by_vm: true,
        ..Choice::default()
    };
    let named = named(&interval(), &facts(), None, &choice);
    assert_eq!(named.rows.len(), 1);
    assert_eq!(named.rows[0].durations.total_ns, 12);
    assert_eq!(named.rows[0].min_ns, Some(5));
    assert_eq!(named.vcpus.len(), 2);
}

#[test]
fn what_ran_shortest_meanwhile_is_one_row() {
    let mut interval = interval();
    interval.behind = (0..40)
        .map(|number| WaitBehind {
            tid: 11,
            by_tid: 100 + number,
            comm: Some(format!("task{number}")),
            count: 1,
            ns: 1000 - u64::from(number.unsigned_abs()),
        })
        .collect();
    interval.behind.push(WaitBehind {
        tid: 11,
        by_tid: SEVERAL,
        comm: None,
        count: 5,
        ns: 1_000_000,
    });
    let choice = Choice::default();
    let named = named(&interval, &facts(), None, &choice);
    assert_eq!(named.behind.len(), LISTED);
    let ns: u64 = interval.behind.iter().map(|one| one.ns).sum();
    assert_eq!(named.behind.iter().map(|one| one.ns).sum::<u64>(), ns);
    let rest = &named.behind[0];
    assert_eq!((&rest.comm, rest.by_tid), (&None, None));
    assert_eq!(rest.count, 5 + 40 - (LISTED as u64 - 1));
    let all = Choice {
        all_behind: true,
        ..choice
    };
    let named = super::named(&interval, &facts(), None, &all);
    assert_eq!(named.behind.len(), 41);
}

#[test]
fn threads_of_a_vm_and_their_waits_have_names() {
    let mut facts = facts();
    let comm = |comm: &str| facts::ReportedThread {
        pid: Some(10),
        comm: Some(comm.to_owned()),
        ..facts::ReportedThread::default()
    };
    facts.threads.insert(15, comm("IO iothread1"));
    facts.threads.insert(16, comm("vhost-10"));
    facts.vms[0].vhost = vec![16];
    let mut interval = interval();
    let thread = |tid, ran_ns| LiveThread {
        tid,
        vm_pid: 10,
        ran_ns,
        ..LiveThread::default()
    };
    interval.threads = vec![thread(15, 10), thread(16, 20)];
    interval.behind = vec![WaitBehind {
        tid: 15,
        by_tid: 21,
        comm: Some("CPU 0/KVM".to_owned()),
        count: 1,
        ns: 9,
    }];
    let named = named(&interval, &facts, None, &Choice::default());
    let threads = named.threads.iter();
    let threads: Vec<_> = threads
        .map(|one| (one.comm.as_deref(), one.role, &*one.whose.vm))
        .collect();
    let expected = [
        (Some("vhost-10"), ThreadRole::Vhost, "web"),
        (Some("IO iothread1"), ThreadRole::Vmm, "web"),
    ];
    assert_eq!(threads, expected);
    let behind = &named.behind[0];
    assert_eq!(behind.thread.as_deref(), Some("IO iothread1"));
    assert_eq!(
        (behind.whose.tid, behind.vm.as_deref()),
        (Some(15), Some("db"))
    );
}

#[test]
fn a_map_of_devices_names_addresses() {
    let mut interval = interval();
    let access = GuestAccess::Mmio {
        gpa: 0xfebd_0010,
        write: true,
    };
    interval.rows = vec![LiveRow {
        what: RowSubject::Access(access),
        ..row(11, 0, 5)
    }];
    let mtree = "address-space: memory\n  \
                 0000000000000000-ffffffffffffffff (prio 0, i/o): system\n    \
                 00000000febd0000-00000000febd0fff (prio 1, i/o): my-device\n";
    let name = |mtree| {
        let named = named(&interval, &facts(), mtree, &Choice::default());
        named.rows[0].name.clone()
    };
    assert_eq!(name(None), None);
    let known = name(Some(mtree)).expect("the map has it");
    assert!(known.contains("my-device"), "{known}");
}
