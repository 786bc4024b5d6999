//! Follows instances through a recording.
//!
//! Every alternative of every step is bound to the kinds of events it can be. An instance under way is registered with the
//! alternatives that can come next, by the value that its event has to have (its thread, its vCPU...), so that an
//! event finds those that wait for it without a search. Memory is that of the instances under way.

mod bind;
mod instance;
mod waiting;
mod watchers;

use std::ops::Range;

use cpuset::CpuSet;
use event::{Data, Event, EventType, Isa, NONE};
use model::{Halt, Machine, State, Threads};
use rustc_hash::FxHashMap;

use crate::interrupts::{Found, Interrupts, UNRESOLVED};
use crate::lang::{Attr, Cond, Op, Path, Value};
use crate::tally::{Dropped, Tally};
use crate::tasks::{self, Raised, Tasks};

use bind::{Binding, Index, Watch};
pub(crate) use instance::Live;
pub use instance::Reached;
use waiting::Waiting;
use watchers::Watchers;

/// Instances under way, at most; the oldest is given up for one more.
const MAX_LIVE: usize = 1 << 16;
/// Levels of lines, and roles of earlier instances, that are remembered: a machine has few of either.
const MAX_REMEMBERED: usize = 1 << 16;

/// An instance that completed, for whoever wants each.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Its path and chain.
    pub path: usize,
    /// The chain in it.
    pub chain: usize,
    /// Its number among those of its path, from 1, in the order in which they completed.
    pub number: u64,
    /// The steps it reached.
    pub reached: Vec<Reached>,
    /// What else is known of it.
    pub traits: Vec<crate::Trait>,
    /// Slot of the vCPU's thread that it is about, if known.
    pub subject: Option<u32>,
}

/// Which instances are wanted.
#[derive(Debug, Clone, Default)]
pub struct Only {
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
    paths: Vec<Path>,
    index: Index,
    /// By kind of event, what is done with it; nothing, if it is not wanted.
    bindings: Vec<Option<Box<Binding>>>,
    symbols: bind::Symbols,
    /// By step's number: whether its events are recorded, whether it counts for nothing.
    recorded: Vec<bool>,
    disabled: Vec<bool>,
    disabled_alts: Vec<bool>,
    tasks: Tasks,
    interrupts: Interrupts,
    /// By thread: who raised the interrupt that it accepts next, and the one it accepted last.
    raised: FxHashMap<u32, (Raised, Option<u64>)>,
    accepted: FxHashMap<u32, Raised>,
    /// By thread: whom the last interrupt was for that it accepted.
    last_target: FxHashMap<u32, u64>,
    /// Levels of interrupt lines, by kind of event, thread and line.
    levels: FxHashMap<(u32, u32, u64), u64>,
    live: Vec<Live>,
    free: Vec<u32>,
    count: usize,
    /// How many there may be.
    limit: usize,
    born: u64,
    /// The oldest instances, the very oldest last; some may have ended.
    oldest: Vec<(u64, u32)>,
    waiting: Waiting,
    /// Instances that end when a thread makes certain events: by number of these, and thread.
    cancels: Waiting,
    /// By what instances are unique by, which one is under way.
    unique: FxHashMap<(u32, u64), u32>,
    /// By ticket of an interrupt of which it is not known whose it is, the instances that held it; some may have ended.
    tickets: FxHashMap<u64, Vec<u32>>,
    /// Roles as the last instances had them: chain, role, and what it is remembered by.
    memory: FxHashMap<(u32, u8, u64), Option<u64>>,
    /// Instances that are told what goes on around them.
    watchers: Watchers,
    tallies: Vec<Tally>,
    isa: Option<Isa>,
    only: Only,
    listing: bool,
    listed: Vec<Instance>,
    last_thread: (i32, u32),
    last_time: u64,
    /// sched_waking is recorded.
    wakings: bool,
    /// Events so far.
    seq: u64,
    /// The chain and step that the event now has taken an instance to.
    advanced: Option<(u32, usize)>,
    /// Levels that the event now tells.
    rising: Vec<((u32, u32, u64), u64)>,
    /// Memory that events use again.
    found: Vec<u32>,
    traits: Vec<crate::Trait>,
}

/// What an event is, as far as it has been looked at.
struct Now<'a, 'e> {
    event: &'a Event<'e>,
    data: &'a Data,
    thread: u32,
    /// The task it is about, and of a switch the one that leaves.
    task: Option<u32>,
    prev: Option<u32>,
    /// The vCPU an interrupt is for, or a ticket.
    target: Option<u64>,
    raised: Raised,
}

impl Paths {
    /// Prepares to follow paths.
    pub fn new(paths: Vec<Path>) -> Paths {
        let index = Index::new(&paths);
        let steps = index.of_step.len();
        let alts = index.alts.len();
        let tallies = paths.iter().map(Tally::new).collect();
        Paths {
            paths,
            bindings: Vec::new(),
            symbols: Vec::new(),
            recorded: vec![false; steps],
            disabled: vec![false; steps],
            disabled_alts: vec![false; alts],
            tasks: Tasks::default(),
            interrupts: Interrupts::default(),
            raised: FxHashMap::default(),
            accepted: FxHashMap::default(),
            last_target: FxHashMap::default(),
            levels: FxHashMap::default(),
            live: Vec::new(),
            free: Vec::new(),
            count: 0,
            limit: MAX_LIVE,
            born: 0,
            oldest: Vec::new(),
            waiting: Waiting::new(alts),
            cancels: Waiting::new(index.all_ends as usize),
            unique: FxHashMap::default(),
            tickets: FxHashMap::default(),
            memory: FxHashMap::default(),
            watchers: Watchers::default(),
            tallies,
            isa: None,
            only: Only::default(),
            listing: false,
            listed: Vec::new(),
            last_thread: (NONE, 0),
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
    pub fn paths(&self) -> &[Path] {
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

    pub(crate) fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// Returns the functions whose addresses are to be told with [`Paths::function_at`], for recordings of the
    /// function tracer.
    pub fn functions(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .index
            .alts
            .iter()
            .flat_map(|(_, _, alt)| &alt.events)
            .filter_map(|pattern| match pattern {
                crate::lang::Pattern::Function(name) => Some(name.clone()),
                crate::lang::Pattern::Event { .. } => None,
            })
            .collect();
        let conds = self.index.alts.iter().flat_map(|(_, _, alt)| &alt.conds);
        names.extend(conds.filter_map(|cond| match cond {
            Cond::Compare(Attr::Field(field), Op::Equal, Value::Text(name))
                if field == bind::FUNCTION =>
            {
                Some(name.clone())
            }
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

    /// Says from which total on instances of all paths are slow, instead of finding it.
    pub fn slow_from(&mut self, ns: u64) {
        for tally in &mut self.tallies {
            tally.slow_from(ns);
        }
    }

    /// Chooses instances. All of them are followed, whatever is chosen: the events of one may be made by any thread.
    pub fn only(&mut self, mut only: Only) {
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

    /// Returns the instances that completed since the last call.
    pub fn take_listed(&mut self) -> Vec<Instance> {
        std::mem::take(&mut self.listed)
    }

    /// Tells whether events of a kind are wanted.
    pub fn wants(&mut self, ty: &EventType<'_>) -> bool {
        let binding = bind::bind(&self.paths, &self.index, ty, &self.symbols);
        let wanted = binding.wanted;
        // What is recorded need not happen: with APICv nothing is ever injected. But it says what is not to be guessed.
        if ty.recorded && ty.format.is_some() {
            self.disable(&binding);
        }
        let at = ty.index as usize;
        if self.bindings.len() <= at {
            self.bindings.resize_with(at + 1, || None);
        }
        self.bindings[at] = wanted.then(|| Box::new(binding));
        wanted
    }

    fn disable(&mut self, binding: &Binding) {
        for step in &binding.disables {
            self.disabled[*step as usize] = true;
        }
        for alt in &binding.disables_alts {
            self.disable_alt(*alt);
        }
    }

    /// The function tracer's event is the call of a function without which alternatives count.
    fn calls_disable(&mut self, event: &Event<'_>, data: &Data, binding: &Binding) {
        for (functions, step, alt) in &binding.calls_disable {
            let known = step.is_none_or(|step| self.disabled[step as usize])
                && alt.is_none_or(|alt| self.disabled_alts[alt as usize]);
            if known || !functions.called(event, data) {
                continue;
            }
            if let Some(step) = step {
                self.disabled[*step as usize] = true;
            }
            if let Some(alt) = alt {
                self.disable_alt(*alt);
            }
        }
    }

    fn disable_alt(&mut self, alt: u32) {
        if std::mem::replace(&mut self.disabled_alts[alt as usize], true) {
            return;
        }
        // What began by it before that was known is none.
        let (chain, step, alt) = &self.index.alts[alt as usize];
        if !alt.joins.is_empty() {
            return;
        }
        let (chain, step) = (*chain, *step as u8);
        let began: Vec<u32> = (0u32..)
            .zip(&self.live)
            .filter(|(_, live)| live.live && live.chain == chain)
            .filter(|(_, live)| live.reached().first().is_some_and(|r| r.step == step))
            .map(|(at, _)| at)
            .collect();
        for at in began {
            self.give_up(at, None);
        }
    }

    fn slot(&mut self, tid: i32, cpu: i32, machine: &mut Machine) -> u32 {
        if tid == 0 {
            return tasks::idle(cpu);
        }
        if self.last_thread.0 == tid && tid != NONE {
            return self.last_thread.1;
        }
        let slot = machine.slot(tid);
        self.last_thread = (tid, slot);
        slot
    }

    /// Takes an event, before the machine does.
    #[inline]
    pub fn take(&mut self, event: &Event<'_>, data: &Data, machine: &mut Machine) {
        let at = event.ty.index as usize;
        let Some(binding) = self.bindings.get_mut(at).and_then(Option::take) else {
            return;
        };
        self.with(event, data, machine, &binding);
        let mut binding = binding;
        binding.seen = true;
        self.bindings[at] = Some(binding);
    }

    fn with(&mut self, event: &Event<'_>, data: &Data, machine: &mut Machine, binding: &Binding) {
        self.last_time = self.last_time.max(event.time);
        self.seq += 1;
        self.advanced = None;
        let thread = self.slot(event.tid, event.cpu, machine);
        if !binding.seen {
            for step in &binding.marks {
                self.recorded[*step as usize] = true;
            }
            self.disable(binding);
        }
        if !binding.calls_disable.is_empty() {
            self.calls_disable(event, data, binding);
        }
        let mut now = Now {
            event,
            data,
            thread,
            task: None,
            prev: None,
            target: None,
            raised: Raised::Local,
        };
        self.look(&mut now, machine, binding);
        let irq = match binding.watch {
            Watch::HostIrq => binding.number.as_ref().and_then(|g| g.number(event, data)),
            _ => None,
        };
        self.watch(&now, machine, irq);
        for bound in &binding.alts {
            if !bound.joins || self.waiting.any(bound.alt) {
                self.alternative(bound, &now, machine);
            }
        }
        for cancel in &binding.cancels {
            self.cancel(cancel, &now, machine);
        }
        self.after(&now, machine);
    }

    /// Finds out what the event is about.
    fn look(&mut self, now: &mut Now<'_, '_>, machine: &mut Machine, binding: &Binding) {
        let (event, data) = (now.event, now.data);
        if let Some(comm) = event.comm
            && now.thread < tasks::IDLE
        {
            self.tasks
                .called(now.thread, event.tid, comm, machine.threads());
        }
        match data {
            Data::SchedSwitch(switch) => {
                let slot = |tid: i32, machine: &mut Machine| match tid {
                    0 => tasks::idle(event.cpu),
                    tid => machine.slot(tid),
                };
                let prev = slot(switch.prev_tid, machine);
                let next = slot(switch.next_tid, machine);
                let threads = machine.threads();
                self.tasks
                    .named(prev, switch.prev_tid, &switch.prev_comm, threads);
                self.tasks
                    .named(next, switch.next_tid, &switch.next_comm, threads);
                now.prev = Some(prev);
                now.task = Some(next);
            }
            Data::SchedWaking(wakeup) | Data::SchedWakeup(wakeup) => {
                let task = machine.slot(wakeup.tid);
                let threads = machine.threads();
                self.tasks.named(task, wakeup.tid, &wakeup.comm, threads);
                self.tasks.entry(now.thread, threads);
                now.task = Some(task);
                // A wake-up by another CPU's interrupt does not say who asked for it.
                let waking = matches!(data, Data::SchedWaking(_));
                self.wakings |= waking;
                if waking || !self.wakings {
                    self.interrupts.wakes(now.thread, task, &self.tasks);
                    now.raised = self.accepted.get(&now.thread).copied().unwrap_or_default();
                }
            }
            Data::SchedMigrateTask(migrate) => now.task = Some(machine.slot(migrate.tid)),
            Data::TaskRename(task) => now.task = Some(machine.slot(task.tid)),
            Data::KvmExit(exit) => {
                self.isa = Some(exit.reason.isa);
                self.vcpu(now.thread, exit.vcpu, machine);
            }
            Data::KvmEntry(entry) => self.vcpu(now.thread, entry.vcpu, machine),
            _ => {}
        }
        if now.thread < tasks::IDLE && event.cpu != NONE {
            self.tasks.seen_on(now.thread, event.cpu);
        }
        // That it is posted comes between an interrupt and the wake-up.
        if self.interrupts.is_waiting() && binding.watch != Watch::Posted {
            self.settle(now, machine.threads());
        }
        let number = |getter: &Option<crate::fields::Getter>| {
            getter.as_ref().and_then(|g| g.number(event, data))
        };
        match binding.watch {
            Watch::Nothing | Watch::HostIrq => {}
            Watch::Posted => {
                now.target = self.last_target.get(&now.thread).copied();
                // A vCPU in its guest is not woken, so nothing more will tell.
                let only = now
                    .target
                    .filter(|target| target & UNRESOLVED != 0)
                    .and_then(|ticket| {
                        self.interrupts
                            .only_of(ticket, &self.tasks, machine.threads())
                    });
                if let Some(slot) = only
                    && self.in_guest(slot, machine)
                {
                    self.interrupts
                        .goes_on(now.thread, &self.tasks, machine.threads());
                    now.target = Some(u64::from(slot));
                }
            }
            Watch::Raise(raised) => {
                let level = number(&binding.number);
                if raised != Raised::Pin || level != Some(0) {
                    // The interrupt that it makes accepted has the same vector, if it tells one.
                    let vector = number(&binding.vector);
                    self.raised.insert(now.thread, (raised, vector));
                }
            }
            // arm64 has no event for what the vGIC accepts: who raises it is all that is told.
            Watch::Line => {
                if number(&binding.number) != Some(0) {
                    self.accepted.insert(now.thread, Raised::Pin);
                }
            }
            Watch::Sgi => {
                let register = number(&binding.number);
                if register.is_some_and(|r| bind::SGI_REGISTERS.contains(&r)) {
                    self.accepted.insert(now.thread, Raised::Ipi);
                }
            }
            Watch::Vgic => {
                if let (Some(level), Some(vcpu), Some(irq)) = (
                    number(&binding.number),
                    number(&binding.mode),
                    number(&binding.vector),
                ) && level != 0
                {
                    self.accept(now, vcpu, irq, machine);
                }
            }
            Watch::ArmTimer => {
                if number(&binding.number) == Some(1) {
                    self.own_timer(now.thread);
                }
            }
            Watch::Accept => {
                // Only fixed and lowest-priority interrupts are injected by their vector; the others are not
                // told apart here.
                let mode = number(&binding.mode).unwrap_or(0);
                if let (Some(vcpu), Some(vector)) =
                    (number(&binding.number), number(&binding.vector))
                {
                    let raised = match self.raised.get(&now.thread) {
                        Some((raised, told)) if told.is_none_or(|told| told == vector) => *raised,
                        _ => Raised::Local,
                    };
                    now.raised = raised;
                    if matches!(raised, Raised::Msi | Raised::Pin) {
                        self.raised.remove(&now.thread);
                    }
                    self.accepted.insert(now.thread, raised);
                    if raised == Raised::Local {
                        self.own_timer(now.thread);
                    }
                    if mode <= 1 {
                        self.accept(now, vcpu, vector, machine);
                    }
                }
            }
            Watch::Inject => {
                // What is injected again was accepted once.
                let again = number(&binding.mode).unwrap_or(0) != 0;
                if let Some(vector) = number(&binding.vector).filter(|_| !again) {
                    self.tasks.is_vcpu(now.thread, None, machine.threads());
                    let vector = u32::try_from(vector).unwrap_or(u32::MAX);
                    let threads = machine.threads();
                    self.interrupts
                        .injects(now.thread, vector, &self.tasks, threads);
                }
            }
        }
        if !self.interrupts.found.is_empty() {
            let found = std::mem::take(&mut self.interrupts.found);
            for one in found {
                self.resolve(one, now, machine);
            }
        }
    }

    /// An interrupt is accepted for the vCPU of a number.
    fn accept(&mut self, now: &mut Now<'_, '_>, vcpu: u64, vector: u64, machine: &mut Machine) {
        let (Ok(vcpu), Ok(vector)) = (u32::try_from(vcpu), u32::try_from(vector)) else {
            return;
        };
        self.tasks.entry(now.thread, machine.threads());
        let only = self.tasks.only_vcpu(vcpu);
        let tid = only
            .and_then(|slot| machine.threads().at(slot))
            .map(|(tid, _)| tid);
        let track = tid.and_then(|tid| machine.vcpu_of(tid));
        let polls = track.and_then(|track| machine.halt(track)) == Some(Halt::Running);
        let target = self.interrupts.accept(
            now.thread,
            vcpu,
            vector,
            &self.tasks,
            machine.threads(),
            |_| polls,
        );
        now.target = Some(target);
        self.last_target.insert(now.thread, target);
    }

    /// What the event tells of interrupts of which it is not known whose they are.
    fn settle(&mut self, now: &Now<'_, '_>, threads: &Threads) {
        match now.data {
            Data::SchedWaking(_) => {}
            Data::SchedWakeup(_) if !self.wakings => {}
            Data::SchedSwitch(_) => {
                self.interrupts.goes_on(now.thread, &self.tasks, threads);
                if let Some(next) = now.task {
                    self.interrupts.acts(next, &self.tasks, threads);
                }
            }
            Data::KvmExit(_) | Data::KvmEntry(_) | Data::KvmVcpuWakeup(_) => {
                self.interrupts.goes_on(now.thread, &self.tasks, threads);
                self.interrupts.acts(now.thread, &self.tasks, threads);
            }
            // The thread that accepts an interrupt wakes the vCPU before anything else.
            _ => self.interrupts.goes_on(now.thread, &self.tasks, threads),
        }
    }

    /// Whether a thread is a vCPU's that is in its guest.
    fn in_guest(&self, slot: u32, machine: &mut Machine) -> bool {
        let tid = machine.threads().at(slot).map(|(tid, _)| tid);
        let vcpu = tid.and_then(|tid| machine.vcpu_of(tid));
        vcpu.is_some_and(|vcpu| machine.state(vcpu) == State::Guest)
    }

    fn vcpu(&mut self, thread: u32, number: Option<u32>, machine: &Machine) {
        self.tasks.is_vcpu(thread, number, machine.threads());
    }

    /// A ticket's vCPU is known, or will never be.
    fn resolve(&mut self, found: Found, now: &Now<'_, '_>, machine: &mut Machine) {
        let (ticket, slot) = match found {
            Found::Target { ticket, slot, by } => {
                let ticket = UNRESOLVED | ticket;
                // It may be posted yet, after something on another CPU has told whose it is.
                if let Some(last) = self.last_target.get_mut(&by)
                    && *last == ticket
                {
                    *last = u64::from(slot);
                }
                (ticket, Some(slot))
            }
            Found::Nothing(ticket) => (UNRESOLVED | ticket, None),
        };
        let mut waiting = self.tickets.remove(&ticket).unwrap_or_default();
        // An instance is here twice if two of its roles hold the ticket.
        waiting.dedup();
        for at in waiting {
            // It may have ended, or one that went on before has given it up.
            let live = &self.live[at as usize];
            if !live.live || !live.roles_hold(ticket) {
                continue;
            }
            match slot {
                // What it has reached may be enough.
                None if self.is_open(&self.live[at as usize]) => {
                    self.unregister(at);
                    self.complete(at);
                }
                None => self.give_up(at, Some(Dropped::Unresolved)),
                Some(slot) => {
                    // One of them may have displaced another.
                    let live = &mut self.live[at as usize];
                    if !live.live || !live.roles_hold(ticket) {
                        continue;
                    }
                    live.replace(ticket, u64::from(slot));
                    self.unregister(at);
                    let step = self.live[at as usize].last().step as usize;
                    if !self.occupy(at, step) {
                        continue;
                    }
                    self.notice(at, now, machine);
                    self.register(at);
                    // It has gone on already: with the entry before that was known.
                    let entered = self.tasks.get(slot).entry_at;
                    if entered > self.live[at as usize].last().time && self.waits_for_entry(at) {
                        if self.is_open(&self.live[at as usize]) {
                            self.unregister(at);
                            self.complete(at);
                        } else {
                            self.give_up(at, Some(Dropped::Unresolved));
                        }
                    }
                }
            }
        }
    }
}

mod advance;
mod around;
