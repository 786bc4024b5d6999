//! Comparisons of printed tables that count no events: shares of samples, interrupts, distributions.

use std::path::PathBuf;

use fixtures::made_folder::MadeFolder;
use serde_json::Value;

use crate::{document, find, notes};
use fixtures::json::{list, text};

/// A table that perf, bcc or somebody's shell printed.
fn table(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.join(format!("../perftables/tests/tables/{name}.txt"))
}

/// Compares two texts.
fn texts(a: &str, b: &str) -> Value {
    let folder = MadeFolder::new();
    document(&folder.write("a.txt", a), &folder.write("b.txt", b))
}

fn whats(document: &Value, member: &str) -> Vec<String> {
    let all = list(&document[member]).iter();
    all.map(|change| text(&change["what"])).collect()
}

/// What is said of a name, wherever it stands.
fn any<'d>(document: &'d Value, what: &str) -> &'d Value {
    let all = ["changes", "likely", "noise"].into_iter();
    let mut all = all.flat_map(|member| list(&document[member]));
    let found = all.find(|change| change["what"] == what);
    found.unwrap_or_else(|| panic!("no {what} in {document:#}"))
}

fn close(value: &Value, wanted: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - wanted).abs() < 1e-9, "{value}, not {wanted}");
}

/// The fourth investigation: with vhost the guests ran for less of the time than with QEMU's own back end.
#[test]
fn case_4_moves_time_between_guests_and_the_host() {
    let document = document(
        &table("case4-virtio.perf-kvm-report"),
        &table("case4-vhost.perf-kvm-report"),
    );
    let guest = any(&document, "share guest kernel");
    close(&guest["b"], 0.5754);
    let host = any(&document, "share host kernel");
    assert_eq!(
        (&host["unit"], &host["worse"]),
        (&"share".into(), &Value::Null)
    );
    assert!(text(&guest["text"]).contains("points"), "{guest}");
    // Nobody says of how many samples.
    assert!(guest["confidence"].is_null(), "{guest}");
    assert!(notes(&document).contains("does not say of how many samples"));
    // With what was idle beside it, that is taken off: 40.37 % - 30.01 %.
    let folder = MadeFolder::new();
    let read = |name: &str| std::fs::read_to_string(table(name)).unwrap();
    let idle = format!(
        "{}\n{}",
        read("case4-vhost.perf-kvm-report"),
        read("case4-vhost.perf-kvm-report-idle")
    );
    let idle = folder.write("idle.txt", idle);
    let same = crate::document(&idle, &idle);
    assert!(whats(&same, "changes").is_empty(), "{same:#}");
}

fn report(samples: &str, rows: &[(f64, &str, &str, char)]) -> String {
    let mut out = format!(
        "# Samples: {samples} of event 'cycles'\n# Overhead  Command  Shared Object  Symbol\n"
    );
    for (share, comm, function, level) in rows {
        let object = match level {
            'k' => "[kernel.kallsyms]",
            'g' => "[guest.kernel.kallsyms]",
            _ => "a.out",
        };
        out.push_str(&format!(
            " {share:.2}%  {comm}  {object}  [{level}] {function}\n"
        ));
    }
    out
}

#[test]
fn shares_are_of_the_machine_and_of_what_was_not_idle() {
    let a = [
        (50.0, "swapper", "intel_idle", 'k'),
        (30.0, "qemu", "memcpy_all", '.'),
        (20.0, ":12", "clear_page_erms", 'g'),
    ];
    let b = [
        (50.0, "swapper", "intel_idle", 'k'),
        (10.0, "qemu", "memcpy_all", '.'),
        (40.0, ":12", "clear_page_erms", 'g'),
    ];
    let found = texts(&report("10K", &a), &report("10K", &b));
    let qemu = find(&found["changes"], "share task qemu");
    close(&qemu["a"], 0.3);
    close(&qemu["b"], 0.1);
    let words = text(&qemu["text"]);
    assert!(
        words.contains("60 % to 20 % (-40.00 points) of what was not idle"),
        "{words}"
    );
    assert!(
        words.ends_with("Neither is worse by that alone."),
        "{words}"
    );
    let guest = find(&found["changes"], "share guest kernel");
    close(&guest["b"], 0.4);
    // What was idle changed nothing, and has no row of its own among functions.
    assert!(
        !whats(&found, "changes")
            .iter()
            .any(|what| what.contains("swapper"))
    );
    // Of a hundred samples a tenth more or less is noise.
    let few = texts(
        &report("100", &a),
        &report(
            "100",
            &[
                b[0],
                (25.0, "qemu", "memcpy_all", '.'),
                (25.0, ":12", "clear_page_erms", 'g'),
            ],
        ),
    );
    assert!(whats(&few, "changes").is_empty(), "{few:#}");
}

#[test]
fn what_is_cut_off_is_no_change_and_another_event_neither() {
    let all = [
        (60.0, "qemu", "memcpy_all", '.'),
        (40.0, "vhost", "copy_data", 'k'),
    ];
    let cut = texts(&report("10K", &all), &report("10K", &all[..1]));
    assert!(whats(&cut, "changes").is_empty(), "{cut:#}");
    let faults = report("10K", &all).replace("cycles", "page-faults");
    let other = texts(&report("10K", &all), &faults);
    assert!(notes(&other).contains("Printed shares are not compared: A is of cycles"));
}

fn interrupts(rows: &[(&str, u64, u64, &str)]) -> String {
    let mut out = "            CPU0       CPU1\n".to_owned();
    for (irq, one, two, name) in rows {
        out.push_str(&format!("{irq:>4}: {one:>10} {two:>10}   {name}\n"));
    }
    out
}

#[test]
fn interrupts_make_no_side_worse_and_one_cpu_is_news() {
    let a = interrupts(&[
        ("57", 900_000, 0, "PCI-MSI-edge      eth1-0"),
        ("LOC", 50_000, 51_000, "Local timer interrupts"),
    ]);
    let b = interrupts(&[
        ("61", 450_000, 460_000, "PCI-MSI-edge      eth1-0"),
        ("LOC", 50_100, 50_900, "Local timer interrupts"),
    ]);
    let found = texts(&a, &b);
    let one = find(&found["changes"], "interrupts eth1-0 on one CPU");
    close(&one["a"], 1.0);
    assert!(
        one["b"].as_f64() < Some(0.51) && one["worse"].is_null(),
        "{one}"
    );
    assert!(!whats(&found, "changes").contains(&"interrupts LOC on one CPU".to_owned()));
    assert!(notes(&found).contains("sums since each machine's boot"));
    // A machine that has been up for ten times as long has ten times as many, and is not worse for it.
    let later = interrupts(&[
        ("57", 9_000_000, 0, "PCI-MSI-edge      eth1-0"),
        ("LOC", 500_000, 510_000, "Local timer interrupts"),
    ]);
    let found = texts(&a, &later);
    let more = any(&found, "interrupts eth1-0");
    assert_eq!(
        (&more["unit"], &more["worse"]),
        (&"count".into(), &Value::Null)
    );
    // A difference of two readings is no sum since boot.
    let found = texts(&a, &format!("{a}\nten seconds later\n{later}"));
    // Two readings on both sides are what came between.
    let both = |later: &str| format!("{a}\nten seconds later\n{later}");
    let readings = texts(&both(&later), &both(&later));
    assert!(
        notes(&readings).contains("do not say how long is between them"),
        "{readings:#}"
    );
    assert!(
        notes(&found).contains("Counts of interrupts are not compared"),
        "{found:#}"
    );
    assert!(!whats(&found, "changes").contains(&"interrupts eth1-0".to_owned()));
}

fn latencies(rows: &[(u64, u64, u64)]) -> String {
    let mut out = "     usecs               : count     distribution\n".to_owned();
    for (from, to, count) in rows {
        out.push_str(&format!(
            "{from:>10} -> {to:<10} : {count:<8} |****                |\n"
        ));
    }
    out
}

#[test]
fn percentiles_change_where_their_bounds_do_not_meet() {
    let a = latencies(&[(0, 1, 100), (2, 3, 800), (4, 7, 100)]);
    let b = latencies(&[
        (0, 1, 0),
        (2, 3, 100),
        (4, 7, 100),
        (8, 15, 700),
        (16, 31, 100),
    ]);
    let found = texts(&a, &b);
    let half = find(&found["changes"], "distribution usecs p50");
    assert_eq!(
        (half["a"].as_f64(), half["b"].as_f64()),
        (Some(4000.0), Some(16_000.0))
    );
    assert_eq!(
        (&half["unit"], &half["worse"]),
        (&"ns".into(), &Value::Null)
    );
    let words = text(&half["text"]);
    assert!(
        words.starts_with(
            "usecs: the p50 lies between 2.000us and 4.000us and then between 8.000us and 16.00us"
        ),
        "{words}"
    );
    // Others within the same bounds are no change, whatever their mean is.
    let within = latencies(&[(0, 1, 300), (2, 3, 600), (4, 7, 100)]);
    assert!(whats(&texts(&a, &within), "changes").is_empty());
    // Few values say nothing.
    let few = [latencies(&[(2, 3, 3)]), latencies(&[(8, 15, 3)])];
    assert!(whats(&texts(&few[0], &few[1]), "changes").is_empty());
    // What only one side has is said.
    let other = texts(
        &a,
        "@ns[HLT]:\n[512, 1K)              3 |@@@|\n[1K, 2K)             123 |@@@|\n",
    );
    assert!(
        notes(&other).contains("distributions are on one side alone"),
        "{other:#}"
    );
}

#[test]
fn a_real_histogram_is_the_same_as_itself() {
    for name in [
        "runqlat",
        "bpftrace-hist",
        "perf-report-6.1",
        "proc-interrupts-x86",
        "perf-top-stdio",
    ] {
        let path = table(name);
        let same = document(&path, &path);
        assert!(whats(&same, "changes").is_empty(), "{name}: {same:#}");
    }
}
