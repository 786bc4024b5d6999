//! What a comparison says first, and what it does not say: tails, what is likely, which side is worse, what one side
//! did not record, and recordings that are not of the same.

use fixtures::made_folder::MadeFolder;
use std::path::{Path, PathBuf};

use compare::CompareOptions;
use fixtures::json::{list, text};
use fixtures::{events_text, file, fold, read_text};
use serde_json::Value;

use crate::{ComparedFiles, compared, document, said};

fn joined(document: &Value, member: &str) -> String {
    let all = list(&document[member]).iter();
    all.map(|one| {
        one.as_str()
            .map_or_else(|| text(&one["text"]), str::to_owned)
    })
    .collect::<Vec<_>>()
    .join("\n")
}

/// A recording without the events that have this in their line.
fn without(folder: &MadeFolder, path: &Path, event: &str) -> PathBuf {
    let all = read_text(path);
    let lines = all.lines().filter(|line| !line.contains(event));
    let name = format!("without {}", event.trim_matches([' ', ':']));
    folder.write(
        &name,
        lines.map(|line| format!("{line}\n")).collect::<String>(),
    )
}

fn console() -> [PathBuf; 2] {
    ["console-sick", "console-healthy"].map(|name| file(&format!("x86/{name}/perf.data.zst")))
}

#[test]
fn slow_interrupts_are_the_first_news() {
    let [sick, healthy] = console();
    let document = document(&sick, &healthy);
    let first = &list(&document["changes"])[0];
    assert_eq!(first["what"], "path irqfd tail", "{first}");
    let words = text(&first["text"]);
    assert!(
        words.starts_with("Interrupts of back ends (irqfd) that took ")
            && words.contains(" or longer fell from 1")
            && words.contains(" to 0 of 60"),
        "{words}"
    );
    assert!(words.ends_with(" A is worse."), "{words}");
    assert_eq!(first["worse"], "a");
    assert!(first["confidence"].as_f64() >= Some(0.99), "{first}");
    assert!(first["bound_ns"].as_u64() >= Some(5_000_000), "{first}");
    assert_eq!(first["b"].as_f64(), Some(0.0));
    // The other way round it is as sure, and the other side is worse.
    let turned = self::document(&healthy, &sick);
    let back = &list(&turned["changes"])[0];
    assert_eq!(
        (&back["what"], &back["worse"]),
        (&first["what"], &Value::from("b"))
    );
    assert!(text(&back["text"]).contains(" rose from 0 of "), "{back}");
}

/// Pairs with a cause that is known: the first sentence is of it.
#[test]
fn the_first_sentence_is_the_main_change() {
    let Some(corpus) = std::env::var_os("TRAPLINE_CORPUS") else {
        return;
    };
    let corpus = PathBuf::from(corpus);
    let path = |name: &str| {
        let packed = corpus.join(format!("{name}.zst"));
        if packed.exists() {
            packed
        } else {
            corpus.join(name)
        }
    };
    let mut seen = 0;
    for (a, b, first) in [
        (
            "x86/console-sick/run1/trace.dat",
            "x86/console-healthy/run1/trace.dat",
            "path irqfd tail",
        ),
        (
            "x86/preempted-healthy/trace.dat",
            "x86/preempted-sick/trace.dat",
            "vcpus runnable",
        ),
        (
            "x86/preempted-healthy/perf.data",
            "x86/preempted-sick/perf.data",
            "vcpus runnable",
        ),
        (
            "x86/stopped-vmm-healthy/trace.dat",
            "x86/stopped-vmm-sick/trace.dat",
            "finding stalled-vcpu",
        ),
        (
            "x86/stopped-vmm-healthy/perf.data",
            "x86/stopped-vmm-sick/perf.data",
            "finding stalled-vcpu",
        ),
        (
            "x86/timer-storm-healthy/trace.dat",
            "x86/timer-storm-sick/trace.dat",
            "exits handling",
        ),
        (
            "x86/timer-storm-healthy/perf.data",
            "x86/timer-storm-sick/perf.data",
            "exits handling",
        ),
        (
            "x86/clocksource-kvm-clock/trace-late.dat",
            "x86/clocksource-hpet/trace-late.dat",
            "vmexit npf",
        ),
        (
            "x86/clocksource-kvm-clock/perf.data.guest",
            "x86/clocksource-hpet/perf.data.guest",
            "vmexit npf",
        ),
        (
            "x86/clocksource-kvm-clock/perf.data.guest",
            "x86/clocksource-acpi_pm/perf.data.guest",
            "exits handling",
        ),
        (
            "arm64/virtio-mmio/boot1/trace.dat",
            "arm64/vhost-mmio/boot1/trace.dat",
            "path kick back end",
        ),
    ] {
        let (a, b) = (path(a), path(b));
        if !a.exists() || !b.exists() {
            continue;
        }
        seen += 1;
        let document = document(&a, &b);
        let first_change = list(&document["changes"]).first();
        assert!(
            first_change.is_some_and(|change| change["what"] == first),
            "{}: {:?}",
            a.display(),
            said(&document, "changes")
        );
    }
    // Polls that are longer are seen, certain or not.
    let (a, b) = (
        path("x86/ipi-default/trace.pingpong.dat"),
        path("x86/ipi-haltpoll/trace.pingpong.dat"),
    );
    if a.exists() && b.exists() {
        seen += 1;
        let document = document(&a, &b);
        let all = ["changes", "likely"].map(|name| list(&document[name]));
        let poll = all
            .into_iter()
            .flatten()
            .find(|change| change["what"] == "vcpus poll");
        let poll = poll.unwrap_or_else(|| panic!("no polls in {document:#}"));
        assert!(
            // There may have been none before, of which nothing is a multiple.
            poll["b"].as_f64() > poll["a"].as_f64().map(|a| 5.0 * a) && poll["worse"] == "b",
            "{poll}"
        );
    }
    assert!(
        seen >= 8,
        "only {seen} pairs are there: is the corpus complete?"
    );
}

#[test]
fn what_is_likely_stands_by_itself() {
    let [sick, healthy] = console();
    let document = document(&sick, &healthy);
    let likely = list(&document["likely"]);
    assert!(!likely.is_empty());
    for change in likely {
        let confidence = change["confidence"].as_f64().expect("a confidence");
        assert!((0.8..0.99).contains(&confidence), "{change}");
    }
    for change in list(&document["noise"]) {
        let ratio = change["ratio"].as_f64().unwrap_or(0.0);
        let small = (ratio - 1.0).abs() < 0.1 || change["a"] == change["b"];
        assert!(
            small || change["confidence"].as_f64().is_none_or(|c| c < 0.8),
            "{change}"
        );
    }
    let table = compared(&sick, &healthy).text(true);
    let place = |words: &str| {
        table
            .find(words)
            .unwrap_or_else(|| panic!("no {words} in {table}"))
    };
    assert!(place("likely, and not certain:") < place("what may be noise, or is small:"));
    let folded = fold(&table);
    let mut called = 0;
    for sentence in said(&document, "likely") {
        let bare = [" A is worse.", " B is worse."]
            .iter()
            .find_map(|verdict| sentence.strip_suffix(verdict));
        called += usize::from(bare.is_some());
        let bare = bare.unwrap_or(&sentence);
        assert!(folded.contains(&fold(bare)), "{sentence}");
    }
    // People read which side is worse by the names of its files, and no letter.
    assert!(called > 0, "{likely:?}");
    assert!(!folded.contains("A is worse") && !folded.contains("B is worse"));
    assert!(folded.contains(" is slower. ["), "{table}");
    // Who asks for less gets it as news.
    let files = ComparedFiles {
        a: vec![&sick],
        b: vec![&healthy],
        options: CompareOptions {
            confidence: 0.8,
            ..CompareOptions::default()
        },
        ..ComparedFiles::default()
    };
    let less = files.compare().expect("a comparison").document();
    assert!(list(&less["likely"]).is_empty());
    assert!(list(&less["changes"]).len() >= list(&document["changes"]).len() + likely.len());
}

#[test]
fn every_change_says_which_side_is_worse() {
    let folder = MadeFolder::new();
    let a = folder.record_of("a", 1, |_| {});
    let b = folder.record_of("b", 2, |process| {
        process.stolen = 5.0;
        process.msr_rate = 3.0;
        process.task_rate = 3.0;
    });
    let document = document(&a, &b);
    let changes = list(&document["changes"]);
    assert!(changes.len() >= 3, "{:?}", said(&document, "changes"));
    for change in changes.iter().chain(list(&document["likely"])) {
        let words = text(&change["text"]);
        let ending = match change["worse"].as_str() {
            Some("a") => "A is worse.",
            Some("b") => "B is worse.",
            _ => "Neither is worse by that alone.",
        };
        assert!(words.ends_with(ending), "{change}");
    }
    let of = |what: &str| {
        let found = changes.iter().find(|change| change["what"] == what);
        found.unwrap_or_else(|| panic!("no {what} in {:?}", said(&document, "changes")))["worse"]
            .clone()
    };
    assert_eq!(of("vcpus runnable"), "b");
    assert_eq!(of("vmexit MSR_WRITE"), "b");
    // What a task runs for is not known.
    assert_eq!(of("sched logger"), Value::Null);
}

#[test]
fn what_one_side_did_not_record_is_no_change() {
    let folder = MadeFolder::new();
    let all = folder.record_of("all", 3, |_| {});
    for (event, member, words, never) in [
        (
            " kvm_pio:",
            "notes",
            "kvm_pio was not recorded in B",
            "ioport ",
        ),
        (
            " sched_switch:",
            "notes",
            "sched_switch was not recorded in B",
            "vcpus runnable",
        ),
        (
            " sched_waking:",
            "differs",
            "sched_waking in A alone",
            "path halt-wake",
        ),
    ] {
        let less = without(&folder, &all, event);
        for (a, b, turn) in [(&all, &less, false), (&less, &all, true)] {
            let document = document(a, b);
            let words = if turn {
                words
                    .replace("in B", "in A")
                    .replace("in A alone", "in B alone")
            } else {
                words.to_owned()
            };
            let said = joined(&document, member);
            assert!(said.contains(&words), "{words}: {said}");
            let all = ["changes", "likely"].map(|name| list(&document[name]));
            for change in all.into_iter().flatten() {
                let what = text(&change["what"]);
                assert!(!what.starts_with(never), "{event}: {change}");
            }
        }
    }
}

#[test]
fn a_path_whose_beginning_was_not_recorded_is_not_compared() {
    let [sick, _] = console();
    let folder = MadeFolder::new();
    let events = String::from_utf8(events_text(&sick).expect("a recording")).expect("text");
    let within = |line: &&str| {
        [444, 445, 446, 447, 448, 449]
            .iter()
            .any(|second| line.contains(&format!(" {second}.")))
    };
    let some: Vec<&str> = events.lines().filter(within).collect();
    let all = folder.write("all", some.join("\n"));
    let less = without(&folder, &all, "probe:eventfd_signal:");
    let document = document(&all, &less);
    let notes = joined(&document, "notes");
    assert!(
        notes.contains("The path irqfd is not compared: eventfd_signal was not recorded in B."),
        "{notes}"
    );
    for name in ["changes", "likely", "noise"] {
        for change in list(&document[name]) {
            assert!(!text(&change["what"]).starts_with("path irqfd"), "{change}");
        }
    }
}

#[test]
fn other_machines_recorders_and_events_are_called_so_first() {
    let arm64 = file("arm64/virtio-mmio/boot1/trace.dat.zst");
    let [sick, _] = console();
    let document = document(&arm64, &sick);
    let kinds: Vec<String> = list(&document["differs"])
        .iter()
        .map(|one| text(&one["what"]))
        .collect();
    for kind in ["machine", "recorder", "events"] {
        assert!(kinds.iter().any(|one| one == kind), "{kind}: {kinds:?}");
    }
    let differs = joined(&document, "differs");
    for words in [
        "Different machines: aarch64 and x86_64",
        "instruction sets arm64 and svm",
        "kernels 6.1.0-",
        "Different recorders: A is of trace-cmd, B of perf.",
        "kvm_apic_accept_irq",
        "in B alone",
    ] {
        assert!(differs.contains(words), "{words}: {differs}");
    }
    // Before anything else.
    let table = compared(&arm64, &sick).text(false);
    let line = table
        .lines()
        .find(|line| !line.starts_with(['A', 'B', ' ']));
    assert!(
        line.is_some_and(|line| line.starts_with("! Different machines")),
        "{table}"
    );
    // The same container, machine and events differ in nothing.
    let same = self::document(&sick, &sick);
    assert_eq!(list(&same["differs"]).len(), 0, "{}", same["differs"]);
    // Nor does a recording from its own text.
    let variant = |name: &str| file(&format!("x86/format-variants/{name}"));
    let dat = variant("v7.dat.zst");
    let folder = MadeFolder::new();
    let text_of = folder.write("v7.txt", events_text(&dat).expect("a recording"));
    let forms = self::document(&dat, &text_of);
    assert!(joined(&forms, "differs").is_empty(), "{}", forms["differs"]);
    assert!(
        said(&forms, "changes").is_empty(),
        "{:?}",
        said(&forms, "changes")
    );
    let stacks = self::document(
        &variant("plain.perf.data.zst"),
        &variant("callgraph.perf.data.zst"),
    );
    assert!(
        joined(&stacks, "differs").contains("Stacks were recorded in B alone."),
        "{}",
        stacks["differs"]
    );
    let recorders = self::document(&dat, &variant("plain.perf.data.zst"));
    assert!(
        joined(&recorders, "differs").contains("Different recorders"),
        "{}",
        recorders["differs"]
    );
}

#[test]
fn guests_that_do_other_work_are_called_so() {
    let busy = file("x86/ipi-default/perf.kvm.membar-spin.data.zst");
    let waiting = file("x86/ipi-default/perf.kvm.pingpong.data.zst");
    let document = document(&busy, &waiting);
    let differs = joined(&document, "differs");
    assert!(
        differs.contains("may not have done the same work: vCPUs in the guest for 81 % and 41 %"),
        "{differs}"
    );
}

#[test]
fn work_that_says_nothing_is_left_out() {
    let folder = MadeFolder::new();
    let a = folder.record_of("a", 5, |_| {});
    let b = folder.record_of("b", 6, |process| process.stolen = 8.0);
    let document = document(&a, &b);
    let all = ["changes", "likely", "noise"].map(|name| list(&document[name]));
    for change in all.into_iter().flatten() {
        if change["what"] == "vcpus guest" {
            assert_eq!(list(&change["per_work"]).len(), 0, "{change}");
        }
    }
    let table = compared(&a, &b).text(true);
    assert!(!table.contains("1.000s to 1.000s"), "{table}");
    assert!(!table.contains("0.00 to 0.00"), "{table}");
    assert!(!table.contains("0ns to 0ns"), "{table}");
}

#[test]
fn time_of_an_unknown_state_is_no_change() {
    let names = ["clocksource-kvm-clock", "clocksource-hpet"];
    let [a, b] = names.map(|name| file(&format!("x86/{name}/perf.data.guest.zst")));
    let document = document(&a, &b);
    let all = ["changes", "likely", "noise"].map(|name| list(&document[name]));
    for change in all.into_iter().flatten() {
        assert_ne!(change["what"], "vcpus unknown", "{change}");
    }
    let notes = joined(&document, "notes");
    assert!(
        notes.contains("is unknown for 1.5 % of their time in A and 21 % in B"),
        "{notes}"
    );
    let first = text(&list(&document["changes"])[0]["text"]);
    assert!(first.starts_with("npf is new: "), "{first}");
}

/// Twenty thousand rows on each side, of which some change: as many as there are, in order.
#[test]
fn many_rows_are_compared_one_by_one() {
    let folder = MadeFolder::new();
    let table = |name: &str, from: u64| {
        let mut out =
            String::from("cpus=1\nCPU 0/KVM-101 [000] 0.999900: kvm_entry: vcpu 0, rip 0x1\n");
        for at in 0..20_000u64 {
            let us = 1_000_000 + at * 20;
            let stamp = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
            let head = "CPU 0/KVM-101 [000]";
            let address = from + at;
            out.push_str(&format!(
                "{head} {}: kvm_exit: vcpu 0 reason EPT_MISCONFIG rip 0x1 info1 0x0 \
                 info2 0x0 intr_info 0x0 error_code 0x0\n\
                 {head} {}: kvm_mmio: mmio write len 4 gpa {address:#x} val 0x1\n\
                 {head} {}: kvm_entry: vcpu 0, rip 0x1\n",
                stamp(us),
                stamp(us + 2),
                stamp(us + 5)
            ));
        }
        folder.write(name, out)
    };
    let document = document(&table("a", 0xfe00_0000), &table("b", 0xfe00_0000 + 5000));
    let all = ["changes", "likely", "noise"].map(|name| list(&document[name]));
    let rows = all.into_iter().flatten();
    let rows = rows.filter(|change| text(&change["what"]).starts_with("mmio "));
    assert_eq!(rows.count(), 25_000);
}

/// Ports that the exits say are timed from the exit, and those of kvm_pio from that event on.
#[test]
fn ports_of_exits_are_not_compared_with_ports_of_events() {
    let folder = MadeFolder::new();
    let table = |name: &str, event: bool| {
        let mut out =
            String::from("cpus=1\nCPU 0/KVM-101 [000] 0.999900: kvm_entry: vcpu 0, rip 0x1\n");
        for at in 0..500u64 {
            let us = 1_000_000 + at * 1000;
            let stamp = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
            let head = "CPU 0/KVM-101 [000]";
            out.push_str(&format!(
                "{head} {}: kvm_exit: vcpu 0 reason io rip 0x1 info1 0x0000000006080241 \
                 info2 0x0000000000000002 intr_info 0x0 error_code 0x0\n",
                stamp(us),
            ));
            if event {
                out.push_str(&format!(
                    "{head} {}: kvm_pio: pio_read at 0x608 size 4 count 1 val 0x1\n",
                    stamp(us + 40)
                ));
            }
            out.push_str(&format!(
                "{head} {}: kvm_entry: vcpu 0, rip 0x1\n",
                stamp(us + 50)
            ));
        }
        folder.write(name, out)
    };
    let (events, exits) = (table("events", true), table("exits", false));
    let other = table("other", false);
    let of_ports = |a: &PathBuf, b: &PathBuf| {
        let document = document(a, b);
        let all = ["changes", "likely", "noise"].map(|name| list(&document[name]));
        let rows = all.into_iter().flatten();
        let rows = rows.filter(|change| text(&change["what"]).starts_with("ioport "));
        let said = joined(&document, "notes").contains("kvm_pio was not recorded in B, and the");
        (rows.count(), said)
    };
    assert_eq!(of_ports(&events, &exits), (0, true));
    assert_eq!(of_ports(&exits, &other), (1, false));
}
