/*!
How long a request of 4 KiB takes that goes past the page cache (O_DIRECT), one at a time, at random places of a file or
a device: what a guest's block device and the VMM's make of it. Only files that this makes itself are written, and they
have no name and are gone with it.
*/

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use results::BenchRow;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fdatasync, fstatfs};

use crate::BenchError;
use crate::now::now;
use crate::run::BenchRun;
use crate::samples::{IterationBounds, RowSamples};
use crate::thread::on_cpu;
use crate::why::why;

/// Bytes of a request, and what places are a multiple of: what every disk takes.
const BLOCK: usize = 4096;
/// Pieces in which a file is filled.
const PIECE: usize = 1 << 20;

/// What is read and written.
#[derive(Debug)]
struct DiskTarget {
    file: File,
    blocks: u64,
    /// Whether the page cache is left out.
    direct: bool,
}

/// Measures reads of a file or device, or reads and writes of a file made in a folder.
pub(crate) fn rows(
    run: &BenchRun<'_>,
    path: &Path,
    write: bool,
    size: u64,
) -> Result<(Vec<BenchRow>, Vec<String>), BenchError> {
    let failed = |error: io::Error| BenchError::Disk {
        path: path.to_owned(),
        why: why(&error),
    };
    let is_folder = std::fs::metadata(path).map_err(failed)?.is_dir();
    if write && !is_folder {
        return Err(BenchError::WriteToFile(path.to_owned()));
    }
    let target = match is_folder {
        true => make(run, path, size),
        false => open(path),
    };
    let target = target.map_err(failed)?;
    if target.blocks == 0 {
        return Err(BenchError::Disk {
            path: path.to_owned(),
            why: "it is shorter than one request of 4096 bytes".to_owned(),
        });
    }
    let mut warnings = Vec::new();
    if is_memory(&target.file) {
        warnings.push(format!(
            "{}: its file system is in memory (tmpfs), so this measures no disk.",
            path.display()
        ));
    } else if !target.direct {
        warnings.push(format!(
            "{}: its file system takes no O_DIRECT, so this measures memory (the page cache) and not a disk.",
            path.display()
        ));
    }
    let mut kinds = vec![("read 4 KiB", RequestKind::Read)];
    if write {
        kinds.push(("write 4 KiB", RequestKind::Write));
        kinds.push(("write 4 KiB, fdatasync", RequestKind::Sync));
    }
    let mut rows = Vec::new();
    for (what, kind) in kinds {
        let row = BenchRow::new(what).from(run.places.from);
        let row = match target.direct {
            true => row,
            false => row.note("through the page cache"),
        };
        run.say(&row);
        let (bounds, target) = (run.bounds, &target);
        let measured = on_cpu(run.places.from, || {
            requests(bounds, row.clone(), target, kind)
        });
        rows.push(measured.unwrap_or_else(|why| row.missing(why)));
    }
    Ok((rows, warnings))
}

/// Whether a file is of tmpfs or ramfs, which take O_DIRECT and have no disk (`include/uapi/linux/magic.h`).
fn is_memory(file: &File) -> bool {
    const MAGIC: [i64; 2] = [0x0102_1994, 0x8584_58f6];
    #[allow(
        clippy::useless_conversion,
        reason = "the field's type is not the same on all architectures"
    )]
    let kind = fstatfs(file).map(|kind| i64::from(kind.f_type));
    kind.is_ok_and(|kind| MAGIC.contains(&kind))
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    Read,
    Write,
    Sync,
}

/// Opens a file or device to be read.
fn open(path: &Path) -> io::Result<DiskTarget> {
    let kind = std::fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(io::Error::other(
            "it is no file, block device or folder; expected one of these",
        ));
    }
    let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(direct)
        .open(path);
    let (mut file, direct) = match opened {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => (File::open(path)?, false),
        other => (other?, true),
    };
    let size = file.seek(SeekFrom::End(0))?;
    Ok(DiskTarget {
        file,
        blocks: size / BLOCK as u64,
        direct,
    })
}

/// Makes a file in a folder, and fills it: what was never written is not read from a disk.
fn make(run: &BenchRun<'_>, folder: &Path, size: u64) -> io::Result<DiskTarget> {
    (run.doing)("filling a file");
    let mut file = tempfile::tempfile_in(folder).map_err(without_name)?;
    let mut random = Random::new();
    let mut piece = vec![0u8; PIECE];
    let blocks = size / BLOCK as u64;
    let mut left = blocks * BLOCK as u64;
    while left > 0 && !run.stopped() {
        for word in piece.as_chunks_mut::<8>().0 {
            *word = random.next().to_ne_bytes();
        }
        let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        file.write_all(&piece[..length])?;
        left -= length as u64;
    }
    file.sync_all()?;
    let direct = fcntl_getfl(&file)
        .and_then(|flags| fcntl_setfl(&file, flags | OFlags::DIRECT))
        .is_ok();
    Ok(DiskTarget {
        file,
        blocks: blocks.saturating_sub(left / BLOCK as u64),
        direct,
    })
}

/// Returns an error without the name of a file that nobody knows.
fn without_name(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.rsplit_once(" at path ") {
        Some((said, _)) => io::Error::new(error.kind(), said),
        None => error,
    }
}

/// Random numbers (xorshift64*), the same in every run.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn new() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Measures requests.
fn requests(
    bounds: IterationBounds<'_>,
    row: BenchRow,
    target: &DiskTarget,
    kind: RequestKind,
) -> Result<BenchRow, String> {
    // O_DIRECT wants memory that begins where a block may.
    let mut room = vec![0x5au8; 2 * BLOCK];
    let from = room.as_ptr().align_offset(BLOCK).min(BLOCK);
    let block = &mut room[from..from + BLOCK];
    let mut random = Random::new();
    let mut samples = RowSamples::new(bounds);
    while samples.go_on() {
        let at = (random.next() % target.blocks) * BLOCK as u64;
        let begin = now();
        let done = match kind {
            RequestKind::Read => target.file.read_exact_at(block, at),
            RequestKind::Write => target.file.write_all_at(block, at),
            RequestKind::Sync => target
                .file
                .write_all_at(block, at)
                .and_then(|()| Ok(fdatasync(&target.file)?)),
        };
        done.map_err(|error| format!("a request failed: {}", why(&error)))?;
        samples.add(begin, now().saturating_sub(begin));
    }
    Ok(samples.row(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_do_not_repeat_soon() {
        let mut random = Random::new();
        let mut seen: Vec<u64> = (0..10_000).map(|_| random.next()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 10_000);
    }
}
