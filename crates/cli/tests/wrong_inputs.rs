//! Every kind of input in every place: where it is taken it is read, and elsewhere the answer says what it is, which
//! command takes it, and what was expected, in the same words in every place.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Failures, case, run};

/// Where an input can stand, and the arguments there; `FILE` is the input, `REC` a recording.
const PLACES: [(&str, &[&str]); 22] = [
    ("info", &["info", "FILE"]),
    ("events", &["events", "FILE"]),
    ("exits", &["exits", "FILE"]),
    ("vcpus", &["vcpus", "FILE"]),
    ("irqs", &["irqs", "FILE"]),
    ("sched", &["sched", "FILE"]),
    ("paths", &["paths", "FILE"]),
    ("report", &["report", "FILE"]),
    ("diagnose", &["diagnose", "FILE"]),
    ("compare", &["compare", "FILE", "FILE"]),
    ("export md", &["export", "--as", "md", "FILE"]),
    ("export csv", &["export", "--as", "csv", "FILE"]),
    (
        "export events",
        &["export", "--as", "csv", "--table", "events", "FILE"],
    ),
    ("facts", &["facts", "FILE"]),
    ("flame", &["flame", "FILE"]),
    ("--facts", &["info", "--facts", "FILE", "REC"]),
    ("--formats", &["info", "--formats", "FILE", "REC"]),
    ("--mtree", &["exits", "--mtree", "FILE", "REC"]),
    ("--kallsyms", &["diagnose", "--kallsyms", "FILE", "REC"]),
    (
        "--guest-kallsyms",
        &["flame", "--guest-kallsyms", "FILE", "REC"],
    ),
    ("--domain", &["diagnose", "--domain", "FILE", "REC"]),
    ("--path", &["paths", "--path", "FILE", "REC"]),
];

/// A kind of input.
struct Kind {
    path: PathBuf,
    /// What answers call it.
    what: &'static str,
    /// Which command answers send it to.
    taker: &'static str,
    /// Where it is taken.
    taken: &'static [&'static str],
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("a written file");
    path
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../corpus/seed-text")
        .join(name)
}

/// Returns what `trapline bench` has found here.
fn bench_result() -> Vec<u8> {
    let bench = run(["bench", "clock", "-n=5", "--warmup=0", "--format=json"]);
    assert_eq!(bench.status, 0, "{}", bench.stderr);
    bench.stdout
}

fn known_kinds(dir: &Path, recording: &Path) -> Vec<Kind> {
    let all: &[&str] = &[
        "info",
        "events",
        "exits",
        "vcpus",
        "irqs",
        "sched",
        "paths",
        "report",
        "diagnose",
        "compare",
        "flame",
        "export md",
        "export csv",
        "export events",
        "--formats",
    ];
    let kind = |path, what, taker, taken| Kind {
        path,
        what,
        taker,
        taken,
    };
    vec![
        kind(
            recording.to_owned(),
            "is a recording (perf.data)",
            "'trapline report FILE'",
            all,
        ),
        kind(
            corpus("case5-slow-host.perf-sched-latency.txt"),
            "is a table that perf sched latency printed",
            "'trapline report', 'sched', 'diagnose' or 'compare' as it is",
            &["report", "sched", "diagnose", "compare"],
        ),
        kind(
            corpus("case2-hpet.perf-kvm-stat-vmexit.txt"),
            "is a table that perf kvm stat report printed",
            "'trapline report', 'exits', 'diagnose' or 'compare' as it is",
            &["report", "exits", "diagnose", "compare"],
        ),
        kind(
            write(dir, "stacks.folded", "qemu;main;ioctl 3\nqemu;main 1\n"),
            "is a text of folded stacks",
            "give it to 'trapline flame' as it is",
            &["flame"],
        ),
        kind(
            write(
                dir,
                "ps.txt",
                "  PID   TID COMMAND COMMAND\n 1700  1700 qemu qemu-system-x86_64 -name web\n",
            ),
            "is a text with facts of a host (1 thread",
            "'trapline COMMAND --facts FILE REC'",
            &["facts", "--facts", "--domain"],
        ),
        kind(
            write(
                dir,
                "facts.json",
                "{\"facts_version\": 1, \"threads\": [], \"host\": {\"hz\": 250}}\n",
            ),
            "is a text with facts of a host (its settings)",
            "'trapline COMMAND --facts FILE REC'",
            &["facts", "--facts"],
        ),
        kind(
            write(
                dir,
                "monitor.txt",
                "* CPU #0: thread_id=1700\n  CPU #1: thread_id=1703\n",
            ),
            "is a text with facts of a host (",
            "'trapline COMMAND --facts FILE REC'",
            &["facts", "--facts"],
        ),
        kind(
            corpus("case2-win10.domain.xml"),
            "is the definition of the domain '",
            "'trapline diagnose --domain FILE'",
            &["report", "diagnose", "--domain"],
        ),
        kind(
            write(
                dir,
                "symbols",
                "ffffffff81000000 T _stext\nffffffff81000100 t do_one\n",
            ),
            "is a kernel's symbols",
            "'trapline diagnose --kallsyms FILE REC'",
            &["--kallsyms", "--guest-kallsyms"],
        ),
        kind(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../paths/builtin/2-irqfd.toml"),
            "is a file of latency paths",
            "'trapline paths --path FILE REC'",
            &["--path"],
        ),
        kind(
            write(dir, "clock.json", bench_result()),
            "is a result of 'trapline bench'",
            "'trapline compare FILE FILE'",
            &["compare"],
        ),
    ]
}

fn arguments(place: &[&str], file: &Path, recording: &Path) -> Vec<String> {
    let replaced = place.iter().map(|word| match *word {
        "FILE" => file.display().to_string(),
        "REC" => recording.display().to_string(),
        other => other.to_owned(),
    });
    replaced.collect()
}

#[test]
fn a_wrong_kind_of_input_is_answered_in_the_same_words_everywhere() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let recording = case("vmx/tiny-irqchip/perf.data.kvmstat.zst").path;
    for kind in known_kinds(folder.path(), &recording) {
        for (place, args) in PLACES {
            let run = run(arguments(args, &kind.path, &recording));
            let what = format!("{} in {place}: {}", kind.path.display(), run.stderr);
            if kind.taken.contains(&place) {
                // A recording may lack what a command needs; that is another answer.
                failures.check(!run.stderr.contains("; give it"), || what.clone());
                continue;
            }
            failures.equal(&what, &run.status, &1);
            failures.equal(&what, &run.stderr.lines().count(), &1);
            let words = [
                ", which ",
                "; give it ",
                "; expected ",
                kind.what,
                kind.taker,
            ];
            for word in words {
                failures.check(run.stderr.contains(word), || format!("{what}: no {word:?}"));
            }
        }
    }
    failures.finish(600);
}

#[test]
fn what_nothing_takes_is_refused_by_name_and_never_a_panic() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path();
    let recording = case("vmx/tiny-irqchip/perf.data.kvmstat.zst").path;
    let noise: Vec<u8> = (1..4000u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let packed = fs::read(&recording).expect("the corpus");
    let cut = packed.get(..packed.len() / 2).expect("its first half");
    for (path, may_be_read) in [
        (write(dir, "empty", b""), false),
        (dir.to_owned(), false),
        (dir.join("nowhere"), false),
        (write(dir, "noise", &noise), false),
        (write(dir, "cut.zst", cut), true),
    ] {
        for (place, args) in PLACES {
            let run = run(arguments(args, &path, &recording));
            let what = format!("{} in {place}: {}", path.display(), run.stderr);
            failures.check(!run.stderr.contains("panicked"), || what.clone());
            // An empty map of devices names nothing.
            if may_be_read || run.status == 0 && place == "--mtree" {
                failures.check(matches!(run.status, 0 | 1), || what.clone());
                continue;
            }
            failures.equal(&what, &run.status, &1);
            failures.equal(&what, &run.stderr.lines().count(), &1);
            let name = path.display().to_string();
            failures.check(run.stderr.contains(&name), || what.clone());
        }
    }
    failures.finish(150);
}
