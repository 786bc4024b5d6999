//! Facts, and how facts from several texts add up.

use std::collections::{BTreeMap, HashMap};

use cpuset::CpuSet;
use serde::Serialize;

use crate::host::Host;
use crate::keep::{MAX_ARGS, MAX_THREADS, MAX_VCPUS, MAX_VHOST, MAX_VMS, fill, name};
use crate::{DomainStatistics, KernelLog};

/// What is known of a host beside a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Threads by their id.
    pub threads: BTreeMap<i32, ReportedThread>,
    /// VMs, in the order of the text.
    pub vms: Vec<ReportedVm>,
    /// Text of QEMU's `info mtree`, for one VM.
    pub mtree: Option<String>,
    /// The host itself, as `trapline facts` writes it.
    pub host: Option<Host>,
    /// The log of a guest's kernel: what it says is the guest's view, on the guest's clock.
    pub guest_log: Option<KernelLog>,
    /// What libvirt and KVM counted of domains, in the order of the text. Only their names say which of
    /// [`Facts::vms`] each is.
    pub domstats: Vec<DomainStatistics>,
}

/// One thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReportedThread {
    /// Its process, where that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Its name as the kernel has it, where that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// CPUs that it may run on (`Cpus_allowed_list`), where that is given.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::cpus")]
    pub affinity: Option<CpuSet>,
    /// How it is scheduled, where that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
}

/// How a thread is scheduled (`sched(7)`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// The policy: `SCHED_OTHER`, `SCHED_FIFO`, `SCHED_RR`, `SCHED_BATCH`, `SCHED_IDLE`, `SCHED_DEADLINE`,
    /// or the kernel's number for one that is not known.
    pub name: String,
    /// Priority of `SCHED_FIFO` and `SCHED_RR`, 1 to 99; 0 for others.
    pub rt_priority: u32,
    /// Nice value, -20 to 19; lower ones get more of a CPU.
    pub nice: i32,
}

impl Policy {
    /// Returns whether the thread goes before all threads of `SCHED_OTHER`.
    pub fn is_realtime(&self) -> bool {
        matches!(
            self.name.as_str(),
            "SCHED_FIFO" | "SCHED_RR" | "SCHED_DEADLINE"
        )
    }
}

/// One VM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReportedVm {
    /// Process of its VMM.
    pub pid: Option<i32>,
    /// The guest's name, as the VMM was given it.
    pub name: Option<String>,
    /// The guest's UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The VMM's program, as its command line has it: `/usr/bin/qemu-system-x86_64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulator: Option<String>,
    /// QEMU's version: `8.2.2`, and what stands behind it in the package's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The VMM's command line, word by word, the program first; what is or may be secret is masked. Empty
    /// where it is not recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Threads of its vhost workers: the kernel's threads that do the work of its devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vhost: Vec<i32>,
    /// The control groups that its threads are in, by their paths ([`Host::cgroups`]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cgroups: Vec<String>,
    /// How much of its memory lies on each NUMA node, in bytes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub node_bytes: BTreeMap<u32, u64>,
    /// From which nodes the kernel takes the largest part of it: `default`, `bind:1`, `interleave:0-1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_policy: Option<String>,
    /// Its vCPUs whose threads are given.
    pub vcpus: Vec<ReportedVcpu>,
}

impl ReportedVm {
    /// Returns whether the VM is meant by what somebody calls it: its name, as [`words::is_vm_name`] has it, its UUID,
    /// or the number that Proxmox gives it (`-id` of its QEMU).
    pub fn is_called(&self, asked: &str) -> bool {
        let name = self.name.as_deref();
        let id = self.args.windows(2).find(|pair| pair[0] == "-id");
        name.is_some_and(|own| words::is_vm_name(own, asked))
            || self.uuid.as_deref() == Some(asked)
            || id.is_some_and(|pair| pair[1] == asked)
    }
}

/// One vCPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReportedVcpu {
    /// Its number.
    pub id: u32,
    /// Its thread.
    pub tid: i32,
    /// CPUs that its thread may run on (`Cpus_allowed_list`), where that is given.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::cpus")]
    pub affinity: Option<CpuSet>,
    /// How its thread is scheduled, where that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
}

impl ReportedVcpu {
    /// Returns a vCPU of which only number and thread are known.
    pub fn new(id: u32, tid: i32) -> ReportedVcpu {
        ReportedVcpu {
            id,
            tid,
            ..ReportedVcpu::default()
        }
    }
}

impl Facts {
    /// Returns whether there are no facts.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
            && self.vms.is_empty()
            && self.mtree.is_none()
            && self.host.is_none()
            && self.guest_log.is_none()
            && self.domstats.is_empty()
    }

    /// Adds later facts: they fill gaps, what was known first stays. Returns what was left out, and where the
    /// two contradict each other about the host.
    pub fn merge(&mut self, later: Facts) -> Vec<String> {
        let mut gather = FactsBuilder::of(std::mem::take(self));
        for (tid, thread) in later.threads {
            gather.thread(tid, thread);
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
        if let Some(host) = later.host {
            notes.extend(gather.host(host));
        }
        if let Some(log) = later.guest_log {
            notes.extend(gather.guest_log(log));
        }
        for domain in later.domstats {
            notes.extend(gather.domain(domain));
        }
        let (facts, left_out) = gather.finish();
        *self = facts;
        notes.extend(left_out);
        notes
    }
}

/// Facts on their way in.
#[derive(Debug, Default)]
pub(crate) struct FactsBuilder {
    facts: Facts,
    /// Index of the VM with a process, and of the one a thread is a vCPU of.
    vm_of_pid: HashMap<i32, usize>,
    vm_of_tid: HashMap<i32, VcpuPlace>,
    left_out: usize,
}

/// Where a vCPU stands: index of its VM, and among that VM's vCPUs.
type VcpuPlace = (usize, usize);

impl FactsBuilder {
    fn of(facts: Facts) -> FactsBuilder {
        let mut gather = FactsBuilder::default();
        for (at, vm) in facts.vms.iter().enumerate() {
            if let Some(pid) = vm.pid {
                gather.vm_of_pid.entry(pid).or_insert(at);
            }
            for (place, vcpu) in vm.vcpus.iter().enumerate() {
                gather.vm_of_tid.entry(vcpu.tid).or_insert((at, place));
            }
        }
        gather.facts = facts;
        gather
    }

    /// Takes a thread.
    pub(crate) fn thread(&mut self, tid: i32, reported: ReportedThread) {
        if self.facts.threads.len() >= MAX_THREADS && !self.facts.threads.contains_key(&tid) {
            self.left_out += 1;
            return;
        }
        let thread = self.facts.threads.entry(tid).or_default();
        thread.pid = thread.pid.or(reported.pid);
        let comm = || name(reported.comm.as_deref()?);
        thread.comm = thread.comm.take().or_else(comm);
        fill(&mut thread.affinity, reported.affinity);
        fill(&mut thread.policy, reported.policy);
    }

    /// Takes facts of the host. Returns where they contradict those from before.
    pub(crate) fn host(&mut self, host: Host) -> Vec<String> {
        match &mut self.facts.host {
            Some(known) => known.merge(host),
            None => {
                self.facts.host = Some(host);
                Vec::new()
            }
        }
    }

    /// Takes a guest's log. Returns a note where there is one already.
    pub(crate) fn guest_log(&mut self, log: KernelLog) -> Option<String> {
        if let Some(known) = &self.facts.guest_log {
            if *known == log {
                return None;
            }
            return Some("holds a second log of a guest's kernel, which is left out".to_owned());
        }
        self.facts.guest_log = Some(log);
        None
    }

    /// Takes an output of a domain's statistics. Returns a note where it is left out.
    pub(crate) fn domain(&mut self, domain: DomainStatistics) -> Option<String> {
        let known = self.facts.domstats.iter_mut();
        let mut same = known.filter(|known| known.name == domain.name);
        let Some(known) = same.next() else {
            if self.facts.domstats.len() < MAX_VMS {
                self.facts.domstats.push(domain);
            } else {
                self.left_out += 1;
            }
            return None;
        };
        // Whether outputs without a name are of one domain nobody knows.
        match &known.name {
            None if *known == domain => None,
            None => Some(
                "holds statistics of a domain without its name a second time, which are left out: keep the line \
                 Domain: 'NAME' above them"
                    .to_owned(),
            ),
            Some(name) => {
                let name = name.clone();
                known.merge(domain).map(|why| format!("{why} ({name})"))
            }
        }
    }

    /// Takes a VM: another one, or more of the one that has this process or one of these threads. Returns
    /// its index.
    pub(crate) fn vm(&mut self, vm: ReportedVm) -> Option<usize> {
        let of_pid = vm.pid.and_then(|pid| self.vm_of_pid.get(&pid).copied());
        let of_tid = || {
            let mut owners = vm.vcpus.iter().map(|v| self.vm_of_tid.get(&v.tid));
            owners.find_map(|owner| Some(owner?.0)).filter(|at| {
                let known = self.facts.vms.get(*at).and_then(|known| known.pid);
                known.is_none() || vm.pid.is_none() || known == vm.pid
            })
        };
        let at = match of_pid.or_else(of_tid) {
            Some(at) => at,
            None if self.facts.vms.len() < MAX_VMS => {
                self.facts.vms.push(ReportedVm::default());
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
        known.emulator = known.emulator.take().or(vm.emulator);
        known.version = known
            .version
            .take()
            .or_else(|| name(vm.version.as_deref()?));
        if known.node_bytes.is_empty() {
            known.node_bytes = vm.node_bytes;
        }
        let policy = || name(vm.memory_policy.as_deref()?);
        known.memory_policy = known.memory_policy.take().or_else(policy);
        if known.args.is_empty() {
            known.args = vm.args;
            known.args.truncate(MAX_ARGS);
        }
        if known.vhost.is_empty() {
            known.vhost = vm.vhost;
            known.vhost.truncate(MAX_VHOST);
        }
        if known.cgroups.is_empty() {
            known.cgroups = vm.cgroups;
            known.cgroups.truncate(MAX_VCPUS);
        }
        for vcpu in vm.vcpus {
            if let Some((vm, place)) = self.vm_of_tid.get(&vcpu.tid) {
                let vm = self.facts.vms.get_mut(*vm);
                if let Some(known) = vm.and_then(|vm| vm.vcpus.get_mut(*place)) {
                    fill(&mut known.affinity, vcpu.affinity);
                    fill(&mut known.policy, vcpu.policy);
                }
                continue;
            }
            if self.vm_of_tid.len() >= MAX_VCPUS {
                self.left_out += 1;
                continue;
            }
            if let Some(known) = self.facts.vms.get_mut(at) {
                self.vm_of_tid.insert(vcpu.tid, (at, known.vcpus.len()));
                known.vcpus.push(vcpu);
            }
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
