//! What a recording holds, for messages about what it does not.

use analysis::{Info, Study};
use source::RecordingReader;

/// Kinds of events that a message names.
const KINDS: usize = 4;

/// Names a recording's most frequent kinds of events.
pub(crate) fn holds(reader: &RecordingReader<'_>) -> String {
    let mut study = Study::default();
    let info = study.add(Info::new());
    reader.walk(&mut study);
    let answers = study.finish();
    let events = answers.take(info).report(&study.walked()).events;
    let happened = events.iter().filter(|event| event.count > 0);
    let mut names: Vec<String> = happened
        .clone()
        .take(KINDS)
        .map(|event| format!("{} {}", event.count, event.name))
        .collect();
    let more = happened.count().saturating_sub(KINDS);
    if more > 0 {
        names.push(words::plural(more, "more kind"));
    }
    if names.is_empty() {
        "it holds no events at all".to_owned()
    } else {
        format!("it holds {}", names.join(", "))
    }
}
