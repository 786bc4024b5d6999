//! Recordings of perf made out of text: what `perf script` would print of them, with samples of a CPU's time and their stacks.
//!
//! ```text
//! kworker/3:1  1821/1821 [003]    10.000000:    1000000 cpu-clock:
//!         ffffffff81000120 od_dbs_update+0x20 ([kernel.kallsyms])
//!         ffffffff81000240 process_one_work+0x40 ([kernel.kallsyms])
//!
//! CPU 0/KVM  1001/1010 [001]    10.000100: kvm:kvm_entry: vcpu 0
//! ```
//!
//! Layouts are those of `include/uapi/linux/perf_event.h`, `tools/perf/Documentation/perf.data-file-format.txt` and
//! `tools/perf/util/trace-event-info.c`. Functions get their addresses from the lines that name them; a frame in
//! `[guest.kernel.kallsyms]` is of a guest's kernel, whose symbols stand apart.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::{BTreeMap, BTreeSet};

const ATTR: usize = 136;
const HEADER: usize = 104;
/// PERF_SAMPLE_IDENTIFIER, IP, TID, TIME, CPU, PERIOD.
const SAMPLE: u64 = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8;
const CALLCHAIN: u64 = 1 << 5;
const RAW: u64 = 1 << 10;
/// PERF_CONTEXT_KERNEL.
const KERNEL: u64 = -128i64 as u64;

/// A recording, and the symbols of its guests' kernels.
pub(crate) struct Written {
    pub bytes: Vec<u8>,
    pub guest_symbols: String,
}

/// A kind of events: PERF_TYPE, config, and the name of a tracepoint.
struct Kind {
    class: u32,
    config: u64,
    name: &'static str,
    fields: &'static str,
}

/// `TYPE NAME OFFSET SIZE SIGNED`, separated by `;`, as the kernels' `format` files have them.
const KINDS: [Kind; 6] = [
    Kind {
        class: 1,
        config: 0,
        name: "cpu-clock",
        fields: "",
    },
    Kind {
        class: 1,
        config: 2,
        name: "page-faults",
        fields: "",
    },
    Kind {
        class: 2,
        config: 300,
        name: "sched:sched_switch",
        fields: "char prev_comm[16] 8 16 0;pid_t prev_pid 24 4 1;int prev_prio 28 4 1;long prev_state 32 8 1;\
                 char next_comm[16] 40 16 0;pid_t next_pid 56 4 1;int next_prio 60 4 1",
    },
    Kind {
        class: 2,
        config: 301,
        name: "sched:sched_wakeup",
        fields: "char comm[16] 8 16 0;pid_t pid 24 4 1;int prio 28 4 1;int target_cpu 32 4 1",
    },
    Kind {
        class: 2,
        config: 302,
        name: "kvm:kvm_entry",
        fields: "unsigned int vcpu_id 8 4 0;unsigned long rip 16 8 0",
    },
    Kind {
        class: 2,
        config: 303,
        name: "kvm:kvm_exit",
        fields: "unsigned int exit_reason 8 4 0;unsigned long guest_rip 16 8 0;u32 isa 24 4 0;u64 info1 32 8 0;\
                 u64 info2 40 8 0;u32 intr_info 48 4 0;u32 error_code 52 4 0;unsigned int vcpu_id 56 4 0",
    },
];

/// One event of the text.
struct Line {
    comm: String,
    pid: u32,
    tid: u32,
    cpu: u32,
    time: u64,
    kind: usize,
    period: u64,
    text: String,
    /// Innermost first.
    frames: Vec<u64>,
    guest: bool,
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

/// Reads the line of an event.
fn event(line: &str) -> Line {
    let (head, rest) = line.split_once('[').unwrap_or_else(|| panic!("{line}"));
    let (comm, ids) = head.trim().rsplit_once(' ').unwrap();
    let (pid, tid) = ids.split_once('/').unwrap_or((ids, ids));
    let (cpu, rest) = rest.split_once(']').unwrap();
    let (time, rest) = rest.trim().split_once(": ").unwrap();
    let (seconds, micros) = time.split_once('.').unwrap();
    let rest = rest.trim();
    let (period, rest) = match rest.split_once(' ') {
        Some((first, rest)) if first.bytes().all(|b| b.is_ascii_digit()) => (number(first), rest),
        _ => (1, rest),
    };
    let rest = rest.trim();
    let kind = KINDS
        .iter()
        .position(|kind| rest.starts_with(&format!("{}:", kind.name)));
    let kind = kind.unwrap_or_else(|| panic!("{line}"));
    Line {
        comm: comm.trim().to_owned(),
        pid: number(pid) as u32,
        tid: number(tid) as u32,
        cpu: number(cpu.trim()) as u32,
        time: number(seconds) * 1_000_000_000 + number(micros) * 1000,
        kind,
        period,
        text: rest[KINDS[kind].name.len() + 1..].trim().to_owned(),
        frames: Vec::new(),
        guest: false,
    }
}

/// Returns what a field is in the text: `NAME=VALUE`, or `NAME VALUE` as KVM's events have it.
fn field<'t>(text: &'t str, name: &str) -> &'t str {
    let at = [format!("{name}="), format!("{name} ")];
    let begin = at.iter().find_map(|at| {
        let found = text.match_indices(at.as_str());
        let mut whole = found.filter(|(at, _)| *at == 0 || text[..*at].ends_with(' '));
        whole.next().map(|(start, _)| start + at.len())
    });
    let rest = begin.map_or("", |begin| &text[begin..]);
    // Names of tasks may have blanks.
    let end = rest
        .find('=')
        .map_or(rest.len(), |at| rest[..at].rfind(' ').unwrap_or(at));
    let value = rest[..end].trim();
    let value = value.strip_suffix("==>").unwrap_or(value).trim();
    match name.ends_with("comm") {
        true => value,
        false => value.split([' ', ',']).next().unwrap_or(""),
    }
}

/// The raw record of a tracepoint.
fn raw(line: &Line) -> Vec<u8> {
    let kind = &KINDS[line.kind];
    let mut out = vec![0; 8];
    out[..2].copy_from_slice(&(kind.config as u16).to_le_bytes());
    out[4..8].copy_from_slice(&line.tid.to_le_bytes());
    for declared in kind.fields.split(';') {
        let words: Vec<&str> = declared.split(' ').collect();
        let [.., name, offset, size, _] = words.as_slice() else {
            panic!("{declared}");
        };
        let (offset, size) = (number(offset) as usize, number(size) as usize);
        out.resize(out.len().max(offset + size), 0);
        let name = name.trim_end_matches("[16]");
        if name.ends_with("comm") {
            let value = field(&line.text, name).as_bytes();
            out[offset..offset + value.len()].copy_from_slice(value);
            continue;
        }
        let value = match name {
            "prev_state" => match field(&line.text, name) {
                "R" => 0,
                "R+" => 0x100,
                "S" => 1,
                other => panic!("state {other}"),
            },
            "exit_reason" => match field(&line.text, "reason") {
                "HLT" => 12,
                "PAUSE_INSTRUCTION" => 40,
                "EXTERNAL_INTERRUPT" => 1,
                other => panic!("reason {other}"),
            },
            "isa" => 1,
            "vcpu_id" => number(field(&line.text, "vcpu")),
            name if name.ends_with("pid") || name.ends_with("prio") || name == "target_cpu" => {
                number(field(&line.text, name))
            }
            _ => 0,
        };
        out[offset..offset + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
    out
}

/// Puts a header before a record.
fn framed(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut out = kind.to_le_bytes().to_vec();
    out.extend(misc.to_le_bytes());
    out.extend((8 + body.len() as u16).to_le_bytes());
    out.extend(body);
    out
}

fn u64s(out: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        out.extend(number.to_le_bytes());
    }
}

fn sample(line: &Line) -> Vec<u8> {
    let mut body = Vec::new();
    let ip = line.frames.first().copied().unwrap_or(0);
    let ids = u64::from(line.pid) | u64::from(line.tid) << 32;
    u64s(&mut body, &[line.kind as u64 + 1, ip, ids, line.time]);
    u64s(&mut body, &[u64::from(line.cpu), line.period]);
    if KINDS[line.kind].class == 2 {
        let mut raw = raw(line);
        // Size and data together are a multiple of 8.
        raw.resize((raw.len() + 4).next_multiple_of(8) - 4, 0);
        body.extend((raw.len() as u32).to_le_bytes());
        body.extend(raw);
    } else if line.guest {
        // The kernel records no stack of a guest.
        u64s(&mut body, &[0]);
    } else {
        u64s(&mut body, &[line.frames.len() as u64 + 1, KERNEL]);
        u64s(&mut body, &line.frames);
    }
    framed(9, if line.guest { 4 } else { 1 }, &body)
}

/// A thread's name.
fn comm(line: &Line) -> Vec<u8> {
    let mut body = Vec::new();
    u64s(
        &mut body,
        &[u64::from(line.pid) | u64::from(line.tid) << 32],
    );
    body.extend(line.comm.as_bytes());
    body.push(0);
    body.resize(body.len().next_multiple_of(8), 0);
    // TID, TIME, CPU, IDENTIFIER
    u64s(
        &mut body,
        &[u64::from(line.pid) | u64::from(line.tid) << 32, 0, 0, 1],
    );
    framed(3, 0, &body)
}

fn format(kind: &Kind) -> String {
    let name = kind.name.split(':').next_back().unwrap();
    let mut out = format!("name: {name}\nID: {}\nformat:\n", kind.config);
    let common = "unsigned short common_type 0 2 0;unsigned char common_flags 2 1 0;\
                  unsigned char common_preempt_count 3 1 0;int common_pid 4 4 1";
    for (at, list) in [common, kind.fields].iter().enumerate() {
        for declared in list.split(';') {
            let mut words: Vec<&str> = declared.split(' ').collect();
            let [signed, size, offset] = [(); 3].map(|()| words.pop().unwrap());
            let field = words.join(" ");
            out.push_str(&format!(
                "\tfield:{field};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
            ));
        }
        if at == 0 {
            out.push('\n');
        }
    }
    out.push_str("\nprint fmt: \"\"\n");
    out
}

fn tracing_data(symbols: &str) -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing0.6\0\0\x08".to_vec();
    out.extend(4096u32.to_le_bytes());
    let page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    for (name, text) in [("header_page", page), ("header_event", "")] {
        out.extend(name.as_bytes());
        out.push(0);
        u64s(&mut out, &[text.len() as u64]);
        out.extend(text.as_bytes());
    }
    out.extend(0u32.to_le_bytes());
    let mut systems: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for kind in KINDS.iter().filter(|kind| kind.class == 2) {
        let system = kind.name.split(':').next().unwrap();
        systems.entry(system).or_default().push(format(kind));
    }
    out.extend((systems.len() as u32).to_le_bytes());
    for (system, formats) in systems {
        out.extend(system.as_bytes());
        out.push(0);
        out.extend((formats.len() as u32).to_le_bytes());
        for format in formats {
            u64s(&mut out, &[format.len() as u64]);
            out.extend(format.as_bytes());
        }
    }
    out.extend((symbols.len() as u32).to_le_bytes());
    out.extend(symbols.as_bytes());
    out.extend(0u32.to_le_bytes());
    u64s(&mut out, &[0]);
    out
}

/// `/proc/kallsyms` of functions by their addresses.
fn kallsyms(symbols: &BTreeMap<u64, String>) -> String {
    let mut out = String::new();
    for (address, name) in symbols {
        out.push_str(&format!("{address:016x} T {name}\n"));
    }
    if let Some((last, _)) = symbols.last_key_value() {
        out.push_str(&format!("{:016x} T _end\n", last + 0x1000));
    }
    out
}

/// Writes the recording of which this is the text. Without `symbols` kernels have none.
pub(crate) fn write(text: &str, symbols: bool) -> Written {
    let mut lines: Vec<Line> = Vec::new();
    let (mut host, mut guests) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let frame = match words.as_slice() {
            [address, name, file] if file.starts_with('(') => Some((address, name, file)),
            _ => None,
        };
        let Some((address, name, file)) = frame else {
            lines.push(event(line));
            continue;
        };
        let address = u64::from_str_radix(address, 16).unwrap();
        let (name, offset) = name.split_once("+0x").unwrap();
        let begin = address - u64::from_str_radix(offset, 16).unwrap();
        let last = lines.last_mut().expect("a stack is an event's");
        last.frames.push(address);
        last.guest = file.starts_with("([guest.");
        let of = if last.guest { &mut guests } else { &mut host };
        let known = of.insert(begin, name.to_owned());
        assert!(
            known.is_none_or(|known| known == name),
            "two functions at {begin:x}"
        );
    }
    let used: BTreeSet<usize> = lines.iter().map(|line| line.kind).collect();
    let mut records = Vec::new();
    let mut named = BTreeSet::new();
    for line in lines.iter().filter(|line| line.tid != 0) {
        if named.insert((line.pid, line.tid)) {
            records.extend(comm(line));
        }
    }
    lines.iter().for_each(|line| records.extend(sample(line)));
    if !symbols {
        (host, guests) = (BTreeMap::new(), BTreeMap::new());
    }
    let host = kallsyms(&host);
    Written {
        bytes: file(&used, &records, &tracing_data(&host)),
        guest_symbols: kallsyms(&guests),
    }
}

/// The whole file: header, ids, attributes, records, and the section of tracing data.
fn file(used: &BTreeSet<usize>, records: &[u8], tracing: &[u8]) -> Vec<u8> {
    let attrs = used.len() * (ATTR + 16);
    let ids_at = HEADER;
    let attrs_at = ids_at + used.len() * 8;
    let data_at = attrs_at + attrs;
    let mut out = b"PERFILE2".to_vec();
    u64s(&mut out, &[HEADER as u64, (ATTR + 16) as u64]);
    u64s(
        &mut out,
        &[
            attrs_at as u64,
            attrs as u64,
            data_at as u64,
            records.len() as u64,
        ],
    );
    // No event types; of features, HEADER_TRACING_DATA.
    u64s(&mut out, &[0, 0, 1 << 1, 0, 0, 0]);
    used.iter()
        .for_each(|kind| u64s(&mut out, &[*kind as u64 + 1]));
    for (at, kind) in used.iter().enumerate() {
        let Kind { class, config, .. } = KINDS[*kind];
        let begin = out.len();
        out.extend(class.to_le_bytes());
        out.extend((ATTR as u32).to_le_bytes());
        let more = if class == 2 { RAW } else { CALLCHAIN };
        // Config, sample_period, sample_type, read_format, sample_id_all.
        u64s(&mut out, &[config, 1, SAMPLE | more, 0, 1 << 18]);
        out.resize(begin + ATTR, 0);
        u64s(&mut out, &[(ids_at + at * 8) as u64, 8]);
    }
    out.extend(records);
    let begin = out.len() as u64 + 16;
    u64s(&mut out, &[begin, tracing.len() as u64]);
    out.extend(tracing);
    out
}
