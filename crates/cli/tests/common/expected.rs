//! Which findings each recording and printed table of a corpus has to lead to: its `expected.json`.
//!
//! ```json
//! {"x86/console-sick/perf.data.zst": {"must": {"ID": "the number that decides it"}, "may": {}, "not": {}}}
//! ```
//!
//! Several files joined by `+` are diagnosed together. A finding is right if it is in `must` or `may`, wrong if it is in
//! `not`. One that is not listed is wrong, unless its severity is low.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Run, run, shipped};

/// What one input has to lead to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    /// Its name in the table.
    pub name: String,
    /// Its files.
    pub files: Vec<PathBuf>,
    /// What has to be found, and why.
    pub must: BTreeMap<String, String>,
    /// What may be found.
    pub may: BTreeMap<String, String>,
    /// What must not be found.
    pub not: BTreeMap<String, String>,
}

/// What is printed of a finding.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub id: String,
    pub severity: String,
    pub confidence: f64,
    pub title: String,
}

impl Expected {
    /// Returns whether a finding is right.
    pub(crate) fn allows(&self, found: &Found) -> bool {
        self.lists(&found.id) || (!self.not.contains_key(&found.id) && found.severity == "low")
    }

    /// Returns whether a finding must or may come.
    pub(crate) fn lists(&self, id: &str) -> bool {
        self.must.contains_key(id) || self.may.contains_key(id)
    }

    /// Returns why a finding is wrong.
    pub(crate) fn reason(&self, id: &str) -> &str {
        self.not.get(id).map_or("not expected", String::as_str)
    }
}

/// Returns a file, plain or compressed.
fn at(root: &Path, name: &str) -> PathBuf {
    let plain = root.join(name);
    let packed = root.join(format!("{name}.zst"));
    match (plain.exists(), packed.exists()) {
        (false, true) => packed,
        (false, false) => root.join(name.strip_suffix(".zst").unwrap_or(name)),
        _ => plain,
    }
}

/// Returns the tables of the corpus that the repository ships and of the one that `TRAPLINE_CORPUS` names.
pub(crate) fn tables() -> Vec<(PathBuf, Vec<Expected>)> {
    let named = std::env::var_os("TRAPLINE_CORPUS").filter(|root| !root.is_empty());
    let named = named
        .map(PathBuf::from)
        .filter(|root| root.join("expected.json").exists());
    let roots = std::iter::once(shipped()).chain(named);
    roots.map(|root| (root.clone(), table(&root))).collect()
}

fn table(root: &Path) -> Vec<Expected> {
    let text = fs::read_to_string(root.join("expected.json")).expect("a corpus has expected.json");
    let document: Value = serde_json::from_str(&text).expect("expected.json is JSON");
    let reasons = |value: &Value| -> BTreeMap<String, String> {
        let all = value.as_object().expect("must, may and not are objects");
        all.iter()
            .map(|(id, why)| (id.clone(), why.as_str().unwrap_or_default().to_owned()))
            .collect()
    };
    let inputs = document.as_object().expect("expected.json is an object");
    inputs
        .iter()
        .map(|(name, want)| Expected {
            name: name.clone(),
            files: name.split('+').map(|file| at(root, file)).collect(),
            must: reasons(&want["must"]),
            may: reasons(&want["may"]),
            not: reasons(&want["not"]),
        })
        .collect()
}

/// Returns what a diagnosis found.
pub(crate) fn findings(run: &Run) -> Result<Vec<Found>, String> {
    let document = run.json()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = document["findings"].as_array().ok_or("no findings")?;
    Ok(list
        .iter()
        .map(|finding| Found {
            id: text(&finding["id"]),
            severity: text(&finding["severity"]),
            confidence: finding["confidence"].as_f64().unwrap_or(1.0),
            title: text(&finding["title"]),
        })
        .collect())
}

/// Diagnoses files.
pub(crate) fn diagnose(files: &[PathBuf]) -> Result<Vec<Found>, String> {
    let mut args = vec!["diagnose".into(), "--format".into(), "json".into()];
    args.extend(files.iter().map(|file| file.as_os_str().to_owned()));
    findings(&run(args))
}
