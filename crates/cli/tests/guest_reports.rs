//! `report`, `diagnose` and `sched` of a host's recording with those of its guests.

use std::fs;

use serde_json::Value;

use crate::common::list;
use crate::common::page::Page;
use crate::common::{Failures, file, number, read, run, write_text};
use crate::guests::{GUEST, HOST, Pair, document, over, pairs, recorded};
use crate::report_page::{commands_say_the_same, is_sound};

/// Takes out of a recording's part what its guests' recordings say.
fn of_host(part: &Value) -> Value {
    let mut part = part.clone();
    for name in ["guests", "guest_exits"] {
        part.as_object_mut().expect("a part").remove(name);
    }
    if let Some(paths) = part["paths"].as_array_mut() {
        paths.retain(|path| {
            let mut guests = paths::WITH_GUESTS.iter();
            guests.all(|(name, _)| path["path"] != *name)
        });
    }
    let rows = part["vcpus"]["rows"].as_array_mut();
    for row in rows.into_iter().flatten() {
        row.as_object_mut().expect("a row").remove("guest");
    }
    let findings = part["findings"].as_array_mut();
    for finding in findings.into_iter().flatten() {
        for name in ["evidence", "evidence_data"] {
            if let Some(list) = finding.get_mut(name).and_then(Value::as_array_mut) {
                list.retain(|one| {
                    let text = one.as_str().or(one["text"].as_str());
                    !text.unwrap_or_default().starts_with("In the guest")
                });
            }
        }
    }
    part
}

#[test]
fn a_report_of_a_host_says_the_same_of_it_with_its_guests() {
    let mut failures = Failures::default();
    let pairs = pairs();
    for Pair { host, guest } in &pairs {
        let name = guest.display();
        let alone = document("report", &[host], &[]);
        let reported = format!("--guest={}", guest.display());
        for (paths, more) in [
            (vec![host.as_path(), guest], None),
            (vec![guest.as_path(), host], None),
            (vec![host.as_path()], Some(reported.as_str())),
        ] {
            let more: Vec<&str> = more.into_iter().collect();
            let both = document("report", &paths, &more);
            let [part] = list(&both["recordings"]) else {
                panic!("{name}: {both}");
            };
            let guests = list(&part["guests"]);
            failures.equal(&format!("{name}: guests"), &guests.len(), &1);
            failures.equal(
                &format!("{name}: outside"),
                &number(&guests[0], "outside"),
                &0,
            );
            for row in list(&part["vcpus"]["rows"]) {
                failures.check(list(&row["guest"]).len() > 3, || format!("{name}: {row}"));
            }
            let of = of_host(part);
            for (field, alone) in alone["recordings"][0].as_object().expect("a part") {
                failures.check(of[field] == *alone, || format!("{name}: {field} differs"));
            }
            let inputs = both["inputs"].as_array().expect("names").len();
            failures.equal(&format!("{name}: inputs"), &inputs, &2);
        }
    }
    failures.finish(pairs.len());
}

#[test]
fn exits_by_what_guests_did_add_up_in_a_report() {
    let (host, guest) = (file(HOST), file(GUEST));
    let report = document("report", &[&host, &guest], &[]);
    let part = &report["recordings"][0];
    for table in list(&part["exits"]) {
        let mut tables = list(&part["guest_exits"]).iter();
        let of_guest = tables.find(|one| one["event"] == table["event"]);
        let of_guest = of_guest.expect("each table is there");
        for row in list(&table["rows"]) {
            let rows = list(&of_guest["rows"]).iter();
            let rows = rows.filter(|one| one["key"] == row["key"]);
            let sum: u64 = rows.map(|one| number(one, "count")).sum();
            assert_eq!(sum, number(row, "count"), "{row}");
        }
    }
}

#[test]
fn recordings_of_two_hosts_are_two_reports() {
    let (host, guest) = (file(HOST), file(GUEST));
    let arm = file("arm64/virtio-mmio/boot2-vsock/trace.dat.zst");
    let report = document("report", &[&arm, &guest, &host], &[]);
    let parts = list(&report["recordings"]);
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[0]["guests"], Value::Null);
    assert_eq!(
        list(&parts[1]["guests"])[0]["input"],
        guest.display().to_string()
    );
    let reported = format!("--guest={}", guest.display());
    let run = over("report", &[&arm, &host], &[&reported]);
    assert_eq!(run.status, 1);
    assert!(run.stderr.contains("give one host"), "{}", run.stderr);
}

#[test]
fn guests_that_cannot_be_used_are_refused_by_name() {
    let host = file(HOST);
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let guest = read(&file(GUEST));
    let cut = folder.path().join("cut.dat");
    fs::write(&cut, &guest[..guest.len() / 2000]).expect("there is room");
    let text = write_text(folder.path(), "no-recording", "nothing of the kind\n");
    let arm = file("arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst");
    for command in ["report", "diagnose", "sched"] {
        for path in [&cut, &text, &arm] {
            let reported = format!("--guest={}", path.display());
            let run = over(command, &[&host], &[&reported]);
            assert_eq!(run.status, 1, "{command} {reported}: {}", run.text());
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            assert!(run.stderr.contains(&name), "{command}: {}", run.stderr);
        }
    }
}

#[test]
fn a_folder_has_its_hosts_guests() {
    let folder = recorded();
    let report = document("report", &[folder.path()], &[]);
    let [part] = list(&report["recordings"]) else {
        panic!("{report}");
    };
    let guests: Vec<&str> = list(&part["guests"])
        .iter()
        .filter_map(|one| one["input"].as_str())
        .collect();
    assert!(
        guests.len() == 1 && guests[0].ends_with("guest-a.perf.data"),
        "{guests:?}"
    );
    let warnings = report["quality"]["warnings"].to_string();
    assert!(warnings.contains("guest-b.perf.data"), "{warnings}");
}

#[test]
fn the_page_shows_what_guests_did() {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let page = folder.path().join("report.html");
    let written = format!("-o{}", page.display());
    let (host, guest) = (file(HOST), file(GUEST));
    let run = over("report", &[&host, &guest], &[&written]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let page = fs::read_to_string(&page).expect("it was written");
    for table in ["vcpus-guest", "exits-vmexit-guest", "exits-ioport-guest"] {
        assert!(
            page.contains(&format!("id=\"table-{table}\"")),
            "no {table}"
        );
    }
    assert!(page.contains("interrupt ttyS0") && page.contains("wl:125"));
    // The commands that print the tables take the guests as well.
    assert!(page.contains("--by task --sort time --wide"), "no command");
    assert!(
        page.contains(&format!("--guest={}", guest.display())),
        "no guest in the commands"
    );
    let text = over("report", &[&host, &guest], &[]).text();
    assert!(
        text.contains("the guest did") && text.contains("wl:126"),
        "{text}"
    );
    let brief = over("report", &[&host, &guest], &["--brief"]).text();
    assert!(brief.contains("guest (%): wl:125"), "{brief}");
}

#[test]
fn waiting_for_a_cpu_is_counted_to_what_waited_in_the_guest() {
    let (host, guest) = (file(HOST), file(GUEST));
    let both = document("sched", &[&host, &guest], &[]);
    let alone = document("sched", &[&host], &[]);
    for field in ["rows", "cpus", "work", "delays"] {
        assert_eq!(both[field], alone[field], "{field}");
    }
    assert_eq!(alone["steal"], Value::Null);
    let vcpus = document("vcpus", &[&host], &[]);
    for row in list(&vcpus["rows"]) {
        let steal = list(&both["steal"]).iter();
        let steal = steal.filter(|one| one["vcpu_tid"] == row["tid"]);
        let sum: u64 = steal.map(|one| number(one, "runnable_ns")).sum();
        assert_eq!(sum, number(row, "runnable_ns"), "{row}");
    }
    let chosen = document("sched", &[&host, &guest], &["--vcpu", "1"]);
    let tids: Vec<u64> = list(&chosen["steal"])
        .iter()
        .map(|one| number(one, "vcpu_tid"))
        .collect();
    assert!(
        !tids.is_empty() && tids.iter().all(|tid| *tid == 4520),
        "{tids:?}"
    );
}

#[test]
fn guests_are_no_inputs_twice() {
    let (host, guest) = (file(HOST), file(GUEST));
    let [host, guest] = [host, guest].map(|path| path.display().to_string());
    let reported = format!("--guest={guest}");
    let run = run(["report", host.as_str(), guest.as_str(), reported.as_str()]);
    assert_eq!(run.status, 1);
    assert!(run.stderr.contains("is given twice"), "{}", run.stderr);
}

#[test]
fn a_host_and_its_guest_stand_in_one_page_whose_numbers_commands_print() {
    let mut failures = Failures::default();
    let mut compared = 0;
    for Pair { host, guest } in &pairs() {
        let what = guest.display().to_string();
        let (run, page) = Page::of(&[host, guest], &[]);
        failures.check(run.status == 0, || format!("{what}: {}", run.stderr));
        let page = page.expect("a page");
        is_sound(&mut failures, &what, &page);
        let names: Vec<String> = page.tables().into_iter().map(|table| table.name).collect();
        for table in ["vcpus-guest", "exits-vmexit-guest"] {
            failures.check(names.iter().any(|name| name == table), || {
                format!("{what}: no {table}")
            });
        }
        compared += commands_say_the_same(&mut failures, &what, &page);
    }
    failures.check(compared > 2_000, || format!("{compared} numbers"));
    failures.finish(2_000);
}
