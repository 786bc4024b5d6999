//! Which recordings to open first, and where.

use std::collections::BTreeMap;

use serde::Serialize;

use super::data::FleetData;
use super::metrics::ChangedHost;

/// Recordings that are named.
const SHOWN: usize = 3;
/// What is shown around a moment, in nanoseconds.
const AROUND_NS: f64 = 50e6;

/// A recording to open.
#[derive(Debug, Serialize)]
pub(crate) struct RecordingToOpen {
    pub(crate) host: String,
    pub(crate) input: String,
    /// Why, in a sentence.
    pub(crate) why: String,
    /// The command that opens it.
    pub(crate) command: String,
    /// The seconds in which a thread waited longest for a CPU, by the recording's clock.
    pub(crate) from_s: Option<f64>,
    pub(crate) to_s: Option<f64>,
}

/// Returns a word as a shell takes it.
fn shell(word: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_./:@%+=,".contains(char);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns the recordings of the day that say most: first those whose findings cost most of their time, each cause
/// once as long as there are others, then those that changed most.
pub(crate) fn of(data: &FleetData, news: &[ChangedHost]) -> Vec<RecordingToOpen> {
    let mut chosen: BTreeMap<String, String> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut choose = |run: &str, why: String| {
        if order.len() < SHOWN && !chosen.contains_key(run) {
            chosen.insert(run.to_owned(), why);
            order.push(run.to_owned());
        }
    };
    let mut findings: Vec<_> = data
        .findings
        .iter()
        .filter(|one| one.day == data.day)
        .collect();
    findings.sort_by(|one, other| other.cost_share.total_cmp(&one.cost_share));
    let mut seen: Vec<&str> = Vec::new();
    for finding in findings.iter().filter(|one| one.severity != "low") {
        if !seen.contains(&finding.id.as_str()) {
            seen.push(&finding.id);
            choose(
                &finding.run,
                format!(
                    "{} costs {:.1} % there, the most of all hosts",
                    finding.id,
                    100.0 * finding.cost_share
                ),
            );
        }
    }
    for one in news {
        let mut runs = data.of_day().filter(|run| run.host == one.host);
        if let Some(run) = runs.next() {
            choose(
                &run.run,
                format!(
                    "{}: {:.1} times what its peers' change would make it",
                    one.metric, one.ratio
                ),
            );
        }
    }
    let runs = order
        .iter()
        .filter_map(|id| data.of_day().find(|run| run.run == *id));
    runs.map(|run| {
        let wait = data.waits.get(&run.run);
        let from_s = wait.map(|wait| (wait.at_ns - wait.wait_ns - AROUND_NS).max(0.0) / 1e9);
        let to_s = wait.map(|wait| (wait.at_ns + AROUND_NS) / 1e9);
        let window = from_s
            .zip(to_s)
            .map(|(from, to)| format!(" --time {from:.3},{to:.3}"));
        RecordingToOpen {
            host: run.host.clone(),
            input: run.input.clone(),
            why: chosen.get(&run.run).cloned().unwrap_or_default(),
            command: format!("trapline report {}", shell(&run.input)) + &window.unwrap_or_default(),
            from_s,
            to_s,
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::shell;

    #[test]
    fn names_are_words_of_a_shell() {
        assert_eq!(shell("a/b-c.data"), "a/b-c.data");
        assert_eq!(shell("it's; rm"), r"'it'\''s; rm'");
        assert_eq!(shell(""), "''");
    }
}
