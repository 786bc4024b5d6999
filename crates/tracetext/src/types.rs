//! The kinds of events of one text, found by the bytes of their names.

use std::collections::HashMap;

use event::{Decoder, EventType, Kind};

use crate::name;

/// One kind of event.
#[derive(Debug)]
pub(crate) struct TypeSlot {
    pub system: Box<str>,
    pub name: Box<str>,
    /// The name as printed first.
    pub label: Box<str>,
    pub kind: Kind,
    /// What the sink said when it was asked.
    pub wanted: bool,
    /// Lines of it.
    pub count: u64,
}

impl TypeSlot {
    /// Returns it as sinks see it.
    #[inline]
    pub(crate) fn event_type(&self, index: usize) -> EventType<'_> {
        EventType {
            index: number(index),
            machine: 0,
            system: &self.system,
            name: &self.name,
            label: &self.label,
            kind: self.kind,
            format: None,
            decoder: Decoder::default(),
            recorded: true,
        }
    }
}

/// A text has at most so many kinds: a kernel has some two thousand, and damaged names must not fill memory.
const MAX_TYPES: usize = 1 << 13;

/// Returns the slot of a name by its hash.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    reason = "the low bits of a hash are a hash"
)]
fn slot_of(hash: u64) -> usize {
    hash as usize % RECENT
}

/// Makes a place in a list short: there are at most [`MAX_TYPES`].
#[inline]
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The kinds of events, in order of appearance.
#[derive(Debug)]
pub(crate) struct Types {
    entries: Vec<TypeSlot>,
    /// The names as printed, with their colons, each with the entry it belongs to.
    keys: Vec<(Box<[u8]>, u32)>,
    /// Where in `keys` a name stands. Its hash resists names made to collide.
    places: HashMap<Box<[u8]>, u32>,
    /// Names seen lately, by a quick hash: position in `keys`.
    recent: Box<[u32; RECENT]>,
}

/// Slots for names seen lately. A text has a few dozen kinds of events.
const RECENT: usize = 512;

impl Default for Types {
    fn default() -> Types {
        Types {
            entries: Vec::new(),
            keys: Vec::new(),
            places: HashMap::new(),
            recent: Box::new([0; RECENT]),
        }
    }
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes eight bytes in; the multiplier is that of FxHash.
#[inline]
pub(crate) fn mix(h: u64, chunk: u64) -> u64 {
    (h.rotate_left(5) ^ chunk).wrapping_mul(0x517c_c1b7_2722_0a95)
}

#[inline]
fn finish(h: u64) -> u64 {
    h ^ h >> 29
}

/// Hashes a word. Only for slots whose loss costs little: it is easy to make words collide.
#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut h = SEED;
    let mut rest = bytes;
    while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
        h = mix(h, u64::from_le_bytes(*chunk));
        rest = tail;
    }
    let mut last = [0u8; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    finish(mix(h, u64::from_le_bytes(last)))
}

/// Returns the length of the word at the start of `text`, ended by a space, and its hash, in one go; `None`
/// when the text ends soon, or the word is long.
#[inline]
pub(crate) fn hashed_word(text: &[u8]) -> Option<(usize, u64)> {
    const SPACES: u64 = 0x2020_2020_2020_2020;
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut h = SEED;
    let mut len = 0;
    while len < 64 {
        let chunk = u64::from_le_bytes(*text.get(len..)?.first_chunk::<8>()?);
        // The lowest high bit marks the first space; those above it may be wrong.
        let space = chunk ^ SPACES;
        let found = space.wrapping_sub(ONES) & !space & HIGH;
        if found != 0 {
            let bytes = found.trailing_zeros() / 8;
            let last = chunk & !(u64::MAX << (bytes * 8));
            return Some((len + bytes as usize, finish(mix(h, last))));
        }
        h = mix(h, chunk);
        len += 8;
    }
    None
}

impl Types {
    /// Returns the kind that is printed with this name, adding it if it is new; `None` when there are too
    /// many already. The second value says whether it is new.
    pub(crate) fn find_or_add(&mut self, key: &[u8]) -> Option<(usize, bool)> {
        if let Some(found) = self.find(key) {
            return Some((found, false));
        }
        self.add(key)
    }

    /// Returns the kind of the event whose name and colon stand at the start of `text`, if it was seen
    /// lately, and the length of the name.
    #[inline]
    pub(crate) fn recent(&self, text: &[u8]) -> Option<(usize, usize)> {
        let (len, hash) = hashed_word(text)?;
        let word = &text[..len];
        let slot = slot_of(hash);
        let found = [slot, slot ^ 1].into_iter().find_map(|slot| {
            let (bytes, entry) = self.keys.get(self.recent[slot] as usize)?;
            (**bytes == *word).then_some(*entry as usize)
        });
        Some((found?, len.saturating_sub(1)))
    }

    fn find(&mut self, key: &[u8]) -> Option<usize> {
        let at = *self.places.get(key)?;
        let (bytes, entry) = self.keys.get(at as usize)?;
        // Two names may share a pair of slots without displacing each other.
        let slot = slot_of(hash(bytes));
        let slot = if self.recent[slot] == 0 {
            slot
        } else {
            slot ^ 1
        };
        self.recent[slot] = at;
        Some(*entry as usize)
    }

    #[cold]
    fn add(&mut self, key: &[u8]) -> Option<(usize, bool)> {
        let (system, name) = split(key);
        // Two spellings of one tracepoint (`kvm:kvm_exit`, `kvm:kvm_exit:u`) are one kind.
        let plain = format!("{system}:{name}").into_bytes();
        let spelt_apart = !system.is_empty() && plain != key;
        if self.keys.len() + 2 > MAX_TYPES {
            return None;
        }
        let known = if spelt_apart { self.find(&plain) } else { None };
        let entry = known.unwrap_or_else(|| {
            self.entries.push(TypeSlot {
                kind: Kind::of(&system, &name),
                system: system.into(),
                name: name.into(),
                label: String::from_utf8_lossy(key).into(),
                wanted: false,
                count: 0,
            });
            self.entries.len() - 1
        });
        self.place(key, entry);
        if spelt_apart && known.is_none() {
            self.place(&plain, entry);
        }
        Some((entry, known.is_none()))
    }

    fn place(&mut self, key: &[u8], entry: usize) {
        self.places.insert(key.into(), number(self.keys.len()));
        let with_colon = [key, b":"].concat();
        self.keys.push((with_colon.into(), number(entry)));
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> &TypeSlot {
        &self.entries[index]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> &mut TypeSlot {
        &mut self.entries[index]
    }

    pub(crate) fn entries(&self) -> &[TypeSlot] {
        &self.entries
    }

    pub(crate) fn into_entries(self) -> Vec<TypeSlot> {
        self.entries
    }
}

/// Splits a printed name in system and name. Modifiers of a tracepoint are dropped: the kind is the
/// tracepoint. Those of perf's own events are part of their names, as in perf's own lists.
fn split(key: &[u8]) -> (String, String) {
    let text = String::from_utf8_lossy(key);
    let Some(colon) = name::system_len(key) else {
        return (String::new(), text.into_owned());
    };
    let (system, name) = (&text[..colon], &text[colon + 1..]);
    let name = match name.split_once(':') {
        Some((name, modifiers)) if name::are_modifiers(modifiers.as_bytes()) => name,
        Some(_) => return (String::new(), text.into_owned()),
        None => name,
    };
    (system.to_owned(), name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tracepoints_have_a_system_and_those_of_perf_have_none() {
        let cases = [
            ("kvm:kvm_exit", "kvm", "kvm_exit"),
            ("kvm:kvm_exit:u", "kvm", "kvm_exit"),
            ("cycles:ppp", "", "cycles:ppp"),
            ("cpu-clock:pppH", "", "cpu-clock:pppH"),
            ("mem:0x1000:rw", "", "mem:0x1000:rw"),
            ("cpu/event=0xc0/u", "", "cpu/event=0xc0/u"),
            (
                "kvm-s390:kvm_s390_sie_exit",
                "kvm-s390",
                "kvm_s390_sie_exit",
            ),
            ("kvm_exit", "", "kvm_exit"),
        ];
        for (key, system, name) in cases {
            assert_eq!(
                split(key.as_bytes()),
                (system.to_owned(), name.to_owned()),
                "{key}"
            );
        }
    }

    #[test]
    fn thousands_of_names_are_all_found_again_and_no_more_than_the_limit_kept() {
        let mut types = Types::default();
        let most = MAX_TYPES - 1;
        for n in 0..most {
            let key = format!("event_{n}");
            assert_eq!(types.find_or_add(key.as_bytes()), Some((n, true)));
        }
        for n in 0..most {
            let key = format!("event_{n}");
            assert_eq!(types.find_or_add(key.as_bytes()), Some((n, false)));
        }
        assert_eq!(types.find_or_add(b"one_more"), None);
    }

    #[test]
    fn a_word_is_hashed_alike_in_place_and_alone() {
        for len in 0..63 {
            let word = "abcdefghijklmnop".repeat(4)[..len].to_owned();
            let text = format!("{word} and what follows it");
            assert_eq!(
                hashed_word(text.as_bytes()),
                Some((len, hash(word.as_bytes())))
            );
        }
        assert_eq!(hashed_word(b"word"), None);
        assert_eq!(hashed_word("a".repeat(100).as_bytes()), None);
        // Bytes next to the space in value do not count as spaces.
        assert_eq!(hashed_word(b"a!\x1f\xa0 12345678").map(|w| w.0), Some(4));
    }

    #[test]
    fn a_name_seen_is_found_in_place() {
        let mut types = Types::default();
        types.find_or_add(b"kvm:kvm_exit");
        types.find_or_add(b"kvm:kvm_exit");
        assert_eq!(types.recent(b"kvm:kvm_exit: vcpu 0 reason"), Some((0, 12)));
        assert_eq!(types.recent(b"kvm:kvm_entry: vcpu 0 reason"), None);
        assert_eq!(types.recent(b"kvm:kvm_exit vcpu 0 reason"), None);
    }

    #[test]
    fn two_spellings_of_a_tracepoint_are_one_kind() {
        let mut types = Types::default();
        assert_eq!(types.find_or_add(b"kvm:kvm_exit"), Some((0, true)));
        assert_eq!(types.find_or_add(b"kvm:kvm_exit:u"), Some((0, false)));
        assert_eq!(types.find_or_add(b"kvm:kvm_exit:u"), Some((0, false)));
    }
}
