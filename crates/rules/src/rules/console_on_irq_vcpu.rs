//! A vCPU that takes device interrupts prints on an emulated serial console.

use analysis::{CountPrinter, ExitTable, FileWrites, UserCause, VcpuRow};
use event::ExitClass;
use model::GuestAccess;
use paths::{DropReason, PathReport};
use stats::Stats;
use words::{duration::human, plural};

use crate::case::RowSum;
use crate::evidence::{Many, Ns, Of, PerSecond, Ratio, ThreadMention, Times, says};
use crate::{
    Case, EvidenceNumber, ExplainedTime, Finding, RecordNeeds, Remedy, RestsOn, Rule, RuleLook,
    Severity, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "console-on-irq-vcpu",
    title: "A vCPU that takes device interrupts prints on an emulated serial console",
    described_as: &[
        "printk slows the guest down",
        "network latency rises while the guest prints to its serial console",
        "ping jumps while the guest logs to ttyS0 or ttyAMA0",
        "soft lockups during boot messages",
    ],
    looks_at: "exits to the VMM for a serial port (8250/16550, PL011), by vCPU; device interrupts that arrived while \
        their vCPU handled such an exit, and how long they took compared with its other interrupts",
    needs: "kvm:*, sched:sched_switch, sched:sched_waking",
    record: &[RecordNeeds::Paths],
    measures: &[],
    cause: "Every byte that the guest prints on an emulated serial port is an exit to the VMM, which writes the byte \
        to a terminal and raises the port's own interrupt. A device interrupt that arrives meanwhile waits until the \
        vCPU has handled the exit and enters its guest again.",
    found: &[
        "A vCPU that was in the VMM for a serial port: {exits} exits and 2 % of its observed time; and {met} device \
         interrupts (path `device-irq`: messages, whoever sends them) that came to it meanwhile. Their median is twice \
         that of the *same vCPU's* other interrupts and more than nine of ten of those took: confidence 0.95, at least \
         `medium`. That the median of {met} is so by chance happens once in a hundred times. With less than {met} \
         others it has to be five times what one exit for the port takes: 0.5. Where no event shows when the guest \
         takes an interrupt (arm64; APICv, which delivers without `kvm_inj_virq`; or that event is not recorded): 0.5. \
         So it is where one event in a hundred was lost. A vCPU that prints and takes no interrupts meanwhile is no \
         finding; nor is one whose interrupts do not wait for it. Where more than a tenth of the interrupts are of an \
         unknown VM, or messages are not recorded: not known. Tables of ports or memory with {exits} accesses of a \
         serial port do not say which vCPU that was: not known.",
        "From the scheduler alone: after an interrupt for a vCPU that was running already, the answer took 0.5 ms or \
         more and five times what waking a vCPU takes: 0.4, at least `medium`. What kept the vCPU busy is then \
         unknown.",
        "From system calls alone (`strace`, `perf trace`): a thread writes one byte to a file descriptor {met} times \
         or more, which is nine of ten of its writes there, and comes back from `KVM_RUN` for each. 0.8 where the file \
         is a terminal; 0.6 where the thread sets an interrupt line for each byte; else 0.4. `medium` from {exits} \
         bytes a second on.",
    ],
    limits: &[
        ("exits", EvidenceNumber::Count(ENOUGH)),
        ("met", EvidenceNumber::Count(SEVERAL)),
    ],
    seen_from: "{exits} exits for a serial port, 2 % of a vCPU's time, and {met} device interrupts that came \
        to it meanwhile and took twice as long as its others",
    unknown: "*all*; no probes.",
    advice: "",
    looks_alike: "Interrupts that wait for a vCPU *without a CPU* are [vcpu-preempted](#vcpu-preempted); for one that \
        is *halted*, the host's idle states and [halted-target-ipi](#halted-target-ipi). In this case the vCPU has its \
        CPU.",
    remedies: &[
        Remedy {
            what: "Keep output off the serial console: work over ssh, lower the console's log level, or take \
                   console=ttyS0 (arm64: ttyAMA0) off the guest's kernel command line.",
            price: "Messages of the guest's kernel at boot and in a crash are then in its log only.",
            unless: "If crash messages are captured from the console, set up kdump, netconsole or pstore first.",
            check: "trapline paths --path device-irq: no slow instances with exits to user space for the port; \
                trapline vcpus: the port is no longer among the reasons for exits to the VMM.",
        },
        Remedy {
            what: "Use a paravirtual console: a virtio console (<console type='pty'><target type='virtio'/></console>, \
                   console=hvc0 in the guest), which needs one exit for a line.",
            price: "It works only after the guest has loaded the driver: early boot messages still go to the serial \
                port.",
            unless: "The boot loader does not print on it: keep the serial port where its output is needed.",
            check: "trapline compare BEFORE AFTER: exits for the serial port against those of the virtio console.",
        },
        Remedy {
            what: "Moving the device's interrupt to another vCPU (smp_affinity in the guest) does not help for long: \
                the task that prints runs where its interrupts wake it, and follows the interrupt.",
            price: "None, but the slow instances come back.",
            unless: "It helps only if the task that prints is bound to other vCPUs (taskset).",
            check: "trapline paths --path device-irq, at once and again some minutes later.",
        },
    ],
    sources: &[
        "QEMU, hw/char/serial.c, hw/char/pl011.c: each access of a data register is handled in user space",
        "Linux, virt/kvm/eventfd.c (irqfd); Documentation/admin-guide/serial-console.rst",
    ],
    explains: &[
        ExplainedTime::Exits(ExitClass::Port),
        ExplainedTime::Exits(ExitClass::Mmio),
        ExplainedTime::Exits(ExitClass::PageFault),
    ],
    look: RuleLook::Case(look),
};

/// Exits for a serial port that are printing and not a look at it.
const ENOUGH: u64 = 500;
/// Fewer interrupts that met printing, or did not, are a coincidence.
const SEVERAL: u64 = 5;

fn is_uart(access: &GuestAccess) -> bool {
    match *access {
        GuestAccess::Port { port, .. } => is_uart_at(ExitTable::Ioport, u64::from(port)),
        GuestAccess::Mmio { gpa, .. } => is_uart_at(ExitTable::Mmio, gpa),
        GuestAccess::Msr { .. } => false,
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
    if !case.picture.writes.is_empty() {
        return by_writes(case);
    }
    let rows: &[VcpuRow] = case
        .picture
        .vcpus
        .as_ref()
        .map_or(&[], |report| &report.rows);
    if (rows.is_empty() || case.picture.presumes_vcpus()) && !case.has_exits() {
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
            (
                sum.0.saturating_add(cause.count),
                sum.1.saturating_add(cause.ns),
            )
        });
        Prints { row, count, ns }
    });
    // Two per cent of one vCPU's time is a lot to print for.
    let prints: Vec<Prints<'_>> = sums
        .filter(|one| one.count >= ENOUGH && one.ns >= one.row.times.total() / 50)
        .collect();
    if prints.is_empty() {
        let recorded = rows.iter().any(|row| !row.user.is_empty())
            || case.picture.events("kvm_userspace_exit").is_some();
        return match recorded {
            true => Verdict::Clear,
            false => by_accesses(case),
        };
    }
    let irqs = case
        .picture
        .paths
        .iter()
        .find(|path| path.name == "device-irq");
    let Some(irqs) = irqs.filter(|path| path.count > 0) else {
        // Messages, or what the vGIC gets: without either no device interrupted anybody, or it is not recorded.
        let messages = ["kvm_msi_set_irq", "vgic_update_irq_pending"].iter();
        let raised = ["irqfd_wakeup", "irqfd_inject"].iter();
        let raised = raised.map(|name| case.picture.events_about(name)).max();
        let recorded = messages.filter_map(|name| case.picture.events(name)).max();
        return match (recorded, raised.unwrap_or(0)) {
            // Of the ITS's interrupts none is seen for a vCPU that runs.
            (Some(_), 0) if case.x86() || case.picture.path("kick").is_none() => Verdict::Clear,
            _ => unknown(),
        };
    };
    // arm64's ITS is seen to interrupt a vCPU only where that was halted, and who prints is not.
    let its = irqs.stages.iter().filter(|stage| {
        stage.chain.as_deref() == Some("ITS") && stage.name.starts_with("vCPU woken →")
    });
    let its: u64 = its
        .map(|stage| stage.stats.count())
        .fold(0, u64::saturating_add);
    let met: Vec<DelayedInterrupts<'_>> = prints
        .iter()
        .map(|one| DelayedInterrupts::of(one, irqs))
        .collect();
    let worst = met.iter().filter(|met| met.is_found(case));
    let worst = worst.max_by_key(|met| (met.while_printing.count(), met.while_printing.total()));
    if let Some(met) = worst {
        return finding(case, met, irqs.count);
    }
    let dropped = irqs.dropped.iter();
    let unresolved = dropped.filter(|(why, _)| *why == DropReason::Unresolved);
    let unresolved: u64 = unresolved
        .map(|(_, count)| *count)
        .fold(0, u64::saturating_add);
    // It prints, and no device interrupts it meanwhile; if it is known whom devices interrupt.
    match unresolved.saturating_mul(10) > irqs.count || its.saturating_mul(2) > irqs.count {
        true => unknown(),
        false => Verdict::Clear,
    }
}

/// Whether a thread leaves its guest for each byte that it writes.
fn is_byte_by_byte(one: &FileWrites) -> bool {
    let waker = one
        .path
        .as_deref()
        .is_some_and(|path| path.contains("eventfd"));
    !waker
        && one.of_one_byte >= SEVERAL
        && one.of_one_byte.saturating_mul(10) >= one.count.saturating_mul(9)
        && one.runs.saturating_add(1) >= one.count
}

/// System calls of a thread that runs a guest: it writes one byte, and goes back to its guest.
fn by_writes(case: &Case<'_>) -> Verdict {
    let writes = case
        .picture
        .writes
        .iter()
        .filter(|one| is_byte_by_byte(one));
    let Some(most) = writes.max_by_key(|one| one.count) else {
        return unknown();
    };
    let by = case.picture.counted_by.name();
    let who = match (most.thread.tid, &most.thread.comm) {
        (Some(tid), Some(comm)) => words::with_thread(comm, tid),
        (Some(tid), None) => format!("Thread {tid}"),
        _ => format!("The thread that {by} followed"),
    };
    let path = most.path.as_deref();
    let is_terminal = path.is_some_and(|path| {
        let names = ["/dev/pts", "/dev/ptmx", "/dev/tty"];
        names.iter().any(|name| path.starts_with(name))
    });
    let raises = most.irq_lines.saturating_add(1) >= most.count;
    let confidence = match (is_terminal, raises) {
        (true, _) => 0.8,
        (false, true) => 0.6,
        (false, false) => 0.4,
    };
    let span = most.span_ns.filter(|ns| *ns > 0);
    let rate = span.map(|ns| most.count as f64 * 1e9 / ns as f64);
    let fd = format!("file descriptor {}", most.fd);
    let mut wrote = says!(
        "{who} wrote one byte {writes} to {fd}{path}",
        who = who.as_str(),
        writes = Times(most.of_one_byte),
        fd = fd.as_str(),
        path = path.map_or_else(String::new, |path| format!(" ({path})")),
    );
    if let Some((ns, rate)) = span.zip(rate) {
        wrote = wrote.then(says!(
            " in {time}, {rate} a second",
            time = Ns(ns),
            rate = PerSecond(rate)
        ));
    }
    if let Some(tid) = most.thread.tid {
        wrote = wrote.thread(tid);
    }
    let mut finding = Finding::new(&RULE, confidence)
        .title(format!(
            "{who} leaves its guest for each byte that it writes to {fd}, as for an emulated serial console"
        ))
        .evidence(wrote.then(".".into()))
        .evidence(says!(
            "Meanwhile it came back from KVM_RUN {runs}, {each} for each byte, and set an interrupt line \
             (KVM_IRQ_LINE) {raised}.",
            runs = Times(most.runs),
            each = Ratio(most.runs as f64 / most.count.saturating_sub(1).max(1) as f64),
            raised = Times(most.irq_lines),
        ));
    if !is_terminal {
        finding = finding.evidence(says!(
            "What {fd} is, was not printed: ls -l /proc/PID/fd says it. If no console is behind it, it is another \
             device.",
            fd = fd.as_str(),
        ));
    }
    if case.picture.counted_by == CountPrinter::Strace {
        finding = finding.evidence(
            "strace stops the thread at each call, so without it more bytes come in the same time.",
        );
    }
    finding.at_least = match rate.is_none_or(|rate| rate >= ENOUGH as f64) {
        true => Severity::Medium,
        false => Severity::Low,
    };
    finding.rests_on = RestsOn::Counts;
    finding.found()
}

/// A vCPU that prints: how often it was in the VMM for it, and how long.
struct Prints<'a> {
    row: &'a VcpuRow,
    count: u64,
    ns: u64,
}

/// What device interrupts took that came to a vCPU which prints.
struct DelayedInterrupts<'a> {
    prints: &'a Prints<'a>,
    /// Those that came while it printed.
    while_printing: Stats,
    /// The longest of these: what it took, and when it began.
    longest: Option<(u64, u64)>,
    /// Its others.
    others: Stats,
}

impl<'a> DelayedInterrupts<'a> {
    fn of(prints: &'a Prints<'a>, irqs: &PathReport) -> DelayedInterrupts<'a> {
        let mut met = DelayedInterrupts {
            prints,
            while_printing: Stats::default(),
            longest: None,
            others: Stats::default(),
        };
        for one in irqs.met.iter().filter(|one| one.vcpu_tid == prints.row.tid) {
            match one.access.as_ref().is_some_and(is_uart) {
                true => {
                    met.while_printing.merge(&one.totals);
                    met.longest = met.longest.max(Some(one.longest));
                }
                false => met.others.merge(&one.totals),
            }
        }
        met
    }

    /// Whether the recording says when the guest takes an interrupt: arm64 has no event for that, and APICv delivers
    /// without.
    fn is_timed(case: &Case<'_>) -> bool {
        let injected = case.picture.events("kvm_inj_virq").unwrap_or(0);
        let posted = case.picture.events("kvm_apicv_accept_irq").unwrap_or(0);
        injected > posted
    }

    /// Whether there is something to compare those that came while it printed with.
    fn is_compared(&self) -> bool {
        self.others.count() >= SEVERAL
    }

    fn is_found(&self, case: &Case<'_>) -> bool {
        if self.while_printing.count() < SEVERAL {
            return false;
        }
        if !DelayedInterrupts::is_timed(case) {
            return true;
        }
        let median = self.while_printing.percentile(0.5);
        match self.is_compared() {
            // That the median of five is above nine of ten others by chance happens once in a hundred times.
            true => {
                median >= self.others.percentile(0.5).saturating_mul(2)
                    && median > self.others.percentile(0.9)
            }
            // It waits for more than the one exit that it came in.
            false => median >= (self.prints.ns / self.prints.count.max(1)).saturating_mul(5),
        }
    }
}

fn finding(case: &Case<'_>, met: &DelayedInterrupts<'_>, all: u64) -> Verdict {
    let Prints { row, count, ns } = *met.prints;
    let timed = DelayedInterrupts::is_timed(case);
    let late = &met.while_printing;
    let confidence = match timed && met.is_compared() && !case.doubtful() {
        true => 0.95,
        false => 0.5,
    };
    let vcpu = &row.called;
    let mut finding = Finding::new(&RULE, confidence)
        .cost(case.vcpu_cost(ns))
        .title(format!(
            "{vcpu} prints on an emulated serial console ({count} exits to the VMM, {}), and {} arrived meanwhile",
            human(ns),
            plural(late.count(), "device interrupt"),
        ))
        .evidence(says!(
            "{vcpu} exited to the VMM {exits} times for its serial port, {time} in all: {share} of its observed time, \
             {each} each.",
            vcpu = ThreadMention::named(vcpu, row.tid),
            exits = count,
            time = Ns(ns),
            share = Of(ns, row.times.total()),
            each = Ns(ns / count.max(1)),
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
        finding = finding.evidence(says!(
            "{access} ({name}): {exits} times, {time}.",
            access = access,
            name = name,
            exits = cause.count,
            time = Ns(cause.ns),
        ));
    }
    let own = late.count().saturating_add(met.others.count());
    let of = says!(
        "{met} of its {own} (of {all} in the recording) arrived while it handled an exit for the serial port",
        met = late.count(),
        own = Many(own, "device interrupt"),
        all = all,
    )
    .thread(row.tid)
    .instance("device-irq", met.longest);
    if timed && met.is_compared() {
        finding = finding.headline(format!(
            "{} of {} for {vcpu} took {} (median) instead of {}: the vCPU was printing on its serial console",
            late.count(),
            plural(own, "device interrupt"),
            human(late.percentile(0.5)),
            human(met.others.percentile(0.5)),
        ));
    }
    finding = match (timed, met.is_compared()) {
        (false, _) => finding.evidence(of.then(
            ". Their latency is not recorded: no event here shows when the guest takes an interrupt.".into(),
        )),
        (true, false) => finding.evidence(of.then(says!(
            ". Their latency up to the guest: p50 {p50}. The vCPU's other interrupts are too few for a comparison.",
            p50 = Ns(late.percentile(0.5)),
        ))),
        (true, true) => finding.evidence(of.then(says!(
            ". Their latency up to the guest: p50 {p50}. Its {others} other interrupts: p50 {others_p50}, p90 \
             {others_p90}.",
            p50 = Ns(late.percentile(0.5)),
            others = met.others.count(),
            others_p50 = Ns(met.others.percentile(0.5)),
            others_p90 = Ns(met.others.percentile(0.9)),
        ))),
    };
    finding.at_least = Severity::Medium;
    if let Some(domain) = case.whole_domain() {
        let virtio =
            |console: &domain::DomainConsole| console.target_type.as_deref() == Some("virtio");
        if !domain.consoles.iter().any(virtio) {
            finding = finding.changes(1, vec![domain::DomainChange::ConsoleVirtio]);
        }
    }
    finding.found()
}

/// Sums of accesses: whether there is anything to record for.
fn by_accesses(case: &Case<'_>) -> Verdict {
    let mut uart = RowSum::default();
    let mut addresses = false;
    for table in [ExitTable::Ioport, ExitTable::Mmio] {
        addresses |= !case.picture.rows(table).is_empty();
        let rows = case.accesses(table, |row| {
            row.address.is_some_and(|at| is_uart_at(table, at))
        });
        let sum = RowSum::of(rows);
        uart.count = uart.count.saturating_add(sum.count);
        uart.ns = uart.ns.saturating_add(sum.ns);
    }
    if uart.count >= ENOUGH {
        return Verdict::Unknown(format!(
            "The guest accessed a serial port {} times, {} in all. The table does not show which vCPU did, or whether \
             device interrupts arrived meanwhile: record kvm:*, sched:sched_switch and sched:sched_waking.",
            uart.count,
            human(uart.ns)
        ));
    }
    let emulated = case.exits(&["IO_INSTRUCTION", "io", "EPT_MISCONFIG", "npf", "DABT_LOW"]);
    if addresses || (case.has_exits() && emulated.count < ENOUGH) {
        return Verdict::Clear;
    }
    unknown()
}

/// Without KVM's events: interrupts for a vCPU that was running, and was long in answering.
fn from_the_scheduler_alone(case: &Case<'_>) -> Verdict {
    let Some(path) = case.picture.path("irqfd") else {
        return unknown();
    };
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let Some(answered) = path.stage("kworker done → answered") else {
        return unknown();
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
        return unknown();
    }
    let mut finding = Finding::new(&RULE, 0.4)
        .cost(case.span_cost(answered.stats.total()))
        .title(format!(
            "A running vCPU took {} to answer an interrupt",
            human(slowest)
        ))
        .evidence(
            says!(
                "{interrupts}: the kworker woke no vCPU, so the vCPU was running. Its answer came up to {slowest} \
                 later.",
                interrupts = Many(count, "interrupt"),
                slowest = Ns(slowest),
            )
            .slowest(path),
        );
    if woken > 0 {
        finding = finding.evidence(says!(
            "Where the vCPU had to be woken, it had its CPU after {mean} on average.",
            mean = Ns(woken),
        ));
    }
    finding = finding.evidence(
        "The recording does not show what kept the vCPU busy; a serial console is the usual reason. Record kvm:* too: \
         its exits have the ports.",
    );
    finding.at_least = Severity::Medium;
    finding.found()
}

fn unknown() -> Verdict {
    Verdict::Unknown(
        "Record kvm:*, sched:sched_switch and sched:sched_waking: they show which vCPU a device interrupts, and when \
         the guest takes the interrupt."
            .to_owned(),
    )
}
