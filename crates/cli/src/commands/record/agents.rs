//! Guests that are recorded by an agent within while their host is.

use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use agent::{
    AgentAddress, AgentError, CPU, ClockSample, ClockSamples, Connection, EndReason, IO,
    RecordingEnd, SharedToken, Start,
};
use anyhow::{Result, anyhow};
use record::EventClock;
use record::file::Feature;
use record::together::{HostGuest, JointRecording};
use recording::clock_comparisons;
use render::{neutral, quality};

use super::folder::Made;
use crate::commands::agent::args::ForGuest;
use crate::commands::privileges::{self, Later};
use crate::commands::record::args::{For, RecordArgs};
use crate::output;

/// Clocks are compared so often before a recording and behind it: the quickest answer counts.
const ROUNDS: u32 = 32;
/// How often an agent is asked meanwhile, so that each side knows that the other is there.
const MEANWHILE: Duration = Duration::from_secs(2);
/// How much longer than its host a guest may be recorded: before it, and behind it.
const AROUND: Duration = Duration::from_secs(60);
/// Characters of a guest's name in its file's, and in what the host's says of it.
const NAME: usize = 64;

/// What is said about an agent.
enum Told {
    /// Clocks were compared, and it records.
    Ready,
    /// It records nothing any more.
    Stopped(ClockSamples, RecordingEnd),
    /// Its file is here.
    Fetched,
    /// What is missing, and why.
    Failed(AgentError),
}

/// An agent that records.
struct Agent {
    /// Where it is.
    peer: String,
    /// What its guest is called, and its file.
    name: String,
    file: String,
    /// The number of its recording.
    id: u64,
    to: Sender<File>,
    from: Receiver<Told>,
    /// What it recorded.
    stopped: Option<(ClockSamples, RecordingEnd)>,
    failed: Option<String>,
}

/// The agents that record.
#[derive(Default)]
pub(super) struct Agents {
    own: u64,
    all: Vec<Agent>,
}

/// Returns what is to be asked of guests: packets and requests are parts of paths alone, if nothing is asked of guests by name.
fn questions(asked: &[For], of_guests: &[ForGuest]) -> u8 {
    let of_paths = |one: &For| matches!(one, For::Paths | For::All);
    let default = match asked.is_empty() || asked.iter().any(of_paths) {
        true => CPU | IO,
        false => CPU,
    };
    ForGuest::bits(of_guests, default)
}

/// Returns the file's name for a guest of this name; `taken` are those of other guests.
fn file_name(name: &str, taken: &[Agent]) -> String {
    let safe = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
        _ => '_',
    };
    let safe: String = name.chars().take(NAME).map(safe).collect();
    let safe = match safe.trim_matches('.') {
        "" => (taken.len() + 1).to_string(),
        some => some.to_owned(),
    };
    let file = |name: &str| format!("guest-{name}.perf.data");
    let is_free = |name: &String| taken.iter().all(|one| one.file != file(name));
    let numbered = (2..).map(|number| format!("{safe}-{number}"));
    let mut names = std::iter::once(safe.clone()).chain(numbered);
    file(&names.find(is_free).unwrap_or(safe))
}

/// Says why an agent cannot be talked to, and what to do.
fn unreached(peer: &AgentAddress, error: AgentError) -> anyhow::Error {
    match error {
        AgentError::Io(error) => anyhow!(
            "{peer}: no agent answers there: {}; start 'trapline agent --listen' in the guest",
            session::why(&error)
        ),
        other => anyhow!("{peer}: {other}"),
    }
}

impl Agents {
    /// Has all agents that were named begin to record; none does if one cannot.
    pub(super) fn start(args: &RecordArgs) -> Result<Agents> {
        let Some(path) = &args.agent_token else {
            return Ok(Agents::default());
        };
        let token = SharedToken::read(path)?;
        let mut agents = Agents {
            own: agent::number()?,
            all: Vec::new(),
        };
        let start = Start {
            questions: questions(&args.questions, &args.agent_for),
            // Until it is told to end, and what comes before and behind that; the agent has a bound of its own.
            time: args
                .seconds
                .map_or(Duration::MAX, |time| time.saturating_add(AROUND)),
            size: args.agent_size,
            host: agents.own,
        };
        let mut begun = Vec::new();
        for peer in &args.agent {
            let connection = Connection::to(peer, &token);
            let mut connection = connection.map_err(|error| unreached(peer, error))?;
            let started = connection.start(&start);
            let started = started.map_err(|error| unreached(peer, error))?;
            begun.push((peer, connection, started));
        }
        for (peer, connection, started) in begun {
            for sentence in started.missing.lines() {
                let label = format!("not recorded in {}: ", started.name);
                let mut text = String::new();
                quality::wrap(&mut text, &label, sentence, output::width());
                write!(io::stderr(), "{}", neutral::text(&text))?;
            }
            let ((to, asked), (tell, from)) = (channel(), channel());
            let thread = thread::Builder::new().name("agent".to_owned());
            thread.spawn(move || {
                if let Err(error) = talk(connection, &asked, &tell) {
                    // Nobody listens any more where the recording has ended.
                    let _ = tell.send(Told::Failed(error));
                }
            })?;
            let file = file_name(&started.name, &agents.all);
            agents.all.push(Agent {
                peer: peer.to_string(),
                name: started.name,
                file,
                id: started.own,
                to,
                from,
                stopped: None,
                failed: None,
            });
        }
        for one in &agents.all {
            match one.from.recv() {
                Ok(Told::Ready) => {}
                Ok(Told::Failed(error)) => return Err(anyhow!("{}: {error}", one.peer)),
                _ => return Err(anyhow!("{}: the agent cannot be talked to", one.peer)),
            }
        }
        Ok(agents)
    }

    /// Returns what the host's recording says of its guests'.
    pub(super) fn said(&self) -> Option<Feature> {
        if self.all.is_empty() {
            return None;
        }
        let guests = self.all.iter().map(|one| {
            let clocks = one.stopped.as_ref().map(|(clocks, _)| clocks);
            HostGuest {
                id: one.id,
                // Readers take so much of what a file says of itself, and no more.
                name: one.name.chars().take(NAME).collect(),
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
    pub(super) fn stop(&mut self, folder: &Made) {
        for one in &mut self.all {
            match folder.file(&one.file) {
                // Where its thread has ended, that says why.
                Ok(file) => drop(one.to.send(file)),
                Err(error) => one.failed = Some(format!("{error:#}")),
            }
        }
        for one in &mut self.all {
            if one.failed.is_some() {
                continue;
            }
            match one.from.recv() {
                Ok(Told::Stopped(clocks, stopped)) => one.stopped = Some((clocks, stopped)),
                Ok(Told::Failed(error)) => one.failed = Some(error.to_string()),
                _ => one.failed = Some("it cannot be talked to".to_owned()),
            }
        }
    }

    /// Waits until all files are there and says what they are. Returns which are missing, and why.
    pub(super) fn fetched(self, folder: &Made) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        for one in self.all {
            let why = match (&one.failed, one.from.recv()) {
                (None, Ok(Told::Fetched)) => {
                    output::print(&one.told(&folder.shown()))?;
                    continue;
                }
                (Some(why), _) => why.clone(),
                (None, Ok(Told::Failed(error))) => error.to_string(),
                (None, _) => "it cannot be talked to".to_owned(),
            };
            folder.remove(&one.file);
            let kept = match one.stopped {
                Some(_) => " (the agent keeps it in its own folder until the next one)",
                None => "",
            };
            missing.push(format!(
                "{}: the recording of guest {} is missing{kept}: {why}",
                one.peer, one.name
            ));
        }
        Ok(missing)
    }
}

impl Agent {
    /// Says what its recording is.
    fn told(&self, folder: &str) -> String {
        let Some((clocks, stopped)) = &self.stopped else {
            return String::new();
        };
        let mut text = format!(
            "wrote {folder}/{}: {}, {} KiB\n",
            self.file,
            words::plural(stopped.events, "event"),
            stopped.length / 1024
        );
        let rounds = [clocks.begin, clocks.end].into_iter().flatten();
        match rounds.map(|one| one.round_ns).max() {
            Some(round_ns) => text.push_str(&format!(
                "  Its clock was compared with this host's to within {}.\n",
                words::duration::human(round_ns / 2)
            )),
            None => text.push_str("  Its clock could not be compared with this host's.\n"),
        }
        match stopped.lost {
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
            EndReason::Failed => Some(stopped.why.clone()),
        };
        if let Some(why) = early {
            text.push_str(&format!("  It ended before this one did: {why}.\n"));
        }
        text
    }
}

/// Talks with an agent: compares clocks, waits for the recording's end, has it end and fetches its file.
fn talk(
    mut connection: Connection,
    asked: &Receiver<File>,
    tell: &Sender<Told>,
) -> Result<(), AgentError> {
    let mut clock = EventClock::open().ok();
    // This thread has had them from the one that started it, and has to give them away itself.
    privileges::give_away(Later::default())?;
    let mut now = || clock.as_mut().and_then(EventClock::now_ns);
    let begin = compare(&mut connection, &mut now)?;
    if tell.send(Told::Ready).is_err() {
        return Ok(());
    }
    let mut file = loop {
        match asked.recv_timeout(MEANWHILE) {
            Ok(file) => break file,
            Err(RecvTimeoutError::Timeout) => drop(connection.clock(&mut now)?),
            // There is no recording.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    };
    let end = compare(&mut connection, &mut now)?;
    let clocks = ClockSamples { begin, end };
    let stopped = connection.stop(&clocks)?;
    if tell.send(Told::Stopped(clocks, stopped.clone())).is_ok() {
        connection.fetch(&stopped, &mut file)?;
        let _ = tell.send(Told::Fetched);
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
    use agent::SOCKETS;

    use super::*;

    fn named(file: &str) -> Agent {
        Agent {
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

    #[test]
    fn packets_are_asked_for_where_paths_are() {
        assert_eq!(questions(&[], &[]), CPU | IO);
        assert_eq!(questions(&[For::Exits, For::Sched], &[]), CPU);
        assert_eq!(questions(&[For::Exits, For::Paths], &[]), CPU | IO);
        assert_eq!(questions(&[For::All], &[]), CPU | IO);
        assert_eq!(questions(&[For::All], &[ForGuest::Cpus]), CPU);
        assert_eq!(questions(&[], &[ForGuest::Sockets]), SOCKETS);
    }
}
