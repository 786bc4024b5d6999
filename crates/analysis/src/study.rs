//! Several questions answered in one walk over a recording.

use std::ops::ControlFlow;

use event::{Data, Event, EventType, KERNEL_STACK, Side, Sink};
use model::{Machine, Span, SpanSink, ThreadFacts};
use paths::Paths;

use crate::causes::Chosen;
use crate::{
    Amount, Causes, Continuity, Counter, Exits, Info, Ipis, LeftOut, Recorder, Sched, Sleeps,
    Slice, Slices, Stalls, Vcpus, VcpusReport, Window,
};

/// Questions, and the machine that some of them need: the events are walked and decoded once for all.
#[derive(Debug, Default)]
pub struct Study {
    /// What is in the recording.
    pub info: Option<Info>,
    /// Exit statistics. With `machine` they also tell what vCPUs did in the time of the exits.
    pub exits: Option<Exits>,
    /// Time of the vCPUs, which needs `machine`.
    pub vcpus: Option<Vcpus>,
    /// Scheduling latencies.
    pub sched: Option<Sched>,
    /// Latency paths, which need `machine`.
    pub paths: Option<Paths>,
    /// Where tasks sleep.
    pub sleeps: Option<Sleeps>,
    /// Whether events are missing.
    pub continuity: Option<Continuity>,
    /// What only rules look at.
    pub causes: Option<Causes>,
    /// Who records, and what that takes; it needs `machine`.
    pub recorder: Option<Recorder>,
    /// Long times in which a vCPU stood still; they need `vcpus`.
    pub stalls: Option<Stalls>,
    /// Inter-processor interrupts; they need `machine`.
    pub ipis: Option<Ipis>,
    /// How much of everything happened when.
    pub slices: Option<Slices>,
    /// What the vCPUs do.
    pub machine: Option<Machine>,
    /// By kind, how many events there were, for slices.
    counts: Vec<u64>,
    /// Where and when events count.
    window: Window,
    /// vCPUs whose events do not.
    left_out: LeftOut,
    /// By kind of event, who wants it.
    wanted: Vec<Wanted>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    exits: bool,
    machine: bool,
    sched: bool,
    paths: bool,
    sleeps: bool,
    continuity: bool,
}

impl Study {
    /// Asks what is in the recording.
    pub fn info(self, info: Info) -> Study {
        Study {
            info: Some(info),
            ..self
        }
    }

    /// Asks for scheduling latencies.
    pub fn sched(self, sched: Sched) -> Study {
        Study {
            sched: Some(sched),
            ..self
        }
    }

    /// Asks for exit statistics.
    pub fn exits(self, exits: Exits) -> Study {
        Study {
            exits: Some(exits),
            ..self
        }
    }

    /// Asks for exit statistics, and for what vCPUs did in the time of the exits.
    pub fn exits_split(self, exits: Exits) -> Study {
        let accesses = exits.wants_accesses();
        let mut study = self.exits(exits);
        if study.machine.is_none() {
            let mut machine = Machine::new();
            if !accesses {
                machine.ignore_accesses();
            }
            study.machine = Some(machine);
        }
        study
    }

    /// Asks for the vCPUs' time, which takes the machine.
    pub fn vcpus(self, vcpus: Vcpus) -> Study {
        Study {
            vcpus: Some(vcpus),
            machine: Some(Machine::new()),
            ..self
        }
    }

    /// Asks for latency paths, which takes the machine.
    pub fn paths(self, paths: Paths) -> Study {
        Study {
            paths: Some(paths),
            machine: Some(Machine::new()),
            ..self
        }
    }

    /// Asks where tasks sleep.
    pub fn sleeps(self, sleeps: Sleeps) -> Study {
        Study {
            sleeps: Some(sleeps),
            ..self
        }
    }

    /// Asks whether events are missing.
    pub fn continuity(self, continuity: Continuity) -> Study {
        Study {
            continuity: Some(continuity),
            ..self
        }
    }

    /// Asks who records, and what that takes. The machine has to be asked for by something else.
    pub fn recorder(self, recorder: Recorder) -> Study {
        Study {
            recorder: Some(recorder),
            ..self
        }
    }

    /// Asks for what only rules look at.
    pub fn causes(self, causes: Causes) -> Study {
        Study {
            causes: Some(causes),
            ..self
        }
    }

    /// Asks for long times in which a vCPU stood still, which takes [`Study::vcpus`].
    pub fn stalls(self, stalls: Stalls) -> Study {
        Study {
            stalls: Some(stalls),
            ..self
        }
    }

    /// Asks for inter-processor interrupts. The machine has to be asked for by something else.
    pub fn ipis(self, ipis: Ipis) -> Study {
        Study {
            ipis: Some(ipis),
            ..self
        }
    }

    /// Asks how much of everything that is asked for happened when.
    pub fn slices(self, slices: Slices) -> Study {
        Study {
            slices: Some(slices),
            ..self
        }
    }

    /// Looks at a part only: what happens in a window, and what vCPUs do that are not left out. The machine and paths
    /// follow everything all the same, since what a vCPU does may be told by any thread's events, and before or after.
    pub fn choose(mut self, window: Window, left_out: LeftOut) -> Study {
        if let Some(vcpus) = &mut self.vcpus {
            vcpus.leave_out(left_out.threads.clone());
        }
        Study {
            window,
            left_out,
            ..self
        }
    }

    /// Returns what is left out.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Tells all sums so far.
    fn counters(&self, tell: &mut dyn FnMut(Counter, Amount)) {
        if let Some(exits) = &self.exits {
            exits.counters(tell);
        }
        if let (Some(vcpus), Some(machine)) = (&self.vcpus, &self.machine) {
            vcpus.counters(machine, tell);
        }
        if let Some(sched) = &self.sched {
            sched.counters(tell);
        }
        if let Some(paths) = &self.paths {
            for ((count, ns), number) in paths.sums().zip(0u32..) {
                tell(Counter::Path(number), Amount { count, ns });
            }
        }
        for (&count, number) in self.counts.iter().zip(0u32..) {
            if count > 0 {
                tell(Counter::Events(number), Amount { count, ns: 0 });
            }
        }
    }

    #[cold]
    fn cut(&mut self, time: u64) {
        if let Some(mut slices) = self.slices.take() {
            slices.cut(time, |tell| self.counters(tell));
            self.slices = Some(slices);
        }
    }

    /// Says that the recording's clock counts ticks and no nanoseconds.
    pub fn counts_ticks(&mut self) {
        if let Some(machine) = &mut self.machine {
            machine.counts_ticks();
        }
    }

    /// Takes thread names that the recorder saved apart from the events.
    pub fn saved_names<'n>(&mut self, names: impl Iterator<Item = (i32, &'n str)> + Clone) {
        if let Some(info) = &mut self.info {
            info.saved_names(names.clone());
        }
        if let Some(exits) = &mut self.exits {
            exits.saved_names(names.clone());
        }
        if let Some(sched) = &mut self.sched {
            sched.saved_names(names.clone());
        }
        if let Some(sleeps) = &mut self.sleeps {
            sleeps.saved_names(names.clone());
        }
        if let Some(machine) = &mut self.machine {
            machine.saved_names(names);
        }
    }

    /// Returns what was found of the vCPUs' time, if that was asked for.
    pub fn vcpus_report(&self) -> Option<VcpusReport> {
        Some(self.vcpus.as_ref()?.report(self.machine.as_ref()?))
    }

    /// Takes what is told beside the recording, before its events.
    pub fn told(&mut self, told: &ThreadFacts) {
        if let Some(info) = &mut self.info {
            info.told(told);
        }
        if let Some(exits) = &mut self.exits {
            exits.told(told);
        }
        if let Some(sched) = &mut self.sched {
            sched.told(told);
        }
        if let Some(machine) = &mut self.machine {
            machine.told(told);
        }
    }

    /// Returns the slices up to the time of the last event, if they were asked for. What it is asked after
    /// [`Study::finish`] has all that was under way in the last one.
    pub fn take_slices(&mut self, end: u64) -> Vec<Slice> {
        let slices = self.slices.take();
        slices.map_or_else(Vec::new, |slices| {
            slices.finish(end, |tell| self.counters(tell))
        })
    }

    /// Ends the walk.
    pub fn finish(&mut self) {
        if let (Some(paths), Some(machine)) = (&mut self.paths, &self.machine) {
            paths.finish(machine);
        }
        if let Some(machine) = &mut self.machine {
            match &mut self.vcpus {
                Some(vcpus) => machine.finish(&mut Spans(vcpus, &mut self.stalls)),
                None => machine.finish(&mut ()),
            }
        }
        if let (Some(ipis), Some(paths), Some(machine)) =
            (&mut self.ipis, &mut self.paths, &self.machine)
        {
            ipis.completed(paths, machine);
        }
    }
}

/// Hands spans to both who want them.
struct Spans<'s>(&'s mut Vcpus, &'s mut Option<Stalls>);

impl SpanSink for Spans<'_> {
    #[inline]
    fn span(&mut self, span: &Span) {
        self.0.span(span);
        if let Some(stalls) = self.1 {
            stalls.span(span);
        }
    }
}

impl Sink for Study {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let index = ty.index as usize;
        if self.wanted.len() <= index {
            self.wanted.resize(index + 1, Wanted::default());
        }
        let wanted = Wanted {
            exits: self.exits.as_mut().is_some_and(|exits| exits.wants(ty)),
            machine: self
                .machine
                .as_mut()
                .is_some_and(|machine| machine.wants(ty)),
            sched: self.sched.as_mut().is_some_and(|sched| sched.wants(ty)),
            paths: self.paths.as_mut().is_some_and(|paths| paths.wants(ty)),
            sleeps: self.sleeps.is_some() && (ty.kind.is_sched() || ty.name == KERNEL_STACK),
            continuity: self.continuity.as_ref().is_some_and(|one| one.wants(ty)),
        };
        self.wanted[index] = wanted;
        if let Some(causes) = &mut self.causes {
            causes.learn(ty);
        }
        let info = self.info.as_mut().is_some_and(|info| info.wants(ty));
        let any = wanted.exits || wanted.machine || wanted.sched || wanted.paths;
        let any = any || wanted.continuity;
        info || any || wanted.sleeps || self.causes.is_some() || self.slices.is_some()
    }

    fn wants_samples(&self) -> bool {
        self.sleeps.is_some()
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let index = event.ty.index as usize;
        let mut wanted = self.wanted.get(index).copied().unwrap_or_default();
        let inside = self.window.has(event.time, event.cpu);
        let counts = inside && !self.left_out.made(event);
        // Who had a CPU, and whom an event woke, concerns a chosen vCPU whoever's event it is.
        let follows = self.window.has_time(event.time)
            && (event.ty.kind.is_sched() || !self.left_out.made(event));
        wanted.sched &= inside;
        wanted.sleeps &= inside;
        wanted.exits &= counts;
        // Of nobody knows which vCPU.
        wanted.paths &= event.tid >= 0 || event.ty.kind.is_sched();
        if inside && let Some(slices) = &mut self.slices {
            if slices.is_due(event.time) {
                self.cut(event.time);
            }
            if self.counts.len() <= index {
                self.counts.resize(index + 1, 0);
            }
            self.counts[index] += u64::from(counts);
        }
        let any = wanted.exits || wanted.machine || wanted.sched || wanted.paths || wanted.sleeps;
        if any || wanted.continuity || self.causes.is_some() {
            let data = event.data();
            if wanted.continuity
                && let Some(continuity) = &mut self.continuity
            {
                continuity.take(event, &data);
            }
            if let Some(causes) = &mut self.causes {
                let chosen = Chosen {
                    inside,
                    counts,
                    follows,
                };
                causes.take(event, &data, chosen);
            }
            if wanted.sleeps
                && let Some(sleeps) = &mut self.sleeps
            {
                sleeps.take(event, &data);
            }
            // Paths look at what vCPUs were doing before the event.
            if wanted.paths
                && let (Some(paths), Some(machine)) = (&mut self.paths, &mut self.machine)
            {
                paths.take(event, &data, machine);
            }
            if wanted.machine
                && let Some(machine) = &mut self.machine
            {
                match &mut self.vcpus {
                    Some(vcpus) => {
                        let halt = match data {
                            Data::KvmVcpuWakeup(_) => machine.vcpu_of(event.tid),
                            _ => None,
                        };
                        let before = halt.map(|vcpu| machine.polls(vcpu));
                        machine.event(event, &data, &mut Spans(vcpus, &mut self.stalls));
                        if let (Some(vcpu), Some(before)) = (halt, before) {
                            let after = machine.polls(vcpu);
                            vcpus.halt(vcpu, event.time, event.cpu, &before, &after);
                        }
                        if matches!(data, Data::KvmExit(_))
                            && let Some(vcpu) = machine.vcpu_of(event.tid)
                        {
                            vcpus.exit(vcpu, event.time, event.cpu);
                        }
                    }
                    None => machine.event(event, &data, &mut ()),
                }
            }
            if let Some(machine) = &mut self.machine {
                let talks = match &mut self.recorder {
                    Some(recorder) => recorder.take(event, &data, machine),
                    None => None,
                };
                if follows && let Some(stalls) = &mut self.stalls {
                    stalls.take(event, &data, machine);
                }
                if let Some(ipis) = &mut self.ipis {
                    if let Some(pid) = talks {
                        ipis.talks(pid, event.time);
                    }
                    if let Some(paths) = &mut self.paths {
                        ipis.completed(paths, machine);
                    }
                    // A vCPU that is left out may send to a chosen one of its VM.
                    if self.window.has_time(event.time) && !self.left_out.other_vm(event) {
                        ipis.take(event, &data, machine);
                    }
                }
            }
            if wanted.sched
                && let Some(sched) = &mut self.sched
            {
                sched.take(event, &data);
            }
            if wanted.exits
                && let Some(exits) = &mut self.exits
            {
                exits.take(event, &data, self.machine.as_mut());
            }
        }
        match &mut self.info {
            Some(info) if counts => info.event(event),
            Some(info) => {
                info.learn(event);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Continue(()),
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        if let Some(info) = &mut self.info {
            info.side(side);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.side(side);
        }
        if let Some(exits) = &mut self.exits {
            exits.side(side);
        }
        if let Some(sched) = &mut self.sched {
            sched.side(side);
        }
        if let Some(sleeps) = &mut self.sleeps {
            sleeps.side(side);
        }
        if let Some(paths) = &mut self.paths {
            paths.side(side);
        }
        if let Some(machine) = &mut self.machine {
            machine.side(side);
        }
    }
}
