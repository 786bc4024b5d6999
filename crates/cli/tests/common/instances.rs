//! What `trapline paths` says, as JSON: instances and reports.

use std::collections::BTreeMap;
use std::path::Path;

pub(crate) use fixtures::json::{list, text};
use serde_json::Value;

use super::{json, number};

/// An instance of `--each`.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Its number among those of its path.
    pub number: u64,
    /// Its group, or nothing.
    pub by: String,
    /// Nanoseconds of the recording.
    pub start: u64,
    /// How long it took, in nanoseconds.
    pub total: u64,
    /// The thread of the vCPU that it is about, or 0.
    pub vcpu: i32,
    /// Steps and when they were reached.
    pub steps: Vec<(String, u64)>,
    /// What went on.
    pub features: Vec<String>,
}

impl Instance {
    pub(crate) fn at(&self, step: &str) -> Option<u64> {
        let found = self.steps.iter().find(|(name, _)| name == step);
        found.map(|(_, at)| *at)
    }

    pub(crate) fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|known| known == feature)
    }

    /// Returns what is behind the beginning of a feature.
    pub(crate) fn feature(&self, begin: &str) -> Option<&str> {
        let mut found = self.features.iter();
        found.find_map(|known| known.strip_prefix(begin))
    }

    /// Returns how long a stage took that one of these names.
    pub(crate) fn stage(&self, from: &str, to: &str) -> u64 {
        let mut pairs = self.steps.windows(2);
        pairs
            .find(|pair| pair[0].0 == from && pair[1].0 == to)
            .map_or(0, |pair| pair[1].1 - pair[0].1)
    }
}

pub(crate) fn instances(path: &Path, which: &str) -> Vec<Instance> {
    let each = json(&["paths", "--path", which, "--each"], path).expect("a document");
    let all = list(&each["instances"]).iter();
    all.map(|one| Instance {
        number: number(one, "instance"),
        by: text(&one["by"]),
        start: number(one, "start_ns"),
        total: number(one, "total_ns"),
        vcpu: one["vcpu_tid"].as_i64().unwrap_or(0) as i32,
        steps: list(&one["steps"])
            .iter()
            .map(|step| (text(&step["name"]), number(step, "time_ns")))
            .collect(),
        features: list(&one["features"]).iter().map(text).collect(),
    })
    .collect()
}

/// The reports of all built-in paths by name.
pub(crate) fn reports(path: &Path, args: &[&str]) -> BTreeMap<String, Value> {
    let mut all = vec!["paths"];
    all.extend_from_slice(args);
    let document = json(&all, path).expect("a document");
    let found = list(&document["paths"]).iter();
    found
        .map(|report| (text(&report["path"]), report.clone()))
        .collect()
}

/// All sentences of a report: what separates slow instances, and what the slowest is.
pub(crate) fn said(report: &Value) -> Vec<String> {
    let because = list(&report["slow"]["because"]).iter();
    let mut all: Vec<String> = because.map(|one| text(&one["text"])).collect();
    all.push(text(&report["slow"]["slowest"]["text"]));
    all
}
