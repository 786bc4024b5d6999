//! Exit statistics equal `perf kvm stat report`: samples, and minimum, maximum and mean to the printed digit.

use std::collections::BTreeMap;

use analysis::ExitTable;
use fixtures::json::number;
use fixtures::perf_kvm::{self, PerfKvmTable};
use fixtures::{CorpusCase, Failures, FixtureQuestion, cases, note, read_text};
use serde_json::Value;

/// The tables, as their documents name them.
const EVENTS: [(&str, ExitTable); 4] = [
    ("vmexit", ExitTable::Vmexit),
    ("ioport", ExitTable::Ioport),
    ("mmio", ExitTable::Mmio),
    ("msr", ExitTable::Msr),
];

/// Returns a table as perf prints it, of what a filter takes.
fn text_as_perf(case: &CorpusCase, table: ExitTable, filter: Option<(&str, &str)>) -> String {
    let question = FixtureQuestion::new().table(table).like_perf();
    let question = filter.iter().fold(question, |question, (option, value)| {
        question.filter(option, value)
    });
    let (_, reports, _) = question
        .exits(&case.path)
        .unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let vcpu = filter.filter(|(option, _)| *option == "--vcpu");
    let vcpu = vcpu.map(|(_, vcpu)| vcpu.parse().expect("a number"));
    render::perf_kvm::table(&reports[0], vcpu)
}

/// Returns perf's table by reason, of what a filter takes.
fn as_perf(case: &CorpusCase, filter: Option<(&str, &str)>) -> PerfKvmTable {
    perf_kvm::parse(&text_as_perf(case, ExitTable::Vmexit, filter))
}

/// Returns the lines of a table as they are, sorted: perf leaves rows of equal counts in any order. Its
/// warnings stand before the table.
fn layout(text: &str) -> Vec<&str> {
    let begin = text.find("Analyze events").unwrap_or(0);
    let text = &text[begin..];
    let end = text
        .find("\nTotal Samples:")
        .map_or(text.len(), |at| at + 1);
    let end = text[end..].find('\n').map_or(text.len(), |at| end + at);
    let mut lines: Vec<&str> = text[..end].lines().collect();
    lines.sort_unstable();
    lines
}

/// Says whether nanoseconds are microseconds as printed with two decimals.
fn prints_as(ns: f64, printed: &str) -> bool {
    format!("{:.2}", ns / 1e3) == printed || {
        // A mean that ends in exactly half a digit may fall to either side.
        let printed: f64 = printed.parse().expect("a number");
        ((ns / 1e3 - printed).abs() - 0.005).abs() < 1e-6
    }
}

/// Compares the rows of a JSON table with perf's.
fn json_rows(failures: &mut Failures, what: &str, document: &Value, table: &PerfKvmTable) {
    let rows = document["rows"].as_array().cloned().unwrap_or_default();
    failures.equal(&format!("{what}: rows"), &rows.len(), &table.rows.len());
    let mut total = 0;
    for row in &rows {
        let key = row["key"].as_str().unwrap_or_default();
        let Some(expected) = table.row(key) else {
            failures.check(false, || format!("{what}: perf has no row {key}"));
            continue;
        };
        let count = number(row, "count");
        total += count;
        failures.equal(&format!("{what} {key}: samples"), &count, &expected.samples);
        let mean = number(row, "total_ns") as f64 / count.max(1) as f64;
        for (name, ns, printed) in [
            ("min", number(row, "min_ns") as f64, &expected.min),
            ("max", number(row, "max_ns") as f64, &expected.max),
            ("avg", mean, &expected.avg),
        ] {
            failures.check(prints_as(ns, printed), || {
                format!("{what} {key}: {name}\n    ours     {ns} ns\n    expected {printed} us")
            });
        }
        failures.check(number(row, "mean_ns").abs_diff(mean as u64) <= 1, || {
            format!("{what} {key}: mean_ns {} is not {mean}", row["mean_ns"])
        });
    }
    failures.equal(
        &format!("{what}: total_count"),
        &number(document, "total_count"),
        &total,
    );
    let totals = format!(
        "Total Samples:{total}, Total events handled time:{:.2}us.",
        number(document, "total_ns") as f64 / 1e3
    );
    failures.equal(&format!("{what}: totals"), &totals, &table.totals);
}

#[test]
fn every_table_equals_perf_kvm_stat() {
    let mut failures = Failures::default();
    let mut tables = 0;
    for case in cases() {
        let mut singles = BTreeMap::new();
        for (event, asked) in EVENTS {
            let Some(text) = case.reference(&format!("kvm-stat-{event}")) else {
                continue;
            };
            tables += 1;
            let expected = perf_kvm::parse(&text);
            let what = format!("{} {event}", case.name);
            let printed = text_as_perf(&case, asked, None);
            let ours = perf_kvm::parse(&printed);
            // As printed: columns, shares and the relative error of the mean as well.
            failures.equal(&what, &layout(&printed), &layout(&text));
            failures.equal(&what, &ours.sorted(), &expected.sorted());
            failures.equal(&format!("{what}: totals"), &ours.totals, &expected.totals);
            let ordered = ours.rows.is_sorted_by(|a, b| a.samples >= b.samples);
            failures.check(ordered, || {
                format!("{what}: rows are not sorted by samples")
            });
            // The JSON has the same numbers; on arm64 only with perf's own way of timing.
            let question = FixtureQuestion::new().table(asked);
            let question = match case.arch.as_str() {
                "arm64" => question.like_perf(),
                _ => question,
            };
            match question.exits_document(&case.path) {
                Ok(document) => {
                    failures.equal(&what, &document["event"].as_str(), &Some(event));
                    json_rows(&mut failures, &what, &document, &expected);
                    singles.insert(event, document);
                }
                Err(error) => failures.check(false, || format!("{what}: {error}")),
            }
        }
        if singles.len() < 2 {
            continue;
        }
        // All tables in one pass are the tables of a pass each.
        let all = EVENTS
            .iter()
            .fold(FixtureQuestion::new(), |asked, (_, table)| {
                asked.table(*table)
            });
        let all = all.exits_document(&case.path);
        let all = all.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        for table in all["tables"].as_array().expect("several tables") {
            let event = table["event"].as_str().expect("its name");
            if let Some(single) = singles.get(event) {
                let what = format!("{} {event} in one pass", case.name);
                failures.equal(&what, &table["rows"], &single["rows"]);
            }
        }
    }
    note(&format!("{tables} tables of perf kvm stat"));
    failures.finish(100);
}

/// perf's per-vCPU tables differ in two ways that are perf's own, and exactly these are allowed for:
///
/// * Their column Min Time is 0.00us in every row (perf 6.1 keeps statistics per vCPU in memory that starts
///   as zeros, so no duration is ever below the minimum). Ours is the true minimum: not below that of all
///   vCPUs, and equal to it on one of them.
/// * On arm64 the tracepoints have no `vcpu_id`, so perf puts the exits of all vCPUs under vCPU 0. Ours are
///   distinguished by thread, and add up to perf's.
#[test]
fn tables_by_vcpu_equal_perf_kvm_stat() {
    let mut failures = Failures::default();
    let mut tables = 0;
    for case in cases() {
        let references = (0..).map_while(|vcpu| {
            let text = case.reference(&format!("kvm-stat-vmexit-vcpu{vcpu}"))?;
            Some((vcpu.to_string(), perf_kvm::parse(&text)))
        });
        let references: Vec<(String, PerfKvmTable)> = references.collect();
        let (Some(all), false) = (case.reference("kvm-stat-vmexit"), references.is_empty()) else {
            continue;
        };
        let all = perf_kvm::parse(&all);
        tables += references.len();
        for row in references.iter().flat_map(|(_, table)| &table.rows) {
            failures.equal("perf's own minimum per vCPU", &row.min.as_str(), &"0.00");
        }
        let ours: Vec<PerfKvmTable> = references
            .iter()
            .map(|(vcpu, _)| as_perf(&case, Some(("--vcpu", vcpu))))
            .collect();
        if case.arch == "arm64" {
            arm64_vcpus(&mut failures, &case.name, &ours, &references);
        } else {
            for ((vcpu, expected), ours) in references.iter().zip(&ours) {
                let what = format!("{} vCPU {vcpu}", case.name);
                let strip = |table: &PerfKvmTable| {
                    let mut lines: Vec<String> = table
                        .rows
                        .iter()
                        .map(|r| r.line.replacen(&format!(" {}us ", r.min), " - ", 1))
                        .collect();
                    lines.sort_unstable();
                    lines
                };
                failures.equal(&what, &strip(ours), &strip(expected));
                failures.equal(&format!("{what}: totals"), &ours.totals, &expected.totals);
            }
        }
        for expected in &all.rows {
            let minima = ours.iter().filter_map(|t| t.row(&expected.key));
            let minima = minima.map(|row| row.min.parse::<f64>().expect("a number"));
            let least = minima.fold(f64::INFINITY, f64::min);
            let what = format!(
                "{} {}: least of the minima per vCPU",
                case.name, expected.key
            );
            failures.equal(&what, &format!("{least:.2}"), &expected.min);
        }
    }
    note(&format!("{tables} tables by vCPU"));
    failures.finish(100);
}

fn arm64_vcpus(
    failures: &mut Failures,
    name: &str,
    ours: &[PerfKvmTable],
    perf: &[(String, PerfKvmTable)],
) {
    for expected in &perf[0].1.rows {
        let rows: Vec<_> = ours.iter().filter_map(|t| t.row(&expected.key)).collect();
        let what = format!("{name} {}: all vCPUs together", expected.key);
        let samples: u64 = rows.iter().map(|row| row.samples).sum();
        failures.equal(&format!("{what}: samples"), &samples, &expected.samples);
        let number = |text: &str| text.parse::<f64>().expect("a number");
        let max = rows.iter().map(|row| number(&row.max)).fold(0.0, f64::max);
        failures.equal(&format!("{what}: max"), &format!("{max:.2}"), &expected.max);
        let total: f64 = rows.iter().map(|r| number(&r.avg) * r.samples as f64).sum();
        let mean = total / samples.max(1) as f64;
        failures.check((mean - number(&expected.avg)).abs() <= 0.011, || {
            format!("{what}: mean {mean}, perf's {}", expected.avg)
        });
    }
    for (vcpu, table) in &perf[1..] {
        failures.check(table.rows.is_empty(), || {
            format!("{name}: perf has rows for vCPU {vcpu}, which it does not know")
        });
    }
}

#[test]
fn tables_by_process_equal_perf_kvm_stat() {
    let mut failures = Failures::default();
    for case in cases() {
        for (name, path) in &case.references {
            let Some(pid) = name.strip_prefix("kvm-stat-vmexit-pid") else {
                continue;
            };
            let expected = perf_kvm::parse(&read_text(path));
            for filter in ["--pid", "--vm"] {
                let ours = as_perf(&case, Some((filter, pid)));
                let what = format!("{} {filter} {pid}", case.name);
                failures.equal(&what, &ours.sorted(), &expected.sorted());
                failures.equal(&format!("{what}: totals"), &ours.totals, &expected.totals);
            }
        }
    }
    failures.finish(8);
}

/// An event of `perf script` or `trace-cmd report -N`, as far as timing exits needs it.
struct Line<'a> {
    thread: &'a str,
    /// Microseconds: what the text keeps.
    time: u64,
    name: &'a str,
    body: &'a str,
}

/// Reads `COMM TID [CPU] SECONDS.MICROSECONDS: EVENT: BODY`, with a space or a dash before the thread.
fn parse_line(line: &str) -> Option<Line<'_>> {
    let (head, rest) = line.split_once('[')?;
    let (_, rest) = rest.split_once(']')?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (seconds, micros) = time.split_once('.')?;
    let (event, body) = rest.trim_start().split_once(": ")?;
    Some(Line {
        thread: head.trim_end().rsplit([' ', '-']).next()?,
        time: seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?,
        name: event.rsplit(':').next()?,
        body: body.trim_start(),
    })
}

/// The reason in `TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: ...` and `IRQ: HSR_EC: 0x0000 (UNKNOWN), PC: ...`.
fn arm64_reason(body: &str) -> Option<&str> {
    let (outcome, rest) = body.split_once(": ")?;
    if outcome != "TRAP" {
        return Some(outcome);
    }
    Some(rest.split_once('(')?.1.split_once(')')?.0)
}

/// perf times arm64 exits from `kvm_entry` to `kvm_exit`: how long the guest ran before. Ours go from
/// `kvm_exit` to the next `kvm_entry`, from a vCPU's first event on (perf's own rule that a vCPU must have been
/// seen entering is x86's, where only `kvm_entry` has the vCPU's number). Checked against the text of the
/// standard tools, to its resolution of a microsecond.
#[test]
fn arm64_exits_are_timed_from_exit_to_entry() {
    let mut failures = Failures::default();
    let mut recordings = 0;
    for case in cases().into_iter().filter(|c| c.arch == "arm64") {
        let Some(text) = case.reference("script").or(case.reference("report-N")) else {
            continue;
        };
        let mut exits: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
        let mut expected: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for line in text.lines().filter_map(parse_line) {
            match line.name {
                "kvm_exit" => {
                    let reason = arm64_reason(line.body);
                    let reason = reason.unwrap_or_else(|| panic!("{}: {}", case.name, line.body));
                    exits.insert(line.thread, (line.time, reason));
                }
                "kvm_entry" => {
                    if let Some((begin, reason)) = exits.remove(line.thread) {
                        expected.entry(reason).or_default().push(line.time - begin);
                    }
                }
                _ => {}
            }
        }
        if expected.is_empty() {
            continue;
        }
        recordings += 1;
        let document = FixtureQuestion::new().exits_document(&case.path);
        let document = document.unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let rows = document["rows"].as_array().expect("rows");
        failures.equal(
            &format!("{}: rows", case.name),
            &rows.len(),
            &expected.len(),
        );
        for row in rows {
            let key = row["key"].as_str().expect("a key");
            let what = format!("{} {key}", case.name);
            let Some(times) = expected.get(key) else {
                failures.check(false, || format!("{what}: the text has none"));
                continue;
            };
            let count = times.len() as u64;
            failures.equal(&format!("{what}: count"), &number(row, "count"), &count);
            for (name, us, slack) in [
                ("min_ns", times.iter().min().copied(), 1),
                ("max_ns", times.iter().max().copied(), 1),
                ("total_ns", Some(times.iter().sum()), count),
            ] {
                let us = us.unwrap_or(0);
                failures.check(
                    number(row, name).abs_diff(us * 1000) <= slack * 1000,
                    || format!("{what}: {name} is {}, from the text {us} us", row[name]),
                );
            }
        }
        // What perf calls the time of an exit is another quantity: never the same by accident.
        let perf = FixtureQuestion::new()
            .like_perf()
            .exits_document(&case.path);
        let perf = perf.expect("it reads");
        failures.check(perf["total_ns"] != document["total_ns"], || {
            format!("{}: both ways of timing agree", case.name)
        });
    }
    note(&format!("{recordings} arm64 recordings"));
    failures.finish(50);
}
