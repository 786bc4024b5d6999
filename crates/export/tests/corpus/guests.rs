//! Traces and rows of a host's recording with those of its guests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fixtures::csv::csv_rows;
use fixtures::json::{list, number, text};
use fixtures::pairs::{GUEST, GuestPair, HOST, pairs};
use fixtures::perfetto::{ReadTrace, TraceSlice};
use fixtures::{Failures, FileForm, FixtureQuestion, file, read};
use serde_json::Value;

use crate::traced;

/// Time of a vCPU by what its guest did: the vCPU, what that is, its thread or else its name.
type Times = BTreeMap<(String, String, String), u64>;

/// Questions to a recording of two vCPUs, of which each chooses something else.
fn questions(host: &Path) -> [FixtureQuestion; 4] {
    let all = FixtureQuestion::new;
    let vcpus = all().vcpus_document(host).expect("vCPUs");
    let begin = number(&list(&vcpus["rows"])[0], "from_ns") + 500_000_000;
    let window = format!("{}.{:09},", begin / 1_000_000_000, begin % 1_000_000_000);
    [all(), all().vcpu(1), all().cpu("0-1"), all().time(&window)]
}

/// What `vcpus` has. A vCPU is its thread, or what `called` makes of its row.
fn of_vcpus(asked: &FixtureQuestion, host: &Path, called: impl Fn(&Value) -> String) -> Times {
    let vcpus = asked.vcpus_document(host).expect("vCPUs");
    let mut times = Times::new();
    for row in list(&vcpus["rows"]) {
        for task in row["guest"].as_array().into_iter().flatten() {
            let fields = task.as_object().expect("an object");
            let ns = fields.iter().filter(|(name, _)| name.ends_with("_ns"));
            let ns: u64 = ns.filter_map(|(_, value)| value.as_u64()).sum();
            let what = text(&task["what"]);
            let who = match what.as_str() {
                "task" => task["tid"].to_string(),
                _ => text(&task["name"]),
            };
            let key = (called(row), what, who);
            *times.entry(key).or_default() += ns;
        }
    }
    times.retain(|_, ns| *ns > 0);
    times
}

/// What a trace has, by the tracks of VMs and vCPUs.
fn of_trace(trace: &ReadTrace) -> Times {
    let mut times = Times::new();
    for slice in trace.of("guest") {
        let what = slice.args["what"].clone();
        let who = match what.as_str() {
            "task" => slice.args["tid"].clone(),
            "idle" | "unknown" => String::new(),
            kind => {
                let name = slice.name.strip_prefix(kind).expect("its kind");
                name.trim_start().to_owned()
            }
        };
        *times.entry((vcpu(trace, slice), what, who)).or_default() += slice.end - slice.begin;
    }
    times
}

/// The VM and vCPU below whose tracks a slice of a guest stands.
fn vcpu(trace: &ReadTrace, slice: &TraceSlice) -> String {
    let own = &trace.tracks[&slice.track];
    assert_eq!(own.name, "guest");
    let vcpu = &trace.tracks[&own.parent.expect("below a vCPU")];
    let vm = &trace.tracks[&vcpu.parent.expect("below a VM")];
    format!("{:?} {}", vm.pid, vcpu.name)
}

#[test]
fn a_trace_has_what_guests_did_below_their_vcpus() {
    let mut failures = Failures::default();
    let mut compared = 0;
    for GuestPair { host, guest } in &pairs() {
        for asked in questions(host) {
            let name = format!("{} {asked:?}", guest.display());
            let together = asked.clone().guest(guest);
            let both = traced(host, &together);
            let expected = of_vcpus(&together, host, |row| {
                format!("{:?} vCPU {}", row["vm_pid"].as_u64(), row["vcpu"])
            });
            failures.check(!expected.is_empty(), || format!("{name}: no vCPU"));
            failures.equal(&name, &of_trace(&both), &expected);
            compared += expected.len();
            // What the guest did lies within what the vCPU did.
            let states = |find: fn(&TraceSlice) -> u64, own: &TraceSlice| -> Vec<u64> {
                let parent = both.tracks[&own.track].parent;
                let states = both.of("state").filter(|one| Some(one.track) == parent);
                states.map(find).collect()
            };
            let ends: BTreeMap<u64, (&TraceSlice, &TraceSlice)> =
                both.of("guest").fold(BTreeMap::new(), |mut ends, one| {
                    let pair = ends.entry(one.track).or_insert((one, one));
                    if one.begin < pair.0.begin {
                        pair.0 = one;
                    }
                    if one.end > pair.1.end {
                        pair.1 = one;
                    }
                    ends
                });
            for (first, last) in ends.values() {
                let begin = states(|one| one.begin, first).into_iter().min();
                let end = states(|one| one.end, last).into_iter().max();
                let within = (Some(first.begin), Some(last.end));
                failures.equal(&format!("{name}: ends"), &within, &(begin, end));
            }
            // The host's part is the same without guests.
            let alone = traced(host, &asked);
            failures.equal(&name, &alone.of("guest").count(), &0);
            for category in ["state", "exit"] {
                let sums = |trace: &ReadTrace| trace.sums(category, |slice| slice.name.clone());
                failures.equal(&format!("{name}: {category}"), &sums(&both), &sums(&alone));
            }
            failures.equal(&name, &both.switches.len(), &alone.switches.len());
        }
    }
    failures.check(compared > 100, || format!("{compared} sums"));
    failures.finish(50);
}

/// Paths through guests are followed, and a step in a guest stands on its vCPU's thread with the guest's CPU.
#[test]
fn a_trace_has_paths_through_guests() {
    let folder = "arm64/virtio-mmio/boot2-vsock";
    let [host, guest] =
        ["trace", "trace-guest1"].map(|name| file(&format!("{folder}/{name}.dat.zst")));
    let asked = FixtureQuestion::new().guest(&guest);
    let trace = traced(&host, &asked);
    let paths = asked.paths_document(&host).expect("paths");
    let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for one in list(&paths["paths"]) {
        if number(one, "count") > 0 {
            let total = number(&one["total"], "total_ns");
            expected.insert(text(&one["path"]), (number(one, "count"), total));
        }
    }
    assert_eq!(trace.sums("path", |slice| slice.name.clone()), expected);
    assert!(expected.contains_key("packet"), "{expected:?}");
    let inside = trace
        .of("step")
        .filter(|step| step.args.contains_key("guest"));
    let inside: Vec<&TraceSlice> = inside.collect();
    assert!(inside.len() >= 58, "{}", inside.len());
    let vcpus = asked.vcpus_document(&host).expect("vCPUs");
    for step in inside {
        assert_eq!(step.args["guest"], guest.display().to_string());
        assert!(!step.args.contains_key("cpu"), "{step:?}");
        let mut rows = list(&vcpus["rows"]).iter();
        let cpu = step.args["guest_cpu"].parse().ok();
        let row = rows.find(|row| row["vcpu"].as_u64() == cpu);
        let tid = row.map(|row| number(row, "tid")).expect("a vCPU");
        // Where the recording does not have a thread's process, its name stands on a plain track.
        let track = &trace.tracks[&step.track];
        let named = track.name.ends_with(&format!(":{tid}"));
        assert!(track.tid == Some(tid) || named, "{track:?}: {step:?}");
    }
}

/// The rows of spans.
fn rows(host: &Path, asked: &FixtureQuestion) -> Vec<BTreeMap<String, String>> {
    let text = asked.exported_text(host, FileForm::Spans);
    csv_rows(&text.expect("spans"))
}

#[test]
fn rows_of_spans_are_split_by_what_guests_did() {
    let mut failures = Failures::default();
    let (mut compared, mut split) = (0, 0);
    let ns =
        |row: &BTreeMap<String, String>| -> u64 { row["duration_ns"].parse().expect("a number") };
    for GuestPair { host, guest } in &pairs() {
        for asked in questions(host) {
            let name = format!("{} {asked:?}", guest.display());
            let together = asked.clone().guest(guest);
            let both = rows(host, &together);
            let mut times = Times::new();
            for row in &both {
                let who = match row["task_what"].as_str() {
                    "task" => &row["task_tid"],
                    _ => &row["task_name"],
                };
                let key = [&row["tid"], &row["task_what"], who].map(String::clone);
                *times.entry(key.into()).or_default() += ns(row);
            }
            let expected = of_vcpus(&together, host, |row| row["tid"].to_string());
            failures.equal(&name, &times, &expected);
            compared += expected.len();
            // The host's columns add up to those without guests, which have no others.
            let alone = rows(host, &asked);
            split += both.len() - alone.len();
            let head = |rows: &[BTreeMap<String, String>]| rows[0].len();
            failures.equal(&name, &head(&both), &(head(&alone) + 3));
            let sums = |rows: &[BTreeMap<String, String>]| {
                let mut sums: BTreeMap<Vec<String>, u64> = BTreeMap::new();
                for row in rows {
                    let key = [
                        "tid",
                        "state",
                        "cpu",
                        "reason",
                        "access",
                        "device",
                        "behind_tid",
                    ];
                    let key = key.map(|name| row[name].to_owned()).to_vec();
                    *sums.entry(key).or_default() += ns(row);
                }
                sums
            };
            failures.equal(&format!("{name}: states"), &sums(&both), &sums(&alone));
        }
    }
    failures.check(compared > 100, || format!("{compared} sums"));
    failures.check(split > 10_000, || format!("{split} rows more"));
    failures.finish(26);
}

/// Behind the end of a file that was cut off nobody knows what the guest did.
#[test]
fn what_a_guest_did_behind_the_end_of_its_recording_is_unknown() {
    let host = file(HOST);
    let guest = read(&file(GUEST));
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let cut = folder.path().join("cut.dat");
    fs::write(&cut, &guest[..guest.len() * 9 / 10]).expect("there is room");
    let asked = FixtureQuestion::new().guest(&cut);
    let trace = traced(&host, &asked);
    let expected = of_vcpus(&asked, &host, |row| {
        format!("{:?} vCPU {}", row["vm_pid"].as_u64(), row["vcpu"])
    });
    assert_eq!(of_trace(&trace), expected);
    let mut last: BTreeMap<u64, &TraceSlice> = BTreeMap::new();
    for slice in trace.of("guest") {
        let known = last.entry(slice.track).or_insert(slice);
        if slice.end > known.end {
            *known = slice;
        }
    }
    // CPU 1 has events until 1021.5868 on the host's clock, and CPU 0 until 1025.2277.
    let ends = [1_025_227_700_000_u64, 1_021_586_900_000];
    for end in ends {
        let mut begin = last.values().map(|one| one.begin);
        assert!(
            begin.any(|begin| begin <= end && begin + 200_000 > end),
            "{end}: {last:?}"
        );
    }
    assert!(last.values().all(|one| one.name == "unknown"), "{last:?}");
}
