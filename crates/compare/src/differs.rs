//! In what recordings differ before anything is measured: machines, recorders, events, work. And which of these one
//! side does not show because nobody recorded it, which is no change.

use std::collections::{BTreeMap, BTreeSet};

use analysis::{Origin, Picture, RecordedMachine};
use paths::lang::{EventPattern, PathStep};

use crate::change::Difference;
use crate::side::WORK;
use words::{counted, number, share};

/// So many events of a kind are to be expected on the other side, for its having none to say that they were not
/// recorded there, where that is not known.
const EXPECTED: f64 = 20.0;
/// Names of events that are listed.
const LISTED: usize = 5;
/// Recordings of fewer seconds say nothing of how much a guest does.
const LEAST: f64 = 0.01;
/// Rates of work that differ by less are called the same.
const APART: f64 = 1.5;

/// Returns all of them, what matters most first.
pub(crate) fn all(sides: [&[Picture]; 2]) -> Vec<Difference> {
    let recorded = sides.map(|side| -> Vec<&Picture> {
        let each = side.iter();
        each.filter(|picture| picture.origin == Origin::Recording)
            .collect()
    });
    let mut out = Vec::new();
    let mut add = |what, text: Option<String>| {
        if let Some(text) = text {
            out.push(Difference { what, text });
        }
    };
    add("machine", machines(sides));
    if recorded.iter().all(|side| !side.is_empty()) {
        add("machine", vms(&recorded));
        add("recorder", recorders(&recorded));
        add("recorder", stacks(&recorded));
        add("events", events(&recorded));
        add("work", work(&recorded));
    }
    for (side, name) in sides.iter().zip(["A", "B"]) {
        let lost = side.iter().map(|picture| picture.quality.lost_events);
        let lost = lost.fold(0, u64::saturating_add);
        add(
            "lost",
            (lost > 0).then(|| {
                format!("{name} lost {lost} events: what seems to be less may have been lost.")
            }),
        );
    }
    out
}

/// Returns the values of a side in their order, each once.
fn values<T: Ord + Clone>(side: &[Picture], of: impl Fn(&Picture) -> Option<T>) -> Vec<T> {
    let mut out: Vec<T> = side.iter().filter_map(of).collect();
    out.sort();
    out.dedup();
    out
}

fn machines(sides: [&[Picture]; 2]) -> Option<String> {
    let mut differ = Vec::new();
    let mut add = |what: &str, of: &dyn Fn(&Picture) -> Option<String>| {
        let [a, b] = sides.map(|side| values(side, of));
        if !a.is_empty() && !b.is_empty() && a != b {
            differ.push(format!("{what}{} and {}", a.join(", "), b.join(", ")));
        }
    };
    let about =
        |of: fn(&RecordedMachine) -> Option<String>| move |picture: &Picture| of(&picture.about);
    add("", &about(|about| about.arch.clone()));
    // The name says more, and AMD's and Intel's have the same architecture.
    add("instruction sets ", &|picture: &Picture| {
        Some(picture.isa?.name().to_owned())
    });
    add("CPUs of ", &about(|about| about.cpu.clone()));
    add(
        "numbers of CPUs ",
        &about(|about| Some(about.cpus.filter(|cpus| *cpus > 0)?.to_string())),
    );
    let kernels = differ.len();
    let mut add = |of: &dyn Fn(&Picture) -> Option<String>| {
        let [a, b] = sides.map(|side| values(side, of));
        if !a.is_empty() && !b.is_empty() && a != b {
            differ.push(format!("kernels {} and {}", a.join(", "), b.join(", ")));
        }
    };
    add(&about(|about| about.kernel.clone()));
    let what = match (kernels, differ.len()) {
        (_, 0) => return None,
        (0, _) => "Different kernels",
        _ => "Different machines",
    };
    // The kernel alone needs no second name.
    let list = differ.join("; ");
    let list = if kernels == 0 {
        list.trim_start_matches("kernels ")
    } else {
        &list
    };
    Some(format!(
        "{what}: {list}. They may cause the differences below."
    ))
}

fn vms(sides: &[Vec<&Picture>; 2]) -> Option<String> {
    let count = |picture: &&Picture| {
        let vms = &picture.info.vms;
        let vcpus: usize = vms.iter().map(|vm| vm.vcpus.len()).sum();
        (vms.len(), vcpus)
    };
    let [a, b] = [0, 1].map(|side: usize| {
        let mut all: Vec<(usize, usize)> = sides[side].iter().map(count).collect();
        all.sort_unstable();
        all.dedup();
        all
    });
    let ([(vms_a, a)], [(vms_b, b)]) = (a.as_slice(), b.as_slice()) else {
        return None;
    };
    if (vms_a, a) == (vms_b, b) || *a == 0 || *b == 0 {
        return None;
    }
    let of = |vms: usize, vcpus: usize| {
        format!(
            "{} with {}",
            counted(vms as u64, "VM", "VMs"),
            counted(vcpus as u64, "vCPU", "vCPUs")
        )
    };
    Some(format!(
        "Different VMs: A is of {}, B of {}.",
        of(*vms_a, *a),
        of(*vms_b, *b)
    ))
}

fn recorders(sides: &[Vec<&Picture>; 2]) -> Option<String> {
    let [a, b] = [0, 1].map(|side: usize| {
        let each = sides[side].iter();
        let mut all: Vec<&str> = each
            .filter_map(|picture| picture.about.recorder.as_deref())
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    });
    (!a.is_empty() && !b.is_empty() && a != b).then(|| {
        format!(
            "Different recorders: A is of {}, B of {}. Each adds its own cost to an event, so durations \
             of a few microseconds differ by that alone.",
            a.join(", "),
            b.join(", ")
        )
    })
}

/// Which side alone has stacks beside its events.
fn stacks(sides: &[Vec<&Picture>; 2]) -> Option<String> {
    let [a, b] = [0, 1].map(|side: usize| {
        let mut each = sides[side].iter();
        each.any(|picture| picture.sleeps.is_some())
    });
    let side = match (a, b) {
        (true, false) => "A",
        (false, true) => "B",
        _ => return None,
    };
    Some(format!(
        "Stacks were recorded in {side} alone. Taking a stack lengthens what is measured."
    ))
}

/// How many events of each kind a side has.
fn happened<'a>(side: &[&'a Picture]) -> BTreeMap<&'a str, u64> {
    let mut out = BTreeMap::new();
    for (name, count) in side.iter().flat_map(|picture| picture.happened()) {
        *out.entry(name).or_default() += count;
    }
    out
}

fn span(side: &[&Picture]) -> f64 {
    let spans = side.iter().filter_map(|picture| picture.span_ns);
    spans.map(|ns| ns as f64).sum()
}

/// What a side knows of the events that were recorded.
struct RecordedEvents<'a> {
    recorded: BTreeSet<&'a str>,
    /// Whether some recording does not list what was recorded and never happened.
    open: bool,
    span_ns: f64,
}

impl<'a> RecordedEvents<'a> {
    fn of(side: &[&'a Picture]) -> RecordedEvents<'a> {
        let each = side.iter();
        RecordedEvents {
            recorded: each.flat_map(|picture| picture.recorded_names()).collect(),
            open: side.iter().any(|picture| !picture.about.lists_events),
            span_ns: span(side),
        }
    }

    /// Whether it cannot tell of a kind of events, of which the other side has so many in so long.
    fn misses(&self, name: &str, count: u64, span_ns: f64) -> bool {
        if self.recorded.contains(name) {
            false
        } else if self.open {
            let share = self.span_ns / span_ns.max(1.0);
            count as f64 * share.min(1e9) >= EXPECTED
        } else {
            true
        }
    }
}

/// Returns which side did not record a kind of events that the other has, as a part of a sentence.
pub(crate) fn unrecorded(sides: [&[&Picture]; 2], name: &str) -> Option<String> {
    let counts = sides.map(|side| {
        let each = side.iter().filter_map(|picture| picture.events(name));
        each.fold(0, u64::saturating_add)
    });
    let (here, there, word) = match counts {
        [a, 0] if a > 0 => (0, 1, "B"),
        [0, b] if b > 0 => (1, 0, "A"),
        _ => return None,
    };
    let misses = RecordedEvents::of(sides[there]).misses(name, counts[here], span(sides[here]));
    misses.then(|| format!("{name} was not recorded in {word}"))
}

/// Whether a pattern of a path is of events of a name.
fn is(pattern: &EventPattern, event: &str) -> bool {
    match pattern {
        EventPattern::Event { name, .. } => match name.split_once('*') {
            Some((front, _)) => event.starts_with(front),
            None => event == name,
        },
        EventPattern::Function(function) | EventPattern::FunctionReturn(function) => {
            event.contains(function.as_str())
        }
    }
}

/// Returns the events of a path that the one side has and the other did not record, as a part of a sentence.
pub(crate) fn unrecorded_of_path(sides: [&[&Picture]; 2], path: &str) -> Option<String> {
    let path = paths::builtin(path)?;
    let steps = path.chains.iter().flat_map(|chain| &chain.steps);
    let mut patterns = steps
        .flat_map(PathStep::ways)
        .flat_map(|(_, events)| events);
    let names = sides.map(happened);
    let all: BTreeSet<&str> = names.iter().flat_map(BTreeMap::keys).copied().collect();
    // In the order of the path: what it begins with says most.
    patterns.find_map(|pattern| {
        let mut of_pattern = all.iter().filter(|event| is(pattern, event));
        of_pattern.find_map(|event| unrecorded(sides, event))
    })
}

/// Returns the steps of a path that come from other events on the one side than on the other, because not all were
/// recorded on both: by name, each with what is missing.
pub(crate) fn steps_apart(sides: [&[&Picture]; 2], path: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let Some(path) = paths::builtin(path) else {
        return out;
    };
    let names = sides.map(happened);
    let steps = || path.chains.iter().flat_map(|chain| &chain.steps);
    let patterns: Vec<&EventPattern> = steps()
        .flat_map(PathStep::ways)
        .flat_map(|(alt, events)| {
            events
                .iter()
                .chain(alt.into_iter().flat_map(|alt| &alt.unless))
        })
        .collect();
    // Those that are of the path.
    let all: BTreeSet<&str> = names
        .iter()
        .flat_map(BTreeMap::keys)
        .copied()
        .filter(|event| patterns.iter().any(|pattern| is(pattern, event)))
        .collect();
    // What either side has, and the other did not record.
    let missing: BTreeMap<&str, String> = all
        .iter()
        .filter_map(|event| Some((*event, unrecorded(sides, event)?)))
        .collect();
    if missing.is_empty() {
        return out;
    }
    let has = |side: usize, pattern: &EventPattern| -> BTreeSet<&str> {
        let of_pattern = all.iter().filter(|event| is(pattern, event));
        of_pattern
            .filter(|event| !missing.contains_key(**event) || names[side].contains_key(**event))
            .copied()
            .collect()
    };
    // The events that tell of a step: an alternative counts for nothing where what is better was recorded.
    let telling = |side: usize, step: &PathStep| -> BTreeSet<&str> {
        let ways = step.ways().filter(|(alt, _)| {
            let mut better = alt.iter().flat_map(|alt| &alt.unless);
            !better.any(|pattern| !has(side, pattern).is_empty())
        });
        ways.flat_map(|(_, events)| events)
            .flat_map(|pattern| has(side, pattern))
            .collect()
    };
    for step in steps() {
        let (a, b) = (telling(0, step), telling(1, step));
        let mut differ = a.symmetric_difference(&b);
        if let Some(why) = differ.find_map(|event| missing.get(event)) {
            out.insert(step.name.clone(), why.clone());
        }
    }
    out
}

fn events(sides: &[Vec<&Picture>; 2]) -> Option<String> {
    let counts = [happened(&sides[0]), happened(&sides[1])];
    let alone = |here: usize, there: usize| -> Vec<&str> {
        let (known, span_ns) = (RecordedEvents::of(&sides[there]), span(&sides[here]));
        let mut all: Vec<(&str, u64)> = counts[here]
            .iter()
            .filter(|(name, count)| {
                !counts[there].contains_key(*name) && known.misses(name, **count, span_ns)
            })
            .map(|(name, count)| (*name, *count))
            .collect();
        all.sort_by(|x, y| y.1.cmp(&x.1).then_with(|| x.0.cmp(y.0)));
        all.into_iter().map(|(name, _)| name).collect()
    };
    let words = |names: &[&str], side: &str| {
        let more = names.len().saturating_sub(LISTED);
        let listed = names[..names.len().min(LISTED)].join(", ");
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{listed}{more} in {side} alone")
    };
    let (a, b) = (alone(0, 1), alone(1, 0));
    let parts: Vec<String> = [(a, "A"), (b, "B")]
        .iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, side)| words(names, side))
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "Different events were recorded: {}. What depends on them is not compared.",
            parts.join("; ")
        )
    })
}

/// Whether both sides did as much, by what counts work and by how busy the vCPUs were.
fn work(sides: &[Vec<&Picture>; 2]) -> Option<String> {
    let seconds = [0, 1].map(|side: usize| span(&sides[side]) / 1e9);
    if seconds.iter().any(|seconds| *seconds < LEAST) {
        return None;
    }
    // A moment is no rate.
    let count = |side: usize, name: &str| -> u64 {
        let each = sides[side].iter();
        each.map(|picture| picture.events_about(name))
            .fold(0, u64::saturating_add)
    };
    let rate = |side: usize, name: &str| {
        let count = count(side, name) as f64;
        if count < EXPECTED {
            0.0
        } else {
            count / seconds[side]
        }
    };
    let apart = |a: f64, b: f64| a.max(b) > APART * a.min(b);
    let counted = WORK.iter().find_map(|name| {
        let (a, b) = (rate(0, name), rate(1, name));
        (a > 0.0 && b > 0.0).then_some((*name, a, b))
    });
    let busy = [0, 1].map(|side: usize| {
        let each = sides[side].iter();
        let (guest, all) = each.fold((0u64, 0u64), |sum, picture| {
            (
                sum.0.saturating_add(picture.state_ns(model::State::Guest)),
                sum.1.saturating_add(picture.observed_ns()),
            )
        });
        guest as f64 / all.max(1) as f64
    });
    let mut parts = Vec::new();
    match counted {
        Some((name, a, b)) if apart(a, b) => parts.push(format!(
            "{} and {} {name} in a second",
            number(a),
            number(b)
        )),
        Some(_) => return None,
        None => {}
    }
    if busy.iter().all(|share| *share > 0.0) && apart(busy[0], busy[1]) {
        parts.push(format!(
            "vCPUs in the guest for {} and {} of their time",
            share::rough(busy[0]),
            share::rough(busy[1])
        ));
    }
    (!parts.is_empty()).then(|| {
        format!(
            "The guests may not have done the same work: {}.",
            parts.join("; ")
        )
    })
}
