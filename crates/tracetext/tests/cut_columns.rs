//! The kernel's `trace` file, of which columns or the header were cut away.

use event::NONE;
use tracetext::TextProducer;

use crate::common::{Seen, read, wrapped};

const NEW: &str = include_str!("texts/ftrace-6.1.txt");
const OLD: &str = include_str!("texts/ftrace-5.4.txt");
/// In latency format.
const LATENCY: &str = "\
trace-cm-4205      2dN.5. 243321us!: sched_waking: comm=bash pid=3731 prio=120 target_cpu=000
CPU 1/KV-3743      1..... 253504us+: kvm_pio: pio_read at 0x608 size 4 count 1 val 0x738dc3
CPU 1/KV-3743      1d..1. 253537us+: kvm_entry: vcpu 1, rip 0xffffffff8177a62c
CPU 1/KV-3743      1..... 253585us+: kvm_exit: vcpu 1 reason io rip 0xffffffff8177a62b info1 0x6080041 info2 0x0
CPU 1/KV-3743      1..... 253602us : kvm_userspace_exit: reason KVM_EXIT_IO (2)
";

/// Lines of events, each changed; headers go.
fn each(text: &str, change: &dyn Fn(&str) -> String) -> String {
    let events = text.lines().filter(|line| !line.starts_with('#'));
    events.map(|line| change(line) + "\n").collect()
}

/// What is there of an event when the columns of CPU and task are not.
fn kernel(seen: &[Seen]) -> Vec<(u64, String, event::Data)> {
    let of = |seen: &Seen| (seen.time, seen.name.clone(), seen.data);
    seen.iter().map(of).collect()
}

/// A line from its CPU on.
fn from_cpu(line: &str) -> String {
    line[line.find('[').expect("a CPU")..].to_owned()
}

#[test]
fn the_task_is_cut_away() {
    for text in [NEW, OLD] {
        let (want, _) = read(text);
        assert_eq!(
            want.events.len(),
            text.lines().filter(|line| !line.starts_with('#')).count()
        );
        let without_flags = |line: &str| {
            let line = from_cpu(line);
            line[..6].to_owned() + line[6..].split_once(' ').expect("flags").1
        };
        for cut in [
            each(text, &from_cpu),
            each(text, &without_flags),
            each(text, &|line| format!("    <...>    {}", from_cpu(line))),
            each(text, &|line| format!("> {}\r", from_cpu(line))),
            each(text, &|line| format!("  12: {}", from_cpu(line))),
            each(text, &|line| from_cpu(line).replace(' ', "\t")),
            text[..text.find("   trace-cmd").expect("events")].to_owned() + &each(text, &from_cpu),
        ] {
            let (got, summary) = read(&cut);
            assert_eq!(kernel(&got.events), kernel(&want.events), "{cut}");
            for (got, want) in got.events.iter().zip(&want.events) {
                assert_eq!((got.cpu, got.tid), (want.cpu, NONE), "{cut}");
            }
            assert!(!summary.thread_column, "{cut}");
            let (got, _) = read(wrapped(&cut, 72));
            assert_eq!(
                kernel(&got.events),
                kernel(&want.events),
                "{}",
                wrapped(&cut, 72)
            );
            assert!(
                summary
                    .quality
                    .texts()
                    .iter()
                    .all(|text| text.contains("excerpt")),
                "{cut}"
            );
            assert_eq!(
                tracetext::sniff(cut.as_bytes()),
                Some(TextProducer::Ftrace),
                "{cut}"
            );
        }
    }
}

#[test]
fn cpu_and_task_are_cut_away() {
    for text in [NEW, OLD] {
        let (want, _) = read(text);
        let flags_on = |line: &str| from_cpu(line)[6..].to_owned();
        let time_on = |line: &str| {
            let line = flags_on(line);
            line.split_once(' ').expect("flags").1.to_owned()
        };
        for cut in [
            each(text, &flags_on),
            each(text, &|line| format!("> {}", flags_on(line))),
            each(text, &time_on),
            each(text, &|line| time_on(line).trim_start().to_owned()),
        ] {
            let (got, summary) = read(&cut);
            assert_eq!(kernel(&got.events), kernel(&want.events), "{cut}");
            assert!(
                got.events
                    .iter()
                    .all(|event| (event.cpu, event.tid) == (NONE, NONE)),
                "{cut}"
            );
            let texts = summary.quality.texts();
            assert!(
                texts.len() == 1 && texts[0].contains("have no CPU"),
                "{texts:?}"
            );
            assert_eq!(
                tracetext::sniff(cut.as_bytes()),
                Some(TextProducer::Ftrace),
                "{cut}"
            );
        }
    }
}

#[test]
fn the_task_is_cut_away_in_latency_format() {
    let (want, _) = read(LATENCY);
    let from_cpu = |line: &str| line[19..].to_owned();
    for cut in [
        each(LATENCY, &from_cpu),
        each(LATENCY, &|line| format!("> {}", from_cpu(line))),
    ] {
        let (got, _) = read(&cut);
        assert_eq!(kernel(&got.events), kernel(&want.events), "{cut}");
        for (got, want) in got.events.iter().zip(&want.events) {
            assert_eq!((got.cpu, got.tid), (want.cpu, NONE), "{cut}");
        }
        assert_eq!(
            tracetext::sniff(cut.as_bytes()),
            Some(TextProducer::FtraceLatency),
            "{cut}"
        );
    }
}

#[test]
fn functions_and_stacks_without_their_task() {
    let text = "\
[001] d..2.   444.000100: kvm_arch_vcpu_put <-vcpu_put
[001] d..2.   444.000101: <stack trace>
 => vcpu_put
 => kvm_arch_vcpu_ioctl_run
";
    let (seen, summary) = read(text);
    let names: Vec<&str> = seen
        .events
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    assert_eq!(names, ["function", "kernel_stack"]);
    assert_eq!((seen.sides.len(), summary.not_understood), (2, 0));
}

#[test]
fn an_unknown_event_alone_is_no_event() {
    for line in [
        "  444.000100: my_event: a=1\n",
        "at 5.123456: note: all went well\n",
        "12.345678: 12: 13\n",
    ] {
        assert_eq!(read(line).0.events.len(), 0, "{line}");
        assert_eq!(tracetext::event_line(line.as_bytes()), None, "{line}");
    }
}
