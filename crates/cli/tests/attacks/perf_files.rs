//! perf.data files of a story: whole containers whose attributes, ids, records and features contradict each other.
//!
//! Layouts: `include/uapi/linux/perf_event.h`, `tools/perf/Documentation/perf.data-file-format.txt`.

use super::draw::Draw;
use super::story::{Story, StoryEvent};

#[path = "../../../perfdata/tests/writer/numbers.rs"]
mod numbers;

use numbers::{Numbers, framed, magic};

const ATTR: usize = 136;
const HEADER: usize = 104;
/// IDENTIFIER, IP, TID, TIME, CPU, PERIOD, RAW.
const SAMPLE: u64 = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10;
/// The longest body of a record, whose size has 16 bits.
const LONGEST: usize = 65_520;

/// What an attribute says of its samples.
struct Attribute {
    class: u32,
    config: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    ids: Vec<u64>,
}

/// Writes a perf.data file, or what goes through a pipe.
pub(super) fn write(draw: &mut Draw) -> Vec<u8> {
    let story = Story::draw(draw);
    let big = draw.once_in(8);
    let attributes = attributes(&story, draw);
    let mut records = Vec::new();
    for thread in &story.threads {
        let mut n = Numbers::new(big);
        n.u32(thread.pid).u32(thread.tid).name(&thread.comm);
        n.u32(thread.pid)
            .u32(thread.tid)
            .u64(0)
            .u32(0)
            .u32(0)
            .u64(1);
        records.extend(framed(big, 3, 0, &n.out));
    }
    for event in &story.events {
        if draw.once_in(12) && draw.one_in > 0 {
            records.extend(side(event, big, draw));
        }
        records.extend(sample(event, &story, &attributes, big, draw));
        if draw.once_in(40) {
            records.extend(framed(big, 68, 0, &[]));
        }
    }
    match draw.once_in(3) {
        true => pipe(&story, &attributes, &records, big, draw),
        false => file(&story, &attributes, &records, big, draw),
    }
}

fn attributes(story: &Story, draw: &mut Draw) -> Vec<Attribute> {
    let mut all = Vec::new();
    for (at, kind) in story.kinds.iter().enumerate() {
        let mut ids = vec![at as u64 + 1];
        if draw.absurd() {
            // Ids that another has, that none has, and that are one for all.
            let other = draw.below(story.kinds.len()) as u64 + 1;
            ids.extend([other, draw.edge(), 0]);
        }
        let dropped = 1 << draw.below(17);
        all.push(Attribute {
            class: draw.or_edge(2) as u32,
            config: draw.or_edge(kind.id.into()),
            sample_type: match draw.absurd() {
                true => draw.of(&[SAMPLE ^ dropped, SAMPLE | dropped, draw.one_in, u64::MAX]),
                false => SAMPLE,
            },
            read_format: draw.or_edge(0),
            flags: draw.or_edge(1 << 18),
            ids,
        });
    }
    all
}

impl Attribute {
    fn bytes(&self, big: bool, draw: &mut Draw) -> Vec<u8> {
        let mut n = Numbers::new(big);
        n.u32(self.class)
            .u32(draw.or_edge(ATTR as u64) as u32)
            .u64(self.config)
            .u64(draw.or_edge(1));
        n.u64(self.sample_type).u64(self.read_format);
        n.u64(if big {
            self.flags.reverse_bits()
        } else {
            self.flags
        });
        n.out.resize(ATTR, 0);
        n.out
    }
}

/// A sample, with all that its attribute asks for.
fn sample(
    event: &StoryEvent,
    story: &Story,
    attributes: &[Attribute],
    big: bool,
    draw: &mut Draw,
) -> Vec<u8> {
    let attribute = &attributes[event.kind];
    let wants = |bit: u32| attribute.sample_type & 1 << bit != 0;
    let mut n = Numbers::new(big);
    let id = event.kind as u64 + 1;
    let id = draw.or_edge(id);
    let ip = draw.or_edge(0xffff_ffff_8100_0010);
    if wants(16) {
        n.u64(id);
    }
    if wants(0) {
        n.u64(ip);
    }
    if wants(1) {
        n.u32(event.pid).u32(event.tid);
    }
    if wants(2) {
        n.u64(event.time);
    }
    for bit in [3, 6, 9] {
        if wants(bit) {
            n.u64(if bit == 3 { ip } else { id });
        }
    }
    if wants(7) {
        n.u32(event.cpu).u32(0);
    }
    if wants(8) {
        n.u64(draw.or_edge(1));
    }
    if wants(4) {
        n.u64(draw.or_edge(2)).u64s(&[1, 2, 3, 4]);
    }
    if wants(5) {
        // Contexts in any order, and a length that may be more than there is.
        let chain: Vec<u64> = (0..draw.below(12))
            .map(|_| draw.edge() | 0xffff_ffff_0000_0000)
            .collect();
        n.u64(draw.or_edge(chain.len() as u64)).u64s(&chain);
    }
    if wants(10) {
        let mut raw = event.record(&story.kinds[event.kind], big, draw);
        raw.resize((raw.len() + 4).next_multiple_of(8) - 4, 0);
        n.u32(draw.or_edge(raw.len() as u64) as u32);
        n.out.extend(raw);
    }
    n.out.truncate(LONGEST);
    framed(big, 9, draw.or_edge(1) as u16, &n.out)
}

/// A record that is no sample: mappings that overlap, names, losses, forks, threads that end and go on.
fn side(event: &StoryEvent, big: bool, draw: &mut Draw) -> Vec<u8> {
    let mut n = Numbers::new(big);
    let name = draw.odd_name();
    let (pid, tid) = (
        draw.or_edge(event.pid.into()) as u32,
        draw.or_edge(event.tid.into()) as u32,
    );
    let mut misc = draw.or_edge(1) as u16;
    let kind = match draw.below(12) {
        0 => {
            n.u64(draw.edge()).u64(draw.edge());
            2
        }
        1 => {
            n.u64(draw.edge());
            13
        }
        2 | 3 => {
            n.u32(pid)
                .u32(tid)
                .u64(draw.edge())
                .u64(draw.edge())
                .u64(draw.edge())
                .name(&name);
            1
        }
        4 | 5 => {
            // The build id's length is a byte, and its room is 20.
            misc |= 1 << 14;
            let length = draw.edge() & 0xff;
            n.u32(pid)
                .u32(tid)
                .u64(draw.edge())
                .u64(draw.edge())
                .u64(draw.edge());
            n.u64(length)
                .u64(draw.any())
                .u64(draw.any())
                .u32(5)
                .u32(2)
                .name(&name);
            10
        }
        6 => {
            n.u32(pid).u32(tid).name(&name);
            3
        }
        7 => {
            n.u32(pid).u32(pid).u32(tid).u32(tid).u64(event.time);
            draw.of(&[4, 7])
        }
        8 => {
            n.u64(draw.edge())
                .u32(draw.edge() as u32)
                .u16(draw.edge() as u16)
                .u16(draw.edge() as u16)
                .name(&name);
            17
        }
        9 => {
            n.u64(draw.edge() & 0xffff)
                .u64s(&[draw.edge(), draw.edge(), draw.edge(), draw.edge()]);
            71
        }
        10 => {
            n.u64(draw.edge())
                .u64(draw.edge())
                .u64s(&[draw.any(), draw.any()]);
            22
        }
        _ => {
            n.u64(draw.any());
            draw.edge() as u32 % 100
        }
    };
    n.u32(pid)
        .u32(tid)
        .u64(draw.or_edge(event.time))
        .u32(event.cpu)
        .u32(0)
        .u64(draw.or_edge(1));
    n.out.truncate(LONGEST);
    framed(big, kind, misc, &n.out)
}

/// Tracing data: the formats of all events, and symbols out of order.
fn tracing_data(story: &Story, big: bool, draw: &mut Draw) -> Vec<u8> {
    let mut n = Numbers::new(big);
    n.out.extend(b"\x17\x08\x44tracing0.6\0");
    n.out.extend([u8::from(big), draw.or_edge(8) as u8]);
    n.u32(draw.or_edge(4096) as u32);
    let page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    for (name, text) in [("header_page\0", page), ("header_event\0", "")] {
        n.out.extend(name.as_bytes());
        n.u64(text.len() as u64);
        n.out.extend(text.as_bytes());
    }
    n.u32(0);
    let mut systems: Vec<&str> = story.kinds.iter().map(|kind| kind.system).collect();
    systems.dedup();
    n.u32(draw.or_edge(systems.len() as u64) as u32);
    for system in systems {
        n.out.extend(system.as_bytes());
        n.out.push(0);
        let of: Vec<_> = story
            .kinds
            .iter()
            .filter(|kind| kind.system == system)
            .collect();
        n.u32(draw.or_edge(of.len() as u64) as u32);
        for kind in of {
            let text = kind.text(draw);
            n.u64(draw.or_edge(text.len() as u64));
            n.out.extend(text.as_bytes());
        }
    }
    for text in [symbols(draw), printk(draw)] {
        n.u32(draw.or_edge(text.len() as u64) as u32);
        n.out.extend(text);
    }
    let names = saved_names(story, draw);
    n.u64(draw.or_edge(names.len() as u64));
    n.out.extend(names);
    n.out
}

/// A kernel's symbols: out of order, twice, in modules, with addresses that are none.
pub(super) fn symbols(draw: &mut Draw) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0..draw.below(60) {
        let address = draw.or_edge(0xffff_ffff_8100_0000 + number as u64 * 0x100);
        out.extend(
            format!(
                "{address:016x} {} name_{number}",
                draw.of(&["T", "t", "D", "", "TT"])
            )
            .into_bytes(),
        );
        if draw.absurd() {
            out.extend(draw.odd_name());
        }
        out.extend(draw.of(&["\n", "\t[kvm]\n", "\t[]\n", "\r\n"]).as_bytes());
    }
    out
}

pub(super) fn printk(draw: &mut Draw) -> Vec<u8> {
    let one = format!("{:#x} : \"text %s %d\\n\"\n", draw.edge());
    one.repeat(draw.below(8)).into_bytes()
}

/// Saved names of threads, of which several may be one thread's.
pub(super) fn saved_names(story: &Story, draw: &mut Draw) -> Vec<u8> {
    let mut out = Vec::new();
    for thread in &story.threads {
        out.extend(draw.or_edge(thread.tid.into()).to_string().into_bytes());
        out.push(b' ');
        out.extend(&thread.comm);
        out.push(b'\n');
        if draw.absurd() {
            out.extend(format!("{} {}\n", thread.tid, draw.odd_number()).into_bytes());
        }
    }
    out
}

/// Feature sections by their numbers; what they say is true, absurd, or another one's.
fn features(story: &Story, big: bool, draw: &mut Draw) -> Vec<(u32, Vec<u8>)> {
    let mut all = vec![(1, tracing_data(story, big, draw))];
    let text = |text: &[u8], draw: &mut Draw| {
        let mut n = Numbers::new(big);
        n.u32(draw.or_edge(text.len() as u64 + 1) as u32);
        n.name(text);
        n.out
    };
    let mut ids = Numbers::new(big);
    for _ in 0..draw.below(6) {
        let mut body = Numbers::new(big);
        body.u32(draw.edge() as u32)
            .u64s(&[draw.any(), draw.any()])
            .u32(0);
        // From perf 5.13 on the id's length stands behind it.
        body.u32(draw.edge() as u32 & 0xff);
        body.name(&draw.odd_name());
        ids.out
            .extend(framed(big, 67, draw.edge() as u16, &body.out));
    }
    all.push((2, ids.out));
    for bit in [
        3, 4, 5, 6, 8, 9, 11, 12, 13, 14, 15, 16, 21, 22, 23, 24, 25, 29, 30, 200,
    ] {
        if !draw.once_in(3) {
            continue;
        }
        let name = draw.odd_name();
        let mut body = match draw.below(4) {
            0 => text(b"6.1.0-13-amd64", draw),
            1 => text(&name, draw),
            2 => name,
            _ => {
                let mut n = Numbers::new(big);
                n.u32(draw.edge() as u32)
                    .u32(draw.edge() as u32)
                    .u64(draw.edge())
                    .u64(draw.edge());
                n.out.extend(text(b"0-3,7,4294967295", draw));
                n.out
            }
        };
        if bit == 200 {
            let json = format!(
                "{{\"cost\":{{\"cpu_ns\":{}}},\"kept_ns\":{},\"guests\":[[]]}}",
                draw.odd_number(),
                draw.edge()
            );
            body = [&body[..0], json.as_bytes()].concat();
        }
        all.push((bit, body));
    }
    let mut cpus = Numbers::new(big);
    cpus.u32(draw.or_edge(4) as u32).u32(draw.or_edge(4) as u32);
    all.push((7, cpus.out));
    all.sort_by_key(|(bit, _)| *bit);
    all
}

fn file(
    story: &Story,
    attributes: &[Attribute],
    records: &[u8],
    big: bool,
    draw: &mut Draw,
) -> Vec<u8> {
    let sections = features(story, big, draw);
    let ids: usize = attributes.iter().map(|one| one.ids.len() * 8).sum();
    let attrs_at = HEADER + ids;
    let attrs = attributes.len() * (ATTR + 16);
    let data_at = attrs_at + attrs;
    let mut n = Numbers::new(big);
    n.out.extend(magic(big));
    n.u64(HEADER as u64).u64(draw.or_edge(ATTR as u64 + 16));
    n.u64(attrs_at as u64).u64(draw.or_edge(attrs as u64));
    n.u64(draw.or_edge(data_at as u64))
        .u64(draw.or_edge(records.len() as u64))
        .u64s(&[0, 0]);
    let mut bits = [0u64; 4];
    for (bit, _) in &sections {
        bits[*bit as usize / 64] |= 1 << (bit % 64);
    }
    n.u64s(&bits);
    for one in attributes {
        n.u64s(&one.ids);
    }
    let mut at = HEADER;
    for one in attributes {
        n.out.extend(one.bytes(big, draw));
        n.u64(draw.or_edge(at as u64))
            .u64(draw.or_edge(one.ids.len() as u64 * 8));
        at += one.ids.len() * 8;
    }
    n.out.extend(records);
    let mut begin = (n.out.len() + sections.len() * 16) as u64;
    for (_, section) in &sections {
        // Sections that overlap, point at each other, and end behind the file.
        n.u64(draw.or_edge(begin))
            .u64(draw.or_edge(section.len() as u64));
        begin += section.len() as u64;
    }
    sections
        .iter()
        .for_each(|(_, section)| n.out.extend(section));
    n.out
}

fn pipe(
    story: &Story,
    attributes: &[Attribute],
    records: &[u8],
    big: bool,
    draw: &mut Draw,
) -> Vec<u8> {
    let mut n = Numbers::new(big);
    n.out.extend(magic(big));
    n.u64(16);
    for one in attributes {
        let mut body = one.bytes(big, draw);
        let mut ids = Numbers::new(big);
        ids.u64s(&one.ids);
        body.extend(ids.out);
        n.out.extend(framed(big, 64, 0, &body));
    }
    for (bit, section) in features(story, big, draw) {
        if bit == 1 {
            let mut size = Numbers::new(big);
            size.u32(draw.or_edge(section.len() as u64) as u32);
            n.out.extend(framed(big, 66, 0, &size.out));
            n.out.extend(&section);
            n.out.resize(n.out.len().next_multiple_of(8), 0);
            continue;
        }
        let mut body = Numbers::new(big);
        body.u64(draw.or_edge(bit.into()));
        body.out.extend(&section[..section.len().min(LONGEST)]);
        n.out.extend(framed(big, 80, 0, &body.out));
    }
    n.out.extend(records);
    n.out
}
