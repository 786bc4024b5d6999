//! Whatever events follow each other: the engine does not panic, and what it says adds up.

mod common;

use std::ops::ControlFlow;

use analysis::Study;
use common::stages::{Log, wrong};
use event::reasons::{ExitReason, Isa};
use event::sched::{
    Comm, SchedMigrateTask, SchedProcessExit, SchedProcessFork, SchedSwitch, SchedWakeup,
    TaskRename, TaskState,
};
use event::{
    Body, Data, Decoder, Event, EventType, Kind, KvmEntry, KvmExit, KvmFpu, KvmMmio, KvmMsr,
    KvmPio, KvmUserspaceExit, KvmVcpuWakeup, LostKind, MmioAccess, NONE, Side, Sink,
};
use paths::{Instance, PathReport, Paths};
use proptest::prelude::*;

/// The kinds of events that the built-in paths are made of: name, kind, and whether the text alone says it.
const KINDS: [(&str, Kind); 36] = [
    ("kvm_exit", Kind::KvmExit),
    ("kvm_entry", Kind::KvmEntry),
    ("kvm_fpu", Kind::KvmFpu),
    ("kvm_mmio", Kind::KvmMmio),
    ("kvm_pio", Kind::KvmPio),
    ("kvm_msr", Kind::KvmMsr),
    ("kvm_userspace_exit", Kind::KvmUserspaceExit),
    ("kvm_vcpu_wakeup", Kind::KvmVcpuWakeup),
    ("sched_switch", Kind::SchedSwitch),
    ("sched_waking", Kind::SchedWaking),
    ("sched_wakeup", Kind::SchedWakeup),
    ("sched_migrate_task", Kind::SchedMigrateTask),
    ("sched_process_fork", Kind::SchedProcessFork),
    ("sched_process_exit", Kind::SchedProcessExit),
    ("task_rename", Kind::TaskRename),
    ("kvm_apic_accept_irq", Kind::Other),
    ("kvm_apic_ipi", Kind::Other),
    ("kvm_msi_set_irq", Kind::Other),
    ("kvm_set_irq", Kind::Other),
    ("kvm_inj_virq", Kind::Other),
    ("kvm_hypercall", Kind::Other),
    ("kvm_fast_mmio", Kind::Other),
    ("kvm_irq_line", Kind::Other),
    ("kvm_sys_access", Kind::Other),
    ("vgic_update_irq_pending", Kind::Other),
    ("kvm_timer_update_irq", Kind::Other),
    ("hrtimer_expire_entry", Kind::Other),
    ("irq_handler_entry", Kind::Other),
    ("eventfd_signal", Kind::Other),
    ("irqfd_wakeup", Kind::Other),
    ("irqfd_inject", Kind::Other),
    ("kvm_apicv_accept_irq", Kind::Other),
    ("kvm_hv_send_ipi", Kind::Other),
    ("kvm_hv_send_ipi_ex", Kind::Other),
    ("kvm_pv_send_ipi", Kind::Other),
    // The function tracer's, which are calls of any function.
    ("function", Kind::Other),
];

/// Threads: name, id, process. Two VMs with vCPUs of the same numbers.
const THREADS: [(&str, i32, i32); 9] = [
    ("CPU 0/KVM", 101, 100),
    ("CPU 1/KVM", 102, 100),
    ("CPU 0/KVM", 201, 200),
    ("CPU 1/KVM", 202, 200),
    ("vhost-100", 105, 105),
    ("qemu", 100, 100),
    ("kworker/0:1", 7, 7),
    ("qemu", 200, 200),
    ("swapper/0", 0, 0),
];

#[derive(Debug, Clone)]
struct One {
    kind: usize,
    thread: usize,
    other: usize,
    cpu: i32,
    step: i64,
    number: u64,
    flag: bool,
    bare: bool,
    lost: bool,
}

fn one() -> impl Strategy<Value = One> {
    let step = prop_oneof![
        6 => 0..3i64,
        3 => 0..5_000i64,
        1 => -2_000..0i64,
        1 => Just(i64::MAX),
        1 => Just(i64::MIN),
    ];
    let number = prop_oneof![
        6 => 0..3u64,
        2 => 0..300u64,
        1 => any::<u64>(),
    ];
    let cpu = prop_oneof![20 => 0..3i32, 1 => Just(NONE), 1 => Just(i32::MAX)];
    (
        (0..KINDS.len(), 0..THREADS.len(), 0..THREADS.len(), cpu),
        (step, number, any::<bool>()),
        (0..20u8, 0..60u8),
    )
        .prop_map(
            |((kind, thread, other, cpu), (step, number, flag), (bare, lost))| One {
                kind,
                thread,
                other,
                cpu,
                step,
                number,
                flag,
                bare: bare == 0,
                lost: lost == 0,
            },
        )
}

fn data(one: &One, isa: Isa) -> Data {
    let (comm, tid, _) = THREADS[one.other];
    let comm = Comm::new(comm.as_bytes());
    let number = one.number;
    let vcpu = one.flag.then_some(number as u32 % 4);
    let reason = |code: u32| ExitReason { isa, code };
    match KINDS[one.kind].1 {
        Kind::KvmExit => Data::KvmExit(KvmExit {
            // HLT, I/O, MSR, EPT misconfiguration, and any other.
            reason: reason([12, 30, 32, 49, number as u32][(number % 5) as usize]),
            vcpu,
            guest_pc: None,
        }),
        Kind::KvmEntry => Data::KvmEntry(KvmEntry {
            vcpu,
            guest_pc: None,
        }),
        Kind::KvmFpu => Data::KvmFpu(KvmFpu { load: one.flag }),
        Kind::KvmMmio => Data::KvmMmio(KvmMmio {
            access: MmioAccess::from_number(number % 4),
            gpa: number,
            len: 4,
            value: 0,
        }),
        Kind::KvmPio => Data::KvmPio(KvmPio {
            write: one.flag,
            port: number as u16,
            size: 1,
            count: 1,
            value: None,
        }),
        Kind::KvmMsr => Data::KvmMsr(KvmMsr {
            write: one.flag,
            msr: number as u32,
            value: 0,
            exception: false,
        }),
        Kind::KvmUserspaceExit => Data::KvmUserspaceExit(KvmUserspaceExit {
            reason: one.flag.then_some(2),
        }),
        Kind::KvmVcpuWakeup => Data::KvmVcpuWakeup(KvmVcpuWakeup {
            halted_ns: number,
            waited: one.flag,
            valid: true,
        }),
        Kind::SchedSwitch => Data::SchedSwitch(SchedSwitch {
            prev_tid: THREADS[one.thread].1,
            prev_comm: Comm::new(THREADS[one.thread].0.as_bytes()),
            prev_state: TaskState(u64::from(one.flag)),
            next_tid: tid,
            next_comm: comm,
        }),
        Kind::SchedWaking | Kind::SchedWakeup => {
            let wakeup = SchedWakeup {
                tid,
                comm,
                target_cpu: one.flag.then_some(number as i32 % 3),
            };
            match KINDS[one.kind].1 {
                Kind::SchedWaking => Data::SchedWaking(wakeup),
                _ => Data::SchedWakeup(wakeup),
            }
        }
        Kind::SchedMigrateTask => Data::SchedMigrateTask(SchedMigrateTask {
            tid,
            orig_cpu: 0,
            dest_cpu: number as i32 % 3,
        }),
        Kind::SchedProcessFork => Data::SchedProcessFork(SchedProcessFork { tid, comm }),
        Kind::SchedProcessExit => Data::SchedProcessExit(SchedProcessExit { tid, comm }),
        Kind::TaskRename => Data::TaskRename(TaskRename { tid, comm }),
        _ => Data::Other,
    }
}

/// What a text says that has no typed view.
fn text(one: &One) -> String {
    let n = one.number;
    let (vcpu, vector, level) = (n % 4, n % 300, u8::from(one.flag));
    match KINDS[one.kind].0 {
        "kvm_apic_accept_irq" | "kvm_apicv_accept_irq" => {
            format!("apicid {n:x} vec {vector} (Fixed|edge)")
        }
        "kvm_apic_ipi" => format!("dst {vcpu:x} vec {vector} (Fixed|physical|de-assert|edge|dst)"),
        "kvm_msi_set_irq" => format!("dst {vcpu:x} vec {vector} (Fixed|physical|edge)"),
        "kvm_set_irq" => format!("gsi {n} level {level} source 0"),
        "kvm_inj_virq" => format!("IRQ {vector:#x}"),
        "kvm_hypercall" => format!("nr {n:#x} a0 0x0 a1 0x0 a2 {vector:#x} a3 0x0"),
        "kvm_hv_send_ipi" | "kvm_hv_send_ipi_ex" => format!("vector {vector} cpu_mask 0x{vcpu:x}"),
        "function" => {
            let names = [
                "eventfd_signal",
                "irqfd_wakeup",
                "irqfd_inject",
                "kvm_set_msi",
            ];
            format!("{} <-vhost_signal", names[vcpu as usize])
        }
        "kvm_fast_mmio" => format!("fast mmio at gpa {n:#x}"),
        "kvm_irq_line" => {
            format!("Inject SPI interrupt (1), vcpu->idx: {vcpu}, num: {n}, level: {level}")
        }
        "kvm_sys_access" => "PC: ffff0000 access ffff0001 (3,0,12,11,5) write".to_owned(),
        "vgic_update_irq_pending" => format!("VCPU: {n}, IRQ {vector}, level: {level}"),
        "kvm_timer_update_irq" => format!("VCPU: {vcpu}, IRQ {n}, level {level}"),
        "hrtimer_expire_entry" => "hrtimer=ffff0001 now=7 function=apic_timer_fn".to_owned(),
        "irq_handler_entry" => format!("irq={n} name=eth0"),
        _ => String::new(),
    }
}

struct Seen {
    reports: Vec<PathReport>,
    instances: Vec<Instance>,
    most: usize,
    study: Study,
    log: Log,
}

fn walk(stream: &[One], isa: Isa, mut paths: Paths) -> Seen {
    paths.list();
    let types: Vec<EventType<'_>> = KINDS
        .iter()
        .zip(0u32..)
        .map(|((name, kind), index)| EventType {
            index,
            machine: 0,
            system: "",
            name,
            label: name,
            kind: *kind,
            format: None,
            decoder: Decoder::default(),
            recorded: true,
        })
        .collect();
    let mut study = Study::default().with(paths);
    let mut log = Log::default();
    let mut known = vec![None; types.len()];
    let (mut time, mut most) = (1_000_000u64, 0);
    let mut instances = Vec::new();
    for one in stream {
        time = match one.step {
            i64::MAX => time.saturating_mul(2),
            i64::MIN => time,
            step => time.saturating_add_signed(step),
        };
        let (comm, tid, pid) = THREADS[one.thread];
        if one.lost {
            study.side(&Side::Lost {
                time,
                cpu: one.cpu,
                buffer: 0,
                count: None,
                kind: if one.flag {
                    LostKind::Ring
                } else {
                    LostKind::Sum
                },
            });
            continue;
        }
        let ty = &types[one.kind];
        // A text asks when it comes upon the first event of a kind.
        let wanted = *known[one.kind].get_or_insert_with(|| study.wants(ty));
        if !wanted {
            continue;
        }
        let text = text(one);
        let body = match one.bare {
            true => Body::None,
            false => Body::Text {
                text: &text,
                data: data(one, isa),
            },
        };
        let event = Event {
            time,
            cpu: one.cpu,
            tid,
            pid: if one.flag { pid } else { NONE },
            ty,
            body,
            sample: None,
            buffer: 0,
            comm: Some(comm),
        };
        log.take(&event, &event.data());
        assert_eq!(study.event(&event), ControlFlow::Continue(()));
        if let Some(paths) = study.get_mut::<Paths>() {
            most = most.max(paths.in_flight());
            instances.extend(paths.take_listed());
        }
    }
    study.finish();
    let paths = study.get_mut::<Paths>().expect("paths");
    instances.extend(paths.take_listed());
    assert_eq!(paths.in_flight(), 0, "nothing is left at the end");
    let paths = study.get::<Paths>().expect("paths");
    let machine = study.walked().machine;
    Seen {
        reports: paths.report(machine, &|_| None),
        instances,
        most,
        study,
        log,
    }
}

/// No stage is longer than what bounds it. Times have to run forwards for that to make sense.
fn check_bounds(seen: &Seen) {
    let paths = seen.study.get::<Paths>().expect("paths");
    let machine = seen.study.walked().machine;
    for one in &seen.instances {
        let found = wrong(&seen.log, one, paths, machine, false);
        assert!(found.is_empty(), "{found:#?}\n{one:?}");
    }
}

/// Makes every event later than the one before, and lets no thread end: what is written down of a thread is by its id.
fn forwards(mut stream: Vec<One>) -> Vec<One> {
    let lives = |one: &One| {
        let kind = KINDS[one.kind].1;
        !matches!(
            kind,
            Kind::SchedProcessFork | Kind::SchedProcessExit | Kind::TaskRename
        )
    };
    stream.retain(lives);
    for one in &mut stream {
        one.step = one.step.clamp(1, 5_000);
    }
    stream
}

/// All paths that there are.
fn all_paths() -> Paths {
    let mut all = paths::all_builtin();
    let of_rules = paths::FOR_RULES.iter();
    all.extend(of_rules.filter_map(|(name, _)| paths::builtin(name)));
    Paths::new(all)
}

fn check(seen: &Seen, limit: usize) {
    assert!(seen.most <= limit, "{} under way at once", seen.most);
    let paths = seen.study.get::<Paths>().expect("paths");
    let machine = seen.study.walked().machine;
    for (at, report) in seen.reports.iter().enumerate() {
        let path = &paths.paths()[at];
        let of: Vec<&Instance> = seen.instances.iter().filter(|i| i.path == at).collect();
        assert_eq!(of.len() as u64, report.count, "{}", path.name);
        for (one, number) in of.iter().zip(1u64..) {
            assert_eq!(one.number, number);
            let steps = &path.chains[one.chain].steps;
            assert!(one.reached.len() >= 2, "{}: {one:?}", path.name);
            assert!(one.reached.is_sorted_by(|a, b| a.step < b.step), "{one:?}");
            assert!(
                one.reached.is_sorted_by_key(|reached| reached.time),
                "{one:?}"
            );
            assert!(one.reached.iter().all(|r| (r.step as usize) < steps.len()));
            assert!(!paths.tell(one, machine, &|_| None).steps.is_empty());
        }
        let total: u64 = of
            .iter()
            .map(|one| one.reached[one.reached.len() - 1].time - one.reached[0].time)
            .fold(0, u64::saturating_add);
        assert_eq!(report.total.count(), report.count);
        assert_eq!(report.total.total(), total);
        let stages: u64 = report.stages.iter().fold(0, |sum, stage| {
            u64::saturating_add(sum, stage.stats.total())
        });
        assert_eq!(stages, total, "{}", path.name);
        if report.by == Some("waker") {
            let grouped: u64 = report.groups.iter().map(|group| group.stats.count()).sum();
            assert_eq!(grouped, report.count, "{}", path.name);
        }
        let grouped: u64 = report.groups.iter().map(|group| group.stats.count()).sum();
        assert!(grouped <= report.count);
        let Some(slow) = &report.slow else {
            continue;
        };
        let above = of
            .iter()
            .filter(|one| {
                one.reached[one.reached.len() - 1].time - one.reached[0].time >= slow.threshold_ns
            })
            .count();
        assert_eq!(slow.count, above as u64);
        for one in &slow.because {
            for share in [one.slow_share, one.fast_share] {
                assert!((0.0..=1.0).contains(&share), "{one:?}");
            }
            let examples = one.slow_examples.iter().chain(&one.fast_examples);
            assert!(examples.into_iter().all(|n| (1..=report.count).contains(n)));
        }
    }
}

/// Events of a thread: kind, who makes it, whom it is about, the number it tells, and its flag. Threads are 0 and 1 for the
/// vCPUs of a VM, and otherwise as in [`THREADS`].
type Script = &'static [(&'static str, usize, usize, u64, bool)];

/// What the built-in paths are, each as it happens.
const SCRIPTS: [(&str, Script); 12] = [
    (
        "halt-wake",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 0, 0, 0, false),
            ("sched_switch", 0, 8, 0, true),
            ("sched_waking", 8, 0, 0, false),
            ("sched_switch", 8, 0, 0, false),
            ("kvm_vcpu_wakeup", 0, 0, 0, true),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "halt-wake",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 0, 0, 0, false),
            ("kvm_vcpu_wakeup", 0, 0, 0, false),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "irqfd",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("eventfd_signal", 4, 0, 0, false),
            ("irqfd_wakeup", 4, 0, 0, false),
            ("kvm_msi_set_irq", 4, 0, 0, false),
            ("kvm_apic_accept_irq", 4, 0, 0, false),
            ("kvm_exit", 0, 0, 4, false),
            ("kvm_inj_virq", 0, 0, 0, false),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "ipi",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 1, 0, 2, false),
            ("kvm_apic_ipi", 1, 0, 0, false),
            ("kvm_apic_accept_irq", 1, 0, 0, false),
            ("kvm_entry", 1, 0, 1, true),
            ("kvm_exit", 0, 0, 4, false),
            ("kvm_inj_virq", 0, 0, 0, false),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "timer",
        &[
            ("kvm_entry", 1, 0, 1, true),
            ("kvm_exit", 1, 0, 4, true),
            ("hrtimer_expire_entry", 1, 0, 0, false),
            ("kvm_apic_accept_irq", 1, 0, 1, false),
            ("kvm_inj_virq", 1, 0, 1, false),
            ("kvm_entry", 1, 0, 1, true),
        ],
    ),
    (
        "kick",
        &[
            ("kvm_exit", 0, 0, 3, false),
            ("kvm_mmio", 0, 0, 2, false),
            ("eventfd_signal", 0, 0, 0, false),
            ("sched_waking", 0, 4, 0, false),
            ("kvm_entry", 0, 0, 0, true),
            ("sched_switch", 8, 4, 0, false),
            ("irqfd_wakeup", 4, 0, 0, false),
            ("kvm_msi_set_irq", 4, 0, 0, false),
            ("kvm_apic_accept_irq", 4, 0, 0, false),
            ("kvm_exit", 0, 0, 4, false),
            ("kvm_inj_virq", 0, 0, 0, false),
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 0, 0, 1, false),
            ("kvm_pio", 0, 0, 9, true),
        ],
    ),
    (
        "user-exit",
        &[
            ("kvm_exit", 0, 0, 1, false),
            ("kvm_pio", 0, 0, 0x3f8, true),
            ("kvm_userspace_exit", 0, 0, 0, true),
            ("kvm_fpu", 0, 0, 0, true),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    // APICv: to a vCPU that is in its guest, and to one that is not.
    (
        "ipi",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 1, 0, 2, false),
            ("kvm_hv_send_ipi", 1, 0, 0, false),
            ("kvm_apic_accept_irq", 1, 0, 0, false),
            ("kvm_apicv_accept_irq", 1, 0, 0, false),
            ("kvm_entry", 1, 0, 1, true),
        ],
    ),
    (
        "ipi",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 0, 0, 0, true),
            ("kvm_exit", 1, 0, 2, false),
            ("kvm_apic_ipi", 1, 0, 0, false),
            ("kvm_apic_accept_irq", 1, 0, 0, false),
            ("kvm_apicv_accept_irq", 1, 0, 0, false),
            ("kvm_entry", 1, 0, 1, true),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "irqfd",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("irqfd_wakeup", 4, 0, 0, false),
            ("kvm_msi_set_irq", 4, 0, 0, false),
            ("kvm_apic_accept_irq", 4, 0, 0, false),
            ("kvm_apicv_accept_irq", 4, 0, 0, false),
        ],
    ),
    (
        "irqfd",
        &[
            ("kvm_entry", 0, 0, 0, true),
            ("kvm_exit", 0, 0, 0, true),
            ("function", 4, 0, 1, false),
            ("kvm_msi_set_irq", 4, 0, 0, false),
            ("kvm_apic_accept_irq", 4, 0, 0, false),
            ("kvm_apicv_accept_irq", 4, 0, 0, false),
            ("sched_waking", 4, 0, 0, false),
            ("kvm_entry", 0, 0, 0, true),
        ],
    ),
    (
        "timer",
        &[
            ("kvm_entry", 1, 0, 1, true),
            ("kvm_exit", 1, 0, 4, true),
            ("kvm_apic_accept_irq", 1, 0, 1, false),
            ("kvm_apicv_accept_irq", 1, 0, 1, false),
            ("kvm_entry", 1, 0, 1, true),
        ],
    ),
];

/// Returns an event of a script, for one of two VMs.
fn scripted(line: &(&str, usize, usize, u64, bool), vm: usize, step: i64) -> One {
    let &(name, thread, other, number, flag) = line;
    let kind = KINDS.iter().position(|(known, _)| *known == name);
    let of = |thread: usize| if thread < 2 { thread + 2 * vm } else { thread };
    One {
        kind: kind.expect("a kind of the list"),
        thread: of(thread),
        other: of(other),
        cpu: of(thread) as i32 % 4,
        step,
        number,
        flag,
        bare: false,
        lost: false,
    }
}

/// What comes next: a step of a script under way, or something else.
#[derive(Debug, Clone)]
enum Next {
    Script {
        place: usize,
        which: usize,
        vm: usize,
        step: i64,
    },
    Noise(One),
}

fn next(noise: u32) -> impl Strategy<Value = Next> {
    let script = (0..4usize, 0..SCRIPTS.len(), 0..2usize, 0..3_000i64);
    prop_oneof![
        20 => script.prop_map(|(place, which, vm, step)| Next::Script { place, which, vm, step }),
        noise => one().prop_map(Next::Noise),
    ]
}

/// Plays up to four scripts at once.
fn play(all: &[Next]) -> Vec<One> {
    let mut places: [(usize, usize, usize); 4] = [(0, usize::MAX, 0); 4];
    let mut out = Vec::new();
    for next in all {
        match next {
            Next::Noise(one) => out.push(one.clone()),
            Next::Script {
                place,
                which,
                vm,
                step,
            } => {
                let (script, at, of) = &mut places[*place];
                if *at >= SCRIPTS[*script].1.len() {
                    (*script, *at, *of) = (*which, 0, *vm);
                }
                out.push(scripted(&SCRIPTS[*script].1[*at], *of, *step));
                *at += 1;
            }
        }
    }
    out
}

#[test]
fn scripts_are_instances_of_their_paths() {
    for (name, script) in SCRIPTS {
        for vm in 0..2 {
            let stream: Vec<One> = script.iter().map(|line| scripted(line, vm, 10)).collect();
            let seen = walk(&stream, Isa::Vmx, Paths::new(paths::all_builtin()));
            check(&seen, 1 << 16);
            let report = seen.reports.iter().find(|report| report.name == name);
            assert_eq!(
                report.map(|report| report.count),
                Some(1),
                "{name} {script:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn events_without_sense_add_up(
        stream in prop::collection::vec(one(), 0..1500),
        arm in any::<bool>(),
        limit in prop_oneof![Just(1 << 16), 1..40usize],
    ) {
        let mut paths = Paths::new(paths::all_builtin());
        paths.at_most(limit);
        let isa = if arm { Isa::Arm64 } else { Isa::Vmx };
        check(&walk(&stream, isa, paths), limit);
    }

    #[test]
    fn instances_that_mix_add_up(
        all in prop_oneof![
            prop::collection::vec(next(1), 0..3000),
            prop::collection::vec(next(10), 0..1500),
        ],
        limit in prop_oneof![2 => Just(1 << 16), 1 => 1..40usize],
        slow in prop::option::of(0..20_000u64),
    ) {
        let mut paths = Paths::new(paths::all_builtin());
        paths.at_most(limit);
        if let Some(ns) = slow {
            paths.slow_from(ns);
        }
        check(&walk(&play(&all), Isa::Vmx, paths), limit);
    }

    #[test]
    fn no_stage_is_longer_than_what_bounds_it(
        all in prop_oneof![
            prop::collection::vec(next(2), 0..3000),
            prop::collection::vec(next(40), 0..1500),
        ],
        arm in any::<bool>(),
    ) {
        let isa = if arm { Isa::Arm64 } else { Isa::Vmx };
        check_bounds(&walk(&forwards(play(&all)), isa, all_paths()));
    }
}
