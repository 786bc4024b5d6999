//! What guests did with the interrupts that KVM put into them: which handler ran, how long after the injection, and for
//! how long.
//!
//! Linux handles an interrupt with interrupts masked. So the first handler that begins on a vCPU behind an injection
//! (`kvm_inj_virq`) is of that interrupt, whatever exits are between: the EOI of an edge interrupt leaves the guest
//! before the handler begins. This holds until the next injection into that vCPU, or until the guest handles a softirq
//! or switches tasks, which it does behind the handler. An injection that an exit undid, and that KVM repeats, is the
//! same interrupt.
//!
//! Interrupts of devices have `irq_handler_entry`. Linux gives vectors of its own to what it handles itself (timer,
//! IPIs): these have events of `irq_vectors`, which say the vector, or none.

mod track;
mod vectors;

use std::collections::{BTreeMap, HashMap, HashSet};

use doubts::{Concern, Concerns, DoubtKind, Doubts};
use event::{
    Body, Data, Event, EventType, FieldReader, FieldScalar, Kind, LostKind, NONE, Side, index_of,
};
use model::ByNumber;
use stats::Stats;

use track::{HandlerId, Run, VcpuHandlers};
use vectors::{NAMED_VECTORS, VectorOwner, of_vectors, whose};

use crate::analysis::{Analysis, Context, EventDetail, FilterScope, GuestEvent, WalkState};
use crate::chosen::Window;

/// Names of handlers that are kept at most: a machine has some hundred.
const MAX_NAMES: usize = 1 << 12;
/// Characters of a name that are kept.
const MAX_NAME: usize = 128;
/// Handlers of vectors of vCPUs that are counted apart at most.
const MAX_SUMS: usize = 1 << 16;

/// A handler of a guest.
#[derive(Debug, Clone, PartialEq)]
pub struct IrqHandler {
    /// The guest's number of the interrupt; `None` for one of Linux's own vectors.
    pub irq: Option<u32>,
    /// Its name, as the guest's events say it.
    pub name: String,
    /// How often it began.
    pub runs: u64,
    /// How long it ran, of those runs whose end was recorded.
    pub times: Stats,
    /// How much of that the vCPU was out of the guest, in nanoseconds.
    pub out_ns: u64,
}

/// What a guest did with the interrupts of one vector of a vCPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IrqGuest {
    /// Injections behind which a handler began; `None` where the guest's recording does not have such handlers.
    pub handled: Option<u64>,
    /// Injections at times that the guest's recording covers, behind which none began; `None` as above.
    pub unseen: Option<u64>,
    /// Injections of which the recordings do not say it. With the two above they are all injections. `None` where there
    /// are none.
    pub uncovered: Option<u64>,
    /// From the injection to the first handler.
    pub delay: Stats,
    /// The handlers, those that ran most often first.
    pub handlers: Vec<IrqHandler>,
}

/// What events of a kind say.
#[derive(Debug)]
enum HandlerFields {
    /// The host injects an interrupt.
    Inject {
        vector: FieldReader,
        soft: FieldReader,
        repeated: FieldReader,
        /// The kernel may say of injections that they are repeated: since Linux 5.19.
        says_repeated: bool,
    },
    Enter,
    Exit,
    /// A guest's device handler begins.
    Handler {
        irq: FieldReader,
        name: FieldReader,
    },
    HandlerEnds(FieldReader),
    /// A guest's handler of Linux's own begins: the vector, and the number of its name.
    Vector(FieldReader, u32),
    VectorEnds(FieldReader),
    /// The guest does what it does behind handlers alone.
    Behind,
    /// Nothing but that the guest's recording covers this moment.
    Covers,
}

/// Finds out what guests did with injected interrupts.
#[derive(Debug)]
pub struct GuestIrqs {
    window: Window,
    kinds: Vec<Option<HandlerFields>>,
    tracks: ByNumber<VcpuHandlers>,
    tids: Vec<i32>,
    names: Vec<(Option<u32>, String)>,
    by_name: HashMap<(Option<u32>, String), u32>,
    /// Guests whose recordings have handlers of devices.
    handlers: HashSet<u16>,
    /// Vectors of Linux's own that guests' recordings have.
    vectors: HashSet<(u16, u8)>,
    sums: usize,
    unplaced: u64,
}

impl GuestIrqs {
    /// Looks at guests whose vCPUs are these: the number of the guest's machine, of its CPU, and the host's thread that
    /// is the vCPU.
    pub fn new(window: Window, vcpus: impl IntoIterator<Item = (u16, u32, i32)>) -> GuestIrqs {
        let mut tracks = ByNumber::default();
        let mut tids = Vec::new();
        for (machine, number, tid) in vcpus {
            tids.push(tid);
            tracks.entry(tid, || VcpuHandlers::new(machine, number));
        }
        GuestIrqs {
            window,
            kinds: Vec::new(),
            tracks,
            tids,
            names: Vec::new(),
            by_name: HashMap::new(),
            handlers: HashSet::new(),
            vectors: HashSet::new(),
            sums: 0,
            unplaced: 0,
        }
    }

    /// Returns the threads of the vCPUs of which there is a guest's recording.
    pub fn tids(&self) -> &[i32] {
        &self.tids
    }

    /// Returns runs of handlers that are in no row: of CPUs of which it is not known which vCPU they are, and of more
    /// handlers than are kept.
    pub fn unplaced(&self) -> u64 {
        self.unplaced
    }

    /// Returns runs of handlers before and behind what the host's recording has of a vCPU. They are in no row.
    pub fn outside(&self, tid: i32) -> u64 {
        self.tracks.get(tid).map_or(0, |track| track.outside)
    }

    /// Returns whether guests' recordings have handlers of interrupts.
    pub fn has_handlers(&self) -> bool {
        !self.handlers.is_empty() || !self.vectors.is_empty()
    }

    /// Returns what was found of a vCPU, by vector; handlers for which no injection was seen have none.
    pub fn of_vcpu(&self, tid: i32) -> BTreeMap<Option<u8>, IrqGuest> {
        let mut all: BTreeMap<Option<u8>, IrqGuest> = BTreeMap::new();
        let Some(track) = self.tracks.get(tid) else {
            return all;
        };
        for (number, vector) in &track.vectors {
            let recorded = match whose(*number) {
                VectorOwner::Device => self.handlers.contains(&track.machine),
                VectorOwner::System => self.vectors.contains(&(track.machine, *number)),
                VectorOwner::Either => vector.handled > 0,
            };
            let known = |count: u64| recorded.then_some(count);
            let hidden = match recorded {
                true => 0,
                false => vector.handled + vector.unseen,
            };
            all.insert(
                Some(*number),
                IrqGuest {
                    handled: known(vector.handled),
                    unseen: known(vector.unseen),
                    uncovered: Some(vector.uncovered + hidden),
                    delay: vector.delay.clone(),
                    handlers: Vec::new(),
                },
            );
        }
        for ((vector, name), run) in track.runs.iter().filter(|(_, run)| run.runs > 0) {
            let (irq, name) = self.names.get(index_of(*name)).cloned().unwrap_or_default();
            all.entry(*vector).or_default().handlers.push(IrqHandler {
                irq,
                name,
                runs: run.runs,
                times: run.times.clone(),
                out_ns: run.out_ns,
            });
        }
        for vector in all.values_mut() {
            let order = |a: &IrqHandler, b: &IrqHandler| {
                let named = |one: &IrqHandler| (one.irq, one.name.clone());
                b.runs.cmp(&a.runs).then_with(|| named(a).cmp(&named(b)))
            };
            vector.handlers.sort_by(order);
        }
        all
    }

    fn name(&mut self, irq: Option<u32>, name: &str) -> u32 {
        let name: String = name.chars().take(MAX_NAME).collect();
        let key = (irq, name);
        if let Some(known) = self.by_name.get(&key) {
            return *known;
        }
        let full = (MAX_NAMES - 1) as u32;
        let number = self.names.len() as u32;
        if number > full {
            return full;
        }
        if number == full {
            // All others share the last name.
            self.names.push((None, "others".to_owned()));
            return full;
        }
        self.names.push(key.clone());
        self.by_name.insert(key, number);
        number
    }

    /// A handler of a guest begins.
    fn begins(&mut self, guest: &GuestEvent<'_>, which: HandlerId, name: u32) {
        let time = guest.event.time;
        let track = guest.vcpu_tid.and_then(|tid| self.tracks.get_mut(tid));
        let Some(track) = track else {
            self.unplaced += u64::from(self.window.has_time(time));
            return;
        };
        let (vector, injected) = track.begins(which, time);
        let key = (vector, name);
        let mut counts = self.window.has(time, track.cpu);
        if counts && !injected && !track.known {
            track.outside += 1;
            counts = false;
        } else if counts && !track.runs.contains_key(&key) {
            counts = self.sums < MAX_SUMS;
            if counts {
                self.sums += 1;
                track.runs.insert(key, Run::default());
            } else {
                self.unplaced += 1;
            }
        }
        track.starts(which, key, time, counts, injected);
    }

    fn takes(&mut self, says: &HandlerFields, guest: &GuestEvent<'_>) {
        let (event, data) = (guest.event, guest.data);
        let number = |field: &FieldReader| field.number(event, data);
        let irq = |field: &FieldReader| HandlerId::Irq(number(field).map(|irq| irq as u32));
        let vector = |field: &FieldReader| number(field).and_then(|one| u8::try_from(one).ok());
        let machine = event.machine();
        match says {
            HandlerFields::Handler { irq: field, name } => {
                self.handlers.insert(machine);
                let text = match name.get(event, data) {
                    Some(FieldScalar::Text(text)) => text,
                    Some(FieldScalar::Number(number)) => number.to_string().into(),
                    None => "".into(),
                };
                let irq = number(field).map(|irq| irq as u32);
                let name = self.name(irq, &text);
                self.begins(guest, HandlerId::Irq(irq), name);
            }
            HandlerFields::Vector(field, name) => {
                if let Some(vector) = vector(field) {
                    self.vectors.insert((machine, vector));
                    self.begins(guest, HandlerId::Vector(vector), *name);
                }
            }
            _ => {}
        }
        let Some(track) = guest.vcpu_tid.and_then(|tid| self.tracks.get_mut(tid)) else {
            return;
        };
        match says {
            HandlerFields::HandlerEnds(field) => track.ends(irq(field), event.time),
            HandlerFields::VectorEnds(field) => {
                if let Some(vector) = vector(field) {
                    track.ends(HandlerId::Vector(vector), event.time);
                }
            }
            HandlerFields::Behind => track.goes_on(),
            _ => {}
        }
        track.covers();
    }

    fn keep(&mut self, ty: &EventType<'_>, says: Option<HandlerFields>) -> bool {
        let any = says.is_some();
        let at = index_of(ty.index);
        if self.kinds.len() <= at {
            self.kinds.resize_with(at + 1, || None);
        }
        self.kinds[at] = says;
        any
    }
}

impl Analysis for GuestIrqs {
    fn filter_scope(&self) -> Option<FilterScope> {
        Some(FilterScope::Whole)
    }

    fn concerns(&self) -> Concerns {
        Concerns::of(&[Concern::Interrupts, Concern::Guests])
    }

    fn doubts(&self, _: &WalkState<'_>, doubts: &mut Doubts) {
        if !self.has_handlers() {
            doubts.raise(DoubtKind::NoHandlers);
        }
        if self.unplaced() > 0 {
            doubts.raise(DoubtKind::HandlersUnplaced {
                runs: self.unplaced(),
            });
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        let field = |name: &str| FieldReader::of(ty, name);
        let (says, want) = match (ty.kind, ty.system, ty.name) {
            (Kind::KvmEntry, _, _) => (HandlerFields::Enter, EventDetail::Head),
            (Kind::KvmExit, _, _) => (HandlerFields::Exit, EventDetail::Head),
            (_, "" | "kvm", "kvm_inj_virq") => {
                let says = HandlerFields::Inject {
                    vector: field("vector"),
                    soft: field("soft"),
                    repeated: field("reinjected"),
                    says_repeated: (ty.format)
                        .is_none_or(|format| format.field("reinjected").is_some()),
                };
                (says, EventDetail::Order)
            }
            _ => return EventDetail::Nothing,
        };
        self.keep(ty, Some(says));
        want
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        let says = self.kinds.get(index_of(event.ty.index));
        let Some(Some(HandlerFields::Inject {
            vector,
            soft,
            repeated,
            says_repeated,
        })) = says
        else {
            return;
        };
        let number = |field: &FieldReader| field.number(event, data);
        // INT n of the guest's own is none.
        let vector = number(vector).filter(|_| number(soft).unwrap_or(0) == 0);
        let Some(vector) = vector.and_then(|vector| u8::try_from(vector).ok()) else {
            return;
        };
        // As text, kernels that do not say it print the vector as a decimal number.
        let says_repeated = match event.body {
            Body::Text { text, .. } => text.contains("0x"),
            _ => *says_repeated,
        };
        let repeated = says_repeated.then(|| number(repeated).unwrap_or(0) != 0);
        if let Some(track) = self.tracks.get_mut(event.tid) {
            track.cpu = event.cpu;
            track.inject(vector, event.time, repeated, context.chosen.inside);
        }
    }

    fn head(&mut self, event: &Event<'_>, _: &mut Context<'_>) {
        let says = self.kinds.get(index_of(event.ty.index));
        let Some((says, track)) = says.zip(self.tracks.get_mut(event.tid)) else {
            return;
        };
        track.cpu = event.cpu;
        match says {
            Some(HandlerFields::Enter) => track.enters(event.time),
            Some(HandlerFields::Exit) => track.leaves(event.time),
            _ => {}
        }
    }

    fn wants_of_guest(&mut self, ty: &EventType<'_>) -> bool {
        let field = |name: &str| FieldReader::of(ty, name);
        let says = match (ty.system, ty.name) {
            ("irq" | "", "irq_handler_entry") => {
                if ty.recorded {
                    self.handlers.insert(ty.machine);
                }
                Some(HandlerFields::Handler {
                    irq: field("irq"),
                    name: field("name"),
                })
            }
            ("irq" | "", "irq_handler_exit") => Some(HandlerFields::HandlerEnds(field("irq"))),
            ("irq" | "", "softirq_entry") => Some(HandlerFields::Behind),
            ("irq_vectors" | "", name) if let Some((name, entry)) = of_vectors(ty.system, name) => {
                let known = NAMED_VECTORS.iter().find(|(one, _)| *one == name);
                if let Some((_, vector)) = known.filter(|_| ty.recorded) {
                    self.vectors.insert((ty.machine, *vector));
                }
                Some(match entry {
                    true => HandlerFields::Vector(field("vector"), self.name(None, name)),
                    false => HandlerFields::VectorEnds(field("vector")),
                })
            }
            _ if ty.kind == Kind::SchedSwitch => Some(HandlerFields::Behind),
            _ if ty.kind.is_sched() => Some(HandlerFields::Covers),
            _ => None,
        };
        self.keep(ty, says)
    }

    fn guest_event(&mut self, guest: &GuestEvent<'_>, _: &mut Context<'_>) {
        let at = index_of(guest.event.ty.index);
        // It is put back: a name may have to be noted meanwhile.
        let Some(says) = self.kinds.get_mut(at).and_then(Option::take) else {
            return;
        };
        self.takes(&says, guest);
        self.kinds[at] = Some(says);
    }

    fn guest_side(&mut self, machine: u16, side: &Side<'_>) {
        // Behind the recording's last event nothing is known; until then nothing was lost.
        let (only, covered) = match side {
            // Where it is not recorded which CPU's they were, they may be any one's.
            Side::Lost { cpu, kind, .. } if *kind == LostKind::Ring => {
                (Some(*cpu).filter(|cpu| *cpu != NONE), false)
            }
            Side::End { cpu, .. } => (*cpu, cpu.is_none()),
            _ => return,
        };
        for &tid in &self.tids {
            let Some(track) = self.tracks.get_mut(tid) else {
                continue;
            };
            if track.machine == machine && only.is_none_or(|only| only == track.number) {
                track.breaks_off(covered);
            }
        }
    }

    fn side(&mut self, side: &Side<'_>) {
        if !matches!(side, Side::Lost { kind, .. } if *kind == LostKind::Ring) {
            return;
        }
        // An injection may be among what was lost.
        for &tid in &self.tids {
            if let Some(track) = self.tracks.get_mut(tid) {
                track.lost_of_host();
            }
        }
    }

    fn finish(&mut self, _: &mut Context<'_>) {
        for &tid in &self.tids {
            if let Some(track) = self.tracks.get_mut(tid) {
                track.finish();
            }
        }
    }
}
