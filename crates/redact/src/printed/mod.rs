//! Recordings that exist only as text: what perf script, trace-cmd report and the kernel's `trace` file print.
//!
//! Nobody says of a text's words which are private, so those stay of which it is known that they are not: numbers,
//! names of events and of fields, and the words that the kernel's own events and their printers use
//! (`public-words.txt`). All others are replaced. Where threads' names, functions and files stand is known by the form
//! of a line ([`tracetext::LineSplitter`]).

mod frames;
mod functions;
mod numbers;
mod says;
mod words;

use std::collections::HashSet;

use model::public_form;
use tracefmt::FormatCatalog;
use tracetext::{LineContent, LineSplitter, SplitLine};

use words::WordPlace;

use crate::redactor::RedactedNames;
use crate::{RedactedCounts, ReplacedNames};

/// Replaces what is private in a text, line by line, the same by the same.
#[derive(Debug)]
pub struct TextRedactor {
    names: RedactedNames,
    splitter: LineSplitter,
    /// Names of events, which stay where they are those of lines.
    events: HashSet<Vec<u8>>,
}

impl TextRedactor {
    /// Returns one for a text. Of `random` nobody may know what it is: it says how far addresses are moved.
    pub fn new(random: u64) -> TextRedactor {
        TextRedactor {
            names: RedactedNames::of_text(random),
            splitter: LineSplitter::default(),
            events: HashSet::new(),
        }
    }

    /// Appends what stands in place of the next line, without what ends it.
    pub fn line(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let split = self.splitter.split(line);
        match split.content {
            LineContent::Stack => {
                let (before, frame) = split.bytes.split_at(split.says);
                words::put(before, &mut self.names, out);
                frames::put(frame, &mut self.names, out);
            }
            LineContent::Header => says::header(&split.bytes, &mut self.names, out),
            LineContent::Other => words::put(&split.bytes, &mut self.names, out),
            _ => self.event(&split, out),
        }
    }

    fn event(&mut self, split: &SplitLine<'_>, out: &mut Vec<u8>) {
        let names = &mut self.names;
        let bytes = &split.bytes;
        let begin = out.len();
        let mut at = 0;
        if split.source.start < split.source.end && split.source.end <= split.comm.start {
            words::put_in(
                &bytes[at..split.source.start],
                WordPlace::Columns,
                names,
                out,
            );
            out.extend(names.free_text(split.part(&split.source)));
            at = split.source.end;
        }
        if !split.comm.is_empty() && at <= split.comm.start && split.comm.end <= split.says {
            words::put_in(&bytes[at..split.comm.start], WordPlace::Columns, names, out);
            let comm = split.part(&split.comm);
            let new = names.comm(comm);
            align(out, begin, comm.len(), new.len());
            out.extend(new);
            at = split.comm.end;
        }
        let event = split.part(&split.event);
        if !split.event.is_empty() && at <= split.event.start && split.event.end <= split.says {
            let name = event.rsplit(|byte| *byte == b':').next();
            if let Some(name) = name.filter(|name| !self.events.contains(*name)) {
                self.events.insert(name.to_vec());
            }
            words::put_in(
                &bytes[at..split.event.start],
                WordPlace::Columns,
                names,
                out,
            );
            out.extend(event);
            at = split.event.end;
        }
        words::put_in(
            &bytes[at..split.says.max(at)],
            WordPlace::Columns,
            names,
            out,
        );
        let said = &bytes[split.says.max(at)..];
        match split.content {
            LineContent::Record => says::record(said, names, out),
            LineContent::Function | LineContent::FunctionGraph => {
                frames::put_calls(said, names, out);
            }
            _ => says::event(event, said, names, out),
        }
    }

    /// Returns how much was replaced.
    pub fn counts(&self) -> RedactedCounts {
        self.names.counts()
    }

    /// Returns the names that were replaced: of threads, files and code, and other texts. Words that stay elsewhere, as
    /// the name of an event or of a thread that is no secret, are not among them.
    pub fn replaced(&self) -> ReplacedNames {
        let mut replaced = self.names.replaced(&FormatCatalog::default());
        replaced.retain(|name| !self.events.contains(name) && !stays_elsewhere(name));
        replaced
    }
}

/// Returns whether a word stands for a thread that is no secret: its name, or name and id as ftrace joins them.
fn stays_elsewhere(name: &[u8]) -> bool {
    let text = str::from_utf8(name).unwrap_or_default();
    let is_id = |id: &str| id.bytes().all(|byte| byte.is_ascii_digit());
    let joined = text.rsplit_once('-').filter(|(_, id)| is_id(id));
    public_form(text).is_some() || joined.is_some_and(|(comm, _)| public_form(comm).is_some())
}

/// Makes room for a name, or fills it up, so that what follows stays in its column where it can: names stand to the
/// right of theirs.
fn align(out: &mut Vec<u8>, begin: usize, before: usize, now: usize) {
    for _ in now..before {
        out.push(b' ');
    }
    for _ in before..now {
        let spare = out.len() > begin + 1 && out.ends_with(b"  ");
        if !spare {
            return;
        }
        out.pop();
    }
}
