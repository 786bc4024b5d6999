//! The guest's interrupt controller is emulated access by access.

use analysis::ExitTable;
use event::ExitClass;
use words::duration::human;

use crate::apic::{self, ApicExits, ApicvOffer};
use crate::case::RowSum;
use crate::common::listed;
use crate::evidence::{Ns, Of, Times, says};
use crate::{Case, ExplainedTime, Finding, RecordNeeds, Remedy, Rule, RuleLook, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "apic-exits-without-apicv",
    title: "Every access of the local APIC is an exit: APICv or AVIC is not in use",
    described_as: &[
        "EPT violations or npf at fee00300",
        "many exits for 0xfee000b0",
        "APICv or AVIC is not active",
        "IPIs in the guest are expensive",
    ],
    looks_at: "exits for the local APIC that do not happen with APICv or AVIC: end-of-interrupt writes (x2APIC 0x80b, \
        xAPIC 0xfee000b0), accesses of its page (APIC_ACCESS), interrupt windows; --facts has the modules' parameters",
    needs: "kvm_exit, kvm_entry and kvm_msr or kvm_mmio",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "Without hardware support for it (Intel's APICv, AMD's AVIC) KVM emulates the guest's interrupt controller: \
        each end of interrupt (EOI) is an exit, and an interrupt for a guest that cannot take it yet costs another \
        exit (interrupt window). With APICv or AVIC neither leaves the guest, and posted interrupts reach it directly.",
    found: &[
        "End-of-interrupt writes (x2APIC 0x80b, xAPIC 0xfee000b0) and `APIC_ACCESS`, 1000 together; with windows for \
         interrupts (`INTERRUPT_WINDOW`, `vintr`) a tenth of the time of exits without waiting and a hundredth of the \
         time in which vCPUs had something to do. Confidence 0.85. Nothing if exits that happen *with* APICv or AVIC \
         only (`EOI_INDUCED`, `APIC_WRITE`, `AVIC_INCOMPLETE_IPI`) are more.",
    ],
    limits: &[],
    seen_from: "1000 end-of-interrupt writes, or accesses of the local APIC's page, that take a twentieth of \
        the exits' time",
    unknown: "*exits*, or printed `vmexit`, `msr` and `mmio` tables; *facts* has `enable_apicv` and `avic`. 1000 MSR \
        writes that matter and no table names, or 1000 such faults (`EPT_VIOLATION`, `EPT_MISCONFIG`, `npf`) without \
        addresses in a guest that was not seen to use the x2APIC's registers: not known.",
    advice: "The host's facts decide which of the first two is offered.",
    looks_alike: "A guest with SynIC, whose AutoEOI inhibits APICv: [hyperv-synic-autoeoi](#hyperv-synic-autoeoi).",
    remedies: &[
        Remedy {
            what: "Turn it on: modprobe kvm_intel enable_apicv=1, or kvm_amd avic=1. The kernel's log says if the \
                module refuses it.",
            price: "The module has to be reloaded, so the host's guests have to stop. AVIC has no nested \
                virtualization on most kernels, and KVM inhibits it for guests that use what it cannot do.",
            unless: "It needs a CPU that has it, and on a nested host an outer hypervisor that offers it.",
            check: "trapline exits --event msr: no writes of 0x80b; trapline facts: enable_apicv or avic is Y.",
        },
        Remedy {
            what: "If it is on: find out what inhibits it for this guest. kvm:kvm_apicv_inhibit_changed has the reason \
                (the PIT's reinjection, SynIC's AutoEOI, an irqchip in user space (kernel-irqchip=off; a split one \
                does not), nested guests, \
                ExtINT). On AMD processors without x2AVIC a guest in x2APIC mode exits for its registers all the same.",
            price: "None.",
            unless: "Some kernels before 5.18 call the event kvm_apicv_update_request, or do not have it.",
            check: "trapline events --event kvm_apicv_inhibit_changed.",
        },
        Remedy {
            what: "Make interrupts fewer: adaptive coalescing of the guest's devices, multiqueue with one queue for \
                each vCPU, paravirtual end of interrupt (kvm-pv-eoi is the default with xAPIC).",
            price: "Coalescing adds latency.",
            unless: "Coalescing harms guests that have to answer at once.",
            check: "trapline compare BEFORE AFTER.",
        },
        Remedy {
            what: "Windows, on a host without APICv or AVIC: end of interrupt without an exit: <vapic state='on'/> in \
                <hyperv>, and <relaxed state='on'/> beside it.",
            price: "None.",
            unless: "The host has APICv or AVIC in use: then the hardware does it.",
            check: "trapline exits --event msr: no writes of 0x80b, or fewer.",
        },
    ],
    sources: &[
        "Intel SDM volume 3, chapter 30 (APIC virtualization); AMD APM volume 2, 15.29 (AVIC)",
        "Linux, arch/x86/kvm/lapic.c; arch/x86/include/asm/kvm_host.h (enum kvm_apicv_inhibit)",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Apic),
        ExplainedTime::Exits(ExitClass::Msr),
        ExplainedTime::Exits(ExitClass::InterruptWindow),
        ExplainedTime::Exits(ExitClass::PageFault),
    ],
    look: RuleLook::Case(look),
};

/// Whether what the APIC costs is worth a finding.
fn matters(emulated: &ApicExits<'_>, case: &Case<'_>) -> bool {
    let sum = emulated.emulated();
    emulated.accesses() >= 1000
        && sum.ns >= case.handling_ns() / 10
        && sum.ns >= case.picture.busy_ns() / 100
}

fn look(case: &Case<'_>) -> Verdict {
    if !case.x86() {
        return Verdict::NotOfMachine;
    }
    if !case.has_exits() {
        return unknown();
    }
    let emulated = ApicExits::of(case.picture);
    let virtualized = emulated.virtualized.count;
    if virtualized > emulated.accesses() {
        return Verdict::Clear;
    }
    if !matters(&emulated, case) {
        return match unrecorded(case) && emulated.page.count == 0 && virtualized == 0 {
            true => unknown(),
            false => Verdict::Clear,
        };
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let mut finding = offered(case, say(case, &emulated));
    let changes = case.picture.events("kvm_apicv_inhibit_changed");
    if let Some(changes) = changes.filter(|count| *count > 0) {
        finding = finding.evidence(says!(
            "KVM inhibited APICv or AVIC, or allowed it again, {changes} in the recording.",
            changes = Times(changes),
        ));
    }
    finding.found()
}

fn say(case: &Case<'_>, emulated: &ApicExits<'_>) -> Finding {
    let sum = emulated.emulated();
    let mut finding = Finding::new(&RULE, 0.85)
        .cost(case.vcpu_cost(sum.ns))
        .title(format!(
            "KVM emulates the local APIC (no APICv or AVIC): {} exits, {}",
            sum.count,
            human(sum.ns)
        ));
    let all = case.all_exits();
    for line in listed(apic::table_of, &emulated.eoi, (all.count, "exits"), 2) {
        finding = finding.evidence(line);
    }
    for (name, sum) in [
        ("APIC_ACCESS", emulated.page),
        ("Interrupt windows", emulated.windows),
    ] {
        if sum.count > 0 {
            finding = finding.evidence(says!(
                "{reason}: {exits} exits ({share}), {time}.",
                reason = name,
                exits = sum.count,
                share = Of(sum.count, all.count),
                time = Ns(sum.ns),
            ));
        }
    }
    finding
}

/// Says whether the host offers it, which chooses the remedies.
fn offered(case: &Case<'_>, finding: Finding) -> Finding {
    let Some(offer) = ApicvOffer::of(case) else {
        return finding;
    };
    let finding = finding.evidence(says!(
        "The host's {module} has {name}={value}.",
        module = offer.module,
        name = offer.name,
        value = offer.value,
    ));
    match offer.is_on() {
        true => finding.only(&[1, 2]),
        false => finding.only(&[0, 2]),
    }
}

/// Whether there are exits that may be the local APIC's, and the registers or addresses they are for are not known.
fn unrecorded(case: &Case<'_>) -> bool {
    let many = |sum: RowSum| sum.count >= 1000 && case.matters(sum.ns);
    let registers = case.picture.rows(ExitTable::Msr);
    // A guest that uses the x2APIC's registers does not touch the page.
    let x2apic = registers.iter().any(|row| {
        row.address
            .is_some_and(|msr| (0x800..=0x8ff).contains(&msr))
    });
    let writes = many(case.msr_writes());
    let faults = many(case.exits(&["EPT_VIOLATION", "EPT_MISCONFIG", "npf"]));
    let page = case.records("kvm_mmio", ExitTable::Mmio) || case.records_addresses() || x2apic;
    (writes && !case.records("kvm_msr", ExitTable::Msr)) || (faults && !page)
}

fn unknown() -> Verdict {
    Verdict::Unknown(
        "Record kvm:kvm_exit, kvm:kvm_entry, kvm:kvm_msr and kvm:kvm_mmio, or add what perf kvm \
         stat report --event=msr and --event=mmio print, to know."
            .to_owned(),
    )
}
