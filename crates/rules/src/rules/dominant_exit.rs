//! One exit reason takes a large share of the time, and the recording does not say what it was for.

use analysis::{ExitRow, ExitTable};
use event::{ExitClass, Isa};
use model::State;
use words::duration::human;

use crate::counted::CountedExits;
use crate::evidence::{Evidence, Ns, Of, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, FindingCost, RecordNeeds, Remedy, Rule, RuleLook,
    Severity, TimeAccounts, Verdict,
};

/// Of a printed table: share of the time of exits without waiting. Healthy: `case4-vhost` (75 %).
const OF_HANDLING: f64 = 0.8;
/// Of a printed table: share of the time of all exits, halts included: an idle guest's exits are none of its costs.
const OF_EXITS: f64 = 0.2;
/// How sure it is where exits were counted alone: what they took may be little.
const BY_COUNTS: f64 = 0.4;
/// Fewer are no habit.
const LEAST: u64 = 100;
/// Registers of a sort that are listed.
const LISTED: usize = 3;

pub(crate) static RULE: Rule = Rule {
    id: "dominant-exit",
    title: "One exit reason takes a large share of the vCPUs' time",
    described_as: &[
        "one exit reason takes nearly all the time in perf kvm stat",
        "too many VM-exits",
        "high %sys of the QEMU process",
        "many CPUID or MSR exits",
    ],
    looks_at: "the time of exits by reason, where no other finding explains it and the recording does not say which \
        port, address or register it was",
    needs: "kvm_exit and kvm_entry, or what perf kvm stat report or kvmexit prints",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "The guest does something again and again that its hypervisor has to do for it. What it is, the reason says \
        in part; the port, the address, the register, or the place in the guest's code says the rest.",
    found: &[
        "The exits of one reason, {least} or more, that is no waiting, take more of the vCPUs' time than is \
         normal (12.5 % in KVM, 12.5 % in the VMM, 25 % where it is not known in which), and no other finding \
         explains them. Of a printed table: {handling} of the time without waiting and \
         {all} of all its time. At most `medium` then. Confidence 0.5: it is certain that the time goes there, not \
         what for.",
        "Of exits that were counted by reason and not timed (`kvmexit`, `kvm_stat`, `bpftrace`): {least} or more of \
         one reason that are {handling} of those without waiting. Confidence 0.4 and `low`: what they took is not \
         known.",
        "Exits for ports, emulated memory and registers are left to [unexplained-time](#unexplained-time) where their \
         addresses were recorded.",
    ],
    limits: &[
        ("handling", EvidenceNumber::Share(OF_HANDLING)),
        ("all", EvidenceNumber::Share(OF_EXITS)),
        ("least", EvidenceNumber::Count(LEAST)),
    ],
    seen_from: "{least} exits of one reason that take an eighth of the vCPUs' time (of a printed table \
        {handling} of the time without waiting)",
    unknown: "*exits*, or a printed table.",
    advice: "Which remedy comes first depends on the reason.",
    looks_alike: "Each other rule of exits looks at the same time with more detail; this one is what they leave.",
    remedies: &[
        Remedy {
            what: "Find the place in the guest: trapline exits --by function --guest-kallsyms FILE REC, or perf kvm \
                --guest record in the host. A loop of CPUID is mostly a lock or a time measurement that serializes \
                with it, or a probe for a hypervisor.",
            price: "None.",
            unless: "The guest starts: then these exits end by themselves.",
            check: "trapline exits of a new recording: fewer of this reason.",
        },
        Remedy {
            what: "Record which ports, addresses and registers they are for (trapline record --for exits), \
                or add what perf kvm stat report --event=ioport and --event=mmio print.",
            price: "More events.",
            unless: "A table of registers is long where a guest writes many.",
            check: "trapline diagnose of the new recording.",
        },
    ],
    sources: &[
        "Intel SDM volume 3, appendix C (exit reasons); AMD APM volume 2, appendix C (exit codes)",
        "Linux, arch/x86/kvm/cpuid.c (kvm_emulate_cpuid)",
    ],
    explains: &[],
    look: RuleLook::Account(look),
};

/// Positions of the remedies.
const PLACE: usize = 0;
const RECORD: usize = 1;

/// The table that says which register, port or address exits of a class are for, and the event that fills it.
fn detail(class: ExitClass) -> Option<(&'static str, ExitTable)> {
    match class {
        ExitClass::Port => Some(("kvm_pio", ExitTable::Ioport)),
        ExitClass::Mmio | ExitClass::PageFault => Some(("kvm_mmio", ExitTable::Mmio)),
        ExitClass::Msr => Some(("kvm_msr", ExitTable::Msr)),
        _ => None,
    }
}

fn class(row: &ExitRow) -> ExitClass {
    row.reason.map_or(ExitClass::Other, |reason| reason.class())
}

/// What KVM and the VMM did for the exits of a reason.
fn handled_ns(row: &ExitRow) -> u64 {
    let Some(times) = &row.times else {
        return row.stats.total();
    };
    // Without kvm_userspace_exit it is not known which of them it was.
    let states = [State::Kernel, State::User, State::Unknown];
    let ns = states.iter().map(|state| times.get(*state));
    ns.fold(0, u64::saturating_add)
}

fn look(case: &Case<'_>, accounts: &TimeAccounts) -> Verdict {
    if !case.has_exits() {
        return match by_counts(case) {
            Some(finding) => finding.found(),
            None => Verdict::Unknown("Record kvm:kvm_exit and kvm:kvm_entry.".to_owned()),
        };
    }
    let candidates = case.picture.rows(ExitTable::Vmexit).iter().filter(|row| {
        let recorded = detail(class(row)).is_some_and(|(event, table)| case.records(event, table));
        !row.waiting && row.stats.count() >= LEAST && !recorded && class(row) != ExitClass::End
    });
    let Some(row) = candidates.max_by_key(|row| handled_ns(row)) else {
        return Verdict::Clear;
    };
    let ns = handled_ns(row).min(left(accounts, class(row)));
    let large = match case.picture.observed_ns() {
        0 => {
            let (all, handling) = (case.all_exits().ns, case.handling_ns());
            ns as f64 >= handling as f64 * OF_HANDLING && ns as f64 >= all as f64 * OF_EXITS
        }
        _ => {
            let begin = format!("{} exits ", row.key);
            let mut rows = accounts.vcpus.unexplained().into_iter();
            rows.any(|row| row.name.starts_with(&begin))
        }
    };
    if !large || ns == 0 {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    say(case, row, ns).found()
}

/// Most exits are of one reason, where a tool counted them and did not time them.
fn by_counts(case: &Case<'_>) -> Option<Finding> {
    let CountedExits { all, handled, most } = case.counted_exits()?;
    if most.count < LEAST || (most.count as f64) < handled as f64 * OF_HANDLING {
        return None;
    }
    let class = (most.reason).map_or(ExitClass::Other, |reason| reason.class());
    let share = words::share::of(most.count, all);
    let mut finding = Finding::new(&RULE, BY_COUNTS)
        .title(format!("{share} of the exits are {}{}", most.key, likely(class)))
        .evidence(says!(
            "{reason}: {exits} of {all} exits ({share}), {of_handled} of those in which the guest does not wait.",
            reason = most.key,
            exits = most.count,
            all = all,
            share = Of(most.count, all),
            of_handled = Of(most.count, handled),
        ))
        .evidence("They were counted and not timed: what they cost, and in what time they came, is not known.");
    finding.at_most = Severity::Low;
    Some(match detail(class) {
        Some(_) => finding.only(&[RECORD]),
        None => finding.only(&[PLACE]),
    })
}

/// What no finding explains of a class of exits.
fn left(accounts: &TimeAccounts, class: ExitClass) -> u64 {
    let rows = accounts.vcpus.rows.iter();
    let of_class = rows.filter(|row| row.part.exits() == Some(class));
    of_class
        .map(|row| row.ns.saturating_sub(row.explained_ns))
        .fold(0, u64::saturating_add)
}

fn say(case: &Case<'_>, row: &ExitRow, ns: u64) -> Finding {
    let count = row.stats.count();
    let cost = match case.picture.observed_ns() {
        0 => FindingCost::of(ns, case.handling_ns(), crate::Base::Handling),
        _ => case.vcpu_cost(ns),
    };
    let likely = likely(class(row));
    let mut finding = Finding::new(&RULE, 0.5)
        .cost(cost)
        .title(format!("{count} {} exits took {}{likely}", row.key, human(ns)))
        .evidence(
            says!(
                "{reason}: {exits} of {all} exits ({share}), {each} each in the mean and {least} at least.",
                reason = row.key.clone(),
                exits = count,
                all = case.all_exits().count,
                share = Of(count, case.all_exits().count),
                each = Ns(row.stats.mean()),
                least = Ns(row.stats.min()),
            )
            .row(ExitTable::Vmexit, row),
        );
    for registers in registers(case, row) {
        finding = finding.evidence(registers);
    }
    if case.picture.observed_ns() == 0 {
        // How much of the vCPUs' time it is, is not known.
        finding.at_most = Severity::Medium;
    }
    finding.explains = vec![ExplainedTime::Exits(class(row))];
    match detail(class(row)) {
        Some(_) => finding.only(&[RECORD]),
        None => finding.only(&[PLACE]),
    }
}

/// Which registers exits of a reason were for, as far as the processor says it.
fn registers(case: &Case<'_>, row: &ExitRow) -> Vec<Evidence> {
    let registers = &case.picture.signs.registers;
    let class = class(row);
    let listed = |sort: &str, counts: Vec<(usize, bool, u64)>| {
        let counts = counts.into_iter().take(LISTED).map(|(at, write, count)| {
            let how = if write { "written" } else { "read" };
            format!("{sort}{at} {how} {}", words::times(count))
        });
        counts.collect::<Vec<_>>()
    };
    // AMD has an exit code for each of these registers: the reason says it.
    let of_intel = row.reason.is_some_and(|reason| reason.isa == Isa::Vmx);
    let (reads, writes) = registers.msr();
    let texts = match class {
        ExitClass::Register if of_intel => {
            let mut texts = listed("CR", registers.control());
            texts.extend(listed("DR", registers.debug()));
            texts
        }
        ExitClass::Msr if reads + writes > 0 => vec![
            format!("model-specific ones read {}", words::times(reads)),
            format!("written {}", words::times(writes)),
        ],
        _ => Vec::new(),
    };
    match texts.is_empty() {
        true => Vec::new(),
        false => vec![says!(
            "The exits themselves say which registers: {registers}.",
            registers = texts.join(", ")
        )],
    }
}

/// What exits of a class mostly are for, where nothing says it.
fn likely(class: ExitClass) -> &'static str {
    match class {
        ExitClass::Port => ": a clock, a disk or a console behind I/O ports",
        ExitClass::Mmio | ExitClass::PageFault => {
            ": an emulated device, or memory that is mapped as it is touched"
        }
        ExitClass::Msr => ": mostly the timer and interrupts between vCPUs",
        ExitClass::Instruction => ", which are for an instruction that KVM emulates",
        ExitClass::Register => ", which are for control, debug or system registers",
        _ => "",
    }
}
