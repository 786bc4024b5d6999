//! What the parts of a page cost, in milliseconds: the picture that `report` prints, that of a page without and with a
//! timeline, the second look at times of interest, the timeline as JSON, and that packed.
//!
//! `cargo run --release -p report --example page_cost -- RECORDING [RUNS]`
//!
//! Every part is made RUNS times, with one thread, and the least time counts.

use std::error::Error;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use miniz_oxide::deflate::compress_to_vec;
use session::{PictureOptions, Session, SessionOptions};

/// Runs something several times. Returns what the last run made, and the least time.
fn least<R>(
    runs: usize,
    mut run: impl FnMut() -> Result<R, Box<dyn Error>>,
) -> Result<(R, Duration), Box<dyn Error>> {
    let mut timed = || {
        let start = Instant::now();
        let made = run()?;
        Ok::<_, Box<dyn Error>>((made, start.elapsed()))
    };
    let (mut made, mut time) = timed()?;
    for _ in 1..runs {
        let (again, took) = timed()?;
        (made, time) = (again, took.min(time));
    }
    Ok((made, time))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("give a recording")?;
    let runs: usize = args.next().map_or(Ok(3), |text| text.parse())?;
    let session = Session::open(SessionOptions {
        threads: 1,
        ..SessionOptions::default()
    })?;
    let input = session.input(file.as_ref())?;
    let mut out = io::stdout().lock();
    let mut say = |what: &str, time: Duration, more: String| {
        writeln!(out, "{:8.1} ms  {what}{more}", time.as_secs_f64() * 1e3)
    };
    let printed = PictureOptions::default();
    let (_, time) = least(runs, || Ok(input.picture(&printed)?))?;
    say("picture", time, String::new())?;
    let options = PictureOptions::to_report();
    let without = PictureOptions {
        timeline: false,
        ..options.clone()
    };
    let (_, time) = least(runs, || Ok(input.picture(&without)?))?;
    say("picture of a page, without a timeline", time, String::new())?;
    let picture = || Ok(input.picture(&options)?.picture);
    let (picture, time) = least(runs, picture)?;
    say("picture of a page", time, String::new())?;
    let case = rules::Case {
        picture: &picture,
        facts: None,
        domain: None,
    };
    let (diagnosis, time) = least(runs, || Ok(rules::diagnose(&[case])))?;
    say("rules", time, String::new())?;
    let mut time = Duration::MAX;
    let mut looked = None;
    for _ in 0..runs {
        let mut picture = input.picture(&options)?.picture;
        let start = Instant::now();
        input.details(&mut picture, &diagnosis.findings)?;
        time = time.min(start.elapsed());
        looked = picture.timeline;
    }
    let timeline = looked.ok_or("there is no timeline")?;
    let events: usize = timeline.windows.iter().map(|one| one.events.len()).sum();
    let counts = format!(
        ": {} windows, {events} events, {} lanes",
        timeline.windows.len(),
        timeline.lanes.len()
    );
    say("second look", time, counts)?;
    let (json, time) = least(runs, || {
        Ok(report::timeline_data::json(
            &timeline,
            picture.all_paths(),
            &picture.examples,
        ))
    })?;
    say("JSON", time, format!(": {} bytes", json.len()))?;
    for level in [1, 2, 3, 6] {
        let (packed, time) = least(runs, || Ok(compress_to_vec(json.as_bytes(), level)))?;
        let what = format!("packed at level {level}");
        say(&what, time, format!(": {} bytes", packed.len()))?;
    }
    Ok(())
}
