//! Which threads are vCPUs, where threads alone are followed.

use event::sched::{SchedProcessFork, TaskComm};
use event::{Body, ExitReason, Isa, KvmExit};

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
    let event = Event::bare(&ty, (1, 0, tid), Body::Text { text: "", data });
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
        info: None,
        inner: false,
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
    let comm = TaskComm::new(b"qemu");
    let fork = SchedProcessFork { tid: 7, comm };
    learn(&mut machine, 6, Data::SchedProcessFork(fork));
    learn(&mut machine, 7, exit());
    let vcpus: usize = machine.vms().iter().map(|vm| vm.vcpus.len()).sum();
    assert_eq!(vcpus, 2);
}

/// Lets a vCPU enter its guest on CPU 0 at 100, another halt and leave CPU 1 at 200, and something happen on CPU 1 at
/// 1000; then the recording is cut off, with everything there up to `from`.
fn cut(from: Option<u64>) -> Vec<Times> {
    let mut machine = Machine::new();
    let mut take = |time: u64, cpu: i32, tid: i32, name: &'static str, data: Data| {
        let ty = EventType {
            kind: Kind::of("", name),
            ..EventType::bare(0, name, true)
        };
        let event = Event::bare(&ty, (time, cpu, tid), Body::Text { text: "", data });
        machine.event(&event, &data, &mut ());
    };
    let entry = || {
        Data::KvmEntry(event::KvmEntry {
            vcpu: None,
            guest_pc: None,
        })
    };
    let switch = |prev_tid: i32, next_tid: i32| {
        Data::SchedSwitch(event::sched::SchedSwitch {
            prev_tid,
            prev_comm: TaskComm::new(b"CPU"),
            prev_state: event::sched::TaskState(1),
            next_tid,
            next_comm: TaskComm::new(b"CPU"),
        })
    };
    take(100, 0, 7, "kvm_entry", entry());
    take(100, 1, 8, "kvm_entry", entry());
    take(180, 1, 8, "kvm_exit", exit());
    take(200, 1, 8, "sched_switch", switch(8, 0));
    take(1_000, 1, 9, "sched_switch", switch(9, 0));
    if let Some(from) = from {
        machine.side(&Side::Cut { from });
    }
    machine.finish(&mut ());
    (0..2).map(|vcpu| *machine.times(vcpu)).collect()
}

#[test]
fn what_a_vcpu_did_behind_a_cut_is_unknown() {
    let of = |times: &[Times]| {
        let guest = (times[0].get(State::Guest), times[0].get(State::Unknown));
        let halted = (times[1].get(State::Halted), times[1].get(State::Unknown));
        (guest, halted)
    };
    // Whole: what both did last they did up to the last event.
    assert_eq!(of(&cut(None)), ((900, 0), (800, 0)));
    // Of some CPU nothing is left: the one is known up to its CPU's last event, the other may have gone on elsewhere.
    assert_eq!(of(&cut(Some(0))), ((0, 900), (0, 800)));
    assert_eq!(of(&cut(Some(500))), ((400, 500), (300, 500)));
    assert_eq!(of(&cut(Some(2_000))), ((900, 0), (800, 0)));
}
