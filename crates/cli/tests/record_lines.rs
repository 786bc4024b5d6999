//! What a message says to record is a line of `trapline record` that records it, and no other tool's.

use std::fs;
use std::path::Path;

use record::{Question, events};
use rules::RecordNeeds;

use crate::common::{Failures, case, run};

fn question(needs: RecordNeeds) -> Question {
    match needs {
        RecordNeeds::Exits => Question::Exits,
        RecordNeeds::Sched => Question::Sched,
        RecordNeeds::Paths => Question::Paths,
        RecordNeeds::Stacks => Question::Stacks,
        RecordNeeds::Virtqueues => Question::Virtqueues,
    }
}

fn names(question: Question) -> Vec<String> {
    let events = events(&[question]);
    events.into_iter().map(|one| one.name).collect()
}

#[test]
fn questions_open_the_events_that_they_are_named_for() {
    let mut failures = Failures::default();
    let mut known = Vec::new();
    for (needs, list) in rules::opened_events() {
        known.extend(list.names.iter().copied());
        if list.arch.is_some_and(|arch| arch != std::env::consts::ARCH) {
            continue;
        }
        let opened = names(question(needs));
        for name in list.names {
            let command = rules::record_command(&[name]);
            failures.check(opened.iter().any(|one| one == name), || {
                format!("'{command}' does not open {name}")
            });
            let expected = format!("trapline record --for {}", needs.name());
            failures.equal(name, &command, &expected);
        }
    }
    for question in Question::ALL {
        for name in names(question) {
            failures.check(known.contains(&name.as_str()), || {
                format!("record_line.rs does not know {name}, which {question:?} opens")
            });
        }
    }
    failures.finish(100);
}

/// The events that a rule needs are among those that its questions open.
#[test]
fn rules_ask_for_what_they_need() {
    let mut failures = Failures::default();
    for rule in rules::all().iter().filter(|rule| !rule.record.is_empty()) {
        let asked = |needs: RecordNeeds| {
            let paths = rule.record.contains(&RecordNeeds::Paths);
            let of_paths = matches!(needs, RecordNeeds::Exits | RecordNeeds::Sched);
            // Stacks have the switches.
            rule.record.contains(&needs) || (paths && of_paths)
        };
        // What stands behind a semicolon says more and is not needed.
        let needs = rule.needs.split(';').next().unwrap_or_default();
        for word in needs.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let opened = rules::opened_events();
            for (question, _) in opened.filter(|(_, list)| list.names.contains(&word)) {
                let stacks = rule.record.contains(&RecordNeeds::Stacks)
                    && ["sched_switch", "sched_waking"].contains(&word);
                failures.check(stacks || asked(question), || {
                    format!("{} needs {word}, of {question:?}", rule.id)
                });
            }
        }
    }
    failures.finish(40);
}

/// Files in which another recorder is named for what it is: where its recordings are described, where it is the one
/// that has to be set otherwise, or where it counts in hardware what trapline does not.
const DESCRIBED: [(&str, usize); 10] = [
    ("analysis/src/unknowable.rs", 2),
    ("doubts/src/list.rs", 4),
    ("perftables/src/label.rs", 1),
    ("rules/src/rules/cpufreq_governor_kworker.rs", 1),
    ("rules/src/rules/dominant_exit.rs", 1),
    ("rules/src/rules/halt_poll_waste.rs", 2),
    ("rules/src/rules/lossy_recording.rs", 2),
    ("rules/src/rules/split_lock.rs", 1),
    ("rules/src/rules/tracing_disturbs.rs", 2),
    ("tracetext/src/other.rs", 1),
];

#[test]
fn messages_name_trapline_record() {
    let mut failures = Failures::default();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![];
    for one in [
        "analysis", "compare", "doubts", "export", "paths", "render", "report", "rules", "session",
    ] {
        folders.push(crates.join(one).join("src"));
    }
    let mut seen = 0u64;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source file");
            seen += 1;
            let code: Vec<&str> = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .map(|line| line.trim().trim_end_matches('\\'))
                .collect();
            let code = code.join(" ");
            let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
            let tools = [
                "perf record",
                "trace-cmd record",
                "stat record",
                "sched record",
                "guest record",
            ];
            let found = tools
                .iter()
                .map(|tool| code.matches(tool).count())
                .sum::<usize>();
            let name = path.display().to_string();
            let allowed = DESCRIBED.iter().find(|(file, _)| name.ends_with(file));
            let allowed = allowed.map_or(0, |(_, count)| *count);
            failures.check(found <= allowed, || {
                format!("{name}: {found} lines of other recorders, at most {allowed}")
            });
        }
    }
    failures.check(seen > 100, || "no files".to_owned());
    failures.finish(100);
}

/// What was recorded and did not happen is not what was not recorded.
#[test]
fn what_did_not_occur_is_not_what_was_not_recorded() {
    let mut failures = Failures::default();
    let sched = case("host/sender-flows/perf.data.zst")
        .path
        .display()
        .to_string();
    let exits = case("vmx/tiny-irqchip/perf.data.kvmstat.zst")
        .path
        .display()
        .to_string();
    for (args, line) in [
        (&["exits", &sched][..], "'trapline record --for exits'"),
        (&["vcpus", &sched], "'trapline record --for exits'"),
        (&["irqs", &sched], "'trapline record --for paths'"),
        (
            &["virtqueues", &sched],
            "'trapline record --for virtqueues'",
        ),
        (&["sched", &exits], "'trapline record --for sched'"),
        (&["flame", &exits], "'trapline record --for stacks'"),
        (
            &["flame", &exits, "--off-cpu"],
            "'trapline record --for stacks'",
        ),
        (
            &["flame", &sched, "--guest-exits"],
            "'trapline record --for exits'",
        ),
        (
            &["flame", &exits, "--event", "timer:hrtimer_start"],
            "'trapline record -e timer:hrtimer_start'",
        ),
        (
            &["events", &sched, "--console"],
            "'trapline record --for exits'",
        ),
    ] {
        let run = run(args);
        let what = format!("{args:?}: {}", run.stderr);
        failures.equal(&what, &run.status, &1);
        failures.check(run.stderr.trim_end().ends_with(line), || what.clone());
        failures.equal(&what, &run.stderr.matches("trapline record").count(), &1);
    }
    // These were open, and there was none.
    let open = case("arm64/vhost-mmio/boot1/perf.data.tracepoints.zst").path;
    let open = open.display().to_string();
    let empty = run(["events", "--event", "kvm_set_irq", &open]);
    failures.equal("events", &empty.status, &0);
    failures.check(empty.stdout.is_empty(), || empty.text());
    let said = "recorded, and did not occur: kvm:kvm_set_irq";
    failures.check(empty.stderr.contains(said), || empty.stderr.clone());
    let flame = run(["flame", "--event", "kvm:kvm_set_irq", &open]);
    failures.equal("flame", &flame.status, &1);
    failures.check(
        flame.stderr.contains("was recorded and did not occur"),
        || flame.stderr.clone(),
    );
    failures.check(!flame.stderr.contains("trapline record"), || {
        flame.stderr.clone()
    });
    failures.finish(33);
}
