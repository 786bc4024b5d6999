//! A vCPU that takes device interrupts prints on an emulated serial console.

use analysis::{ExitTable, UserCause, VcpuRow};
use model::Access;
use paths::{PathReport, Trait};
use stats::duration::human;

use crate::case::{Sum, percent, plural};
use crate::{Case, Finding, Remedy, Rule, Severity, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "console-on-irq-vcpu",
    title: "A vCPU that takes device interrupts prints on an emulated serial console",
    looks_at: "exits to the VMM for a serial port (8250/16550, PL011), by vCPU; device interrupts that came while their \
               vCPU was at it",
    needs: "kvm:*, sched:sched_switch, sched:sched_waking, and probes on irqfd_wakeup or irqfd_inject",
    measures: &[],
    cause: "Every byte that the guest prints on an emulated serial port leaves the guest and goes to the VMM, which \
            writes it to a terminal and raises the port's own interrupt. An interrupt for a device waits until its vCPU is \
            done: the vCPU is running already, so nothing wakes it and nothing is lost but time.",
    remedies: &[
        Remedy {
            what: "Keep output off the serial console: work over ssh, lower the console's log level, or take \
                   console=ttyS0 (arm64: ttyAMA0) off the guest's kernel command line.",
            price: "What the guest's kernel says at boot or while it crashes is then in its log only.",
            unless: "Not where the console is how crashes are kept (kdump, netconsole or pstore do that as well).",
            check: "trapline paths --path irqfd: no slow instances with exits to user space for the port; trapline vcpus: \
                    the port is gone from what the VMM was needed for.",
        },
        Remedy {
            what: "Use a paravirtual console: a virtio console (<console type='pty'><target type='virtio'/></console>, \
                   console=hvc0 in the guest), which takes a line for one exit.",
            price: "It works once the guest's driver is there: early boot messages still go to the serial port.",
            unless: "Not as the only console of a guest whose boot loader has to be seen.",
            check: "trapline compare BEFORE AFTER: exits for the serial port against those of the virtio console.",
        },
        Remedy {
            what: "What does not help for long: move the device's interrupt to another vCPU (smp_affinity in the guest). It \
                   helps only while the printing stays behind: the task that prints runs where its interrupts wake it, and \
                   follows.",
            price: "None, and the slow instances come back.",
            unless: "Not unless what prints is bound to other vCPUs too (taskset).",
            check: "trapline paths --path irqfd, some minutes later as well.",
        },
    ],
    sources: &[
        "QEMU, hw/char/serial.c, hw/char/pl011.c: each access of a data register is handled in user space",
        "Linux, virt/kvm/eventfd.c (irqfd); Documentation/admin-guide/serial-console.rst",
    ],
    look,
};

/// Exits for a serial port that are printing and not a look at it.
const ENOUGH: u64 = 500;

fn is_uart(access: &Access) -> bool {
    match *access {
        Access::Port { port, .. } => is_uart_at(ExitTable::Ioport, u64::from(port)),
        Access::Mmio { gpa, .. } => is_uart_at(ExitTable::Mmio, gpa),
        Access::Msr { .. } => false,
    }
}

fn is_uart_at(table: ExitTable, address: u64) -> bool {
    match table {
        ExitTable::Ioport => {
            matches!(address, 0x3f8..=0x3ff | 0x2f8..=0x2ff | 0x3e8..=0x3ef | 0x2e8..=0x2ef)
        }
        // QEMU's virt machine (hw/arm/virt.c); kvmtool has 8250s at 0x1000000.
        ExitTable::Mmio => {
            (0x900_0000..0x900_1000).contains(&address)
                || (0x100_0000..0x100_1000).contains(&address)
        }
        _ => false,
    }
}

fn of_uart(cause: &UserCause) -> bool {
    let name = cause.name.as_deref().unwrap_or_default();
    let named = ["serial", "PL011", "pl011", "uart"]
        .iter()
        .any(|uart| name.starts_with(uart));
    named || cause.access.as_ref().is_some_and(is_uart)
}

fn look(case: &Case<'_>) -> Verdict {
    let rows: &[VcpuRow] = case
        .picture
        .vcpus
        .as_ref()
        .map_or(&[], |report| &report.rows);
    if rows.is_empty() && !case.has_exits() {
        let tables = [ExitTable::Ioport, ExitTable::Mmio];
        return match tables
            .iter()
            .any(|table| !case.picture.rows(*table).is_empty())
        {
            true => by_accesses(case),
            false => from_the_scheduler_alone(case),
        };
    }
    let sums = rows.iter().map(|row| {
        let uart = row.user.iter().filter(|cause| of_uart(cause));
        let (count, ns) = uart.fold((0u64, 0u64), |sum, cause| {
            (sum.0 + cause.count, sum.1 + cause.ns)
        });
        (row, count, ns)
    });
    let irqfd = case.picture.path("irqfd");
    let delayed = irqfd.map(hit).unwrap_or_default();
    let taken = |tid: i32| {
        let of_vcpu = irqfd.and_then(|path| path.vcpus.iter().find(|(of, ..)| *of == tid));
        of_vcpu.map_or(0, |one| one.1)
    };
    // Two per cent of one vCPU's time is a lot to print for. Of several that do it is one that takes interrupts.
    let prints = sums.filter(|(row, count, ns)| *count >= ENOUGH && *ns >= row.times.total() / 50);
    let Some((row, count, ns)) = prints.max_by_key(|(row, _, ns)| (taken(row.tid) > 0, *ns)) else {
        let told = rows.iter().any(|row| !row.user.is_empty())
            || case.picture.events("kvm_userspace_exit").is_some();
        return match told {
            true => Verdict::Clear,
            false => by_accesses(case),
        };
    };
    let observed = row.times.total();
    let takes = irqfd.map(|_| taken(row.tid));
    if takes == Some(0) {
        // It prints, and no device interrupts it.
        return Verdict::Clear;
    }
    // Without irqfds the VMM sends messages for devices itself; a serial port's own interrupt is a pin.
    // arm64 has no event for the message, and tells whose it is by waking a vCPU only: one that prints is not woken.
    let sent = case.picture.events("kvm_msi_set_irq").unwrap_or(0);
    let raised = case.picture.events_about("irqfd_wakeup");
    let raised = raised.max(case.picture.events_about("irqfd_inject"));
    if irqfd.is_none() && sent.max(raised) < 50 {
        return Verdict::Clear;
    }
    let vm = row.vm_name.clone().unwrap_or_else(|| "its VM".to_owned());
    let confidence = match (delayed.0, takes) {
        (1.., _) => 0.95,
        (_, Some(_)) => 0.7,
        _ => 0.6,
    };
    let mut finding = Finding::new(&RULE, confidence)
        .cost(case.vcpu_cost(ns))
        .title(format!(
            "vCPU {} of {vm} prints on an emulated serial console: {count} exits to the VMM, {}",
            row.vcpu,
            human(ns)
        ))
        .evidence(format!(
            "vCPU {} of {vm} (thread {}) was in the VMM {count} times for its serial port, {} in all: {} of the time it \
             was observed, {} each.",
            row.vcpu,
            row.tid,
            human(ns),
            percent(ns, observed),
            human(ns / count.max(1)),
        ));
    let mut causes: Vec<&UserCause> = row.user.iter().filter(|cause| of_uart(cause)).collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
    for cause in causes.iter().take(2) {
        let access = cause
            .access
            .as_ref()
            .map(analysis::access_key)
            .unwrap_or_default();
        let name = cause.name.as_deref().unwrap_or("serial port");
        finding = finding.evidence(format!(
            "{access} ({name}): {} times, {}.",
            cause.count,
            human(cause.ns)
        ));
    }
    match (irqfd, delayed) {
        (Some(path), (late @ 1.., late_ns)) => {
            finding.at_least = Severity::Medium;
            let others = path.count.saturating_sub(late);
            let others_ns = path.total.total().saturating_sub(late_ns);
            finding = finding.evidence(format!(
                "{late} of {} device interrupts came while their vCPU was leaving its guest for the serial port, and took {} \
                 on average up to the guest; the others {}.",
                path.count,
                human(late_ns / late),
                human(others_ns / others.max(1)),
            ));
        }
        (Some(_), _) => {
            finding = finding.evidence(format!(
                "It takes device interrupts as well: {} of them.",
                takes.unwrap_or(0)
            ));
        }
        (None, _) => {
            finding = finding.evidence(if raised > 0 {
                format!("{raised} device interrupts woke no vCPU; whose they were is not recorded.")
            } else {
                format!(
                    "{sent} messages of devices are interrupts; whose they were is not recorded: probes on irqfd_wakeup and \
                     irqfd_inject tell."
                )
            });
        }
    }
    if let Some(domain) = case.domain {
        let virtio = |console: &domain::Console| console.target_type.as_deref() == Some("virtio");
        if !domain.consoles.iter().any(virtio) {
            finding = finding.changes(1, vec![domain::Change::ConsoleVirtio]);
        }
    }
    finding.found()
}

/// Sums of accesses: whether there is anything to record for.
fn by_accesses(case: &Case<'_>) -> Verdict {
    let mut uart = Sum::default();
    let mut addresses = false;
    for table in [ExitTable::Ioport, ExitTable::Mmio] {
        addresses |= !case.picture.rows(table).is_empty();
        let rows = case.accesses(table, |row| {
            row.address.is_some_and(|at| is_uart_at(table, at))
        });
        let sum = Sum::of(rows);
        uart.count = uart.count.saturating_add(sum.count);
        uart.ns = uart.ns.saturating_add(sum.ns);
    }
    if uart.count >= ENOUGH {
        return Verdict::Lacks(format!(
            "The guest accessed a serial port {} times, {} in all. Which vCPU that was, and whether it takes a device's \
             interrupts, is not recorded: record kvm:*, sched:sched_switch, sched:sched_waking and probes on irqfd_wakeup and \
             irqfd_inject to know.",
            uart.count,
            human(uart.ns)
        ));
    }
    let emulated = case.exits(&["IO_INSTRUCTION", "io", "EPT_MISCONFIG", "npf", "DABT_LOW"]);
    if addresses || (case.has_exits() && emulated.count < ENOUGH) {
        return Verdict::Clear;
    }
    lacks()
}

/// Instances whose vCPU was at a serial port, and the sum of their totals.
fn hit(path: &PathReport) -> (u64, u64) {
    // An instance may have one of the two, or both, and either for several registers: the largest is a lower bound.
    let of = |pick: &dyn Fn(&Trait) -> bool| {
        let having = path.traits.iter().filter(|had| pick(&had.what));
        having
            .map(|had| (had.count, had.ns))
            .max()
            .unwrap_or_default()
    };
    let busy = of(&|one| matches!(one, Trait::BusyWith(access) if is_uart(access)));
    let meanwhile = of(&|one| matches!(one, Trait::Accesses(access, true, 1) if is_uart(access)));
    busy.max(meanwhile)
}

/// Without KVM's events: interrupts for a vCPU that was running, and was long in answering.
fn from_the_scheduler_alone(case: &Case<'_>) -> Verdict {
    let Some(path) = case.picture.path("irqfd") else {
        return lacks();
    };
    if let Some(lacks) = case.in_ticks() {
        return lacks;
    }
    let Some(answered) = path.stage("kworker done → answered") else {
        return lacks();
    };
    let count = answered.stats.count();
    let slowest = answered.stats.max();
    let woken: u64 = (path.stages.iter())
        .filter(|stage| stage.name.ends_with("→ vCPU on CPU"))
        .map(|stage| stage.stats.mean())
        .max()
        .unwrap_or(0);
    // A vCPU that is free answers in the time that waking one takes, or some of them.
    if slowest < 500_000 || slowest < woken.saturating_mul(5) {
        return lacks();
    }
    let mut finding = Finding::new(&RULE, 0.4)
        .cost(case.span_cost(answered.stats.total()))
        .title(format!(
            "A vCPU that was running already took {} to answer an interrupt",
            human(slowest)
        ))
        .evidence(format!(
            "{}: the kworker woke no vCPU, so it was running already, and the answer came up to {} later.",
            plural(count, "interrupt"),
            human(slowest)
        ));
    if woken > 0 {
        finding = finding.evidence(format!(
            "Where the vCPU had to be woken it had its CPU after {} on average.",
            human(woken)
        ));
    }
    finding = finding.evidence(
        "What the vCPU was busy with is not recorded; a serial console is the usual reason. Record kvm:* as well to see \
         its exits and their ports.",
    );
    finding.at_least = Severity::Medium;
    finding.found()
}

fn lacks() -> Verdict {
    Verdict::Lacks(
        "Record kvm:*, sched:sched_switch, sched:sched_waking and probes on irqfd_wakeup and irqfd_inject to know.".to_owned(),
    )
}
