//! Several questions answered in one walk over a recording.

use std::ops::ControlFlow;

use event::{Data, Event, EventType, Side, Sink};
use model::{Machine, Told};
use paths::Paths;

use crate::{Exits, Info, Sched, Vcpus, VcpusReport};

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
    /// What the vCPUs do.
    pub machine: Option<Machine>,
    /// By kind of event, who wants it.
    wanted: Vec<Wanted>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    exits: bool,
    machine: bool,
    sched: bool,
    paths: bool,
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
        if let Some(machine) = &mut self.machine {
            machine.saved_names(names);
        }
    }

    /// Returns what was found of the vCPUs' time, if that was asked for.
    pub fn vcpus_report(&self) -> Option<VcpusReport> {
        Some(self.vcpus.as_ref()?.report(self.machine.as_ref()?))
    }

    /// Takes what is told beside the recording, before its events.
    pub fn told(&mut self, told: &Told) {
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

    /// Ends the walk.
    pub fn finish(&mut self) {
        if let (Some(paths), Some(machine)) = (&mut self.paths, &self.machine) {
            paths.finish(machine);
        }
        if let Some(machine) = &mut self.machine {
            match &mut self.vcpus {
                Some(vcpus) => machine.finish(vcpus),
                None => machine.finish(&mut ()),
            }
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
        };
        self.wanted[index] = wanted;
        let info = self.info.as_mut().is_some_and(|info| info.wants(ty));
        info || wanted.exits || wanted.machine || wanted.sched || wanted.paths
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let index = event.ty.index as usize;
        let wanted = self.wanted.get(index).copied().unwrap_or_default();
        if wanted.exits || wanted.machine || wanted.sched || wanted.paths {
            let data = event.data();
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
                        machine.event(event, &data, vcpus);
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
            Some(info) => info.event(event),
            None => ControlFlow::Continue(()),
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        if let Some(info) = &mut self.info {
            info.side(side);
        }
        if let Some(exits) = &mut self.exits {
            exits.side(side);
        }
        if let Some(sched) = &mut self.sched {
            sched.side(side);
        }
        if let Some(paths) = &mut self.paths {
            paths.side(side);
        }
        if let Some(machine) = &mut self.machine {
            machine.side(side);
        }
    }
}
