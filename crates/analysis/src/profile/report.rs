//! What was sampled, with names.

use model::{Machine, Vm, vcpu_from_comm};
use rustc_hash::{FxHashMap, FxHashSet};
use stacks::{Function, Name, Part, Stacks, Weight};
use symbols::{CpuMode, FileId, Functions, ThreadName, UserNames};

use super::user::user_names;
use super::{DEEPER, Place, Profile, ProfileBy, THREAD};
use crate::analysis::Walked;
use crate::recorder::vhost_of;

/// Bytes of a file's name that are kept: `NAME_MAX` (`include/uapi/linux/limits.h`).
const MAX_FILE: usize = 255;

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

/// What is known of a thread that was sampled.
#[derive(Debug)]
struct Known {
    tid: i32,
    comm: String,
    vm_pid: Option<i32>,
}

impl Profile {
    /// Returns what was found. `functions` names those of the host's kernel, `guest` those of the guests', `user` those of
    /// user space.
    pub fn report(
        &self,
        walked: &Walked<'_>,
        functions: Functions<'_>,
        guest: Functions<'_>,
        user: &mut dyn UserNames,
    ) -> ProfileReport {
        let known = self.known(walked.machine);
        let mut of_user = user_names(self.user_places(), self.addresses.files(), user);
        let names: Vec<Vec<String>> = (self.places.iter().zip(0u32..))
            .map(|(place, number)| match of_user.remove(&number) {
                Some(names) => names,
                None => Vec::from_iter(self.function(place, functions, guest)),
            })
            .collect();
        let left_out = |frame: u32| {
            let thread = known.get((frame ^ THREAD) as usize);
            !self.options.idle && thread.is_some_and(|thread| thread.tid == 0)
        };
        let stacks = Stacks::of_inlined(
            &self.tree,
            |frame| match frame & THREAD {
                0 => self.names(frame, &names),
                _ => vec![Name {
                    text: self.group((frame ^ THREAD) as usize, &known),
                    part: Part::Group,
                }],
            },
            left_out,
        );
        let (rows, idle) = self.rows(known.iter());
        ProfileReport {
            event: self.event.as_ref().map(|(_, label)| label.clone()),
            samples: self.samples,
            idle,
            unresolved: self.unresolved(&names, &left_out),
            damaged: self.damaged,
            shortened: self.deep
                + self.tree.shortened().samples
                + stacks.tree().shortened().samples,
            other_events: self.other_events,
            rows,
            stacks,
        }
    }

    /// Returns what is known of each thread.
    fn known(&self, machine: &Machine) -> Vec<Known> {
        let threads = machine.threads();
        let vms = machine.vms();
        let processes = vm_processes(machine);
        let known = self.threads.iter().map(|thread| {
            let tid = threads.at(thread.slot).map_or(0, |(tid, _)| tid);
            let comm = String::from_utf8_lossy(thread.comm.comm()).into_owned();
            // A vhost worker is a kernel thread, and called after the process that it works for.
            let vhost = vhost_of(&comm).flatten();
            let pid = vhost.or(threads.get(tid).and_then(|thread| thread.pid));
            let vm_pid = vm_of(&vms, &processes, tid, pid);
            Known { tid, comm, vm_pid }
        });
        known.collect()
    }

    /// Returns what stands below the stacks of a thread.
    fn group(&self, number: usize, known: &[Known]) -> String {
        let (Some(thread), Some(Known { tid, comm, vm_pid })) =
            (self.threads.get(number), known.get(number))
        else {
            return String::new();
        };
        match (self.options.by, vm_pid) {
            (ProfileBy::Comm, _) => comm.clone(),
            (ProfileBy::Thread, _) => format!("{comm}/{tid}"),
            (ProfileBy::Cpu, _) if thread.cpu < 0 => "no CPU".to_owned(),
            (ProfileBy::Cpu, _) => format!("CPU {}", thread.cpu),
            (ProfileBy::Vm, Some(pid)) => format!("VM {pid}"),
            (ProfileBy::Vm, None) => "no VM".to_owned(),
        }
    }

    /// Returns the rows of threads, heaviest first, and what idle CPUs weigh.
    fn rows<'k>(&self, known: impl Iterator<Item = &'k Known>) -> (Vec<ProfileRow>, Weight) {
        let mut idle = Weight::default();
        let mut rows: FxHashMap<(i32, &str), ProfileRow> = FxHashMap::default();
        for (Known { tid, comm, vm_pid }, sums) in known.zip(&self.sums) {
            let [guest, kernel, user] = *sums;
            let mut all = guest;
            all.add(kernel);
            all.add(user);
            if *tid == 0 {
                idle.add(all);
                if !self.options.idle {
                    continue;
                }
            }
            let row = rows.entry((*tid, comm)).or_insert_with(|| ProfileRow {
                vm_pid: *vm_pid,
                comm: comm.clone(),
                tid: *tid,
                all: Weight::default(),
                guest: Weight::default(),
                kernel: Weight::default(),
                user: Weight::default(),
            });
            row.all.add(all);
            row.guest.add(guest);
            row.kernel.add(kernel);
            row.user.add(user);
        }
        let mut rows: Vec<ProfileRow> = rows.into_values().collect();
        rows.sort_by(|a, b| {
            let heavier = b.all.amount.cmp(&a.all.amount);
            heavier.then_with(|| (a.tid, &a.comm).cmp(&(b.tid, &b.comm)))
        });
        (rows, idle)
    }

    /// Returns the places in user space of the host: their numbers, files and where in these they are.
    fn user_places(&self) -> impl Iterator<Item = (u32, FileId, u64)> {
        let all = self.places.iter().zip(0u32..);
        let user = all.filter(|(place, _)| {
            place.mode == CpuMode::User && place.file != FileId::UNKNOWN && !place.symbol
        });
        user.map(|(place, number)| (number, place.file, place.address))
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

    /// Returns the names of a place, outermost first.
    fn names(&self, frame: u32, names: &[Vec<String>]) -> Vec<Name> {
        if frame == DEEPER {
            return vec![Name {
                text: "[left out]".to_owned(),
                part: Part::Group,
            }];
        }
        let Some(place) = self.places.get(frame as usize) else {
            return vec![Name {
                text: "[unknown]".to_owned(),
                part: Part::User,
            }];
        };
        let part = match place.mode {
            CpuMode::Kernel => Part::Kernel,
            CpuMode::GuestKernel | CpuMode::GuestUser => Part::Guest,
            CpuMode::User | CpuMode::Other => Part::User,
        };
        let named = |text| Name { text, part };
        match names.get(frame as usize) {
            Some(names) if !names.is_empty() => names.iter().cloned().map(named).collect(),
            _ => vec![named(self.unnamed(place))],
        }
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
    fn unresolved(&self, names: &[Vec<String>], drop: &dyn Fn(u32) -> bool) -> Weight {
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
                    parent.map(|has| has || named.is_some_and(Vec::is_empty))
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

/// Processes of which a thread is called as vCPUs are: VMs, though no event of KVM's says so.
fn vm_processes(machine: &Machine) -> FxHashSet<i32> {
    let named = machine.threads().iter().filter(|(_, thread)| {
        let comm = thread.comm.as_deref();
        comm.is_some_and(|comm| vcpu_from_comm(comm).is_some())
    });
    named.filter_map(|(_, thread)| thread.pid).collect()
}

/// Returns the process of the VM that a thread is of.
fn vm_of(vms: &[Vm], processes: &FxHashSet<i32>, tid: i32, pid: Option<i32>) -> Option<i32> {
    let of = |vm: &&Vm| vm.is_of(tid) || pid.is_some() && vm.pid == pid;
    let known = vms.iter().find(of).and_then(|vm| vm.pid);
    known.or(pid.filter(|pid| processes.contains(pid)))
}
