//! `trapline explain`: the events that it prints, counted and added up by awk, give the numbers that tables have.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Failures, file, run};

/// Adds up what lies between two lines that are events: their times are the first field with a point, digits and a
/// colon. What has one event only is not added.
const AWK: &str = r##"
function flush() { if (n == 2) { count++; sum += t[2] - t[1] } else if (n == 1) single++; n = 0 }
/^# [0-9]+: / { flush(); next }
/^#/ { next }
{
  for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) {
    split(substr($i, 1, length($i) - 1), p, ".")
    if (length(p[2]) == 9) t[++n] = p[1] * 1000000000 + p[2]
    break
  }
}
END { flush(); printf "%d %.0f %d\n", count, sum, single }
"##;

/// Adds up what the kernel says that a task ran.
const RUNTIME: &str = r#"
match($0, /runtime=[0-9]+/) { sum += substr($0, RSTART + 8, RLENGTH - 8) }
END { printf "%.0f", sum }
"#;

/// What awk makes of the events that are printed.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    whole: u64,
    total_ns: u64,
    single: u64,
}

fn awk(program: &str, text: &str) -> String {
    let child = Command::new("awk")
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.expect("awk");
    let mut input = child.stdin.take().expect("a pipe");
    let text = text.to_owned();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("awk ends");
    writer.join().expect("a writer").expect("awk reads");
    String::from_utf8(output.stdout).expect("text")
}

fn counted(text: &str) -> Counted {
    let line = awk(AWK, text);
    let numbers: Vec<u64> = line
        .split_whitespace()
        .map(|one| one.parse().expect("a number"))
        .collect();
    Counted {
        whole: numbers[0],
        total_ns: numbers[1],
        single: numbers[2],
    }
}

/// Returns the text of an explanation.
fn explained(path: &str, words: &[&str]) -> String {
    let run = run([&["explain", path][..], words].concat());
    assert_eq!(run.status, 0, "{words:?}: {}", run.stderr);
    run.text()
}

fn document(args: &[&str]) -> Value {
    let run = run(args);
    assert_eq!(run.status, 0, "{args:?}: {}", run.stderr);
    run.json().expect("a document")
}

fn name(path: &Path) -> String {
    path.to_str().expect("a plain name").to_owned()
}

/// Recordings of both containers and three architectures, with and without the scheduler's events.
fn recordings() -> Vec<String> {
    let files = [
        "x86/clocksource-acpi_pm/loop/perf.data.guest.zst",
        "x86/format-variants/plain.perf.data.zst",
        "vmx/tiny-irqchip/trace.dat",
        "arm64/virtio-mmio-nogso-probes/ping/trace.dat.zst",
    ];
    files.iter().map(|one| name(&file(one))).collect()
}

/// Rows of one table that are looked at.
const ROWS: usize = 3;

#[test]
fn exits_are_those_that_tables_count() {
    let mut failures = Failures::default();
    let mut rows_seen = 0;
    for path in recordings() {
        for table in ["vmexit", "ioport", "mmio", "msr"] {
            let document = document(&["exits", "--event", table, "--json", &path]);
            let rows = document["rows"].as_array().expect("rows");
            for row in rows
                .iter()
                .filter(|row| !row["total_ns"].is_null())
                .take(ROWS)
            {
                let key = row["key"].as_str().expect("a key");
                let found = counted(&explained(&path, &["exits", key]));
                let wanted = Counted {
                    whole: row["count"].as_u64().expect("a count"),
                    total_ns: row["total_ns"].as_u64().expect("a time"),
                    single: 0,
                };
                failures.check(found == wanted, || {
                    format!("{path} {table} {key}: {found:?}, not {wanted:?}")
                });
                rows_seen += 1;
            }
        }
    }
    assert!(rows_seen > 20, "{rows_seen}");
    failures.finish(rows_seen);
}

#[test]
fn states_are_the_time_between_their_events() {
    let mut failures = Failures::default();
    let mut seen = 0;
    for path in recordings() {
        let document = document(&["vcpus", "--json", &path]);
        let rows = document["rows"].as_array().expect("rows");
        for state in ["guest", "kernel", "user", "halted", "runnable"] {
            let row = &rows[seen % rows.len()];
            let vcpu = row["vcpu"].to_string();
            let wanted = row[format!("{state}_ns")].as_u64().unwrap_or(0);
            let words = ["vcpus", &*vcpu, state];
            let found = counted(&explained(&path, &words));
            // What began before the recording, or went on at its end, has one event; a halt poll began as long before
            // its event as that says.
            let parts = self::document(&[&["explain", &path][..], &words, &["--json"]].concat());
            let parts = parts["parts"].as_array().expect("parts").iter();
            let is_cut = |one: &&Value| one["begin_event"].is_null() || one["end_event"].is_null();
            let cut: Vec<u64> = parts
                .filter(is_cut)
                .filter_map(|one| one["duration_ns"].as_u64())
                .collect();
            let sum = found.total_ns + cut.iter().sum::<u64>();
            let most = wanted == 0 || found.whole >= cut.len() as u64;
            failures.check(sum == wanted && most, || {
                format!(
                    "{path} vCPU {vcpu} {state}: {sum}, not {wanted}; {} without an event",
                    cut.len()
                )
            });
            seen += 1;
        }
    }
    failures.finish(seen);
}

#[test]
fn waits_and_run_times_are_those_of_tasks() {
    let mut failures = Failures::default();
    let mut seen = 0;
    for path in recordings() {
        let run = run(["sched", "--json", &path]);
        if run.status != 0 {
            continue;
        }
        let document = run.json().expect("a document");
        for row in document["rows"].as_array().expect("rows").iter().take(ROWS) {
            let tid = row["pid"].to_string();
            for (column, count, total) in [
                ("switches", "switches", Some("delay_total_ns")),
                ("woken", "woken_waits", Some("woken_wait_ns")),
                ("preempted", "preempted", Some("preempted_wait_ns")),
            ] {
                let Some(wanted) = row[count].as_u64() else {
                    continue;
                };
                let found = counted(&explained(&path, &["sched", &tid, column]));
                // A delay of nothing is counted where a task is seen for the first time as it gets its CPU.
                let all = found.whole + found.single;
                let total = total.and_then(|name| row[name].as_u64());
                failures.check(all == wanted && Some(found.total_ns) == total, || {
                    format!("{path} {tid} {column}: {found:?}, not {wanted} and {total:?}")
                });
                seen += 1;
            }
            if let Some(wanted) = row["runtime_ns"].as_u64().filter(|ns| *ns > 0) {
                let text = explained(&path, &["sched", &tid, "runtime"]);
                let sum = awk(RUNTIME, &text);
                failures.check(sum == wanted.to_string(), || {
                    format!("{path} {tid} runtime: {sum}, not {wanted}")
                });
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "{seen}");
    failures.finish(seen);
}

#[test]
fn instances_of_paths_begin_and_end_with_their_events() {
    let mut failures = Failures::default();
    let mut seen = 0;
    for path in recordings() {
        let document = document(&["paths", "--json", &path]);
        for one in document["paths"].as_array().expect("paths") {
            let (name, count) = (one["path"].as_str().expect("a name"), one["count"].as_u64());
            if count.unwrap_or(0) == 0 {
                continue;
            }
            let found = counted(&explained(&path, &["paths", name]));
            let wanted = Counted {
                whole: count.unwrap_or(0),
                total_ns: one["total"]["total_ns"].as_u64().unwrap_or(found.total_ns),
                single: 0,
            };
            failures.check(found == wanted, || {
                format!("{path} {name}: {found:?}, not {wanted:?}")
            });
            // The longest is one of them.
            let longest = counted(&explained(&path, &["paths", name, "max"]));
            let max = one["total"]["max_ns"].as_u64();
            failures.check(longest.whole == 1 && Some(longest.total_ns) == max, || {
                format!("{path} {name} max: {longest:?}, not {max:?}")
            });
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen}");
    failures.finish(seen);
}

/// Counts the events of a name, and refuses others.
const NAMED: &str = r#"/^#/ { next } index($0, name ":") { count++; next } { print "no " name ": " $0 } END { print count + 0 }"#;

#[test]
fn interrupts_are_one_event_each() {
    let mut failures = Failures::default();
    let mut seen = 0;
    let mut paths = recordings();
    paths.push(name(&file("x86/console-sick/perf.data.zst")));
    for path in paths {
        let run = run(["irqs", "--json", &path]);
        if run.status != 0 {
            continue;
        }
        let document = run.json().expect("a document");
        let rows = document["rows"].as_array().expect("rows");
        for row in rows.iter().take(ROWS) {
            let (number, name) = match row["vector"].as_u64() {
                Some(vector) => (format!("{vector:#x}"), "vector"),
                None => (row["intid"].to_string(), "intid"),
            };
            for (column, event) in [
                ("accepted", "kvm_apic_accept_irq"),
                ("posted", "kvm_apicv_accept_irq"),
                ("injected", "kvm_inj_virq"),
                ("repeated", "kvm_inj_virq"),
                ("raised", "vgic_update_irq_pending"),
                ("lowered", "vgic_update_irq_pending"),
            ] {
                let same = rows.iter().filter(|one| one[name] == row[name]);
                let counts: Vec<u64> = same.filter_map(|one| one[column].as_u64()).collect();
                if counts.is_empty() {
                    continue;
                }
                let text = explained(&path, &["irqs", &number, column]);
                let found = awk(&NAMED.replace("name", &format!("\"{event}\"")), &text);
                let wanted = counts.iter().sum::<u64>();
                failures.check(found.trim() == wanted.to_string(), || {
                    format!("{path} {number} {column}: {found}, not {wanted}")
                });
                seen += 1;
            }
        }
    }
    assert!(seen > 8, "{seen}");
    failures.finish(seen);
}

/// Adds up what functions of vhost say that they gave back, and counts all other events.
const BUFFERS: &str = r#"/^#/ { next }
/vhost_add_used_and_signal_n:/ {
  for (i = 1; i <= NF; i++) if (split($i, p, "=") == 2 && p[1] ~ /^n[45]$/ && length(p[2]) < 6) { count += p[2]; break }
  next
}
{ count++ }
END { print count + 0 }"#;

#[test]
fn buffers_frames_and_requests_are_those_of_virtqueues() {
    let mut failures = Failures::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/virtqueues");
    let mut paths: Vec<String> = ["guest.txt", "host.txt"]
        .iter()
        .map(|one| name(&folder.join(one)))
        .collect();
    paths.extend(recordings());
    let mut seen = 0;
    for path in paths {
        let run = run(["virtqueues", "--json", &path]);
        if run.status != 0 {
            continue;
        }
        let document = run.json().expect("a document");
        for row in document["rows"].as_array().expect("rows") {
            let device = row["device"].as_str().expect("a name");
            let queue = row["queue"].as_str().map(|queue| format!("/{queue}"));
            let asked = format!("{device}{}", queue.unwrap_or_default());
            for (column, field) in [
                ("added", "added"),
                ("used", "used"),
                ("notified", "notifications"),
                ("irqs", "interrupts"),
                ("sent", "sent"),
                ("received", "received"),
            ] {
                let Some(wanted) = row[field].as_u64() else {
                    continue;
                };
                // Several VMs may have a device of that name: --vm chooses one then.
                let is_same = |one: &&Value| {
                    one["device"] == row["device"]
                        && one["queue"] == row["queue"]
                        && one[field].is_u64()
                };
                if document["rows"]
                    .as_array()
                    .expect("rows")
                    .iter()
                    .filter(is_same)
                    .count()
                    > 1
                {
                    continue;
                }
                let text = explained(&path, &["virtqueues", &asked, column]);
                let found = awk(BUFFERS, &text);
                failures.check(found.trim() == wanted.to_string(), || {
                    format!("{path} {asked} {column}: {found}, not {wanted}")
                });
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
    failures.finish(seen);
}

/// Adds up the bytes that frames (`len`) and requests say.
const BYTES: &str = r#"/^#/ { next }
match($0, / len=[0-9]+/) { sum += substr($0, RSTART + 5, RLENGTH - 5); next }
match($0, /: +[0-9]+,[0-9]+ [A-Z]+ [0-9]+ /) {
  split(substr($0, RSTART + 1, RLENGTH - 1), p, " "); sum += p[3]
}
END { printf "%.0f", sum }"#;

#[test]
fn bytes_are_those_that_frames_and_requests_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/virtqueues");
    let mut failures = Failures::default();
    let mut seen = 0;
    for file in ["guest.txt", "host.txt"] {
        let path = name(&folder.join(file));
        let document = document(&["virtqueues", "--json", &path]);
        for row in document["rows"].as_array().expect("rows") {
            let device = row["device"].as_str().expect("a name");
            for column in ["sent_bytes", "received_bytes"] {
                let Some(wanted) = row[column].as_u64() else {
                    continue;
                };
                let text = explained(&path, &["virtqueues", device, column]);
                let found = awk(BYTES, &text);
                failures.check(found == wanted.to_string(), || {
                    format!("{path} {device} {column}: {found}, not {wanted}: {text}")
                });
                let said = format!("{column}: {wanted} bytes, of ");
                failures.check(text.contains(&said), || text.clone());
                seen += 1;
            }
        }
    }
    assert!(seen >= 4, "{seen}");
    failures.finish(seen);
}

/// Adds up readings of counters, and how long the events were enabled and counted.
const READINGS: &str = r#"/^#/ { next }
!/ PERF_RECORD_READ: / { print "no reading: " $0 }
{ value += $7; enabled += $10; running += $13 }
END { printf "%d", (enabled == running) ? value : int(value * enabled / running) }"#;

#[test]
fn counters_are_the_readings_of_their_thread() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = name(&folder.path().join("perf.data"));
    std::fs::write(&path, crate::counters::two_vcpus()).expect("a file");
    let document = document(&["counters", "--json", &path]);
    let mut failures = Failures::default();
    let mut seen = 0;
    for row in document["rows"].as_array().expect("rows") {
        let tid = row["tid"].to_string();
        for column in [
            "guest_cycles",
            "guest_instructions",
            "guest_cache_misses",
            "host_cycles",
            "host_instructions",
            "cpu_ns",
        ] {
            let Some(wanted) = row[column].as_u64() else {
                continue;
            };
            let text = explained(&path, &["counters", &tid, column]);
            let found = awk(READINGS, &text);
            failures.check(found == wanted.to_string(), || {
                format!("{tid} {column}: {found}, not {wanted}: {text}")
            });
            seen += 1;
        }
    }
    failures.finish(seen);
    assert_eq!(seen, 8);
    // One of two readings was of half a second.
    let text = explained(&path, &["counters", "1011", "guest_cycles"]);
    assert!(text.contains("75 % of the time"), "{text}");
    let csv = run(["explain", &path, "counters", "1011", "cpu", "--csv"]);
    assert_eq!(csv.text().lines().count(), 3, "{}", csv.text());
    // What was never counted has no number that could be explained.
    let never = run(["explain", &path, "counters", "1012", "host_cycles"]);
    assert!(never.text().contains("2 readings") || never.text().contains("1 reading"));
}

/// Exits that the guest's tasks made, by the recordings of a host and its guest.
#[test]
fn exits_of_tasks_are_those_of_their_table() {
    let mut failures = Failures::default();
    let mut seen = 0;
    let [host, guest] = [crate::guests::HOST, crate::guests::GUEST].map(|one| name(&file(one)));
    for table in ["vmexit", "ioport"] {
        let document = document(&[
            "exits", &host, &guest, "--by", "task", "--event", table, "--json",
        ]);
        let rows = document["rows"].as_array().expect("rows");
        for row in rows.iter().take(8) {
            let key = row["key"].as_str().expect("a key");
            let name = row["task_name"].as_str().unwrap_or_default();
            let task = match row["task_what"].as_str().expect("a kind") {
                "task" => format!("{name}:{}", row["task_tid"]),
                kind @ ("softirq" | "interrupt") => format!("{kind} {name}"),
                kind => kind.to_owned(),
            };
            let text = explained(&host, &["exits", key, "--guest", &guest, "--task", &task]);
            let found = counted(&text);
            let wanted = Counted {
                whole: row["count"].as_u64().expect("a count"),
                total_ns: row["total_ns"].as_u64().expect("a time"),
                single: 0,
            };
            failures.check(found == wanted, || {
                format!("{table} {key} {task}: {found:?}, not {wanted:?}")
            });
            failures.check(text.contains("No other tool"), || text.clone());
            seen += 1;
        }
    }
    assert!(seen > 8, "{seen}");
    failures.finish(seen);
    for (words, status, said) in [
        (&["exits", "HLT", "--task", "x"][..], 2, "--guest"),
        (&["vcpus", "0", "guest", "--task", "x"], 2, "chooses exits"),
        (
            &["exits", "HLT", "--guest", &guest, "--task", "nobody:1"],
            1,
            "no such exits",
        ),
    ] {
        let run = run([&["explain", &*host][..], words].concat());
        assert_eq!(run.status, status, "{words:?}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{words:?}: {}", run.stderr);
    }
}

/// perf's own table has the numbers of whose events it is said to be.
#[test]
fn the_other_tools_command_prints_the_same() {
    let path = name(&file("x86/format-variants/plain.perf.data.zst"));
    let text = explained(&path, &["exits", "hlt"]);
    let command = text
        .lines()
        .find_map(|line| line.strip_prefix("# the same number: "));
    let command = command.expect("perf has such a table");
    let bare = path.strip_suffix(".zst").expect("a packed file");
    assert_eq!(command, format!("perf kvm -i {bare} stat report"));
    // It prints no percentiles, and no sum of a row.
    for column in ["p99", "time"] {
        let text = explained(&path, &["exits", "hlt", column]);
        assert!(text.contains("No other tool"), "{column}: {text}");
    }
    // On arm64 it times the guest, and counts the same.
    let arm64 = name(&file("arm64/virtio-mmio/boot1/perf.data.guest.zst"));
    let document = document(&["exits", "--json", &arm64]);
    let key = document["rows"][0]["key"].as_str().expect("a row");
    assert!(explained(&arm64, &["exits", key]).contains("# the same number: perf kvm"));
    assert!(explained(&arm64, &["exits", key, "mean"]).contains("No other tool"));
    // With a filter no other tool has it.
    let filtered = explained(&path, &["exits", "hlt", "--vcpu", "0"]);
    assert!(filtered.contains("No other tool"), "{filtered}");
}

#[test]
fn a_finding_leads_to_the_events_of_its_evidence() {
    let path = name(&file("x86/clocksource-acpi_pm/loop/perf.data.guest.zst"));
    let text = explained(&path, &["timer-port-exits"]);
    let command = text
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("trapline explain "));
    let command = command.expect("a command");
    let words: Vec<&str> = command.split(' ').skip(2).collect();
    assert_eq!(&words[1..], ["exits", "0x608:PIN"], "{command}");
    let found = counted(&explained(words[0], &words[1..]));
    assert!(
        text.contains(&format!("{} exits", found.whole)),
        "{found:?}"
    );
    // The same in documents.
    let document = document(&["explain", &path, "timer-port-exits", "--json"]);
    assert_eq!(document["findings"][0]["id"], "timer-port-exits");
    let commands = document["evidence"].as_array().expect("evidence").iter();
    let commands: Vec<&Value> = commands
        .flat_map(|one| one["commands"].as_array().expect("a list"))
        .collect();
    assert!(commands.iter().any(|one| *one == command), "{commands:?}");
}

#[test]
fn what_is_not_there_is_answered_with_what_is() {
    let path = name(&file("vmx/tiny-irqchip/trace.dat"));
    for (words, status, said) in [
        (&["exit"][..], 2, "did you mean 'exits'"),
        (&["exits"], 2, "name the row"),
        (&["exits", "hltt"], 1, "did you mean 'HLT'"),
        (&["exits", "HLT", "totla"], 2, "did you mean 'total'"),
        (&["vcpus", "0"], 2, "runnable"),
        (&["vcpus", "7", "guest"], 1, "has no vCPU 7"),
        (&["sched", "CPU"], 2, "thread id"),
        (&["sched", "99999"], 1, "no row"),
        (&["paths", "irqdf"], 1, "irqfd"),
        (&["irqs", "timer"], 2, "no vector"),
        (&["virtqueues", "vnet9"], 1, "virtqueues"),
        (&["irqs", "0xfe"], 1, "no row of irqs"),
        (&["timer-port-exits", "0x608"], 2, "has no rows"),
    ] {
        let run = run([&["explain", &*path][..], words].concat());
        assert_eq!(run.status, status, "{words:?}: {}", run.stderr);
        assert!(run.stderr.contains(said), "{words:?}: {}", run.stderr);
    }
}

/// Formats have the same things, and a limit leaves out the last ones and says so.
#[test]
fn formats_have_the_same_events() {
    let path = name(&file("vmx/tiny-irqchip/trace.dat"));
    let text = explained(&path, &["exits", "HLT", "--limit", "3"]);
    assert!(text.contains("# ... and "), "{text}");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::trim)
        .collect();
    assert_eq!(lines.len(), 6);
    let document = document(&["explain", &path, "exits", "HLT", "--limit", "3", "--json"]);
    let parts = document["parts"].as_array().expect("parts");
    let events: Vec<&str> = parts
        .iter()
        .flat_map(|one| [&one["begin_event"], &one["end_event"]])
        .map(|one| one.as_str().expect("an event"))
        .collect();
    assert_eq!(events, lines);
    let csv = run(["explain", &path, "exits", "HLT", "--limit", "3", "--csv"]);
    let text = csv.text();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(
        text.starts_with("number,start_ns,end_ns,duration_ns,tid,begin_event,end_event\n"),
        "{text}"
    );
}
