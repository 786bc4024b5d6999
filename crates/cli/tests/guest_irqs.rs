//! `trapline irqs` with recordings of guests: the host's columns stay, and what guests did adds up to what the events
//! say.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::list;
use crate::common::{Failures, file, number, read, write_text};
use crate::guests::{GUEST, HOST, Pair, document, over, pairs};

/// The host's columns.
const OF_HOST: [&str; 9] = [
    "vm", "vm_pid", "vcpu", "tid", "vector", "accepted", "posted", "injected", "repeated",
];

/// What a row has of the guest.
const OF_GUEST: [&str; 7] = [
    "handled",
    "unseen",
    "uncovered",
    "delay_p50_ns",
    "delay_p99_ns",
    "delay_max_ns",
    "handlers",
];
/// What that has of each handler.
const OF_HANDLER: [&str; 9] = [
    "irq", "name", "runs", "timed", "total_ns", "out_ns", "p50_ns", "p99_ns", "max_ns",
];

fn of_host(row: &Value) -> Vec<Value> {
    OF_HOST.map(|name| row[name].clone()).to_vec()
}

fn handlers(document: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let rows = list(&document["rows"]).iter();
    rows.flat_map(|row| {
        list(&row["guest"]["handlers"])
            .iter()
            .map(move |one| (row, one))
    })
}

fn runs(document: &Value) -> u64 {
    handlers(document).map(|(_, one)| number(one, "runs")).sum()
}

/// Checks what holds of every document.
fn adds_up(failures: &mut Failures, name: &str, document: &Value) {
    for row in list(&document["rows"]) {
        let of = |part: &str| row["guest"][part].as_u64().unwrap_or(0);
        let injected = row["injected"].as_u64().unwrap_or(0);
        let sum = of("handled") + of("unseen") + of("uncovered");
        failures.equal(&format!("{name}: {row}"), &sum, &injected);
        let keys = |value: &Value| -> Vec<String> {
            value
                .as_object()
                .into_iter()
                .flat_map(|one| one.keys().cloned())
                .collect()
        };
        failures.equal(
            name,
            &keys(&row["guest"]),
            &OF_GUEST.map(str::to_owned).to_vec(),
        );
        for one in list(&row["guest"]["handlers"]) {
            failures.equal(name, &keys(one), &OF_HANDLER.map(str::to_owned).to_vec());
            let times = ["p50_ns", "p99_ns", "max_ns", "total_ns"].map(|time| one[time].as_u64());
            failures.check(times.is_sorted(), || format!("{name}: {one}"));
            failures.check(one["out_ns"].as_u64() <= times[3], || {
                format!("{name}: {one}")
            });
        }
    }
}

#[test]
fn what_guests_did_adds_up_and_changes_nothing_of_the_host() {
    let mut failures = Failures::default();
    let pairs = pairs();
    for Pair { host, guest } in &pairs {
        let name = guest.display().to_string();
        let both = document("irqs", &[host, guest], &[]);
        adds_up(&mut failures, &name, &both);
        let entries = over("events", &[guest], &["--event", "irq_handler_entry"]);
        let entries = entries.text().lines().count() as u64;
        failures.check(entries > 90, || format!("{name}: {entries}"));
        failures.equal(&name, &number(&both, "guest_unplaced"), &0);
        let all = runs(&both) + number(&both, "guest_outside");
        failures.equal(&format!("{name}: handlers"), &all, &entries);
        let run = over("irqs", &[host], &["--format", "json"]);
        let Ok(alone) = run.json() else {
            // KVM on arm64 has none of these events.
            failures.equal(&name, &run.status, &1);
            for row in list(&both["rows"]) {
                let none = ["vector", "accepted", "posted", "injected", "repeated"];
                failures.check(none.iter().all(|one| row[one].is_null()), || {
                    row.to_string()
                });
            }
            continue;
        };
        for row in list(&alone["rows"]) {
            failures.check(row.get("guest").is_none(), || format!("{name}: {row}"));
        }
        let rows: Vec<_> = list(&both["rows"]).iter().map(of_host).collect();
        let known: Vec<_> = list(&alone["rows"]).iter().map(of_host).collect();
        failures.check(rows.starts_with(&known), || format!("{name}: {rows:?}"));
        for row in &rows[known.len()..] {
            failures.check(row[4..].iter().all(Value::is_null), || {
                format!("{name}: {row:?}")
            });
        }
        // Who stands first, and the number of threads, do not matter.
        let again = document("irqs", &[guest, host], &["--threads", "1"]);
        failures.check(again["rows"] == both["rows"], || format!("{name}: order"));
    }
    failures.finish(pairs.len());
}

/// What the events say: by vCPU and vector, delays of handled injections; by vCPU, vector and interrupt, times of runs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    delays: BTreeMap<(u64, u64), Vec<u64>>,
    times: BTreeMap<(u64, Option<u64>, u64), Vec<u64>>,
}

/// Reads lines of both recordings: the first handler of a device up to the next injection is that of the last one.
fn told(text: &str) -> Told {
    let mut told = Told::default();
    let mut last: BTreeMap<u64, (u64, u64, bool)> = BTreeMap::new();
    let mut open = BTreeMap::new();
    for line in text.lines() {
        let behind = |word: &str| {
            let rest = line.split_once(word)?.1;
            let end = rest.find(|c: char| !c.is_ascii_hexdigit());
            Some(&rest[..end.unwrap_or(rest.len())])
        };
        let decimal = |word: &str| behind(word).and_then(|text| text.parse::<u64>().ok());
        let time = line
            .split_once("] ")
            .and_then(|(_, rest)| rest.split_once(": "));
        let time = time.and_then(|(time, _)| time.trim().replace('.', "").parse::<u64>().ok());
        let time = time.expect("a time");
        if line.contains(" kvm_inj_virq: ") {
            let vcpu = decimal("CPU ").expect("a vCPU's thread");
            let vector = behind("IRQ 0x").and_then(|text| u64::from_str_radix(text, 16).ok());
            if !line.contains("reinjected") {
                last.insert(vcpu, (vector.expect("a vector"), time, false));
            }
        } else if line.contains(" irq_handler_entry: ") {
            let (vcpu, irq) = (decimal(" [").expect("a CPU"), decimal("irq=").expect("irq"));
            let of = last.get_mut(&vcpu).filter(|one| one.0 < 0xec);
            let vector = of.as_ref().map(|one| one.0);
            if let Some((vector, injected, handled)) = of
                && !std::mem::replace(handled, true)
            {
                let delays = told.delays.entry((vcpu, *vector)).or_default();
                delays.push(time - *injected);
            }
            open.insert((vcpu, irq), (vector, time));
        } else if line.contains(" irq_handler_exit: ") {
            let (vcpu, irq) = (decimal(" [").expect("a CPU"), decimal("irq=").expect("irq"));
            if let Some((vector, since)) = open.remove(&(vcpu, irq)) {
                let times = told.times.entry((vcpu, vector, irq)).or_default();
                times.push(time - since);
            }
        }
    }
    told
}

#[test]
fn handlers_are_those_that_the_lines_of_both_recordings_show() {
    let (host, guest) = (file(HOST), file(GUEST));
    let told = told(&over("events", &[&host, &guest], &[]).text());
    let both = document("irqs", &[&host, &guest], &[]);
    // Lines have microseconds, each cut: a difference may be one off.
    let near = |ns: u64, us: u64| ns.abs_diff(us * 1000) <= 1000;
    let mut seen = 0;
    for row in list(&both["rows"]) {
        let guest = &row["guest"];
        let (vcpu, vector) = (number(row, "vcpu"), row["vector"].as_u64());
        let delays = vector.and_then(|vector| told.delays.get(&(vcpu, vector)));
        let delays = delays.map_or(&[][..], Vec::as_slice);
        assert_eq!(
            guest["handled"].as_u64().unwrap_or(0),
            delays.len() as u64,
            "{row}"
        );
        if let Some(max) = delays.iter().max() {
            assert!(near(number(guest, "delay_max_ns"), *max), "{row}: {max}");
        }
        for one in list(&guest["handlers"]) {
            let times = &told.times[&(vcpu, vector, number(one, "irq"))];
            assert_eq!(number(one, "runs"), times.len() as u64, "{row}");
            let max = *times.iter().max().expect("one");
            assert!(near(number(one, "max_ns"), max), "{one}: {max}");
            let most = 1000 * times.len() as u64;
            let sum: u64 = times.iter().sum();
            assert!(
                number(one, "total_ns").abs_diff(sum * 1000) <= most,
                "{one}: {sum}"
            );
            seen += 1;
        }
    }
    // Four are before the host's recording.
    let before = &told.times[&(1, None, 25)];
    assert_eq!(before.len() as u64, number(&both, "guest_outside"));
    assert_eq!((seen, told.times.len()), (2, 3), "{told:?}");
    // What these are, and that the guest's recording has no events of Linux's own vectors.
    let named: Vec<_> = handlers(&both)
        .map(|(row, one)| {
            (
                row["vector"].as_u64(),
                number(one, "irq"),
                one["name"].as_str(),
            )
        })
        .collect();
    let virtio = Some("virtio0-virtqueues");
    let expected = [(Some(0x23), 4, Some("ttyS0")), (Some(0x24), 25, virtio)];
    assert_eq!(named, expected);
    for row in list(&both["rows"])
        .iter()
        .filter(|row| number(row, "injected") > 0)
    {
        let known = matches!(row["vector"].as_u64(), Some(0x23 | 0x24));
        assert_eq!(row["guest"]["handled"].is_u64(), known, "{row}");
    }
}

#[test]
fn texts_tell_the_same() {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let texts = [(HOST, "host"), (GUEST, "guest")].map(|(path, name)| {
        let text = over("events", &[&file(path)], &[]).text();
        write_text(folder.path(), name, &text)
    });
    let counts = |paths: &[&Path]| {
        let both = document("irqs", paths, &[]);
        let all = list(&both["rows"]).iter().map(|row| {
            let guest = &row["guest"];
            let handlers = list(&guest["handlers"]).iter();
            let handlers = handlers.map(|one| (one["name"].clone(), one["runs"].clone()));
            let counts = ["handled", "unseen", "uncovered"].map(|one| guest[one].clone());
            (
                row["vcpu"].clone(),
                row["vector"].clone(),
                counts,
                handlers.collect::<Vec<_>>(),
            )
        });
        all.collect::<Vec<_>>()
    };
    let of_text = counts(&texts.each_ref().map(PathBuf::as_path));
    assert_eq!(of_text, counts(&[&file(HOST), &file(GUEST)]));
}

#[test]
fn a_damaged_guest_costs_only_itself() {
    let host = file(HOST);
    let bytes = read(&file(GUEST));
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let whole = document("irqs", &[&host, &file(GUEST)], &[]);
    let mut failures = Failures::default();
    for percent in [80, 90, 97] {
        let cut = folder.path().join(format!("cut-{percent}.dat"));
        fs::write(&cut, &bytes[..bytes.len() * percent / 100]).expect("there is room");
        let name = cut.display().to_string();
        let run = over("irqs", &[&host, &cut], &["--format", "json"]);
        let document = run.json().unwrap_or_else(|_| panic!("{}", run.stderr));
        adds_up(&mut failures, &name, &document);
        for (row, of_whole) in list(&document["rows"]).iter().zip(list(&whole["rows"])) {
            if !row["injected"].is_null() {
                failures.equal(&name, &of_host(row), &of_host(of_whole));
            }
            let of = |row: &Value| row["guest"]["handled"].as_u64();
            failures.check(of(row) <= of(of_whole), || format!("{name}: {row}"));
        }
        failures.check(runs(&document) < runs(&whole), || name.clone());
    }
    failures.finish(3);
}

#[test]
fn filters_choose_rows_and_times() {
    let (host, guest) = (file(HOST), file(GUEST));
    let whole = document("irqs", &[&host, &guest], &[]);
    let one = document("irqs", &[&host, &guest], &["--vcpu", "1"]);
    let of_one = list(&whole["rows"]).iter().filter(|row| row["vcpu"] == 1);
    assert_eq!(
        list(&one["rows"]).iter().collect::<Vec<_>>(),
        of_one.collect::<Vec<_>>()
    );
    let none = document("irqs", &[&host, &guest], &["--vcpu", "0"]);
    assert_eq!((runs(&none), number(&none, "guest_outside")), (0, 0));
    // Parts of the time add up.
    let parts = ["1021,1022.5", "1022.500000001,1030"].map(|time| {
        let part = document("irqs", &[&host, &guest], &["--time", time]);
        let mut failures = Failures::default();
        adds_up(&mut failures, time, &part);
        failures.finish(1);
        runs(&part)
    });
    assert!(parts.iter().all(|runs| *runs > 0), "{parts:?}");
    let early = document("irqs", &[&host, &guest], &["--time", "0,1020.999999999"]);
    assert_eq!(parts.iter().sum::<u64>() + runs(&early), runs(&whole));
}

#[test]
fn rows_of_csv_are_those_of_json() {
    let (host, guest) = (file(HOST), file(GUEST));
    let both = document("irqs", &[&host, &guest], &[]);
    let csv = over("irqs", &[&host, &guest], &["--format", "csv"]).text();
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let at = |name: &str| head.iter().position(|one| *one == name).expect("a column");
    for row in list(&both["rows"]) {
        let line: Vec<&str> = lines.next().expect("a row").split(',').collect();
        assert_eq!(line.len(), head.len());
        for name in [
            "handled",
            "unseen",
            "uncovered",
            "delay_p50_ns",
            "delay_p99_ns",
            "delay_max_ns",
        ] {
            let value = row["guest"][name].as_u64();
            assert_eq!(
                line[at(name)],
                value.map_or(String::new(), |one| one.to_string())
            );
        }
        let sum = |name: &str| {
            let of = list(&row["guest"]["handlers"]).iter();
            let sum: u64 = of.map(|one| number(one, name)).sum();
            if sum == 0 {
                String::new()
            } else {
                sum.to_string()
            }
        };
        assert_eq!(line[at("runs")], sum("runs"));
        assert_eq!(line[at("run_total_ns")], sum("total_ns"));
    }
    assert_eq!(lines.next(), None);
    // Without guests there are no such columns.
    let alone = over("irqs", &[&host], &["--format", "csv"]).text();
    assert_eq!(alone.lines().next(), Some(&*OF_HOST.join(",")));
}
