//! A vCPU makes the same exit again and again and gets nowhere.

use analysis::ProgressRow;
use event::Isa;

use crate::evidence::{Many, Ns, Of, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, Precedence, RecordNeeds, Remedy, RestsOn, Rule,
    RuleLook, Severity, Verdict,
};

/// So many faults in a row at one place are no chance: a fault that KVM resolves is taken once, and by several vCPUs at
/// once a few times.
const LEAST: u64 = 100;
/// A run that is no half of the exits, and that did end, is a page that was taken away while it was mapped; if it goes
/// on for so long it is noticed.
const LONG_NS: u64 = 1_000_000_000;
/// Without addresses: several pages may be touched by one instruction (a copy), a thousand and more by none.
const WITHOUT_ADDRESS: u64 = 2_000;

pub(crate) static RULE: Rule = Rule {
    id: "vcpu-stuck",
    title: "A vCPU takes the same fault again and again",
    described_as: &[
        "a vCPU does not answer",
        "the guest hangs and one vCPU shows no progress",
        "RCU stall, NMI watchdog in the guest",
        "the VM does not boot",
    ],
    looks_at: "exits for the second stage of address translation, one behind the other, of one vCPU: whether they are \
        of one instruction, one address and one error code, with no other exit and no device between",
    needs: "kvm_exit with the guest's address; kvm_page_fault (arm64: kvm_guest_fault) for the address",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "KVM resumes the guest without mapping the page, and the instruction faults again. The guest does nothing \
        meanwhile, though its vCPU seems to run. Either the host invalidates the page as fast as it is mapped, or KVM \
        takes each fault for outdated: kernels before 6.3 do so for ever once a VM has had 2^31 invalidations.",
    found: &[
        "{least} such exits in a row at one address; {without} at one instruction where addresses are not recorded but \
         accesses of devices (kvm_mmio) are. \
         They are half of the vCPU's exits, or went on to its last one, or for {long}: memory that is taken away \
         while it is mapped faults a hundred times in a row, too. Confidence 0.9, 0.7 without \
         addresses; `high`. Nothing where a device answered, which is an access and no fault.",
    ],
    limits: &[
        ("least", EvidenceNumber::Count(LEAST)),
        ("long", EvidenceNumber::Nanoseconds(LONG_NS)),
        ("without", EvidenceNumber::Count(WITHOUT_ADDRESS)),
    ],
    seen_from: "{least} faults in a row at one address",
    unknown: "*exits*: the events have the guest's address.",
    advice: "",
    looks_alike: "Memory that is mapped page by page ([ept-violation-storm](#ept-violation-storm)) has another address \
        each time.",
    remedies: &[
        Remedy {
            what: "Compare pf_taken with pf_fixed (/sys/kernel/debug/kvm, or kvm_stat): a taken that rises while fixed \
                stands still is a KVM that takes each fault for outdated. Migrate the VM away, or boot a host kernel \
                of 6.3 or later.",
            price: "A migration, or a restart of the host.",
            unless: "Other exits come between: then the guest makes progress.",
            check: "trapline diagnose of a new recording: other exits come between.",
        },
        Remedy {
            what: "Find who takes the page away: record kvm:kvm_unmap_hva_range with stacks; try without NUMA \
                balancing (sysctl kernel.numa_balancing=0), KSM (/sys/kernel/mm/ksm/run) and khugepaged for this VM.",
            price: "Less memory is shared, and memory may be on another node.",
            unless: "pf_fixed does not rise: then nobody takes the page away.",
            check: "trapline diagnose of a new recording.",
        },
    ],
    sources: &[
        "Linux, commit 2ab5d2c7d1f0 and arch/x86/kvm/mmu/mmu.c (is_page_fault_stale); virt/kvm/kvm_main.c \
         (mmu_invalidate_retry_hva)",
    ],
    explains: &[ExplainedTime::All],
    look: RuleLook::Case(look),
};

fn look(case: &Case<'_>) -> Verdict {
    let progress = &case.picture.progress;
    if progress.rows.is_empty() {
        return Verdict::Unknown(
            "Record kvm:kvm_exit, kvm:kvm_entry and kvm:kvm_page_fault.".to_owned(),
        );
    }
    // Where accesses of devices are not recorded, a fault without an address may be one.
    let devices = case.picture.events("kvm_mmio").is_some();
    let stuck = progress.rows.iter().filter(|row| {
        let ram = (row.same_fault.place.address).is_some_and(|address| may_be_ram(case, address));
        is_stuck(row) && (devices || ram)
    });
    match stuck.max_by_key(|row| row.same_fault.count) {
        Some(row) => say(case, row).found(),
        None => Verdict::Clear,
    }
}

/// Whether memory may be at an address, where accesses of devices were not recorded: not where PCs and QEMU's `virt`
/// machine have devices.
fn may_be_ram(case: &Case<'_>, address: u64) -> bool {
    match case.picture.isa {
        Some(Isa::Arm64) => (0x4000_0000..1 << 38).contains(&address),
        _ => {
            !(0xa_0000..0x10_0000).contains(&address)
                && !(0xc000_0000..0x1_0000_0000).contains(&address)
                && address < 1 << 38
        }
    }
}

/// Returns whether a vCPU takes one fault again and again.
pub(crate) fn is_stuck(row: &ProgressRow) -> bool {
    let run = &row.same_fault;
    let long = run.to.saturating_sub(run.from) >= LONG_NS;
    let whole = run.count >= row.exits / 2 || run.to == row.to || long;
    match (run.place.address, run.place.guest_pc) {
        (Some(_), _) => run.count >= LEAST && whole,
        (None, Some(_)) => run.count >= WITHOUT_ADDRESS && whole,
        (None, None) => false,
    }
}

fn say(case: &Case<'_>, row: &ProgressRow) -> Finding {
    let run = row.same_fault;
    let ns = run.to.saturating_sub(run.from);
    let vcpu = case.vcpu_called(row.tid);
    let place = run.place;
    let at = place.address.or(place.guest_pc).unwrap_or_default();
    let confidence = match place.address {
        Some(_) => 0.9,
        None => 0.7,
    };
    let reason = place.reason.map(|reason| reason.key().into_owned());
    let reason = reason.unwrap_or_default();
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Absence)
        .cost(case.vcpu_cost(ns))
        .title(format!(
            "{} is stuck: {} {reason} in a row at {at:#x}, none of them resolved",
            words::capital(&vcpu.called),
            run.count,
        ))
        .evidence(says!(
            "{vcpu} made {exits} {reason} in a row with no other exit between, {share} of its exits, in {time}.",
            vcpu = vcpu.clone().capital(),
            exits = run.count,
            reason = reason,
            share = Of(run.count, row.exits),
            time = Ns(ns),
        ));
    if let Some(pc) = place.guest_pc {
        finding = finding.evidence(says!(
            "All are of the instruction at {pc}.",
            pc = format!("{pc:#x}"),
        ));
    }
    if let Some(address) = place.address {
        let code = match place.error_code {
            Some(code) => says!(", with error code {code}", code = format!("{code:#x}")),
            None => says!(""),
        };
        finding = finding.evidence(
            says!(
                "All are for the guest's physical address {address}",
                address = format!("{address:#x}"),
            )
            .then(code)
            .then(says!(".")),
        );
    }
    finding = unmapped(case, finding).evidence(says!(
        "To see them: {shown}.",
        shown = case.command(run.from, run.to.min(run.from + 1_000_000)),
    ));
    finding.at_least = Severity::High;
    finding.precedence = Precedence::NoProgress;
    finding
}

/// Says whether anybody took pages away meanwhile.
fn unmapped(case: &Case<'_>, finding: Finding) -> Finding {
    match case.picture.events("kvm_unmap_hva_range") {
        Some(0) | None => finding,
        Some(count) => finding.evidence(says!(
            "The host took memory away {times} (kvm_unmap_hva_range).",
            times = Many(count, "time"),
        )),
    }
}
