//! One vCPU: its last injection, and the handlers that are under way.

use event::NONE;
use rustc_hash::FxHashMap;
use stats::Stats;

use super::vectors::{VectorOwner, whose};

/// Handlers within each other that are followed.
const MAX_DEPTH: usize = 8;

/// Which handler it is, as its end says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandlerId {
    Irq(Option<u32>),
    Vector(u8),
}

/// A handler that has begun.
#[derive(Debug)]
struct OpenHandler {
    which: HandlerId,
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
struct PendingInjection {
    vector: u8,
    time: u64,
    /// The vCPU has entered the guest since then.
    entered: bool,
    /// It is to be counted, and has not been yet.
    counts: bool,
    /// The guest's recording had begun on this CPU.
    covered: bool,
    /// The interrupt whose handler began first.
    first: Option<HandlerId>,
}

#[derive(Debug, Default)]
pub(super) struct VectorSums {
    pub(super) handled: u64,
    pub(super) unseen: u64,
    pub(super) uncovered: u64,
    /// Without a handler since the guest's last event on this CPU: if the next one comes after a loss, they are not
    /// covered.
    pending: u64,
    pub(super) delay: Stats,
}

#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) runs: u64,
    pub(super) times: Stats,
    pub(super) out_ns: u64,
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
pub(super) struct VcpuHandlers {
    pub(super) machine: u16,
    /// The guest's number of it.
    pub(super) number: i32,
    /// The host's CPU that it was on last.
    pub(super) cpu: i32,
    /// The host's recording has begun to show it.
    pub(super) known: bool,
    covered: bool,
    out_since: Option<u64>,
    injected: Option<PendingInjection>,
    frames: Vec<OpenHandler>,
    pub(super) vectors: FxHashMap<u8, VectorSums>,
    /// Vectors that have something pending.
    pending: Vec<u8>,
    pub(super) runs: FxHashMap<(Option<u8>, u32), Run>,
    /// Those without an injection since the host's last entry or exit: they may be behind the host's recording.
    fresh: FxHashMap<(Option<u8>, u32), Run>,
    /// Those that are before or behind it.
    pub(super) outside: u64,
}

impl VcpuHandlers {
    /// Returns the vCPU that is a CPU of a guest's machine.
    pub(super) fn new(machine: u16, number: u32) -> VcpuHandlers {
        VcpuHandlers {
            machine,
            number: i32::try_from(number).unwrap_or(i32::MAX),
            cpu: NONE,
            ..VcpuHandlers::default()
        }
    }

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

    /// KVM injects an interrupt, `repeated` where it says that an exit undid it before.
    pub(super) fn inject(&mut self, vector: u8, time: u64, repeated: Option<bool>, inside: bool) {
        let same = self.injected.as_ref().map(|last| last.vector) == Some(vector);
        match repeated {
            Some(true) if same => return,
            // The last one may be this one.
            None if same => self.forget(),
            _ => self.close(),
        }
        self.injected = Some(PendingInjection {
            vector,
            time,
            entered: false,
            counts: inside && repeated != Some(true),
            covered: self.covered,
            first: None,
        });
    }

    /// A handler begins: returns its vector, and whether the injection was seen that it is of.
    pub(super) fn begins(&mut self, which: HandlerId, time: u64) -> (Option<u8>, bool) {
        let alone = match which {
            HandlerId::Irq(_) => (None, false),
            HandlerId::Vector(vector) => (Some(vector), false),
        };
        // What happens before the entry is of something earlier.
        let Some(last) = self.injected.as_mut().filter(|last| last.entered) else {
            return alone;
        };
        let of_it = match alone.0 {
            Some(vector) => vector == last.vector,
            None => whose(last.vector) != VectorOwner::System,
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

    pub(super) fn ends(&mut self, which: HandlerId, time: u64) {
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

    /// A handler has begun that is counted there.
    pub(super) fn starts(
        &mut self,
        which: HandlerId,
        key: (Option<u8>, u32),
        time: u64,
        counts: bool,
        injected: bool,
    ) {
        if counts {
            let runs = match injected {
                true => &mut self.runs,
                false => &mut self.fresh,
            };
            runs.entry(key).or_default().runs += 1;
        }
        if self.frames.len() < MAX_DEPTH {
            self.frames.push(OpenHandler {
                which,
                key,
                start: time,
                out_ns: 0,
                counts,
                injected,
            });
        }
    }

    /// The guest does what it does behind handlers alone.
    pub(super) fn goes_on(&mut self) {
        self.frames.clear();
        if self.injected.as_ref().is_some_and(|one| one.entered) {
            self.close();
        }
    }

    /// The guest's recording has an event of this CPU now.
    pub(super) fn covers(&mut self) {
        self.covered = true;
        self.settle(true);
    }

    /// From now on the guest's recording does not tell of this CPU; what it did until now is `covered` or not.
    pub(super) fn breaks_off(&mut self, covered: bool) {
        self.settle(covered);
        self.forget();
        self.frames.clear();
        self.covered = false;
    }

    /// Events of the host were lost: an injection may be among them.
    pub(super) fn lost_of_host(&mut self) {
        self.forget();
        self.out_since = None;
    }

    /// Both recordings have ended.
    pub(super) fn finish(&mut self) {
        self.settle(false);
        self.forget();
        let behind = self.fresh.drain().map(|(_, run)| run.runs);
        self.outside += behind.fold(0u64, u64::saturating_add);
    }

    pub(super) fn leaves(&mut self, time: u64) {
        self.confirm();
        self.out_since = Some(time);
    }

    pub(super) fn enters(&mut self, time: u64) {
        self.confirm();
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
