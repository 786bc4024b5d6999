//! Guests that are recorded by an agent within while their host is.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use agent::{
    AgentAddress, AgentError, ClockSample, ClockSamples, Connection, EndReason, RecordingEnd,
    SharedToken, Start,
};
use record::file::Feature;
use record::together::{HostGuest, JointRecording};
use record::{ClockSource, EventClock};

use crate::clocks::clock_comparisons;
use crate::error::{AtPlace, RecordingError};
use crate::folder::{GUEST_PREFIX, HOST_DATA, RecordingFolder};
use crate::guest_file::FetchedGuestFile;
use crate::news::RecordingNews;
use crate::privileges::{self, KeptPrivileges};

/// Clocks are compared so often before a recording and behind it: the quickest answer counts.
const ROUNDS: u32 = 32;
/// How often an agent is asked meanwhile, so that each side knows that the other is there.
const MEANWHILE: Duration = Duration::from_secs(2);
/// How much longer than its host a guest may be recorded: before it, and behind it.
const AROUND: Duration = Duration::from_secs(60);
/// Characters of a guest's name in its file's, and in what the host's says of it.
const NAME: usize = 64;
/// Sentences that a guest may have printed on what it does not record, and characters of each.
const SENTENCES: usize = 40;
const SENTENCE: usize = 300;

/// What an agent's thread reports.
#[derive(Debug)]
enum AgentReport {
    /// Clocks were compared, and it records.
    Ready,
    /// It records nothing any more.
    Stopped(GuestEnd),
    /// Its file is here, and this is in it.
    Fetched(FetchedGuestFile),
    /// What is missing, and why.
    Failed(AgentError),
}

/// What an agent said when it ended its recording.
#[derive(Debug)]
struct GuestEnd {
    /// How the clocks compared; empty where the guest's cannot have said both.
    clocks: ClockSamples,
    /// Whether what its clock said was not believed.
    is_clock_wrong: bool,
    recorded: RecordingEnd,
}

/// An agent that records.
#[derive(Debug)]
struct GuestAgent {
    /// Where it is.
    peer: String,
    /// What its guest is called, and its file.
    name: String,
    file: String,
    /// The number of its recording.
    id: u64,
    to: Sender<(File, PathBuf)>,
    from: Receiver<AgentReport>,
    /// What it recorded.
    stopped: Option<GuestEnd>,
    failed: Option<String>,
}

/// What agents are asked for.
#[derive(Debug)]
pub struct GuestsRequest<'a> {
    /// Where agents are; none makes a recording of the host alone.
    pub agents: &'a [AgentAddress],
    /// The file of the token that is shared with them.
    pub token: Option<&'a Path>,
    /// What their recordings are to answer, as bits.
    pub questions: u8,
    /// How long the host is recorded, where that is known.
    pub seconds: Option<Duration>,
    /// How large each recording may become, bytes.
    pub size: u64,
}

/// The agents that record.
#[derive(Debug, Default)]
pub struct GuestAgents {
    own: u64,
    all: Vec<GuestAgent>,
}

/// Returns the file's name for a guest of this name; `taken` are those of other guests.
fn file_name(name: &str, taken: &[GuestAgent]) -> String {
    let safe = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
        _ => '_',
    };
    let safe: String = name.chars().take(NAME).map(safe).collect();
    let safe = match safe.trim_matches('.') {
        "" => (taken.len() + 1).to_string(),
        some => some.to_owned(),
    };
    let file = |name: &str| format!("{GUEST_PREFIX}{name}.{HOST_DATA}");
    let is_free = |name: &String| taken.iter().all(|one| one.file != file(name));
    let numbered = (2..).map(|number| format!("{safe}-{number}"));
    let mut names = std::iter::once(safe.clone()).chain(numbered);
    file(&names.find(is_free).unwrap_or(safe))
}

/// Returns what a guest says as one line of at most so many characters, without what a terminal would take for orders.
fn one_line(text: &str, most: usize) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(most).map(plain).collect()
}

/// Says why an agent cannot be talked to, and what to do.
fn unreached(peer: &AgentAddress, error: AgentError) -> RecordingError {
    let why = match error {
        AgentError::Io(error) => format!(
            "no agent answers there: {}; start 'trapline agent --listen' in the guest",
            words::io_reason(&error)
        ),
        other => one_line(&other.to_string(), SENTENCE),
    };
    RecordingError::Refused(format!("{peer}: {why}"))
}

impl GuestAgents {
    /// Has all agents that were named begin to record; none does if one cannot.
    ///
    /// # Errors
    ///
    /// The token cannot be read, or an agent cannot be reached or cannot record.
    pub fn start(
        request: &GuestsRequest<'_>,
        news: &mut dyn RecordingNews,
    ) -> Result<GuestAgents, RecordingError> {
        let Some(path) = request.token else {
            return Ok(GuestAgents::default());
        };
        let token = SharedToken::read(path)?;
        let mut agents = GuestAgents {
            own: agent::number()?,
            all: Vec::new(),
        };
        let start = Start {
            questions: request.questions,
            // Until it is asked to end, and what comes before and behind that; the agent has a bound of its own.
            time: request
                .seconds
                .map_or(Duration::MAX, |time| time.saturating_add(AROUND)),
            size: request.size,
            host: agents.own,
        };
        let mut begun = Vec::new();
        for peer in request.agents {
            let connection = Connection::to(peer, &token);
            let mut connection = connection.map_err(|error| unreached(peer, error))?;
            let started = connection.start(&start);
            let started = started.map_err(|error| unreached(peer, error))?;
            begun.push((peer, connection, started));
        }
        for (peer, connection, started) in begun {
            let name = one_line(&started.name, NAME);
            for sentence in started.missing.lines().take(SENTENCES) {
                news.missing_in_guest(&name, &one_line(sentence, SENTENCE))?;
            }
            let ((to, asked), (reports, from)) = (channel(), channel());
            let thread = thread::Builder::new().name("agent".to_owned());
            let own = started.own;
            thread.spawn(move || {
                if let Err(error) = talk(connection, own, &asked, &reports) {
                    // Nobody listens any more where the recording has ended.
                    let _ = reports.send(AgentReport::Failed(error));
                }
            })?;
            let file = file_name(&started.name, &agents.all);
            agents.all.push(GuestAgent {
                peer: peer.to_string(),
                name,
                file,
                id: own,
                to,
                from,
                stopped: None,
                failed: None,
            });
        }
        for one in &agents.all {
            let place = || one.peer.clone();
            match one.from.recv() {
                Ok(AgentReport::Ready) => {}
                Ok(AgentReport::Failed(error)) => return Err(error).at(place),
                _ => {
                    let why = "the agent cannot be talked to".to_owned();
                    return Err(RecordingError::Refused(why)).at(place);
                }
            }
        }
        Ok(agents)
    }

    /// Returns what the host's recording says of its guests'.
    pub(crate) fn said(&self) -> Option<Feature> {
        if self.all.is_empty() {
            return None;
        }
        let guests = self.all.iter().map(|one| {
            let clocks = one.stopped.as_ref().map(|end| &end.clocks);
            HostGuest {
                id: one.id,
                // Readers take so much of what a file says of itself, and no more.
                name: one.name.clone(),
                offset_ns: clocks.and_then(ClockSamples::offset_ns),
                clocks: clocks.map(clock_comparisons).unwrap_or_default(),
            }
        });
        let together = JointRecording {
            own: self.own,
            guests: guests.collect(),
            ..JointRecording::default()
        };
        Some(together.said())
    }

    /// Has all agents end, and begins to fetch their files.
    pub(crate) fn stop(&mut self, folder: &RecordingFolder) {
        for one in &mut self.all {
            match folder.file(&one.file) {
                // Where its thread has ended, that says why.
                Ok(file) => drop(one.to.send((file, folder.path().join(&one.file)))),
                Err(error) => one.failed = Some(error.to_string()),
            }
        }
        for one in &mut self.all {
            if one.failed.is_some() {
                continue;
            }
            match one.from.recv() {
                Ok(AgentReport::Stopped(end)) => one.stopped = Some(end),
                Ok(AgentReport::Failed(error)) => one.failed = Some(error.to_string()),
                _ => one.failed = Some("it cannot be talked to".to_owned()),
            }
        }
    }

    /// Waits until all files are there and says what they are. Returns which are missing, and why.
    pub(crate) fn fetched(
        self,
        folder: &RecordingFolder,
        news: &mut dyn RecordingNews,
    ) -> Result<Vec<String>, RecordingError> {
        let mut missing = Vec::new();
        for one in self.all {
            let why = match (&one.failed, one.from.recv()) {
                (None, Ok(AgentReport::Fetched(file))) => {
                    news.made(&one.sentences(&folder.shown(), &file))?;
                    continue;
                }
                (Some(why), _) => why.clone(),
                (None, Ok(AgentReport::Failed(error))) => error.to_string(),
                (None, _) => "it cannot be talked to".to_owned(),
            };
            folder.remove(&one.file);
            let kept = match one.stopped {
                Some(_) => " (the agent keeps it in its own folder until the next one)",
                None => "",
            };
            missing.push(format!(
                "{}: the recording of guest {} is missing{kept}: {}",
                one.peer,
                one.name,
                one_line(&why, SENTENCE)
            ));
        }
        Ok(missing)
    }
}

impl GuestAgent {
    /// Says what its recording is: what was read in its file, and what the agent said where that differs.
    fn sentences(&self, folder: &str, file: &FetchedGuestFile) -> String {
        let Some(GuestEnd {
            clocks,
            is_clock_wrong,
            recorded: stopped,
        }) = &self.stopped
        else {
            return String::new();
        };
        let mut text = format!(
            "wrote {folder}/{}: {}, {} KiB\n",
            self.file,
            words::plural(file.events, "event"),
            stopped.length / 1024
        );
        if file.events != stopped.events {
            text.push_str(&format!(
                "  Its agent said that it recorded {}.\n",
                words::plural(stopped.events, "event")
            ));
        }
        if file.truncated {
            text.push_str("  It ends before its own end.\n");
        }
        let rounds = [clocks.begin, clocks.end].into_iter().flatten();
        match rounds.map(|one| one.round_ns).max() {
            Some(_) if clocks.guest_span_ns().is_some_and(|span| !file.is_within(span)) => text
                .push_str("  Its clock was compared, but its events have other times: see 'trapline info' on both.\n"),
            Some(round_ns) => text.push_str(&format!(
                "  Its clock was compared with this host's to within {}.\n",
                words::duration::human(round_ns / 2)
            )),
            None if *is_clock_wrong => text.push_str(
                "  Its clock did not run like this host's between two comparisons, which are not used.\n",
            ),
            None => text.push_str("  Its clock could not be compared with this host's.\n"),
        }
        match stopped.lost.map(|lost| lost.max(file.lost)) {
            Some(0) => {}
            Some(lost) => text.push_str(&format!(
                "  {} found no room in a ring of the guest and are lost.\n",
                words::plural(lost, "event")
            )),
            None => text.push_str("  The guest's kernel does not say how many events were lost.\n"),
        }
        let early = match stopped.ended {
            EndReason::Asked => None,
            EndReason::Time => Some("it was as long as the agent's --time lets it be".to_owned()),
            EndReason::Size => {
                Some("its file was full: --agent-size, and the agent's --size".to_owned())
            }
            EndReason::Failed => Some(one_line(&stopped.why, SENTENCE)),
        };
        if let Some(why) = early {
            text.push_str(&format!("  It ended before this one did: {why}.\n"));
        }
        text
    }
}

/// Talks with an agent: compares clocks, waits for the recording's end, has it end, fetches its file and looks into it.
fn talk(
    mut connection: Connection,
    own: u64,
    asked: &Receiver<(File, PathBuf)>,
    reports: &Sender<AgentReport>,
) -> Result<(), AgentError> {
    let mut clock = EventClock::open(ClockSource::Local).ok();
    // This thread has had them from the one that started it, and has to give them away itself.
    // Where it cannot, the other thread has said so.
    let _ = privileges::give_away(KeptPrivileges::default());
    let mut now = || clock.as_mut().and_then(EventClock::now_ns);
    let begin = compare(&mut connection, &mut now)?;
    if reports.send(AgentReport::Ready).is_err() {
        return Ok(());
    }
    let (mut file, path) = loop {
        match asked.recv_timeout(MEANWHILE) {
            Ok(file) => break file,
            Err(RecvTimeoutError::Timeout) => drop(connection.clock(&mut now)?),
            // There is no recording.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    };
    let end = compare(&mut connection, &mut now)?;
    let said = ClockSamples { begin, end };
    let is_clock_wrong = !said.is_plausible();
    let clocks = match is_clock_wrong {
        true => ClockSamples::default(),
        false => said,
    };
    let recorded = connection.stop(&clocks)?;
    let end = GuestEnd {
        clocks,
        is_clock_wrong,
        recorded: recorded.clone(),
    };
    if reports.send(AgentReport::Stopped(end)).is_ok() {
        connection.fetch(&recorded, &mut file)?;
        // What is no recording is not taken from an agent that has the only one.
        let found = FetchedGuestFile::read(&path, own).map_err(AgentError::Damaged)?;
        connection.done()?;
        let _ = reports.send(AgentReport::Fetched(found));
    }
    Ok(())
}

/// Compares the clocks some times, and returns the best.
fn compare(
    connection: &mut Connection,
    mut now: impl FnMut() -> Option<u64>,
) -> Result<Option<ClockSample>, AgentError> {
    let mut samples = Vec::new();
    for _ in 0..ROUNDS {
        samples.extend(connection.clock(&mut now)?);
    }
    Ok(ClockSample::best(&samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(file: &str) -> GuestAgent {
        GuestAgent {
            peer: String::new(),
            name: String::new(),
            file: file.to_owned(),
            id: 0,
            to: channel().0,
            from: channel().1,
            stopped: None,
            failed: None,
        }
    }

    #[test]
    fn a_guests_name_leads_to_no_other_place() {
        assert_eq!(file_name("web-1", &[]), "guest-web-1.perf.data");
        assert_eq!(
            file_name("../../etc/passwd", &[]),
            "guest-_.._etc_passwd.perf.data"
        );
        assert_eq!(file_name("a/b\u{1b}[2Jc", &[]), "guest-a_b__2Jc.perf.data");
        assert_eq!(file_name("", &[]), "guest-1.perf.data");
        assert_eq!(file_name("..", &[named("x")]), "guest-2.perf.data");
        assert_eq!(file_name(&"x".repeat(300), &[]).len(), 64 + 16);
        let taken = [named("guest-web.perf.data"), named("guest-web-2.perf.data")];
        assert_eq!(file_name("web", &taken), "guest-web-3.perf.data");
    }
}
