//! Follows instances through a recording.
//!
//! Every alternative of every step is bound to the kinds of events it can be. An instance under way is registered with
//! the alternatives that can come next, by the value that its event has to have (its thread, its vCPU...), so that an
//! event finds those that wait for it without a search. Memory is that of the instances under way.

mod account;
mod advance;
mod around;
mod asks;
mod bind;
mod compare;
mod end;
mod features;
mod guest;
mod guest_tasks;
mod instance;
mod look;
mod nexts;
mod plan;
mod resolve;
mod seen_vcpus;
mod slots;
mod wait;
mod waiting;
mod watchers;

use std::ops::Range;

use cpuset::{CpuSet, NodeMap, NumaNode};
use event::{Data, Event, EventType, Isa, NONE, index_of};
use model::Machine;
use rustc_hash::FxHashMap;

use crate::interrupts::InterruptTargets;
use crate::lang::{
    ComparisonOperand, ComparisonOperator, EventAttribute, EventCondition, PathDefinition,
};
use crate::shared_interrupts::SharedInterrupts;
use crate::tally::{InstanceAccount, PathTally};
use crate::tasks::{self, InterruptSource, PathTasks};

use bind::{EventBinding, EventEffect, InterruptEvent};
pub(crate) use instance::LiveInstance;
pub use instance::ReachedStep;
use nexts::{UniquePlaces, WaitCache};
use plan::PathIndex;
use waiting::WaitingInstances;
use watchers::WatcherTable;

/// Instances under way, at most; the oldest is given up for one more.
const MAX_LIVE: usize = 1 << 16;
/// Levels of lines, and roles of earlier instances, that are remembered: a machine has few of either.
const MAX_REMEMBERED: usize = 1 << 16;
/// Instances whose memory is kept for others.
const SPARE: usize = 64;
/// Threads whose slots are at hand, at most.
const SLOTS: usize = 256;

/// An instance that completed, for whoever wants each.
#[derive(Debug, Clone, Default)]
pub struct CompletedInstance {
    /// Its path and chain.
    pub path: usize,
    /// The chain in it.
    pub chain: usize,
    /// Its number among those of its path, from 1, in the order in which they completed.
    pub number: u64,
    /// The steps it reached.
    pub reached: Vec<ReachedStep>,
    /// What else is known of it.
    pub traits: Vec<crate::InstanceTrait>,
    /// Slot of the vCPU's thread that it is about, if known.
    pub subject: Option<u32>,
}

/// Which instances are wanted.
#[derive(Debug, Clone, Default)]
pub struct InstanceFilter {
    /// Those about one of these threads: vCPUs', or where an instance is about none, threads that make its events.
    pub threads: Option<Vec<i32>>,
    /// Those that begin in this time, both ends included.
    pub time: Option<(u64, u64)>,
    /// Those that begin on one of these CPUs.
    pub cpus: Option<CpuSet>,
}

/// Follows paths.
#[derive(Debug)]
pub struct Paths {
    paths: Vec<PathDefinition>,
    index: PathIndex,
    /// By kind of event, what is done with it; nothing, if it is not wanted.
    bindings: Vec<Option<Box<EventBinding>>>,
    symbols: bind::FunctionRanges,
    /// The host's NUMA nodes.
    nodes: NodeMap,
    /// By step's number: whether its events are recorded, whether it counts for nothing.
    recorded: Vec<bool>,
    disabled: Vec<bool>,
    disabled_alts: Vec<bool>,
    tasks: PathTasks,
    /// Guests whose recordings are walked with the host's.
    guests: guest_tasks::GuestMachines,
    interrupts: InterruptTargets,
    /// arm64: targets of shared interrupts.
    shared: SharedInterrupts,
    /// By thread: who raised the interrupt that it accepts next, and the one it accepted last.
    raised: FxHashMap<u32, (InterruptSource, Option<u64>)>,
    accepted: FxHashMap<u32, InterruptSource>,
    /// Whether the interrupts that a local APIC accepts are recorded.
    sees_apic: bool,
    /// By thread: whom the last interrupt was for that it accepted.
    last_target: FxHashMap<u32, u64>,
    /// Levels of interrupt lines, by kind of event, thread and line.
    levels: FxHashMap<(u32, u32, u64), u64>,
    live: Vec<LiveInstance>,
    free: Vec<u32>,
    count: usize,
    /// How many there may be.
    limit: usize,
    born: u64,
    /// The oldest instances, the very oldest last; some may have ended.
    oldest: Vec<(u64, u32)>,
    waiting: WaitingInstances,
    /// What they wait for.
    nexts: WaitCache,
    /// Instances that end when a thread makes certain events: by number of these, and thread.
    cancels: WaitingInstances,
    /// By what instances are unique by, which one is under way.
    unique: UniquePlaces,
    /// By ticket of an interrupt of which it is not known whose it is, the instances that held it; some may have ended.
    tickets: FxHashMap<u64, Vec<u32>>,
    /// What the vCPUs did that it may be for.
    seen_vcpus: seen_vcpus::SeenVcpus,
    /// Roles as the last instances had them: chain, role, and what it is remembered by.
    memory: FxHashMap<(u32, u8, u64), Option<u64>>,
    /// Instances that watch what goes on around them.
    watchers: WatcherTable,
    tallies: Vec<PathTally>,
    instances: InstanceAccount,
    /// Types of the host's events that are wanted, and how many of those there were.
    host_types: Vec<u32>,
    host_events: u64,
    isa: Option<Isa>,
    only: InstanceFilter,
    listing: bool,
    /// Whether what completes is added up.
    sums: bool,
    listed: Vec<CompletedInstance>,
    /// Memory of those that are not needed any more.
    spare: Vec<CompletedInstance>,
    /// Slots of the threads that made the last events, by the lowest bits of their ids.
    slots: Box<[(i32, u32); SLOTS]>,
    last_time: u64,
    /// sched_waking is recorded.
    wakings: bool,
    /// Events so far.
    seq: u64,
    /// The chain and step that the event now has taken an instance to.
    advanced: Option<(u32, usize)>,
    /// Levels that the event now has.
    rising: Vec<((u32, u32, u64), u64)>,
    /// Memory that events use again.
    found: Vec<u32>,
    traits: Vec<crate::InstanceTrait>,
}

/// What an event is, as far as it has been looked at.
struct EventContext<'a, 'e> {
    event: &'a Event<'e>,
    data: &'a Data,
    /// The host's thread that makes it: of a guest's event, the vCPU's.
    thread: u32,
    tid: i32,
    /// Who makes it in the guest, if it happens in one.
    guest: Option<guest_tasks::GuestActor>,
    /// The task it is about, and of a switch the one that leaves.
    task: Option<u32>,
    prev: Option<u32>,
    /// The vCPU an interrupt is for, or a ticket.
    target: Option<u64>,
    raised: InterruptSource,
}

impl Paths {
    /// Prepares to follow paths.
    pub fn new(paths: Vec<PathDefinition>) -> Paths {
        let index = PathIndex::new(&paths);
        let steps = index.steps.len();
        let alts = index.alts.len();
        let tallies = paths.iter().map(PathTally::new).collect();
        Paths {
            paths,
            bindings: Vec::new(),
            symbols: Vec::new(),
            nodes: NodeMap::default(),
            recorded: vec![false; steps],
            disabled: vec![false; steps],
            disabled_alts: vec![false; alts],
            tasks: PathTasks::default(),
            guests: guest_tasks::GuestMachines::default(),
            interrupts: InterruptTargets::default(),
            shared: SharedInterrupts::default(),
            raised: FxHashMap::default(),
            accepted: FxHashMap::default(),
            sees_apic: false,
            last_target: FxHashMap::default(),
            levels: FxHashMap::default(),
            live: Vec::new(),
            free: Vec::new(),
            count: 0,
            limit: MAX_LIVE,
            born: 0,
            oldest: Vec::new(),
            waiting: WaitingInstances::new(alts),
            cancels: WaitingInstances::new(index_of(index.all_ends)),
            nexts: WaitCache::new(steps),
            unique: UniquePlaces::new(steps),
            tickets: FxHashMap::default(),
            seen_vcpus: seen_vcpus::SeenVcpus::default(),
            memory: FxHashMap::default(),
            watchers: WatcherTable::default(),
            tallies,
            instances: InstanceAccount::default(),
            host_types: Vec::new(),
            host_events: 0,
            isa: None,
            only: InstanceFilter::default(),
            listing: false,
            sums: true,
            listed: Vec::new(),
            spare: Vec::new(),
            slots: Box::new([(NONE, 0); SLOTS]),
            last_time: 0,
            wakings: false,
            seq: 0,
            advanced: None,
            rising: Vec::new(),
            index,
            found: Vec::new(),
            traits: Vec::new(),
        }
    }

    /// Returns the paths that are followed.
    pub fn paths(&self) -> &[PathDefinition] {
        &self.paths
    }

    /// Returns the instruction set whose exits there are.
    pub fn isa(&self) -> Option<Isa> {
        self.isa
    }

    /// Returns of each path how many instances have completed so far, and the sum of their totals.
    pub fn sums(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let tallies = self.tallies.iter();
        tallies.map(|tally| (tally.count, tally.total.total()))
    }

    pub(crate) fn tallies(&self) -> &[PathTally] {
        &self.tallies
    }

    /// Returns the functions whose addresses are to be given to [`Paths::function_at`], for recordings of the
    /// function tracer.
    pub fn functions(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .index
            .alts
            .iter()
            .flat_map(|alt| &alt.said.events)
            .filter_map(|pattern| match pattern {
                crate::lang::EventPattern::Function(name) => Some(name.clone()),
                crate::lang::EventPattern::Event { .. }
                | crate::lang::EventPattern::FunctionReturn(_) => None,
            })
            .collect();
        let conds = self.index.alts.iter().flat_map(|alt| &alt.said.conds);
        names.extend(conds.filter_map(|cond| match cond {
            EventCondition::Compare(
                EventAttribute::Field(field),
                ComparisonOperator::Equal,
                ComparisonOperand::Text(name),
            ) if field == bind::FUNCTION => Some(name.clone()),
            _ => None,
        }));
        names.sort();
        names.dedup();
        names
    }

    /// Says where a function is.
    pub fn function_at(&mut self, name: &str, range: Range<u64>) {
        self.symbols.push((name.to_owned(), range));
    }

    /// Says which NUMA nodes the host has.
    pub fn nodes(&mut self, nodes: &[NumaNode]) {
        self.nodes = NodeMap::of(nodes);
    }

    /// Says from which total on instances of all paths are slow, instead of finding it.
    pub fn slow_from(&mut self, ns: u64) {
        for tally in &mut self.tallies {
            tally.slow_from(ns);
        }
    }

    /// Chooses instances. All of them are followed, whatever is chosen: the events of one may be made by any thread.
    pub fn only(&mut self, mut only: InstanceFilter) {
        if let Some(threads) = &mut only.threads {
            threads.sort_unstable();
        }
        self.only = only;
    }

    /// Bounds how many instances are under way at once, and with them the memory; 65536 if nothing is said. The
    /// oldest is given up for one more.
    pub fn at_most(&mut self, instances: usize) {
        self.limit = instances.clamp(1, MAX_LIVE);
    }

    /// Returns how many instances are under way.
    pub fn in_flight(&self) -> usize {
        self.count
    }

    /// Asks for every instance that completes: they are to be taken with [`Paths::take_listed`].
    pub fn list(&mut self) {
        self.listing = true;
    }

    /// Asks for every instance that completes, as [`Paths::list`], and for no sums: who had the time of a stage is not
    /// looked for, and of what is added up reports have the number of instances alone.
    pub fn list_alone(&mut self) {
        self.listing = true;
        self.sums = false;
    }

    /// Returns whether instances have completed since they were taken.
    #[inline]
    pub fn has_listed(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Returns the instances that completed since the last call.
    pub fn take_listed(&mut self) -> Vec<CompletedInstance> {
        std::mem::take(&mut self.listed)
    }

    /// Exchanges the instances that have completed, in their order, for an empty list.
    #[inline]
    pub fn swap_listed(&mut self, empty: &mut Vec<CompletedInstance>) {
        std::mem::swap(&mut self.listed, empty);
    }

    /// Hands out the instances that completed since the last call, in their order.
    pub fn each_listed(&mut self, each: impl FnMut(CompletedInstance)) {
        self.listed.drain(..).for_each(each);
    }

    /// Takes an instance back that is not needed any more: its memory is for the next ones.
    pub fn reuse(&mut self, instance: CompletedInstance) {
        if self.spare.len() < SPARE {
            self.spare.push(instance);
        }
    }

    /// Returns whether events of a kind are wanted, of the host or of a guest.
    pub fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let binding = bind::bind(&self.paths, &self.index, ty, &self.symbols);
        self.sees_apic |= ty.recorded && binding.watch == InterruptEvent::Accept;
        let wanted = binding.wanted;
        // What is recorded need not happen: with APICv nothing is ever injected. But it says what is not to be guessed.
        if ty.recorded && ty.format.is_some() {
            self.disable(&binding);
        }
        if wanted && ty.machine == 0 {
            self.host_types.push(ty.index);
        }
        let at = index_of(ty.index);
        if self.bindings.len() <= at {
            self.bindings.resize_with(at + 1, || None);
        }
        self.bindings[at] = wanted.then(|| Box::new(binding));
        wanted
    }

    fn disable(&mut self, binding: &EventBinding) {
        self.nexts.clear();
        for step in &binding.disables {
            self.disabled[index_of(*step)] = true;
        }
        for alt in &binding.disables_alts {
            self.disable_alt(*alt);
        }
    }

    /// The function tracer's event is the call of a function without which alternatives count.
    fn calls_disable(&mut self, event: &Event<'_>, data: &Data, binding: &EventBinding) {
        for (functions, step, alt) in &binding.calls_disable {
            let known = step.is_none_or(|step| self.disabled[index_of(step)])
                && alt.is_none_or(|alt| self.disabled_alts[index_of(alt)]);
            if known || !functions.called(event, data) {
                continue;
            }
            if let Some(step) = step {
                self.disabled[index_of(*step)] = true;
                self.nexts.clear();
            }
            if let Some(alt) = alt {
                self.disable_alt(*alt);
            }
        }
    }

    fn disable_alt(&mut self, alt: u32) {
        if std::mem::replace(&mut self.disabled_alts[index_of(alt)], true) {
            return;
        }
        // What began by it before that was known is none.
        let alt = &self.index.alts[index_of(alt)];
        if alt.joins {
            return;
        }
        let (chain, step) = (alt.chain, alt.step);
        let began: Vec<u32> = (0u32..)
            .zip(&self.live)
            .filter(|(_, live)| live.live && live.chain == chain)
            .filter(|(_, live)| {
                live.reached()
                    .first()
                    .is_some_and(|r| u32::from(r.step) == step)
            })
            .map(|(at, _)| at)
            .collect();
        for at in began {
            self.give_up(at, None);
        }
    }

    #[inline]
    fn slot(&mut self, tid: i32, cpu: i32, machine: &mut Machine) -> u32 {
        if tid == 0 {
            return tasks::idle(cpu);
        }
        let known = &mut self.slots[index_of(tid.cast_unsigned()) % SLOTS];
        if known.0 != tid || tid == NONE {
            *known = (tid, machine.slot(tid));
        }
        known.1
    }

    /// A thread was made: it may have the id of an earlier one.
    fn forget_slots(&mut self) {
        self.slots.fill((NONE, 0));
    }

    /// Takes an event, before the machine does.
    #[inline]
    pub fn take(&mut self, event: &Event<'_>, data: &Data, machine: &mut Machine) {
        let at = index_of(event.ty.index);
        let Some(binding) = self.bindings.get_mut(at).and_then(Option::take) else {
            return;
        };
        if self.is_idle(&binding) && !self.is_due(&binding, event, data) {
            self.passes(event, data, machine, &binding);
        } else {
            self.with(event, data, machine, &binding);
        }
        let mut binding = binding;
        binding.seen = true;
        self.bindings[at] = Some(binding);
    }

    /// Returns whether events of a kind now say nothing that instances under way look at, but as their steps.
    #[inline]
    fn is_idle(&self, binding: &EventBinding) -> bool {
        let unwatched = match binding.effect {
            EventEffect::Nothing | EventEffect::Goes => true,
            EventEffect::Crosses => self.watchers.is_empty(),
            EventEffect::More => false,
        };
        unwatched
            && binding.seen
            && binding.calls_disable.is_empty()
            && !self.interrupts.is_waiting()
            && self.interrupts.found.is_empty()
    }

    /// Returns whether an event may take an instance on, begin one or end one: most events do none of that. What costs
    /// little of what alternatives ask is asked already.
    #[inline]
    fn is_due(&self, binding: &EventBinding, event: &Event<'_>, data: &Data) -> bool {
        for word in &binding.alt_words.0 {
            let mut left = word.own;
            while let Some(at) = word.due(&mut left, &self.waiting.awaited) {
                if binding.alts[at].may_be(event, data) {
                    return true;
                }
            }
        }
        let mut cancels = binding.cancel_words.0.iter();
        cancels.any(|word| word.due(&mut { word.own }, &self.cancels.awaited).is_some())
    }

    /// Takes what an event shows of its thread, though it is no step.
    #[inline]
    fn passes(
        &mut self,
        event: &Event<'_>,
        data: &Data,
        machine: &mut Machine,
        binding: &EventBinding,
    ) {
        self.last_time = self.last_time.max(event.time);
        let thread = self.slot(event.tid, event.cpu, machine);
        self.sees(event, thread, machine);
        match binding.effect {
            EventEffect::Goes => self.forget(thread),
            EventEffect::Crosses => {
                self.crosses(data, thread, machine.threads());
                self.crossed(data, thread, event.time, machine.threads());
            }
            EventEffect::Nothing | EventEffect::More => {}
        }
    }

    fn with(
        &mut self,
        event: &Event<'_>,
        data: &Data,
        machine: &mut Machine,
        binding: &EventBinding,
    ) {
        self.last_time = self.last_time.max(event.time);
        self.seq += 1;
        self.advanced = None;
        let thread = self.slot(event.tid, event.cpu, machine);
        if !binding.seen {
            let mut any_new = false;
            for step in &binding.marks {
                let recorded = &mut self.recorded[index_of(*step)];
                any_new |= !std::mem::replace(recorded, true);
            }
            self.disable(binding);
            if any_new {
                self.wait_anew();
            }
        }
        if !binding.calls_disable.is_empty() {
            self.calls_disable(event, data, binding);
        }
        let mut now = EventContext {
            event,
            data,
            thread,
            tid: event.tid,
            guest: None,
            task: None,
            prev: None,
            target: None,
            raised: InterruptSource::Local,
        };
        self.look(&mut now, machine, binding);
        if matches!(binding.effect, EventEffect::Crosses | EventEffect::More) {
            let irq = match binding.watch {
                InterruptEvent::HostIrq => {
                    binding.number.as_ref().and_then(|g| g.number(event, data))
                }
                _ => None,
            };
            let irq = irq.and_then(|irq| u32::try_from(irq).ok());
            self.watch(&now, machine, irq);
        }
        for word in &binding.alt_words.0 {
            let mut left = word.own;
            while let Some(at) = word.due(&mut left, &self.waiting.awaited) {
                self.alternative(&binding.alts[at], &now, machine);
            }
        }
        for word in &binding.cancel_words.0 {
            let mut left = word.own;
            while let Some(at) = word.due(&mut left, &self.cancels.awaited) {
                self.cancel(&binding.cancels[at], &now, machine);
            }
        }
        if !self.rising.is_empty() {
            self.rises();
        }
        if binding.effect != EventEffect::Nothing {
            self.after(&now, machine);
        }
    }
}
