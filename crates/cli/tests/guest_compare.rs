//! `compare` of hosts' recordings with those of their guests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::instances::{list, text};
use crate::common::{Failures, file, number, write_text};
use crate::guests::{GUEST, HOST, Pair, document, over, pairs, recorded};

const ARM_HOST: &str = "arm64/virtio-mmio/boot2-vsock/trace.dat.zst";
const ARM_GUEST: &str = "arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst";

/// When the pair of x86 is parted: its guest's recording ends two seconds later, and its host's four.
const PARTED_US: u64 = 1_023_200_000;

/// Recordings of one host and its guest, parted in time, as texts that do not name each other.
struct Parted {
    _folder: TempDir,
    hosts: [PathBuf; 2],
    guests: [PathBuf; 2],
}

impl Parted {
    fn new() -> Parted {
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let part = |what: &str, name: &str| {
            let events = over("events", &[&file(name)], &[]).text();
            let (mut before, mut behind) = (String::new(), String::new());
            for line in events.lines() {
                let part = match time_us(line).expect("each line has a time") < PARTED_US {
                    true => &mut before,
                    false => &mut behind,
                };
                part.push_str(line);
                part.push('\n');
            }
            [before, behind].map(|text| {
                let name = format!("{what}-{}", text.len());
                write_text(folder.path(), &name, &text)
            })
        };
        let hosts = part("host", HOST);
        let guests = part("guest", GUEST);
        Parted {
            _folder: folder,
            hosts,
            guests,
        }
    }

    fn hosts(&self) -> [&Path; 2] {
        self.hosts.each_ref().map(PathBuf::as_path)
    }

    /// Returns the options that say whose guests there are.
    fn told(&self) -> [String; 2] {
        let [a, b] = &self.guests;
        [
            format!("--guest={}", a.display()),
            format!("--with-guest={}", b.display()),
        ]
    }

    fn compared(&self) -> Value {
        let [a, b] = self.told();
        document("compare", &self.hosts(), &[&a, &b])
    }
}

/// Returns the time of a printed event, behind its CPU.
fn time_us(line: &str) -> Option<u64> {
    let words = line
        .split_ascii_whitespace()
        .skip_while(|word| !word.starts_with('['));
    let (seconds, rest) = words.take(2).nth(1)?.split_once('.')?;
    let micros = rest.strip_suffix(':')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?)
}

/// Returns all that was compared, told or not.
fn all(document: &Value) -> Vec<&Value> {
    let lists = ["changes", "likely", "noise"].iter();
    lists.flat_map(|name| list(&document[*name])).collect()
}

fn is_of_guest(change: &Value) -> bool {
    text(&change["what"]).starts_with("guest ")
}

/// Returns what was compared of hosts, by the list that it is in.
fn of_hosts(document: &Value) -> Vec<Vec<Value>> {
    let lists = ["changes", "likely", "noise"].iter();
    lists
        .map(|name| {
            let of_hosts = list(&document[*name]).iter();
            of_hosts.filter(|one| !is_of_guest(one)).cloned().collect()
        })
        .collect()
}

fn notes(document: &Value) -> String {
    list(&document["notes"])
        .iter()
        .map(text)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_pair_beside_itself_has_not_changed() {
    let mut failures = Failures::default();
    for Pair { host, guest } in &pairs() {
        let name = guest.display();
        let (host_text, guest_text) = (host.display().to_string(), guest.display().to_string());
        let told = [
            format!("--guest={guest_text}"),
            format!("--with-guest={guest_text}"),
        ];
        let (first, second) = (told[0].as_str(), told[1].as_str());
        let forms: [(Vec<&Path>, Vec<&str>); 3] = [
            (vec![host, host, guest, guest], vec![]),
            (vec![guest, host], vec!["--with", &host_text, &guest_text]),
            (vec![host, host], vec![first, second]),
        ];
        for (paths, more) in forms {
            let found = document("compare", &paths, &more);
            for list_of in ["changes", "likely"] {
                failures.equal(
                    &format!("{name} {more:?}"),
                    &list(&found[list_of]).len(),
                    &0,
                );
            }
            let guests = all(&found).into_iter().filter(|one| is_of_guest(one));
            let guests: Vec<&Value> = guests.collect();
            failures.check(guests.len() > 10, || {
                format!("{name}: {} rows", guests.len())
            });
            for one in guests {
                failures.check(one["a"] == one["b"], || format!("{name}: {one}"));
            }
            for side in ["a", "b"] {
                failures.equal(&format!("{name}: {side}"), &list(&found[side]).len(), &2);
            }
        }
        let paths = [host, host, guest, guest].map(PathBuf::as_path);
        let each = document("compare", &paths, &["--each"]);
        failures.equal(&format!("{name}: each"), &list(&each["rows"]).len(), &0);
    }
    failures.finish(pairs().len());
}

#[test]
fn what_changed_of_hosts_is_the_same_with_their_guests() {
    let parted = Parted::new();
    let [first, second] = parted.told();
    let alone = document("compare", &parted.hosts(), &[]);
    let both = parted.compared();
    assert!(list(&alone["changes"]).len() > 5, "{alone}");
    assert_eq!(of_hosts(&both), of_hosts(&alone));
    assert_eq!(both["differs"], alone["differs"]);
    assert!(all(&both).into_iter().any(is_of_guest));
    // A guest on one side is not compared, and the other side is named.
    for (told, side) in [(&first, "B"), (&second, "A")] {
        let one = document("compare", &parted.hosts(), &[told]);
        assert_eq!(of_hosts(&one), of_hosts(&alone));
        assert!(!all(&one).into_iter().any(is_of_guest), "{one}");
        let said = format!("{side} has no guest's recording: what guests did is not compared.");
        assert!(notes(&one).contains(&said), "{}", notes(&one));
    }
    // Machines of two kinds, whose files name each other; in one table as well.
    let (host, guest, arm, arm_guest) = (file(HOST), file(GUEST), file(ARM_HOST), file(ARM_GUEST));
    let alone = document("compare", &[&host, &arm], &[]);
    let both = document("compare", &[&host, &arm, &arm_guest, &guest], &[]);
    assert_eq!(of_hosts(&both), of_hosts(&alone));
    let of_guests: Vec<String> = all(&both)
        .into_iter()
        .filter(|one| is_of_guest(one))
        .map(|one| text(&one["what"]))
        .collect();
    assert!(
        of_guests.contains(&"guest idle".to_owned()),
        "{of_guests:?}"
    );
    // Their exits have no reasons in common.
    assert!(
        !of_guests
            .iter()
            .any(|what| what.starts_with("guest vmexit"))
    );
    let each = document("compare", &[&host, &arm, &arm_guest, &guest], &["--each"]);
    let alone = document("compare", &[&host, &arm], &["--each"]);
    let rows = |document: &Value| -> Vec<Value> {
        let rows = list(&document["rows"]).iter();
        rows.filter(|row| !is_of_guest(row)).cloned().collect()
    };
    assert_eq!(rows(&each), rows(&alone));
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
        let states = [
            "guest_ns",
            "kernel_ns",
            "user_ns",
            "poll_ns",
            "halted_ns",
            "runnable_ns",
            "unknown_ns",
        ];
        let total =
            |task: &Value| -> f64 { states.iter().map(|state| number(task, state) as f64).sum() };
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
    let parted = Parted::new();
    let both = parted.compared();
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

#[test]
fn it_is_said_how_sure_that_is_and_what_is_not_known() {
    let both = Parted::new().compared();
    let mut likely = list(&both["likely"]).iter();
    let found = likely.find(|change| change["what"] == "guest vmexit interrupt in task wl");
    let found = found.unwrap_or_else(|| panic!("{:#?}", both["likely"]));
    // It waits for messages first, and hardly ever runs then: but what it does comes in few bursts.
    assert_eq!(found["worse"], "a");
    assert!(found["confidence"].as_f64() < Some(0.99), "{found}");
    let said = text(&found["text"]);
    assert!(
        said.starts_with("interrupt in task wl: 294 to 42.9 in a second"),
        "{said}"
    );
    let unknown =
        "do not say what guests did for less than 0.1 % of their vCPUs' time in A and 50 % in B";
    assert!(notes(&both).contains(unknown), "{}", notes(&both));
    // A guest's recording of a tenth of its host's has too few slices.
    let (host, guest) = (file(ARM_HOST), file(ARM_GUEST));
    let short = document("compare", &[&host, &host, &guest, &guest], &[]);
    assert!(
        notes(&short).contains("too few slices of time"),
        "{}",
        notes(&short)
    );
}

/// A made-up vCPU whose guest has one task.
#[derive(Clone, Copy)]
struct Made {
    seed: u64,
    /// How long the task runs in each round, in microseconds.
    busy_us: u64,
    /// Of a hundred rounds, how many have an exit of the task.
    msrs: u64,
}

impl Made {
    /// Returns the host's recording and the guest's, as texts.
    fn record(self) -> [String; 2] {
        let mut state = self.seed;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut host = "cpus=4\n".to_owned();
        let mut guest = "cpus=1\n".to_owned();
        let mut at = 100_000_000;
        for _ in 0..2_000 {
            let time = |at: u64| format!("{}.{:06}", at / 1_000_000, at % 1_000_000);
            let mut moves = |at: u64, what: &str| {
                host.push_str(&format!("   CPU 0/KVM-101   [001] {}: {what}\n", time(at)));
            };
            let exit = |reason: &str| format!("kvm_exit: reason {reason} rip 0x1000 info 0 0");
            let mut switch = |at: u64, from: (&str, i32), to: (&str, i32)| {
                guest.push_str(&format!(
                    "   {}-{}   [000] {}: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=S ==> next_comm={} \
                     next_pid={} next_prio=120\n",
                    from.0,
                    from.1,
                    time(at),
                    from.0,
                    from.1,
                    to.0,
                    to.1
                ));
            };
            let (idle, busy) = (("swapper/0", 0), ("busy", 77));
            at += 300 + next(900);
            moves(at, "kvm_entry: vcpu 0, rip 0x1000");
            switch(at + 20, idle, busy);
            at += 20 + self.busy_us / 2 + next(self.busy_us);
            if next(100) < self.msrs {
                moves(at, &exit("MSR_WRITE"));
                at += 10 + next(20);
                moves(at, "kvm_entry: vcpu 0, rip 0x1000");
                at += 10;
            }
            switch(at, busy, idle);
            at += 60 + next(200);
            moves(at, &exit("HLT"));
        }
        [host, guest]
    }
}

#[test]
fn what_a_guest_does_again_is_no_news_and_what_it_does_else_is() {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let usual = Made {
        seed: 1,
        busy_us: 100,
        msrs: 25,
    };
    let mut recorded = 0;
    let mut record = |made: Made| {
        recorded += 1;
        let [host, guest] = made.record();
        let write =
            |what: &str, text: &str| write_text(folder.path(), &format!("{what}-{recorded}"), text);
        [write("host", &host), write("guest", &guest)]
    };
    let [host, guest] = record(usual);
    let told = format!("--guest={}", guest.display());
    let mut compared = |made: Made| {
        let [other, other_guest] = record(made);
        let with = format!("--with-guest={}", other_guest.display());
        document("compare", &[&host, &other], &[&told, &with])
    };
    for seed in 2..12 {
        let again = compared(Made { seed, ..usual });
        let rows = all(&again).into_iter().filter(|one| is_of_guest(one));
        assert!(rows.count() >= 4, "{again}");
        let news = list(&again["changes"])
            .iter()
            .filter(|one| is_of_guest(one));
        assert_eq!(news.count(), 0, "{seed}: {:#?}", again["changes"]);
    }
    let longer = compared(Made {
        seed: 20,
        busy_us: 200,
        ..usual
    });
    let more = compared(Made {
        seed: 21,
        msrs: 75,
        ..usual
    });
    let told = |found: &Value| -> BTreeMap<String, Value> {
        let changes = list(&found["changes"]).iter();
        changes
            .filter(|one| is_of_guest(one))
            .map(|one| (text(&one["what"]), one.clone()))
            .collect()
    };
    let longer = told(&longer);
    assert!(longer.contains_key("guest task busy"), "{longer:#?}");
    assert!(longer.contains_key("guest idle"), "{longer:#?}");
    let row = &longer["guest task busy"];
    assert_eq!(row["worse"], Value::Null);
    assert!(row["ratio"].as_f64() > Some(1.1), "{row}");
    let more = told(&more);
    let row = more.get("guest vmexit MSR_WRITE in task busy");
    let row = row.unwrap_or_else(|| panic!("{more:#?}"));
    assert_eq!(row["worse"], "b");
    let ratio = row["ratio"].as_f64().expect("a ratio");
    assert!((2.5..3.5).contains(&ratio), "{row}");
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
