//! A whole comparison: all that is compared, which of that is noise, what comes first.
//!
//! Changes are ranked by their effect: how much time changed per second (in all, for printed tables). Time that
//! somebody waits counts whole, time that is spent counts half. The weights keep the same time from counting twice:
//!
//! | of | effect |
//! | --- | --- |
//! | paths, stages | change of the median, times the lower rate; half of `timer`, `halt-wake`, `user-exit` |
//! | tails | change of the slow instances' time, with the same halves |
//! | kind of back end | all of the path's time, on the side with less |
//! | vCPU states | runnable: all; kernel, user, poll: half of 0.9; guest, halted: half of 0.1 |
//! | exits by reason, all exits' handling | half of their time; a tenth of that for waiting (HLT, WFx) |
//! | ports, addresses, registers | half of that, as it is within the exits' time |
//! | tasks, kworkers' functions | a quarter of run time (vCPUs' threads a twentieth), half of tasks' waits |
//! | off-CPU time | what threads miss (locks, uninterruptible) all, preemptions a tenth, other sleeps a hundredth |
//! | guests' kernels and user space, shares that were printed | a quarter: of the time, of the share of one CPU |
//! | what guests did | half of 0.1 of its time; exits 0.9 of what exits by reason have; waits 0.9 |
//! | the longest wait for a CPU, APIC virtualization | as much as the largest of what they are of: they stand before it |
//! | findings | nearly half of their cost: behind the row that says the same |
//! | scores | none: they come first |
//! | exits by number, counters of `perf stat`, interrupts, distributions | none: they come last |

use results::Score;

use crate::change::{
    CompareOptions, ComparedSide, Comparison, Level, SideChange, SideName, TailBounds,
};
use crate::{
    apic, chance, counters, differs, distributions, exits, findings, functions, guest_modes,
    guests, latency, off_cpu, parts, printed_interrupts, printed_shares, sched, scores, side,
    states,
};

/// Compares two sides. `work` names an event that counts units of work, if the usual ones are not it.
///
/// # Errors
/// A sentence, if the work that was asked for is not counted on both sides.
pub fn compare(
    a: ComparedSide<'_>,
    b: ComparedSide<'_>,
    work: Option<&str>,
    options: CompareOptions,
) -> Result<Comparison, String> {
    compare_scored(a, b, [&[], &[]], work, options)
}

/// Does what [`compare`] does, of sides that have results of benchmarks beside them, as [`results::scores`] finds them:
/// these are compared first, and a rate among them counts work.
///
/// # Errors
/// As [`compare`].
pub fn compare_scored(
    a: ComparedSide<'_>,
    b: ComparedSide<'_>,
    scores: [&[Score]; 2],
    work: Option<&str>,
    options: CompareOptions,
) -> Result<Comparison, String> {
    scored(a, b, scores, work, options, &TailBounds::new())
}

/// Compares two sides, with these bounds of tails.
pub(crate) fn against(
    a: ComparedSide<'_>,
    b: ComparedSide<'_>,
    work: Option<&str>,
    options: CompareOptions,
    bounds: &TailBounds,
) -> Result<Comparison, String> {
    scored(a, b, [&[], &[]], work, options, bounds)
}

/// Compares something: what changed, and what is to be known of that.
type Changes = fn(&side::Pair<'_>, &mut Vec<SideChange>, &mut Vec<String>);

/// What is compared by itself: how much was compared of it is no question of how sure all else is. Guests come behind
/// all that is of hosts.
const BY_THEMSELVES: [Changes; 7] = [
    parts::changes,
    off_cpu::changes,
    guest_modes::changes,
    printed_shares::changes,
    printed_interrupts::changes,
    distributions::changes,
    guests::changes,
];

fn scored(
    a: ComparedSide<'_>,
    b: ComparedSide<'_>,
    scores: [&[Score]; 2],
    work: Option<&str>,
    options: CompareOptions,
    bounds: &TailBounds,
) -> Result<Comparison, String> {
    let sides = [a.pictures, b.pictures];
    let mut pair = side::Pair {
        sides,
        work: side::work(sides, work)?,
        rate: None,
    };
    pair.count_by(scores::work(scores), work.is_some());
    let mut all = Vec::new();
    let mut notes = pair.notes();
    exits::changes(&pair, &mut all, &mut notes);
    apic::changes(&pair, &mut all);
    states::changes(&pair, &mut all, &mut notes);
    latency::changes(&pair, bounds, &mut all, &mut notes);
    sched::changes(&pair, &mut all, &mut notes);
    functions::changes(&pair, &mut all, &mut notes);
    counters::changes(&pair, &mut all, &mut notes);
    adjust(&mut all);
    let mut out = Comparison {
        notes,
        differs: differs::all(sides),
        ..Comparison::default()
    };
    for change in all {
        place(change, options, &mut out);
    }
    let mut found = Vec::new();
    findings::changes(&pair, a.diagnosis, b.diagnosis, &mut found);
    let (mut news, threshold): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|finding| findings::is_news(finding, &out));
    out.changes.append(&mut news);
    // What happened once has the finding beside it that it made.
    let (mut once, mut threshold): (Vec<_>, Vec<_>) = threshold
        .into_iter()
        .partition(|finding| findings::happened_once(finding, &out));
    out.once.append(&mut once);
    out.unreported.append(&mut threshold);
    for changes in BY_THEMSELVES {
        let mut apart = Vec::new();
        changes(&pair, &mut apart, &mut out.notes);
        adjust(&mut apart);
        for change in apart {
            place(change, options, &mut out);
        }
    }
    let mut of_scores = Vec::new();
    scores::changes(scores, &mut of_scores, &mut out.notes);
    for change in of_scores {
        place_score(change, options, &mut out);
    }
    let shown = out.changes.iter_mut().chain(&mut out.likely);
    for change in shown.chain(&mut out.once) {
        change.text.push(' ');
        change.text.push_str(SideName::verdict(change.worse));
    }
    let Comparison {
        changes,
        likely,
        once,
        unreported,
        ..
    } = &mut out;
    for list in [changes, likely, once, unreported] {
        list.sort_by(|x, y| {
            // What people measure by is read before what it may come from.
            let score = y.is_score().cmp(&x.is_score());
            let effect = score.then_with(|| y.effect_ns.abs().total_cmp(&x.effect_ns.abs()));
            // Of what has no effect on time that is known, what makes a side worse is read first.
            let worse = effect.then_with(|| y.worse.is_some().cmp(&x.worse.is_some()));
            worse.then_with(|| x.what.cmp(&y.what))
        });
    }
    Ok(out)
}

/// What a burst has to change to be worth a word, in nanoseconds for each second: half a per cent, with the weights of
/// the ranking.
const BURST_NS: f64 = 5e6;

/// Puts a change where it belongs: reported, likely, what happened once, or none of them.
fn place(change: SideChange, options: CompareOptions, out: &mut Comparison) {
    let sure = |bound: f64| change.confidence.is_none_or(|c| c >= bound);
    let large = change
        .ratio()
        .is_none_or(|ratio| (ratio - 1.0).abs() >= options.least);
    let list = if change.a == change.b || !large {
        &mut out.unreported
    } else if sure(options.confidence) {
        &mut out.changes
    } else if sure(options.likely) {
        &mut out.likely
    } else if change.burst && change.effect_ns.abs() >= BURST_NS {
        &mut out.once
    } else {
        &mut out.unreported
    };
    list.push(change);
}

/// Puts a score where it belongs. However small its change is, somebody asked for it.
fn place_score(change: SideChange, options: CompareOptions, out: &mut Comparison) {
    let sure = |bound: f64| change.confidence.is_none_or(|c| c >= bound);
    let list = if change.a != change.b && sure(options.confidence) {
        &mut out.changes
    } else if change.a != change.b && sure(options.likely) {
        &mut out.likely
    } else {
        &mut out.unreported
    };
    list.push(change);
}

/// Takes into account how much was compared. First of everything together: if that is no more than chance, nothing of
/// it is surer than all of it. Then of each level by itself. What is too few to be distinguished at all was not
/// compared. Of functions only a few of those that were compared stand here, so theirs was taken into account where
/// they were.
fn adjust(all: &mut [SideChange]) {
    let tested = |change: &SideChange| !change.few && change.level != Level::Function;
    let chances: Vec<f64> = all
        .iter()
        .filter(|change| tested(change))
        .filter_map(|change| Some(1.0 - change.confidence?))
        .collect();
    let joint = chance::adjust(&chances).into_iter().fold(1.0, f64::min);
    for level in [Level::Whole, Level::Row, Level::Stage] {
        let of_level = |change: &SideChange| tested(change) && change.level == level;
        let chances: Vec<f64> = all
            .iter()
            .filter(|change| of_level(change))
            .filter_map(|change| Some(1.0 - change.confidence?))
            .collect();
        let mut adjusted = chance::adjust(&chances).into_iter();
        for confidence in all
            .iter_mut()
            .filter(|change| of_level(change))
            .filter_map(|change| change.confidence.as_mut())
        {
            *confidence = 1.0 - adjusted.next().unwrap_or(1.0).max(joint);
        }
    }
}
