//! The guest reads its clock from I/O ports: the ACPI PM timer, the RTC or the PIT.

use analysis::{ExitRow, ExitTable};
use domain::{Domain, DomainChange, GuestOs};
use event::ExitClass;
use words::{duration::human, share};

use crate::case::RowSum;
use crate::common::listed;
use crate::counted::CountedReason;
use crate::evidence::{Of, Times, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, Rule, RuleLook, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "timer-port-exits",
    title: "The guest reads time from I/O ports, and every read is an exit",
    described_as: &[
        "reads of port 0x608, the ACPI PM timer",
        "the guest's clocksource is acpi_pm",
        "gettimeofday is slow in the guest",
        "idle Windows guest at 30 % CPU",
    ],
    looks_at: "exits for I/O ports of the ACPI PM timer (0x608 on QEMU's machines), the RTC (0x70, 0x71) and the PIT \
               (0x40 to 0x43, 0x61)",
    needs: "kvm_exit, kvm_entry and kvm_pio, or the printed tables of perf kvm stat \
            report for vmexit and ioport",
    record: &[RecordNeeds::Exits],
    measures: &["vmexit IO_INSTRUCTION", "vmexit io", "ioport "],
    cause: "The guest uses a timer behind I/O ports as its clock. Every read of it is an exit, and goes on to the VMM \
            and back. A paravirtual clock is read from memory or from the TSC, without an exit.",
    found: &[
        "Rows of the `ioport` table. Reads count, and writes that choose what is read next (the RTC's index 0x70, the \
         PIT's latch 0x43), each at most as often as what they choose is read; other writes set a timer or do nothing; \
         the evidence lists them, and they are not counted. From {reads} reads on, whose exits matter; with a table of \
         ports alone, when they are half of all port accesses. The cost is the number of reads × the mean of the exits \
         for these ports, from exit to entry (of tables: of all exits for ports, `io`, `IO_INSTRUCTION`), since perf's \
         port times begin at `kvm_pio` only. Reads whose exit or entry was lost are in it at that mean, and the \
         evidence says how many they are. Confidence 0.95; 0.5 where a fifth of the accesses or more were recorded \
         without their exit or entry, since those that are left may not be like the others.",
        "Without a table of ports: exits for ports are {most} of the handling time, and the definition is that of \
         Windows (hypervclock, or its libosinfo id) without all of Hyper-V's clock and timers: confidence 0.6.",
    ],
    limits: &[
        ("reads", EvidenceNumber::Count(LEAST)),
        ("most", EvidenceNumber::Share(OF_HANDLING)),
    ],
    seen_from: "{reads} reads that take a twentieth of the exits' time",
    unknown: "*exits*, or printed `vmexit` and `ioport` tables. 100 port exits that matter without a table of ports: \
     not known.",
    advice: "The guest's definition decides which one is offered. Without one, reads of the RTC that are a twentieth \
        of the timers' mean Windows (Linux reads the RTC at its start only); else Linux's comes first and nothing is \
        patched.",
    looks_alike: "Other ports are no clock: a serial console (0x3f8) is [console-on-irq-vcpu](#console-on-irq-vcpu), a \
        virtio device's notification port is [userspace-virtio-backend](#userspace-virtio-backend). Only a table of \
        ports shows which.",
    remedies: &[
        Remedy {
            what: "Windows: give the guest Hyper-V's clock and timers: <timer name='hypervclock' present='yes'/> in \
                   <clock>, and <vpindex state='on'/>, <synic state='on'/> and <stimer state='on'/> in <hyperv>.",
            price: "The guest has to be restarted, and it sees a Hyper-V host from then on. AutoEOI of the synthetic \
                    interrupt controller inhibits APICv and AVIC, which makes guests with many interrupts slower.",
            unless: "The guest has to support Hyper-V's interface. Check afterwards that APICv or AVIC is still in \
                use: <avic state='on'/> (libvirt 8.10, QEMU 6.2) marks AutoEOI as deprecated, so that the guest does \
                not use it.",
            check: "trapline compare BEFORE AFTER: the exits for these ports are gone.",
        },
        Remedy {
            what: "Linux: use kvm-clock or tsc as the clock source (/sys/devices/system/clocksource/clocksource0/\
                   current_clocksource), and take clocksource= and notsc off the guest's command line.",
            price: "None while the host's TSC is stable. Without an invariant TSC use kvm-clock.",
            unless: "Do not use tsc if the guest migrates between hosts with different TSC rates and no TSC scaling.",
            check: "Read current_clocksource in the guest, then trapline compare BEFORE AFTER.",
        },
        Remedy {
            what: "Windows as well: <frequencies state='on'/> (the guest need not calibrate its TSC by the PIT or the \
                PM timer) and, on Windows 10 1803 and later, <stimer state='on'><direct state='on'/></stimer>.",
            price: "The guest cannot be migrated to a host that does not have them.",
            unless: "The reads go on long after the guest has booted: then they are its clock, and hypervclock is what \
                it needs.",
            check: "trapline exits --event ioport: fewer reads while the guest boots.",
        },
    ],
    sources: &[
        "libvirt, formatdomain: Time keeping, Hypervisor features",
        "QEMU, docs/system/i386/hyperv.rst",
        "Linux, drivers/clocksource/acpi_pm.c; Documentation/virt/kvm/x86/timekeeping.rst",
    ],
    explains: &[ExplainedTime::Exits(ExitClass::Port)],
    look: RuleLook::Case(look),
};

/// Ports that are written to choose what is read next: the RTC's index (MC146818A data sheet), the PIT's latch command
/// (Intel 8254 data sheet).
const CHOOSE: [(u64, std::ops::RangeInclusive<u64>); 2] =
    [(0x70, 0x71..=0x71), (0x43, 0x40..=0x42)];

/// Ports of the timers, where QEMU's machines and their successors have them.
fn is_timer(row: &ExitRow) -> bool {
    let named = row
        .name
        .as_deref()
        .is_some_and(|name| name.contains("acpi-tmr"));
    named
        || row
            .address
            .is_some_and(|port| is_rtc(port) || matches!(port, 0x40..=0x43 | 0x61 | 0x608 | 0xb008))
}

fn is_rtc(port: u64) -> bool {
    matches!(port, 0x70 | 0x71)
}

/// Fewer reads are no habit.
const LEAST: u64 = 100;
/// Without a table of ports: share of the handling time, and how sure it is by the guest's definition alone.
const OF_HANDLING: f64 = 0.5;
const BY_DEFINITION: f64 = 0.6;
/// So many reads are a habit of the guest's also in a recording that is too short for a rate.
const CERTAIN: u64 = 200;

/// What was measured of accesses of timers' ports.
struct PortReads<'a> {
    rows: Vec<&'a ExitRow>,
    /// Exits for any port.
    exits: RowSum,
    /// Accesses of any port that have their exit and entry.
    ports: RowSum,
    /// Accesses of timers' ports.
    timers: RowSum,
    /// Those of them that read the time.
    count: u64,
    /// Accesses of any port that were recorded, with their exit and entry or without.
    recorded: u64,
    /// What reads cost, with those whose exit or entry was lost.
    ns: u64,
}

impl<'a> PortReads<'a> {
    fn of(case: &Case<'a>, exits: RowSum, ports: RowSum) -> PortReads<'a> {
        let rows = case.accesses(ExitTable::Ioport, is_timer);
        let timers = RowSum::of(rows.iter().copied());
        let count = of_reads(&rows);
        // perf counts an access from kvm_pio on; the exit began before. An access whose exit or entry was lost took as
        // long as those that were timed.
        let mean = |sum: RowSum| sum.ns as f64 / sum.count.max(1) as f64;
        let timed = rows.iter().fold(RowSum::default(), |sum, row| RowSum {
            count: sum.count.saturating_add(row.whole.count),
            ns: sum.ns.saturating_add(row.whole.ns),
        });
        let each = match timed.count {
            0 => mean(exits).max(mean(timers)),
            _ => mean(timed),
        };
        let recorded = case.picture.events("kvm_pio").unwrap_or(0).max(ports.count);
        let all_reads = count as f64 * recorded as f64 / ports.count as f64;
        PortReads {
            rows,
            exits,
            ports,
            timers,
            count,
            recorded,
            ns: (all_reads * each) as u64,
        }
    }

    /// Whether they are a habit that costs something.
    fn matter(&self, case: &Case<'_>) -> bool {
        let enough = if case.has_exits() {
            case.matters(self.ns)
        } else {
            // The table of ports alone: timers are most of what the guest does with ports.
            self.count >= self.ports.count / 2
        };
        self.count >= LEAST && enough
    }

    /// Whether the RTC is one of the clocks.
    fn of_rtc(&self) -> bool {
        let rows = self.rows.iter().copied();
        let rtc = RowSum::of(rows.filter(|row| row.address.is_some_and(is_rtc)));
        rtc.count >= self.timers.count / 20
    }
}

fn look(case: &Case<'_>) -> Verdict {
    if !case.x86() {
        return Verdict::NotOfMachine;
    }
    let exits = case.exits_of_class(ExitClass::Port);
    let ports = RowSum::of(case.picture.rows(ExitTable::Ioport));
    if ports.count == 0 {
        return without_ports(case, exits);
    }
    let reads = PortReads::of(case, exits, ports);
    if !reads.matter(case) {
        return Verdict::Clear;
    }
    let brief = case.too_brief();
    if reads.count < CERTAIN
        && let Some(brief) = brief
    {
        return brief;
    }
    // Where most pairs are torn, those that are left are not like the others.
    let torn = reads.recorded > ports.count.saturating_mul(5) / 4;
    let confidence = match (torn, &brief) {
        (true, _) => 0.5,
        (false, Some(_)) => 0.6,
        (false, None) => 0.95,
    };
    advise(case, say(case, &reads, confidence), reads.of_rtc()).found()
}

/// Which ports exits were for is not known.
fn without_ports(case: &Case<'_>, exits: RowSum) -> Verdict {
    if !case.has_exits() {
        let record = "Record kvm:kvm_exit, kvm:kvm_entry and kvm:kvm_pio";
        let of_ports = |one: &CountedReason| {
            one.count >= LEAST
                && one
                    .reason
                    .is_some_and(|reason| reason.class() == ExitClass::Port)
        };
        let counted = case
            .counted_exits()
            .filter(|counted| of_ports(&counted.most));
        return Verdict::Unknown(match counted {
            Some(counted) => format!(
                "{} of {} exits ({}) are for I/O ports, and which ports was not counted. {record}, and see what perf \
                 kvm stat report --event=ioport prints.",
                counted.most.count,
                counted.all,
                share::of(counted.most.count, counted.all),
            ),
            None => format!("{record}."),
        });
    }
    if exits.count < LEAST || !case.matters(exits.ns) {
        return Verdict::Clear;
    }
    if let Some(finding) = by_definition(case, exits) {
        return finding.found();
    }
    Verdict::Unknown(format!(
        "{} exits for I/O ports took {} ({} of the handling time of exits, without waits). The ports were not \
         recorded; record kvm:kvm_pio too, or add what perf kvm stat report --event=ioport \
         prints.",
        exits.count,
        human(exits.ns),
        share::of(exits.ns, case.handling_ns()),
    ))
}

/// Exits for ports are most of what is handled, and the guest's definition says which clock it has: Windows without
/// Hyper-V's timers sets and reads the RTC, and without its clock the ACPI PM timer.
fn by_definition(case: &Case<'_>, exits: RowSum) -> Option<Finding> {
    let domain = case.whole_domain()?;
    let windows = domain.os == GuestOs::Windows;
    let changes = missing(domain);
    let most = exits.ns as f64 >= case.handling_ns() as f64 * OF_HANDLING;
    if !windows || changes.is_empty() || !most {
        return None;
    }
    let finding = Finding::new(&RULE, BY_DEFINITION)
        .cost(case.vcpu_cost(exits.ns))
        .title(format!(
            "{} exits for I/O ports took {}, as of a Windows guest that keeps time with ports",
            exits.count,
            human(exits.ns)
        ))
        .evidence(says!(
            "Exits for I/O ports: {exits} of {all} ({share}), {share_of_handling} of the handling time without waits.",
            exits = exits.count,
            all = case.all_exits().count,
            share = Of(exits.count, case.all_exits().count),
            share_of_handling = Of(exits.ns, case.handling_ns()),
        ))
        .evidence(
            "The guest's definition is that of Windows and has not all of Hyper-V's clock and timers (hypervclock, \
             vpindex, synic, stimer), so that its timer is the RTC or the ACPI PM timer.",
        )
        .evidence(
            "Which ports was not recorded: perf kvm stat report --event=ioport, or kvm:kvm_pio, decides it.",
        );
    Some(finding.changes(0, changes).only(&[0]))
}

fn say(case: &Case<'_>, reads: &PortReads<'_>, confidence: f64) -> Finding {
    let mut finding = Finding::new(&RULE, confidence)
        .cost(case.vcpu_cost(reads.ns))
        .title(format!(
            "The guest reads time from I/O ports: {} exits, {}",
            reads.count,
            human(reads.ns)
        ));
    let (exits, all) = (reads.exits, case.all_exits());
    if exits.count > 0 {
        finding = finding.evidence(says!(
            "Exits for I/O ports: {exits} of {all} ({share}), {share_of_time} of the time of all exits, \
             {share_of_handling} of the handling time without waits.",
            exits = exits.count,
            all = all.count,
            share = Of(exits.count, all.count),
            share_of_time = Of(exits.ns, all.ns),
            share_of_handling = Of(exits.ns, case.handling_ns()),
        ));
    }
    finding = case.tell_brief(finding);
    for line in listed(
        |_| ExitTable::Ioport,
        &reads.rows,
        (reads.ports.count, "timed accesses of ports"),
        6,
    ) {
        finding = finding.evidence(line);
    }
    if reads.timers.count > reads.count {
        finding = finding.evidence(says!(
            "{writes} of these accesses are writes that select nothing to read; they do not count as reads of the \
             time.",
            writes = reads.timers.count - reads.count,
        ));
    }
    if reads.recorded > reads.ports.count {
        finding = finding.evidence(says!(
            "Ports were accessed {accesses} without a recorded exit or entry; the cost has these at the mean of the \
             others.",
            accesses = Times(reads.recorded - reads.ports.count),
        ));
    }
    match case.losses() {
        Some(losses) => finding.evidence(losses),
        None => finding,
    }
}

/// Returns how many accesses read the time: reads, and of the writes those that choose what is read.
fn of_reads(rows: &[&ExitRow]) -> u64 {
    let count = |write: bool, of: &dyn Fn(u64) -> bool| -> u64 {
        let rows = rows.iter().filter(|row| row.write == write);
        rows.filter(|row| row.address.is_some_and(of) || (row.address.is_none() && !write))
            .map(|row| row.stats.count())
            .fold(0, u64::saturating_add)
    };
    let reads = count(false, &|_| true);
    let choosing = CHOOSE.iter().map(|(index, data)| {
        let read = count(false, &|port| data.contains(&port));
        count(true, &|port| port == *index).min(read)
    });
    reads + choosing.fold(0u64, u64::saturating_add)
}

/// Chooses the remedies for the guest's operating system.
fn advise(case: &Case<'_>, finding: Finding, reads_rtc: bool) -> Finding {
    let changes = case.whole_domain().map(missing).unwrap_or_default();
    match case.guest() {
        GuestOs::Windows => finding.changes(0, changes).only(&[0]),
        GuestOs::Linux => finding.changes(1, kvmclock(case)).only(&[1]),
        _ if reads_rtc => finding
            .also(
                "Windows keeps time by reading the RTC as well; Linux reads the RTC only when it starts.",
            )
            .changes(0, changes),
        // Nothing says that it is Windows: that remedy comes second, and is no patch.
        _ => finding.only(&[1, 0]),
    }
}

/// Returns the change that gives a Linux guest back the clock that its definition takes away.
pub(super) fn kvmclock(case: &Case<'_>) -> Vec<DomainChange> {
    let timer = case
        .whole_domain()
        .and_then(|domain| domain.timer("kvmclock"));
    match timer.and_then(|timer| timer.present) {
        Some(false) => vec![DomainChange::Timer {
            name: "kvmclock".to_owned(),
            present: true,
        }],
        _ => Vec::new(),
    }
}

/// Returns what Hyper-V's clock takes that the definition does not have.
fn missing(domain: &Domain) -> Vec<DomainChange> {
    let mut out = Vec::new();
    if domain.timer("hypervclock").and_then(|timer| timer.present) != Some(true) {
        out.push(DomainChange::Timer {
            name: "hypervclock".to_owned(),
            present: true,
        });
    }
    for name in ["vpindex", "synic", "stimer"] {
        if domain.hyperv_on(name) != Some(true) {
            out.push(DomainChange::HypervFeature {
                name: name.to_owned(),
                on: true,
            });
        }
    }
    out
}
