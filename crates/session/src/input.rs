//! One input: a recording, a text with tables that perf printed, or both; or a part of a text.

use std::path::{Path, PathBuf};

use source::{OpenError, OpenOptions, ReaderOptions, RecordingBytes};
use ticket::{PlacedTrace, Ticket};

use crate::{Error, GuestInput, InputKind, InputPurpose, OpenRecording, Session, sniff, tickets};

/// An input of fewer bytes is read before another thread has begun.
const SMALL: usize = 256 << 10;

/// One input, opened.
#[derive(Debug)]
pub struct Input<'s> {
    pub(crate) session: &'s Session,
    name: String,
    recording: RecordingBytes,
    /// Threads that may work on it.
    threads: usize,
    part: InputPart,
}

/// What of an input is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputPart {
    /// All of it.
    Whole,
    /// The trace of these lines of a text, counted from 1, which was cut out of it.
    Trace(u64, u64),
    /// The table at this line, and what belongs to it.
    Table(u64),
    /// The tables of a text, in which other things stand too.
    Tables,
}

impl InputPart {
    /// Whether tables are meant, whatever else there is.
    fn is_table(self) -> bool {
        matches!(self, InputPart::Table(_) | InputPart::Tables)
    }
}

impl Session {
    /// Returns the file and the line that `FILE:LINE` names; none if there is a file of that very name, or none of that
    /// before the colon.
    fn file_and_line(&self, path: &Path) -> Option<(PathBuf, u64)> {
        let text = path.to_str()?;
        let (file, line) = text.rsplit_once(':')?;
        let line: u64 = line.parse().ok().filter(|line| *line > 0)?;
        let file = PathBuf::from(file);
        let named = self.tickets.get(&file).is_some() || !path.exists() && file.is_file();
        named.then_some((file, line))
    }
}

/// Returns the trace that a line is in, else the tables, of which the one there is meant.
fn part_at(ticket: &Ticket, line: u64) -> (Vec<u8>, InputPart) {
    let mut traces = ticket.traces.iter();
    let is_in = |trace: &&PlacedTrace| (trace.first_line..=trace.last_line).contains(&line);
    match traces.find(is_in) {
        Some(trace) => (
            trace.text.clone(),
            InputPart::Trace(trace.first_line, trace.last_line),
        ),
        None => (ticket.tables_text.clone(), InputPart::Table(line)),
    }
}

fn text_of(path: &Path, text: Vec<u8>) -> Result<RecordingBytes, OpenError> {
    RecordingBytes::from_bytes(&path.display().to_string(), text)
}

impl<'s> Input<'s> {
    pub(crate) fn open(
        session: &'s Session,
        path: &Path,
        threads: usize,
    ) -> Result<Input<'s>, Error> {
        let options = OpenOptions {
            spool_limit: session.options().spool_limit,
            progress: session.options().progress.clone(),
        };
        let of = |recording: RecordingBytes, part: InputPart| Input {
            session,
            name: path.display().to_string(),
            threads: match recording.bytes().len() {
                0..SMALL => 1,
                _ => threads,
            },
            part,
            recording,
        };
        let open = |file: &Path| match session.tickets.take(file) {
            Some(opened) => opened,
            None => RecordingBytes::open_with(file, options.clone()),
        };
        if let Some(ticket) = session.tickets.get(path)
            && ticket.ticket().has_several()
        {
            // Its traces are inputs of their own.
            let tables = ticket.ticket().tables_text.clone();
            return Ok(of(text_of(path, tables)?, InputPart::Tables));
        }
        let Some((file, line)) = session.file_and_line(path) else {
            return Ok(of(open(path)?, InputPart::Whole));
        };
        if let Some(ticket) = session.tickets.get(&file) {
            let (text, part) = part_at(ticket.ticket(), line);
            return Ok(of(text_of(path, text)?, part));
        }
        let bytes = open(&file)?;
        if let Some(ticket) = tickets::cut(bytes.bytes()).filter(Ticket::has_several) {
            let (text, part) = part_at(&ticket, line);
            return Ok(of(text_of(path, text)?, part));
        }
        if !perftables::looks_like(bytes.bytes()) {
            let name = file.display().to_string();
            return Err(Error::LineWithoutTable { name, line });
        }
        Ok(of(bytes, InputPart::Table(line)))
    }

    /// Returns the part of it that is meant.
    pub(crate) fn part(&self) -> InputPart {
        self.part
    }

    /// Returns its name, as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its bytes, unpacked.
    pub fn bytes(&self) -> &[u8] {
        self.recording.bytes()
    }

    /// Returns where its bytes come from.
    pub(crate) fn source(&self) -> &RecordingBytes {
        &self.recording
    }

    /// Returns the error that says what it is, and what was wanted in its place.
    pub fn wrong(&self, wanted: InputPurpose) -> Error {
        Error::WrongKind {
            name: self.recording.name().to_owned(),
            kind: sniff(self.bytes()),
            wanted,
        }
    }

    /// Returns whether it is a recording that can be read.
    pub(crate) fn is_recording(&self) -> bool {
        let options = self.session.reading(false, self.threads);
        // A ticket may hold both: who names a line means a table.
        !self.part.is_table() && self.recording.reader(options).is_ok()
    }

    /// Takes it for a recording: reads what stands around its events, and makes the session's filters ready for it.
    ///
    /// # Errors
    ///
    /// Fails when it is no recording or one of which nothing can be used, and when it does not have what the filters
    /// ask for.
    pub fn recording(&self) -> Result<OpenRecording<'_>, Error> {
        self.read(false, InputPurpose::Recording)
    }

    /// Takes it for a recording whose addresses are to be named, which needs the kernel's symbols.
    ///
    /// # Errors
    ///
    /// As [`Input::recording`].
    pub fn recording_with_symbols(&self) -> Result<OpenRecording<'_>, Error> {
        self.read(true, InputPurpose::Recording)
    }

    /// Takes it for a recording with stacks, whose addresses are to be named, where folded stacks would do as well.
    ///
    /// # Errors
    ///
    /// As [`Input::recording`].
    pub fn recording_with_stacks(&self) -> Result<OpenRecording<'_>, Error> {
        self.read(true, InputPurpose::Stacks)
    }

    /// Returns whether its recording says that the other one's is that of its host.
    pub fn is_guest_of(&self, other: &Input<'_>) -> bool {
        let of = |input: &Input<'_>| {
            let reader = input.recording.reader(ReaderOptions::default()).ok()?;
            Some(reader.header().together.clone())
        };
        let host = of(self).and_then(|together| together.host);
        host.is_some_and(|host| of(other).and_then(|together| together.own) == Some(host))
    }

    /// Takes it for a recording that was made inside a guest, on the guest's own clock; `vm` is the VM whose guest it
    /// is said to be.
    ///
    /// # Errors
    ///
    /// As [`Input::recording`].
    pub fn guest(&self, vm: Option<&str>) -> Result<GuestInput<'_>, Error> {
        let options = ReaderOptions {
            own_clock: true,
            // It has a thread of its own beside its host's.
            threads: 1,
            // Its addresses may be printed.
            ..self.session.reading(true, 1)
        };
        match self.recording.reader(options) {
            Ok(reader) if reader.cut_before_events().is_some() => Err(Error::CutBeforeEvents {
                name: self.recording.name().to_owned(),
                at: reader.cut_before_events().unwrap_or_default(),
            }),
            Ok(reader) => Ok(GuestInput {
                name: &self.name,
                reader,
                vm: vm.map(str::to_owned),
            }),
            Err(OpenError::NotARecording { .. }) if sniff(self.bytes()).is_taken() => {
                Err(self.wrong(InputPurpose::Recording))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read(&self, symbols: bool, wanted: InputPurpose) -> Result<OpenRecording<'_>, Error> {
        if self.part.is_table() {
            return Err(self.wrong(wanted));
        }
        let options = self.session.reading(symbols, self.threads);
        match self.recording.reader(options) {
            Ok(reader) if !self.session.options().empty => {
                if let Some(at) = reader.cut_before_events() {
                    return Err(Error::CutBeforeEvents {
                        name: self.recording.name().to_owned(),
                        at,
                    });
                }
                OpenRecording::new(self.session, &self.name, reader)
            }
            Ok(reader) => OpenRecording::new(self.session, &self.name, reader),
            Err(OpenError::NotARecording { .. })
                if wanted != InputPurpose::Recording || sniff(self.bytes()).is_taken() =>
            {
                Err(self.wrong(wanted))
            }
            Err(error @ OpenError::NotARecording { .. }) => Err(self.without_output(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns why nothing is read of a text: it may name commands whose output was not pasted.
    fn without_output(&self, error: OpenError) -> Error {
        let commands = match sniff(self.bytes()) {
            InputKind::Text => ticket::named_commands(self.bytes()),
            _ => Vec::new(),
        };
        match commands.is_empty() {
            true => error.into(),
            false => Error::OutputMissing {
                name: self.recording.name().to_owned(),
                commands,
            },
        }
    }
}
