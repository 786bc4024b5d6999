//! How sure a finding can be of a recording about which there are doubts: the one place where doubts lower a finding.

use analysis::Turns;
use doubts::{AnswerScope, Concern, Concerns, DoubtKind, DoubtSeverity};

use crate::evidence::{Evidence, Id, Share, says};
use crate::{Case, Finding, Precedence, RecordNeeds, RestsOn, Severity};

/// A finding that rests on times is no surer than this where events are missing all through the recording.
const OF_TIMES: f64 = 0.5;
/// And one that rests on absence: other events that are missing as well may explain it.
const OF_ABSENCE: f64 = 0.45;
/// A finding about vCPUs that are known by their threads' names alone: QEMU, libvirt's included, gives no other thread
/// such a name (`CPU 0/KVM`), but any thread may have it.
pub(crate) const OF_PRESUMED: f64 = 0.8;
/// A cut that takes no more than this of the time from some CPUs changes little.
const UNEVEN: f64 = 0.05;
/// A finding that is less sure than this is no reason to doubt those below it.
const FOREMOST: f64 = 0.6;
/// One turn in so many that is missed, and so many at least: fewer are what the beginning and the end of a recording
/// leave.
const ONE_IN: u64 = 500;
const AT_LEAST: u64 = 3;

/// Returns for how long events of some CPUs are missing at the end of the recording while those of others are there,
/// and what share of the recorded time that is; `None` where it was not cut so.
pub(crate) fn uneven(case: &Case<'_>) -> Option<(u64, f64)> {
    let from = case.picture.quality.uneven_from?;
    let (start, end) = (case.picture.info.start?, case.picture.info.end?);
    let whole = end.saturating_sub(start);
    let ns = end.saturating_sub(from.max(start));
    (whole > 0).then(|| (ns, ns as f64 / whole as f64))
}

/// Lowers a finding by the doubts about its recording, says by which, and notes the ids of all that touch it.
pub(crate) fn apply(case: &Case<'_>, finding: &mut Finding) {
    let doubts = case.picture.quality.all_doubts();
    let shown = AnswerScope::of(Concerns::of(&[
        Concern::Exits,
        Concern::States,
        Concern::Sched,
        Concern::Paths,
        Concern::Interrupts,
        Concern::Stacks,
    ]));
    let touching = doubts.touching(&shown);
    let grave = touching
        .iter()
        .filter(|one| one.severity() > DoubtSeverity::Note);
    for doubt in grave {
        if !finding.doubts.contains(&doubt.id()) {
            finding.doubts.push(doubt.id());
        }
    }
    let of_vcpus = finding.rule.record.contains(&RecordNeeds::Exits);
    if of_vcpus && case.picture.presumes_vcpus() && finding.confidence > OF_PRESUMED {
        let why = "no exit and no entry was recorded: threads are taken for vCPUs by their names or by facts.";
        lower(finding, OF_PRESUMED, Some(Evidence::from(why)));
    }
    if finding.rests_on == RestsOn::Absence {
        lower(finding, OF_ABSENCE, case.missing());
        if finding.confidence < FOREMOST && finding.precedence == Precedence::Disturbing {
            finding.precedence = Precedence::ByCost;
        }
    }
    if finding.rests_on == RestsOn::Counts {
        return;
    }
    let cut = uneven(case).filter(|(_, share)| *share > UNEVEN);
    let cut = cut.map(|(_, share)| {
        says!(
            "the recording is cut off, and events of some CPUs are missing in {share} of its time.",
            share = Share(share),
        )
    });
    lower(finding, OF_TIMES, cut);
    let holes = case.picture.continuity.holes();
    if !holes.is_empty() {
        finding.at_most = Severity::Low;
        let torn = says!(
            "events are missing in the recording, and the cost is unknown: {holes}.",
            holes = holes.join("; ")
        );
        lower(finding, OF_TIMES, Some(torn));
    }
}

/// Lowers a finding, and says why.
fn lower(finding: &mut Finding, most: f64, why: Option<Evidence>) {
    let Some(why) = why else {
        return;
    };
    finding.confidence = finding.confidence.min(most);
    let most = format!("{most:.2}");
    finding
        .evidence
        .push(says!("Confidence is at most {most}, because ", most = most).then(why));
}

impl Case<'_> {
    /// Returns why what seems to take long, or not to happen, may be events that are missing, as the end of a sentence.
    fn missing(&self) -> Option<Evidence> {
        let continuity = &self.picture.continuity;
        let many = |turns: &Turns| turns.missed >= AT_LEAST && turns.missed > turns.all / ONE_IN;
        let lost = self.picture.quality.lost_events;
        let all = self.recorded_events();
        if lost > 0 && lost > all / 100 {
            return Some(says!(
                "the recorder lost {lost} events and kept {all}.",
                lost = lost,
                all = all,
            ));
        }
        if many(&continuity.exits) {
            return Some(says!(
                "{missed} of {all} exits are followed by another without an entry between: events are missing.",
                missed = continuity.exits.missed,
                all = continuity.exits.all,
            ));
        }
        if many(&continuity.chain) {
            return Some(says!(
                "{missed} of {all} switches leave another task than the one before had switched to: events are \
                 missing.",
                missed = continuity.chain.missed,
                all = continuity.chain.all,
            ));
        }
        let doubts = self.picture.quality.doubts.iter();
        let unrecorded = |kind: &DoubtKind| matches!(kind, DoubtKind::CpuNotRecorded { .. });
        let mut absent = doubts
            .map(|doubt| &doubt.kind)
            .filter(|kind| unrecorded(kind));
        match absent.next() {
            Some(DoubtKind::CpuNotRecorded { cpu }) => Some(says!(
                "tasks went to CPU {cpu}, of which no switch was recorded.",
                cpu = Id(u64::from(*cpu)),
            )),
            _ => None,
        }
    }

    fn recorded_events(&self) -> u64 {
        let counts = self.picture.info.events.iter();
        counts.map(|kind| kind.count).fold(0, u64::saturating_add)
    }

    /// Returns whether so much was lost, or cut off, that what did not happen may have.
    pub(crate) fn doubtful(&self) -> bool {
        // One in a hundred: then about every other chain of a dozen events and more has a gap in ten.
        let lost = self.picture.quality.lost_events;
        lost.saturating_mul(100) > self.recorded_events()
    }
}
