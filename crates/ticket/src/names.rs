//! What a part is called, and which guest it is of: by the nearest heading or sentence before it.

use domain::GuestOs;

use crate::definitions::PlacedDefinition;
use crate::lines::TicketLines;
use crate::ticket_part::TicketPart;

/// Lines that it may stand before, as `perftables` has it for tables.
const NEAR: usize = 6;

/// Returns the nearest line before a part that may be its name.
pub(crate) fn name_before(lines: &TicketLines<'_>, first: usize) -> Option<String> {
    let before = (first.saturating_sub(NEAR)..first).rev();
    before
        .filter(|at| lines.is_free(*at))
        .find_map(|at| perftables::label_of_line(&String::from_utf8_lossy(lines.line(at))))
}

/// Words that name what runs in a guest, in small letters.
const WINDOWS: [&str; 5] = ["windows", "win7", "win10", "win11", "win2k"];
const LINUX: [&str; 7] = [
    "linux", "ubuntu", "debian", "centos", "fedora", "rhel", "opensuse",
];
/// Shorter names may be any word.
const MIN_NAME: usize = 3;

/// The guests that a text has definitions of, and the words that name each.
pub(crate) struct NamedGuests {
    /// By definition.
    words: Vec<Vec<String>>,
}

impl NamedGuests {
    pub(crate) fn new(definitions: &[PlacedDefinition]) -> NamedGuests {
        let domains = || definitions.iter().map(|one| &one.definition.domain);
        let words = domains().map(|domain| {
            let mut words = vec![domain.name.to_lowercase()];
            words.retain(|name| name.chars().count() >= MIN_NAME);
            let only = domains().filter(|other| other.os == domain.os).count() == 1;
            // A name says it where the definition does not.
            let windows =
                domain.os == GuestOs::Unknown && domain.name.to_lowercase().starts_with("win");
            let of_system: &[&str] = match domain.os {
                _ if windows => &WINDOWS,
                GuestOs::Windows if only => &WINDOWS,
                GuestOs::Linux if only => &LINUX,
                _ => &[],
            };
            words.extend(of_system.iter().map(|word| (*word).to_owned()));
            words
        });
        NamedGuests {
            words: words.collect(),
        }
    }

    /// Says of each part which guest it is of, in the order of the text: the one that the nearest line before it names,
    /// and no other one; of a text with one definition that. A line inside a definition names its guest.
    pub(crate) fn assign(
        &self,
        lines: &TicketLines<'_>,
        definitions: &[PlacedDefinition],
        parts: &mut [TicketPart],
    ) {
        if self.words.len() < 2 {
            let only = (!self.words.is_empty()).then_some(0);
            parts.iter_mut().for_each(|part| part.definition = only);
            return;
        }
        let mut guest = None;
        let mut at = 0;
        for part in parts {
            let first = usize::try_from(part.first_line).unwrap_or(usize::MAX);
            while at + 1 < first {
                let line = at as u64 + 1;
                let mut definitions = definitions.iter();
                let inside =
                    definitions.position(|one| (one.first_line..=one.last_line).contains(&line));
                match (inside, self.named(&String::from_utf8_lossy(lines.free(at)))) {
                    (Some(one), _) | (None, GuestMention::Guest(one)) => guest = Some(one),
                    (None, GuestMention::Another) => guest = None,
                    (None, GuestMention::Nobody) => {}
                }
                at += 1;
            }
            part.definition = guest;
        }
    }

    /// Says which guest a line names.
    fn named(&self, line: &str) -> GuestMention {
        if line.is_empty() {
            return GuestMention::Nobody;
        }
        let line = line.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| has_word(&line, word));
        let systems = [&WINDOWS[..], &LINUX[..]]
            .into_iter()
            .filter(|words| has(words));
        let of = |words: &Vec<String>| words.iter().any(|word| has_word(&line, word));
        let mut all = self.words.iter().enumerate().filter(|(_, words)| of(words));
        match (all.next(), all.next(), systems.count()) {
            (Some((guest, _)), None, 0 | 1) => GuestMention::Guest(guest),
            // It names a system, and no definition is known to be of one.
            (None, _, 1) => GuestMention::Another,
            _ => GuestMention::Nobody,
        }
    }
}

/// Which guest a line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GuestMention {
    /// None, or several at once.
    Nobody,
    /// The guest of this definition.
    Guest(usize),
    /// One that has no definition here.
    Another,
}

/// Whether a word stands in a line, with no letter or digit of ASCII beside it.
fn has_word(line: &str, word: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let behind = line
            .get(at + word.len()..)
            .and_then(|text| text.chars().next());
        !joins(before) && !joins(behind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_alone() {
        assert!(has_word("2.2.2. windows timer", "windows"));
        assert!(has_word("由于windows虚机", "windows"));
        assert!(!has_word("subwindows", "windows"));
        assert!(!has_word("win100", "win10"));
        assert!(has_word("monitor win10-2 --hmp", "win10-2"));
    }
}
