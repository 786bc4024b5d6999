//! An interrupt, a notification or another path took long, and no rule says why.

use paths::PathReport;
use words::duration::human;

use crate::evidence::{Id, Ns, says};
use crate::{
    Case, EvidenceNumber, Finding, PATHS, Precedence, RecordNeeds, Remedy, Rule, RuleLook,
    Severity, Verdict,
};

/// What users of a guest notice, and several times what a scheduler's slices, a guest that has its interrupts off and a
/// back end at work take.
const LONG_NS: u64 = 50_000_000;

pub(crate) static RULE: Rule = Rule {
    id: "slow-path",
    title: "A latency path took long, and no rule says why",
    described_as: &[
        "one request in a thousand takes 100 ms",
        "latency spikes now and then, and nothing explains them",
        "an interrupt came late",
    ],
    looks_at: "the longest instance of the paths irqfd, kick, ipi and device-irq, where no other rule has found \
        anything",
    needs: "what one of these paths is followed by (trapline paths)",
    record: &[RecordNeeds::Paths],
    measures: &[],
    cause: "No rule knows this cause, or what would show it was not recorded. The instance says between which two \
        steps its time went.",
    found: &[
        "One instance of {long} or more. Confidence 0.4, `low`: it is certain that it took that long, not that \
         anything is wrong. A guest that has its interrupts off, a disk or a peer on the network that answers late \
         look alike.",
    ],
    limits: &[("long", EvidenceNumber::Nanoseconds(LONG_NS))],
    seen_from: "one instance of {long}",
    unknown: "*all*: a path has to be followed.",
    advice: "",
    looks_alike: "Where another rule has found something, that comes first, and this one says nothing.",
    remedies: &[Remedy {
        what: "Look at the instance with the command that stands with it: its longest stage, who ran on its CPUs \
            meanwhile, and its events.",
        price: "None.",
        unless: "It is the only one of its length, and nobody has noticed anything.",
        check: "trapline paths of a longer recording: the maximum comes again, or it does not.",
    }],
    sources: &["The paths: crates/paths/builtin"],
    explains: &[],
    look: RuleLook::Silence(look),
};

fn look(case: &Case<'_>) -> Verdict {
    let picture = case.picture;
    // A whole report follows more, and is to find the same.
    let all = picture
        .paths
        .iter()
        .filter(|path| PATHS.contains(&path.name.as_str()));
    let mut all = all.filter(|path| path.count > 0).peekable();
    if case.printed() || all.peek().is_none() {
        return Verdict::Unknown(
            "Record kvm and sched events of the whole host (-a): no path is followed.".to_owned(),
        );
    }
    if let Some(unknown) = case.in_ticks() {
        return unknown;
    }
    match all.max_by_key(|path| path.total.max()) {
        Some(path) if path.total.max() >= LONG_NS => say(case, path).found(),
        _ => Verdict::Clear,
    }
}

fn say(case: &Case<'_>, path: &PathReport) -> Finding {
    let total = &path.total;
    let name = case.picture.names.first().map_or("REC", String::as_str);
    let title = format!(
        "The longest of {} of path {} took {}, and no rule says why",
        path.count,
        path.name,
        human(total.max())
    );
    let mut finding = Finding::new(&RULE, 0.4).title(title).evidence(says!(
        "Path {path} was followed {count} times: {half} (p50), {most} (p99), {max} at most.",
        path = path.name.clone(),
        count = path.count,
        half = Ns(total.percentile(0.5)),
        most = Ns(total.percentile(0.99)),
        max = Ns(total.max()),
    ));
    let slowest = path.slow.as_ref().and_then(|slow| slow.slowest.as_ref());
    finding = match slowest {
        Some(slowest) => finding.evidence(says!(
            "The longest is instance {instance}: {what} See {command}.",
            instance = Id(slowest.instance),
            what = slowest.text.clone(),
            command = format!(
                "trapline paths --path {} --instance {} {name}",
                path.name, slowest.instance
            ),
        )),
        None => match path.longest.first(1).first() {
            Some((ns, begin)) => finding.evidence(says!(
                "See the longest: {shown}.",
                shown = case.command(*begin, begin.saturating_add(*ns)),
            )),
            None => finding,
        },
    };
    finding.precedence = Precedence::Leftover;
    finding.at_most = Severity::Low;
    finding
}
