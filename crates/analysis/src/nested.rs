//! Exits of guests that run guests of their own: the inner guest's exits by their reasons, and what the guest's
//! hypervisor leaves its own guest mode for until it runs the inner guest again.
//!
//! `kvm_nested_vmexit` comes within each exit in which the processor left the inner guest, whoever handles that
//! (`nested_vmx_reflect_vmexit` in `arch/x86/kvm/vmx/nested.c`, `svm_handle_exit` in `arch/x86/kvm/svm/svm.c`). An exit
//! without it left the guest's hypervisor. Those between an exit of the inner guest and the instruction that enters it
//! again are the hypervisor's work for that exit; once it halts they are no more.

use event::{Body, Data, Event, EventType, ExitReason, Isa, Kind, index_of};
use model::{ByThread, Machine, RetiredThreads, ThreadHandle};

use crate::analysis::{Analysis, Context, EventDetail};
use crate::faults::ExitSum;
use crate::record::{Number, Radix};

/// `KVM_ISA_SVM` (`arch/x86/include/asm/kvm_host.h` and `trace.h`).
const ISA_SVM: u64 = 2;
/// Reasons that are counted apart; what is beyond is counted in the sum alone.
const MOST_REASONS: usize = 64;
/// VMLAUNCH and VMRESUME; vmrun.
const VMX_ENTERS: [u32; 2] = [20, 24];
const SVM_ENTERS: [u32; 1] = [0x80];

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NestedExitsReport {
    /// Whether exits of inner guests were recorded.
    pub recorded: bool,
    /// Exits of inner guests.
    pub inner: ExitSum,
    /// The same by reason, most time first.
    pub reasons: Vec<(String, ExitSum)>,
    /// Exits of guests' hypervisors between an exit of an inner guest and its next entry, those for virtualization
    /// instructions included, waits left out.
    pub between: ExitSum,
}

#[derive(Debug, Default)]
struct NestedVcpu {
    /// The exit under way, and the reason of the inner guest's exit that it is, if it is one.
    open: Option<(u64, ExitReason)>,
    inner: Option<String>,
    /// Whether the guest's hypervisor works for an exit of its guest.
    works: bool,
}

/// Counts them.
#[derive(Debug, Default)]
pub struct NestedExits {
    /// By kind of event: reason and instruction set of `kvm_nested_vmexit`.
    kinds: Vec<Option<(Option<Number>, Option<Number>)>>,
    vcpus: ByThread<NestedVcpu>,
    report: NestedExitsReport,
}

impl NestedExits {
    /// Returns one that has seen nothing.
    pub fn new() -> NestedExits {
        NestedExits::default()
    }

    /// Returns what was found.
    pub fn report(&self) -> NestedExitsReport {
        let mut report = self.report.clone();
        report
            .reasons
            .sort_by(|(a, x), (b, y)| y.ns.cmp(&x.ns).then_with(|| a.cmp(b)));
        report
    }

    fn learn(&mut self, ty: &EventType<'_>) -> bool {
        let index = index_of(ty.index);
        if self.kinds.len() <= index {
            self.kinds.resize_with(index + 1, || None);
        }
        self.kinds[index] = (ty.name == "kvm_nested_vmexit").then(|| {
            (
                Number::of(ty, &["exit_reason", "exit_code"], &[]),
                Number::of(ty, &["isa"], &[("isa", Radix::Any)]),
            )
        });
        let is = self.kinds[index].is_some();
        self.report.recorded |= is && ty.recorded;
        is
    }

    #[inline(always)]
    fn take(&mut self, event: &Event<'_>, data: &Data, thread: ThreadHandle) {
        match data {
            Data::KvmExit(exit) if !exit.inner => {
                let vcpu = self.vcpus.entry(thread, NestedVcpu::default);
                vcpu.open = Some((event.time, exit.reason));
                vcpu.inner = None;
            }
            Data::KvmEntry(_) => self.entered(event, thread),
            _ => {
                let Some(Some(kind)) = self.kinds.get(index_of(event.ty.index)) else {
                    return;
                };
                self.report.recorded = true;
                let name = reason(event, kind);
                if let Some(vcpu) = self.vcpus.get_mut(thread)
                    && vcpu.open.is_some()
                {
                    vcpu.inner = Some(name);
                }
            }
        }
    }

    fn entered(&mut self, event: &Event<'_>, thread: ThreadHandle) {
        let Some(vcpu) = self.vcpus.get_mut(thread) else {
            return;
        };
        let Some((since, reason)) = vcpu.open.take() else {
            return;
        };
        let ns = event.time.saturating_sub(since);
        if let Some(name) = vcpu.inner.take() {
            vcpu.works = true;
            // What the inner guest waits for is no work.
            if !reason.is_waiting() {
                self.report.inner.add(ns);
                self.count(name, ns);
            }
            return;
        }
        if !vcpu.works {
            return;
        }
        if reason.is_waiting() {
            vcpu.works = false;
            return;
        }
        let enters = reason.is_of(Isa::Vmx, &VMX_ENTERS) || reason.is_of(Isa::Svm, &SVM_ENTERS);
        vcpu.works = !enters;
        self.report.between.add(ns);
    }

    fn count(&mut self, name: String, ns: u64) {
        let reasons = &mut self.report.reasons;
        let known = reasons.iter().position(|(known, _)| *known == name);
        if known.is_none() && reasons.len() >= MOST_REASONS {
            return;
        }
        let place = known.unwrap_or_else(|| {
            reasons.push((name, ExitSum::default()));
            reasons.len() - 1
        });
        reasons[place].1.add(ns);
    }
}

/// Returns what the reason of an inner guest's exit is called.
fn reason(event: &Event<'_>, (number, isa): &(Option<Number>, Option<Number>)) -> String {
    match &event.body {
        Body::Text { text, .. } => {
            let behind = text.find("reason").map(|at| &text[at + "reason".len()..]);
            let words = behind.unwrap_or_default();
            let name = words.trim_start_matches([':', '=', ' ']);
            let name = name.split_whitespace().next().unwrap_or("unknown");
            name.chars().take(40).collect()
        }
        _ => {
            let get = |number: &Option<Number>| number.as_ref().and_then(|one| one.get(event));
            let isa = match get(isa) {
                Some(ISA_SVM) => Isa::Svm,
                _ => Isa::Vmx,
            };
            let number = get(number);
            let reason = number.map(|number| ExitReason::of_number(isa, number));
            match reason.and_then(ExitReason::name) {
                Some(name) => name.to_owned(),
                None => number.map_or("unknown".to_owned(), |number| format!("{number:#x}")),
            }
        }
    }
}

impl Analysis for NestedExits {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for thread in retired.handles() {
            self.vcpus.remove(thread);
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        let is_inner = self.learn(ty);
        match ty.kind {
            Kind::KvmExit | Kind::KvmEntry => EventDetail::Thread,
            _ if is_inner => EventDetail::Thread,
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
