//! Feature sections: those of numbers stay, of texts what says of which machine a number is.

use tracefmt::{Cursor, Endian};

use super::{OmittedParts, PrivacyMask};
use crate::feature::{number, string};
use crate::file::PerfRecording;
use crate::header;
use crate::pipe::PIPE_HEADER;
use crate::record::{HEADER, PerfRecordHeader, kind};

/// perf pads strings to multiples of this (`NAME_ALIGN` of `tools/perf/util/header.c`).
const STRING: usize = 64;

/// Returns the sections of the new file, by number.
pub(super) fn masked(
    recording: &PerfRecording<'_>,
    mask: &mut dyn PrivacyMask,
    omitted: &mut OmittedParts,
) -> Vec<(u32, Vec<u8>)> {
    let endian = recording.endian;
    let mut features = Vec::new();
    for (bit, section) in sections(recording) {
        let text = |section: &[u8]| string(&mut Cursor::new(section, endian));
        let made = match bit {
            number::TRACING_DATA => Some(mask.tracing(section)),
            number::OSRELEASE | number::VERSION => {
                text(section).map(|text| framed(&mask.release(&text), endian))
            }
            number::ARCH | number::CPUDESC | number::CPUID => {
                text(section).map(|text| framed(&text, endian))
            }
            number::NRCPUS | number::TOTAL_MEM | number::CLOCKID => {
                section.get(..8).map(<[u8]>::to_vec)
            }
            number::SAMPLE_TIME => section.get(..16).map(<[u8]>::to_vec),
            number::NUMA_TOPOLOGY => nodes(section, endian),
            number::TRAPLINE => {
                let text = String::from_utf8_lossy(section);
                mask.recorder(&text).map(String::into_bytes)
            }
            _ => None,
        };
        match made {
            Some(made) => features.push((bit, made)),
            None => omitted.features += 1,
        }
    }
    features.sort_by_key(|(bit, _)| *bit);
    features.dedup_by_key(|(bit, _)| *bit);
    features
}

/// Returns the sections of a recording, of a pipe those among its records.
fn sections<'a>(recording: &PerfRecording<'a>) -> Vec<(u32, &'a [u8])> {
    let (data, endian) = (recording.data, recording.endian);
    if !recording.is_pipe() {
        let word = |at: usize| endian.u64(data, at).unwrap_or(0);
        let end = word(40).saturating_add(word(48));
        let listed = header::listed_features(data, endian, end);
        let listed = listed.filter(|_| !recording.data_cut);
        return listed
            .filter_map(|feature| Some((feature.bit, data.get(feature.place?)?)))
            .collect();
    }
    let mut found = Vec::new();
    let mut at = PIPE_HEADER;
    while let Some(header) = PerfRecordHeader::read_in(data, at, endian) {
        let ends = matches!(
            header.kind,
            kind::SAMPLE | kind::COMPRESSED | kind::COMPRESSED2
        );
        let Some(body) = data.get(at + HEADER..at + header.size.max(HEADER)) else {
            break;
        };
        if ends || header.size < HEADER {
            break;
        }
        let next = at + header.size;
        let behind = crate::pipe::payload_behind(header.kind, body, endian);
        match header.kind {
            kind::HEADER_TRACING_DATA => {
                let payload = data.get(next..next.saturating_add(behind));
                found.extend(payload.map(|payload| (number::TRACING_DATA, payload)));
            }
            kind::HEADER_FEATURE => {
                let bit = endian.u64(body, 0).and_then(|bit| u32::try_from(bit).ok());
                found.extend(bit.zip(body.get(8..)));
            }
            _ => {}
        }
        at = next.saturating_add(behind);
    }
    found
}

/// Returns the nodes as they are: numbers, and lists of CPUs.
fn nodes(section: &[u8], endian: Endian) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(section, endian);
    let mut out = Vec::new();
    let count = cursor.u32()?;
    out.extend(endian.u32_bytes(count));
    for _ in 0..count {
        out.extend(endian.u32_bytes(cursor.u32()?));
        out.extend(endian.u64_bytes(cursor.u64()?));
        out.extend(endian.u64_bytes(cursor.u64()?));
        let cpus = string(&mut cursor)?;
        let is_list = |c: char| c.is_ascii_digit() || matches!(c, ',' | '-' | ' ' | '\n');
        out.extend(framed(cpus.chars().all(is_list).then_some(&cpus)?, endian));
    }
    Some(out)
}

/// Returns a string as sections have it: its length, then its bytes.
fn framed(text: &str, endian: Endian) -> Vec<u8> {
    let size = (text.len() + 1).next_multiple_of(STRING);
    let mut bytes = endian.u32_bytes(u32::try_from(size).unwrap_or(0)).to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(4 + size, 0);
    bytes
}
