//! A walk is the same with any number of threads: what the visitor gets and in which order, and what the end of it
//! says.

use crate::writer::{BufferSpec, FileSpec, Machine, Pack, Page};
use proptest::prelude::*;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use tracedat::{LostGap, RingRecord, TraceDat, TraceVisitor};

/// One call of a visitor.
#[derive(Debug, Clone, PartialEq)]
enum Call {
    /// A record, with a hash of all that it has.
    Record(u64, u32, u64),
    Lost(LostGap),
    Consumed(Range<usize>),
}

/// Everything that a visitor receives, which breaks the walk off at some record.
struct Calls {
    calls: Vec<Call>,
    left: usize,
}

impl TraceVisitor for Calls {
    fn record(&mut self, r: &RingRecord<'_>) -> ControlFlow<()> {
        let mut hasher = DefaultHasher::new();
        (r.buffer, r.id, r.pid, r.data).hash(&mut hasher);
        self.calls
            .push(Call::Record(r.time, r.cpu, hasher.finish()));
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
    fn lost(&mut self, lost: &LostGap) {
        self.calls.push(Call::Lost(*lost));
    }
    fn consumed(&mut self, range: Range<usize>) {
        self.calls.push(Call::Consumed(range));
    }
}

/// Walks with so many threads, to the end or to some record.
fn walk(file: &TraceDat<'_>, threads: usize, wanted: &[bool], stop: usize) -> (Vec<Call>, String) {
    let mut calls = Calls {
        calls: Vec::new(),
        left: stop,
    };
    let end = file.walk_on(threads, wanted, &mut calls);
    (calls.calls, format!("{end:?}"))
}

/// Walks with one thread and with more, and returns what both came to.
fn agree(data: &[u8], wanted: &[bool], stop: usize) -> (usize, String) {
    let Ok(file) = TraceDat::parse(data) else {
        return (0, String::new());
    };
    let (calls, end) = walk(&file, 1, wanted, stop);
    for threads in [0, 2, 3, 8] {
        let (others, other_end) = walk(&file, threads, wanted, stop);
        let differs = calls.iter().zip(&others).position(|(a, b)| a != b);
        assert_eq!(differs, None, "call that differs with {threads} threads");
        assert_eq!(calls.len(), others.len(), "calls with {threads} threads");
        assert_eq!(end, other_end, "{threads} threads");
    }
    (calls.len(), end)
}

/// The corpus' files of trace-cmd, unpacked.
fn corpus() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut folders = vec![root];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut data = fs::read(&path).expect("a file");
            if path.extension().is_some_and(|e| e == "zst") {
                let mut whole = Vec::new();
                let mut frame = ruzstd::decoding::StreamingDecoder::new(data.as_slice());
                if let Ok(frame) = &mut frame
                    && frame.read_to_end(&mut whole).is_ok()
                {
                    data = whole;
                }
            }
            if tracedat::is_trace_dat(&data) {
                files.push(data);
            }
        }
    }
    files
}

#[test]
fn recordings_are_walked_the_same() {
    let mut compressed = 0;
    for data in corpus() {
        let (calls, _) = agree(&data, &[], usize::MAX);
        agree(&data, &[], calls / 3);
        agree(&data, &[false], usize::MAX);
        agree(&data[..data.len() - data.len() / 4], &[], usize::MAX);
        let file = TraceDat::parse(&data).unwrap();
        compressed += usize::from(file.info().compression.is_some());
    }
    assert!(compressed >= 3, "{compressed} files");
}

/// CPUs with so many pages each, whose records come at steps of their own.
fn cpus(m: Machine, pages: &[usize]) -> Vec<(u32, Vec<Page>)> {
    let cpu = |(cpu, &count): (usize, &usize)| {
        let step = 10 + 7 * cpu as u64;
        let page = |n: usize| {
            let mut page = Page::new(m, 1000 + n as u64 * 3 * step);
            for r in 0..3 {
                let payload = m.payload(300 + (n % 2) as u16, 7, (n * 3 + r) as u32);
                page = page.record(step as u32, &payload);
            }
            if n % 5 == 4 {
                page = page.missed(Some(3));
            }
            page
        };
        (cpu as u32, (0..count).map(page).collect())
    };
    pages.iter().enumerate().map(cpu).collect()
}

fn file(pages: &[usize], pack: Pack, chunk: usize) -> Vec<u8> {
    let m = Machine {
        page_size: 1024,
        ..Machine::default()
    };
    let cpus = cpus(m, pages);
    let cpus: Vec<_> = cpus.iter().map(|(n, pages)| (*n, &pages[..])).collect();
    let mut spec = FileSpec::new(m, vec![BufferSpec::new("", &cpus)]).pack(pack);
    spec.chunk = chunk;
    spec.v7()
}

/// Where the chunks of all CPUs begin.
fn chunks(data: &[u8]) -> Vec<usize> {
    let mut chunks = Vec::new();
    let file = TraceDat::parse(data).unwrap();
    for cpu in file.info().buffers.iter().flat_map(|b| &b.cpus) {
        let mut at = cpu.offset as usize + 4;
        let end = cpu.offset as usize + cpu.size as usize;
        while at < end {
            chunks.push(at);
            at += 8 + u32::from_le_bytes(data[at..at + 4].try_into().unwrap()) as usize;
        }
    }
    chunks
}

#[derive(Debug, Clone)]
enum Harm {
    /// A chunk says that so many bytes come out of it.
    Size(prop::sample::Index, u32),
    /// Another byte stands somewhere in a chunk, its sizes included.
    Byte(prop::sample::Index, usize, u8),
    Cut(prop::sample::Index),
}

fn harm() -> impl Strategy<Value = Harm> {
    let index = any::<prop::sample::Index>;
    let size = prop_oneof![
        0u32..3000,
        Just(1 << 20),
        Just((1 << 20) + 1),
        Just(30 << 20),
        Just(64 << 20),
        Just(u32::MAX),
    ];
    prop_oneof![
        4 => (index(), size).prop_map(|(at, size)| Harm::Size(at, size)),
        4 => (index(), 0usize..60, any::<u8>()).prop_map(|(at, n, to)| Harm::Byte(at, n, to)),
        1 => index().prop_map(Harm::Cut),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_walked_the_same(
        pages in prop::collection::vec(0usize..60, 1..6),
        pack in prop::sample::select(vec![Pack::Zlib, Pack::Zstd]),
        chunk in 1usize..4,
        harms in prop::collection::vec(harm(), 0..6),
        wanted in prop::sample::select(vec![usize::MAX, 300, 301]),
        stop in prop_oneof![2 => Just(usize::MAX), 1 => 1usize..300],
    ) {
        let mut data = file(&pages, pack, chunk);
        let places = chunks(&data);
        for harm in harms.iter().filter(|_| !places.is_empty()) {
            match harm {
                Harm::Size(index, size) => {
                    let at = places[index.index(places.len())] + 4;
                    if let Some(bytes) = data.get_mut(at..at + 4) {
                        bytes.copy_from_slice(&size.to_le_bytes());
                    }
                }
                Harm::Byte(index, n, to) => {
                    let at = places[index.index(places.len())] + n;
                    if let Some(byte) = data.get_mut(at) {
                        *byte = *to;
                    }
                }
                Harm::Cut(index) => data.truncate(index.index(data.len()).max(places[0])),
            }
        }
        let mut ids = vec![wanted == usize::MAX; 302];
        if let Some(id) = ids.get_mut(wanted) {
            *id = true;
        }
        agree(&data, &ids, stop);
    }
}

#[test]
fn hundreds_of_cpus_are_walked_the_same() {
    for pack in [Pack::Zlib, Pack::Zstd] {
        let pages: Vec<usize> = (0..700).map(|n| n % 7).collect();
        let (calls, end) = agree(&file(&pages, pack, 1), &[], usize::MAX);
        assert!(calls >= 6000 && end.contains("diagnostics: []"), "{end}");
    }
}

/// Chunks so large that not all CPUs' next ones have room ahead, and some have none at all.
#[test]
fn large_chunks_are_walked_the_same() {
    let m = Machine {
        page_size: 64 << 10,
        ..Machine::default()
    };
    let cpus = cpus(m, &[40, 39, 38, 3, 0, 41]);
    let cpus: Vec<_> = cpus.iter().map(|(n, pages)| (*n, &pages[..])).collect();
    for chunk in [10, 17] {
        let mut spec = FileSpec::new(m, vec![BufferSpec::new("", &cpus)]).pack(Pack::Zlib);
        spec.chunk = chunk;
        let (_, end) = agree(&spec.v7(), &[], usize::MAX);
        assert!(end.contains("records: 483,"), "{end}");
    }
}

/// What all chunks may take up, and what may be decompressed in all, runs out at the same chunk.
#[test]
fn limits_are_reached_at_the_same_place() {
    let mut data = file(&[60, 60, 60], Pack::Zlib, 1);
    let places = chunks(&data);
    for (n, at) in places.into_iter().enumerate() {
        // The largest that are decompressed ahead, one of each CPU that is not, and small ones, which are taken though
        // others before them were not.
        let size: u32 = match n % 60 {
            7 => 25 << 20,
            n if n % 3 == 0 => 1 << 20,
            _ => continue,
        };
        data[at + 4..at + 8].copy_from_slice(&size.to_le_bytes());
    }
    let (_, end) = agree(&data, &[], usize::MAX);
    for refused in ["1048576 bytes, is not believed", "26214400 bytes, is not"] {
        assert!(end.contains(refused), "{end}");
    }
}
