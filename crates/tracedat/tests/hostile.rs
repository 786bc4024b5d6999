//! Files that were damaged, by chance or on purpose: no panic, no endless loop, no memory without bound.

mod writer;

use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracedat::{LostGap, RingRecord, TraceDat, TraceVisitor};
use writer::{BufferSpec, FileSpec, Machine, Pack, Page};

/// Counts the bytes that are allocated, and the most that ever were.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
/// Tests of this file take turns, so that each counts its own.
static TURN: Mutex<()> = Mutex::new(());

// SAFETY: every call is passed on to the system's allocator as it came; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promises about `layout` are those the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `pointer` came from `alloc` above, with the same `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// No input makes the reader hold more than this, and...
const CONSTANT: usize = 80 << 20;
/// ...so many bytes for each of its own. Of a small option a struct is made, of a format a table.
const PER_BYTE: usize = 256;

#[derive(Debug, Default, PartialEq)]
struct Count {
    records: u64,
    bytes: u64,
    lost: u64,
}

impl TraceVisitor for Count {
    fn record(&mut self, r: &RingRecord<'_>) -> ControlFlow<()> {
        self.records += 1;
        self.bytes += r.data.len() as u64;
        ControlFlow::Continue(())
    }
    fn lost(&mut self, _: &LostGap) {
        self.lost += 1;
    }
}

/// Reads everything that can be read of some bytes, and looks at what that took.
fn read_all(data: &[u8]) {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    if let Ok(mut file) = TraceDat::parse(data) {
        file.load_symbols();
        let mut count = Count::default();
        let end = file.walk(&[], &mut count);
        assert_eq!(end.records, count.records);
        let mut others = Count::default();
        file.walk_on(3, &[], &mut others);
        assert_eq!(others, count);
        let mut skipped = Count::default();
        let again = file.walk(&[false], &mut skipped);
        assert_eq!((again.skipped, skipped.lost), (count.records, count.lost));
        for text in &file.info().texts {
            file.read_text(text, &mut |piece| count.bytes += piece.len() as u64);
        }
    }
    let most = MOST.load(Ordering::Relaxed) - before;
    let bound = CONSTANT + PER_BYTE * data.len();
    assert!(most <= bound, "{most} bytes for an input of {}", data.len());
}

/// Small files of every kind.
fn seeds() -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for (big, long) in [(false, 8), (true, 4)] {
        let m = Machine {
            big,
            long,
            page_size: 1024,
        };
        let event = |n| m.payload(300, 7, n);
        let pages = [
            Page::new(m, 1000)
                .record(3, &event(1))
                .extend(1 << 40)
                .record(4, &event(2))
                .missed(Some(5)),
            Page::new(m, 1 << 41)
                .long_record(7, &[1; 200])
                .discarded(1, 20)
                .stamp(1 << 42)
                .record(0, &event(3)),
        ];
        let top = BufferSpec::new("", &[(0, &pages), (1, &pages[1..])]);
        let other = BufferSpec::new("other", &[(0, &pages[..1]), (1, &[])]);
        let text = BufferSpec {
            text: Some(vec![b'x'; 3000]),
            ..BufferSpec::new("text", &[])
        };
        let mut shift = m.u64(1).to_vec();
        for word in [1, 1, 2] {
            shift.extend(m.u32(word));
        }
        for number in [1000, 1 << 41, 10, 20, 1, 1, 0, 0] {
            shift.extend(m.u64(number));
        }
        let mut guest = b"vm\0".to_vec();
        guest.extend(m.u64(5));
        guest.extend([m.u32(1), m.u32(0), m.u32(99)].concat());
        let mut spec = FileSpec::new(m, vec![top, other])
            .option(12, shift)
            .option(13, guest)
            .option(2, "CPU: 0\nentries: 3\nread events: 0\n")
            .option(14, [m.u32(5), m.u32(2), m.u32(0), m.u32(0)].concat());
        spec.chunk = 1;
        out.push(spec.v6());
        spec.buffers.push(text);
        for pack in [Pack::None, Pack::Zlib, Pack::Zstd] {
            out.push(spec.clone().pack(pack).v7());
        }
        // Chunks enough that other threads are started for them.
        let many = [pages.as_slice(); 12].concat();
        let top = BufferSpec::new("", &[(0, &many), (1, &many[..9])]);
        for pack in [Pack::Zlib, Pack::Zstd] {
            let mut spec = FileSpec::new(m, vec![top.clone()]).pack(pack);
            spec.chunk = 1;
            out.push(spec.v7());
        }
    }
    out
}

/// One thing that happens to a file.
#[derive(Debug, Clone)]
enum Harm {
    Cut(prop::sample::Index),
    Flip(prop::sample::Index, u8),
    /// A number is written over another.
    Number(prop::sample::Index, u64, u8),
    /// Part of the file is copied over another part.
    Copy(prop::sample::Index, prop::sample::Index, u8),
}

fn harm() -> impl Strategy<Value = Harm> {
    let odd = prop_oneof![
        Just(0u64),
        Just(1),
        Just(u64::MAX),
        Just(1 << 31),
        Just(0x7fff_ffff_ffff_fff0),
        0u64..100_000,
        any::<u64>()
    ];
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Harm::Cut),
        (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, bits)| Harm::Flip(at, bits)),
        (any::<prop::sample::Index>(), odd, 1u8..9)
            .prop_map(|(at, n, len)| Harm::Number(at, n, len)),
        (
            any::<prop::sample::Index>(),
            any::<prop::sample::Index>(),
            any::<u8>()
        )
            .prop_map(|(from, to, len)| Harm::Copy(from, to, len)),
    ]
}

fn apply(data: &mut Vec<u8>, harm: &Harm) {
    if data.is_empty() {
        return;
    }
    match harm {
        Harm::Cut(at) => data.truncate(at.index(data.len())),
        Harm::Flip(at, bits) => {
            let at = at.index(data.len());
            data[at] ^= bits;
        }
        Harm::Number(at, number, len) => {
            let at = at.index(data.len());
            let bytes = number.to_le_bytes();
            let len = usize::from(*len).min(data.len() - at);
            data[at..at + len].copy_from_slice(&bytes[..len]);
        }
        Harm::Copy(from, to, len) => {
            let (from, to) = (from.index(data.len()), to.index(data.len()));
            let len = usize::from(*len).min(data.len() - from.max(to));
            data.copy_within(from..from + len, to);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_read_within_bounds(
        seed in any::<prop::sample::Index>(),
        harms in prop::collection::vec(harm(), 1..6),
    ) {
        static SEEDS: std::sync::OnceLock<Vec<Vec<u8>>> = std::sync::OnceLock::new();
        let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let seeds = SEEDS.get_or_init(seeds);
        let mut data = seeds[seed.index(seeds.len())].clone();
        for harm in &harms {
            apply(&mut data, harm);
        }
        read_all(&data);
        drop(turn);
    }
}

#[test]
fn every_cut_of_every_kind_of_file_is_read() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    for seed in seeds() {
        for cut in (0..seed.len()).step_by(7) {
            read_all(&seed[..cut]);
        }
    }
}

#[test]
fn every_length_made_huge_is_read() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    for seed in seeds() {
        for at in (0..seed.len() - 4).step_by(5) {
            let mut data = seed.clone();
            data[at..at + 4].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f]);
            read_all(&data);
        }
    }
}

#[test]
fn lists_that_point_at_each_other_end() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let m = Machine::default();
    let data = FileSpec::new(m, vec![BufferSpec::new("", &[])]).v7();
    // The last list's DONE points back at the first list, and then at itself.
    let first = u64::from_le_bytes(data[24..32].try_into().unwrap());
    let mut circle = data.clone();
    let end = data.len() - 8;
    circle[end..].copy_from_slice(&first.to_le_bytes());
    read_all(&circle);
    let file = TraceDat::parse(&circle).unwrap();
    assert!(
        file.diagnostics()
            .iter()
            .any(|d| d.message.contains("circle")),
        "{:?}",
        file.diagnostics()
    );
}

#[test]
fn many_cpus_that_share_their_data_do_not_multiply_it() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let m = Machine {
        page_size: 1024,
        ..Machine::default()
    };
    let pages: Vec<Page> = (0..200)
        .map(|n| Page::new(m, n).record(0, &m.payload(300, 1, 0)))
        .collect();
    for pack in [Pack::None, Pack::Zlib, Pack::Zstd] {
        let spec = FileSpec::new(m, vec![BufferSpec::new("", &[(0, &pages)])]).pack(pack);
        let mut data = spec.v7();
        let cpu = TraceDat::parse(&data).unwrap().info().buffers[0].cpus[0];
        // A second list of options mentions ten thousand more CPUs at the same place.
        let mut option = m.u64(40).to_vec();
        option.extend(b"x\0local\0");
        option.extend(m.u32(1024));
        option.extend(m.u32(10_000));
        for n in 0..10_000 {
            option.extend(m.u32(n));
            option.extend(m.u64(cpu.offset));
            option.extend(m.u64(cpu.size));
        }
        let done = data.len() - 8;
        let here = data.len() as u64;
        data[done..].copy_from_slice(&m.u64(here));
        data.extend(m.u16(0));
        data.extend(m.u16(0));
        data.extend(m.u32(0));
        data.extend(m.u64(option.len() as u64 + 6 + 14));
        data.extend(m.u16(3));
        data.extend(m.u32(option.len() as u32));
        data.extend(&option);
        data.extend(m.u16(0));
        data.extend(m.u32(8));
        data.extend(m.u64(0));
        read_all(&data);
        let file = TraceDat::parse(&data).unwrap();
        let mut count = Count::default();
        let end = file.walk(&[], &mut count);
        assert!(
            count.records >= 200 && count.records <= 200 * 100,
            "{}",
            count.records
        );
        assert!(
            end.diagnostics
                .iter()
                .any(|d| d.message.contains("that of others")),
            "{:?}",
            end.diagnostics
        );
    }
}

/// One thing in a page.
#[derive(Debug, Clone)]
enum Thing {
    Record(u32, u32),
    Long(u32, u16),
    Extend(u64),
    Stamp(u64),
    Discarded(u32, u8),
}

fn thing() -> impl Strategy<Value = Thing> {
    let delta = 0u32..1 << 27;
    prop_oneof![
        4 => (delta.clone(), any::<u32>()).prop_map(|(d, v)| Thing::Record(d, v)),
        1 => (delta.clone(), 12u16..300).prop_map(|(d, n)| Thing::Long(d, n)),
        1 => (0u64..1 << 59).prop_map(Thing::Extend),
        1 => (0u64..1 << 59).prop_map(Thing::Stamp),
        1 => (1u32..1 << 27, 1u8..20).prop_map(|(d, n)| Thing::Discarded(d, n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is in the pages, the records come out as a model of the ring buffer says: time of each summed
    /// up, and all CPUs in order by repeatedly taking the earliest first record.
    #[test]
    fn any_pages_are_walked_as_the_model_says(
        cpus in prop::collection::vec(
            prop::collection::vec((any::<u64>(), prop::collection::vec(thing(), 0..9)), 0..4),
            1..6,
        ),
        big in any::<bool>(),
        long in prop::sample::select(vec![4u8, 8]),
        pack in prop::sample::select(vec![Pack::None, Pack::Zlib, Pack::Zstd]),
        chunk in 1usize..4,
    ) {
        let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        let m = Machine { big, long, page_size: 4096 };
        let mut queues = Vec::new();
        let mut list = Vec::new();
        for (cpu, pages) in cpus.iter().enumerate() {
            let mut queue = std::collections::VecDeque::new();
            let mut built = Vec::new();
            for (start, things) in pages {
                let mut time = *start;
                let mut page = Page::new(m, time);
                for thing in things {
                    match *thing {
                        Thing::Record(delta, value) => {
                            time = time.wrapping_add(u64::from(delta));
                            queue.push_back((time, value));
                            page = page.record(delta, &m.payload(300, 1, value));
                        }
                        Thing::Long(delta, len) => {
                            time = time.wrapping_add(u64::from(delta));
                            let mut payload = m.payload(300, 1, u32::from(len));
                            payload.resize(usize::from(len), 0);
                            queue.push_back((time, u32::from(len)));
                            page = page.long_record(delta, &payload);
                        }
                        Thing::Extend(delta) => {
                            time = time.wrapping_add(delta);
                            page = page.extend(delta);
                        }
                        Thing::Stamp(to) => {
                            time = to | time & (0x1f << 59);
                            page = page.stamp(to);
                        }
                        Thing::Discarded(delta, words) => {
                            time = time.wrapping_add(u64::from(delta));
                            page = page.discarded(delta, 4 * usize::from(words));
                        }
                    }
                }
                built.push(page);
            }
            list.push((cpu as u32, built));
            queues.push(queue);
        }
        let mut expected = Vec::new();
        while let Some((_, cpu)) =
            queues.iter().enumerate().filter_map(|(cpu, q)| Some((q.front()?.0, cpu))).min()
        {
            let (time, value) = queues[cpu].pop_front().unwrap();
            expected.push((time, cpu as u32, value));
        }
        let list: Vec<_> = list.iter().map(|(cpu, pages)| (*cpu, pages.as_slice())).collect();
        let mut spec = FileSpec::new(m, vec![BufferSpec::new("", &list)]).pack(pack);
        spec.chunk = chunk;
        struct Seen(Vec<(u64, u32, u32)>, bool);
        impl TraceVisitor for Seen {
            fn record(&mut self, r: &RingRecord<'_>) -> ControlFlow<()> {
                let b: [u8; 4] = r.data[8..12].try_into().unwrap();
                let value = if self.1 { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) };
                self.0.push((r.time, r.cpu, value));
                ControlFlow::Continue(())
            }
        }
        for data in [spec.v7(), spec.v6()] {
            let mut seen = Seen(Vec::new(), big);
            let end = TraceDat::parse(&data).unwrap().walk(&[], &mut seen);
            prop_assert_eq!(&seen.0, &expected);
            prop_assert_eq!(end.diagnostics, []);
        }
    }
}

/// Returns how many diagnostics of a file say so.
fn said(data: &[u8], what: &str) -> usize {
    let file = TraceDat::parse(data).unwrap();
    let all = file.diagnostics().iter();
    all.filter(|one| one.message.contains(what)).count()
}

#[test]
fn that_there_are_too_many_instances_is_said() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    for (instances, times) in [(1024, 0), (1026, 1)] {
        let instance = |number: usize| BufferSpec::new(&format!("i{number}"), &[]);
        let buffers = (0..=instances).map(instance).collect();
        let data = FileSpec::new(Machine::default(), buffers).v6();
        assert_eq!(
            said(&data, "more than 1024 instances"),
            times,
            "{instances}"
        );
    }
}

#[test]
fn that_there_are_too_many_buffers_without_a_description_is_said() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let m = Machine::default();
    let page = [Page::new(m, 5).record(0, &m.payload(300, 1, 0))];
    for (buffers, times) in [(1024, 0), (1026, 1)] {
        let mut data = FileSpec::new(m, vec![BufferSpec::new("", &[(0, &page)])]).v7();
        let number = |data: &[u8], at: usize| {
            u64::from_le_bytes(data[at..at + 8].try_into().unwrap()) as usize
        };
        // The list that describes the buffer is the last one, and the first one says where it is.
        let first = number(&data, 24);
        let end = first + 16 + number(&data, first + 8);
        data.truncate(number(&data, end - 8));
        // The buffer of the file is one of them.
        for _ in 1..buffers {
            data.extend([m.u16(3), m.u16(0)].concat());
            data.extend(m.u32(0));
            data.extend(m.u64(8));
            data.extend([0; 8]);
        }
        let nowhere = data.len() as u64 + 4096;
        data[end - 8..end].copy_from_slice(&nowhere.to_le_bytes());
        read_all(&data);
        assert_eq!(said(&data, "more than 1024 buffers"), times, "{buffers}");
    }
}
