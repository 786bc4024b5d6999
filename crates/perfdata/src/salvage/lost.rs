//! `PERF_RECORD_LOST` for events that are missing from a file.

use tracefmt::Endian;

use crate::attr::{EventAttr, bits};
use crate::record::{HEADER, kind};

/// An id and a thread that nobody has, and a CPU that is not known.
const NOBODY: u32 = u32::MAX;

/// Returns the record: so many events were lost at a time, of the event with an id, on a CPU that nobody knows. The
/// trailer is that of `attr` (`perf_event__id_header_size` in `tools/perf/util/event.c`).
pub(super) fn lost_record(
    attr: &EventAttr,
    id: u64,
    (time, count): (u64, u64),
    endian: Endian,
) -> Vec<u8> {
    let mut body = Vec::new();
    let mut word = |value: u64| body.extend(endian.u64_bytes(value));
    word(id);
    word(count);
    let pair = |first: u32, second: u32| match endian {
        Endian::Little => u64::from(first) | u64::from(second) << 32,
        Endian::Big => u64::from(first) << 32 | u64::from(second),
    };
    let trailer = [
        (bits::TID, pair(NOBODY, NOBODY)),
        (bits::TIME, time),
        (bits::ID, id),
        (bits::STREAM_ID, id),
        (bits::CPU, pair(NOBODY, 0)),
        (bits::IDENTIFIER, id),
    ];
    for (bit, value) in trailer {
        if attr.sample_id_all && attr.sample_type & bit != 0 {
            word(value);
        }
    }
    let mut record = header(kind::LOST, HEADER + body.len(), endian).to_vec();
    record.extend(body);
    record
}

/// Returns the header of a record without flags.
pub(super) fn header(kind: u32, size: usize, endian: Endian) -> [u8; HEADER] {
    let size = u16::try_from(size).unwrap_or(u16::MAX);
    let word = match endian {
        Endian::Little => u64::from(kind) | u64::from(size) << 48,
        Endian::Big => u64::from(kind) << 32 | u64::from(size),
    };
    endian.u64_bytes(word)
}
