//! The five investigations: what `trapline diagnose` says of recordings of the same situations, of their healthy
//! counterparts, and of what the documents printed.
//!
//! With `TRAPLINE_CORPUS` it runs over that corpus as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Failures, all_cases, file, run, tell};
use serde_json::Value;

/// What recordings whose names begin so, and hold one of these words, have to lead to.
struct Truth {
    folder: &'static str,
    holds: &'static [&'static str],
    /// What is found before anything else; `!` behind it: found, whatever else is.
    first: Option<&'static str>,
    /// What is not found.
    never: &'static [&'static str],
}

const CLOCKS: &[&str] = &["timer-port-exits", "hpet-mmio-exits"];

const TRUTHS: &[Truth] = &[
    // Case 2 with a Linux guest.
    Truth {
        folder: "x86/clocksource-acpi_pm/",
        holds: &[],
        first: Some("timer-port-exits"),
        never: &["hpet-mmio-exits"],
    },
    Truth {
        folder: "x86/clocksource-hpet/",
        holds: &[],
        first: Some("hpet-mmio-exits"),
        never: &["timer-port-exits"],
    },
    Truth {
        folder: "x86/clocksource-kvm-clock/",
        holds: &[],
        first: None,
        never: CLOCKS,
    },
    // Case 3.
    Truth {
        folder: "x86/ipi-default/",
        holds: &["pingpong"],
        first: Some("halted-target-ipi"),
        never: CLOCKS,
    },
    Truth {
        folder: "x86/ipi-idlepoll/",
        holds: &[],
        first: None,
        never: &["halted-target-ipi"],
    },
    Truth {
        folder: "x86/ipi-default/",
        holds: &["membar-spin"],
        first: None,
        never: &["halted-target-ipi"],
    },
    // Case 1.
    Truth {
        folder: "x86/console-sick/",
        holds: &[],
        first: Some("console-on-irq-vcpu"),
        never: &[],
    },
    Truth {
        folder: "x86/console-healthy/",
        holds: &[],
        first: None,
        never: &["console-on-irq-vcpu"],
    },
    // Case 4.
    Truth {
        folder: "arm64/virtio-mmio/boot1/",
        holds: &["trace.dat", "perf.data.tracepoints"],
        first: Some("userspace-virtio-backend"),
        never: &[],
    },
    Truth {
        folder: "arm64/vhost-mmio/",
        holds: &[],
        first: None,
        never: &["userspace-virtio-backend"],
    },
    // Case 5.
    Truth {
        folder: "host/sender-waits/",
        holds: &[],
        first: Some("sender-waits-for-memory"),
        never: &["cpufreq-governor-kworker"],
    },
    Truth {
        folder: "host/sender-flows/",
        holds: &[],
        first: None,
        never: &["sender-waits-for-memory", "cpufreq-governor-kworker"],
    },
    // Damage.
    Truth {
        folder: "x86/format-variants/",
        holds: &["/lost."],
        first: Some("lossy-recording!"),
        never: &[],
    },
    Truth {
        folder: "x86/format-variants/",
        holds: &["/plain.", "/v6.", "/v7.", "/compressed.", "/pipe."],
        first: Some("timer-port-exits"),
        never: &["lossy-recording"],
    },
];

fn ids(document: &Value) -> Vec<String> {
    let findings = document["findings"].as_array().into_iter().flatten();
    let ids = findings.filter_map(|finding| finding["id"].as_str());
    ids.map(str::to_owned).collect()
}

fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Runs the command on files, with more arguments.
fn diagnose(files: &[&Path], more: &[&str]) -> Result<Value, String> {
    let mut args = vec!["diagnose".to_owned(), "--format".into(), "json".into()];
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    args.extend(files.iter().map(|file| file.to_string_lossy().into_owned()));
    run(args).json()
}

fn seed(name: &str) -> PathBuf {
    file(&format!("seed-text/{name}"))
}

/// Runs the command on what documents printed.
fn seeds(names: &[&str], more: &[&str]) -> Value {
    let files: Vec<PathBuf> = names.iter().map(|name| seed(name)).collect();
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    diagnose(&files, more).unwrap_or_else(|error| panic!("{names:?}: {error}"))
}

/// Returns a finding with all that it says, in one text.
fn finding<'v>(document: &'v Value, id: &str) -> (&'v Value, String) {
    let findings = document["findings"].as_array().into_iter().flatten();
    let found = findings.into_iter().find(|finding| finding["id"] == id);
    let found = found.unwrap_or_else(|| panic!("no {id}, but {:?}", ids(document)));
    let mut said = strings(&found["evidence"]).join("\n");
    said.push('\n');
    said.push_str(found["title"].as_str().unwrap_or_default());
    (found, said)
}

/// Checks that a finding comes first and has numbers in its evidence.
fn first_with(document: &Value, id: &str, numbers: &[&str]) {
    let found = ids(document);
    assert_eq!(found.first().map(String::as_str), Some(id), "{found:?}");
    let (_, said) = finding(document, id);
    for number in numbers {
        assert!(said.contains(number), "{id} does not say {number}:\n{said}");
    }
}

fn remedies(finding: &Value) -> Vec<String> {
    let list = finding["remedy"].as_array().into_iter().flatten();
    list.filter_map(|remedy| remedy["do"].as_str())
        .map(str::to_owned)
        .collect()
}

#[test]
fn recordings_lead_to_their_causes_and_healthy_ones_to_none() {
    let mut failures = Failures::default();
    let mut seen = vec![0; TRUTHS.len()];
    for case in all_cases() {
        let truths = TRUTHS.iter().zip(&mut seen).filter(|(truth, _)| {
            let holds = |word: &&str| case.name.contains(*word);
            case.name.starts_with(truth.folder)
                && (truth.holds.is_empty() || truth.holds.iter().any(holds))
        });
        let truths: Vec<_> = truths.collect();
        if truths.is_empty() {
            continue;
        }
        let document = match diagnose(&[&case.path], &[]) {
            Ok(document) => document,
            Err(error) => {
                failures.check(false, || format!("{}: {error}", case.name));
                continue;
            }
        };
        let found = ids(&document);
        for (truth, seen) in truths {
            *seen += 1;
            if let Some(id) = truth.first {
                let met = match id.strip_suffix('!') {
                    Some(id) => found.iter().any(|one| one == id),
                    None => found.first().is_some_and(|one| one == id),
                };
                failures.check(met, || format!("{}: {id} is not in {found:?}", case.name));
            }
            for id in truth.never {
                failures.check(!found.iter().any(|one| one == id), || {
                    let (_, said) = finding(&document, id);
                    format!("{}: {id} is found:\n{said}", case.name)
                });
            }
        }
    }
    for (truth, seen) in TRUTHS.iter().zip(seen) {
        failures.check(seen > 0, || {
            format!("no recording in {} {:?}", truth.folder, truth.holds)
        });
    }
    failures.finish(40);
}

#[test]
fn case_1_has_the_remedy_that_works_and_the_one_that_does_not() {
    let sick = diagnose(&[&file("x86/console-sick/perf.data.zst")], &[]).unwrap();
    let (found, said) = finding(&sick, "console-on-irq-vcpu");
    assert!(said.contains("0x3f8:POUT"), "{said}");
    // pings-perf.tsv: vCPU 1 of VM B, thread 1705, takes the interrupts and prints.
    assert!(said.contains("thread 1705"), "{said}");
    let remedies = remedies(found);
    assert!(
        remedies[0].contains("Keep output off the serial console"),
        "{remedies:?}"
    );
    assert!(remedies[1].contains("paravirtual console"), "{remedies:?}");
    let moved = remedies.iter().find(|one| one.contains("does not help"));
    let moved = moved.unwrap_or_else(|| panic!("{remedies:?}"));
    assert!(
        moved.contains("only while the printing stays behind"),
        "{moved}"
    );
}

#[test]
fn case_1_of_the_document_is_told_from_the_scheduler_alone() {
    let document = seeds(&["case1-slow-ping.sched.txt"], &[]);
    first_with(&document, "console-on-irq-vcpu", &["1.372ms"]);
    let (found, _) = finding(&document, "console-on-irq-vcpu");
    // Nothing shows a console: it only fits.
    assert!(found["confidence"].as_f64().unwrap() <= 0.5);
}

#[test]
fn case_2_the_tables_of_windows_and_the_lines_that_the_document_added() {
    let tables = [
        "case2-windows-before.perf-kvm-stat-vmexit.txt",
        "case2-windows-before.perf-kvm-stat-ioport.txt",
    ];
    let domain = seed("case2-win10.domain.xml");
    let domain = domain.to_str().unwrap();
    let document = seeds(&tables, &["--domain", domain]);
    let numbers = [
        "256738",
        "158788",
        "72.97 %",
        "88.78 %",
        "0x608:PIN (acpi-tmr)",
    ];
    first_with(&document, "timer-port-exits", &numbers);
    let (found, _) = finding(&document, "timer-port-exits");
    let remedies = found["remedy"].as_array().unwrap();
    assert_eq!(remedies.len(), 1, "{remedies:?}");
    assert!(remedies[0]["do"].as_str().unwrap().contains("hypervclock"));
    // Stated with its price.
    assert!(remedies[0]["price"].as_str().unwrap().contains("AutoEOI"));
    let added = "<hyperv mode='custom'>\n<vpindex state='on'/>\n<synic state='on'/>\n<stimer state='on'/>\n</hyperv>\n\
                 <timer name='hypervclock' present='yes'/>";
    let patch = document["patch"].as_str().unwrap();
    assert_eq!(changed(patch), (added.to_owned(), String::new()));
    // Without the definition there is no patch; the RTC still tells that it is Windows.
    let document = seeds(&tables, &[]);
    first_with(&document, "timer-port-exits", &numbers);
    let (found, _) = finding(&document, "timer-port-exits");
    assert!(self::remedies(found)[0].contains("hypervclock"));
    // One table alone: its ports are named, or what is missing is.
    first_with(&seeds(&tables[1..], &[]), "timer-port-exits", &["158788"]);
    let unknown = seeds(&tables[..1], &[])["unknown"].clone();
    let unknown = unknown.as_array().unwrap();
    let one = unknown.iter().find(|one| one["id"] == "timer-port-exits");
    let needs = one.and_then(|one| one["needs"].as_str()).unwrap();
    assert!(
        needs.contains("256738 exits") && needs.contains("ioport"),
        "{needs}"
    );
    // And with the lines, all of it is gone.
    let after = seeds(
        &["case2-windows-after.perf-kvm-stat-vmexit.txt"],
        &["--domain", domain],
    );
    let after = ids(&after);
    assert!(
        !after.iter().any(|id| CLOCKS.contains(&id.as_str())),
        "{after:?}"
    );
}

/// Lines that a diff adds, and those that it takes away, without their indentation.
fn changed(patch: &str) -> (String, String) {
    let lines = |sign: char, head: &str| {
        let lines = patch.lines().filter(|line| !line.starts_with(head));
        let lines = lines.filter_map(|line| line.strip_prefix(sign));
        lines.map(str::trim).collect::<Vec<_>>().join("\n")
    };
    (lines('+', "+++"), lines('-', "---"))
}

#[test]
fn case_2_linux_guests_by_clock_source() {
    let both = |clock: &str| {
        let tables = ["vmexit", "ioport"].map(|t| format!("case2-{clock}.perf-kvm-stat-{t}.txt"));
        let domain = seed("case2-ubuntu.domain.xml");
        let names = [tables[0].as_str(), tables[1].as_str()];
        let with = seeds(&names, &["--domain", domain.to_str().unwrap()]);
        (seeds(&names, &[]), with)
    };
    let (hpet, with) = both("hpet");
    first_with(&hpet, "hpet-mmio-exits", &["22691", "38804", "58.48 %"]);
    first_with(&with, "hpet-mmio-exits", &["22691", "gives it an HPET"]);
    // The definition is a Linux guest's, which has a remedy of its own.
    assert!(remedies(finding(&with, "hpet-mmio-exits").0)[0].contains("clocksource"));
    let (acpi_pm, with) = both("acpi_pm");
    first_with(&acpi_pm, "timer-port-exits", &["0x608:PIN"]);
    first_with(&with, "timer-port-exits", &["37847"]);
    let remedies = remedies(finding(&with, "timer-port-exits").0);
    assert!(
        remedies.len() == 1 && remedies[0].starts_with("Linux"),
        "{remedies:?}"
    );
    assert_eq!(with["patch"], "");
    for clock in ["tsc", "kvm-clock"] {
        let (alone, with) = both(clock);
        assert_eq!(ids(&alone), [""; 0], "{clock}");
        assert_eq!(ids(&with), [""; 0], "{clock}");
    }
}

#[test]
fn case_3_has_all_three_remedies_with_their_prices() {
    let path = file("x86/ipi-default/perf.kvm.pingpong.data.zst");
    let document = diagnose(&[&path], &[]).unwrap();
    let (found, _) = finding(&document, "halted-target-ipi");
    let remedies = found["remedy"].as_array().unwrap();
    for (way, price) in [
        ("halt_poll_ns", "burnt"),
        ("idle=poll", "burns its whole CPU"),
        ("cpuidle-haltpoll", "burnt"),
    ] {
        let has = |one: &&Value| one["do"].as_str().unwrap_or_default().contains(way);
        let remedy = remedies.iter().find(has);
        let remedy = remedy.unwrap_or_else(|| panic!("no {way}: {remedies:#?}"));
        assert!(
            remedy["price"].as_str().unwrap().contains(price),
            "{remedy:#}"
        );
    }
    // Polling does nothing for a guest that is never idle.
    let unless = remedies[0]["unless"].as_str().unwrap();
    assert!(unless.contains("never idle"), "{unless}");
}

#[test]
fn case_4_the_fragments_of_both_back_ends() {
    let virtio = seeds(&["case4-virtio.trace-cmd.txt"], &[]);
    // From kvm_mmio to kvm_mmio, 7593.923910 to .924478.
    first_with(&virtio, "userspace-virtio-backend", &["568.0us"]);
    let (found, _) = finding(&virtio, "userspace-virtio-backend");
    assert!(remedies(found)[0].contains("vhost-net"));
    let vhost = seeds(&["case4-vhost.trace-cmd.txt"], &[]);
    assert_eq!(ids(&vhost), [""; 0]);
    // Tables of exits do not tell who the back end is.
    for name in ["case4-virtio", "case4-vhost"] {
        let table = seeds(&[&format!("{name}.perf-kvm-stat-vmexit.txt")], &[]);
        assert_eq!(ids(&table), [""; 0], "{name}");
        let unknown = table["unknown"].as_array().unwrap();
        let says = |one: &Value| one["id"] == "userspace-virtio-backend";
        assert!(unknown.iter().any(says), "{name}: {unknown:#?}");
    }
}

#[test]
fn case_5_both_causes() {
    let slow = seeds(&["case5-slow-host.perf-sched-latency.txt"], &[]);
    first_with(&slow, "cpufreq-governor-kworker", &["53689", "90490"]);
    let (found, _) = finding(&slow, "cpufreq-governor-kworker");
    assert!(remedies(found)[0].contains("governor of these CPUs to performance"));
    let performance = "case5-slow-host-performance-governor.perf-sched-latency.txt";
    let second = seeds(&[performance], &[]);
    first_with(&second, "sender-waits-for-memory", &["16204"]);
    assert_eq!(ids(&second).len(), 1);
    let good = seeds(&["case5-good-host.perf-sched-latency.txt"], &[]);
    assert_eq!(ids(&good), [""; 0]);
    // Both hosts' tables together: both causes.
    let both = seeds(
        &["case5-slow-host.perf-sched-latency.txt", performance],
        &[],
    );
    let found = ids(&both);
    for id in ["cpufreq-governor-kworker", "sender-waits-for-memory"] {
        assert!(found.iter().any(|one| one == id), "{found:?}");
    }
    assert_eq!(found[0], "cpufreq-governor-kworker");
}

/// Returns whether a tool is there; says so if not.
fn has(tool: &str) -> bool {
    let mut command = Command::new(tool);
    command.arg("--version").stdin(Stdio::null());
    let found = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(found.is_ok() || !required, "{tool} is missing");
    if found.is_err() {
        tell(&format!("skipped: no {tool} here"));
    }
    found.is_ok()
}

#[test]
fn the_patch_of_case_2_applies_and_validates() {
    let place = tempfile::tempdir().unwrap();
    // The document leaves the devices out (`<devices>...</devices>`), which is no libvirt XML: none are there instead.
    let text = fs::read_to_string(seed("case2-win10.domain.xml")).unwrap();
    let whole = text.replace("<devices>...</devices>", "<devices/>");
    assert_ne!(text, whole);
    for (name, text) in [("win10.xml", &text), ("whole.xml", &whole)] {
        let domain = place.path().join(name);
        fs::write(&domain, text).unwrap();
        let output = run([
            "diagnose",
            "--patch",
            "--domain",
            domain.to_str().unwrap(),
            seed("case2-windows-before.perf-kvm-stat-vmexit.txt")
                .to_str()
                .unwrap(),
            seed("case2-windows-before.perf-kvm-stat-ioport.txt")
                .to_str()
                .unwrap(),
        ]);
        assert_eq!(output.status, 0, "{}", output.stderr);
        assert!(output.text().starts_with("--- a/"), "{}", output.text());
        fs::write(place.path().join("change.diff"), &output.stdout).unwrap();
        if !has("patch") {
            return;
        }
        let mut patch = Command::new("patch");
        patch.args(["--fuzz=0", "-p1", "-i", "change.diff"]);
        let applied = patch.current_dir(place.path()).output().unwrap();
        assert!(applied.status.success(), "{applied:?}");
        let after = fs::read_to_string(&domain).unwrap();
        // Nothing else is changed.
        let kept: Vec<&str> = after.lines().filter(|l| text.contains(*l)).collect();
        assert_eq!(kept, text.lines().collect::<Vec<_>>());
        assert_eq!(after.lines().count(), text.lines().count() + 6);
        // It asks for nothing any more.
        let again = run([
            "diagnose",
            "--patch",
            "--domain",
            domain.to_str().unwrap(),
            seed("case2-windows-before.perf-kvm-stat-vmexit.txt")
                .to_str()
                .unwrap(),
            seed("case2-windows-before.perf-kvm-stat-ioport.txt")
                .to_str()
                .unwrap(),
        ]);
        assert_eq!((again.status, again.text().as_str()), (0, ""));
    }
    if !has("virt-xml-validate") {
        return;
    }
    let mut validate = Command::new("virt-xml-validate");
    validate.arg("whole.xml").current_dir(place.path());
    let valid = validate.output().unwrap();
    assert!(valid.status.success(), "{valid:?}");
}

/// With names of functions a guess becomes a finding, and the healthy twin still has none.
#[test]
fn case_5_with_kernel_symbols() {
    let kallsyms = file("host/kallsyms.txt");
    let with = ["--kallsyms", kallsyms.to_str().unwrap()];
    let waits = diagnose(&[&file("host/sender-waits/perf.data.zst")], &with).unwrap();
    first_with(
        &waits,
        "sender-waits-for-memory",
        &["sk_stream_wait_memory", "thread 21597", "268 times"],
    );
    let (found, _) = finding(&waits, "sender-waits-for-memory");
    assert_eq!(found["confidence"], 0.9);
    let flows = diagnose(&[&file("host/sender-flows/perf.data.zst")], &with).unwrap();
    assert_eq!(ids(&flows), [""; 0]);
}
