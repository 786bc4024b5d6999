//! What is in a recording: events and counts, time span, VMs and vCPUs.

use event::{Event, EventType, Kind, NONE};
use model::{Machine, Vm};

use crate::analysis::{Analysis, Context, Needs, Walked, Want};
use crate::series::Measured;
use crate::slices::Amount;

/// How many events of one kind there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventCount {
    /// Name as the container prints it.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// What a recording holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InfoReport {
    /// Events by kind, most frequent first; kinds that were recorded and never happened come last.
    pub events: Vec<EventCount>,
    /// Names of the kinds of events that were recorded, whether or not they happened; what a recording merely knows the
    /// format of is not among them.
    pub recorded: Vec<String>,
    /// Time of the first event.
    pub start: Option<u64>,
    /// Time of the last event.
    pub end: Option<u64>,
    /// CPUs that events came from.
    pub cpus_seen: u32,
    /// VMs and their vCPUs.
    pub vms: Vec<Vm>,
    /// Whether any event is KVM's.
    pub has_kvm: bool,
    /// Whether exits were recorded: without them there are no exit statistics.
    pub has_exits: bool,
}

/// Counts what a recording holds.
#[derive(Debug, Default)]
pub struct Info {
    counts: Vec<(String, u64, Kind, bool)>,
    /// By kind, whether the recording says that it was recorded.
    recorded: Vec<bool>,
    start: Option<u64>,
    end: Option<u64>,
    cpus: Vec<bool>,
    vcpus_only: bool,
}

/// CPUs beyond this are not told apart: the kernel has fewer.
const MAX_CPUS: usize = 1 << 16;

impl Info {
    /// Returns a counter that has seen nothing.
    pub fn new() -> Info {
        Info::default()
    }

    /// Returns a counter that looks at events only that tell of vCPUs and VMs: its counts are of those.
    pub fn vcpus_only() -> Info {
        Info {
            vcpus_only: true,
            ..Info::default()
        }
    }

    /// Returns the name that a kind of events goes by.
    fn label(&self, index: u32) -> Option<&str> {
        self.counts
            .get(index as usize)
            .map(|count| count.0.as_str())
    }

    /// Returns what was counted, and the VMs of the machine.
    pub fn report(&self, machine: &Machine) -> InfoReport {
        let mut events: Vec<EventCount> = self
            .counts
            .iter()
            .filter(|c| !c.0.is_empty())
            .map(|(name, count, ..)| EventCount {
                name: name.clone(),
                count: *count,
            })
            .collect();
        events.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        let recorded = self.counts.iter().zip(&self.recorded);
        let recorded = recorded
            .filter(|(kind, recorded)| !kind.0.is_empty() && (**recorded || kind.1 > 0))
            .map(|(kind, _)| kind.0.clone());
        InfoReport {
            recorded: recorded.collect(),
            events,
            start: self.start,
            end: self.end,
            cpus_seen: self.cpus.iter().filter(|&&seen| seen).count() as u32,
            vms: machine.vms(),
            has_kvm: self.counts.iter().any(|c| c.3 && c.1 > 0),
            has_exits: self.counts.iter().any(|c| c.2 == Kind::KvmExit && c.1 > 0),
        }
    }
}

impl Analysis for Info {
    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> Want {
        let index = ty.index as usize;
        if self.counts.len() <= index {
            self.counts
                .resize_with(index + 1, || (String::new(), 0, Kind::Other, false));
        }
        let kvm = ty.system.starts_with("kvm") || ty.name.starts_with("kvm_");
        if self.recorded.len() <= index {
            self.recorded.resize(index + 1, false);
        }
        self.recorded[index] = ty.recorded;
        self.counts[index] = (ty.label.to_owned(), 0, ty.kind, kvm);
        let whose = matches!(ty.kind, Kind::KvmEntry | Kind::KvmExit) || ty.kind.is_sched();
        match !self.vcpus_only || whose {
            true => Want::Count,
            false => Want::Nothing,
        }
    }

    fn count(&mut self, event: &Event<'_>, context: &mut Context<'_>) {
        if !context.chosen.counts {
            return;
        }
        if let Some(entry) = self.counts.get_mut(event.ty.index as usize) {
            entry.1 += 1;
        }
        if self.start.is_none_or(|start| event.time < start) {
            self.start = Some(event.time);
        }
        if self.end.is_none_or(|end| event.time > end) {
            self.end = Some(event.time);
        }
        if event.cpu != NONE
            && let Ok(cpu) = usize::try_from(event.cpu)
            && cpu < MAX_CPUS
        {
            if self.cpus.len() <= cpu {
                self.cpus.resize(cpu + 1, false);
            }
            self.cpus[cpu] = true;
        }
    }

    fn counters(&self, _: &Walked<'_>, tell: &mut dyn FnMut(u8, u32, Amount)) {
        for (kind, number) in self.counts.iter().zip(0u32..) {
            if kind.1 > 0 {
                let amount = Amount {
                    count: kind.1,
                    ns: 0,
                };
                tell(0, number, amount);
            }
        }
    }

    fn measured(&self, _: u8, number: u32, _: &Walked<'_>) -> Option<Measured> {
        Some(Measured::Events(self.label(number)?.to_owned()))
    }
}
