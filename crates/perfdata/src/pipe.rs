//! Pipe mode: attributes, tracing data and features come as records before the first sample.

use std::collections::HashMap;

use tracefmt::{Diagnostic, parse_tracing_data};

use crate::attr::EventAttr;
use crate::feature;
use crate::file::{MAX_ATTRS, PerfRecording, too_many_attributes};
use crate::record::{HEADER, PerfRecordHeader, kind};

/// Bytes of `struct perf_pipe_file_header`.
pub(crate) const PIPE_HEADER: usize = 16;
/// `PERF_EVENT_UPDATE__NAME`.
const UPDATE_NAME: u64 = 2;

/// Reads the records up to the first sample (or compressed record) and takes what defines the others.
pub(crate) fn read_definitions(recording: &mut PerfRecording<'_>) {
    let (data, endian) = (recording.data, recording.endian);
    let mut at = PIPE_HEADER;
    let mut by_id = HashMap::new();
    while let Some(header) = PerfRecordHeader::read_in(data, at, endian) {
        if matches!(
            header.kind,
            kind::SAMPLE | kind::COMPRESSED | kind::COMPRESSED2
        ) {
            break;
        }
        let Some(end) = at
            .checked_add(header.size)
            .filter(|_| header.size >= HEADER)
        else {
            break;
        };
        let Some(body) = data.get(at + HEADER..end) else {
            recording.note(Diagnostic::at(
                at as u64,
                "the recording ends in its definitions",
            ));
            break;
        };
        match header.kind {
            kind::HEADER_ATTR => take_attr(recording, body, at, &mut by_id),
            kind::HEADER_TRACING_DATA => take_tracing(recording, body, end),
            kind::EVENT_UPDATE => take_update(recording, body, &by_id),
            kind::HEADER_FEATURE => {
                if let Some(number) = endian.u64(body, 0).and_then(|n| u32::try_from(n).ok()) {
                    recording.feature(number, &body[8..]);
                }
            }
            kind::HEADER_BUILD_ID => {
                let record = &data[at..end];
                feature::read_build_id_record(record, endian, &mut recording.info_mut().build_ids);
            }
            _ => {}
        }
        at = end.saturating_add(payload_behind(header.kind, body, endian));
    }
}

/// Returns how many bytes follow a record outside its size: tracing data and AUX data do so.
///
/// Source: `perf_event__process_tracing_data` and `perf_event__process_auxtrace` in `tools/perf/util`.
pub(crate) fn payload_behind(kind: u32, body: &[u8], endian: tracefmt::Endian) -> usize {
    match kind {
        kind::HEADER_TRACING_DATA => {
            let size = endian.u32(body, 0).unwrap_or(0) as usize;
            size.saturating_add(7) & !7
        }
        kind::AUXTRACE => endian
            .u64(body, 0)
            .and_then(|s| usize::try_from(s).ok())
            .unwrap_or(0),
        _ => 0,
    }
}

/// `by_id` collects which attribute an id belongs to.
fn take_attr(
    recording: &mut PerfRecording<'_>,
    body: &[u8],
    at: usize,
    by_id: &mut HashMap<u64, usize>,
) {
    if recording.attrs.len() >= MAX_ATTRS {
        if !recording.attrs_beyond {
            recording.attrs_beyond = true;
            recording.note(too_many_attributes(at as u64));
        }
        return;
    }
    let Some((mut attr, size)) = EventAttr::parse(body, recording.endian) else {
        recording.note(Diagnostic::at(at as u64, "attribute record too short"));
        return;
    };
    if let Some(ids) = body.get(size..) {
        attr.ids = recording.ids(ids);
    }
    for &id in &attr.ids {
        by_id.entry(id).or_insert(recording.attrs.len());
    }
    recording.attrs.push(attr);
}

fn take_tracing(recording: &mut PerfRecording<'_>, body: &[u8], end: usize) {
    let size = recording.endian.u32(body, 0).unwrap_or(0) as usize;
    let rest = &recording.data[end.min(recording.data.len())..];
    let tracing = parse_tracing_data(&rest[..size.min(rest.len())]);
    recording.set_tracing(tracing);
}

fn take_update(recording: &mut PerfRecording<'_>, body: &[u8], by_id: &HashMap<u64, usize>) {
    let endian = recording.endian;
    let (Some(what), Some(id)) = (endian.u64(body, 0), endian.u64(body, 8)) else {
        return;
    };
    if what != UPDATE_NAME {
        return;
    }
    let name = &body[16..];
    let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..end]).into_owned();
    if let Some(attr) = by_id.get(&id).and_then(|&at| recording.attrs.get_mut(at)) {
        attr.name = name;
    }
}
