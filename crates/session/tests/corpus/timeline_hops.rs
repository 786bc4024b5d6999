//! A second walk that passes over what nobody asks for finds what one over everything finds: every lane, stretch,
//! window and event is the same, however few places there are from which a walk can go on.

use analysis::{Picture, TimelineLimits, TimelineReport};
use session::{Filters, Input, Session};

use crate::timeline::{TINY, details, options, session, timeline};
use fixtures::{CorpusCase, Failures, cases};

/// Room for some windows, which are far from all.
const SOME: TimelineLimits = TimelineLimits {
    cells: 2_000,
    threads: 8,
    marks: 50,
    details: 2_000,
    events: 300,
};

/// Returns all that a timeline has.
fn all(timeline: &TimelineReport) -> String {
    format!(
        "{:#?}\n{:#?}\n{:?}\n{:#?}\n{:?}",
        timeline.lanes,
        timeline.windows,
        timeline.names.list(),
        timeline.marks,
        timeline.notes
    )
}

/// Returns a picture's timeline with details, where one of `stride` places was kept, or none.
fn with(input: &Input<'_>, picture: &Picture, stride: Option<usize>) -> String {
    let mut picture = picture.clone();
    if let Some(timeline) = &mut picture.timeline {
        let mut number = 0;
        timeline.resumes.retain(|_| {
            number += 1;
            stride.is_some_and(|stride| number % stride == 0)
        });
    }
    details(input, &mut picture);
    all(timeline(&picture))
}

/// Compares a recording's timelines, and returns how many places it has.
fn check(
    failures: &mut Failures,
    session: &Session,
    case: &CorpusCase,
    limits: TimelineLimits,
    what: &str,
) -> usize {
    let Ok(input) = session.input(&case.path) else {
        return 0;
    };
    let Ok(taken) = input.picture(&options(limits)) else {
        return 0;
    };
    let picture = taken.picture;
    let places = timeline(&picture).resumes.len();
    if places == 0 {
        return 0;
    }
    let whole = with(&input, &picture, None);
    for stride in [1, 7, 50] {
        let name = format!("{} {what}, one of {stride} places", case.name);
        failures.equal(
            &name,
            &(with(&input, &picture, Some(stride)) == whole),
            &true,
        );
    }
    places
}

#[test]
fn what_nobody_asks_for_is_passed_over() {
    let mut failures = Failures::default();
    let (mut recordings, mut places) = (0, 0);
    for case in cases() {
        let session = session(Filters::default());
        for limits in [TINY, SOME] {
            let found = check(&mut failures, &session, &case, limits, "as a whole");
            recordings += usize::from(found > 0);
            places += found;
        }
    }
    failures.finish(30);
    assert!(
        recordings >= 10 && places > 500,
        "{places} places in {recordings} recordings"
    );
}

/// Returns when a recording's timeline begins and ends, if it has places.
fn span(case: &CorpusCase) -> Option<(u64, u64)> {
    let session = session(Filters::default());
    let input = session.input(&case.path).ok()?;
    let picture = input.picture(&options(TINY)).ok()?.picture;
    let timeline = timeline(&picture);
    (!timeline.resumes.is_empty()).then_some((timeline.begin, timeline.end))
}

#[test]
fn filters_are_the_same_wherever_a_walk_goes_on() {
    let mut failures = Failures::default();
    let mut places = 0;
    for case in cases() {
        let Some((begin, end)) = span(&case) else {
            continue;
        };
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let part = (end - begin) / 5;
        let time = format!("{},{}", seconds(begin + part), seconds(end - part));
        let filters = [
            Filters {
                time: Some(time.parse().expect("a range")),
                ..Filters::default()
            },
            Filters {
                vcpu: Some(0),
                ..Filters::default()
            },
            Filters {
                cpus: Some("0-1".parse().expect("a list")),
                ..Filters::default()
            },
        ];
        for (filters, what) in filters.into_iter().zip(["--time", "--vcpu", "--cpu"]) {
            places += check(&mut failures, &session(filters), &case, TINY, what);
        }
    }
    failures.finish(30);
    assert!(places > 500, "{places}");
}
