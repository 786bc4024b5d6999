//! Heads of lines like those before: most lines differ from an earlier one in nothing before the time's decimals, so
//! who it was and the second are taken from there.

use event::text::eight_digits;

use crate::head::{self, EventHead, HeadName, HeadRest};
use crate::scan;
use crate::span::LineSpan;
use crate::types::{self, Types};
use crate::who::LineTask;

/// Lines remembered: a few for each CPU.
const SLOTS: usize = 256;
/// Bytes before the decimal point that are compared.
const REACH: usize = 64;

/// A line as it was up to the decimal point of its time.
#[derive(Debug, Clone)]
struct SeenHead {
    bytes: [u8; REACH],
    /// How many bytes there are; 0 if there was no line.
    len: u8,
    /// Whether its columns were read as perf's.
    perf: bool,
    who: LineTask,
    /// The time's full seconds, in nanoseconds.
    seconds: u64,
}

/// A name as it stood in a line with what pads it, from the time's colon to its own.
#[derive(Debug, Clone)]
struct SeenName {
    bytes: [u8; REACH],
    /// How many bytes there are; 0 if there was no name.
    len: u8,
    /// How many of them are before the name.
    padding: u8,
    has_system: bool,
    ty: u16,
}

impl Default for SeenHead {
    fn default() -> SeenHead {
        SeenHead {
            bytes: [0; REACH],
            len: 0,
            perf: false,
            who: LineTask::default(),
            seconds: 0,
        }
    }
}

impl Default for SeenName {
    fn default() -> SeenName {
        SeenName {
            bytes: [0; REACH],
            len: 0,
            padding: 0,
            has_system: false,
            ty: 0,
        }
    }
}

/// Reads heads of lines, with those of earlier lines at hand.
#[derive(Debug, Default)]
pub(crate) struct HeadCache {
    /// Where the time stamp of the last event's line ended.
    colon: usize,
    /// Digits behind its decimal point if they are 6 or 9; else 0.
    decimals: u8,
    /// By a hash of the bytes before the decimal point. None before the first line that is worth it.
    seen: Vec<SeenHead>,
    /// Where the last event's name ended: perf pads names from the left, so that all end there.
    name_end: usize,
    /// By a hash of the bytes before that.
    names: Vec<SeenName>,
}

/// Reads the digits between a decimal point and the colon as nanoseconds, if they are as many as said.
#[inline]
fn fraction(line: &[u8], colon: usize, decimals: u8) -> Option<u64> {
    let digits = u64::from_le_bytes(*line.get(..colon)?.last_chunk::<8>()?);
    if decimals == 6 {
        // The second and the point stand before them.
        let point = digits >> 8 & 0xff == u64::from(b'.');
        let micros = eight_digits(digits & !0xffff | 0x3030)?;
        return point.then_some(u64::from(micros) * 1000);
    }
    let &[b'.', first, ..] = line[..colon].last_chunk::<10>()? else {
        return None;
    };
    let first = first.wrapping_sub(b'0');
    (first <= 9).then_some(u64::from(first) * 100_000_000 + u64::from(eight_digits(digits)?))
}

/// Returns the slot of a line by the last bytes before its decimal point: second, CPU and thread, as a rule.
#[inline]
fn slot_of(before: &[u8]) -> Option<usize> {
    let (rest, last) = before.split_last_chunk::<8>()?;
    let (_, first) = rest.split_last_chunk::<8>()?;
    let hash = types::mix(u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    // Of a product the high bits depend on all others.
    usize::try_from(hash >> 56).ok()
}

impl HeadCache {
    /// Reads the head of a line; `None` when the line is no event's. `perf` is that of [`head::parse`].
    #[inline]
    pub(crate) fn parse(&mut self, line: &[u8], types: &Types, perf: bool) -> Option<EventHead> {
        if let Some(head) = self.seen(line, types, perf) {
            return Some(head);
        }
        let head = head::parse_near(line, self.colon, types, perf)?;
        self.note(line, &head, perf);
        Some(head)
    }

    /// Reads the head of a line that begins like another.
    #[inline]
    fn seen(&mut self, line: &[u8], types: &Types, perf: bool) -> Option<EventHead> {
        let (colon, decimals) = (self.colon, self.decimals);
        if decimals == 0 || line.get(colon..)?.first_chunk::<2>()? != b": " {
            return None;
        }
        let fraction = fraction(line, colon, decimals)?;
        let before = line.get(..colon - usize::from(decimals) - 1)?;
        let slot = slot_of(before)?;
        let seen = self.seen.get(slot)?;
        if seen.bytes.get(..usize::from(seen.len)) != Some(before) {
            return None;
        }
        let name = match self.seen_name(line) {
            Some(name) => name,
            None => self.known_name(line, types)?,
        };
        let seen = self.seen.get(slot)?;
        if seen.perf != (perf || name.has_system) {
            return None;
        }
        let time = seen.seconds.checked_add(fraction)?;
        Some(name.of(seen.who, time, decimals, colon))
    }

    /// Reads a name that ends where the last one did.
    #[inline]
    fn seen_name(&self, line: &[u8]) -> Option<HeadName> {
        let (from, end) = (self.colon + 1, self.name_end);
        let &[b':', b' ', behind, ..] = line.get(end..)? else {
            return None;
        };
        let padded = line.get(from..end)?;
        let name = self.names.get(slot_of(padded)?)?;
        if name.bytes.get(..usize::from(name.len)) != Some(padded) {
            return None;
        }
        let args = match scan::is_blank(behind) {
            false => end + 2,
            true => scan::skip_blanks(line, end + 1),
        };
        let start = from + usize::from(name.padding);
        Some(HeadName {
            what: HeadRest::Event,
            span: LineSpan::new(start, end),
            has_system: name.has_system,
            padded: head::padding(line, start, end - start, args),
            ty: Some(name.ty),
            args,
        })
    }

    /// Reads another name, and remembers it if all end there.
    #[inline(never)]
    fn known_name(&mut self, line: &[u8], types: &Types) -> Option<HeadName> {
        let name = head::known_name(line, self.colon + 1, types)?;
        if usize::from(name.span.end) == self.name_end {
            self.note_name(line, name.span, name.ty, name.has_system);
        }
        Some(name)
    }

    /// Remembers a name of the last line, if its kind is known.
    fn note_name(&mut self, line: &[u8], span: LineSpan, ty: Option<u16>, has_system: bool) {
        let (from, end) = (self.colon + 1, usize::from(span.end));
        self.name_end = end;
        let (Some(ty), Some(padded)) = (ty, line.get(from..end)) else {
            return;
        };
        let Some(slot) = slot_of(padded) else {
            return;
        };
        if self.names.is_empty() {
            self.names.resize(SLOTS, SeenName::default());
        }
        let name = &mut self.names[slot];
        let Some(place) = name.bytes.get_mut(..padded.len()) else {
            return;
        };
        place.copy_from_slice(padded);
        // At most `REACH`, as was asked.
        let short = |len: usize| u8::try_from(len).unwrap_or(0);
        name.len = short(padded.len());
        name.padding = short(usize::from(span.start).saturating_sub(from));
        name.has_system = has_system;
        name.ty = ty;
    }

    /// Remembers a line.
    fn note(&mut self, line: &[u8], head: &EventHead, perf: bool) {
        self.colon = usize::from(head.colon);
        self.note_name(line, head.name, head.ty, head.has_system);
        self.decimals = 0;
        // What is read of others depends on more than what stands before the time.
        if !matches!(head.decimals, 6 | 9) || head.who.cpu < 0 || head.what != HeadRest::Event {
            return;
        }
        let before = self.colon.checked_sub(usize::from(head.decimals) + 1);
        let before = before.and_then(|end| line.get(..end)).unwrap_or_default();
        let Some(fraction) = fraction(line, self.colon, head.decimals) else {
            return;
        };
        self.decimals = head.decimals;
        let (Some(slot), Some(seconds)) = (slot_of(before), head.time.checked_sub(fraction)) else {
            return;
        };
        if self.seen.is_empty() {
            self.seen.resize(SLOTS, SeenHead::default());
        }
        let seen = &mut self.seen[slot];
        let Some(place) = seen.bytes.get_mut(..before.len()) else {
            return;
        };
        place.copy_from_slice(before);
        // At most `REACH`, as was asked.
        seen.len = u8::try_from(before.len()).unwrap_or(0);
        seen.perf = perf || head.has_system;
        seen.who = head.who;
        seen.seconds = seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads lines with what was remembered of those before, and says whether each is read as it is alone.
    #[track_caller]
    fn reads_as_alone(lines: &[String], perf: bool) {
        let (mut cache, mut types) = (HeadCache::default(), Types::default());
        for line in lines.iter().chain(lines) {
            let line = line.as_bytes();
            let read = cache.parse(line, &types, perf);
            let alone = head::parse(line, &types, perf);
            assert_eq!(
                format!("{read:?}"),
                format!("{alone:?}"),
                "{}",
                String::from_utf8_lossy(line)
            );
            if let Some(head) = read {
                types.find_or_add(head.name.of(line));
            }
        }
    }

    #[test]
    fn lines_are_read_as_they_are_without_others() {
        let heads = [
            "       CPU 0/KVM  4868 [002]",
            "       CPU 0/KVM  4868 [002]",
            "       CPU 1/KVM  4869 [000]",
            "       CPU 0/KVM-4868  [002] d..2.",
            "       CPU 0/KVM-4868  [002]",
            "       CPU 0/KVM-4868  (   4860) [002] d..2.",
            "       CPU 0/KVM  4868",
            "host.dat:       CPU 0/KVM-4868  [002]",
            "> host.dat:12:       CPU 0/KVM-4868  [002] and much more before the time than is compared",
            "[002]",
            "",
        ];
        let times = [
            "1072.138680",
            "1072.138684",
            "1073.000000",
            "1072.138684999",
            "1072.138680001",
            "01072.138684",
            "1072.13868a",
            "1072138684",
            "1072:138684",
            "18446744073.709551",
            "18446744073.709552",
            "99999999999999999999.138684",
        ];
        let names = [
            "kvm:kvm_fpu: load",
            "                   kvm:kvm_fpu: unload",
            "kvm_fpu: unload",
            "kvm_fpu:              unload",
            "(+12) kvm_fpu: unload",
            "never_seen_before",
        ];
        let mut lines = Vec::new();
        for head in heads {
            for time in times {
                for name in names {
                    lines.push(format!("{head} {time}: {name}"));
                    lines.push(format!("{head} {time}:\t{name}"));
                    lines.push(format!("{head} {time}:{name}"));
                }
            }
        }
        reads_as_alone(&lines, false);
        reads_as_alone(&lines, true);
        // In an order in which neighbours have little in common.
        let mixed: Vec<String> = (0..lines.len())
            .map(|at| lines[at * 101 % lines.len()].clone())
            .collect();
        reads_as_alone(&mixed, false);
    }

    #[test]
    fn what_was_read_as_perfs_is_not_taken_for_others() {
        let lines = [
            "a-12 34 [002] 5.000001: kvm:kvm_fpu: load",
            "a-12-34 [002] 5.000001: kvm:kvm_fpu: load",
            "a-12-34 [002] 5.000001: kvm_fpu: load",
            "a-12 34 [002] 5.000001: kvm_fpu: load",
        ];
        for first in 0..lines.len() {
            let mut turned = lines.map(str::to_owned);
            turned.rotate_left(first);
            reads_as_alone(&turned, false);
        }
    }
}
