//! Stacks as they come: threads, places of code, and what each stack of each thread weighs.

use std::sync::Arc;

use event::{
    CallBranches, CallChain, Event, EventSample, ExitReason, NONE, Side, StackFrame,
    UserStackBytes, index_of,
};
use model::{Machine, RetiredThreads, Threads};
use rustc_hash::FxHashMap;
use stacks::{ROOT, StackTree, Weight};
use symbols::{
    Addresses, CpuMode, FileId, FileRegion, KernelFile, SpaceId, ThreadName, UserUnwinder, frames,
};

use super::deferred::DeferredSample;
use super::doing::ThreadState;

/// Nodes of stacks that are kept, about 50 bytes each.
const MAX_NODES: usize = 1 << 20;
/// What frames are called beyond [`MAX_PLACES`].
const LEFT_OUT: &str = "[left out]";
/// Stacks by thread and by what it did, about 80 bytes each.
const MAX_ROWS: usize = 1 << 19;
/// Frames of a stack that are kept, from the inside; `kernel.perf_event_max_stack` is 127 unless somebody raised it.
const MAX_FRAMES: usize = 512;
/// Threads, by name, and places of code that are kept apart.
const MAX_THREADS: usize = 1 << 16;
const MAX_PLACES: usize = 1 << 18;
/// Bytes of a thread's name that are kept. The kernel's are at most 15, those of its workers 63.
const MAX_COMM: usize = 127;
/// Bytes of a function's name that are kept, as a text has it: those of generic functions are long.
const MAX_NAME: usize = 8 << 10;
/// Bytes of all such names.
const MAX_NAMES: usize = 32 << 20;

/// The frame that stands for those left out.
pub(super) const DEEPER: u32 = u32::MAX;
/// Stands for no thread.
pub(super) const NOBODY: u32 = u32::MAX;

/// A place of code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum CodePlace {
    /// By its address.
    Code(Code),
    /// By a text, which named it itself: the function, or nothing, and the file.
    Printed(Option<Box<str>>, Box<str>, CpuMode),
    /// No code: why a guest exited.
    Reason(Box<str>),
}

/// A place of code by its address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Code {
    pub file: FileId,
    /// An address of a kernel; of anything else, where in the file it is.
    pub address: u64,
    pub mode: CpuMode,
    /// Whether the file's name is the name of the function: code that the kernel made (BPF).
    pub symbol: bool,
    /// The process of the VM whose guest it is of, else [`NONE`].
    pub guest_of: i32,
}

/// A thread's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Comm(Arc<[u8]>);

impl ThreadName for Comm {
    fn named(comm: &[u8], _: i32) -> Comm {
        Comm(comm[..comm.len().min(MAX_COMM)].into())
    }

    fn unnamed(tid: i32) -> Comm {
        Comm(format!(":{tid}").into_bytes().into())
    }

    fn comm(&self) -> &[u8] {
        &self.0
    }
}

/// A thread by the name that it had.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ThreadComm {
    pub slot: u32,
    pub comm: Comm,
    /// The CPU, where stacks are asked for by CPU.
    pub cpu: i32,
}

/// Where a sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Mode {
    Guest,
    Kernel,
    User,
}

impl Mode {
    pub(super) fn of(mode: CpuMode) -> Mode {
        match mode {
            CpuMode::GuestKernel | CpuMode::GuestUser => Mode::Guest,
            CpuMode::Kernel => Mode::Kernel,
            CpuMode::User | CpuMode::Other => Mode::User,
        }
    }
}

/// What a weight is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct StackRow {
    /// The event that was sampled, by its number; 0 of what is no sample.
    pub event: u32,
    pub thread: u32,
    pub doing: ThreadState,
    pub mode: Mode,
    /// The node of the stack.
    pub stack: u32,
    /// Who ended it, and with which stack.
    pub waker: u32,
    pub waker_stack: u32,
}

/// Stacks as they come.
#[derive(Debug)]
pub(super) struct Calls {
    pub addresses: Addresses<Comm>,
    pub threads: Vec<ThreadComm>,
    /// By slot, the ids of those threads that are not kept apart any more.
    past_tids: FxHashMap<u32, i32>,
    thread_numbers: FxHashMap<ThreadComm, u32>,
    pub places: Vec<CodePlace>,
    place_numbers: FxHashMap<CodePlace, u32>,
    /// Bytes of names in texts.
    name_bytes: usize,
    /// Frames are numbers of places, outermost first.
    pub tree: StackTree,
    pub rows: Vec<(StackRow, Weight)>,
    row_numbers: FxHashMap<StackRow, u32>,
    /// Samples whose stacks are damaged, and stacks that lost frames.
    pub damaged: u64,
    pub deep: u64,
    /// What there was no room for.
    pub beyond: Weight,
    /// A frame of the stack that is being taken has no place of its own.
    left_out: bool,
    /// The stack now, innermost frame first.
    stack: Vec<u32>,
    /// Who makes stacks of registers and of what was on the stack.
    pub unwinder: Option<Box<dyn UserUnwinder>>,
    unwound: Vec<u64>,
}

impl Calls {
    pub(super) fn new(known: &[KernelFile<'_>]) -> Calls {
        Calls {
            addresses: Addresses::new(true, known),
            threads: Vec::new(),
            past_tids: FxHashMap::default(),
            thread_numbers: FxHashMap::default(),
            places: Vec::new(),
            place_numbers: FxHashMap::default(),
            name_bytes: 0,
            tree: StackTree::new(MAX_NODES),
            rows: Vec::new(),
            row_numbers: FxHashMap::default(),
            damaged: 0,
            deep: 0,
            beyond: Weight::default(),
            left_out: false,
            stack: Vec::new(),
            unwinder: None,
            unwound: Vec::new(),
        }
    }

    pub(super) fn side(&mut self, side: &Side<'_>) {
        self.addresses.side(side);
    }

    /// Adds to what a stack weighs, and returns the number of its row; `None` if there is no room.
    pub(super) fn add(&mut self, row: StackRow, weight: Weight) -> Option<u32> {
        let next = self.rows.len();
        let number = match self.row_numbers.get(&row) {
            Some(number) => *number,
            None if row.thread != NOBODY && next < MAX_ROWS => {
                self.rows.push((row, Weight::default()));
                self.row_numbers.insert(row, next as u32);
                next as u32
            }
            None => {
                self.beyond.add(weight);
                return None;
            }
        };
        self.rows[index_of(number)].1.add(weight);
        Some(number)
    }

    /// Keeps the ids of threads that are not kept apart any more, and forgets the rest of them.
    pub(super) fn retire(&mut self, retired: &RetiredThreads, machine: &Machine) {
        for thread in self
            .threads
            .iter()
            .filter(|thread| retired.has_slot(thread.slot))
        {
            if let Some((tid, _)) = machine.threads().at(thread.slot) {
                self.past_tids.insert(thread.slot, tid);
            }
        }
        for tid in retired.tids() {
            self.addresses.forget(tid);
        }
    }

    /// Returns a thread's id.
    pub(super) fn tid(&self, thread: &ThreadComm, threads: &Threads) -> i32 {
        let now = threads.at(thread.slot).map(|(tid, _)| tid);
        let past = || self.past_tids.get(&thread.slot).copied();
        now.or_else(past).unwrap_or(0)
    }

    /// Returns the number of a thread, [`NOBODY`] if there are too many.
    pub(super) fn thread(&mut self, slot: u32, comm: &Comm, cpu: i32) -> u32 {
        let thread = ThreadComm {
            slot,
            comm: comm.clone(),
            cpu,
        };
        if let Some(number) = self.thread_numbers.get(&thread) {
            return *number;
        }
        if self.threads.len() == MAX_THREADS {
            return NOBODY;
        }
        let number = self.threads.len() as u32;
        self.threads.push(thread.clone());
        self.thread_numbers.insert(thread, number);
        number
    }

    /// Returns the number of the thread of an event, what its process has mapped where the event was, and where that
    /// was.
    pub(super) fn running(
        &mut self,
        event: &Event<'_>,
        misc: u16,
        slot: u32,
        by_cpu: bool,
    ) -> (u32, Option<SpaceId>, CpuMode) {
        let mode = CpuMode::of(misc);
        // The thread is the host's, whoever's code its CPU ran.
        let thread_mode = match mode.is_guest() {
            true => CpuMode::Kernel,
            false => mode,
        };
        let (comm, host_space) = self.addresses.running(thread_mode, event.pid, event.tid);
        let comm = match event.comm {
            Some(comm) => Comm::named(comm.as_bytes(), event.tid),
            None => comm.clone(),
        };
        let space = match mode.is_guest() {
            true => self.addresses.running(mode, event.pid, event.tid).1,
            false => host_space,
        };
        let cpu = if by_cpu { event.cpu } else { NONE };
        (self.thread(slot, &comm, cpu), space, mode)
    }

    /// Returns the node of a sample's stack: its call chain, or else its address.
    pub(super) fn sampled(
        &mut self,
        sample: &EventSample<'_>,
        pid: i32,
        space: Option<SpaceId>,
        mode: CpuMode,
    ) -> u32 {
        self.stack.clear();
        if let Some(chain) = sample.callchain {
            self.chain(chain, pid, space, mode);
        }
        if let Some(calls) = sample.call_branches {
            self.branches(calls, pid, space, mode);
        }
        if let (Some(user), Some(space), false) = (&sample.user_stack, space, mode.is_guest()) {
            self.unwind(user, pid, space);
        }
        if let Some(ip) = sample.ip.filter(|_| self.stack.is_empty()) {
            let region = self.addresses.find(mode, space, ip, mode);
            let place = self.code(ip, &region, mode, pid);
            self.stack.push(place);
        }
        self.node()
    }

    /// Puts the calls that the CPU recorded in the place of the call chain's part of user space, if it has one.
    fn branches(
        &mut self,
        calls: CallBranches<'_>,
        pid: i32,
        space: Option<SpaceId>,
        mode: CpuMode,
    ) {
        let of_user = |place: &u32| match self.places.get(index_of(*place)) {
            Some(CodePlace::Code(code)) => code.mode == CpuMode::User,
            _ => false,
        };
        let Some(begin) = self.stack.iter().position(of_user) else {
            return;
        };
        if calls.addresses().next().is_none() {
            return;
        }
        self.stack.truncate(begin);
        for address in calls.addresses() {
            if self.is_deep() {
                return;
            }
            let region = self.addresses.find(mode, space, address, CpuMode::User);
            let place = self.code(address, &region, CpuMode::User, pid);
            self.stack.push(place);
        }
    }

    /// Returns the places of the stack that was taken last, innermost first.
    pub(super) fn places(&self) -> Vec<u32> {
        self.stack.clone()
    }

    /// Returns the node of a sample's stack with its callers in user space, which came later.
    pub(super) fn joined(&mut self, sample: &DeferredSample, callers: CallChain<'_>) -> u32 {
        self.stack.clear();
        self.stack.extend_from_slice(&sample.places);
        // Until a marker says otherwise, addresses are those of user space.
        self.chain(callers, sample.pid, sample.space, sample.mode);
        self.node()
    }

    /// Adds the frames of user space, which the recorder left to be made of registers and of what was on the stack.
    fn unwind(&mut self, user: &UserStackBytes<'_>, pid: i32, space: SpaceId) {
        let Some(unwinder) = &mut self.unwinder else {
            return;
        };
        self.unwound.clear();
        let most = MAX_FRAMES.saturating_sub(self.stack.len());
        self.addresses
            .unwind(unwinder.as_mut(), space, user, most, &mut self.unwound);
        let mode = CpuMode::User;
        for address in std::mem::take(&mut self.unwound) {
            let region = self.addresses.find(mode, Some(space), address, mode);
            let place = self.code(address, &region, mode, pid);
            self.stack.push(place);
        }
    }

    fn chain(&mut self, chain: CallChain<'_>, pid: i32, space: Option<SpaceId>, mode: CpuMode) {
        let mut region = (FileRegion::EMPTY, CpuMode::Other);
        for frame in frames(chain) {
            let Ok(frame) = frame else {
                self.damaged += 1;
                self.stack.clear();
                return;
            };
            if self.is_deep() {
                return;
            }
            // Callers are mostly in the file of those they called.
            if frame.mode != region.1 || !region.0.has(frame.address) {
                let found = self.addresses.find(mode, space, frame.address, frame.mode);
                region = (found, frame.mode);
            }
            let place = self.code(frame.address, &region.0, frame.mode, pid);
            self.stack.push(place);
        }
    }

    /// Whether there is no room for another frame, which is noted in the stack.
    fn is_deep(&mut self) -> bool {
        if self.stack.len() < MAX_FRAMES {
            return false;
        }
        if self.stack.last() != Some(&DEEPER) {
            self.deep += 1;
            self.stack.push(DEEPER);
        }
        true
    }

    /// Returns the node of a stack of the kernel's functions, innermost first.
    pub(super) fn kernel(&mut self, addresses: impl Iterator<Item = u64>) -> u32 {
        self.stack.clear();
        for address in addresses {
            if self.is_deep() {
                break;
            }
            let mode = CpuMode::Kernel;
            let region = self.addresses.find(mode, None, address, mode);
            let place = self.code(address, &region, mode, NONE);
            self.stack.push(place);
        }
        self.node()
    }

    /// Returns the node of where a guest was when it exited, upon the reason.
    pub(super) fn exited(&mut self, reason: ExitReason, pc: u64, pid: i32) -> u32 {
        let mode = match is_kernels(pc) {
            true => CpuMode::GuestKernel,
            false => CpuMode::GuestUser,
        };
        let guest = self.code(pc, &FileRegion::EMPTY, mode, pid);
        let why = self.place(CodePlace::Reason(reason.key().into()));
        self.stack.clear();
        self.stack.extend([guest, why]);
        self.node()
    }

    /// Begins a stack that comes line by line.
    pub(super) fn begin_lines(&mut self) {
        self.stack.clear();
    }

    /// Takes a line of a stack, innermost first.
    pub(super) fn line(&mut self, frame: &StackFrame<'_>) {
        if self.is_deep() {
            return;
        }
        let (mut name, file) = (frame.symbol, frame.file.unwrap_or_default());
        if let Some(text) = &mut name {
            *text = cut(text, MAX_NAME);
        }
        // Files of the kernel and of its modules stand in brackets in perf's texts, and ftrace prints kernel stacks
        // alone.
        let of_user =
            file.starts_with('/') || ["[vdso]", "[unknown]", "[vsyscall]"].contains(&file);
        let guest = file.starts_with("[guest");
        let mode = match (guest, of_user) {
            (true, _) => CpuMode::GuestKernel,
            (_, true) if frame.address.is_some_and(is_kernels) => CpuMode::Kernel,
            (_, true) => CpuMode::User,
            _ => CpuMode::Kernel,
        };
        let name = name.map(Into::into);
        let file = match (&name, frame.address) {
            // What nothing names is kept apart by its address.
            (None, Some(address)) => format!("{}+{address:#x}", base(cut(file, MAX_NAME))),
            _ => base(cut(file, MAX_NAME)).to_owned(),
        };
        let place = self.place(CodePlace::Printed(name, file.into(), mode));
        self.stack.push(place);
    }

    /// Whether any line came.
    pub(super) fn has_lines(&self) -> bool {
        !self.stack.is_empty()
    }

    /// Returns the node of the stack that came line by line.
    pub(super) fn end_lines(&mut self) -> u32 {
        self.node()
    }

    /// Returns the mode of the innermost frame of a stack.
    pub(super) fn mode_of(&self, stack: u32) -> Mode {
        let node = self.tree.nodes().get(index_of(stack));
        let place = node.and_then(|node| self.places.get(index_of(node.frame)));
        match place {
            Some(CodePlace::Code(code)) if stack != ROOT => Mode::of(code.mode),
            Some(CodePlace::Printed(.., mode)) if stack != ROOT => Mode::of(*mode),
            _ => Mode::Kernel,
        }
    }

    fn node(&mut self) -> u32 {
        let (node, whole) = self.tree.node(self.stack.iter().rev().copied());
        if std::mem::take(&mut self.left_out) || !whole {
            self.deep += 1;
        }
        node
    }

    fn code(&mut self, address: u64, region: &FileRegion, mode: CpuMode, pid: i32) -> u32 {
        let of_kernel = matches!(mode, CpuMode::Kernel | CpuMode::GuestKernel);
        let guest_of = if mode.is_guest() { pid } else { NONE };
        self.place(CodePlace::Code(Code {
            file: region.file,
            address: match (region.symbol, of_kernel) {
                (true, _) => region.start,
                (false, true) => address,
                (false, false) => address.wrapping_add(region.shift),
            },
            mode,
            symbol: region.symbol,
            guest_of,
        }))
    }

    /// Returns the place that stands for all beyond those that are kept, of code of a mode.
    fn unplaced(&mut self, mode: CpuMode) -> u32 {
        let place = CodePlace::Printed(Some(LEFT_OUT.into()), "".into(), mode);
        let next = self.places.len() as u32;
        let number = *self.place_numbers.entry(place.clone()).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        number
    }

    fn place(&mut self, place: CodePlace) -> u32 {
        let next = self.places.len();
        if let Some(number) = self.place_numbers.get(&place) {
            return *number;
        }
        if let CodePlace::Printed(name, file, _) = &place {
            self.name_bytes += name.as_ref().map_or(0, |name| name.len()) + file.len();
        }
        if next >= MAX_PLACES || self.name_bytes > MAX_NAMES {
            self.left_out = true;
            return match place {
                CodePlace::Printed(Some(name), ..) if &*name == LEFT_OUT => DEEPER,
                CodePlace::Printed(_, _, mode) => self.unplaced(mode),
                CodePlace::Code(code) => self.unplaced(code.mode),
                _ => DEEPER,
            };
        }
        self.places.push(place.clone());
        self.place_numbers.insert(place, next as u32);
        next as u32
    }
}

/// Whether an address is the kernel's: on x86-64 and arm64 its half of the address space begins with ones.
fn is_kernels(address: u64) -> bool {
    address >> 63 == 1
}

/// Returns a text that is no longer than so many bytes.
fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns a file's name without its folder.
pub(super) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_beyond_the_most_places_are_counted_and_keep_their_mode() {
        let mut calls = Calls::new(&[]);
        let mut line = |number: usize, file: &str| {
            let name = format!("f{number}");
            calls.begin_lines();
            calls.line(&StackFrame {
                address: None,
                symbol: Some(&name),
                file: Some(file),
            });
            calls.end_lines()
        };
        for number in 0..MAX_PLACES {
            line(number, "[kernel.kallsyms]");
        }
        let last = [
            (1, "/usr/bin/qemu"),
            (2, "/usr/bin/qemu"),
            (3, "[kernel.kallsyms]"),
        ];
        let beyond = last.map(|(number, file)| line(MAX_PLACES + number, file));
        assert_eq!(calls.deep, 3);
        assert_eq!(beyond[0], beyond[1]);
        let modes = beyond.map(|node| calls.mode_of(node));
        assert_eq!(modes, [Mode::User, Mode::User, Mode::Kernel]);
    }
}
