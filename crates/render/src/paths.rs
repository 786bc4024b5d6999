//! Latency paths.

use std::fmt::Write;

use analysis::Stats;
use paths::{Because, Found, InstanceReport, PathReport, SlowReport, StageReport};
use serde_json::{Map, Value, json};
use words::{duration, share};

use crate::{clean, csv, quality};

/// How a table is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Columns of the terminal, for sentences.
    pub width: usize,
    /// Groups and stages of a path that are shown; what is beyond is counted.
    pub limit: usize,
    /// Whether times are nanoseconds, or ticks of unknown rate.
    pub nanoseconds: bool,
}

/// Appends the contract's fields, and what is told beside them, to a JSON document.
pub fn json(document: &mut Map<String, Value>, reports: &[PathReport]) {
    let paths = reports.iter().map(path_json).collect();
    document.insert("paths".to_owned(), Value::Array(paths));
}

fn stats_json(stats: &Stats) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, ns) in [
        ("p50_ns", stats.percentile(0.5)),
        ("p90_ns", stats.percentile(0.9)),
        ("p99_ns", stats.percentile(0.99)),
        ("max_ns", stats.max()),
        ("min_ns", stats.min()),
        ("mean_ns", stats.mean()),
        ("total_ns", stats.total()),
    ] {
        out.insert(name.to_owned(), json!(ns));
    }
    out
}

fn path_json(report: &PathReport) -> Value {
    let mut out = Map::new();
    out.insert("path".to_owned(), json!(report.name));
    out.insert("count".to_owned(), json!(report.count));
    out.insert("total".to_owned(), stats_json(&report.total).into());
    let stages = report.stages.iter().map(|stage| {
        let mut out = Map::new();
        out.insert("name".to_owned(), json!(stage.name));
        out.extend(stats_json(&stage.stats));
        out.insert("count".to_owned(), json!(stage.stats.count()));
        out.insert("chain".to_owned(), json!(stage.chain));
        out.insert("slow_mean_ns".to_owned(), json!(stage.slow_mean_ns));
        out.insert("fast_mean_ns".to_owned(), json!(stage.fast_mean_ns));
        out.insert("saving_estimate_ns".to_owned(), json!(stage.saving_ns));
        Value::Object(out)
    });
    out.insert("stages".to_owned(), stages.collect());
    let slow = report.slow.as_ref().map(slow_json);
    out.insert("slow".to_owned(), slow.unwrap_or(Value::Null));
    out.insert("by".to_owned(), json!(report.by));
    let groups = report.groups.iter().map(|group| {
        let mut out = Map::new();
        out.insert("label".to_owned(), json!(group.label));
        out.insert("count".to_owned(), json!(group.stats.count()));
        out.extend(stats_json(&group.stats));
        Value::Object(out)
    });
    out.insert("groups".to_owned(), groups.collect());
    let dropped: Map<String, Value> = report
        .dropped
        .iter()
        .map(|(why, count)| (why.name().to_owned(), json!(count)))
        .collect();
    out.insert("dropped".to_owned(), dropped.into());
    Value::Object(out)
}

fn slow_json(slow: &SlowReport) -> Value {
    let because = slow.because.iter().map(|one| {
        json!({
            "feature": one.feature,
            "slow_share": one.slow_share,
            "fast_share": one.fast_share,
            "text": one.text,
            "gain": one.gain,
            "slow_instances": one.slow_examples,
            "fast_instances": one.fast_examples,
        })
    });
    json!({
        "threshold_ns": slow.threshold_ns,
        "count": slow.count,
        "because": because.collect::<Value>(),
        "found": found(slow.found),
        "mean_ns": slow.mean_ns,
        "fast_mean_ns": slow.fast_mean_ns,
        "slowest": slow.slowest.as_ref().map(|(number, text)| json!({"instance": number, "text": text})),
    })
}

fn found(found: Found) -> &'static str {
    match found {
        Found::Given => "given",
        Found::Gap => "gap",
        Found::P95 => "p95",
    }
}

/// Returns a row for each stage of each path, and one for its total, as CSV.
pub fn csv(reports: &[PathReport]) -> String {
    let mut out = String::new();
    csv::row(
        &mut out,
        [
            "path", "chain", "stage", "count", "p50_ns", "p90_ns", "p99_ns", "max_ns", "mean_ns",
            "total_ns",
        ],
    );
    for report in reports {
        let mut row = |chain: &str, stage: &str, stats: &Stats| {
            let mut fields = vec![report.name.clone(), chain.to_owned(), stage.to_owned()];
            let numbers = [
                stats.count(),
                stats.percentile(0.5),
                stats.percentile(0.9),
                stats.percentile(0.99),
                stats.max(),
                stats.mean(),
                stats.total(),
            ];
            fields.extend(numbers.map(|n| n.to_string()));
            csv::row(&mut out, fields);
        };
        row("", "total", &report.total);
        for stage in &report.stages {
            let chain = stage.chain.as_deref().unwrap_or("");
            row(chain, &stage.name, &stage.stats);
        }
    }
    out
}

/// Columns of a stage's name.
const NAME: usize = 36;

/// What to record, where nothing was found.
const NEEDED: &str = "Paths are made of the events of KVM and of the scheduler: record on the host with \
                      'trace-cmd record -e kvm -e sched', or 'perf record -a -e kvm:* -e sched:*'.";

/// Returns all paths as text.
pub fn table(reports: &[PathReport], layout: Layout) -> String {
    let mut out = String::new();
    let (found, none): (Vec<_>, Vec<_>) = reports
        .iter()
        .partition(|report| report.count > 0 || !report.dropped.is_empty());
    for (at, report) in found.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        path(&mut out, report, layout);
    }
    if !none.is_empty() {
        if !found.is_empty() {
            out.push('\n');
        }
        let names: Vec<String> = none.iter().map(|report| clean(&report.name)).collect();
        let text = format!("not found in this recording: {}", names.join(", "));
        quality::wrap(&mut out, "", &text, layout.width);
        if found.is_empty() {
            quality::wrap(&mut out, "", NEEDED, layout.width);
        }
    }
    out
}

fn path(out: &mut String, report: &PathReport, layout: Layout) {
    let time = |ns: u64| duration::of(ns, layout.nanoseconds);
    let title = format!("{}: {}", clean(&report.name), clean(&report.about));
    quality::wrap(out, "", title.trim_end_matches([':', ' ']), layout.width);
    if report.count > 0 {
        let _ = writeln!(
            out,
            "{:<36}{:>7}{:>9}{:>9}{:>9}{:>9}",
            "", "count", "p50", "p90", "p99", "max"
        );
        line(out, "total", &report.total, layout);
        let several = report.stages.iter().any(|stage| stage.chain.is_some());
        let mut chain: Option<&str> = None;
        for stage in &report.stages {
            if several && chain != stage.chain.as_deref() {
                chain = stage.chain.as_deref();
                let _ = writeln!(out, "  {}:", clean(chain.unwrap_or("")));
            }
            line(out, &format!("  {}", stage.name), &stage.stats, layout);
        }
    }
    if let Some(by) = report.by
        && !report.groups.is_empty()
    {
        let _ = writeln!(out, "  by {by}:");
        for group in report.groups.iter().take(layout.limit) {
            line(out, &format!("  {}", group.label), &group.stats, layout);
        }
        if report.groups.len() > layout.limit {
            let _ = writeln!(
                out,
                "    ... and {} more",
                report.groups.len() - layout.limit
            );
        }
    }
    if let Some(slow) = &report.slow
        && slow.count > 0
    {
        let how = match slow.found {
            Found::Given => "as asked for",
            Found::Gap => "there is a gap below",
            Found::P95 => "the 95th percentile; there is no gap",
        };
        let text = format!(
            "slow: {} from {} on ({how}), mean {} against {}.",
            slow.count,
            time(slow.threshold_ns),
            time(slow.mean_ns),
            time(slow.fast_mean_ns)
        );
        quality::wrap(out, "  ", &text, layout.width);
        if let Some((number, text)) = &slow.slowest {
            let text = format!(
                "The slowest is instance {number}, {}: {text}",
                time(report.total.max())
            );
            quality::wrap(out, "  ", &text, layout.width);
        }
        for one in &slow.because {
            because(out, one, layout);
        }
        savings(out, report, slow, layout);
    }
    if !report.dropped.is_empty() {
        let parts: Vec<String> = report
            .dropped
            .iter()
            .map(|(why, count)| format!("{count} {}", why.name().replace('_', " ")))
            .collect();
        let text = format!("not completed: {}", parts.join(", "));
        quality::wrap(out, "  ", &text, layout.width);
    }
}

fn line(out: &mut String, name: &str, stats: &Stats, layout: Layout) {
    let time = |ns: u64| duration::of(ns, layout.nanoseconds);
    let mut name = clean(name);
    // What is longer than its column has a line of its own.
    if name.chars().count() > NAME {
        let _ = writeln!(out, "{name}");
        name = String::new();
    }
    let _ = writeln!(
        out,
        "{name:<NAME$}{:>7}{:>9}{:>9}{:>9}{:>9}",
        stats.count(),
        time(stats.percentile(0.5)),
        time(stats.percentile(0.9)),
        time(stats.percentile(0.99)),
        time(stats.max())
    );
}

fn because(out: &mut String, one: &Because, layout: Layout) {
    quality::wrap(out, "  - ", &clean(&one.text), layout.width);
    let list = |numbers: &[u64]| {
        let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
        texts.join(", ")
    };
    if !one.slow_examples.is_empty() {
        let mut text = format!("instances {}", list(&one.slow_examples));
        if !one.fast_examples.is_empty() {
            let _ = write!(text, "; for comparison {}", list(&one.fast_examples));
        }
        quality::wrap(out, "    ", &text, layout.width);
    }
}

/// The stage whose removal would give most.
fn savings(out: &mut String, report: &PathReport, slow: &SlowReport, layout: Layout) {
    let whole = slow.mean_ns.saturating_mul(slow.count);
    let best: Option<&StageReport> = report.stages.iter().max_by_key(|stage| stage.saving_ns);
    if let Some(stage) = best
        && stage.saving_ns > whole / 20
    {
        let share = stage.saving_ns as f64 / whole.max(1) as f64;
        let text = format!(
            "Estimate: if '{}' took the slow ones what it takes the others, their total of {} would be {} ({} %) less.",
            stage.name,
            duration::of(whole, layout.nanoseconds),
            duration::of(stage.saving_ns, layout.nanoseconds),
            share::cell(share)
        );
        quality::wrap(out, "  ", &text, layout.width);
    }
}

/// Returns the head of a table of instances as CSV.
pub fn each_csv_head() -> String {
    let mut out = String::new();
    csv::row(
        &mut out,
        [
            "path", "instance", "chain", "by", "start_ns", "total_ns", "vcpu_tid", "vcpu", "steps",
            "features",
        ],
    );
    out
}

/// Returns an instance as a row; steps as `name@time_ns`, apart by semicolons.
pub fn each_csv(one: &InstanceReport) -> String {
    let mut out = String::new();
    let start = one.steps.first().map_or(0, |step| step.time);
    let steps: Vec<String> = one
        .steps
        .iter()
        .map(|step| format!("{}@{}", step.name, step.time))
        .collect();
    csv::row(
        &mut out,
        [
            one.path.as_str(),
            &one.number.to_string(),
            one.chain.as_deref().unwrap_or(""),
            one.by.as_deref().unwrap_or(""),
            &start.to_string(),
            &one.total_ns().to_string(),
            &one.vcpu_tid.map(|tid| tid.to_string()).unwrap_or_default(),
            one.vcpu.as_deref().unwrap_or(""),
            &steps.join(";"),
            &one.features.join(";"),
        ],
    );
    out
}

/// Returns an instance as an object.
pub fn each_json(one: &InstanceReport) -> Value {
    let steps = one.steps.iter().map(|step| {
        json!({
            "name": step.name,
            "time_ns": step.time,
            "cpu": (step.cpu >= 0).then_some(step.cpu),
            "tid": step.tid,
            "thread": step.thread,
        })
    });
    json!({
        "path": one.path,
        "instance": one.number,
        "chain": one.chain,
        "by": one.by,
        "start_ns": one.steps.first().map(|step| step.time),
        "total_ns": one.total_ns(),
        "vcpu_tid": one.vcpu_tid,
        "vcpu": one.vcpu,
        "steps": steps.collect::<Value>(),
        "features": one.features,
    })
}

/// Returns an instance as a line.
pub fn each_line(one: &InstanceReport, nanoseconds: bool) -> String {
    let time = |ns: u64| duration::of(ns, nanoseconds);
    let mut out = format!("{:<10}{:>6}  ", clean(&one.path), one.number);
    let mut before: Option<u64> = None;
    for step in &one.steps {
        match before {
            None => {
                let at = if nanoseconds {
                    duration::seconds(step.time)
                } else {
                    step.time.to_string()
                };
                let _ = write!(out, "{at}  {:>8}  {}", time(one.total_ns()), step.name);
            }
            Some(before) => {
                let _ = write!(
                    out,
                    " +{} {}",
                    time(step.time.saturating_sub(before)),
                    step.name
                );
            }
        }
        before = Some(step.time);
    }
    if let Some(vcpu) = &one.vcpu {
        let _ = write!(out, "  ({})", clean(vcpu));
    }
    out.push('\n');
    out
}
