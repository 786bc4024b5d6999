//! The tables of `perf kvm stat report`.

/// One row, as perf prints it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// First column.
    pub key: String,
    /// Exits.
    pub samples: u64,
    /// Minimum, maximum and mean, as printed: microseconds with two decimals.
    pub min: String,
    /// Maximum.
    pub max: String,
    /// Mean.
    pub avg: String,
    /// The whole row with its white space folded.
    pub line: String,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Table {
    /// Rows in the order printed.
    pub rows: Vec<Row>,
    /// The line of totals.
    pub totals: String,
}

impl Table {
    /// Returns the row with a key.
    pub(crate) fn row(&self, key: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.key == key)
    }

    /// Returns all rows, sorted: perf leaves rows of equal counts in any order.
    pub(crate) fn sorted(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.rows.iter().map(|row| row.line.as_str()).collect();
        lines.sort_unstable();
        lines
    }
}

/// Reads a table: `KEY SAMPLES % % MINus MAXus AVGus ( +- % )`.
pub(crate) fn parse(text: &str) -> Table {
    let mut table = Table::default();
    for line in text.lines() {
        let line = super::fold(line);
        if line.starts_with("Total Samples:") {
            table.totals = line;
            continue;
        }
        let Some((left, _)) = line.split_once(" ( +-") else {
            continue;
        };
        let words: Vec<&str> = left.split(' ').collect();
        let [key @ .., samples, samples_share, time_share, min, max, avg] = words.as_slice() else {
            continue;
        };
        let Ok(samples) = samples.parse() else {
            continue;
        };
        assert!(
            samples_share.ends_with('%') && time_share.ends_with('%'),
            "{line}"
        );
        let time = |text: &str| text.strip_suffix("us").expect("a time").to_owned();
        table.rows.push(Row {
            key: key.join(" "),
            samples,
            min: time(min),
            max: time(max),
            avg: time(avg),
            line,
        });
    }
    table
}
