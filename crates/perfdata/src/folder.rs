//! One file of the several that `perf record --threads` makes: its header, and its feature sections behind the records.
//!
//! Source: `tools/perf/util/data.c` (`open_dir`), `tools/perf/util/header.c` (`HEADER_DIR_FORMAT`).

use crate::feature::number::DIR_FORMAT;
pub use crate::header::FILE_HEADER;

/// Where the data section's offset and size are in a header, and the bits of features.
const DATA_OFFSET: usize = 40;
const DATA_SIZE: usize = 48;
const FEATURES: usize = 72;
/// The feature that says that this is one of several files.
const DIRECTORY: usize = DIR_FORMAT as usize;
/// An entry of the table of feature sections: offset and size.
const SECTION: usize = 16;

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes: &[u8; 8] = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

fn put(bytes: &mut [u8], at: usize, value: u64) -> Option<()> {
    let place: &mut [u8; 8] = bytes.get_mut(at..)?.first_chunk_mut()?;
    *place = value.to_le_bytes();
    Some(())
}

/// Returns where the records of a file end that begins with this header; `None` for what is no perf.data of a
/// little-endian machine.
pub fn records_end(head: &[u8]) -> Option<u64> {
    if head.len() < FILE_HEADER || !head.starts_with(b"PERFILE2") {
        return None;
    }
    let end = word(head, DATA_OFFSET)?.checked_add(word(head, DATA_SIZE)?)?;
    (end >= FILE_HEADER as u64).then_some(end)
}

/// Makes a header, and the feature sections that stand behind the records, those of a file with so many bytes more of
/// records, which is a recording by itself. `None` where they are not as perf writes them; then neither is of use.
pub fn join_records(head: &mut [u8], tail: &mut Vec<u8>, added: u64) -> Option<()> {
    let size = word(head, DATA_SIZE)?.checked_add(added)?;
    put(head, DATA_SIZE, size)?;
    let has = |head: &[u8], bit: usize| head[FEATURES + bit / 8] >> (bit % 8) & 1 == 1;
    let before = (0..DIRECTORY).filter(|bit| has(head, *bit)).count();
    let mut gone = 0;
    if has(head, DIRECTORY) {
        head[FEATURES + DIRECTORY / 8] &= !(1 << (DIRECTORY % 8));
        let entry = before * SECTION..(before + 1) * SECTION;
        tail.get(entry.clone())?;
        tail.drain(entry);
        gone = SECTION as u64;
    }
    let sections = (0..256).filter(|bit| has(head, *bit)).count();
    for entry in 0..sections {
        let at = entry * SECTION;
        let offset = word(tail, at)?.checked_add(added)?.checked_sub(gone)?;
        put(tail, at, offset)?;
    }
    Some(())
}
