//! Definitions of guests in a text: libvirt's XML, as it is or with HTML's entities, and QEMU's command lines.

use std::ops::Range;

use domain::{DefinitionForm, Domain, GuestDefinition};

use crate::lines::{TicketLines, unquoted};

/// Definitions that are kept.
const MAX_DEFINITIONS: usize = 64;
/// Lines that a command line goes on in at most.
const MAX_COMMAND: usize = 256;
/// Options that a command line of QEMU has at least two of, where it is a definition; a mere name of the program is
/// none.
const OPTIONS: [&[u8]; 7] = [
    b" -m ",
    b" -smp ",
    b" -machine ",
    b" -M ",
    b" -cpu ",
    b" -name ",
    b" -drive ",
];

/// A definition and where it stands in its text.
#[derive(Debug)]
pub struct PlacedDefinition {
    /// The definition, which knows its own text.
    pub definition: GuestDefinition,
    /// Its first line, counted from 1.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
    /// Whether it is a command line, which may stand in a list of processes.
    pub(crate) is_command: bool,
}

/// The definitions of a text.
#[derive(Debug, Default)]
pub(crate) struct TextDefinitions {
    /// Each guest's.
    pub(crate) guests: Vec<PlacedDefinition>,
    /// Lists of pins that are of a guest among these, which has them now.
    pub(crate) pins: Vec<PlacedDefinition>,
}

/// Finds definitions. Takes the lines of XML and of lists of pins; those of commands may say of threads too whose they
/// are.
pub(crate) fn definitions(lines: &mut TicketLines<'_>) -> TextDefinitions {
    let mut found = TextDefinitions::default();
    let mut at = 0;
    while at < lines.len() && found.guests.len() + found.pins.len() < MAX_DEFINITIONS {
        let of_xml = xml(lines, at);
        let is_list = of_xml.is_none();
        let whole = of_xml.or_else(|| pins(lines, at));
        let is_command = whole.is_none();
        let Some(range) = whole.or_else(|| command(lines, at)) else {
            at += 1;
            continue;
        };
        let text = text(lines, &range, is_list && !is_command);
        at = range.end;
        if is_command && !has_options(&text) {
            continue;
        }
        let read = domain::definitions(&text).unwrap_or_default();
        let Ok([definition]) = <[GuestDefinition; 1]>::try_from(read) else {
            continue;
        };
        let is_pins = definition.domain.form == DefinitionForm::Virsh;
        let one = PlacedDefinition {
            definition,
            first_line: range.start as u64 + 1,
            last_line: range.end as u64,
            is_command,
        };
        match is_pins {
            true => found.pins.push(one),
            false => found.guests.push(one),
        }
        if !is_command {
            lines.take(range);
        }
    }
    found.give_pins();
    found
}

impl TextDefinitions {
    /// Gives each list of pins to the guest that it is of: the one of its name, or the only one. Others are of guests
    /// of their own.
    fn give_pins(&mut self) {
        for one in std::mem::take(&mut self.pins) {
            let pins = &one.definition.domain;
            let guests = self.guests.iter().map(|guest| &guest.definition.domain);
            let of_name = guests.clone().position(|guest| guest.name == pins.name);
            let only = (self.guests.len() == 1).then_some(0);
            let guest = match pins.name.is_empty() {
                true => only,
                false => of_name.or(only.filter(|_| guests.clone().all(|one| one.name.is_empty()))),
            };
            let guest = guest.and_then(|at| self.guests.get_mut(at));
            match guest.filter(|guest| fits(&guest.definition.domain, pins)) {
                Some(guest) => {
                    guest.definition.domain.fill_pins(pins);
                    self.pins.push(one);
                }
                None => self.guests.push(one),
            }
        }
        self.guests.sort_by_key(|guest| guest.first_line);
    }
}

/// Whether a list of pins may be of the guest that another list is of; of a definition it may always be.
fn fits(guest: &Domain, pins: &Domain) -> bool {
    let known = &guest.vcpu_pins;
    let mut pins = pins.vcpu_pins.iter();
    guest.form != DefinitionForm::Virsh
        || pins.all(|(vcpu, cpus)| known.get(vcpu).is_none_or(|known| known == cpus))
}

/// Returns the lines of what virsh lists of where threads may run, if that begins at a line.
fn pins(lines: &TicketLines<'_>, at: usize) -> Option<Range<usize>> {
    let first = lines.free(at);
    // What is neither a command nor a label of such a list does not begin one.
    let begins = [&b"virsh "[..], b"VCPU", b"emulator", b"IOThread"];
    if !begins
        .iter()
        .any(|word| memchr::memmem::find(first, word).is_some())
    {
        return None;
    }
    let clean = |at: usize| {
        let line = String::from_utf8_lossy(lines.free(at));
        pasted::clean(&line).into_owned()
    };
    let used = domain::virsh_lines((at..lines.len()).map(clean));
    (used > 0).then_some(at..at + used)
}

/// Returns the lines of a domain's XML that begins at a line.
fn xml(lines: &TicketLines<'_>, at: usize) -> Option<Range<usize>> {
    let begins = |line: &[u8]| {
        let starts: [&[u8]; 4] = [b"<domain ", b"<domain>", b"&lt;domain ", b"&lt;domain&gt;"];
        let bare = unquoted(line).trim_ascii_start();
        starts.iter().any(|start| bare.starts_with(start))
    };
    if !begins(lines.free(at)) {
        return None;
    }
    let ends = |line: &[u8]| {
        let ends: [&[u8]; 2] = [b"</domain>", b"&lt;/domain&gt;"];
        ends.iter()
            .any(|end| memchr::memmem::find(line, end).is_some())
    };
    // Another one that begins first means that the end of this one was not pasted.
    let last = (at..lines.len()).find(|line| {
        let text = lines.free(*line);
        ends(text) || *line > at && begins(text)
    });
    match last.filter(|last| ends(lines.free(*last))) {
        Some(last) => Some(at..last + 1),
        None => Some(at..at + cut_lines(lines, at, last)),
    }
}

/// Returns how many lines a domain's XML has that begins at a line and whose end was not pasted: those that are markup,
/// or empty between them, before a line where another one begins.
fn cut_lines(lines: &TicketLines<'_>, at: usize, before: Option<usize>) -> usize {
    let is_markup = |line: &[u8]| line.starts_with(b"<") || line.starts_with(b"&lt;");
    let mut used = 0;
    for (line, count) in (at..before.unwrap_or(lines.len())).zip(1..) {
        let bare = unquoted(lines.free(line)).trim_ascii_start();
        if is_markup(bare) {
            used = count;
        } else if !bare.is_empty() {
            break;
        }
    }
    used
}

/// Returns the lines of a command line of QEMU that begins at a line, with the lines that it goes on in.
fn command(lines: &TicketLines<'_>, at: usize) -> Option<Range<usize>> {
    let has = |line: &[u8], what: &[u8]| memchr::memmem::find(line, what).is_some();
    let first = lines.free(at);
    if !has(first, b"qemu-system-") && !has(first, b"qemu-kvm") {
        return None;
    }
    let goes_on = |at: &usize| lines.line(*at).trim_ascii_end().ends_with(b"\\");
    let broken = (at..lines.len().saturating_sub(1)).take(MAX_COMMAND);
    let end = at + 1 + broken.take_while(goes_on).count();
    Some(at..end)
}

/// Whether a text has as many of QEMU's options as a definition.
fn has_options(text: &[u8]) -> bool {
    let has = |option: &&&[u8]| memchr::memmem::find(text, option).is_some();
    OPTIONS.iter().filter(has).count() > 1
}

/// Returns lines as one text. Entities are XML's own, unless its tags have some, or it is a list.
fn text(lines: &TicketLines<'_>, range: &Range<usize>, is_list: bool) -> Vec<u8> {
    let first = lines.line(range.start);
    let is_escaped = is_list || memchr::memmem::find(first, b"&lt;").is_some();
    let text: String = range
        .clone()
        .map(|at| match is_escaped {
            true => {
                let line = String::from_utf8_lossy(lines.line(at));
                let line = pasted::clean(&line);
                pasted::unquoted(&line).unwrap_or(&line).to_owned() + "\n"
            }
            false => {
                String::from_utf8_lossy(unquoted(lines.line(at))).replace('\u{a0}', " ") + "\n"
            }
        })
        .collect();
    text.into_bytes()
}
