//! The timeline's data adds up to what the tables say: states of vCPUs to `vcpus`, CPUs and what they ran to `sched`,
//! marks to the instances of paths. It does so however few cells there may be, in a part of the recording, after
//! details took the place of sums.

use std::collections::BTreeMap;
use std::path::Path;

use analysis::{
    Cell, LaneGroup, OUTSIDE, Picture, TimelineLane, TimelineLimits, TimelineReport, TimelineWindow,
};
use model::State;
use rules::Case;
use session::{Filters, Input, PictureOptions, Session, SessionOptions, TimeRange};

use fixtures::{Failures, case, cases, listed_events};

/// Room for every stretch of the recordings that tests read.
const ROOM: TimelineLimits = TimelineLimits {
    cells: 4_000_000,
    threads: 512,
    marks: 100_000,
    details: 40_000,
    events: 20_000,
};

/// So little room that nearly everything is summed.
pub(crate) const TINY: TimelineLimits = TimelineLimits {
    cells: 60,
    threads: 3,
    marks: 8,
    details: 300,
    events: 50,
};

pub(crate) fn options(timeline_limits: TimelineLimits) -> PictureOptions {
    PictureOptions {
        timeline: true,
        timeline_limits,
        ..PictureOptions::default()
    }
}

pub(crate) fn session(filters: Filters) -> Session {
    let options = SessionOptions {
        threads: 1,
        filters,
        ..SessionOptions::default()
    };
    Session::open(options).expect("no files beside")
}

/// Returns the picture of a recording, before and after details; `None` if it is none.
fn picture(session: &Session, path: &Path, limits: TimelineLimits) -> Option<Picture> {
    let input = session.input(path).ok()?;
    input
        .picture(&options(limits))
        .ok()
        .map(|taken| taken.picture)
}

/// Puts details into a picture's timeline.
pub(crate) fn details(input: &Input<'_>, picture: &mut Picture) {
    let diagnosis = rules::diagnose(&[Case {
        picture,
        facts: None,
        domain: None,
    }]);
    let findings = diagnosis.findings;
    input.details(picture, &findings).expect("a recording");
}

pub(crate) fn timeline(picture: &Picture) -> &TimelineReport {
    picture.timeline.as_ref().expect("it was asked for")
}

fn lanes(timeline: &TimelineReport, group: LaneGroup) -> impl Iterator<Item = &TimelineLane> {
    timeline
        .lanes
        .iter()
        .filter(move |lane| lane.group == group)
}

/// Checks that cells follow each other, and that sums add up to their length.
fn check_cells(failures: &mut Failures, name: &str, timeline: &TimelineReport) {
    for lane in &timeline.lanes {
        let what = format!("{name}: {}", lane.id);
        let mut at = timeline.begin;
        for cell in &lane.cells {
            failures.check(at <= cell.start() && cell.start() < cell.end(), || {
                format!(
                    "{what}: a cell from {} to {} behind {at}",
                    cell.start(),
                    cell.end()
                )
            });
            at = cell.end();
            if let Cell::Sum(sum) = cell {
                failures.equal(&what, &sum.ns.iter().sum::<u64>(), &(sum.end - sum.start));
                failures.check(sum.count > 0, || format!("{what}: a sum of nothing"));
            }
        }
        failures.check(at <= timeline.end, || {
            format!("{what}: until {at} beyond {}", timeline.end)
        });
    }
    let mut ids: Vec<&str> = timeline.lanes.iter().map(|lane| lane.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    failures.equal(name, &ids.len(), &timeline.lanes.len());
}

/// Checks that lanes of vCPUs add up to what their rows say.
fn check_vcpus(failures: &mut Failures, name: &str, picture: &Picture) -> usize {
    let timeline = timeline(picture);
    let rows = picture.vcpus.iter().flat_map(|report| &report.rows);
    let rows: Vec<_> = rows.filter(|row| row.others == 0).collect();
    for row in &rows {
        let what = format!("{name}: vCPU thread {}", row.tid);
        // A thread id may have been used again.
        let all = lanes(timeline, LaneGroup::Vcpus).filter(|lane| lane.tid == Some(row.tid));
        let all: Vec<&TimelineLane> = all.collect();
        let same = rows.iter().filter(|other| other.tid == row.tid);
        let same: Vec<_> = same.collect();
        // A vCPU that never ran in the recording has a row, and no lane.
        let seen = same.iter().filter(|row| row.times.total() > 0).count();
        failures.check((seen..=same.len()).contains(&all.len()), || {
            format!("{what}: {} lanes of {} rows", all.len(), same.len())
        });
        for state in State::ALL {
            let ours: u64 = all.iter().map(|lane| lane.of(state as u8)).sum();
            let theirs: u64 = same.iter().map(|row| row.times.get(state)).sum();
            failures.equal(&format!("{what}: {state:?}"), &ours, &theirs);
        }
    }
    rows.len()
}

/// Checks that lanes of CPUs add up to what their rows say: idle, busy, unknown.
fn check_cpus(failures: &mut Failures, name: &str, picture: &Picture) -> usize {
    let timeline = timeline(picture);
    let mut checked = 0;
    for row in picture.sched.iter().flat_map(|report| &report.cpus) {
        let what = format!("{name}: CPU {}", row.cpu);
        let id = format!("cpu-{}", row.cpu);
        let lane = timeline.lanes.iter().find(|lane| lane.id == id);
        let of = |kind: u8| lane.map_or(0, |lane| lane.of(kind));
        let ours = (of(0), of(1) + of(2) + of(3), of(4));
        failures.equal(&what, &ours, &(row.idle_ns, row.busy_ns, row.unknown_ns));
        checked += 1;
    }
    checked
}

/// Checks that CPUs ran tasks for as long as their rows say, where every stretch was kept and no switch was missed.
fn check_tasks(failures: &mut Failures, name: &str, picture: &Picture) -> usize {
    let timeline = timeline(picture);
    let Some(sched) = &picture.sched else {
        return 0;
    };
    if sched.cpus.iter().any(|cpu| cpu.unseen > 0) {
        return 0;
    }
    let mut ran: BTreeMap<&str, u64> = BTreeMap::new();
    for cell in lanes(timeline, LaneGroup::Cpus).flat_map(|lane| &lane.cells) {
        let Cell::One(one) = cell else {
            failures.check(false, || format!("{name}: a sum, though there is room"));
            return 0;
        };
        if (1..4).contains(&one.kind) {
            *ran.entry(timeline.names.get(one.what)).or_default() += one.ns();
        }
    }
    // perf begins to record one CPU after the other, and moves between those that it records already and others: where
    // it is seen to leave is not where it was seen to go.
    ran.retain(|name, _| !name.starts_with("perf:"));
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for row in sched.rows.iter().filter(|row| row.on_cpu_ns > 0) {
        let name = match row.comm.starts_with(':') {
            true => row.comm.clone(),
            false => format!("{}:{}", row.comm, row.tid),
        };
        if row.comm != "perf" {
            *expected.entry(name).or_default() += row.on_cpu_ns;
        }
    }
    let expected = expected.iter().map(|(name, ns)| (name.as_str(), *ns));
    failures.equal(name, &ran, &expected.collect());
    // A thread that has a lane ran as long by that.
    for lane in lanes(timeline, LaneGroup::Threads) {
        let on_cpus = ran.get(format!("{}:{}", lane.label, lane.tid.unwrap_or(-1)).as_str());
        let again = lane.id.matches('-').count() > 1;
        if let Some(on_cpus) = on_cpus.filter(|_| !again) {
            failures.check(lane.of(0) <= *on_cpus, || {
                format!("{name}: {} ran {} and {on_cpus}", lane.id, lane.of(0))
            });
        }
    }
    ran.len()
}

fn check_marks(failures: &mut Failures, name: &str, picture: &Picture) -> u64 {
    let timeline = timeline(picture);
    let mut all = 0;
    for path in &picture.paths {
        let id = format!("path:{}", path.name);
        let list = timeline.marks.iter().find(|marks| marks.id == id);
        let marks = list.map_or(&[][..], |marks| &marks.marks);
        let what = format!("{name}: {id}");
        let count: u64 = marks.iter().map(|mark| mark.count).sum();
        failures.equal(&what, &count, &path.count);
        let longest = marks.iter().map(|mark| mark.max_ns).max();
        failures.equal(&what, &longest.unwrap_or(0), &path.total.max());
        failures.check(marks.is_sorted_by_key(|mark| mark.begin), || {
            format!("{what}: out of order")
        });
        failures.check(marks.len() <= timeline.limits.marks.max(8), || {
            format!("{what}: {} marks", marks.len())
        });
        let example = picture.examples.iter().find(|one| one.path == path.name);
        failures.equal(&what, &example.is_some(), &(path.count > 0));
        if let Some(example) = example {
            failures.equal(&what, &example.slow.total_ns(), &path.total.max());
            failures.equal(&what, &example.fast.is_some(), &(path.count > 1));
            let median = path.total.percentile(0.5);
            let near = example.fast.as_ref().map_or(median, |one| one.total_ns());
            failures.check(
                near <= path.total.max() && near.abs_diff(median) <= median / 4 + 2
                    || path.count < 20,
                || format!("{what}: {near} stands for {median}"),
            );
        }
        all += count;
    }
    all
}

fn check_all(failures: &mut Failures, name: &str, picture: &Picture) -> [u64; 3] {
    check_cells(failures, name, timeline(picture));
    let vcpus = check_vcpus(failures, name, picture) as u64;
    let cpus = check_cpus(failures, name, picture) as u64;
    [vcpus, cpus, check_marks(failures, name, picture)]
}

#[test]
fn lanes_add_up_to_the_tables() {
    let mut failures = Failures::default();
    let (mut found, mut tasks) = ([0; 3], 0);
    let session = session(Filters::default());
    for case in cases() {
        let name = &case.name;
        let Some(whole) = picture(&session, &case.path, ROOM) else {
            continue;
        };
        let counts = check_all(&mut failures, name, &whole);
        tasks += check_tasks(&mut failures, name, &whole);
        for (sum, count) in found.iter_mut().zip(counts) {
            *sum += count;
        }
        let input = session.input(&case.path).expect("it was read before");
        let tiny = input.picture(&options(TINY)).expect("it was read before");
        let mut tiny = tiny.picture;
        let name = format!("{name}, tiny");
        check_all(&mut failures, &name, &tiny);
        let lanes = timeline(&tiny).lanes.len();
        let cells: usize = timeline(&tiny)
            .lanes
            .iter()
            .map(|lane| lane.cells.len())
            .sum();
        failures.check(cells <= TINY.cells.max(16 * lanes), || {
            format!("{name}: {cells} cells in {lanes} lanes")
        });
        let before = sums(timeline(&tiny));
        details(&input, &mut tiny);
        let name = format!("{name}, with details");
        check_all(&mut failures, &name, &tiny);
        let after = sums(timeline(&tiny));
        for (id, before) in before {
            failures.equal(&format!("{name}: {id}"), &after.get(&id), &Some(&before));
        }
        let events: usize = timeline(&tiny)
            .windows
            .iter()
            .map(|one| one.events.len())
            .sum();
        failures.check(events <= TINY.events, || format!("{name}: {events} events"));
    }
    let [vcpus, cpus, instances] = found;
    failures.check(vcpus >= 30 && cpus >= 30 && instances >= 1000, || {
        format!("{found:?} were checked")
    });
    failures.check(tasks >= 100, || format!("{tasks} tasks only"));
    failures.finish(2000);
}

/// Returns the time by state of every lane.
fn sums(timeline: &TimelineReport) -> BTreeMap<String, Vec<u64>> {
    let lanes = timeline.lanes.iter();
    lanes
        .map(|lane| {
            let times = (0..OUTSIDE).map(|kind| lane.of(kind));
            (lane.id.clone(), times.collect())
        })
        .collect()
}

/// What a cell of a lane says, if it is one stretch.
type ShownCell = (u64, u64, u8, i32, [String; 2]);

/// Returns what a lane says of a time, cell by cell.
fn shown(
    timeline: &TimelineReport,
    lane: &TimelineLane,
    begin: u64,
    end: u64,
) -> Vec<Option<ShownCell>> {
    let cells = lane.cells.iter();
    let part = cells.filter(|cell| begin <= cell.start() && cell.end() <= end);
    let shown = part.map(|cell| match cell {
        Cell::One(one) => {
            let names = [one.what, one.behind].map(|name| timeline.names.get(name).to_owned());
            Some((one.start, one.end, one.kind, one.cpu, names))
        }
        Cell::Sum(_) => None,
    });
    shown.collect()
}

/// Where there is room for details, no sum is left in a window, and what stands in its place is what is there where
/// nothing was ever summed.
#[test]
fn details_are_what_was_summed() {
    let few = TimelineLimits {
        cells: 200,
        details: 400_000,
        events: 100_000,
        ..ROOM
    };
    let mut failures = Failures::default();
    let session = session(Filters::default());
    let (mut replaced, mut kept) = (0, Vec::new());
    for case in cases() {
        let name = &case.name;
        let Some(whole) = picture(&session, &case.path, ROOM) else {
            continue;
        };
        let whole = timeline(&whole);
        let input = session.input(&case.path).expect("it was read before");
        let mut picture = input.picture(&options(few)).expect("as before").picture;
        let before = timeline(&picture).lanes.clone();
        details(&input, &mut picture);
        let timeline = timeline(&picture);
        for before in &before {
            let of = |timeline: &'_ TimelineReport| {
                let mut lanes = timeline.lanes.iter();
                lanes.find(|lane| lane.id == before.id).cloned()
            };
            let (Some(lane), Some(same)) = (of(timeline), of(whole)) else {
                failures.check(false, || format!("{name}: {} is gone", before.id));
                continue;
            };
            let sums = before.cells.iter();
            for sum in sums.filter(|cell| matches!(cell, Cell::Sum(_))) {
                let what = format!("{name}: {} at {}", lane.id, sum.start());
                let ours = shown(timeline, &lane, sum.start(), sum.end());
                let windows = timeline.windows.iter();
                let mut touching =
                    windows.filter(|one| one.begin < sum.end() && sum.start() < one.end);
                if touching.next().is_none() {
                    failures.equal(&what, &ours, &vec![None]);
                } else if ours.contains(&None) {
                    kept.push(what);
                } else {
                    replaced += 1;
                    let theirs = shown(whole, &same, sum.start(), sum.end());
                    failures.equal(&what, &ours, &theirs);
                }
            }
        }
    }
    failures.check(replaced >= 500, || format!("{replaced} sums only"));
    failures.check(kept.is_empty(), || format!("of {replaced}: {kept:?}"));
    failures.finish(500);
}

#[test]
fn a_window_is_clipped_to_the_nanosecond() {
    let mut failures = Failures::default();
    for name in [
        "vmx/tiny-irqchip/perf.data.zst",
        "vmx/tiny-irqchip/trace.dat",
    ] {
        let path = case(name).path;
        let whole = picture(&session(Filters::default()), &path, ROOM).expect("a recording");
        let whole = timeline(&whole);
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let middle = whole.begin + (whole.end - whole.begin) / 3;
        let part = |from: u64, to: u64, limits: TimelineLimits| {
            let text = format!("{},{}", seconds(from), seconds(to));
            let range: TimeRange = text.parse().expect("a range");
            let filters = Filters {
                time: Some(range),
                ..Filters::default()
            };
            picture(&session(filters), &path, limits).expect("a recording")
        };
        for limits in [ROOM, TINY] {
            let parts = [
                part(whole.begin, middle, limits),
                part(middle, whole.end, limits),
            ];
            for one in &parts {
                check_cells(&mut failures, name, timeline(one));
                check_vcpus(&mut failures, name, one);
                check_marks(&mut failures, name, one);
            }
            let groups = [LaneGroup::Vcpus, LaneGroup::Cpus];
            let of_groups = whole
                .lanes
                .iter()
                .filter(|lane| groups.contains(&lane.group));
            for lane in of_groups {
                for kind in 0..OUTSIDE {
                    let same = |one: &Picture| {
                        let mut lanes = timeline(one).lanes.iter();
                        let same = lanes.find(|other| other.id == lane.id);
                        same.map_or(0, |lane| lane.of(kind))
                    };
                    let sum: u64 = parts.iter().map(same).sum();
                    failures.equal(&format!("{name}: {} {kind}", lane.id), &sum, &lane.of(kind));
                }
            }
        }
    }
    failures.finish(100);
}

#[test]
fn filters_leave_lanes_out() {
    let path = case("vmx/tiny-irqchip/perf.data.zst").path;
    let whole = picture(&session(Filters::default()), &path, ROOM).expect("a recording");
    let only = Filters {
        vcpu: Some(0),
        ..Filters::default()
    };
    let only = picture(&session(only), &path, ROOM).expect("a recording");
    let of = |picture: &Picture| {
        lanes(timeline(picture), LaneGroup::Vcpus)
            .cloned()
            .collect::<Vec<_>>()
    };
    let (all, chosen) = (of(&whole), of(&only));
    assert!(chosen.len() < all.len() && !chosen.is_empty());
    let mut failures = Failures::default();
    check_vcpus(&mut failures, "one vCPU", &only);
    let cpus: cpuset::CpuSet = "0".parse().expect("a CPU");
    let on_cpu = Filters {
        cpus: Some(cpus),
        ..Filters::default()
    };
    let on_cpu = picture(&session(on_cpu), &path, TINY).expect("a recording");
    check_cells(&mut failures, "one CPU", timeline(&on_cpu));
    check_vcpus(&mut failures, "one CPU", &on_cpu);
    let cpus: Vec<&str> = lanes(timeline(&on_cpu), LaneGroup::Cpus)
        .map(|lane| lane.id.as_str())
        .collect();
    assert_eq!(cpus, ["cpu-0"]);
    failures.finish(20);
}

#[test]
fn findings_are_marked_and_named_threads_have_lanes() {
    let path = case("vmx/tiny-irqchip/perf.data.zst").path;
    let session = session(Filters::default());
    let no_events = TimelineLimits { events: 0, ..ROOM };
    let picture = picture(&session, &path, no_events).expect("a recording");
    let mut timeline = timeline(&picture).clone();
    let had: BTreeMap<String, Vec<u64>> = sums(&timeline);
    let tids = picture.sched.iter().flat_map(|report| &report.rows);
    let new = tids.map(|row| row.tid).find(|tid| {
        let id = format!("tid-{tid}");
        *tid > 0 && !had.contains_key(&id)
    });
    let named = std::iter::once(new.expect("a thread that no VM has"));
    let (begin, end) = (timeline.begin, timeline.end);
    let marks = [
        (begin + 10, begin + 20, "second".to_owned()),
        // What is found of a time outside is put where the recording is.
        (0, 5, "first".to_owned()),
        (end, u64::MAX, "third".to_owned()),
    ];
    timeline.add_findings(marks, &named.clone().collect());
    let shown = timeline.marks.first().expect("marks of findings");
    assert_eq!(shown.id, "findings");
    let shown = shown.marks.iter().map(|mark| {
        let what = timeline.names.get(mark.what);
        (mark.begin - begin, mark.end - begin, what)
    });
    let length = end - begin;
    let expected = [
        (0, 0, "first"),
        (10, 20, "second"),
        (length, length, "third"),
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    let now = sums(&timeline);
    assert_eq!(now.len(), had.len() + 1);
    for tid in named {
        assert!(now.contains_key(&format!("tid-{tid}")));
    }
    // Nothing is summed and no event has room: there is nothing to walk for, and nothing changes.
    let input = session.input(&path).expect("it was read before");
    let mut again = picture.clone();
    input.details(&mut again, &[]).expect("a recording");
    let again = again.timeline.expect("it stays");
    assert_eq!(
        again.lanes,
        picture.timeline.as_ref().expect("as before").lanes
    );
    assert!(again.windows.iter().all(|window| window.events.is_empty()));
}

/// A recording of few events has them all, as `events` prints them.
#[test]
fn small_recordings_have_every_event() {
    let mut failures = Failures::default();
    let session = session(Filters::default());
    let mut checked = 0;
    for case in cases() {
        let Ok(input) = session.input(&case.path) else {
            continue;
        };
        let Ok(taken) = input.picture(&options(TimelineLimits::default())) else {
            continue;
        };
        let mut picture = taken.picture;
        let events = picture.info.events.iter().map(|kind| kind.count);
        if events.sum::<u64>() > 3_000 {
            continue;
        }
        let events = listed_events(&case.path, Filters::default());
        let events = events.expect("it was read before");
        details(&input, &mut picture);
        let timeline = timeline(&picture);
        let name = &case.name;
        let [
            TimelineWindow {
                events: ours, more, ..
            },
        ] = &timeline.windows[..]
        else {
            failures.check(events.is_empty(), || {
                format!("{name}: {:?}", timeline.windows.len())
            });
            continue;
        };
        failures.equal(name, more, &0);
        failures.equal(name, &ours.len(), &events.len());
        for (ours, event) in ours.iter().zip(&events) {
            let text = event.text.trim();
            let shown = timeline.names.get(ours.text);
            let cut = shown.trim_end_matches('…');
            failures.check(
                shown == text || shown != cut && text.starts_with(cut),
                || format!("{name}: {shown:?} instead of {text:?}"),
            );
            failures.equal(name, &ours.time, &event.time);
            let label = &event.name;
            failures.check(label.contains(timeline.names.get(ours.name)), || {
                format!(
                    "{name}: {} is called {label}",
                    timeline.names.get(ours.name)
                )
            });
        }
        checked += 1;
    }
    failures.check(checked >= 5, || format!("{checked} recordings only"));
    failures.finish(1000);
}
