//! What is kept of a thread whose events take turns.

/// What a thread was last seen doing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadTurns {
    /// Its last event of KVM's was an exit (`true`) or an entry.
    pub(crate) exited: Option<bool>,
    /// It got (`true`) or left a CPU.
    pub(crate) on_cpu: Option<bool>,
    /// It was woken, and has not been seen running since.
    pub(crate) woken: bool,
    pub(crate) exits: u64,
    pub(crate) exits_missed: u64,
    pub(crate) entries: u64,
    pub(crate) entries_missed: u64,
    pub(crate) ins: u64,
    pub(crate) outs: u64,
    pub(crate) switches_missed: u64,
    pub(crate) wakeups: u64,
    pub(crate) wakeups_missed: u64,
    /// The CPU on which it was last seen going to sleep.
    pub(crate) asleep_on: Option<i32>,
    pub(crate) asleep: u64,
    pub(crate) asleep_missed: u64,
}

impl ThreadTurns {
    /// Adds the sums of another thread.
    pub(crate) fn merge(&mut self, other: &ThreadTurns) {
        self.exits += other.exits;
        self.exits_missed += other.exits_missed;
        self.entries += other.entries;
        self.entries_missed += other.entries_missed;
        self.ins += other.ins;
        self.outs += other.outs;
        self.switches_missed += other.switches_missed;
        self.wakeups += other.wakeups;
        self.wakeups_missed += other.wakeups_missed;
        self.asleep += other.asleep;
        self.asleep_missed += other.asleep_missed;
    }
}

/// Returns a number for a thread of a ring buffer. Ids have 32 bits and a sign.
pub(crate) fn thread_number(buffer: u16, id: i64) -> i64 {
    (i64::from(buffer) << 40) + id
}

/// Returns the id of which [`thread_number`] made a number.
pub(crate) fn thread_id(number: i64) -> i64 {
    let half = 1i64 << 39;
    (number + half).rem_euclid(1 << 40) - half
}
