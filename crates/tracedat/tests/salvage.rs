//! Files that are cut off or damaged made whole: what a walk over the new file gives is what one over the old file
//! gives, with a gap where something is missing.

use crate::cut::{walk, with_stats};
use crate::writer::{FileSpec, Machine, Pack};
use ::salvage::{SalvageAccount, SalvageOutlet, SalvageRefusal};
use std::io;
use std::ops::{ControlFlow, Range};
use tracedat::{DatSalvage, LostGap, RingRecord, TraceDat, TraceVisitor};

/// Keeps the new file.
#[derive(Default)]
struct NewFile(Vec<u8>);

impl SalvageOutlet for NewFile {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// CPUs of which events are missing.
#[derive(Default)]
struct Gaps(Vec<(u16, u32)>);

impl TraceVisitor for Gaps {
    fn record(&mut self, _: &RingRecord<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn lost(&mut self, lost: &LostGap) {
        self.0.push((lost.buffer, lost.cpu));
    }
}

fn salvage(data: &[u8]) -> Result<(Vec<u8>, SalvageAccount), SalvageRefusal> {
    let salvage = DatSalvage::new(data, &mut |_: Range<usize>| {}).expect("a trace.dat")?;
    let mut file = NewFile::default();
    salvage.write(&mut file).expect("memory");
    assert_eq!(salvage.account().output_bytes, file.0.len() as u64);
    Ok((file.0, salvage.account().clone()))
}

/// Salvages a file that is not whole. Returns whether anything was left of it.
fn check(data: &[u8], what: &str) -> bool {
    let (before, ..) = walk(data);
    let count: usize = before.values().map(Vec::len).sum();
    match salvage(data) {
        Ok((file, account)) => {
            let (after, end, truncated, reported) = walk(&file);
            assert!(!truncated && !end.truncated, "{what}: {reported:?}");
            assert_eq!(after, before, "{what}");
            assert_eq!(account.events, count as u64, "{what}");
            let mut gaps = Gaps::default();
            let parsed = TraceDat::parse(&file).expect("a whole file");
            parsed.walk(&[], &mut gaps);
            assert_eq!(gaps.0.len() as u64, account.places, "{what}: {:?}", gaps.0);
            let (again, account) = salvage(&file).expect("a whole file");
            assert!(account.whole && again == file, "{what}: {account:?}");
            true
        }
        Err(SalvageRefusal::NoEvents(_) | SalvageRefusal::FormatsGone) => {
            assert_eq!(count, 0, "{what}");
            false
        }
        Err(other) => panic!("{what}: {other}"),
    }
}

fn every_cut(spec: &FileSpec, data: &[u8], step: usize, what: &str) {
    let (file, account) = salvage(data).expect("a whole file");
    assert!(account.whole && file == data, "{what}: the bytes stay");
    let mut kept = 0;
    for cut in (80..data.len()).filter(|cut| cut % step == 0 || cut % 4096 < 40) {
        kept += usize::from(check(&data[..cut], &format!("{what} cut at {cut}")));
    }
    assert!(kept > 20, "{what}: {kept} {:?}", spec.buffers.len());
}

#[test]
fn a_file_that_is_cut_anywhere_keeps_what_a_walk_finds() {
    for big in [false, true] {
        let m = Machine {
            big,
            ..Machine::default()
        };
        let spec = with_stats(m);
        every_cut(&spec, &spec.v6(), 307, "v6");
        every_cut(&spec, &spec.v7(), 307, "v7");
    }
}

#[test]
fn compressed_files_keep_every_whole_chunk() {
    for pack in [Pack::Zlib, Pack::Zstd] {
        let mut spec = with_stats(Machine::default()).pack(pack);
        spec.chunk = 2;
        every_cut(&spec, &spec.v7(), 13, "packed");
    }
}

/// A reader passes over what is damaged and says nothing of it in the pages; the new file does.
#[test]
fn damaged_data_is_a_gap() {
    let m = Machine::default();
    for (pack, v7) in [(None, false), (None, true), (Some(Pack::Zlib), true)] {
        let mut spec = with_stats(m);
        if let Some(pack) = pack {
            spec = spec.pack(pack);
            spec.chunk = 2;
        }
        let data = if v7 { spec.v7() } else { spec.v6() };
        let parsed = TraceDat::parse(&data).expect("a file");
        let cpus = parsed.info().buffers.iter().flat_map(|buffer| &buffer.cpus);
        for cpu in cpus.filter(|cpu| cpu.size > 0) {
            let (from, size) = (cpu.offset as usize, cpu.size as usize);
            // The commit word of the first page, and something in the middle.
            for at in [from + 8, from + size / 2] {
                let mut damaged = data.clone();
                damaged[at..at + 4].fill(0xff);
                let (before, ..) = walk(&damaged);
                let (file, account) = salvage(&damaged).expect("most of it");
                let (after, end, truncated, reported) = walk(&file);
                assert!(!truncated && reported.is_empty(), "{at}: {reported:?}");
                assert_eq!(after, before, "{at}");
                assert_eq!(account.whole, end.lost_unknown == 0, "{at}");
            }
        }
    }
}

#[test]
fn bytes_at_random_are_no_reason_to_panic() {
    let m = Machine::default();
    let spec = with_stats(m);
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut packed = with_stats(m).pack(Pack::Zstd);
    packed.chunk = 2;
    for data in [spec.v6(), spec.v7(), packed.v7()] {
        for _ in 0..400 {
            let mut damaged = data.clone();
            for _ in 0..=next() % 6 {
                let at = next() as usize % data.len();
                damaged[at] = [0, 0xff, next() as u8][next() as usize % 3];
            }
            let mut sink = NewFile::default();
            if let Ok(Ok(salvage)) = DatSalvage::new(&damaged, &mut |_: Range<usize>| {}) {
                salvage.write(&mut sink).expect("memory");
                assert_eq!(salvage.account().output_bytes, sink.0.len() as u64);
                // What can be added is a page for each CPU, and what is stored instead of compressed.
                assert!(sink.0.len() < 40 * data.len());
            }
        }
    }
}
