//! `trapline export` of a host's recording with those of its guests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::list;
use crate::common::perfetto::{Slice, Trace};
use crate::common::{Failures, Run, file, number, read, run, write_text};
use crate::export::rows;
use crate::guests::{GUEST, HOST, Pair, document, over, pairs, recorded};

/// Time of a vCPU by what its guest did: the vCPU, what that is, its thread or else its name.
type Times = BTreeMap<(String, String, String), u64>;

/// Filters of which each chooses something else of a recording of two vCPUs.
fn filters(host: &Path) -> Vec<Vec<String>> {
    let vcpus = document("vcpus", &[host], &[]);
    let begin = number(&list(&vcpus["rows"])[0], "from_ns") + 500_000_000;
    let window = format!("{}.{:09},", begin / 1_000_000_000, begin % 1_000_000_000);
    let filters = [
        &[][..],
        &["--vcpu", "1"],
        &["--cpu", "0-1"],
        &["--time", &window],
    ];
    let owned = |one: &&[&str]| one.iter().map(|word| (*word).to_owned()).collect();
    filters.iter().map(owned).collect()
}

/// Exports recordings to a file of this name, and returns what is in it.
fn exported(paths: &[&Path], more: &[&str], name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let out = folder.path().join(name);
    let written = format!("-o{}", out.display());
    let run = over("export", paths, &[more, &[&written]].concat());
    assert_eq!(run.status, 0, "{}", run.stderr);
    fs::read(&out).expect("it was written")
}

fn printed(command: &str, paths: &[&Path], more: &[&str]) -> String {
    let run = over(command, paths, more);
    assert_eq!(run.status, 0, "{}", run.stderr);
    run.text()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// What `vcpus` has. A vCPU is its thread, or what `called` makes of its row.
fn of_vcpus(paths: &[&Path], more: &[&str], called: impl Fn(&Value) -> String) -> Times {
    let told = document("vcpus", paths, more);
    let mut times = Times::new();
    for row in list(&told["rows"]) {
        for task in row["guest"].as_array().into_iter().flatten() {
            let fields = task.as_object().expect("an object");
            let ns = fields.iter().filter(|(name, _)| name.ends_with("_ns"));
            let ns: u64 = ns.filter_map(|(_, value)| value.as_u64()).sum();
            let who = match text(task, "what") {
                "task" => task["tid"].to_string(),
                _ => text(task, "name").to_owned(),
            };
            let key = (called(row), text(task, "what").to_owned(), who);
            *times.entry(key).or_default() += ns;
        }
    }
    times.retain(|_, ns| *ns > 0);
    times
}

/// What a trace has, by the tracks of VMs and vCPUs.
fn of_trace(trace: &Trace) -> Times {
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
fn vcpu(trace: &Trace, slice: &Slice) -> String {
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
    for Pair { host, guest } in &pairs() {
        for more in &filters(host) {
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            let name = format!("{} {more:?}", guest.display());
            let both = Trace::read(&exported(&[host, guest], &more, "x.pftrace"));
            let expected = of_vcpus(&[host, guest], &more, |row| {
                format!("{:?} vCPU {}", row["vm_pid"].as_u64(), row["vcpu"])
            });
            failures.check(!expected.is_empty(), || format!("{name}: nothing is told"));
            failures.equal(&name, &of_trace(&both), &expected);
            compared += expected.len();
            // What the guest did lies within what the vCPU did.
            let states = |find: fn(&Slice) -> u64, own: &Slice| -> Vec<u64> {
                let parent = both.tracks[&own.track].parent;
                let states = both.of("state").filter(|one| Some(one.track) == parent);
                states.map(find).collect()
            };
            let ends: BTreeMap<u64, (&Slice, &Slice)> =
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
            let alone = Trace::read(&exported(&[host], &more, "x.pftrace"));
            failures.equal(&name, &alone.of("guest").count(), &0);
            for category in ["state", "exit"] {
                let sums = |trace: &Trace| trace.sums(category, |slice| slice.name.clone());
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
    let paths = [host.as_path(), &guest];
    let trace = Trace::read(&exported(&paths, &[], "x.pftrace"));
    let told = document("paths", &paths, &[]);
    let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for one in list(&told["paths"]) {
        if number(one, "count") > 0 {
            let total = number(&one["total"], "total_ns");
            expected.insert(text(one, "path").to_owned(), (number(one, "count"), total));
        }
    }
    assert_eq!(trace.sums("path", |slice| slice.name.clone()), expected);
    assert!(expected.contains_key("packet"), "{expected:?}");
    let inside = trace
        .of("step")
        .filter(|step| step.args.contains_key("guest"));
    let inside: Vec<&Slice> = inside.collect();
    assert!(inside.len() >= 58, "{}", inside.len());
    let vcpus = document("vcpus", &paths, &[]);
    for step in inside {
        assert_eq!(step.args["guest"], guest.display().to_string());
        assert!(!step.args.contains_key("cpu"), "{step:?}");
        let mut rows = list(&vcpus["rows"]).iter();
        let cpu = step.args["guest_cpu"].parse().ok();
        let row = rows.find(|row| row["vcpu"].as_u64() == cpu);
        let tid = row.map(|row| number(row, "tid")).expect("a vCPU");
        // Where the recording does not tell a thread's process, its name stands on a plain track.
        let track = &trace.tracks[&step.track];
        let named = track.name.ends_with(&format!(":{tid}"));
        assert!(track.tid == Some(tid) || named, "{track:?}: {step:?}");
    }
}

#[test]
fn rows_of_spans_are_split_by_what_guests_did() {
    let mut failures = Failures::default();
    let (mut compared, mut split) = (0, 0);
    let csv = ["--as", "csv"];
    let ns =
        |row: &BTreeMap<String, String>| -> u64 { row["duration_ns"].parse().expect("a number") };
    for Pair { host, guest } in &pairs() {
        for more in &filters(host) {
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            let name = format!("{} {more:?}", guest.display());
            let asked = [&csv[..], &more].concat();
            let both = printed("export", &[host, guest], &asked);
            let both = rows(&both);
            let mut times = Times::new();
            for row in &both {
                let who = match row["task_what"].as_str() {
                    "task" => &row["task_tid"],
                    _ => &row["task_name"],
                };
                let key = [&row["tid"], &row["task_what"], who].map(String::clone);
                *times.entry(key.into()).or_default() += ns(row);
            }
            let expected = of_vcpus(&[host, guest], &more, |row| row["tid"].to_string());
            failures.equal(&name, &times, &expected);
            compared += expected.len();
            // The host's columns add up to those without guests, which have no others.
            let alone = printed("export", &[host], &asked);
            let alone = rows(&alone);
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

#[test]
fn other_tables_are_those_of_their_commands() {
    let (host, guest) = (file(HOST), file(GUEST));
    let paths = [host.as_path(), &guest];
    let csv = ["--format", "csv"];
    let events = [
        "--as",
        "csv",
        "--table",
        "events",
        "--time",
        "1023.1,1023.2",
    ];
    let theirs = [&csv[..], &events[4..]].concat();
    let events = printed("export", &paths, &events);
    assert_eq!(events, printed("events", &paths, &theirs));
    assert!(events.starts_with("recording,time_ns,"), "{events:.60}");
    assert!(events.contains(&format!("\n{},", guest.display())));
    let instances = printed("export", &paths, &["--as", "csv", "--table", "instances"]);
    assert_eq!(
        instances,
        printed("paths", &paths, &["--each", "--format", "csv"])
    );
    assert!(
        instances.contains("\nguest-ipi,"),
        "no path through a guest"
    );
    let exits = ["--as", "csv", "--table", "exits"];
    assert_eq!(
        printed("export", &paths, &exits),
        printed("export", &[&host], &exits)
    );
}

#[test]
fn the_document_and_the_summary_have_what_a_report_has() {
    let (host, guest) = (file(HOST), file(GUEST));
    let told = format!("--guest={}", guest.display());
    let whole = document("export", &[&host, &guest], &[]);
    let report = document("report", &[&host, &guest], &[]);
    let report = report["recordings"][0].as_object().expect("a part");
    for (field, value) in report {
        // A report has those paths that rules look at.
        if !["input", "paths"].contains(&field.as_str()) {
            assert!(whole[field] == *value, "{field} differs");
        }
    }
    assert!(!list(&whole["guest_exits"]).is_empty());
    assert_eq!(list(&whole["guests"]).len(), 1);
    assert_eq!(list(&whole["inputs"]).len(), 2);
    // In whatever order they stand, and however the guest is named.
    for (paths, more) in [
        (vec![guest.as_path(), host.as_path()], vec![]),
        (vec![host.as_path()], vec![told.as_str()]),
    ] {
        let same = document("export", &paths, &more);
        for field in ["vcpus", "guest_exits", "findings", "inputs"] {
            assert!(same[field] == whole[field], "{more:?}: {field} differs");
        }
    }
    let summary = printed("export", &[&host, &guest], &["--as", "md"]);
    let name = guest.display();
    for part in [
        &format!("- guest's recording: `{name}`, of VM `guest 3`\n"),
        "### What the guests did\n",
        "| `interrupt ttyS0` | ",
        &format!("`trapline vcpus {} --guest={name}`", host.display()),
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    let alone = printed("export", &[&host], &["--as", "md"]);
    assert!(!alone.contains("guest's recording") && !alone.contains("What the guests did"));
}

/// Behind the end of a file that was cut off nobody knows what the guest did.
#[test]
fn what_a_guest_did_behind_the_end_of_its_recording_is_unknown() {
    let host = file(HOST);
    let guest = read(&file(GUEST));
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let cut = folder.path().join("cut.dat");
    fs::write(&cut, &guest[..guest.len() * 9 / 10]).expect("there is room");
    let paths = [host.as_path(), &cut];
    let trace = Trace::read(&exported(&paths, &[], "x.pftrace"));
    let expected = of_vcpus(&paths, &[], |row| {
        format!("{:?} vCPU {}", row["vm_pid"].as_u64(), row["vcpu"])
    });
    assert_eq!(of_trace(&trace), expected);
    let mut last: BTreeMap<u64, &Slice> = BTreeMap::new();
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

/// A guest that cannot be used is refused with the reason, and no file is begun.
#[test]
fn guests_that_cannot_be_used_are_refused() {
    let host = file(HOST);
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let guest = read(&file(GUEST));
    let cut = folder.path().join("cut.dat");
    fs::write(&cut, &guest[..guest.len() / 2000]).expect("there is room");
    let text = write_text(folder.path(), "no-recording", "nothing of the kind\n");
    let arm = file("arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst");
    let refused = |run: &Run, what: &str| {
        assert_eq!(run.status, 1, "{what}: {}", run.text());
        run.stderr.clone()
    };
    for kind in ["x.pftrace", "x.csv", "x.md", "x.json"] {
        let out = folder.path().join(kind);
        let written = format!("-o{}", out.display());
        for path in [&cut, &text, &arm] {
            let told = format!("--guest={}", path.display());
            let by_option = refused(&over("export", &[&host], &[&told, &written]), &told);
            let by_place = refused(&over("export", &[&host, path], &[&written]), kind);
            let name = path.file_name().expect("a name").to_string_lossy();
            for said in [by_option, by_place] {
                assert!(said.contains(&*name), "{kind}: {said}");
            }
            assert!(!out.exists(), "{kind} was begun");
        }
    }
    let known = file(GUEST).display().to_string();
    let host = host.display().to_string();
    let told = format!("--guest={known}");
    let twice = run(["export", "--as", "csv", &host, &known, &told]);
    assert!(
        refused(&twice, "twice").contains("is given twice"),
        "{}",
        twice.stderr
    );
}

#[test]
fn a_folder_has_its_hosts_guests() {
    let folder = recorded();
    let csv = ["--as", "csv"];
    let run = over("export", &[folder.path()], &csv);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let given = printed("export", &[&file(HOST), &file(GUEST)], &csv);
    assert!(run.text() == given, "the folder's rows differ");
    assert!(
        run.stderr.contains("guest-b.perf.data"),
        "what is left out is said: {}",
        run.stderr
    );
    let whole = document("export", &[folder.path()], &[]);
    assert_eq!(list(&whole["guests"]).len(), 1);
    let warnings = whole["quality"]["warnings"].to_string();
    assert!(warnings.contains("guest-b.perf.data"), "{warnings}");
}
