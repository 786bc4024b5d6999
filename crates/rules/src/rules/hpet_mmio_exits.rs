//! The guest reads its clock from the HPET.

use analysis::ExitTable;
use domain::{DomainChange, GuestOs};
use event::ExitClass;
use words::duration::human;

use crate::case::RowSum;
use crate::common::listed;
use crate::evidence::{Many, Ns, Of, Times, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, Rule, RuleLook, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "hpet-mmio-exits",
    title: "The guest reads time from the HPET, and every read is an exit",
    described_as: &[
        "Windows guest uses much CPU with HPET",
        "accesses of 0xfed000f0",
        "QueryPerformanceCounter is slow in the guest",
        "idle Windows guest at 10 % to 30 % CPU",
    ],
    looks_at: "exits for memory that is emulated at the HPET's address (0xfed00000)",
    needs: "kvm_exit, kvm_entry and kvm_mmio, or the printed tables of perf kvm stat \
            report for vmexit and mmio",
    record: &[RecordNeeds::Exits],
    measures: &["vmexit EPT_MISCONFIG", "vmexit npf", "mmio "],
    cause: "The guest uses the HPET as its clock. The VMM emulates it, so every read of the main counter is an exit to \
            user space. kvm-clock and the TSC are read without an exit.",
    found: &[
        "Rows of the `mmio` table. From {reads} reads on that matter; with a table of memory alone, half of all \
         accesses. Writes set the HPET's timers: the evidence lists them, and they are not in the cost. Accesses that \
         were recorded without their exit or entry (more `kvm_mmio` than the table's rows account for) are in the cost \
         at the mean of the others. Confidence 0.95. Without addresses, in printed tables of Intel: {faults} \
         `EPT_MISCONFIG` that matter, are a quarter of the time of exits without waiting, and take {each} or more each \
         and twice as long as all other exits (the HPET is in user space, a notification of a virtio device ends in \
         the kernel): 0.7 if the definition has an HPET and 0.5 if there is none to ask, and nothing if it says \
         `present='no'`.",
    ],
    limits: &[
        ("reads", EvidenceNumber::Count(LEAST)),
        ("each", EvidenceNumber::Nanoseconds(IN_USER_SPACE_NS)),
        ("faults", EvidenceNumber::Count(FITS)),
    ],
    seen_from: "{reads} reads that take a twentieth of the exits' time",
    unknown: "*exits*, or printed `vmexit` and `mmio` tables. {reads} `EPT_MISCONFIG` that matter, take {each} or more \
        each, and have no addresses are not known where they are no finding (in a recording always). On AMD memory and \
        devices have one reason: {faults} `npf` that matter without addresses: not known.",
    advice: "",
    looks_alike: "`EPT_MISCONFIG` is every access of emulated memory: notifications of virtio-mmio and PCI devices and \
        other registers as well. `perf kvm stat report --event=mmio` has the addresses.",
    remedies: &[
        Remedy {
            what: "Take the HPET from the guest: <timer name='hpet' present='no'/> in <clock>.",
            price: "The guest has to be restarted. A Windows guest without Hyper-V's clock then uses the ACPI PM \
                    timer, which costs an exit for each read as well: add hypervclock in the same change.",
            unless: "A guest that trusts no other clock would fall back to acpi_pm.",
            check: "trapline compare BEFORE AFTER: the exits at 0xfed000f0 are gone.",
        },
        Remedy {
            what: "Linux: use kvm-clock or tsc as the clock source (/sys/devices/system/clocksource/clocksource0/\
                   current_clocksource), and take clocksource=hpet off the guest's command line.",
            price: "None while the host's TSC is stable. Without an invariant TSC use kvm-clock.",
            unless: "Do not use tsc if the guest migrates between hosts with different TSC rates and no TSC scaling.",
            check: "Read current_clocksource in the guest, then trapline compare BEFORE AFTER.",
        },
    ],
    sources: &[
        "IA-PC HPET specification 1.0a, 2.3 (registers); QEMU, hw/timer/hpet.c",
        "libvirt, formatdomain: Time keeping",
        "Linux, drivers/clocksource (rating of clock sources); arch/x86/kernel/hpet.c",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Mmio),
        ExplainedTime::Exits(ExitClass::PageFault),
    ],
    look: RuleLook::Case(look),
};

/// The HPET's registers take 1 KiB.
fn is_hpet(address: u64) -> bool {
    (0xfed0_0000..0xfed0_0400).contains(&address)
}

/// No exit goes to user space and comes back in less.
const IN_USER_SPACE_NS: u64 = 3_000;

/// Fewer accesses are no habit; and so many exits without an address fit one.
const LEAST: u64 = 100;
const FITS: u64 = 1000;
/// So many accesses are a habit of the guest's also in a recording that is too short for a rate.
const CERTAIN: u64 = 200;

fn look(case: &Case<'_>) -> Verdict {
    if !case.x86() {
        return Verdict::NotOfMachine;
    }
    let of = |write: bool| {
        case.accesses(ExitTable::Mmio, |row| {
            row.write == write && row.address.is_some_and(is_hpet)
        })
    };
    let (rows, writes) = (of(false), RowSum::of(of(true)));
    let timed = RowSum::of(rows.iter().copied());
    let all = RowSum::of(case.picture.rows(ExitTable::Mmio));
    if all.count == 0 {
        return without_addresses(case);
    }
    // A read that user space answers makes two events, any other access one. What is more of them lost its exit or its
    // entry, and nobody knows how long it took: as long as the others.
    let both = |write: bool| {
        let rows = case.picture.rows(ExitTable::Mmio).iter();
        RowSum::of(rows.filter(|row| row.write == write)).count
    };
    let expected = both(false).saturating_mul(2).saturating_add(both(true));
    let recorded = case.picture.events("kvm_mmio").unwrap_or(0);
    let more = (recorded as f64 / expected.max(1) as f64).max(1.0);
    let hpet = RowSum {
        count: timed.count,
        ns: (timed.ns as f64 * more) as u64,
    };
    let enough = match case.has_exits() {
        true => case.matters(hpet.ns),
        false => hpet.count >= all.count / 2,
    };
    if hpet.count < LEAST || !enough {
        return Verdict::Clear;
    }
    let brief = case.too_brief();
    if hpet.count < CERTAIN
        && let Some(brief) = brief
    {
        return brief;
    }
    let mut finding = Finding::new(&RULE, if brief.is_some() { 0.6 } else { 0.95 })
        .cost(case.vcpu_cost(hpet.ns))
        .title(format!(
            "The guest reads time from the HPET: {} reads, {}",
            hpet.count,
            human(hpet.ns)
        ));
    finding = case.tell_brief(finding);
    for line in listed(
        |_| ExitTable::Mmio,
        &rows,
        (all.count, "timed accesses of memory"),
        4,
    ) {
        finding = finding.evidence(line);
    }
    if writes.count > 0 {
        finding = finding.evidence(says!(
            "{writes} set its timers and took {time}; they are not in the cost.",
            writes = Many(writes.count, "write"),
            time = Ns(writes.ns),
        ));
    }
    finding = finding.evidence(says!(
        "The reads are {share} of the handling time of exits, without waits.",
        share = Of(hpet.ns, case.handling_ns()),
    ));
    if more >= 1.01 {
        finding = finding.evidence(says!(
            "Emulated memory was accessed {accesses} without a recorded exit or entry; the cost has these at the mean \
             of the others.",
            accesses = Times(recorded.saturating_sub(expected) / 2),
        ));
    }
    if let Some(losses) = case.losses() {
        finding = finding.evidence(losses);
    }
    advise(case, finding).found()
}

/// Sums of exits alone: on Intel emulated memory has a reason of its own.
fn without_addresses(case: &Case<'_>) -> Verdict {
    if !case.has_exits() {
        return Verdict::Unknown("Record kvm:kvm_exit, kvm:kvm_entry and kvm:kvm_mmio.".to_owned());
    }
    let faults = case.exits(&["npf"]);
    let recorded = case.picture.events("kvm_mmio").is_some();
    if faults.count >= FITS && case.matters(faults.ns) && !recorded {
        return Verdict::Unknown(format!(
            "{} npf exits took {}. The recording does not separate devices from memory; record kvm:kvm_mmio too, \
             or add what perf kvm stat report --event=mmio prints.",
            faults.count,
            human(faults.ns)
        ));
    }
    let emulated = case.exits(&["EPT_MISCONFIG"]);
    // A notification of a virtio device has the same reason and ends in the kernel, as most exits do; the HPET is in
    // user space, and a look at it takes several times as long.
    let each = emulated.ns / emulated.count.max(1);
    if emulated.count < LEAST || !case.matters(emulated.ns) || each < IN_USER_SPACE_NS {
        return Verdict::Clear;
    }
    let timer = case.whole_domain().and_then(|domain| domain.timer("hpet"));
    if timer.is_some_and(|timer| timer.present == Some(false)) {
        return Verdict::Clear;
    }
    let fits = emulated.count >= FITS
        && emulated.ns >= case.handling_ns() / 4
        && each >= case.others_mean_ns(emulated).saturating_mul(2);
    if !case.printed() || !fits {
        return Verdict::Unknown(format!(
            "{} exits for emulated memory took {}. Their addresses were not recorded; record kvm:kvm_mmio too, \
             or add what perf kvm stat report --event=mmio prints.",
            emulated.count,
            human(emulated.ns)
        ));
    }
    let has = timer.is_some_and(|timer| timer.present == Some(true));
    let mut finding = Finding::new(&RULE, if has { 0.7 } else { 0.5 })
        .cost(case.vcpu_cost(emulated.ns))
        .title(format!(
            "Exits for emulated memory, most likely the HPET: {} exits, {}",
            emulated.count,
            human(emulated.ns)
        ))
        .evidence(case.says_exits("EPT_MISCONFIG", emulated));
    if has {
        finding = finding.evidence("The guest's definition gives it an HPET.");
    }
    finding = finding.evidence(
        "The table has no addresses; perf kvm stat report --event=mmio has them. 0xfed000f0 is the HPET's counter.",
    );
    advise(case, finding).found()
}

fn advise(case: &Case<'_>, finding: Finding) -> Finding {
    let present = case.whole_domain().map(|domain| domain.timer("hpet"));
    let off = DomainChange::Timer {
        name: "hpet".to_owned(),
        present: false,
    };
    let changes = match present {
        Some(timer) if timer.is_none_or(|timer| timer.present != Some(false)) => vec![off],
        _ => Vec::new(),
    };
    match case.guest() {
        GuestOs::Linux => {
            let clock = super::timer_port_exits::kvmclock(case);
            finding.changes(0, changes).changes(1, clock).only(&[1, 0])
        }
        GuestOs::Windows => {
            let clock = case
                .whole_domain()
                .and_then(|domain| domain.timer("hypervclock"));
            let mut changes = changes;
            if clock.and_then(|timer| timer.present) != Some(true) {
                changes.push(DomainChange::Timer {
                    name: "hypervclock".to_owned(),
                    present: true,
                });
            }
            finding.changes(0, changes).only(&[0])
        }
        _ => finding.changes(0, changes),
    }
}
