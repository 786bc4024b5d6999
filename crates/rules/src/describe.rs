//! Rules in Markdown: `RULES.md` is made of what stands with each rule.

use words::{duration, share};

use crate::{EvidenceNumber, Rule};

/// Columns of a line.
const WIDTH: usize = 118;

impl Rule {
    /// Returns the rule as a section of Markdown: what it finds, from which limits on, remedies, what else
    /// looks like it. What `trapline rules` prints beyond that is left to it.
    pub fn describe(&self) -> String {
        let mut out = format!("## {}\n\n", self.id);
        wrapped(&mut out, "", &format!("{}.", plain(self.title)));
        out.push('\n');
        self.bullet(&mut out, "Described as", &plain(&self.descriptions()));
        self.bullet(&mut out, "Looks at", &plain(self.looks_at));
        self.found(&mut out);
        self.bullet(
            &mut out,
            "Not found",
            &format!("less than {}.", plain(self.seen_from)),
        );
        self.bullet(&mut out, "Record", self.unknown);
        self.bullet(&mut out, "Cause", &plain(self.cause));
        out.push('\n');
        for (remedy, number) in self.remedies.iter().zip(1usize..) {
            let mut text = format!("{} *Price*: {}", plain(remedy.what), plain(remedy.price));
            let since = remedy.since();
            if !since.is_empty() {
                text.push_str(&format!(" *From*: {}.", plain(&since)));
            }
            wrapped(&mut out, &format!("{number}. "), &text);
        }
        out.push('\n');
        if !self.advice.is_empty() {
            wrapped(&mut out, "", self.advice);
            out.push('\n');
        }
        self.bullet(&mut out, "Looks alike", self.looks_alike);
        out
    }

    /// Returns how people describe it, as one sentence.
    pub fn descriptions(&self) -> String {
        format!("\"{}\".", self.described_as.join("\"; \""))
    }

    /// Returns what it would have found at least, where it found nothing.
    pub fn least_found(&self) -> String {
        self.with_limits(self.seen_from)
    }

    /// When it finds: the first paragraph, and what stands below it.
    fn found(&self, out: &mut String) {
        let Some((first, others)) = self.found.split_first() else {
            return;
        };
        self.bullet(out, "Found", first);
        for text in others {
            let text = self.with_limits(text);
            if text.starts_with('|') {
                // A table begins in the same item of the list.
                out.push_str(&format!("\n  {}\n\n", text.replace('\n', "\n  ")));
            } else {
                wrapped(out, "- ", &text);
            }
        }
    }

    fn bullet(&self, out: &mut String, label: &str, text: &str) {
        if !text.is_empty() {
            let text = self.with_limits(text);
            wrapped(out, "- ", &format!("**{label}**: {text}"));
        }
    }

    /// Puts limits in the place of their names.
    fn with_limits(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in self.limits {
            text = text.replace(&format!("{{{name}}}"), &limit(*value));
        }
        text
    }
}

/// Returns a limit without digits that say nothing.
fn limit(value: EvidenceNumber) -> String {
    match value {
        EvidenceNumber::Count(count) | EvidenceNumber::Id(count) => count.to_string(),
        EvidenceNumber::Nanoseconds(ns) if ns < 1_000 => format!("{ns} ns"),
        EvidenceNumber::Nanoseconds(ns) => duration::round(ns),
        EvidenceNumber::Share(share) => share::short(share),
        EvidenceNumber::PerSecond(value) | EvidenceNumber::Ratio(value) => value.to_string(),
    }
}

/// Returns a text whose signs Markdown shows as they are.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        if matches!(sign, '<' | '>' | '*' | '|' | '`') {
            out.push('\\');
        }
        out.push(sign);
    }
    out
}

/// Appends a paragraph, broken at the width; what follows the first line stands below its text.
fn wrapped(out: &mut String, begin: &str, text: &str) {
    let mut line = begin.to_owned();
    let indent = " ".repeat(begin.len());
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line.clone_from(&indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}
