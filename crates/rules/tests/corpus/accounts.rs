//! Accounts of the corpus' recordings: they add up, rules that are switched off leave their time unexplained, and an
//! all-clear never stands above an open account.

use fixtures::expected::tables;
use fixtures::{Failures, note};
use paths::PathReport;
use rules::{Case, Diagnosis, OPEN_SHARE, Rule, TimeAccount, diagnose_with};
use session::{PictureOptions, Session, SessionOptions};

/// Diagnoses an input by some rules, and says how long its vCPUs were observed.
fn with(rules: &[&'static Rule], files: &[std::path::PathBuf]) -> Option<(Diagnosis, u64)> {
    let session = Session::open(SessionOptions {
        empty: true,
        ..SessionOptions::default()
    })
    .ok()?;
    let pictures = session.pictures(files, &PictureOptions::default()).ok()?;
    let cases: Vec<Case<'_>> = pictures
        .iter()
        .map(|picture| Case {
            picture,
            facts: None,
            domain: None,
        })
        .collect();
    let observed = pictures.iter().map(|picture| match picture.about.in_ticks {
        true => 0,
        false => picture.observed_ns(),
    });
    let observed = observed.sum();
    Some((diagnose_with(rules, &cases), observed))
}

fn adds_up(what: &str, account: &TimeAccount, failures: &mut Failures) {
    let parts = [
        account.explained_ns(),
        account.normal_ns(),
        account.unexplained_ns(),
        account.unknown_ns(),
    ];
    let sum: u64 = parts.iter().sum();
    failures.check(sum == account.observed_ns(), || {
        format!("{what}: {parts:?} are not {}", account.observed_ns())
    });
    for row in &account.rows {
        failures.check(row.explained_ns <= row.ns, || format!("{what}: {row:?}"));
    }
}

#[test]
fn accounts_add_up_to_the_time_that_was_observed() {
    let mut failures = Failures::default();
    for (_, table) in tables() {
        for input in &table {
            let Some((diagnosis, observed)) = with(rules::all(), &input.files) else {
                continue;
            };
            let accounts = &diagnosis.accounts;
            adds_up(&input.name, &accounts.vcpus, &mut failures);
            adds_up(&input.name, &accounts.threads, &mut failures);
            let same = accounts.vcpus.of_exits || accounts.vcpus.observed_ns() == observed;
            failures.check(same, || {
                let sum = accounts.vcpus.observed_ns();
                format!("{}: {sum} of {observed}", input.name)
            });
            // What is healthy is explained by what is normal.
            let mut unchecked = diagnosis.unchecked.iter();
            let brief = unchecked.any(|one| one.rule.id == "unexplained-time");
            let healthy = input.must.is_empty() && input.may.is_empty() && !brief;
            let open = accounts.vcpus.share(accounts.vcpus.unexplained_ns());
            failures.check(!healthy || open <= OPEN_SHARE, || {
                format!("{}: {open} unexplained", input.name)
            });
        }
    }
    failures.finish(40);
}

/// From this length on a path that a report names as its slowest has a finding that says so, or one that explains it.
const LONG_NS: u64 = 50_000_000;

#[test]
fn a_slow_path_never_stands_beside_no_finding() {
    let mut failures = Failures::default();
    for (_, table) in tables() {
        for input in &table {
            let Ok(session) = Session::open(SessionOptions {
                empty: true,
                ..SessionOptions::default()
            }) else {
                continue;
            };
            // What a report shows is more than what rules look at.
            let options = PictureOptions {
                timeline: false,
                flames: false,
                ..PictureOptions::to_report()
            };
            let Ok(pictures) = session.pictures(&input.files, &options) else {
                continue;
            };
            let cases = pictures.iter().map(|picture| Case {
                picture,
                facts: None,
                domain: None,
            });
            let cases: Vec<Case<'_>> = cases.collect();
            let found = rules::diagnose(&cases).findings.len();
            let paths = pictures.iter().flat_map(|picture| &picture.paths);
            let paths = paths.filter(|path| rules::PATHS.contains(&path.name.as_str()));
            let slowest = PathReport::slowest(paths).map_or(0, |path| path.total.max());
            failures.check(slowest < LONG_NS || found > 0, || {
                format!("{}: no finding beside a path of {slowest} ns", input.name)
            });
        }
    }
    failures.finish(40);
}

/// Rules whose findings cost time of vCPUs that no other rule would explain.
const OFF: [&str; 6] = [
    "hpet-mmio-exits",
    "stalled-vcpu",
    "timer-interrupt-storm",
    "timer-port-exits",
    "vcpu-preempted",
    "vcpu-throttled",
];

#[test]
fn what_a_rule_explains_is_unexplained_without_it() {
    let mut failures = Failures::default();
    let mut compared = 0;
    for (_, table) in tables() {
        for input in &table {
            for off in OFF.iter().filter(|off| input.must.contains_key(**off)) {
                let rules: Vec<&'static Rule> = rules::all().to_vec();
                let without: Vec<&'static Rule> = rules
                    .iter()
                    .copied()
                    .filter(|rule| rule.id != *off)
                    .collect();
                let (Some((all, _)), Some((less, _))) =
                    (with(&rules, &input.files), with(&without, &input.files))
                else {
                    continue;
                };
                let finding = all.findings.iter().find(|one| one.rule.id == *off);
                let Some(cost) = finding.and_then(|finding| finding.cost) else {
                    continue;
                };
                let accounts = &all.accounts.vcpus;
                // Below what is normal without a finding it is like that.
                if accounts.of_exits || accounts.share(cost.ns) < 3.0 * OPEN_SHARE {
                    continue;
                }
                // Another finding may explain part of the same rows.
                let rows = accounts
                    .rows
                    .iter()
                    .filter(|row| row.explained_by.contains(off));
                let names: Vec<&str> = rows.map(|row| row.name.as_str()).collect();
                let mut same = less.accounts.vcpus.rows.iter();
                if same.any(|row| names.contains(&row.name.as_str()) && row.explained_ns > 0) {
                    continue;
                }
                compared += 1;
                let left = &less.accounts.vcpus;
                let more = left.unexplained_ns() > accounts.unexplained_ns();
                let found = less
                    .findings
                    .iter()
                    .any(|one| !matches!(one.rule.id, "tracing-disturbs"));
                failures.check(
                    more || left.explained_ns() >= accounts.explained_ns(),
                    || format!("{}: without {off} nothing is left: {left:#?}", input.name),
                );
                // Of an excerpt of a few milliseconds nothing is found, and its open account is no all-clear.
                let open = !less.accounts.are_closed();
                failures.check(found || open, || {
                    format!("{}: an all-clear without {off}", input.name)
                });
            }
        }
    }
    note(&format!("{compared} findings switched off"));
    failures.finish(4);
}
