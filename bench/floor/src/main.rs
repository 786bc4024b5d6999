//! Walks the records of a perf.data, header by header, and counts the samples of each id: less than that nobody can
//! do who looks at all of them. It reads 256 KiB at once, and trusts the file, which no reader for others may do.
//!
//! `floor PERF.DATA` prints how many samples there are, and of how many ids. The layout of the file:
//! `tools/perf/Documentation/perf.data-file-format.txt`; each sample begins with its event's id where the recorder
//! asked for PERF_SAMPLE_IDENTIFIER, as perf does for several events.

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes read at once, and ids that are counted apart.
const PIECE: usize = 256 << 10;
const IDS: usize = 1 << 16;
/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("give a perf.data")?;
    let file = File::open(name)?;
    let mut head = [0; 72];
    file.read_exact_at(&mut head, 0)?;
    if &head[..8] != b"PERFILE2" {
        return Err("no perf.data of this machine's byte order, or one from a pipe".into());
    }
    let at = |place| word(&head, place).unwrap_or(0);
    let (mut place, end) = (at(40), at(40) + at(48));
    let mut piece = vec![0; PIECE];
    let mut samples = 0u64;
    // Ids are small numbers behind each other.
    let mut counts = vec![0u64; IDS];
    while place < end {
        let many = usize::try_from(end - place)?.min(PIECE);
        let many = file.read_at(&mut piece[..many], place)?;
        let bytes = &piece[..many];
        let mut here = 0;
        while let Some(header) = word(bytes, here) {
            let size = (header >> 48) as usize;
            if size < 8 {
                return Err(format!("no record at byte {}", place + here as u64).into());
            }
            if here + size > many {
                break;
            }
            if header as u32 == SAMPLE
                && let Some(id) = word(bytes, here + 8)
            {
                counts[id as usize % IDS] += 1;
                samples += 1;
            }
            here += size;
        }
        if here == 0 {
            break;
        }
        place += here as u64;
    }
    let ids = counts.iter().filter(|count| **count > 0).count();
    println!("{samples} samples of {ids} ids: an event has one for each CPU");
    Ok(())
}
