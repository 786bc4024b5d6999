//! The interrupts that guests get, by vCPU and vector (x86) or INTID (arm64).
//!
//! `kvm_apic_accept_irq` says that a vCPU's local APIC took an interrupt, by the number of the vCPU and not by its VM:
//! it is the VM of the thread that brought it, or the only VM with a vCPU of that number. With APICv or AVIC
//! `kvm_apicv_accept_irq` of the same thread follows, and the processor takes it from there; else `kvm_inj_virq` on the
//! vCPU's own thread puts it into the guest, once more where that was interrupted (`__apic_accept_irq`,
//! `arch/x86/kvm/lapic.c`; `arch/x86/kvm/trace.h`).

mod cell;
mod gic;
mod row;

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

use doubts::{Concern, Concerns, DoubtKind, Doubts};
use event::{Data, Event, EventType, FieldReader, NONE};
use model::{Machine, RetiredThreads, Vm};
use rustc_hash::FxHashMap;

use crate::analysis::{
    AccountScope, AccountedEvents, Analysis, Context, EventAccount, EventDetail, FilterScope,
    Needs, WalkState,
};
use crate::guests::{GuestIrqs, IrqGuest};
use crate::series::{PartCounts, SliceMeasure};
use crate::slices::Amount;

pub use cell::IrqColumn;
pub use row::{GicIrq, IrqPlace, IrqRow};

use cell::CountedIrq;
use gic::GicSender;
use row::IrqCounts;

/// The interrupts of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IrqsReport {
    /// Rows, most interrupts first.
    pub rows: Vec<IrqRow>,
    /// Accepted interrupts for which the recording does not show whose vCPU they were for.
    pub unresolved: u64,
    /// Interrupts of more threads and vectors than are kept.
    pub beyond: u64,
    /// Whether the recording has `kvm_apic_accept_irq` or `kvm_inj_virq`.
    pub recorded: bool,
    /// How many of the rows are what the host's recording says; the others, behind them, only a guest's does.
    pub of_host: usize,
    /// Runs of guests' handlers that are in no row; `None` where there are no guests' recordings.
    pub unplaced: Option<u64>,
    /// Runs of guests' handlers before and behind what the host's recording has of their vCPUs: they are in no row
    /// either.
    pub outside: Option<u64>,
}

impl IrqsReport {
    /// Returns what two recordings are compared by: the interrupts of each vector, on all vCPUs.
    pub fn counts(&self) -> Option<PartCounts> {
        let accepted = self.rows.iter().any(|row| row.accepted.is_some());
        let gic = self.rows.iter().any(|row| row.gic.is_some());
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for row in &self.rows {
            let count = if accepted { row.accepted } else { row.injected };
            if let Some((vector, count)) = row.vector.zip(count) {
                *counts.entry(vector_name(vector)).or_default() += count;
            }
            if let Some(gic) = row.gic {
                *counts.entry(intid_name(gic.intid)).or_default() += gic.raised;
            }
        }
        self.recorded.then_some(PartCounts {
            part: PART,
            of: match (gic, accepted) {
                (true, _) => "raised interrupts",
                (_, true) => "accepted interrupts",
                (_, false) => "injected interrupts",
            },
            counts,
        })
    }

    /// Adds what guests did with the interrupts. Rows that only a guest's recording shows come last.
    pub fn with_guests(&mut self, guests: &GuestIrqs, walked: &WalkState<'_>) {
        let vms = walked.machine.vms();
        let owners = owners(&vms);
        self.unplaced = Some(guests.unplaced());
        let mut places: FxHashMap<(i32, Option<u8>), usize> = FxHashMap::default();
        let known = self.rows.iter().enumerate();
        let known = known.filter(|(_, row)| row.gic.is_none());
        places.extend(known.map(|(at, row)| ((row.tid, row.vector), at)));
        let mut more = Vec::new();
        let tids = guests.tids().iter().copied();
        let tids: BTreeSet<i32> = tids.filter(|tid| !walked.left_out.has(*tid)).collect();
        self.outside = Some(
            tids.iter()
                .map(|tid| guests.outside(*tid))
                .fold(0, u64::saturating_add),
        );
        for row in self.rows.iter_mut().filter(|row| tids.contains(&row.tid)) {
            row.guest = Some(IrqGuest::default());
        }
        for tid in tids {
            let owner = owners.get(&tid);
            for (vector, found) in guests.of_vcpu(tid) {
                match places.get(&(tid, vector)) {
                    Some(at) => self.rows[*at].guest = Some(found),
                    None => more.push(IrqRow {
                        vm: owner.map(|(vm, _)| *vm),
                        vcpu: owner.map(|(_, vcpu)| *vcpu),
                        tid,
                        vector,
                        guest: Some(found),
                        ..IrqRow::default()
                    }),
                }
            }
        }
        more.sort_by_key(|row| (row.vm, row.vcpu, row.tid, row.vector.is_none(), row.vector));
        self.of_host = self.rows.len();
        self.rows.append(&mut more);
    }
}

/// Returns the place of each vCPU's VM, and its number, by its thread.
fn owners(vms: &[Vm]) -> FxHashMap<i32, (usize, u32)> {
    let mut owners = FxHashMap::default();
    for (at, vm) in vms.iter().enumerate() {
        owners.extend(vm.vcpus.iter().map(|vcpu| (vcpu.tid, (at, vcpu.id))));
    }
    owners
}

/// What the fields of a kind of events are read by.
#[derive(Debug)]
enum IrqFields {
    Accept {
        vector: FieldReader,
        number: FieldReader,
        mode: FieldReader,
    },
    Posted,
    Gic {
        number: FieldReader,
        intid: FieldReader,
        level: FieldReader,
    },
    Inject {
        vector: FieldReader,
        soft: FieldReader,
        repeated: FieldReader,
    },
}

/// Who brought an interrupt, and for which vCPU's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct IrqSender {
    tid: i32,
    pid: i32,
    number: u32,
    vector: u8,
}

/// Sums that are kept of either kind; a host has fewer, and only a damaged recording shows more.
const MAX_SUMS: usize = 1 << 16;

/// Returns the sums of a key, unless there are too many.
fn sums<K: Eq + Hash>(all: &mut FxHashMap<K, IrqCounts>, key: K) -> Option<&mut IrqCounts> {
    if all.len() >= MAX_SUMS && !all.contains_key(&key) {
        return None;
    }
    Some(all.entry(key).or_default())
}

/// Counts interrupts.
#[derive(Debug, Default)]
pub struct Irqs {
    kinds: FxHashMap<u32, IrqFields>,
    accepted: FxHashMap<IrqSender, IrqCounts>,
    /// What each thread brought last, which may be posted next.
    last: FxHashMap<i32, IrqSender>,
    injected: FxHashMap<(i32, u8), IrqCounts>,
    /// Raised, and lowered as what is special.
    gic: FxHashMap<GicSender, IrqCounts>,
    /// Interrupts beyond what is kept.
    beyond: u64,
    /// Events that are of no interrupt with a vector, as NMIs, or that say nothing which can be read.
    aside: u64,
    /// The types of events that are looked at, which the recording has.
    recorded: Vec<u32>,
    accepts: bool,
    posts: bool,
    injections: bool,
    pending: bool,
    /// What an event was counted as, until somebody asks.
    counted: Option<(IrqColumn, CountedIrq)>,
    /// Accepted and injected interrupts by vector, for slices of time.
    by_vector: BTreeMap<(IrqCount, u32), u64>,
    /// What was found, once the walk has ended.
    found: OnceCell<IrqsReport>,
}

/// What of an interrupt is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum IrqCount {
    Accepted,
    Injected,
    Raised,
}

/// The part of a picture that interrupts are.
const PART: &str = "irqs";

/// Returns what a vector's interrupts are called where two recordings are compared.
fn vector_name(vector: u8) -> String {
    format!("{vector:#04x}")
}

/// The same of an INTID.
fn intid_name(intid: u32) -> String {
    format!("INTID {intid}")
}

impl Irqs {
    /// Returns a counter that has seen nothing.
    pub fn new() -> Irqs {
        Irqs::default()
    }

    fn take(&mut self, event: &Event<'_>, data: &Data) {
        let number = |reader: &FieldReader| reader.number(event, data);
        match self.kinds.get(&event.ty.index) {
            Some(IrqFields::Accept {
                vector,
                number: vcpu,
                mode,
            }) => {
                // Fixed and lowest priority have a vector; NMI, INIT and the like are no interrupts of a device.
                let vector = number(vector).filter(|_| number(mode).is_none_or(|mode| mode <= 1));
                let vector = vector.and_then(|vector| u8::try_from(vector).ok());
                let vcpu = number(vcpu).and_then(|vcpu| u32::try_from(vcpu).ok());
                let Some((vector, number)) = vector.zip(vcpu) else {
                    self.last.remove(&event.tid);
                    self.aside += 1;
                    return;
                };
                let brought = IrqSender {
                    tid: event.tid,
                    pid: event.pid,
                    number,
                    vector,
                };
                self.accepts = true;
                *self
                    .by_vector
                    .entry((IrqCount::Accepted, vector.into()))
                    .or_default() += 1;
                match sums(&mut self.accepted, brought) {
                    Some(sums) => {
                        sums.count += 1;
                        self.last.insert(event.tid, brought);
                        self.counted = Some((IrqColumn::Accepted, CountedIrq::Brought(brought)));
                    }
                    None => self.beyond += 1,
                }
            }
            Some(IrqFields::Posted) => {
                self.posts = true;
                let last = self.last.remove(&event.tid);
                match last.and_then(|last| Some((last, self.accepted.get_mut(&last)?))) {
                    Some((last, sums)) => {
                        sums.special += 1;
                        self.counted = Some((IrqColumn::Posted, CountedIrq::Brought(last)));
                    }
                    None => self.aside += 1,
                }
            }
            Some(IrqFields::Inject {
                vector,
                soft,
                repeated,
            }) => {
                // INT n of the guest's own is none.
                let vector = number(vector).filter(|_| number(soft).unwrap_or(0) == 0);
                let Some(vector) = vector.and_then(|vector| u8::try_from(vector).ok()) else {
                    self.aside += 1;
                    return;
                };
                self.injections = true;
                let again = number(repeated).unwrap_or(0) != 0;
                if !again {
                    *self
                        .by_vector
                        .entry((IrqCount::Injected, vector.into()))
                        .or_default() += 1;
                }
                let Some(sums) = sums(&mut self.injected, (event.tid, vector)) else {
                    self.beyond += 1;
                    return;
                };
                let column = match again {
                    true => IrqColumn::Repeated,
                    false => IrqColumn::Injected,
                };
                sums.add_one(again);
                self.counted = Some((column, CountedIrq::Injected(event.tid, vector)));
            }
            Some(IrqFields::Gic {
                number: vcpu,
                intid,
                level,
            }) => {
                let intid = number(intid).and_then(|intid| u32::try_from(intid).ok());
                let vcpu = number(vcpu).and_then(|vcpu| u32::try_from(vcpu).ok());
                let raised = number(level).is_some_and(|level| level != 0);
                match intid {
                    Some(intid) => self.line(GicSender::of(event, vcpu, intid), intid, raised),
                    None => self.aside += 1,
                }
            }
            None => {}
        }
    }

    /// The line of an interrupt of arm64 is raised or lowered.
    fn line(&mut self, sender: GicSender, intid: u32, raised: bool) {
        self.pending = true;
        if raised {
            let slices = self.by_vector.entry((IrqCount::Raised, intid));
            *slices.or_default() += 1;
        }
        let Some(sums) = sums(&mut self.gic, sender) else {
            self.beyond += 1;
            return;
        };
        let column = match raised {
            true => IrqColumn::Raised,
            false => IrqColumn::Lowered,
        };
        sums.add_one(!raised);
        self.counted = Some((column, CountedIrq::Line(sender)));
    }

    /// Returns the sums of a walk that has ended, of the vCPUs that are not left out.
    pub fn report(&self, walked: &WalkState<'_>) -> IrqsReport {
        self.found(walked).clone()
    }

    fn found(&self, walked: &WalkState<'_>) -> &IrqsReport {
        self.found.get_or_init(|| self.sums(walked))
    }

    /// Returns what two recordings are compared by: what is injected are accepted interrupts, and with APICv there are
    /// none.
    fn compared(&self) -> IrqCount {
        match (self.pending, self.accepts) {
            (true, _) => IrqCount::Raised,
            (_, true) => IrqCount::Accepted,
            (_, false) => IrqCount::Injected,
        }
    }

    fn sums(&self, walked: &WalkState<'_>) -> IrqsReport {
        let vms = walked.machine.vms();
        let owners = owners(&vms);
        // Accepted and injected, by thread and vector.
        let mut rows: BTreeMap<(i32, u8), (IrqCounts, IrqCounts)> = BTreeMap::new();
        let mut unresolved: FxHashMap<(u32, u8), u64> = FxHashMap::default();
        for (brought, sums) in &self.accepted {
            match target(&vms, brought) {
                Some(tid) => rows.entry((tid, brought.vector)).or_default().0.add(*sums),
                None => {
                    let key = (brought.number, brought.vector);
                    *unresolved.entry(key).or_default() += sums.count;
                }
            }
        }
        for (key, sums) in &self.injected {
            rows.entry(*key).or_default().1.add(*sums);
        }
        let rows = rows.into_iter();
        let rows = rows.filter(|((tid, _), _)| !walked.left_out.has(*tid));
        let rows = rows.map(|((tid, vector), (accepted, injected))| {
            let owner = owners.get(&tid);
            let vcpu = owner.map(|(_, vcpu)| *vcpu);
            let resolved = vcpu.is_none_or(|vcpu| !unresolved.contains_key(&(vcpu, vector)));
            IrqRow {
                vm: owner.map(|(vm, _)| *vm),
                vcpu,
                tid,
                vector: Some(vector),
                accepted: (self.accepts && resolved).then_some(accepted.count),
                posted: (self.posts && resolved).then_some(accepted.special),
                injected: self.injections.then_some(injected.count),
                repeated: self.injections.then_some(injected.special),
                ..IrqRow::default()
            }
        });
        let mut rows: Vec<IrqRow> = rows.collect();
        let (gic, not_placed) = gic::rows(&self.gic, &vms, walked);
        rows.extend(gic);
        let raised = |row: &IrqRow| row.gic.map(|gic| gic.raised);
        rows.sort_by_key(|row| Reverse(row.accepted.max(row.injected).max(raised(row))));
        IrqsReport {
            of_host: rows.len(),
            rows,
            unresolved: unresolved.values().copied().fold(0u64, u64::saturating_add) + not_placed,
            beyond: self.beyond,
            recorded: self.accepts || self.injections || self.pending,
            unplaced: None,
            outside: None,
        }
    }
}

/// Returns the thread of the vCPU that an interrupt was for.
fn target(vms: &[Vm], brought: &IrqSender) -> Option<i32> {
    let vcpu = |vm: &Vm| {
        let vcpu = vm.vcpus.iter().find(|vcpu| vcpu.id == brought.number)?;
        Some(vcpu.tid)
    };
    let brings = |vm: &&Vm| vm.is_of(brought.tid) || (brought.pid != NONE && vm.is_of(brought.pid));
    if let Some(vm) = vms.iter().find(brings) {
        return vcpu(vm);
    }
    let mut all = vms.iter().filter_map(vcpu);
    let only = all.next()?;
    all.next().is_none().then_some(only)
}

impl Analysis for Irqs {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for tid in retired.tids() {
            self.last.remove(&tid);
        }
    }

    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Whole)
    }

    fn concerns(&self) -> Concerns {
        Concerns::of(&[Concern::Interrupts, Concern::Vms])
    }

    fn doubts(&self, walked: &WalkState<'_>, doubts: &mut Doubts) {
        let report = self.found(walked);
        if report.unresolved > 0 {
            doubts.raise(DoubtKind::InterruptsUnresolved {
                interrupts: report.unresolved,
            });
        }
        if report.beyond > 0 {
            doubts.raise(DoubtKind::InterruptsBeyond {
                interrupts: report.beyond,
            });
        }
    }

    fn counted(&self, _: &WalkState<'_>) -> Vec<EventAccount> {
        let of_x86 = self.accepted.values().chain(self.injected.values());
        let in_sums = of_x86.chain(self.gic.values()).fold(0u64, |sum, one| {
            sum.saturating_add(one.count).saturating_add(one.special)
        });
        vec![EventAccount {
            which: AccountedEvents::Types(self.recorded.clone()),
            name: "of interrupts",
            of: AccountScope::Inside,
            events: in_sums
                .saturating_add(self.beyond)
                .saturating_add(self.aside),
        }]
    }

    fn counters(&self, _walked: &WalkState<'_>, tell: &mut dyn FnMut(u8, u32, Amount)) {
        for ((what, vector), count) in &self.by_vector {
            let amount = Amount {
                count: *count,
                ns: 0,
            };
            tell(*what as u8, *vector, amount);
        }
    }

    fn measured(&self, part: u8, number: u32, _walked: &WalkState<'_>) -> Option<SliceMeasure> {
        let counted = part == self.compared() as u8;
        if !counted {
            return None;
        }
        let name = match self.compared() {
            IrqCount::Raised => intid_name(number),
            _ => vector_name(u8::try_from(number).ok()?),
        };
        Some(SliceMeasure::Part(PART, name))
    }

    fn needs(&self) -> Needs {
        Needs {
            vcpus: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        if !matches!(ty.system, "" | "kvm") {
            return EventDetail::Nothing;
        }
        let field = |name: &str| FieldReader::of(ty, name);
        let says = match ty.name {
            "kvm_apic_accept_irq" => {
                self.accepts |= ty.recorded;
                IrqFields::Accept {
                    vector: field("vector"),
                    number: field("apicid"),
                    mode: field("mode"),
                }
            }
            "kvm_apicv_accept_irq" => {
                self.posts |= ty.recorded;
                IrqFields::Posted
            }
            "kvm_inj_virq" => {
                self.injections |= ty.recorded;
                IrqFields::Inject {
                    vector: field("vector"),
                    soft: field("soft"),
                    repeated: field("reinjected"),
                }
            }
            "vgic_update_irq_pending" => {
                self.pending |= ty.recorded;
                IrqFields::Gic {
                    number: field("vcpu"),
                    intid: field("irq"),
                    level: field("level"),
                }
            }
            _ => return EventDetail::Nothing,
        };
        if ty.recorded && ty.machine == 0 {
            self.recorded.push(ty.index);
        }
        self.kinds.insert(ty.index, says);
        EventDetail::Thread
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        // Whose vCPU it is for is known at the end: who brought it may be anybody.
        if context.chosen.inside {
            self.take(event, data);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Vcpu;

    use super::*;

    fn vm(pid: i32, tids: [i32; 2]) -> Vm {
        let vcpus = tids
            .into_iter()
            .zip(0..)
            .map(|(tid, id)| Vcpu { id, tid, thread: 0 });
        Vm {
            pid: Some(pid),
            name: None,
            process: None,
            uuid: None,
            vcpus: vcpus.collect(),
            helpers: vec![pid + 50],
            guessed: false,
            presumed: false,
        }
    }

    #[test]
    fn interrupts_are_given_to_nobody_by_guess() {
        let vms = [vm(100, [101, 102]), vm(200, [201, 202])];
        let brought = |tid, pid, number| IrqSender {
            tid,
            pid,
            number,
            vector: 36,
        };
        let target = |vms: &[Vm], one| target(vms, &one);
        // A vCPU of the VM, a thread of its process, its vhost worker.
        assert_eq!(target(&vms, brought(202, 200, 0)), Some(201));
        assert_eq!(target(&vms, brought(299, 200, 1)), Some(202));
        assert_eq!(target(&vms, brought(150, NONE, 1)), Some(102));
        // Somebody else: only where one VM has a vCPU of that number.
        assert_eq!(target(&vms, brought(7, 7, 0)), None);
        assert_eq!(target(&vms[1..], brought(7, 7, 0)), Some(201));
        // A VM's own thread brings nothing to another VM.
        assert_eq!(target(&vms, brought(202, 200, 5)), None);
    }
}
