//! What guests did with the interrupts that KVM put into them: which handler ran, how long after the injection, and for how long.
//!
//! Linux handles an interrupt with interrupts masked. So the first handler that begins on a vCPU behind an injection (`kvm_inj_virq`) is of
//! that interrupt, whatever exits are between: the EOI of an edge interrupt leaves the guest before the handler begins. This holds until
//! the next injection into that vCPU, or until the guest handles a softirq or switches tasks, which it does behind the handler. An
//! injection that an exit undid, and that KVM repeats, is the same interrupt.
//!
//! Interrupts of devices have `irq_handler_entry`. Linux gives vectors of its own to what it handles itself (timer, IPIs): these have
//! events of `irq_vectors`, which say the vector, or none.

use std::collections::{BTreeMap, HashMap, HashSet};

use event::{Data, Event, EventType, FieldReader, FieldValue, Kind, LostKind, NONE, Side};
use model::ByNumber;
use rustc_hash::FxHashMap;
use stats::Stats;

use crate::analysis::{Analysis, Context, GuestEvent, Want};
use crate::chosen::Window;

/// Names of handlers that are kept at most: a machine has some hundred.
const MAX_NAMES: usize = 1 << 12;
/// Characters of a name that are kept.
const MAX_NAME: usize = 128;
/// Handlers of vectors of vCPUs that are counted apart at most.
const MAX_SUMS: usize = 1 << 16;
/// Handlers within each other that are followed.
const MAX_DEPTH: usize = 8;

/// Events of `irq_vectors` and their vectors on x86 (`arch/x86/include/asm/trace/irq_vectors.h`, `arch/x86/include/asm/irq_vectors.h`,
/// Linux 4.17 to 6.12).
const NAMED_VECTORS: [(&str, u8); 11] = [
    ("local_timer", 0xec),
    ("deferred_error_apic", 0xf4),
    ("irq_work", 0xf6),
    ("x86_platform_ipi", 0xf7),
    ("threshold_apic", 0xf9),
    ("thermal_apic", 0xfa),
    ("call_function_single", 0xfb),
    ("call_function", 0xfc),
    ("reschedule", 0xfd),
    ("error_apic", 0xfe),
    ("spurious_apic", 0xff),
];

/// Whose a vector is in Linux on x86.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// A device's: its handler has `irq_handler_entry`.
    Device,
    /// Linux's own: it has an event of `irq_vectors`, or none.
    System,
    /// It depends on the kernel: the cleanup of moved interrupts (0x20, up to Linux 6.8), posted MSIs (0xeb, from 6.11), the hypervisor's
    /// callback (0xf3), and what firmware uses.
    Either,
}

/// Returns whose a vector is (`arch/x86/include/asm/irq_vectors.h`).
fn whose(vector: u8) -> Whose {
    match vector {
        0..=0x20 | 0xeb | 0xf3 => Whose::Either,
        0xec..=0xff => Whose::System,
        _ => Whose::Device,
    }
}

/// Returns what an event of `irq_vectors` is of, and whether it is an entry. Where the system is not told, only known names are some.
fn of_vectors<'n>(system: &str, name: &'n str) -> Option<(&'n str, bool)> {
    let of = match name.strip_suffix("_entry") {
        Some(of) => (of, true),
        None => (name.strip_suffix("_exit")?, false),
    };
    let known = || NAMED_VECTORS.iter().any(|(one, _)| *one == of.0);
    (!system.is_empty() || known()).then_some(of)
}

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
    /// Injections of which the recordings do not say it. With the two above they are all injections. `None` where there are none.
    pub uncovered: Option<u64>,
    /// From the injection to the first handler.
    pub delay: Stats,
    /// The handlers, those that ran most often first.
    pub handlers: Vec<IrqHandler>,
}

/// What events of a kind say.
#[derive(Debug)]
enum Says {
    /// The host injects an interrupt.
    Inject {
        vector: FieldReader,
        soft: FieldReader,
        repeated: FieldReader,
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

/// Which handler it is, as its end says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Irq(Option<u32>),
    Vector(u8),
}

/// A handler that has begun.
#[derive(Debug)]
struct Frame {
    which: Which,
    /// Where it is counted.
    key: (Option<u8>, u32),
    start: u64,
    out_ns: u64,
    counts: bool,
    /// Its injection was seen.
    injected: bool,
}

/// An injection, until the next one.
#[derive(Debug)]
struct Injected {
    vector: u8,
    time: u64,
    /// The vCPU has entered the guest since then.
    entered: bool,
    /// It is to be counted, and has not been yet.
    counts: bool,
    /// The guest's recording had begun on this CPU.
    covered: bool,
    /// The interrupt whose handler began first.
    first: Option<Which>,
}

#[derive(Debug, Default)]
struct Vector {
    handled: u64,
    unseen: u64,
    uncovered: u64,
    /// Without a handler since the guest's last event on this CPU: if the next one comes after a loss, they are not covered.
    pending: u64,
    delay: Stats,
}

#[derive(Debug, Default)]
struct Run {
    runs: u64,
    times: Stats,
    out_ns: u64,
}

impl Run {
    fn merge(&mut self, other: &Run) {
        self.runs += other.runs;
        self.times.merge(&other.times);
        self.out_ns = self.out_ns.saturating_add(other.out_ns);
    }
}

/// A vCPU of which there is a guest's recording.
#[derive(Debug, Default)]
struct Track {
    machine: u16,
    /// The guest's number of it.
    number: i32,
    /// The host's CPU that it was on last.
    cpu: i32,
    /// The host's recording has begun to tell of it.
    known: bool,
    covered: bool,
    out_since: Option<u64>,
    injected: Option<Injected>,
    frames: Vec<Frame>,
    vectors: FxHashMap<u8, Vector>,
    /// Vectors that have something pending.
    pending: Vec<u8>,
    runs: FxHashMap<(Option<u8>, u32), Run>,
    /// Those without an injection since the host's last entry or exit: they may be behind the host's recording.
    fresh: FxHashMap<(Option<u8>, u32), Run>,
    /// Those that are before or behind it.
    outside: u64,
}

impl Track {
    /// No handler is of the last injection any more.
    fn close(&mut self) {
        let Some(last) = self.injected.take().filter(|last| last.counts) else {
            return;
        };
        let vector = self.vectors.entry(last.vector).or_default();
        if !last.covered {
            vector.uncovered += 1;
            return;
        }
        if vector.pending == 0 {
            self.pending.push(last.vector);
        }
        vector.pending += 1;
    }

    /// It is not known what became of the last injection.
    fn forget(&mut self) {
        if let Some(last) = self.injected.take().filter(|last| last.counts) {
            self.vectors.entry(last.vector).or_default().uncovered += 1;
        }
    }

    /// What is pending was covered, or was not.
    fn settle(&mut self, covered: bool) {
        for number in self.pending.drain(..) {
            if let Some(vector) = self.vectors.get_mut(&number) {
                let pending = std::mem::take(&mut vector.pending);
                match covered {
                    true => vector.unseen += pending,
                    false => vector.uncovered += pending,
                }
            }
        }
    }

    fn inject(&mut self, vector: u8, time: u64, repeated: bool, inside: bool) {
        if repeated
            && self
                .injected
                .as_ref()
                .is_some_and(|one| one.vector == vector)
        {
            return;
        }
        self.close();
        self.injected = Some(Injected {
            vector,
            time,
            entered: false,
            counts: inside && !repeated,
            covered: self.covered,
            first: None,
        });
    }

    /// A handler begins: returns its vector, and whether the injection was seen that it is of.
    fn begins(&mut self, which: Which, time: u64) -> (Option<u8>, bool) {
        let alone = match which {
            Which::Irq(_) => (None, false),
            Which::Vector(vector) => (Some(vector), false),
        };
        // What happens before the entry is of something earlier.
        let Some(last) = self.injected.as_mut().filter(|last| last.entered) else {
            return alone;
        };
        let of_it = match alone.0 {
            Some(vector) => vector == last.vector,
            None => whose(last.vector) != Whose::System,
        };
        // Several handlers share a line; another interrupt's is none of them.
        if !of_it || last.first.is_some_and(|first| first != which) {
            return alone;
        }
        // Whether more of them are of it is known if the host's recording goes on.
        let injected = last.first.replace(which).is_none();
        if std::mem::take(&mut last.counts) {
            let vector = self.vectors.entry(last.vector).or_default();
            match last.covered {
                true => {
                    vector.handled += 1;
                    vector.delay.add(time.saturating_sub(last.time));
                }
                false => vector.uncovered += 1,
            }
        }
        (Some(last.vector), injected)
    }

    fn ends(&mut self, which: Which, time: u64) {
        let Some(at) = self.frames.iter().rposition(|one| one.which == which) else {
            return;
        };
        self.frames.truncate(at + 1);
        let Some(frame) = self.frames.pop().filter(|frame| frame.counts) else {
            return;
        };
        let run = match frame.injected {
            true => self.runs.entry(frame.key).or_default(),
            false => self.fresh.entry(frame.key).or_default(),
        };
        let ns = time.saturating_sub(frame.start);
        run.times.add(ns);
        run.out_ns = run.out_ns.saturating_add(frame.out_ns.min(ns));
    }

    /// The host's recording goes on: what the guest did until now is within it.
    fn confirm(&mut self) {
        self.known = true;
        for (key, run) in self.fresh.drain() {
            self.runs.entry(key).or_default().merge(&run);
        }
    }

    fn enters(&mut self, time: u64) {
        if let Some(last) = &mut self.injected {
            last.entered = true;
        }
        if let Some(since) = self.out_since.take() {
            for frame in &mut self.frames {
                let ns = time.saturating_sub(since.max(frame.start));
                frame.out_ns = frame.out_ns.saturating_add(ns);
            }
        }
    }
}

/// Finds out what guests did with injected interrupts.
#[derive(Debug)]
pub struct GuestIrqs {
    window: Window,
    kinds: Vec<Option<Says>>,
    tracks: ByNumber<Track>,
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
    /// Looks at guests whose vCPUs are these: the number of the guest's machine, of its CPU, and the host's thread that is the vCPU.
    pub fn new(window: Window, vcpus: impl IntoIterator<Item = (u16, u32, i32)>) -> GuestIrqs {
        let mut tracks = ByNumber::default();
        let mut tids = Vec::new();
        for (machine, number, tid) in vcpus {
            tids.push(tid);
            tracks.entry(tid, || Track {
                machine,
                number: i32::try_from(number).unwrap_or(i32::MAX),
                cpu: -1,
                ..Track::default()
            });
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

    /// Returns runs of handlers that are in no row: of CPUs of which it is not known which vCPU they are, and of more handlers than are kept.
    pub fn unplaced(&self) -> u64 {
        self.unplaced
    }

    /// Returns runs of handlers before and behind what the host's recording tells of a vCPU. They are in no row.
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
                Whose::Device => self.handlers.contains(&track.machine),
                Whose::System => self.vectors.contains(&(track.machine, *number)),
                Whose::Either => vector.handled > 0,
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
            let (irq, name) = self.names.get(*name as usize).cloned().unwrap_or_default();
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
    fn begins(&mut self, guest: &GuestEvent<'_>, which: Which, name: u32) {
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
        if counts {
            let runs = match injected {
                true => &mut track.runs,
                false => &mut track.fresh,
            };
            runs.entry(key).or_default().runs += 1;
        }
        if track.frames.len() < MAX_DEPTH {
            track.frames.push(Frame {
                which,
                key,
                start: time,
                out_ns: 0,
                counts,
                injected,
            });
        }
    }

    fn takes(&mut self, says: &Says, guest: &GuestEvent<'_>) {
        let (event, data) = (guest.event, guest.data);
        let number = |field: &FieldReader| field.number(event, data);
        let irq = |field: &FieldReader| Which::Irq(number(field).map(|irq| irq as u32));
        let vector = |field: &FieldReader| number(field).and_then(|one| u8::try_from(one).ok());
        let machine = event.machine();
        match says {
            Says::Handler { irq: field, name } => {
                self.handlers.insert(machine);
                let text = match name.get(event, data) {
                    Some(FieldValue::Text(text)) => text,
                    Some(FieldValue::Number(number)) => number.to_string().into(),
                    None => "".into(),
                };
                let irq = number(field).map(|irq| irq as u32);
                let name = self.name(irq, &text);
                self.begins(guest, Which::Irq(irq), name);
            }
            Says::Vector(field, name) => {
                if let Some(vector) = vector(field) {
                    self.vectors.insert((machine, vector));
                    self.begins(guest, Which::Vector(vector), *name);
                }
            }
            _ => {}
        }
        let Some(track) = guest.vcpu_tid.and_then(|tid| self.tracks.get_mut(tid)) else {
            return;
        };
        match says {
            Says::HandlerEnds(field) => track.ends(irq(field), event.time),
            Says::VectorEnds(field) => {
                if let Some(vector) = vector(field) {
                    track.ends(Which::Vector(vector), event.time);
                }
            }
            Says::Behind => {
                track.frames.clear();
                if track.injected.as_ref().is_some_and(|one| one.entered) {
                    track.close();
                }
            }
            _ => {}
        }
        track.covered = true;
        track.settle(true);
    }

    fn keep(&mut self, ty: &EventType<'_>, says: Option<Says>) -> bool {
        let any = says.is_some();
        let at = ty.index as usize;
        if self.kinds.len() <= at {
            self.kinds.resize_with(at + 1, || None);
        }
        self.kinds[at] = says;
        any
    }
}

impl Analysis for GuestIrqs {
    fn wants(&mut self, ty: &EventType<'_>) -> Want {
        let field = |name: &str| FieldReader::of(ty, name);
        let (says, want) = match (ty.kind, ty.system, ty.name) {
            (Kind::KvmEntry, _, _) => (Says::Enter, Want::Head),
            (Kind::KvmExit, _, _) => (Says::Exit, Want::Head),
            (_, "" | "kvm", "kvm_inj_virq") => {
                let says = Says::Inject {
                    vector: field("vector"),
                    soft: field("soft"),
                    repeated: field("reinjected"),
                };
                (says, Want::Order)
            }
            _ => return Want::Nothing,
        };
        self.keep(ty, Some(says));
        want
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        let says = self.kinds.get(event.ty.index as usize);
        let Some(Some(Says::Inject {
            vector,
            soft,
            repeated,
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
        let repeated = number(repeated).unwrap_or(0) != 0;
        if let Some(track) = self.tracks.get_mut(event.tid) {
            track.cpu = event.cpu;
            track.inject(vector, event.time, repeated, context.chosen.inside);
        }
    }

    fn head(&mut self, event: &Event<'_>, _: &mut Context<'_>) {
        let says = self.kinds.get(event.ty.index as usize);
        let Some((says, track)) = says.zip(self.tracks.get_mut(event.tid)) else {
            return;
        };
        track.cpu = event.cpu;
        track.confirm();
        match says {
            Some(Says::Enter) => track.enters(event.time),
            Some(Says::Exit) => track.out_since = Some(event.time),
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
                Some(Says::Handler {
                    irq: field("irq"),
                    name: field("name"),
                })
            }
            ("irq" | "", "irq_handler_exit") => Some(Says::HandlerEnds(field("irq"))),
            ("irq" | "", "softirq_entry") => Some(Says::Behind),
            ("irq_vectors" | "", name) if let Some((name, entry)) = of_vectors(ty.system, name) => {
                let known = NAMED_VECTORS.iter().find(|(one, _)| *one == name);
                if let Some((_, vector)) = known.filter(|_| ty.recorded) {
                    self.vectors.insert((ty.machine, *vector));
                }
                Some(match entry {
                    true => Says::Vector(field("vector"), self.name(None, name)),
                    false => Says::VectorEnds(field("vector")),
                })
            }
            _ if ty.kind == Kind::SchedSwitch => Some(Says::Behind),
            _ if ty.kind.is_sched() => Some(Says::Covers),
            _ => None,
        };
        self.keep(ty, says)
    }

    fn guest_event(&mut self, guest: &GuestEvent<'_>, _: &mut Context<'_>) {
        let at = guest.event.ty.index as usize;
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
            // Where it is not told which CPU's they were, they may be any one's.
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
                track.settle(covered);
                track.forget();
                track.frames.clear();
                track.covered = false;
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
                track.forget();
                track.out_since = None;
            }
        }
    }

    fn finish(&mut self, _: &mut Context<'_>) {
        for &tid in &self.tids {
            if let Some(track) = self.tracks.get_mut(tid) {
                track.settle(false);
                track.forget();
                track.outside += track.fresh.drain().map(|(_, run)| run.runs).sum::<u64>();
            }
        }
    }
}
