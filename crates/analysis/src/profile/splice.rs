//! A recording made inside a guest, put in the place of what the host knows of that guest.
//!
//! The host knows how long each vCPU was in the guest, and at most an address of each sample there. A recording made in
//! the guest at the same time knows stacks, and what share of each of its CPUs they had. So the stacks of the guest's
//! CPU n stand below the thread of vCPU n, and weigh together what the host says that this vCPU was in the guest: both
//! add up. CPUs are taken for the vCPUs of the same number, as they are without hot-plug; clocks are not related, all
//! of both recordings counts.

use event::index_of;
use model::{Machine, Vm, vcpu_from_comm};
use rustc_hash::FxHashMap;
use stacks::{FrameName, FrameOwner, ROOT, Stacks, Weight};
use symbols::{ThreadName, UserNames};

use super::Profile;
use super::build::StackBuilder;
use super::calls::Mode;
use super::naming::FunctionNamer;
use crate::analysis::WalkState;

/// What says which of a guest's CPUs a thread of the host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VcpuBy {
    /// Events of KVM, or facts beside the recording.
    Events,
    /// The thread's name (`CPU 1/KVM`).
    Name,
    /// The order of thread ids: QEMU makes the threads of vCPUs in their order. This is a guess.
    Order,
}

/// A thread of the host that is a vCPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VcpuThread {
    /// The process of its VM.
    pub vm_pid: Option<i32>,
    /// The thread.
    pub tid: i32,
    /// The vCPU's number.
    pub vcpu: u32,
    /// What says so.
    pub by: VcpuBy,
}

/// What was sampled in a guest, by its CPU.
#[derive(Debug, Clone)]
pub struct GuestSide {
    /// Stacks: the guest's CPU, its thread's name, then frames from the outermost on.
    pub stacks: Stacks,
    /// By the guest's CPU, what they weigh.
    pub cpus: Vec<(u32, Weight)>,
    /// Samples of the guest's idle CPUs, which are left out: an idle vCPU is not in its guest.
    pub idle: Weight,
    /// Which threads of the host are its vCPUs.
    pub vcpus: Vec<VcpuThread>,
}

impl GuestSide {
    /// Returns what the stacks of one of its CPUs weigh.
    fn cpu(&self, number: u32) -> Weight {
        let found = self.cpus.iter().find(|(cpu, _)| *cpu == number);
        found.map_or_else(Weight::default, |(_, weight)| *weight)
    }
}

/// A vCPU in whose place the guest's own stacks stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplicedVcpu {
    /// The vCPU.
    pub vcpu: VcpuThread,
    /// What the host says that it was in the guest.
    pub host: Weight,
    /// What was sampled on that CPU in the guest; none where its own stacks stand.
    pub guest: Weight,
}

impl SplicedVcpu {
    /// Returns how far a share of the guest's stacks of this vCPU may be off, at most and in 19 of 20 cases: that of a
    /// half is known least (binomial).
    pub fn error(&self) -> f64 {
        1.96 * 0.5 / (self.guest.samples.max(1) as f64).sqrt()
    }
}

impl Profile {
    /// Returns the threads that are vCPUs, as far as anything says so, and what does. `vms` are those of the recording,
    /// which a walk that collects stacks alone does not find.
    pub fn vcpu_threads(&self, vms: &[Vm], machine: &Machine) -> Vec<VcpuThread> {
        let mut found = Vec::new();
        for vm in vms {
            found.extend(vm.vcpus.iter().map(|vcpu| VcpuThread {
                vm_pid: vm.pid,
                tid: vcpu.tid,
                vcpu: vcpu.id,
                by: if vm.guessed {
                    VcpuBy::Order
                } else if vm.presumed {
                    VcpuBy::Name
                } else {
                    VcpuBy::Events
                },
            }));
        }
        if !found.is_empty() {
            return found;
        }
        for (tid, thread) in machine.threads().iter() {
            let vcpu = thread.comm.as_deref().and_then(vcpu_from_comm);
            if let Some(vcpu) = vcpu {
                found.push(VcpuThread {
                    vm_pid: thread.pid,
                    tid,
                    vcpu,
                    by: VcpuBy::Name,
                });
            }
        }
        if !found.is_empty() {
            return found;
        }
        self.by_order(machine)
    }

    /// Threads with samples in a guest, numbered by their order in each process.
    fn by_order(&self, machine: &Machine) -> Vec<VcpuThread> {
        let threads = machine.threads();
        let of_guest = self.calls.rows.iter().map(|(row, _)| row);
        let of_guest = of_guest.filter(|row| row.mode == Mode::Guest);
        let slots = of_guest.filter_map(|row| self.calls.threads.get(index_of(row.thread)));
        let mut tids: Vec<i32> = slots.filter_map(|t| Some(threads.at(t.slot)?.0)).collect();
        tids.sort_unstable();
        tids.dedup();
        let mut next: FxHashMap<Option<i32>, u32> = FxHashMap::default();
        let numbered = tids.into_iter().map(|tid| {
            let vm_pid = threads.get(tid).and_then(|thread| thread.pid);
            let next = next.entry(vm_pid).or_default();
            *next += 1;
            VcpuThread {
                vm_pid,
                tid,
                vcpu: *next - 1,
                by: VcpuBy::Order,
            }
        });
        numbered.collect()
    }

    /// Returns what this recording, made inside a guest by CPU ([`super::ProfileBy::Cpu`]), has to put in the place of
    /// what the host knows of it. Whoever knows the host says which threads are its vCPUs.
    pub fn guest_side(
        &self,
        walked: &WalkState<'_>,
        namer: FunctionNamer<'_>,
        user: &mut dyn UserNames,
    ) -> GuestSide {
        let named = self.calls.named(namer, user);
        let mut builder = StackBuilder::new(&self.calls, &named);
        let mut cpus: FxHashMap<u32, Weight> = FxHashMap::default();
        let mut idle = Weight::default();
        let shown = self.shown_event();
        let rows = self.calls.rows.iter();
        let mut rows: Vec<_> = rows.filter(|(row, _)| Some(row.event) == shown).collect();
        rows.sort_unstable_by_key(|(row, _)| *row);
        for (row, weight) in rows {
            let Some(thread) = self.calls.threads.get(index_of(row.thread)) else {
                continue;
            };
            let tid = walked.machine.threads().at(thread.slot).map(|(tid, _)| tid);
            let Ok(cpu) = u32::try_from(thread.cpu) else {
                continue;
            };
            if tid == Some(0) {
                idle.add(*weight);
                continue;
            }
            cpus.entry(cpu).or_default().add(*weight);
            let below = builder.group(ROOT, &cpu.to_string());
            let comm = String::from_utf8_lossy(thread.comm.comm()).into_owned();
            let below = builder.group(below, &comm);
            let (node, _) = builder.stack(below, row.stack, false);
            builder.weigh(node, *weight);
        }
        let mut cpus: Vec<(u32, Weight)> = cpus.into_iter().collect();
        cpus.sort_unstable_by_key(|(cpu, _)| *cpu);
        GuestSide {
            stacks: builder.stacks,
            cpus,
            idle,
            vcpus: Vec::new(),
        }
    }
}

/// What a guest did, in the place of what the host knows of it.
pub(super) struct Splice<'g> {
    sides: &'g [&'g GuestSide],
    /// By thread of the host: the node below which its guest stands, and what it weighs.
    pub(super) waiting: FxHashMap<i32, (u32, Weight)>,
}

impl<'g> Splice<'g> {
    /// Returns one that has no place yet; `None` where nothing was recorded in a guest.
    pub(super) fn new(sides: &'g [&'g GuestSide]) -> Option<Splice<'g>> {
        (!sides.is_empty()).then(|| Splice {
            sides,
            waiting: FxHashMap::default(),
        })
    }

    /// Returns whether the guest of a thread has stacks of its own.
    pub(super) fn has(&self, tid: i32) -> bool {
        self.sides.iter().any(|side| {
            let vcpu = side.vcpus.iter().find(|vcpu| vcpu.tid == tid);
            vcpu.is_some_and(|vcpu| side.cpu(vcpu.vcpu).amount > 0)
        })
    }

    /// Takes what the host says that a thread was in the guest, below a node.
    pub(super) fn take(&mut self, tid: i32, node: u32, weight: Weight) {
        let waiting = self.waiting.entry(tid).or_insert((node, Weight::default()));
        waiting.1.add(weight);
    }

    /// Puts the guest's stacks in their places. What each weighs is its share of what the host says, without a rest.
    pub(super) fn put(self, builder: &mut StackBuilder<'_>) -> Vec<SplicedVcpu> {
        let mut spliced: Vec<SplicedVcpu> = Vec::new();
        for side in self.sides {
            self.put_one(side, builder, &mut spliced);
        }
        spliced
    }

    fn put_one(
        &self,
        side: &GuestSide,
        builder: &mut StackBuilder<'_>,
        spliced: &mut Vec<SplicedVcpu>,
    ) {
        let mut left: FxHashMap<u32, (u32, Weight, Weight)> = FxHashMap::default();
        for vcpu in &side.vcpus {
            let Some((node, host)) = self.waiting.get(&vcpu.tid).copied() else {
                continue;
            };
            let guest = side.cpu(vcpu.vcpu);
            spliced.push(SplicedVcpu {
                vcpu: vcpu.clone(),
                host,
                guest,
            });
            if guest.amount > 0 {
                let below = builder.group(node, "[guest]");
                left.insert(vcpu.vcpu, (below, host, guest));
            }
        }
        let names = side.stacks.names();
        side.stacks.each(|path, weight| {
            let Some((cpu, path)) = path.split_first() else {
                return;
            };
            let cpu = names
                .get(index_of(*cpu))
                .and_then(|name| name.text.parse().ok());
            let Some((below, host, guest)) = cpu.and_then(|cpu: u32| left.get_mut(&cpu)) else {
                return;
            };
            let mut node = *below;
            for frame in path {
                let text = names.get(index_of(*frame)).map_or("", |name| &name.text);
                let name = FrameName {
                    text: text.into(),
                    part: FrameOwner::Guest,
                };
                node = builder.frame(node, name);
            }
            let amount = part(host.amount, weight.amount, guest.amount);
            let samples = part(host.samples, weight.amount, guest.amount);
            host.amount -= amount;
            host.samples -= samples;
            guest.amount -= weight.amount.min(guest.amount);
            builder.weigh(node, Weight { samples, amount });
        });
    }
}

/// Returns the share of a whole that one weight has of what is left.
fn part(whole: u64, one: u64, all: u64) -> u64 {
    let part = u128::from(whole) * u128::from(one) / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(u64::MAX).min(whole)
}
