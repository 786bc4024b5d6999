//! Records, their order and their times, from files whose answer is known.

use crate::writer::{BufferSpec, FileSpec, Machine, Pack, Page};
use std::ops::{ControlFlow, Range};
use tracedat::{LostGap, RingRecord, TraceDat, TraceVisitor, WalkEnd};

/// Everything a walk shows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    records: Vec<Row>,
    lost: Vec<LostGap>,
    /// The number of records before each gap.
    lost_at: Vec<usize>,
    consumed: Vec<Range<usize>>,
    big: bool,
}

impl TraceVisitor for Seen {
    fn record(&mut self, r: &RingRecord<'_>) -> ControlFlow<()> {
        let value = r.data.get(8..12).map_or(0, |b| {
            let b: [u8; 4] = b.try_into().unwrap();
            if self.big {
                u32::from_be_bytes(b)
            } else {
                u32::from_le_bytes(b)
            }
        });
        self.records
            .push((r.time, r.cpu, r.buffer, r.id, r.pid, value));
        ControlFlow::Continue(())
    }
    fn lost(&mut self, lost: &LostGap) {
        self.lost.push(*lost);
        self.lost_at.push(self.records.len());
    }
    fn consumed(&mut self, range: Range<usize>) {
        self.consumed.push(range);
    }
}

fn walk(data: &[u8], wanted: &[bool]) -> (Seen, WalkEnd) {
    let file = TraceDat::parse(data).unwrap();
    let mut seen = Seen {
        big: data[12] != 0,
        ..Seen::default()
    };
    let end = file.walk(wanted, &mut seen);
    (seen, end)
}

fn times(data: &[u8]) -> Vec<u64> {
    walk(data, &[]).0.records.iter().map(|r| r.0).collect()
}

/// All machines a recording may come from.
fn machines() -> Vec<Machine> {
    let mut out = Vec::new();
    for big in [false, true] {
        for long in [4, 8] {
            for page_size in [4096, 65536] {
                out.push(Machine {
                    big,
                    long,
                    page_size,
                });
            }
        }
    }
    out
}

/// Time, CPU, buffer, id, pid, and the number in the record.
type Row = (u64, u32, u16, u32, i32, u32);

/// Two CPUs and an instance with everything in their pages that moves time.
fn busy(m: Machine) -> (Vec<BufferSpec>, Vec<Row>) {
    let event = |id, value| m.payload(id, 7, value);
    let top = 0x15u64 << 59;
    let cpu0 = [
        Page::new(m, top + 1000)
            .record(0, &event(300, 1))
            .record(10, &event(301, 2))
            .extend(5 << 30)
            .record(1, &event(300, 3)),
        Page::new(m, top + (5 << 30) + 2000)
            .discarded(5, 16)
            .record(1, &event(300, 4))
            .stamp((5 << 30) + 3000)
            .long_record(2, &m.payload(301, -1, 5))
            .null(40),
        Page::new(m, top + (5 << 30) + 4000),
        Page::new(m, top + (5 << 30) + 5000).record(0, &event(300, 6)),
    ];
    let cpu3 = [Page::new(m, top + 1010)
        .record(0, &event(300, 10))
        .record(1, &event(300, 11))];
    let instance = [Page::new(m, top + 1000)
        .record(10, &event(301, 20))
        .record((1 << 27) - 1, &event(301, 21))];
    let buffers = vec![
        BufferSpec::new("", &[(0, &cpu0), (1, &[]), (2, &[]), (3, &cpu3)]),
        BufferSpec::new("other", &[(0, &[]), (1, &instance)]),
    ];
    let far = top + (5 << 30);
    let records = vec![
        (top + 1000, 0, 0, 300, 7, 1),
        (top + 1010, 0, 0, 301, 7, 2),
        (top + 1010, 3, 0, 300, 7, 10),
        (top + 1010, 1, 1, 301, 7, 20),
        (top + 1011, 3, 0, 300, 7, 11),
        (top + 1010 + (1 << 27) - 1, 1, 1, 301, 7, 21),
        (far + 1011, 0, 0, 300, 7, 3),
        (far + 2006, 0, 0, 300, 7, 4),
        // A stamp has 59 bits: the five above are those of the time before it.
        ((0x15 << 59) + (5 << 30) + 3002, 0, 0, 301, -1, 5),
        (far + 5000, 0, 0, 300, 7, 6),
    ];
    (buffers, records)
}

#[test]
fn records_are_the_same_from_every_machine_version_and_compression() {
    for machine in machines() {
        let (mut buffers, expected) = busy(machine);
        for pack in [Pack::None, Pack::Zlib, Pack::Zstd] {
            for (chunk, counts_own_word) in [(1, false), (10, true)] {
                let mut spec = FileSpec::new(machine, buffers.clone()).pack(pack);
                spec.chunk = chunk;
                spec.counts_own_word = counts_own_word;
                let (seen, end) = walk(&spec.v7(), &[]);
                assert_eq!(seen.records, expected, "{machine:?} {pack:?}");
                assert_eq!((end.records, end.skipped, end.truncated), (10, 0, false));
                assert_eq!(end.diagnostics, []);
            }
        }
        // In v6 all buffers have as many CPUs as the top one.
        buffers[1].cpus.extend([(2, Vec::new()), (3, Vec::new())]);
        let (seen, _) = walk(&FileSpec::new(machine, buffers).v6(), &[]);
        assert_eq!(seen.records, expected, "{machine:?} v6");
    }
}

#[test]
fn unwanted_records_are_left_out_and_nothing_else_changes() {
    let (buffers, expected) = busy(Machine::default());
    let data = FileSpec::new(Machine::default(), buffers).v7();
    let mut wanted = vec![false; 302];
    wanted[301] = true;
    let (seen, end) = walk(&data, &wanted);
    let only: Vec<_> = expected.iter().filter(|r| r.3 == 301).copied().collect();
    assert_eq!(seen.records, only);
    assert_eq!((end.records, end.skipped), (4, 6));
    // Ids beyond the list are not wanted.
    let (seen, end) = walk(&data, &[false]);
    assert_eq!((seen.records.len(), end.skipped), (0, 10));
}

#[test]
fn records_of_equal_time_come_in_order_of_buffer_and_cpu() {
    let m = Machine::default();
    let page = |value| {
        let mut page = Page::new(m, 500);
        for n in 0..3 {
            page = page.record(0, &m.payload(300, 1, value + n));
        }
        page
    };
    let cpus = |from: u32| -> Vec<(u32, Vec<Page>)> {
        (0..5)
            .map(|cpu| (4 - cpu, vec![page(from + 10 * (4 - cpu))]))
            .collect()
    };
    let (a, b) = (cpus(0), cpus(100));
    let spec = |cpus: &[(u32, Vec<Page>)], name: &str| {
        let list: Vec<_> = cpus
            .iter()
            .map(|(cpu, pages)| (*cpu, pages.as_slice()))
            .collect();
        BufferSpec::new(name, &list)
    };
    // CPUs are listed backwards, and the instance before the top buffer.
    let data = FileSpec::new(m, vec![spec(&b, "x"), spec(&a, "")]).v7();
    let values: Vec<_> = walk(&data, &[]).0.records.iter().map(|r| r.5).collect();
    let expected: Vec<u32> = [0, 100]
        .iter()
        .flat_map(|b| (0..5).flat_map(move |cpu| (0..3).map(move |n| b + 10 * cpu + n)))
        .collect();
    assert_eq!(values, expected);
}

#[test]
fn a_cpu_whose_time_goes_back_keeps_its_own_order() {
    let m = Machine::default();
    let a = [
        Page::new(m, 1000).record(0, &m.payload(300, 1, 1)),
        Page::new(m, 10).record(0, &m.payload(300, 1, 2)),
    ];
    let b = [Page::new(m, 500)
        .record(0, &m.payload(300, 1, 3))
        .record(600, &m.payload(300, 1, 4))];
    let data = FileSpec::new(m, vec![BufferSpec::new("", &[(0, &a), (1, &b)])]).v7();
    assert_eq!(times(&data), [500, 1000, 10, 1100]);
}

#[test]
fn lost_events_are_reported_before_the_record_behind_them() {
    for m in machines() {
        let a = [
            Page::new(m, 100).record(0, &m.payload(300, 1, 1)),
            Page::new(m, 200)
                .record(0, &m.payload(300, 1, 2))
                .missed(Some(724)),
            Page::new(m, 300)
                .record(0, &m.payload(301, 1, 3))
                .record(5, &m.payload(300, 1, 4))
                .missed(None),
            // Two gaps with no record between them, then one that nothing follows.
            Page::new(m, 400).missed(Some(3)),
            Page::new(m, 500)
                .extend(1 << 28)
                .record(0, &m.payload(300, 1, 5))
                .missed(Some(4)),
            Page::new(m, 600).missed(Some(9)),
        ];
        let b = [Page::new(m, 150)
            .record(0, &m.payload(300, 1, 6))
            .record(50, &m.payload(300, 1, 7))];
        let spec = FileSpec::new(m, vec![BufferSpec::new("", &[(0, &b), (1, &a)])]);
        let late = 500 + (1 << 28);
        let gaps = [
            (Some(724), 200),
            (None, 300),
            (Some(7), late),
            (Some(9), late),
        ];
        let gaps: Vec<_> = gaps
            .iter()
            .map(|&(count, time)| LostGap {
                cpu: 1,
                buffer: 0,
                count,
                time,
            })
            .collect();
        let mut wanted = vec![false; 301];
        wanted[300] = true;
        for data in [spec.v7(), spec.v6(), spec.clone().pack(Pack::Zstd).v7()] {
            let (seen, end) = walk(&data, &[]);
            assert_eq!(seen.lost, gaps);
            assert_eq!(
                seen.records.iter().map(|r| r.5).collect::<Vec<_>>(),
                [1, 6, 7, 2, 3, 4, 5]
            );
            assert_eq!(seen.lost_at, [3, 4, 6, 7]);
            assert_eq!((end.lost, end.lost_unknown), (740, 1));
            // The same when the record behind the gap is not wanted.
            let (seen, end) = walk(&data, &wanted);
            assert_eq!(seen.lost, gaps);
            assert_eq!(
                seen.records.iter().map(|r| r.5).collect::<Vec<_>>(),
                [1, 6, 7, 2, 4, 5]
            );
            assert_eq!(seen.lost_at, [3, 4, 5, 6]);
            assert_eq!((end.records, end.skipped), (6, 1));
        }
    }
}

#[test]
fn a_full_page_has_no_room_for_the_number_of_lost_events() {
    let m = Machine::default();
    let fill = vec![0u8; 4096 - 16 - 8 - 4];
    let mut page = Page::new(m, 1).long_record(0, &fill).missed(Some(1));
    page = page.missed(None);
    let data = FileSpec::new(m, vec![BufferSpec::new("", &[(0, &[page])])]).v7();
    let (seen, end) = walk(&data, &[]);
    assert_eq!((seen.records.len(), end.lost, end.lost_unknown), (1, 0, 1));
}

#[test]
fn the_visitor_can_stop() {
    struct First(u64);
    impl TraceVisitor for First {
        fn record(&mut self, r: &RingRecord<'_>) -> ControlFlow<()> {
            self.0 = r.time;
            ControlFlow::Break(())
        }
    }
    let (buffers, expected) = busy(Machine::default());
    let data = FileSpec::new(Machine::default(), buffers).v7();
    let mut first = First(0);
    let end = TraceDat::parse(&data).unwrap().walk(&[], &mut first);
    assert_eq!(
        (first.0, end.records, end.stopped),
        (expected[0].0, 1, true)
    );
    // A visitor may also be had as a trait object.
    let visitor: &mut dyn TraceVisitor = &mut first;
    assert!(TraceDat::parse(&data).unwrap().walk(&[], visitor).stopped);
}

#[test]
fn what_was_read_is_given_back_once_and_completely() {
    let m = Machine::default();
    let pages = |cpu: u64| -> Vec<Page> {
        (0..600)
            .map(|n| {
                Page::new(m, 1000 * n + cpu)
                    .record(0, &m.payload(300, 1, n as u32))
                    .record(500, &m.payload(301, 1, 0))
            })
            .collect()
    };
    let (a, b) = (pages(1), pages(2));
    let spec = FileSpec::new(m, vec![BufferSpec::new("", &[(0, &a), (1, &b)])]);
    for data in [spec.v7(), spec.v6(), spec.clone().pack(Pack::Zlib).v7()] {
        let (seen, _) = walk(&data, &[]);
        assert_eq!(seen.records.len(), 2400);
        let file = TraceDat::parse(&data).unwrap();
        for cpu in &file.info().buffers[0].cpus {
            let (start, end) = (cpu.offset as usize, (cpu.offset + cpu.size) as usize);
            let mut at = start;
            for range in seen
                .consumed
                .iter()
                .filter(|r| (start..end).contains(&r.start))
            {
                assert_eq!(range.start, at);
                assert!(
                    range.len() <= (1 << 20) + 4096,
                    "too much at once: {range:?}"
                );
                at = range.end;
            }
            assert!((end..=end + 4).contains(&at), "{at} of {end}");
        }
    }
}

#[test]
fn damage_inside_a_page_costs_the_rest_of_that_page_only() {
    let m = Machine::default();
    let event = |n| m.payload(300, 1, n);
    // A record that claims to be longer than its page.
    let bad = Page::new(m, 200)
        .record(0, &event(2))
        .raw(&m.u32(0))
        .raw(&m.u32(5000))
        .record(0, &event(99));
    let good = |n: u32| Page::new(m, 100 * u64::from(n)).record(0, &event(n));
    let mut bytes: Vec<u8> = [
        good(1).bytes(),
        bad.bytes(),
        good(3).bytes(),
        good(4).bytes(),
    ]
    .concat();
    // And a page whose header says that it has more than a page can have.
    bytes[2 * 4096 + 8..][..8].copy_from_slice(&5000u64.to_le_bytes());
    let buffer = BufferSpec {
        cpus: vec![(5, bytes)],
        ..BufferSpec::new("", &[])
    };
    let data = FileSpec::new(m, vec![buffer]).v7();
    let (seen, end) = walk(&data, &[]);
    assert_eq!(
        seen.records.iter().map(|r| r.5).collect::<Vec<_>>(),
        [1, 2, 4]
    );
    assert_eq!(end.diagnostics.len(), 2, "{:?}", end.diagnostics);
    assert!(!end.truncated);
    let text = end.diagnostics[0].to_string();
    assert!(
        text.contains("CPU 5") && text.starts_with("at byte 0x"),
        "{text}"
    );
}

#[test]
fn a_damaged_chunk_costs_that_chunk_only() {
    let m = Machine::default();
    let pages: Vec<_> = (0..4)
        .map(|n| Page::new(m, 100 * n).record(0, &m.payload(300, 1, n as u32)))
        .collect();
    for pack in [Pack::Zlib, Pack::Zstd] {
        let mut spec = FileSpec::new(m, vec![BufferSpec::new("", &[(0, &pages)])]).pack(pack);
        spec.chunk = 1;
        let mut data = spec.v7();
        let at = TraceDat::parse(&data).unwrap().info().buffers[0].cpus[0].offset as usize;
        let first = u32::from_le_bytes(data[at + 4..at + 8].try_into().unwrap()) as usize;
        // The header of the second chunk's stream or frame.
        data[at + 4 + 8 + first + 8..][..4].copy_from_slice(&[0xff; 4]);
        let (seen, end) = walk(&data, &[]);
        assert_eq!(
            seen.records.iter().map(|r| r.5).collect::<Vec<_>>(),
            [0, 2, 3],
            "{pack:?}"
        );
        assert_eq!(
            seen.lost.len(),
            1,
            "nobody knows how many events were in the chunk"
        );
        assert_eq!((seen.lost_at[0], seen.lost[0].count), (1, None));
        assert_eq!(end.diagnostics.len(), 1, "{:?}", end.diagnostics);
    }
}
