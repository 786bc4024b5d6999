//! Clocks, timers and Hyper-V's enlightenments.

use domain::{DefinitionForm, Domain, DomainChange, GuestOs};

use super::remark::{BY_LOAD, DefinitionRemark, MOST, RemarkKind, SELDOM, in_form};
use crate::RecordNeeds::Exits;

const QEMU: &str = "QEMU, docs/system/i386/hyperv.rst";
const RESTART: &str = "The guest has to be shut down and started again: it looks for them when it boots. QEMU does \
    not start it on a host whose KVM has not all of them.";

pub(super) static HYPERV_TIMERS: RemarkKind = RemarkKind {
    id: "hyperv-timers",
    why: "Without Hyper-V's synthetic timers several versions of Windows fall back to the HPET or, where that is \
        taken away, to the RTC: a tick by emulated registers, with exits to the VMM at every one, in an idle guest \
        too. The timers (stimer) need the clock, the interrupt controller (synic) and each vCPU's index (vpindex).",
    price: "The guest has to be shut down and started again: it looks for them when it boots. QEMU does not start \
        it on a host whose KVM has not all of them. Where guests use APICv or AVIC, synic sets these aside unless \
        hv-avic is on too (hyperv-synic-autoeoi).",
    refuted_by: "A recording of the idle guest with few exits for ports 0x70, 0x71 and the ACPI PM timer and for the \
        HPET (timer-port-exits and hpet-mmio-exits find nothing).",
    confidence: MOST,
    record: &[Exits],
    sources: &[
        QEMU,
        "QEMU, commit c686193072a4 (hv-stimer needs hv-time and hv-synic)",
    ],
};

pub(super) static HYPERV_CLOCK: RemarkKind = RemarkKind {
    id: "hyperv-clock",
    why: "Without the reference TSC page Windows reads the time from emulated registers: each read is an exit.",
    price: RESTART,
    refuted_by: "A recording with few exits for the ACPI PM timer and the HPET.",
    confidence: MOST,
    record: &[Exits],
    sources: &[QEMU],
};

pub(super) static HYPERV_OTHERS: RemarkKind = RemarkKind {
    id: "hyperv-enlightenments",
    why: "QEMU's documents recommend them for every Windows guest: ends of interrupts without an exit (vapic), spins \
        that give the CPU away (spinlocks), no watchdog that fires on a slow host (relaxed), no measuring of \
        frequencies at boot, and remote TLB flushes (tlbflush) and IPIs (ipi) in one hypercall.",
    price: RESTART,
    refuted_by: "A recording with few exits for the APIC, for PAUSE and for IPIs: they would save nothing.",
    confidence: SELDOM,
    record: &[Exits],
    sources: &[QEMU],
};

pub(super) static HPET: RemarkKind = RemarkKind {
    id: "hpet",
    why: "The HPET is emulated by the VMM: where the guest uses it as its clock or timer, each access is an exit.",
    price: "The guest has to be shut down and started again. A guest without another clock keeps time by the ACPI PM \
        timer, which is no faster.",
    refuted_by: "A recording with few accesses of 0xfed00000 to 0xfed003ff (hpet-mmio-exits finds nothing).",
    confidence: BY_LOAD,
    record: &[Exits],
    sources: &[QEMU, "libvirt, docs/formatdomain.rst (timer)"],
};

pub(super) static NO_KVMCLOCK: RemarkKind = RemarkKind {
    id: "no-kvmclock",
    why: "Linux then takes the TSC if it believes in it, else the HPET or the ACPI PM timer, each read of which is \
        an exit.",
    price: "The guest has to be shut down and started again.",
    refuted_by: "The guest's /sys/devices/system/clocksource/clocksource0/current_clocksource is tsc.",
    confidence: SELDOM,
    record: &[Exits],
    sources: &["Linux, arch/x86/kernel/kvmclock.c"],
};

/// What Windows' timers take, in the order of their needs.
const TIMERS: [&str; 3] = ["vpindex", "synic", "stimer"];
/// What else is recommended; the last two are about other vCPUs.
const OTHERS: [&str; 6] = [
    "relaxed",
    "vapic",
    "spinlocks",
    "frequencies",
    "tlbflush",
    "ipi",
];

fn present(domain: &Domain, timer: &str) -> Option<bool> {
    domain.timer(timer).and_then(|timer| timer.present)
}

fn has_clock(domain: &Domain) -> bool {
    let through = domain.hyperv.as_ref().and_then(|one| one.mode.as_deref()) == Some("passthrough");
    through || present(domain, "hypervclock") == Some(true)
}

/// Returns those of some enlightenments that the guest does not have.
fn missing(domain: &Domain, of: &[&'static str]) -> Vec<&'static str> {
    let off = |name: &&&'static str| domain.hyperv_on(name) != Some(true);
    of.iter().filter(off).copied().collect()
}

pub(super) fn clocks(domain: &Domain, out: &mut Vec<DefinitionRemark>) {
    let x86 = domain
        .arch
        .as_deref()
        .is_none_or(|arch| matches!(arch, "x86_64" | "i686"));
    if !x86 {
        return;
    }
    let windows = domain.os == GuestOs::Windows;
    let timers = missing(domain, &TIMERS);
    if windows {
        hyperv(domain, &timers, out);
    }
    hpet(domain, windows && !timers.is_empty(), out);
    if present(domain, "kvmclock") == Some(false) && !windows {
        let change = "Take <timer name='kvmclock' present='no'/> away.";
        let change = in_form(domain, change, "Take -kvmclock out of -cpu.", change);
        out.push(NO_KVMCLOCK.remark(domain, "The guest has no kvmclock.", change));
    }
}

fn hyperv(domain: &Domain, timers: &[&'static str], out: &mut Vec<DefinitionRemark>) {
    let clock = has_clock(domain);
    let timer = || DomainChange::Timer {
        name: "hypervclock".to_owned(),
        present: true,
    };
    if !clock {
        let what = "The guest is Windows and has no Hyper-V clock (<timer name='hypervclock' present='yes'/>).";
        let what = in_form(
            domain,
            what,
            "The guest is Windows and has no Hyper-V clock (hv-time).",
            what,
        );
        let remark = HYPERV_CLOCK.remark(domain, what, adding(domain, &[], true));
        out.push(remark.changing(domain, vec![timer()]));
    }
    if !timers.is_empty() {
        let what = format!(
            "The guest is Windows and has no Hyper-V {}, which its timers need.",
            timers.join(", ")
        );
        let mut changes: Vec<DomainChange> = timers.iter().map(|name| feature(name)).collect();
        if !clock {
            changes.push(timer());
        }
        let remark = HYPERV_TIMERS.remark(domain, what, adding(domain, timers, !clock));
        out.push(remark.changing(domain, changes));
    }
    // Flushes and IPIs are about other vCPUs.
    let single = domain.vcpus == Some(1);
    let wanted = if single { &OTHERS[..4] } else { &OTHERS[..] };
    let others = missing(domain, wanted);
    if !others.is_empty() {
        let what = format!(
            "The guest is Windows and has no Hyper-V {}.",
            others.join(", ")
        );
        let changes = others.iter().map(|name| feature(name)).collect();
        let remark = HYPERV_OTHERS.remark(domain, what, adding(domain, &others, false));
        out.push(remark.changing(domain, changes));
    }
}

fn feature(name: &str) -> DomainChange {
    DomainChange::HypervFeature {
        name: name.to_owned(),
        on: true,
    }
}

/// Says how enlightenments are added, and the clock.
fn adding(domain: &Domain, names: &[&str], clock: bool) -> String {
    let list = |each: &dyn Fn(&&str) -> String| -> String {
        names.iter().map(each).collect::<Vec<_>>().join(", ")
    };
    match domain.form {
        DefinitionForm::Libvirt | DefinitionForm::CutLibvirt | DefinitionForm::Virsh => {
            let all = list(&|name| match *name {
                "spinlocks" => "<spinlocks state='on' retries='8191'/>".to_owned(),
                name => format!("<{name} state='on'/>"),
            });
            let clock_element = "<timer name='hypervclock' present='yes'/> to <clock>";
            match (names.is_empty(), clock) {
                (true, _) => format!("Add {clock_element}."),
                (false, true) => {
                    format!("Add {all} to <hyperv> in <features>, and {clock_element}.")
                }
                (false, false) => format!("Add {all} to <hyperv> in <features>."),
            }
        }
        DefinitionForm::Qemu => {
            let mut all: Vec<String> = names
                .iter()
                .map(|name| match *name {
                    "spinlocks" => "hv-spinlocks=0x1fff".to_owned(),
                    name => format!("hv-{name}"),
                })
                .collect();
            if clock {
                all.push("hv-time".to_owned());
            }
            format!("Add {} to -cpu.", all.join(","))
        }
        DefinitionForm::Proxmox => {
            let flags: Vec<&str> = names
                .iter()
                .copied()
                .filter(|name| *name == "tlbflush")
                .collect();
            match (flags.len() == names.len(), names.is_empty()) {
                (true, false) => "Add +hv-tlbflush to flags= of cpu:.".to_owned(),
                _ => "Set ostype: to the version of Windows, with which Proxmox adds most of them; others can only \
                      be given in args: as a whole -cpu."
                    .to_owned(),
            }
        }
    }
}

/// The HPET: asked for, or left to QEMU, which gives one to x86 machines, where Windows falls back to it.
fn hpet(domain: &Domain, falls_back: bool, out: &mut Vec<DefinitionRemark>) {
    let what = match present(domain, "hpet") {
        Some(true) => "The guest has an HPET: where it is used as the clock, each read is an exit.",
        None if falls_back => {
            "The definition does not take the HPET away, and this Windows guest has no Hyper-V timers to use instead."
        }
        _ => return,
    };
    let change = in_form(
        domain,
        "Set <timer name='hpet' present='no'/> in <clock>; first give Windows its timers.",
        "Add hpet=off to -machine; first give Windows its timers.",
        "Set ostype: to the guest's system: Proxmox takes the HPET away for Windows.",
    );
    let changes = match domain.os {
        GuestOs::Windows => vec![DomainChange::Timer {
            name: "hpet".to_owned(),
            present: false,
        }],
        _ => Vec::new(),
    };
    out.push(HPET.remark(domain, what, change).changing(domain, changes));
}
