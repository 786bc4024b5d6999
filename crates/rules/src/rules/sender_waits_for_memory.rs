//! A sender of TCP data sleeps until its socket has room.

use analysis::{SleepRow, TaskRow};
use words::duration::human;

use crate::evidence::{Evidence, Ns, Ratio, ThreadMention, says};
use crate::{
    Case, EvidenceNumber, Finding, RecordNeeds, Remedy, Rule, RuleLook, Severity, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "sender-waits-for-memory",
    title: "A sender sleeps because its socket's send buffer is full",
    described_as: &[
        "throughput of the sender stops and goes",
        "iperf in the VM is slower than on the host",
        "the sender waits in sk_stream_wait_memory",
        "TCP send buffer too small",
    ],
    looks_at: "stacks with which tasks leave their CPUs: sleeps under sk_stream_wait_memory (called from \
        tcp_sendmsg_locked)",
    needs: "sched:sched_switch with kernel stacks; \
        switches alone allow only a guess",
    record: &[RecordNeeds::Stacks],
    measures: &[],
    cause: "The socket's send buffer is full with data that is not acknowledged yet, so the sender sleeps. That costs \
        a switch for every few packets, and the connection is not kept busy.",
    found: &[
        "Stacks with which tasks left their CPU, under `sk_stream_wait_memory`, `sock_alloc_send_pskb` or \
         `sock_wait_for_wmem`: 50 sleeps, and one of the senders slept for {asleep} of the recorded time. That is the \
         cost: what several slept at the same time is not added up. If receivers are in the recording (`sk_wait_data`, \
         ten times for a stack), they must have run out of data {starved} times for each wait of a sender: then the \
         buffer is too small, confidence 0.9; else the receiver is slow, and that is no finding. Without receivers \
         0.7.",
        "Guesses: stacks without symbols, where threads of a program that sends (iperf, iperf3, netperf, nuttcp, \
         uperf, sockperf, ttcp) sleep in two stacks, one twice as often as the other: 0.5. A printed `perf sched \
         latency` in which such a program switched 1000 times, ran less than 1 ms each time and waited 1 ms at most \
         for its CPU: 0.4, at least `medium`, and no cost: how long it slept is not in such a table.",
    ],
    limits: &[
        ("starved", EvidenceNumber::Count(STARVED)),
        ("asleep", EvidenceNumber::Share(ASLEEP)),
    ],
    seen_from: "50 sleeps of a sender, {asleep} of the recorded time",
    unknown: "*sleeps*; `--kallsyms` where the perf.data has no symbols.",
    advice: "",
    looks_alike: "A slow receiver fills the sender's buffer too. Record both ends, or at least the receiver's sleeps.",
    remedies: &[
        Remedy {
            what: "Give the socket more room: raise net.ipv4.tcp_wmem (its third number is the limit of autotuning), \
                and do not set a small SO_SNDBUF (iperf -w).",
            price: "More memory per connection. More data is in flight, so packets behind it in the queue have more \
                latency.",
            unless: "It does not help if the receiver is slow (only the queue gets longer), or if net.ipv4.tcp_mem is \
                at its limit.",
            check: "trapline compare BEFORE AFTER: the sender's switches, and its time in sk_stream_wait_memory.",
        },
        Remedy {
            what: "Find out why acknowledgements are late: the receiver's CPU, the placement of its interrupts, \
                offloads (GSO, GRO) on the way, a tunnel without offloads.",
            price: "None. Record both ends at the same time.",
            unless: "First check that the buffer is larger than bandwidth times round-trip time.",
            check: "ss -ti on both ends: cwnd, unacked, notsent; trapline sched on the receiver.",
        },
    ],
    sources: &[
        "Linux, net/core/stream.c (sk_stream_wait_memory), net/ipv4/tcp.c (tcp_sendmsg_locked)",
        "Linux, Documentation/networking/ip-sysctl.rst (tcp_wmem, tcp_mem)",
    ],
    explains: &[],
    look: RuleLook::Case(look),
};

/// The share of the recorded time that the sender that sleeps longest sleeps at least.
const ASLEEP: f64 = 0.05;
/// How much oftener receivers run out of data than senders wait, where the buffer is what is too small.
const STARVED: u64 = 2;

const WAITS: [&str; 3] = [
    "sk_stream_wait_memory",
    "sock_alloc_send_pskb",
    "sock_wait_for_wmem",
];

/// What one task slept until its socket had room.
struct Sender<'a> {
    comm: &'a str,
    tid: i32,
    count: u64,
    ns: u64,
    /// The first of [`WAITS`] that it was in.
    function: &'static str,
}

/// Whether a task slept until a socket had room.
fn waits(row: &SleepRow) -> bool {
    WAITS.iter().any(|function| row.has(function))
}

/// Sums such sleeps by task, the longest first.
fn senders(sleeps: &[SleepRow]) -> Vec<Sender<'_>> {
    let mut senders: Vec<Sender<'_>> = Vec::new();
    for row in sleeps.iter().filter(|row| waits(row)) {
        let (count, ns) = (row.stats.count(), row.stats.total());
        match senders.iter_mut().find(|sender| sender.tid == row.tid) {
            Some(sender) => {
                sender.count += count;
                sender.ns = sender.ns.saturating_add(ns);
            }
            None => senders.push(Sender {
                comm: &row.comm,
                tid: row.tid,
                count,
                ns,
                function: WAITS
                    .into_iter()
                    .find(|function| row.has(function))
                    .unwrap_or_default(),
            }),
        }
    }
    senders.sort_by_key(|sender| std::cmp::Reverse(sender.ns));
    senders
}

/// How often receivers ran out of data.
fn starved(sleeps: &[SleepRow]) -> u64 {
    sleeps
        .iter()
        .filter(|row| row.has("sk_wait_data") && row.stats.count() >= 10)
        .map(|row| row.stats.count())
        .fold(0, u64::saturating_add)
}

fn look(case: &Case<'_>) -> Verdict {
    let Some(sleeps) = &case.picture.sleeps else {
        return without_stacks(case);
    };
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let senders = senders(sleeps);
    let Some(worst) = senders.first() else {
        return without_names(case, sleeps);
    };
    // Senders sleep at the same time: what all of them slept is no part of the recorded time.
    let cost = case.span_cost(worst.ns);
    let count: u64 = senders
        .iter()
        .map(|sender| sender.count)
        .fold(0, u64::saturating_add);
    if count < 50 || cost.share < ASLEEP {
        return Verdict::Clear;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    // Where the receivers are recorded too, they tell whose fault it is: one that is slow has data all the time, and
    // one that runs out of data several times for each time that a sender gets room is given too little at once.
    let starved = starved(sleeps);
    if starved > 0 && starved < count.saturating_mul(STARVED) {
        return Verdict::Clear;
    }
    let mut finding = Finding::new(&RULE, if starved > 0 { 0.9 } else { 0.7 })
        .cost(cost)
        .title(format!(
            "{} (thread {}) slept {} times, {}, for room in its send buffer",
            worst.comm,
            worst.tid,
            worst.count,
            human(worst.ns)
        ));
    for sender in senders.iter().take(4) {
        finding = finding.evidence(slept(case, sender));
    }
    if senders.len() > 1 {
        let all = senders.iter().map(|sender| sender.ns);
        finding = finding.evidence(says!(
            "{senders} senders slept {count} times, {time} in all, partly at the same time. The cost is that of the \
             one that slept longest.",
            senders = senders.len() as u64,
            count = count,
            time = Ns(all.fold(0, u64::saturating_add)),
        ));
    }
    finding = finding.evidence(match starved {
        0 => "The recording has no receiver; record it as well to see whether it is slow or the buffer is too \
              small."
            .into(),
        _ => says!(
            "Receivers ran out of data {starved} times (sk_wait_data), {ratio} times for each wait of a sender: the \
             send buffer is too small.",
            starved = starved,
            ratio = Ratio(starved as f64 / count as f64),
        ),
    });
    if worst.function != WAITS[0] {
        finding = finding.note(
            0,
            "This is not a TCP socket: its limits are SO_SNDBUF, net.core.wmem_default and net.core.wmem_max (a tap \
             device's: sndbuf).",
        );
    }
    if let Some(stack) = stack(sleeps, worst.tid) {
        finding = finding.evidence(stack);
    }
    finding.found()
}

/// One sender in words.
fn slept(case: &Case<'_>, sender: &Sender<'_>) -> Evidence {
    let rows = case.picture.sched.iter().flat_map(|report| &report.rows);
    let ran = rows
        .filter(|row| row.tid == sender.tid)
        .map(|row| row.runtime_ns.max(row.on_cpu_ns))
        .fold(0u64, u64::saturating_add);
    says!(
        "{task} slept {count} times under {function}, {time} in all until it was woken, and ran for {ran}.",
        task = ThreadMention::named(sender.comm, sender.tid),
        count = sender.count,
        function = sender.function,
        time = Ns(sender.ns),
        ran = Ns(ran),
    )
}

/// The stack with which a sender slept.
fn stack(sleeps: &[SleepRow], tid: i32) -> Option<Evidence> {
    let row = sleeps.iter().find(|row| row.tid == tid && waits(row))?;
    let frames: Vec<&str> = row.frames.iter().take(5).map(String::as_str).collect();
    let stack = says!(
        "Its stack, innermost first: {frames}.",
        frames = frames.join(", "),
    );
    Some(stack.thread(tid))
}

/// Programs whose work is to send.
const SENDERS: [&str; 7] = [
    "iperf", "iperf3", "netperf", "nuttcp", "uperf", "sockperf", "ttcp",
];

/// From switches alone: a program that sends, sleeps often and does not wait for a CPU.
fn without_stacks(case: &Case<'_>) -> Verdict {
    let unknown = || {
        Verdict::Unknown(
            "Record sched:sched_switch with kernel stacks: they show where tasks sleep.".to_owned(),
        )
    };
    let rows = case.picture.sched.iter().flat_map(|report| &report.rows);
    let sender = |row: &&TaskRow| SENDERS.contains(&row.comm.as_str());
    let Some(row) = rows.filter(sender).max_by_key(|row| row.delays.count()) else {
        return unknown();
    };
    let (switches, ran) = (row.delays.count(), row.runtime_ns.max(row.on_cpu_ns));
    // It hardly runs before it sleeps again, and gets its CPU at once when it may go on.
    let short = ran / switches.max(1) < 1_000_000;
    let queues = row.delays.mean() > 1_000_000;
    if !case.printed() || switches < 1000 || !short || queues {
        return unknown();
    }
    // How long it slept is not in the table: delays begin with the wake-up.
    let mut finding = Finding::new(&RULE, 0.4)
        .title(format!("{} slept {switches} times in {} of run time", row.comm, human(ran)))
        .evidence(
            says!(
                "{task}: {switches} switches, one for every {each} of run time. It waited {wait} for a CPU on average, \
                 so it sleeps and is not preempted.",
                task = row.comm.as_str(),
                switches = switches,
                each = Ns(ran / switches.max(1)),
                wait = Ns(row.delays.mean()),
            )
            .thread(row.tid),
        )
        .evidence(
            "The table does not show where it sleeps: a sender mostly sleeps in tcp_sendmsg_locked for memory, a \
             receiver until there is data. Stacks of sched:sched_switch (trapline record --for stacks) show it.",
        );
    finding.at_least = Severity::Medium;
    finding.found()
}

/// From stacks that nothing names: two groups of threads of one program that sends, each with a stack of its own to
/// sleep in.
fn without_names(case: &Case<'_>, sleeps: &[SleepRow]) -> Verdict {
    let unnamed = |row: &&SleepRow| {
        row.frames
            .first()
            .is_some_and(|frame| frame.starts_with("0x"))
    };
    let sender = |row: &&SleepRow| SENDERS.contains(&row.comm.as_str());
    let rows: Vec<&SleepRow> = sleeps.iter().filter(unnamed).filter(sender).collect();
    if rows.is_empty() {
        return Verdict::Clear;
    }
    // The stack in which each thread sleeps most often is the one it waits for its peer in.
    let mut most: Vec<&SleepRow> = Vec::new();
    for row in &rows {
        match most.iter_mut().find(|known| known.tid == row.tid) {
            Some(known) if known.stats.count() < row.stats.count() => *known = row,
            Some(_) => {}
            None => most.push(row),
        }
    }
    // Their stack, how often all of them slept with it, and how long the one that slept longest.
    let mut groups: Vec<(&[String], u64, u64)> = Vec::new();
    for row in most.iter().filter(|row| row.stats.count() >= 20) {
        // Where in its functions a thread was differs by the innermost frames only where loops do.
        let stack = row.frames.as_slice();
        match groups.iter_mut().find(|group| group.0 == stack) {
            Some(group) => {
                group.1 += row.stats.count();
                group.2 = group.2.max(row.stats.total());
            }
            None => groups.push((stack, row.stats.count(), row.stats.total())),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.1));
    let unknown = Verdict::Unknown(
        "The recording has stacks and no symbols; give --kallsyms of its host (a copy of /proc/kallsyms): they show \
         where tasks sleep."
            .to_owned(),
    );
    let [first, second, ..] = groups.as_slice() else {
        return unknown;
    };
    let (starved, waits, ns) = (first.1, second.1, second.2);
    let cost = case.span_cost(ns);
    if waits < 50 || starved < waits.saturating_mul(STARVED) || cost.share < ASLEEP {
        return unknown;
    }
    if let Some(brief) = case.too_brief() {
        return brief;
    }
    let comm = most.first().map_or("", |row| row.comm.as_str());
    Finding::new(&RULE, 0.5)
        .cost(cost)
        .title(format!("Threads of {comm} wait for each other: {waits} sleeps of senders, {starved} of receivers"))
        .evidence(says!(
            "Threads of {task} slept {waits} times with one stack, one of them {time} in all, and others {starved} \
             times with another. So receivers ran out of data {ratio} times for each wait of a sender.",
            task = comm,
            waits = waits,
            time = Ns(ns),
            starved = starved,
            ratio = Ratio(starved as f64 / waits as f64),
        ))
        .evidence(
            "The stacks have no symbols, so this is a guess; --kallsyms with a copy of the host's /proc/kallsyms shows \
             whether it is sk_stream_wait_memory.",
        )
        .found()
}
