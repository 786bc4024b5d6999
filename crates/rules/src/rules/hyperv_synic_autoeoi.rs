//! Hyper-V's synthetic interrupts with AutoEOI keep APICv from being used.

use analysis::ExitTable;
use domain::{Domain, DomainChange};
use event::ExitClass;

use crate::apic::{self, ApicExits, ApicvOffer};
use crate::case::RowSum;
use crate::evidence::{EvidenceNumber, says};
use crate::{
    Case, ExplainedTime, Finding, RecordNeeds, Remedy, RestsOn, Rule, RuleLook, Severity, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "hyperv-synic-autoeoi",
    title: "Hyper-V's synthetic interrupts with AutoEOI inhibit APICv or AVIC",
    described_as: &[
        "Windows guest without AVIC or APICv",
        "apicv inhibit reason hyperv",
        "SynIC AutoEOI",
        "hv-synic slows interrupts down",
    ],
    looks_at: "the guest's writes of HV_X64_MSR_SINT0 to SINT15 with the AutoEOI bit; <synic> in the guest's \
        definition; changes of KVM's APICv inhibition",
    needs: "kvm:kvm_msr from the guest's start on (that is when it sets them up), or --domain with --facts",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "APICv and AVIC cannot end a synthetic interrupt automatically (AutoEOI). KVM therefore inhibits them for \
        this guest and emulates all its interrupts.",
    found: &[
        "Writes of `HV_X64_MSR_SINT0` to `SINT15` that are not masked and have the AutoEOI bit: confidence 0.95 and at \
         least `medium` if the host offers APICv or AVIC, 0.75 if that is unknown; nothing if the host has it off. \
         0.3 where exits that happen with APICv or AVIC only are more than those for the local APIC. Without such \
         writes: the definition has `<synic/>` and no `<avic/>`, and ends of interrupts (0x80b, 0xfee000b0) or \
         `APIC_ACCESS` exit: 0.6 and at least `medium` where the host offers it, 0.5 where that is unknown and \
         they are {many} that take a twentieth of the exits' time. Without a definition it is not known, \
         unless registers were recorded and the guest touches none of Hyper-V's for it (0x40000080 to \
         0x400000b7), or a table of 1000 exits has no write of a register at all: \
         a guest whose interrupts end themselves writes few.",
    ],
    limits: &[("many", EvidenceNumber::Count(MANY))],
    seen_from: "one write of an interrupt source with AutoEOI, or a definition with SynIC and without AVIC",
    unknown: "`kvm_msr` from the guest's start on, or `--domain` with *facts* and *exits*.",
    advice: "",
    looks_alike: "See [apic-exits-without-apicv](#apic-exits-without-apicv): there is no APICv to lose, or something \
        else sets it aside.",
    remedies: &[
        Remedy {
            what: "Mark AutoEOI as deprecated, so that the guest does not use it: <avic state='on'/> in <hyperv> \
                (libvirt 8.10; QEMU 6.2: hv-avic; Linux 5.15 on the host).",
            price: "The guest has to be restarted.",
            unless: "Without APICv or AVIC it makes interrupts slower. Windows before Server 2012 R2 needs AutoEOI.",
            check: "trapline events --event kvm_apicv_inhibit_changed: Hyper-V's reason is gone; trapline exits \
                --event msr: no writes of 0x80b.",
        },
        Remedy {
            what: "Take <synic/> and <stimer/> away, and keep hypervclock.",
            price: "Timers use the local APIC or the HPET again, and each access is an exit.",
            unless: "It makes guests slower that are limited by their timers.",
            check: "trapline compare BEFORE AFTER.",
        },
    ],
    sources: &[
        "Hypervisor Top Level Functional Specification, 11.9 (SINT registers), 2.4.4 (deprecating AutoEOI)",
        "Linux, arch/x86/kvm/hyperv.c (synic_update_vector), APICV_INHIBIT_REASON_HYPERV; QEMU, \
         docs/system/i386/hyperv.rst",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Apic),
        ExplainedTime::Exits(ExitClass::Msr),
        ExplainedTime::Exits(ExitClass::InterruptWindow),
    ],
    look: RuleLook::Case(look),
};

/// How sure it is where the host offers APICv and the definition alone has SynIC.
const OFFERED: f64 = 0.6;
/// How sure it is where nothing is known of the host: one without APICv looks the same.
const NOT_KNOWN: f64 = 0.5;
/// How sure it is where APICv is in use all the same.
const IN_USE: f64 = 0.3;
/// So many accesses of the APIC are a guest's that is not virtualized, whatever the host.
const MANY: u64 = 1000;

const UNKNOWN_OFFER: &str =
    "It is unknown whether the host has APICv or AVIC; trapline facts on the host shows it.";

fn look(case: &Case<'_>) -> Verdict {
    if !case.x86() {
        return Verdict::NotOfMachine;
    }
    let offered = ApicvOffer::of(case);
    if offered.is_some_and(|offered| !offered.is_on()) {
        // There is nothing that AutoEOI could set aside.
        return Verdict::Clear;
    }
    let signs = &case.picture.signs;
    if signs.auto_eoi > 0 {
        return seen(case, offered);
    }
    let has = |feature| {
        case.whole_domain()
            .and_then(|domain| domain.hyperv_on(feature))
            == Some(true)
    };
    let synic = has("synic");
    if signs.no_auto_eoi > 0 || has("avic") || (case.whole_domain().is_some() && !synic) {
        return Verdict::Clear;
    }
    match synic {
        true => set_up_before(case, offered),
        false => unseen(case),
    }
}

/// The guest was seen to ask for it.
fn seen(case: &Case<'_>, offered: Option<ApicvOffer<'_>>) -> Verdict {
    let signs = &case.picture.signs;
    // Where it is known, it is on: what is off was no finding.
    let on = offered.is_some();
    let finding = Finding::new(&RULE, if on { 0.95 } else { 0.75 })
        .rests_on(RestsOn::Counts)
        .title(format!(
            "The guest set up {} synthetic interrupts with AutoEOI",
            signs.auto_eoi
        ))
        .evidence(says!(
            "{with} writes of HV_X64_MSR_SINTx had the AutoEOI bit set; {without} did not.",
            with = signs.auto_eoi,
            without = signs.no_auto_eoi,
        ))
        .evidence(match offered {
            Some(ApicvOffer { name, value, .. }) => says!(
                "The host offers it: {name}={value}.",
                name = name,
                value = value,
            ),
            None => UNKNOWN_OFFER.into(),
        });
    let mut finding = inhibited(case, finding);
    let apic = ApicExits::of(case.picture);
    if apic.virtualized.count > apic.accesses() {
        finding.confidence = IN_USE;
        finding = finding.evidence(says!(
            "{exits} exits happen with APICv or AVIC only: it is in use all the same.",
            exits = apic.virtualized.count,
        ));
    }
    finding.at_least = if on { Severity::Medium } else { Severity::Low };
    patch(case, finding).found()
}

/// The definition has SynIC, and the recording began after the guest had set it up.
fn set_up_before(case: &Case<'_>, offered: Option<ApicvOffer<'_>>) -> Verdict {
    let emulated = ApicExits::of(case.picture);
    let accesses = emulated.accesses();
    if emulated.virtualized.count > accesses {
        // The processor does it: nothing sets it aside.
        return Verdict::Clear;
    }
    let recorded = case.records("kvm_msr", ExitTable::Msr) || accesses > 0;
    if !case.has_exits() || !recorded {
        return Verdict::Unknown(
            "The guest has SynIC; record kvm:kvm_exit, kvm:kvm_entry and kvm:kvm_msr to see whether APICv is in use, \
             from its start on to see whether it uses AutoEOI; --facts of the host say whether it has APICv."
                .to_owned(),
        );
    }
    // Of a host of which nothing is known a few accesses are no sign: they may be its own way.
    let enough = match offered {
        Some(_) => accesses > 0,
        None => accesses >= MANY && case.matters(emulated.emulated().ns),
    };
    if !enough {
        return Verdict::Clear;
    }
    let (confidence, title) = match offered {
        Some(_) => (
            OFFERED,
            "The guest has SynIC, and APICv is not in use although the host has it",
        ),
        None => (
            NOT_KNOWN,
            "The guest has SynIC without AVIC, and KVM emulates its local APIC",
        ),
    };
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Counts)
        .title(title);
    if let Some(first) = emulated.eoi.first() {
        let rows = RowSum::of(emulated.eoi.iter().copied());
        finding = finding.evidence(
            says!(
                "{exits} writes of the end-of-interrupt register were exits, which APICv would have avoided.",
                exits = rows.count,
            )
            .rows_of(apic::table_of(first), &emulated.eoi),
        );
    }
    if emulated.page.count > 0 {
        finding = finding.evidence(says!(
            "{exits} accesses of the local APIC's page were exits (APIC_ACCESS), which APICv would have avoided.",
            exits = emulated.page.count,
        ));
    }
    finding = finding.evidence("Its definition has <synic state='on'/> and no <avic state='on'/>.");
    if offered.is_none() {
        finding = finding.evidence(UNKNOWN_OFFER);
    }
    let mut finding = inhibited(case, finding);
    finding.at_least = match offered {
        Some(_) => Severity::Medium,
        None => Severity::Low,
    };
    patch(case, finding).found()
}

/// Nothing shows SynIC: neither a definition nor the guest's own doing.
fn unseen(case: &Case<'_>) -> Verdict {
    let registers = case.picture.rows(ExitTable::Msr);
    let written = case.msr_writes();
    // A guest that has SynIC writes its registers as long as it runs: end of message, timers.
    let uses = registers.iter().any(|row| {
        row.address
            .is_some_and(|msr| (0x4000_0080..=0x4000_00b7).contains(&msr))
    });
    // Without its registers nobody knows what it writes: a guest that uses AutoEOI for all its interrupts, and few
    // synthetic timers, writes seldom.
    let recorded = case.records("kvm_msr", ExitTable::Msr);
    let silent = match recorded {
        true => !uses && case.all_exits().count >= 100,
        false => written.count == 0 && case.all_exits().count >= 1000,
    };
    if case.has_exits() && silent {
        return Verdict::Clear;
    }
    Verdict::Unknown(
        "Record kvm:kvm_msr from the guest's start on, which is when it sets up its synthetic interrupts; or give its \
         definition (--domain) and the facts of the host (--facts)."
            .to_owned(),
    )
}

fn inhibited(case: &Case<'_>, finding: Finding) -> Finding {
    match case.picture.events("kvm_apicv_inhibit_changed") {
        Some(count) if count > 0 => finding.evidence(says!(
            "kvm_apicv_inhibit_changed was recorded {count} times.",
            count = count,
        )),
        _ => finding,
    }
}

fn patch(case: &Case<'_>, finding: Finding) -> Finding {
    let avic = |domain: &Domain| domain.hyperv_on("avic") == Some(true);
    if case.whole_domain().is_none_or(avic) {
        return finding;
    }
    finding.changes(
        0,
        vec![DomainChange::HypervFeature {
            name: "avic".to_owned(),
            on: true,
        }],
    )
}
