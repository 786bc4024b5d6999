//! A guest's kernel runs a few instructions for ever.

use analysis::{ProgressRow, SpinRun};

use crate::evidence::{Many, Ns, Of, says};
use crate::{
    AccountPart, Case, EvidenceNumber, ExplainedTime, Finding, Precedence, RecordNeeds, Remedy,
    RestsOn, Rule, RuleLook, Severity, Verdict,
};

/// Shorter ones are no hang: a lock, a loop over much memory.
const LONG_NS: u64 = 1_000_000_000;
/// So many interrupts of the host found it there: some tens a second are the least that a host has.
const LEAST: u64 = 30;
/// It is what the vCPU did, and did to the end, or for this share of its time.
const SHARE: f64 = 0.5;

pub(crate) static RULE: Rule = Rule {
    id: "guest-spins",
    title: "A guest's kernel runs the same few instructions all the time",
    described_as: &[
        "a vCPU is at 100 % though the guest does nothing",
        "the guest hangs and burns CPU",
        "host shows 100 %, guest shows idle",
        "soft lockup in the guest",
    ],
    looks_at: "where the host's interrupts found the guest of each vCPU: whether its kernel was within one function \
        each time, and whether it did anything else meanwhile",
    needs: "kvm_exit with the guest's address, for a second or more",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "The guest waits in a loop of its kernel: for a lock that nobody releases, for another CPU that does not \
        answer, or in a panic. Or it is idle and polls, as with idle=poll on its command line.",
    found: &[
        "{least} exits for the host's interrupts, for KVM's timer or for PAUSE, {long} or more from the first to the \
         last, all but one in ten at addresses of the guest's kernel that are within 512 bytes; no exit between by \
         which it asks for something (a halt, a device, memory), and at most four for its timer and its interrupts for \
         each sample; up to the vCPU's last exit, or for {share} of its \
         time. Where its own timer did not interrupt it either (no exit for a register, on x86), its interrupts are \
         off: 0.6, `medium`. Else 0.4 and `low`: a guest with idle=poll that is idle looks the same.",
    ],
    limits: &[
        ("least", EvidenceNumber::Count(LEAST)),
        ("long", EvidenceNumber::Nanoseconds(LONG_NS)),
        ("share", EvidenceNumber::Share(SHARE)),
    ],
    seen_from: "{least} interrupts of the host in {long} that find the guest's kernel within 512 bytes",
    unknown: "*exits*: the events have the guest's address. A host that does not interrupt its vCPUs (`nohz_full=`) \
        does not see it.",
    advice: "",
    looks_alike: "A guest with idle=poll that is idle; a program of the guest that computes is not looked at.",
    remedies: &[
        Remedy {
            what: "Name the function: trapline exits --by function --guest-kallsyms FILE REC, with the guest's \
                /proc/kallsyms; and look at the guest's console (a panic, a soft lockup, an RCU stall).",
            price: "None.",
            unless: "The guest was booted with idle=poll and is idle.",
            check: "trapline diagnose of a new recording: the vCPU's exits come from other places.",
        },
        Remedy {
            what: "If it does not answer: make it dump its memory (virsh dump --memory-only, or virsh inject-nmi with \
                kernel.unknown_nmi_panic=1 and kdump in the guest), and read the stacks of all its CPUs in crash.",
            price: "The guest stands still while it is written; with an NMI it ends.",
            unless: "It still does its work on other vCPUs.",
            check: "crash: bt -a.",
        },
    ],
    sources: &[
        "Linux, kernel/panic.c; kernel/locking/qspinlock.c; kernel/smp.c (csd_lock_wait)",
        "Linux, kernel/sched/idle.c (cpu_idle_poll)",
    ],
    explains: &[
        ExplainedTime::Part(AccountPart::Guest),
        ExplainedTime::AllExits,
    ],
    look: RuleLook::Case(look),
};

fn look(case: &Case<'_>) -> Verdict {
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    if case.printed() || case.picture.progress.rows.is_empty() {
        return Verdict::Unknown("Record kvm:kvm_exit and kvm:kvm_entry.".to_owned());
    }
    let rows = case.picture.progress.rows.iter();
    let spins = rows.filter(|row| spins(row));
    let Some(row) = spins.max_by_key(|row| (is_silent(case, row), row.spin.ns())) else {
        return Verdict::Clear;
    };
    say(case, row).found()
}

/// Returns whether a vCPU's guest hangs: it spins in its kernel, with interrupts off.
pub(crate) fn hangs(case: &Case<'_>, row: &ProgressRow) -> bool {
    spins(row) && is_silent(case, row)
}

/// Whether a vCPU's guest was at one place for long.
fn spins(row: &ProgressRow) -> bool {
    let run = &row.spin;
    let observed = row.to.saturating_sub(row.from);
    let most = run.ns() as f64 >= observed as f64 * SHARE;
    // Up to its last exit: what came behind is no longer than between two samples.
    let gap = run.ns() / run.samples.max(1);
    let to_the_end = row.to.saturating_sub(run.to) <= gap.saturating_mul(4);
    run.samples >= LEAST && run.ns() >= LONG_NS && (most || to_the_end)
}

/// Whether its own timer did not interrupt it. On arm64 it sets that without an exit.
fn is_silent(case: &Case<'_>, row: &ProgressRow) -> bool {
    case.x86() && row.spin.of_timer == 0
}

fn say(case: &Case<'_>, row: &ProgressRow) -> Finding {
    let run: SpinRun = row.spin;
    let vcpu = case.vcpu_called(row.tid);
    let silent = is_silent(case, row);
    let (low, high) = run.place;
    let confidence = match silent {
        true => 0.6,
        false => 0.4,
    };
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Absence)
        .cost(case.vcpu_cost(run.ns()))
        .title(format!(
            "The guest's kernel of {} was at {low:#x} to {high:#x} for {}",
            vcpu.called,
            words::duration::human(run.ns()),
        ))
        .evidence(says!(
            "{found} of {samples} of the host's interrupts found {vcpu} there, in {time}. It asked for nothing \
             meanwhile.",
            found = run.samples,
            samples = Many(run.samples.saturating_add(run.strays), "sample"),
            vcpu = vcpu.clone(),
            time = Ns(run.ns()),
        ));
    if run.pauses > 0 {
        finding = finding.evidence(says!(
            "{pauses} of them are exits for PAUSE ({share}): it waits for a lock, or for another CPU.",
            pauses = run.pauses,
            share = Of(run.pauses, run.samples),
        ));
    }
    finding = match silent {
        true => finding.evidence(
            "Its own timer did not interrupt it: it runs with interrupts off, as in a panic, or waiting for a lock \
             that is taken so.",
        ),
        false if case.x86() => finding.evidence(says!(
            "Its timer went on meanwhile ({exits}): interrupts are on. A guest that was booted with idle=poll, and is \
             idle, looks the same.",
            exits = Many(run.of_timer, "exit"),
        )),
        false => finding.evidence("A guest that polls when it is idle looks the same."),
    };
    finding = finding.evidence(says!(
        "To see them: {shown}.",
        shown = case.command(run.from, run.to),
    ));
    match silent {
        true => {
            finding.precedence = Precedence::NoProgress;
            finding.at_most = Severity::Medium;
        }
        false => finding.at_most = Severity::Low,
    }
    finding
}
