//! What recording costs.

use stats::duration::human;

use crate::case::percent;
use crate::{Base, Case, Cost, Finding, Remedy, Rule, Verdict};

pub(crate) static RULE: Rule = Rule {
    id: "tracing-disturbs",
    title: "Recording itself takes a visible share of the time",
    looks_at: "events on each CPU, at an assumed cost for each; CPU time of the recorder's own threads where it was recorded",
    needs: "nothing beside the recording; sched:sched_switch shows the recorder's threads",
    measures: &[],
    cause: "Every event is taken on the CPU where it happens, in the middle of what is measured. Probes that fire for each packet or \
            poll, function tracing without a filter, and stacks cost more than what they look at; the slow case may even go away \
            while it is watched.",
    remedies: &[
        Remedy {
            what: "Record fewer events: leave out probes in loops that poll, filter in the kernel, and count (perf stat -e 'kvm:*') \
                   before tracing.",
            price: "What is not recorded cannot be asked later.",
            unless: "Not the events of the path that is looked for.",
            check: "The guest's own measure (ping, IOPS) with and without recording.",
        },
        Remedy {
            what: "Take the recorder off the CPUs that matter: taskset it to others, write to a RAM disk or over the network later, \
                   larger buffers with fewer wake-ups (perf record -m 64M, --overwrite or snapshot mode).",
            price: "Memory.",
            unless: "Not where CPUs are all busy.",
            check: "trapline sched: run time of perf or trace-cmd.",
        },
    ],
    sources: &[
        "Linux, Documentation/trace/events.rst, kprobetrace.rst; tools/perf/Documentation/perf-record.txt",
    ],
    look,
};

/// What one event is taken to cost: a tracepoint with its record takes some hundred nanoseconds on a CPU of today, a probe
/// by breakpoint and a stack several times that. The estimate says which it used.
const EVENT_NS: u64 = 400;
const PROBE_NS: u64 = 1_500;

/// Names of recorders' threads.
const RECORDERS: [&str; 4] = ["perf", "trace-cmd", "bpftrace", "stapio"];

fn look(case: &Case<'_>) -> Verdict {
    if case.printed() {
        return Verdict::Clear;
    }
    if let Some(lacks) = case.in_ticks() {
        return lacks;
    }
    let span = case.picture.span_ns.unwrap_or(0);
    if span == 0 {
        return Verdict::Clear;
    }
    let all: u64 = case
        .picture
        .info
        .events
        .iter()
        .map(|event| event.count)
        .sum();
    let probes: u64 = (case.picture.info.events.iter())
        .filter(|event| {
            event.name.starts_with("probe")
                || event.name.contains("kprobes:")
                || event.name == "function"
        })
        .map(|event| event.count)
        .sum();
    let each = (all.saturating_sub(probes) * EVENT_NS + probes * PROBE_NS) / all.max(1);
    let cpus = case.picture.signs.cpus.iter().zip(0u32..);
    let Some((busiest, cpu)) = cpus.max_by_key(|(signs, _)| signs.events) else {
        return Verdict::Clear;
    };
    let on_cpu = Cost::of(busiest.events.saturating_mul(each), span, Base::Span);
    let recorders: Vec<_> = (case.picture.sched.iter().flat_map(|report| &report.rows))
        .filter(|row| RECORDERS.contains(&row.comm.as_str()))
        .collect();
    let ran = recorders
        .iter()
        .map(|row| row.runtime_ns.max(row.on_cpu_ns))
        .fold(0u64, u64::saturating_add);
    let recorder = case.cpu_cost(ran);
    // A twentieth of a CPU is what a latency shows.
    if on_cpu.share < 0.05 && recorder.share < 0.05 {
        return Verdict::Clear;
    }
    // What the recorder does with events afterwards is not in the way of what is recorded, unless it has its CPU.
    let cost_ns = all.saturating_mul(each);
    let confidence = if recorder.share >= 0.05 { 0.9 } else { 0.6 };
    let mut finding = Finding::new(&RULE, confidence).cost(Cost {
        ns: cost_ns,
        ..if recorder.share > on_cpu.share {
            recorder
        } else {
            on_cpu
        }
    });
    let title = if recorder.share > on_cpu.share {
        format!("The recorder itself ran for {}", human(ran))
    } else {
        format!(
            "{:.0} events a second; on CPU {cpu} that is about {} of its time",
            all as f64 / case.seconds(),
            percent(on_cpu.ns, span)
        )
    };
    finding = finding.title(title)
        .evidence(format!(
            "CPU {cpu} recorded {} events in {}; at {} each that is {}.",
            busiest.events,
            human(span),
            human(each),
            human(on_cpu.ns)
        ))
        .evidence(format!(
            "The cost of an event is assumed ({} for a tracepoint, {} for a probe); measure with and without recording to be \
             sure.",
            human(EVENT_NS),
            human(PROBE_NS)
        ));
    for event in case.picture.info.events.iter().take(3) {
        finding = finding.evidence(format!(
            "{}: {} events ({}).",
            event.name,
            event.count,
            percent(event.count, all)
        ));
    }
    for row in recorders.iter().take(3) {
        finding = finding.evidence(format!(
            "{} (thread {}) ran for {}.",
            row.comm,
            row.tid,
            human(row.runtime_ns.max(row.on_cpu_ns))
        ));
    }
    finding.found()
}
