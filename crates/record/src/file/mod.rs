/*!
A perf.data file that can be read at any moment, whatever ends the recorder.

perf writes what its header needs when it ends: a recorder that is killed leaves a file whose size field is 0 and that
has no event formats. Here everything that readers need stands before the data, and the file is whole after every write:

```text
 header | attributes | ids | contents of feature sections | records ... padding | list of feature sections
                                                                                ^ data offset + data size
```

- The list of feature sections has to lie behind the data, but what it lists may lie anywhere, so the contents (the
  formats of events, what machine it was) come first.
- The data ends at a place that lies ahead of what has been written. What lies between is *padding*:
  `PERF_RECORD_FINISHED_ROUND` records, which say nothing at the end of a file and which every reader passes by their
  size. Each leads to the next multiple of a step, where another one stands.
- New records are written over the padding in parts that one padding record can lead over, the first eight bytes of a
  part last: until then a reader passes the part, and from then on it finds the new records, and the padding behind
  them.
- When there is no room left, the list is written again further ahead, with padding before it; then the padding before
  the old list is made to lead over that list, and last the header is changed. Between the last two writes the data ends
  within a padding record, which readers take for the end.

So a recorder may be killed within a write, too.

Source of the format: `tools/perf/Documentation/perf.data-file-format.txt`, `tools/perf/util/header.c`.
*/

mod described;
mod features;
mod head;
mod parts;
mod place;

use std::fs::File;
use std::io::{self, IoSlice};

pub use described::FileEvent;
pub use features::{Feature, Features};
use parts::RecordParts;
pub use place::WritableFile;

/// Bytes of `struct perf_file_header`, and where in it the size of the data stands.
const HEADER: usize = 104;
const DATA_SIZE_AT: usize = 48;

/// Padding records begin at multiples of this, counted from where the data begins: no more than a record's 16 bits of
/// size can say.
const GRID: u64 = 0xf000;
/// Room that is made ahead at least, and at most; between these an eighth of what there is.
const AHEAD: u64 = 1 << 20;
const MOST_AHEAD: u64 = 64 << 20;

/// `PERF_RECORD_FINISHED_ROUND`.
const FINISHED_ROUND: u32 = 68;
/// Bytes of a record's header, which a record has at least.
const RECORD: u64 = 8;
/// Bytes of records that are written at once at most: one padding record can lead over them.
const PART: u64 = GRID;

/// A perf.data file that is being written.
#[derive(Debug)]
pub struct PerfFile<P = File> {
    file: P,
    /// Where the records begin, where the next one goes, and where the data ends by the header.
    begin: u64,
    at: u64,
    end: u64,
    /// Samples among the records.
    samples: u64,
    features: Features,
    /// Where each feature's contents stand: number, offset, size; by number.
    sections: Vec<(u32, u64, u64)>,
}

/// Returns the header of a padding record, or of one that ends a round.
fn round(size: u64) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&FINISHED_ROUND.to_ne_bytes());
    bytes[6..].copy_from_slice(&u16::try_from(size).unwrap_or(8).to_ne_bytes());
    bytes
}

/// The record that ends a round of reading all rings: what came before it and is older than the newest of the round
/// before is in order from here on.
pub const ROUND: [u8; 8] = {
    let kind = FINISHED_ROUND.to_ne_bytes();
    let size = 8u16.to_ne_bytes();
    [kind[0], kind[1], kind[2], kind[3], 0, 0, size[0], size[1]]
};

impl<P: WritableFile> PerfFile<P> {
    /// Begins a recording in an empty file: its events, and what is to be said of the machine and of the recording.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn begin(file: P, events: &[FileEvent], features: Features) -> io::Result<PerfFile<P>> {
        let mut features = features;
        let (head, begin, sections) = head::bytes(events, &features);
        features.settle();
        let (header, rest) = head.split_at(head.len().min(HEADER));
        let mut new = PerfFile {
            file,
            begin,
            at: begin,
            end: begin,
            samples: 0,
            features,
            sections,
        };
        new.write(rest, HEADER as u64)?;
        new.make_room(0)?;
        // What makes it a recording comes last.
        let mut header = header.to_vec();
        let size = (new.end - begin).to_ne_bytes();
        let at = DATA_SIZE_AT;
        header[at..at + size.len()].copy_from_slice(&size);
        new.write(&header, 0)?;
        Ok(new)
    }

    /// Returns how many bytes of records were written.
    pub fn written(&self) -> u64 {
        self.at - self.begin
    }

    /// Returns how many bytes the file has at most if it ends now, with what is said at the end: as much as one padding
    /// record leads over.
    pub fn length(&self) -> u64 {
        self.at + GRID + RECORD
    }

    /// Returns how many of the records that were written are samples: events, and no names, losses or the like.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Appends records, given in pieces: together they are whole records, and a piece has a multiple of eight bytes.
    ///
    /// # Errors
    ///
    /// Those of writing: the file is whole, and [`PerfFile::written`] says how much of the records is in it, whole
    /// records again.
    pub fn append(&mut self, pieces: &[&[u8]]) -> io::Result<()> {
        let length: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        if length == 0 {
            return Ok(());
        }
        if self.at + length + RECORD > self.end {
            self.make_room(length)?;
        }
        let mut parts = RecordParts::of(pieces);
        while let Some(part) = parts.next(PART) {
            self.write_part(&part.pieces, part.length)?;
            self.samples += part.samples;
        }
        Ok(())
    }

    /// Writes records over the padding, as many as a padding record can lead over.
    fn write_part(&mut self, pieces: &[&[u8]], length: u64) -> io::Result<()> {
        let next = self.at + length;
        let behind = round(self.leads_to(next) - next);
        let mut pieces = pieces.iter().copied();
        let first = pieces.next().unwrap_or_default();
        let (first, rest) = first.split_at(first.len().min(ROUND.len()));
        let mut rest: Vec<IoSlice<'_>> = std::iter::once(rest)
            .chain(pieces)
            .filter(|piece| !piece.is_empty())
            .map(IoSlice::new)
            .collect();
        if next > self.leads_to(self.at) {
            // The padding that is to be overwritten holds another one's beginning: until it is, readers are led over
            // all of it.
            self.write(&behind, next)?;
            self.write(&round(length), self.at)?;
        } else {
            rest.push(IoSlice::new(&behind));
        }
        self.file.write_all(&mut rest, self.at + RECORD)?;
        self.write(first, self.at)?;
        self.at = next;
        Ok(())
    }

    /// Changes what is said of a feature; [`PerfFile::finish`] writes it.
    pub fn set(&mut self, feature: Feature) {
        self.features.set(feature);
    }

    /// Ends the recording in order: nothing is left ahead, and what [`PerfFile::set`] changed is written.
    ///
    /// # Errors
    ///
    /// Those of writing: the file is whole all the same.
    pub fn finish(mut self) -> io::Result<()> {
        // The last padding becomes the last record, and the list comes behind it, with contents that are new.
        let changed = |(number, _, _): &(u32, u64, u64)| self.features.changed(*number);
        let new: u64 = self
            .sections
            .iter()
            .filter_map(changed)
            .map(|new| new.len() as u64)
            .sum();
        let end = self.at + RECORD;
        let list_end = end + self.list_length();
        // Contents too long for padding to lead over them stand behind everything.
        let beside = list_end + new - self.at <= GRID;
        let led_over = if beside { list_end + new } else { list_end };
        let led_over = led_over.next_multiple_of(RECORD);
        if led_over + RECORD > self.end {
            self.make_room(led_over - self.at)?;
        }
        let contents_at = match beside {
            true => list_end,
            false => self.end + self.list_length(),
        };
        let mut contents = Vec::new();
        for (number, offset, size) in &mut self.sections {
            if let Some(changed) = self.features.changed(*number) {
                *offset = contents_at + contents.len() as u64;
                *size = changed.len() as u64;
                contents.extend_from_slice(changed);
            }
        }
        if led_over > self.leads_to(self.at) {
            self.write(&round(self.leads_to(led_over) - led_over), led_over)?;
            self.write(&round(led_over - self.at), self.at)?;
        }
        self.write(&contents, contents_at)?;
        let text = list(&self.sections);
        self.write(&text, end)?;
        self.set_end(end)?;
        self.write(&ROUND, self.at)?;
        self.file
            .set_length((contents_at + contents.len() as u64).max(end + text.len() as u64))
    }

    /// Makes room for so many bytes and what is to come.
    fn make_room(&mut self, length: u64) -> io::Result<()> {
        let ahead = (self.written() / 8).clamp(AHEAD, MOST_AHEAD);
        let end = self.place_of_list(self.at + length + ahead);
        let text = list(&self.sections);
        self.write(&text, end)?;
        let old = self.end;
        let mut at = self.next_on_grid(old);
        while at < end {
            let next = (at + GRID).min(end);
            self.write(&round(next - at), at)?;
            at = next;
        }
        // The last padding before the old list leads over it from now on.
        let steps = (old - self.begin).saturating_sub(1) / GRID;
        let last = self.at.max(self.begin + steps * GRID);
        self.write(&round(self.next_on_grid(last) - last), last)?;
        self.set_end(end)?;
        self.end = end;
        Ok(())
    }

    /// Returns the first place from this one on where the list may stand: no padding begins in it, since there is none
    /// to be overwritten while the list is in use.
    fn place_of_list(&self, at: u64) -> u64 {
        let at = at.next_multiple_of(RECORD);
        let grid = self.next_on_grid(at - 1);
        match grid < at + self.list_length() {
            true => grid + RECORD,
            false => at,
        }
    }

    /// Returns how many bytes the list of feature sections has, which does not change.
    fn list_length(&self) -> u64 {
        16 * self.sections.len() as u64
    }

    /// Returns the first place behind this one where padding begins anew.
    fn next_on_grid(&self, at: u64) -> u64 {
        let past = at - self.begin + 1;
        self.begin + past.next_multiple_of(GRID)
    }

    /// Returns where padding that begins at a place leads to.
    fn leads_to(&self, at: u64) -> u64 {
        self.next_on_grid(at).min(self.end)
    }

    fn set_end(&mut self, end: u64) -> io::Result<()> {
        let size = (end - self.begin).to_ne_bytes();
        self.write(&size, DATA_SIZE_AT as u64)
    }

    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all(&mut [IoSlice::new(bytes)], at)
    }
}

/// Returns a recording as the bytes of a file: for whoever reads it at once.
pub fn in_memory(events: &[FileEvent], features: &Features, records: &[&[u8]]) -> Vec<u8> {
    let (mut bytes, begin, sections) = head::bytes(events, features);
    for piece in records {
        bytes.extend_from_slice(piece);
    }
    let size = (bytes.len() as u64 - begin).to_ne_bytes();
    let at = DATA_SIZE_AT;
    bytes[at..at + size.len()].copy_from_slice(&size);
    bytes.extend(list(&sections));
    bytes
}

/// Returns the list of feature sections.
fn list(sections: &[(u32, u64, u64)]) -> Vec<u8> {
    let places = sections.iter();
    let words = places.flat_map(|(_, offset, size)| [*offset, *size]);
    words.flat_map(u64::to_ne_bytes).collect()
}
