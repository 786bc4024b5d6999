//! Behind whom vCPUs waited for a CPU, the threads of a process summed, and the recorder apart.

use std::collections::BTreeMap;

use model::{Machine, Threads, Vm};
use rustc_hash::FxHashMap;

use crate::recorder::{RecorderReport, Role};
use crate::{CpuHolder, Vcpus};

/// Threads of a crowd that are listed.
const LISTED: usize = 4;

/// Who had CPUs that vCPUs waited for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuOwner {
    /// vCPUs of the VM at this position.
    Vm(usize),
    /// Threads of a process.
    Process(i32),
    /// Threads of a name, where processes are not recorded.
    Named(String),
    /// kworkers.
    Kworkers,
    /// The recorder, or its helper.
    Recorder(bool),
    /// Nothing shows it.
    Unknown,
}

/// Threads that belong together, and how long vCPUs waited behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crowd {
    /// Who they are.
    pub who: CpuOwner,
    /// What they are called: the process, or the threads.
    pub name: String,
    /// How many they are.
    pub threads: u64,
    /// How often one of them ran there meanwhile.
    pub count: u64,
    /// For how long.
    pub ns: u64,
    /// Those that had the CPUs longest, by thread.
    pub most: Vec<CpuHolder>,
}

/// How long one vCPU waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VcpuWaits {
    /// Its thread.
    pub tid: i32,
    /// Behind tasks that are not the recorder's.
    pub others_ns: u64,
    /// How often such a task ran meanwhile.
    pub others_count: u64,
    /// Behind the recorder and its helpers.
    pub recorder_ns: u64,
    /// How often one of them ran meanwhile.
    pub recorder_count: u64,
}

/// All waits for CPUs that were not idle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitsReport {
    /// By vCPU, in the order in which they were seen.
    pub vcpus: Vec<VcpuWaits>,
    /// Behind whom, most time first.
    pub crowds: Vec<Crowd>,
}

impl WaitsReport {
    /// Returns how long vCPUs waited behind tasks that are not the recorder's.
    pub fn others_ns(&self) -> u64 {
        let all = self.vcpus.iter().map(|vcpu| vcpu.others_ns);
        all.fold(0, u64::saturating_add)
    }

    /// Returns how often a task that is not the recorder's ran while a vCPU waited.
    pub fn others_count(&self) -> u64 {
        let all = self.vcpus.iter().map(|vcpu| vcpu.others_count);
        all.fold(0, u64::saturating_add)
    }

    /// Returns how long vCPUs waited behind the recorder and its helpers.
    pub fn recorder_ns(&self) -> u64 {
        let all = self.vcpus.iter().map(|vcpu| vcpu.recorder_ns);
        all.fold(0, u64::saturating_add)
    }

    /// Returns how often the recorder or a helper ran while a vCPU waited.
    pub fn recorder_count(&self) -> u64 {
        let all = self.vcpus.iter().map(|vcpu| vcpu.recorder_count);
        all.fold(0, u64::saturating_add)
    }
}

/// Returns behind whom vCPUs waited.
pub(crate) fn waits(vcpus: &Vcpus, machine: &Machine, recorder: &RecorderReport) -> WaitsReport {
    let threads = machine.threads();
    let vms = machine.vms();
    let mut by_vcpu: BTreeMap<u32, VcpuWaits> = BTreeMap::new();
    let mut by_who: BTreeMap<CpuOwner, BTreeMap<Option<i32>, CpuHolder>> = BTreeMap::new();
    // How many tasks of which names are not kept apart any more.
    let mut retired = RetiredTasks::new();
    let vm_of: FxHashMap<u32, usize> = vms
        .iter()
        .enumerate()
        .flat_map(|(at, vm)| vm.vcpus.iter().map(move |vcpu| (vcpu.thread, at)))
        .collect();
    let roles: FxHashMap<i32, Role> = (recorder.threads.iter())
        .map(|thread| (thread.tid, thread.role))
        .collect();
    for wait in vcpus.waits() {
        let (vcpu, slot, count, ns) = (wait.vcpu, wait.task, wait.count, wait.ns);
        let task = slot.and_then(|slot| threads.at(slot));
        if task.is_some_and(|(tid, _)| tid == 0) {
            // The CPU was idle: that is the way out of idling, and nobody's fault.
            continue;
        }
        let who = match task {
            None => match wait.retired {
                Some(name) if model::NamedRole::from(&*name.comm).is_kworker() => {
                    CpuOwner::Kworkers
                }
                Some(name) => CpuOwner::Named(name.comm.to_string()),
                None => CpuOwner::Unknown,
            },
            Some((tid, thread)) => {
                let vm = slot.and_then(|slot| vm_of.get(&slot).copied());
                match (roles.get(&tid), vm, thread.pid) {
                    (Some(role), _, _) => CpuOwner::Recorder(*role == Role::Helper),
                    (None, Some(vm), _) => CpuOwner::Vm(vm),
                    _ if thread.named_role().is_kworker() => CpuOwner::Kworkers,
                    (None, None, Some(pid)) if pid > 0 => CpuOwner::Process(pid),
                    _ => CpuOwner::Named(thread.comm.as_deref().unwrap_or_default().to_owned()),
                }
            }
        };
        let sum = by_vcpu.entry(vcpu).or_insert_with(|| VcpuWaits {
            tid: machine.vcpu(vcpu).map_or(0, |vcpu| vcpu.tid),
            ..VcpuWaits::default()
        });
        let (sum_ns, sum_count) = match who {
            CpuOwner::Recorder(_) => (&mut sum.recorder_ns, &mut sum.recorder_count),
            _ => (&mut sum.others_ns, &mut sum.others_count),
        };
        *sum_ns = sum_ns.saturating_add(ns);
        *sum_count = sum_count.saturating_add(count);
        let tid = task.map(|(tid, _)| tid);
        let behind = by_who
            .entry(who.clone())
            .or_default()
            .entry(tid)
            .or_insert_with(|| CpuHolder {
                tid,
                comm: match wait.retired {
                    Some(name) => Some(name.comm.to_string()),
                    None => task.and_then(|(_, thread)| thread.comm.as_deref().map(str::to_owned)),
                },
                count: 0,
                ns: 0,
            });
        if let Some(name) = wait.retired {
            let names = retired.entry(who).or_default();
            names.insert(name.comm.to_string(), name.tasks);
        }
        behind.count = behind.count.saturating_add(count);
        behind.ns = behind.ns.saturating_add(ns);
    }
    let mut crowds = crowds(by_who, &retired, threads, &vms);
    crowds.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.who.cmp(&b.who)));
    WaitsReport {
        vcpus: by_vcpu.into_values().collect(),
        crowds,
    }
}

/// What tasks that are not kept apart any more count, by whom they are of and their name.
type RetiredTasks = BTreeMap<CpuOwner, BTreeMap<String, u64>>;

/// Returns who had the CPUs, in no order.
fn crowds(
    by_who: BTreeMap<CpuOwner, BTreeMap<Option<i32>, CpuHolder>>,
    retired: &RetiredTasks,
    threads: &Threads,
    vms: &[Vm],
) -> Vec<Crowd> {
    by_who
        .into_iter()
        .map(|(who, members)| {
            let mut most: Vec<CpuHolder> = members.into_values().collect();
            most.sort_by_key(|one| (std::cmp::Reverse(one.ns), one.tid));
            let own = |pid: i32| {
                let main = threads.get(pid).and_then(|thread| thread.comm.as_deref());
                main.map(str::to_owned)
            };
            let first = || most.first().and_then(|one| one.comm.clone());
            let name = match &who {
                CpuOwner::Vm(at) => vms.get(*at).map(|vm| {
                    let first = vm.vcpus.first().map_or(0, |vcpu| vcpu.tid);
                    let thread = || format!("the VM of thread {first}");
                    vm.name.clone().unwrap_or_else(thread)
                }),
                CpuOwner::Process(pid) => own(*pid).or_else(first),
                CpuOwner::Kworkers => Some("kworkers".to_owned()),
                CpuOwner::Named(name) if !name.is_empty() => Some(name.clone()),
                _ => first(),
            };
            Crowd {
                name: name.unwrap_or_else(|| "unknown tasks".to_owned()),
                threads: match retired.get(&who) {
                    Some(names) => {
                        most.len() as u64 - 1
                            + names.values().copied().fold(0u64, u64::saturating_add)
                    }
                    None => most.len() as u64,
                },
                count: most
                    .iter()
                    .map(|one| one.count)
                    .fold(0, u64::saturating_add),
                ns: most.iter().fold(0, |sum, one| sum.saturating_add(one.ns)),
                most: most.into_iter().take(LISTED).collect(),
                who,
            }
        })
        .collect()
}
