/*!
What a reader of a number has to know before it is believed.

A [`Doubt`] is a [`DoubtKind`] (one of the list in `list.rs`, which has its id, severity, what it concerns and its one
wording) and a [`DoubtScope`]: the recording, threads, CPUs or span of time that it is about. Readers, the machine and
analyses raise doubts; the walk collects them ([`Doubts`]); every command prints those that touch what it shows
([`Doubts::touching`]), in every format.

```
use doubts::{Concern, Concerns, Doubt, DoubtKind, Doubts, Shown};

let mut doubts = Doubts::default();
doubts.raise(DoubtKind::ClockTicks);
doubts.raise(Doubt::from(DoubtKind::CpuNotRecorded { cpu: 3 }).on_cpu(3));
let exits = Shown::of(Concerns::of(&[Concern::Exits]));
assert_eq!(doubts.touching(&exits).ids(), ["clock-ticks"]);
```

This crate does no I/O and knows no container, analysis or command.
*/
#![forbid(unsafe_code)]

mod list;
mod scope;

pub use list::{DOUBT_LIST, DoubtEntry, DoubtKind};
pub use scope::{DoubtScope, Shown};

/// How much a doubt changes what can be concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DoubtSeverity {
    /// The numbers hold: something beside them is not there, or was assumed.
    Note,
    /// Some numbers are bounds, or part of one is in another.
    Warning,
    /// Numbers may be wrong.
    Serious,
}

impl DoubtSeverity {
    /// Returns its name in documents: `note`, `warning` or `serious`.
    pub fn name(self) -> &'static str {
        match self {
            DoubtSeverity::Note => "note",
            DoubtSeverity::Warning => "warning",
            DoubtSeverity::Serious => "serious",
        }
    }
}

/// What a doubt is about: the kind of numbers that it touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Concern {
    /// Whatever is made of the recording.
    All,
    /// The events themselves: which there are, how many.
    Events,
    /// VM-exits, and accesses to ports, memory and registers: counts and times.
    Exits,
    /// The states of vCPUs: guest, kernel, VMM, halted, halt polling, runnable.
    States,
    /// Scheduling: run time and runqueue latency of tasks and CPUs.
    Sched,
    /// Latency paths.
    Paths,
    /// Interrupts by vector.
    Interrupts,
    /// Samples and call stacks.
    Stacks,
    /// Which vCPU is of which VM.
    Vms,
    /// Names of devices, registers and functions.
    Names,
    /// Recordings that were made inside guests, and how they join their host's.
    Guests,
    /// Facts of the host, and the guest's definition.
    Host,
    /// What a benchmark or a measurement of this machine found.
    Measurements,
}

impl Concern {
    /// All of them, in the order of documents.
    pub const ALL: [Concern; 13] = [
        Concern::All,
        Concern::Events,
        Concern::Exits,
        Concern::States,
        Concern::Sched,
        Concern::Paths,
        Concern::Interrupts,
        Concern::Stacks,
        Concern::Vms,
        Concern::Names,
        Concern::Guests,
        Concern::Host,
        Concern::Measurements,
    ];

    /// Returns its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Concern::All => "all",
            Concern::Events => "events",
            Concern::Exits => "exits",
            Concern::States => "states",
            Concern::Sched => "sched",
            Concern::Paths => "paths",
            Concern::Interrupts => "interrupts",
            Concern::Stacks => "stacks",
            Concern::Vms => "vms",
            Concern::Names => "names",
            Concern::Guests => "guests",
            Concern::Host => "host",
            Concern::Measurements => "measurements",
        }
    }
}

/// A set of concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Concerns(u16);

impl Concerns {
    /// Returns the set of some.
    pub const fn of(list: &[Concern]) -> Concerns {
        let mut bits = 0;
        let mut at = 0;
        while at < list.len() {
            bits |= 1 << list[at] as u16;
            at += 1;
        }
        Concerns(bits)
    }

    /// Returns the set of everything.
    pub const fn everything() -> Concerns {
        Concerns::of(&Concern::ALL)
    }

    /// Returns both sets together.
    pub const fn and(self, other: Concerns) -> Concerns {
        Concerns(self.0 | other.0)
    }

    /// Returns this set with one more.
    pub const fn with(self, one: Concern) -> Concerns {
        Concerns(self.0 | 1 << one as u16)
    }

    /// Returns whether it has a concern.
    pub const fn has(self, one: Concern) -> bool {
        self.0 & (1 << one as u16) != 0
    }

    /// Returns whether a doubt with these concerns touches an answer of which `shown` is made.
    pub const fn touches(self, shown: Concerns) -> bool {
        self.has(Concern::All) || self.0 & shown.0 != 0
    }

    /// Returns the names, in the order of documents.
    pub fn names(self) -> Vec<&'static str> {
        let all = Concern::ALL.into_iter();
        all.filter(|one| self.has(*one))
            .map(Concern::name)
            .collect()
    }
}

/// One doubt, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// Which of the list, with its numbers.
    pub kind: DoubtKind,
    /// The part of the inputs that it is about.
    pub scope: DoubtScope,
}

impl From<DoubtKind> for Doubt {
    fn from(kind: DoubtKind) -> Doubt {
        Doubt {
            kind,
            scope: DoubtScope::default(),
        }
    }
}

impl Doubt {
    /// Names the input that it is about, where a command reads several.
    pub fn of_input(mut self, name: &str) -> Doubt {
        self.scope.input = Some(name.to_owned());
        self
    }

    /// Says that it is about the recording of a machine that is walked with its host's.
    pub fn of_machine(mut self, machine: u16) -> Doubt {
        self.scope.machine = machine;
        self
    }

    /// Says that it is about these threads alone, such as the vCPUs of one VM.
    pub fn of_threads(mut self, tids: impl IntoIterator<Item = i32>) -> Doubt {
        self.scope.threads.extend(tids);
        self
    }

    /// Says that it is about one CPU alone; may be called again for another one.
    pub fn on_cpu(mut self, cpu: u32) -> Doubt {
        self.scope.cpus.push(cpu);
        self
    }

    /// Says that it is about a span of the recording's clock alone.
    pub fn within(mut self, from: u64, to: u64) -> Doubt {
        self.scope.span = Some((from, to));
        self
    }

    /// Returns its id, stable for scripts.
    pub fn id(&self) -> &'static str {
        self.kind.entry().id
    }

    /// Returns how much it changes.
    pub fn severity(&self) -> DoubtSeverity {
        self.kind.entry().severity
    }

    /// Returns what it concerns.
    pub fn concerns(&self) -> Concerns {
        self.kind.entry().concerns
    }

    /// Returns its sentences. They name the input where a command reads several.
    pub fn text(&self) -> String {
        let text = self.kind.text();
        match &self.scope.input {
            Some(name) => format!("{name}: {text}"),
            None => text,
        }
    }
}

/// Doubts, in the order in which they were raised, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubts(Vec<Doubt>);

impl Doubts {
    /// Adds a doubt, once.
    pub fn raise(&mut self, doubt: impl Into<Doubt>) {
        let doubt = doubt.into();
        if !self.0.contains(&doubt) {
            self.0.push(doubt);
        }
    }

    /// Returns them in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Doubt> {
        self.0.iter()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether one of an id was raised.
    pub fn has(&self, id: &str) -> bool {
        self.0.iter().any(|doubt| doubt.id() == id)
    }

    /// Returns their ids, each once, in their order.
    pub fn ids(&self) -> Vec<&'static str> {
        let mut ids = Vec::new();
        for doubt in &self.0 {
            if !ids.contains(&doubt.id()) {
                ids.push(doubt.id());
            }
        }
        ids
    }

    /// Returns their sentences.
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(Doubt::text).collect()
    }

    /// Returns those that touch what an answer shows.
    pub fn touching(&self, shown: &Shown) -> Doubts {
        let touching = self.0.iter().filter(|doubt| shown.is_touched(doubt));
        Doubts(touching.cloned().collect())
    }

    /// Names the input of all that do not name one.
    pub fn name_input(&mut self, name: &str) {
        for doubt in &mut self.0 {
            doubt.scope.input.get_or_insert_with(|| name.to_owned());
        }
    }
}

impl<'d> IntoIterator for &'d Doubts {
    type Item = &'d Doubt;
    type IntoIter = std::slice::Iter<'d, Doubt>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl IntoIterator for Doubts {
    type Item = Doubt;
    type IntoIter = std::vec::IntoIter<Doubt>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Extend<Doubt> for Doubts {
    fn extend<I: IntoIterator<Item = Doubt>>(&mut self, doubts: I) {
        for doubt in doubts {
            self.raise(doubt);
        }
    }
}
