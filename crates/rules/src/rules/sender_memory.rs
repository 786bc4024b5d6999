//! A sender of TCP data sleeps until its socket has room.

use analysis::TaskRow;
use stats::duration::human;

use crate::{Base, Case, Cost, Finding, Remedy, Rule, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "sender-waits-for-memory",
    title: "A sender sleeps until its socket has room for more",
    looks_at: "stacks with which tasks leave their CPUs: sleeps under sk_stream_wait_memory (called from tcp_sendmsg_locked)",
    needs: "sched:sched_switch with kernel stacks (perf record -g -e sched:sched_switch -e sched:sched_waking); from the \
            switches alone it can only be guessed",
    cause: "The socket's send buffer is full: what was sent has not been acknowledged, so its memory is not free, and the \
            sender sleeps. That is one switch for every few packets, and a connection that is never kept full.",
    remedies: &[
        Remedy {
            what: "Give the socket more room: raise net.ipv4.tcp_wmem (its third number is the limit of autotuning), and do not \
                   set a small SO_SNDBUF (iperf -w).",
            price: "Memory per connection, and more data under way: latency for what is behind it in the queue.",
            unless: "Not where net.ipv4.tcp_mem is at its limit already, nor where the receiver is what is slow: then only the \
                     queue gets longer.",
            check: "trapline compare BEFORE AFTER: the sender's switches, and its time in sk_stream_wait_memory.",
        },
        Remedy {
            what: "Find out why acknowledgements are late: the receiver's CPU, its interrupts' placement, offloads (GSO, GRO) \
                   on the way, a tunnel that has none.",
            price: "None to look; record both ends at the same time.",
            unless: "Not before the buffer is known to be larger than bandwidth times round-trip time.",
            check: "ss -ti on both ends: cwnd, unacked, notsent; trapline sched on the receiver.",
        },
    ],
    sources: &[
        "Linux, net/core/stream.c (sk_stream_wait_memory), net/ipv4/tcp.c (tcp_sendmsg_locked)",
        "Linux, Documentation/networking/ip-sysctl.rst (tcp_wmem, tcp_mem)",
    ],
    look,
};

const WAITS: [&str; 3] = [
    "sk_stream_wait_memory",
    "sock_alloc_send_pskb",
    "sock_wait_for_wmem",
];

fn look(case: &Case<'_>) -> Verdict {
    let Some(sleeps) = &case.picture.sleeps else {
        return without_stacks(case);
    };
    let waits = sleeps
        .iter()
        .filter(|row| WAITS.iter().any(|function| row.has(function)));
    let mut by_task: Vec<(&str, i32, u64, u64, &str)> = Vec::new();
    for row in waits {
        let function = WAITS
            .into_iter()
            .find(|function| row.has(function))
            .unwrap_or_default();
        match by_task.iter_mut().find(|task| task.1 == row.tid) {
            Some(task) => {
                task.2 += row.stats.count();
                task.3 = task.3.saturating_add(row.stats.total());
            }
            None => by_task.push((
                &row.comm,
                row.tid,
                row.stats.count(),
                row.stats.total(),
                function,
            )),
        }
    }
    by_task.sort_by_key(|task| std::cmp::Reverse(task.3));
    let Some(&(comm, tid, count, ns, _)) = by_task.first() else {
        return Verdict::Clear;
    };
    let total: u64 = by_task
        .iter()
        .map(|task| task.3)
        .fold(0, u64::saturating_add);
    let cost = case.span_cost(total);
    if by_task.iter().map(|task| task.2).sum::<u64>() < 50 || cost.share < 0.05 {
        return Verdict::Clear;
    }
    let mut finding = Finding::new(&RULE, 0.9).cost(cost).title(format!(
        "{comm} (thread {tid}) slept {count} times, {}, until its socket had room",
        human(ns)
    ));
    for (comm, tid, count, ns, function) in by_task.iter().take(4) {
        let run = case.picture.sched.iter().flat_map(|report| &report.rows);
        let ran = run
            .filter(|row| row.tid == *tid)
            .map(|row| row.runtime_ns.max(row.on_cpu_ns))
            .sum::<u64>();
        finding = finding.evidence(format!(
            "{comm} (thread {tid}) was away from its CPU {count} times under {function}, {} in all, and ran for {}.",
            human(*ns),
            human(ran),
        ));
    }
    let deepest = sleeps
        .iter()
        .find(|row| row.tid == tid && WAITS.iter().any(|function| row.has(function)));
    if let Some(row) = deepest {
        let frames: Vec<&str> = row.frames.iter().take(5).map(String::as_str).collect();
        finding = finding.evidence(format!(
            "Its stack, innermost first: {}.",
            frames.join(", ")
        ));
    }
    finding.found()
}

/// Programs whose work is to send.
const SENDERS: [&str; 7] = [
    "iperf", "iperf3", "netperf", "nuttcp", "uperf", "sockperf", "ttcp",
];

/// From switches alone: a program that sends, sleeps often and does not wait for a CPU.
fn without_stacks(case: &Case<'_>) -> Verdict {
    let lacks = || {
        Verdict::Lacks(
            "Record sched:sched_switch with kernel stacks (perf record -g -e sched:sched_switch -e sched:sched_waking) to \
             know where tasks sleep."
                .to_owned(),
        )
    };
    let rows = case.picture.sched.iter().flat_map(|report| &report.rows);
    let sender = |row: &&TaskRow| SENDERS.contains(&row.comm.as_str());
    let Some(row) = rows.filter(sender).max_by_key(|row| row.delays.count()) else {
        return lacks();
    };
    let (switches, ran) = (row.delays.count(), row.runtime_ns.max(row.on_cpu_ns));
    // It hardly runs before it sleeps again, and gets its CPU at once when it may go on.
    let short = ran / switches.max(1) < 1_000_000;
    let queues = row.delays.mean() > 1_000_000;
    if !case.printed() || switches < 1000 || !short || queues {
        return lacks();
    }
    let slept = row.delays.total();
    Finding::new(&RULE, 0.4)
        .cost(Cost::of(slept, case.picture.span_ns.unwrap_or(0), Base::Span))
        .title(format!("{} went to sleep {switches} times in {} of run time", row.comm, human(ran)))
        .evidence(format!(
            "{}: {switches} switches, one for every {} that it ran; it waited {} for a CPU on average, so it sleeps and does \
             not queue.",
            row.comm,
            human(ran / switches.max(1)),
            human(row.delays.mean()),
        ))
        .evidence(
            "Where it sleeps is not in this table; a sender mostly does in tcp_sendmsg_locked, for memory. Stacks of \
             sched:sched_switch (perf record -g) tell.",
        )
        .found()
}
