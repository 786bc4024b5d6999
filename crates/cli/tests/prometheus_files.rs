//! What is in `packaging/prometheus`: alerts do what their tests say, and dashboard and alerts ask for nothing that the
//! exporter does not have. `promtool` may be missing, unless `TRAPLINE_REQUIRE_TOOLS=1` is set.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use counts::NamedCounts;
use render::metrics::{CountingHealth, Metrics, ServingHealth};
use serde_json::Value;

use crate::common::{note, tools_are_required};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn kept(name: &str) -> String {
    fs::read_to_string(root().join("packaging/prometheus").join(name)).expect("it is kept")
}

/// Returns the metrics that the exporter has, with their types.
fn metrics() -> BTreeMap<String, String> {
    let none = NamedCounts::default();
    let counted = Metrics::default().text(&none) + &CountingHealth::default().text(&none);
    let text = counted + &ServingHealth::default().text();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let types = types.filter_map(|line| line.split_once(' '));
    types
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect()
}

/// Returns what a text names that a metric of the exporter may be called.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("trapline_")).collect()
}

/// Returns whether the exporter has series of this name.
fn has(metrics: &BTreeMap<String, String>, name: &str) -> bool {
    let of_parts = |ending: &str, kinds: &[&str]| {
        let base = name.strip_suffix(ending).and_then(|base| metrics.get(base));
        base.is_some_and(|kind| kinds.contains(&kind.as_str()))
    };
    let is_of_parts = |kind: &String| kind == "histogram" || kind == "summary";
    metrics.get(name).is_some_and(|kind| !is_of_parts(kind))
        || of_parts("_bucket", &["histogram"])
        || of_parts("_sum", &["histogram", "summary"])
        || of_parts("_count", &["histogram", "summary"])
}

/// Returns the expressions of the dashboard.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "expr" => found.push(text.clone()),
                    other => expressions(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

fn dashboard() -> Vec<String> {
    let text = kept("trapline-dashboard.json");
    let mut found = Vec::new();
    expressions(&serde_json::from_str(&text).expect("JSON"), &mut found);
    assert!(found.len() > 20, "{found:?}");
    found
}

#[test]
fn dashboard_and_alerts_ask_for_metrics_that_there_are() {
    let metrics = metrics();
    let rules = kept("trapline-rules.yml");
    let tests = kept("trapline-rules-test.yml");
    // What is said of a metric names it without its parts.
    let asked: Vec<&str> = rules.lines().collect();
    let prose = |line: &&str| !line.contains("rate(") && !line.contains("increase(");
    let said: Vec<&str> = asked.iter().copied().filter(|line| prose(line)).collect();
    let expressions = asked.iter().filter(|line| !prose(line)).copied();
    let expressions = expressions.map(str::to_owned).chain(dashboard());
    let mut wrong = Vec::new();
    for expression in expressions {
        let missing = named(&expression).into_iter().map(str::to_owned);
        wrong.extend(missing.filter(|name| !has(&metrics, name)));
    }
    let known = |name: &&str| metrics.contains_key(*name);
    wrong.extend(
        named(&said.join("\n"))
            .into_iter()
            .filter(|name| !known(name))
            .map(str::to_owned),
    );
    let series = tests.lines().filter(|line| line.contains("- series:"));
    for line in series {
        let missing = named(line).into_iter().filter(|name| !has(&metrics, name));
        wrong.extend(missing.map(str::to_owned));
    }
    assert!(wrong.is_empty(), "the exporter does not have {wrong:?}");
}

#[test]
fn every_metric_is_documented() {
    let document = fs::read_to_string(root().join("docs/top.md")).expect("it is kept");
    let documented = named(&document);
    for name in metrics().keys() {
        assert!(
            documented.contains(name.as_str()),
            "docs/top.md has no {name}"
        );
    }
}

#[test]
fn every_alert_has_a_test() {
    let (rules, tests) = (kept("trapline-rules.yml"), kept("trapline-rules-test.yml"));
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let alerts: Vec<&str> = alerts.collect();
    assert!(!alerts.is_empty());
    for alert in alerts {
        let line = format!("alertname: {alert}\n        exp_alerts:");
        assert!(tests.contains(&line), "no test in which {alert} fires");
    }
}

#[test]
fn promtool_accepts_rules_and_expressions() {
    if Command::new("promtool").arg("--version").output().is_err() {
        assert!(
            !tools_are_required(),
            "TRAPLINE_REQUIRE_TOOLS is set, and promtool is missing"
        );
        return note("SKIPPED: no promtool here");
    }
    let place = tempfile::tempdir().expect("a folder");
    let folder = root().join("packaging/prometheus");
    // Grafana puts a time in the place of its variable.
    let mut rules = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    for (at, expression) in dashboard().iter().enumerate() {
        let expression = expression.replace("$__rate_interval", "5m");
        let expression = expression.replace('\'', "''");
        rules.push_str(&format!(
            "  - record: panel:{at}\n    expr: '{expression}'\n"
        ));
    }
    let panels = place.path().join("panels.yml");
    fs::write(&panels, rules).expect("the folder is ours");
    for (what, file) in [
        ("check", folder.join("trapline-rules.yml")),
        ("check", panels),
        ("test", folder.join("trapline-rules-test.yml")),
    ] {
        let output = Command::new("promtool")
            .args([what, "rules"])
            .arg(&file)
            .output();
        let output = output.expect("promtool starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(output.status.success(), "{}: {said}", file.display());
    }
}
