//! Rows of the tables of exits: while they are counted, and finished.

use event::{ExitReason, SystemRegister, index_of};
use model::{GuestAccess, SeenEvents, Times};
use rustc_hash::FxHashMap;

use super::functions::GuestCode;
use super::table::ExitTable;
use crate::guests::NamedContext;
use crate::{ExitSum, Stats};

/// Rows of a table at most, where VMs and vCPUs have no rows of their own; what is beyond is in one row called
/// [`OTHERS`].
///
/// x86 has some 70 exit reasons, a guest some hundred registers and ports. Only MMIO can have many addresses: a guest
/// that draws through an emulated VGA window (128 KiB) makes some ten thousand.
pub const MAX_EXIT_ROWS: usize = 1 << 16;

/// The same, where there are rows by VM or vCPU: 60 reasons of each of 4096 vCPUs.
pub const MAX_GROUPED_ROWS: usize = 1 << 18;

/// Key of the row that holds what is beyond the most rows of a table.
pub const OTHERS: &str = "others";

/// Stands for the thread of the rows of all vCPUs that are not kept apart any more ([`model::StateLimits`]).
pub(super) const OTHER_VCPUS: i32 = event::NONE;

/// What a row counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    Reason(ExitReason),
    Access {
        address: u64,
        write: bool,
    },
    /// What is beyond the most rows of a table.
    Others,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ExitRow {
    /// What `perf kvm stat report` prints in its first column: `IO_INSTRUCTION`, `0x608:PIN`.
    pub key: String,
    /// Device and register behind the address, where [`crate::name_rows`] found it.
    pub name: Option<String>,
    /// The exit reason, in the `vmexit` table.
    pub reason: Option<ExitReason>,
    /// Port, address or register, in the other tables.
    pub address: Option<u64>,
    /// Whether the access was a write, in the other tables.
    pub write: bool,
    /// Whether the guest asked to wait, so that the time is nobody's work.
    pub waiting: bool,
    /// Process of the VM, where there are rows by VM and it is known.
    pub vm_pid: Option<i32>,
    /// What the VM is called, as no other VM of the recording is ([`model::vm_names`]), where there are rows by VM.
    pub vm: Option<String>,
    /// The name that the VM has, where there are rows by VM and it has one.
    pub vm_name: Option<String>,
    /// vCPU, where there are rows by vCPU.
    pub vcpu: Option<u32>,
    /// vCPU threads whose exits it sums, where there are rows by VM or vCPU.
    pub tids: Vec<i32>,
    /// What the guest did that made the exits, where there are rows by that.
    pub task: Option<NamedContext>,
    /// Where the guest was when it left, where there are rows by that.
    pub function: Option<GuestFunction>,
    /// Count and durations of those that were timed.
    pub stats: Stats,
    /// Accesses without a time: those of a recording that has no exits.
    pub untimed: u64,
    /// Whether it was printed with numbers that contradict each other or the rest of their table.
    pub contradicts: bool,
    /// What the vCPU did in that time; it adds up to the total. `None` where it was not asked for.
    pub times: Option<Times>,
    /// How many of them the VMM handled, as far as `kvm_userspace_exit` shows.
    pub user_count: u64,
    /// In the table of ports: the exits for this one, from `kvm_exit` to `kvm_entry`. perf's times begin at `kvm_pio`,
    /// which comes when a read that user space answers is over.
    pub whole: ExitSum,
}

/// Where a guest was when it left, with a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuestFunction {
    /// Where.
    pub code: GuestCode,
    /// The function's name, where it is known ([`super::ExitsReport::name_functions`]).
    pub name: Option<String>,
}

impl GuestFunction {
    /// Returns whether that is in the guest's kernel.
    pub fn is_in_kernel(&self) -> bool {
        matches!(self.code, GuestCode::Kernel { .. })
    }
}

/// Who handles the exits of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandledBy {
    /// KVM alone.
    Kernel,
    /// The VMM.
    User,
    /// KVM some, the VMM others.
    Both,
}

impl ExitRow {
    /// Returns whether this is the row of what is beyond the most rows of a table.
    pub fn is_others(&self) -> bool {
        self.reason.is_none() && self.address.is_none() && self.key == OTHERS
    }

    /// Returns how many there are, timed or not.
    pub fn count(&self) -> u64 {
        self.stats.count().saturating_add(self.untimed)
    }

    /// Returns how long they took together, in nanoseconds; `None` where none was timed.
    pub fn total_ns(&self) -> Option<u64> {
        (self.untimed == 0 || self.stats.count() > 0).then(|| self.stats.total())
    }

    /// Adds what another row of the same counts.
    pub(super) fn merge(&mut self, other: &ExitRow) {
        self.stats.merge(&other.stats);
        self.untimed = self.untimed.saturating_add(other.untimed);
        self.user_count += other.user_count;
        self.whole.merge(other.whole);
        if let Some(times) = &other.times {
            self.times.get_or_insert_default().merge(times);
        }
    }

    /// Returns who handled them, where the recording shows it.
    pub fn handled_by(&self, seen: &SeenEvents) -> Option<HandledBy> {
        let known = seen.userspace_exits && self.times.is_some() && !self.waiting;
        known.then_some(match self.user_count {
            0 => HandledBy::Kernel,
            n if n == self.stats.count() => HandledBy::User,
            _ => HandledBy::Both,
        })
    }
}

/// A row that is being counted: of one key and one group.
#[derive(Debug)]
pub(super) struct CountedRow {
    pub(super) key: Key,
    pub(super) group: i32,
    pub(super) stats: Stats,
    /// Accesses of threads that have shown neither exit nor entry.
    pub(super) alone: u64,
    pub(super) times: Times,
    pub(super) user_count: u64,
    pub(super) whole: ExitSum,
}

/// What is counted so far of one thread's exits of a reason, or of its accesses to an address.
#[derive(Debug, Clone)]
pub struct ThreadRow<'r> {
    /// The thread.
    pub tid: i32,
    /// The exit reason, in the `vmexit` table.
    pub reason: Option<ExitReason>,
    /// The access, in the other tables. Neither of both: what is beyond the most rows of a table, of whatever thread.
    pub access: Option<GuestAccess>,
    /// Count and durations.
    pub stats: &'r Stats,
    /// What the vCPU did in that time, if it was asked for.
    pub times: Times,
    /// How many of them the VMM handled.
    pub user_count: u64,
    /// In the table of ports: the time of the exits for this one, in nanoseconds.
    pub whole_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct TableRows {
    pub(super) wanted: bool,
    /// How many there may be.
    pub(super) most: usize,
    pub(super) others: Option<u32>,
    pub(super) index: FxHashMap<(Key, i32), u32>,
    pub(super) rows: Vec<CountedRow>,
    /// Rows that stand for nothing any more.
    pub(super) free: Vec<u32>,
}

impl TableRows {
    #[inline]
    pub(super) fn row(&mut self, key: Key, group: i32) -> u32 {
        match self.index.get(&(key, group)) {
            Some(row) => *row,
            None => self.another(key, group),
        }
    }

    #[cold]
    fn another(&mut self, key: Key, group: i32) -> u32 {
        let free = self.free.pop();
        let row = free.unwrap_or(self.rows.len() as u32);
        let (key, group) = if self.index.len() < self.most {
            self.index.insert((key, group), row);
            (key, group)
        } else {
            if let Some(others) = self.others {
                return others;
            }
            self.others = Some(row);
            (Key::Others, 0)
        };
        let new = CountedRow {
            key,
            group,
            stats: Stats::default(),
            alone: 0,
            times: Times::default(),
            user_count: 0,
            whole: ExitSum::default(),
        };
        match self.rows.get_mut(index_of(row)) {
            Some(free) => *free = new,
            None => self.rows.push(new),
        }
        row
    }

    /// Adds the rows of some groups to those of [`OTHER_VCPUS`].
    pub(super) fn fold(&mut self, is_past: impl Fn(i32) -> bool) {
        let past: Vec<((Key, i32), u32)> = self
            .index
            .iter()
            .filter(|((_, group), _)| is_past(*group))
            .map(|(key, row)| (*key, *row))
            .collect();
        for (key, row) in past {
            self.index.remove(&key);
            match self.index.get(&(key.0, OTHER_VCPUS)) {
                None => {
                    self.index.insert((key.0, OTHER_VCPUS), row);
                    if let Some(row) = self.rows.get_mut(index_of(row)) {
                        row.group = OTHER_VCPUS;
                    }
                }
                Some(into) => {
                    let into = *into;
                    self.free.push(row);
                    self.merge(row, into);
                }
            }
        }
    }

    /// Adds a row to another one, and leaves nothing in it.
    fn merge(&mut self, from: u32, into: u32) {
        let Some(row) = self.rows.get_mut(index_of(from)) else {
            return;
        };
        let stats = std::mem::take(&mut row.stats);
        let (alone, times) = (
            std::mem::take(&mut row.alone),
            std::mem::take(&mut row.times),
        );
        let user_count = std::mem::take(&mut row.user_count);
        let whole = std::mem::take(&mut row.whole);
        if let Some(into) = self.rows.get_mut(index_of(into)) {
            into.stats.merge(&stats);
            into.alone = into.alone.saturating_add(alone);
            into.times.merge(&times);
            into.user_count += user_count;
            into.whole.merge(whole);
        }
    }

    /// Returns the rows as they are counted, if each thread has its own.
    pub(super) fn by_thread(&self, table: ExitTable) -> impl Iterator<Item = ThreadRow<'_>> {
        self.rows.iter().map(move |row| {
            let (reason, access) = match row.key {
                Key::Reason(reason) => (Some(reason), None),
                Key::Access { address, write } => (None, access_of(table, address, write)),
                Key::Others => (None, None),
            };
            ThreadRow {
                tid: row.group,
                reason,
                access,
                stats: &row.stats,
                times: row.times,
                user_count: row.user_count,
                whole_ns: row.whole.ns,
            }
        })
    }

    #[inline]
    pub(super) fn add(&mut self, row: u32, ns: u64, (then, now): (&Times, &Times), vmm: bool) {
        let row = &mut self.rows[index_of(row)];
        row.stats.add(ns);
        row.times.add_since(now, then);
        row.user_count += u64::from(vmm);
    }
}

/// Returns the access of a row; `None` where the table has no such.
fn access_of(table: ExitTable, address: u64, write: bool) -> Option<GuestAccess> {
    Some(match table {
        ExitTable::Vmexit => return None,
        ExitTable::Ioport => GuestAccess::Port {
            port: u16::try_from(address).ok()?,
            write,
        },
        ExitTable::Mmio => GuestAccess::Mmio {
            gpa: address,
            write,
        },
        ExitTable::Msr => GuestAccess::Msr {
            msr: u32::try_from(address).ok()?,
            write,
        },
    })
}

/// Returns what `perf kvm stat report` prints of an access in its first column.
fn key_text(table: ExitTable, address: u64, write: bool) -> String {
    let direction = match (table == ExitTable::Ioport, write) {
        (true, true) => "POUT",
        (true, false) => "PIN",
        (false, true) => "W",
        (false, false) => "R",
    };
    // What assemblers call it: perf has no table of arm64's registers.
    let register = u32::try_from(address)
        .ok()
        .filter(|_| table == ExitTable::Msr);
    if let Some(register) = register.and_then(SystemRegister::from_number) {
        return format!("{register}:{direction}");
    }
    // perf prints addresses with %#lx, which gives zero no prefix.
    match address {
        0 => format!("0:{direction}"),
        _ => format!("{address:#x}:{direction}"),
    }
}

/// Returns the key of an access in its table: what `perf kvm stat report` prints in its first column.
pub fn access_key(access: &GuestAccess) -> String {
    match *access {
        GuestAccess::Port { port, write } => key_text(ExitTable::Ioport, u64::from(port), write),
        GuestAccess::Mmio { gpa, write } => key_text(ExitTable::Mmio, gpa, write),
        GuestAccess::Msr { msr, write } => key_text(ExitTable::Msr, u64::from(msr), write),
    }
}

/// Returns a row that counts nothing yet.
pub(super) fn make_row(table: ExitTable, key: Key) -> ExitRow {
    let (text, reason, address, write) = match key {
        Key::Reason(reason) => (reason.key().into_owned(), Some(reason), None, false),
        Key::Access { address, write } => {
            let text = key_text(table, address, write);
            (text, None, Some(address), write)
        }
        Key::Others => (OTHERS.to_owned(), None, None, false),
    };
    ExitRow {
        key: text,
        name: None,
        reason,
        address,
        write,
        waiting: reason.is_some_and(ExitReason::is_waiting),
        vm_pid: None,
        vm: None,
        vm_name: None,
        vcpu: None,
        tids: Vec::new(),
        task: None,
        function: None,
        stats: Stats::default(),
        untimed: 0,
        contradicts: false,
        times: None,
        user_count: 0,
        whole: ExitSum::default(),
    }
}
