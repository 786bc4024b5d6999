//! What a trace holds, read by Perfetto's definitions, is what the tables say.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fixtures::json::{list, number};
use fixtures::perfetto::{ReadTrace, SCHEMA, TraceSlice};
use fixtures::{Failures, FileForm, FixtureQuestion, case, cases, note, write_text};
use serde_json::Value;

use crate::traced;

/// The vCPU's thread of each track. The track of a vCPU's spans names the VM's pid and the vCPU's number.
fn vcpu_of(trace: &ReadTrace, track: u64) -> (String, String) {
    let own = &trace.tracks[&track];
    let vm = own.parent.map(|parent| &trace.tracks[&parent]);
    let pid = vm
        .and_then(|vm| vm.pid)
        .map_or(String::new(), |pid| pid.to_string());
    (pid, own.name.clone())
}

/// States and exits against `vcpus` and `exits`.
fn vcpus_agree(
    failures: &mut Failures,
    what: &str,
    trace: &ReadTrace,
    (asked, path): (&FixtureQuestion, &Path),
) {
    let Ok(said) = asked.vcpus_document(path) else {
        return failures.equal(what, &trace.of("state").count(), &0);
    };
    let sums = trace.sums("state", |slice| {
        let (pid, name) = vcpu_of(trace, slice.track);
        format!("{pid} {name} {}", slice.name)
    });
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    let mut polls = 0;
    for row in list(&said["rows"]) {
        let pid = row["vm_pid"]
            .as_i64()
            .map_or(String::new(), |pid| pid.to_string());
        let blocked = [
            number(row, "kernel_blocked_ns"),
            number(row, "user_blocked_ns"),
        ];
        polls += number(row, "poll_ns");
        for (state, ns) in [
            ("guest", number(row, "guest_ns")),
            ("kernel", number(row, "kernel_ns") - blocked[0]),
            ("kernel_blocked", blocked[0]),
            ("user", number(row, "user_ns") - blocked[1]),
            ("user_blocked", blocked[1]),
            ("poll", number(row, "poll_ns")),
            ("halted", number(row, "halted_ns")),
            ("runnable", number(row, "runnable_ns")),
            ("unknown", number(row, "unknown_ns")),
        ] {
            let key = format!("{pid} vCPU {} {state}", number(row, "vcpu"));
            *expected.entry(key).or_default() += ns;
        }
    }
    expected.retain(|_, ns| *ns > 0);
    let found: BTreeMap<String, u64> = sums.into_iter().map(|(key, (_, ns))| (key, ns)).collect();
    // VMs whose processes are not known may have vCPUs of the same number: they are one here, on both sides.
    failures.equal(&format!("{what}: states"), &found, &expected);
    let polled: f64 = (trace.counters.iter())
        .filter(|(track, ..)| trace.tracks[track].name == "halt polling")
        .map(|(.., value)| value)
        .sum();
    failures.equal(&format!("{what}: polling"), &(polled as u64), &polls);
}

fn exits_agree(
    failures: &mut Failures,
    what: &str,
    trace: &ReadTrace,
    (asked, path): (&FixtureQuestion, &Path),
) {
    let Ok(said) = asked.exits_document(path) else {
        return failures.equal(what, &trace.of("exit").count(), &0);
    };
    let expected: BTreeMap<String, (u64, u64)> = (list(&said["rows"]).iter())
        .map(|row| {
            let key = row["key"].as_str().expect("a key").to_owned();
            (key, (number(row, "count"), number(row, "total_ns")))
        })
        .collect();
    let found = trace.sums("exit", |slice| slice.args["reason"].clone());
    failures.equal(&format!("{what}: exits"), &found, &expected);
}

fn paths_agree(
    failures: &mut Failures,
    what: &str,
    trace: &ReadTrace,
    (asked, path): (&FixtureQuestion, &Path),
) {
    let said = asked.paths_document(path).expect("paths of any recording");
    let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut stages: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut count = 0;
    for one in said["paths"].as_array().expect("a list") {
        if number(one, "count") == 0 {
            continue;
        }
        count += number(one, "count");
        let name = one["path"].as_str().expect("a name").to_owned();
        let total = number(&one["total"], "total_ns");
        expected.insert(name, (number(one, "count"), total));
        for stage in one["stages"].as_array().expect("a list") {
            let name = stage["name"].as_str().expect("a name").to_owned();
            let sum = stages.entry(name).or_default();
            sum.0 += number(stage, "count");
            sum.1 += number(stage, "total_ns");
        }
    }
    stages.retain(|_, (count, _)| *count > 0);
    let found = trace.sums("path", |slice| slice.name.clone());
    failures.equal(&format!("{what}: paths"), &found, &expected);
    let found = trace.sums("stage", |slice| slice.name.clone());
    failures.equal(&format!("{what}: stages"), &found, &stages);
    // Each instance is a flow of its own, which begins at its slice and ends at its last step.
    let mut flows: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for slice in trace.of("path").chain(trace.of("step")) {
        let flow = flows.entry(slice.flow.expect("a flow")).or_default();
        flow.0 += u64::from(slice.category == "path");
        flow.1 += u64::from(slice.last);
    }
    failures.equal(&format!("{what}: flows"), &(flows.len() as u64), &count);
    let whole = flows.values().all(|flow| *flow == (1, 1));
    failures.check(whole, || format!("{what}: {flows:?}"));
}

/// Events of the scheduler against `info`, which counts them.
fn events_agree(failures: &mut Failures, what: &str, trace: &ReadTrace, path: &Path) {
    let said = FixtureQuestion::new()
        .info_document(path)
        .expect("info of any recording");
    let counted = |names: &[&str]| -> u64 {
        let events = said["events"].as_array().expect("a list").iter();
        let named = events.filter(|event| {
            let name = event["name"].as_str().unwrap_or_default();
            let bare = name.split(':').next_back().unwrap_or(name);
            names.contains(&bare)
        });
        named.map(|event| number(event, "count")).sum()
    };
    let switches = trace.switches.len() as u64;
    failures.equal(
        &format!("{what}: switches"),
        &switches,
        &counted(&["sched_switch"]),
    );
    let wakes = |field| trace.wakes.get(field).copied().unwrap_or(0);
    failures.equal(
        &format!("{what}: waking"),
        &wakes("sched_waking"),
        &counted(&["sched_waking"]),
    );
    let wakeups = counted(&["sched_wakeup", "sched_wakeup_new"]);
    failures.equal(
        &format!("{what}: wake-ups"),
        &wakes("sched_wakeup"),
        &wakeups,
    );
}

#[test]
fn a_trace_holds_what_the_tables_say() {
    let mut failures = Failures::default();
    let mut read = 0;
    for case in cases() {
        let asked = FixtureQuestion::new();
        let Ok(bytes) = asked.exported(&case.path, FileForm::Trace) else {
            continue;
        };
        read += 1;
        let trace = ReadTrace::read(&bytes);
        let what = case.name.as_str();
        vcpus_agree(&mut failures, what, &trace, (&asked, &case.path));
        exits_agree(&mut failures, what, &trace, (&asked, &case.path));
        paths_agree(&mut failures, what, &trace, (&asked, &case.path));
        // Texts may have events of which nothing could be read.
        if case.kind != "text" {
            events_agree(&mut failures, what, &trace, &case.path);
        }
    }
    assert!(read >= 10, "{read} recordings");
    failures.finish(100);
}

#[test]
fn filters_choose_what_the_tables_choose() {
    let mut failures = Failures::default();
    let path = case("x86/preempted-sick/perf.data.zst").path;
    let all = FixtureQuestion::new;
    for asked in [
        all().vcpu(1),
        all().time("88.430,89.5"),
        all().cpu("0"),
        all().vcpu(0).time("88.5,"),
    ] {
        let what = format!("{asked:?}");
        let trace = traced(&path, &asked);
        vcpus_agree(&mut failures, &what, &trace, (&asked, &path));
        exits_agree(&mut failures, &what, &trace, (&asked, &path));
        paths_agree(&mut failures, &what, &trace, (&asked, &path));
    }
    let asked = all().path("halt-wake");
    let trace = traced(&path, &asked);
    paths_agree(&mut failures, "halt-wake", &trace, (&asked, &path));
    failures.finish(20);
}

/// What is named, and where it stands.
#[test]
fn tracks_and_arguments_say_who_and_why() {
    let path = case("x86/preempted-sick/perf.data.zst").path;
    let trace = traced(&path, &FixtureQuestion::new());
    let release = trace.release.as_deref().unwrap_or_default();
    assert!(release.starts_with("6.1."), "{release}");
    let steps: Vec<_> = trace.of("step").collect();
    assert!(!steps.is_empty());
    // A step stands on the track of the thread that made it, which is one of its process's.
    for step in &steps {
        let track = &trace.tracks[&step.track];
        if let Some(tid) = track.tid {
            assert_eq!(
                trace.threads[&tid].0,
                track.pid.expect("a process"),
                "{track:?}"
            );
        }
    }
    assert!(
        steps
            .iter()
            .any(|step| trace.tracks[&step.track].tid.is_some())
    );
    let waits: Vec<_> = trace
        .of("state")
        .filter(|one| one.name == "runnable")
        .collect();
    let behind = waits
        .iter()
        .filter(|one| one.args.contains_key("behind_tid"));
    assert!(
        behind.count() * 2 > waits.len(),
        "most waits say behind whom"
    );
    for exit in trace.of("exit") {
        let track = &trace.tracks[&exit.track];
        let vcpu = &trace.tracks[&track.parent.expect("below a vCPU")];
        assert!(
            track.name == "exits" && vcpu.name.starts_with("vCPU "),
            "{track:?}"
        );
        assert!(exit.name.starts_with(&exit.args["reason"]), "{exit:?}");
    }
    let named = |exit: &&TraceSlice| exit.args.contains_key("device");
    assert!(trace.of("exit").any(|exit| named(&exit)));
}

/// Counters have the exits of each slice of time as a rate; slices are as long as the recording asks for.
#[test]
fn counters_add_up() {
    for name in [
        "x86/preempted-sick/perf.data.zst",
        "vmx/tiny-irqchip/perf.data.zst",
    ] {
        let path = case(name).path;
        let trace = traced(&path, &FixtureQuestion::new());
        let said = FixtureQuestion::new().vcpus_document(&path).expect("vCPUs");
        let exits: u64 = list(&said["rows"])
            .iter()
            .map(|row| number(row, "exits"))
            .sum();
        let per_second = |track: &u64| trace.tracks[track].name == "exits per second";
        // Of a VM and of its vCPUs, each of which counts all.
        let times: Vec<u64> = trace
            .counters
            .iter()
            .filter(|(t, ..)| per_second(t))
            .map(|c| c.1)
            .collect();
        let length = |a: u64, b: u64| if b == 0 { a } else { gcd(a, b) };
        let slice = times.iter().fold(0, |all, time| length(*time, all));
        let sum: f64 = trace
            .counters
            .iter()
            .filter(|(t, ..)| per_second(t))
            .map(|c| c.2)
            .sum();
        let counted = sum * slice as f64 / 1e9;
        assert!(
            (counted - 2.0 * exits as f64).abs() < 1e-3,
            "{name}: {counted} of 2 * {exits}"
        );
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[test]
fn losses_are_marked() {
    let path = case("x86/format-variants/lost.dat.zst").path;
    let trace = traced(&path, &FixtureQuestion::new());
    let info = FixtureQuestion::new().info_document(&path).expect("info");
    let lost = number(&info["quality"], "lost_events");
    let said = trace.of("lost").map(|one| {
        let count = one.args.get("count").map(|count| count.parse::<u64>());
        // What only says that some were lost counts as one.
        count.map_or(1, |count| count.expect("a number"))
    });
    assert!(lost > 0);
    assert_eq!(said.sum::<u64>(), lost);
}

/// Times at the end of what they can be, clocks that step back, ids and names that are none.
#[test]
fn odd_recordings_make_traces_that_nest() {
    let long = "n".repeat(64 << 10);
    let line = |comm: &str, tid: i64, cpu: u32, time: &str, event: &str| {
        format!("{comm}-{tid} [{cpu:03}] {time}: {event}\n")
    };
    let enter = "kvm_entry: vcpu 0, rip 0xfff0";
    let exit = "kvm_exit: reason EXTERNAL_INTERRUPT rip 0xffffffff810 info 0 800000fd";
    let mut text = String::from("cpus=4\n");
    for (time, event) in [
        ("100.000000001", enter),
        ("100.000000500", exit),
        ("100.000000900", enter),
        ("50.000000000", exit),
        ("60.000000000", enter),
        ("18446744073.709551615", exit),
        ("18446744073.709551615", enter),
        ("99999999999.000000000", exit),
        ("100.000001000", enter),
        ("100.000001001", exit),
    ] {
        text.push_str(&line("CPU 0/KVM", 100, 1, time, event));
    }
    text.push_str(&line(
        &long,
        7,
        2,
        "100.000002000",
        "sched_wakeup: comm=x pid=100 prio=120 target_cpu=001",
    ));
    let switch = "sched_switch: prev_comm=a prev_pid=-5 prev_prio=120 prev_state=S ==> \
                  next_comm=b next_pid=2147483647 next_prio=120";
    text.push_str(&line("a", -5, 3, "100.000002001", switch));
    let folder = tempfile::tempdir().expect("a folder");
    let path = write_text(folder.path(), "odd.txt", &text);
    let bytes = FixtureQuestion::new().exported(&path, FileForm::Trace);
    let bytes = bytes.expect("the text is read as a recording");
    let trace = ReadTrace::read(&bytes);
    assert!(trace.of("state").count() > 0);
    assert!(bytes.len() < 64 << 10, "{} bytes", bytes.len());
}

/// Returns a python that has Perfetto's definitions.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("TRAPLINE_PERFETTO").filter(|name| !name.is_empty());
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    let python = named.map_or_else(|| "python3".into(), PathBuf::from);
    let import = "import perfetto.protos.perfetto.trace.perfetto_trace_pb2";
    let found = Command::new(&python).args(["-c", import]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    assert!(
        !required,
        "TRAPLINE_REQUIRE_TOOLS=1 is set, and no python has the package perfetto"
    );
    note("skipped: no python with the package perfetto of PyPI here (TRAPLINE_PERFETTO)");
    None
}

/// Perfetto's own definitions read the same, and the list of fields that the other tests read by is theirs.
#[test]
fn perfettos_own_definitions_read_the_same() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.pftrace");
    let schema = write_text(folder.path(), "schema.txt", SCHEMA);
    let read = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perfetto/read.py");
    for name in [
        "x86/preempted-sick/perf.data.zst",
        "arm64/vhost-mmio/boot1/trace.dat.zst",
        "x86/format-variants/lost.dat.zst",
    ] {
        let bytes = FixtureQuestion::new().exported(&case(name).path, FileForm::Trace);
        let bytes = bytes.expect("a trace");
        fs::write(&file, &bytes).expect("there is room");
        let ours = ReadTrace::read(&bytes);
        let run = Command::new(&python)
            .arg(&read)
            .arg(&file)
            .arg(&schema)
            .output();
        let output = run.expect("python starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let theirs: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for category in ["state", "exit", "path", "stage"] {
            let of = ours.sums(category, |slice| format!("{category}: {}", slice.name));
            sums.extend(of);
        }
        let said = theirs["slices"].as_object().expect("an object").iter();
        let said = said.map(|(name, sum)| {
            let pair = [0, 1].map(|at| sum[at].as_u64().expect("a number"));
            (name.clone(), (pair[0], pair[1]))
        });
        assert_eq!(said.collect::<BTreeMap<_, _>>(), sums, "{name}");
        let switches = theirs["events"]["sched_switch"].as_u64().unwrap_or(0);
        assert_eq!(switches, ours.switches.len() as u64, "{name}");
    }
}
