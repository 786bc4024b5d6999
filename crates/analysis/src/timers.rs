//! Which exits a guest's timer makes, by vCPU.
//!
//! A guest's timer takes exits in several ways: to be set (x86: writes of `TSC_DEADLINE` or of the local APIC's initial
//! count, or of Hyper-V's synthetic timers), to expire (Intel: `PREEMPTION_TIMER`; else an interrupt of the host's own
//! timer, arm64: `IRQ`), and to be injected (a window for the interrupt). An exit counts as the timer's if between it
//! and the entry the timer was set, or its interrupt accepted or injected. What else interrupts, such as the host's
//! tick, does none of these.
//!
//! It costs more than 2 ns an event, because a vCPU's state is looked up and changed at each exit, entry and
//! access, and whose an exit was is known only at the entry behind it.

use event::{Body, Data, Event, EventType, Isa, Kind, MmioAccess, index_of};
use model::{ByThread, Machine, RetiredThreads, ThreadHandle};
use rustc_hash::FxHashMap;

use crate::analysis::{Analysis, Context, EventDetail};
use crate::faults::ExitSum;
use crate::record::{Number, Radix};

/// `MSR_IA32_TSC_DEADLINE` and the x2APIC's initial count; the xAPIC's (Intel SDM volume 3, 11.5.4).
const TIMER_MSRS: [u32; 2] = [0x6e0, 0x838];
const TIMER_GPA: u64 = 0xfee0_0380;
/// `HV_X64_MSR_STIMER0_CONFIG` to `STIMER3_COUNT` (Hypervisor Top Level Functional Specification, 12.3).
const SYNTHETIC_MSRS: std::ops::RangeInclusive<u32> = 0x4000_00b0..=0x4000_00b7;

/// Vectors of timers: Linux's local timer (0xec; 0xef before 4.11), its Hyper-V timer
/// (`arch/x86/include/asm/irq_vectors.h`), and the clock of Windows (`HalpTimerClockInterrupt`).
const TIMER_VECTORS: [u8; 4] = [0xec, 0xef, 0xed, 0xd1];

/// The host's local timer where the host is Linux.
pub const HOST_TIMER_VECTOR: u8 = 0xec;

/// `VMX`'s interruption information: the vector is valid (Intel SDM volume 3, 24.9.2).
const VALID: u64 = 1 << 31;

/// Exits that a timer may have made, beside those for interrupts of the host: Intel's `INTERRUPT_WINDOW`, `MSR_WRITE`
/// and `PREEMPTION_TIMER`; AMD's `vintr` and `msr`.
const VMX_POSSIBLE: [u32; 3] = [7, 32, PREEMPTION_TIMER];
const SVM_POSSIBLE: [u32; 2] = [0x64, 0x7c];
const PREEMPTION_TIMER: u32 = 52;

/// How interrupts of the timer were known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimerEvidence {
    /// By their vector, as KVM accepted or injected them.
    Vector(u8),
    /// By the VMX preemption timer, which runs for nothing else.
    Preemption,
    /// arm64: by the line of the virtual timer, as KVM raised it.
    Line(u32),
    /// By nothing: they are fewer than the times that the timer was set.
    #[default]
    Nothing,
}

/// One vCPU.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimerRow {
    /// Its thread.
    pub tid: i32,
    /// Its number, where events have it.
    pub vcpu: Option<u32>,
    /// From its first exit or entry to its last.
    pub observed_ns: u64,
    /// All exits that an entry followed.
    pub exits: u64,
    /// Those in which the guest asked to wait.
    pub halts: u64,
    /// Times that the guest set its timer.
    pub set: u64,
    /// Interrupts of its timer.
    pub interrupts: u64,
    /// How they are known.
    pub evidence: TimerEvidence,
    /// Exits that the timer made, those included that were waits which it ended.
    pub timer_exits: u64,
    /// Those that were no waits, with their time.
    pub timer: ExitSum,
    /// Exits for interrupts of the host (`EXTERNAL_INTERRUPT`, `interrupt`, `IRQ`).
    pub interrupted: ExitSum,
    /// Of these, with the vector of the host's own timer and nothing of the guest's (Intel).
    pub host_timer: ExitSum,
    /// Exits that may be the timer's, whatever is recorded beside them: writes of registers, interrupts and windows.
    pub possible: u64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimersReport {
    /// By thread.
    pub rows: Vec<TimerRow>,
    /// Whether interrupts that KVM gives to guests were recorded.
    pub vectors: bool,
    /// Whether writes of registers were.
    pub writes: bool,
    /// Whether changes of the virtual timer's line were (arm64).
    pub lines: bool,
}

#[derive(Debug, Clone)]
enum Reader {
    /// The vector, and whether it is the same interrupt put back, since its delivery faulted: no timer expired then.
    Injected {
        vector: Number,
        again: Option<Number>,
    },
    Accepted {
        vector: Number,
        apic: Number,
    },
    Line {
        irq: Number,
        level: Number,
    },
    Exit(Number),
    Expired,
}

/// Exits of one kind of interrupt.
#[derive(Debug, Clone, Copy, Default)]
struct TimerExits {
    interrupts: u64,
    exits: u64,
    taken: ExitSum,
}

#[derive(Debug, Default)]
struct VcpuTimer {
    row: TimerRow,
    first: u64,
    /// When the exit under way began, and what it is.
    exit: Option<OpenExit>,
    /// Since the last entry: whether the timer was set, and what came.
    set: bool,
    vector: Option<u8>,
    line: Option<u32>,
    /// Exits in which the timer was set.
    setting: ExitSum,
    injected: FxHashMap<u8, TimerExits>,
    accepted: FxHashMap<u8, u64>,
    lines: FxHashMap<u32, TimerExits>,
    preemption: ExitSum,
    /// `kvm_wait_lapic_expire`: interrupts of the deadline timer that were injected.
    expired: u64,
}

#[derive(Debug, Clone, Copy)]
struct OpenExit {
    time: u64,
    waiting: bool,
    interrupt: bool,
    preemption: bool,
    host_vector: Option<u8>,
}

/// Counts a guest's timers.
#[derive(Debug, Default)]
pub struct Timers {
    readers: Vec<Option<Reader>>,
    vcpus: ByThread<VcpuTimer>,
    report: TimersReport,
}

/// Returns whether an injected interrupt is one that was injected before (`kvm_inj_virq`,
/// `arch/x86/kvm/trace.h`: `reinjected`, `[reinjected]` in texts).
fn is_reinjected(event: &Event<'_>, again: Option<&Number>) -> bool {
    match event.body {
        Body::Text { text, .. } => text.contains("[reinjected]"),
        _ => again.and_then(|again| again.get(event)).unwrap_or(0) & 0xff != 0,
    }
}

impl Timers {
    /// Returns a counter that has seen nothing.
    pub fn new() -> Timers {
        Timers::default()
    }

    /// Takes a kind of events. Returns whether it has something that only its own fields tell.
    fn learn(&mut self, ty: &EventType<'_>) -> bool {
        let index = index_of(ty.index);
        if self.readers.len() <= index {
            self.readers.resize_with(index + 1, || None);
        }
        let note = |recorded: &mut bool| *recorded |= ty.recorded;
        self.readers[index] = match ty.name {
            "kvm_inj_virq" => {
                note(&mut self.report.vectors);
                let words = &[
                    ("IRQ", Radix::Hex),
                    ("irq", Radix::Any),
                    ("vector", Radix::Any),
                ];
                let again = Number::of(ty, &["reinjected"], &[]);
                Number::of(ty, &["vector", "irq"], words)
                    .map(|vector| Reader::Injected { vector, again })
            }
            "kvm_apic_accept_irq" => {
                note(&mut self.report.vectors);
                let vector = Number::of(ty, &["vec"], &[("vec", Radix::Any)]);
                let apic = Number::of(ty, &["apicid"], &[("apicid", Radix::Hex)]);
                vector
                    .zip(apic)
                    .map(|(vector, apic)| Reader::Accepted { vector, apic })
            }
            "kvm_timer_update_irq" => {
                note(&mut self.report.lines);
                let irq = Number::of(ty, &["irq"], &[("IRQ", Radix::Any), ("irq", Radix::Any)]);
                let level = Number::of(ty, &["level"], &[("level", Radix::Any)]);
                irq.zip(level)
                    .map(|(irq, level)| Reader::Line { irq, level })
            }
            "kvm_exit" => {
                Number::of(ty, &["intr_info"], &[("intr_info", Radix::Hex)]).map(Reader::Exit)
            }
            "kvm_wait_lapic_expire" => Some(Reader::Expired),
            "kvm_msr" => {
                note(&mut self.report.writes);
                None
            }
            _ => None,
        };
        self.readers[index].is_some()
    }

    #[inline(always)]
    fn take(&mut self, event: &Event<'_>, data: &Data, thread: ThreadHandle) {
        match data {
            Data::KvmExit(exit) if exit.inner => {
                let vcpu = self.vcpu(event, thread, exit.vcpu);
                if let Some(open) = &mut vcpu.exit {
                    open.waiting = exit.reason.is_waiting();
                }
            }
            Data::KvmExit(exit) => {
                let reader = self.readers.get(index_of(event.ty.index));
                let interrupt = exit.reason.is_interrupt();
                let intr_info = match reader {
                    // What AMD has there is the event that was being delivered.
                    Some(Some(Reader::Exit(number)))
                        if interrupt && exit.reason.isa == Isa::Vmx =>
                    {
                        number.get(event)
                    }
                    _ => None,
                };
                let preemption = exit.reason.is_of(Isa::Vmx, &[PREEMPTION_TIMER]);
                let possible = interrupt
                    || exit.reason.is_of(Isa::Vmx, &VMX_POSSIBLE)
                    || exit.reason.is_of(Isa::Svm, &SVM_POSSIBLE);
                let vcpu = self.vcpu(event, thread, exit.vcpu);
                vcpu.row.possible += u64::from(possible);
                vcpu.exit = Some(OpenExit {
                    time: event.time,
                    waiting: exit.reason.is_waiting(),
                    interrupt,
                    preemption,
                    host_vector: intr_info
                        .filter(|info| info & VALID != 0)
                        .map(|info| (info & 0xff) as u8),
                });
            }
            Data::KvmEntry(entry) => {
                let vcpu = self.vcpu(event, thread, entry.vcpu);
                vcpu.enters(event.time);
            }
            Data::KvmMsr(msr) => {
                self.report.writes = true;
                let timer = TIMER_MSRS.contains(&msr.msr) || SYNTHETIC_MSRS.contains(&msr.msr);
                if msr.write && timer && msr.value != 0 {
                    self.sets(thread);
                }
            }
            Data::KvmMmio(mmio) => {
                let write = mmio.access == MmioAccess::Write;
                if write && mmio.gpa == TIMER_GPA && mmio.value != 0 {
                    self.sets(thread);
                }
            }
            Data::Other => self.other(event, thread),
            _ => {}
        }
    }

    fn sets(&mut self, thread: ThreadHandle) {
        if let Some(vcpu) = self.vcpus.get_mut(thread) {
            vcpu.row.set += 1;
            vcpu.set = true;
        }
    }

    fn other(&mut self, event: &Event<'_>, thread: ThreadHandle) {
        let Some(Some(reader)) = self.readers.get(index_of(event.ty.index)) else {
            return;
        };
        match reader {
            Reader::Injected { vector, again } => {
                self.report.vectors = true;
                if is_reinjected(event, again.as_ref()) {
                    return;
                }
                let vector = vector
                    .get(event)
                    .and_then(|vector| u8::try_from(vector).ok());
                if let (Some(vector), Some(vcpu)) = (vector, self.vcpus.get_mut(thread)) {
                    vcpu.injected.entry(vector).or_default().interrupts += 1;
                    vcpu.vector = Some(vector);
                }
            }
            Reader::Accepted { vector, apic } => {
                self.report.vectors = true;
                let vector = vector
                    .get(event)
                    .and_then(|vector| u8::try_from(vector).ok());
                let apic = apic.get(event);
                // A timer expires on its own vCPU's thread, or it halts; others send interrupts too.
                if let (Some(vector), Some(vcpu)) = (vector, self.vcpus.get_mut(thread))
                    && (vcpu.row.vcpu.is_none() || vcpu.row.vcpu.map(u64::from) == apic)
                {
                    *vcpu.accepted.entry(vector).or_default() += 1;
                    vcpu.vector = vcpu.vector.or(Some(vector));
                }
            }
            Reader::Line { irq, level } => {
                self.report.lines = true;
                let irq = irq.get(event).and_then(|irq| u32::try_from(irq).ok());
                let raised = level.get(event) == Some(1);
                if let (Some(irq), true) = (irq.filter(|irq| *irq < 32), raised)
                    && let Some(vcpu) = self.vcpus.get_mut(thread)
                {
                    vcpu.line = Some(irq);
                }
            }
            Reader::Expired => {
                if let Some(vcpu) = self.vcpus.get_mut(thread) {
                    vcpu.expired += 1;
                }
            }
            Reader::Exit(_) => {}
        }
    }

    fn vcpu(
        &mut self,
        event: &Event<'_>,
        thread: ThreadHandle,
        number: Option<u32>,
    ) -> &mut VcpuTimer {
        let vcpu = self.vcpus.entry(thread, || VcpuTimer {
            first: event.time,
            row: TimerRow {
                tid: event.tid,
                ..TimerRow::default()
            },
            ..VcpuTimer::default()
        });
        vcpu.row.vcpu = vcpu.row.vcpu.or(number);
        vcpu.row.observed_ns = event.time.saturating_sub(vcpu.first);
        vcpu
    }

    /// Returns what was found.
    pub fn report(&self) -> TimersReport {
        let mut report = self.report.clone();
        report.rows = self.vcpus.values().map(VcpuTimer::row).collect();
        report.rows.sort_by_key(|row| row.tid);
        report
    }
}

impl Analysis for Timers {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for thread in retired.handles() {
            self.vcpus.remove(thread);
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        let has_reader = self.learn(ty);
        match ty.kind {
            Kind::KvmExit | Kind::KvmInnerExit | Kind::KvmEntry | Kind::KvmMsr | Kind::KvmMmio => {
                EventDetail::Thread
            }
            _ if has_reader => EventDetail::Thread,
            _ => EventDetail::Nothing,
        }
    }

    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if context.chosen.counts {
            self.take(event, data, context.thread);
        }
    }
}

impl VcpuTimer {
    /// The guest goes on: the exit that ends is put where it belongs.
    fn enters(&mut self, time: u64) {
        let (set, vector, line) = (
            std::mem::take(&mut self.set),
            self.vector.take(),
            self.line.take(),
        );
        let Some(exit) = self.exit.take() else {
            return;
        };
        let ns = time.saturating_sub(exit.time);
        self.row.exits += 1;
        self.row.halts += u64::from(exit.waiting);
        if exit.interrupt {
            self.row.interrupted.add(ns);
        }
        if set {
            self.setting.add(ns);
        } else if let Some(vector) = vector {
            let sum = self.injected.entry(vector).or_default();
            sum.exits += 1;
            if !exit.waiting {
                sum.taken.add(ns);
            }
        } else if exit.preemption {
            self.preemption.add(ns);
        } else if let Some(line) = line
            && (exit.interrupt || exit.waiting)
        {
            // KVM raises the line again each time that the vCPU is loaded; it expired where the guest was left for it,
            // or where it ended a wait.
            let sum = self.lines.entry(line).or_default();
            sum.interrupts += 1;
            sum.exits += 1;
            if !exit.waiting {
                sum.taken.add(ns);
            }
        } else if exit.host_vector == Some(HOST_TIMER_VECTOR) {
            self.row.host_timer.add(ns);
        }
    }

    fn row(&self) -> TimerRow {
        let mut row = self.row.clone();
        let counted = |vector: u8| {
            let injected = self.injected.get(&vector).map_or(0, |sum| sum.interrupts);
            let accepted = self.accepted.get(&vector).copied().unwrap_or(0);
            injected.max(accepted)
        };
        // Another vector is the timer's if about as many of them came as the timer expired.
        let expiries = self.expired.max(self.preemption.count);
        let fits = |vector: u8| counted(vector) / 2 <= expiries && expiries / 2 <= counted(vector);
        let most = |of: &dyn Fn(u8) -> bool| {
            let vectors = self.injected.keys().chain(self.accepted.keys()).copied();
            vectors
                .filter(|vector| of(*vector))
                .max_by_key(|vector| (counted(*vector), std::cmp::Reverse(*vector)))
        };
        let vector = most(&|vector| TIMER_VECTORS.contains(&vector))
            .or_else(|| most(&|vector| expiries > 0 && fits(vector)));
        let line = self
            .lines
            .iter()
            .max_by_key(|(irq, sum)| (sum.interrupts, std::cmp::Reverse(**irq)));
        let of = if let Some(vector) = vector {
            row.evidence = TimerEvidence::Vector(vector);
            row.interrupts = counted(vector);
            self.injected.get(&vector).copied().unwrap_or_default()
        } else if let Some((irq, sum)) = line {
            row.evidence = TimerEvidence::Line(*irq);
            row.interrupts = sum.interrupts;
            *sum
        } else {
            if self.preemption.count > 0 {
                row.evidence = TimerEvidence::Preemption;
                row.interrupts = self.preemption.count;
            }
            TimerExits::default()
        };
        row.timer_exits = self.setting.count + of.exits + self.preemption.count;
        row.timer = ExitSum {
            count: self.setting.count + of.taken.count + self.preemption.count,
            ns: (self.setting.ns)
                .saturating_add(of.taken.ns)
                .saturating_add(self.preemption.ns),
        };
        row
    }
}
