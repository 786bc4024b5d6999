//! Where CPUs were when perf sampled them: stacks by thread.
//!
//! A sample is of the host's kernel or user space, or of a guest that ran there (`perf kvm --guest record`). Of a guest there
//! is an address and no stack: the kernel samples its own stacks alone (`perf_callchain` in `kernel/events/core.c`).

use std::sync::Arc;

use event::{Event, EventType, Side};
use model::{Machine, Vm, vcpu_from_comm};
use rustc_hash::{FxHashMap, FxHashSet};
use stacks::{Function, Name, Part, Stacks, Tree, Weight};
use symbols::{Addresses, CpuMode, FileId, Functions, KernelFile, Region, ThreadName, frames};

use crate::analysis::{Analysis, Context, Needs, Walked, Want};
use crate::recorder::vhost_of;

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

/// Bytes of a file's name that are kept: `NAME_MAX` (`include/uapi/linux/limits.h`).
const MAX_FILE: usize = 255;
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
}

/// What one thread weighs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRow {
    /// The process of the VM that it is of, if it is of one.
    pub vm_pid: Option<i32>,
    /// The name that it had.
    pub comm: String,
    /// Its id.
    pub tid: i32,
    /// Its samples.
    pub all: Weight,
    /// Those in a guest, in the host's kernel, and in user space of the host.
    pub guest: Weight,
    /// In the host's kernel.
    pub kernel: Weight,
    /// In user space of the host.
    pub user: Weight,
}

/// What was sampled.
#[derive(Debug, Clone)]
pub struct ProfileReport {
    /// The event that was sampled, as the recording calls it; `None` where nothing was.
    pub event: Option<String>,
    /// All of its samples.
    pub samples: Weight,
    /// Those of idle CPUs.
    pub idle: Weight,
    /// Those shown in which some function has no name.
    pub unresolved: Weight,
    /// Those whose stacks are damaged: the innermost address alone is used.
    pub damaged: u64,
    /// Those whose outer frames, or inner ones where there are too many stacks, are left out.
    pub shortened: u64,
    /// Samples of other events, which are not shown.
    pub other_events: u64,
    /// Threads, heaviest first.
    pub rows: Vec<ProfileRow>,
    /// Stacks: thread, then frames from the outermost on.
    pub stacks: Stacks,
}

impl ProfileReport {
    /// Returns what is shown.
    pub fn shown(&self) -> Weight {
        self.rows.iter().fold(Weight::default(), |mut sum, row| {
            sum.add(row.all);
            sum
        })
    }

    /// Returns the functions that were sampled, heaviest first.
    pub fn functions(&self) -> Vec<Function> {
        self.stacks.functions()
    }
}

/// What is shown of samples.
#[derive(Debug, Clone, Default)]
pub struct ProfileOptions {
    /// The event, by the recording's name for it, with or without modifiers; else the first that is no tracepoint.
    pub event: Option<String>,
    /// Whether idle CPUs are shown too.
    pub idle: bool,
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

    /// Returns what was found. `functions` names those of the host's kernel, `guest` those of the guests'.
    pub fn report(
        &self,
        walked: &Walked<'_>,
        functions: Functions<'_>,
        guest: Functions<'_>,
    ) -> ProfileReport {
        let threads = walked.machine.threads();
        let tid = |thread: &Thread| threads.at(thread.slot).map_or(0, |(tid, _)| tid);
        let idle = |number: u32| {
            let thread = self.threads.get((number ^ THREAD) as usize);
            thread.is_some_and(|thread| tid(thread) == 0)
        };
        let names: Vec<Option<String>> = (self.places.iter())
            .map(|place| self.function(place, functions, guest))
            .collect();
        let stacks = Stacks::of(
            &self.tree,
            |frame| self.name(frame, &names),
            |frame| !self.options.idle && idle(frame),
        );
        let vms = walked.machine.vms();
        let vm_processes = self.vm_processes(walked.machine);
        let mut report = ProfileReport {
            event: self.event.as_ref().map(|(_, label)| label.clone()),
            samples: self.samples,
            idle: Weight::default(),
            unresolved: self.unresolved(&names, &|number| !self.options.idle && idle(number)),
            damaged: self.damaged,
            shortened: self.deep + self.tree.shortened().samples,
            other_events: self.other_events,
            rows: Vec::new(),
            stacks,
        };
        for (thread, sums) in self.threads.iter().zip(&self.sums) {
            let [guest, kernel, user] = *sums;
            let mut all = guest;
            all.add(kernel);
            all.add(user);
            let tid = tid(thread);
            if tid == 0 {
                report.idle.add(all);
                if !self.options.idle {
                    continue;
                }
            }
            let comm = String::from_utf8_lossy(thread.comm.comm()).into_owned();
            // A vhost worker is a kernel thread, and called after the process that it works for.
            let vhost = vhost_of(&comm).flatten();
            let pid = vhost.or(threads.get(tid).and_then(|thread| thread.pid));
            report.rows.push(ProfileRow {
                vm_pid: vm_of(&vms, &vm_processes, tid, pid),
                comm,
                tid,
                all,
                guest,
                kernel,
                user,
            });
        }
        report.rows.sort_by(|a, b| {
            let heavier = b.all.amount.cmp(&a.all.amount);
            heavier.then_with(|| (a.tid, &a.comm).cmp(&(b.tid, &b.comm)))
        });
        report
    }

    /// Processes of which a thread is called as vCPUs are: VMs, though no event of KVM's says so.
    fn vm_processes(&self, machine: &Machine) -> FxHashSet<i32> {
        let threads = machine.threads().iter();
        threads
            .filter(|(_, thread)| {
                thread
                    .comm
                    .as_deref()
                    .is_some_and(|comm| vcpu_from_comm(comm).is_some())
            })
            .filter_map(|(_, thread)| thread.pid)
            .collect()
    }

    /// Returns the name of a function, or `None` where nothing names it.
    fn function(
        &self,
        place: &Place,
        functions: Functions<'_>,
        guest: Functions<'_>,
    ) -> Option<String> {
        if place.symbol {
            return Some(self.file(place));
        }
        let named = match place.mode {
            CpuMode::Kernel => functions.name(place.address),
            CpuMode::GuestKernel => guest.name(place.address),
            CpuMode::User | CpuMode::GuestUser | CpuMode::Other => None,
        };
        named.map(str::to_owned)
    }

    fn name(&self, frame: u32, names: &[Option<String>]) -> Name {
        if frame == DEEPER {
            return Name {
                text: "[left out]".to_owned(),
                part: Part::Group,
            };
        }
        if frame & THREAD != 0 {
            let thread = self.threads.get((frame ^ THREAD) as usize);
            let comm = thread.map_or(&b""[..], |thread| thread.comm.comm());
            return Name {
                text: String::from_utf8_lossy(comm).into_owned(),
                part: Part::Group,
            };
        }
        let Some(place) = self.places.get(frame as usize) else {
            return Name {
                text: "[unknown]".to_owned(),
                part: Part::User,
            };
        };
        let part = match place.mode {
            CpuMode::Kernel => Part::Kernel,
            CpuMode::GuestKernel | CpuMode::GuestUser => Part::Guest,
            CpuMode::User | CpuMode::Other => Part::User,
        };
        let text = match names.get(frame as usize) {
            Some(Some(name)) => name.clone(),
            _ => self.unnamed(place),
        };
        Name { text, part }
    }

    /// What stands for a function that nothing names: its file and where in it, or the address alone.
    fn unnamed(&self, place: &Place) -> String {
        if place.mode.is_guest() {
            return "[guest]".to_owned();
        }
        if place.file == FileId::UNKNOWN {
            return "[unknown]".to_owned();
        }
        format!("{}+{:#x}", self.file(place), place.address)
    }

    /// The name of a file without its folder, no longer than a file system has it.
    fn file(&self, place: &Place) -> String {
        let name = self.addresses.files().name(place.file);
        let base = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        String::from_utf8_lossy(&base[..base.len().min(MAX_FILE)]).into_owned()
    }

    /// Samples in whose stacks some frame has no name.
    fn unresolved(&self, names: &[Option<String>], drop: &dyn Fn(u32) -> bool) -> Weight {
        let mut sum = Weight::default();
        // By node, whether its stack has such a frame; nothing where it is not shown.
        let mut has: Vec<Option<bool>> = Vec::with_capacity(self.tree.nodes().len());
        for node in self.tree.nodes() {
            let parent = has.get(node.parent as usize).copied();
            let is_thread = node.frame & THREAD != 0;
            let here = match parent {
                None => Some(false),
                Some(_) if is_thread => (!drop(node.frame)).then_some(false),
                Some(parent) => {
                    let named = names.get(node.frame as usize);
                    parent.map(|has| has || matches!(named, Some(None)))
                }
            };
            if here == Some(true) {
                sum.add(node.own);
            }
            has.push(here);
        }
        sum
    }
}

/// Returns the process of the VM that a thread is of.
fn vm_of(vms: &[Vm], processes: &FxHashSet<i32>, tid: i32, pid: Option<i32>) -> Option<i32> {
    let of = |vm: &&Vm| vm.is_of(tid) || pid.is_some() && vm.pid == pid;
    let known = vms.iter().find(of).and_then(|vm| vm.pid);
    known.or(pid.filter(|pid| processes.contains(pid)))
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
