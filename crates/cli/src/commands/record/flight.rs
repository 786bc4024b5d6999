//! The flight recorder: the last seconds, when something has happened.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use facts::Facts;
use record::file::{Feature, Features};
use record::{Flight, KeepLimit, OpenedEvents};
use session::PathWatch;
use signal_hook::consts::SIGUSR1;
use source::{RecordingBytes, RecordingReader};

use super::folder;
use crate::commands::record::args::RecordArgs;
use crate::output;

/// How long a turn lasts where no ring fills, as part of what is kept, and at least and at most: what a path took is known after two.
const TURN_PART: u32 = 10;
const SHORTEST_TURN: Duration = Duration::from_millis(50);
const LONGEST_TURN: Duration = Duration::from_millis(500);
/// What is recorded after something has happened, as part of what is kept, so that what follows is there too.
const AFTER_PART: u32 = 20;

/// Returns what stands before the records that are watched. `formats` are those of the events, without the kernel's functions, which are
/// megabytes that nobody needs for that.
pub(super) fn head(
    opened: &OpenedEvents,
    (features, side): &(Features, Vec<u8>),
    formats: Vec<u8>,
) -> Result<RecordingBytes> {
    let mut said = features.clone();
    said.set(Feature::TracingData(formats));
    let head = Flight::head(opened, &said, side);
    Ok(RecordingBytes::from_bytes("what is recorded", head)?)
}

/// Begins to watch the path that was named, if one was.
pub(super) fn watch<'r>(
    args: &RecordArgs,
    facts: &Facts,
    head: &'r RecordingReader<'_>,
) -> Result<Option<PathWatch<'r>>> {
    let Some(until) = &args.until else {
        return Ok(None);
    };
    let path = session::read_path_of("--until", &until.path)?;
    let kallsyms = || fs::read("/proc/kallsyms").unwrap_or_default();
    let watch = PathWatch::new(head, path, until.bound_ns, facts, kallsyms)?;
    Ok(Some(watch))
}

/// The flight recorder at work.
pub(super) struct Recorder<'a> {
    args: &'a RecordArgs,
    facts: &'a Facts,
    flight: Flight,
    watch: Option<PathWatch<'a>>,
    begun: Instant,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicBool>,
    written: u32,
    bytes: u64,
}

impl<'a> Recorder<'a> {
    /// Begins. `watch` looks at what is recorded.
    pub(super) fn begin(
        args: &'a RecordArgs,
        facts: &'a Facts,
        keep: Duration,
        opened: OpenedEvents,
        (features, side): (Features, Vec<u8>),
        watch: Option<PathWatch<'a>>,
        stop: Arc<AtomicBool>,
    ) -> Result<Recorder<'a>> {
        let asked = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&asked))?;
        let keep = KeepLimit {
            time: keep,
            bytes: usize::try_from(args.memory).unwrap_or(usize::MAX),
        };
        let begun = Instant::now();
        let flight = Flight::begin(opened, features, side, keep, Duration::ZERO)?;
        Ok(Recorder {
            args,
            facts,
            flight,
            watch,
            begun,
            stop,
            asked,
            written: 0,
            bytes: 0,
        })
    }

    /// Records until enough was written, the command ends, time is over or somebody says so.
    pub(super) fn run(&mut self, child: &mut Option<Child>) -> Result<()> {
        let begun = self.begun;
        let until = self.args.seconds.map(|time| begun + time);
        if child.is_none() && until.is_none() {
            say_keeping(self.args)?;
        }
        while !self.stop.load(Ordering::Relaxed) && self.written < self.args.times {
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let status = child.as_mut().map(Child::try_wait).transpose()?.flatten();
            if let Some(status) = status {
                if !status.success() {
                    self.turn(false)?;
                    self.write(&format!("the command ended with {status}"))?;
                }
                break;
            }
            if let Some(why) = self.turn(false)? {
                self.follow_up()?;
                self.write(&why)?;
            } else if self.asked.swap(false, Ordering::Relaxed) {
                self.write("SIGUSR1 came")?;
            }
        }
        if self.written < self.args.times {
            // What completed since the last look.
            if let Some(why) = self.turn(true)? {
                self.write(&why)?;
            }
        }
        self.end()
    }

    /// Takes over what the rings have and looks at it. Returns what took too long, if something did; at the `last` look nothing waits for
    /// what may come.
    fn turn(&mut self, last: bool) -> Result<Option<String>> {
        let begun = self.begun;
        let keep = self.args.keep.unwrap_or_default();
        let turn = (keep / TURN_PART).clamp(SHORTEST_TURN, LONGEST_TURN);
        let round = self.flight.turn(turn, || begun.elapsed())?;
        let (Some(watch), Some(until)) = (&mut self.watch, &self.args.until) else {
            return Ok(None);
        };
        let found = watch.look(&round, last);
        let longest = found.iter().max_by_key(|one| one.total_ns);
        Ok(longest.map(|one| {
            format!(
                "path {}: an instance took {}, which began at {}",
                until.path,
                words::duration::human(one.total_ns),
                words::duration::seconds(one.begin_ns)
            )
        }))
    }

    /// Records what follows. Whatever is slow meanwhile is in the same recording.
    fn follow_up(&mut self) -> Result<()> {
        let keep = self.args.keep.unwrap_or_default();
        let end = Instant::now() + keep / AFTER_PART;
        while Instant::now() < end && !self.stop.load(Ordering::Relaxed) {
            self.turn(false)?;
        }
        Ok(())
    }

    /// Writes what is kept.
    fn write(&mut self, why: &str) -> Result<()> {
        let kept = self.begun.elapsed().saturating_sub(self.flight.since());
        let room = self.args.disk.saturating_sub(self.bytes);
        if self.flight.bytes() > room {
            bail!(no_room(why, self.flight.bytes(), room));
        }
        let folder = folder(self.args, self.written + 1)?;
        folder.facts(self.facts)?;
        let written = self.flight.write(folder.file("perf.data")?);
        let bytes = written.with_context(|| folder.failed())?;
        self.bytes += bytes;
        self.written += 1;
        let shown = folder.shown();
        let text = format!(
            "{why}\nwrote {shown}: the last {}, {} KiB\n",
            words::duration::human(u64::try_from(kept.as_nanos()).unwrap_or(u64::MAX)),
            bytes / 1024
        );
        output::print(&text)
    }

    /// Ends, and says what there was.
    fn end(&mut self) -> Result<()> {
        let summary = self.flight.stop()?;
        if self.written == 0 {
            output::print(NOTHING)?;
        }
        if let (Some(watch), Some(until)) = (&self.watch, &self.args.until) {
            let seen = words::plural(watch.seen(), "instance");
            output::print(&format!("path {}: {seen} completed\n", until.path))?;
        }
        if let Some(lost @ 1..) = summary.lost() {
            writeln!(
                io::stderr(),
                "{} found no room in a ring and are lost: take larger rings with --ring, or ask for less with --for",
                words::plural(lost, "event")
            )?;
        }
        Ok(())
    }
}

/// Says that a recording was not written, as it is larger than what is left of --disk.
pub(super) fn no_room(why: &str, bytes: u64, room: u64) -> String {
    format!(
        "{why}; the recording has {} KiB, and --disk leaves room for {} KiB: it was not written",
        bytes.div_ceil(1024),
        room / 1024
    )
}

/// What is said where nothing triggered.
pub(super) const NOTHING: &str = "Nothing happened that was waited for: nothing was written.\n";

/// Says that the recorder waits.
pub(super) fn say_keeping(args: &RecordArgs) -> io::Result<()> {
    let keep = u64::try_from(args.keep.unwrap_or_default().as_nanos());
    let keep = words::duration::human(keep.unwrap_or(u64::MAX));
    writeln!(io::stderr(), "keeping the last {keep}; Ctrl-C ends it")
}

/// Makes the folder of one of several recordings.
pub(super) fn folder(args: &RecordArgs, number: u32) -> Result<folder::Made> {
    let output = args.output.as_deref();
    let output = output.map(|path| numbered(path, number, args.times));
    folder::make(output.as_deref())
}

/// Returns the folders that were named, each of which is made when it is written.
pub(super) fn names(args: &RecordArgs) -> impl Iterator<Item = PathBuf> {
    args.output.iter().flat_map(move |path| {
        (1..=args.times).map(move |number| numbered(path, number, args.times))
    })
}

fn numbered(path: &Path, number: u32, of: u32) -> PathBuf {
    if of == 1 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-{number}"));
    PathBuf::from(name)
}
