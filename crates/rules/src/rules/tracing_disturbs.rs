//! What recording costs.

use analysis::{CostReport, Role};
use words::{duration::human, share};

use crate::common::{LARGE_TIMES, OFTEN_WAITS, waits_reach};
use crate::evidence::{Id, Ns, Of, Share, ThreadMention, says};
use crate::{
    AccountPart, Base, Case, EvidenceNumber, ExplainedTime, Finding, FindingCost, Precedence,
    Remedy, RestsOn, Rule, RuleLook, Verdict,
};

pub(crate) static RULE: Rule = Rule {
    id: "tracing-disturbs",
    title: "Recording itself takes a visible share of the time",
    described_as: &[
        "the recording itself slows the system",
        "perf or trace-cmd is at the top of the CPU list",
        "latency is worse while tracing",
        "overhead of perf",
    ],
    looks_at: "CPU time of the recorder's own threads and their helpers, and vCPUs that waited behind them; events on \
        the busiest CPU, at the most that one can cost: the shortest gaps between a thread's events",
    needs: "nothing beside the recording; sched:sched_switch shows the recorder's threads",
    record: &[],
    measures: &[],
    cause: "Each event is recorded on the CPU where it happens, within what is measured. Probes that fire for each \
        packet or poll, function tracing without a filter, and stacks cost more than the code they observe. Recording \
        may cause the findings below, and may even hide the slow case.",
    found: &[
        "Certain: the recorder's threads and helpers ([who that \
        is](../../docs/diagnose.md#who-is-the-recorder)) had {share} of the CPUs' time, or \
         vCPUs waited {waits} of theirs behind them, {often} times or so long that it is {large} times that. \
         Confidence 0.9, also where the recorder says that it lost events: what it ran around those is left out.",
        "A recording of `trapline record` has the cost of an event in it, measured when it began: that times the \
         events of the busiest CPU, from {share} on, with confidence 0.8. There is no bound then.",
        "A bound: what an event costs lies between its time stamp and that of the thread's next one. So the 1st \
         percentile of the gaps between events of a thread, on one CPU and with no other thread's between, times the \
         events of the busiest CPU, is what recording takes there *at most*: reported from {share} on as \"up to\", \
         `low`, 0.4, without a cost. If {event} for a tracepoint and {probe} for a probe are {share} as well, it is \
         certain: 0.7. (No kernel does it for less: `kernel/trace/trace_benchmark.c` measures that. On a slow or an \
         emulated CPU it is many times that.)",
        "A recording of less than {span}, or with fewer than {events} events on its busiest CPU, is too short for a \
         share.",
    ],
    limits: &[
        ("share", EvidenceNumber::Share(SHARE)),
        ("waits", EvidenceNumber::Share(WAITS)),
        ("often", EvidenceNumber::Count(OFTEN_WAITS)),
        ("large", EvidenceNumber::Ratio(LARGE_TIMES)),
        ("span", EvidenceNumber::Nanoseconds(LEAST_NS)),
        ("events", EvidenceNumber::Count(LEAST_EVENTS)),
        ("event", EvidenceNumber::Nanoseconds(EVENT_NS)),
        ("probe", EvidenceNumber::Nanoseconds(PROBE_NS)),
    ],
    seen_from: "{share} of a CPU's time, as far as the cost of an event is known",
    unknown: "Nothing; `sched_switch` shows the recorder's threads. Printed tables do not show it.",
    advice: "",
    looks_alike: "",
    remedies: &[
        Remedy {
            what: "Record fewer events: leave out probes in loops that poll, filter in the kernel, and count (perf \
                stat -e 'kvm:*') before tracing.",
            price: "What is not recorded cannot be analysed later.",
            unless: "Keep the events of the path that is of interest.",
            check: "Measure in the guest (ping, IOPS) with and without recording.",
        },
        Remedy {
            what: "Move the recorder off the CPUs that matter: taskset it to others, write to a RAM disk, and use \
                larger buffers with fewer wake-ups (perf record -m 64M, --overwrite or snapshot mode).",
            price: "Memory.",
            unless: "It does not help if all CPUs are busy.",
            check: "trapline sched: run time of perf or trace-cmd.",
        },
        Remedy {
            what: "If a guest is recorded as well, let its agent keep its events until the host is done (trace-cmd \
                record -b for larger buffers), or record the guest by itself.",
            price: "Memory of the guest.",
            unless: "If the guest's events are not needed, leave its agent out instead.",
            check: "trapline sched: run time of the vhost worker that serves vsock.",
        },
    ],
    sources: &[
        "Linux, Documentation/trace/events.rst, kprobetrace.rst; tools/perf/Documentation/perf-record.txt",
    ],
    explains: &[ExplainedTime::Part(AccountPart::RunnableRecorder)],
    look: RuleLook::Case(look),
};

/// Positions of the remedies that need no agent in a guest.
const FEWER: usize = 0;
const ELSEWHERE: usize = 1;

/// A shorter recording gets no share: a recording has its beginning and its end, in which the recorder is busy with
/// itself.
const LEAST_NS: u64 = 100_000_000;
/// Nor from fewer events.
/// No event costs more, with the deepest stack and on the slowest machine that was measured.
const MOST_EVENT_NS: u64 = 50_000;
const LEAST_EVENTS: u64 = 1_000;

/// What a tracepoint with its record costs at least, on any CPU of today, and a probe (a breakpoint, or a jump to where
/// its registers are saved): below what `trace_benchmark` measures (`kernel/trace/trace_benchmark.c`). What it costs at
/// most the recording bounds.
const EVENT_NS: u64 = 100;
const PROBE_NS: u64 = 300;

/// A twentieth of a CPU is what a latency shows; and the vCPUs' waits as those behind other tasks.
const SHARE: f64 = 0.05;
const WAITS: f64 = 0.02;

fn look(case: &Case<'_>) -> Verdict {
    if case.printed() {
        return Verdict::Unknown(
            "A printed table does not show what recording costs: give the recording itself."
                .to_owned(),
        );
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    let span = case.picture.span_ns.unwrap_or(0);
    let events = case.picture.info.events.iter();
    let all: u64 = events.map(|event| event.count).fold(0, u64::saturating_add);
    if span < LEAST_NS {
        return Verdict::Unknown(format!(
            "{all} events in {} are too few to measure what recording costs: record for longer.",
            human(span)
        ));
    }
    let measured = RecorderShare::of(case, span);
    let recorded = analysis::recording_cost(case.picture);
    // What the recorder measured is better than any bound.
    let bound = match recorded {
        Some(_) => None,
        None => CpuEventCost::of(case, span, all),
    };
    let recorded = recorded.filter(|cost| cost.share >= SHARE && cost.events >= LEAST_EVENTS);
    let certain = bound.as_ref().is_some_and(|bound| bound.least >= SHARE) || recorded.is_some();
    let up_to = bound.as_ref().is_some_and(|bound| bound.most >= SHARE) || recorded.is_some();
    if !measured.records() && !up_to {
        return Verdict::Clear;
    }
    let confidence = if measured.records() {
        0.9
    } else if recorded.is_some() {
        0.8
    } else if certain {
        0.7
    } else {
        0.4
    };
    // What the recorder itself says it lost is left out of its threads' time, which is then a lower bound.
    let lost = case.picture.quality.lost_events;
    let mut finding = Finding::new(&RULE, confidence).rests_on(match lost {
        0 => RestsOn::Absence,
        _ => RestsOn::Times,
    });
    if measured.records() {
        finding = measured.tell(case, span, finding);
    }
    if let Some(cost) = recorded {
        finding = tell_cost(&cost, finding, !measured.records());
    }
    if let Some(bound) = bound {
        finding = bound.tell(case, finding, !measured.records(), certain);
    }
    let recorder = &case.picture.recorder;
    let mut finding = match recorder.agents || recorder.helpers_ns > 0 {
        true => finding,
        false => finding.only(&[FEWER, ELSEWHERE]),
    };
    if lost > 0 {
        finding = finding.evidence(says!(
            "The recorder lost {lost} events; its own run time around them is not in these numbers.",
            lost = lost,
        ));
    }
    // What is only bounded may be nothing: it is no reason to doubt what stands below.
    if finding.confidence >= 0.6 {
        finding.precedence = Precedence::Disturbing;
    }
    finding.found()
}

/// What the recorder's threads took, as the scheduler's events tell.
struct RecorderShare {
    ran: FindingCost,
    /// What vCPUs waited behind them: nothing, where that may be chance.
    waits: FindingCost,
}

impl RecorderShare {
    fn of(case: &Case<'_>, span: u64) -> RecorderShare {
        let recorder = &case.picture.recorder;
        let ran = recorder.ran_ns.saturating_add(recorder.helpers_ns);
        // All of the host's CPUs, as far as their numbers tell: one of which nothing was recorded was idle.
        let cpus = case.picture.signs.cpus.len() as u64;
        let cpu_ns = span.saturating_mul(cpus.max(1));
        let waits = &case.picture.waits;
        let waited = |ns| FindingCost::of(ns, case.picture.observed_ns(), Base::VcpuTime);
        let all = waited(waits.recorder_ns());
        RecorderShare {
            ran: FindingCost::of(ran, cpu_ns, Base::CpuTime),
            waits: match waits_reach(WAITS, all.share, case.waits_behind(waits.recorder_count())) {
                true => all,
                false => waited(0),
            },
        }
    }

    fn records(&self) -> bool {
        self.ran.share >= SHARE || self.waits.share >= WAITS
    }

    fn tell(&self, case: &Case<'_>, span: u64, finding: Finding) -> Finding {
        let recorder = &case.picture.recorder;
        // Of the two the one that weighs more: shares of different wholes.
        let by_waits = self.waits.share > self.ran.share || self.ran.share < SHARE;
        let mut finding = if by_waits {
            finding.cost(self.waits).title(format!(
                "vCPUs waited {} for a CPU behind the recorder",
                human(self.waits.ns)
            ))
        } else {
            finding.cost(self.ran).title(format!(
                "The recorder itself ran for {}, {} of the CPUs' time",
                human(self.ran.ns),
                share::tenths(self.ran.share)
            ))
        };
        finding = finding.evidence(says!(
            "Threads of the recorder ran for {ran} of {span}: {share} of a CPU.",
            ran = Ns(recorder.ran_ns),
            span = Ns(span),
            share = Of(recorder.ran_ns, span),
        ));
        for thread in recorder.threads.iter().take(4) {
            if thread.ran_ns == 0 {
                continue;
            }
            let helps = match thread.role {
                Role::Recorder => "",
                Role::Helper => ", which carries the data of the guest's agent over vsock,",
            };
            finding = finding.evidence(says!(
                "{thread}{helps} ran for {ran}.",
                thread = ThreadMention::named(&thread.comm, thread.tid),
                helps = helps,
                ran = Ns(thread.ran_ns),
            ));
        }
        if self.waits.ns > 0 {
            finding = finding.evidence(says!(
                "vCPUs waited {time} for a CPU behind the recorder ({share} of their time).",
                time = Ns(self.waits.ns),
                share = Of(self.waits.ns, case.picture.observed_ns()),
            ));
        }
        let agents = case.picture.ipis.followed.of_agent;
        if agents > 0 {
            finding = finding.evidence(says!(
                "{interrupts} IPIs in the guest came within 5 ms of its agent's traffic.",
                interrupts = agents,
            ));
        }
        finding
    }
}

/// Says what the recorder measured an event to cost.
fn tell_cost(cost: &CostReport, finding: Finding, title: bool) -> Finding {
    let took = cost.events.saturating_mul(cost.event_ns).min(cost.span_ns);
    let mut finding = finding;
    if title {
        finding = finding
            .title(format!(
                "Recording took {} of CPU {}'s time",
                share::tenths(cost.share),
                cost.cpu
            ))
            .cost(FindingCost::of(took, cost.span_ns, Base::Span));
    }
    finding.evidence(says!(
        "CPU {cpu} recorded {events} events in {span}. The recorder measured {each} for one, with warm caches: {share} \
         of the CPU's time, or more.",
        cpu = Id(u64::from(cost.cpu)),
        events = cost.events,
        span = Ns(cost.span_ns),
        each = Ns(cost.event_ns),
        share = Share(cost.share),
    ))
}

/// What events cost on the CPU that has most of them.
struct CpuEventCost {
    cpu: u32,
    events: u64,
    span: u64,
    each_ns: u64,
    /// As shares of the CPU's time.
    least: f64,
    most: f64,
}

impl CpuEventCost {
    fn of(case: &Case<'_>, span: u64, all: u64) -> Option<CpuEventCost> {
        let cpus = case.picture.signs.cpus.iter().zip(0u32..);
        let (busiest, cpu) = cpus.max_by_key(|(signs, _)| signs.events)?;
        let each_ns = case.picture.recorder.event_at_most_ns()?;
        // Gaps that no event fills say nothing of what one costs.
        if busiest.events < LEAST_EVENTS || each_ns > MOST_EVENT_NS {
            return None;
        }
        let probes = case
            .picture
            .info
            .events
            .iter()
            .filter(|event| event.name.starts_with("probe") || event.name.contains("kprobes:"));
        let probes: u64 = probes.map(|event| event.count).fold(0, u64::saturating_add);
        let least = all
            .saturating_sub(probes)
            .saturating_mul(EVENT_NS)
            .saturating_add(probes.saturating_mul(PROBE_NS));
        let least = (least / all.max(1)).min(each_ns);
        let share = |each: u64| (busiest.events.saturating_mul(each) as f64 / span as f64).min(1.0);
        Some(CpuEventCost {
            cpu,
            events: busiest.events,
            span,
            each_ns,
            least: share(least),
            most: share(each_ns),
        })
    }

    fn tell(&self, case: &Case<'_>, finding: Finding, title: bool, certain: bool) -> Finding {
        let mut finding = finding;
        let CpuEventCost { cpu, events, .. } = *self;
        let rate = events as f64 / (self.span as f64 / 1e9);
        let most = share::tenths(self.most);
        if title {
            finding = finding.title(format!(
                "Recording takes up to {most} of CPU {cpu}'s time: {rate:.0} events a second"
            ));
        }
        if title && certain {
            let ns = (self.least * self.span as f64) as u64;
            finding = finding.cost(FindingCost::of(ns, self.span, Base::Span));
        }
        finding = finding.evidence(says!(
            "CPU {cpu} recorded {events} events in {span}. The events of a thread are at least {each} apart (1st \
             percentile), so one event costs at most that. Recording takes up to {most} of the CPU's time.",
            cpu = Id(u64::from(cpu)),
            events = events,
            span = Ns(self.span),
            each = Ns(self.each_ns),
            most = Share(self.most),
        ));
        if title && !certain {
            finding = finding.evidence(
                "This is an upper bound: the real cost may be far lower. Measure in the guest with and without \
                 recording.",
            );
        }
        let all: u64 = case
            .picture
            .info
            .events
            .iter()
            .map(|event| event.count)
            .fold(0, u64::saturating_add);
        for event in case.picture.info.events.iter().take(3) {
            finding = finding.evidence(says!(
                "{event}: {events} events ({share}).",
                event = event.name.as_str(),
                events = event.count,
                share = Of(event.count, all),
            ));
        }
        finding
    }
}
