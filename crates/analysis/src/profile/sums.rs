//! What threads and functions took of the CPUs, by samples: what rules and comparisons look at.

use event::{Data, Event, EventType, Side, index_of};
use rustc_hash::FxHashMap;
use stacks::{FrameName, FrameOwner, ROOT, Stacks, Weight};
use symbols::KernelFile;

use super::log::Log;
use super::{FunctionNamer, Profile, ProfileBy, ProfileContext, ProfileOptions, ProfileReport};
use crate::analysis::{Analysis, Context, EventDetail, Needs, WalkState};

/// What the amounts of samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleUnit {
    /// Nanoseconds of a CPU.
    Nanoseconds,
    /// Cycles of a CPU, which is not known to be of one frequency.
    Cycles,
    /// Samples: the recording does not say what each stands for.
    Samples,
}

/// A thread that was sampled, by the name that it had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileThread {
    /// Its id; 0 for the idle tasks of all CPUs.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// The process of the VM that it is of, if it is of one.
    pub vm_pid: Option<i32>,
    /// Its samples.
    pub all: Weight,
    /// Those in a guest.
    pub guest: Weight,
    /// Of those, the ones in a guest's user space.
    pub guest_user: Weight,
    /// Of those, the ones in functions in which a guest is idle.
    pub guest_idle: Weight,
    /// Those in the host's kernel.
    pub kernel: Weight,
}

impl ProfileThread {
    /// Returns whether it is the idle task.
    pub fn is_idle(&self) -> bool {
        self.tid == 0
    }
}

/// What was sampled of the time of CPUs.
#[derive(Debug, Clone)]
pub struct ProfileSums {
    /// The event that was sampled, as the recording calls it.
    pub event: String,
    /// What amounts are.
    pub unit: SampleUnit,
    /// Threads, heaviest first, the idle task among them.
    pub threads: Vec<ProfileThread>,
    /// How long slices of time are; `None` where nobody asked for them or there were too many stacks to follow.
    pub slice_ns: Option<u64>,
    /// Samples in the host's kernel (of the recording's own machine), and those whose function has a name.
    pub kernel: (u64, u64),
    /// The same of guests.
    pub guest: (u64, u64),
    stacks: Stacks,
    /// By the name that stands below a thread's stacks, the thread.
    of_group: FxHashMap<u32, usize>,
    /// What was sampled when: nodes of the stacks, slices, and what they weigh, by node.
    slices: Vec<(u32, u32, Weight)>,
}

impl ProfileSums {
    fn of(
        report: ProfileReport,
        log: Option<&Log>,
        asked: &dyn Fn(i32) -> bool,
    ) -> Option<ProfileSums> {
        let event = report.event?;
        let unit = match unit_of(&event)? {
            _ if report.samples.amount == report.samples.samples => SampleUnit::Samples,
            unit => unit,
        };
        let stacks = report.stacks;
        let rows = report.rows.iter().filter(|row| asked(row.tid));
        let threads: Vec<ProfileThread> = rows
            .map(|row| ProfileThread {
                tid: row.tid,
                comm: row.comm.clone(),
                vm_pid: row.vm_pid,
                all: row.all,
                guest: row.guest,
                guest_user: row.guest_user,
                guest_idle: row.guest_idle,
                kernel: {
                    let mut kernel = row.kernel;
                    kernel.add(row.kvm);
                    kernel
                },
            })
            .collect();
        let numbers = threads.iter().enumerate();
        let by_name: FxHashMap<String, usize> = numbers
            .map(|(number, thread)| (format!("{}/{}", thread.comm, thread.tid), number))
            .collect();
        let names = stacks.names().iter().zip(0u32..);
        let of_group = names
            .filter(|(name, _)| name.part == FrameOwner::Group)
            .filter_map(|(name, frame)| Some((frame, *by_name.get(&*name.text)?)))
            .collect();
        let log = log.and_then(Log::entries);
        let entries = log.into_iter().flat_map(|(_, entries)| entries);
        let mut slices: Vec<(u32, u32, Weight)> = entries
            .filter_map(|(row, slice, weight)| {
                let node = report.nodes.get(index_of(*row)).copied().flatten()?;
                Some((node, *slice, *weight))
            })
            .collect();
        slices.sort_unstable_by_key(|(node, slice, _)| (*node, *slice));
        let mut sums = ProfileSums {
            event,
            unit,
            threads,
            slice_ns: log.map(|(ns, _)| ns),
            kernel: (0, 0),
            guest: (0, 0),
            stacks,
            of_group,
            slices,
        };
        sums.count_named();
        Some(sums)
    }

    /// Counts the samples whose innermost function has a name.
    fn count_named(&mut self) {
        let nodes = self.stacks.tree().nodes().iter();
        for node in nodes.filter(|node| node.own.samples > 0) {
            let Some(name) = self.stacks.name(node.frame) else {
                continue;
            };
            let (all, named) = match name.part {
                FrameOwner::Kernel | FrameOwner::Kvm => &mut self.kernel,
                FrameOwner::Guest => &mut self.guest,
                FrameOwner::Group | FrameOwner::User | FrameOwner::Vmm | FrameOwner::Unknown => {
                    continue;
                }
            };
            *all += node.own.samples;
            *named += if is_function(name) {
                node.own.samples
            } else {
                0
            };
        }
    }

    /// Returns what the threads weigh that had something to do.
    pub fn busy(&self) -> Weight {
        let mut sum = Weight::default();
        let busy = self.threads.iter().filter(|thread| !thread.is_idle());
        busy.for_each(|thread| sum.add(thread.all));
        sum
    }

    /// Returns whether functions of the recording's own kernel have names, as far as any were sampled.
    pub fn names_kernel(&self) -> bool {
        self.kernel.1 * 2 >= self.kernel.0
    }

    /// Returns whether samples have stacks: some of them more than the innermost function.
    pub fn has_stacks(&self) -> bool {
        let mut any = false;
        self.each(|_, path, _| any |= path.len() > 1);
        any
    }

    /// Returns whether functions of guests have names: some of them, since those of a guest's user space never have.
    pub fn names_guests(&self) -> bool {
        self.guest.1 > 0
    }

    /// Returns the names of frames, by number.
    pub fn names(&self) -> &[FrameName] {
        self.stacks.names()
    }

    /// Returns by number which frames are functions of some part whose names a test picks, without what the compiler
    /// added.
    pub fn marked(&self, part: FrameOwner, pick: impl Fn(&str) -> bool) -> Vec<bool> {
        let all = self.stacks.names().iter();
        // KVM is of the kernel.
        let is_of =
            |of: FrameOwner| of == part || of == FrameOwner::Kvm && part == FrameOwner::Kernel;
        all.map(|name| is_of(name.part) && pick(plain(&name.text)))
            .collect()
    }

    /// Hands out all stacks: the thread, the numbers of the frames' names, innermost first, and what they weigh. Stacks
    /// of threads that nobody asked for are left out.
    pub fn each(&self, mut stack: impl FnMut(&ProfileThread, &[u32], Weight)) {
        let mut path = Vec::new();
        for (node, number) in self.stacks.tree().nodes().iter().zip(0u32..) {
            if node.own.samples > 0
                && let Some(thread) = self.path(number, &mut path)
            {
                stack(&self.threads[thread], &path, node.own);
            }
        }
    }

    /// Hands out the same by slice of time, where these were asked for.
    pub fn each_slice(&self, mut stack: impl FnMut(&ProfileThread, &[u32], u32, Weight)) {
        let mut path = Vec::new();
        let mut known: Option<(u32, Option<usize>)> = None;
        for (node, slice, weight) in &self.slices {
            let thread = match known {
                Some((same, thread)) if same == *node => thread,
                _ => self.path(*node, &mut path),
            };
            known = Some((*node, thread));
            if let Some(thread) = thread {
                stack(&self.threads[thread], &path, *slice, *weight);
            }
        }
    }

    /// Finds out the stack of a node, innermost frame first, and the number of its thread.
    fn path(&self, node: u32, path: &mut Vec<u32>) -> Option<usize> {
        path.clear();
        let nodes = self.stacks.tree().nodes();
        let mut at = node;
        while at != ROOT {
            let node = nodes.get(index_of(at))?;
            at = node.parent;
            path.push(node.frame);
        }
        self.of_group.get(&path.pop()?).copied()
    }

    /// Returns what the samples weigh, by thread, of stacks that a test picks: by the thread, and the numbers of the
    /// frames' names, innermost first. Threads without any are left out.
    pub fn of_threads(
        &self,
        pick: impl Fn(&ProfileThread, &[u32]) -> bool,
    ) -> Vec<(&ProfileThread, Weight)> {
        let mut sums = vec![Weight::default(); self.threads.len()];
        let mut path = Vec::new();
        for (node, number) in self.stacks.tree().nodes().iter().zip(0u32..) {
            if node.own.samples > 0
                && let Some(thread) = self.path(number, &mut path)
                && pick(&self.threads[thread], &path)
            {
                sums[thread].add(node.own);
            }
        }
        let all = self.threads.iter().zip(sums);
        all.filter(|(_, sum)| sum.samples > 0).collect()
    }
}

/// Returns a function's name without what the compiler made of it: `tun_get_user.isra.0` is `tun_get_user`.
pub fn plain(name: &str) -> &str {
    match name.split_once('.') {
        Some((plain, rest)) if !plain.is_empty() && is_suffix(rest) => plain,
        _ => name,
    }
}

/// Whether what follows a dot is what GCC and LLVM add to names of functions that they split or specialise.
fn is_suffix(rest: &str) -> bool {
    let first = rest.split('.').next().unwrap_or_default();
    ["isra", "constprop", "part", "cold", "llvm", "lto_priv"].contains(&first)
}

/// Returns whether a frame is a function that has a name, and no place or address that stands for it.
pub fn is_function(name: &FrameName) -> bool {
    let text = &*name.text;
    !text.contains("+0x") && !text.starts_with('[') && !text.starts_with("0x")
}

/// Returns what samples of an event stand for; `None` if that is no time of a CPU, or of a part of its time.
pub(crate) fn unit_of(label: &str) -> Option<SampleUnit> {
    // cycles:ppp, cpu_core/cycles/P, armv8_pmuv3_0/cpu-cycles,period=1/
    let (name, modifiers) = match label.split_once('/') {
        Some((_, rest)) => {
            let (terms, modifiers) = rest.split_once('/').unwrap_or((rest, ""));
            (terms.split(',').next().unwrap_or_default(), modifiers)
        }
        None => label.split_once(':').unwrap_or((label, "")),
    };
    // User space alone, the kernel alone, the hypervisor alone.
    let part = modifiers.contains(['u', 'k', 'h']);
    match name {
        _ if part && !(modifiers.contains('u') && modifiers.contains('k')) => None,
        "cpu-clock" | "task-clock" => Some(SampleUnit::Nanoseconds),
        "cycles" | "cpu-cycles" => Some(SampleUnit::Cycles),
        _ => None,
    }
}

/// Collects samples of the CPUs' time.
#[derive(Debug)]
pub struct SampledTime {
    profile: Profile,
    /// Whether kinds of events are known, and whether samples of time are among them.
    asked: bool,
    samples: bool,
    /// What was sampled when.
    log: Option<Log>,
    now: u64,
}

impl SampledTime {
    /// Returns a collector that has seen nothing. `known` are the kernels and modules that the recording has build ids
    /// of; `slices` says whether it is asked when samples were taken.
    pub fn new(known: &[KernelFile<'_>], slices: bool) -> SampledTime {
        let options = ProfileOptions {
            idle: true,
            by: ProfileBy::Thread,
            ..ProfileOptions::default()
        };
        SampledTime {
            profile: Profile::new(options, known),
            asked: false,
            samples: false,
            log: slices.then(Log::default),
            now: 0,
        }
    }

    /// Returns what was found; `None` where nothing was sampled. `namer` names functions, and `asked` says which
    /// threads are looked at.
    pub fn report(
        &self,
        walked: &WalkState<'_>,
        namer: FunctionNamer<'_>,
        asked: &dyn Fn(i32) -> bool,
    ) -> Option<ProfileSums> {
        if !self.samples {
            return None;
        }
        let beside = ProfileContext {
            namer,
            keep: &|_, _| true,
            guests: &[],
            guest_ns: &[],
        };
        let report = self.profile.report(walked, beside, &mut ());
        ProfileSums::of(report, self.log.as_ref(), asked)
    }

    fn note(&mut self) {
        if let Some((node, weight)) = self.profile.last.take()
            && let Some(log) = &mut self.log
        {
            log.add(node, self.now, weight);
        }
    }
}

impl Analysis for SampledTime {
    fn needs(&self) -> Needs {
        self.profile.needs()
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        self.asked = true;
        let time = ty.format.is_none() && ty.system.is_empty() && unit_of(ty.label).is_some();
        self.samples |= time;
        match time {
            true => self.profile.wants(ty),
            false => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        self.profile.event(event, data, context);
        self.now = event.time;
        self.note();
    }

    fn side(&mut self, side: &Side<'_>) {
        // Where nothing is sampled nobody asks where files are mapped.
        if self.samples || !self.asked {
            self.profile.side(side);
            self.note();
        }
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        self.profile.finish(context);
        self.note();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_is_time() {
        for (label, unit) in [
            ("cpu-clock:ppp", Some(SampleUnit::Nanoseconds)),
            ("task-clock", Some(SampleUnit::Nanoseconds)),
            ("cycles", Some(SampleUnit::Cycles)),
            ("cycles:P", Some(SampleUnit::Cycles)),
            ("cycles:H", Some(SampleUnit::Cycles)),
            ("cycles:uk", Some(SampleUnit::Cycles)),
            ("cpu_core/cycles/P", Some(SampleUnit::Cycles)),
            (
                "armv8_pmuv3_0/cpu-cycles,period=9/",
                Some(SampleUnit::Cycles),
            ),
            ("cycles:u", None),
            ("cpu_core/cycles/u", None),
            ("page-faults", None),
            ("instructions", None),
            ("cpu/event=0x3c/", None),
            ("sched:sched_switch", None),
            ("", None),
        ] {
            assert_eq!(unit_of(label), unit, "{label}");
        }
    }

    #[test]
    fn names_are_those_of_the_source() {
        for (name, source) in [
            ("tun_get_user", "tun_get_user"),
            ("tun_get_user.isra.0", "tun_get_user"),
            ("kvm_vcpu_halt.part.0.cold", "kvm_vcpu_halt"),
            ("libc.so.6", "libc.so.6"),
            (".text", ".text"),
        ] {
            assert_eq!(plain(name), source);
        }
        let name = |text: &str| FrameName {
            text: text.into(),
            part: FrameOwner::Kernel,
        };
        assert!(is_function(&name("od_dbs_update")));
        for place in ["vmlinux+0xffffffff81000000", "[unknown]", "[guest]"] {
            assert!(!is_function(&name(place)), "{place}");
        }
    }
}
