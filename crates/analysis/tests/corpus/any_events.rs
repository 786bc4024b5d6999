//! Whatever events a recording has, and whichever kinds are missing, the states of its vCPUs add up.

use std::fmt::Write as _;

use crate::vcpu_states::{Text, follow};
use model::State;
use proptest::prelude::*;

/// A line of a recording: any event of any thread, on any CPU, at nearly any time.
fn any_event() -> impl Strategy<Value = (u64, i32, i32, String)> {
    let tid = || prop::sample::select(vec![0, 45, 101, 102, 103]);
    let cpu = || 0..3i32;
    let state = prop::sample::select(vec!["S", "D", "R", "R+", "X", "I"]);
    let reason = prop::sample::select(vec!["HLT", "CPUID", "IO_INSTRUCTION", "EPT_VIOLATION"]);
    let exit =
        reason.prop_map(|reason| format!("kvm_exit: vcpu 0 reason {reason} rip 0x1000 info1 0x0"));
    let plain = prop::sample::select(vec![
        "kvm_entry: vcpu 0, rip 0x1000",
        "kvm_entry: vcpu 0, rip 0x1000",
        "kvm_userspace_exit: reason KVM_EXIT_IO (2)",
        "kvm_userspace_exit: reason restart (4)",
        "kvm_fpu: load",
        "kvm_fpu: unload",
        "kvm_pio: pio_write at 0x3f8 size 1 count 1 val 0x41",
        "kvm_mmio: mmio unsatisfied-read len 4 gpa 0xfed000f0 val 0x0",
        "kvm_msr: msr_write 6e0 = 0x1234",
        "sched_process_exit: comm=CPU 0/KVM pid=101 prio=120",
        "sched_process_fork: comm=qemu pid=100 child_comm=qemu child_pid=102",
        "LOST",
    ]);
    let halt =
        (prop::bool::ANY, prop_oneof![0..200_000u64, any::<u64>()]).prop_map(|(wait, ns)| {
            let how = if wait { "wait" } else { "poll" };
            format!("kvm_vcpu_wakeup: {how} time {ns} ns, polling valid")
        });
    let switch = (tid(), state, tid()).prop_map(|(prev, state, next)| {
        format!(
            "sched_switch: prev_comm=a prev_pid={prev} prev_prio=120 prev_state={state} ==> next_comm=b \
             next_pid={next} next_prio=120"
        )
    });
    let wakeup = (prop::bool::ANY, tid(), cpu()).prop_map(|(waking, tid, target)| {
        let name = if waking {
            "sched_waking"
        } else {
            "sched_wakeup"
        };
        format!("{name}: comm=a pid={tid} prio=120 target_cpu={target:03}")
    });
    let migrate = (tid(), cpu(), cpu()).prop_map(|(tid, from, to)| {
        format!("sched_migrate_task: comm=a pid={tid} prio=120 orig_cpu={from} dest_cpu={to}")
    });
    let what = prop_oneof![
        4 => plain.prop_map(str::to_owned),
        3 => exit,
        2 => halt,
        4 => switch,
        2 => wakeup,
        1 => migrate,
    ];
    // Most stamps go on a little; some run backwards.
    let step = prop_oneof![20 => 0..40u64, 1 => Just(u64::MAX)];
    (step, cpu(), tid(), what)
}

/// Writes them down; a step of `u64::MAX` is one back.
fn recording(events: &[(u64, i32, i32, String)]) -> String {
    let mut text = Text {
        out: "# tracer: nop\n".to_owned(),
    };
    let mut time: u64 = 1_000;
    for (step, cpu, tid, what) in events {
        time = match *step {
            u64::MAX => time.saturating_sub(30),
            step => time + step,
        };
        if what == "LOST" {
            let _ = writeln!(text.out, "CPU:{cpu} [LOST 3 EVENTS]");
        } else {
            text.event(time, *cpu, *tid, what);
        }
    }
    text.out
}

/// Classes of events that may be missing.
const CLASSES: [&str; 6] = [
    "sched_switch",
    "sched_wak",
    "sched_wakeup",
    "kvm_userspace_exit",
    "kvm_vcpu_wakeup",
    "kvm_fpu",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_events_add_up(
        events in prop::collection::vec(any_event(), 1..200),
        without in prop::option::of(prop::sample::select(CLASSES.to_vec())),
    ) {
        let is_missing = |what: &str| without.is_some_and(|class| what.starts_with(class));
        let mut events: Vec<_> = events.into_iter().filter(|e| !is_missing(&e.3)).collect();
        // A text needs an event, and a vCPU.
        events.insert(0, (0, 1, 101, "kvm_entry: vcpu 0, rip 0x1000".to_owned()));
        let followed = follow("any", &recording(&events));
        prop_assert!(followed.is_ok(), "{}\n{}", followed.err().unwrap_or_default(), recording(&events));
        let followed = followed.unwrap();
        prop_assert!(!followed.vcpus.is_empty());
        for row in &followed.report.rows {
            let behind: u64 = row.behind.iter().map(|b| b.ns).sum();
            prop_assert_eq!(behind, row.times.get(State::Runnable));
            let user: u64 = row.user.iter().map(|u| u.ns).sum();
            let columns = row.times.get(State::User) + row.times.get(State::UserBlocked);
            prop_assert_eq!(user, columns);
            let polls = row.polls.succeeded_ns + row.polls.failed_ns;
            prop_assert_eq!(polls, row.times.get(State::Poll));
        }
    }
}
