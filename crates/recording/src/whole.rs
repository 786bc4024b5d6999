//! A recording of this host from its beginning to its end, in a folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use facts::Facts;
use record::cost::EventCosts;
use record::file::{Feature, Features};
use record::{HostRecorder, OpenedEvents, PairSummary, RecordSummary};

use crate::agents::GuestAgents;
use crate::disturbance;
use crate::error::{AtPlace, RecordingError};
use crate::folder::{HOST_DATA, RecordingFolder};
use crate::news::RecordingNews;
use crate::privileges::{self, KeptPrivileges};

/// How long a turn lasts where no ring fills: what is in the rings when the recorder is killed is lost.
const TURN: Duration = Duration::from_millis(250);

/// What is recorded, and where it is written to.
pub struct HostRequest<'a> {
    /// The folder; the first of `trapline-N` that is free without one.
    pub output: Option<&'a Path>,
    /// When it ends, if nothing else ends it before.
    pub seconds: Option<Duration>,
    /// The host's settings, which stand beside the recording.
    pub facts: &'a Facts,
    /// Adds to them what was counted during the recording, at its end.
    pub count_again: &'a dyn Fn(&mut Facts),
    /// What the file says of the machine and of the recording.
    pub features: Features,
    /// The records that stand before those of the kernel.
    pub side: Vec<u8>,
    /// What an event costs, where that was measured.
    pub cost: Option<EventCosts>,
    /// Which privileges are still needed when the file is open.
    pub privileges: KeptPrivileges,
    /// What ends it.
    pub stop: &'a AtomicBool,
}

impl std::fmt::Debug for HostRequest<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = out.debug_struct("HostRequest");
        out.field("output", &self.output)
            .field("seconds", &self.seconds)
            .finish_non_exhaustive()
    }
}

/// What a recording ended with.
#[derive(Debug)]
pub struct HostOutcome {
    /// The folder that was made.
    pub folder: PathBuf,
    /// How the command ended, if it did.
    pub status: Option<ExitStatus>,
    /// The command, if it goes on.
    pub child: Option<Child>,
    /// Which guests' recordings are missing, and why: a sentence each.
    pub missing_guests: Vec<String>,
}

/// Records until the command ends, time is over or somebody says so. `start` starts the command when events are
/// recorded.
///
/// # Errors
///
/// The folder cannot be made, events cannot be switched on, or the recording cannot be written to its end.
pub fn record_host(
    request: HostRequest<'_>,
    opened: OpenedEvents,
    mut agents: GuestAgents,
    start: impl FnOnce() -> Result<Option<Child>, RecordingError>,
    news: &mut dyn RecordingNews,
) -> Result<HostOutcome, RecordingError> {
    let mut features = request.features;
    // A recording that is not ended in order says whose guests these are, too.
    agents.said().into_iter().for_each(|one| features.set(one));
    let folder = RecordingFolder::make(request.output)?;
    let shown = folder.shown();
    let before = (features, request.side.as_slice());
    let begun = begin(
        request.facts,
        opened,
        before,
        &folder,
        request.privileges,
        news,
    );
    let (mut recorder, kept) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            folder.discard();
            return Err(error);
        }
    };
    let mut child = start()?;
    if child.is_none() && request.seconds.is_none() {
        news.remark(&format!("recording to {shown}; Ctrl-C ends it"))?;
    }
    let began = Instant::now();
    let until = request.seconds.map(|time| began + time);
    let ended = watch(&mut recorder, request.stop, &mut child, until);
    let summary = recorder.stop();
    let seconds = began.elapsed().as_secs_f64();
    agents.stop(&folder);
    // A recording that could not be written to its end is not ended in order, so that readers say that some is missing.
    let finished = match &summary {
        Ok(summary) => {
            let cost = request.cost;
            let cost = cost.map(|cost| Feature::Trapline(cost.at_end(summary).said()));
            let pairs = PairSummary::said(&summary.pairs);
            let said = cost.into_iter().chain(pairs).chain(agents.said());
            recorder.finish(said.collect())
        }
        Err(_) => Ok(()),
    };
    if !record::has_name(&kept)? {
        return Err(RecordingError::Refused(format!(
            "{shown}/{HOST_DATA} was removed while it was written: the recording is lost"
        )));
    }
    let whole = || format!("{shown}/{HOST_DATA} has what was recorded until then");
    let summary = summary.at(whole)?;
    let status = ended.at(whole)?;
    finished.at(whole)?;
    let mut facts = request.facts.clone();
    (request.count_again)(&mut facts);
    folder.facts_again(&facts)?;
    news.made(&summary_text(&shown, &summary))?;
    for one in request.cost.iter() {
        for sentence in disturbance::sentences(&summary, one, seconds) {
            news.made(&format!("{sentence}\n"))?;
        }
    }
    let missing_guests = agents.fetched(&folder, news)?;
    Ok(HostOutcome {
        folder: folder.path().to_owned(),
        status,
        child,
        missing_guests,
    })
}

/// Begins to record into a folder. Returns the recorder and its file.
fn begin(
    facts: &Facts,
    opened: OpenedEvents,
    (features, side): (Features, &[u8]),
    folder: &RecordingFolder,
    later: KeptPrivileges,
    news: &mut dyn RecordingNews,
) -> Result<(HostRecorder, File), RecordingError> {
    folder.facts(facts)?;
    let file = folder.data()?;
    let kept = file.try_clone()?;
    if let Some(remark) = privileges::give_away(later) {
        news.remark(&remark)?;
    }
    let begun = HostRecorder::begin(opened, file, features, side);
    let begun = begun.at(|| folder.recording())?;
    folder.begun()?;
    Ok((begun, kept))
}

/// Records until the command ends, time is over or somebody says so. Returns how the command ended, if it did.
fn watch(
    recorder: &mut HostRecorder,
    stop: &AtomicBool,
    child: &mut Option<Child>,
    until: Option<Instant>,
) -> Result<Option<ExitStatus>, RecordingError> {
    while !stop.load(Ordering::Relaxed) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        if let Some(child) = child
            && let Some(status) = child.try_wait()?
        {
            return Ok(Some(status));
        }
        recorder.turn(left.map_or(TURN, |left| left.min(TURN)))?;
    }
    Ok(None)
}

/// Says what was recorded.
fn summary_text(folder: &str, summary: &RecordSummary) -> String {
    let events = words::plural(summary.samples, "event");
    let kib = summary.bytes / 1024;
    let mut text = format!("wrote {folder}: {events}, {kib} KiB\n");
    match summary.lost() {
        Some(0) => text.push_str("No event was lost.\n"),
        Some(lost) => {
            text.push_str(&format!(
                "{} found no room in a ring and are lost: take larger rings with --ring, or ask for less with --for.\n",
                words::plural(lost, "event")
            ));
            for (cpu, lost) in &summary.lost_by_cpu {
                text.push_str(&format!("  CPU {cpu}: {lost}\n"));
            }
        }
        None => text.push_str("This kernel does not say how many events were lost.\n"),
    }
    if let Some(withheld @ 1..) = summary.withheld() {
        let all = summary.samples.saturating_add(summary.lost().unwrap_or(0));
        let share = withheld as f64 * 100.0 / all.saturating_add(withheld) as f64;
        text.push_str(&format!(
            "The kernel counted {} that it neither wrote nor counted as lost: {share:.1} % of all are missing.\n",
            words::plural(withheld, "more event")
        ));
    }
    for pair in &summary.pairs {
        text.push_str(&pair_text(pair));
    }
    text
}

/// Says what was recorded of a pair.
fn pair_text(pair: &PairSummary) -> String {
    let longer = match pair.least_ns {
        0 => String::new(),
        least => format!(" that took {} or more", words::duration::human(least)),
    };
    let mut text = format!(
        "{} -> {}: {}{longer}; the first event came {} times, and no other was written.\n",
        pair.first,
        pair.second,
        words::plural(pair.written, "pair"),
        words::large(pair.firsts as f64),
    );
    if pair.seen_ns < pair.recorded_ns {
        text.push_str(&format!(
            "  The first event was looked at in {} of the time, since it comes so often; {} of the second one came \
             outside of that, and their first is not recorded.\n",
            words::share::rough(pair.share_seen()),
            words::large(pair.unseen as f64),
        ));
    }
    text
}
