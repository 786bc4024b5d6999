//! Rows of `perf report --hierarchy` (`tools/perf/ui/stdio/hist.c`, `hist_entry__hierarchy_fprintf`): a row for each
//! node of a tree, whose share moves to the right by three columns with each level. What is kept are its leaves, each
//! with what stands above it, and what a node has beyond those that were printed.

use crate::number::count;
use crate::perf_report_row::{ShareColumns, TextColumn, first_word, level, shares};
use crate::types::SampledShare;

/// Columns by which a level is moved to the right (`HIERARCHY_INDENT`).
const INDENT: usize = 3;
/// What is left of a node is kept from this share on: printed shares are rounded.
const LEFT: f64 = 0.000_5;

/// A node of the tree, and what its children have of it.
#[derive(Debug)]
struct ShareNode {
    row: SampledShare,
    children: f64,
}

/// The node under way with those above it.
#[derive(Debug, Default)]
pub(crate) struct ShareTree {
    path: Vec<ShareNode>,
    /// Where the first row's share ended.
    base: Option<usize>,
}

impl ShareTree {
    /// Takes a line; returns the rows that are known now, or `None` if it is no row.
    pub(crate) fn line(
        &mut self,
        text: &str,
        line: u64,
        columns: &ShareColumns,
    ) -> Option<Vec<SampledShare>> {
        // Where all below a node is less than what was asked for.
        if text.trim_start().starts_with("no entry >=") {
            return Some(Vec::new());
        }
        let (parts, mut rest) = shares(text);
        let [own] = parts[..] else {
            return None;
        };
        let end = text.find('%')?;
        let base = *self.base.get_or_insert(end);
        let moved = end.checked_sub(base)?;
        let depth = moved / INDENT;
        if moved % INDENT != 0 || depth > self.path.len() || depth >= columns.texts.len() {
            return None;
        }
        let mut row = match depth.checked_sub(1).and_then(|above| self.path.get(above)) {
            Some(above) => above.row.clone(),
            None => SampledShare::default(),
        };
        (row.line, row.own, row.samples) = (line, own, None);
        for number in 0..columns.counts {
            let (word, more) = first_word(rest)?;
            let value = count(word)?;
            if columns.samples == Some(number) {
                row.samples = Some(value);
            }
            rest = more;
        }
        let name = rest.trim();
        match columns.texts.get(depth)? {
            TextColumn::Command => row.comm = Some(name.to_owned()),
            TextColumn::IdCommand => {
                let (id, comm) = name.split_once(':')?;
                row.id = Some(id.trim().parse().ok()?);
                row.comm = Some(comm.to_owned());
            }
            TextColumn::Object => row.object = Some(name.to_owned()),
            TextColumn::Symbol => {
                let (mark, symbol) = level(name)?;
                row.level = Some(mark);
                row.symbol = Some(symbol.to_owned());
            }
            TextColumn::Other => {}
        }
        let out = self.end(depth);
        if let Some(above) = self.path.last_mut() {
            above.children += own;
        }
        self.path.push(ShareNode { row, children: 0.0 });
        Some(out)
    }

    /// Ends the nodes from a depth on; returns what is known of them now.
    pub(crate) fn end(&mut self, depth: usize) -> Vec<SampledShare> {
        // The innermost first, as they were printed.
        let ended = self.path.drain(depth.min(self.path.len())..).rev();
        let left = ended.map(|node| {
            let left = ((node.row.own - node.children) * 10_000.0).round() / 10_000.0;
            let mut row = node.row;
            if node.children > 0.0 {
                (row.own, row.samples) = (left, None);
            }
            (row, node.children > 0.0)
        });
        let kept = left.filter(|(row, is_rest)| !is_rest || row.own >= LEFT);
        kept.map(|(row, _)| row).collect()
    }
}
