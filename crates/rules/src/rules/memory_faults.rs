//! The guest touches memory that the host has yet to map.

use analysis::ExitTable;
use event::Isa;
use stats::duration::human;

use crate::case::{Sum, percent};
use crate::{Case, Finding, Remedy, Rule, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "ept-violation-storm",
    title: "The guest touches memory that the host has yet to map, page by page",
    looks_at: "exits for the second stage of address translation (EPT_VIOLATION, npf, DABT_LOW and IABT_LOW) that are no \
               access of a device",
    needs: "kvm_exit and kvm_entry; kvm_mmio on AMD and arm64, where devices' accesses have the same reason; kvm_page_fault \
            (arm64: kvm_guest_fault) tells the addresses",
    measures: &["vmexit EPT_VIOLATION", "vmexit npf"],
    cause: "Each page is mapped on the guest's first touch, one exit each: after a start, when a balloon or free page reporting \
            gave memory back, while dirty pages are logged for a migration, when KSM or NUMA balancing unmaps them, or because \
            pages are 4 KiB where they could be 2 MiB.",
    remedies: &[
        Remedy {
            what: "Back the guest with huge pages (<memoryBacking><hugepages/></memoryBacking>): one fault in place of 512, and \
                   fewer TLB misses after.",
            price: "The memory has to be set aside on the host (vm.nr_hugepages), and cannot be overcommitted, swapped, ballooned or \
                    merged.",
            unless: "Not for guests whose memory is overcommitted on purpose.",
            check: "trapline compare BEFORE AFTER: exits of this kind for each second.",
        },
        Remedy {
            what: "Populate it before it is needed: <allocation mode='immediate'/> or <locked/> in <memoryBacking>, and measure \
                   after the guest has warmed up.",
            price: "A slower start, and all memory is taken from the host at once.",
            unless: "Not with memory overcommitted. Locked memory needs a limit (<hard_limit>) that is large enough.",
            check: "trapline exits, after the start.",
        },
        Remedy {
            what: "Find out what unmaps: pages that fault again and again are unmapped by something. Turn off NUMA balancing for \
                   pinned guests (kernel.numa_balancing=0), KSM (<nosharepages/>), free page reporting, or wait for the \
                   migration to end.",
            price: "What these save is not saved.",
            unless: "Not NUMA balancing where guests are not pinned.",
            check: "Record kvm:kvm_page_fault twice: the same addresses, or new ones.",
        },
    ],
    sources: &[
        "Linux, arch/x86/kvm/mmu (kvm_mmu_page_fault); arch/arm64/kvm/mmu.c (kvm_handle_guest_abort)",
        "libvirt, formatdomain: Memory Backing",
        "Linux, Documentation/admin-guide/mm/transhuge.rst, hugetlbpage.rst",
    ],
    look,
};

/// Faults in a second that are more than a guest that has settled makes.
const MANY_PER_SECOND: f64 = 500.0;

fn look(case: &Case<'_>) -> Verdict {
    if !case.has_exits() {
        return Verdict::Lacks(
            "Record kvm:kvm_exit, kvm:kvm_entry and kvm:kvm_mmio (perf kvm stat record) to know."
                .to_owned(),
        );
    }
    let (faults, name) = match case.picture.isa {
        Some(Isa::Svm) => match without_devices(case, &["npf"]) {
            Ok(faults) => (faults, "npf"),
            Err(verdict) => return verdict,
        },
        Some(Isa::Arm64) => match without_devices(case, &["DABT_LOW", "IABT_LOW"]) {
            Ok(faults) => (faults, "DABT_LOW and IABT_LOW"),
            Err(verdict) => return verdict,
        },
        _ => (case.exits(&["EPT_VIOLATION"]), "EPT_VIOLATION"),
    };
    if let Some(lacks) = case.in_ticks() {
        return lacks;
    }
    let often = faults.count as f64 / case.seconds() >= MANY_PER_SECOND;
    // A table does not say how long it is of.
    let often = if case.printed() {
        faults.count >= 5000
    } else {
        often
    };
    if !often || faults.ns < case.handling_ns() / 10 || !case.matters(faults.ns) {
        return Verdict::Clear;
    }
    let all = case.all_exits();
    let mut finding = Finding::new(&RULE, if case.printed() { 0.7 } else { 0.85 })
        .cost(case.vcpu_cost(faults.ns))
        .title(format!("The guest's memory is mapped page by page: {} faults, {}", faults.count, human(faults.ns)))
        .evidence(format!(
            "{name}, without devices' accesses: {} of {} exits ({}), {} of the time without waiting, {} each.",
            faults.count,
            all.count,
            percent(faults.count, all.count),
            percent(faults.ns, case.handling_ns()),
            human(faults.ns / faults.count.max(1)),
        ));
    // Without APICv the page of the local APIC is not mapped, and accesses of it have the same reason.
    let apic = case.exits(&["TPR_BELOW_THRESHOLD"]);
    if case.printed()
        && apic.count > 0
        && case
            .exits(&["APIC_WRITE", "APIC_ACCESS", "EOI_INDUCED"])
            .count
            == 0
    {
        finding.confidence = 0.5;
        finding = finding.evidence(format!(
            "TPR_BELOW_THRESHOLD ({} exits) tells that KVM emulates the local APIC, whose accesses then are among these faults; \
             kvm:kvm_page_fault and kvm:kvm_mmio tell them apart (0xfee00000).",
            apic.count
        ));
    }
    if let Some(host) = case.host() {
        if let Some(thp) = &host.thp {
            finding = finding.evidence(format!("The host's transparent huge pages are '{thp}'."));
        }
        if host.numa_balancing == Some(true) {
            finding = finding.evidence("The host balances memory between NUMA nodes.");
        }
        if host.ksm == Some(true) {
            finding = finding.evidence("The host merges equal pages (KSM).");
        }
    }
    let backing = case.domain.map(|domain| &domain.memory_backing);
    if let Some(backing) = backing {
        if backing.hugepages.is_some() {
            finding = finding
                .evidence("The guest's definition asks for huge pages.")
                .only(&[1, 2]);
        } else {
            finding = finding.changes(0, vec![domain::Change::HugePages { size_kib: None }]);
        }
    }
    finding.found()
}

/// Exits that are not for a device: all of a reason without the accesses that were emulated.
fn without_devices(case: &Case<'_>, names: &[&str]) -> Result<Sum, Verdict> {
    let all = case.exits(names);
    let emulated = Sum::of(case.picture.rows(ExitTable::Mmio));
    let recorded = case.picture.events("kvm_mmio").is_some() || emulated.count > 0;
    let faults = case
        .picture
        .events("kvm_page_fault")
        .or_else(|| case.picture.events("kvm_guest_fault"));
    if !recorded && all.count >= 1000 && case.matters(all.ns) {
        // Neither tells devices from memory.
        return Err(match case.printed() {
            true => Verdict::Clear,
            false => Verdict::Lacks(
                "Record kvm:kvm_mmio and kvm:kvm_page_fault (arm64: kvm:kvm_guest_fault) to tell memory from devices."
                    .to_owned(),
            ),
        });
    }
    // arm64 tells of every abort, x86 of those that go to the fault handler; both count devices' accesses too.
    let count = all.count.saturating_sub(emulated.count);
    let count = faults
        .filter(|faults| *faults > 0)
        .map_or(count, |faults| count.min(faults));
    let ns = all.ns.saturating_sub(emulated.ns);
    Ok(Sum { count, ns })
}
