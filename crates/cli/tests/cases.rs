//! What real people pasted, and what is right to say of it: `cases/NAME.txt` with its truth beside it
//! (`NAME.expected.txt`). Long ones are packed.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::run;

fn case(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let plain = folder.join(name);
    let packed = folder.join(format!("{name}.zst"));
    let path: PathBuf = if plain.exists() { plain } else { packed };
    path.display().to_string()
}

/// What `report` says first: its first paragraph.
fn first_sentence(name: &str) -> String {
    let run = run(["report", &case(name)]);
    let text = run.text();
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

fn diagnosis(args: &[&str]) -> Value {
    let run = run(["diagnose", "--format", "json"].iter().chain(args));
    run.json()
        .unwrap_or_else(|error| panic!("{args:?}: {error}"))
}

/// Returns ids of findings, how severe and how sure they are.
fn findings(document: &Value) -> Vec<(&str, &str, f64)> {
    let findings = document["findings"].as_array().into_iter().flatten();
    let each = findings.filter_map(|one| {
        let (id, severity) = (one["id"].as_str()?, one["severity"].as_str()?);
        Some((id, severity, one["confidence"].as_f64()?))
    });
    each.collect()
}

/// Whether a case is said to be well.
fn all_clear(text: &str) -> bool {
    text.contains("Nothing wrong") || text.starts_with("No finding")
}

#[test]
fn the_first_sentence_is_what_is_wrong() {
    for (name, said) in [
        (
            "vm-died.txt",
            "shut down (KVM_EXIT_SHUTDOWN), as after a triple fault.",
        ),
        (
            "hlt-returns-at-once.txt",
            "vCPUs halt and go on at once: 40833 hlt exits of 29.20us in the mean",
        ),
        (
            "kworker-waits-behind-vhost.txt",
            "kworker/14:0 waited 39.72ms for a CPU behind vhost-1920.",
        ),
        (
            "reinjected-is-no-timer.txt",
            "vCPU 1 (thread 1001) is stuck:",
        ),
        (
            "same-fault-again-and-again.txt",
            "vCPU 1 (thread 1001) is stuck: 299 EPT_VIOLATION in a row at 0x2594fe0",
        ),
        (
            "sched-max-after.txt",
            "kworker/19:2-ev waited 366.3ms for a CPU.",
        ),
        (
            "io-exits-without-ports.txt",
            "55654 IO_INSTRUCTION exits took 758.4ms",
        ),
        (
            "port-events-alone.txt",
            "1001 of 1001 port accesses are of 0x3fd:PIN serial COM1 LSR",
        ),
    ] {
        let text = first_sentence(name);
        assert!(text.contains(said) && !all_clear(&text), "{name}: {text}");
    }
}

#[test]
fn what_is_wrong_is_no_timer_and_no_first_touch() {
    for name in [
        "reinjected-is-no-timer.txt",
        "same-fault-again-and-again.txt",
    ] {
        let document = diagnosis(&[&case(name)]);
        let found = findings(&document);
        assert!(
            found.iter().any(|(id, ..)| *id == "vcpu-stuck"),
            "{name}: {found:?}"
        );
        let wrong = ["timer-interrupt-storm", "ept-violation-storm"];
        assert!(
            !found.iter().any(|(id, ..)| wrong.contains(id)),
            "{name}: {found:?}"
        );
    }
    // Two commands count an event alike: what is put back is not injected again.
    let irqs = run([
        "irqs",
        "--format",
        "json",
        &case("reinjected-is-no-timer.txt"),
    ]);
    let irqs = irqs.json().expect("a document").to_string();
    assert!(irqs.contains("\"injected\":0"), "{irqs}");
}

#[test]
fn codes_without_a_name_have_no_vote_in_what_machine_it_is() {
    let run = run([
        "exits",
        "--format",
        "json",
        &case("unknown-rows-are-no-arm64.txt"),
    ]);
    let document = run.json().expect("a document");
    assert_eq!(document["isa"], "vmx");
    let rows = document["rows"].as_array().into_iter().flatten();
    let keys: Vec<&str> = rows.filter_map(|row| row["key"].as_str()).collect();
    for code in ["0x20000", "0x50000", "0x30000", "0x40000", "0x10000"] {
        let key = format!("UNKNOWN({code})");
        assert!(keys.contains(&key.as_str()), "{key}: {keys:?}");
    }
    // Whose times are those of the guest is said of arm64 alone.
    let doubts = document["quality"]["doubts"].as_array();
    assert!(doubts.is_some_and(Vec::is_empty), "{doubts:?}");
}

#[test]
fn kvm_stat_has_counts_per_exit_and_rates() {
    let run = run(["report", "--format", "json", &case("kvm-stat.txt")]);
    let document = run.json().expect("a document");
    let counts = document["recordings"][0]["counts"].as_array();
    let of = |event: &str| {
        let mut rows = counts.into_iter().flatten();
        let row = rows.find(|row| row["event"] == event).expect(event);
        (
            row["count"].as_u64(),
            row["per_second"].as_f64(),
            row["per_exit"].as_f64(),
        )
    };
    assert_eq!(
        of("kvm:kvm_exit"),
        (Some(5_198_976), Some(277_006.0), Some(1.0))
    );
    for third in ["kvm:kvm_msr", "kvm:kvm_inj_virq", "kvm:kvm_eoi"] {
        let (_, rate, share) = of(third);
        assert!(
            share.is_some_and(|share| (share - 0.333).abs() < 0.001),
            "{third}"
        );
        assert!(rate.is_some_and(|rate| rate > 92_000.0), "{third}");
    }
    assert_eq!(counts.map(Vec::len), Some(10));
}

#[test]
fn counts_alone_lead_to_what_to_look_at_next() {
    let document = diagnosis(&[&case("kvm-stat.txt")]);
    let found = findings(&document);
    assert_eq!(found, [("timer-interrupt-storm", "medium", 0.5)]);
    assert!(document.to_string().contains("writes of 0x6e0"));
    let document = diagnosis(&[&case("kvmexit-bcc.txt")]);
    assert_eq!(findings(&document), [("dominant-exit", "low", 0.4)]);
    let unknown = document["unknown"].to_string();
    assert!(unknown.contains("19642 of 24530 exits"), "{unknown}");
}

#[test]
fn kvmexit_is_no_listing_of_threads() {
    let said = first_sentence("kvmexit-bcc.txt");
    assert!(
        said.contains("80.1 % of 24530 exits are IO_INSTRUCTION") && !all_clear(&said),
        "{said}"
    );
    let document = diagnosis(&[&case("kvmexit-bcc.txt")]);
    let unknown = document["unknown"].as_array().into_iter().flatten();
    let ports = unknown.filter(|one| one["id"] == "timer-port-exits");
    assert!(ports.count() == 1, "which ports is not known");
}

#[test]
fn two_tables_of_one_text_are_both_sides_of_a_comparison() {
    let text = case("two-tables-one-text.txt");
    let compared = run(["compare", &text]).text();
    for said in [
        format!("A: {text}:3"),
        format!("B: {text}:21"),
        "IO_INSTRUCTION: 55654 to 50".to_owned(),
        "Finding gone: dominant-exit".to_owned(),
    ] {
        assert!(
            compared.replace("\n  ", " ").contains(&said),
            "{said}: {compared}"
        );
    }
    // Both by their lines are the same, and a line within a table is that table's.
    let named = run(["compare", &format!("{text}:3"), &format!("{text}:21")]);
    assert_eq!(named.text(), compared);
    let second = run(["exits", &format!("{text}:25")]).text();
    assert!(second.contains("1981 exits"), "{second}");
    // Without a line nobody knows which is meant, and both are named.
    let refused = run(["exits", &text]);
    let why = refused.stderr.clone();
    for said in ["lines 3 and 21", "two-tables-one-text.txt:3"] {
        assert!(why.contains(said), "{said}: {why}");
    }
    // A recording has no lines of tables.
    let recording = fixtures::file("x86/preempted-sick/perf.data.zst");
    let none = run(["info", &format!("{}:7", recording.display())]);
    assert!(
        none.status != 0 && none.stderr.contains("has no printed tables"),
        "{}",
        none.stderr
    );
    // A file of that very name wins.
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("exits.txt:21");
    let first = std::fs::read_to_string(&text).expect("a text");
    let first: String = first
        .lines()
        .take(18)
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&name, first).expect("a file");
    let own = run(["exits", &name.display().to_string()]).text();
    assert!(own.contains("70746 exits"), "{own}");
}

#[test]
fn an_excerpt_has_lost_nothing() {
    let document = diagnosis(&[&case("ftrace-excerpt-header.txt")]);
    assert_eq!(findings(&document), []);
    assert_eq!(document["quality"]["lost_events"], 0);
    let text = document["quality"].to_string();
    for said in ["14 of the 205062 entries", "3948180 older entries"] {
        assert!(text.contains(said), "{text}");
    }
    let whole = run(["report", &case("ftrace-excerpt-header.txt")]).text();
    for wrong in ["lost.", "killed", "torn", "Nothing wrong"] {
        assert!(!whole.contains(wrong), "{wrong}: {whole}");
    }
}

#[test]
fn the_healthy_one_has_a_hint_at_most() {
    let document = diagnosis(&[&case("hlt-healthy.txt")]);
    for (id, severity, confidence) in findings(&document) {
        assert!(
            severity == "low" && confidence <= 0.5,
            "{id}: {severity}, {confidence}"
        );
    }
    // And beside the sick one it does not come out as that.
    let both = run([
        "compare",
        "--format",
        "json",
        &case("hlt-healthy.txt"),
        &case("hlt-returns-at-once.txt"),
    ]);
    let both = both.json().expect("a document");
    let first = &both["changes"][0];
    assert_eq!(
        (&first["what"], &first["worse"]),
        (&"finding halt-does-not-halt".into(), &"b".into())
    );
}

#[test]
fn a_definition_beside_exits_without_ports_gives_the_patch() {
    let (table, domain) = (
        case("io-exits-without-ports.txt"),
        case("io-exits-without-ports.xml"),
    );
    let document = diagnosis(&["--domain", &domain, &table]);
    let found = findings(&document);
    let (id, _, confidence) = found.first().expect("a finding");
    assert_eq!(*id, "timer-port-exits", "{found:?}");
    assert!((0.5..=0.6).contains(confidence), "{confidence}");
    let patch = document["patch"].as_str().unwrap_or_default();
    for element in ["vpindex", "synic", "stimer"] {
        assert!(patch.contains(&format!("<{element} state=")), "{patch}");
    }
}

#[test]
fn the_longest_wait_is_the_first_change_and_what_was_cut_off_is_none() {
    let (before, after) = (case("sched-max-before.txt"), case("sched-max-after.txt"));
    let both = run(["compare", "--format", "json", &before, &after])
        .json()
        .expect("a document");
    let changes = both["changes"].as_array().expect("changes");
    assert_eq!(changes[0]["what"], "sched longest wait", "{changes:?}");
    assert_eq!(changes[0]["worse"], "b");
    let gone = |one: &&Value| {
        one["text"]
            .as_str()
            .is_some_and(|text| text.contains(" gone"))
    };
    assert!(changes.iter().find(gone).is_none(), "{changes:?}");
    let found = diagnosis(&[&after]);
    assert!(
        !findings(&found)
            .iter()
            .any(|(id, ..)| *id == "cpufreq-governor-kworker")
    );
}

#[test]
fn accesses_without_exits_are_counted_and_have_no_times() {
    let ports = run([
        "exits",
        "--event",
        "ioport",
        "--format",
        "json",
        &case("port-events-alone.txt"),
    ]);
    let ports = ports.json().expect("a document");
    let row = &ports["rows"][0];
    assert_eq!(row["count"], 1001, "{ports}");
    assert!(
        row["total_ns"].is_null() || row["time_ns"].is_null(),
        "{row}"
    );
}

/// A report of slides that were recognized by a scanner: names have lost their underscores, and lines are broken.
#[test]
fn no_verdict_rests_on_less_than_half_of_a_text() {
    let event = |us: u64, what: &str| format!("a-1 [006] 7593.{us:06}: {what}\n");
    let mut text = String::new();
    for us in 0..40 {
        text += &event(us * 10, "kvm_entry: vcpu 0, rip 0x10");
        text += &event(
            us * 10 + 1,
            "kvm_exit: vcpu 0 reason HLT rip 0x10 info1 0x0 info2 0x0",
        );
        // What stands here looks like events of which nothing is left but the head.
        for more in 2..5 {
            text += &event(us * 10 + more, "");
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("slides.txt");
    std::fs::write(&path, &text).expect("a file");
    let path = path.display().to_string();
    let report = run(["report", &path]).text();
    let first: String = report.lines().take(2).collect::<Vec<_>>().join(" ");
    assert!(
        first.starts_with("No verdict: 80 of the 200 lines that look like events could be read."),
        "{first}"
    );
    assert!(!report.contains("complete"), "{report}");
    let document = diagnosis(&[&path]);
    assert_eq!(findings(&document), []);
    let why = document["no_verdict"].as_str().unwrap_or_default();
    assert!(why.contains("80 of the 200 lines"), "{why}");
    // Of prose around events nothing is counted.
    let prose = "Then the guest [3] halts, at 12.5 s, and nobody wakes it.\n".repeat(4);
    let events = text.lines().filter(|line| line.contains("kvm"));
    let whole: String = events.map(|line| format!("{line}\n{prose}")).collect();
    std::fs::write(folder.path().join("prose.txt"), whole).expect("a file");
    let prose = folder.path().join("prose.txt").display().to_string();
    assert_eq!(diagnosis(&[&prose])["no_verdict"], Value::Null);
}

/// What libvirt counted is enough to look for halt polling, and says how little vCPUs waited, which is no all-clear.
#[test]
fn statistics_of_a_domain_are_read_alone() {
    let document = diagnosis(&[&case("domstats.txt")]);
    assert_eq!(findings(&document), []);
    let checked = document["checked"].as_array().into_iter().flatten();
    let ids: Vec<&str> = checked.filter_map(|one| one["id"].as_str()).collect();
    assert!(ids.contains(&"halt-poll-waste"), "{ids:?}");
    let mut unknown = document["unknown"].as_array().into_iter().flatten();
    let waits = unknown.find(|one| one["id"] == "vcpu-preempted");
    let needs = waits.and_then(|one| one["needs"].as_str());
    let said =
        "vCPUs of guest1 waited 1.306s for a CPU and were on one for 955.3s (0.14 % of both)";
    assert!(
        needs.is_some_and(|needs| needs.starts_with(said)),
        "{needs:?}"
    );
    let facts = run(["facts", &case("domstats.txt")]).text();
    assert!(
        facts.contains("6536664 MMIO that the VMM emulates (23.27 %)"),
        "{facts}"
    );
}

/// A terminal breaks lines where they are full, in the middle of words, and a mailer quotes what came of it.
#[test]
fn lines_that_were_broken_where_they_were_full_say_the_same() {
    let text = std::fs::read_to_string(case("kworker-waits-behind-vhost.txt")).expect("a case");
    let folded = |start: &str, width: usize| -> String {
        let lines = text.lines().map(|line| {
            let line: Vec<char> = format!("{start}{line}").chars().collect();
            let pieces = line
                .chunks(width)
                .map(|piece| piece.iter().collect::<String>());
            pieces.collect::<Vec<_>>().join("\n") + "\n"
        });
        lines.collect()
    };
    let folder = tempfile::tempdir().expect("a folder");
    for (start, width) in [("", 72), ("> ", 72), ("", 80), ("> > ", 90)] {
        let path = folder.path().join("folded.txt");
        std::fs::write(&path, folded(start, width)).expect("a file");
        let screen = run(["report", path.to_str().expect("a name")]).text();
        let said = "kworker/14:0 waited 39.72ms for a CPU behind vhost-1920.";
        assert!(screen.contains(said), "{start:?} {width}: {screen}");
    }
}

/// Exits of older kernels have no vCPU's number: without the task's column it is the one that entered on their CPU.
#[test]
fn exits_without_a_thread_are_of_the_vcpu_that_entered_on_their_cpu() {
    let text = std::fs::read_to_string(case("vm-died.txt")).expect("a case");
    let cut = |line: &str| {
        line.get(line.find('[').unwrap_or(0)..)
            .unwrap_or_default()
            .to_owned()
            + "\n"
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cut.txt");
    std::fs::write(&path, text.lines().map(cut).collect::<String>()).expect("a file");
    let screen = run(["report", path.to_str().expect("a name")]).text();
    assert!(
        screen.contains("shut down (KVM_EXIT_SHUTDOWN), as after a triple fault."),
        "{screen}"
    );
}
