//! Names that several machines have: a clone keeps the name of what it was made of.
//!
//! A machine is known by `host.machine_id` of the facts that were stored with its recordings. Recordings without one
//! are taken for those of the machine that their name says; that they are of several shows where their CPUs are of
//! different models.

use std::collections::{BTreeMap, BTreeSet};

use super::data::FleetRun;

/// The fact that says which machine a recording is of.
const MACHINE_ID: &str = "host.machine_id";
/// What differs between machines and does not change while a machine lives.
const MODELS: [&str; 2] = ["arch", "cpu_model"];
/// Digits of a machine's id that its host's name gets, unless more are needed.
const DIGITS: usize = 6;

/// Recordings of hosts whose names are those of several machines.
#[derive(Debug, Default)]
pub(crate) struct SharedNames {
    /// By recording the name that its host has here.
    by_run: BTreeMap<String, String>,
    /// A sentence for each name.
    pub(crate) sentences: Vec<String>,
}

impl SharedNames {
    /// Gives hosts names of their own, where several machines have one.
    pub(crate) fn separate(runs: &mut [FleetRun]) -> SharedNames {
        let mut machines: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut models: BTreeMap<&str, BTreeSet<Vec<&str>>> = BTreeMap::new();
        for run in &*runs {
            let of_name = machines.entry(&run.host).or_default();
            match run.facts.get(MACHINE_ID) {
                Some(id) => {
                    of_name.insert(id);
                }
                None => {
                    let all = MODELS.map(|name| run.facts.get(name).map(String::as_str));
                    // A recording that does not say it says nothing against the others.
                    if let Some(all) = all.into_iter().collect() {
                        models.entry(&run.host).or_default().insert(all);
                    }
                }
            }
        }
        let mut names = SharedNames::default();
        let mut called: BTreeMap<(String, String), String> = BTreeMap::new();
        for (host, ids) in machines.into_iter().filter(|(_, ids)| ids.len() > 1) {
            let digits = digits(&ids);
            let new = ids.iter().map(|id| {
                let short = id.get(..digits).unwrap_or(id);
                let name = format!("{host} ({short})");
                called.insert((host.to_owned(), (*id).to_owned()), name.clone());
                name
            });
            let new: Vec<String> = new.collect();
            names.sentences.push(format!(
                "{host} is the name of {} machines, which have other machine ids: {}.",
                ids.len(),
                new.join(", ")
            ));
        }
        for (host, models) in models.into_iter().filter(|(_, models)| models.len() > 1) {
            names.sentences.push(format!(
                "{host} seems to be the name of {} machines: their CPUs are of different models. They are taken for \
                 one, since facts with a machine id were not stored; 'trapline export --host NAME' names them.",
                models.len()
            ));
        }
        for run in runs {
            let id = run.facts.get(MACHINE_ID).cloned().unwrap_or_default();
            if let Some(name) = called.get(&(run.host.clone(), id)) {
                run.host.clone_from(name);
                names.by_run.insert(run.run.clone(), name.clone());
            }
        }
        names
    }

    /// Returns what the host of a recording is called.
    pub(crate) fn host(&self, name: String, run: &str) -> String {
        self.by_run.get(run).cloned().unwrap_or(name)
    }
}

/// Returns how many digits of these ids are needed so that no two are alike.
fn digits(ids: &BTreeSet<&str>) -> usize {
    let longest = ids.iter().map(|id| id.len()).max().unwrap_or(0);
    let all_differ = |digits: &usize| {
        let short: BTreeSet<&str> = ids
            .iter()
            .map(|id| id.get(..*digits).unwrap_or(id))
            .collect();
        short.len() == ids.len()
    };
    (DIGITS..longest).find(all_differ).unwrap_or(longest)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn run(run: &str, host: &str, facts: &[(&str, &str)]) -> FleetRun {
        let facts = facts.iter();
        FleetRun {
            host: host.to_owned(),
            run: run.to_owned(),
            day: "2026-01-01".to_owned(),
            input: String::new(),
            can_tell: Arc::default(),
            lost_events: 0.0,
            truncated: false,
            facts: Arc::new(
                facts
                    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                    .collect(),
            ),
        }
    }

    /// Two machines of one name are two hosts; a host whose recordings are of one machine keeps its name.
    #[test]
    fn machines_of_one_name_are_several_hosts() {
        let mut runs = [
            run("1", "web", &[(MACHINE_ID, "aaaaaa01")]),
            run("2", "web", &[(MACHINE_ID, "aaaaaa02")]),
            run("3", "web", &[]),
            run("4", "db", &[(MACHINE_ID, "cccccc01")]),
            run("5", "db", &[(MACHINE_ID, "cccccc01")]),
        ];
        let names = SharedNames::separate(&mut runs);
        let hosts: Vec<&str> = runs.iter().map(|run| run.host.as_str()).collect();
        assert_eq!(
            hosts,
            ["web (aaaaaa01)", "web (aaaaaa02)", "web", "db", "db"]
        );
        assert_eq!(names.host("web".to_owned(), "2"), "web (aaaaaa02)");
        assert_eq!(names.host("web".to_owned(), "3"), "web");
        assert_eq!(
            names.sentences,
            [
                "web is the name of 2 machines, which have other machine ids: web (aaaaaa01), web (aaaaaa02)."
            ]
        );
        let ids = BTreeSet::from(["abcdef01", "bbcdef01"]);
        assert_eq!(digits(&ids), DIGITS);
    }

    /// Without machine ids several models of CPUs under one name are said, and they stay one host.
    #[test]
    fn models_show_that_a_name_is_that_of_several() {
        let intel = [("arch", "x86_64"), ("cpu_model", "Xeon")];
        let amd = [("arch", "x86_64"), ("cpu_model", "EPYC")];
        let mut runs = [
            run("1", "localhost", &intel),
            run("2", "localhost", &amd),
            run("3", "localhost", &[("arch", "x86_64")]),
            run("4", "web", &intel),
            run("5", "web", &intel),
        ];
        let names = SharedNames::separate(&mut runs);
        assert!(runs[..3].iter().all(|run| run.host == "localhost"));
        let [sentence] = names.sentences.as_slice() else {
            panic!("{:?}", names.sentences);
        };
        assert!(
            sentence.starts_with("localhost seems to be the name of 2 machines"),
            "{sentence}"
        );
    }
}
