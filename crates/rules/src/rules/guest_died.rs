//! A vCPU ended: the guest shut down by a triple fault, KVM could not go on, or `KVM_RUN` failed.

use analysis::{ExitPlace, ProgressRow, VcpuEnd};
use event::ExitClass;
use facts::{KernelLogLine, LogKind};

use crate::evidence::{Evidence, Many, Ns, says};
use crate::kernel_log;
use crate::{
    Case, ExplainedTime, Finding, Precedence, RecordNeeds, Remedy, RestsOn, Rule, RuleLook,
    Severity, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "guest-died",
    title: "A vCPU ended",
    described_as: &[
        "the VM rebooted by itself",
        "KVM internal error, the VM is paused",
        "KVM_EXIT_SHUTDOWN, a triple fault",
        "the guest crashed or was reset",
    ],
    looks_at: "returns to the VMM that end a vCPU (kvm_userspace_exit: shutdown, failed entry, internal \
        error, system event), exits that are an end (TRIPLE_FAULT, shutdown), and errors of KVM_RUN",
    needs: "kvm_exit; kvm_userspace_exit for what the VMM was given; the host's kernel log for a VMM that was killed",
    record: &[RecordNeeds::Exits],
    measures: &[],
    cause: "A guest that cannot deliver an exception shuts down (triple fault): mostly it loaded a wrong page table, \
        descriptor table or control register. An internal error is an instruction that KVM cannot emulate, or an exit \
        while an event was delivered. A failed entry is state that the CPU refuses.",
    found: &[
        "The host's kernel log, of the recording's time, says that the VMM was killed to get memory (OOM). Confidence \
         0.95, at least `medium`.",
        "Any of these. Confidence 0.95. `high` if no exit of that vCPU came later; `medium` if the machine went on, \
         since its VMM reset it (some guests restart by a triple fault on purpose). A system event is a guest that \
         powers off or restarts: `low`.",
    ],
    limits: &[],
    seen_from: "the end of any vCPU",
    unknown: "*exits*.",
    advice: "",
    looks_alike: "",
    remedies: &[
        Remedy {
            what: "Look at what the guest did before: the exits listed here, the address in its symbols, its console, \
                and the VMM's log (QEMU prints the registers of a vCPU that failed; -d cpu_reset -no-reboot keeps \
                them).",
            price: "None.",
            unless: "A guest that restarts by a triple fault on purpose is well.",
            check: "trapline diagnose of a new recording.",
        },
        Remedy {
            what: "Of an internal error or a failed entry: try a newer host kernel, and the module's parameters at \
                their defaults (kvm_intel.unrestricted_guest, nested, emulate_invalid_guest_state).",
            price: "A restart of the host's modules.",
            unless: "The guest itself shut down: then the host's kernel has no part in it.",
            check: "The VM runs.",
        },
        Remedy {
            what: "Leave the host more memory: fewer or smaller guests, swap, huge pages set aside for guests alone; \
                if a control group's limit killed it, raise memory.max (libvirt's memtune), which has to hold the \
                VMM's own memory too.",
            price: "Memory that others cannot have.",
            unless: "The VMM's memory grows without an end: that is a leak.",
            check: "oom_kill of /proc/vmstat, and of the group's memory.events, stand still.",
        },
    ],
    sources: &[
        "Linux, include/uapi/linux/kvm.h (KVM_EXIT_SHUTDOWN, KVM_EXIT_FAIL_ENTRY, KVM_EXIT_INTERNAL_ERROR); \
         Documentation/virt/kvm/api.rst (KVM_RUN)",
        "Linux, mm/oom_kill.c (__oom_kill_process)",
        "Intel SDM volume 3, 6.15 (double fault), appendix C (triple fault)",
    ],
    explains: &[ExplainedTime::All],
    look: RuleLook::Case(look),
};

/// Positions of the remedies.
const BEFORE: usize = 0;
const INTERNAL: usize = 1;
const MEMORY: usize = 2;

/// `KVM_EXIT_SYSTEM_EVENT`.
const SYSTEM_EVENT: u32 = 24;

fn look(case: &Case<'_>) -> Verdict {
    let rows = case.picture.progress.rows.iter();
    let ended = rows.filter_map(|row| row.end.as_ref().map(|end| (row, end)));
    if let Some(finding) = killed(case) {
        return finding.found();
    }
    // One that went on no more, and of those the first.
    let first = ended.min_by_key(|(_, end)| (end.later_exits > 0, end.time));
    match first {
        Some((row, end)) => say(case, row, end).found(),
        None if case.printed() || !case.has_exits() => {
            let logged = case.any_logged(LogKind::VmFailed);
            let logged = logged
                .map(|line| format!("The host's log has {line}. "))
                .unwrap_or_default();
            Verdict::Unknown(format!(
                "{logged}Record kvm:kvm_exit and kvm:kvm_userspace_exit."
            ))
        }
        None => Verdict::Clear,
    }
}

/// The kernel killed the VMM to get its memory.
fn killed(case: &Case<'_>) -> Option<Finding> {
    let lines = case.logged(LogKind::OutOfMemory);
    let vmm = |line: &&KernelLogLine| {
        let vms = case.vms().iter();
        line.tid.is_some() && vms.filter_map(|vm| vm.pid).any(|pid| Some(pid) == line.tid)
    };
    let lines: Vec<&KernelLogLine> = lines.into_iter().filter(vmm).collect();
    let said = kernel_log::said(&lines)?;
    let pid = lines.first()?.tid?;
    let mut finding = Finding::new(&RULE, 0.95)
        .rests_on(RestsOn::Counts)
        .title(format!(
            "The host killed the VMM (process {pid}) to get its memory"
        ))
        .evidence(said);
    if let Some(grown) = case
        .counted_during("vmstat.oom_kill")
        .filter(|count| *count > 0)
    {
        finding = finding.evidence(says!(
            "The host's kernel counted {killed} that were killed for memory meanwhile (oom_kill of /proc/vmstat).",
            killed = Many(grown, "process"),
        ));
    }
    finding.at_least = Severity::Medium;
    finding.precedence = Precedence::NoProgress;
    Some(finding.only(&[MEMORY]))
}

/// What ended it.
fn what(end: &VcpuEnd) -> String {
    match (end.user_reason, end.errno, end.before.last()) {
        (Some(8), ..) => "shut down (KVM_EXIT_SHUTDOWN), as after a triple fault".to_owned(),
        (Some(9), ..) => "could not be entered (KVM_EXIT_FAIL_ENTRY)".to_owned(),
        (Some(17), ..) => "met an internal error of KVM (KVM_EXIT_INTERNAL_ERROR)".to_owned(),
        (Some(SYSTEM_EVENT), ..) => {
            "asked for power off or a restart (KVM_EXIT_SYSTEM_EVENT)".to_owned()
        }
        (_, Some(errno), _) => format!("ended: KVM_RUN failed with error {errno}"),
        (_, _, Some(place)) => match place.reason {
            Some(reason) if reason.class() == ExitClass::End => {
                format!("ended with the exit {}", reason.key())
            }
            _ => "ended".to_owned(),
        },
        _ => "ended".to_owned(),
    }
}

fn say(case: &Case<'_>, row: &ProgressRow, end: &VcpuEnd) -> Finding {
    let vcpu = case.vcpu_called(row.tid);
    let after = end.time.saturating_sub(row.from);
    let went_on = end.later_exits > 0;
    let mut finding = Finding::new(&RULE, 0.95)
        .rests_on(RestsOn::Counts)
        .title(format!("{} {}", words::capital(&vcpu.called), what(end)))
        .evidence(says!(
            "{vcpu} {what}, {time} after its first exit: {shown}.",
            vcpu = vcpu.capital(),
            what = what(end),
            time = Ns(after),
            shown = case.command(end.time.saturating_sub(1_000_000).max(row.from), end.time),
        ));
    if !end.before.is_empty() {
        let places = end.before.iter().map(place).collect();
        finding = finding.evidence(
            says!("Its last exits before that were ")
                .then(Evidence::join(places))
                .then(says!(".")),
        );
    }
    finding = finding.evidence(match went_on {
        true => says!(
            "{exits} exits of it came later: the machine was reset and went on.",
            exits = end.later_exits,
        ),
        false => "No exit of it came later.".into(),
    });
    let planned = end.user_reason == Some(SYSTEM_EVENT);
    finding.at_least = match (planned, went_on) {
        (true, _) => Severity::Low,
        (false, true) => Severity::Medium,
        (false, false) => Severity::High,
    };
    finding.precedence = match planned {
        true => Precedence::ByCost,
        false => Precedence::NoProgress,
    };
    match end.user_reason {
        Some(9 | 17) => finding.only(&[INTERNAL, BEFORE]),
        _ if end.errno.is_some() => finding.only(&[INTERNAL, BEFORE]),
        _ => finding.only(&[BEFORE]),
    }
}

fn place(place: &ExitPlace) -> Evidence {
    let reason = place.reason.map_or("an exit".into(), |reason| reason.key());
    match place.guest_pc {
        Some(pc) => says!(
            "{reason} at {pc}",
            reason = reason.into_owned(),
            pc = format!("{pc:#x}"),
        ),
        None => says!("{reason}", reason = reason.into_owned()),
    }
}
