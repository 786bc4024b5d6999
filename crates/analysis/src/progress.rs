//! Whether each vCPU gets anywhere: the same fault again and again, halts that do not halt, and the end.
//!
//! A guest that makes progress leaves it for different reasons, from different places, and a halt lasts until something
//! wakes it. What does not shows in the exits alone, however little time the exits take.
//!
//! It costs more than 2 ns an event, because it takes each exit, entry, access and switch, which nearly all events
//! of a recording are, and keeps of each exit where the guest was.

use event::{Body, Data, Event, EventType, ExitClass, ExitDetail, ExitReason, Kind, index_of};
use model::{ByThread, Machine, RetiredThreads, ThreadHandle};

use crate::analysis::{Analysis, Context, EventDetail};
use crate::record::{Number, Radix};
use crate::spins::{SpinRun, SpinWatch};

/// A halt that is over so soon, with nothing that woke it, did not halt. KVM makes `kvm_vcpu_wakeup` of each
/// halt in which it polls or sleeps (`kvm_vcpu_halt`, `virt/kvm/kvm_main.c`), so one without it is over at once.
pub const AT_ONCE_NS: u64 = 50_000;
/// Where that event is not recorded: polling finds nothing so soon that has to be sent first.
const UNRECORDED_NS: u64 = 5_000;
/// `KVM_EXIT_*` that end a vCPU (`include/uapi/linux/kvm.h`): shutdown, failed entry, internal error, system event.
const ENDS: [u32; 4] = [8, 9, 17, 24];
/// Errors of `KVM_RUN` that are no end: a signal (`EINTR`), and a vCPU that is not ready (`EAGAIN`).
const NO_FAILURES: [i32; 2] = [4, 11];
/// Exits before the end that are kept.
const BEFORE: usize = 4;

/// Where a vCPU left its guest, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExitPlace {
    /// Why.
    pub reason: Option<ExitReason>,
    /// The guest's address, where it was recorded.
    pub guest_pc: Option<u64>,
    /// The guest's physical address that was not mapped, where it was recorded.
    pub address: Option<u64>,
    /// The fault's error code, where it was recorded.
    pub error_code: Option<u64>,
}

/// Exits of one kind from one place, one behind the other with no other exit between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExitRun {
    /// The exit.
    pub place: ExitPlace,
    /// How many.
    pub count: u64,
    /// From the first one.
    pub from: u64,
    /// To the last one.
    pub to: u64,
}

/// How a vCPU ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VcpuEnd {
    /// When.
    pub time: u64,
    /// `KVM_EXIT_*`, as `kvm_userspace_exit` has it.
    pub user_reason: Option<u32>,
    /// The error of `KVM_RUN`, where that is what ended it.
    pub errno: Option<i32>,
    /// The exits before it, the last one last.
    pub before: Vec<ExitPlace>,
    /// Exits that came after it: a VMM may reset the machine.
    pub later_exits: u64,
}

/// One vCPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgressRow {
    /// Its thread.
    pub tid: i32,
    /// Its first exit or entry.
    pub from: u64,
    /// Its last one.
    pub to: u64,
    /// All exits.
    pub exits: u64,
    /// The longest run of second-stage faults at one place that no device answered.
    pub same_fault: ExitRun,
    /// Halts with an entry behind them.
    pub halts: u64,
    /// Of these, those that were over at once with nothing that woke the vCPU.
    pub halts_at_once: u64,
    /// Of the latter, those before whose entry KVM injected an interrupt.
    pub halts_with_interrupt: u64,
    /// From the halt to the entry, of those that were over at once.
    pub at_once_ns: u64,
    /// When it last had such a halt.
    pub at_once_until: u64,
    /// The longest time in which the host's interrupts found its kernel at one place.
    pub spin: SpinRun,
    /// How it ended, if it did.
    pub end: Option<VcpuEnd>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgressReport {
    /// By thread.
    pub rows: Vec<ProgressRow>,
    /// Whether wake-ups from halts were recorded (`kvm_vcpu_wakeup`).
    pub wakeups: bool,
    /// Whether interrupts that KVM gives to guests were.
    pub interrupts: bool,
}

#[derive(Debug, Clone)]
enum ProgressReader {
    Fault {
        address: Number,
        code: Option<Number>,
    },
    Injected,
    Errno(Number),
}

/// The exit under way.
#[derive(Debug, Clone, Copy, Default)]
struct OpenExit {
    time: u64,
    place: ExitPlace,
    /// A device answered, or the VMM: it is no mere fault.
    answered: bool,
    /// It slept, or was woken: it is no mere halt.
    slept: bool,
    injected: bool,
}

#[derive(Debug, Default)]
struct VcpuWatch {
    row: ProgressRow,
    open: Option<OpenExit>,
    run: ExitRun,
    spin: SpinWatch,
    /// The last exits, in a ring, and how many there were.
    before: [ExitPlace; BEFORE],
    seen: usize,
    /// An error of `KVM_RUN` after which it went on.
    survives: Option<i32>,
}

/// Looks at every vCPU for whether it gets anywhere.
#[derive(Debug, Default)]
pub struct Progress {
    readers: Vec<Option<ProgressReader>>,
    vcpus: ByThread<VcpuWatch>,
    report: ProgressReport,
}

impl Progress {
    /// Returns one that has seen nothing.
    pub fn new() -> Progress {
        Progress::default()
    }

    fn learn(&mut self, ty: &EventType<'_>) -> bool {
        let index = index_of(ty.index);
        if self.readers.len() <= index {
            self.readers.resize_with(index + 1, || None);
        }
        self.readers[index] = match ty.name {
            "kvm_page_fault" => {
                let words = &[("address", Radix::Hex), ("fault_address", Radix::Hex)];
                let code = &[("error_code", Radix::Hex)];
                let code = Number::of(ty, &["error_code"], code);
                Number::of(ty, &["fault_address"], words)
                    .map(|address| ProgressReader::Fault { address, code })
            }
            "kvm_guest_fault" => Number::of(ty, &["ipa"], &[("ipa", Radix::Hex)]).map(|address| {
                ProgressReader::Fault {
                    address,
                    code: None,
                }
            }),
            "kvm_inj_virq" | "kvm_inj_exception" => {
                self.report.interrupts |= ty.recorded;
                Some(ProgressReader::Injected)
            }
            "kvm_userspace_exit" => Number::of(ty, &["errno"], &[]).map(ProgressReader::Errno),
            _ => None,
        };
        self.readers[index].is_some()
    }

    fn watch(&mut self, event: &Event<'_>, thread: ThreadHandle) -> &mut VcpuWatch {
        let (tid, time) = (event.tid, event.time);
        let watch = self.vcpus.entry(thread, VcpuWatch::default);
        if watch.row.exits == 0 && watch.open.is_none() && watch.row.tid == 0 {
            watch.row.tid = tid;
            watch.row.from = time;
        }
        watch.row.to = time;
        watch
    }

    /// Returns what was found.
    pub fn report(&self) -> ProgressReport {
        let mut report = self.report.clone();
        report.rows = (self.vcpus.values())
            .map(|watch| {
                let mut row = watch.row.clone();
                if watch.run.count > row.same_fault.count {
                    row.same_fault = watch.run;
                }
                row.spin = watch.spin.longest();
                row
            })
            .filter(|row| row.exits > 0 || row.end.is_some())
            .collect();
        report.rows.sort_by_key(|row| row.tid);
        report
    }

    #[inline(always)]
    fn take(&mut self, event: &Event<'_>, data: &Data, context: &Context<'_>) {
        let thread = context.thread;
        match data {
            Data::KvmExit(exit) if !exit.inner => {
                // What kvm_page_fault says too: on AMD the exit has it.
                let mut device = false;
                let (address, error_code) = match (exit.detail(), exit.info) {
                    (Some(ExitDetail::NestedFault { gpa, emulated, .. }), Some(info)) => {
                        device = emulated;
                        (Some(gpa), Some(info.info1))
                    }
                    _ => (None, None),
                };
                let place = ExitPlace {
                    reason: Some(exit.reason),
                    guest_pc: exit.guest_pc,
                    address,
                    error_code,
                };
                self.watch(event, thread).exit(event.time, place);
                // Somebody emulates that, whether kvm_mmio is recorded or not.
                if device {
                    self.answered(thread);
                }
            }
            Data::KvmExit(exit) => {
                if let Some(watch) = self.vcpus.get_mut(thread) {
                    watch.spin.exit(event.time, exit.reason, None);
                }
            }
            Data::KvmEntry(_) => {
                let least = match self.report.wakeups {
                    true => AT_ONCE_NS,
                    false => UNRECORDED_NS,
                };
                self.watch(event, thread).entry(event.time, least);
            }
            Data::KvmMmio(_) | Data::KvmPio(_) | Data::KvmMsr(_) | Data::KvmSysAccess(_) => {
                self.answered(thread);
            }
            Data::KvmVcpuWakeup(_) => self.sleeps(Some(thread)),
            Data::SchedSwitch(switch) => self.sleeps(context.handles.find(switch.prev_tid)),
            Data::KvmUserspaceExit(exit) => {
                self.answered(thread);
                let errno = match exit.reason {
                    None => self.errno(event),
                    Some(_) => None,
                };
                let ends = exit.reason.is_some_and(|reason| ENDS.contains(&reason));
                let fails = errno.is_some_and(|errno| !NO_FAILURES.contains(&errno));
                if ends || fails {
                    let watch = self.watch(event, thread);
                    watch.ends(event.time, exit.reason, errno);
                }
            }
            _ => self.take_other(event, thread),
        }
    }

    /// Returns the error with which `KVM_RUN` failed, as a positive number.
    fn errno(&self, event: &Event<'_>) -> Option<i32> {
        if let Body::Text { text, .. } = event.body {
            // "reason error (14)": the kernel prints it positive (`include/trace/events/kvm.h`).
            let (_, rest) = text.split_once("reason error (")?;
            return rest.split(')').next()?.parse().ok();
        }
        let Some(Some(ProgressReader::Errno(errno))) = self.readers.get(index_of(event.ty.index))
        else {
            return None;
        };
        // In the record it is negative, in 32 bits.
        let low = u32::try_from(errno.get(event)? & 0xffff_ffff).ok()?;
        low.cast_signed().checked_neg().filter(|errno| *errno > 0)
    }

    fn take_other(&mut self, event: &Event<'_>, thread: ThreadHandle) {
        let Some(Some(reader)) = self.readers.get(index_of(event.ty.index)) else {
            return;
        };
        let Some(open) = (self.vcpus.get_mut(thread)).and_then(|watch| watch.open.as_mut()) else {
            return;
        };
        match reader {
            ProgressReader::Fault { address, code } => {
                open.place.address = address.get(event);
                open.place.error_code = code.as_ref().and_then(|code| code.get(event));
            }
            ProgressReader::Injected => open.injected = true,
            ProgressReader::Errno(_) => {}
        }
    }

    #[inline]
    fn sleeps(&mut self, thread: Option<ThreadHandle>) {
        let watch = thread.and_then(|thread| self.vcpus.get_mut(thread));
        if let Some(open) = watch.and_then(|watch| watch.open.as_mut()) {
            open.slept = true;
        }
    }

    #[inline]
    fn answered(&mut self, thread: ThreadHandle) {
        if let Some(open) = (self.vcpus.get_mut(thread)).and_then(|watch| watch.open.as_mut()) {
            open.answered = true;
        }
    }
}

impl VcpuWatch {
    fn exit(&mut self, time: u64, place: ExitPlace) {
        // How one without an entry ended is not known.
        if self.open.is_some() {
            self.close_run();
        }
        self.row.exits += 1;
        if let Some(reason) = place.reason {
            self.spin.exit(time, reason, place.guest_pc);
        }
        if let Some(end) = &mut self.row.end {
            end.later_exits += 1;
        }
        self.before[self.seen % BEFORE] = place;
        self.seen = self.seen.wrapping_add(1);
        self.open = Some(OpenExit {
            time,
            place,
            ..OpenExit::default()
        });
        if place
            .reason
            .is_some_and(|reason| reason.class() == ExitClass::End)
        {
            self.ends(time, None, None);
        }
    }

    fn entry(&mut self, time: u64, least_ns: u64) {
        let Some(open) = self.open.take() else {
            return;
        };
        let reason = open.place.reason;
        if reason.is_some_and(ExitReason::is_waiting) {
            self.halt(&open, time, least_ns);
        }
        let fault = reason.is_some_and(|reason| reason.class() == ExitClass::PageFault);
        if !fault || open.answered {
            self.close_run();
            return;
        }
        if self.run.count > 0 && self.run.place == open.place {
            self.run.count += 1;
            self.run.to = time;
        } else {
            self.close_run();
            self.run = ExitRun {
                place: open.place,
                count: 1,
                from: open.time,
                to: time,
            };
        }
    }

    fn halt(&mut self, open: &OpenExit, time: u64, least_ns: u64) {
        let ns = time.saturating_sub(open.time);
        self.row.halts += 1;
        if !open.answered && !open.slept && ns <= least_ns {
            self.row.halts_at_once += 1;
            self.row.at_once_ns = self.row.at_once_ns.saturating_add(ns);
            self.row.halts_with_interrupt += u64::from(open.injected);
            self.row.at_once_until = time;
        }
    }

    #[inline]
    fn close_run(&mut self) {
        if self.run.count == 0 {
            return;
        }
        let run = std::mem::take(&mut self.run);
        if run.count > self.row.same_fault.count {
            self.row.same_fault = run;
        }
    }

    fn ends(&mut self, time: u64, user_reason: Option<u32>, errno: Option<i32>) {
        // A VMM may live on such an error, as those do that map memory when KVM returns EFAULT: one after which the
        // vCPU has gone on before is no end.
        let error = errno.filter(|_| user_reason.is_none());
        if error.is_some() {
            let before = self.row.end.as_ref();
            let lived_on = before.is_some_and(|end| {
                end.later_exits > 0 && end.user_reason.is_none() && end.errno == error
            });
            if lived_on {
                self.survives = error;
                self.row.end = None;
            }
            if self.survives == error {
                return;
            }
        }
        if let Some(end) = &mut self.row.end
            && end.later_exits == 0
        {
            // The exit for it, and the return to the VMM, are one end.
            end.user_reason = end.user_reason.or(user_reason);
            end.errno = end.errno.or(errno);
            return;
        }
        let (later, earlier) = self.before.split_at(self.seen % BEFORE);
        let known = earlier
            .iter()
            .chain(later)
            .filter(|place| place.reason.is_some());
        self.row.end = Some(VcpuEnd {
            time,
            user_reason,
            errno,
            before: known.copied().collect(),
            later_exits: 0,
        });
    }
}

impl Analysis for Progress {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for thread in retired.handles() {
            self.vcpus.remove(thread);
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        let reads = self.learn(ty);
        self.report.wakeups |= ty.kind == Kind::KvmVcpuWakeup && ty.recorded;
        match ty.kind {
            Kind::KvmExit
            | Kind::KvmInnerExit
            | Kind::KvmEntry
            | Kind::KvmMmio
            | Kind::KvmPio
            | Kind::KvmMsr
            | Kind::KvmSysAccess
            | Kind::KvmVcpuWakeup
            | Kind::KvmUserspaceExit
            | Kind::SchedSwitch => EventDetail::Thread,
            _ if reads => EventDetail::Thread,
            _ => EventDetail::Nothing,
        }
    }

    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if context.chosen.counts && event.tid >= 0 {
            self.take(event, data, context);
        }
    }
}
