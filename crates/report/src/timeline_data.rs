/*!
The data that the page's timeline is drawn from, as JSON.

All times are integers: the beginning is the recording's clock as decimal text, since it may be beyond what a script's
numbers hold, and everything else is relative to it or to what stands before it, so that the text is small and
compresses well. Lists are flat for the same reason. A cell is either a stretch, `gap, length, kind, what, behind, cpu`,
or the sum of several, `gap, length, -n, count, kind1, ns1 .. kindN, nsN`, whose times add up to its length. Names are
numbers in `names`. Marks of a path have the total from which on its instances are slow, where any are, and some of its
instances with their steps, `gap, cpu, from, to, step`: from whom a step comes and to whom it goes, among those who take
part, as sequence diagrams have it.
*/

use std::collections::HashMap;
use std::fmt::Write;

use ::paths::{InstanceReport, PathReport};
use analysis::{
    Cell, KINDS, LaneGroup, OUTSIDE, PathExamples, TimelineLane, TimelineMarks, TimelineReport,
    TimelineWindow,
};
use render::{neutral, paths_instance};

/// The version of the form.
const VERSION: u32 = 1;

/// Returns the data of a recording's timeline: `picture.timeline` of a picture that was asked for it, after
/// `Input::details` has put what is of interest into it. `paths` are the picture's, which say what is slow, and
/// `examples` too, which have steps of instances.
pub fn json<'p>(
    timeline: &TimelineReport,
    paths: impl IntoIterator<Item = &'p PathReport>,
    examples: &[PathExamples],
) -> String {
    let slow = paths.into_iter().filter_map(|path| {
        let slow = path.slow.as_ref().filter(|slow| slow.count > 0)?;
        Some((format!("path:{}", path.name), slow.threshold_ns))
    });
    let slow: HashMap<String, u64> = slow.collect();
    let mut out = String::new();
    let _ = write!(
        out,
        "{{\"version\":{VERSION},\"begin_ns\":\"{}\",\"length_ns\":{},\"nanoseconds\":{},\"names\":",
        timeline.begin,
        timeline.end.saturating_sub(timeline.begin),
        timeline.nanoseconds
    );
    list(&mut out, timeline.names.list(), |out, name| text(out, name));
    out.push_str(",\"kinds\":");
    kinds(&mut out);
    out.push_str(",\"lanes\":");
    list(&mut out, &timeline.lanes, |out, one| {
        lane(out, one, timeline.begin);
    });
    out.push_str(",\"marks\":");
    list(&mut out, &timeline.marks, |out, one| {
        let path = one.id.strip_prefix("path:");
        let own = examples.iter().find(|one| path == Some(one.path.as_str()));
        marks(out, one, (slow.get(&one.id), own), timeline.begin);
    });
    out.push_str(",\"windows\":");
    list(&mut out, &timeline.windows, |out, one| {
        window(out, one, timeline);
    });
    let _ = write!(out, ",\"without_lane\":{}", timeline.without_lane);
    out.push_str(",\"notes\":");
    list(&mut out, timeline.missing(), |out, note| text(out, &note));
    out.push('}');
    out
}

/// Writes a list.
fn list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (item, at) in items.into_iter().zip(0usize..) {
        if at > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

/// Writes a text, which has nothing in it that steers.
fn text(out: &mut String, text: &str) {
    let quoted = serde_json::to_string(&neutral::name(text));
    out.push_str(quoted.as_deref().unwrap_or("\"\""));
}

/// Writes a member that is a text.
fn member(out: &mut String, name: &str, value: &str) {
    let _ = write!(out, "\"{name}\":");
    text(out, value);
    out.push(',');
}

/// Writes numbers with a comma before each but the first of a list.
fn numbers(out: &mut String, numbers: &[i128]) {
    for number in numbers {
        if !out.ends_with('[') {
            out.push(',');
        }
        decimal(out, *number);
    }
}

/// Writes a number: there are hundreds of thousands, and formatting each in general takes several times as long.
fn decimal(out: &mut String, number: i128) {
    let Ok(mut rest) = u64::try_from(number.unsigned_abs()) else {
        let _ = write!(out, "{number}");
        return;
    };
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b"0123456789"[(rest % 10) as usize];
        rest /= 10;
        first = at;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push('-');
    }
    let digits = digits.get(first..).unwrap_or_default();
    out.push_str(str::from_utf8(digits).unwrap_or_default());
}

/// Returns what kinds of lanes are called where their states are listed.
fn of(group: LaneGroup) -> &'static str {
    match group {
        LaneGroup::Vcpus => "vcpu",
        LaneGroup::Threads => "thread",
        LaneGroup::Cpus => "cpu",
        LaneGroup::Guests => "guest",
    }
}

/// Returns how many states the kinds of lanes before one have, and how many all have.
fn before(group: LaneGroup) -> (i128, i128) {
    let before = LaneGroup::ALL.iter().take_while(|one| **one != group);
    let before: usize = before.map(|one| one.kinds().len()).sum();
    let all: usize = LaneGroup::ALL.iter().map(|one| one.kinds().len()).sum();
    (before as i128, all as i128)
}

/// Writes the states, those of each kind of lanes behind each other, and the one of time that was not looked at.
fn kinds(out: &mut String) {
    let all = LaneGroup::ALL.iter().flat_map(|group| {
        let kinds = group.kinds().iter();
        kinds.map(|(id, label)| (*id, *label, of(*group)))
    });
    let outside = ("outside", "not looked at", "all");
    list(out, all.chain([outside]), |out, (id, label, of)| {
        let _ = write!(
            out,
            "{{\"id\":\"{id}\",\"label\":\"{label}\",\"of\":\"{of}\"}}"
        );
    });
}

fn lane(out: &mut String, lane: &TimelineLane, begin: u64) {
    out.push('{');
    member(out, "id", &lane.id);
    let group = match lane.group {
        LaneGroup::Vcpus => "vcpus",
        LaneGroup::Threads => "threads",
        LaneGroup::Cpus => "cpus",
        LaneGroup::Guests => "guests",
    };
    member(out, "group", group);
    member(out, "label", &lane.label);
    member(out, "detail", &lane.detail);
    member(out, "vm", &lane.vm);
    out.push_str("\"cells\":[");
    let (before, all) = before(lane.group);
    // The number of a state among those of all lanes.
    let kind = |kind: u8| match kind {
        OUTSIDE => all,
        kind => before + i128::from(kind),
    };
    let mut at = begin;
    for cell in &lane.cells {
        let gap = cell.start().saturating_sub(at);
        at = cell.end();
        numbers(out, &[gap.into(), cell.ns().into()]);
        match cell {
            Cell::One(one) => {
                let kind = kind(one.kind);
                numbers(
                    out,
                    &[kind, one.what.into(), one.behind.into(), one.cpu.into()],
                );
            }
            Cell::Sum(sum) => {
                let parts = sum.ns.iter().zip(0u8..).filter(|(ns, _)| **ns > 0);
                numbers(out, &[-(parts.clone().count() as i128), sum.count.into()]);
                for (ns, number) in parts {
                    numbers(out, &[kind(number), (*ns).into()]);
                }
            }
        }
    }
    out.push_str("]}");
}

fn marks(
    out: &mut String,
    marks: &TimelineMarks,
    (slow_ns, examples): (Option<&u64>, Option<&PathExamples>),
    begin: u64,
) {
    out.push('{');
    member(out, "id", &marks.id);
    member(out, "label", &marks.label);
    if let Some(slow_ns) = slow_ns {
        let _ = write!(out, "\"slow_ns\":{slow_ns},");
    }
    if let Some(examples) = examples {
        instances(out, examples, begin);
    }
    out.push_str("\"marks\":[");
    let mut at = begin;
    for mark in &marks.marks {
        let gap = mark.begin.saturating_sub(at);
        at = mark.begin;
        let length = mark.end.saturating_sub(mark.begin);
        numbers(
            out,
            &[
                gap.into(),
                length.into(),
                mark.count.into(),
                mark.max_ns.into(),
                mark.what.into(),
            ],
        );
    }
    out.push_str("]}");
}

/// Writes what instances of a path need: what their steps and those who take part are called, and the steps.
fn instances(out: &mut String, examples: &PathExamples, begin: u64) {
    let typical = examples.fast.iter();
    let mut all: Vec<&InstanceReport> = examples.longest.iter().chain(typical).collect();
    all.sort_by_key(|one| one.number);
    all.dedup_by_key(|one| one.number);
    let mut names: Vec<&str> = Vec::new();
    let mut number = HashMap::new();
    let mut number_of = |name| {
        *number.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() as i128 - 1
        })
    };
    let mut steps = String::new();
    list(&mut steps, all, |out, one| {
        let parts = paths_instance::parts(one);
        let first = one.steps.first().map_or(begin, |step| step.time);
        let _ = write!(
            out,
            "{{\"number\":{},\"begin\":{},\"steps\":[",
            one.number,
            first.saturating_sub(begin)
        );
        let mut at = first;
        for (step, place) in one.steps.iter().zip(0..) {
            let (from, to) = paths_instance::arrow(one, place, &parts);
            let gap = step.time.saturating_sub(at);
            at = at.max(step.time);
            // A guest's CPUs are none of the host's lanes.
            let cpu = step.machine.as_ref().map_or(step.cpu, |_| -1);
            let mut named = |part: usize| number_of(parts.get(part).copied().unwrap_or_default());
            let (from, to) = (named(from), named(to));
            let name = number_of(&step.name);
            numbers(out, &[gap.into(), cpu.into(), from, to, name]);
        }
        out.push_str("]}");
    });
    out.push_str("\"step_names\":");
    list(out, names, text);
    let _ = write!(out, ",\"instances\":{steps},");
}

fn window(out: &mut String, window: &TimelineWindow, timeline: &TimelineReport) {
    let begin = timeline.begin;
    let _ = write!(
        out,
        "{{\"begin\":{},\"end\":{},",
        window.begin.saturating_sub(begin),
        window.end.saturating_sub(begin)
    );
    member(out, "why", &window.why);
    out.push_str("\"events\":[");
    // The first is relative to the window's own beginning.
    let mut at = window.begin;
    for event in &window.events {
        let gap = event.time.saturating_sub(at);
        at = at.max(event.time);
        let mut lanes = timeline.lanes.iter();
        let lane = lanes.position(|lane| event.tid >= 0 && lane.tid == Some(event.tid));
        let lane = lane.map_or(-1, |at| at as i128);
        numbers(
            out,
            &[
                gap.into(),
                event.cpu.into(),
                event.tid.into(),
                lane,
                event.name.into(),
                event.text.into(),
            ],
        );
    }
    out.push_str("]}");
}

// The states of all kinds of lanes have a place in a sum.
const _: () = assert!(KINDS > OUTSIDE as usize);

#[cfg(test)]
mod tests {
    use analysis::{TimelineEvent, TimelineReport};
    use serde_json::Value;

    use super::*;

    #[test]
    fn numbers_are_written_as_they_are() {
        let all = [0, 7, -3, 10, 1_070_701_360_566, u64::MAX.into(), i128::MIN];
        for number in all {
            let mut out = String::new();
            decimal(&mut out, number);
            assert_eq!(out, number.to_string());
        }
    }

    #[test]
    fn nothing_is_a_document_too() {
        let document: Value =
            serde_json::from_str(&json(&TimelineReport::default(), [], &[])).unwrap();
        assert_eq!(document["version"], 1);
        assert_eq!(document["begin_ns"], "0");
        assert_eq!(document["names"], serde_json::json!(["", "…"]));
        let kinds = document["kinds"].as_array().unwrap();
        assert_eq!(kinds.len(), 25);
        assert_eq!(kinds[9]["id"], "running");
        assert_eq!(kinds[14]["id"], "idle");
        assert_eq!(kinds[19]["id"], "task");
        assert_eq!(kinds[24]["id"], "outside");
        for list in ["lanes", "marks", "windows", "notes"] {
            assert_eq!(document[list], serde_json::json!([]), "{list}");
        }
    }

    #[test]
    fn names_cannot_end_the_text_and_large_times_stay_exact() {
        let mut timeline = TimelineReport::default();
        (timeline.begin, timeline.end) = (u64::MAX - 1000, u64::MAX);
        timeline.notes.push("a\u{202e}b".to_owned());
        let name = timeline.names.number("</script>\"\\\n\x1b[0m");
        timeline.windows.push(TimelineWindow {
            begin: u64::MAX - 900,
            end: u64::MAX - 100,
            why: "\"why\"".to_owned(),
            events: vec![
                TimelineEvent {
                    time: u64::MAX - 890,
                    cpu: -1,
                    tid: -1,
                    name,
                    text: 0,
                },
                TimelineEvent {
                    time: u64::MAX - 880,
                    cpu: 3,
                    tid: 7,
                    name,
                    text: name,
                },
            ],
            more: 0,
        });
        let text = json(&timeline, [], &[]);
        assert!(!text.contains('\n') && !text.contains('\x1b') && !text.contains('\u{202e}'));
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["begin_ns"], (u64::MAX - 1000).to_string());
        assert_eq!(document["length_ns"], 1000);
        let window = &document["windows"][0];
        assert_eq!(
            (&window["begin"], &window["end"]),
            (&100.into(), &900.into())
        );
        // The first event is relative to its window.
        let events = serde_json::json!([10, -1, -1, -1, name, 0, 10, 3, 7, -1, name, name]);
        assert_eq!(window["events"], events);
    }
}
