//! Inter-processor interrupts by what their target was doing: what a halt adds to them.
//!
//! Where their path was recorded, each instance of it is one. Where exits alone were, a write of the interrupt
//! controller's command register (ICR) is one, and what its target was doing when the sender left its guest is known
//! from the target's own exits and entries: in a halt, in its guest, or in another exit.

mod apart;
mod destination;
mod tally;

use cpuset::{NodeMap, NumaNode};
use event::{Data, Event, EventType, ExitReason, Kind, MmioAccess};
use model::{BySlot, Machine, RetiredThreads};
use paths::{CompletedInstance, InstanceTrait, Paths, VcpuActivity};
use rustc_hash::FxHashMap;

use crate::analysis::{Analysis, Context, EventDetail, Needs, Note, States, Turn};
pub use apart::{IpiDistance, IpiDistanceRow};
use destination::Destination;
pub use tally::IpiSums;
use tally::{IpiTally, SentIpi, Target};

/// Interrupts under way to one vCPU, at most.
const MAX_TO: usize = 16;
/// Targets of one interrupt that is for all.
const MAX_TARGETS: usize = 1 << 10;

/// x2APIC's ICR; the xAPIC's, and its upper half, which has the destination (Intel SDM volume 3, 11.6.1 and 11.12.9).
const ICR_MSR: u32 = 0x830;
const ICR_GPA: u64 = 0xfee0_0300;
const ICR2_GPA: u64 = 0xfee0_0310;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IpisReport {
    /// From their path.
    pub followed: IpiSums,
    /// From writes of the ICR; a target in a halt may have been polling.
    pub written: IpiSums,
    /// Those of the path, and where there are none those of writes, by how far the host CPUs of sender and target are
    /// from each other. Without those that are the doing of the recorder's agent; with those that came alone. How soon
    /// a vCPU in an exit of its own gets an interrupt no write shows: such ones are not here.
    pub by_distance: Vec<IpiDistanceRow>,
    /// Whether the NUMA node of any of the host's CPUs is known.
    pub nodes: bool,
}

/// What a vCPU does, as far as exits show.
#[derive(Debug, Clone, Copy, Default)]
enum VcpuDoing {
    #[default]
    Unknown,
    Guest,
    Halt,
    Exit(ExitReason),
}

#[derive(Debug, Default)]
struct IpiVcpu {
    known: bool,
    pid: i32,
    /// The number in its last event.
    number: Option<u32>,
    inside: VcpuDoing,
    since: u64,
    /// Its last exit.
    exit_at: u64,
    /// The last halt that is over, and the CPU on which it ended.
    halt: Option<(u64, u64, i32)>,
    /// The destination that it wrote to the upper half of the ICR.
    icr2: Option<u32>,
    /// Interrupts under way to it: when and on which CPU they were sent, and what it was doing.
    to: Vec<(u64, i32, Target)>,
}

/// Steps of a chain of the path, by number.
#[derive(Debug, Clone, Copy, Default)]
struct Steps {
    woken: Option<usize>,
    on_cpu: Option<usize>,
}

/// Adds up interrupts.
#[derive(Debug, Default)]
pub struct Ipis {
    followed: IpiTally,
    written: IpiTally,
    /// By process, when the recorder last talked to its agent there.
    traffic: FxHashMap<Option<i32>, u64>,
    /// The path is followed, and the events are recorded of which it is made: that one is sent, and accepted.
    sends: bool,
    accepts: bool,
    /// Which of the paths it is, and of its chains, which steps are the wake-up and the switch to the target.
    path: Option<usize>,
    steps: Vec<Steps>,
    vcpus: BySlot<IpiVcpu>,
    by_number: FxHashMap<(i32, u32), u32>,
    /// By process, its vCPUs.
    by_pid: FxHashMap<i32, Vec<u32>>,
    /// The host's NUMA nodes.
    nodes: NodeMap,
}

impl Ipis {
    /// Returns one that has seen nothing, and asks paths for each instance of theirs.
    pub fn new(paths: &mut Paths) -> Ipis {
        let path = paths.paths().iter().position(|path| path.name == "ipi");
        let mut steps = Vec::new();
        if let Some(at) = path {
            paths.list();
            let chains = paths.paths()[at].chains.iter();
            steps.extend(chains.map(|chain| {
                let step = |name: &str| chain.steps.iter().position(|step| step.name == name);
                Steps {
                    woken: step("woken"),
                    on_cpu: step("on CPU"),
                }
            }));
        }
        Ipis {
            path,
            steps,
            ..Ipis::default()
        }
    }

    /// Says which NUMA nodes the host has; a guest's virtual ones are others.
    #[must_use]
    pub fn on_nodes(mut self, nodes: &[NumaNode]) -> Ipis {
        self.nodes = NodeMap::of(nodes);
        self
    }

    /// Takes what others noted.
    #[inline(never)]
    fn hear(&mut self, context: &Context<'_>, time: u64) {
        // An interrupt that completes now may be of the agent that talks now.
        for note in context.notes.iter() {
            if let Note::RecorderTalks(pid) = note {
                self.talks(*pid, time);
            }
        }
        for note in context.notes.iter() {
            if let Note::Completed(instance) = note
                && Some(instance.path) == self.path
            {
                let one = self.followed(instance, context.machine);
                self.followed.add(one, &self.traffic);
            }
        }
    }

    /// The recorder and its agent in a guest talk.
    fn talks(&mut self, pid: Option<i32>, time: u64) {
        self.traffic.insert(pid, time);
        self.followed.traffic(pid, time);
        self.written.traffic(pid, time);
    }

    #[inline]
    fn take(&mut self, event: &Event<'_>, data: &Data, machine: &mut Machine) {
        match data {
            Data::KvmExit(exit) => {
                let Some((_, vcpu)) = self.vcpu(event, exit.vcpu, machine) else {
                    return;
                };
                if !exit.inner {
                    vcpu.over(event.time, event.cpu);
                }
                vcpu.inside = match exit.reason.is_waiting() {
                    true => VcpuDoing::Halt,
                    false => VcpuDoing::Exit(exit.reason),
                };
                vcpu.since = event.time;
                vcpu.exit_at = event.time;
            }
            Data::KvmEntry(entry) => {
                let Some((at, vcpu)) = self.vcpu(event, entry.vcpu, machine) else {
                    return;
                };
                vcpu.over(event.time, event.cpu);
                // One that runs takes an interrupt by an exit that says so; what else it left its guest for
                // shows nothing of how soon it got it.
                let interrupted =
                    matches!(vcpu.inside, VcpuDoing::Exit(reason) if reason.is_interrupt());
                let to = std::mem::take(&mut vcpu.to);
                let pid = Some(vcpu.pid).filter(|pid| *pid > 0);
                vcpu.inside = VcpuDoing::Guest;
                vcpu.since = event.time;
                for &(sent, from, target) in &to {
                    let target = match target {
                        Target::Awake if !interrupted => Target::Other,
                        target => target,
                    };
                    let one = SentIpi {
                        sent,
                        target,
                        pid,
                        ns: event.time.saturating_sub(sent),
                        waking_ns: None,
                        waited_ns: 0,
                        distance: IpiDistance::of(&self.nodes, from, event.cpu)
                            .filter(|_| target != Target::Other),
                    };
                    self.written.add(one, &self.traffic);
                }
                let mut to = to;
                to.clear();
                if let Some(vcpu) = self.vcpus.get_mut(at) {
                    vcpu.to = to;
                }
            }
            Data::KvmMsr(msr) if msr.write && msr.msr == ICR_MSR => {
                let destination = (msr.value >> 32) as u32;
                let to = Destination::of(msr.value as u32, Some(destination), true);
                self.sends(event, to, machine);
            }
            Data::KvmMmio(mmio) if mmio.access == MmioAccess::Write => match mmio.gpa {
                ICR2_GPA => {
                    if let Some((_, vcpu)) = self.vcpu(event, None, machine) {
                        vcpu.icr2 = Some((mmio.value as u32) >> 24);
                    }
                }
                ICR_GPA => {
                    let vcpu = self.vcpu(event, None, machine);
                    let known = vcpu.and_then(|(_, vcpu)| vcpu.icr2);
                    let to = Destination::of(mmio.value as u32, known, false);
                    self.sends(event, to, machine);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn vcpu(
        &mut self,
        event: &Event<'_>,
        number: Option<u32>,
        machine: &mut Machine,
    ) -> Option<(u32, &mut IpiVcpu)> {
        let at = machine.vcpu_of(event.tid)?;
        let vcpu = self.vcpus.entry(at, IpiVcpu::default);
        if !vcpu.known {
            vcpu.known = true;
            vcpu.pid = event.pid;
            self.by_pid.entry(vcpu.pid).or_default().push(at);
        }
        if let Some(number) = number
            && vcpu.number != Some(number)
        {
            vcpu.number = Some(number);
            self.by_number.entry((vcpu.pid, number)).or_insert(at);
        }
        Some((at, vcpu))
    }

    /// A vCPU writes its ICR.
    fn sends(&mut self, event: &Event<'_>, to: Destination, machine: &mut Machine) {
        let Some((sender, vcpu)) = self.vcpu(event, None, machine) else {
            return;
        };
        let (pid, sent) = (vcpu.pid, vcpu.exit_at);
        let one = |number: u32, ipis: &Ipis| ipis.by_number.get(&(pid, number)).copied();
        let mut targets: Vec<u32> = Vec::new();
        match to {
            Destination::Nobody => return,
            Destination::One(number) => targets.extend(one(number, self)),
            Destination::Bits(base, bits) => {
                let numbers = (0..16).filter(|bit| bits >> bit & 1 == 1);
                let found = numbers.filter_map(|bit| one(base.saturating_add(bit), self));
                targets.extend(found);
            }
            Destination::All | Destination::Unknown => {
                let of_vm = self.by_pid.get(&pid).into_iter().flatten();
                targets.extend(of_vm.take(MAX_TARGETS));
            }
        }
        // Of two vCPUs it is the other one, whatever was not recorded.
        if to == Destination::Unknown && targets.len() != 2 {
            return;
        }
        for at in targets {
            if at == sender {
                continue;
            }
            let Some(vcpu) = self.vcpus.get_mut(at) else {
                continue;
            };
            let (target, over) = vcpu.at(sent);
            let pid = Some(vcpu.pid).filter(|pid| *pid > 0);
            match over {
                Some((over, cpu)) => {
                    let one = SentIpi {
                        sent,
                        target,
                        pid,
                        ns: over.saturating_sub(sent),
                        waking_ns: None,
                        waited_ns: 0,
                        distance: IpiDistance::of(&self.nodes, event.cpu, cpu),
                    };
                    self.written.add(one, &self.traffic);
                }
                None if vcpu.to.len() < MAX_TO => vcpu.to.push((sent, event.cpu, target)),
                None => {}
            }
        }
    }

    /// Returns what was found, after the walk.
    pub fn report(&self) -> IpisReport {
        let followed = self.followed.by_distance();
        IpisReport {
            followed: self.followed.report(),
            written: self.written.report(),
            by_distance: match followed.is_empty() {
                true => self.written.by_distance(),
                false => followed,
            },
            nodes: self.nodes.is_known(),
        }
    }
}

impl Ipis {
    /// One instance of the path.
    fn followed(&self, instance: &CompletedInstance, machine: &Machine) -> SentIpi {
        let steps = self.steps.get(instance.chain).copied().unwrap_or_default();
        let cpus = instance.reached.first().zip(instance.reached.last());
        SentIpi {
            distance: cpus.and_then(|(from, to)| IpiDistance::of(&self.nodes, from.cpu, to.cpu)),
            ..followed(instance, steps, machine, machine.seen().switches)
        }
    }
}

impl Analysis for Ipis {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for vcpu in retired.vcpus() {
            self.vcpus.remove(vcpu);
        }
        self.by_number.retain(|_, vcpu| !retired.has_vcpu(*vcpu));
        self.by_pid.retain(|_, vcpus| {
            vcpus.retain(|vcpu| !retired.has_vcpu(*vcpu));
            !vcpus.is_empty()
        });
    }

    fn needs(&self) -> Needs {
        Needs {
            states: States::All,
            ..Needs::default()
        }
    }

    fn turn(&self) -> Turn {
        Turn::Last
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        let recorded = ty.recorded && self.path.is_some();
        self.sends |= recorded && ty.name == "kvm_apic_ipi";
        self.accepts |= recorded && ty.name == "kvm_apic_accept_irq";
        match ty.kind {
            Kind::KvmExit | Kind::KvmInnerExit | Kind::KvmEntry | Kind::KvmMsr | Kind::KvmMmio => {
                EventDetail::Order
            }
            _ => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if !context.notes.is_empty() {
            self.hear(context, event.time);
        }
        // What the path shows exits need not show again.
        if self.sends && self.accepts {
            return;
        }
        // A vCPU that is left out may send to a chosen one of its VM.
        if context.chosen.in_time && !context.left_out.other_vm(event) {
            self.take(event, data, context.machine);
        }
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        self.hear(context, u64::MAX);
        self.followed.finish();
        self.written.finish();
    }
}

impl IpiVcpu {
    /// A halt is over.
    fn over(&mut self, time: u64, cpu: i32) {
        if matches!(self.inside, VcpuDoing::Halt) {
            self.halt = Some((self.since, time, cpu));
        }
    }

    /// What it was doing at a time shortly before, and when and on which CPU it had entered its guest since, if it has.
    fn at(&self, time: u64) -> (Target, Option<(u64, i32)>) {
        if let Some((from, to, cpu)) = self.halt
            && from <= time
            && time < to
        {
            return (Target::Halted, Some((to, cpu)));
        }
        match self.inside {
            VcpuDoing::Halt if self.since <= time => (Target::Halted, None),
            VcpuDoing::Guest if self.since <= time => (Target::Awake, None),
            // It is in the exit that the interrupt made, or in one that it was in before.
            VcpuDoing::Exit(reason) if reason.is_interrupt() => (Target::Awake, None),
            _ => (Target::Other, None),
        }
    }
}

/// One instance of the path.
fn followed(
    instance: &CompletedInstance,
    steps: Steps,
    machine: &Machine,
    switches: bool,
) -> SentIpi {
    let at = |step: Option<usize>| {
        let mut reached = instance.reached.iter();
        let found = reached.find(|one| step == Some(usize::from(one.step)));
        found.map(|one| one.time)
    };
    let sent = instance.reached.first().map_or(0, |one| one.time);
    let end = instance.reached.last().map_or(0, |one| one.time);
    let was = instance.traits.iter().find_map(|one| match one {
        InstanceTrait::Was(was) => Some(*was),
        _ => None,
    });
    let waking = at(steps.woken).zip(at(steps.on_cpu));
    let slept = instance.traits.contains(&InstanceTrait::Polled(false));
    let target = match was {
        Some(VcpuActivity::Halted) => Target::Halted,
        // On its way to sleep it has to be woken as one that sleeps. Without the scheduler's events nobody knows where
        // it is.
        Some(VcpuActivity::Halting) if !switches || slept || waking.is_some() => Target::Halted,
        Some(VcpuActivity::Polling | VcpuActivity::Halting) => Target::Awake,
        Some(was) if was.busy() => Target::Awake,
        _ => Target::Other,
    };
    let waking_ns = waking.map(|(woken, on)| on.saturating_sub(woken));
    let queued = instance
        .traits
        .iter()
        .any(|one| matches!(one, InstanceTrait::Behind(_)));
    let waited_ns = waking_ns.filter(|_| queued).unwrap_or(0);
    let pid = instance.subject.and_then(|slot| machine.threads().at(slot));
    SentIpi {
        sent,
        target,
        pid: pid.and_then(|(_, thread)| thread.pid),
        ns: end.saturating_sub(sent).saturating_sub(waited_ns),
        waking_ns: waking_ns.filter(|_| !queued),
        waited_ns,
        distance: None,
    }
}
