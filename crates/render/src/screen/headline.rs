//! The sentence that counts most: what the gravest finding says, or what was looked at where nothing is wrong.

use analysis::{ExitsReport, Picture, PrintedInterrupts, PrintedShares, RatioRow, ShareLine};
use doubts::DoubtKind;
use rules::{Finding, Severity};
use words::share;

use super::input::ScreenInput;
use super::line::Tone;
use super::{exits, states};
use crate::clean;
use crate::exits::counted;

/// Returns the finding that a screen begins with: the first one whose cost is known or that is not small.
pub(crate) fn first<'a>(input: &ScreenInput<'a>) -> Option<&'a Finding> {
    input.diagnosis.findings.iter().find(|one| is_grave(one))
}

fn is_grave(finding: &Finding) -> bool {
    finding.cost.is_some() || finding.severity() > Severity::Low
}

/// Returns the other findings, in their order.
pub(crate) fn others<'a>(input: &ScreenInput<'a>) -> Vec<&'a Finding> {
    let mut findings: Vec<&Finding> = input.diagnosis.findings.iter().collect();
    if let Some(first) = findings.iter().position(|one| is_grave(one)) {
        findings.remove(first);
    }
    findings
}

/// Returns the sentence, and how it is to be shown.
pub(crate) fn sentence(input: &ScreenInput<'_>) -> (Tone, String) {
    match first(input) {
        Some(finding) => (Tone::Strong, finding.sentence() + "."),
        None => {
            let sentences = [Some(verdict(input)), Some(did(input)), beyond(input)];
            let sentences: Vec<String> = sentences.into_iter().flatten().collect();
            (Tone::Strong, sentences.join(" "))
        }
    }
}

/// Returns how a severity is shown.
pub(crate) fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::High => Tone::Severe,
        Severity::Medium => Tone::Warning,
        Severity::Low => Tone::Plain,
    }
}

/// Returns what it is worth that there is no grave finding: not much where few causes could be looked for.
fn verdict(input: &ScreenInput<'_>) -> String {
    let diagnosis = input.diagnosis;
    if let Some(why) = &diagnosis.no_verdict {
        return format!("No verdict: {why} What follows is of these.");
    }
    let (unknown, clear) = (diagnosis.unchecked.len(), diagnosis.clear.len());
    let all = unknown + clear + diagnosis.findings.len();
    if all == unknown {
        return "Nothing was found, because no cause could be checked.".to_owned();
    }
    if unknown > clear {
        let others = match diagnosis.findings.is_empty() {
            true => "was found",
            false => "is known to cost much",
        };
        return format!(
            "{unknown} of {all} causes could not be checked; none of the others {others}."
        );
    }
    if let Some(span) = short(input) {
        return format!(
            "Too short to judge: the events that pass {} span {}, and rates and shares need a second or more.",
            input.filters,
            input.time(span)
        );
    }
    if let Some(open) = open(input) {
        return open;
    }
    let found = match diagnosis.findings.is_empty() {
        true if input.filters.contains("--time=") => "Nothing wrong was found in this time",
        true => "Nothing wrong was found",
        false => "Nothing that is known to cost much was found",
    };
    match unknown {
        0 => format!("{found}."),
        _ => format!("{found}; {unknown} of {all} causes could not be checked."),
    }
}

/// Returns why nothing can be said to be well though nothing was found: the account of the vCPUs' time is open.
fn open(input: &ScreenInput<'_>) -> Option<String> {
    let accounts = &input.diagnosis.accounts;
    let found = match input.diagnosis.findings.is_empty() {
        true => "No cause was found",
        false => "Nothing that is known to cost much was found",
    };
    let vcpus = &accounts.vcpus;
    let doubts = input.picture.quality.all_doubts();
    let missed = doubts.iter().find_map(|doubt| match doubt.kind {
        DoubtKind::LinesNotUnderstood { lines, .. } => Some(lines),
        _ => None,
    });
    if let Some(lines) = missed.filter(|lines| *lines > input.events()) {
        return Some(format!("{found}, but {lines} lines were not understood."));
    }
    if vcpus.observed_ns() == 0 {
        return Some(format!("{found}, but no vCPU's time was recorded."));
    }
    if accounts.are_closed() {
        return None;
    }
    let (unexplained, unknown) = (vcpus.unexplained_ns(), vcpus.unknown_ns());
    let mut parts = Vec::new();
    for (ns, what) in [
        (unexplained, "is not explained"),
        (unknown, "was not recorded"),
    ] {
        if ns > 0 {
            parts.push(format!("{} {what}", share::tenths(vcpus.share(ns))));
        }
    }
    Some(match parts.is_empty() {
        true => format!("{found}, but a thread that works for VMs has a CPU all the time."),
        false => format!("{found}; of the vCPUs' time {}.", words::list(&parts)),
    })
}

/// A window of time that is shorter shows too little for a rate or a share.
const SHORT_NS: u64 = 1_000_000_000;

/// Returns how long the events of a window of time span, if that is short.
fn short(input: &ScreenInput<'_>) -> Option<u64> {
    let span = input.picture.span_ns?;
    (input.filters.contains("--time=") && span < SHORT_NS).then_some(span)
}

/// Returns what of a short window is longer than the window.
fn beyond(input: &ScreenInput<'_>) -> Option<String> {
    let span = short(input)?;
    let paths = input.picture.paths.iter().filter(|path| path.count > 0);
    let longest = paths.max_by_key(|path| path.total.max())?;
    let most = longest.total.max();
    (most > span).then(|| {
        format!(
            "An instance of {} that begins in this time took {}, and ends after it.",
            longest.name,
            input.time(most)
        )
    })
}

/// Returns what the vCPUs did; without them, what else there is.
fn did(input: &ScreenInput<'_>) -> String {
    let picture = input.picture;
    if let Some(text) = states::spent(input) {
        return text;
    }
    let counts = |report: &&ExitsReport| report.total_count > 0;
    if let Some(text) = exits::untimed(input) {
        return text;
    }
    if let Some(report) = picture.exits.iter().find(counts) {
        return format!("There are {}.", exits::sums(input, report));
    }
    if let Some(report) = picture
        .sched
        .as_ref()
        .filter(|report| !report.rows.is_empty())
    {
        let delays = &report.delays;
        if delays.count() == 0 {
            let ran = report.rows.iter().map(|row| row.runtime_ns);
            return format!(
                "{} ran for {} together; no wait for a CPU is known.",
                words::plural(report.rows.len(), "task"),
                input.time(ran.fold(0, u64::saturating_add)),
            );
        }
        return format!(
            "{} waited for a CPU {}, {} each on average and {} at most.",
            words::plural(report.rows.len(), "task"),
            words::times(delays.count()),
            input.mean(delays),
            input.time(delays.max())
        );
    }
    if let Some(text) = picture.shares.as_ref().and_then(most_busy) {
        return text;
    }
    if let Some(interrupts) = &picture.interrupts {
        return most_interrupts(interrupts);
    }
    if !picture.counts.is_empty() {
        let printer = picture.counted_by.name();
        let counts = || format!("There are the counts that {printer} printed.");
        return most_exits(picture).unwrap_or_else(counts);
    }
    if let Some(report) = picture.exits.first().filter(|_| input.printed()) {
        return format!("There are {}.", counted(picture.isa, report));
    }
    if let Some(one) = picture.distributions.first() {
        return format!(
            "{} of {} are known by size alone.",
            words::plural(one.count(), "value"),
            clean(&one.name)
        );
    }
    let kinds = picture.info.events.iter().filter(|event| event.count > 0);
    match kinds.max_by_key(|event| event.count) {
        Some(most) => format!(
            "There are {}, most of them {}, and no exits of a vCPU.",
            words::plural(input.events(), "event"),
            most.name
        ),
        None => "There are no events.".to_owned(),
    }
}

/// Says which device has all its interrupts on one CPU, or how many CPUs interrupts are counted of.
fn most_interrupts(interrupts: &PrintedInterrupts) -> String {
    let since = match interrupts.is_difference() {
        true => "between the two readings",
        false => "since boot",
    };
    match interrupts.on_one_cpu().first() {
        Some(one) => format!(
            "All {} interrupts of {} came to CPU {} {since}.",
            one.count,
            clean(&one.device),
            one.cpu
        ),
        None => format!(
            "There are the interrupts of {} {since}.",
            words::plural(interrupts.cpus().len(), "CPU")
        ),
    }
}

/// Says which task, or which function, has most of the samples in which CPUs were not idle.
fn most_busy(shares: &PrintedShares) -> Option<String> {
    let tasks = match shares.has_all_of_tasks() {
        true => shares.tasks(),
        false => Vec::new(),
    };
    let busy = |line: &ShareLine| line.busy.unwrap_or(line.share);
    let first = tasks.iter().max_by(|a, b| busy(a).total_cmp(&busy(b)));
    if let Some((line, comm)) = first.and_then(|line| Some((line, line.comm.as_deref()?))) {
        let (comm, all) = (clean(comm), share::tenths(line.share));
        return Some(match line.busy.filter(|busy| *busy < line.share) {
            Some(busy) => format!(
                "{comm} has {} of the samples without what is idle, {all} with it.",
                share::tenths(busy)
            ),
            None => format!("{comm} has {all} of the samples."),
        });
    }
    let functions = shares.functions();
    let line = functions
        .iter()
        .max_by(|a, b| a.share.total_cmp(&b.share))?;
    let name = line.function.as_deref().or(line.object.as_deref())?;
    let part = share::tenths(line.share);
    Some(format!("{part} of the samples are in {}.", clean(name)))
}

/// Says of which reason most exits are, where a tool counted them by reason and without their times.
fn most_exits(picture: &Picture) -> Option<String> {
    let ratios = analysis::ratios(picture);
    let all = ratios.iter().find(|row| row.event == "kvm:kvm_exit")?.count;
    let reason = |row: &RatioRow| {
        let reason = row.event.strip_prefix("kvm_exit(")?.strip_suffix(')')?;
        Some((row.count, reason.to_owned()))
    };
    let (count, reason) = ratios.iter().filter_map(reason).max()?;
    Some(format!(
        "{} of {} are {reason}; what they took was not counted.",
        share::tenths(count as f64 / all.max(1) as f64),
        words::plural(all, "exit")
    ))
}
