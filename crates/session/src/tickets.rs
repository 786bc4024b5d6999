//! Tickets, mails and pages among the inputs: texts in which several things stand.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use domain::Domain;
use results::Score;
use source::{FileContent, OpenError, OpenOptions, RecordingBytes};
use ticket::{PartKind, Ticket, TicketPart};

use crate::{DomainFile, SessionOptions};

/// Bytes of the beginning in which a text has no zero.
const HEAD: usize = 64 << 10;

/// An input in which several things stand, or none that is a recording or a table.
#[derive(Debug)]
pub struct TicketFile {
    path: PathBuf,
    name: String,
    ticket: Ticket,
    definitions: Vec<DomainFile>,
}

impl TicketFile {
    /// Returns the path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name that is printed of it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its parts.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Returns its definitions of guests, as those of files are.
    pub fn definitions(&self) -> &[DomainFile] {
        &self.definitions
    }

    /// Reads a text; none if it is a recording, a binary file, or has nothing that has to be cut out of it.
    fn of(path: &Path, name: &str, bytes: &[u8]) -> Option<TicketFile> {
        let ticket = cut(bytes)?;
        // Facts of which nothing follows stand beside a recording, and are refused in its place.
        let alone = |part: &TicketPart| match part.kind {
            PartKind::Definition(_) => true,
            PartKind::Facts(_) => ticket.facts.has_history(),
            _ => false,
        };
        let pictures = !ticket.traces.is_empty() || !ticket.tables.is_empty();
        let wanted = match pictures {
            true => ticket.parts.len() > 1,
            false => ticket.parts.iter().any(alone),
        };
        if !wanted {
            return None;
        }
        let definitions = ticket.definitions.iter().map(|one| {
            let given = &one.definition;
            let place = format!("{name}, line {}", one.first_line);
            let notes = given.notes.iter();
            DomainFile {
                name: crate::definition::short_name(path),
                text: given.text.clone(),
                domain: given.domain.clone(),
                notes: notes.map(|note| format!("{place}: {note}")).collect(),
            }
        });
        Some(TicketFile {
            path: path.to_owned(),
            name: name.to_owned(),
            definitions: definitions.collect(),
            ticket,
        })
    }

    /// Returns whether its parts are inputs of their own: there are several of different kinds, or none of which there
    /// is a picture.
    pub(crate) fn is_cut(&self) -> bool {
        self.ticket.has_several() || !self.has_pictures()
    }

    /// Returns whether there are traces or tables in it.
    pub fn has_pictures(&self) -> bool {
        !self.ticket.traces.is_empty() || !self.ticket.tables.is_empty()
    }

    /// Returns the paths by which its traces and its tables are given, in the order of the text: `FILE:LINE` for a
    /// trace, the text's own for all of its tables.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let traces = self.ticket.traces.iter();
        let mut paths: Vec<(u64, PathBuf)> = traces
            .map(|trace| (trace.first_line, at_line(&self.path, trace.first_line)))
            .collect();
        if let Some(first) = self.ticket.tables.first() {
            paths.push((first.table.line(), self.path.clone()));
        }
        paths.sort();
        paths.into_iter().map(|(_, path)| path).collect()
    }

    /// Returns the definition of the guest that the part is of that begins at a line.
    fn domain_at(&self, line: u64) -> Option<&DomainFile> {
        let mut parts = self.ticket.parts.iter();
        let part = parts.find(|part| part.first_line == line)?;
        self.definitions.get(part.definition?)
    }
}

/// Returns how a part of a text is named: `FILE:LINE`.
pub(crate) fn at_line(path: &Path, line: u64) -> PathBuf {
    PathBuf::from(format!("{}:{line}", path.display()))
}

/// Returns the results of benchmarks that stand in a text before one of its parts, which `FILE:LINE` names.
pub fn scores_before(path: &Path) -> Vec<Score> {
    let named = path.to_str().and_then(|text| text.rsplit_once(':'));
    let named = named.and_then(|(file, line)| Some((file, line.parse::<u64>().ok()?)));
    let Some((file, line)) = named.filter(|_| !path.exists()) else {
        return Vec::new();
    };
    let most = ticket::MAX_BYTES as u64 + 1;
    let Ok(bytes) = source::read_beside(Path::new(file), most) else {
        return Vec::new();
    };
    let ticket = cut(&bytes);
    let scores = ticket.as_ref().map(|ticket| ticket.scores_before(line));
    scores.unwrap_or_default().into_iter().cloned().collect()
}

/// Cuts a text into its parts; none if it is a recording or a binary file, or too long for a ticket.
pub(crate) fn cut(bytes: &[u8]) -> Option<Ticket> {
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    // A document of ours is what it is.
    let is_json = head.trim_ascii_start().starts_with(b"{");
    if bytes.len() > ticket::MAX_BYTES || head.contains(&0) || is_json {
        return None;
    }
    let is_text = match source::sniff(bytes) {
        FileContent::Text => true,
        FileContent::Recording(format) => format.starts_with("text of "),
        // What a table begins with is a text too.
        FileContent::Other(what) => what.starts_with("a table"),
        _ => false,
    };
    is_text.then(|| ticket::read(bytes))
}

/// The tickets among the inputs, and what was read to find them.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    files: Vec<TicketFile>,
    /// Inputs that were opened and not used yet: pipes can be read once.
    opened: Mutex<HashMap<PathBuf, Result<RecordingBytes, OpenError>>>,
}

impl Tickets {
    /// Looks at the inputs that may be tickets: texts are, up to a length.
    pub(crate) fn open(options: &SessionOptions) -> Tickets {
        let mut tickets = Tickets::default();
        for path in &options.tickets {
            if tickets.get(path).is_some() || !source::may_be_short(path, ticket::MAX_BYTES as u64)
            {
                continue;
            }
            let opened = RecordingBytes::open_with(
                path,
                OpenOptions {
                    spool_limit: options.spool_limit,
                    progress: options.progress.clone(),
                },
            );
            if let Ok(bytes) = &opened {
                let name = path.display().to_string();
                tickets
                    .files
                    .extend(TicketFile::of(path, &name, bytes.bytes()));
            }
            let mut all = tickets
                .opened
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            all.insert(path.clone(), opened);
        }
        tickets
    }

    /// Returns all of them.
    pub(crate) fn files(&self) -> &[TicketFile] {
        &self.files
    }

    /// Returns the ticket that a path names.
    pub(crate) fn get(&self, path: &Path) -> Option<&TicketFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns what was opened of an input and not used yet.
    pub(crate) fn take(&self, path: &Path) -> Option<Result<RecordingBytes, OpenError>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.remove(path)
    }

    /// Returns the definition of the guest that a part is of, which is named as `FILE:LINE`.
    pub(crate) fn domain_of(&self, name: &str) -> Option<&Domain> {
        let (file, line) = name.rsplit_once(':')?;
        let line = line.parse().ok()?;
        let file = self.files.iter().find(|one| one.name == file)?;
        file.domain_at(line).map(|one| &one.domain)
    }
}
