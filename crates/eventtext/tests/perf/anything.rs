//! Whatever a recording says, lines come out.

use event::{Body, CallChain, Event, EventSample, Side};
use eventtext::{PerfPrinter, PerfStyle};
use proptest::prelude::*;
use tracefmt::{FormatCatalog, FormatText};

use crate::script::*;

/// One thing that a recording may tell.
#[derive(Debug, Clone)]
enum Reported {
    Comm(i32, i32, String),
    Fork(u64, i32, i32, i32, i32),
    Exit(i32, i32),
    Mmap(i32, i32, u64, u64, u64, u16, String),
    Symbol(u64, u64, String, bool),
    Event {
        tid: i32,
        pid: i32,
        time: u64,
        cpu: i32,
        misc: u16,
        ip: Option<u64>,
        chain: Option<Vec<u8>>,
    },
}

fn reported() -> impl Strategy<Value = Reported> {
    // Few different numbers, so that they meet, and the odd ones among them.
    let id = || {
        prop_oneof![
            Just(-1),
            0..6i32,
            Just(i32::MIN),
            Just(i32::MAX),
            any::<i32>()
        ]
    };
    let address = || {
        prop_oneof![
            0..64u64,
            (0..64u64).prop_map(|n| TEXT + n),
            any::<u64>(),
            Just(u64::MAX)
        ]
    };
    let len = || prop_oneof![0..16u64, any::<u64>(), Just(u64::MAX)];
    let misc = || prop_oneof![0..8u16, any::<u16>()];
    let path = || {
        prop_oneof![
            "[a-z./\\-]{0,8}",
            Just("[kernel.kallsyms]_text".to_owned()),
            Just("[guest.kernel.kallsyms.1]_text".to_owned()),
            Just("/m/a-b.ko.xz".to_owned()),
            Just("//anon".to_owned()),
            Just("a.gz".to_owned()),
            ".{0,300}",
        ]
    };
    let number = prop_oneof![
        address(),
        Just(KERNEL),
        Just(USER),
        Just(HYPERVISOR),
        Just(GUEST),
    ];
    let chain = prop_oneof![
        prop::collection::vec(number, 0..200).prop_map(|c| c
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect::<Vec<u8>>()),
        prop::collection::vec(any::<u8>(), 0..100),
    ];
    prop_oneof![
        (id(), id(), path()).prop_map(|(p, t, c)| Reported::Comm(p, t, c)),
        (
            prop_oneof![Just(0u64), any::<u64>()],
            id(),
            id(),
            id(),
            id()
        )
            .prop_map(|(t, a, b, c, d)| Reported::Fork(t, a, b, c, d)),
        (id(), id()).prop_map(|(p, t)| Reported::Exit(p, t)),
        (id(), id(), address(), len(), any::<u64>(), misc(), path())
            .prop_map(|(p, t, s, l, o, m, n)| Reported::Mmap(p, t, s, l, o, m, n)),
        (address(), len(), path(), any::<bool>())
            .prop_map(|(s, l, n, g)| Reported::Symbol(s, l, n, g)),
        (
            id(),
            id(),
            any::<u64>(),
            any::<i32>(),
            misc(),
            prop::option::of(address()),
            prop::option::of(chain)
        )
            .prop_map(|(tid, pid, time, cpu, misc, ip, chain)| Reported::Event {
                tid,
                pid,
                time,
                cpu,
                misc,
                ip,
                chain
            }),
    ]
}

proptest! {
    #[test]
    fn anything_can_be_reported(
        all in prop::collection::vec(reported(), 0..100),
        flags in any::<[bool; 6]>(),
    ) {
        let [nanoseconds, tracepoint_addresses, addresses, pipe, has_cpu, big_endian] = flags;
        let style = PerfStyle { nanoseconds, tracepoint_addresses, addresses, pipe, ..PerfStyle::default() };
        let mut printer = PerfPrinter::new(&style);
        let kind = ty(3, "an:event");
        printer.declare(&kind);
        let formats = FormatCatalog::default();
        let mut out = FormatText::new();
        for one in &all {
            match one {
                Reported::Comm(pid, tid, comm) => {
                    printer.side(&Side::Comm { time: 1, pid: *pid, tid: *tid, comm, exec: false });
                }
                &Reported::Fork(time, pid, tid, ppid, ptid) => {
                    printer.side(&Side::Fork { time, pid, tid, ppid, ptid });
                }
                &Reported::Exit(pid, tid) => printer.side(&Side::Exit { time: 1, pid, tid }),
                Reported::Mmap(pid, tid, start, len, pgoff, misc, path) => printer.side(&Side::Mmap {
                    time: 1,
                    pid: *pid,
                    tid: *tid,
                    start: *start,
                    len: *len,
                    pgoff: *pgoff,
                    misc: *misc,
                    exec: misc & 0x2000 == 0,
                    huge: misc & 0x4000 != 0,
                    build_id: None,
                    path,
                }),
                Reported::Symbol(start, len, name, gone) => printer.side(&Side::Ksymbol {
                    time: 1,
                    start: *start,
                    len: *len,
                    name,
                    gone: *gone,
                }),
                Reported::Event { tid, pid, time, cpu, misc, ip, chain } => {
                    let tracepoint = *time % 2 == 0;
                    let sample = EventSample {
                        misc: *misc,
                        ip: *ip,
                        addr: None,
                        period: Some(*time),
                        call_branches: None,
                        user_stack: None,
                        callchain: chain.as_deref().map(|chain| CallChain::new(chain, big_endian)),
                        has_cpu,
                        tracepoint,
                    };
                    let event = Event {
                        time: *time,
                        cpu: *cpu,
                        tid: *tid,
                        pid: *pid,
                        ty: &kind,
                        body: Body::None,
                        sample: Some(&sample),
                        buffer: 0,
                        comm: None,
                    };
                    let start = out.len();
                    printer.event(&event, &formats, &mut out);
                    let text = &out.as_bytes()[start..];
                    prop_assert_eq!(text.last(), Some(&b'\n'));
                    let needle = format!(" {tid:5} ");
                    prop_assert!(text.windows(needle.len()).any(|w| w == needle.as_bytes()));
                    let lines = text.iter().filter(|&&b| b == b'\n').count();
                    // The event, 127 addresses, and the end of the chain.
                    prop_assert!(lines <= 129);
                    out.truncate(start.min(64));
                }
            }
        }
    }
}
