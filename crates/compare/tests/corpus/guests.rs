//! Comparisons of hosts' recordings with those of their guests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::{ExitTable, RowSplit};
use fixtures::json::{STATE_FIELDS, list, number, text};
use fixtures::pairs::{GUEST, GuestPair, HOST, PartedPair, pairs};
use fixtures::{Failures, FixtureQuestion, file, write_text};
use serde_json::Value;

use crate::{ComparedFiles, document, each_document, notes};

const ARM_HOST: &str = "arm64/virtio-mmio/boot2-vsock/trace.dat.zst";
const ARM_GUEST: &str = "arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst";

/// Compares two sides, on which there are hosts and guests whose recordings may name each other.
fn sides(a: &[&Path], b: &[&Path]) -> Value {
    let files = ComparedFiles {
        a: a.to_vec(),
        b: b.to_vec(),
        ..ComparedFiles::default()
    };
    files.compare().expect("a comparison").document()
}

/// Compares two hosts whose guests are named.
fn with_guests([a, b]: [&Path; 2], guests: [Option<&Path>; 2]) -> Value {
    let files = ComparedFiles {
        a: vec![a],
        b: vec![b],
        guests,
        ..ComparedFiles::default()
    };
    files.compare().expect("a comparison").document()
}

fn parted(pair: &PartedPair) -> Value {
    let [a, b] = &pair.guests;
    with_guests(pair.hosts(), [Some(a), Some(b)])
}

/// Returns all that was compared, reported or not.
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

#[test]
fn a_pair_beside_itself_has_not_changed() {
    let mut failures = Failures::default();
    for GuestPair { host, guest } in &pairs() {
        let name = guest.display();
        let forms = [
            sides(&[host, host, guest, guest], &[]),
            sides(&[guest, host], &[host, guest]),
            with_guests([host, host], [Some(guest), Some(guest)]),
        ];
        for (form, found) in forms.iter().enumerate() {
            for list_of in ["changes", "likely"] {
                failures.equal(&format!("{name} {form}"), &list(&found[list_of]).len(), &0);
            }
            let guests = all(found).into_iter().filter(|one| is_of_guest(one));
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
        let each = each_document(&paths);
        failures.equal(&format!("{name}: each"), &list(&each["rows"]).len(), &0);
    }
    failures.finish(pairs().len());
}

#[test]
fn what_changed_of_hosts_is_the_same_with_their_guests() {
    let pair = PartedPair::default();
    let [first, second] = pair.hosts();
    let alone = document(first, second);
    let both = parted(&pair);
    assert!(list(&alone["changes"]).len() > 5, "{alone}");
    assert_eq!(of_hosts(&both), of_hosts(&alone));
    assert_eq!(both["differs"], alone["differs"]);
    assert!(all(&both).into_iter().any(is_of_guest));
    // A guest on one side is not compared, and the other side is named.
    let [a, b] = &pair.guests;
    for (guests, side) in [([Some(a), None], "B"), ([None, Some(b)], "A")] {
        let guests = guests.map(|guest| guest.map(PathBuf::as_path));
        let one = with_guests(pair.hosts(), guests);
        assert_eq!(of_hosts(&one), of_hosts(&alone));
        assert!(!all(&one).into_iter().any(is_of_guest), "{one}");
        let said = format!("{side} has no guest's recording: what guests did is not compared.");
        assert!(notes(&one).contains(&said), "{}", notes(&one));
    }
    // Machines of two kinds, whose files name each other; in one table as well.
    let (host, guest, arm, arm_guest) = (file(HOST), file(GUEST), file(ARM_HOST), file(ARM_GUEST));
    let alone = document(&host, &arm);
    let both = sides(&[&host, &guest], &[&arm, &arm_guest]);
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
    let each = each_document(&[&host, &arm, &arm_guest, &guest]);
    let alone = each_document(&[&host, &arm]);
    let rows = |document: &Value| -> Vec<Value> {
        let rows = list(&document["rows"]).iter();
        rows.filter(|row| !is_of_guest(row)).cloned().collect()
    };
    assert_eq!(rows(&each), rows(&alone));
}

#[test]
fn it_is_said_how_sure_that_is_and_what_is_not_known() {
    let both = parted(&PartedPair::default());
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
    let short = sides(&[&host, &guest], &[&host, &guest]);
    assert!(
        notes(&short).contains("too few slices of time"),
        "{}",
        notes(&short)
    );
}

/// A made-up vCPU whose guest has one task.
#[derive(Clone, Copy)]
struct MadeGuest {
    seed: u64,
    /// How long the task runs in each round, in microseconds.
    busy_us: u64,
    /// Of a hundred rounds, how many have an exit of the task.
    msrs: u64,
}

impl MadeGuest {
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
                    "   {}-{}   [000] {}: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=S \
                     ==> next_comm={} next_pid={} next_prio=120\n",
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
    let usual = MadeGuest {
        seed: 1,
        busy_us: 100,
        msrs: 25,
    };
    let mut recorded = 0;
    let mut record = |made: MadeGuest| {
        recorded += 1;
        let [host, guest] = made.record();
        let write =
            |what: &str, text: &str| write_text(folder.path(), &format!("{what}-{recorded}"), text);
        [write("host", &host), write("guest", &guest)]
    };
    let [host, guest] = record(usual);
    let mut compared = |made: MadeGuest| {
        let [other, other_guest] = record(made);
        with_guests([&host, &other], [Some(&guest), Some(&other_guest)])
    };
    for seed in 2..12 {
        let again = compared(MadeGuest { seed, ..usual });
        let rows = all(&again).into_iter().filter(|one| is_of_guest(one));
        assert!(rows.count() >= 4, "{again}");
        let news = list(&again["changes"])
            .iter()
            .filter(|one| is_of_guest(one));
        assert_eq!(news.count(), 0, "{seed}: {:#?}", again["changes"]);
    }
    let longer = compared(MadeGuest {
        seed: 20,
        busy_us: 200,
        ..usual
    });
    let more = compared(MadeGuest {
        seed: 21,
        msrs: 75,
        ..usual
    });
    let changed = |found: &Value| -> BTreeMap<String, Value> {
        let changes = list(&found["changes"]).iter();
        changes
            .filter(|one| is_of_guest(one))
            .map(|one| (text(&one["what"]), one.clone()))
            .collect()
    };
    let longer = changed(&longer);
    assert!(longer.contains_key("guest task busy"), "{longer:#?}");
    assert!(longer.contains_key("guest idle"), "{longer:#?}");
    let row = &longer["guest task busy"];
    assert_eq!(row["worse"], Value::Null);
    assert!(row["ratio"].as_f64() > Some(1.1), "{row}");
    let more = changed(&more);
    let row = more.get("guest vmexit MSR_WRITE in task busy");
    let row = row.unwrap_or_else(|| panic!("{more:#?}"));
    assert_eq!(row["worse"], "b");
    let ratio = row["ratio"].as_f64().expect("a ratio");
    assert!((2.5..3.5).contains(&ratio), "{row}");
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

/// What other answers say of a host and its guest.
#[derive(Default)]
struct OtherAnswers {
    /// By what is compared: shares, nanoseconds in a second, and exits in a second.
    values: BTreeMap<String, f64>,
}

impl OtherAnswers {
    fn of(host: &Path, guest: &Path) -> OtherAnswers {
        let mut found = OtherAnswers::default();
        let span_ns = number(
            &FixtureQuestion::new().info_document(host).expect("info"),
            "duration_ns",
        ) as f64;
        let asked = || FixtureQuestion::new().guest(guest);
        let vcpus = asked().vcpus_document(host).expect("vCPUs");
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
            *found.values.entry(format!("guest {name}")).or_default() += ran;
        }
        for task in tasks.iter().filter(|task| number(task, "runnable_ns") > 0) {
            if let Some(name) = called(&task["what"], &task["name"]) {
                let ns = number(task, "runnable_ns") as f64 / seconds;
                *found
                    .values
                    .entry(format!("guest steal {name}"))
                    .or_default() += ns;
            }
        }
        for (event, table) in [
            ("vmexit", ExitTable::Vmexit),
            ("msr", ExitTable::Msr),
            ("ioport", ExitTable::Ioport),
            ("mmio", ExitTable::Mmio),
        ] {
            let by_task = RowSplit {
                task: true,
                ..RowSplit::default()
            };
            let exits = asked().by(by_task).table(table).exits_document(host);
            let exits = exits.expect("exits");
            for row in list(&exits["rows"]) {
                let Some(name) = called(&row["task_what"], &row["task_name"]) else {
                    continue;
                };
                let key = text(&row["key"]);
                let mut add = |words: &str, field: &str| {
                    let what = format!("guest {event} {key}{words} in {name}");
                    let value = number(row, field) as f64 / seconds;
                    *found.values.entry(what).or_default() += value;
                };
                add("", "count");
                add(" time", "total_ns");
            }
        }
        found
    }
}

#[test]
fn values_of_guests_are_those_of_other_answers() {
    let pair = PartedPair::default();
    let both = parted(&pair);
    let sides = [0, 1].map(|at: usize| OtherAnswers::of(&pair.hosts[at], &pair.guests[at]));
    let mut failures = Failures::default();
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for change in all(&both).into_iter().filter(|one| is_of_guest(one)) {
        let what = text(&change["what"]);
        let kind = what.split(' ').nth(1).unwrap_or_default().to_owned();
        *kinds.entry(kind).or_default() += 1;
        for (name, other) in ["a", "b"].iter().zip(&sides) {
            let value = change[*name].as_f64();
            let expected = other.values.get(&what).copied();
            // Where a task did not wait there is no row of it in the other answer.
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
