//! What has to be known of a recording, in words.

use event::Quality;

use crate::{sched, vcpus};

/// Returns the lines that stand below every table: what was lost, whether the end is missing, which part of the events
/// is counted somewhere in the answer, and all doubts.
pub fn lines(name: &str, quality: &Quality, width: usize) -> String {
    let mut parts = Vec::new();
    match quality.lost_events {
        0 => parts.push("no events lost".to_owned()),
        lost => parts.push(format!("{} lost", words::plural(lost, "event"))),
    }
    parts.push(quality.extent().to_owned());
    parts.extend(quality.accounted.map(|accounted| accounted.text()));
    let mut out = String::new();
    wrap(
        &mut out,
        "quality: ",
        &format!("{name}: {}", parts.join(", ")),
        width,
    );
    out + &doubts(quality, width)
}

/// Returns a line for each doubt, broken at the width.
pub fn doubts(quality: &Quality, width: usize) -> String {
    let mut out = String::new();
    for doubt in &quality.all_doubts() {
        wrap(&mut out, "warning: ", &with_columns(&doubt.text()), width);
    }
    out
}

/// Appends text behind a label, broken at the width and indented under itself. Names and paths have hyphens, and are
/// not broken there, so that they can be found and copied.
pub fn wrap(out: &mut String, label: &str, text: &str, width: usize) {
    let indent = " ".repeat(label.len());
    let text = crate::clean(text);
    let options = textwrap::Options::new(width.max(40))
        .initial_indent(label)
        .subsequent_indent(&indent)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    for line in textwrap::wrap(&text, options) {
        out.push_str(&line);
        out.push('\n');
    }
}

/// Returns a text about vCPUs and tasks in which members of JSON are called as columns of tables are.
pub(crate) fn with_columns(text: &str) -> String {
    let text = vcpus::columns().with_columns(text);
    sched::tasks().with_columns(&text)
}

/// Returns the same with columns as they are called on a page.
pub fn on_page(text: &str) -> String {
    let text = vcpus::columns().with_headings(text);
    sched::tasks().with_headings(&text)
}
