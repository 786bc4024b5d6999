//! What exits and entries tell beside `analysis::Exits`: those that have no other half, by thread, and virtio's
//! notifications that KVM takes itself (`kvm_fast_mmio`), from the write to the entry.

use analysis::{Analysis, Context, EventDetail, Needs, States};
use event::{Data, Event, EventType, FieldReader, FieldScalar, Isa, Kind};
use rustc_hash::FxHashMap;
use stats::Stats;

const FAST_MMIO: &str = "kvm_fast_mmio";

#[derive(Debug, Default)]
struct EntryOwner {
    /// Whether it was seen entering its guest, and whether an exit has not been followed by an entry.
    known: bool,
    open: bool,
    before_first_entry: u64,
    without_entry: u64,
    /// The notification under way: since when, and where.
    begun: Option<(u64, u64)>,
}

/// Counts them.
#[derive(Debug, Default)]
pub(super) struct Entries {
    of: FxHashMap<i32, EntryOwner>,
    rows: FxHashMap<(i32, u64), (Stats, u64)>,
    gpa: Option<FieldReader>,
}

impl Entries {
    /// Returns how many exits of a thread came before its first entry, and how many no entry followed.
    pub(super) fn unpaired(&self, tid: i32) -> (u64, u64) {
        let of = self.of.get(&tid);
        of.map_or((0, 0), |of| (of.before_first_entry, of.without_entry))
    }

    /// Returns the notifications: thread, address, how long they took, and how many the VMM had.
    pub(super) fn notifications(&self) -> impl Iterator<Item = (i32, u64, &Stats, u64)> {
        let rows = self.rows.iter();
        rows.map(|((tid, gpa), (stats, user))| (*tid, *gpa, stats, *user))
    }
}

impl Analysis for Entries {
    fn needs(&self) -> Needs {
        Needs {
            states: States::All,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind {
            Kind::KvmExit | Kind::KvmEntry => EventDetail::Thread,
            _ if ty.name == FAST_MMIO => {
                self.gpa = Some(FieldReader::of(ty, "gpa"));
                EventDetail::Thread
            }
            _ => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        let tid = event.tid;
        match data {
            Data::KvmExit(exit) => {
                let of = self.of.entry(tid).or_default();
                if !of.known && matches!(exit.reason.isa, Isa::Vmx | Isa::Svm) {
                    of.before_first_entry += 1;
                    return;
                }
                of.known = true;
                of.without_entry += u64::from(of.open);
                of.open = true;
            }
            Data::KvmEntry(_) => {
                let of = self.of.entry(tid).or_default();
                of.known = true;
                of.open = false;
                if let Some((at, gpa)) = of.begun.take() {
                    let machine = &mut *context.machine;
                    let vmm = machine.vcpu_of(tid).is_some_and(|v| machine.in_vmm(v));
                    let row = self.rows.entry((tid, gpa)).or_default();
                    row.0.add(event.time.saturating_sub(at));
                    row.1 += u64::from(vmm);
                }
            }
            _ => {
                let gpa = self.gpa.as_ref().and_then(|gpa| gpa.get(event, data));
                if let Some(FieldScalar::Number(gpa)) = gpa
                    && let Some(of) = self.of.get_mut(&tid)
                    && of.known
                {
                    of.begun = Some((event.time, gpa));
                }
            }
        }
    }
}
