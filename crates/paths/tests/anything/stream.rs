//! Events that follow each other without sense.

use event::reasons::{ExitReason, Isa};
use event::sched::{
    SchedMigrateTask, SchedProcessExit, SchedProcessFork, SchedSwitch, SchedWakeup, TaskComm,
    TaskRename, TaskState,
};
use event::{
    Body, Data, Decoder, Event, EventType, Kind, KvmEntry, KvmExit, KvmFpu, KvmMmio, KvmMsr,
    KvmPio, KvmUserspaceExit, KvmVcpuWakeup, MmioAccess, NONE,
};
use proptest::prelude::*;

/// The kinds of events that the built-in paths are made of: name, kind, and whether the text alone says it.
pub(crate) const KINDS: [(&str, Kind); 36] = [
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
pub(crate) const THREADS: [(&str, i32, i32); 9] = [
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

/// One event of a stream.
#[derive(Debug, Clone)]
pub(crate) struct One {
    pub(crate) kind: usize,
    pub(crate) thread: usize,
    pub(crate) other: usize,
    pub(crate) cpu: i32,
    pub(crate) step: i64,
    pub(crate) number: u64,
    pub(crate) flag: bool,
    pub(crate) bare: bool,
    pub(crate) lost: bool,
    /// It happens in a guest.
    pub(crate) guest: bool,
}

/// The kinds of events as a recording has them.
pub(crate) fn types() -> Vec<EventType<'static>> {
    let kinds = KINDS.iter().zip(0u32..);
    kinds
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
        .collect()
}

impl One {
    /// Returns its time, after that of the event before.
    pub(crate) fn time_after(&self, time: u64) -> u64 {
        match self.step {
            i64::MAX => time.saturating_mul(2),
            i64::MIN => time,
            step => time.saturating_add_signed(step),
        }
    }

    /// Returns it as an event; `text` is what [`text`] makes of it, and `with_pid` says whether processes are recorded.
    pub(crate) fn event<'e>(
        &self,
        time: u64,
        ty: &'e EventType<'e>,
        isa: Isa,
        with_pid: bool,
        text: &'e str,
    ) -> Event<'e> {
        let (comm, tid, pid) = THREADS[self.thread];
        Event {
            time,
            cpu: self.cpu,
            tid,
            pid: if with_pid { pid } else { NONE },
            ty,
            body: match self.bare {
                true => Body::None,
                false => Body::Text {
                    text,
                    data: data(self, isa),
                },
            },
            sample: None,
            buffer: 0,
            comm: Some(comm),
        }
    }
}

/// Any event.
pub(crate) fn one() -> impl Strategy<Value = One> {
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
        (0..20u8, 0..60u8, 0..8u8),
    )
        .prop_map(
            |((kind, thread, other, cpu), (step, number, flag), (bare, lost, guest))| One {
                kind,
                thread,
                other,
                cpu,
                step,
                number,
                flag,
                bare: bare == 0,
                lost: lost == 0,
                guest: guest == 0,
            },
        )
}

/// What an event says that has a typed view.
pub(crate) fn data(one: &One, isa: Isa) -> Data {
    let (comm, tid, _) = THREADS[one.other];
    let comm = TaskComm::new(comm.as_bytes());
    let number = one.number;
    let vcpu = one.flag.then_some(number as u32 % 4);
    let reason = |code: u32| ExitReason { isa, code };
    match KINDS[one.kind].1 {
        Kind::KvmExit => Data::KvmExit(KvmExit {
            // HLT, I/O, MSR, EPT misconfiguration, and any other.
            reason: reason([12, 30, 32, 49, number as u32][(number % 5) as usize]),
            vcpu,
            guest_pc: None,
            info: None,
            inner: false,
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
            prev_comm: TaskComm::new(THREADS[one.thread].0.as_bytes()),
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
pub(crate) fn text(one: &One) -> String {
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
