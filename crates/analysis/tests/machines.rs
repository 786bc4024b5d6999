//! A host and another machine in one walk: both have a thread 10, a CPU 0 and names of their own. What is found of each
//! is what is found when it is walked alone.

use std::ops::ControlFlow;

use analysis::{
    ExitOptions, Exits, Merge, RecordingContents, SchedLatencies, SharedAnalysis, Study, Vcpus,
    Window,
};
use event::sched::{SchedSwitch, SchedWakeup, TaskComm, TaskState};
use event::{
    Body, Data, Decoder, Event, EventType, ExitReason, Isa, Kind, KvmEntry, KvmExit, Side, Sink,
};
use symbols::KernelFunctions;

const KINDS: [(&str, Kind); 4] = [
    ("kvm_entry", Kind::KvmEntry),
    ("kvm_exit", Kind::KvmExit),
    ("sched_switch", Kind::SchedSwitch),
    ("sched_wakeup", Kind::SchedWakeup),
];

/// The kinds of events of a machine; its indexes come behind those of the one before.
fn kinds(machine: u16) -> Vec<EventType<'static>> {
    let first = u32::from(machine) * KINDS.len() as u32;
    let kinds = KINDS.iter().zip(first..);
    kinds
        .map(|((name, kind), index)| EventType {
            index,
            machine,
            system: "",
            name,
            label: name,
            kind: *kind,
            format: None,
            decoder: Decoder::default(),
            recorded: true,
        })
        .collect()
}

/// One event of a machine: when, by which thread of which process, and what.
type One = (u64, i32, i32, usize, Data);

fn enters(time: u64, tid: i32, pid: i32, vcpu: u32) -> One {
    let entry = KvmEntry {
        vcpu: Some(vcpu),
        guest_pc: None,
    };
    (time, tid, pid, 0, Data::KvmEntry(entry))
}

fn exits(time: u64, tid: i32, pid: i32, vcpu: u32, code: u32) -> One {
    let exit = KvmExit {
        reason: ExitReason {
            isa: Isa::Vmx,
            code,
        },
        vcpu: Some(vcpu),
        guest_pc: None,
        info: None,
        inner: false,
    };
    (time, tid, pid, 1, Data::KvmExit(exit))
}

fn switch(time: u64, prev: (i32, &str), state: u64, next: (i32, &str)) -> One {
    let switch = SchedSwitch {
        prev_tid: prev.0,
        prev_comm: TaskComm::new(prev.1.as_bytes()),
        prev_state: TaskState(state),
        next_tid: next.0,
        next_comm: TaskComm::new(next.1.as_bytes()),
    };
    (time, prev.0, -1, 2, Data::SchedSwitch(switch))
}

fn wakes(time: u64, by: i32, task: (i32, &str)) -> One {
    let wakeup = SchedWakeup {
        tid: task.0,
        comm: TaskComm::new(task.1.as_bytes()),
        target_cpu: Some(0),
    };
    (time, by, -1, 3, Data::SchedWakeup(wakeup))
}

/// Thread 10 is a vCPU of the VM of process 9.
fn host() -> Vec<One> {
    let mut out = Vec::new();
    for round in 0..50u64 {
        let at = 1_000 + round * 1_000;
        out.push(enters(at, 10, 9, 3));
        out.push(exits(at + 300, 10, 9, 3, 12));
        out.push(switch(at + 400, (10, "CPU 3/KVM"), 1, (0, "swapper/0")));
        out.push(wakes(at + 600, 0, (10, "CPU 3/KVM")));
        out.push(switch(at + 700, (0, "swapper/0"), 0, (10, "CPU 3/KVM")));
    }
    out
}

/// Thread 10 is a server, and thread 11, of process 10, a vCPU.
fn other() -> Vec<One> {
    let mut out = Vec::new();
    for round in 0..50u64 {
        let at = 1_150 + round * 1_000;
        out.push(switch(at, (11, "vcpu0"), 0, (10, "nginx")));
        out.push(switch(at + 350, (10, "nginx"), 1, (11, "vcpu0")));
        out.push(enters(at + 400, 11, 10, 0));
        out.push(wakes(at + 500, 11, (10, "nginx")));
        out.push(exits(at + 550, 11, 10, 0, 30));
    }
    out
}

/// The analyses of one machine.
struct OfMachine {
    machine: u16,
    info: SharedAnalysis<RecordingContents>,
    vcpus: SharedAnalysis<Vcpus>,
    sched: SharedAnalysis<SchedLatencies>,
    exits: SharedAnalysis<Exits>,
}

fn with_all(study: &mut Study, machine: u16) -> OfMachine {
    let split = ExitOptions {
        split: true,
        ..ExitOptions::default()
    };
    OfMachine {
        machine,
        info: study.share_of(machine, RecordingContents::new()),
        vcpus: study.share_of(machine, Vcpus::new(Window::default())),
        sched: study.share_of(machine, SchedLatencies::new()),
        exits: study.share_of(machine, Exits::new(split)),
    }
}

/// Walks machines in the order of their times; of each its side records come first.
fn walk(mut study: Study, machines: &[(u16, &[One], (i32, &str))]) -> Study {
    let kinds: Vec<_> = machines.iter().map(|one| kinds(one.0)).collect();
    for ty in kinds.iter().flatten() {
        assert!(study.wants(ty));
    }
    for (machine, _, (tid, comm)) in machines {
        let side = Side::Comm {
            time: 0,
            pid: -1,
            tid: *tid,
            comm,
            exec: false,
        };
        study.side_of(*machine, &side);
    }
    let mut all: Vec<(&EventType<'_>, &One)> = machines
        .iter()
        .zip(&kinds)
        .flat_map(|((_, events, _), kinds)| events.iter().map(|one| (&kinds[one.3], one)))
        .collect();
    all.sort_by_key(|(_, one)| one.0);
    for (ty, (time, tid, pid, _, data)) in all {
        let event = Event {
            time: *time,
            cpu: 0,
            tid: *tid,
            pid: *pid,
            ty,
            body: Body::Text {
                text: "",
                data: *data,
            },
            sample: None,
            buffer: 0,
            comm: None,
        };
        assert_eq!(study.event(&event), ControlFlow::Continue(()));
    }
    study.finish();
    study
}

/// All that was found of a machine, in words.
fn found(study: &Study, of: &OfMachine) -> String {
    let walked = study.walked_of(of.machine).expect("it was walked");
    let (info, vcpus) = (of.info.get(), of.vcpus.get());
    let (sched, exits) = (of.sched.get(), of.exits.get());
    let threads = walked.machine.threads();
    format!(
        "{:#?}\n{:#?}\n{:#?}\n{:#?}",
        info.report(&walked),
        vcpus.clone().report(&walked),
        sched
            .clone()
            .report(threads, Merge::No, &|_, _| true, KernelFunctions::default()),
        exits.reports(walked.machine)
    )
}

#[test]
fn machines_that_are_walked_together_do_not_mix() {
    let (host, other) = (host(), other());
    let first = (0, host.as_slice(), (10, "qemu"));
    let second = (1, other.as_slice(), (10, "sh"));
    let mut together = Study::default();
    let both = [0, 1].map(|machine| with_all(&mut together, machine));
    let together = walk(together, &[first, second]);
    for (one, of) in [first, second].into_iter().zip(&both) {
        let mut alone = Study::default();
        let asked = with_all(&mut alone, one.0);
        let alone = walk(alone, &[one]);
        assert_eq!(found(&together, of), found(&alone, &asked), "{}", one.0);
    }
    // Names, VMs and vCPUs are each machine's own.
    let machine = |number: u16| together.walked_of(number).expect("it was walked").machine;
    let name = |number: u16| {
        let thread = machine(number).threads().get(10).expect("known");
        thread.comm.as_deref().map(str::to_owned)
    };
    assert_eq!(name(0).as_deref(), Some("CPU 3/KVM"));
    assert_eq!(name(1).as_deref(), Some("nginx"));
    let vcpus = |number: u16| -> Vec<(Option<i32>, u32, i32)> {
        let vms = machine(number).vms();
        let all = vms
            .iter()
            .flat_map(|vm| vm.vcpus.iter().map(move |vcpu| (vm, vcpu)));
        all.map(|(vm, vcpu)| (vm.pid, vcpu.id, vcpu.tid)).collect()
    };
    assert_eq!(vcpus(0), [(Some(9), 3, 10)]);
    assert_eq!(vcpus(1), [(Some(10), 0, 11)]);
}
