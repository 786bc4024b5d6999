//! What each analysis costs, in nanoseconds an event: the time of a walk with it and the one that nearly all commands
//! ask for (exits with states), less the time of a walk with that one alone. All events of the recording count.
//!
//! `cargo run --release -p session --example analysis_cost -- RECORDING [RUNS]`
//!
//! Walks are made in turn with one thread, and the least time of each counts, which other work of the machine disturbs
//! least. A difference of less than some tenths of a nanosecond is noise.

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
    let runs: usize = args.next().map_or(Ok(9), |text| text.parse())?;
    let recording = RecordingBytes::open(Path::new(&file))?;
    let all = analyses![
        "exits with states (alone)": RecordingContents::new(),
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
    let walk = |add: Option<AddAnalysis>| -> Result<Duration, Box<dyn Error>> {
        let mut study = Study::default();
        study.add(Exits::new(ExitOptions {
            split: true,
            ..ExitOptions::default()
        }));
        if let Some(add) = add {
            add(&mut study);
        }
        let reader = recording.reader(ReaderOptions {
            threads: 1,
            ..ReaderOptions::default()
        })?;
        let begin = Instant::now();
        reader.walk(&mut study);
        Ok(begin.elapsed())
    };
    let mut least = vec![Duration::MAX; all.len()];
    for _ in 0..runs {
        for (at, (_, add)) in all.iter().enumerate() {
            let add = (at > 0).then_some(*add);
            least[at] = least[at].min(walk(add)?);
        }
    }
    let mut study = Study::default();
    let contents = study.add(RecordingContents::new());
    recording.reader(ReaderOptions::default())?.walk(&mut study);
    let answers = study.finish();
    let report = answers.take(contents).report(&study.walked());
    let events: u64 = report.events.iter().map(|kind| kind.count).sum();
    let mut out = io::stdout().lock();
    writeln!(out, "{file}: {events} events, least of {runs} runs")?;
    let ns = |time: Duration| time.as_nanos() as f64 / events.max(1) as f64;
    let base = least.first().copied().map_or(0.0, ns);
    for ((name, _), time) in all.iter().zip(&least) {
        let cost = ns(*time) - if *time == least[0] { 0.0 } else { base };
        writeln!(out, "{name:<28}{cost:>8.2} ns an event")?;
    }
    Ok(())
}
