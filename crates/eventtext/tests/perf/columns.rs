//! The columns in front of an event's own text.

use event::{Body, CallChain, Event, EventSample, EventType, Side};
use eventtext::{PerfPrinter, PerfStyle};
use tracefmt::{FormatCatalog, FormatText};

use crate::script::*;

const SWITCH: &[u8] = b"name: sched_switch\nID: 314\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int prev_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"prev_pid=%d\", REC->prev_pid\n";

#[test]
fn a_tracepoints_line_has_all_columns() {
    let mut formats = FormatCatalog::default();
    formats.add("sched", SWITCH);
    let switch = EventType {
        format: formats.by_id(314),
        ..ty(1, "sched:sched_switch")
    };
    let line = |style: &PerfStyle<'_>, event: &Event<'_>| {
        let mut printer = PerfPrinter::new(style);
        printer.declare(&ty(0, "sched:sched_stat_runtime"));
        printer.declare(&switch);
        for (tid, comm) in [(3989, "perf"), (1_234_567, "longer than sixteen bytes")] {
            printer.side(&Side::Comm {
                time: 0,
                pid: tid,
                tid,
                comm,
                exec: false,
            });
        }
        let mut out = FormatText::new();
        out.extend_from_slice(b"before\n");
        printer.event(event, &formats, &mut out);
        String::from_utf8(out.as_bytes().to_vec()).unwrap()
    };
    let record = [58, 1, 0, 0, 0x95, 0x0f, 0, 0, 0, 0, 0, 0];
    let sample = EventSample {
        ip: Some(TEXT),
        period: Some(1),
        has_cpu: true,
        tracepoint: true,
        ..EventSample::default()
    };
    let event = Event {
        time: 809_142_211_999,
        cpu: 3,
        tid: 3989,
        pid: 3989,
        ty: &switch,
        body: Body::Raw(&record),
        sample: Some(&sample),
        buffer: 0,
        comm: None,
    };
    let style = PerfStyle::default();
    assert_eq!(
        line(&style, &event),
        "before\n            perf  3989 [003]   809.142211:       sched:sched_switch: prev_pid=3989\n"
    );
    let ns = PerfStyle {
        nanoseconds: true,
        ..PerfStyle::default()
    };
    assert_eq!(
        line(&ns, &event),
        "before\n            perf  3989 [003]   809.142211999:       sched:sched_switch: prev_pid=3989\n"
    );
    // Wide values widen their columns.
    let wide = Event {
        time: 1_234_567_890_123_456_789,
        cpu: 1234,
        tid: 1_234_567,
        pid: 1_234_567,
        ..event
    };
    assert_eq!(
        line(&style, &wide),
        "before\nlonger than sixteen bytes 1234567 [1234] 1234567890.123456:       sched:sched_switch: \
         prev_pid=3989\n"
    );
    // What is not recorded has no column.
    let bare = EventSample {
        has_cpu: false,
        ..sample
    };
    assert_eq!(
        line(
            &style,
            &Event {
                sample: Some(&bare),
                time: 0,
                ..event
            }
        ),
        "before\n            perf  3989       sched:sched_switch: prev_pid=3989\n"
    );
    // Where other tracepoints have call chains, those without show their one address; not the file in pipe mode.
    let style = PerfStyle {
        tracepoint_addresses: true,
        addresses: true,
        ..PerfStyle::default()
    };
    assert_eq!(
        line(&style, &event),
        "before\n            perf  3989 [003]   809.142211:       sched:sched_switch: prev_pid=3989 \
         ffffffff81000000 [unknown] ([unknown])\n"
    );
    let style = PerfStyle {
        pipe: true,
        ..style
    };
    let chain = [KERNEL, TEXT, USER, 5].map(u64::to_be_bytes).concat();
    let stack = EventSample {
        callchain: Some(CallChain::new(&chain, true)),
        ..sample
    };
    assert_eq!(
        line(
            &style,
            &Event {
                sample: Some(&stack),
                ..event
            }
        ),
        "before\nperf  3989 [003]   809.142211:       sched:sched_switch: prev_pid=3989\n\
         \tffffffff81000000 [unknown]\n\t               5 [unknown]\n\n"
    );
}

#[test]
fn other_events_show_their_period_and_address() {
    let mut script = Script::new(&addresses());
    script.kernel();
    script.comm(20, 20, "abc");
    assert_eq!(
        script.line(20, 20, K, TEXT),
        "             abc    20 [000]     0.001003:          1 cpu-clock:  ffffffff81000000 [unknown] \
         ([kernel.kallsyms])\n"
    );
    script.sample.period = Some(u64::MAX);
    assert_eq!(
        script.line(20, 20, U, 1),
        "             abc    20 [000]     0.001004: 18446744073709551615 cpu-clock:                 1 [unknown] \
         ([unknown])\n"
    );
}

#[test]
fn names_come_from_records_and_from_parents() {
    let mut script = Script::new(&PerfStyle::default());
    assert_eq!(script.name(0, 0), "swapper");
    assert_eq!(script.name(20, 20), ":20");
    assert_eq!(script.name(-1, -1), ":-1");
    assert_eq!(script.name(i32::MIN, i32::MIN), ":-2147483648");
    script.comm(20, 20, "parent");
    script.fork(20, 33, 20, 20);
    assert_eq!(script.name(20, 33), "parent");
    script.comm(20, 33, "thr");
    assert_eq!(
        (script.name(20, 33).as_str(), script.name(20, 20).as_str()),
        ("thr", "parent")
    );
    // Processes of an unknown parent, and of the idle one.
    script.fork(50, 50, 49, 49);
    assert_eq!(script.name(50, 50), ":50");
    script.fork(2, 2, 0, 0);
    assert_eq!(script.name(2, 2), "swapper");
    // The end of the thread that had the parent's id before was lost.
    script.comm(60, 60, "sixty");
    script.fork(61, 61, 59, 60);
    assert_eq!(
        (script.name(61, 61).as_str(), script.name(60, 60).as_str()),
        (":61", ":60")
    );
    script.comm(70, 70, "");
    assert_eq!(
        script.line(70, 70, U, 1).get(..24),
        Some("                    70 [")
    );
    script.comm(0, 0, "idle!");
    assert_eq!(script.name(0, 0), "idle!");
    // Ids that share a place in the table of recent threads.
    for tid in [1, 257, 513, 1, 513] {
        assert_eq!(script.name(tid, tid), format!(":{tid}"));
    }
}
