//! The guest touches memory that the host has yet to map.

use analysis::{APIC_PAGE, ExitSum, ExitTable};
use event::{ExitClass, Isa};
use words::duration::human;

use crate::case::RowSum;
use crate::evidence::{Ns, Of, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, Rule, RuleLook, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "ept-violation-storm",
    title: "The guest's memory is mapped page by page, one exit for each",
    described_as: &[
        "many EPT_VIOLATION or npf exits in perf kvm stat",
        "the VM is slow after its start until it has touched its memory",
        "transparent huge pages are not used by the guest",
        "page faults of the guest's memory",
    ],
    looks_at: "exits for the second stage of address translation (EPT_VIOLATION, npf, DABT_LOW and IABT_LOW) that are \
        no access of a device or of the local APIC's page",
    needs: "kvm_exit and kvm_entry; kvm_mmio or kvm_page_fault (arm64: kvm_guest_fault), because accesses of devices, \
        on Intel those of the local APIC without APICv, have the same reason",
    record: &[RecordNeeds::Paths],
    measures: &["vmexit EPT_VIOLATION", "vmexit npf"],
    cause: "KVM maps a page when the guest first touches it, one exit for each page. That happens after a start, after \
        a balloon or free page reporting gave memory back, while a migration logs dirty pages, and when KSM or NUMA \
        balancing unmaps pages. With pages of 4 KiB instead of 2 MiB it is 512 times as many.",
    found: &[
        "`EPT_VIOLATION`; AMD's `npf`, arm64's `DABT_LOW` and `IABT_LOW`, each without the accesses of devices and of \
         the local APIC's page (0xfee00000): what an exit was about is known from the `kvm_page_fault`, \
         `kvm_guest_fault` or `kvm_mmio` within it, and by the pages in which a device answered before. {faults} of \
         them and {many} a second ({printed} in a printed table, which does not say how long it is of), a tenth of the \
         time of exits without waiting. Confidence 0.85; 0.7 without addresses where APICv is in use, and from tables; \
         0.5 from a table that does not show whether it is. The evidence lists THP, KSM and NUMA balancing of the \
         host.",
    ],
    limits: &[
        ("faults", EvidenceNumber::Count(LEAST)),
        ("many", EvidenceNumber::PerSecond(MANY_PER_SECOND)),
        ("printed", EvidenceNumber::Count(LEAST_PRINTED)),
    ],
    seen_from: "{faults} faults, {many} a second, that are a tenth of the exits' time",
    unknown: "*exits* with `kvm_mmio` or `kvm_page_fault` (*all*). Without addresses it is not known: on AMD and \
        arm64, because devices' accesses have the same reason; on Intel, unless APICv is in use (`EOI_INDUCED`, \
        `APIC_WRITE`, `APIC_ACCESS` show it), because without it accesses of the local APIC's page have it. A printed \
        table with `TPR_BELOW_THRESHOLD` and none of those is of a host that emulates the local APIC, and does not \
        separate them.",
    advice: "",
    looks_alike: "A guest that has just started maps its memory once, and it ends; look again later. Where APICv is \
        off or set aside, KVM emulates accesses of the local APIC's page (0xfee00000) out of `EPT_VIOLATION`: then it \
        is [hyperv-synic-autoeoi](#hyperv-synic-autoeoi) or [apic-exits-without-apicv](#apic-exits-without-apicv), and \
        `kvm_page_fault` has the address. The *same* addresses again and again are unmapped by something.",
    remedies: &[
        Remedy {
            what: "Back the guest with huge pages (<memoryBacking><hugepages/></memoryBacking>): one fault instead of \
                512, and fewer TLB misses.",
            price: "The host has to reserve the memory (vm.nr_hugepages), which then cannot be overcommitted, swapped, \
                ballooned or merged.",
            unless: "It does not work for guests whose memory is overcommitted on purpose.",
            check: "trapline compare BEFORE AFTER: exits of this kind for each second.",
        },
        Remedy {
            what: "Populate it before it is needed: <allocation mode='immediate'/> or <locked/> in <memoryBacking>, \
                and measure after the guest has warmed up.",
            price: "A slower start, and all memory is taken from the host at once.",
            unless: "It does not work with overcommitted memory. Locked memory needs a large enough <hard_limit>.",
            check: "trapline exits, after the start.",
        },
        Remedy {
            what: "If the same pages fault again and again, find out what unmaps them. Turn off NUMA balancing for \
                pinned guests (kernel.numa_balancing=0), KSM (<nosharepages/>) or free page reporting, or wait for the \
                migration to end.",
            price: "The memory that these features save is used again.",
            unless: "Keep NUMA balancing on where guests are not pinned.",
            check: "Record kvm:kvm_page_fault twice, and compare the addresses.",
        },
        Remedy {
            what: "Intel hosts that break huge pages up where the guest executes from them (nx_huge_pages, against \
                iTLB multihit): set nx_huge_pages_recovery_ratio higher, or nx_huge_pages=off on processors that are \
                not affected.",
            price: "With nx_huge_pages=off on an affected processor a guest can stop the host.",
            unless: "/sys/devices/system/cpu/vulnerabilities/itlb_multihit says that the processor is affected and \
                guests are not trusted.",
            check: "kvm_stat: nx_lpage_splits does not rise; trapline exits of a new recording: fewer such exits.",
        },
    ],
    sources: &[
        "Linux, arch/x86/kvm/mmu (kvm_mmu_page_fault); arch/arm64/kvm/mmu.c (kvm_handle_guest_abort)",
        "libvirt, formatdomain: Memory Backing",
        "Linux, Documentation/admin-guide/mm/transhuge.rst, hugetlbpage.rst",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::PageFault),
        ExplainedTime::Asleep,
    ],
    look: RuleLook::Case(look),
};

/// Faults in a second that are more than a guest that has settled makes, and how many it takes to say so.
const MANY_PER_SECOND: f64 = 500.0;
const LEAST: u64 = 500;
/// So many faults in a row at one address are one that is never resolved.
const SAME: u64 = 100;
/// A table does not say how long it is of.
const LEAST_PRINTED: u64 = 5000;

/// Exits that happen where APICv takes accesses of the local APIC; without it its page is emulated as a fault.
const WITH_APICV: [&str; 3] = ["APIC_WRITE", "APIC_ACCESS", "EOI_INDUCED"];

/// What was counted, and how it is known.
struct ViolationCounts {
    sum: RowSum,
    /// Accesses of the local APIC's page among the exits, which are none of them.
    apic: u64,
    confidence: f64,
    note: Option<String>,
}

fn look(case: &Case<'_>) -> Verdict {
    if !case.has_exits() {
        return Verdict::Unknown("Record kvm:kvm_exit, kvm:kvm_entry and kvm:kvm_mmio.".to_owned());
    }
    let names: &[&str] = match case.picture.isa {
        Some(Isa::Svm) => &["npf"],
        Some(Isa::Arm64) => &["DABT_LOW", "IABT_LOW"],
        _ => &["EPT_VIOLATION"],
    };
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    // Whatever they are for, they are too few.
    if !storm(case, case.exits(names)) {
        return Verdict::Clear;
    }
    let faults = match case.printed() {
        true => of_table(case, names),
        false => of_events(case, names),
    };
    let faults = match faults {
        // The same fault again and again is another matter (vcpu-stuck).
        // So is memory that the host takes away (memory-taken-away).
        Ok(faults)
            if case.picture.unmaps.unmapped >= faults.sum.count / 4
                && case.picture.unmaps.unmapped > 0 =>
        {
            return Verdict::Clear;
        }
        // And writes of pages that are logged, as for a migration, are another (dirty-logging).
        Ok(_) if super::dirty_logging::is_logging(case) => return Verdict::Clear,
        Ok(faults) if stuck(case) >= faults.sum.count / 2 => return Verdict::Clear,
        Ok(faults) => faults,
        Err(what) => return Verdict::Unknown(what.to_owned()),
    };
    if !storm(case, faults.sum) {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let finding = of_host(case, say(case, names, &faults));
    let Some(domain) = case.whole_domain() else {
        return finding.found();
    };
    if domain.memory_backing.hugepages.is_some() {
        finding
            .evidence("The guest's definition asks for huge pages.")
            .only(&[1, 2])
            .found()
    } else {
        let pages = domain::DomainChange::HugePages { size_kib: None };
        finding.changes(0, vec![pages]).found()
    }
}

/// Faults of vCPUs that take one and the same again and again.
fn stuck(case: &Case<'_>) -> u64 {
    let rows = case.picture.progress.rows.iter();
    let runs = rows.map(|row| row.same_fault.count);
    runs.filter(|count| *count >= SAME)
        .fold(0, u64::saturating_add)
}

fn say(case: &Case<'_>, names: &[&str], faults: &ViolationCounts) -> Finding {
    let sum = faults.sum;
    let all = case.all_exits();
    let mut finding = Finding::new(&RULE, faults.confidence)
        .cost(case.vcpu_cost(sum.ns))
        .title(format!("The guest's memory is mapped page by page: {} faults, {}", sum.count, human(sum.ns)))
        .evidence(
            says!(
                "{reasons}, accesses of devices left out: {exits} of {all} exits ({share}), {share_of_handling} of the \
                 handling time without waits, {each} each.",
                reasons = words::list(names),
                exits = sum.count,
                all = all.count,
                share = Of(sum.count, all.count),
                share_of_handling = Of(sum.ns, case.handling_ns()),
                each = Ns(sum.ns / sum.count.max(1)),
            )
            .rows_of(ExitTable::Vmexit, &case.picture.reason(names)),
        );
    if faults.apic > 0 {
        finding = finding.evidence(says!(
            "{accesses} more were accesses of the local APIC's page (0xfee00000), which is not memory.",
            accesses = faults.apic,
        ));
    }
    if let Some(note) = &faults.note {
        finding = finding.evidence(note.as_str());
    }
    finding
}

/// Says what the host does to its guests' memory.
fn of_host(case: &Case<'_>, mut finding: Finding) -> Finding {
    let Some(host) = case.host() else {
        return finding;
    };
    if let Some(thp) = &host.thp {
        finding = finding.evidence(says!(
            "Transparent huge pages on the host: '{thp}'.",
            thp = thp.as_str(),
        ));
    }
    if host.numa_balancing == Some(true) {
        finding = finding.evidence("NUMA balancing is on.");
    }
    if host.ksm == Some(true) {
        finding = finding.evidence("KSM is on.");
    }
    finding
}

/// Whether so many exits are one: often, and a tenth of what exits take.
fn storm(case: &Case<'_>, sum: RowSum) -> bool {
    let often = match case.printed() {
        true => sum.count >= LEAST_PRINTED,
        false => sum.count >= LEAST && sum.count as f64 / case.seconds() >= MANY_PER_SECOND,
    };
    often && sum.ns >= case.handling_ns() / 10 && case.matters(sum.ns)
}

/// Exits for memory, as events tell them apart within each exit.
fn of_events(case: &Case<'_>, names: &[&str]) -> Result<ViolationCounts, &'static str> {
    let recorded = case.picture.faults.unwrap_or_default();
    let sum = |parts: &[ExitSum]| {
        parts.iter().fold(RowSum::default(), |sum, part| RowSum {
            count: sum.count.saturating_add(part.count),
            ns: sum.ns.saturating_add(part.ns),
        })
    };
    let devices = case.picture.events("kvm_mmio").is_some();
    // Where accesses are without their exits, others' exits are without their accesses.
    let accesses = case.picture.events("kvm_mmio").unwrap_or(0);
    let lost = recorded.strays >= 50 && recorded.strays >= accesses / 10;
    let apicv = case.exits(&WITH_APICV).count > 0;
    let intel = names.contains(&"EPT_VIOLATION");
    let (sum, confidence) = if case.records_addresses() && (devices || intel) {
        (sum(&[recorded.memory]), 0.85)
    } else if devices && (case.picture.continuity.exits.torn() || lost) {
        return Err(
            "The recording lost exits and entries, and accesses of devices with them; record again with larger buffers \
             or fewer events, and with kvm:kvm_page_fault (arm64: kvm:kvm_guest_fault).",
        );
    } else if devices {
        // Every access that KVM emulates makes a kvm_mmio, those of the local APIC included: what made none is memory.
        (sum(&[recorded.memory, recorded.unknown]), 0.85)
    } else if intel && apicv {
        (sum(&[recorded.memory, recorded.unknown]), 0.7)
    } else if intel {
        return Err(
            "Record kvm:kvm_page_fault and kvm:kvm_mmio to separate memory from the local APIC's page (0xfee00000), \
             whose accesses have the same exit reason where APICv is not in use.",
        );
    } else {
        return Err(
            "Record kvm:kvm_mmio and kvm:kvm_page_fault (arm64: kvm:kvm_guest_fault) to separate memory from devices.",
        );
    };
    Ok(ViolationCounts {
        sum,
        apic: recorded.apic.count,
        confidence,
        note: None,
    })
}

/// Exits for memory, as printed tables tell them: without the accesses that a table of memory lists.
fn of_table(case: &Case<'_>, names: &[&str]) -> Result<ViolationCounts, &'static str> {
    let all = case.exits(names);
    let intel = names.contains(&"EPT_VIOLATION");
    let table = !case.picture.rows(ExitTable::Mmio).is_empty();
    if !intel && !table {
        return Err(
            "Accesses of devices have the same exit reason; add what perf kvm stat report --event=mmio prints, or \
             record kvm:kvm_mmio and kvm:kvm_page_fault (arm64: kvm:kvm_guest_fault).",
        );
    }
    // On Intel devices have a reason of their own, and the local APIC's page has not.
    let rows = case.accesses(ExitTable::Mmio, |row| {
        let apic = row
            .address
            .is_some_and(|address| address & !0xfff == APIC_PAGE);
        !intel || apic
    });
    let emulated = RowSum::of(rows.iter().copied());
    let mean = all.ns / all.count.max(1);
    let sum = RowSum {
        count: all.count.saturating_sub(emulated.count),
        ns: all.ns.saturating_sub(mean.saturating_mul(emulated.count)),
    };
    let (confidence, note) = match (intel, table, case.exits(&WITH_APICV).count) {
        (true, false, 0) if case.exits(&["TPR_BELOW_THRESHOLD"]).count > 0 => {
            return Err(
                "TPR_BELOW_THRESHOLD shows that KVM emulates the local APIC, so accesses of its page are among these \
                 exits; record kvm:kvm_page_fault and kvm:kvm_mmio, or add what perf kvm stat report --event=mmio \
                 prints, which have its address (0xfee00000).",
            );
        }
        (true, false, 0) => (
            0.5,
            Some(
                "The table does not show whether APICv is in use (no EOI_INDUCED, APIC_WRITE or APIC_ACCESS). Without \
                 APICv, accesses of the local APIC's page (0xfee00000) are among these exits; perf kvm stat report \
                 --event=mmio has them."
                    .to_owned(),
            ),
        ),
        _ => (0.7, None),
    };
    Ok(ViolationCounts {
        sum,
        apic: if intel { emulated.count } else { 0 },
        confidence,
        note,
    })
}
