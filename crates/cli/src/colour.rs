//! Colour on a terminal.
//!
//! Colour is put around parts of lines that were made plain before, so that nothing in a recording can make any.
//! Everything can be read without it.

use std::io;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use render::neutral;
use render::screen::{Line, Tone};

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Makes it hold for all that is printed.
    pub(crate) fn choose(self) {
        let choice = match self {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// Returns whether standard output gets colours.
pub(crate) fn is_wanted() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

fn style(tone: Tone) -> Style {
    let bold = Style::new().bold();
    match tone {
        Tone::Plain => Style::new(),
        Tone::Strong => bold,
        Tone::Severe => bold.fg_color(Some(AnsiColor::Red.into())),
        Tone::Warning => bold.fg_color(Some(AnsiColor::Yellow.into())),
    }
}

/// Returns a line with its colours.
pub(crate) fn line(line: &Line) -> String {
    let spans = line.spans.iter().map(|span| {
        let style = style(span.tone);
        format!("{style}{}{style:#}", neutral::name(&span.text))
    });
    spans.collect()
}

/// Beginnings of lines that other commands print, and how they are shown.
const LABELS: [(&str, Tone); 2] = [("warning:", Tone::Warning), ("quality:", Tone::Strong)];
/// How severe findings are, as their first line says it.
const SEVERITIES: [(&str, Tone); 2] = [("high", Tone::Severe), ("medium", Tone::Warning)];

/// Returns a text, in which nothing steers, with the labels of its lines in colour: the doubts about a recording, and
/// how severe findings are. No name begins a line, nor stands before a severity.
pub(crate) fn labels(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines
        .map(|line| label(line).unwrap_or_else(|| line.to_owned()))
        .collect()
}

fn label(line: &str) -> Option<String> {
    let paint = |tone: Tone, before: &str, text: &str, after: &str| {
        let style = style(tone);
        Some(format!("{before}{style}{text}{style:#}{after}"))
    };
    for (begin, tone) in LABELS {
        if let Some(rest) = line.strip_prefix(begin) {
            return paint(tone, "", begin, rest);
        }
    }
    // "1. timer-port-exits, high, 608.4ms: ..."
    let (number, rest) = line.split_once(". ")?;
    let (id, rest) = rest.split_once(", ")?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    if !is_number || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return None;
    }
    let before = format!("{number}. {id}, ");
    SEVERITIES.iter().find_map(|(name, tone)| {
        let after = rest.strip_prefix(name)?;
        paint(*tone, &before, name, after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_labels_have_colour() {
        for (text, shown) in [
            ("warning: x\n", "\x1b[1m\x1b[33mwarning:\x1b[0m x\n"),
            ("  warning: x\n", "  warning: x\n"),
            (
                "1. timer-port-exits, high, 3ms\n",
                "1. timer-port-exits, \x1b[1m\x1b[31mhigh\x1b[0m, 3ms\n",
            ),
            ("1. timer-port-exits, low\n", "1. timer-port-exits, low\n"),
            ("task. x y, high\n", "task. x y, high\n"),
        ] {
            assert_eq!(labels(text), shown);
        }
    }
}
