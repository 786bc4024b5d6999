//! Interrupts of vCPUs: every one that the events show is counted once, and what guests did adds up to what their
//! events say and changes nothing of the host.

use std::fs;
use std::path::Path;

use fixtures::json::{list, number};
use fixtures::pairs::{GUEST, GuestPair, HOST, pairs};
use fixtures::{
    Failures, FixtureQuestion, cases, events_text, file, listed_events, read, write_text,
};
use render::ClockUnit;
use serde_json::Value;
use session::Filters;

fn asked(guest: &Path) -> FixtureQuestion {
    FixtureQuestion::new().guest(guest)
}

fn both(host: &Path, guest: &Path) -> Value {
    asked(guest).irqs_document(host).expect("it can be read")
}

#[test]
fn every_event_is_in_a_row_or_said_to_be_in_none() {
    let mut failures = Failures::default();
    for case in cases() {
        let Ok(document) = FixtureQuestion::new().irqs_document(&case.path) else {
            continue;
        };
        let events = listed_events(&case.path, Filters::default()).expect("events");
        let count = |name: &str, of: &dyn Fn(&str) -> bool| {
            let these = events
                .iter()
                .filter(|event| event.is(name) && of(&event.text));
            these.count() as u64
        };
        let sum = |name: &str| -> u64 {
            let rows = document["rows"].as_array().into_iter().flatten();
            rows.map(|row| number(row, name)).sum()
        };
        let of_device = |said: &str| said.contains("(Fixed|") || said.contains("(LowPrio|");
        let name = &case.name;
        failures.equal(
            &format!("{name}: accepted"),
            &(sum("accepted") + number(&document, "unresolved")),
            &count("kvm_apic_accept_irq", &of_device),
        );
        failures.equal(
            &format!("{name}: injected"),
            &(sum("injected") + sum("repeated")),
            &count("kvm_inj_virq", &|said| {
                said.contains("IRQ ") || said.contains("irq ")
            }),
        );
    }
    failures.finish(6);
}

/// With APICv nothing is injected: the processor takes what was posted.
#[test]
fn posted_interrupts_are_those_that_were_accepted() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../paths/tests/by_hand/ipi_posted.txt");
    let document = FixtureQuestion::new()
        .irqs_document(&file)
        .expect("a document");
    let row = &document["rows"][0];
    assert_eq!((number(row, "vector"), number(row, "vcpu")), (251, 1));
    assert_eq!((number(row, "accepted"), number(row, "posted")), (2, 2));
    assert_eq!(number(row, "injected"), 0);
}

#[test]
fn what_is_not_recorded_is_not_none() {
    let text = "cpus=2\n\
        \x20 CPU 0/KVM-1010 [001] 10.000001: kvm_entry: vcpu 0, rip 0x1000\n\
        \x20 CPU 0/KVM-1010 [001] 10.000002: kvm_apic_accept_irq: apicid 0 vec 236 (Fixed|edge)\n";
    let folder = tempfile::tempdir().expect("a folder");
    let path = write_text(folder.path(), "irqs.txt", text);
    let document = FixtureQuestion::new()
        .irqs_document(&path)
        .expect("a document");
    let row = &document["rows"][0];
    assert_eq!((number(row, "accepted"), number(row, "vector")), (1, 236));
    for name in ["posted", "injected", "repeated"] {
        assert!(row[name].is_null(), "{name}: {row}");
    }
}

/// The host's columns.
const OF_HOST: [&str; 12] = [
    "vm", "vm_pid", "vcpu", "tid", "vector", "accepted", "posted", "injected", "repeated", "intid",
    "raised", "lowered",
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
        // Which vCPU takes a shared interrupt of arm64 is not known, so neither is what its guest did.
        if row["tid"].is_null() && row["intid"].as_u64().is_some_and(|intid| intid >= 32) {
            continue;
        }
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
    for GuestPair { host, guest } in &pairs {
        let name = guest.display().to_string();
        let both = both(host, guest);
        adds_up(&mut failures, &name, &both);
        let entries = listed_events(guest, Filters::default()).expect("events");
        let entries = entries.iter().filter(|event| event.is("irq_handler_entry"));
        let entries = entries.count() as u64;
        failures.check(entries > 90, || format!("{name}: {entries}"));
        failures.equal(&name, &number(&both, "guest_unplaced"), &0);
        let all = runs(&both) + number(&both, "guest_outside");
        failures.equal(&format!("{name}: handlers"), &all, &entries);
        let Ok(alone) = FixtureQuestion::new().irqs_document(host) else {
            // The host's recording has none of these events.
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
        // The number of threads does not matter.
        let again = asked(guest)
            .beside(|beside| beside.threads = 2)
            .irqs_document(host);
        let again = again.expect("it can be read");
        failures.check(again["rows"] == both["rows"], || format!("{name}: threads"));
    }
    failures.finish(pairs.len());
}

#[test]
fn texts_have_the_same() {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let texts = [(HOST, "host"), (GUEST, "guest")].map(|(path, name)| {
        let text = events_text(&file(path)).expect("events");
        write_text(folder.path(), name, &String::from_utf8_lossy(&text))
    });
    let counts = |host: &Path, guest: &Path| {
        let both = both(host, guest);
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
    let of_text = counts(&texts[0], &texts[1]);
    assert_eq!(of_text, counts(&file(HOST), &file(GUEST)));
}

#[test]
fn a_damaged_guest_costs_only_itself() {
    let host = file(HOST);
    let bytes = read(&file(GUEST));
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let whole = both(&host, &file(GUEST));
    let mut failures = Failures::default();
    for percent in [80, 90, 97] {
        let cut = folder.path().join(format!("cut-{percent}.dat"));
        fs::write(&cut, &bytes[..bytes.len() * percent / 100]).expect("there is room");
        let name = cut.display().to_string();
        let document = both(&host, &cut);
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
    let whole = both(&host, &guest);
    let part = |asked: FixtureQuestion| asked.irqs_document(&host).expect("it can be read");
    let one = part(asked(&guest).vcpu(1));
    let of_one = list(&whole["rows"]).iter().filter(|row| row["vcpu"] == 1);
    assert_eq!(
        list(&one["rows"]).iter().collect::<Vec<_>>(),
        of_one.collect::<Vec<_>>()
    );
    let none = part(asked(&guest).vcpu(0));
    assert_eq!((runs(&none), number(&none, "guest_outside")), (0, 0));
    // Parts of the time add up.
    let parts = ["1021,1022.5", "1022.500000001,1030"].map(|time| {
        let part = part(asked(&guest).time(time));
        let mut failures = Failures::default();
        adds_up(&mut failures, time, &part);
        failures.finish(1);
        runs(&part)
    });
    assert!(parts.iter().all(|runs| *runs > 0), "{parts:?}");
    let early = part(asked(&guest).time("0,1020.999999999"));
    assert_eq!(parts.iter().sum::<u64>() + runs(&early), runs(&whole));
}

#[test]
fn rows_of_csv_are_those_of_json() {
    let (host, guest) = (file(HOST), file(GUEST));
    let both = both(&host, &guest);
    let csv = |asked: FixtureQuestion| {
        let (report, vms, _) = asked.irqs(&host).expect("it can be read");
        render::irqs::csv(&report, &vms, ClockUnit::Nanoseconds)
    };
    let alone = csv(FixtureQuestion::new());
    let csv = csv(asked(&guest));
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
    assert_eq!(alone.lines().next(), Some(&*OF_HOST.join(",")));
}
