//! What readers of scores have in common: cleaned lines, numbers, and outputs that were pasted as one line.

use crate::score::Score;

/// A cleaned line, or a part of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PastedLine<'t> {
    /// Counted from 1.
    pub number: u64,
    pub text: &'t str,
}

/// Reads one tool's output, line by line.
pub(crate) trait ScoreReader {
    /// Takes a line, whosever it is.
    fn take(&mut self, line: PastedLine<'_>, out: &mut Vec<Score>);

    /// Ends the text.
    fn end(&mut self, out: &mut Vec<Score>);

    /// Returns what begins a line of the tool's, by which an output that was pasted as one line is cut.
    fn labels(&self) -> &'static [&'static str];
}

/// So many of a tool's labels in one line are several lines.
const SEVERAL: usize = 3;

/// Cuts a line before each label, if it is several.
pub(crate) fn unrolled<'t>(text: &'t str, labels: &[&str]) -> Vec<&'t str> {
    // Most lines have none, and many are too short for several.
    let shortest = labels.iter().map(|label| label.len()).min();
    if shortest.is_none_or(|shortest| text.len() + 1 < SEVERAL * (shortest + 1)) {
        return vec![text];
    }
    let mut cuts: Vec<usize> = Vec::new();
    for label in labels {
        let word = |at: &usize| *at == 0 || text.as_bytes()[at - 1] == b' ';
        cuts.extend(text.match_indices(label).map(|(at, _)| at).filter(word));
    }
    if cuts.len() < SEVERAL {
        return vec![text];
    }
    cuts.push(0);
    cuts.push(text.len());
    cuts.sort_unstable();
    cuts.dedup();
    let pairs = cuts.windows(2);
    pairs
        .filter_map(|pair| text.get(*pair.first()?..*pair.last()?))
        .collect()
}

/// Reads a number without sign, with a decimal point or comma.
pub(crate) fn decimal(text: &str) -> Option<f64> {
    let is_plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',');
    let starts = text.starts_with(|c: char| c.is_ascii_digit());
    if !starts || !text.bytes().all(is_plain) {
        return None;
    }
    text.replace(',', ".").parse().ok()
}

/// Reads the number that a text begins with, and returns what is behind it.
pub(crate) fn leading(text: &str) -> Option<(f64, &str)> {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let end = text.find(|c: char| !is_number(c)).unwrap_or(text.len());
    let (number, _) = text.split_at(end);
    let trimmed = number.trim_end_matches([',', '.']);
    Some((decimal(trimmed)?, text.get(trimmed.len()..)?))
}

/// Returns what is behind a label at the beginning of a line, without blanks.
pub(crate) fn behind<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    Some(text.trim_start().strip_prefix(label)?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_points_or_commas() {
        assert_eq!(decimal("280.83"), Some(280.83));
        assert_eq!(decimal("280,83"), Some(280.83));
        for other in ["", "-1", "1.2.3", "1e5", ".5", "x"] {
            assert_eq!(decimal(other), None, "{other}");
        }
        assert_eq!(leading("5120, BW=3"), Some((5120.0, ", BW=3")));
        assert_eq!(leading("12.3k"), Some((12.3, "k")));
        assert_eq!(leading("k"), None);
    }

    #[test]
    fn a_line_with_several_labels_is_cut() {
        let labels = ["total time:", "total number:", "min:"];
        let cut = |text| unrolled(text, &labels);
        assert_eq!(
            cut("General: total time: 1s total number: 5 min: 3"),
            ["General: ", "total time: 1s ", "total number: 5 ", "min: 3"]
        );
        assert_eq!(cut("total time: 1s min: 3"), ["total time: 1s min: 3"]);
    }
}
