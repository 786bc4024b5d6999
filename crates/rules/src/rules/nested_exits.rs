//! The guest is a hypervisor itself.

use analysis::{ExitTable, NestedExitsReport};
use event::ExitClass;
use words::duration::human;

use crate::common::listed;
use crate::evidence::{Ns, Of, says};
use crate::{Case, ExplainedTime, Finding, RecordNeeds, Remedy, RestsOn, Rule, RuleLook, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "nested-exits",
    title: "The guest runs guests of its own, and their exits are emulated",
    described_as: &[
        "nested virtualization is slow",
        "L2 guest, VMRESUME and VMREAD exits",
        "WSL2, Hyper-V, Docker Desktop or VBS in a VM is slow",
        "VM in a VM uses much CPU",
    ],
    looks_at: "exits for instructions of virtualization (VMRESUME, VMREAD, vmrun, ERET...), and nested entries and \
        exits",
    needs: "kvm_exit and kvm_entry; kvm:kvm_nested_vmexit has the inner guest's reasons",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "Each exit of an inner guest goes to the outer hypervisor first. It passes the exit to the guest's \
        hypervisor, and emulates the virtualization instructions that this one executes: one inner exit becomes \
        several outer ones. Those of the inner guest itself cost the outer hypervisor time too, and so does what the \
        guest's hypervisor leaves its mode for while it handles one.",
    found: &[
        "Exits for virtualization instructions (`VMRESUME`, `VMREAD`..., `vmrun`, `vmload`..., arm64 `ERET`), or \
         `kvm_nested_vmexit`, `kvm_nested_vmenter`, `kvm_nested_vmrun`: 100, and they matter, or 1000 nested ones. \
         Confidence 0.95. Where `kvm_nested_vmexit` is recorded, exits in which it came are the inner guest's own; the \
         cost is theirs, without waits, and that of all exits of the guest's hypervisor from there to the instruction \
         that enters its guest again, or to its halt. Elsewhere it is that of virtualization instructions alone.",
    ],
    limits: &[],
    seen_from: "100 exits of a nested guest that take a twentieth of the exits' time",
    unknown: "*exits*; `kvm:kvm_nested_vmexit` has the inner guest's reasons.",
    advice: "",
    looks_alike: "A Windows guest with VBS shows the same exits, though nobody asked for nesting.",
    remedies: &[
        Remedy {
            what: "Avoid outer exits: VMCS shadowing (kvm_intel.enable_shadow_vmcs), virtual VMLOAD/VMSAVE and virtual \
                GIF (kvm_amd.vls, vgif), APICv for the inner guest, enlightened VMCS where the guest's hypervisor is \
                Hyper-V.",
            price: "The module has to be reloaded, so the host's guests have to stop.",
            unless: "Each needs a CPU that has it.",
            check: "trapline exits: VMREAD and VMWRITE, or vmload, vmsave, stgi and clgi, are gone.",
        },
        Remedy {
            what: "Make the inner guest exit less: record in the outer guest, and diagnose that recording like any \
                other. On Windows, memory integrity (VBS) runs a hypervisor: turn it off where it is not wanted.",
            price: "Without VBS the guest has one protection less.",
            unless: "Some organisations require VBS.",
            check: "trapline compare BEFORE AFTER: nested exits in a second.",
        },
        Remedy {
            what: "Do not nest: run the inner guest on the host.",
            price: "It has to be operated in another way.",
            unless: "The isolation by the outer VM is gone.",
            check: "trapline exits: none of these reasons.",
        },
    ],
    sources: &[
        "Linux, Documentation/virt/kvm/x86/nested-vmx.rst; arch/x86/kvm/vmx/nested.c, svm/nested.c; \
         arch/arm64/kvm/nested.c",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Nested),
        ExplainedTime::AllExits,
    ],
    look: RuleLook::Case(look),
};

fn look(case: &Case<'_>) -> Verdict {
    let inner = [
        "kvm_nested_vmexit",
        "kvm_nested_vmenter",
        "kvm_nested_vmrun",
    ];
    let nested = inner
        .iter()
        .filter_map(|name| case.picture.events(name))
        .max()
        .unwrap_or(0);
    if !case.has_exits() && nested == 0 {
        return Verdict::Unknown("Record kvm:kvm_exit and kvm:kvm_entry.".to_owned());
    }
    let sum = case.exits_of_class(ExitClass::Nested);
    let seen = &case.picture.nested;
    // What was between is no less than the instructions alone, but for those before the first inner exit.
    let cost_ns = sum.ns.max(seen.inner.ns.saturating_add(seen.between.ns));
    if sum.count.max(nested) < 100 || !(case.matters(cost_ns) || nested >= 1000) {
        return Verdict::Clear;
    }
    let all = case.all_exits();
    let mut finding = Finding::new(&RULE, 0.95).rests_on(RestsOn::Counts)
        .cost(case.vcpu_cost(cost_ns))
        .title(match seen.inner.count {
            0 => format!(
                "The guest is a hypervisor: {} exits for its virtualization instructions, {}",
                sum.count,
                human(sum.ns)
            ),
            inner => format!(
                "The guest is a hypervisor: {inner} exits of its guest, and {} more for them, {}",
                seen.between.count,
                human(cost_ns)
            ),
        })
        .evidence(says!(
            "Virtualization instructions: {exits} of {all} exits ({share}), {share_of_handling} of the handling time \
             without waits.",
            exits = sum.count,
            all = all.count,
            share = Of(sum.count, all.count),
            share_of_handling = Of(sum.ns, case.handling_ns()),
        ));
    let rows = case.picture.exits_of_class(ExitClass::Nested);
    for line in listed(|_| ExitTable::Vmexit, &rows, (all.count, "exits"), 4) {
        finding = finding.evidence(line);
    }
    finding = inner_exits(seen, finding);
    for name in inner {
        if let Some(count) = case.picture.events(name).filter(|count| *count > 0) {
            finding = finding.evidence(says!(
                "{event}: {count} times.",
                event = name,
                count = count
            ));
        }
    }
    finding.found()
}

/// Says what the inner guest exited for, and what that took.
fn inner_exits(seen: &NestedExitsReport, mut finding: Finding) -> Finding {
    if seen.inner.count == 0 {
        return finding;
    }
    finding = finding.evidence(says!(
        "The inner guest exited {count} times, {time} in KVM, waits left out; its hypervisor needed {more} more exits, \
         {between}, to handle them.",
        count = seen.inner.count,
        time = Ns(seen.inner.ns),
        more = seen.between.count,
        between = Ns(seen.between.ns),
    ));
    for (reason, sum) in seen.reasons.iter().take(4) {
        finding = finding.evidence(says!(
            "{reason}: {count} of {all} exits of the inner guest ({share}), {time} in all.",
            reason = reason.as_str(),
            count = sum.count,
            all = seen.inner.count,
            share = Of(sum.count, seen.inner.count),
            time = Ns(sum.ns),
        ));
    }
    finding
}
