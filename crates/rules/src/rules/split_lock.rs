//! The host holds a guest back for each locked access that crosses a cache line.

use event::{ExitClass, ExitReason, Isa};
use words::duration::human;

use facts::{KernelLogLine, LogKind};

use crate::evidence::{Evidence, Many, Ns, says};
use crate::kernel_log;
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

/// How sure it is where the host's kernel log names a vCPU's thread, with exits and without.
const LOGGED: f64 = 0.95;
const LOGGED_ALONE: f64 = 0.6;

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
        "With the host's kernel log (`trapline record` brings what was written to it meanwhile; `--facts` takes the \
         text of dmesg): where it names the thread of a vCPU during the recording, one such exit is enough, and the \
         confidence is 0.95. The log alone, without exits: 0.6 and `low`, since it does not say how often it was. \
         Lines of another time raise nothing.",
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
    // The kernel says it of a thread once, or seldom: how often it was is in the exits.
    let logged = case.logged_of_vcpus(LogKind::SplitLock);
    if !case.has_exits() {
        if let Some(said) = kernel_log::said(&logged) {
            return by_log(&logged, said).found();
        }
        return Verdict::Unknown("Record kvm:kvm_exit and kvm:kvm_entry.".to_owned());
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let rows = case.picture.exits_that(may_be_alignment);
    let typical = |stats: &analysis::Stats| match case.printed() {
        true => stats.mean(),
        false => stats.percentile(0.5),
    };
    let least = if logged.is_empty() { LEAST } else { 1 };
    let held = rows.into_iter().find(|row| {
        let each = typical(&row.stats);
        row.stats.count() >= least && (EACH_NS..=MOST_NS).contains(&each)
    });
    let Some(row) = held else {
        return Verdict::Clear;
    };
    let stats = &row.stats;
    let confidence = match (logged.is_empty(), case.printed()) {
        (false, _) => LOGGED,
        (true, true) => 0.6,
        (true, false) => 0.8,
    };
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Counts)
        .cost(case.vcpu_cost(stats.total()))
        .title(format!(
            "The host held the guest back {} for split locks, {} each",
            words::times(stats.count()),
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
    if let Some(said) = kernel_log::said(&logged) {
        finding = finding.evidence(said);
    }
    finding.at_least = Severity::Medium;
    finding.found()
}

/// Without exits the log shows that it is so, and not how often.
fn by_log(logged: &[&KernelLogLine], said: Evidence) -> Finding {
    let mut finding = Finding::new(&RULE, LOGGED_ALONE)
        .rests_on(RestsOn::Counts)
        .title(format!(
            "The host's kernel log has {} of split locks of vCPUs",
            words::plural(logged.len(), "line")
        ))
        .evidence(said)
        .evidence(
            "It says so of each thread once, or some times: how often it was, and whether the thread was held back, \
             was not recorded (kvm:kvm_exit and kvm:kvm_entry).",
        );
    finding.at_most = Severity::Low;
    finding
}
