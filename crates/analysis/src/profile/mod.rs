//! Where CPUs were when perf sampled them: stacks by thread.
//!
//! A sample is of the host's kernel or user space, or of a guest that ran there (`perf kvm --guest record`). Of a guest there
//! is an address and no stack: the kernel samples its own stacks alone (`perf_callchain` in `kernel/events/core.c`).

mod report;
mod user;

use std::sync::Arc;

use event::{Event, EventType, NONE, Side};
use model::Machine;
use rustc_hash::FxHashMap;
use stacks::{Tree, Weight};
use symbols::{Addresses, CpuMode, FileId, KernelFile, Region, ThreadName, frames};

use crate::analysis::{Analysis, Context, Needs, Want};
pub use report::{ProfileReport, ProfileRow};

/// Nodes of stacks that are kept, about 50 bytes each.
const MAX_NODES: usize = 1 << 20;
/// Frames of a stack that are kept, from the inside; `kernel.perf_event_max_stack` is 127 unless somebody raised it.
const MAX_FRAMES: usize = 512;
/// Threads, by name, and places of code that are told apart.
const MAX_THREADS: usize = 1 << 18;
const MAX_PLACES: usize = 1 << 20;

/// Frames that are no place: a thread's number, or what was left out.
const THREAD: u32 = 1 << 31;
const DEEPER: u32 = THREAD - 1;

/// A place of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    file: FileId,
    /// An address of a kernel; of anything else, where in the file it is.
    address: u64,
    mode: CpuMode,
    /// Whether the file's name is the name of the function: code that the kernel made (BPF).
    symbol: bool,
}

/// Bytes of a thread's name that are kept. The kernel's are at most 15, those of its workers 63.
const MAX_COMM: usize = 127;

/// A thread's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Comm(Arc<[u8]>);

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
struct Thread {
    slot: u32,
    comm: Comm,
    /// The CPU, where stacks are asked for by CPU.
    cpu: i32,
}

/// What stands below the stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProfileBy {
    /// The name of the thread.
    #[default]
    Comm,
    /// The thread itself.
    Thread,
    /// The CPU.
    Cpu,
    /// The VM that the thread is of.
    Vm,
}

/// What is shown of samples.
#[derive(Debug, Clone, Default)]
pub struct ProfileOptions {
    /// The event, by the recording's name for it, with or without modifiers; else the first that is no tracepoint.
    pub event: Option<String>,
    /// Whether idle CPUs are shown too.
    pub idle: bool,
    /// What stands below the stacks.
    pub by: ProfileBy,
}

/// Collects samples.
#[derive(Debug)]
pub struct Profile {
    options: ProfileOptions,
    addresses: Addresses<Comm>,
    threads: Vec<Thread>,
    thread_numbers: FxHashMap<Thread, u32>,
    places: Vec<Place>,
    place_numbers: FxHashMap<Place, u32>,
    tree: Tree,
    /// By thread, its samples in a guest, in the kernel, and elsewhere.
    sums: Vec<[Weight; 3]>,
    event: Option<(u32, String)>,
    samples: Weight,
    damaged: u64,
    deep: u64,
    other_events: u64,
    /// The stack now, innermost frame first.
    stack: Vec<u32>,
}

impl Profile {
    /// Returns a collector that has seen nothing. `known` are the kernels and modules that the recording has build ids of.
    pub fn new(options: ProfileOptions, known: &[KernelFile<'_>]) -> Profile {
        Profile {
            options,
            addresses: Addresses::new(true, known),
            threads: Vec::new(),
            thread_numbers: FxHashMap::default(),
            places: Vec::new(),
            place_numbers: FxHashMap::default(),
            tree: Tree::new(MAX_NODES),
            sums: Vec::new(),
            event: None,
            samples: Weight::default(),
            damaged: 0,
            deep: 0,
            other_events: 0,
            stack: Vec::new(),
        }
    }

    fn take(&mut self, event: &Event<'_>, machine: &mut Machine) {
        let Some(sample) = event.sample else {
            return;
        };
        let (chosen, _) = self
            .event
            .get_or_insert_with(|| (event.ty.index, event.ty.label.to_owned()));
        if *chosen != event.ty.index {
            self.other_events += 1;
            return;
        }
        let weight = Weight {
            samples: 1,
            amount: sample.period.unwrap_or(1),
        };
        self.samples.add(weight);
        let mode = CpuMode::of(sample.misc);
        // The thread is the host's, whoever's code its CPU ran.
        let thread_mode = match mode.is_guest() {
            true => CpuMode::Kernel,
            false => mode,
        };
        let (comm, host_space) = self.addresses.running(thread_mode, event.pid, event.tid);
        let thread = Thread {
            slot: machine.slot(event.tid),
            comm: comm.clone(),
            cpu: match self.options.by {
                ProfileBy::Cpu => event.cpu,
                _ => NONE,
            },
        };
        let space = match mode.is_guest() {
            true => self.addresses.running(mode, event.pid, event.tid).1,
            false => host_space,
        };
        let Some(thread) = self.thread(thread) else {
            return;
        };
        let part = match mode {
            CpuMode::GuestKernel | CpuMode::GuestUser => 0,
            CpuMode::Kernel => 1,
            CpuMode::User | CpuMode::Other => 2,
        };
        self.sums[thread as usize][part].add(weight);
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        let mut region = (Region::EMPTY, CpuMode::Other);
        for frame in sample.callchain.into_iter().flat_map(frames) {
            let Ok(frame) = frame else {
                self.damaged += 1;
                stack.clear();
                break;
            };
            if stack.len() == MAX_FRAMES {
                self.deep += 1;
                stack.push(DEEPER);
                break;
            }
            // Callers are mostly in the file of those they called.
            if frame.mode != region.1 || !region.0.has(frame.address) {
                let found = self.addresses.find(mode, space, frame.address, frame.mode);
                region = (found, frame.mode);
            }
            stack.push(self.place(frame.address, &region.0, frame.mode));
        }
        if let Some(ip) = sample.ip.filter(|_| stack.is_empty()) {
            let region = self.addresses.find(mode, space, ip, mode);
            stack.push(self.place(ip, &region, mode));
        }
        let outermost_first = stack.iter().rev().copied();
        self.tree.add(
            std::iter::once(THREAD | thread).chain(outermost_first),
            weight,
        );
        self.stack = stack;
    }

    /// Returns the number of a thread; `None` if there are too many.
    fn thread(&mut self, thread: Thread) -> Option<u32> {
        if let Some(number) = self.thread_numbers.get(&thread) {
            return Some(*number);
        }
        if self.threads.len() == MAX_THREADS {
            return None;
        }
        let number = self.threads.len() as u32;
        self.threads.push(thread.clone());
        self.sums.push([Weight::default(); 3]);
        self.thread_numbers.insert(thread, number);
        Some(number)
    }

    fn place(&mut self, address: u64, region: &Region, mode: CpuMode) -> u32 {
        let of_kernel = matches!(mode, CpuMode::Kernel | CpuMode::GuestKernel);
        let place = Place {
            file: region.file,
            address: match (region.symbol, of_kernel) {
                (true, _) => region.start,
                (false, true) => address,
                (false, false) => address.wrapping_add(region.shift),
            },
            mode,
            symbol: region.symbol,
        };
        let next = self.places.len();
        if let Some(number) = self.place_numbers.get(&place) {
            return *number;
        }
        if next == MAX_PLACES {
            return DEEPER;
        }
        self.places.push(place);
        self.place_numbers.insert(place, next as u32);
        next as u32
    }
}

impl Analysis for Profile {
    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            samples: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> Want {
        let wanted = match &self.options.event {
            Some(name) => is_called(ty, name),
            // What has neither a format nor a subsystem is no tracepoint.
            None => ty.format.is_none() && ty.system.is_empty(),
        };
        match wanted {
            true => Want::Order,
            false => Want::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, _: &event::Data, context: &mut Context<'_>) {
        if context.chosen.counts {
            self.take(event, context.machine);
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        self.addresses.side(side);
    }
}

/// Whether a kind of events is meant by a name: as the recording calls it, without modifiers, or by the event's name alone.
fn is_called(ty: &EventType<'_>, name: &str) -> bool {
    let without = ty.label.split_once(':').map_or(ty.label, |(name, _)| name);
    let full = !ty.system.is_empty() && name == format!("{}:{}", ty.system, ty.name);
    full || [ty.label, ty.name].contains(&name) || ty.system.is_empty() && without == name
}
