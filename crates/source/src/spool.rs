//! Keeping what cannot be mapped: in memory while it is small, then in an unlinked temporary file.

use std::fs::File;
use std::io::{self, Read, Seek, Write};

use crate::OpenError;
use crate::bytes::InputBytes;
use crate::layers::UnpackedInput;
use crate::map::FileMap;
use crate::progress::ActivityGuard;

/// Unpacked inputs up to this size stay in memory; larger ones go to a temporary file, so that memory does
/// not grow with the recording. Inputs that do not begin as a recording are not read further at all.
const IN_MEMORY: usize = 16 << 20;
/// What an input is decided by.
const HEAD: usize = 64 << 10;
/// Bytes between two reports of progress.
const TELL: u64 = 1 << 20;
/// What is kept of an input at most, if nothing else is said: longer recordings are files, which are mapped.
const LIMIT: u64 = 64 << 30;
/// Recordings pack to a tenth, texts of very few kinds of lines to a few hundredths; gzip cannot pack to less than
/// 1/1032. What unpacks to more than this is made to fill disks,
const MAX_RATIO: u64 = 1100;
/// but for small ones, which do no harm.
const ALWAYS: u64 = 256 << 20;

/// Reads an input to its end. A stream that breaks off gives what came before, with a warning.
pub(crate) fn spool(
    name: &str,
    input: &mut UnpackedInput<'_>,
    limit_given: Option<u64>,
    way: &ActivityGuard<'_>,
    warnings: &mut Vec<String>,
) -> Result<InputBytes, OpenError> {
    let head = input.stream.look(HEAD);
    let recording = perfdata::is_perf_data(head)
        || tracedat::is_trace_dat(head)
        || tracetext::sniff(head).is_some();
    let limit = limit_given.unwrap_or(LIMIT);
    let mut memory = Vec::new();
    let mut file: Option<File> = None;
    let mut total = 0u64;
    let mut reported = 0u64;
    let mut buffer = vec![0u8; 256 << 10];
    loop {
        let count = match input.stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if total == 0 => return Err(OpenError::from_io(name, error)),
            Err(error) => {
                warnings.push(format!(
                    "The input breaks off after {total} unpacked bytes ({error}); what came before is \
                     used."
                ));
                break;
            }
        };
        let part = &buffer[..count];
        let small = memory.len() + count <= IN_MEMORY;
        if !recording && !small {
            // Whatever it is, it is decided by its beginning.
            warnings.push(format!(
                "The input does not begin as a recording; no more than its first {} MiB were looked at.",
                IN_MEMORY >> 20
            ));
            break;
        }
        total += count as u64;
        if total > limit {
            return Err(OpenError::TooLarge {
                name: name.to_owned(),
                limit: size(limit),
            });
        }
        let packed = input.packed_bytes.get();
        if packed - reported >= TELL {
            way.read(packed - reported);
            reported = packed;
        }
        if input.layers > 0
            && limit_given.is_none()
            && total > ALWAYS.max(packed.saturating_mul(MAX_RATIO))
        {
            return Err(OpenError::Bomb {
                name: name.to_owned(),
                packed,
                limit: size(total - 1),
            });
        }
        let kept = match &mut file {
            Some(file) => file.write_all(part),
            None if small => {
                memory.extend_from_slice(part);
                Ok(())
            }
            None => begin_file(&memory, part).map(|begun| {
                memory = Vec::new();
                file = Some(begun);
            }),
        };
        kept.map_err(|error| OpenError::spool(name, &error))?;
    }
    match file {
        Some(mut file) => {
            let map = file
                .flush()
                .and_then(|()| file.rewind())
                .and_then(|()| FileMap::new(file, true));
            Ok(InputBytes::Mapped(
                map.map_err(|error| OpenError::spool(name, &error))?,
            ))
        }
        None => {
            memory.shrink_to_fit();
            Ok(InputBytes::Memory(memory))
        }
    }
}

fn begin_file(memory: &[u8], part: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(memory)?;
    file.write_all(part)?;
    Ok(file)
}

/// Returns a size in words, as `--spool-limit` takes it.
fn size(bytes: u64) -> String {
    for (unit, name) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
        if bytes >= 1 << unit && bytes.is_multiple_of(1 << unit) {
            return format!("{}{name}", bytes >> unit);
        }
    }
    for (unit, name) in [(30, "G"), (20, "M")] {
        if bytes >= 10 << unit {
            return format!("{}{name}", bytes >> unit);
        }
    }
    bytes.to_string()
}
