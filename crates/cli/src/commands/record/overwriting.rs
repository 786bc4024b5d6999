//! The flight recorder where only a signal or the command's end triggers: nobody looks at events meanwhile, so the kernel keeps them, and
//! the recorder sleeps.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use facts::Facts;
use record::file::Features;
use record::{OpenedEvents, Overwriting, ShortRing};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use super::flight;
use crate::commands::record::args::RecordArgs;
use crate::output;

/// How long the recorder sleeps where nothing wakes it.
const SLEEP: Duration = Duration::from_secs(3600);

/// The recorder.
pub(super) struct Recorder<'a> {
    args: &'a RecordArgs,
    facts: &'a Facts,
    flight: Overwriting,
    begun: Instant,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicBool>,
    /// Has something to read when a signal came.
    woken: UnixStream,
    written: u32,
    bytes: u64,
}

impl<'a> Recorder<'a> {
    /// Begins.
    pub(super) fn begin(
        args: &'a RecordArgs,
        facts: &'a Facts,
        keep: Duration,
        opened: OpenedEvents,
        (features, side): (Features, Vec<u8>),
        stop: Arc<AtomicBool>,
    ) -> Result<Recorder<'a>> {
        let asked = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&asked))?;
        let (woken, wakes) = UnixStream::pair()?;
        // Registered behind the flags, so that these are set before anybody wakes.
        for signal in [SIGUSR1, SIGCHLD, SIGINT, SIGTERM, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, wakes.try_clone()?)?;
        }
        let flight = Overwriting::begin(opened, features, side, keep, Duration::ZERO)?;
        // Only now all events are on.
        let begun = Instant::now();
        Ok(Recorder {
            args,
            facts,
            flight,
            begun,
            stop,
            asked,
            woken,
            written: 0,
            bytes: 0,
        })
    }

    /// Records until enough was written, the command ends, time is over or somebody says so.
    pub(super) fn run(&mut self, child: &mut Option<Child>) -> Result<()> {
        let until = self.args.seconds.map(|time| self.begun + time);
        if child.is_none() && until.is_none() {
            flight::say_keeping(self.args)?;
        }
        while !self.stop.load(Ordering::Relaxed) && self.written < self.args.times {
            let status = child.as_mut().map(Child::try_wait).transpose()?.flatten();
            if let Some(status) = status {
                if !status.success() {
                    self.write(&format!("the command ended with {status}"))?;
                }
                break;
            }
            if self.asked.swap(false, Ordering::Relaxed) {
                self.write("SIGUSR1 came")?;
                continue;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            self.sleep(left.unwrap_or(SLEEP))?;
        }
        self.end()
    }

    /// Sleeps until a signal comes, at most for a time.
    fn sleep(&mut self, at_most: Duration) -> Result<()> {
        // No time at all would be no limit.
        let at_most = at_most.max(Duration::from_millis(1));
        self.woken.set_read_timeout(Some(at_most))?;
        match self.woken.read(&mut [0; 64]) {
            Err(error)
                if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Err(error.into())
            }
            _ => Ok(()),
        }
    }

    /// Writes what is kept.
    fn write(&mut self, why: &str) -> Result<()> {
        let room = self.args.disk.saturating_sub(self.bytes);
        let begun = self.begun;
        let held = self.flight.hold(|| begun.elapsed())?;
        if held.bytes() > room {
            bail!(flight::no_room(why, held.bytes(), room));
        }
        let folder = flight::folder(self.args, self.written + 1)?;
        let (time, until_ns) = (held.time(), held.until_ns());
        let short = held.short().to_vec();
        let written = held.write(folder.file("perf.data")?);
        let bytes = written.with_context(|| folder.failed())?;
        folder.facts(self.facts)?;
        self.bytes += bytes;
        self.written += 1;
        let mut text = format!(
            "{why}\nwrote {}: the last {}, {} KiB\n",
            folder.shown(),
            words::duration::human(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            bytes / 1024
        );
        // Who has said how large rings are has to say more, whatever --memory is.
        let more = match self.args.ring {
            Some(_) => "--ring",
            None => "--memory",
        };
        text.push_str(&short_rings_text(&short, until_ns, more));
        output::print(&text)
    }

    /// Ends, and says what there was.
    fn end(&mut self) -> Result<()> {
        let summary = self.flight.stop()?;
        if self.written == 0 {
            output::print(flight::NOTHING)?;
        }
        // Nothing else is lost in rings that go over what is old.
        if let Some(lost @ 1..) = summary.lost().filter(|_| self.written > 1) {
            writeln!(
                io::stderr(),
                "{} came while a recording was written, and are in none",
                words::plural(lost, "event")
            )?;
        }
        Ok(())
    }
}

/// Says which CPUs' rings held less than was to be kept.
fn short_rings_text(short: &[ShortRing], until_ns: u64, more: &str) -> String {
    let mut text = String::new();
    for one in short {
        let held = until_ns.saturating_sub(one.since_ns);
        text.push_str(&format!(
            "  CPU {}: its ring of {} KiB holds the last {} only, since {}\n",
            one.cpu,
            one.ring_bytes / 1024,
            words::duration::human(held),
            words::duration::seconds(one.since_ns)
        ));
    }
    if !short.is_empty() {
        text.push_str(&format!(
            "  Nothing before that was kept of any CPU: give more {more}, or ask for less with --for.\n"
        ));
    }
    text
}
