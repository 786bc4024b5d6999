//! What a lane is made of: stretches of time, and exact sums of those that are too short to be kept one by one.

/// States of the kinds of lanes, at most, with those that only this crate knows.
pub const KINDS: usize = 11;
/// Time that was not looked at: filters leave it out, or the recording has no event about it.
pub const OUTSIDE: u8 = 10;
/// Stands where no task or cause is known.
pub(super) const NOBODY: u32 = u32::MAX;

/// What a lane is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LaneGroup {
    /// A vCPU: its states are [`model::State`]'s.
    Vcpus,
    /// A thread of the host.
    Threads,
    /// A CPU of the host.
    Cpus,
    /// What a vCPU's guest did.
    Guests,
}

impl LaneGroup {
    /// All of them.
    pub const ALL: [LaneGroup; 4] = [
        LaneGroup::Vcpus,
        LaneGroup::Threads,
        LaneGroup::Cpus,
        LaneGroup::Guests,
    ];

    /// Returns its states, in the order of the numbers that cells have ([`Stretch::kind`]): the name that stays the
    /// same, and the name that people read.
    pub fn kinds(self) -> &'static [(&'static str, &'static str)] {
        match self {
            LaneGroup::Vcpus => &[
                ("guest", "in guest"),
                ("kernel", "in KVM"),
                ("kernel_blocked", "asleep in KVM"),
                ("user", "in the VMM"),
                ("user_blocked", "asleep in the VMM"),
                ("poll", "polling in a halt"),
                ("halted", "halted"),
                ("runnable", "waiting for a CPU"),
                ("unknown", "unknown"),
            ],
            LaneGroup::Threads => &[
                ("running", "running"),
                ("runnable", "waiting for a CPU"),
                ("sleeping", "sleeping"),
                ("blocked", "sleeping uninterruptibly"),
                ("unknown", "unknown"),
            ],
            LaneGroup::Cpus => &[
                ("idle", "idle"),
                ("vcpu", "runs a vCPU"),
                ("backend", "runs a back end"),
                ("other", "runs another task"),
                ("unknown", "unknown"),
            ],
            LaneGroup::Guests => &[
                ("task", "a task"),
                ("interrupt", "an interrupt"),
                ("softirq", "a softirq"),
                ("idle", "idle"),
                ("unknown", "unknown"),
            ],
        }
    }
}

/// A stretch of time in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// From when.
    pub start: u64,
    /// Until when.
    pub end: u64,
    /// The state, by its number in [`LaneGroup::kinds`], or [`OUTSIDE`].
    pub kind: u8,
    /// The CPU; [`event::NONE`] where it is not known.
    pub cpu: i32,
    /// Why, or which task: in a report the number of a name, 0 for none.
    pub what: u32,
    /// Behind whom it waited: in a report the number of a name, 0 for nobody.
    pub behind: u32,
}

impl Stretch {
    /// Returns its length.
    #[inline]
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns whether another stretch is the same that goes on.
    #[inline]
    pub(super) fn goes_on(&self, next: &Stretch) -> bool {
        self.end == next.start
            && self.kind == next.kind
            && self.what == next.what
            && self.behind == next.behind
            && self.cpu == next.cpu
    }
}

/// Several stretches as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StretchSum {
    /// From when.
    pub start: u64,
    /// Until when.
    pub end: u64,
    /// How many stretches it is the sum of, without those that were not looked at.
    pub count: u64,
    /// Time by state. It adds up to the time from its start to its end.
    pub ns: [u64; KINDS],
}

/// One stretch, or the sum of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// A stretch, kept as it is.
    One(Stretch),
    /// A sum of stretches that follow each other.
    Sum(Box<StretchSum>),
}

impl Cell {
    /// Returns from when it is.
    #[inline]
    pub fn start(&self) -> u64 {
        match self {
            Cell::One(one) => one.start,
            Cell::Sum(sum) => sum.start,
        }
    }

    /// Returns until when it is.
    #[inline]
    pub fn end(&self) -> u64 {
        match self {
            Cell::One(one) => one.end,
            Cell::Sum(sum) => sum.end,
        }
    }

    /// Returns its length.
    #[inline]
    pub fn ns(&self) -> u64 {
        self.end().saturating_sub(self.start())
    }

    /// Returns the time that it has of a state.
    pub fn of(&self, kind: u8) -> u64 {
        match self {
            Cell::One(one) if one.kind == kind => one.ns(),
            Cell::One(_) => 0,
            Cell::Sum(sum) => sum.ns.get(usize::from(kind)).copied().unwrap_or(0),
        }
    }
}
