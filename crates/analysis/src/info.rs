//! What is in a recording: events and counts, time span, VMs and vCPUs.

use doubts::{Concern, Concerns};
use event::{EventType, Kind, index_of};
use model::Vm;

use crate::analysis::{
    AccountScope, AccountedEvents, Analysis, EventAccount, EventDetail, FilterScope, Needs,
    WalkState,
};
use crate::counts::Counts;
use crate::series::SliceMeasure;
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

/// A kind of events.
#[derive(Debug, Clone, Default)]
struct RecordedKind {
    /// The name it goes by; empty where the recording has no such kind.
    label: String,
    kind: Option<Kind>,
    is_kvm: bool,
    /// Whether the recording says that it was recorded.
    recorded: bool,
    /// Whether its events are counted here.
    counted: bool,
}

/// Counts what a recording holds.
#[derive(Debug, Default)]
pub struct RecordingContents {
    kinds: Vec<RecordedKind>,
    vcpus_only: bool,
}

impl RecordingContents {
    /// Returns a counter that has seen nothing.
    pub fn new() -> RecordingContents {
        RecordingContents::default()
    }

    /// Returns a counter that looks only at events that show vCPUs and VMs: its counts are of those.
    pub fn vcpus_only() -> RecordingContents {
        RecordingContents {
            vcpus_only: true,
            ..RecordingContents::default()
        }
    }

    /// Returns the kinds of events that the recording has, and how many of each happened.
    fn kinds<'i>(&'i self, counts: &'i Counts) -> impl Iterator<Item = (&'i RecordedKind, u64)> {
        let kinds = self.kinds.iter().enumerate();
        let kinds = kinds.filter(|(_, kind)| !kind.label.is_empty());
        kinds.map(|(index, kind)| match kind.counted {
            true => (kind, counts.of_kind(index)),
            false => (kind, 0),
        })
    }

    /// Returns what was counted, and the VMs of the machine.
    pub fn report(&self, walked: &WalkState<'_>) -> InfoReport {
        let counts = walked.counts;
        let mut events: Vec<EventCount> = self
            .kinds(counts)
            .map(|(kind, count)| EventCount {
                name: kind.label.clone(),
                count,
            })
            .collect();
        events.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        let recorded = self.kinds(counts);
        let recorded = recorded.filter(|(kind, count)| kind.recorded || *count > 0);
        let happened = |of: &dyn Fn(&RecordedKind) -> bool| {
            self.kinds(counts)
                .any(|(kind, count)| count > 0 && of(kind))
        };
        InfoReport {
            recorded: recorded.map(|(kind, _)| kind.label.clone()).collect(),
            events,
            start: counts.span().map(|(start, _)| start),
            end: counts.span().map(|(_, end)| end),
            cpus_seen: counts.cpus().iter().filter(|cpu| cpu.chosen > 0).count() as u32,
            vms: walked.machine.vms(),
            has_kvm: happened(&|kind| kind.is_kvm),
            has_exits: happened(&|kind| {
                matches!(kind.kind, Some(Kind::KvmExit | Kind::KvmInnerExit))
            }),
        }
    }
}

impl Analysis for RecordingContents {
    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Events)
    }

    fn concerns(&self) -> Concerns {
        Concerns::of(&[Concern::Events, Concern::Vms])
    }

    fn counted(&self, walked: &WalkState<'_>) -> Vec<EventAccount> {
        if self.vcpus_only {
            return Vec::new();
        }
        let events = self.kinds(walked.counts).map(|(_, count)| count);
        vec![EventAccount {
            which: AccountedEvents::All,
            name: "of all kinds",
            of: AccountScope::Chosen,
            events: events.fold(0, u64::saturating_add),
        }]
    }

    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            counts: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        let whose = matches!(ty.kind, Kind::KvmEntry | Kind::KvmExit) || ty.kind.is_sched();
        let known = RecordedKind {
            label: ty.label.to_owned(),
            kind: Some(ty.kind),
            is_kvm: ty.system.starts_with("kvm") || ty.name.starts_with("kvm_"),
            recorded: ty.recorded,
            counted: !self.vcpus_only || whose,
        };
        let want = match known.counted {
            true => EventDetail::Count,
            false => EventDetail::Nothing,
        };
        let index = index_of(ty.index);
        if self.kinds.len() <= index {
            self.kinds.resize_with(index + 1, RecordedKind::default);
        }
        self.kinds[index] = known;
        want
    }

    fn counters(&self, walked: &WalkState<'_>, report: &mut dyn FnMut(u8, u32, Amount)) {
        for (kind, number) in self.kinds.iter().zip(0u32..) {
            let count = walked.counts.of_kind(index_of(number));
            if kind.counted && count > 0 {
                report(0, number, Amount { count, ns: 0 });
            }
        }
    }

    fn measured(&self, _: u8, number: u32, _: &WalkState<'_>) -> Option<SliceMeasure> {
        let kind = self.kinds.get(index_of(number))?;
        Some(SliceMeasure::Events(kind.label.clone()))
    }
}
