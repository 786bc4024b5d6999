//! What the programs keep, as it is handed out.

use event::{ExitReason, Isa};
use model::{GuestAccess, Polls, State, Times};

use crate::raw;
use counts::{DurationBuckets, LiveRow, LiveVcpu, RowSubject, WaitBehind};

fn times(times: &[u64; raw::STATES]) -> Times {
    let mut sum = Times::default();
    for (state, ns) in State::ALL.into_iter().zip(times) {
        sum.add(state, *ns);
    }
    sum
}

fn durations(raw: &raw::RawDurations) -> DurationBuckets {
    DurationBuckets {
        count: raw.count,
        total_ns: raw.total,
        max_ns: raw.max,
        buckets: raw.buckets.to_vec(),
    }
}

/// The state that place and scheduling make: `state_of` of `bpf/state.h`.
fn state(vcpu: &raw::RawVcpu) -> State {
    use raw::{GUEST, KERNEL, RUNNABLE, RUNNING, USER, USER_HALTED};
    match (vcpu.sched, vcpu.place) {
        (RUNNABLE, _) => State::Runnable,
        (RUNNING, GUEST) => State::Guest,
        (RUNNING, KERNEL) => State::Kernel,
        (RUNNING, USER | USER_HALTED) => State::User,
        (_, KERNEL) if vcpu.waiting != 0 => State::Halted,
        (_, KERNEL) => State::KernelBlocked,
        (_, USER_HALTED) => State::Halted,
        (_, USER) => State::UserBlocked,
        _ => State::Unknown,
    }
}

/// Returns a vCPU, with the time up to `now_ns` as what it was last seen doing.
pub(crate) fn vcpu(raw: &raw::RawVcpu, now_ns: u64) -> LiveVcpu {
    let mut times = times(&raw.times);
    if raw.ended == 0 {
        times.add(state(raw), now_ns.saturating_sub(raw.at));
    }
    LiveVcpu {
        tid: raw.tid.cast_signed(),
        pid: raw.tgid.cast_signed(),
        number: u32::try_from(raw.number).ok(),
        ended: raw.ended != 0,
        times,
        exits: raw.exits,
        before_first_entry: raw.before_entry,
        without_entry: raw.without_entry,
        polls: Polls {
            succeeded: raw.polls_succeeded,
            succeeded_ns: raw.polls_succeeded_ns,
            failed: raw.polls_failed,
            failed_ns: raw.polls_failed_ns,
            unpolled: raw.unpolled,
            unpolled_ns: raw.unpolled_ns,
        },
        woken: durations(&raw.woken),
        preempted: durations(&raw.preempted),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the programs put numbers of these sizes there"
)]
fn what(key: &raw::RawKey) -> RowSubject {
    use raw::{kind, table};
    let write = key.kind != 0;
    let code = key.code as u32;
    match key.table {
        table::PIO => RowSubject::Access(GuestAccess::Port {
            port: key.code as u16,
            write,
        }),
        table::MMIO => RowSubject::Access(GuestAccess::Mmio {
            gpa: key.code,
            write,
        }),
        table::MSR => RowSubject::Access(GuestAccess::Msr { msr: code, write }),
        table::FAST_MMIO => RowSubject::FastMmio { gpa: key.code },
        _ => RowSubject::Exit(match key.kind {
            kind::ARM64 => ExitReason::arm64(code, (key.code >> 32) as u32),
            kind::SVM => ExitReason {
                isa: Isa::Svm,
                code,
            },
            _ => ExitReason {
                isa: Isa::Vmx,
                code,
            },
        }),
    }
}

/// Returns a row.
pub(crate) fn row(raw: &raw::RawRow) -> LiveRow {
    let key = &raw.key;
    LiveRow {
        tid: key.tid.cast_signed(),
        what: what(key),
        durations: DurationBuckets {
            count: raw.count,
            total_ns: raw.total,
            max_ns: raw.max,
            buckets: raw.buckets.to_vec(),
        },
        min_ns: Some(raw.min),
        user_count: raw.user_count,
        whole_ns: raw.whole,
        times: times(&raw.times),
    }
}

/// Returns behind whom a vCPU waited.
pub(crate) fn behind(key: &raw::BlameKey, raw: &raw::Blame) -> WaitBehind {
    let end = raw.comm.iter().position(|byte| *byte == 0);
    let comm = &raw.comm[..end.unwrap_or(raw.comm.len())];
    WaitBehind {
        tid: key.tid.cast_signed(),
        by_tid: key.by.cast_signed(),
        comm: (!comm.is_empty()).then(|| String::from_utf8_lossy(comm).into_owned()),
        count: raw.count,
        ns: raw.ns,
    }
}
