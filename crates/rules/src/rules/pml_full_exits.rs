//! The pages that a guest writes are being logged, and the log keeps running full.

use event::{ExitClass, Isa};
use words::duration::human;

use crate::evidence::{EvidenceNumber, Ns, says};
use crate::{Case, ExplainedTime, Finding, RecordNeeds, Remedy, Rule, RuleLook, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "pml-full-exits",
    title: "The host logs the pages that the guest writes, and the log (PML) fills up",
    described_as: &[
        "many PML_FULL exits",
        "the VM is slow during live migration, snapshot or backup",
        "migration does not converge",
        "the VM is slow while its screen is watched",
    ],
    looks_at: "exits for a full page-modification log (PML_FULL), which Intel processors have while KVM logs dirty \
        pages",
    needs: "kvm_exit and kvm_entry, or what perf kvm stat report prints",
    record: &[RecordNeeds::Exits],
    measures: &["vmexit PML_FULL"],
    cause: "Something on the host logs dirty pages: a live migration, a snapshot or backup with memory, or QEMU for \
        the guest's screen. The processor logs the first write to each page since KVM last read the log. Every exit \
        empties the log; a guest that writes 512 pages without an exit leaves with PML_FULL. KVM also splits large \
        pages while it logs, so memory is slower for longer than these exits show.",
    found: &[
        "{many} exits `PML_FULL` that matter. Confidence 0.9: no exit of this kind happens unless pages are logged. \
         Who asked for it is not in the recording.",
        "Processors of AMD and arm64 have no such log. KVM write-protects pages there, and each first write is an \
         ordinary fault: the same cause has no exit reason of its own.",
    ],
    limits: &[("many", EvidenceNumber::Count(MANY))],
    seen_from: "{many} exits that take a twentieth of the exits' time",
    unknown: "*exits*, or a printed table.",
    advice: "",
    looks_alike: "[ept-violation-storm](#ept-violation-storm) counts page faults. Logging adds faults, because large \
        pages are split at a write; only logging has `PML_FULL` exits as well.",
    remedies: &[
        Remedy {
            what: "Find out who logs: virsh domjobinfo (migration, save, backup), and the VM's VNC or SPICE viewers. \
                Compare a recording from before or after the job.",
            price: "None.",
            unless: "If the job is known and ends by itself, nothing has to be done.",
            check: "trapline exits: no PML_FULL once the job has ended.",
        },
        Remedy {
            what: "If it is a migration that takes too long: more bandwidth (virsh migrate-setspeed), multifd \
                (--parallel), or post-copy (--postcopy), which logs one pass only.",
            price: "Other traffic gets less bandwidth. With post-copy the guest waits for pages over the network, and \
                is lost if either host fails meanwhile.",
            unless: "Post-copy is not for guests that need low latency.",
            check: "virsh domjobinfo: the rate of dirty pages, and the time that remains.",
        },
        Remedy {
            what: "If it is the screen: no viewer where none is needed, a lower resolution, or a text console; servers \
                work without a graphics card (<video><model type='none'/></video>).",
            price: "No graphical console.",
            unless: "Somebody may need that screen.",
            check: "trapline compare BEFORE AFTER: PML_FULL.",
        },
        Remedy {
            what: "If the guest stops while logging begins: eager_page_split=Y (the default) breaks its huge pages up \
                beforehand, and not at each first write.",
            price: "Splitting takes time when logging is turned on.",
            unless: "The host uses no huge pages for the guest.",
            check: "trapline exits: fewer EPT_VIOLATION exits while a migration begins.",
        },
    ],
    sources: &[
        "Intel SDM volume 3, 29.3.6 (page-modification logging)",
        "Linux, arch/x86/kvm/vmx/vmx.c (handle_pml_full, vmx_flush_pml_buffer, vmx_update_cpu_dirty_logging)",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::DirtyLog),
        ExplainedTime::Exits(ExitClass::PageFault),
    ],
    look: RuleLook::Case(look),
};

/// Entries of the log, each a page of 4 KiB (PML_ENTITY_NUM, later PML_LOG_NR_ENTRIES, in arch/x86/kvm/vmx).
const ENTRIES: u64 = 512;
/// Fewer come of a screen that is redrawn now and then.
const MANY: u64 = 100;

fn look(case: &Case<'_>) -> Verdict {
    // AMD has no log of written pages.
    if !case.x86() || case.picture.isa == Some(Isa::Svm) {
        return Verdict::NotOfMachine;
    }
    if !case.has_exits() {
        return Verdict::Unknown("Record kvm:kvm_exit and kvm:kvm_entry.".to_owned());
    }
    let full = case.exits_of_class(ExitClass::DirtyLog);
    if full.count < MANY || !case.matters(full.ns) {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let mut finding = Finding::new(&RULE, 0.9)
        .cost(case.vcpu_cost(full.ns))
        .title(format!(
            "The host logs dirty pages: {} exits because the log was full, {}",
            full.count,
            human(full.ns)
        ))
        .evidence(case.says_exits("PML_FULL", full))
        .evidence(says!(
            "Each exit is for {entries} pages that the guest wrote for the first time since KVM last read the log: at \
             least {pages} pages in all.",
            entries = ENTRIES,
            pages = full.count.saturating_mul(ENTRIES),
        ));
    let faults = case.exits(&["EPT_VIOLATION"]);
    if faults.count > 0 {
        finding = finding.evidence(says!(
            "Meanwhile there were {faults} page faults (EPT_VIOLATION), {time}. Some may be for large pages that were \
             split for the log.",
            faults = faults.count,
            time = Ns(faults.ns),
        ));
    }
    finding.found()
}
