//! What threads are by their names; who recorded.

use super::*;

mod recorder;

#[test]
fn vcpu_numbers_are_read_from_the_names_that_vmms_give() {
    for (comm, number) in [
        ("CPU 0/KVM", Some(0)),
        ("CPU 12/KVM", Some(12)),
        ("fc_vcpu 3", Some(3)),
        ("fc_vcpu3", Some(3)),
        ("vcpu7", Some(7)),
        ("crosvm_vcpu2", Some(2)),
        ("kvm-vcpu-1", Some(1)),
        ("crosvm_vcpu127", Some(127)),
        ("vcpu_throttle", None),
        ("CPU 0/TCG", None),
        ("IO iothread1", None),
        ("fc_api", None),
        ("qemu-system-x86", None),
        ("CPU", None),
    ] {
        assert_eq!(vcpu_from_comm(comm), number, "{comm}");
    }
}

#[test]
fn names_of_the_kernel_qemu_and_dpdk_say_what_a_thread_is() {
    for (comm, role) in [
        ("swapper", NamedRole::Idle),
        ("swapper/12", NamedRole::Idle),
        ("CPU 3/KVM", NamedRole::Vcpu(3)),
        ("kvm-vcpu-1", NamedRole::Vcpu(1)),
        ("IO iothread1", NamedRole::Iothread),
        ("IO mon_iothread", NamedRole::Iothread),
        ("qemu-system-x86", NamedRole::Qemu),
        ("vhost-4509", NamedRole::Vhost(Some(4509))),
        ("vhost-4509-4522", NamedRole::Vhost(Some(4509))),
        ("vhost-", NamedRole::Vhost(None)),
        ("vhostile", NamedRole::Other),
        ("kvm-pit/1781", NamedRole::Kvm(Some(1781))),
        ("kvm-nx-lpage-recovery-1781", NamedRole::Kvm(Some(1781))),
        ("kvm-nx-lpage-re", NamedRole::Kvm(None)),
        ("kworker/9:1-eve", NamedRole::Kworker(Some(9))),
        ("kworker/u449:3-", NamedRole::Kworker(None)),
        ("pmd-c03/id:9", NamedRole::PollMode),
        ("pmd9", NamedRole::PollMode),
        ("lcore-worker-2", NamedRole::PollMode),
        ("dpdk-worker1", NamedRole::PollMode),
        ("pmdaproc", NamedRole::Other),
        ("irq/30-eth0", NamedRole::Irq),
        ("ksoftirqd/1", NamedRole::Kernel),
        ("migration/3", NamedRole::Kernel),
        ("rcu_preempt", NamedRole::Kernel),
        ("perf", NamedRole::Other),
        ("", NamedRole::Other),
    ] {
        assert_eq!(NamedRole::from(comm), role, "{comm}");
    }
}

#[test]
fn a_vhost_worker_works_for_the_process_in_its_name() {
    let mut threads = Threads::default();
    for (tid, pid, comm) in [
        (110, 110, "vhost-100"),
        (101, 100, "qemu"),
        (111, event::NONE, "vhost-99"),
    ] {
        let name = event::Side::Comm {
            time: 0,
            pid,
            tid,
            comm,
            exec: false,
        };
        threads.side(&name);
    }
    let works_for = |tid| threads.get(tid).and_then(Thread::works_for);
    assert_eq!(
        [110, 101, 111].map(works_for),
        [Some(100), Some(100), Some(99)]
    );
    assert_eq!(threads.served_processes(), [99, 100]);
}

#[test]
fn the_public_form_of_a_name_keeps_its_role_and_nothing_else() {
    for (comm, form) in [
        ("CPU 12/KVM", Some("CPU 12/KVM")),
        ("fc_vcpu 3", Some("fc_vcpu 3")),
        ("qemu-system-x86", Some("qemu-system-x86")),
        ("qemu-acme-db", None),
        ("vhost-4509-4522", Some("vhost-4509-4522")),
        ("vhost-acme", None),
        ("kvm-pit/1781", Some("kvm-pit/1781")),
        ("kworker/9:1H", Some("kworker/9:1H")),
        ("kworker/9:1-eve", Some("kworker/9:1")),
        ("kworker/u449:3", Some("kworker/u449:3")),
        ("irq/30-acme0", Some("irq/30")),
        ("ksoftirqd/3", Some("ksoftirqd/3")),
        ("migration/12", Some("migration/12")),
        ("swapper/3", Some("swapper/3")),
        ("pmd-c03/id:9", Some("pmd-c03/id:9")),
        ("IO iothread1", Some("IO iothread1")),
        ("IO disk-of-acme", None),
        ("vcpu7 of acme", Some("vcpu7")),
        ("postgres", None),
        ("", None),
    ] {
        let found = public_form(comm);
        assert_eq!(found.as_deref(), form, "{comm}");
        if let Some(found) = found {
            assert_eq!(
                NamedRole::from(found.as_str()),
                NamedRole::from(comm),
                "{comm}"
            );
        }
    }
}
