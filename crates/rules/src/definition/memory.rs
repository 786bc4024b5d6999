//! Memory and the CPU model.

use domain::{DefinitionForm, Domain};
use facts::Host;

use super::remark::{BY_LOAD, DefinitionRemark, RemarkKind, SELDOM, in_form};
use crate::RecordNeeds::Exits;

pub(super) static NO_HUGE_PAGES: RemarkKind = RemarkKind {
    id: "no-huge-pages",
    why: "With small pages the guest misses the TLB more often, each miss walks two page tables, and the memory is \
        faulted in page by page.",
    price: "Huge pages have to be reserved on the host, best at boot, and are nobody else's then.",
    refuted_by: "AnonHugePages in the VMM's /proc/PID/smaps_rollup is most of the guest's memory.",
    confidence: BY_LOAD,
    record: &[Exits],
    sources: &["Linux, Documentation/admin-guide/mm/transhuge.rst"],
};

pub(super) static LARGE_MEMORY: RemarkKind = RemarkKind {
    id: "large-memory-without-huge-pages",
    why: "Transparent huge pages do the same as long as the host has free ones in a piece; whether it has, the \
        definition does not say.",
    price: "Huge pages have to be reserved on the host, best at boot, and are nobody else's then.",
    refuted_by: "AnonHugePages in the VMM's /proc/PID/smaps_rollup is most of the guest's memory.",
    confidence: SELDOM,
    record: &[Exits],
    sources: &["Linux, Documentation/admin-guide/mm/transhuge.rst"],
};

pub(super) static CPU_MODEL: RemarkKind = RemarkKind {
    id: "cpu-model",
    why: "A model of QEMU's may be without what the host's CPU has: an invariant TSC, by which guests keep time \
        without exits, wide vectors, instructions for ciphers.",
    price: "The guest has to be shut down and started again, and can only be migrated to hosts with the same CPU. \
        Windows may ask for its licence.",
    refuted_by: "The guest's clock source is the TSC or KVM's, and it uses none of the instructions.",
    confidence: SELDOM,
    record: &[Exits],
    sources: &["QEMU, docs/system/cpu-models-x86.rst.inc"],
};

/// Memory from which on huge pages are remarked on.
const LARGE: u64 = 16 << 30;

pub(super) fn memory(domain: &Domain, host: Option<&Host>, out: &mut Vec<DefinitionRemark>) {
    let change = in_form(
        domain,
        "Set <hugepages/> in <memoryBacking> after the host has reserved as many.",
        "Use -object memory-backend-file,mem-path=/dev/hugepages or memory-backend-memfd,hugetlb=on.",
        "Set hugepages: 2 or 1024 after the host has reserved as many.",
    );
    let thp = host.and_then(|host| host.thp.as_deref());
    let size = domain.memory_bytes.unwrap_or(0);
    if domain.memory_backing.hugepages.is_none() {
        if thp == Some("never") {
            let what =
                "The guest's memory has no huge pages, and the host's transparent ones are off.";
            out.push(NO_HUGE_PAGES.remark(domain, what, change));
        } else if thp.is_none() && size >= LARGE {
            let what = format!(
                "The guest has {} GiB of memory without huge pages.",
                size >> 30
            );
            out.push(LARGE_MEMORY.remark(domain, what, change));
        }
    }
    cpu_model(domain, out);
}

fn cpu_model(domain: &Domain, out: &mut Vec<DefinitionRemark>) {
    let own = matches!(domain.cpu_mode.as_deref(), Some("custom") | None);
    let arm = matches!(domain.arch.as_deref(), Some("aarch64" | "armv7l"));
    if !own || domain.kind != "kvm" || arm {
        return;
    }
    let model = domain.cpu_model.as_deref().unwrap_or("the default");
    let setting = in_form(
        domain,
        "<cpu mode='host-passthrough'/> or 'host-model'",
        "-cpu host",
        "cpu: host",
    );
    let what = format!(
        "The guest's CPU is {model}, not the host's ({setting}): it may not have what makes exits rare, such as an \
         invariant TSC."
    );
    let caution = match domain.form {
        DefinitionForm::Proxmox => "where it migrates, the model of the cluster's oldest CPU",
        _ => "where it migrates, the model of the oldest host",
    };
    out.push(CPU_MODEL.remark(domain, what, format!("Set {setting}; {caution}.")));
}
