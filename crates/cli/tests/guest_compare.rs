//! `compare` of hosts' recordings with those of their guests: its values beside those of other commands, and what the
//! command line refuses.

use std::collections::BTreeMap;
use std::path::Path;

use fixtures::json::STATE_FIELDS;
use fixtures::json::{list, number, text};
use fixtures::pairs::{GUEST, HOST, PartedPair};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Failures, file, write_text};
use crate::guests::{document, over, recorded};

const ARM_HOST: &str = "arm64/virtio-mmio/boot2-vsock/trace.dat.zst";
const ARM_GUEST: &str = "arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst";

/// Returns all that was compared, reported or not.
fn all(document: &Value) -> Vec<&Value> {
    let lists = ["changes", "likely", "noise"].iter();
    lists.flat_map(|name| list(&document[*name])).collect()
}

fn is_of_guest(change: &Value) -> bool {
    text(&change["what"]).starts_with("guest ")
}

fn notes(document: &Value) -> String {
    list(&document["notes"])
        .iter()
        .map(text)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns what guests' tasks are compared by: kernel threads of all CPUs are one.
fn called(what: &Value, name: &Value) -> Option<String> {
    let name = text(name);
    let name = match (name.strip_prefix("kworker/"), name.rsplit_once('/')) {
        (Some(rest), _) if rest.starts_with('u') => "kworker (unbound)".to_owned(),
        (Some(_), _) => "kworker (of a CPU)".to_owned(),
        (None, Some((front, cpu))) if cpu.parse::<u32>().is_ok() => front.to_owned(),
        _ => name,
    };
    match text(what).as_str() {
        "idle" => Some("idle".to_owned()),
        "unknown" => None,
        what => Some(format!("{what} {name}")),
    }
}

/// What other commands say of a host and its guest.
#[derive(Default)]
struct Told {
    /// By what is compared: shares, nanoseconds in a second, and exits in a second.
    values: BTreeMap<String, f64>,
}

impl Told {
    fn of(host: &Path, guest: &Path) -> Told {
        let mut told = Told::default();
        let span_ns = number(&document("info", &[host], &[]), "duration_ns") as f64;
        let vcpus = document("vcpus", &[host, guest], &[]);
        let tasks = list(&vcpus["rows"])
            .iter()
            .flat_map(|row| list(&row["guest"]));
        let tasks: Vec<&Value> = tasks.collect();
        let total = |task: &Value| -> f64 {
            STATE_FIELDS
                .iter()
                .map(|state| number(task, state) as f64)
                .sum()
        };
        let known = tasks.iter().filter(|task| task["what"] != "unknown");
        let known: Vec<&Value> = known.copied().collect();
        let all: f64 = tasks.iter().map(|task| total(task)).sum();
        let share: f64 = known.iter().map(|task| total(task)).sum::<f64>() / all;
        let seconds = span_ns / 1e9 * share;
        let guest_ns: f64 = known
            .iter()
            .map(|task| number(task, "guest_ns") as f64)
            .sum();
        for task in known {
            let name = called(&task["what"], &task["name"]).expect("it is known");
            let ran = number(task, "guest_ns") as f64 / guest_ns;
            *told.values.entry(format!("guest {name}")).or_default() += ran;
        }
        let sched = document("sched", &[host, guest], &[]);
        for row in list(&sched["steal"]) {
            if let Some(name) = called(&row["what"], &row["name"]) {
                let ns = number(row, "runnable_ns") as f64 / seconds;
                *told
                    .values
                    .entry(format!("guest steal {name}"))
                    .or_default() += ns;
            }
        }
        for event in ["vmexit", "msr", "ioport", "mmio"] {
            let exits = document("exits", &[host, guest], &["--by=task", "--event", event]);
            for row in list(&exits["rows"]) {
                let Some(name) = called(&row["task_what"], &row["task_name"]) else {
                    continue;
                };
                let key = text(&row["key"]);
                let mut add = |words: &str, field: &str| {
                    let what = format!("guest {event} {key}{words} in {name}");
                    let value = number(row, field) as f64 / seconds;
                    *told.values.entry(what).or_default() += value;
                };
                add("", "count");
                add(" time", "total_ns");
            }
        }
        told
    }
}

#[test]
fn values_of_guests_are_those_of_other_commands() {
    let parted = PartedPair::default();
    let options = [("--guest", 0), ("--with-guest", 1)]
        .map(|(option, at)| format!("{option}={}", parted.guests[at].display()));
    let both = document("compare", &parted.hosts(), &[&options[0], &options[1]]);
    let sides = [0, 1].map(|at: usize| Told::of(&parted.hosts[at], &parted.guests[at]));
    let mut failures = Failures::default();
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for change in all(&both).into_iter().filter(|one| is_of_guest(one)) {
        let what = text(&change["what"]);
        let kind = what.split(' ').nth(1).unwrap_or_default().to_owned();
        *kinds.entry(kind).or_default() += 1;
        for (name, told) in ["a", "b"].iter().zip(&sides) {
            let value = change[*name].as_f64();
            let expected = told.values.get(&what).copied();
            // Where a task did not wait there is no row of it in the other command.
            let expected = match (value, expected) {
                (Some(0.0), None) => Some(0.0),
                (_, expected) => expected,
            };
            let close = match (value, expected) {
                (None, None) => true,
                (Some(value), Some(expected)) => {
                    (value - expected).abs() <= 1e-6 * expected.abs() + 0.5 * whole(change)
                }
                _ => false,
            };
            failures.check(close, || format!("{what} {name}: {value:?}, {expected:?}"));
        }
        let confidence = change["confidence"].as_f64().expect("it was tested");
        failures.check((0.0..=1.0).contains(&confidence), || what.clone());
    }
    for kind in ["task", "idle", "softirq", "steal", "vmexit", "msr"] {
        failures.check(kinds.contains_key(kind), || format!("{kind}: {kinds:?}"));
    }
    // Nothing of the recorder in the guest.
    let recorder = |one: &&Value| text(&one["what"]).ends_with("task trace-cmd");
    failures.equal(
        "recorders",
        &all(&both).into_iter().filter(recorder).count(),
        &0,
    );
    failures.finish(60);
}

/// Returns by how much rounding may change a value: durations are whole nanoseconds.
fn whole(change: &Value) -> f64 {
    match change["unit"] == "ns" {
        true => 1.0,
        false => 0.0,
    }
}

/// Recordings, options, the exit status, and words of the error.
type Refused<'r> = (&'r [&'r Path], &'r [&'r str], i32, &'r [&'r str]);

#[test]
fn guests_that_do_not_fit_are_refused() {
    let (host, guest, arm) = (file(HOST), file(GUEST), file(ARM_HOST));
    let other = file(ARM_GUEST).display().to_string();
    let own = guest.display().to_string();
    let arm_text = arm.display().to_string();
    let one = [host.as_path(), host.as_path()];
    let two = [host.as_path(), arm.as_path()];
    let guest_told = format!("--guest={other}");
    let with_told = format!("--with-guest={other}");
    let own_told = format!("--guest={own}");
    let with_own = format!("--with-guest={own}");
    let cases: [Refused<'_>; 8] = [
        (&one, &[&guest_told], 1, &["trace-guest1.dat", "another"]),
        (&one, &[&with_told], 1, &["trace-guest1.dat"]),
        (
            &two,
            &["--with", &arm_text, &own_told],
            2,
            &[
                "--guest names recordings of one host's guests",
                "A has 2 recordings",
            ],
        ),
        (
            &one[..1],
            &["--with", &arm_text, &arm_text, &with_own],
            2,
            &["--with-guest names", "B has 2 recordings"],
        ),
        (&two, &["--each", &own_told], 2, &["--each", "--guest"]),
        (
            &[&host, &guest],
            &[],
            2,
            &["the host's recording to compare it with is missing"],
        ),
        (
            &[&host, &arm, &host, &guest],
            &[],
            2,
            &["3 recordings: say which are to be compared"],
        ),
        (
            &one[..1],
            &[&own_told],
            2,
            &["the one to compare it with is missing"],
        ),
    ];
    for (paths, more, status, words) in cases {
        let run = over("compare", paths, more);
        assert_eq!(run.status, status, "{more:?}: {}", run.stderr);
        for word in words {
            assert!(
                run.stderr.contains(word),
                "{more:?}, {word}: {}",
                run.stderr
            );
        }
    }
}

#[test]
fn a_folder_brings_its_hosts_guests() {
    let folders = [recorded(), recorded()];
    for folder in &folders {
        std::fs::remove_file(folder.path().join("guest-b.perf.data")).expect("it is there");
    }
    let [a, b] = folders.each_ref().map(TempDir::path);
    let found = document("compare", &[a, b], &[]);
    assert!(all(&found).into_iter().any(is_of_guest), "{found}");
    assert_eq!((list(&found["a"]).len(), list(&found["b"]).len()), (2, 2));
    assert_eq!(list(&found["changes"]).len(), 0);
    let each = document("compare", &[a, b], &["--each"]);
    assert_eq!(list(&each["inputs"]).len(), 4);
    // One that cannot be used is left out, and its reason is told.
    write_text(b, "guest-a.perf.data", "broken\n");
    let found = document("compare", &[a, b], &[]);
    assert!(notes(&found).contains("B has no guest's recording"));
    let warnings = found["quality"]["warnings"].to_string();
    assert!(warnings.contains("guest-a.perf.data"), "{warnings}");
}
