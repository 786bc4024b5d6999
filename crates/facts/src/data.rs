//! What is told, and how what is told twice adds up.

use std::collections::{BTreeMap, HashMap};

/// Most threads, vCPUs and VMs that are kept; large hosts have some ten thousand threads.
const MAX_THREADS: usize = 1 << 18;
const MAX_VCPUS: usize = 1 << 18;
const MAX_VMS: usize = 1 << 14;
/// Longest name in bytes; the kernel's have 15, those of VMs are what somebody typed.
const MAX_NAME: usize = 256;
/// Highest thread id of any kernel: `PID_MAX_LIMIT` of `linux/threads.h`.
const MAX_TID: i64 = 4 << 20;

/// What is known of a host beside a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Threads by their id.
    pub threads: BTreeMap<i32, Thread>,
    /// VMs, in the order they were told.
    pub vms: Vec<Vm>,
    /// Text of QEMU's `info mtree`, for one VM.
    pub mtree: Option<String>,
}

/// One thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its process, where that is told.
    pub pid: Option<i32>,
    /// Its name as the kernel has it, where that is told.
    pub comm: Option<String>,
}

/// One VM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vm {
    /// Process of its VMM.
    pub pid: Option<i32>,
    /// The guest's name, as the VMM was told it.
    pub name: Option<String>,
    /// The guest's UUID.
    pub uuid: Option<String>,
    /// Its vCPUs whose threads are told.
    pub vcpus: Vec<Vcpu>,
}

/// One vCPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vcpu {
    /// Its number.
    pub id: u32,
    /// Its thread.
    pub tid: i32,
}

impl Facts {
    /// Returns whether nothing is told.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.vms.is_empty() && self.mtree.is_none()
    }

    /// Adds facts told later: they fill gaps, what was told first stays. Returns what was left out.
    pub fn merge(&mut self, later: Facts) -> Vec<String> {
        let mut gather = Gather::of(std::mem::take(self));
        for (tid, thread) in later.threads {
            gather.thread(tid, thread.pid, thread.comm.as_deref());
        }
        for vm in later.vms {
            gather.vm(vm);
        }
        let mut notes = Vec::new();
        if let Some(text) = later.mtree {
            if gather.facts.mtree.is_none() {
                gather.facts.mtree = Some(text);
            } else {
                notes.push(
                    "holds a second text of info mtree, which is left out: one names the devices"
                        .to_owned(),
                );
            }
        }
        let (facts, left_out) = gather.finish();
        *self = facts;
        notes.extend(left_out);
        notes
    }
}

/// Returns a thread or process id, if the number can be one.
pub(crate) fn id(number: i64) -> Option<i32> {
    (1..=MAX_TID)
        .contains(&number)
        .then(|| i32::try_from(number).ok())?
}

/// Returns a name as it is kept: short enough, and not empty.
fn name(text: &str) -> Option<String> {
    let end = text.floor_char_boundary(MAX_NAME);
    let text = text[..end].trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Facts on their way in.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    facts: Facts,
    /// Index of the VM with a process, and of the one a thread is a vCPU of.
    vm_of_pid: HashMap<i32, usize>,
    vm_of_tid: HashMap<i32, usize>,
    left_out: usize,
}

impl Gather {
    fn of(facts: Facts) -> Gather {
        let mut gather = Gather::default();
        for (at, vm) in facts.vms.iter().enumerate() {
            if let Some(pid) = vm.pid {
                gather.vm_of_pid.entry(pid).or_insert(at);
            }
            for vcpu in &vm.vcpus {
                gather.vm_of_tid.entry(vcpu.tid).or_insert(at);
            }
        }
        gather.facts = facts;
        gather
    }

    /// Takes a thread.
    pub(crate) fn thread(&mut self, tid: i32, pid: Option<i32>, comm: Option<&str>) {
        if self.facts.threads.len() >= MAX_THREADS && !self.facts.threads.contains_key(&tid) {
            self.left_out += 1;
            return;
        }
        let thread = self.facts.threads.entry(tid).or_default();
        thread.pid = thread.pid.or(pid);
        if thread.comm.is_none() {
            thread.comm = comm.and_then(name);
        }
    }

    /// Takes a VM: another one, or more of the one that has this process or one of these threads. Returns
    /// its index.
    pub(crate) fn vm(&mut self, vm: Vm) -> Option<usize> {
        let of_pid = vm.pid.and_then(|pid| self.vm_of_pid.get(&pid).copied());
        let of_tid = || {
            let mut owners = vm.vcpus.iter().map(|v| self.vm_of_tid.get(&v.tid).copied());
            owners.find_map(|owner| owner).filter(|at| {
                let known = self.facts.vms.get(*at).and_then(|known| known.pid);
                known.is_none() || vm.pid.is_none() || known == vm.pid
            })
        };
        let at = match of_pid.or_else(of_tid) {
            Some(at) => at,
            None if self.facts.vms.len() < MAX_VMS => {
                self.facts.vms.push(Vm::default());
                self.facts.vms.len() - 1
            }
            None => {
                self.left_out += 1;
                return None;
            }
        };
        let known = &mut self.facts.vms[at];
        known.pid = known.pid.or(vm.pid);
        if let Some(pid) = known.pid {
            self.vm_of_pid.entry(pid).or_insert(at);
        }
        known.name = known.name.take().or_else(|| name(vm.name.as_deref()?));
        known.uuid = known.uuid.take().or_else(|| name(vm.uuid.as_deref()?));
        for vcpu in vm.vcpus {
            if self.vm_of_tid.contains_key(&vcpu.tid) {
                continue;
            }
            if self.vm_of_tid.len() >= MAX_VCPUS {
                self.left_out += 1;
                continue;
            }
            self.vm_of_tid.insert(vcpu.tid, at);
            known.vcpus.push(vcpu);
        }
        Some(at)
    }

    /// Takes a line of `info mtree`.
    pub(crate) fn mtree(&mut self, line: &str) {
        let text = self.facts.mtree.get_or_insert_default();
        text.push_str(line);
        text.push('\n');
    }

    /// Returns the facts, and what was too much.
    pub(crate) fn finish(mut self) -> (Facts, Option<String>) {
        for vm in &mut self.facts.vms {
            vm.vcpus.sort_by_key(|vcpu| (vcpu.id, vcpu.tid));
        }
        let note = (self.left_out > 0).then(|| {
            format!(
                "{} threads or VMs are left out: more than any host has",
                self.left_out
            )
        });
        (self.facts, note)
    }
}
