//! Which threads are vCPUs, where threads alone are followed.

use event::sched::{Comm, SchedProcessFork};
use event::{Body, ExitReason};

use super::*;

fn learn(machine: &mut Machine, tid: i32, data: Data) {
    let name = match data {
        Data::KvmExit(_) => "kvm_exit",
        Data::KvmEntry(_) => "kvm_entry",
        _ => "sched_process_fork",
    };
    let ty = EventType {
        kind: Kind::of("", name),
        ..EventType::bare(0, name, true)
    };
    let event = Event {
        time: 1,
        cpu: 0,
        tid,
        pid: NONE,
        ty: &ty,
        body: Body::Text { text: "", data },
        sample: None,
        buffer: 0,
        comm: None,
    };
    if machine.learns(&event) {
        machine.learn(&event, &data);
    }
}

fn exit() -> Data {
    Data::KvmExit(KvmExit {
        reason: ExitReason {
            isa: Isa::Vmx,
            code: 12,
        },
        vcpu: None,
        guest_pc: None,
    })
}

#[test]
fn a_number_that_entries_alone_have_is_learned_of_a_single_vcpu_too() {
    let mut machine = Machine::new();
    learn(&mut machine, 7, exit());
    let entry = event::KvmEntry {
        vcpu: Some(3),
        guest_pc: None,
    };
    learn(&mut machine, 7, Data::KvmEntry(entry));
    let ids: Vec<_> = machine.vms()[0].vcpus.iter().map(|vcpu| vcpu.id).collect();
    assert_eq!(ids, [3]);
}

#[test]
fn a_thread_with_the_id_of_a_vcpu_that_ended_is_learned_anew() {
    let mut machine = Machine::new();
    learn(&mut machine, 7, exit());
    let comm = Comm::new(b"qemu");
    let fork = SchedProcessFork { tid: 7, comm };
    learn(&mut machine, 6, Data::SchedProcessFork(fork));
    learn(&mut machine, 7, exit());
    let vcpus: usize = machine.vms().iter().map(|vm| vm.vcpus.len()).sum();
    assert_eq!(vcpus, 2);
}
