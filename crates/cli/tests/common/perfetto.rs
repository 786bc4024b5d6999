//! Reads traces for Perfetto by its definitions: `tests/perfetto/schema.txt` has the fields that are known; another one is an error.

use std::collections::BTreeMap;

/// A field's value.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
    Message(Fields),
}

/// The fields of a message, in their order.
#[derive(Debug, Clone, PartialEq, Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn all(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.0
            .iter()
            .filter(move |(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.all(name).find_map(|value| match value {
            Value::Number(number) => Some(*number),
            _ => None,
        })
    }

    fn text(&self, name: &str) -> Option<String> {
        self.all(name).find_map(|value| match value {
            Value::Bytes(bytes) => Some(String::from_utf8(bytes.clone()).expect("texts are UTF-8")),
            _ => None,
        })
    }

    fn messages(&self, name: &str) -> impl Iterator<Item = &Fields> {
        self.all(name).filter_map(|value| match value {
            Value::Message(fields) => Some(fields),
            _ => None,
        })
    }

    fn message(&self, name: &str) -> Option<&Fields> {
        self.messages(name).next()
    }
}

/// Fields by message and number: name and type.
type Schema = BTreeMap<(&'static str, u64), (&'static str, &'static str)>;

fn schema() -> Schema {
    let text = include_str!("../perfetto/schema.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [message, field, number, kind] = words[..] else {
                panic!("{line}");
            };
            ((message, number.parse().expect("a number")), (field, kind))
        })
        .collect()
}

/// Takes a variable-length integer from the beginning.
fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("an integer that ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("an integer of more than 64 bits");
}

fn take<'b>(bytes: &mut &'b [u8], length: u64) -> &'b [u8] {
    let length = usize::try_from(length).expect("a length");
    let (taken, rest) = bytes.split_at_checked(length).expect("a field that ends");
    *bytes = rest;
    taken
}

fn decode(schema: &Schema, message: &'static str, bytes: &[u8]) -> Fields {
    let mut rest = bytes;
    let mut out = Fields::default();
    while !rest.is_empty() {
        let tag = varint(&mut rest);
        let known = schema.get(&(message, tag >> 3));
        let (name, kind) = known.unwrap_or_else(|| panic!("{message} has no field {}", tag >> 3));
        let value = match (tag & 7, *kind) {
            (0, "uint32" | "uint64" | "int32" | "int64" | "bool") => {
                Value::Number(varint(&mut rest))
            }
            (1, "fixed64" | "double") => {
                let bytes = take(&mut rest, 8).try_into().expect("eight bytes");
                Value::Number(u64::from_le_bytes(bytes))
            }
            (2, "string" | "bytes") => {
                let length = varint(&mut rest);
                Value::Bytes(take(&mut rest, length).to_vec())
            }
            (2, inner) => {
                let length = varint(&mut rest);
                Value::Message(decode(schema, inner, take(&mut rest, length)))
            }
            (wire, kind) => panic!("{message} {name} is {kind} and comes as {wire}"),
        };
        out.0.push((name, value));
    }
    out
}

/// A track.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Track {
    pub name: String,
    pub parent: Option<u64>,
    /// Of a thread's.
    pub tid: Option<u64>,
    pub pid: Option<u64>,
}

/// A slice, or an instant, which begins and ends at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    pub track: u64,
    pub category: String,
    pub name: String,
    pub begin: u64,
    pub end: u64,
    pub args: BTreeMap<String, String>,
    pub flow: Option<u64>,
    /// Whether the flow ends here.
    pub last: bool,
}

/// A switch: time, CPU, who leaves, who comes.
pub(crate) type Switch = (u64, u64, i32, i32);

/// What a trace holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    pub tracks: BTreeMap<u64, Track>,
    pub slices: Vec<Slice>,
    pub instants: Vec<Slice>,
    /// Track, time, value.
    pub counters: Vec<(u64, u64, f64)>,
    pub switches: Vec<Switch>,
    /// Wake-ups by field.
    pub wakes: BTreeMap<&'static str, u64>,
    /// Threads with their process and name.
    pub threads: BTreeMap<u64, (u64, String)>,
    pub release: Option<String>,
}

/// Names that were told so far, by list and number.
#[derive(Default)]
struct Names(BTreeMap<(&'static str, u64), String>);

impl Names {
    fn learn(&mut self, told: &Fields) {
        for (list, value) in &told.0 {
            let Value::Message(one) = value else { continue };
            let text = one.text("name").or(one.text("str")).expect("a text");
            let number = one.number("iid").expect("a number");
            let twice = self.0.insert((list, number), text);
            assert_eq!(twice, None, "{list} {number} is told twice");
        }
    }

    fn get(&self, list: &'static str, number: u64) -> String {
        let name = self.0.get(&(list, number));
        name.unwrap_or_else(|| panic!("{list} {number} was not told"))
            .clone()
    }
}

impl Trace {
    /// Reads a trace, and checks what has to be true of any: packets of one sequence, names told before they are used, times
    /// that can be signed, tracks that are described before, slices that nest.
    pub(crate) fn read(bytes: &[u8]) -> Trace {
        let schema = schema();
        let mut trace = Trace::default();
        let mut names = Names::default();
        let mut events: Vec<(u64, Fields)> = Vec::new();
        let mut rest = bytes;
        let mut first = true;
        while !rest.is_empty() {
            assert_eq!(varint(&mut rest), 1 << 3 | 2, "a packet");
            let length = varint(&mut rest);
            let packet = decode(&schema, "TracePacket", take(&mut rest, length));
            assert_eq!(packet.number("trusted_packet_sequence_id"), Some(1));
            let flags = packet.number("sequence_flags").unwrap_or(0);
            assert_eq!(flags & 1 == 1, first, "cleared once, at the beginning");
            first = false;
            if let Some(told) = packet.message("interned_data") {
                names.learn(told);
            }
            if let Some(track) = packet.message("track_descriptor") {
                trace.describe(track);
            }
            if let Some(event) = packet.message("track_event") {
                let names_something = event.number("name_iid").is_some();
                assert!(!names_something || flags & 2 == 2, "it refers to names");
                let time = packet.number("timestamp").expect("a time");
                assert!(i64::try_from(time).is_ok());
                let track = event.number("track_uuid").expect("a track");
                assert!(
                    trace.tracks.contains_key(&track),
                    "a track that is described"
                );
                trace.single(time, event, &names);
                events.push((time, event.clone()));
            }
            trace.others(&packet);
        }
        events.sort_by_key(|(time, _)| *time);
        trace.nest(&events, &names);
        trace
    }

    fn describe(&mut self, track: &Fields) {
        let thread = track.message("thread");
        let process = track.message("process").or(thread);
        let name = track.text("name");
        let one = Track {
            name: name
                .or(thread.and_then(|t| t.text("thread_name")))
                .unwrap_or_default(),
            parent: track.number("parent_uuid"),
            tid: thread.and_then(|thread| thread.number("tid")),
            pid: process.and_then(|process| process.number("pid")),
        };
        let parent = one
            .parent
            .is_none_or(|parent| self.tracks.contains_key(&parent));
        assert!(parent, "{one:?} stands below nothing");
        let uuid = track.number("uuid").expect("a number");
        assert_eq!(
            self.tracks.insert(uuid, one),
            None,
            "{uuid} is described twice"
        );
    }

    /// Takes a packet that is neither event nor track.
    fn others(&mut self, packet: &Fields) {
        for bundle in packet.messages("ftrace_events") {
            let cpu = bundle.number("cpu").expect("a CPU");
            for event in bundle.messages("event") {
                let time = event.number("timestamp").expect("a time");
                let id = |one: &Fields, name| one.number(name).expect("an id") as u32 as i32;
                if let Some(one) = event.message("sched_switch") {
                    let pair = (id(one, "prev_pid"), id(one, "next_pid"));
                    self.switches.push((time, cpu, pair.0, pair.1));
                }
                for name in ["sched_waking", "sched_wakeup"] {
                    let count = event.messages(name).count() as u64;
                    *self.wakes.entry(name).or_default() += count;
                }
            }
        }
        for thread in packet
            .messages("process_tree")
            .flat_map(|tree| tree.messages("threads"))
        {
            let ids = (thread.number("tid"), thread.number("tgid"));
            let name = thread.text("name").unwrap_or_default();
            self.threads
                .insert(ids.0.expect("an id"), (ids.1.expect("a process"), name));
        }
        if let Some(name) = packet
            .message("system_info")
            .and_then(|info| info.message("utsname"))
        {
            self.release = name.text("release");
        }
    }

    /// Takes an instant or a counter.
    fn single(&mut self, time: u64, event: &Fields, names: &Names) {
        let track = event.number("track_uuid").expect("a track");
        match event.number("type") {
            Some(3) => self.instants.push(slice(time, event, names)),
            Some(4) => {
                let value = match event.number("counter_value") {
                    Some(value) => value as f64,
                    None => f64::from_bits(event.number("double_counter_value").expect("a value")),
                };
                self.counters.push((track, time, value));
            }
            kind => assert!(matches!(kind, Some(1 | 2)), "{kind:?}"),
        }
    }

    fn nest(&mut self, events: &[(u64, Fields)], names: &Names) {
        let mut open: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
        for (time, event) in events {
            let track = event.number("track_uuid").expect("a track");
            let under_way = open.entry(track).or_default();
            match event.number("type") {
                Some(1) => {
                    let one = slice(*time, event, names);
                    let above = under_way.last().map(|above| &*above.category);
                    let nests = above == (one.category == "stage").then_some("path");
                    assert!(nests, "{one:?} below {above:?}");
                    under_way.push(one);
                }
                Some(2) => {
                    let mut one = under_way.pop().expect("an end has a beginning");
                    one.end = *time;
                    self.slices.push(one);
                }
                _ => {}
            }
        }
        assert!(open.values().all(Vec::is_empty), "a beginning has an end");
    }

    /// Returns slices of a category.
    pub(crate) fn of<'t>(&'t self, category: &'t str) -> impl Iterator<Item = &'t Slice> {
        let slices = self.slices.iter().chain(&self.instants);
        slices.filter(move |slice| slice.category == category)
    }

    /// Returns how many slices of a category there are, and their time together, by what `key` says of each.
    pub(crate) fn sums(
        &self,
        category: &str,
        key: impl Fn(&Slice) -> String,
    ) -> BTreeMap<String, (u64, u64)> {
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for slice in self.of(category) {
            let sum = sums.entry(key(slice)).or_default();
            sum.0 += 1;
            sum.1 += slice.end - slice.begin;
        }
        sums
    }
}

/// Returns what begins with an event.
fn slice(time: u64, event: &Fields, names: &Names) -> Slice {
    let category = event.number("category_iids").expect("a category");
    let name = event.number("name_iid");
    let name = name.map(|name| names.get("event_names", name));
    let args = event.messages("debug_annotations").map(|one| {
        let name = one.number("name_iid").expect("a name");
        let number = |field| one.number(field);
        let told = one.text("string_value");
        let told = told
            .or(number("string_value_iid")
                .map(|iid| names.get("debug_annotation_string_values", iid)));
        let told = told.or(number("uint_value").map(|value| value.to_string()));
        let told = told.or(number("int_value").map(|value| value.cast_signed().to_string()));
        let told = told.or(number("bool_value").map(|value| (value == 1).to_string()));
        (
            names.get("debug_annotation_names", name),
            told.expect("a value"),
        )
    });
    let last = event.number("terminating_flow_ids");
    Slice {
        track: event.number("track_uuid").expect("a track"),
        category: names.get("event_categories", category),
        name: name.or(event.text("name")).expect("a name"),
        begin: time,
        end: time,
        args: args.collect(),
        flow: event.number("flow_ids").or(last),
        last: last.is_some(),
    }
}
