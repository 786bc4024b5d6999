//! A watch at work: counts, judges, keeps the last seconds, and writes incidents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use counts::{
    Choice, DroppedCounts, IncidentRules, IncidentStep, IncidentSubject, IncidentTracker,
    PATH_CONDITION, Symptom, SymptomJudge,
};
use facts::Facts;
use recording::{ArmedRecorder, ArmedTarget, KeptTime, LateInstance, RecordingNews};

use super::args::WatchArgs;
use super::note::{IncidentNote, folder_name};
use super::pages::{PageOrder, PageOutcome, PageThread};
use super::store::{IncidentStore, PAGE};
use crate::commands::recording::PrintedNews;
use crate::commands::top::watch::Watch;

/// How long a turn lasts at most: so long nobody looks whether it is to end.
const TURN: Duration = Duration::from_millis(200);
/// How often it is looked which VMs there are.
const LOOK: Duration = Duration::from_secs(10);
/// How long pages may take when a watch has ended.
const LAST_PAGES: Duration = Duration::from_secs(30);
/// Incidents of which notes can still be added to.
const MOST_NOTES: usize = 256;

/// An incident that is recorded when its time has come.
struct DueIncident {
    at: Instant,
    /// The name of its folder.
    name: String,
    note: IncidentNote,
}

/// A watch at work.
pub(super) struct HostWatcher<'a> {
    args: &'a WatchArgs,
    counter: Watch,
    recorder: ArmedRecorder<'a>,
    count_kept: &'a dyn Fn(&mut Facts, &KeptTime),
    store: IncidentStore,
    pages: PageThread,
    stop: Arc<AtomicBool>,
    judge: SymptomJudge,
    tracker: IncidentTracker,
    begun: Instant,
    due: Option<DueIncident>,
    /// What is known of incidents, by their number.
    notes: BTreeMap<u64, IncidentNote>,
    recorded: u64,
    /// Events that the recorder lost, and that counting did.
    lost: u64,
    uncounted: u64,
}

/// What a watch works with.
pub(super) struct WatcherParts<'a> {
    pub(super) counter: Watch,
    pub(super) recorder: ArmedRecorder<'a>,
    pub(super) count_kept: &'a dyn Fn(&mut Facts, &KeptTime),
    pub(super) store: IncidentStore,
    pub(super) pages: PageThread,
    pub(super) stop: Arc<AtomicBool>,
}

impl<'a> HostWatcher<'a> {
    pub(super) fn new(args: &'a WatchArgs, parts: WatcherParts<'a>) -> HostWatcher<'a> {
        let rules = IncidentRules {
            quiet_intervals: args.quiet_intervals,
            cool_down_ns: nanoseconds(args.cool_down),
            // What begins up to the end of the recording is seen at the end of an interval.
            recording_ns: nanoseconds(args.after + args.interval),
            most_an_hour: args.max_incidents,
        };
        HostWatcher {
            args,
            counter: parts.counter,
            recorder: parts.recorder,
            count_kept: parts.count_kept,
            store: parts.store,
            pages: parts.pages,
            stop: parts.stop,
            judge: SymptomJudge::new(args.limits()),
            tracker: IncidentTracker::new(rules),
            begun: Instant::now(),
            due: None,
            notes: BTreeMap::new(),
            recorded: 0,
            lost: 0,
            uncounted: 0,
        }
    }

    /// Watches until time is over or somebody ends it, and says what there was.
    pub(super) fn run(&mut self) -> Result<()> {
        // Attaching takes its time, in which one program counts already and another does not.
        self.counter.interval()?;
        self.begun = Instant::now();
        let until = self.args.time.map(|time| self.begun + time);
        let mut next = self.begun + self.args.interval;
        let mut looked = self.begun;
        while !self.stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if until.is_some_and(|until| now >= until) {
                break;
            }
            let wakes = [Some(next), until, self.due.as_ref().map(|due| due.at)];
            let wake = wakes.into_iter().flatten().min().unwrap_or(next);
            let turn = wake
                .saturating_duration_since(now)
                .clamp(Duration::from_millis(1), TURN);
            for (path, late) in self.recorder.turn(turn)? {
                self.symptom(of_path(&path, late))?;
            }
            if Instant::now() >= next {
                next = Instant::now() + self.args.interval;
                self.interval()?;
                if looked.elapsed() >= LOOK {
                    looked = Instant::now();
                    self.counter.look()?;
                }
            }
            if self
                .due
                .as_ref()
                .is_some_and(|due| Instant::now() >= due.at)
            {
                self.record()?;
            }
            while let Some(outcome) = self.pages.outcome() {
                self.page(&outcome)?;
            }
        }
        self.end()
    }

    fn now_ns(&self) -> u64 {
        nanoseconds(self.begun.elapsed())
    }

    /// Judges what was counted since the last interval.
    fn interval(&mut self) -> Result<()> {
        let counted = self.counter.interval()?;
        let named = self.counter.named(&counted, &Choice::default());
        let DroppedCounts {
            events, withheld, ..
        } = named.dropped;
        self.uncounted = self
            .uncounted
            .saturating_add(events)
            .saturating_add(withheld);
        for symptom in self.judge.interval(&named) {
            self.symptom(symptom)?;
        }
        for step in self.tracker.interval(self.now_ns()) {
            self.step(step)?;
        }
        Ok(())
    }

    fn symptom(&mut self, symptom: Symptom) -> Result<()> {
        match self.tracker.symptom(self.now_ns(), symptom) {
            Some(step) => self.step(step),
            None => Ok(()),
        }
    }

    /// Does what a step of an incident asks for.
    fn step(&mut self, step: IncidentStep) -> Result<()> {
        let at = utc_now();
        match step {
            IncidentStep::Begins { number, symptom } => {
                // One that is under way is written before, whatever its time.
                self.record()?;
                let name = folder_name(&at, &symptom);
                self.due = Some(DueIncident {
                    at: Instant::now() + self.args.after,
                    name,
                    note: IncidentNote::new(number, at, symptom),
                });
                Ok(())
            }
            IncidentStep::Refused { number, symptom } => {
                let note = IncidentNote::new(number, at, symptom);
                let most = self.args.max_incidents;
                let why = format!(
                    "{} were recorded within an hour, as many as --max-incidents allows",
                    words::plural(most, "incident")
                );
                self.not_recorded(note, why)
            }
            IncidentStep::Joins { number, symptom } => {
                self.change(number, |note| note.add(at, symptom))
            }
            IncidentStep::Resumes { number } => self.change(number, |note| {
                note.came_back = note.came_back.saturating_add(1);
                note.lasted_ns = None;
            }),
            IncidentStep::Ends { number, lasted_ns } => {
                self.change(number, |note| note.lasted_ns = Some(lasted_ns))
            }
        }
    }

    /// Changes what is known of an incident, and its file.
    fn change(&mut self, number: u64, change: impl FnOnce(&mut IncidentNote)) -> Result<()> {
        if let Some(due) = self.due.as_mut().filter(|due| due.note.incident == number) {
            change(&mut due.note);
            return Ok(());
        }
        let Some(note) = self.notes.get_mut(&number) else {
            return Ok(());
        };
        change(note);
        let Some(name) = note.recording.clone() else {
            return Ok(());
        };
        // Its folder may have gone for newer ones.
        if self.store.path(&name).exists()
            && let Err(error) = self.store.write_note(&name, note)
        {
            PrintedNews.remark(&format!("warning: {error:#}"))?;
        }
        Ok(())
    }

    /// Writes the incident that is due. Where that fails the watch goes on.
    fn record(&mut self) -> Result<()> {
        let Some(DueIncident { name, mut note, .. }) = self.due.take() else {
            return Ok(());
        };
        let room = self.store.recording_room();
        let name = self.store.free_name(&name);
        let folder = self.store.path(&name);
        let written = self.recorder.write(ArmedTarget {
            folder: &folder,
            room,
            facts: self.counter.facts().clone(),
            count_kept: self.count_kept,
        });
        let outcome = match written {
            Ok(outcome) => outcome,
            Err(error) => return self.not_recorded(note, error.to_string()),
        };
        self.recorded += 1;
        self.lost = self.lost.saturating_add(outcome.lost);
        note.recording = Some(name.clone());
        note.recorded_ns = Some(nanoseconds(outcome.time));
        note.recorded_bytes = Some(outcome.bytes);
        note.lost_events = Some(outcome.lost);
        let lost = match outcome.lost {
            0 => String::new(),
            lost => format!("; {}", self.lost_text(lost)),
        };
        PrintedNews.made(&format!(
            "{} incident {}: {}; wrote {}: the last {}, {} KiB{lost}\n{}",
            note.at,
            note.incident,
            note.text(),
            folder.display(),
            words::duration::human(nanoseconds(outcome.time)),
            outcome.bytes / 1024,
            outcome.short
        ))?;
        if let Err(error) = self.store.write_note(&name, &note) {
            PrintedNews.remark(&format!("warning: {error:#}"))?;
        }
        self.store.count(&name);
        self.remember(note)?;
        let refused = self.pages.order(PageOrder {
            page: folder.join(PAGE),
            store: self.args.storing.words(&folder),
            folder,
            name,
            most_bytes: self.store.page_bytes(),
        });
        match refused {
            Some(outcome) => self.page(&outcome),
            None => Ok(()),
        }
    }

    /// Says what is in no recording.
    fn lost_text(&self, lost: u64) -> String {
        let events = words::counted(lost, "event", "events");
        match self.args.when.is_empty() {
            true => format!("{events} came while a recording was written, and are in none"),
            false => format!("{events} found no room in a ring, and are in no recording"),
        }
    }

    /// Says that an incident has no recording.
    fn not_recorded(&mut self, mut note: IncidentNote, why: String) -> Result<()> {
        PrintedNews.made(&format!(
            "{} incident {}: {}; not recorded: {why}\n",
            note.at,
            note.incident,
            note.text()
        ))?;
        note.not_recorded = Some(why);
        self.remember(note)
    }

    /// Adds an incident's line, and keeps what is known of it for what may still be added.
    fn remember(&mut self, note: IncidentNote) -> Result<()> {
        if let Err(error) = self.store.add_line(&note) {
            PrintedNews.remark(&format!("warning: {error:#}"))?;
        }
        self.notes.insert(note.incident, note);
        while self.notes.len() > MOST_NOTES {
            self.notes.pop_first();
        }
        Ok(())
    }

    /// Takes up a page, or says why there is none.
    fn page(&mut self, outcome: &PageOutcome) -> Result<()> {
        let path = self.store.path(&outcome.name);
        if let Some(why) = outcome.missing.as_ref().filter(|_| path.exists()) {
            self.store.remove_half(&outcome.name);
            PrintedNews.remark(&format!(
                "warning: {} was not written: {why}; 'trapline report {}' prints what it would say",
                path.join(PAGE).display(),
                path.display()
            ))?;
        }
        if let Some(why) = &outcome.not_stored {
            PrintedNews.remark(&format!(
                "warning: the sums of {} are not in the store: {why}",
                path.display()
            ))?;
        }
        if path.exists() {
            self.store.count(&outcome.name);
        }
        Ok(())
    }

    /// Ends, and says what there was.
    fn end(&mut self) -> Result<()> {
        let watched = self.begun.elapsed();
        self.record()?;
        let summary = self.recorder.end()?;
        self.lost = self.lost.max(summary.lost().unwrap_or(0));
        // Whoever asks again to end it means it.
        self.stop.store(false, Ordering::Relaxed);
        for outcome in self.pages.end(LAST_PAGES, &self.stop) {
            self.page(&outcome)?;
        }
        let count = self.tracker.count();
        let mut text = format!(
            "watched {}, {}",
            long(watched),
            words::plural(count, "incident")
        );
        if count > 0 {
            text.push_str(&format!(", {} recorded", self.recorded));
        }
        let (kept, bytes) = self.store.kept();
        text.push_str(&format!(
            "; {} has {} of {} MiB",
            self.args.output_dir.display(),
            words::plural(kept as u64, "incident"),
            bytes.div_ceil(1 << 20)
        ));
        if self.store.removed() > 0 {
            let removed = words::plural(self.store.removed(), "older one");
            text.push_str(&format!(", and {removed} were removed for newer ones"));
        }
        text.push('\n');
        for (path, completed) in self.recorder.completed() {
            let seen = words::plural(completed, "instance");
            text.push_str(&format!("path {path}: {seen} completed\n"));
        }
        PrintedNews.made(&text)?;
        if self.lost > 0 {
            PrintedNews.remark(&format!("warning: {}", self.lost_text(self.lost)))?;
        }
        if self.uncounted > 0 {
            PrintedNews.remark(&format!(
                "warning: {} were not counted: what a vCPU did up to its next event is unknown",
                words::plural(self.uncounted, "event")
            ))?;
        }
        Ok(())
    }
}

/// Returns the symptom that an instance of a path took too long.
fn of_path(path: &str, late: LateInstance) -> Symptom {
    Symptom {
        condition: PATH_CONDITION,
        subject: IncidentSubject::Path(path.to_owned()),
        label: path.to_owned(),
        who: path.to_owned(),
        measured: late.total_ns as f64,
        text: late.sentence(path),
        is_lasting: true,
    }
}

fn utc_now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    words::utc(since.map_or(0, |since| since.as_secs()))
}

/// Writes how long a watch was: minutes and hours where it was long.
fn long(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => words::plural(seconds, "second"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
