//! Packets of a trace: all of one sequence, in which each name is written once.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Deref;

use render::neutral;
use rustc_hash::FxHashMap;

use super::numbers::{event, interned, packet, trace};
use crate::proto::ProtoMessage;

/// The one sequence that all packets are of.
const SEQUENCE: u64 = 1;

/// Names of a kind that are kept; what is beyond is written where it stands.
const MAX_KEPT: usize = 1 << 16;

/// Bytes of a name at most.
const MAX_NAME: usize = 512;

/// Returns a name as it may stand in a trace: nothing in it steers what shows it, and it is no longer than names are.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    let Some(cut) = text.get(..text.floor_char_boundary(MAX_NAME)) else {
        return Cow::Borrowed("");
    };
    match (cut.len() < text.len(), neutral::name(cut)) {
        (false, shown) => shown,
        (true, shown) => Cow::Owned(format!("{shown}…")),
    }
}

/// Returns a time as Perfetto takes it: it reckons with signed numbers.
pub(super) fn time(ns: u64) -> u64 {
    ns.min(i64::MAX.cast_unsigned())
}

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PacketKind {
    Begin,
    End,
    Instant,
    Count(u64),
    Rate(f64),
}

/// A text that packets have again and again, with the number that stands for it once a packet has had it. It is of
/// one kind: the title of events, or of an argument.
#[derive(Debug)]
pub(super) struct NumberedText {
    text: Box<str>,
    /// 0 as long as there is none.
    number: Cell<u64>,
}

impl NumberedText {
    pub(super) fn new(text: impl Into<Box<str>>) -> NumberedText {
        NumberedText {
            text: text.into(),
            number: Cell::new(0),
        }
    }
}

/// A text that many events have.
#[derive(Debug, Clone, Copy)]
pub(super) enum PacketText<'a> {
    /// The number that stands for it is looked up.
    Plain(&'a str),
    /// One of the few that the program itself has.
    Ours(&'static str),
    /// Its number is kept beside it.
    Numbered(&'a NumberedText),
}

impl<'a> PacketText<'a> {
    fn text(self) -> &'a str {
        match self {
            PacketText::Plain(text) | PacketText::Ours(text) => text,
            PacketText::Numbered(known) => &known.text,
        }
    }
}

/// A value beside an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arg<'a> {
    Uint(u64),
    Int(i64),
    Flag(bool),
    /// A text that many events have.
    Name(PacketText<'a>),
    /// A text of this event alone.
    Text(&'a str),
}

/// Arguments of an event at most.
const MOST_ARGS: usize = 8;

/// The arguments of an event with their names.
#[derive(Debug)]
pub(super) struct ArgList<'a> {
    all: [(&'static str, Arg<'a>); MOST_ARGS],
    count: usize,
}

impl Default for ArgList<'_> {
    fn default() -> Self {
        ArgList {
            all: [("", Arg::Flag(false)); MOST_ARGS],
            count: 0,
        }
    }
}

impl<'a> ArgList<'a> {
    /// Adds an argument; no event has more than there is room for.
    #[inline]
    pub(super) fn push(&mut self, arg: (&'static str, Arg<'a>)) {
        if let Some(place) = self.all.get_mut(self.count) {
            *place = arg;
            self.count += 1;
        }
    }
}

impl<'a> Deref for ArgList<'a> {
    type Target = [(&'static str, Arg<'a>)];

    fn deref(&self) -> &Self::Target {
        self.all.get(..self.count).unwrap_or_default()
    }
}

/// An event of a track.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrackEvent<'a> {
    pub time: u64,
    pub track: u64,
    pub kind: PacketKind,
    pub category: Option<&'static str>,
    pub name: Option<PacketText<'a>>,
    pub args: &'a [(&'static str, Arg<'a>)],
    /// The flow that goes through it, and whether it ends there.
    pub flow: Option<(u64, bool)>,
}

impl<'a> TrackEvent<'a> {
    /// Returns one that says nothing but when, where and what it is.
    pub(super) fn new(time: u64, track: u64, kind: PacketKind) -> TrackEvent<'a> {
        TrackEvent {
            time,
            track,
            kind,
            category: None,
            name: None,
            args: &[],
            flow: None,
        }
    }
}

/// Names of one kind, and the numbers that stand for them.
#[derive(Debug)]
struct InternedNames {
    field: u32,
    kept: FxHashMap<Box<str>, u64>,
    /// Names of the program itself, which are found by their places.
    ours: Vec<(&'static str, u64)>,
}

impl InternedNames {
    fn new(field: u32) -> InternedNames {
        InternedNames {
            field,
            kept: FxHashMap::default(),
            ours: Vec::new(),
        }
    }

    /// Returns the number that stands for a text, 0 if there are too many; a new one is appended to `fresh`.
    #[inline]
    fn number_of(&mut self, text: PacketText<'_>, fresh: &mut ProtoMessage) -> u64 {
        match text {
            PacketText::Numbered(known) => match known.number.get() {
                0 => {
                    let number = self.number(&known.text, fresh);
                    known.number.set(number);
                    number
                }
                number => number,
            },
            PacketText::Ours(name) => self.number_of_ours(name, fresh),
            PacketText::Plain(name) => self.number(name, fresh),
        }
    }

    /// Returns the same of one of the few names that the program itself has.
    #[inline]
    fn number_of_ours(&mut self, name: &'static str, fresh: &mut ProtoMessage) -> u64 {
        let same = |one: &&(&'static str, u64)| std::ptr::eq(one.0, name);
        if let Some((_, number)) = self.ours.iter().find(same) {
            return *number;
        }
        let number = self.number(name, fresh);
        self.ours.push((name, number));
        number
    }

    /// Returns the number that stands for a name, 0 if there are too many; a new one is appended to `fresh`.
    fn number(&mut self, name: &str, fresh: &mut ProtoMessage) -> u64 {
        if let Some(number) = self.kept.get(name) {
            return *number;
        }
        if self.kept.len() >= MAX_KEPT {
            return 0;
        }
        let number = self.kept.len() as u64 + 1;
        self.kept.insert(name.into(), number);
        let text = shown(name);
        fresh.message(self.field, |one| {
            one.uint(interned::IID, number);
            one.bytes(interned::TEXT, text.as_bytes());
        });
        number
    }
}

/// Packets under way.
#[derive(Debug)]
pub(super) struct Packets {
    out: ProtoMessage,
    /// Names that the next packet defines.
    fresh: ProtoMessage,
    categories: InternedNames,
    names: InternedNames,
    arg_names: InternedNames,
    arg_texts: InternedNames,
    /// The numbers of the names and texts of the arguments of an event.
    numbers: Vec<(u64, u64)>,
    begun: bool,
}

impl Packets {
    pub(super) fn new() -> Packets {
        Packets {
            out: ProtoMessage::default(),
            fresh: ProtoMessage::default(),
            categories: InternedNames::new(interned::EVENT_CATEGORIES),
            names: InternedNames::new(interned::EVENT_NAMES),
            arg_names: InternedNames::new(interned::ANNOTATION_NAMES),
            arg_texts: InternedNames::new(interned::ANNOTATION_STRINGS),
            numbers: Vec::new(),
            begun: false,
        }
    }

    pub(super) fn made(&mut self) -> &mut Vec<u8> {
        self.out.bytes_mut()
    }

    /// Adds a packet. The first one says that no name was defined before it.
    pub(super) fn packet(&mut self, fill: impl FnOnce(&mut ProtoMessage)) {
        let first = !std::mem::replace(&mut self.begun, true);
        self.out.message(trace::PACKET, |one| {
            one.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            if first {
                one.uint(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
                one.uint(packet::FIRST_PACKET_ON_SEQUENCE, 1);
            }
            fill(one);
        });
    }

    /// Adds an event of a track.
    pub(super) fn event(&mut self, reported: &TrackEvent<'_>) {
        let fresh = &mut self.fresh;
        let category = reported
            .category
            .map(|name| self.categories.number_of_ours(name, fresh));
        let name = reported
            .name
            .map(|name| (self.names.number_of(name, fresh), name));
        self.numbers.clear();
        for (name, arg) in reported.args {
            let number = self.arg_names.number_of_ours(name, fresh);
            let text = match arg {
                Arg::Name(text) => self.arg_texts.number_of(*text, fresh),
                _ => 0,
            };
            self.numbers.push((number, text));
        }
        let numbers = &self.numbers;
        self.out.message(trace::PACKET, |one| {
            one.uint(packet::TIMESTAMP, time(reported.time));
            one.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            // What ends needs no name.
            if reported.name.is_some() {
                one.uint(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
            }
            if !fresh.is_empty() {
                one.bytes(packet::INTERNED_DATA, fresh.as_bytes());
            }
            one.message(packet::TRACK_EVENT, |one| {
                if let Some(category) = category {
                    one.uint(event::CATEGORY_IIDS, category);
                }
                for ((_, arg), (name, text)) in reported.args.iter().zip(numbers) {
                    one.message(event::DEBUG_ANNOTATIONS, |one| {
                        one.uint(event::ANNOTATION_NAME_IID, *name);
                        argument(one, *arg, *text);
                    });
                }
                one.uint(event::TYPE, kind(reported.kind));
                match name {
                    Some((0, text)) => {
                        one.bytes(event::NAME, shown(text.text()).as_bytes());
                    }
                    Some((number, _)) => one.uint(event::NAME_IID, number),
                    None => {}
                }
                one.uint(event::TRACK_UUID, reported.track);
                match reported.kind {
                    PacketKind::Count(count) => one.uint(event::COUNTER_VALUE, time(count)),
                    PacketKind::Rate(rate) => one.double(event::DOUBLE_COUNTER_VALUE, rate),
                    PacketKind::Begin | PacketKind::End | PacketKind::Instant => {}
                }
                match reported.flow {
                    Some((flow, true)) => one.fixed64(event::TERMINATING_FLOW_IDS, flow),
                    Some((flow, false)) => one.fixed64(event::FLOW_IDS, flow),
                    None => {}
                }
            });
        });
        self.fresh.clear();
    }
}

fn kind(kind: PacketKind) -> u64 {
    match kind {
        PacketKind::Begin => event::SLICE_BEGIN,
        PacketKind::End => event::SLICE_END,
        PacketKind::Instant => event::INSTANT,
        PacketKind::Count(_) | PacketKind::Rate(_) => event::COUNTER,
    }
}

/// Adds the value of an argument. `kept` is the number that stands for its text, 0 if none does.
fn argument(one: &mut ProtoMessage, arg: Arg<'_>, kept: u64) {
    match arg {
        Arg::Uint(value) => one.uint(event::ANNOTATION_UINT, value),
        Arg::Int(value) => one.int(event::ANNOTATION_INT, value),
        Arg::Flag(value) => one.uint(event::ANNOTATION_BOOL, u64::from(value)),
        Arg::Text(text) => one.bytes(event::ANNOTATION_STRING, shown(text).as_bytes()),
        Arg::Name(text) if kept == 0 => {
            one.bytes(event::ANNOTATION_STRING, shown(text.text()).as_bytes());
        }
        Arg::Name(_) => one.uint(event::ANNOTATION_STRING_IID, kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_do_not_steer() {
        assert_eq!(shown("a\x1bb"), "a\\x1bb");
        let long = "é".repeat(40_000);
        let cut = shown(&long);
        assert!(
            cut.len() <= MAX_NAME + 3 && cut.ends_with('…'),
            "{}",
            cut.len()
        );
    }

    #[test]
    fn what_is_beyond_the_names_that_are_kept_is_written_where_it_stands() {
        let mut packets = Packets::new();
        let mut tell = |name: &str| {
            packets.made().clear();
            packets.event(&TrackEvent {
                name: Some(PacketText::Plain(name)),
                args: &[("why", Arg::Name(PacketText::Plain(name)))],
                ..TrackEvent::new(1, 2, PacketKind::Begin)
            });
            packets
                .made()
                .windows(name.len())
                .filter(|part| *part == name.as_bytes())
                .count()
        };
        for number in 0..MAX_KEPT {
            assert_eq!(tell(&format!("name-{number:06}")), 2, "{number}");
        }
        assert_eq!(tell("name-000007"), 0);
        assert_eq!(tell("name-999999"), 2);
        assert_eq!(tell("name-999999"), 2, "not kept");
    }
}
