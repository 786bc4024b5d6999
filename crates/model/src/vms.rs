//! VMs, found from their vCPU threads.

use std::collections::{BTreeMap, BTreeSet};

use event::index_of;

use crate::{Thread, Threads, vcpu_from_comm};

/// One vCPU of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vcpu {
    /// Its number: recorded, part of the thread's name, or counted by thread id where neither is there.
    pub id: u32,
    /// Its thread.
    pub tid: i32,
    /// Slot of that thread in [`Threads`].
    pub thread: u32,
}

/// One VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vm {
    /// Process of the virtual machine monitor, if the recording or facts beside it say so.
    pub pid: Option<i32>,
    /// The guest's name where facts give it, else the name of the process.
    pub name: Option<String>,
    /// Name of the process.
    pub process: Option<String>,
    /// The guest's UUID where facts give it.
    pub uuid: Option<String>,
    /// Its vCPUs by number.
    pub vcpus: Vec<Vcpu>,
    /// Other threads that are of it where its process is not recorded: its VMM's, and of the kernel those that work for
    /// it alone.
    pub helpers: Vec<i32>,
    /// Whether nothing but the order of thread ids says that these vCPUs are one VM's.
    pub guessed: bool,
    /// Whether names or facts alone say that these threads are vCPUs.
    pub presumed: bool,
}

impl Vm {
    /// Returns whether a process or thread id is that of its process, or of a thread of it.
    pub fn is_of(&self, id: i32) -> bool {
        self.pid == Some(id)
            || self.helpers.contains(&id)
            || self.vcpus.iter().any(|vcpu| vcpu.tid == id)
    }

    fn is_pid(&self, name: &str) -> bool {
        let id = name.parse().ok();
        id.is_some_and(|id| self.pid == Some(id) || self.helpers.contains(&id))
    }

    /// Returns whether the VM is meant by a name: the guest's, its UUID, that of its process, or the
    /// process id.
    pub fn is_called(&self, name: &str) -> bool {
        [&self.name, &self.process, &self.uuid]
            .iter()
            .any(|known| known.as_deref() == Some(name))
            || self.is_pid(name)
            || self
                .name
                .as_deref()
                .and_then(|own| own.strip_prefix("guest "))
                == Some(name)
            || self.vcpus.iter().any(|vcpu| name.parse() == Ok(vcpu.tid))
    }
}

/// Groups vCPU threads into VMs.
///
/// With process ids (perf.data) that is certain. ftrace records thread ids only. There, the recording's own map of a
/// guest, and facts beside the recording, say whose a thread is: by its process, or as one of a VM's vCPUs. Of
/// the others wake-ups tell which are of one VM (`bonds`). What is left is guessed: the threads of a VM are taken to be
/// made one after the other, so in the order of thread ids a vCPU number that is not higher than the one before begins
/// the next VM. VMs that start at the same time break that, so a guess is marked as one ([`Vm::guessed`]), unless all
/// threads fit into one VM by their numbers. Kernel threads that carry the VMM's process id in their name
/// (`kvm-pit/PID`, `kvm-nx-lpage-recovery-PID`, `vhost-PID`) tell that id, if that process is known too: ftrace also
/// saves names of threads that are long gone.
pub fn find_vms(threads: &Threads) -> Vec<Vm> {
    let mut vcpus: Vec<VcpuMember<'_>> = (threads.slots())
        .filter(|(_, _, thread)| thread.is_vcpu)
        .map(|(slot, tid, thread)| VcpuMember {
            tid,
            slot,
            thread,
            number: number(thread),
        })
        .collect();
    vcpus.sort_by_key(|member| member.tid);
    let mut by_pid: BTreeMap<i32, Vec<VcpuMember<'_>>> = BTreeMap::new();
    let mut by_claim: BTreeMap<u32, Vec<VcpuMember<'_>>> = BTreeMap::new();
    let mut without: Vec<VcpuMember<'_>> = Vec::new();
    for member in vcpus {
        match (member.thread.pid, member.thread.claim) {
            (Some(pid), _) => by_pid.entry(pid).or_default().push(member),
            (None, Some(claim)) => by_claim.entry(claim.vm).or_default().push(member),
            (None, None) => without.push(member),
        }
    }
    let named = threads.served_processes();
    let known = |pid: i32| threads.get(pid).is_some_and(|thread| thread.comm.is_some());
    let claimed = by_claim.into_values().map(|members| ThreadGroup {
        members,
        ..ThreadGroup::default()
    });
    let mut groups: Vec<ThreadGroup<'_>> = claimed.collect();
    groups.extend(bonded(threads, without, &named));
    let several = by_pid.len() + groups.len() > 1;
    let owners: Vec<Option<i32>> = groups
        .iter()
        .map(|group| group.owner(&named).filter(|pid| known(*pid)))
        .collect();
    let mut vms: Vec<Vm> = by_pid
        .iter()
        .map(|(pid, members)| vm(threads, Some(*pid), members))
        .collect();
    let mut claimed: BTreeMap<Option<i32>, usize> = BTreeMap::new();
    for owner in &owners {
        *claimed.entry(*owner).or_default() += 1;
    }
    for (group, owner) in groups.into_iter().zip(&owners) {
        // Two groups cannot be one process's: then nobody knows whose either is.
        let claims = claimed.get(owner).copied().unwrap_or(0);
        let fits = |pid: &i32| claims == 1 && !by_pid.contains_key(pid);
        vms.push(Vm {
            guessed: group.by_order && (several || !group.numbered()),
            helpers: group.helpers,
            ..vm(threads, owner.filter(fits), &group.members)
        });
    }
    vms
}

/// Threads of one VM whose process is not recorded.
#[derive(Default)]
struct ThreadGroup<'t> {
    members: Vec<VcpuMember<'t>>,
    /// Other threads that are of it.
    helpers: Vec<i32>,
    /// Whether only the order of thread ids makes it one.
    by_order: bool,
}

impl ThreadGroup<'_> {
    /// Whether the vCPUs' numbers allow one VM only: they are known, or there is one vCPU.
    fn numbered(&self) -> bool {
        self.members.len() < 2 || self.members.iter().all(|member| member.number.is_some())
    }

    /// Whether threads made later may be of the same VM.
    fn goes_on(&self, next: &ThreadGroup<'_>, named: &[i32]) -> bool {
        let (Some(last), Some(first)) = (self.members.last(), next.members.first()) else {
            return false;
        };
        let numbers = |group: &ThreadGroup<'_>| -> Vec<u32> {
            let all = group.members.iter().filter_map(|member| member.number);
            all.collect()
        };
        let highest = numbers(self).into_iter().max();
        let lowest = numbers(next).into_iter().min();
        let falls = highest.zip(lowest).is_some_and(|(a, b)| b <= a);
        // A VM has one main loop. Without numbers nothing else separates VMs whose threads wake each other.
        let apart =
            highest.zip(lowest).is_none() && !self.helpers.is_empty() && !next.helpers.is_empty();
        // A process id between two vCPU threads belongs to a VMM that started between them.
        let next = named.partition_point(|pid| *pid <= last.tid);
        let other = named.get(next).is_some_and(|pid| *pid < first.tid);
        !falls && !apart && !other
    }

    /// The process that made its threads: one of them that names of the kernel's threads know for a VMM's, else the
    /// highest id of such below them.
    fn owner(&self, named: &[i32]) -> Option<i32> {
        let mut of_it = self.helpers.iter().filter(|tid| named.contains(tid));
        if let Some(pid) = of_it.next() {
            return of_it.next().is_none().then_some(*pid);
        }
        let first = self.members.first()?.tid;
        let below = named.partition_point(|pid| *pid < first);
        let pid = named.get(below.checked_sub(1)?).copied()?;
        // A thread that is older than a process is none of its.
        let older = !self.helpers.is_empty() && self.helpers.iter().all(|tid| *tid < pid);
        (!older).then_some(pid)
    }
}

/// Groups threads of which neither a process nor a map is known. Threads that wake each other stay together; these and
/// all others are put to what comes before them in the order of thread ids, as long as that goes on with higher
/// numbers.
fn bonded<'t>(
    threads: &'t Threads,
    without: Vec<VcpuMember<'t>>,
    named: &[i32],
) -> Vec<ThreadGroup<'t>> {
    let numbers = without
        .iter()
        .map(|member| (member.tid, member.number))
        .collect();
    let comm = |tid: i32| threads.get(tid)?.comm.as_deref();
    let mut parts: Vec<ThreadGroup<'_>> = Vec::new();
    // Of each thread, the group that it is of.
    let mut group_of: BTreeMap<i32, usize> = BTreeMap::new();
    for (vcpus, helpers) in threads.bonds.groups(&numbers, comm) {
        group_of.extend(vcpus.into_iter().map(|tid| (tid, parts.len())));
        parts.push(ThreadGroup {
            helpers,
            ..ThreadGroup::default()
        });
    }
    for member in without {
        match group_of.get(&member.tid).and_then(|at| parts.get_mut(*at)) {
            Some(part) => part.members.push(member),
            None => parts.push(ThreadGroup {
                members: vec![member],
                ..ThreadGroup::default()
            }),
        }
    }
    for part in &mut parts {
        // One vCPU says nothing of others, and a VM has a vCPU 0.
        let first = part.members.iter().map(|member| member.number).min();
        part.by_order = part.members.len() < 2 || !matches!(first, None | Some(None | Some(0)));
    }
    parts.retain(|part| !part.members.is_empty());
    parts.sort_by_key(|part| part.members.first().map(|member| member.tid));
    let mut out: Vec<ThreadGroup<'_>> = Vec::new();
    for part in parts {
        match out.last_mut() {
            Some(group) if group.goes_on(&part, named) => {
                group.members.extend(part.members);
                group.members.sort_by_key(|member| member.tid);
                group.helpers.extend(part.helpers);
                group.by_order = true;
            }
            _ => out.push(part),
        }
    }
    out
}

/// A vCPU thread.
#[derive(Clone, Copy)]
struct VcpuMember<'t> {
    tid: i32,
    slot: u32,
    thread: &'t Thread,
    /// Its number, if it is known.
    number: Option<u32>,
}

/// Returns a vCPU's number as far as it is known at the end: its name may have come later than its first event.
fn number(thread: &Thread) -> Option<u32> {
    let by_name = || thread.comm.as_deref().and_then(vcpu_from_comm);
    let by_facts = || thread.claim.map(|claim| claim.id);
    thread.vcpu.or_else(by_name).or_else(by_facts)
}

fn vm(threads: &Threads, pid: Option<i32>, members: &[VcpuMember<'_>]) -> Vm {
    let taken: BTreeSet<u32> = members.iter().filter_map(|m| m.number).collect();
    let mut free = (0u32..).filter(|number| !taken.contains(number));
    let mut vcpus: Vec<Vcpu> = Vec::new();
    for member in members {
        vcpus.push(Vcpu {
            id: member.number.or_else(|| free.next()).unwrap_or(0),
            tid: member.tid,
            thread: member.slot,
        });
    }
    vcpus.sort_by_key(|v| (v.id, v.tid));
    let process = pid
        .and_then(|pid| threads.get(pid)?.comm.as_deref())
        .map(str::to_owned);
    let by_vcpu = || {
        let mut claims = members.iter().filter_map(|member| member.thread.claim);
        claims.find_map(|claim| threads.vm_facts.get(index_of(claim.vm)))
    };
    let by_process = pid.and_then(|pid| threads.vm_of_process(pid));
    let facts = || by_process.into_iter().chain(by_vcpu());
    Vm {
        pid,
        name: facts()
            .find_map(|vm| vm.name.clone())
            .or_else(|| process.clone()),
        uuid: facts().find_map(|vm| vm.uuid.clone()),
        process,
        vcpus,
        helpers: Vec::new(),
        guessed: false,
        presumed: members.iter().any(|member| member.thread.presumed),
    }
}

#[cfg(test)]
mod tests;
