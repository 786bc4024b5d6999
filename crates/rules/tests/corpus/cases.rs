//! The five investigations: what rules find in recordings of the same situations, of their healthy
//! counterparts, and of what the documents printed.
//!
//! With `TRAPLINE_CORPUS` it runs over that corpus as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fixtures::{Failures, all_cases, file, note};
use rules::{Finding, UncheckedRule};

use crate::{CaseFiles, DiagnosedFiles, diagnosed};

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

fn seed(name: &str) -> PathBuf {
    file(&format!("seed-text/{name}"))
}

/// Diagnoses one recording.
fn diagnose(file: &Path) -> DiagnosedFiles {
    diagnosed(&[file.to_owned()], CaseFiles::default()).unwrap()
}

/// Diagnoses what documents printed.
fn seeds(names: &[&str]) -> DiagnosedFiles {
    seeds_of(names, None)
}

/// Does the same, with a guest's definition.
fn seeds_of(names: &[&str], domain: Option<PathBuf>) -> DiagnosedFiles {
    let files: Vec<PathBuf> = names.iter().map(|name| seed(name)).collect();
    let beside = CaseFiles {
        domain,
        ..CaseFiles::default()
    };
    diagnosed(&files, beside).unwrap_or_else(|error| panic!("{names:?}: {error}"))
}

/// Returns a finding with all that it says, in one text.
fn finding<'d>(found: &'d DiagnosedFiles, id: &str) -> (&'d Finding, String) {
    let mut findings = found.diagnosis.findings.iter();
    let finding = findings.find(|finding| finding.rule.id == id);
    let finding = finding.unwrap_or_else(|| panic!("no {id}, but {:?}", found.ids()));
    let evidence = finding.evidence.iter().map(|one| one.text.as_str());
    let said: Vec<&str> = evidence.chain([finding.title.as_str()]).collect();
    (finding, said.join("\n"))
}

/// Returns what a rule needs that could not check.
fn unchecked<'d>(found: &'d DiagnosedFiles, id: &str) -> &'d UncheckedRule {
    let mut all = found.diagnosis.unchecked.iter();
    let one = all.find(|one| one.rule.id == id);
    one.unwrap_or_else(|| panic!("{id} could check"))
}

/// Checks that a finding comes first and has numbers in its evidence.
fn first_with(found: &DiagnosedFiles, id: &str, numbers: &[&str]) {
    assert_eq!(found.ids().first(), Some(&id), "{:?}", found.ids());
    let (_, said) = finding(found, id);
    for number in numbers {
        assert!(said.contains(number), "{id} does not say {number}:\n{said}");
    }
}

fn remedies(finding: &Finding) -> Vec<&'static str> {
    finding.remedies.iter().map(|one| one.remedy.what).collect()
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
        let document = diagnose(&case.path);
        let found = document.ids();
        for (truth, seen) in truths {
            *seen += 1;
            if let Some(id) = truth.first {
                let met = match id.strip_suffix('!') {
                    Some(id) => found.contains(&id),
                    None => found.first() == Some(&id),
                };
                failures.check(met, || format!("{}: {id} is not in {found:?}", case.name));
            }
            for id in truth.never {
                failures.check(!found.contains(id), || {
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
    let sick = diagnose(&file("x86/console-sick/perf.data.zst"));
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
    assert!(moved.contains("follows the interrupt"), "{moved}");
}

#[test]
fn case_1_of_the_document_shows_in_the_scheduler_alone() {
    let document = seeds(&["case1-slow-ping.sched.txt"]);
    first_with(&document, "console-on-irq-vcpu", &["1.372ms"]);
    let (found, _) = finding(&document, "console-on-irq-vcpu");
    // Nothing shows a console: it only fits.
    assert!(found.confidence <= 0.5);
}

#[test]
fn case_2_the_tables_of_windows_and_the_lines_that_the_document_added() {
    let tables = [
        "case2-windows-before.perf-kvm-stat-vmexit.txt",
        "case2-windows-before.perf-kvm-stat-ioport.txt",
    ];
    let domain = Some(seed("case2-win10.domain.xml"));
    let document = seeds_of(&tables, domain.clone());
    let numbers = [
        "256738",
        "158788",
        "72.97 %",
        "88.78 %",
        "0x608:PIN (acpi-tmr)",
    ];
    first_with(&document, "timer-port-exits", &numbers);
    let (found, _) = finding(&document, "timer-port-exits");
    let [advice] = found.remedies.as_slice() else {
        panic!("{:?}", found.remedies);
    };
    assert!(advice.remedy.what.contains("hypervclock"));
    // Stated with its price.
    assert!(advice.remedy.price.contains("AutoEOI"));
    let added = "<hyperv mode='custom'>\n<vpindex state='on'/>\n<synic state='on'/>\n<stimer state='on'/>\n</hyperv>\n\
                 <timer name='hypervclock' present='yes'/>";
    assert_eq!(changed(&document.patch), (added.to_owned(), String::new()));
    // Without the definition there is no patch; the RTC still shows that it is Windows.
    let document = seeds(&tables);
    first_with(&document, "timer-port-exits", &numbers);
    let (found, _) = finding(&document, "timer-port-exits");
    assert!(remedies(found)[0].contains("hypervclock"));
    // One table alone: its ports are named, or what is missing is.
    first_with(&seeds(&tables[1..]), "timer-port-exits", &["158788"]);
    let alone = seeds(&tables[..1]);
    let needs = &unchecked(&alone, "timer-port-exits").what;
    assert!(
        needs.contains("256738 exits") && needs.contains("ioport"),
        "{needs}"
    );
    // And with the lines, all of it is gone.
    let after = seeds_of(&["case2-windows-after.perf-kvm-stat-vmexit.txt"], domain);
    let after = after.ids();
    assert!(!after.iter().any(|id| CLOCKS.contains(id)), "{after:?}");
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
        (seeds(&names), seeds_of(&names, Some(domain)))
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
    assert_eq!(with.patch, "");
    for clock in ["tsc", "kvm-clock"] {
        let (alone, with) = both(clock);
        assert_eq!(alone.ids(), [""; 0], "{clock}");
        assert_eq!(with.ids(), [""; 0], "{clock}");
    }
}

#[test]
fn case_3_has_all_three_remedies_with_their_prices() {
    let path = file("x86/ipi-default/perf.kvm.pingpong.data.zst");
    let document = diagnose(&path);
    let (found, _) = finding(&document, "halted-target-ipi");
    let remedies = found.remedies.iter().map(|one| &one.remedy);
    // Polling does nothing for a guest that is never idle.
    let unless = found.remedies[0].remedy.unless;
    assert!(unless.contains("never idle"), "{unless}");
    for (way, price) in [
        ("halt_poll_ns", "burns"),
        ("idle=poll", "uses its whole CPU"),
        ("cpuidle-haltpoll", "burns"),
    ] {
        let remedy = remedies.clone().find(|one| one.what.contains(way));
        let remedy = remedy.unwrap_or_else(|| panic!("no {way}: {:#?}", found.remedies));
        assert!(remedy.price.contains(price), "{remedy:#?}");
    }
}

#[test]
fn case_4_the_fragments_of_both_back_ends() {
    let virtio = seeds(&["case4-virtio.trace-cmd.txt"]);
    // From kvm_mmio to kvm_mmio, 7593.923910 to .924478.
    first_with(&virtio, "userspace-virtio-backend", &["568.0us"]);
    let (found, _) = finding(&virtio, "userspace-virtio-backend");
    assert!(remedies(found)[0].contains("vhost-net"));
    let vhost = seeds(&["case4-vhost.trace-cmd.txt"]);
    assert_eq!(vhost.ids(), [""; 0]);
    // Tables of exits do not say who the back end is.
    for name in ["case4-virtio", "case4-vhost"] {
        let table = seeds(&[&format!("{name}.perf-kvm-stat-vmexit.txt")]);
        assert_eq!(table.ids(), [""; 0], "{name}");
        unchecked(&table, "userspace-virtio-backend");
    }
}

#[test]
fn case_5_both_causes() {
    let slow = seeds(&["case5-slow-host.perf-sched-latency.txt"]);
    first_with(&slow, "cpufreq-governor-kworker", &["53689", "90490"]);
    let (found, _) = finding(&slow, "cpufreq-governor-kworker");
    assert!(remedies(found)[0].contains("governor of these CPUs to performance"));
    let performance = "case5-slow-host-performance-governor.perf-sched-latency.txt";
    let second = seeds(&[performance]);
    first_with(&second, "sender-waits-for-memory", &["16204"]);
    assert_eq!(second.ids().len(), 1);
    let good = seeds(&["case5-good-host.perf-sched-latency.txt"]);
    assert_eq!(good.ids(), [""; 0]);
    // Both hosts' tables together: both causes.
    let both = seeds(&["case5-slow-host.perf-sched-latency.txt", performance]);
    assert_eq!(both.ids()[0], "cpufreq-governor-kworker");
    assert!(both.ids().contains(&"sender-waits-for-memory"));
}

/// Returns whether a tool is there; says so if not.
fn has(tool: &str) -> bool {
    let mut command = Command::new(tool);
    command.arg("--version").stdin(Stdio::null());
    let found = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(found.is_ok() || !required, "{tool} is missing");
    if found.is_err() {
        note(&format!("skipped: no {tool} here"));
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
    let tables = ["vmexit", "ioport"]
        .map(|table| seed(&format!("case2-windows-before.perf-kvm-stat-{table}.txt")));
    for (name, text) in [("win10.xml", &text), ("whole.xml", &whole)] {
        let domain = place.path().join(name);
        fs::write(&domain, text).unwrap();
        let patch = || {
            let beside = CaseFiles {
                domain: Some(domain.clone()),
                ..CaseFiles::default()
            };
            diagnosed(&tables, beside).unwrap().patch
        };
        let asked = patch();
        assert!(asked.starts_with("--- a/"), "{asked}");
        fs::write(place.path().join("change.diff"), asked).unwrap();
        if !has("patch") {
            return;
        }
        let mut apply = Command::new("patch");
        apply.args(["--fuzz=0", "-p1", "-i", "change.diff"]);
        let applied = apply.current_dir(place.path()).output().unwrap();
        assert!(applied.status.success(), "{applied:?}");
        let after = fs::read_to_string(&domain).unwrap();
        // Nothing else is changed.
        let kept: Vec<&str> = after.lines().filter(|l| text.contains(*l)).collect();
        assert_eq!(kept, text.lines().collect::<Vec<_>>());
        assert_eq!(after.lines().count(), text.lines().count() + 6);
        // It asks for nothing any more.
        assert_eq!(patch(), "");
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
    let with = |name: &str| {
        let beside = CaseFiles {
            kallsyms: Some(kallsyms.clone()),
            ..CaseFiles::default()
        };
        diagnosed(&[file(&format!("host/{name}/perf.data.zst"))], beside).unwrap()
    };
    let waits = with("sender-waits");
    first_with(
        &waits,
        "sender-waits-for-memory",
        &["sk_stream_wait_memory", "thread 21597", "268 times"],
    );
    let (found, _) = finding(&waits, "sender-waits-for-memory");
    assert_eq!(found.confidence, 0.9);
    assert_eq!(with("sender-flows").ids(), [""; 0]);
}

/// Ten pauses of two vCPUs, of which three find one halted: all of them are stalls. And what a sleep is: without the
/// wait for a CPU behind it.
#[test]
fn stalls_are_counted_in_halts_and_sleeps_without_their_waits() {
    let mut failures = Failures::default();
    for (name, rule, says) in [
        (
            "arm64/stopcont-short-sick",
            "stalled-vcpu",
            "vCPUs stalled 20 times",
        ),
        (
            "arm64/swap-sick",
            "memory-taken-away",
            "slept uninterruptibly in KVM for 408.0ms",
        ),
    ] {
        let file = file(&format!("causes/{name}/perf.data.zst"));
        let found = diagnosed(&[file], CaseFiles::default()).expect("it is a recording");
        let mut findings = found.diagnosis.findings.iter();
        let finding = findings.find(|one| one.rule.id == rule);
        let texts: Vec<&str> = finding.map_or(Vec::new(), |one| {
            let evidence = one.evidence.iter().map(|one| one.text.as_str());
            evidence.chain([one.title.as_str()]).collect()
        });
        failures.check(texts.iter().any(|text| text.contains(says)), || {
            format!("{name}: {texts:?}")
        });
        // One cause is one finding.
        let others = findings.filter(|one| one.rule.id == "stalled-vcpu").count();
        failures.check(others == 0, || format!("{name}: {others} stalls beside it"));
    }
    failures.finish(4);
}

/// That a thread of the VMM serves a disk is how every disk without an I/O thread works: no remedy for a network card
/// is given, and what its requests wait for is another finding, where it is one.
#[test]
fn a_disk_that_a_thread_of_the_vmm_serves_is_not_found_high() {
    let mut failures = Failures::default();
    for (name, sick) in [
        ("disk-healthy", false),
        ("disk-throttled-sick", true),
        ("arm64/disk-healthy", false),
        ("arm64/disk-throttled-sick", true),
    ] {
        let file = file(&format!("causes/{name}/perf.data.zst"));
        let found = diagnosed(&[file], CaseFiles::default()).expect("it is a recording");
        let findings = &found.diagnosis.findings;
        let first = findings.first().map(|one| one.rule.id);
        failures.check((first == Some("slow-storage")) == sick, || {
            format!("{name}: first is {first:?}")
        });
        let mut back_ends = findings.iter();
        let back_end = back_ends.find(|one| one.rule.id == "userspace-virtio-backend");
        let severity = back_end.map(Finding::severity);
        failures.check(severity == Some(rules::Severity::Low), || {
            format!("{name}: {severity:?}")
        });
        let remedies = back_end.map_or(0, |one| one.remedies.len());
        failures.check(remedies == 2, || format!("{name}: {remedies} remedies"));
    }
    failures.finish(12);
}
