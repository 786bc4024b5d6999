//! Inter-processor interrupts by what their target was doing: what a halt adds to them.
//!
//! Where their path was recorded, each instance of it is one. Where exits alone were, a write of the interrupt
//! controller's command register (ICR) is one, and what its target was doing when the sender left its guest is known
//! from the target's own exits and entries: in a halt, in its guest, or in another exit.

use std::collections::VecDeque;

use event::{Data, Event, EventType, ExitReason, Kind, MmioAccess};
use model::Machine;
use paths::{Instance, Paths, Trait, Was};
use rustc_hash::FxHashMap;

use crate::Stats;
use crate::analysis::{Analysis, Context, Needs, Note, States, Turn, Want};
use crate::signs::is_interrupt;

/// An interrupt this close to traffic between the recorder and its agent in a guest is taken to be of the agent's doing.
/// An agent looks at each CPU's buffer once a millisecond (`trace-cmd record -s`, 1000 us as shipped), and sends what it
/// finds; its threads and the host's answer each other within a few of these periods.
const NEAR_NS: u64 = 5_000_000;
/// Interrupts that wait to be known for the agent's or not, at most.
const MAX_PENDING: usize = 1 << 14;
/// Slices of time by which it is known in how much of the recording interrupts occur: 2^24 ns, 17 ms.
const SLICE_BITS: u32 = 24;
/// Interrupts to halted vCPUs that a slice has in which they occur: 240 a second. One that comes alone keeps nobody waiting
/// again and again, and a poll would have to be as long as its slice to catch it.
const IN_SLICE: usize = 4;
/// Interrupts of the slice under way that are kept; more are counted at once.
const MAX_IN_SLICE: usize = 1 << 12;
/// Interrupts under way to one vCPU, at most.
const MAX_TO: usize = 16;
/// Targets of one interrupt that is for all.
const MAX_TARGETS: usize = 1 << 10;
/// vCPUs that are followed where exits alone tell: KVM has fewer in a VM.
const MAX_VCPUS: usize = 1 << 14;

/// x2APIC's ICR; the xAPIC's, and its upper half, which has the destination (Intel SDM volume 3, 11.6.1 and 11.12.9).
const ICR_MSR: u32 = 0x830;
const ICR_GPA: u64 = 0xfee0_0300;
const ICR2_GPA: u64 = 0xfee0_0310;

/// Interrupts, and what they took.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IpiSums {
    /// To vCPUs that were halted: from sending to the target's entry, without time in which the woken target waited for
    /// a CPU that another task had. Those that came alone are not among them.
    pub halted: Stats,
    /// Interrupts to halted vCPUs that came alone: fewer than four in 17 ms.
    pub alone: u64,
    /// Of those to halted ones, from the wake-up to the CPU, where nothing else had it.
    pub waking: Stats,
    /// To vCPUs that were running or polling.
    pub awake: Stats,
    /// To vCPUs that were doing something else, or of which it is not known.
    pub others: u64,
    /// How many of those to halted ones had to wait for a CPU that another task had, and for how long in all.
    pub waited: (u64, u64),
    /// Left out of all these: those that are the doing of the recorder's agent in the guest.
    pub of_agent: u64,
    /// How long the slices of time are, all together, in which a halted vCPU was interrupted.
    pub active_ns: u64,
}

impl IpiSums {
    /// Returns how many there were, without the agent's.
    pub fn count(&self) -> u64 {
        let known = self.halted.count().saturating_add(self.awake.count());
        known.saturating_add(self.others).saturating_add(self.alone)
    }
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IpisReport {
    /// From their path.
    pub followed: IpiSums,
    /// From writes of the ICR; a target in a halt may have been polling.
    pub written: IpiSums,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Halted,
    Awake,
    Other,
}

#[derive(Debug, Clone, Copy)]
struct One {
    sent: u64,
    target: Target,
    /// Process of the target, if known.
    pid: Option<i32>,
    ns: u64,
    waking_ns: Option<u64>,
    waited_ns: u64,
}

/// Sums, and interrupts that may yet turn out to be the agent's.
#[derive(Debug, Default)]
struct Tally {
    pending: VecDeque<One>,
    sums: IpiSums,
    slice: u64,
    /// Those to halted vCPUs in it.
    inside: Vec<One>,
    slices: u64,
}

impl Tally {
    fn add(&mut self, one: One, traffic: &FxHashMap<Option<i32>, u64>) {
        let near = |at: Option<&u64>| at.is_some_and(|at| one.sent.abs_diff(*at) <= NEAR_NS);
        // A worker whose name does not tell its process may be anybody's, and so may a vCPU's.
        let agent = match one.pid {
            Some(_) => near(traffic.get(&one.pid)) || near(traffic.get(&None)),
            None => traffic.values().any(|at| near(Some(at))),
        };
        if agent {
            self.sums.of_agent += 1;
            return;
        }
        if self.pending.len() == MAX_PENDING
            && let Some(first) = self.pending.pop_front()
        {
            self.count(first);
        }
        self.pending.push_back(one);
    }

    /// The recorder and its agent talk: what was sent shortly before was theirs.
    fn traffic(&mut self, pid: Option<i32>, time: u64) {
        self.settle(time);
        let before = self.pending.len();
        self.pending.retain(|one| {
            let same = pid.is_none() || one.pid.is_none() || one.pid == pid;
            !same || one.sent.saturating_add(NEAR_NS) < time
        });
        self.sums.of_agent += (before - self.pending.len()) as u64;
    }

    /// Counts what can no longer be the agent's.
    fn settle(&mut self, time: u64) {
        while let Some(one) = self.pending.front()
            && one.sent.saturating_add(NEAR_NS) < time
        {
            let one = *one;
            self.pending.pop_front();
            self.count(one);
        }
    }

    fn count(&mut self, one: One) {
        match one.target {
            Target::Halted => {
                let slice = one.sent >> SLICE_BITS;
                if slice > self.slice || self.inside.len() >= MAX_IN_SLICE {
                    self.slice_ends(slice);
                }
                self.inside.push(one);
            }
            Target::Awake => self.sums.awake.add(one.ns),
            Target::Other => self.sums.others += 1,
        }
    }

    /// A slice is over, or as much of it as is kept.
    fn slice_ends(&mut self, next: u64) {
        if self.inside.len() < IN_SLICE {
            self.sums.alone += self.inside.len() as u64;
            self.inside.clear();
        } else if next > self.slice {
            self.slices += 1;
        }
        self.slice = next.max(self.slice);
        for one in self.inside.drain(..) {
            self.sums.halted.add(one.ns);
            if let Some(ns) = one.waking_ns {
                self.sums.waking.add(ns);
            }
            if one.waited_ns > 0 {
                self.sums.waited.0 += 1;
                self.sums.waited.1 = self.sums.waited.1.saturating_add(one.waited_ns);
            }
        }
    }

    /// The recording ends.
    fn finish(&mut self) {
        self.settle(u64::MAX);
        self.slice_ends(u64::MAX);
    }

    fn report(&self) -> IpiSums {
        let mut sums = self.sums.clone();
        sums.active_ns = self.slices << SLICE_BITS;
        sums
    }
}

/// Whom an interrupt is for, by the numbers of local APICs, which KVM's VMMs give vCPUs as theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    /// No vCPU that could be halted: the sender itself, or one that has not begun.
    Nobody,
    One(u32),
    /// A bit for each, from a number on.
    Bits(u32, u32),
    /// All but the sender.
    All,
    /// The upper half of the register was not recorded.
    Unknown,
}

impl Destination {
    /// Reads the ICR: its lower half, and its destination where that was recorded (Intel SDM volume 3, 11.6.1, 11.6.2,
    /// 11.12.9 and 11.12.10). Linux uses the flat model where destinations are logical and have eight bits.
    fn of(icr: u32, destination: Option<u32>, x2apic: bool) -> Destination {
        // Fixed and lowest priority; INIT and SIPI find a vCPU that has not begun, an NMI is for nobody who polls.
        if icr >> 8 & 7 > 1 {
            return Destination::Nobody;
        }
        let logical = icr >> 11 & 1 == 1;
        match (icr >> 18 & 3, destination) {
            (1, _) => Destination::Nobody,
            (2 | 3, _) => Destination::All,
            (_, None) => Destination::Unknown,
            (_, Some(to)) if to == if x2apic { u32::MAX } else { 0xff } => Destination::All,
            (_, Some(to)) if !logical => Destination::One(to),
            (_, Some(to)) if x2apic => {
                Destination::Bits((to >> 16).saturating_mul(16), to & 0xffff)
            }
            (_, Some(to)) => Destination::Bits(0, to & 0xff),
        }
    }
}

/// What a vCPU does, as far as exits tell.
#[derive(Debug, Clone, Copy, Default)]
enum In {
    #[default]
    Unknown,
    Guest,
    Halt,
    Exit(ExitReason),
}

#[derive(Debug, Default)]
struct Vcpu {
    known: bool,
    pid: i32,
    inside: In,
    since: u64,
    /// Its last exit.
    exit_at: u64,
    /// The last halt that is over.
    halt: Option<(u64, u64)>,
    /// The destination that it wrote to the upper half of the ICR.
    icr2: Option<u32>,
    /// Interrupts under way to it: when they were sent, and what it was doing.
    to: Vec<(u64, Target)>,
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
    followed: Tally,
    written: Tally,
    /// By process, when the recorder last talked to its agent there.
    traffic: FxHashMap<Option<i32>, u64>,
    /// Which of the paths it is, and of its chains, which steps are the wake-up and the switch to the target.
    path: Option<usize>,
    steps: Vec<Steps>,
    vcpus: Vec<Vcpu>,
    by_number: FxHashMap<(i32, u32), u32>,
    /// By process, its vCPUs.
    by_pid: FxHashMap<i32, Vec<u32>>,
    switches: bool,
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

    /// Takes what others noted.
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
            Data::SchedSwitch(_) => self.switches = true,
            Data::KvmExit(exit) => {
                let Some(at) = self.vcpu(event, exit.vcpu, machine) else {
                    return;
                };
                let vcpu = &mut self.vcpus[at];
                vcpu.over(event.time);
                vcpu.inside = match exit.reason.is_waiting() {
                    true => In::Halt,
                    false => In::Exit(exit.reason),
                };
                vcpu.since = event.time;
                vcpu.exit_at = event.time;
            }
            Data::KvmEntry(entry) => {
                let Some(at) = self.vcpu(event, entry.vcpu, machine) else {
                    return;
                };
                let vcpu = &mut self.vcpus[at];
                vcpu.over(event.time);
                // One that runs takes an interrupt by an exit that says so; what else it left its guest for tells
                // nothing of how soon it got it.
                let interrupted = matches!(vcpu.inside, In::Exit(reason) if is_interrupt(reason));
                let to = std::mem::take(&mut vcpu.to);
                let pid = Some(vcpu.pid).filter(|pid| *pid > 0);
                vcpu.inside = In::Guest;
                vcpu.since = event.time;
                for &(sent, target) in &to {
                    let target = match target {
                        Target::Awake if !interrupted => Target::Other,
                        target => target,
                    };
                    let one = One {
                        sent,
                        target,
                        pid,
                        ns: event.time.saturating_sub(sent),
                        waking_ns: None,
                        waited_ns: 0,
                    };
                    self.written.add(one, &self.traffic);
                }
                let mut to = to;
                to.clear();
                self.vcpus[at].to = to;
            }
            Data::KvmMsr(msr) if msr.write && msr.msr == ICR_MSR => {
                let destination = (msr.value >> 32) as u32;
                let to = Destination::of(msr.value as u32, Some(destination), true);
                self.sends(event, to, machine);
            }
            Data::KvmMmio(mmio) if mmio.access == MmioAccess::Write => match mmio.gpa {
                ICR2_GPA => {
                    if let Some(at) = self.vcpu(event, None, machine) {
                        self.vcpus[at].icr2 = Some((mmio.value as u32) >> 24);
                    }
                }
                ICR_GPA => {
                    let at = self.vcpu(event, None, machine);
                    let known = at.and_then(|at| self.vcpus[at].icr2);
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
    ) -> Option<usize> {
        let at = machine.vcpu_of(event.tid)?;
        let index = at as usize;
        if index >= MAX_VCPUS {
            return None;
        }
        if self.vcpus.len() <= index {
            self.vcpus.resize_with(index + 1, Vcpu::default);
        }
        let vcpu = &mut self.vcpus[index];
        if !vcpu.known {
            vcpu.known = true;
            vcpu.pid = event.pid;
            self.by_pid.entry(vcpu.pid).or_default().push(at);
        }
        if let Some(number) = number {
            self.by_number.entry((vcpu.pid, number)).or_insert(at);
        }
        Some(index)
    }

    /// A vCPU writes its ICR.
    fn sends(&mut self, event: &Event<'_>, to: Destination, machine: &mut Machine) {
        let Some(sender) = self.vcpu(event, None, machine) else {
            return;
        };
        let (pid, sent) = (self.vcpus[sender].pid, self.vcpus[sender].exit_at);
        let one = |number: u32, ipis: &Ipis| ipis.by_number.get(&(pid, number)).copied();
        let mut targets: Vec<usize> = Vec::new();
        match to {
            Destination::Nobody => return,
            Destination::One(number) => targets.extend(one(number, self).map(|at| at as usize)),
            Destination::Bits(base, bits) => {
                let numbers = (0..16).filter(|bit| bits >> bit & 1 == 1);
                let found = numbers.filter_map(|bit| one(base.saturating_add(bit), self));
                targets.extend(found.map(|at| at as usize));
            }
            Destination::All | Destination::Unknown => {
                let of_vm = self.by_pid.get(&pid).into_iter().flatten();
                targets.extend(of_vm.take(MAX_TARGETS).map(|at| *at as usize));
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
                Some(over) => {
                    let one = One {
                        sent,
                        target,
                        pid,
                        ns: over.saturating_sub(sent),
                        waking_ns: None,
                        waited_ns: 0,
                    };
                    self.written.add(one, &self.traffic);
                }
                None if vcpu.to.len() < MAX_TO => vcpu.to.push((sent, target)),
                None => {}
            }
        }
    }

    /// Returns what was found, after the walk.
    pub fn report(&self) -> IpisReport {
        IpisReport {
            followed: self.followed.report(),
            written: self.written.report(),
        }
    }
}

impl Ipis {
    /// One instance of the path.
    fn followed(&self, instance: &Instance, machine: &Machine) -> One {
        let steps = self.steps.get(instance.chain).copied().unwrap_or_default();
        followed(instance, steps, machine, self.switches)
    }
}

impl Analysis for Ipis {
    fn needs(&self) -> Needs {
        Needs {
            states: States::All,
            ..Needs::default()
        }
    }

    fn turn(&self) -> Turn {
        Turn::Last
    }

    fn wants(&mut self, ty: &EventType<'_>) -> Want {
        match ty.kind {
            Kind::KvmExit | Kind::KvmEntry | Kind::KvmMsr | Kind::KvmMmio | Kind::SchedSwitch => {
                Want::Order
            }
            _ => Want::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        self.hear(context, event.time);
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

impl Vcpu {
    /// A halt is over.
    fn over(&mut self, time: u64) {
        if matches!(self.inside, In::Halt) {
            self.halt = Some((self.since, time));
        }
    }

    /// What it was doing at a time shortly before, and when it had entered its guest since, if it has.
    fn at(&self, time: u64) -> (Target, Option<u64>) {
        if let Some((from, to)) = self.halt
            && from <= time
            && time < to
        {
            return (Target::Halted, Some(to));
        }
        match self.inside {
            In::Halt if self.since <= time => (Target::Halted, None),
            In::Guest if self.since <= time => (Target::Awake, None),
            // It is in the exit that the interrupt made, or in one that it was in before.
            In::Exit(reason) if is_interrupt(reason) => (Target::Awake, None),
            _ => (Target::Other, None),
        }
    }
}

/// One instance of the path.
fn followed(instance: &Instance, steps: Steps, machine: &Machine, switches: bool) -> One {
    let at = |step: Option<usize>| {
        let mut reached = instance.reached.iter();
        let found = reached.find(|one| step == Some(usize::from(one.step)));
        found.map(|one| one.time)
    };
    let sent = instance.reached.first().map_or(0, |one| one.time);
    let end = instance.reached.last().map_or(0, |one| one.time);
    let was = instance.traits.iter().find_map(|one| match one {
        Trait::Was(was) => Some(*was),
        _ => None,
    });
    let target = match was {
        // Without the scheduler's events one that sleeps is not told from one that polls.
        Some(Was::Polling) if !switches => Target::Halted,
        Some(Was::Halted) => Target::Halted,
        Some(Was::Polling) => Target::Awake,
        Some(was) if was.busy() => Target::Awake,
        _ => Target::Other,
    };
    let waking = at(steps.woken).zip(at(steps.on_cpu));
    let waking_ns = waking.map(|(woken, on)| on.saturating_sub(woken));
    let queued = instance
        .traits
        .iter()
        .any(|one| matches!(one, Trait::Behind(_)));
    let waited_ns = waking_ns.filter(|_| queued).unwrap_or(0);
    let pid = instance.subject.and_then(|slot| machine.threads().at(slot));
    One {
        sent,
        target,
        pid: pid.and_then(|(_, thread)| thread.pid),
        ns: end.saturating_sub(sent).saturating_sub(waited_ns),
        waking_ns: waking_ns.filter(|_| !queued),
        waited_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_register_says_whom_an_interrupt_is_for() {
        use Destination::{All, Bits, Nobody, One, Unknown};
        for (icr, to, x2apic, whom) in [
            // Fixed, physical, one vCPU: what guests with few vCPUs send.
            (0xfb, Some(1), true, One(1)),
            (0xfd, Some(3), false, One(3)),
            // Logical: the second cluster's first and third; three bits of the flat model.
            (0x8fb, Some(0x1_0005), true, Bits(16, 5)),
            (0x8fb, Some(0x7), false, Bits(0, 7)),
            // Shorthands: itself, all, all but itself; and all by number.
            (0x400fb, Some(0), true, Nobody),
            (0xc00fb, Some(0), true, All),
            (0x800fb, None, false, All),
            (0xfb, Some(u32::MAX), true, All),
            (0xfb, Some(0xff), false, All),
            // INIT, SIPI, NMI.
            (0x500, Some(1), true, Nobody),
            (0x608, Some(1), true, Nobody),
            (0x400, Some(1), true, Nobody),
            (0xfb, None, false, Unknown),
        ] {
            assert_eq!(Destination::of(icr, to, x2apic), whom, "{icr:#x} {to:?}");
        }
    }

    fn one(sent: u64, target: Target, ns: u64) -> One {
        One {
            sent,
            target,
            pid: None,
            ns,
            waking_ns: Some(ns / 2),
            waited_ns: 0,
        }
    }

    #[test]
    fn what_comes_near_the_agents_traffic_is_its_doing() {
        let mut tally = Tally::default();
        let mut traffic = FxHashMap::default();
        // Forty in 20 ms, and traffic in the middle of them.
        for at in 0..40u64 {
            let sent = (1 << 30) + at * 500_000;
            if at == 20 {
                traffic.insert(None, sent);
                tally.traffic(None, sent);
            }
            tally.add(one(sent, Target::Halted, 1_000), &traffic);
        }
        tally.finish();
        let sums = tally.report();
        // Ten before it, itself, and ten behind.
        assert_eq!(sums.of_agent, 21, "{sums:?}");
        assert_eq!(sums.halted.count() + sums.alone, 19, "{sums:?}");
    }

    #[test]
    fn interrupts_that_come_alone_are_told_apart() {
        let (mut tally, traffic) = (Tally::default(), FxHashMap::default());
        for at in 0..30u64 {
            tally.add(one(at * 100_000_000, Target::Halted, 300_000), &traffic);
        }
        for at in 0..30u64 {
            tally.add(
                one(5_000_000_000 + at * 100_000, Target::Halted, 50_000),
                &traffic,
            );
        }
        tally.finish();
        let sums = tally.report();
        assert_eq!((sums.alone, sums.halted.count()), (30, 30));
        assert_eq!(sums.halted.percentile(0.5), 50_000);
        assert!(sums.active_ns <= 2 << SLICE_BITS, "{sums:?}");
        assert_eq!(sums.count(), 60);
    }
}
