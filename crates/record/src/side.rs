//! Records that are no events and that the kernel does not write: names and mappings that are there when a recording
//! begins.

/// Bytes behind a record that is no sample: thread, time, CPU, id (`sample_id_all`), as the rings' own event has them.
const TRAILER: usize = 4 * 8;

/// Appends a record: its number and flags (`PERF_RECORD_*`), what it holds, and a text at its end.
pub(crate) fn push(out: &mut Vec<u8>, kind: u32, misc: u16, body: &[&[u8]], text: &[u8]) {
    let fixed: usize = body.iter().map(|part| part.len()).sum();
    // The text ends in a NUL, and the record at a multiple of 8.
    let length = (fixed + text.len() + 1).next_multiple_of(8) - fixed;
    let size = 8 + fixed + length + TRAILER;
    let Ok(size) = u16::try_from(size) else {
        return;
    };
    out.extend(kind.to_ne_bytes());
    out.extend(misc.to_ne_bytes());
    out.extend(size.to_ne_bytes());
    body.iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(text);
    out.resize(out.len() + length - text.len() + TRAILER, 0);
}
