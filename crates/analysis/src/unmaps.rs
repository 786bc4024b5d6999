//! Who takes memory away from guests: calls of KVM's MMU notifiers, by the task on whose behalf they were made.
//!
//! `kvm_unmap_hva_range` (before 5.3 `kvm_unmap_hva`) is a range of the VMM's memory that the host unmaps: reclaim and
//! swap, the balloon, KSM, NUMA balancing, khugepaged, a migration of pages, or the VMM itself. `kvm_age_hva` asks
//! whether a page was used, as reclaim does before it takes it (`include/trace/events/kvm.h`).

use event::{Data, Event, EventType};
use model::{ByNumber, Machine, NamedRole, RetiredThreads};

use crate::analysis::{Analysis, Context, EventDetail, Needs, WalkState};

/// Tasks that are listed.
const LISTED: usize = 8;

/// A task that had memory of guests unmapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnmapRow {
    /// Its thread id.
    pub tid: i32,
    /// Its name, if known.
    pub comm: Option<String>,
    /// Ranges that were unmapped.
    pub unmapped: u64,
    /// How much memory they are of; 0 where kernels before 5.3 say a page each.
    pub unmapped_bytes: u64,
    /// Pages that were asked for whether they were used.
    pub aged: u64,
    /// Whether it is a thread of the kernel's own, as far as its name says.
    pub is_kernel: bool,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnmapsReport {
    /// Those with most unmapped ranges, most first.
    pub rows: Vec<UnmapRow>,
    /// Ranges that were unmapped, by whomever.
    pub unmapped: u64,
    /// Pages that were asked for.
    pub aged: u64,
    /// Whether unmapped ranges were recorded.
    pub recorded: bool,
}

/// Which of the notifiers a kind of events is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotifierCall {
    Unmap,
    Age,
}

/// Counts calls of KVM's MMU notifiers.
#[derive(Debug, Default)]
pub struct Unmaps {
    kinds: Vec<Option<NotifierCall>>,
    /// By thread; names are given at the end.
    by_tid: ByNumber<UnmapRow>,
    /// Of threads that are not kept apart any more.
    others: UnmapRow,
    recorded: bool,
}

impl Unmaps {
    /// Returns a counter that has seen nothing.
    pub fn new() -> Unmaps {
        Unmaps::default()
    }

    /// Returns what was counted.
    pub fn report(&self, walked: &WalkState<'_>) -> UnmapsReport {
        let threads = walked.machine.threads();
        let mut rows: Vec<UnmapRow> = (self.by_tid.values())
            .map(|row| {
                let thread = threads.get(row.tid);
                let comm = thread.and_then(|thread| thread.comm.as_deref().map(str::to_owned));
                let role = comm.as_deref().map(NamedRole::from);
                UnmapRow {
                    is_kernel: matches!(role, Some(NamedRole::Kernel | NamedRole::Kworker(_))),
                    comm,
                    ..row.clone()
                }
            })
            .collect();
        rows.sort_by_key(|row| (std::cmp::Reverse((row.unmapped, row.aged)), row.tid));
        let sum = |of: fn(&UnmapRow) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
        let (unmapped, aged) = (sum(|row| row.unmapped), sum(|row| row.aged));
        let unmapped = unmapped.saturating_add(self.others.unmapped);
        let aged = aged.saturating_add(self.others.aged);
        rows.truncate(LISTED);
        UnmapsReport {
            rows,
            unmapped,
            aged,
            recorded: self.recorded,
        }
    }
}

impl Unmaps {
    fn take(&mut self, event: &Event<'_>, bytes: u64, context: &mut Context<'_>) {
        let call = self.kinds.get(event::index_of(event.ty.index)).copied();
        let Some(Some(call)) = call.filter(|_| context.chosen.inside) else {
            return;
        };
        if let Some(comm) = event.comm {
            // Texts have names beside their events.
            context.machine.called(event.tid, comm);
        }
        let row = self.by_tid.entry(event.tid, || UnmapRow {
            tid: event.tid,
            ..UnmapRow::default()
        });
        match call {
            NotifierCall::Unmap => {
                row.unmapped += 1;
                row.unmapped_bytes = row.unmapped_bytes.saturating_add(bytes);
            }
            NotifierCall::Age => row.aged += 1,
        }
    }
}

impl Analysis for Unmaps {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for row in retired.tids().filter_map(|tid| self.by_tid.remove(tid)) {
            self.others.unmapped = self.others.unmapped.saturating_add(row.unmapped);
            self.others.aged = self.others.aged.saturating_add(row.aged);
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        let index = event::index_of(ty.index);
        if self.kinds.len() <= index {
            self.kinds.resize(index + 1, None);
        }
        let call = match ty.name {
            "kvm_unmap_hva_range" | "kvm_unmap_hva" => Some(NotifierCall::Unmap),
            "kvm_age_hva" => Some(NotifierCall::Age),
            _ => None,
        };
        self.recorded |= call == Some(NotifierCall::Unmap) && ty.recorded;
        self.kinds[index] = call;
        match call {
            Some(NotifierCall::Unmap) => EventDetail::Thread,
            Some(NotifierCall::Age) => EventDetail::Head,
            None => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        let bytes = match data {
            Data::KvmUnmapHvaRange(range) => range.bytes(),
            _ => 0,
        };
        self.take(event, bytes, context);
    }

    fn head(&mut self, event: &Event<'_>, context: &mut Context<'_>) {
        self.take(event, 0, context);
    }
}
