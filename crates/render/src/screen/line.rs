//! Lines of a screen: what they say, and how each part of them may be coloured.

use textwrap::WordSplitter;
use textwrap::core::display_width;

/// What a part of a line is, for whoever colours it. Nothing is said by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// A heading, or the sentence that counts most.
    Strong,
    /// A severe finding.
    Severe,
    /// A finding of medium severity, or what is missing in a recording.
    Warning,
}

/// A part of a line. It is without anything that steers a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledText {
    /// What it is.
    pub tone: Tone,
    /// Its text.
    pub text: String,
}

/// A line of a screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Its parts, from left to right.
    pub spans: Vec<StyledText>,
}

/// What stands for what was left out of a line.
const CUT: &str = "...";

impl Line {
    /// Returns a line of one part.
    pub(crate) fn new(tone: Tone, text: &str) -> Line {
        Line::default().then(tone, text)
    }

    /// Appends a part.
    pub(crate) fn then(mut self, tone: Tone, text: &str) -> Line {
        let text = crate::clean(text);
        self.spans.push(StyledText { tone, text });
        self
    }

    /// Returns what it says.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns it with so many columns at most.
    pub(crate) fn cut(mut self, width: usize) -> Line {
        if display_width(&self.text()) <= width {
            return self;
        }
        let mut left = width.saturating_sub(CUT.len());
        for span in &mut self.spans {
            let text = fitting(&span.text, left).to_owned();
            left -= display_width(&text);
            if text.len() < span.text.len() {
                left = 0;
            }
            span.text = text;
        }
        self.spans.retain(|span| !span.text.is_empty());
        match self.spans.last_mut() {
            Some(last) => last.text.push_str(CUT),
            None => return Line::new(Tone::Plain, CUT),
        }
        self
    }
}

/// Returns the beginning of a text that has so many columns at most.
fn fitting(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += display_width(c.encode_utf8(&mut [0; 4]));
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// Returns a text with so many columns at most; what is cut off shows as dots.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    Line::new(Tone::Plain, text).cut(columns).text()
}

/// Appends parts to a text while there is room for them.
pub(crate) fn fit(text: &mut String, between: &str, parts: &[String], width: usize) {
    for part in parts {
        let more = format!("{between}{}", crate::clean(part));
        if display_width(text) + display_width(&more) > width {
            return;
        }
        text.push_str(&more);
    }
}

/// Returns a text behind a label, broken at the width and indented under itself, of so many lines at most.
pub(crate) fn wrapped(
    label: (Tone, &str),
    text: (Tone, &str),
    width: usize,
    most: usize,
) -> Vec<Line> {
    let label_width = display_width(label.1);
    let indent = " ".repeat(label_width);
    // A number and its sign stay together.
    let clean = crate::clean(text.1).replace(" %", "\u{a0}%");
    let options = textwrap::Options::new(width.saturating_sub(label_width).max(20))
        .word_splitter(WordSplitter::NoHyphenation);
    let pieces = textwrap::wrap(&clean, options);
    let left_out = pieces.len() > most;
    let room = width.saturating_sub(label_width);
    let lines = pieces.iter().take(most).zip(1..).map(|(piece, number)| {
        let piece = &piece.replace('\u{a0}', " ");
        let begin = match number {
            1 => Line::new(label.0, label.1),
            _ => Line::new(Tone::Plain, &indent),
        };
        if !left_out || number < most {
            return begin.then(text.0, piece);
        }
        let all = format!("{piece} {CUT}");
        match display_width(&all) <= room {
            true => begin.then(text.0, &all),
            false => begin.then(
                text.0,
                &format!("{}{CUT}", fitting(piece, room.saturating_sub(CUT.len()))),
            ),
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_and_shows_so() {
        let line = Line::new(Tone::Strong, "high  ").then(Tone::Plain, "it takes 12 ms");
        assert_eq!(line.clone().cut(20), line);
        let short = line.cut(12);
        assert_eq!(short.text(), "high  it ...");
        assert_eq!(short.spans[0].tone, Tone::Strong);
        assert_eq!(cut("日本語の名前", 7), "日本...");
        assert_eq!(cut("abc", 1), "...");
    }

    #[test]
    fn sentences_are_wrapped_and_end_where_there_is_no_room() {
        let lines = wrapped(
            (Tone::Strong, "why: "),
            (Tone::Plain, "one two three four five six seven"),
            25,
            2,
        );
        let text: Vec<String> = lines.iter().map(Line::text).collect();
        assert_eq!(text, ["why: one two three four", "     five six seven"]);
        let lines = wrapped(
            (Tone::Plain, ""),
            (Tone::Plain, "one two three four five six seven"),
            20,
            1,
        );
        assert_eq!(lines[0].text(), "one two three fou...");
        let lines = wrapped(
            (Tone::Plain, ""),
            (Tone::Plain, "one two three, seventeen"),
            20,
            1,
        );
        assert_eq!(lines[0].text(), "one two three, ...");
    }

    #[test]
    fn nothing_in_a_line_steers() {
        let line = Line::new(Tone::Plain, "a\x1b[31m\nb");
        assert_eq!(line.text(), "a\\x1b[31m\\x0ab");
    }
}
