//! What stands before the records: the header, attributes of events, their ids, contents of feature sections.

use super::HEADER;
use super::described::FileEvent;
use super::features::Features;

/// Bytes of an attribute in a file: the structure, and place and size of its ids.
const ATTR: u64 = rings::SIZE as u64 + 16;
/// Words of the bitmap of features.
const WORDS: usize = 4;

/// Returns the bytes, where the records begin, and where each feature's contents stand (number, offset, size).
pub(super) fn bytes(
    events: &[FileEvent],
    features: &Features,
) -> (Vec<u8>, u64, Vec<(u32, u64, u64)>) {
    let mut features = features.clone();
    features.describe(events);
    let attrs = ATTR * events.len() as u64;
    let header = HEADER as u64;
    let mut place = header + attrs;
    let mut ids = Vec::new();
    let mut table = Vec::new();
    for event in events {
        let size = 8 * event.ids.len() as u64;
        table.extend_from_slice(&event.attr);
        table.extend([place, size].into_iter().flat_map(u64::to_ne_bytes));
        ids.extend(event.ids.iter().flat_map(|id| id.to_ne_bytes()));
        place += size;
    }
    let mut contents = Vec::new();
    let mut sections = Vec::new();
    let mut bits = [0u64; WORDS];
    for (number, bytes) in features.all() {
        sections.push((number, place, bytes.len() as u64));
        contents.extend_from_slice(bytes);
        // The next one begins at a multiple of 8 again, and so do the records.
        contents.resize(contents.len().next_multiple_of(8), 0);
        place += bytes.len().next_multiple_of(8) as u64;
        if let Some(word) = bits.get_mut(number as usize / 64) {
            *word |= 1 << (number % 64);
        }
    }
    let mut head = Vec::new();
    head.extend_from_slice(if cfg!(target_endian = "big") {
        b"2ELIFREP"
    } else {
        b"PERFILE2"
    });
    // Attributes, data, and a section that nothing uses any more; then the bitmap.
    let sections_of_file = [header, attrs, place, 0, 0, 0];
    let words = [header, ATTR].into_iter().chain(sections_of_file);
    head.extend(words.chain(bits).flat_map(u64::to_ne_bytes));
    head.extend([table, ids, contents].concat());
    (head, place, sections)
}
