//! Recordings as Parquet files, in a folder that holds those of many hosts and days.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use analysis::ProfileOf;
use anyhow::{Context, Result, anyhow};
use event::Quality;
use export::{ExportWalk, FirstWalk, StoredDetail};
use mask::NameMask;
use render::ClockUnit;
use render::info::Head;
use render::store::{RecordingSummary, StoreTable, StoredRows, StoredRun};
use session::{NamedGuest, PictureOptions, PictureWalk, RecordingPicture, Session};
use stacks::Stacks;
use store::{RunId, RunWriter, SCHEMA_VERSION, StoreError, StorePlace};

use super::single::{SecondWish, second};
use crate::commands::diagnosed::{diagnosed, warn_without_exits};
use crate::commands::export::args::{ExportArgs, StoreArgs};
use crate::commands::info::head;
use crate::opening::{self, AccompanyingFiles};
use crate::output;
use crate::usage::Usage;

/// What a host is called whose recording does not name it.
const NAMELESS: &str = "unknown";
/// A recording that says it began later than this from now was made by a clock that is wrong.
const FUTURE: Duration = Duration::from_secs(24 * 3600);

/// Writes each recording into the store. One that cannot be read is named and left out, and the others are written.
pub(super) fn run(args: &ExportArgs) -> Result<()> {
    if super::to_standard_output(args) {
        return Err(Usage::error(
            "a store of recordings is a folder; name it with -o DIR",
        ));
    }
    if args.common.filter.any() {
        return Err(Usage::error(
            "a store has whole recordings, so that sums of many are right: filters are for SQL's WHERE",
        ));
    }
    if args.table.is_some() || !args.path.is_empty() {
        return Err(Usage::error(
            "a store has the same tables of every recording: --table and --path are for other kinds of files",
        ));
    }
    let recordings = args.guests.recordings.or_newest()?;
    if recordings.len() > 1 && !args.guests.named.is_empty() {
        return Err(Usage::error(
            "--guest is for the guests of one host: name one recording with it",
        ));
    }
    if recordings.len() > 1 && args.store.host.is_some() {
        return Err(Usage::error(
            "--host names the host of one recording, and there are several",
        ));
    }
    let mask = args.store.mask.as_deref().map(read_mask).transpose()?;
    let mut failed = 0;
    for path in recordings.iter() {
        let recording = StoredRecording {
            args,
            path,
            guests: &args.guests.named,
            mask: mask.as_ref(),
        };
        match recording.write() {
            Ok(text) => output::print(&text)?,
            // It is where it belongs.
            Err(error) if is_stored(&error) => {
                output::print(&format!("{}: {error:#}\n", path.display()))?;
            }
            // The one recording's error is the command's.
            Err(error) if recordings.len() == 1 => return Err(error),
            Err(error) => {
                failed += 1;
                let (error, path) = (format!("{error:#}"), path.display().to_string());
                let named = error.starts_with(&path);
                let path = if named { String::new() } else { path + ": " };
                writeln!(io::stderr(), "not stored: {path}{error}")?;
            }
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(anyhow!(
            "{} of {} recordings are not in the store; the others are",
            failed,
            recordings.len()
        )),
    }
}

fn is_stored(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(StoreError::Compacted { .. }))
}

/// Reads the key that masks names.
pub(in crate::commands) fn read_mask(path: &Path) -> Result<NameMask> {
    let key = fs::read(path).with_context(|| path.display().to_string())?;
    let key = key.trim_ascii();
    NameMask::new(key).ok_or_else(|| {
        Usage::error(format!(
            "{}: a key has at least {} bytes; 'openssl rand -hex 32' makes one",
            path.display(),
            NameMask::LEAST_KEY
        ))
    })
}

/// A recording that is written into a store.
struct StoredRecording<'a> {
    args: &'a ExportArgs,
    path: &'a Path,
    guests: &'a [NamedGuest],
    mask: Option<&'a NameMask>,
}

/// When a recording began.
struct RecordingDay {
    day: String,
    started_unix_ns: Option<u64>,
    source: &'static str,
}

impl StoredRecording<'_> {
    /// Writes it. Returns what is said of it.
    fn write(&self) -> Result<String> {
        let beside = AccompanyingFiles {
            mtree: self.args.mtree.as_deref(),
            empty: true,
            with_guests: true,
            ..AccompanyingFiles::default()
        };
        let guests = self.guests.iter().map(|guest| guest.path.as_path());
        let given: Vec<&Path> = std::iter::once(self.path).chain(guests).collect();
        let session = opening::session(&self.args.common, &beside, &given)?;
        let host = session.host(self.path, self.guests)?;
        host.picture_then(&PictureOptions::to_store(), |picture, walk| {
            self.write_picture(picture, walk, &session)
        })?
    }

    fn write_picture(
        &self,
        recorded: RecordingPicture,
        walk: &PictureWalk<'_, '_>,
        session: &Session,
    ) -> Result<String> {
        let RecordingPicture {
            mut picture,
            header,
            formats_missing,
            flames,
            ..
        } = recorded;
        warn_without_exits(&mut picture, formats_missing, session);
        let diagnosis = diagnosed(&mut picture, session);
        let head = head(&header);
        let args = &self.args.store;
        let day = self.day(&head, &picture.info)?;
        let name = self.host_name(&head);
        let run = RunId::of(content(&name, &day.day, &head, &picture.info).as_bytes());
        let place = StorePlace::new(&day.day, &self.file_name(&name), run)?;
        let version = env!("CARGO_PKG_VERSION");
        let stored = StoredRun {
            role: label(args, |name| name == "role"),
            labels: label(args, |name| name != "role"),
            started_unix_ns: day.started_unix_ns,
            time_source: Some(day.source),
            input: full_path(self.path),
            guests: Some(picture.guests.join(",")).filter(|names| !names.is_empty()),
            trapline: version,
            schema: SCHEMA_VERSION,
        };
        let stacks: Vec<(&'static str, &Stacks)> = flames
            .iter()
            .map(|one| (kind_of(one.report.of), &one.report.stacks))
            .collect();
        let summary = RecordingSummary {
            picture: &picture,
            diagnosis: &diagnosis,
            head: &head,
            facts: session.facts(),
            stacks: &stacks,
            run: &stored,
        };
        let mut writer =
            RunWriter::begin(&self.args.output, place, (&name, run), version, self.mask)?;
        for table in StoreTable::ALL {
            if table.is_detail() && !args.detail {
                continue;
            }
            writer.open(table)?;
            let mut failed: Option<StoreError> = None;
            summary.rows(table, &mut |rows| {
                if failed.is_none() {
                    failed = writer.put(table, rows).err();
                }
            });
            failed.map_or(Ok(()), Err)?;
        }
        if args.detail {
            self.detail(&mut writer, walk, session, picture.isa)?;
        }
        let rows = writer.commit()?;
        // The table of recordings keeps which they are.
        output::note_doubts(&picture.quality);
        Ok(self.account(&picture.quality, (&name, run), &day, &rows))
    }

    /// Returns what is said of a recording that was stored.
    fn account(
        &self,
        quality: &Quality,
        (host, run): (&str, RunId),
        day: &RecordingDay,
        rows: &[(StoreTable, u64)],
    ) -> String {
        let doubts = match quality.all_doubts().iter().len() {
            0 => "no warning".to_owned(),
            number => words::plural(number as u64, "warning"),
        };
        let mut text = format!(
            "stored {}: host {host}, day {}, run {run}, {}, {}\n",
            self.path.display(),
            day.day,
            words::plural(
                rows.iter()
                    .map(|(_, rows)| *rows)
                    .fold(0u64, u64::saturating_add),
                "row"
            ),
            match (quality.lost_events, quality.truncated) {
                (0, false) => doubts,
                (lost, false) => format!("{lost} events lost, {doubts}"),
                (0, true) => format!("cut off, {doubts}"),
                (lost, true) => format!("cut off, {lost} events lost, {doubts}"),
            }
        );
        if host == NAMELESS {
            text.push_str("The recording does not name its host. --host NAME says it.\n");
        }
        if day.source == "file" {
            text.push_str(
                "The recording does not say when it was made: the day is that of the file. --day DAY says it.\n",
            );
        }
        if is_future(day.started_unix_ns) {
            text.push_str(
                "That day is in the future: the clock that says so was wrong. --day DAY says it.\n",
            );
        }
        text
    }

    /// Walks the recording a second time, for single things.
    fn detail(
        &self,
        writer: &mut RunWriter<'_>,
        walk: &PictureWalk<'_, '_>,
        session: &Session,
        isa: Option<event::Isa>,
    ) -> Result<()> {
        let names = session.devices().names(isa);
        let mut known = FirstWalk::new(&walk.walked, &names);
        if let Some(tasks) = &walk.tasks {
            known = known.with_guests(&walk.walked, &tasks.get());
        }
        let guests = &walk.paired.guests;
        let mut wanted = paths::all_builtin();
        if !guests.is_empty() {
            wanted.extend(paths::with_guests());
        }
        let wish = SecondWish {
            spans: true,
            by_task: true,
            exits: true,
            paths: true,
            moments: false,
        };
        let (study, sources) = second(wish, &wanted, walk.recording, guests);
        let clock = ClockUnit::of(walk.recording.nanoseconds());
        let mut failed: Option<StoreError> = None;
        let mut take = |table: StoreTable, rows: &dyn StoredRows| {
            failed = writer.put(table, rows).err();
            failed.is_none()
        };
        let mut into = StoredDetail::new(clock, walk.tasks.is_some(), &mut take);
        let mut write = |made: &mut Vec<u8>| {
            made.clear();
            std::ops::ControlFlow::Continue(())
        };
        let mut second = ExportWalk::new(study, sources, &known, &mut into, &mut write);
        walk.recording.walk_with(guests, &mut second);
        second.finish();
        Ok(failed.map_or(Ok(()), Err)?)
    }

    /// Returns the day of the recording, and what says so.
    fn day(&self, head: &Head, info: &analysis::InfoReport) -> Result<RecordingDay> {
        let recorded = head.started_unix_ns(info);
        if let Some(day) = &self.args.store.day {
            return Ok(RecordingDay {
                day: day.clone(),
                // The time of day may be right where the day is not, or neither.
                started_unix_ns: recorded.filter(|ns| store::day_of(*ns) == *day),
                source: "given",
            });
        }
        if let Some((ns, (_, source))) = recorded.zip(head.wall_clock) {
            return Ok(RecordingDay {
                day: store::day_of(ns),
                started_unix_ns: Some(ns),
                source,
            });
        }
        let changed = fs::metadata(self.path).and_then(|meta| meta.modified());
        let changed = changed.ok().filter(|_| self.path.as_os_str() != "-");
        let ns = changed.and_then(unix_ns).ok_or_else(|| {
            Usage::error("the recording does not say when it was made, and no file does: say it with --day DAY")
        })?;
        Ok(RecordingDay {
            day: store::day_of(ns),
            started_unix_ns: None,
            source: "file",
        })
    }

    fn host_name(&self, head: &Head) -> String {
        let given = self.args.store.host.clone();
        let name = given.or_else(|| head.host.clone());
        name.filter(|name| !name.is_empty())
            .unwrap_or_else(|| NAMELESS.to_owned())
    }

    /// Returns the host's name as the names of files have it.
    fn file_name(&self, host: &str) -> String {
        self.mask
            .map_or_else(|| host.to_owned(), |mask| mask.name(host))
    }
}

/// Returns what stacks are of, in a word.
fn kind_of(of: ProfileOf) -> &'static str {
    match of {
        ProfileOf::OnCpu => "on_cpu",
        ProfileOf::OffCpu => "off_cpu",
        ProfileOf::Both => "both",
        ProfileOf::Exits => "exits",
    }
}

/// Returns what no other recording of the store has: what is in it, whatever the file is called and however it is
/// packed. Whoever gives one recording to several hosts or days makes several of it.
fn content(host: &str, day: &str, head: &Head, info: &analysis::InfoReport) -> String {
    let mut lines = vec![
        format!("host {host:?} day {day}"),
        format!("kernel {:?}", head.kernel),
        format!("clock {:?} {:?}", head.clock, head.wall_clock),
        format!("time {:?} {:?}", info.start, info.end),
    ];
    let events = info.events.iter();
    let mut events: Vec<String> = events
        .filter(|kind| kind.count > 0)
        .map(|kind| format!("{} {}", kind.name, kind.count))
        .collect();
    events.sort();
    lines.extend(events);
    lines.join("\n")
}

/// Returns the labels that are asked for: the value of one, or all with their names.
fn label(args: &StoreArgs, wanted: impl Fn(&str) -> bool) -> Option<String> {
    let chosen = args.label.iter().filter(|(name, _)| wanted(name));
    let texts: Vec<String> = chosen
        .map(|(name, value)| match name.as_str() {
            "role" => value.clone(),
            _ => format!("{name}={value}"),
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

/// Returns the path by which others find a recording; standard input has none.
fn full_path(path: &Path) -> String {
    let full = std::path::absolute(path).ok();
    let full = full.filter(|_| path.as_os_str() != "-");
    full.map_or_else(
        || path.display().to_string(),
        |full| full.display().to_string(),
    )
}

fn unix_ns(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

fn is_future(started_unix_ns: Option<u64>) -> bool {
    let limit = unix_ns(SystemTime::now() + FUTURE);
    started_unix_ns
        .zip(limit)
        .is_some_and(|(started, limit)| started > limit)
}
