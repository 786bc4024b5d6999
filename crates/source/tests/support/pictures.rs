//! Pictures of recordings, as `trapline diagnose` takes them.

use analysis::{
    Answers, Continuity, Counters, ExitOptions, Exits, Faults, Handle, Handling, IdleWakeups, Ipis,
    Irqs, MainLoops, Moves, NestedExits, Picture, PictureContext, PictureHandles, Progress,
    Recorder, RecordingContents, SampledTime, SchedLatencies, Signs, Sleeps, Stalls, Study, Timers,
    Unmaps, Vcpus, VmmSleeps, Window,
};
use event::Quality;
use paths::Paths;
use symbols::KernelFunctions;

/// Adds everything that rules look at to a study.
pub(crate) fn ask(study: &mut Study, mut follower: Paths) -> (PictureHandles, Handle<SampledTime>) {
    let ipis = Ipis::new(&mut follower);
    let split = ExitOptions {
        split: true,
        ..ExitOptions::default()
    };
    let handles = PictureHandles {
        info: study.add(RecordingContents::new()),
        exits: study.add(Exits::new(split)),
        vcpus: study.add(Vcpus::new(Window::default())),
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
        recorder: study.add(Recorder::new(false, Window::default())),
        ipis: study.add(ipis),
        irqs: Some(study.add(Irqs::new())),
        counters: Some(study.add(Counters::new(Window::default()))),
        paths: Some(study.add(follower)),
        continuity: Some(study.add(Continuity::new())),
        timeline: None,
        guests: None,
    };
    (handles, study.add(SampledTime::new(&[], false)))
}

/// Returns the picture of a walk that has ended.
pub(crate) fn picture(
    handles: PictureHandles,
    answers: &mut Answers,
    study: &Study,
    quality: Quality,
) -> Picture {
    let context = PictureContext {
        keep: None,
        functions: KernelFunctions::default(),
        names: &|isa| analysis::builtin_names(isa),
    };
    let mut picture = Picture::of(handles, answers, &study.walked(), context);
    picture.quality = quality;
    let raised = answers.doubts.iter().flat_map(|(_, doubts)| doubts.iter());
    picture.quality.doubts.extend(raised.cloned());
    picture
}
