//! Paths through guests in pictures: what is found of a host is the same, whether its guests are walked too or not.

use analysis::{LaneGroup, Picture, SliceMeasure, TimelineNames};
use fixtures::Failures;
use fixtures::pairs::{GuestPair, pairs};
use session::{PictureOptions, Session, SessionOptions};

use crate::timeline::TINY;

/// The paths through guests, in their order.
fn guest_paths() -> Vec<&'static str> {
    paths::WITH_GUESTS.iter().map(|(name, _)| *name).collect()
}

/// Returns a picture of a host with some guests.
fn picture(pair: &GuestPair, with: bool, options: &PictureOptions) -> Picture {
    let session = Session::open(SessionOptions {
        threads: 1,
        ..SessionOptions::default()
    });
    let mut recordings = vec![pair.host.clone()];
    if with {
        recordings.push(pair.guest.clone());
    }
    let session = session.expect("no files beside");
    let (mut pictures, _) = session
        .pictures_with(&recordings, &[], options)
        .expect("they fit");
    assert_eq!(pictures.len(), 1);
    pictures.remove(0)
}

/// Takes out what is of guests, and returns the rest in words.
fn of_host(mut picture: Picture) -> String {
    picture.guests.clear();
    picture.guest_exits.clear();
    picture.guest_paths.clear();
    let guests = guest_paths();
    let examples = &mut picture.examples;
    examples.retain(|one| !guests.contains(&one.path.as_str()));
    for row in picture.vcpus.iter_mut().flat_map(|report| &mut report.rows) {
        row.guest = None;
    }
    picture.series.of.retain(|measured, _| {
        !matches!(
            measured,
            SliceMeasure::GuestTime(_)
                | SliceMeasure::GuestSteal(_)
                | SliceMeasure::GuestKnown
                | SliceMeasure::GuestExits(..)
        )
    });
    if let Some(timeline) = &mut picture.timeline {
        let lanes = &mut timeline.lanes;
        lanes.retain(|lane| lane.group != LaneGroup::Guests);
        let marks = &mut timeline.marks;
        marks.retain(|marks| !guests.contains(&marks.label.as_str()));
        // Names stand behind those of the host.
        timeline.names = TimelineNames::default();
    }
    format!("{picture:#?}")
}

#[test]
fn what_is_found_of_a_host_is_the_same_where_instances_go_through_its_guests() {
    let mut failures = Failures::default();
    for pair in &pairs() {
        let name = pair.guest.display();
        for options in [
            PictureOptions::default().through_guests(),
            PictureOptions::to_report(),
            PictureOptions::to_compare(),
        ] {
            let alone = picture(pair, false, &options);
            let with = picture(pair, true, &options);
            failures.check(alone.guest_paths.is_empty(), || format!("{name}: alone"));
            let names: Vec<&str> = with
                .guest_paths
                .iter()
                .map(|one| one.name.as_str())
                .collect();
            // What is compared is of hosts: nothing through guests is followed there.
            let expected = if options.comparing {
                Vec::new()
            } else {
                guest_paths()
            };
            failures.check(names == expected, || format!("{name}: {names:?}"));
            let all = with.all_paths().count();
            failures.equal(
                &format!("{name}: all"),
                &all,
                &(options
                    .paths
                    .iter()
                    .filter(|path| !path.only_if_found)
                    .count()
                    + names.len()),
            );
            marks(&mut failures, &with);
            let (alone, with) = (of_host(alone), of_host(with));
            failures.check(alone == with, || {
                let both = alone.lines().zip(with.lines());
                let apart = both.into_iter().find(|(alone, with)| alone != with);
                format!("{name}: {apart:?}")
            });
        }
    }
    failures.finish(20);
}

/// The timeline marks each instance, and there are examples of each path, with steps on threads of the host.
fn marks(failures: &mut Failures, picture: &Picture) {
    let Some(timeline) = &picture.timeline else {
        return;
    };
    for path in &picture.guest_paths {
        let id = format!("path:{}", path.name);
        let marks = timeline.marks.iter().filter(|marks| marks.id == id);
        let marks = marks.flat_map(|marks| &marks.marks);
        let count: u64 = marks.map(|mark| mark.count).sum();
        failures.equal(&id, &count, &path.count);
        let examples = picture.examples.iter().filter(|one| one.path == path.name);
        let examples: Vec<_> = examples.collect();
        failures.equal(&id, &examples.len(), &usize::from(path.count > 0));
        for step in examples.iter().flat_map(|one| &one.slow.steps) {
            let vcpus = picture.vcpus.iter().flat_map(|report| &report.rows);
            let is_vcpu = vcpus.into_iter().any(|row| row.tid == step.tid);
            failures.check(is_vcpu || step.machine.is_none(), || {
                format!("{id}: {step:?}")
            });
        }
    }
}

/// Of a large recording the page has every event of some times only: the host's are the same, and the slowest instances
/// have theirs.
#[test]
fn slow_instances_are_of_interest_behind_all_that_is_of_the_host() {
    let session = Session::open(SessionOptions::default()).expect("no files beside");
    let whys = |pair: &GuestPair, with: bool| -> (Vec<(u64, u64, String)>, Vec<u64>) {
        let mut recordings = vec![pair.host.clone()];
        recordings.extend(with.then(|| pair.guest.clone()));
        let hosts = session.hosts(&recordings, &[]).expect("they fit");
        let options = PictureOptions {
            timeline_limits: TINY,
            ..PictureOptions::to_report()
        };
        let mut picture = hosts[0].picture(&options).expect("it is a host").picture;
        let details = hosts[0].input().details(&mut picture, &[]);
        details.expect("it is still there");
        let of_guests = |path: &str| picture.guest_paths.iter().any(|one| one.name == path);
        let examples = picture.examples.iter().filter(|one| of_guests(&one.path));
        let slowest = examples.filter_map(|one| Some(one.slow.steps.first()?.time));
        let slowest = slowest.collect();
        let windows = picture.timeline.expect("it was asked for").windows;
        let windows = windows.into_iter();
        let windows = windows.map(|one| (one.begin, one.end, one.why)).collect();
        (windows, slowest)
    };
    let mut shown = 0;
    for pair in &pairs() {
        let ((alone, _), (with, slowest)) = (whys(pair, false), whys(pair, true));
        let more: Vec<_> = with.iter().filter(|one| !alone.contains(one)).collect();
        assert_eq!(with.len(), alone.len() + more.len(), "{alone:?} {with:?}");
        for (_, _, why) in &more {
            let is_named =
                |path: &str| why.starts_with(&format!("path {path}: its slowest instance, "));
            assert!(guest_paths().into_iter().any(is_named), "{why}");
        }
        // It has a window of its own, or is in one of the host's, of which less may be left than there was room for.
        shown += slowest.len();
        assert!(more.len() <= slowest.len(), "{more:?}");
    }
    assert!(shown > 0);
}
