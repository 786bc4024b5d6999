//! Whether names that were replaced still stand in the new file.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tracefmt::FormatCatalog;

/// Shorter names stand in numbers by chance, and are not looked for.
const SHORTEST: usize = 6;

/// Bytes that are looked through before they are given back.
const PIECE: usize = 1 << 20;

/// The names that were replaced in a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplacedNames {
    names: HashSet<Vec<u8>>,
}

/// A name that was replaced and still stands in the new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemainingName {
    /// The name.
    pub name: String,
    /// How often it stands there.
    pub times: u64,
}

/// What a look at a redacted recording has shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedactionCheck {
    /// How many events the reader finds in it.
    pub events: u64,
    /// How many it finds in the original.
    pub events_before: u64,
    /// Whether the events of both have the same types, times, CPUs and threads, in the same order.
    pub is_same: bool,
    /// How many replaced names were looked for.
    pub names: usize,
    /// Those that still stand in it, most frequent first.
    pub remaining: Vec<RemainingName>,
}

impl ReplacedNames {
    /// Returns those of these names that are looked for: at least six bytes long, and none of those that the
    /// recording's formats have, which stay.
    pub(crate) fn of<'n>(
        names: impl Iterator<Item = &'n [u8]>,
        formats: &FormatCatalog,
    ) -> ReplacedNames {
        let mut names: HashSet<Vec<u8>> = names
            .filter(|name| name.len() >= SHORTEST)
            .map(<[u8]>::to_vec)
            .collect();
        for format in formats.all() {
            let fields = format.fields.iter().map(|field| &field.name);
            for public in [&format.system, &format.name].into_iter().chain(fields) {
                names.remove(public.as_bytes());
            }
        }
        ReplacedNames { names }
    }

    /// Keeps those names alone of which this holds.
    pub(crate) fn retain(&mut self, holds: impl Fn(&[u8]) -> bool) {
        self.names.retain(|name| holds(name));
    }

    /// Returns how many are looked for.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Returns those that stand in a file as a text of their own, or as a word of one, most frequent first. `release`
    /// takes the places that were looked through, which are not needed in memory any more.
    pub fn remaining_in(
        &self,
        file: &[u8],
        release: &mut dyn FnMut(Range<usize>),
    ) -> Vec<RemainingName> {
        let mut found: HashMap<&[u8], u64> = HashMap::new();
        let mut look = |text: &[u8]| {
            if let Some(name) = self.names.get(text) {
                *found.entry(name).or_default() += 1;
            }
        };
        let (mut at, mut released) = (0, 0);
        for text in file.split(|byte| !is_printed(*byte)) {
            at += text.len() + 1;
            if at - released >= PIECE {
                release(released..at.min(file.len()));
                released = at;
            }
            if text.len() < SHORTEST {
                continue;
            }
            look(text);
            for word in text.split(|byte| !is_of_word(*byte)) {
                if word.len() >= SHORTEST && word.len() < text.len() {
                    look(word);
                }
            }
        }
        let found = found.into_iter().map(|(name, times)| RemainingName {
            name: String::from_utf8_lossy(name).into_owned(),
            times,
        });
        let mut found: Vec<RemainingName> = found.collect();
        found.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| a.name.cmp(&b.name)));
        found
    }
}

fn is_printed(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte) || byte >= 0x80
}

/// Names of programs and files have these; a path's slashes are of it.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'+' | b'@')
        || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_texts_and_words_are_found_and_parts_of_words_are_not() {
        let names = [
            &b"postgres"[..],
            b"/home/alice/db",
            b"my thread",
            b"bash",
            b"secret",
        ];
        let names = ReplacedNames::of(names.into_iter(), &FormatCatalog::default());
        assert_eq!(names.count(), 4, "one is too short");
        let file = b"\0\x01postgres\0x postgres=1\0postgresql\0\x02my thread\0bash\0a /home/alice/db b\xff";
        let mut given = Vec::new();
        let found = names.remaining_in(file, &mut |range| given.push(range));
        let found: Vec<(&str, u64)> = found
            .iter()
            .map(|one| (one.name.as_str(), one.times))
            .collect();
        assert_eq!(
            found,
            [("postgres", 2), ("/home/alice/db", 1), ("my thread", 1)]
        );
        assert_eq!(given, [], "so few bytes are kept");
        let long = b"a postgres\n".repeat(PIECE / 4);
        let found = names.remaining_in(&long, &mut |range| given.push(range));
        assert_eq!(found[0].times, PIECE as u64 / 4);
        let ends = given.iter().map(|range| range.end);
        let begins = given.iter().map(|range| range.start);
        assert!([0].into_iter().chain(ends).eq(begins.chain([given[1].end])));
        assert!(given.len() == 2 && given[1].end <= long.len());
    }

    #[test]
    fn names_of_events_and_fields_stay() {
        let mut formats = FormatCatalog::default();
        let text = "name: acme_event\nID: 7\nformat:\n\tfield:int customer;\toffset:8;\tsize:4;\tsigned:1;\n\n\
            print fmt: \"\"\n";
        formats.add("acmesystem", text.as_bytes());
        let names = [
            &b"acme_event"[..],
            b"customer",
            b"acmesystem",
            b"acme_other",
        ];
        let names = ReplacedNames::of(names.into_iter(), &formats);
        assert_eq!(
            names
                .remaining_in(b"acme_event customer acmesystem acme_other", &mut |_| {})
                .len(),
            1
        );
    }
}
