//! What the programs keep, byte for byte as `bpf/state.h` declares it. The only file with `unsafe`.

use aya::Pod;

/// Numbers of states, those of `model::State`.
pub(crate) const STATES: usize = 9;
/// Buckets of durations.
pub(crate) const BUCKETS: usize = 40;
/// Rows that a vCPU has at most.
pub(crate) const INDEX: usize = 256;
/// Rows that are handed out at once (`ROWS_AT_ONCE`).
pub(crate) const ROWS_AT_ONCE: u32 = 16;
/// Reasons that [`RawLayout`] has room for.
pub(crate) const MAX_WAITING: usize = 12;

/// Of what a row is the sum (`enum table`).
pub(crate) mod table {

    pub(crate) const PIO: u8 = 1;
    pub(crate) const MMIO: u8 = 2;
    pub(crate) const MSR: u8 = 3;
    pub(crate) const FAST_MMIO: u8 = 4;
}

/// Whose table an exit reason is from (`struct key`).
pub(crate) mod kind {
    pub(crate) const VMX: u8 = 1;
    pub(crate) const SVM: u8 = 2;
    pub(crate) const ARM64: u8 = 3;
}

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RawKey {
    pub(crate) tid: u32,
    pub(crate) table: u8,
    pub(crate) kind: u8,
    pub(crate) unused: [u8; 2],
    pub(crate) code: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawRow {
    pub(crate) key: RawKey,
    pub(crate) count: u64,
    pub(crate) total: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) user_count: u64,
    pub(crate) whole: u64,
    pub(crate) times: [u64; STATES],
    pub(crate) buckets: [u64; BUCKETS],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawDurations {
    pub(crate) count: u64,
    pub(crate) total: u64,
    pub(crate) max: u64,
    pub(crate) buckets: [u64; BUCKETS],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawBegin {
    pub(crate) at: u64,
    pub(crate) code: u64,
    pub(crate) write: u8,
    pub(crate) has_key: u8,
    pub(crate) unused: [u8; 6],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawVcpu {
    pub(crate) finished: u64,
    pub(crate) tid: u32,
    pub(crate) tgid: u32,
    pub(crate) number: i32,
    pub(crate) cpu: i32,
    pub(crate) first: u64,
    pub(crate) at: u64,
    pub(crate) ended: u64,
    pub(crate) times: [u64; STATES],
    pub(crate) exits: u64,
    pub(crate) entries: u64,
    pub(crate) before_entry: u64,
    pub(crate) without_entry: u64,
    pub(crate) polls_succeeded: u64,
    pub(crate) polls_succeeded_ns: u64,
    pub(crate) polls_failed: u64,
    pub(crate) polls_failed_ns: u64,
    pub(crate) unpolled: u64,
    pub(crate) unpolled_ns: u64,
    pub(crate) woken: RawDurations,
    pub(crate) preempted: RawDurations,
    pub(crate) exit_at: u64,
    pub(crate) exit_code: u64,
    pub(crate) exit_times: [u64; STATES],
    pub(crate) pio: RawBegin,
    pub(crate) mmio: RawBegin,
    pub(crate) msr: RawBegin,
    pub(crate) fast: RawBegin,
    pub(crate) first_port: u64,
    pub(crate) halt_at: u64,
    pub(crate) halt_busy: u64,
    pub(crate) halt_blocked: u64,
    pub(crate) halt_unknown: u64,
    pub(crate) first_sleep: [u64; 4],
    pub(crate) last_sleep: [u64; 4],
    pub(crate) idle_until: u64,
    pub(crate) unknown_until: u64,
    pub(crate) poll_ns: u64,
    pub(crate) polled_ns: u64,
    pub(crate) wait_from: u64,
    pub(crate) early_at: u64,
    pub(crate) early_cpu: i32,
    pub(crate) exit_kind: u8,
    pub(crate) place: u8,
    pub(crate) sched: u8,
    pub(crate) waiting: u8,
    pub(crate) vmm: u8,
    pub(crate) known: u8,
    pub(crate) open: u8,
    pub(crate) was_woken: u8,
    pub(crate) first_port_is: u8,
    pub(crate) knows_poll: u8,
    pub(crate) knows_polled: u8,
    pub(crate) loaded_from: u8,
    pub(crate) other: u8,
    pub(crate) unused: [u8; 7],
    pub(crate) touched: u32,
    pub(crate) slot: u32,
    pub(crate) changes: u64,
}

/// A vCPU's rows: one more than each one's place, 0 where there is none.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawIndex {
    pub(crate) rows: [u32; INDEX],
    pub(crate) next: u32,
    pub(crate) left: u32,
}

impl RawIndex {
    /// No row.
    pub(crate) const EMPTY: RawIndex = RawIndex {
        rows: [0; INDEX],
        next: 0,
        left: 0,
    };

    /// Returns the places of the rows.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> {
        let rows = self.rows.into_iter();
        rows.filter_map(|row| row.checked_sub(1))
    }
}

#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlameKey {
    pub(crate) tid: u32,
    pub(crate) by: u32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blame {
    pub(crate) count: u64,
    pub(crate) ns: u64,
    pub(crate) comm: [u8; 16],
}

impl Blame {
    /// Nothing yet.
    pub(crate) const NONE: Blame = Blame {
        count: 0,
        ns: 0,
        comm: [0; 16],
    };
}

/// Positions in `dropped`.
pub(crate) mod dropped {
    pub(crate) const VCPUS: u32 = 0;
    pub(crate) const ROWS: u32 = 1;
    pub(crate) const BLAMES: u32 = 2;
    pub(crate) const WAITING: u32 = 3;
}

/// Where the fields of records are, and what the programs have to know of reasons.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawLayout {
    pub(crate) exit_reason: i32,
    pub(crate) exit_isa: i32,
    pub(crate) exit_ret: i32,
    pub(crate) exit_class: i32,
    pub(crate) exit_vcpu: i32,
    pub(crate) switch_prev_pid: i32,
    pub(crate) switch_prev_state: i32,
    pub(crate) switch_prev_state_size: i32,
    pub(crate) switch_prev_comm: i32,
    pub(crate) switch_next_pid: i32,
    pub(crate) wakeup_pid: i32,
    pub(crate) wakeup_target: i32,
    pub(crate) migrate_pid: i32,
    pub(crate) migrate_dest: i32,
    pub(crate) end_pid: i32,
    pub(crate) arm_trap: u32,
    pub(crate) waiting_count: u32,
    pub(crate) unused: u32,
    pub(crate) waiting: [u64; MAX_WAITING],
}

/// Places (`enum place`).
pub(crate) const GUEST: u8 = 1;
pub(crate) const KERNEL: u8 = 2;
pub(crate) const USER: u8 = 3;
pub(crate) const USER_HALTED: u8 = 4;
const NO_PLACE: u8 = 5;

/// Whether a thread has a CPU (`enum sched`).
pub(crate) const RUNNING: u8 = 0;
pub(crate) const RUNNABLE: u8 = 1;
const BLOCKED: u8 = 2;

/// Stands for tasks that found no room (`MANY`).
pub(crate) const MANY: u32 = u32::MAX;

impl RawVcpu {
    /// Returns a thread that is known to be a vCPU, and of which no event was seen.
    pub(crate) fn seed(tid: u32, tgid: u32, number: i32, now_ns: u64) -> RawVcpu {
        let none = RawBegin {
            at: 0,
            code: 0,
            write: 0,
            has_key: 0,
            unused: [0; 6],
        };
        let durations = RawDurations {
            count: 0,
            total: 0,
            max: 0,
            buckets: [0; BUCKETS],
        };
        RawVcpu {
            finished: 0,
            tid,
            tgid,
            number,
            cpu: -1,
            first: now_ns,
            at: now_ns,
            ended: 0,
            times: [0; STATES],
            exits: 0,
            entries: 0,
            before_entry: 0,
            without_entry: 0,
            polls_succeeded: 0,
            polls_succeeded_ns: 0,
            polls_failed: 0,
            polls_failed_ns: 0,
            unpolled: 0,
            unpolled_ns: 0,
            woken: durations,
            preempted: durations,
            exit_at: 0,
            exit_code: 0,
            exit_times: [0; STATES],
            pio: none,
            mmio: none,
            msr: none,
            fast: none,
            first_port: 0,
            halt_at: now_ns,
            halt_busy: 0,
            halt_blocked: 0,
            halt_unknown: 0,
            first_sleep: [0; 4],
            last_sleep: [0; 4],
            idle_until: 0,
            unknown_until: 0,
            poll_ns: 0,
            polled_ns: 0,
            wait_from: 0,
            early_at: 0,
            early_cpu: -1,
            exit_kind: 0,
            place: 0,
            sched: 0,
            waiting: 0,
            vmm: 0,
            known: 0,
            open: 0,
            was_woken: 0,
            first_port_is: 0,
            knows_poll: 0,
            knows_polled: 0,
            loaded_from: NO_PLACE,
            other: 0,
            unused: [0; 7],
            touched: 0,
            slot: 0,
            changes: 0,
        }
    }

    /// Returns a thread that is no vCPU, and what it did last.
    pub(crate) fn other(tid: u32, vm: u32, asleep: bool, cpu: i32, now_ns: u64) -> RawVcpu {
        RawVcpu {
            other: 1,
            place: USER,
            sched: if asleep { BLOCKED } else { RUNNING },
            cpu,
            ..RawVcpu::seed(tid, vm, -1, now_ns)
        }
    }
}

// SAFETY: plain numbers, laid out as C does, without padding (the test below), for which any bytes are a value.
unsafe impl Pod for RawKey {}
// SAFETY: as above.
unsafe impl Pod for RawRow {}
// SAFETY: as above.
unsafe impl Pod for RawIndex {}
// SAFETY: as above.
unsafe impl Pod for RawVcpu {}
// SAFETY: as above.
unsafe impl Pod for BlameKey {}
// SAFETY: as above.
unsafe impl Pod for Blame {}
// SAFETY: as above.
unsafe impl Pod for RawLayout {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_have_no_padding() {
        assert_eq!(size_of::<RawKey>(), 4 + 4 + 8);
        assert_eq!(size_of::<RawRow>(), 8 * (2 + 6 + STATES + BUCKETS));
        assert_eq!(size_of::<RawIndex>(), 4 * (INDEX + 2));
        assert_eq!(size_of::<RawDurations>(), 8 * (3 + BUCKETS));
        assert_eq!(size_of::<RawBegin>(), 24);
        let words = 1
            + 2
            + 3
            + STATES
            + 10
            + 2 * (3 + BUCKETS)
            + 2
            + STATES
            + 4 * 3
            + 5
            + 8
            + 6
            + 3
            + 1
            + 1;
        assert_eq!(size_of::<RawVcpu>(), 8 * words);
        assert_eq!(size_of::<BlameKey>(), 8);
        assert_eq!(size_of::<Blame>(), 32);
        assert_eq!(size_of::<RawLayout>(), 4 * 18 + 8 * MAX_WAITING);
    }
}
