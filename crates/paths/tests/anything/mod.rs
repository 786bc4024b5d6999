//! Whatever events follow each other: the engine does not panic, and what it says adds up.

mod order;
mod scripts;
mod stream;

use std::ops::ControlFlow;

use crate::common::stages::{Log, wrong};
use crate::common::{adds_up, described};
use analysis::{SharedAnalysis, Study};
use event::reasons::Isa;
use event::{EventType, Kind, LostKind, Side, Sink};
use paths::{CompletedInstance, PathReport, Paths, RecentWords};
use proptest::prelude::*;

use scripts::{SCRIPTS, next, play, scripted};
use stream::{KINDS, One, one, text, types};

struct Seen {
    reports: Vec<PathReport>,
    instances: Vec<CompletedInstance>,
    most: usize,
    study: Study,
    paths: SharedAnalysis<Paths>,
    log: Log,
}

fn walk(stream: &[One], isa: Isa, mut paths: Paths) -> Seen {
    paths.list();
    let mut types = types();
    // The same events as those of a guest, behind them.
    let of_guest: Vec<_> = types
        .iter()
        .map(|ty| EventType {
            machine: 1,
            index: ty.index + KINDS.len() as u32,
            ..*ty
        })
        .collect();
    types.extend(of_guest);
    let mut study = Study::default();
    let paths = study.share(paths);
    study.guest_vcpus(1, [(0, 101), (1, 102)]);
    let mut log = Log::default();
    let mut known = vec![None; types.len()];
    let (mut time, mut most) = (1_000_000u64, 0);
    let mut instances = Vec::new();
    for one in stream {
        time = one.time_after(time);
        if one.lost {
            let lost = Side::Lost {
                time,
                cpu: one.cpu,
                buffer: 0,
                count: None,
                kind: if one.flag {
                    LostKind::Ring
                } else {
                    LostKind::Sum
                },
            };
            study.side_of(u16::from(one.guest), &lost);
            continue;
        }
        let kind = match one.guest {
            true => one.kind + KINDS.len(),
            false => one.kind,
        };
        let ty = &types[kind];
        // A text asks when it comes upon the first event of a kind.
        let wanted = *known[kind].get_or_insert_with(|| study.wants(ty));
        if !wanted {
            continue;
        }
        let text = text(one);
        let event = one.event(time, ty, isa, one.flag, &text);
        if !one.guest {
            log.take(&event, &event.data());
        }
        assert_eq!(study.event(&event), ControlFlow::Continue(()));
        let mut paths = paths.get_mut();
        most = most.max(paths.in_flight());
        instances.extend(paths.take_listed());
    }
    study.finish();
    instances.extend(paths.get_mut().take_listed());
    assert_eq!(paths.get().in_flight(), 0, "nothing is left at the end");
    let machine = study.walked().machine;
    let reports = paths.get().report(machine, &|_| None);
    Seen {
        reports,
        paths,
        instances,
        most,
        study,
        log,
    }
}

/// No stage is longer than what bounds it. Times have to run forwards for that to make sense.
fn check_bounds(seen: &Seen) {
    let paths = seen.paths.get();
    let machine = seen.study.walked().machine;
    for one in &seen.instances {
        let found = wrong(&seen.log, one, &paths, machine, false);
        assert!(found.is_empty(), "{found:#?}\n{one:?}");
    }
}

/// Makes every event later than the one before, and lets no thread end: what is written down of a thread is by its id.
fn forwards(mut stream: Vec<One>) -> Vec<One> {
    let lives = |one: &One| {
        let kind = KINDS[one.kind].1;
        !matches!(
            kind,
            Kind::SchedProcessFork | Kind::SchedProcessExit | Kind::TaskRename
        )
    };
    stream.retain(lives);
    for one in &mut stream {
        one.step = one.step.clamp(1, 5_000);
    }
    stream
}

/// All paths that there are.
fn all_paths() -> Paths {
    let mut all = paths::all_builtin();
    let on_request = paths::ON_REQUEST.iter();
    all.extend(on_request.filter_map(|(name, _)| paths::builtin(name)));
    all.extend(paths::with_guests());
    Paths::new(all)
}

/// Puts events of a guest between those of a stream: some of the same events again, one more to each bit.
fn with_guest(stream: &[One], bits: &[bool]) -> Vec<One> {
    let bits = bits.iter().copied().chain(std::iter::repeat(false));
    let all = stream.iter().zip(bits);
    let all = all.flat_map(|(one, more)| {
        let of_guest = more.then(|| One {
            guest: true,
            step: 0,
            ..one.clone()
        });
        of_guest.into_iter().chain([one.clone()])
    });
    all.collect()
}

fn check(seen: &Seen, limit: usize) {
    assert!(seen.most <= limit, "{} under way at once", seen.most);
    let paths = seen.paths.get();
    let machine = seen.study.walked().machine;
    let mut recent = RecentWords::default();
    for (at, report) in seen.reports.iter().enumerate() {
        let path = &paths.paths()[at];
        let of: Vec<&CompletedInstance> = seen.instances.iter().filter(|i| i.path == at).collect();
        assert_eq!(of.len() as u64, report.count, "{}", path.name);
        for (one, number) in of.iter().zip(1u64..) {
            assert_eq!(one.number, number);
            let steps = &path.chains[one.chain].steps;
            assert!(one.reached.len() >= 2, "{}: {one:?}", path.name);
            assert!(one.reached.is_sorted_by(|a, b| a.step < b.step), "{one:?}");
            assert!(
                one.reached.is_sorted_by_key(|reached| reached.time),
                "{one:?}"
            );
            assert!(one.reached.iter().all(|r| (r.step as usize) < steps.len()));
            assert!(
                !described(&paths, one, machine, &mut recent)
                    .steps
                    .is_empty()
            );
        }
        let total: u64 = of
            .iter()
            .map(|one| one.reached[one.reached.len() - 1].time - one.reached[0].time)
            .fold(0, u64::saturating_add);
        assert_eq!(report.total.count(), report.count);
        assert_eq!(report.total.total(), total);
        let stages: u64 = report.stages.iter().fold(0, |sum, stage| {
            u64::saturating_add(sum, stage.stats.total())
        });
        assert_eq!(stages, total, "{}", path.name);
        adds_up(&report.ledger, &report.total, &path.name);
        for stage in &report.stages {
            adds_up(&stage.ledger, &stage.stats, &stage.name);
        }
        if report.by == Some("waker") {
            let grouped: u64 = report.groups.iter().map(|group| group.stats.count()).sum();
            assert_eq!(grouped, report.count, "{}", path.name);
        }
        let grouped: u64 = report.groups.iter().map(|group| group.stats.count()).sum();
        assert!(grouped <= report.count);
        let Some(slow) = &report.slow else {
            continue;
        };
        let above = of
            .iter()
            .filter(|one| {
                one.reached[one.reached.len() - 1].time - one.reached[0].time >= slow.threshold_ns
            })
            .count();
        assert_eq!(slow.count, above as u64);
        for one in &slow.because {
            for share in [one.slow_share, one.fast_share] {
                assert!((0.0..=1.0).contains(&share), "{one:?}");
            }
            let examples = one.slow_instances.iter().chain(&one.fast_instances);
            assert!(examples.into_iter().all(|n| (1..=report.count).contains(n)));
        }
    }
}

#[test]
fn scripts_are_instances_of_their_paths() {
    for (name, script) in SCRIPTS {
        for vm in 0..2 {
            let stream: Vec<One> = script.iter().map(|line| scripted(line, vm, 10)).collect();
            let seen = walk(&stream, Isa::Vmx, Paths::new(paths::all_builtin()));
            check(&seen, 1 << 16);
            let report = seen.reports.iter().find(|report| report.name == name);
            assert_eq!(
                report.map(|report| report.count),
                Some(1),
                "{name} {script:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn events_without_sense_add_up(
        stream in prop::collection::vec(one(), 0..1500),
        arm in any::<bool>(),
        limit in prop_oneof![Just(1 << 16), 1..40usize],
    ) {
        let mut paths = Paths::new(paths::all_builtin());
        paths.at_most(limit);
        let isa = if arm { Isa::Arm64 } else { Isa::Vmx };
        check(&walk(&stream, isa, paths), limit);
    }

    #[test]
    fn instances_that_mix_add_up(
        all in prop_oneof![
            prop::collection::vec(next(1), 0..3000),
            prop::collection::vec(next(10), 0..1500),
        ],
        limit in prop_oneof![2 => Just(1 << 16), 1 => 1..40usize],
        slow in prop::option::of(0..20_000u64),
    ) {
        let mut paths = Paths::new(paths::all_builtin());
        paths.at_most(limit);
        if let Some(ns) = slow {
            paths.slow_from(ns);
        }
        check(&walk(&play(&all), Isa::Vmx, paths), limit);
    }

    /// Whatever happens in guests, what is found of the host is the same.
    #[test]
    fn guests_change_nothing_of_the_host(
        all in prop_oneof![
            prop::collection::vec(next(4), 0..1500),
            prop::collection::vec(next(30), 0..800),
        ],
        bits in prop::collection::vec(any::<bool>(), 0..3000),
        arm in any::<bool>(),
    ) {
        let isa = if arm { Isa::Arm64 } else { Isa::Vmx };
        let alone = play(&all);
        let both = with_guest(&alone, &bits);
        let host = || {
            let on_request = paths::ON_REQUEST.iter();
            let on_request = on_request.filter_map(|(name, _)| paths::builtin(name));
            Paths::new(paths::all_builtin().into_iter().chain(on_request).collect())
        };
        let (without, with) = (walk(&alone, isa, host()), walk(&both, isa, host()));
        prop_assert_eq!(without.reports, with.reports);
        check(&walk(&both, isa, all_paths()), 1 << 16);
    }

    /// Who lists instances alone gets the same ones.
    #[test]
    fn lists_need_no_sums(
        all in prop_oneof![
            prop::collection::vec(next(4), 0..1500),
            prop::collection::vec(next(30), 0..800),
        ],
        bits in prop::collection::vec(any::<bool>(), 0..3000),
    ) {
        let stream = with_guest(&play(&all), &bits);
        let mut alone = all_paths();
        alone.list_alone();
        let (summed, listed) = (
            walk(&stream, Isa::Vmx, all_paths()),
            walk(&stream, Isa::Vmx, alone),
        );
        let counts = |seen: &Seen| -> Vec<u64> {
            seen.reports.iter().map(|report| report.count).collect()
        };
        prop_assert_eq!(counts(&summed), counts(&listed));
        let texts = |seen: &Seen| {
            let (paths, machine) = (seen.paths.get(), seen.study.walked().machine);
            let mut recent = RecentWords::default();
            let all = seen.instances.iter();
            all.map(|one| (format!("{one:?}"), described(&paths, one, machine, &mut recent)))
                .collect::<Vec<_>>()
        };
        prop_assert_eq!(texts(&summed), texts(&listed));
    }

    #[test]
    fn no_stage_is_longer_than_what_bounds_it(
        all in prop_oneof![
            prop::collection::vec(next(2), 0..3000),
            prop::collection::vec(next(40), 0..1500),
        ],
        arm in any::<bool>(),
    ) {
        let isa = if arm { Isa::Arm64 } else { Isa::Vmx };
        check_bounds(&walk(&forwards(play(&all)), isa, all_paths()));
    }
}
