//! One stall of a vCPU in words.

use analysis::{Ran, Stall, StallCause};

use crate::Case;
use crate::evidence::{Evidence, Ns, ThreadMention, says};

/// One stall in words.
pub(crate) fn sentence(case: &Case<'_>, stall: &Stall) -> Evidence {
    let mut sentence = says!(
        "{vcpu} stalled for {time}",
        vcpu = case.vcpu_called(stall.tid).capital(),
        time = Ns(stall.ns()),
    );
    if let Some(reason) = stall.reason {
        sentence = sentence.then(says!(
            " in an exit for {reason}",
            reason = reason.key().as_ref()
        ));
    }
    sentence = sentence.then(held(case, stall));
    let asleep = matches!(stall.held, StallCause::Vmm | StallCause::Stopped);
    if !asleep && stall.vmm_ns >= stall.ns() / 2 {
        sentence = sentence.then("; the VMM had it".into());
    }
    if stall.is_open {
        sentence = sentence.then(", and was not over when the recording ended".into());
    }
    if let Some(waker) = &stall.waker {
        sentence = sentence.then(woken(waker, stall.held));
    }
    sentence.then(says!(
        ": {shown}.",
        shown = case.command(stall.from, stall.to)
    ))
}

/// What held it.
fn held(case: &Case<'_>, stall: &Stall) -> Evidence {
    let held = Ns(stall.held_ns);
    match stall.held {
        StallCause::Stopped => says!(", {held} of it in state T, stopped", held = held),
        StallCause::Vmm => says!(", {held} of it asleep in the VMM", held = held),
        StallCause::Kernel => says!(", {held} of it asleep in KVM", held = held),
        StallCause::Busy => says!(", {held} of it on its CPU", held = held),
        StallCause::Host => says!(", {held} of it without any event on its CPU", held = held),
        StallCause::Unknown if switches(case) => says!(
            ", {held} of it on its CPU, or while its CPU was idle (sched:sched_stat_runtime shows whether it ran or \
             the host stood still)",
            held = held,
        ),
        StallCause::Unknown | StallCause::Behind => Evidence::default(),
    }
}

/// Who woke it.
fn woken(waker: &Ran, held: StallCause) -> Evidence {
    let name = match &waker.comm {
        Some(comm) => ThreadMention::named(comm, waker.tid),
        None => ThreadMention {
            called: format!("thread {}", waker.tid),
            tid: waker.tid,
        },
    };
    match (held, waker.tid, waker.ns) {
        (StallCause::Stopped, _, _) => says!("; {waker} woke it", waker = name),
        (_, 0, _) => "; an interrupt on an idle CPU woke it".into(),
        (_, _, 0) => says!("; {waker} woke it", waker = name),
        (_, _, ns) => says!(
            "; its waker {waker} ran {ran} meanwhile",
            waker = name,
            ran = Ns(ns),
        ),
    }
}

/// Whether it was recorded who had CPUs.
fn switches(case: &Case<'_>) -> bool {
    let report = case.picture.vcpus.as_ref();
    report.is_some_and(|report| report.seen.switches)
}
