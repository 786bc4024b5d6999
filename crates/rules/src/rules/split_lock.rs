//! The host holds a guest back for each locked access that crosses a cache line.

use event::{ExitClass, ExitReason, Isa};
use words::duration::human;

use crate::evidence::{Many, Ns, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, RestsOn, Rule, RuleLook,
    Severity, Verdict,
};

/// Fewer may be something else that was slow once.
const LEAST: u64 = 5;
/// The host sleeps for 10 ms each time (`split_lock_warn` in arch/x86/kernel/cpu/bus_lock.c); a tick less is left for
/// rounding.
const EACH_NS: u64 = 9_000_000;
/// It sleeps no longer, but it may wait for a CPU, or for another that is being held back.
const MOST_NS: u64 = 200_000_000;

pub(crate) static RULE: Rule = Rule {
    id: "split-lock",
    title: "The host holds the guest back for split locks",
    described_as: &[
        "a guest freezes for 10 ms again and again",
        "took a split_lock trap in the host's kernel log",
        "x86/split lock detection slows a game or a VM",
        "#AC at address",
    ],
    looks_at: "exits for an exception (alignment check) that take 10 ms each, and exits for bus locks",
    needs: "kvm_exit and kvm_entry, or the table of perf kvm stat",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "A program in the guest makes locked accesses that cross a cache line. They would hold the memory bus of \
        the whole host, so the host traps each (#AC) and makes its vCPU sleep for 10 ms.",
    found: &[
        "{least} exits for exceptions (EXCEPTION_NMI, on AMD #AC) of which half take {each} to {most}; exits for a \
         bus lock count as they are. Confidence 0.8: no other exception is handled for so long. 0.6 of a printed \
         table, by the mean. At least `medium`.",
    ],
    limits: &[
        ("least", EvidenceNumber::Count(LEAST)),
        ("each", EvidenceNumber::Nanoseconds(EACH_NS)),
        ("most", EvidenceNumber::Nanoseconds(MOST_NS)),
    ],
    seen_from: "{least} exits for exceptions of which half take {each}",
    unknown: "*exits*, or a printed table.",
    advice: "",
    looks_alike: "",
    remedies: &[
        Remedy {
            what: "Find the program and have it mended: the host's kernel log names the vCPU's thread and the guest's \
                address (\"took a split_lock trap\"); in the guest, perf record -e sq_misc.split_lock (Intel).",
            price: "The program has to be changed: a locked variable must not cross 64 bytes.",
            unless: "It cannot be changed: see the next.",
            check: "trapline exits: no exceptions that take 10 ms; the host's log has no new line.",
        },
        Remedy {
            what: "Host: let such accesses pass with a warning alone: sysctl kernel.split_lock_mitigate=0; or do not \
                look for them: split_lock_detect=off on the host's command line.",
            price: "Each of them holds the memory bus of the whole host for a thousand cycles: other guests are \
                slower.",
            unless: "The host is shared with guests that nobody trusts: it is how one of them slows all others.",
            check: "trapline exits of a new recording.",
        },
    ],
    sources: &[
        "Linux, arch/x86/kernel/cpu/bus_lock.c (split_lock_warn, handle_guest_split_lock); arch/x86/kvm/vmx/vmx.c \
         (handle_exception_nmi)",
        "Linux, Documentation/arch/x86/buslock.rst; Documentation/admin-guide/sysctl/kernel.rst (split_lock_mitigate)",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Exception),
        ExplainedTime::Exits(ExitClass::BusLock),
        ExplainedTime::Asleep,
    ],
    look: RuleLook::Case(look),
};

/// Whether an alignment check may be the exception: VMX has one reason for all.
fn may_be_alignment(reason: ExitReason) -> bool {
    reason.is_of(Isa::Vmx, &[0]) || reason.is_of(Isa::Svm, &[0x51])
}

fn look(case: &Case<'_>) -> Verdict {
    if !case.x86() {
        return Verdict::NotOfMachine;
    }
    if !case.has_exits() {
        return Verdict::Unknown(
            "Record kvm:kvm_exit and kvm:kvm_entry (perf kvm stat record).".to_owned(),
        );
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let rows = case.picture.exits_that(may_be_alignment);
    let typical = |stats: &analysis::Stats| match case.printed() {
        true => stats.mean(),
        false => stats.percentile(0.5),
    };
    let held = rows.into_iter().find(|row| {
        let each = typical(&row.stats);
        row.stats.count() >= LEAST && (EACH_NS..=MOST_NS).contains(&each)
    });
    let Some(row) = held else {
        return Verdict::Clear;
    };
    let stats = &row.stats;
    let confidence = match case.printed() {
        true => 0.6,
        false => 0.8,
    };
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Counts)
        .cost(case.vcpu_cost(stats.total()))
        .title(format!(
            "The host held the guest back {} times for split locks, {} each",
            stats.count(),
            human(typical(stats))
        ))
        .evidence(case.says_exits(&row.key, crate::case::RowSum::of([row])))
        .evidence(says!(
            "{exits} took {each}: the host handles other exceptions in microseconds, and makes a vCPU sleep for a \
             locked access that crosses a cache line.",
            exits = Many(stats.count(), "exit"),
            each = Ns(typical(stats)),
        ));
    let locks = case.exits_of_class(ExitClass::BusLock);
    if locks.count > 0 {
        finding = finding.evidence(says!(
            "Beside them {exits} for bus locks.",
            exits = Many(locks.count, "exit"),
        ));
    }
    finding.at_least = Severity::Medium;
    finding.found()
}
