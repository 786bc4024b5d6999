//! What each analysis costs, in nanoseconds an event: the time of a walk with all that rules look at, less the time of
//! one without it. All events of the recording count. What several analyses need in common, such as events in their
//! order, is in none of these: a walk without all of them is the last line.
//!
//! `cargo run --release -p session --example analysis_cost -- RECORDING [RUNS [NAME...]]`
//!
//! On a machine that is not quiet, instructions say more than time: with `once` for RUNS it walks once, without the
//! named analyses, and a tool that counts (`valgrind --tool=callgrind`, `perf stat -e instructions:u`) shows what that
//! took. What an analysis costs is the difference of two such runs.
//!
//! Each pair of walks is made one after the other, with one thread, and the median of the pairs' differences counts,
//! with the middle half of them behind it: what that is wide is noise.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use analysis::{
    Continuity, ExitOptions, Exits, Faults, Handling, IdleWakeups, Irqs, MainLoops, Moves,
    NestedExits, Progress, Recorder, RecordingContents, SchedLatencies, Signs, Sleeps, Stalls,
    Study, Timers, Unmaps, Vcpus, VmmSleeps, Window,
};
use source::{ReaderOptions, RecordingBytes};

/// Adds an analysis to a study.
type AddAnalysis = fn(&mut Study);

macro_rules! analyses {
    ($($name:literal: $make:expr),* $(,)?) => {
        [$(($name, (|study| drop(study.add($make))) as AddAnalysis)),*]
    };
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("give a recording")?;
    let runs = args.next();
    let once = runs.as_deref() == Some("once");
    let runs: usize = match once {
        true => 0,
        false => runs.map_or(Ok(9), |text| text.parse())?,
    };
    let only: Vec<String> = args.collect();
    let recording = RecordingBytes::open(Path::new(&file))?;
    let all = analyses![
        "vcpus": Vcpus::new(Window::default()),
        "sched": SchedLatencies::new(),
        "sleeps": Sleeps::new(),
        "signs": Signs::new(),
        "faults": Faults::new(),
        "timers": Timers::new(),
        "handling": Handling::new(),
        "moves": Moves::new(),
        "progress": Progress::new(),
        "unmaps": Unmaps::new(),
        "nested exits": NestedExits::new(),
        "VMM sleeps": VmmSleeps::new(),
        "main loops": MainLoops::new(),
        "idle wake-ups": IdleWakeups::new(),
        "stalls": Stalls::new(),
        "recorder": Recorder::new(false, Window::default()),
        "interrupts": Irqs::new(),
        "continuity": Continuity::new(),
    ];
    if once {
        let mut study = Study::default();
        study.add(Exits::new(ExitOptions {
            split: true,
            ..ExitOptions::default()
        }));
        let left = all
            .iter()
            .filter(|(name, _)| !only.iter().any(|one| one == name));
        left.for_each(|(_, add)| add(&mut study));
        let reader = recording.reader(ReaderOptions {
            threads: 1,
            ..ReaderOptions::default()
        })?;
        reader.walk(&mut study);
        return Ok(());
    }
    let walk = |without: Option<usize>, alone: bool| -> Result<Duration, Box<dyn Error>> {
        let mut study = Study::default();
        study.add(Exits::new(ExitOptions {
            split: true,
            ..ExitOptions::default()
        }));
        let others = all
            .iter()
            .enumerate()
            .filter(|(at, _)| !alone && without != Some(*at));
        others.for_each(|(_, (_, add))| add(&mut study));
        let reader = recording.reader(ReaderOptions {
            threads: 1,
            ..ReaderOptions::default()
        })?;
        let begin = Instant::now();
        reader.walk(&mut study);
        Ok(begin.elapsed())
    };
    let mut pairs = vec![Vec::new(); all.len() + 1];
    let mut with_all = Duration::MAX;
    for run in 0..runs {
        for (at, differences) in pairs.iter_mut().enumerate() {
            let name = all.get(at).map_or("all but exits", |(name, _)| *name);
            if !only.is_empty() && !only.iter().any(|one| one == name) {
                continue;
            }
            let one = || walk(None, false);
            let other = || walk(Some(at), at == all.len());
            // Whichever comes first finds the caches colder.
            let (one, other) = match run % 2 {
                0 => (one()?, other()?),
                _ => {
                    let other = other()?;
                    (one()?, other)
                }
            };
            with_all = with_all.min(one);
            differences.push(one.as_secs_f64() - other.as_secs_f64());
        }
    }
    let mut study = Study::default();
    let contents = study.add(RecordingContents::new());
    recording.reader(ReaderOptions::default())?.walk(&mut study);
    let answers = study.finish();
    let report = answers.take(contents).report(&study.walked());
    let events: u64 = report.events.iter().map(|kind| kind.count).sum();
    let mut out = io::stdout().lock();
    writeln!(out, "{file}: {events} events, medians of {runs} pairs")?;
    let ns = |seconds: f64| seconds * 1e9 / events.max(1) as f64;
    writeln!(
        out,
        "{:<20}{:>8.2} ns an event",
        "all",
        ns(with_all.as_secs_f64())
    )?;
    let names = all.iter().map(|(name, _)| *name).chain(["all but exits"]);
    for (name, mut differences) in names.zip(pairs) {
        if differences.is_empty() {
            continue;
        }
        differences.sort_by(f64::total_cmp);
        let at = |part: usize| {
            ns(differences
                .get(differences.len() * part / 4)
                .copied()
                .unwrap_or(0.0))
        };
        writeln!(
            out,
            "{name:<20}{:>8.2}  ({:.2} to {:.2})",
            at(2),
            at(1),
            at(3)
        )?;
    }
    Ok(())
}
