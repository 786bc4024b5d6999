//! Makes small recordings out of large ones: perf.data.
//!
//! Layout as in `tools/perf/Documentation/perf.data-file-format.txt`.

/// Bytes of `struct perf_file_header`, and where its fields are.
const FILE_HEADER: u64 = 104;
const DATA_AT: usize = 40;
const DATA_SIZE: usize = 48;
const FEATURES: usize = 72;

/// `PERF_RECORD_SAMPLE`, `PERF_RECORD_HEADER_TRACING_DATA`, and the compressed ones.
const SAMPLE: u32 = 9;
const TRACING_DATA: u32 = 66;
const COMPRESSED: [u32; 2] = [81, 83];

fn number<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk().copied()
}

fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    number(data, at).map(u64::from_le_bytes)
}

/// Returns the recording with about `limit` bytes of records, and complete otherwise. `None` when it is none
/// of a little-endian machine.
pub(crate) fn trim(data: &[u8], limit: usize) -> Option<Vec<u8>> {
    if !data.starts_with(b"PERFILE2") {
        return None;
    }
    if u64_at(data, 8)? == 16 {
        return Some(data[..cut(data, 16, data.len(), limit)].to_vec());
    }
    if u64_at(data, 8)? != FILE_HEADER {
        return None;
    }
    let start = usize::try_from(u64_at(data, DATA_AT)?).ok()?;
    let size = usize::try_from(u64_at(data, DATA_SIZE)?).ok()?;
    let end = start.checked_add(size)?.min(data.len());
    let cut = cut(data, start, end, limit);
    let mut out = data.get(..cut)?.to_vec();
    if size == 0 || start + size > data.len() {
        // Cut off already: its header promises more than there is, and there are no features.
        return Some(out);
    }
    out[DATA_SIZE..DATA_SIZE + 8].copy_from_slice(&((cut - start) as u64).to_le_bytes());
    let features: u32 = data[FEATURES..FEATURES + 32]
        .iter()
        .map(|b| b.count_ones())
        .sum();
    let table = start + size;
    let mut sections = Vec::new();
    let mut at = out.len() + features as usize * 16;
    for feature in 0..features as usize {
        let place = usize::try_from(u64_at(data, table + feature * 16)?).ok()?;
        let size = usize::try_from(u64_at(data, table + feature * 16 + 8)?).ok()?;
        out.extend((at as u64).to_le_bytes());
        out.extend((size as u64).to_le_bytes());
        sections.extend_from_slice(data.get(place..place.checked_add(size)?)?);
        at += size;
    }
    out.extend(sections);
    Some(out)
}

/// Returns where the record ends with which `limit` bytes from the first sample on are full.
fn cut(data: &[u8], start: usize, end: usize, limit: usize) -> usize {
    let mut at = start;
    let mut first = None;
    while at < end {
        let Some(header) = u64_at(data, at) else {
            break;
        };
        let (kind, size) = (header as u32, (header >> 48) as usize);
        let mut next = at + size.max(8);
        if kind == TRACING_DATA {
            let behind = number(data, at + 8).map_or(0, u32::from_le_bytes);
            next += (behind as usize).next_multiple_of(8);
        }
        if kind == SAMPLE || COMPRESSED.contains(&kind) {
            let first = *first.get_or_insert(at);
            if at > first && next - first > limit {
                break;
            }
        }
        if next > end {
            break;
        }
        at = next;
    }
    at
}
