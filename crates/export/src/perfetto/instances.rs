//! Instances of paths: a slice for each with its stages, and an instant for each step on the thread that made it.

use std::cell::RefCell;

use paths::lang::PathDefinition;
use paths::{CompletedInstance, InstanceWords, Paths, ReachedStep, RecentWords};

use super::lanes::Lanes;
use super::packets::{Arg, ArgList, NumberedText, PacketKind, PacketText, Packets, TrackEvent};
use super::tracks::Tracks;
use crate::known::Devices;
use crate::rows::with_names;
use crate::walk::Scene;

/// Lanes of a path's instances, at most.
pub(super) const MAX_LANES: usize = 1 << 10;

/// The texts of a chain.
#[derive(Debug)]
struct ChainTexts {
    name: Option<NumberedText>,
    /// The titles of its steps.
    steps: Vec<NumberedText>,
    /// Those of its stages, by the step that they begin with and the one that they end with.
    stages: Vec<Option<Box<NumberedText>>>,
}

/// A path: its texts, and where its instances stand.
#[derive(Debug)]
struct PathTracks {
    title: NumberedText,
    chains: Vec<ChainTexts>,
    lanes: Lanes,
}

/// Slices of instances.
#[derive(Debug, Default)]
pub(super) struct InstanceSlices {
    paths: Vec<PathTracks>,
    words: RecentWords,
    flows: u64,
    /// Instances that overlap too many others.
    unplaced: u64,
}

impl PathTracks {
    fn new(path: &PathDefinition) -> PathTracks {
        let chains = path.chains.iter().map(|chain| {
            let steps = chain.steps.iter();
            let titles = steps.map(|step| format!("{}: {}", path.name, step.name));
            ChainTexts {
                name: chain.name.as_deref().map(NumberedText::new),
                steps: titles.map(NumberedText::new).collect(),
                stages: Vec::new(),
            }
        });
        PathTracks {
            title: NumberedText::new(path.name.as_str()),
            chains: chains.collect(),
            lanes: Lanes::default(),
        }
    }
}

impl ChainTexts {
    /// Returns the title of a stage.
    fn stage(&mut self, path: &PathDefinition, chain: usize, from: u8, to: u8) -> PacketText<'_> {
        let count = self.steps.len();
        if self.stages.is_empty() {
            self.stages.resize_with(count * count, || None);
        }
        let at = usize::from(from) * count + usize::from(to);
        let Some(place) = self.stages.get_mut(at) else {
            return PacketText::Ours("?");
        };
        PacketText::Numbered(place.get_or_insert_with(|| {
            let steps = path.chains.get(chain).map(|chain| &chain.steps);
            let name = |step: u8| {
                let step = steps.and_then(|steps| steps.get(usize::from(step)));
                step.map_or("?", |step| step.name.as_str())
            };
            Box::new(NumberedText::new(format!("{} → {}", name(from), name(to))))
        }))
    }
}

impl InstanceSlices {
    /// Returns how many instances overlap too many others.
    pub(super) fn unplaced(&self) -> u64 {
        self.unplaced
    }

    /// Adds an instance.
    pub(super) fn add(
        &mut self,
        one: &CompletedInstance,
        scene: &Scene<'_>,
        devices: &RefCell<Devices>,
        (tracks, packets): (&mut Tracks, &mut Packets),
    ) {
        let Some(paths) = scene.paths else { return };
        if self.paths.is_empty() {
            self.paths = paths.paths().iter().map(PathTracks::new).collect();
        }
        let (Some(path), Some(definition)) =
            (self.paths.get_mut(one.path), paths.paths().get(one.path))
        else {
            return;
        };
        let (Some(first), Some(last)) = (one.reached.first(), one.reached.last()) else {
            return;
        };
        let lane = path.lanes.place((first.time, last.time), MAX_LANES, || {
            let group = tracks.group("paths", packets);
            tracks.below(group, &definition.name, packets)
        });
        let Some(track) = lane else {
            self.unplaced += 1;
            return;
        };
        self.flows += 1;
        let flow = self.flows;
        let vcpu = one.subject;
        let vcpu = vcpu.map(|slot| self.words.task(scene.machine, slot));
        let words = with_names(scene, devices, |names| {
            paths.words(one, scene.machine, names, &mut self.words)
        });
        let at = (track, flow);
        begin(path, one, first.time, (words, vcpu.as_deref()), at, packets);
        if let Some(chain) = path.chains.get_mut(one.chain) {
            for pair in one.reached.windows(2) {
                let [from, to] = pair else { continue };
                let name = chain.stage(definition, one.chain, from.step, to.step);
                packets.event(&TrackEvent {
                    category: Some("stage"),
                    name: Some(name),
                    ..TrackEvent::new(from.time, track, PacketKind::Begin)
                });
                packets.event(&TrackEvent::new(to.time, track, PacketKind::End));
            }
        }
        packets.event(&TrackEvent::new(last.time, track, PacketKind::End));
        for (at, reached) in one.reached.iter().enumerate() {
            let chain = path.chains.get(one.chain);
            let title = chain.and_then(|chain| chain.steps.get(usize::from(reached.step)));
            let flow = (flow, at + 1 == one.reached.len());
            let thread = tracks.thread(reached.does(), scene.machine, packets);
            let number = (paths, one.number);
            step(reached, title, number, (thread, flow), packets);
        }
    }
}

/// Adds the beginning of an instance's slice.
fn begin(
    path: &PathTracks,
    one: &CompletedInstance,
    time: u64,
    (words, vcpu): (&InstanceWords, Option<&str>),
    (track, flow): (u64, u64),
    packets: &mut Packets,
) {
    let mut args = ArgList::default();
    args.push(("instance", Arg::Uint(one.number)));
    let chain = path.chains.get(one.chain);
    if let Some(chain) = chain.and_then(|chain| chain.name.as_ref()) {
        args.push(("chain", Arg::Name(PacketText::Numbered(chain))));
    }
    if let Some(by) = &words.by {
        args.push(("by", Arg::Name(PacketText::Plain(by))));
    }
    if let Some(vcpu) = vcpu {
        args.push(("vcpu", Arg::Name(PacketText::Plain(vcpu))));
    }
    if !words.joined.is_empty() {
        args.push(("features", Arg::Text(&words.joined)));
    }
    packets.event(&TrackEvent {
        category: Some("path"),
        name: Some(PacketText::Numbered(&path.title)),
        args: &args,
        flow: Some((flow, false)),
        ..TrackEvent::new(time, track, PacketKind::Begin)
    });
}

/// Adds a step.
fn step(
    reached: &ReachedStep,
    title: Option<&NumberedText>,
    (paths, number): (&Paths, u64),
    (thread, flow): (u64, (u64, bool)),
    packets: &mut Packets,
) {
    let mut args = ArgList::default();
    args.push(("instance", Arg::Uint(number)));
    // A guest has CPUs of its own.
    if let Some(recording) = paths.guest_name(reached.machine) {
        args.push(("guest", Arg::Name(PacketText::Plain(recording))));
        args.push(("guest_cpu", Arg::Int(i64::from(reached.cpu))));
    } else if reached.cpu >= 0 {
        args.push(("cpu", Arg::Int(i64::from(reached.cpu))));
    }
    packets.event(&TrackEvent {
        category: Some("step"),
        name: Some(title.map_or(PacketText::Ours("?"), PacketText::Numbered)),
        args: &args,
        flow: Some(flow),
        ..TrackEvent::new(reached.time, thread, PacketKind::Instant)
    });
}
