//! How much a doubt changes, and what it is about.

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
