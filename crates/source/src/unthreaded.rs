//! Texts that do not say which thread made an event.
//!
//! `perf script -F cpu,time,event,trace` prints no thread ids, and `-F pid` the process in their place; of the kernel's
//! file people cut the task's column away. Taken as they stand, the exits of all vCPUs would be one thread's, and be
//! paired across vCPUs. Two things of the events themselves tell whose they are: `sched_switch` says which thread each
//! CPU has from then on, and before; and KVM's events on x86 have the vCPU's number, which is one thread's as long as
//! there is one VM (or one in each process). Where neither does, nobody made them: events of KVM without a thread are
//! not counted, and that is said.

use std::ops::ControlFlow;

use event::{Data, Event, EventType, Kind, NONE, Side, Sink};
use rustc_hash::{FxHashMap, FxHashSet};

/// Threads that are made up have ids from here on: the kernel has none (`PID_MAX_LIMIT` of 64-bit kernels).
pub(crate) const MADE_UP: i32 = 1 << 22;
/// vCPUs that are kept apart; `KVM_MAX_VCPUS` is below it.
const MAX_VCPUS: usize = 1 << 14;
/// Threads that may be a vCPU of a number.
const MAX_VOTES: usize = 64;
/// Switches by another thread than the column says, from which on the column has processes.
const MISMATCHES: u32 = 2;
/// Switches by vCPUs' own threads, from which on it has threads if none was another's. A VMM's main thread has the
/// process's id too, so a few say nothing.
const MATCHES: u32 = 16;
/// Events by another thread than a vCPU's, from which on two threads are vCPUs of that number; fewer may be switches
/// that were lost.
const ANOTHER: u64 = 8;
/// Entries of a vCPU that is in its guest already, from which on two VMs have vCPUs of the same number; lost events
/// look like that too, but not one time in so many.
const OVERLAPS: u64 = 3;
const OVERLAP_SHARE: u64 = 64;

/// What a text says of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ThreadColumn {
    /// The thread that made each event.
    #[default]
    Threads,
    /// A number, which may be the thread's or the process's.
    Unknown,
    /// Processes.
    Processes,
    /// Nothing.
    Nothing,
}

/// What a text says of its CPUs and vCPUs, beside its columns.
#[derive(Debug, Default)]
pub(crate) struct TextScan {
    /// What the column has for events of vCPUs.
    ids: FxHashSet<i32>,
    /// Switches of those whose column has the thread that leaves, and switches whose column has another.
    matches: u32,
    mismatches: u32,
    /// By CPU, the thread it had before its first switch, and the one it has now.
    first: Vec<Option<i32>>,
    now: Vec<Option<i32>>,
    /// By process and vCPU's number, the threads that its CPU had when it made an event.
    votes: FxHashMap<(i32, u32), Vec<(i32, u64)>>,
    /// By process and vCPU's number, whether it is in its guest.
    inside: FxHashMap<(i32, u32), bool>,
    /// By CPU, whose entry was the last there: exits of older kernels have no vCPU's number.
    entered: Vec<Option<(i32, u32)>>,
    overlaps: u64,
    entries: u64,
}

fn at<T: Copy>(list: &[Option<T>], cpu: i32) -> Option<T> {
    list.get(usize::try_from(cpu).ok()?).copied().flatten()
}

fn put<T: Copy>(list: &mut Vec<Option<T>>, cpu: i32, value: Option<T>) {
    let Some(index) = event::cpu_index(cpu) else {
        return;
    };
    if list.len() <= index {
        list.resize(index + 1, None);
    }
    list[index] = value;
}

/// The vCPU's number, and whether it enters its guest.
fn enters(data: &Data) -> Option<(Option<u32>, bool)> {
    match data {
        Data::KvmExit(exit) => Some((exit.vcpu, false)),
        Data::KvmEntry(entry) => Some((entry.vcpu, true)),
        _ => None,
    }
}

/// Whether only a vCPU's own thread makes events of a kind.
fn is_vcpus(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::KvmFpu
            | Kind::KvmMmio
            | Kind::KvmPio
            | Kind::KvmMsr
            | Kind::KvmSysAccess
            | Kind::KvmUserspaceExit
            | Kind::KvmVcpuWakeup
    )
}

impl TextScan {
    /// Returns what the column of a text of perf holds; `recorded` says whether it has one.
    pub(crate) fn column(&self, recorded: bool) -> ThreadColumn {
        match (recorded, self.matches, self.mismatches) {
            (false, ..) => ThreadColumn::Nothing,
            (true, _, MISMATCHES..) => ThreadColumn::Processes,
            (true, MATCHES.., 0) => ThreadColumn::Threads,
            _ => ThreadColumn::Unknown,
        }
    }

    /// Returns the thread that is the vCPU of a number: `Err` where several are.
    fn thread(&self, process: i32, vcpu: u32) -> Result<Option<i32>, ()> {
        let Some(votes) = self.votes.get(&(process, vcpu)) else {
            return Ok(None);
        };
        let mut votes = votes.clone();
        votes.sort_by_key(|vote| std::cmp::Reverse(vote.1));
        match votes.as_slice() {
            [first, second, ..] if second.1 >= ANOTHER || second.1 * 8 > first.1 => Err(()),
            [first, ..] => Ok(Some(first.0)),
            [] => Ok(None),
        }
    }

    /// Whether vCPUs of one number are of one VM.
    fn one_vm(&self) -> bool {
        self.overlaps < OVERLAPS || self.overlaps * OVERLAP_SHARE < self.entries
    }
}

impl Sink for TextScan {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        matches!(ty.kind, Kind::KvmExit | Kind::KvmEntry | Kind::SchedSwitch)
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let data = event.data();
        if let Data::SchedSwitch(switch) = data {
            if event.tid > 0 && switch.prev_tid > 0 {
                if event.tid == switch.prev_tid {
                    let vcpu = self.ids.contains(&event.tid);
                    self.matches = self.matches.saturating_add(u32::from(vcpu));
                } else {
                    self.mismatches = self.mismatches.saturating_add(1);
                }
            }
            if at(&self.now, event.cpu).is_none() {
                put(&mut self.first, event.cpu, Some(switch.prev_tid));
            }
            put(&mut self.now, event.cpu, Some(switch.next_tid));
            return ControlFlow::Continue(());
        }
        let (vcpu, enters) = match enters(&data) {
            Some((Some(vcpu), enters)) => (vcpu, enters),
            Some((None, false)) => {
                let key = at(&self.entered, event.cpu);
                if let Some(inside) = key.and_then(|key| self.inside.get_mut(&key)) {
                    *inside = false;
                }
                return ControlFlow::Continue(());
            }
            _ => return ControlFlow::Continue(()),
        };
        let key = (event.tid, vcpu);
        if enters {
            put(&mut self.entered, event.cpu, Some(key));
        }
        if self.ids.len() < MAX_VCPUS {
            self.ids.insert(event.tid);
        }
        if self.inside.len() < MAX_VCPUS || self.inside.contains_key(&key) {
            let before = self.inside.insert(key, enters);
            self.entries += u64::from(enters);
            self.overlaps += u64::from(enters && before == Some(true));
        }
        if let Some(thread) = at(&self.now, event.cpu).filter(|tid| *tid > 0)
            && (self.votes.len() < MAX_VCPUS || self.votes.contains_key(&key))
        {
            let votes = self.votes.entry(key).or_default();
            match votes.iter().position(|vote| vote.0 == thread) {
                Some(at) => votes[at].1 += 1,
                None if votes.len() < MAX_VOTES => votes.push((thread, 1)),
                None => {}
            }
        }
        ControlFlow::Continue(())
    }
}

/// Finds whose events are, where their text does not, and hands them on.
pub(crate) struct ThreadAssigner<'s> {
    sink: &'s mut dyn Sink,
    column: ThreadColumn,
    scan: &'s TextScan,
    /// By kind of event, whether the sink wants it.
    wanted: Vec<bool>,
    /// By CPU, the thread that has it.
    now: Vec<Option<i32>>,
    /// By process and vCPU's number, the thread.
    vcpus: FxHashMap<(i32, u32), i32>,
    /// The first vCPU of each id of a column of which nobody knows what it holds.
    firsts: FxHashMap<i32, u32>,
    /// By CPU, the vCPU's thread that left its guest there last, with the id in the column.
    out: Vec<Option<(i32, i32)>>,
    /// By CPU, the vCPU's thread that entered its guest there last: it leaves it there too.
    inside: Vec<Option<i32>>,
    /// vCPUs that were distinguished by their numbers, entries and exits of nobody.
    made_up: i32,
    nobodys: u64,
}

impl<'s> ThreadAssigner<'s> {
    /// `scan` has been over the whole text, unless the column's meaning is unknown.
    pub(crate) fn new(
        sink: &'s mut dyn Sink,
        column: ThreadColumn,
        scan: &'s TextScan,
    ) -> ThreadAssigner<'s> {
        ThreadAssigner {
            sink,
            column,
            scan,
            wanted: Vec::new(),
            now: scan.first.clone(),
            vcpus: FxHashMap::default(),
            firsts: FxHashMap::default(),
            out: Vec::new(),
            inside: Vec::new(),
            made_up: 0,
            nobodys: 0,
        }
    }

    fn make_up(&mut self) -> i32 {
        if usize::try_from(self.made_up).is_ok_and(|n| n >= MAX_VCPUS) {
            return NONE;
        }
        self.made_up += 1;
        MADE_UP + self.made_up - 1
    }

    /// The thread that is a vCPU.
    fn vcpu(&mut self, event: &Event<'_>, vcpu: u32) -> i32 {
        let key = (event.tid, vcpu);
        if self.column == ThreadColumn::Unknown {
            if self.firsts.len() >= MAX_VCPUS && !self.firsts.contains_key(&event.tid) {
                return event.tid;
            }
            let first = *self.firsts.entry(event.tid).or_insert(vcpu);
            // The idle task enters no guest: perf script -F comm prints Firecracker's 'fc_vcpu 0', which looks like an
            // id.
            if first == vcpu && event.tid > 0 {
                return event.tid;
            }
        }
        if let Some(&tid) = self.vcpus.get(&key) {
            return tid;
        }
        if self.vcpus.len() >= MAX_VCPUS {
            return NONE;
        }
        let tid = match self.scan.thread(event.tid, vcpu) {
            Ok(Some(tid)) => tid,
            Ok(None) if self.column == ThreadColumn::Unknown || self.scan.one_vm() => {
                self.make_up()
            }
            Ok(None) => NONE,
            // Two VMs, or a thread for each time: the CPU decides.
            Err(()) => return at(&self.now, event.cpu).unwrap_or(NONE),
        };
        self.vcpus.insert(key, tid);
        tid
    }

    fn thread(&mut self, event: &Event<'_>, data: &Data) -> i32 {
        let by_cpu = at(&self.now, event.cpu);
        if let Some((number, enters)) = enters(data) {
            let tid = match number {
                Some(vcpu) => self.vcpu(event, vcpu),
                None if self.column == ThreadColumn::Unknown => event.tid,
                None => {
                    let inside = at(&self.inside, event.cpu).filter(|_| !enters);
                    by_cpu.or(inside).unwrap_or(NONE)
                }
            };
            // The idle task enters no guest.
            let tid = if tid > 0 { tid } else { NONE };
            self.nobodys += u64::from(tid == NONE);
            let out = (!enters && tid != NONE).then_some((tid, event.tid));
            put(&mut self.out, event.cpu, out);
            let inside = (enters && tid != NONE).then_some(tid);
            put(&mut self.inside, event.cpu, inside);
            return tid;
        }
        if let Some(tid) = by_cpu.filter(|_| self.column != ThreadColumn::Unknown) {
            return tid;
        }
        let last = at(&self.out, event.cpu).filter(|(_, column)| *column == event.tid);
        match last {
            Some((tid, _)) if is_vcpus(event.ty.kind) => tid,
            _ => event.tid,
        }
    }

    /// Returns how threads are known where the text does not have them, in sentences; `None` where it has.
    pub(crate) fn threads_unknown(&self, is_perf: bool) -> Option<String> {
        let more = match is_perf {
            true => "perf script -F comm,tid,cpu,time,event,trace prints them",
            false => "trace-cmd report and the kernel print them in the column TASK-PID",
        };
        let what = match self.column {
            ThreadColumn::Threads => return None,
            ThreadColumn::Unknown if self.made_up == 0 => return None,
            ThreadColumn::Unknown => {
                return Some(format!(
                    "Several vCPUs have one thread id, so the text has something else in that column, such as the \
                     process ids of perf script -F pid. vCPUs are identified by the numbers KVM prints; {} of them \
                     have thread ids that are made up, from {MADE_UP} on; {more}.",
                    self.made_up
                ));
            }
            ThreadColumn::Processes => "The text has process ids in the place of thread ids",
            ThreadColumn::Nothing => "The text has no thread ids",
        };
        let switches = self.scan.now.iter().any(Option::is_some);
        let how = match (switches, self.made_up, self.nobodys) {
            (true, ..) => {
                "threads are those that sched_switch says have the CPU, and vCPUs are identified by the numbers KVM \
                 prints"
            }
            (false, 1.., _) => {
                "vCPUs are identified by the numbers KVM prints and taken for one VM's, with thread ids that are made \
                 up; accesses are taken for those of the vCPU that left its guest last on their CPU"
            }
            (false, _, 1..) => {
                "exits and entries cannot be assigned to vCPUs: no event has a vCPU number, or several VMs have the \
                 same ones"
            }
            (false, ..) => return Some(format!("{what}; {more}.")),
        };
        let nobodys = match self.nobodys {
            0 => String::new(),
            count => format!(" Of nobody, and not counted: {count} exits and entries."),
        };
        Some(format!("{what}: {how}; {more}.{nobodys}"))
    }
}

impl Sink for ThreadAssigner<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let index = ty.index as usize;
        if self.wanted.len() <= index {
            self.wanted.resize(index + 1, false);
        }
        self.wanted[index] = self.sink.wants(ty);
        let recorded = matches!(ty.kind, Kind::KvmExit | Kind::KvmEntry | Kind::SchedSwitch);
        self.wanted[index] || recorded
    }

    fn wants_samples(&self, ty: &EventType<'_>) -> bool {
        self.sink.wants_samples(ty)
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let data = event.data();
        let tid = self.thread(event, &data);
        if let Data::SchedSwitch(switch) = data {
            put(&mut self.now, event.cpu, Some(switch.next_tid));
        }
        let wanted = self.wanted.get(event.ty.index as usize);
        if !wanted.copied().unwrap_or(false) {
            return ControlFlow::Continue(());
        }
        let process = self.column == ThreadColumn::Processes && event.pid == NONE && event.tid > 0;
        self.sink.event(&Event {
            tid,
            pid: if process { event.tid } else { event.pid },
            ..*event
        })
    }

    fn side(&mut self, side: &Side<'_>) {
        self.sink.side(side);
    }
}
