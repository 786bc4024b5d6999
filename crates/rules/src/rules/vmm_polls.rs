//! The VMM's main thread is woken by timers all the time, for devices that it emulates.

use std::collections::{HashMap, HashSet};

use analysis::{MainLoopRow, TaskRow};
use domain::Domain;
use model::NamedRole;
use words::duration::human;

use crate::account::AccountPart;
use crate::evidence::{Id, Ns, Of, PerSecond, ThreadMention, says};
use crate::{
    Base, Case, EvidenceNumber, ExplainedTime, Finding, FindingCost, RecordNeeds, Remedy, RestsOn,
    Rule, RuleLook, Severity, Verdict,
};

/// Wake-ups a second, and how many it takes. A display that somebody watches is redrawn 33 times a second
/// (`GUI_REFRESH_INTERVAL_DEFAULT`, QEMU's `include/ui/console.h`), a sound backend comes 100 times.
const PER_SECOND: f64 = 80.0;
const LEAST: u64 = 100;
/// How far the quartiles of the intervals may be from their median: what the network or a disk wakes comes in bursts.
const STEADY: f64 = 0.25;
/// Share of a CPU.
const OF_CPU: f64 = 0.01;
/// Wake-ups by timers for each by another thread, which is work for the guest.
const TIMES_OTHERS: u64 = 2;
/// Frame timers of USB 1.1 controllers come 1000 times a second (`FRAME_TIMER_FREQ` in `hw/usb/hcd-uhci.c` and
/// `hcd-ehci.c`, `hw/usb/hcd-ohci.c`), and so does the timer of a sound card that plays (`HDA_TIMER_TICKS` in
/// `hw/audio/hda-codec.c`).
const FRAMES: std::ops::RangeInclusive<u64> = 900_000..=1_100_000;
/// The line of the RTC on a PC.
const RTC: u64 = 8;
/// Threads that are listed.
const LISTED: usize = 4;

pub(crate) static RULE: Rule = Rule {
    id: "vmm-polls",
    title: "The VMM's main thread wakes up all the time for a device that it emulates",
    described_as: &[
        "idle Windows guest at 5 % to 30 % CPU on the host",
        "the QEMU process uses CPU while the guest is idle",
        "USB tablet burns host CPU",
        "QEMU wakes up 1000 times a second in powertop",
        "the host does not reach deep C-states because of an idle VM",
    ],
    looks_at: "what wakes the main thread of the VMM: interrupts (timers) at a steady rate, or other threads; and \
        whether it then does something for the guest",
    needs: "sched:sched_switch and sched:sched_waking of the whole host; kvm_set_irq and kvm_msi_set_irq to be sure",
    record: &[RecordNeeds::Paths],
    measures: &[],
    cause: "A device that the VMM emulates has a timer: a USB 1.1 controller looks 1000 times a second whether a \
        tablet has moved, a sound card plays silence, the guest has programmed the RTC. The main thread wakes up for \
        each, though the guest does nothing: host CPU time, power, and the CPU's deep idle states are gone.",
    found: &[
        "Interrupts wake the main thread {rate} times a second or more, {least} times at least, at a steady rate (half \
         of the intervals within {steady} of the median), {others} times as often as other threads do, and mostly it \
         then neither wakes a thread nor raises an interrupt, or raises that of the RTC or the PIT. It takes {cpu} of \
         a CPU or more. Confidence 0.75; 0.9 where facts or the definition have a device whose timer has this rate. \
         Where no interrupt of guests is recorded, packets that come at a steady rate look the same: 0.5 and 0.7. At \
         most `medium`.",
    ],
    limits: &[
        ("rate", EvidenceNumber::PerSecond(PER_SECOND)),
        ("least", EvidenceNumber::Count(LEAST)),
        ("steady", EvidenceNumber::Share(STEADY)),
        ("others", EvidenceNumber::Count(TIMES_OTHERS)),
        ("cpu", EvidenceNumber::Share(OF_CPU)),
    ],
    seen_from: "{least} wake-ups of the main thread by timers, {rate} a second, that take {cpu} of a CPU",
    unknown: "*all*, of the whole host (`-a`). Which thread is the main one, the recording or facts have to say.",
    advice: "",
    looks_alike: "A main thread that other threads wake, or that raises interrupts for packets and blocks, is a back \
        end ([userspace-virtio-backend](#userspace-virtio-backend)). A guest that sets its own timer all the time is \
        [timer-interrupt-storm](#timer-interrupt-storm).",
    remedies: &[
        Remedy {
            what: "A USB tablet at a USB 1.1 controller (1000 wake-ups a second): remove it where nobody looks at the \
                screen (<input type='tablet'/>, -device usb-tablet), or connect it to an xHCI controller \
                (<controller type='usb' model='qemu-xhci'/>), or use a virtio tablet \
                (<input type='tablet' bus='virtio'/>).",
            price: "Without a tablet the pointer of a remote display does not follow the user's; a virtio tablet needs \
                its driver in the guest.",
            unless: "Somebody works at this screen and the guest has no driver for xHCI or virtio (Windows before 8).",
            check: "trapline sched: wake-ups and CPU time of the main thread.",
        },
        Remedy {
            what: "A sound card that plays (1000 or 100 wake-ups a second): remove it from servers (<sound>, -device \
                intel-hda), or stop the program in the guest that keeps it open.",
            price: "No sound.",
            unless: "The guest is a desktop that needs it.",
            check: "trapline sched: wake-ups and CPU time of the main thread.",
        },
        Remedy {
            what: "An RTC that ticks (64 or 1024 times a second; Windows does it without Hyper-V's timers): give a \
                Windows guest <hyperv> with <synic state='on'/>, <stimer state='on'/> and \
                <timer name='hypervclock'>, and kernel-irqchip=on, so that KVM has the PIT.",
            price: "Windows has to be started again.",
            unless: "The guest is none of Windows: see which program opened /dev/rtc there.",
            check: "trapline sched: wake-ups and CPU time of the main thread.",
        },
        Remedy {
            what: "Else ask which timer it is: trapline record -e timer:hrtimer_start has the function of each \
                timer that the main thread starts, and perf top -p PID what it does.",
            price: "None.",
            unless: "It is known.",
            check: "The functions of one device are in the call chains.",
        },
    ],
    sources: &[
        "QEMU, hw/usb/hcd-uhci.c, hcd-ohci.c, hcd-ehci.c (frame timers); hw/audio/hda-codec.c; hw/rtc/mc146818rtc.c; \
         include/ui/console.h; util/main-loop.c",
        "Linux, include/linux/trace_events.h (TRACE_FLAG_HARDIRQ)",
    ],
    explains: &[
        ExplainedTime::Part(AccountPart::Thread),
        ExplainedTime::Part(AccountPart::OtherThreads),
    ],
    look: RuleLook::Case(look),
};

/// A main thread that timers wake.
struct PollingLoop<'a> {
    row: &'a MainLoopRow,
    task: &'a TaskRow,
    /// Its CPU time for these wake-ups.
    ns: u64,
    rate: f64,
}

fn look(case: &Case<'_>) -> Verdict {
    let unknown = || {
        Verdict::Unknown(
            "Record sched:sched_switch and sched:sched_waking of the whole host (-a): what wakes the VMM's main thread \
             is not known."
                .to_owned(),
        )
    };
    let Some(report) = case.picture.sched.as_ref().filter(|_| !case.printed()) else {
        return unknown();
    };
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let has = |name: &str| case.picture.events(name).is_some();
    if case.one_process() || !has("sched_switch") || !(has("sched_waking") || has("sched_wakeup")) {
        return unknown();
    }
    if case.vms().is_empty() {
        return Verdict::Clear;
    }
    let mains: HashSet<i32> = case.vms().iter().filter_map(|vm| vm.pid).collect();
    let is_main = |tid: i32| mains.contains(&tid);
    let is_qemu = |comm: &str| NamedRole::from(comm) == NamedRole::Qemu;
    let named = |row: &TaskRow| is_qemu(&row.comm) || is_main(row.tid);
    if mains.is_empty() && !report.rows.iter().any(named) {
        return Verdict::Unknown(
            "Record with the threads' processes (trapline record), or give --facts: which thread is the VMM's main one \
             is not known."
                .to_owned(),
        );
    }
    let loops = case.picture.main_loops.iter();
    // Backwards, so that of several rows of a thread the first stays.
    let tasks: HashMap<i32, &TaskRow> = report
        .rows
        .iter()
        .rev()
        .map(|task| (task.tid, task))
        .collect();
    let loops = loops.filter(|row| is_main(row.tid) || row.comm.as_deref().is_some_and(is_qemu));
    let mut polls: Vec<PollingLoop<'_>> = loops
        .filter_map(|row| {
            let task = tasks.get(&row.tid)?;
            polling(case, row, task)
        })
        .collect();
    polls.sort_by_key(|one| std::cmp::Reverse(one.ns));
    if polls.is_empty() {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    say(case, &polls).found()
}

/// Returns a main thread if timers wake it all the time.
fn polling<'a>(
    case: &Case<'_>,
    row: &'a MainLoopRow,
    task: &'a TaskRow,
) -> Option<PollingLoop<'a>> {
    let rate = row.by_interrupts as f64 / case.seconds();
    let often = row.by_interrupts >= LEAST && rate >= PER_SECOND;
    let alone = row.by_interrupts >= row.by_threads.saturating_mul(TIMES_OTHERS);
    let half = row.intervals.percentile(0.5) as f64;
    let quartiles = [0.25, 0.75].map(|part| row.intervals.percentile(part) as f64);
    let steady = quartiles
        .iter()
        .all(|one| (one - half).abs() <= half * STEADY);
    let timer = row.rtc.saturating_add(row.pit) >= row.by_interrupts / 2;
    let idle = row.served <= row.by_interrupts / 2 || timer;
    if !often || !alone || !steady || !idle {
        return None;
    }
    let wakes = row.by_interrupts.saturating_add(row.by_threads);
    let part = row.by_interrupts as f64 / wakes as f64;
    let ns = (task.on_cpu_ns.max(task.runtime_ns) as f64 * part) as u64;
    let span = case.picture.span_ns.unwrap_or(0);
    (ns as f64 >= span as f64 * OF_CPU).then_some(PollingLoop {
        row,
        task,
        ns,
        rate,
    })
}

/// Returns the words of the VMs' command lines and definition that name devices with such a timer.
fn devices(case: &Case<'_>, one: &PollingLoop<'_>) -> Vec<&'static str> {
    const OF_FRAMES: [&str; 7] = [
        "usb-uhci",
        "usb-ohci",
        "pci-ohci",
        "usb-ehci",
        "intel-hda",
        "hda-duplex",
        "usb-tablet",
    ];
    let frames = FRAMES.contains(&one.row.intervals.percentile(0.5));
    if !frames {
        return Vec::new();
    }
    let facts = case.facts.iter().flat_map(|facts| &facts.vms);
    let facts = facts.filter(|vm| vm.pid == Some(one.row.tid));
    let args = facts.flat_map(|vm| &vm.args);
    let defined = case.domain.iter().flat_map(|domain| &domain.qemu_args);
    let words: Vec<&String> = args.chain(defined).collect();
    let has = |name: &&&str| words.iter().any(|word| word.contains(**name));
    let mut out: Vec<&'static str> = OF_FRAMES.iter().filter(has).copied().collect();
    let mut add = |there: bool, name| {
        if there && !out.contains(&name) {
            out.push(name);
        }
    };
    add(case.domain.is_some_and(has_uhci), "usb-uhci");
    add(case.domain.is_some_and(has_usb_tablet), "usb-tablet");
    out
}

/// Returns whether interrupts that a VMM raises would be seen.
fn raises_are_recorded(case: &Case<'_>) -> bool {
    let events = [
        "kvm_set_irq",
        "kvm_msi_set_irq",
        "kvm_irq_line",
        "vgic_update_irq_pending",
    ];
    let mut events = events.iter();
    events.any(|name| case.picture.events(name).is_some())
}

/// Returns whether a tablet is on USB, which is its bus where none is named (libvirt, docs/formatdomain.rst).
fn has_usb_tablet(domain: &Domain) -> bool {
    let mut tablets = domain.inputs.iter().filter(|one| one.kind == "tablet");
    tablets.any(|one| matches!(one.bus.as_deref(), None | Some("usb")))
}

fn has_uhci(domain: &Domain) -> bool {
    let usb = domain.controllers.iter().filter(|one| one.kind == "usb");
    let mut models = usb.filter_map(|one| one.model.as_deref());
    models.any(|model| model.contains("uhci") || model.contains("ohci"))
}

fn say(case: &Case<'_>, polls: &[PollingLoop<'_>]) -> Finding {
    let first = &polls[0];
    let known = devices(case, first);
    let confidence = match (raises_are_recorded(case), known.is_empty()) {
        (true, true) => 0.75,
        (true, false) => 0.9,
        (false, true) => 0.5,
        (false, false) => 0.7,
    };
    let ns = polls.iter().map(|one| one.ns).fold(0, u64::saturating_add);
    let span = case.picture.span_ns.unwrap_or(0);
    let mut finding = Finding::new(&RULE, confidence)
        .rests_on(RestsOn::Absence)
        .cost(FindingCost::of(ns, span, Base::Span))
        .title(format!(
            "Timers wake the main thread of {} {:.0} times a second, {} of CPU time",
            first.task.comm,
            first.rate,
            human(ns)
        ));
    for one in polls.iter().take(LISTED) {
        let row = one.row;
        finding = finding.evidence(says!(
            "{thread}: interrupts woke it {timers} times ({rate} a second, typically {half} apart), other threads \
             {others} times; {cpu} of CPU time ({share} of a CPU).",
            thread = ThreadMention::named(&one.task.comm, row.tid),
            timers = row.by_interrupts,
            rate = PerSecond(one.rate),
            half = Ns(row.intervals.percentile(0.5)),
            others = row.by_threads,
            cpu = Ns(one.ns),
            share = Of(one.ns, span),
        ));
        finding = finding.evidence(says!(
            "After {idle} of these wake-ups it neither woke a thread nor raised an interrupt.",
            idle = row.by_interrupts.saturating_sub(row.served),
        ));
    }
    finding.at_most = Severity::Medium;
    let row = first.row;
    let ticks = row.rtc.saturating_add(row.pit);
    if ticks >= row.by_interrupts / 2 {
        return finding
            .evidence(says!(
                "It raised IRQ {line} of the RTC {rtc} times, and that of the PIT {pit} times.",
                line = Id(RTC),
                rtc = row.rtc,
                pit = row.pit,
            ))
            .only(&[2, 3]);
    }
    let frames = FRAMES.contains(&row.intervals.percentile(0.5));
    match (frames, known.is_empty()) {
        (true, false) => finding.evidence(says!(
            "So often come the timers of these devices, which the VM has: {devices}.",
            devices = known.join(", "),
        )),
        (true, true) => finding.evidence(
            "So often comes the frame timer of a UHCI or OHCI controller, as a USB tablet keeps it going, and that \
             of a sound card that plays.",
        ),
        _ => finding.only(&[3, 1]),
    }
}
