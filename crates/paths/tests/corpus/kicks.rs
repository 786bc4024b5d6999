//! The path `kick` on real recordings, against counts and times made a second time from the text of the events, and
//! against what a guest printed of its own pings.

use std::collections::{BTreeMap, BTreeSet};

use fixtures::event_lines::{PrintedEvent, lines, near};
use fixtures::instances::{InstanceRow, instances, path_reports};
use fixtures::json::{list, number, text};
use fixtures::related::related;
use fixtures::{CorpusCase, Failures, FixtureQuestion, all_cases, note, read_text};
use serde_json::Value;

/// A notification of a device, read from the text.
#[derive(Debug)]
struct Notify {
    time: u64,
    vcpu: i32,
    address: u64,
    /// Whether the write signalled an eventfd.
    signalled: bool,
    /// Whom it woke: when, the back end's thread, and its name.
    woke: Option<(u64, i32, String)>,
    /// When the back end's work began, if that was the first it did.
    work: Option<u64>,
}

/// Functions that are a back end's work; probes on them may have their name behind a prefix.
const WORK: [&str; 5] = [
    "handle_tx_kick",
    "handle_tx",
    "handle_rx_kick",
    "tun_sendmsg",
    "tun_get_user",
];

fn is_work(name: &str) -> bool {
    WORK.iter().any(|function| {
        let prefix = name.strip_suffix(function);
        prefix.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('_'))
    })
}

/// Returns the events that notifications are read from.
fn events(case: &CorpusCase) -> Vec<PrintedEvent> {
    lines(&case.path, |name| {
        is_work(name)
            || name.ends_with("eventfd_signal")
            || name.ends_with("irqfd_wakeup")
            || [
                "kvm_mmio",
                "kvm_entry",
                "kvm_userspace_exit",
                "kvm_irq_line",
                "kvm_msi_set_irq",
                "sched_waking",
                "sched_switch",
            ]
            .contains(&name)
    })
}

/// Returns the thread and the name of a back end that an event wakes. In these recordings they are those; an interrupt
/// on the same CPU may wake others.
fn wakes(line: &PrintedEvent, vcpus: &BTreeSet<i32>) -> Option<(i32, String)> {
    let comm = line.value("comm=")?;
    let tid = line.task().filter(|tid| !vcpus.contains(tid))?;
    let takes = line.name == "sched_waking"
        && (comm.starts_with("vhost-") || comm.starts_with("qemu-system"));
    takes.then(|| (tid, comm.to_owned()))
}

/// Finds the writes to addresses that notify, what they made happen until the vCPU went on, and the first that the back
/// end did then.
fn notifications(events: &[PrintedEvent], notifies: impl Fn(u64) -> bool) -> Vec<Notify> {
    let entries = events.iter().filter(|line| line.name == "kvm_entry");
    let vcpus: BTreeSet<i32> = entries.map(|line| line.tid).collect();
    let mut found: Vec<Notify> = Vec::new();
    for (at, line) in events.iter().enumerate() {
        let address = line.written().filter(|to| notifies(*to));
        let Some(address) = address.filter(|_| line.name == "kvm_mmio") else {
            continue;
        };
        let rest = &events[at + 1..];
        let (mut signalled, mut woke) = (false, None);
        for next in rest.iter().filter(|next| next.tid == line.tid) {
            if ["kvm_entry", "kvm_userspace_exit"].contains(&next.name.as_str()) {
                break;
            }
            signalled |= next.name.ends_with("eventfd_signal");
            if woke.is_none() {
                woke = wakes(next, &vcpus).map(|(tid, comm)| (next.time, tid, comm));
            }
        }
        let work = woke.as_ref().and_then(|(since, tid, _)| {
            let mut on_cpu = false;
            let rest = rest.iter().skip_while(|next| next.time < *since);
            for next in rest {
                on_cpu |= next.name == "sched_switch" && next.task() == Some(*tid);
                // The next notification comes before the back end did anything, or got so far.
                if next.tid == line.tid && next.written() == Some(address) {
                    return None;
                }
                if next.tid != *tid || !on_cpu {
                    continue;
                }
                if is_work(&next.name) {
                    return Some(next.time);
                }
                let raises = next.name == "kvm_msi_set_irq"
                    || next.name.ends_with("irqfd_wakeup")
                    || next.name == "kvm_irq_line" && next.rest.ends_with("level: 1");
                if raises || wakes(next, &vcpus).is_some() {
                    return None;
                }
            }
            None
        });
        found.push(Notify {
            time: line.time,
            vcpu: line.tid,
            address,
            signalled,
            woke,
            work,
        });
    }
    found
}

/// Returns whether an address is the QueueNotify of a virtio-mmio device: at 0x50 of 0x200 bytes each, of which arm64's
/// `virt` machine has 32 from 0xa000000 on.
fn is_queue_notify(address: u64) -> bool {
    (0x0a00_0000..0x0a00_4000).contains(&address) && address & 0x1ff == 0x50
}

fn median(mut of: Vec<u64>) -> u64 {
    of.sort_unstable();
    of.get(of.len() / 2).copied().unwrap_or(0)
}

/// The address that an instance is about.
fn address(one: &InstanceRow) -> u64 {
    let hex = one.feature("address 0x").unwrap_or_default();
    u64::from_str_radix(hex, 16).unwrap_or(0)
}

/// Returns the arm64 recordings with kicks of network cards and nothing else.
fn recordings() -> Vec<CorpusCase> {
    let takes = |case: &CorpusCase| {
        let name = &case.name;
        case.arch == "arm64"
            && (name.contains("boot1/perf.data.tracepoints")
                || name.contains("/trace.dat") && !name.contains("boot2"))
    };
    all_cases().into_iter().filter(takes).collect()
}

/// Every notification that wakes a back end is a kick, and no other write is; a device in the VMM is not taken for one
/// in the kernel, also with one VM of each; and the work begins when it does.
#[test]
fn kicks_of_virtio_and_of_vhost() {
    let mut failures = Failures::default();
    for case in recordings() {
        let name = &case.name;
        let notified = notifications(&events(&case), is_queue_notify);
        let kicks = instances(&case.path, "kick");
        for one in &kicks {
            failures.check(is_queue_notify(address(one)), || {
                format!("{name}: no queue was notified: {one:?}")
            });
        }
        let woke: Vec<&Notify> = notified.iter().filter(|one| one.woke.is_some()).collect();
        let (mut cut_off, mut ours, mut counted) = (0, Vec::new(), Vec::new());
        for notify in &woke {
            let own = kicks
                .iter()
                .find(|one| one.vcpu == notify.vcpu && near(one.start, notify.time));
            let Some(one) = own else {
                cut_off += 1;
                let later = notified.iter().any(|next| {
                    (next.vcpu, next.address) == (notify.vcpu, notify.address)
                        && next.time > notify.time
                });
                failures.check(!later, || format!("{name}: no kick: {notify:?}"));
                continue;
            };
            same(&mut failures, name, notify, one);
            ours.extend(one.at("work").map(|at| at - one.start));
            counted.extend(notify.work.map(|at| at - notify.time));
        }
        let waking = kicks
            .iter()
            .filter(|one| one.at("back end woken").is_some());
        let what = format!("{name}: kicks that wake, and those that the end cut off");
        failures.equal(&what, &(waking.count() + cut_off), &woke.len());
        let report = &path_reports(&case.path, &FixtureQuestion::new().path("kick"))["kick"];
        let dropped = report["dropped"].as_object().into_iter().flatten();
        let dropped: u64 = dropped.filter_map(|(_, count)| count.as_u64()).sum();
        failures.equal(
            &format!("{name}: not completed"),
            &dropped,
            &(cut_off as u64),
        );
        let kinds = kinds(&mut failures, name, &kicks, report);
        let (ours, counted) = (median(ours), median(counted));
        note(&format!(
            "{name}: {} notifications, {} woke, kicks {kinds:?}, notified → work {ours} ns, counted {counted} ns",
            notified.len(),
            woke.len()
        ));
        failures.check(ours > 0 && near(ours, counted), || {
            format!("{name}: notified → work {ours}, counted {counted}")
        });
    }
    failures.finish(1500);
}

/// Checks a kick against the notification that it is.
fn same(failures: &mut Failures, name: &str, notify: &Notify, one: &InstanceRow) {
    let Some((woken, tid, comm)) = &notify.woke else {
        return;
    };
    let by = match comm.starts_with("vhost-") {
        true => "vhost thread",
        false => "VMM thread",
    };
    failures.equal(&format!("{name}: {notify:?}"), &one.by.as_str(), &by);
    let work = match (one.at("work"), notify.work) {
        (Some(ours), Some(counted)) => near(ours, counted),
        (ours, counted) => ours.is_none() && counted.is_none(),
    };
    let holds = work
        && address(one) == notify.address
        && one.has(&format!("back end {comm}:{tid}"))
        && one.at("back end woken").is_some_and(|at| near(at, *woken));
    failures.check(holds, || format!("{name}: {notify:?}: {one:?}"));
}

/// Checks what kinds of back ends the kicks of a recording have, and returns how many of each.
fn kinds(
    failures: &mut Failures,
    name: &str,
    kicks: &[InstanceRow],
    report: &Value,
) -> BTreeMap<String, u64> {
    let mut by: BTreeMap<String, u64> = BTreeMap::new();
    let mut vcpus: BTreeMap<&str, BTreeSet<i32>> = BTreeMap::new();
    for one in kicks {
        *by.entry(one.by.clone()).or_default() += 1;
        vcpus.entry(&one.by).or_default().insert(one.vcpu);
    }
    let groups: BTreeMap<String, u64> = list(&report["groups"])
        .iter()
        .map(|group| (text(&group["label"]), number(group, "count")))
        .collect();
    failures.equal(&format!("{name}: groups"), &groups, &by);
    let expected = if name.contains("two-guests") {
        vec!["VMM thread", "vhost thread"]
    } else if name.contains("vhost-mmio") {
        vec!["vhost thread"]
    } else {
        vec!["VMM thread"]
    };
    let found: Vec<&str> = by.keys().map(String::as_str).collect();
    failures.equal(&format!("{name}: back ends"), &found, &expected);
    // Each VM has one card of one kind.
    let all: usize = vcpus.values().map(BTreeSet::len).sum();
    let threads: BTreeSet<i32> = kicks.iter().map(|one| one.vcpu).collect();
    failures.equal(&format!("{name}: vCPUs {vcpus:?}"), &all, &threads.len());
    by
}

/// A back end that is at work already, or waits for a CPU, is not woken; the notification is a kick all the same where
/// its eventfd was signalled, if the VM notified that queue before.
#[test]
fn kicks_of_a_back_end_that_needs_no_waking() {
    let mut failures = Failures::default();
    let takes = |case: &CorpusCase| {
        case.name.starts_with("x86/console-") || case.name.contains("nogso-probes")
    };
    for case in all_cases().into_iter().filter(takes) {
        let name = &case.name;
        let all = notifications(&events(&case), |_| true);
        let kicks = instances(&case.path, "kick");
        let (mut signalled, mut found) = (0, 0);
        for (at, notify) in all.iter().enumerate() {
            let same = |one: &&Notify| (one.vcpu, one.address) == (notify.vcpu, notify.address);
            let woke = all[..at].iter().filter(same).any(|one| one.woke.is_some());
            if !notify.signalled || !woke || !all[at + 1..].iter().any(|one| same(&one)) {
                continue;
            }
            let own = kicks
                .iter()
                .any(|one| one.vcpu == notify.vcpu && near(one.start, notify.time));
            signalled += 1;
            found += usize::from(own);
            failures.check(own, || format!("{name}: no kick: {notify:?}"));
        }
        note(&format!(
            "{name}: {found} of {signalled} signalled notifications are kicks"
        ));
    }
    failures.finish(300);
}

/// A line `64 bytes from ...: seq=N ttl=64 time=X ms` that a guest wrote to its serial port: when, and X.
fn printed_pings(events: &[PrintedEvent]) -> Vec<(u64, f64)> {
    let (mut begin, mut text) = (0, String::new());
    let mut found = Vec::new();
    // Only one of the VMs prints pings, with either of its vCPUs.
    for line in events.iter().filter(|line| line.written() == Some(0x3f8)) {
        let byte = line.value("val 0x");
        let Some(byte) = byte.and_then(|hex| u8::from_str_radix(hex, 16).ok()) else {
            continue;
        };
        if text.is_empty() {
            begin = line.time;
        }
        if byte != b'\n' {
            text.push(char::from(byte));
            continue;
        }
        let time = text
            .split_once(" time=")
            .filter(|_| text.contains(": seq="));
        let ms = time.and_then(|(_, ms)| ms.split_once(' ')?.0.parse().ok());
        found.extend(ms.map(|ms| (begin, ms)));
        text.clear();
    }
    found
}

/// With back ends in the VMM: a guest that sends a ping does nothing with a device until it prints the reply, so a
/// `kick` begins when the ping does, and is over before the reply is printed: its total has nothing of the guest's
/// waiting for the reply in it, where the interrupt was for something else. Which ping an instance is of is read off
/// the characters that the guest wrote.
///
/// Measured: r 0.999 and 0.991, ranks 0.997 and 0.998; against the kicks of the next ping -0.19 to -0.08. Bounds are in
/// `related`.
#[test]
fn pings_take_what_a_kick_takes() {
    let mut failures = Failures::default();
    let mut checked = 0;
    let full = std::env::var_os("TRAPLINE_CORPUS").is_some();
    for case in all_cases() {
        if !case.name.starts_with("x86/vmping-") {
            continue;
        }
        let name = &case.name;
        let log = match case.kind.as_str() {
            "trace.dat" => "l2-ping-during-trace-cmd.txt",
            _ => "l2-ping-during-perf.txt",
        };
        let log = read_text(&case.path.with_file_name(log));
        let mut logged = log.lines().filter_map(|line| {
            line.split_once(" time=")?
                .1
                .split_once(' ')?
                .0
                .parse::<f64>()
                .ok()
        });
        let ports = lines(&case.path, |name| name == "kvm_pio");
        let prints = ports.iter().filter(|line| line.written() == Some(0x3f8));
        let prints: BTreeSet<i32> = prints.map(|line| line.tid).collect();
        let printed = printed_pings(&ports);
        let kicks = instances(&case.path, "kick");
        // The VM that prints is the one whose back end its vCPUs notify; its other vCPU may send.
        let back_end = |one: &InstanceRow| one.feature("back end qemu").map(str::to_owned);
        let own = kicks.iter().filter(|one| prints.contains(&one.vcpu));
        let own: BTreeSet<String> = own.filter_map(back_end).collect();
        let mut pairs = Vec::new();
        let mut before = 0;
        for (begin, ms) in printed {
            failures.equal(name, &Some(ms), &logged.next());
            // The other guest sends its reply meanwhile.
            let own = kicks
                .iter()
                .filter(|one| back_end(one).is_some_and(|name| own.contains(&name)))
                .filter(|one| one.start > before && one.start <= begin)
                .max_by_key(|one| one.start);
            before = begin;
            if let Some(one) = own {
                // The first that it does with its port after it has sent.
                let next = ports
                    .iter()
                    .find(|line| prints.contains(&line.tid) && line.time > one.start);
                let taken = (next.map_or(begin, |line| line.time) - one.start) as f64 / 1e6;
                failures.check(one.total as f64 / 1e6 <= taken, || {
                    format!("{name}: {one:?} is not over when its ping of {ms} ms is")
                });
                pairs.push((taken, ms));
            }
        }
        failures.check(pairs.len() >= 20, || {
            format!("{name}: {} pings", pairs.len())
        });
        related(&mut failures, name, &pairs);
        checked += 1;
    }
    failures.check(!full || checked > 0, || {
        "the full corpus has pings through the VMM".to_owned()
    });
    failures.finish(1);
}

/// An arm64 guest whose disk is a PCI device: KVM has no event for interrupts of the ITS, so the thread that wakes the
/// halted vCPU is what shows them. The limit holds each request for 24.8 ms, of which its back end is at work for
/// 0.8 ms (its README says how that was made).
#[test]
fn interrupts_of_arm64s_its_are_seen_where_they_wake_a_vcpu() {
    let file = fixtures::file("causes/arm64/disk-throttled-sick/perf.data.zst");
    let kicks = instances(&file, "kick");
    let waits = |one: &&InstanceRow| one.stage("back end done", "interrupt") >= 10_000_000;
    let pending = kicks.iter().filter(waits).count();
    assert!(
        pending * 10 >= kicks.len() * 9 && pending >= 100,
        "{pending} of {}",
        kicks.len()
    );
    let wakes = instances(&file, "halt-wake");
    let by = |who: &str| wakes.iter().filter(|one| one.by == who).count();
    assert!(by("device") >= 130, "{}", by("device"));
    assert_eq!(by("unknown"), 0);
}
