//! Timelines of random streams of events: whatever comes, lanes add up to what `Vcpus` and `SchedLatencies` say, in as
//! few cells as are allowed, and details are what was summed.

use std::ops::ControlFlow;

use analysis::{
    Answers, Cell, Exits, Faults, Handling, IdleWakeups, Ipis, LaneGroup, MainLoops, Moves,
    NestedExits, OUTSIDE, Picture, PictureContext, PictureHandles, Progress, Recorder,
    RecordingContents, SchedLatencies, Signs, Sleeps, Stalls, StretchPlan, Study, Timeline,
    TimelineLane, TimelineLimits, TimelineReport, TimelineWindow, Timers, Unmaps, Vcpus, VmmSleeps,
    Window, builtin_names,
};
use event::sched::{SchedMigrateTask, SchedSwitch, SchedWakeup, TaskComm, TaskState};
use event::{
    Body, Data, Decoder, Event, EventType, ExitReason, Isa, Kind, KvmEntry, KvmExit,
    KvmUserspaceExit, LostKind, Side, Sink,
};
use model::State;
use paths::Paths;
use proptest::prelude::*;
use symbols::KernelFunctions;

const KINDS: [(&str, Kind); 7] = [
    ("kvm_entry", Kind::KvmEntry),
    ("kvm_exit", Kind::KvmExit),
    ("kvm_userspace_exit", Kind::KvmUserspaceExit),
    ("sched_switch", Kind::SchedSwitch),
    ("sched_wakeup", Kind::SchedWakeup),
    ("sched_waking", Kind::SchedWaking),
    ("sched_migrate_task", Kind::SchedMigrateTask),
];

/// One event: how long after the one before, its CPU and thread, what it is, and two numbers that it says.
type One = (u64, i32, i32, usize, i32, u64);

fn data((_, cpu, tid, kind, other, number): &One) -> Data {
    let comm = |tid: i32| {
        TaskComm::new(["qemu", "vhost-7", "kworker/1:0", "sh"][tid as usize % 4].as_bytes())
    };
    let wakeup = SchedWakeup {
        tid: *other,
        comm: comm(*other),
        target_cpu: Some(*cpu),
    };
    match kind {
        0 => Data::KvmEntry(KvmEntry {
            vcpu: Some(*tid as u32),
            guest_pc: None,
        }),
        1 => Data::KvmExit(KvmExit {
            reason: ExitReason {
                isa: Isa::Vmx,
                code: [12, 30, 48][*number as usize % 3],
            },
            vcpu: Some(*tid as u32),
            guest_pc: None,
            info: None,
            inner: false,
        }),
        2 => Data::KvmUserspaceExit(KvmUserspaceExit { reason: Some(2) }),
        3 => Data::SchedSwitch(SchedSwitch {
            prev_tid: *tid,
            prev_comm: comm(*tid),
            prev_state: TaskState([0, 1, 2, 0x100, 0x20][*number as usize % 5]),
            next_tid: *other,
            next_comm: comm(*other),
        }),
        4 => Data::SchedWakeup(wakeup),
        5 => Data::SchedWaking(wakeup),
        _ => Data::SchedMigrateTask(SchedMigrateTask {
            tid: *other,
            orig_cpu: *cpu,
            dest_cpu: (*number % 4) as i32,
        }),
    }
}

/// Walks events; now and then some are lost.
fn walk(study: &mut Study, events: &[One]) -> Answers {
    let kinds: Vec<EventType<'_>> = KINDS
        .iter()
        .zip(0u32..)
        .map(|((name, kind), index)| EventType {
            index,
            machine: 0,
            system: "",
            name,
            label: name,
            kind: *kind,
            format: None,
            decoder: Decoder::default(),
            recorded: true,
        })
        .collect();
    for ty in &kinds {
        let _ = study.wants(ty);
    }
    let mut time = 1_000;
    for one in events {
        time += one.0;
        if one.5 % 97 == 0 {
            study.side(&Side::Lost {
                time,
                cpu: one.1,
                buffer: 0,
                count: Some(one.5),
                kind: LostKind::Ring,
            });
        }
        let event = Event {
            time,
            cpu: one.1,
            tid: one.2,
            pid: 100,
            ty: &kinds[one.3],
            body: Body::Text {
                text: "",
                data: data(one),
            },
            sample: None,
            buffer: 0,
            comm: None,
        };
        assert_eq!(study.event(&event), ControlFlow::Continue(()));
    }
    study.finish()
}

fn picture(events: &[One], window: &Window, limits: TimelineLimits) -> Picture {
    let mut study = Study::default();
    let handles = PictureHandles {
        info: study.add(RecordingContents::new()),
        exits: study.add(Exits::default()),
        vcpus: study.add(Vcpus::new(window.clone())),
        sched: study.add(SchedLatencies::new()),
        sleeps: study.add(Sleeps::new()),
        signs: study.add(Signs::new()),
        faults: study.add(Faults::new()),
        timers: study.add(Timers::new()),
        handling: study.add(Handling::new()),
        moves: study.add(Moves::new()),
        progress: study.add(Progress::new()),
        unmaps: study.add(Unmaps::new()),
        nested: study.add(NestedExits::new()),
        vmm_sleeps: study.add(VmmSleeps::new()),
        main_loops: study.add(MainLoops::new()),
        idle: study.add(IdleWakeups::new()),
        stalls: study.add(Stalls::new()),
        recorder: study.add(Recorder::new(false, window.clone())),
        ipis: study.add(Ipis::new(&mut Paths::new(Vec::new()))),
        irqs: None,
        counters: None,
        timeline: Some(study.add(Timeline::new(window.clone(), limits))),
        paths: None,
        continuity: None,
        guests: None,
    };
    let mut study = study.choose(window.clone(), analysis::LeftOut::default());
    let mut answers = walk(&mut study, events);
    let context = PictureContext {
        keep: None,
        functions: KernelFunctions::default(),
        names: &|_| builtin_names(None),
    };
    Picture::of(handles, &mut answers, &study.walked(), context)
}

fn lanes(timeline: &TimelineReport, group: LaneGroup) -> impl Iterator<Item = &TimelineLane> {
    timeline
        .lanes
        .iter()
        .filter(move |lane| lane.group == group)
}

fn limits(cells: usize) -> TimelineLimits {
    TimelineLimits {
        cells,
        ..TimelineLimits::default()
    }
}

/// Time by state of each lane, by its id.
fn sums(timeline: &TimelineReport) -> Vec<(String, Vec<u64>)> {
    let of = |lane: &TimelineLane| (0..OUTSIDE).map(|kind| lane.of(kind)).collect();
    let lanes = timeline.lanes.iter();
    lanes.map(|lane| (lane.id.clone(), of(lane))).collect()
}

/// Checks a timeline against the tables of its picture. CPUs' are compared where the whole recording is looked at:
/// where a window begins, `SchedLatencies` has not seen yet what runs.
fn check(picture: &Picture, whole: bool) {
    let timeline = picture.timeline.as_ref().expect("it was asked for");
    for row in picture.vcpus.iter().flat_map(|report| &report.rows) {
        let own = lanes(timeline, LaneGroup::Vcpus).filter(|lane| lane.tid == Some(row.tid));
        let own: Vec<&TimelineLane> = own.collect();
        let rows = picture.vcpus.iter().flat_map(|report| &report.rows);
        let same: Vec<_> = rows.filter(|other| other.tid == row.tid).collect();
        for state in State::ALL {
            let ours: u64 = own.iter().map(|lane| lane.of(state as u8)).sum();
            let theirs: u64 = same.iter().map(|row| row.times.get(state)).sum();
            assert_eq!(ours, theirs, "{state:?} of {}", row.tid);
        }
    }
    for row in picture.sched.iter().flat_map(|report| &report.cpus) {
        let id = format!("cpu-{}", row.cpu);
        let lane = timeline.lanes.iter().find(|lane| lane.id == id);
        let of = |kind: u8| lane.map_or(0, |lane| lane.of(kind));
        let ours = (of(0), of(1) + of(2) + of(3), of(4));
        assert!(
            !whole || ours == (row.idle_ns, row.busy_ns, row.unknown_ns),
            "{id}: {ours:?} {row:?}"
        );
    }
    for lane in &timeline.lanes {
        let mut at = timeline.begin;
        for cell in &lane.cells {
            assert!(
                at <= cell.start() && cell.start() < cell.end(),
                "{}",
                lane.id
            );
            at = cell.end();
            if let Cell::Sum(sum) = cell {
                assert_eq!(sum.ns.iter().sum::<u64>(), sum.end - sum.start);
            }
        }
        assert!(at <= timeline.end);
    }
    let lost = timeline.marks.iter().filter(|marks| marks.id == "lost");
    let lost = lost.flat_map(|marks| &marks.marks);
    assert!(
        lost.clone()
            .all(|mark| (timeline.begin..=timeline.end).contains(&mark.begin))
    );
}

/// Replaces the sums of all windows by their stretches, in a second walk.
fn refined(
    events: &[One],
    window: &Window,
    picture: &Picture,
    windows: &[(u64, u64)],
) -> TimelineReport {
    let mut timeline = picture.timeline.clone().expect("it was asked for");
    timeline.windows = windows
        .iter()
        .map(|(begin, end)| TimelineWindow {
            begin: *begin,
            end: *end,
            ..TimelineWindow::default()
        })
        .collect();
    let plan: StretchPlan = timeline.plan();
    let found = Timeline::of_plan(&plan, window.clone());
    let mut study = Study::default();
    let found = study.add(found);
    let found = walk(&mut study, events).take(found);
    timeline.refine(&plan, found, &study.walked(), &builtin_names(None));
    timeline
}

fn any_events() -> impl Strategy<Value = Vec<One>> {
    let one = (
        prop_oneof![0..5u64, 0..1_000u64, 0..5_000_000u64],
        -1..4i32,
        0..9i32,
        0..KINDS.len(),
        0..9i32,
        any::<u64>(),
    );
    prop::collection::vec(one, 0..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_comes_lanes_add_up(
        events in any_events(),
        cells in 0usize..400,
        part in prop::option::of((0u64..4, 1u64..4)),
    ) {
        let length: u64 = 1_000 + events.iter().map(|one| one.0).sum::<u64>();
        let window = Window {
            time: part.map(|(from, parts)| (length / 4 * from, length / 4 * (from + parts))),
            ..Window::default()
        };
        let whole = part.is_none();
        let all = picture(&events, &window, limits(1_000_000));
        check(&all, whole);
        let few = picture(&events, &window, limits(cells));
        check(&few, whole);
        let (all, of_few) = (all.timeline.expect("asked for"), few.timeline.as_ref().expect("asked for"));
        let count: usize = of_few.lanes.iter().map(|lane| lane.cells.len()).sum();
        prop_assert!(count <= cells.max(16 * of_few.lanes.len()), "{} cells", count);
        // CPUs' sums may hold what a task was known to be then.
        for ((id, few), (other, all)) in sums(of_few).iter().zip(&sums(&all)) {
            prop_assert_eq!(id, other);
            if !id.starts_with("cpu-") {
                prop_assert_eq!(few, all, "{}", id);
            }
        }
        let middle = length / 2;
        let windows = [(middle, middle + length / 8), (0, length / 3)];
        let refined_timeline = refined(&events, &window, &few, &windows);
        prop_assert_eq!(sums(&refined_timeline), sums(of_few));
        for (lane, same) in refined_timeline.lanes.iter().zip(&all.lanes) {
            for cell in &lane.cells {
                let touched = windows.iter().any(|(begin, end)| cell.start() < *end && *begin < cell.end());
                let is_sum = matches!(cell, Cell::Sum(_));
                prop_assert!(!is_sum || !touched || lane.group == LaneGroup::Cpus, "{}", lane.id);
                if let (Cell::One(_), true) = (cell, lane.group != LaneGroup::Cpus) {
                    let is_same = |other: &Cell| (other.start(), other.end()) == (cell.start(), cell.end());
                    prop_assert!(same.cells.iter().any(is_same));
                }
            }
        }
    }
}
