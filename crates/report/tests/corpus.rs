//! The JSON that a page draws its timeline from says what the timeline does.

use std::collections::BTreeMap;

use analysis::{Picture, TimelineLimits};
use fixtures::json::number;
use fixtures::{Failures, cases};
use serde_json::Value;
use session::{PictureOptions, Session, SessionOptions};

/// So little room that nearly everything is summed.
const TINY: TimelineLimits = TimelineLimits {
    cells: 60,
    threads: 3,
    marks: 8,
    details: 300,
    events: 50,
};

/// Puts details into a picture's timeline.
fn details(input: &session::Input<'_>, picture: &mut Picture) {
    let diagnosis = rules::diagnose(&[rules::Case {
        picture,
        facts: None,
        domain: None,
    }]);
    let details = input.details(picture, &diagnosis.findings);
    details.expect("a recording");
}

/// Takes the cells of a lane of the JSON apart: time by state.
fn decode(failures: &mut Failures, what: &str, cells: &[Value]) -> (BTreeMap<i64, u64>, u64) {
    let numbers: Vec<i64> = cells.iter().filter_map(Value::as_i64).collect();
    failures.equal(what, &numbers.len(), &cells.len());
    let mut ns: BTreeMap<i64, u64> = BTreeMap::new();
    let mut rest = &numbers[..];
    let mut at = 0u64;
    while let [gap, length, kind, ..] = *rest {
        at += gap.unsigned_abs() + length.unsigned_abs();
        failures.check(gap >= 0 && length > 0, || {
            format!("{what}: {gap}, {length}")
        });
        if kind >= 0 {
            *ns.entry(kind).or_default() += length.unsigned_abs();
            rest = &rest[6..];
            continue;
        }
        let pairs = &rest[4..4 + 2 * kind.unsigned_abs() as usize];
        let mut sum = 0;
        for pair in pairs.chunks(2) {
            *ns.entry(pair[0]).or_default() += pair[1].unsigned_abs();
            sum += pair[1];
        }
        failures.equal(what, &sum, &length);
        rest = &rest[4 + pairs.len()..];
    }
    failures.check(rest.is_empty(), || format!("{what}: {rest:?} is left"));
    (ns, at)
}

fn options() -> PictureOptions {
    PictureOptions {
        timeline: true,
        timeline_limits: TINY,
        ..PictureOptions::default()
    }
}

#[test]
fn the_json_says_the_same() {
    let mut failures = Failures::default();
    let session = Session::open(SessionOptions::default()).expect("no files beside");
    for case in cases() {
        let Ok(input) = session.input(&case.path) else {
            continue;
        };
        let Ok(taken) = input.picture(&options()) else {
            continue;
        };
        let mut picture = taken.picture;
        details(&input, &mut picture);
        let timeline = picture.timeline.as_ref().expect("it was asked for");
        let text = report::timeline_data::json(timeline, picture.all_paths(), &picture.examples);
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let name = &case.name;
        failures.check(
            !text.contains('.') || !document["length_ns"].is_f64(),
            || name.clone(),
        );
        let begin = document["begin_ns"]
            .as_str()
            .and_then(|begin| begin.parse().ok());
        failures.equal(name, &begin, &Some(timeline.begin));
        let length = number(&document, "length_ns");
        failures.equal(name, &length, &(timeline.end - timeline.begin));
        let names = document["names"].as_array().map_or(0, Vec::len);
        failures.equal(name, &names, &timeline.names.list().len());
        let kinds = document["kinds"].as_array().cloned().unwrap_or_default();
        let lanes = document["lanes"].as_array().cloned().unwrap_or_default();
        failures.equal(name, &lanes.len(), &timeline.lanes.len());
        for (lane, of) in lanes.iter().zip(&timeline.lanes) {
            let what = format!("{name}: {}", of.id);
            failures.equal(&what, &lane["id"].as_str(), &Some(of.id.as_str()));
            let cells = lane["cells"].as_array().map_or(&[][..], Vec::as_slice);
            let (ns, until) = decode(&mut failures, &what, cells);
            failures.check(until <= length, || format!("{what}: until {until}"));
            for ((id, _), kind) in of.group.kinds().iter().zip(0u8..) {
                let group = lane["group"].as_str().unwrap_or_default();
                let number = kinds.iter().position(|known| {
                    let of = known["of"].as_str().unwrap_or_default();
                    known["id"].as_str() == Some(id) && group == format!("{of}s")
                });
                let number = number.map_or(-1, |number| number as i64);
                let ours = ns.get(&number).copied().unwrap_or(0);
                failures.equal(&format!("{what}: {id}"), &ours, &of.of(kind));
            }
        }
        for (marks, of) in document["marks"]
            .as_array()
            .into_iter()
            .flatten()
            .zip(&timeline.marks)
        {
            let list = marks["marks"].as_array().map_or(&[][..], Vec::as_slice);
            failures.equal(name, &list.len(), &(5 * of.marks.len()));
            let path = picture.all_paths();
            let path = { path }.find(|path| format!("path:{}", path.name) == of.id);
            let slow = path.and_then(|path| path.slow.as_ref());
            let slow_ns = slow
                .filter(|slow| slow.count > 0)
                .map(|slow| slow.threshold_ns);
            failures.equal(name, &marks["slow_ns"].as_u64(), &slow_ns);
            let counts = list.chunks(5).filter_map(|mark| mark[2].as_u64());
            failures.equal(
                name,
                &counts.sum::<u64>(),
                &of.marks.iter().map(|mark| mark.count).sum(),
            );
        }
        for (window, of) in document["windows"]
            .as_array()
            .into_iter()
            .flatten()
            .zip(&timeline.windows)
        {
            let list = window["events"].as_array().map_or(&[][..], Vec::as_slice);
            failures.equal(name, &list.len(), &(6 * of.events.len()));
            for event in list.chunks(6) {
                let (lane, tid) = (event[3].as_i64().unwrap_or(-2), event[2].as_i64());
                let known = usize::try_from(lane)
                    .ok()
                    .and_then(|lane| timeline.lanes.get(lane));
                failures.check(
                    lane == -1 || known.and_then(|lane| lane.tid).map(i64::from) == tid,
                    || format!("{name}: {lane} of {tid:?}"),
                );
            }
        }
    }
    failures.finish(500);
}
