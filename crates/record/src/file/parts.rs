//! Records that come in pieces, cut where records end.

use rings::{SIZE_PLACE, record_type};

/// Bytes of a record's header.
const HEADER: usize = 8;

/// Records in pieces. A ring begins anew anywhere, so a record may begin in one piece and end in the next; a piece has
/// a multiple of eight bytes, as records have, so that no header is cut.
#[derive(Debug)]
pub(super) struct RecordParts<'p> {
    pieces: &'p [&'p [u8]],
    /// Where the next part begins: which piece, and where in it.
    piece: usize,
    at: usize,
}

/// Some whole records.
#[derive(Debug, Default)]
pub(super) struct RecordPart<'p> {
    /// Their bytes; none of the pieces is empty.
    pub pieces: Vec<&'p [u8]>,
    pub length: u64,
    /// How many are samples.
    pub samples: u64,
}

impl<'p> RecordParts<'p> {
    pub(super) fn of(pieces: &'p [&'p [u8]]) -> RecordParts<'p> {
        RecordParts {
            pieces,
            piece: 0,
            at: 0,
        }
    }

    /// Returns as many records as have so many bytes at most, and at least one; `None` at the end.
    pub(super) fn next(&mut self, most: u64) -> Option<RecordPart<'p>> {
        let mut part = RecordPart::default();
        let mut from = self.at;
        while let Some(bytes) = self.pieces.get(self.piece) {
            let full = self.walk(bytes, most, &mut part);
            let to = self.at.min(bytes.len());
            if from < to {
                part.pieces.push(&bytes[from..to]);
            }
            if full {
                break;
            }
            // What is left of a record that goes on in the next piece.
            self.at -= to;
            self.piece += 1;
            from = 0;
        }
        // Of a record that is not there to its end, what is there.
        part.length = part.pieces.iter().map(|piece| piece.len() as u64).sum();
        (part.length > 0).then_some(part)
    }

    /// Goes from record to record in one piece. Returns whether the part is full.
    fn walk(&mut self, bytes: &[u8], most: u64, part: &mut RecordPart<'_>) -> bool {
        while let Some(header) = bytes.get(self.at..self.at + HEADER) {
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let size = u16::from_ne_bytes([header[SIZE_PLACE], header[SIZE_PLACE + 1]]);
            let size = usize::from(size).max(HEADER);
            if part.length > 0 && part.length + size as u64 > most {
                return true;
            }
            part.length += size as u64;
            part.samples += u64::from(kind == record_type::SAMPLE);
            self.at += size;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, size: u16) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(0u16.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.resize(usize::from(size), 0xff);
        bytes
    }

    #[test]
    fn parts_are_whole_records_wherever_the_ring_cuts_them() {
        let all = [record(9, 48), record(3, 24), record(9, 8), record(9, 56)].concat();
        for cut in (0..=all.len()).step_by(8) {
            for most in (0..=all.len() + 8).step_by(8) {
                let (first, second) = all.split_at(cut);
                let pieces = [first, second];
                let mut parts = RecordParts::of(&pieces);
                let (mut joined, mut samples) = (Vec::new(), 0);
                while let Some(part) = parts.next(most as u64) {
                    let bytes = part.pieces.concat();
                    assert_eq!(bytes.len() as u64, part.length, "cut at {cut}, {most}");
                    assert!(bytes.len() <= most.max(56));
                    assert!(bytes[4..6] == [0, 0], "a record begins there");
                    joined.extend(bytes);
                    samples += part.samples;
                }
                assert_eq!((joined.as_slice(), samples), (all.as_slice(), 3));
            }
        }
    }
}
