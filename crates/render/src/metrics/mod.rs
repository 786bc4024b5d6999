//! What is counted live, in the text format that Prometheus reads
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>, version 0.0.4).

mod counters;
mod health;
mod text;

use std::collections::HashMap;
use std::fmt::Write;

use counts::{DurationBuckets, NamedCounts, NamedRow, RowOwner};
use model::State;

use counters::CounterTotals;
pub use health::{CountingHealth, ServingHealth};
use text::{head, label, seconds};

/// The type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Buckets of waits that are printed: those that end at 2^10 ns (1 us), 2^12 ns and so on, up to 2^34 ns (17 s).
const BUCKETS: std::ops::RangeInclusive<usize> = 10..=34;

const STATES: [(&str, State); State::COUNT] = [
    ("guest", State::Guest),
    ("kernel", State::Kernel),
    ("kernel_blocked", State::KernelBlocked),
    ("user", State::User),
    ("user_blocked", State::UserBlocked),
    ("poll", State::Poll),
    ("halted", State::Halted),
    ("runnable", State::Runnable),
    ("unknown", State::Unknown),
];

/// Makes the text. It remembers what it printed, since counters never fall: the time of a halt that is not over is
/// first KVM's own, and polling or halted once it is over.
#[derive(Debug, Default)]
pub struct Metrics {
    exported_ns: HashMap<(RowOwner, State), u64>,
    counters: CounterTotals,
}

fn labels(whose: &RowOwner) -> String {
    let name = whose.vm_name.as_deref().unwrap_or_default();
    let mut out = format!("vm=\"{}\",pid=\"{}\"", label(name), whose.vm_pid);
    if let Some(vcpu) = whose.vcpu {
        let _ = write!(out, ",vcpu=\"{vcpu}\"");
    }
    if let Some(tid) = whose.tid {
        let _ = write!(out, ",tid=\"{tid}\"");
    }
    out
}

impl Metrics {
    /// Returns the text for what was counted since the beginning.
    pub fn text(&mut self, named: &NamedCounts) -> String {
        let mut out = String::new();
        self.states(&mut out, named);
        exits(&mut out, named);
        accesses(&mut out, named);
        waits(&mut out, named);
        threads(&mut out, named);
        polls(&mut out, named);
        self.counters.text(&mut out, named);
        head(
            &mut out,
            "trapline_dropped_total",
            "counter",
            "Events in no other metric, since tables are full.",
        );
        let dropped = named.dropped;
        for (what, count) in [
            ("vcpus", dropped.vcpus),
            ("rows", dropped.rows),
            ("behind", dropped.behind),
            ("events", dropped.events),
            ("withheld", dropped.withheld),
        ] {
            let _ = writeln!(out, "trapline_dropped_total{{what=\"{what}\"}} {count}");
        }
        out
    }

    fn states(&mut self, out: &mut String, named: &NamedCounts) {
        let name = "trapline_vcpu_seconds_total";
        head(out, name, "counter", "Time of a vCPU by what it did.");
        for vcpu in &named.vcpus {
            for (state_name, state) in STATES {
                let ns = vcpu.vcpu.times.get(state);
                let exported_ns = self
                    .exported_ns
                    .entry((vcpu.whose.clone(), state))
                    .or_default();
                *exported_ns = ns.max(*exported_ns);
                let (labels, seconds) = (labels(&vcpu.whose), seconds(*exported_ns));
                let _ = writeln!(out, "{name}{{{labels},state=\"{state_name}\"}} {seconds}");
            }
        }
        let here = |whose: &RowOwner| named.vcpus.iter().any(|vcpu| vcpu.whose == *whose);
        if self.exported_ns.len() > named.vcpus.len() * STATES.len() {
            self.exported_ns.retain(|(whose, _), _| here(whose));
        }
    }
}

/// Writes a counter of what was counted of rows.
fn counter<'r>(
    out: &mut String,
    (name, help): (&str, &str),
    rows: impl Iterator<Item = &'r NamedRow>,
    labels: impl Fn(&NamedRow) -> String,
    amount: impl Fn(&NamedRow) -> String,
) {
    head(out, name, "counter", help);
    for row in rows {
        let _ = writeln!(out, "{name}{{{}}} {}", labels(row), amount(row));
    }
}

fn count(row: &NamedRow) -> String {
    row.durations.count.to_string()
}

fn time(row: &NamedRow) -> String {
    seconds(row.durations.total_ns).to_string()
}

fn exits(out: &mut String, named: &NamedCounts) {
    let rows = || named.rows.iter().filter(|row| row.table.name() == "vmexit");
    let labels = |row: &NamedRow| {
        let (whose, reason) = (labels(&row.whose), label(&row.key));
        format!("{whose},reason=\"{reason}\",waiting=\"{}\"", row.waiting)
    };
    let name = ("trapline_exits_total", "Exits by reason.");
    counter(out, name, rows(), labels, count);
    let name = (
        "trapline_exit_seconds_total",
        "Time from exit to entry by reason.",
    );
    counter(out, name, rows(), labels, time);
    let name = (
        "trapline_exits_to_vmm_total",
        "Exits that the VMM handled, by reason.",
    );
    counter(out, name, rows(), labels, |row| row.user_count.to_string());
}

fn accesses(out: &mut String, named: &NamedCounts) {
    let rows = || named.rows.iter().filter(|row| row.table.name() != "vmexit");
    let labels = |row: &NamedRow| {
        let (whose, key) = (labels(&row.whose), label(&row.key));
        let device = label(row.name.as_deref().unwrap_or_default());
        let (table, notifies) = (row.table.name(), row.is_notification());
        format!(
            "{whose},table=\"{table}\",key=\"{key}\",device=\"{device}\",notification=\"{notifies}\""
        )
    };
    let name = (
        "trapline_accesses_total",
        "Accesses to ports, addresses and registers.",
    );
    counter(out, name, rows(), labels, count);
    counter(
        out,
        ("trapline_access_seconds_total", "Their time."),
        rows(),
        labels,
        time,
    );
}

fn waits(out: &mut String, named: &NamedCounts) {
    let name = "trapline_cpu_wait_seconds";
    head(
        out,
        name,
        "histogram",
        "Waits of a vCPU for a CPU, after it was woken or preempted.",
    );
    for vcpu in &named.vcpus {
        for (after, durations) in [
            ("woken", &vcpu.vcpu.woken),
            ("preempted", &vcpu.vcpu.preempted),
        ] {
            let labels = format!("{},after=\"{after}\"", labels(&vcpu.whose));
            histogram(out, name, &labels, durations);
        }
    }
    let name = "trapline_cpu_wait_behind_seconds_total";
    head(
        out,
        name,
        "counter",
        "Time that a vCPU or another thread of a VM waited for a CPU while another task had it.",
    );
    for one in &named.behind {
        let (whose, comm) = (
            labels(&one.whose),
            label(one.comm.as_deref().unwrap_or_default()),
        );
        let by = one.by_tid.map(|tid| tid.to_string()).unwrap_or_default();
        let thread = one
            .thread
            .as_deref()
            .map(|name| format!(",thread=\"{}\"", label(name)));
        let thread = thread.unwrap_or_default();
        let _ = writeln!(
            out,
            "{name}{{{whose}{thread},task=\"{comm}\",by_tid=\"{by}\"}} {}",
            seconds(one.ns)
        );
    }
}

fn threads(out: &mut String, named: &NamedCounts) {
    let labels = |one: &counts::NamedThread| {
        let (whose, name) = (labels(&one.whose), one.comm.as_deref().unwrap_or_default());
        let (name, role) = (label(name), one.role.name());
        format!("{whose},thread=\"{name}\",role=\"{role}\"")
    };
    let name = "trapline_thread_seconds_total";
    let help = "Time of a thread that works for a VM and is no vCPU, by what it did.";
    head(out, name, "counter", help);
    for one in &named.threads {
        let (labels, thread) = (labels(one), &one.thread);
        for (state, ns) in [
            ("running", thread.ran_ns),
            ("runnable", thread.runnable_ns),
            ("sleeping", thread.slept_ns),
            ("unknown", thread.unknown_ns),
        ] {
            let seconds = seconds(ns);
            let _ = writeln!(out, "{name}{{{labels},state=\"{state}\"}} {seconds}");
        }
    }
    let name = "trapline_thread_cpu_wait_seconds";
    let help = "Waits of such a thread for a CPU, after it was woken or preempted.";
    head(out, name, "histogram", help);
    for one in &named.threads {
        let (woken, preempted) = (&one.thread.woken, &one.thread.preempted);
        for (after, durations) in [("woken", woken), ("preempted", preempted)] {
            let labels = format!("{},after=\"{after}\"", labels(one));
            histogram(out, name, &labels, durations);
        }
    }
}

fn histogram(out: &mut String, name: &str, labels: &str, durations: &DurationBuckets) {
    for bucket in BUCKETS.step_by(2) {
        let within: u64 = durations
            .buckets
            .iter()
            .take(bucket + 1)
            .copied()
            .fold(0, u64::saturating_add);
        let end = seconds(1 << bucket);
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{end}\"}} {within}");
    }
    let _ = writeln!(
        out,
        "{name}_bucket{{{labels},le=\"+Inf\"}} {}",
        durations.count
    );
    let _ = writeln!(
        out,
        "{name}_sum{{{labels}}} {}",
        seconds(durations.total_ns)
    );
    let _ = writeln!(out, "{name}_count{{{labels}}} {}", durations.count);
}

fn polls(out: &mut String, named: &NamedCounts) {
    let values = |vcpu: &counts::LiveVcpu| {
        let polls = vcpu.polls;
        [
            ("succeeded", polls.succeeded, polls.succeeded_ns),
            ("failed", polls.failed, polls.failed_ns),
        ]
    };
    head(
        out,
        "trapline_halt_polls_total",
        "counter",
        "Halts that KVM polled in.",
    );
    for vcpu in &named.vcpus {
        for (outcome, count, _) in values(&vcpu.vcpu) {
            let labels = labels(&vcpu.whose);
            let _ = writeln!(
                out,
                "trapline_halt_polls_total{{{labels},outcome=\"{outcome}\"}} {count}"
            );
        }
    }
    let name = "trapline_halt_poll_seconds_total";
    head(out, name, "counter", "Time polled in them.");
    for vcpu in &named.vcpus {
        for (outcome, _, ns) in values(&vcpu.vcpu) {
            let labels = labels(&vcpu.whose);
            let _ = writeln!(
                out,
                "{name}{{{labels},outcome=\"{outcome}\"}} {}",
                seconds(ns)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_never_fall() {
        let whose = RowOwner {
            vm: "web".to_owned(),
            vm_pid: 1,
            vm_name: Some("web".to_owned()),
            vcpu: Some(0),
            tid: Some(2),
        };
        let mut named = NamedCounts::default();
        let mut times = model::Times::default();
        times.add(State::Kernel, 2_000_000_000);
        named.vcpus.push(counts::NamedVcpu {
            whose,
            vcpu: counts::LiveVcpu {
                tid: 2,
                pid: 1,
                number: Some(0),
                ended: false,
                times,
                exits: 0,
                before_first_entry: 0,
                without_entry: 0,
                polls: model::Polls::default(),
                woken: DurationBuckets::default(),
                preempted: DurationBuckets::default(),
            },
        });
        let mut metrics = Metrics::default();
        let line = "vcpu=\"0\",tid=\"2\",state=\"kernel\"} 2\n";
        assert!(metrics.text(&named).contains(line));
        named.vcpus[0]
            .vcpu
            .times
            .shift(State::Kernel, State::Poll, 1_000_000_000);
        let text = metrics.text(&named);
        assert!(text.contains(line), "{text}");
        assert!(text.contains("state=\"poll\"} 1\n"), "{text}");
    }
}
