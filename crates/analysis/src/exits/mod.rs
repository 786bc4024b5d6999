//! Exit statistics: how often and for how long vCPUs were out of their guest, and why.
//!
//! An exit is timed from `kvm_exit` to the `kvm_entry` of the same thread that follows, whatever happens
//! between: handling in KVM, in the VMM, waiting for a CPU, or halted. Port, memory-mapped and register
//! accesses are timed as `perf kvm stat` times them (`tools/perf/arch/x86/util/kvm-stat.c`, 6.1):
//!
//! | table | from | to |
//! | --- | --- | --- |
//! | `vmexit` | `kvm_exit` | `kvm_entry` |
//! | `ioport` | `kvm_pio` | `kvm_entry` |
//! | `mmio`, write | `kvm_mmio` (write) | `kvm_entry` |
//! | `mmio`, read | `kvm_exit` | `kvm_mmio` (read) |
//! | `msr` | `kvm_msr`; on arm64 `kvm_sys_access` | `kvm_entry` |
//!
//! Where no event of the accesses was recorded, the tables of ports and of memory have what the exits themselves say
//! (`from_exits.rs`).
//!
//! On x86 a thread's events count from its first `kvm_entry` on, as in perf: an exit whose vCPU was not yet
//! seen entering is not timed, and counted in [`UnpairedExits`].
//!
//! It costs more than 2 ns an event, because each exit and each access is a look-up of its row by its key, and a
//! time that goes into the percentiles of that row; most other analyses only add to a sum.

mod accesses;
mod alone;
mod asked;
#[cfg(test)]
mod bounds;
mod cell;
mod contradictions;
mod from_exits;
mod functions;
mod groups;
mod inner;
mod left_out;
mod named;
mod open_interval;
mod raise;
mod retired;
mod rows;
mod single;
pub(crate) mod table;
mod unpaired;

pub use cell::ExitCell;
use from_exits::AccessesOfExits;
pub use functions::{GuestCode, GuestStarts};
use groups::RowGroups;
use left_out::AccessTally;
use open_interval::OpenInterval;
pub use rows::{
    ExitRow, GuestFunction, HandledBy, MAX_EXIT_ROWS, MAX_GROUPED_ROWS, OTHERS, ThreadRow,
    access_key,
};
use rows::{Key, OTHER_VCPUS, TableRows, make_row};
pub use single::SingleExit;
use single::Singles;
pub use table::ExitTable;
pub use unpaired::UnpairedExits;
use unpaired::UntimedExits;

use event::{Data, Event, ExitReason, Isa, KvmExit, MmioAccess, index_of};
use model::{ByThread, Machine, SeenEvents, State, ThreadHandle, Times, Vm, vm_names};

use crate::analysis::Context;
use rustc_hash::FxHashMap;

/// Which two events an exit is timed between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Convention {
    /// From leaving the guest to entering it, on every architecture: the time the exit cost.
    #[default]
    Handling,
    /// As `perf kvm stat` of this architecture. On arm64 that is from `kvm_entry` to `kvm_exit`: the time
    /// the guest ran before the exit.
    Perf,
}

/// What separates rows, beside their key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowSplit {
    /// A row for each VM.
    pub vm: bool,
    /// A row for each vCPU (of each VM).
    pub vcpu: bool,
    /// A row for each task of a guest, where guests' recordings are walked too.
    pub task: bool,
    /// A row for each function of a guest's kernel in which it was when it left ([`ExitOptions::starts`]).
    pub function: bool,
}

/// What to count.
#[derive(Debug, Clone, Default)]
pub struct ExitOptions {
    /// Tables wanted; none means all.
    pub tables: Vec<ExitTable>,
    /// How exits are timed.
    pub convention: Convention,
    /// What separates rows.
    pub by: RowSplit,
    /// Whether rows have what vCPUs did in the time of the exits.
    pub split: bool,
    /// Where the functions of guests' kernels begin, where rows are separated by them.
    pub starts: GuestStarts,
}

/// One finished table.
#[derive(Debug, Clone, PartialEq)]
pub struct ExitsReport {
    /// Which one.
    pub table: ExitTable,
    /// Rows, most frequent first, as `perf kvm stat` sorts them.
    pub rows: Vec<ExitRow>,
    /// All exits.
    pub total_count: u64,
    /// Their time in nanoseconds.
    pub total_ns: u64,
    /// The same without waiting.
    pub handling_ns: u64,
    /// Which kinds of events the times of the rows were made of, if they were asked for.
    pub seen: Option<SeenEvents>,
    /// Whether its sums are those of its rows, which they are but for printed tables with a last line.
    pub sums_of_rows: bool,
    /// Whether it has accesses that no event recorded: what the processor says of the exits, one access for each, timed
    /// as the exit.
    pub from_exits: bool,
}

#[derive(Debug, Default)]
struct VcpuState {
    /// Whether the thread's vCPU is known, which its first entry makes it.
    known: bool,
    exit: OpenInterval,
    pio: OpenInterval,
    mmio: OpenInterval,
    msr: OpenInterval,
    /// The reason of an exit that has not been followed by an entry.
    open: Option<ExitReason>,
    /// The row of the first port that was accessed since the exit: the exit was made for it.
    first_port: Option<u32>,
    /// The row of what the exit under way says that it is for.
    says: Option<(u8, u32)>,
}

/// What the machine knows of a vCPU at an event.
#[derive(Debug, Clone, Copy)]
struct SoFar<'m> {
    /// The thread.
    thread: ThreadHandle,
    /// Its times so far.
    times: &'m Times,
    /// Whether the exit under way has been in the VMM.
    vmm: bool,
}

impl<'m> SoFar<'m> {
    /// Of a thread, if that is asked for.
    #[inline]
    fn of(split: bool, (tid, thread): (i32, ThreadHandle), machine: &'m mut Machine) -> SoFar<'m> {
        match machine.vcpu_of(tid).filter(|_| split) {
            Some(vcpu) => SoFar {
                thread,
                times: machine.times(vcpu),
                vmm: machine.in_vmm(vcpu),
            },
            None => SoFar {
                thread,
                times: &Times::ZERO,
                vmm: false,
            },
        }
    }
}

/// Collects exit statistics.
#[derive(Debug)]
pub struct Exits {
    options: ExitOptions,
    vcpus: Vec<VcpuState>,
    by_thread: ByThread<u32>,
    /// Places of vCPUs that are not kept apart any more.
    free: Vec<u32>,
    /// Whether any vCPU is known, by an entry or, where exits need none before them, by an exit.
    any_known: bool,
    tables: [TableRows; 4],
    of_exits: AccessesOfExits,
    isa: Option<Isa>,
    before_first_entry: FxHashMap<ExitReason, u64>,
    without_entry: FxHashMap<ExitReason, u64>,
    untimed: UntimedExits,
    singles: Singles,
    groups: RowGroups,
    tally: AccessTally,
}

const VMEXIT: usize = 0;
const IOPORT: usize = 1;
const MMIO: usize = 2;
const MSR: usize = 3;

impl Default for Exits {
    fn default() -> Exits {
        Exits::new(ExitOptions::default())
    }
}

impl Exits {
    /// Returns a collector that has seen nothing.
    pub fn new(mut options: ExitOptions) -> Exits {
        let starts = std::mem::take(&mut options.starts);
        let tables = ExitTable::ALL.map(|table| TableRows {
            wanted: options.tables.is_empty() || options.tables.contains(&table),
            most: if options.by == RowSplit::default() {
                MAX_EXIT_ROWS
            } else {
                MAX_GROUPED_ROWS
            },
            ..TableRows::default()
        });
        Exits {
            groups: RowGroups::new(options.by, starts),
            options,
            vcpus: Vec::new(),
            by_thread: ByThread::default(),
            free: Vec::new(),
            any_known: false,
            of_exits: AccessesOfExits::of(&tables),
            tables,
            isa: None,
            before_first_entry: FxHashMap::default(),
            without_entry: FxHashMap::default(),
            untimed: UntimedExits::default(),
            singles: Singles::default(),
            tally: AccessTally::default(),
        }
    }

    /// Asks for every exit that the table by reason counts, timed as the exit's handling: they are to be taken with
    /// [`Exits::swap_listed`].
    pub fn list(&mut self) {
        self.singles.want();
    }

    /// Exchanges the exits that have ended for an empty list.
    pub fn swap_listed(&mut self, empty: &mut Vec<SingleExit>) {
        self.singles.swap(empty);
    }

    /// Returns whether any table but that of exits is wanted.
    fn wants_accesses(&self) -> bool {
        [IOPORT, MMIO, MSR]
            .iter()
            .any(|&table| self.tables[table].wanted)
    }

    /// Returns what separates rows beside their key.
    pub fn by(&self) -> RowSplit {
        self.options.by
    }

    /// Returns whether any exit or entry was seen.
    pub fn saw_exits(&self) -> bool {
        self.isa.is_some() || !self.vcpus.is_empty()
    }

    /// Returns the instruction set of the exits seen.
    pub fn isa(&self) -> Option<Isa> {
        self.isa
    }

    #[inline]
    fn slot(&mut self, thread: ThreadHandle) -> usize {
        let (vcpus, free) = (&mut self.vcpus, &mut self.free);
        let slot = *self.by_thread.entry(thread, || match free.pop() {
            Some(slot) => slot,
            None => {
                vcpus.push(VcpuState::default());
                vcpus.len() as u32 - 1
            }
        });
        index_of(slot)
    }

    /// Whether a vCPU's exits count only from its first entry on. perf learns the vCPU's number from the entry
    /// and takes nothing before it; where our numbers are to equal perf's, so do we.
    fn counts_from_entry(&self, isa: Isa) -> bool {
        self.options.convention == Convention::Perf || matches!(isa, Isa::Vmx | Isa::Svm)
    }

    /// Whether perf's arm64 convention applies: intervals begin at the entry.
    #[inline]
    fn inverted(&self) -> bool {
        self.options.convention == Convention::Perf && self.isa == Some(Isa::Arm64)
    }

    fn exit(&mut self, event: &Event<'_>, exit: &KvmExit, so_far: SoFar<'_>) {
        let (times, reason) = (*so_far.times, exit.reason);
        self.isa = Some(reason.isa);
        let slot = self.slot(so_far.thread);
        if !self.vcpus[slot].known {
            if self.counts_from_entry(reason.isa) {
                *self.before_first_entry.entry(reason).or_insert(0) += 1;
                return;
            }
            self.vcpus[slot].known = true;
            self.any_known = true;
        }
        let inverted = self.inverted();
        let group = self.groups.of(event.tid);
        let row = self.tables[VMEXIT]
            .wanted
            .then(|| self.tables[VMEXIT].row(Key::Reason(reason), group));
        let says = match self.asks_exits() {
            true => self.of_exits.row(exit, group),
            false => None,
        };
        let state = &mut self.vcpus[slot];
        state.first_port = None;
        state.says = says;
        if inverted {
            let begun = std::mem::take(&mut state.exit);
            match (row, event.time.checked_sub(begun.time)) {
                (Some(_), _) if begun.time == 0 => self.untimed.first += 1,
                (Some(row), Some(ns)) => {
                    let none = Times::default();
                    self.tables[VMEXIT].add(row, ns, (&none, &none), false);
                }
                (Some(_), None) => self.untimed.clock_back += 1,
                (None, _) => {}
            }
            return;
        }
        if let Some(lost) = state.open.replace(reason) {
            *self.without_entry.entry(lost).or_insert(0) += 1;
        }
        state.exit = OpenInterval {
            time: event.time,
            row,
            times,
        };
        state.mmio = OpenInterval {
            time: event.time,
            row: None,
            times,
        };
    }

    fn entry(&mut self, event: &Event<'_>, so_far: SoFar<'_>) {
        let times = so_far.times;
        let slot = self.slot(so_far.thread);
        self.vcpus[slot].known = true;
        self.any_known = true;
        let inverted = self.inverted() || self.isa.is_none();
        let state = &mut self.vcpus[slot];
        let exit = state.open.take();
        let time = event.time;
        // perf's intervals on arm64 begin at an entry: that is no exit.
        if let Some(row) = state.first_port.take()
            && exit.is_some()
            && let Some(ns) = time.checked_sub(state.exit.time)
        {
            self.tables[IOPORT].rows[index_of(row)].whole.add(ns);
        }
        if let Some(row) = state.says.take()
            && exit.is_some()
            && state.exit.time != 0
            && let Some(ns) = time.checked_sub(state.exit.time)
        {
            let did = (&state.exit.times, times);
            self.of_exits.add(row, ns, did, so_far.vmm);
        }
        let single = self.singles.are_wanted().then_some((state.exit, exit));
        // Time 0 stands for no beginning: the first event of a clock that begins there.
        if exit.is_some() && !inverted && (state.exit.time == 0 || time < state.exit.time) {
            self.untimed.clock_back += u64::from(state.exit.row.is_some());
        }
        let mut end = |begun: &mut OpenInterval, table: usize| {
            if begun.time == 0 {
                return;
            }
            // Without a row both ends lack a key: perf leaves the beginning standing, and so does this.
            let Some(row) = begun.row else { return };
            if let Some(ns) = time.checked_sub(begun.time) {
                self.tables[table].add(row, ns, (&begun.times, times), so_far.vmm);
            }
            begun.is_over();
        };
        end(&mut state.pio, IOPORT);
        end(&mut state.mmio, MMIO);
        end(&mut state.msr, MSR);
        end(&mut state.exit, VMEXIT);
        if let Some((begun, Some(reason))) = single
            && begun.time != 0
            && begun.row.is_some()
            && time >= begun.time
        {
            self.singles.push(SingleExit {
                tid: event.tid,
                cpu: event.cpu,
                start: begun.time,
                end: time,
                reason,
                times: times.since(&begun.times),
                user: so_far.vmm,
            });
        }
        if inverted && self.options.convention == Convention::Perf {
            state.exit = OpenInterval {
                time,
                row: None,
                times: *times,
            };
        }
    }

    #[inline(always)]
    fn take(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        let (thread, machine) = (context.thread, &mut *context.machine);
        let key = |address: u64, write: bool| Key::Access { address, write };
        // The recording does not say whose it is, or what.
        if event.tid < 0 || matches!(data, Data::Other) {
            return self.saw_unusable(event.ty.kind, data);
        }
        let split = self.options.split;
        let so_far = |machine| SoFar::of(split, (event.tid, thread), machine);
        match data {
            Data::KvmExit(exit) if exit.inner && self.inner(event, thread, exit.reason) => {}
            Data::KvmExit(exit) => {
                self.untimed.inner += u64::from(exit.inner);
                self.groups.left(event.tid, exit.guest_pc);
                self.exit(event, exit, so_far(machine));
            }
            Data::KvmEntry(_) => self.entry(event, so_far(machine)),
            Data::KvmPio(pio) if self.tables[IOPORT].wanted => {
                self.tally.saw(IOPORT);
                let port = key(u64::from(pio.port), pio.write);
                self.access(event, IOPORT, port, so_far(machine));
            }
            Data::KvmMsr(msr) if self.tables[MSR].wanted => {
                self.tally.saw(MSR);
                self.access(
                    event,
                    MSR,
                    key(u64::from(msr.msr), msr.write),
                    so_far(machine),
                );
            }
            Data::KvmSysAccess(sys) if self.tables[MSR].wanted => {
                self.tally.saw(MSR);
                let register = u64::from(sys.register().number());
                self.access(event, MSR, key(register, sys.write), so_far(machine));
            }
            Data::KvmMmio(mmio) if self.tables[MMIO].wanted => match mmio.access {
                MmioAccess::Write => {
                    self.tally.saw(MMIO);
                    self.access(event, MMIO, key(mmio.gpa, true), so_far(machine));
                }
                MmioAccess::Read => {
                    self.tally.saw(MMIO);
                    self.mmio_read(event, mmio.gpa, so_far(machine));
                }
                MmioAccess::ReadUnsatisfied => self.tally.saw_unsatisfied(),
                MmioAccess::Unknown(_) => self.tally.saw(MMIO),
            },
            _ => {}
        }
    }

    /// Returns what is counted so far of each thread, where there is a row for each vCPU.
    pub fn by_thread(&self) -> impl Iterator<Item = ThreadRow<'_>> {
        let tables = ExitTable::ALL.into_iter().zip(&self.tables);
        tables.flat_map(|(table, rows)| rows.by_thread(table))
    }

    /// Returns the exits that could not be timed.
    pub fn unpaired(&self) -> UnpairedExits {
        let mut without = self.without_entry.clone();
        for state in &self.vcpus {
            if let Some(reason) = state.open {
                *without.entry(reason).or_insert(0) += 1;
            }
        }
        let sorted = |map: &FxHashMap<ExitReason, u64>| {
            let mut list: Vec<_> = map
                .iter()
                .map(|(&reason, &count)| (reason, count))
                .collect();
            list.sort_by_key(|&(reason, count)| (std::cmp::Reverse(count), reason));
            list
        };
        UnpairedExits {
            before_first_entry: sorted(&self.before_first_entry),
            without_entry: sorted(&without),
        }
    }

    /// Returns the tables that were wanted.
    pub fn reports(&self, machine: &Machine) -> Vec<ExitsReport> {
        let vms = machine.vms();
        let names = vm_names(&vms);
        let seen = self.options.split.then(|| machine.seen());
        let mut places = FxHashMap::default();
        for (at, vm) in vms.iter().enumerate() {
            places.extend(vm.vcpus.iter().map(|vcpu| (vcpu.tid, (at, vcpu.id))));
        }
        ExitTable::ALL
            .into_iter()
            .zip(&self.tables)
            .zip(0..)
            .filter(|((_, rows), _)| rows.wanted)
            .map(|((table, rows), at)| {
                let of_exits = self.of_exits.instead_of(at);
                let rows = of_exits.unwrap_or(rows);
                let report = self.report(table, rows, (&vms, &names), &places, seen.as_ref());
                ExitsReport {
                    from_exits: of_exits.is_some(),
                    sums_of_rows: true,
                    ..report
                }
            })
            .collect()
    }

    /// `vms` has VMs and what they are called, `places` VM (by its position) and vCPU of each thread.
    fn report(
        &self,
        table: ExitTable,
        rows: &TableRows,
        vms: (&[Vm], &[String]),
        places: &FxHashMap<i32, (usize, u32)>,
        seen: Option<&SeenEvents>,
    ) -> ExitsReport {
        let mut out: Vec<ExitRow> = Vec::new();
        let mut index = FxHashMap::default();
        let alone = |row: &rows::CountedRow| self.is_shown_alone(table, row);
        let counts = |row: &&rows::CountedRow| row.stats.count() > 0 || alone(row);
        for row in rows.rows.iter().filter(counts) {
            let place = places.get(&self.groups.tid(row.group));
            let by = self.options.by;
            let vm = place.filter(|_| by.vm || by.vcpu).map(|p| p.0);
            let vcpu = place.filter(|_| by.vcpu).map(|p| p.1);
            let inside = self.groups.inside(row.group);
            let at = *index.entry((row.key, vm, vcpu, inside)).or_insert_with(|| {
                out.push(make_row(table, row.key));
                out.len() - 1
            });
            let into = &mut out[at];
            into.vm_pid = vm.and_then(|vm| vms.0[vm].pid);
            into.vm = vm.map(|vm| vms.1[vm].clone());
            into.vm_name = vm.and_then(|vm| vms.0[vm].name.clone());
            let other = (by.vm || by.vcpu) && row.group == OTHER_VCPUS;
            into.vm = into.vm.take().or_else(|| other.then(|| OTHERS.to_owned()));
            into.vcpu = vcpu;
            into.tids.extend(vm.map(|_| self.groups.tid(row.group)));
            self.groups.describe(row.group, into);
            into.stats.merge(&row.stats);
            if alone(row) {
                into.untimed = into.untimed.saturating_add(row.alone);
            }
            into.user_count += row.user_count;
            into.whole.merge(row.whole);
            if let Some(seen) = seen.filter(|_| row.stats.count() > 0) {
                let waiting = if into.waiting {
                    row.times.get(State::Kernel)
                } else {
                    0
                };
                let times = seen.settle(&row.times, waiting);
                into.times.get_or_insert_default().merge(&times);
            }
        }
        out.sort_by(|a, b| {
            (b.count().cmp(&a.count()))
                .then(b.stats.total().cmp(&a.stats.total()))
                .then_with(|| a.key.cmp(&b.key))
                .then((a.vm_pid, &a.vm, a.vcpu).cmp(&(b.vm_pid, &b.vm, b.vcpu)))
                .then_with(|| a.task.cmp(&b.task))
                .then_with(|| a.function.cmp(&b.function))
        });
        let sum = |rows: &mut dyn Iterator<Item = &ExitRow>| {
            rows.fold(0u64, |sum, row| sum.saturating_add(row.stats.total()))
        };
        ExitsReport {
            table,
            total_count: out.iter().map(ExitRow::count).sum(),
            total_ns: sum(&mut out.iter()),
            handling_ns: sum(&mut out.iter().filter(|r| !r.waiting)),
            // Where time went is not asked of accesses that have none.
            seen: seen
                .copied()
                .filter(|_| out.iter().all(|row| row.untimed == 0)),
            rows: out,
            from_exits: false,
            sums_of_rows: true,
        }
    }
}
