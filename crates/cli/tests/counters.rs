//! `trapline counters`: what the processor counted of vCPUs, of recordings made by hand, whose counts are known, and of
//! a recording of this machine with the counters that every kernel has.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::{json, raw_json, run, trapline};
use crate::record_command::possible;

/// Bytes of an attribute: `PERF_ATTR_SIZE_VER5`.
const ATTR: usize = 112;
/// `PERF_SAMPLE_IDENTIFIER`, `_TID`, `_TIME`, `_CPU`.
const SAMPLE: u64 = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 7;
/// `sample_id_all`, `exclude_host`, `exclude_guest`.
const ID_ALL: u64 = 1 << 18;
const GUEST: u64 = 1 << 19;
const HOST: u64 = 1 << 20;

/// The events: name, type, config, what is left out. Their ids are 1, 2 and so on.
const EVENTS: [(&str, u32, u64, u64); 7] = [
    ("cycles:G", 0, 0, GUEST),
    ("instructions:G", 0, 1, GUEST),
    ("cache-misses:G", 0, 3, GUEST),
    ("cycles:H", 0, 0, HOST),
    ("instructions:H", 0, 1, HOST),
    ("cache-misses:H", 0, 3, HOST),
    ("task-clock", 1, 1, 0),
];

/// A record: its number, what it holds, and what stands behind all: thread, time, CPU, id.
fn record(kind: u32, body: &[u64], (tid, time, id): (u32, u64, u64)) -> Vec<u8> {
    let trailer = [u64::from(tid) << 32 | 1_000, time, 0xffff_ffff, id];
    let size = u16::try_from(8 + 8 * (body.len() + trailer.len())).expect("a record");
    let mut out = [kind.to_le_bytes(), [0; 4]].concat();
    out[6..8].copy_from_slice(&size.to_le_bytes());
    out.extend(
        body.iter()
            .chain(&trailer)
            .flat_map(|word| word.to_le_bytes()),
    );
    out
}

/// A counter's reading: value, how long it was enabled and how long it ran.
fn read(tid: u32, time: u64, id: u64, [value, enabled, running]: [u64; 3]) -> Vec<u8> {
    let body = [u64::from(tid) << 32 | 1_000, value, enabled, running, id];
    record(8, &body, (tid, time, id))
}

/// A thread's name: at most 15 bytes.
fn comm(tid: u32, name: &str) -> Vec<u8> {
    let mut text = [0; 16];
    text[..name.len()].copy_from_slice(name.as_bytes());
    let words = text
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word));
    let body: Vec<u64> = std::iter::once(u64::from(tid) << 32 | 1_000)
        .chain(words)
        .collect();
    record(3, &body, (tid, 0, 1))
}

/// A recording of these records.
fn recording(records: &[Vec<u8>]) -> Vec<u8> {
    let words =
        |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let count = EVENTS.len() as u64;
    let (header, entry) = (104u64, ATTR as u64 + 16);
    let ids_at = header + entry * count;
    let data_at = ids_at + 8 * count;
    let data = records.concat();
    let mut described = [7u32, 112].map(u32::to_le_bytes).concat();
    let mut table = Vec::new();
    for (number, (name, kind, config, flags)) in (0u64..).zip(EVENTS) {
        let mut attr = vec![0u8; ATTR];
        attr[..4].copy_from_slice(&kind.to_le_bytes());
        attr[4..8].copy_from_slice(&112u32.to_le_bytes());
        attr[8..16].copy_from_slice(&config.to_le_bytes());
        attr[24..32].copy_from_slice(&SAMPLE.to_le_bytes());
        // Enabled, running, id.
        attr[32..40].copy_from_slice(&7u64.to_le_bytes());
        attr[40..48].copy_from_slice(&(ID_ALL | flags).to_le_bytes());
        described.extend_from_slice(&attr);
        described.extend(1u32.to_le_bytes());
        described.extend(16u32.to_le_bytes());
        let mut text = [0; 16];
        text[..name.len()].copy_from_slice(name.as_bytes());
        described.extend(text);
        described.extend((number + 1).to_le_bytes());
        table.extend(attr);
        table.extend(words(&[ids_at + 8 * number, 8]));
    }
    let mut file = b"PERFILE2".to_vec();
    let data_size = data.len() as u64;
    file.extend(words(&[
        header,
        entry,
        header,
        entry * count,
        data_at,
        data_size,
        0,
        0,
    ]));
    // HEADER_EVENT_DESC (12) and no other feature.
    file.extend(words(&[1 << 12, 0, 0, 0]));
    file.extend(table);
    file.extend(words(&(1..=count).collect::<Vec<u64>>()));
    file.extend(data);
    let at = file.len() as u64 + 16;
    file.extend(words(&[at, described.len() as u64]));
    file.extend(described);
    file
}

/// Two vCPUs for two seconds. Counters of the first take turns in the second one; the second one's host is counted
/// never, and it has no cache misses.
pub(crate) fn two_vcpus() -> Vec<u8> {
    let second = 1_000_000_000;
    let mut records = vec![comm(1_011, "CPU 0/KVM"), comm(1_012, "CPU 1/KVM")];
    let mut reads = |tid: u32, time: u64, ids: &[u64], values: &[u64], times: [u64; 2]| {
        for (id, value) in ids.iter().zip(values) {
            records.push(read(tid, time, *id, [*value, times[0], times[1]]));
        }
    };
    let whole = [second; 2];
    reads(
        1_011,
        second,
        &[1, 2, 3],
        &[2_000_000, 3_000_000, 6_000],
        whole,
    );
    reads(1_011, second, &[4, 5, 6], &[400_000, 200_000, 1_000], whole);
    reads(1_011, second, &[7], &[second], whole);
    let half = [second, second / 2];
    reads(
        1_011,
        2 * second,
        &[1, 2, 3],
        &[1_000_000, 500_000, 4_000],
        half,
    );
    reads(1_011, 2 * second, &[7], &[second], whole);
    reads(1_012, second, &[1, 2], &[10, 5], whole);
    reads(1_012, second, &[4, 5, 6], &[0, 0, 0], [second, 0]);
    recording(&records)
}

fn document(bytes: &[u8], args: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    fs::write(&path, bytes).expect("a file");
    raw_json(&[&["counters"], args].concat(), &path).expect("a document")
}

#[test]
fn counts_are_scaled_and_kept_apart_by_mode() {
    let found = document(&two_vcpus(), &[]);
    let rows = found["rows"].as_array().expect("rows");
    let members = |row: &Value, names: &[&str]| -> Vec<Value> {
        names.iter().map(|name| row[name].clone()).collect()
    };
    let names = [
        "tid",
        "comm",
        "cpu_ns",
        "guest_cycles",
        "guest_instructions",
        "guest_cache_misses",
    ];
    // 3,000,000 cycles were counted in 1.5 of 2 seconds, 3,500,000 instructions and 10,000 misses.
    assert_eq!(
        members(&rows[0], &names),
        [
            json!(1011),
            json!("CPU 0/KVM"),
            json!(2_000_000_000u64),
            json!(4_000_000),
            json!(4_666_666),
            json!(13_333)
        ],
    );
    let names = [
        "host_cycles",
        "host_ipc",
        "host_misses_per_1000",
        "counted_share",
        "both_cycles",
    ];
    assert_eq!(
        members(&rows[0], &names),
        [
            json!(400_000),
            json!(0.5),
            json!(5.0),
            json!(0.75),
            Value::Null
        ]
    );
    let names = [
        "guest_ipc",
        "guest_misses_per_1000",
        "host_cycles",
        "cpu_ns",
        "counted_share",
    ];
    // What was never counted is not 0.
    assert_eq!(
        members(&rows[1], &names),
        [
            json!(0.5),
            Value::Null,
            Value::Null,
            Value::Null,
            json!(0.0)
        ]
    );
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_window_of_time_has_the_readings_in_it() {
    let found = document(&two_vcpus(), &["--time", "1.5,2.5"]);
    let rows = found["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{found}");
    let row = &rows[0];
    assert_eq!(
        (&row["guest_cycles"], &row["guest_ipc"], &row["cpu_ns"]),
        (&json!(2_000_000), &json!(0.5), &json!(1_000_000_000))
    );
}

/// `perf record --stat` opens an event on each CPU: on all but one it is enabled and does not run.
#[test]
fn inherited_counters_are_not_scaled() {
    let mut bytes = recording(&[
        read(1_011, 5, 1, [700, 1_000, 1_000]),
        read(1_011, 5, 1, [0, 1_000, 0]),
    ]);
    // The bit `inherit` of the first attribute.
    bytes[104 + 40] |= 1 << 1;
    let found = document(&bytes, &[]);
    let row = &found["rows"][0];
    let counted = (&row["guest_cycles"], &row["counted_share"]);
    assert_eq!(counted, (&json!(700), &Value::Null), "{found}");
}

#[test]
fn records_that_are_cut_or_of_nobody_are_no_counts() {
    // An id that no event has, and a record too short for its values.
    let stray = read(1_011, 5, 99, [7, 1, 1]);
    let short = record(8, &[1_000], (1_011, 5, 1));
    let good = read(1_011, 5, 1, [7, 1, 1]);
    let found = document(&recording(&[stray, short, good]), &[]);
    let rows = found["rows"].as_array().expect("rows");
    assert_eq!(
        (rows.len(), &rows[0]["guest_cycles"]),
        (1, &json!(7)),
        "{found}"
    );
}

#[test]
fn a_recording_without_counters_says_how_to_count() {
    let path = crate::common::file("x86/console-sick/perf.data.zst");
    let refused = run(["counters".as_ref(), path.as_os_str()]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("'trapline record --counters'"),
        "{}",
        refused.stderr
    );
}

#[test]
fn two_recordings_are_compared_by_what_was_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let [a, b] = ["a.data", "b.data"].map(|name| folder.path().join(name));
    let second = 1_000_000_000;
    let whole = [second; 2];
    let counted = |cycles: u64, instructions: u64| {
        let reads = [(1, cycles), (2, instructions)];
        let reads = reads.map(|(id, value)| read(1_011, second, id, [value, whole[0], whole[1]]));
        recording(&[&[comm(1_011, "CPU 0/KVM")][..], &reads].concat())
    };
    fs::write(&a, counted(2_000_000, 3_000_000)).expect("a file");
    fs::write(&b, counted(2_000_000, 1_000_000)).expect("a file");
    let found = run([
        "compare".as_ref(),
        a.as_os_str(),
        b.as_os_str(),
        "--json".as_ref(),
    ]);
    let found = found.json().expect("a document");
    let changes = found["changes"].as_array().expect("changes");
    let of_instructions = changes
        .iter()
        .find(|one| one["what"] == "counter instructions:G");
    let of_instructions = of_instructions.unwrap_or_else(|| panic!("{found}"));
    // For each cycle of the guest.
    assert_eq!(
        (&of_instructions["a"], &of_instructions["b"]),
        (&json!(1.5), &json!(0.5))
    );
}

/// The processor of a virtual machine may count nothing; time and page faults every kernel counts.
#[test]
fn what_a_kernel_counts_is_recorded_and_perf_reads_it_too() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let busy = "while :; do :; done";
    let mut busy = Command::new("bash")
        .args(["-c", busy])
        .spawn()
        .expect("bash");
    let tid = busy.id().to_string();
    let mut record = trapline();
    let options = [
        "--for",
        "sched",
        "--counters",
        "--tid",
        &tid,
        "--seconds",
        "1.5",
        "-o",
        "one",
    ];
    let record = record
        .arg("record")
        .args(options)
        .current_dir(folder.path());
    let output = record.output().expect("the program");
    busy.kill().expect("it runs");
    busy.wait().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let found = json(&["counters"], &folder.path().join("one")).expect("a document");
    let row = &found["rows"][0];
    assert_eq!(row["tid"].to_string(), tid, "{found}");
    let cpu_ns = row["cpu_ns"].as_u64().expect("a time");
    assert!(cpu_ns > 0, "{found}");
    let perf = |args: &[&str]| {
        let mut perf = Command::new("perf");
        let perf = perf
            .args(args)
            .arg("-i")
            .arg(folder.path().join("one/perf.data"));
        perf.stdin(Stdio::null()).output()
    };
    let Ok(report) = perf(&["report", "--threads", "--stdio"]) else {
        return;
    };
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(text.contains(&format!(" {cpu_ns} ")), "{cpu_ns}: {text}");
    let script = perf(&["script"]).expect("perf");
    assert!(
        script.status.success() && !script.stdout.is_empty(),
        "{script:?}"
    );
    assert!(Path::new(&folder.path().join("one/facts.json")).exists());
}
