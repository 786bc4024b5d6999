//! What the statistics of exits ask of a walk, and what they take of it.

use doubts::{Concern, Concerns, Doubts};
use event::{Data, Event, EventType, Kind, Side, index_of};
use model::{Machine, RetiredThreads};

use super::rows::make_row;
use super::{ExitTable, Exits, IOPORT, MAX_EXIT_ROWS, MMIO, MSR, RowSplit};
use crate::analysis::{
    Analysis, Context, EventAccount, EventDetail, FilterScope, GuestEvent, Needs, States, WalkState,
};
use crate::series::SliceMeasure;
use crate::slices::Amount;

impl Analysis for Exits {
    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Window)
    }

    fn concerns(&self) -> Concerns {
        let mut concerns = Concerns::of(&[Concern::Exits, Concern::Names]);
        if self.options.split {
            concerns = concerns.with(Concern::States);
        }
        let RowSplit { vm, vcpu, .. } = self.options.by;
        if vm || vcpu {
            concerns = concerns.with(Concern::Vms);
        }
        concerns
    }

    fn doubts(&self, walked: &WalkState<'_>, doubts: &mut Doubts) {
        self.raise(walked, doubts);
    }

    fn counted(&self, _: &WalkState<'_>) -> Vec<EventAccount> {
        self.count_exits()
            .into_iter()
            .chain(self.count_accesses())
            .collect()
    }

    fn needs(&self) -> Needs {
        let RowSplit {
            vm,
            vcpu,
            task,
            function,
        } = self.options.by;
        Needs {
            threads: vm || vcpu || task || function,
            states: match (self.options.split, self.wants_accesses()) {
                (false, _) => States::Nothing,
                (true, false) => States::WithoutAccesses,
                (true, true) => States::All,
            },
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        self.of_exits.announced(ty);
        let wanted = |table: usize| self.tables[table].wanted;
        let wanted = match ty.kind {
            Kind::KvmExit | Kind::KvmInnerExit | Kind::KvmEntry => true,
            Kind::KvmPio => wanted(IOPORT),
            Kind::KvmMmio => wanted(MMIO),
            Kind::KvmMsr | Kind::KvmSysAccess => wanted(MSR),
            _ => false,
        };
        match wanted {
            true => EventDetail::Thread,
            false => EventDetail::Nothing,
        }
    }

    #[inline(always)]
    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        // Wherever it is: what a part of the recording has none of was recorded all the same.
        self.of_exits.saw(event.ty.kind);
        if context.chosen.counts {
            self.take(event, data, context);
        }
    }

    fn wants_of_guest(&mut self, ty: &EventType<'_>) -> bool {
        self.groups.wants_of_guest(ty)
    }

    fn guest_event(&mut self, guest: &GuestEvent<'_>, _: &mut Context<'_>) {
        self.groups.guest_event(guest);
    }

    fn guest_side(&mut self, machine: u16, side: &Side<'_>) {
        self.groups.guest_side(machine, side);
    }

    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        self.fold(retired);
    }

    fn counters(&self, _: &WalkState<'_>, report: &mut dyn FnMut(u8, u32, Amount)) {
        // Rows keep their numbers: new ones come behind. What the exits say comes behind the tables.
        let of_exits = self.of_exits.tables().map(|(_, rows)| rows);
        for (rows, table) in self.tables.iter().chain(of_exits).zip(0u8..) {
            for (row, number) in rows.rows.iter().take(MAX_EXIT_ROWS).zip(0u32..) {
                let amount = Amount {
                    count: row.stats.count(),
                    ns: row.stats.total(),
                };
                report(table, number, amount);
            }
        }
    }

    fn measured(&self, part: u8, number: u32, _: &WalkState<'_>) -> Option<SliceMeasure> {
        let tables = ExitTable::ALL.into_iter().zip(&self.tables);
        let mut tables = tables.chain(self.of_exits.tables());
        let (table, rows) = tables.nth(usize::from(part))?;
        let row = rows.rows.get(index_of(number))?;
        let key = make_row(table, row.key).key;
        if !self.options.by.task {
            return Some(SliceMeasure::Exits(table, key));
        }
        // The same exits are counted by reason alone as well: these are not to be added to those.
        let did = self.groups.did(row.group)?;
        Some(SliceMeasure::GuestExits(table, key, did))
    }
}
