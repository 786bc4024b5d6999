//! The address map of one VM, from the text of QEMU's monitor command `info mtree`.
//!
//! Forms: `softmmu/memory.c` (`mtree_info`) of QEMU 1.0 to 9: trees under `address-space:` headings, with the
//! targets of aliases under `memory-region:`; before 2.3 headings are the bare names `memory`, `I/O` and
//! `aliases`; `-f` prints flat views, whose lines have no children and say `@OFFSET` for a part of a region;
//! `-o` adds `owner:{…}` and `parent:{…}`; `-D` adds regions marked `[disabled]`.

mod line;
mod tree;

use crate::DeviceSpace;
use crate::region::RegionHit;

use line::MtreeLine;
use tree::{MtreeTree, Views};

/// Most regions that are kept: a large VM has some thousand.
const MAX_REGIONS: usize = 1 << 16;
/// Most regions around a region; QEMU's trees are some ten deep.
const MAX_DEPTH: usize = 64;
/// Most single notes: what follows is counted.
const MAX_NOTES: usize = 16;

/// An address map.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mtree {
    tree: MtreeTree,
}

impl Mtree {
    /// Reads a text; the notes are what could not be read.
    pub(crate) fn parse(text: &str) -> (Mtree, Vec<String>) {
        let mut reader = MtreeReader::default();
        let mut at = 0;
        for (index, raw) in text.split('\n').enumerate() {
            reader.place = (index + 1, at);
            // As a JSON string the line ends are two characters each; no region has a backslash in its name.
            for piece in raw.split("\\n") {
                reader.line(piece.trim_end_matches("\\r"));
            }
            at += raw.len() + 1;
        }
        reader.finish()
    }

    /// The innermost region at `addr`.
    pub(crate) fn find(&self, space: DeviceSpace, addr: u64) -> Option<RegionHit<'_>> {
        self.tree.find(space, addr)
    }
}

#[derive(Default)]
struct MtreeReader {
    tree: MtreeTree,
    /// Line number and offset of the line being read.
    place: (usize, usize),
    /// What the last heading named, and whether regions followed it: headings without regions add up.
    heading: Views,
    heading_used: bool,
    /// Regions around the next one: column and index.
    open: Vec<(usize, usize)>,
    notes: Vec<String>,
    more_notes: usize,
    dropped: usize,
}

impl MtreeReader {
    fn line(&mut self, text: &str) {
        match line::parse(text) {
            MtreeLine::Other => {}
            // Headings with nothing between them share the tree that follows.
            MtreeLine::AddressSpace(name) => {
                let mut views = Views::of(name);
                if !self.heading_used && self.heading.is_address_space() {
                    views = views.and(self.heading);
                }
                self.begin(views);
            }
            MtreeLine::Target => self.begin(Views::TARGET),
            MtreeLine::FlatView => self.begin(Views::FLAT),
            MtreeLine::FlatSpace(name) => self.begin(Views::of(name).and(self.heading)),
            MtreeLine::Damaged(what) => self.note(what),
            MtreeLine::Region(region) => {
                self.heading_used = true;
                while self
                    .open
                    .last()
                    .is_some_and(|(column, _)| *column >= region.column)
                {
                    self.open.pop();
                }
                if self.tree.len() >= MAX_REGIONS {
                    self.dropped += 1;
                    return;
                }
                let outer = self
                    .open
                    .last()
                    .map(|(column, index)| (*index, region.column - column));
                let index = self.tree.push(&region, outer, self.heading);
                if !self.heading.flat && self.open.len() < MAX_DEPTH {
                    self.open.push((region.column, index));
                }
            }
        }
    }

    fn begin(&mut self, heading: Views) {
        self.heading = heading;
        self.heading_used = false;
        self.open.clear();
    }

    fn note(&mut self, what: &str) {
        if self.notes.len() < MAX_NOTES {
            let (number, offset) = self.place;
            self.notes
                .push(format!("line {number} (byte {offset}): {what}"));
        } else {
            self.more_notes += 1;
        }
    }

    fn finish(mut self) -> (Mtree, Vec<String>) {
        if self.more_notes > 0 {
            self.notes
                .push(format!("{} more lines could not be read", self.more_notes));
        }
        if self.dropped > 0 {
            let kept = self.tree.len();
            self.notes.push(format!(
                "{} regions after the first {kept} were left out",
                self.dropped
            ));
        }
        if self.tree.is_empty() {
            self.notes
                .push("no memory or I/O regions found: not the text of info mtree".to_string());
        }
        (Mtree { tree: self.tree }, self.notes)
    }
}

#[cfg(test)]
mod tests;
