//! Nothing that comes in can do harm, and what is undamaged is read.

use std::ops::ControlFlow;

use crate::common::{Gathered, Seen, read};
use event::{Event, EventType, Sink};
use proptest::prelude::*;
use tracetext::{TraceTextReader, event_line, sniff, walk};

const LINES: &[&str] = &[
    "       CPU 1/KVM  4043 [001]   844.831936:           kvm:kvm_exit: vcpu 1 reason io rip 0xffffffff8177a62b info1 \
     0x0000000006080041 info2 0xffffffff8177a62c intr_info 0x00000000 error_code 0x00000000",
    "       CPU 1/KVM  4043 [001]   844.831958:            kvm:kvm_pio: pio_read at 0x608 size 4 count 1 val 0x3e38c9 ",
    "  qemu-kvm  4040/4043  [001]   844.831963123:          kvm:kvm_entry: vcpu 1, rip 0xffffffff8177a62c",
    "       CPU 1/KVM-4043  [001]   844.831965: kvm_exit:             reason EXIT_IOIO rip 0xffffffff8177a62b info \
     6080041 ffffffff8177a62c",
    "          <idle>-0     [003]   844.832000: sched_switch:         swapper/3:0 [120] R ==> kworker/3:1:15 [120]",
    "       CPU 1/KVM-4043    [001] d..1.   844.832001: kvm_msr: msr_write 6e0 = 0x2cdea76f99",
    "       CPU 1/KVM-4043    (   4040) [001] d..1.   844.832002: kvm_mmio: mmio write len 4 gpa 0xfed000f0 val 0x78",
    "CPU 1/KV-4043      1d..1. 844832003us+: kvm_entry: vcpu 1, rip 0xffffffff8177a62c",
    "       CPU 0/KVM-1256  [003]   844.832004: kvm_exit:             <CANT FIND FIELD exit_reason>TRAP: HSR_EC: \
     0x0024 (DABT_LOW), PC: 0xffffa53559d6c68c",
    "  host.dat:        CPU 0/KVM-2711  [001]   844.832005: kvm_get_timer_map:    VCPU: 0, dv: 1, dp: 0, ep: -1",
    "CPU 0/KVM  1234/1240   844.832006: kvm:kvm_entry: vcpu 0, rip 0xffffffff8177a62c",
    "[001] d..1.   844.832007: kvm_msr: msr_write 6e0 = 0x2cdea76f99",
    "  844.832008 |   1)  qemu-k-1240  |               |    /* kvm_entry: vcpu 0, rip 0xffffffff8177a62c */",
];

/// Lines that belong to texts without being events.
const OTHERS: &[&str] = &[
    "",
    "# tracer: nop",
    "cpus=4",
    "CPU:1 [724 EVENTS DROPPED]",
    "CPU:2 [LOST 123 EVENTS]",
    "\tffffffff810e19d2 try_to_wake_up+0x2d2 ([kernel.kallsyms])",
    "=> kvm_vcpu_ioctl (ffffffffc04305f5)",
    "...",
    "Warning:",
    "# entries-in-buffer/entries-written: 27180/27180   #P:4",
    "a 1 [000]     0.000000: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0xe01d32) @ 0]: x [kernel.kallsyms]_text",
    "a 1 [000]     0.000000: PERF_RECORD_FORK(1:1):(0:0)",
    " 1)   0.541 us    |  kvm_arch_vcpu_put();",
    " 0) ! 120.5 us | }",
    " 1)               |  /* a text */",
];

/// Compared of an event: what its own line says. A damaged line behind it may be taken for its rest.
fn reported(seen: &Seen) -> (u64, i32, i32, i32, String, String) {
    (
        seen.time,
        seen.cpu,
        seen.tid,
        seen.pid,
        seen.system.clone(),
        seen.name.clone(),
    )
}

/// Reads a text in pieces.
fn read_in_pieces(text: &[u8], sizes: &[usize]) -> (Gathered, tracetext::TextSummary) {
    let mut gathered = Gathered::default();
    let mut reader = TraceTextReader::new();
    let (mut buffer, mut at, mut turn) = (Vec::new(), 0, 0);
    loop {
        let size = sizes[turn % sizes.len()].min(text.len() - at);
        buffer.extend_from_slice(&text[at..at + size]);
        at += size;
        turn += 1;
        let end = at == text.len();
        let fed = reader.feed(&buffer, end, &mut gathered);
        buffer.drain(..fed.consumed);
        if end && (buffer.is_empty() || fed.consumed == 0) {
            return (gathered, reader.finish(&mut Gathered::default()));
        }
    }
}

fn a_line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(LINES).prop_map(str::to_owned),
        2 => prop::sample::select(OTHERS).prop_map(str::to_owned),
        1 => "[ -~]{0,60}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        let _ = sniff(&bytes);
        let _ = event_line(&bytes);
        let (_, summary) = read(&bytes);
        prop_assert!(summary.events <= summary.lines);
    }

    #[test]
    fn any_mixture_of_pieces_of_lines(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![
                    ":", " ", "  ", "\t", "\n", "\r\n", "[001]", "[", "]", "-", "4043", "1.5", "844.831936: ",
                    "kvm:kvm_exit: ", "kvm_exit: ", "reason ", "io ", "rip 0x", "ffffffff", "vcpu ", "(", ")", "us ",
                    "d..1.", "&gt;", "&", "\x1b[", "\u{a0}", ">", "|", "PERF_RECORD_", "MMAP ", "COMM", "LOST ",
                    "cpus=", "CPU:1 [", "EVENTS DROPPED]", "# ", "exit_reason=", "isa=2 ", "HSR_EC: 0x", "PC: ", "/",
                    "type: ", "...", "=> ", "+0x1", "-1", "999999999999999999999", "us!: ", "\u{fffd}", "intercept ",
                    "1) ", "| ", "}", "/* ", "*/", "f();", "f() {", "0.541 us ", "==========> ",
                ]).prop_map(str::to_owned),
                "[ -~]{0,5}",
            ],
            0..60,
        )
    ) {
        let text = pieces.concat();
        let heads = text.lines().filter(|line| event_line(line.as_bytes()).is_some());
        prop_assert!(heads.count() <= text.lines().count());
        let (gathered, summary) = read(&text);
        prop_assert_eq!(gathered.events.len() as u64, summary.events);
        let counted: u64 = summary.types.iter().map(|t| t.count).sum();
        prop_assert_eq!(counted, summary.events);
    }

    #[test]
    fn undamaged_lines_are_read_whatever_stands_between(
        before in prop::collection::vec(a_line(), 0..6),
        line in prop::sample::select(LINES),
        after in prop::collection::vec(a_line(), 0..6),
    ) {
        let want = reported(&read(line).0.events[0]);
        let text = [before, vec![line.to_owned()], after].concat().join("\n");
        let (got, _) = read(&text);
        prop_assert!(got.events.iter().any(|e| reported(e) == want), "{}", text);
    }

    #[test]
    fn damage_to_a_line_stays_in_it(
        lines in prop::collection::vec(prop::sample::select(&LINES[..7]), 3..8),
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..8),
    ) {
        let which = which.index(lines.len());
        let mut damaged: Vec<u8> = lines[which].as_bytes().to_vec();
        for (at, byte, what) in edits {
            if damaged.is_empty() {
                break;
            }
            let at = at.index(damaged.len());
            match what {
                0 => damaged[at] = byte,
                1 => damaged.truncate(at),
                _ => damaged.insert(at, byte),
            }
        }
        let mut text = Vec::new();
        for (n, line) in lines.iter().enumerate() {
            text.extend_from_slice(if n == which { &damaged } else { line.as_bytes() });
            text.push(b'\n');
        }
        let (got, _) = read(&text);
        let mut left = got.events.iter().map(reported);
        for (n, line) in lines.iter().enumerate() {
            if n != which {
                let want = reported(&read(line).0.events[0]);
                prop_assert!(left.any(|e| e == want), "{}", String::from_utf8_lossy(&text));
            }
        }
    }

    #[test]
    fn pieces_make_no_difference(
        lines in prop::collection::vec((a_line(), prop::sample::select(vec!["\n", "\n", "\r\n", "\r"])), 1..12),
        one_end in any::<bool>(),
        sizes in prop::collection::vec(1usize..200, 1..5),
    ) {
        let first = lines[0].1;
        let line = |(line, end): &(String, &'static str)| line.clone() + if one_end { first } else { end };
        let text: String = lines.iter().map(line).collect();
        let (want, whole) = read(&text);
        let (got, summary) = read_in_pieces(text.as_bytes(), &sizes);
        prop_assert_eq!(got.events, want.events);
        prop_assert_eq!(summary.lines, whole.lines);
        prop_assert_eq!(summary.quality, whole.quality);
        prop_assert_eq!(summary.first_not_understood, whole.first_not_understood);
    }
}

/// Takes events until it has enough.
struct Some2(u64);

impl Sink for Some2 {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        ty.name != "sched_switch"
    }

    fn event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        self.0 += 1;
        if self.0 == 2 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[test]
fn a_sink_that_has_enough_ends_the_reading() {
    let text = LINES.join("\n").repeat(10);
    let mut sink = Some2(0);
    walk(text.as_bytes(), &mut sink);
    assert_eq!(sink.0, 2);
}

#[test]
fn unwanted_kinds_are_counted_but_not_sent() {
    struct Refuses;
    impl Sink for Refuses {
        fn wants(&mut self, _: &EventType<'_>) -> bool {
            false
        }
        fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
            panic!("{event:?} was refused");
        }
    }
    let summary = walk(LINES.join("\n").as_bytes(), &mut Refuses);
    assert_eq!(summary.events, LINES.len() as u64);
}

/// Texts that are long in every way there is. With anything quadratic in them this test would take hours.
#[test]
fn length_is_no_attack() {
    const LONG: usize = 200_000;
    let line = LINES[0];
    for piece in [
        "x",
        ":",
        "1: ",
        "a: ",
        ">",
        "[",
        "]",
        "[001] ",
        "&amp;",
        "&",
        "\x1b]",
        "\x1b[",
        "\u{a0}",
        "1  ",
        "-",
        "\"",
        "=>",
        "12345678901234567890",
        "0x0 ",
        " ",
        "\t",
        "\r",
        "...",
        "#",
        "kvm:",
        "1.5: kvm:kvm_exit: ",
        "\u{2026}",
        "\u{2003}",
    ] {
        let long = piece.repeat(LONG / piece.len());
        // As one line, between two others.
        let text = format!("{line}\n{long}\n{line}\n");
        let (got, _) = read(&text);
        assert!(got.events.len() >= 2 || piece == "\r", "{piece:?}");
        // In lines of one piece each, and of a thousand.
        let thousand = piece.repeat(1000 / piece.len());
        for short in [piece, &thousand] {
            let lines = format!("{short}\n").repeat(LONG / (short.len() + 1));
            let (got, _) = read(format!("{line}\n{lines}{line}\n"));
            assert!(got.events.len() >= 2, "{piece:?}");
        }
        let (got, _) = read_in_pieces(text.as_bytes(), &[100_000]);
        assert!(got.events.len() >= 2 || piece == "\r", "{piece:?}");
    }
}

#[test]
fn a_new_name_in_each_line_fills_no_memory() {
    let mut text = String::new();
    for n in 0..20_000 {
        text += &format!("a-1 [000] 1.000001: event_{n}: x\n");
    }
    let (got, summary) = read(&text);
    assert!(got.asked.len() < 10_000);
    assert_eq!(summary.events + summary.not_understood, 20_000);
}
