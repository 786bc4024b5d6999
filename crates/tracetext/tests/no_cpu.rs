//! `perf script` without its CPU column: of `perf record COMMAND` and `perf record -p PID`, which record none, and
//! with `-F`.

use event::NONE;
use tracetext::TextProducer;

use crate::common::{Gathered, read, who, wrapped};

const SAMPLES: &str = include_str!("texts/perf-6.1-samples-no-cpu.txt");
const OLD_SAMPLES: &str = include_str!("texts/perf-4.19-samples-no-cpu.txt");
const KVM: &str = include_str!("texts/perf-6.1-kvm-no-cpu.txt");

const NO_CPU: &str = "The text's events have no CPU: what is said of CPUs, and who had one, is not recorded. \
                      perf script -F +cpu prints it, where it was recorded (perf record -a, or --sample-cpu); \
                      trace-cmd report and the kernel always do.";

/// Frames, of all stacks.
fn frames(read: &Gathered) -> usize {
    let is_frame = |side: &&String| side.starts_with("StackLine");
    read.sides.iter().filter(is_frame).count()
}

#[test]
fn samples_and_their_stacks() {
    for (text, name) in [(SAMPLES, "cpu-clock:ppp"), (OLD_SAMPLES, "cycles:ppp")] {
        assert_eq!(
            tracetext::sniff(text.as_bytes()),
            Some(TextProducer::PerfScript)
        );
        let (seen, summary) = read(text);
        assert_eq!(seen.events.len(), 6, "{text}");
        assert_eq!(frames(&seen), 30, "{text}");
        assert_eq!(summary.quality.texts(), [NO_CPU]);
        assert_eq!(
            who(&seen.events[0]),
            (NONE, 2995, NONE, Some("vhost-2989"), name)
        );
        assert_eq!(
            who(&seen.events[1]),
            (NONE, 2997, NONE, Some("CPU 1/KVM"), name)
        );
        assert_eq!(seen.events[0].time, 598_677_135_000);
    }
}

#[test]
fn events_of_kvm() {
    assert_eq!(
        tracetext::sniff(KVM.as_bytes()),
        Some(TextProducer::PerfScript)
    );
    let (seen, summary) = read(KVM);
    assert_eq!((seen.events.len(), frames(&seen)), (8, 24));
    assert_eq!(summary.quality.texts(), [NO_CPU]);
    let exit = &seen.events[3];
    assert_eq!(who(exit), (NONE, 3743, 3736, Some("CPU 1/KVM"), "kvm_exit"));
}

#[test]
fn one_sample_is_enough() {
    for text in [
        // A period stands in no other text.
        "qemu-system-x86  1234  5678.123456:     250000 cycles: \n",
        // Without one, the stack says it.
        "CPU 0/KVM  1240   598.665649: cpu-clock:ppp: \n\tffffffff81a592eb vmx_vcpu_run\n\n",
    ] {
        assert_eq!(
            tracetext::sniff(text.as_bytes()),
            Some(TextProducer::PerfScript),
            "{text}"
        );
    }
    for text in [
        "item 12 5678.123456: total: 12 of them\n",
        "and 12 5.123456: 12 of them: all\n",
    ] {
        assert_eq!(tracetext::sniff(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn names_of_threads_have_blanks_and_digits() {
    for (comm, tid) in [
        ("CPU 0/KVM", 1240),
        ("fc_vcpu 0", 1830),
        ("IO iothread1", 7),
        ("a 1 2", 3),
        ("kworker/0:1-eve", 55),
        ("vhost-1234", 1250),
        ("12", 13),
    ] {
        for text in [
            format!("{comm} {tid:>5} 5678.123456:     250000 cycles: \n"),
            format!("{comm} 1234/{tid} 5678.123456:     250000 cycles:ppp: \n"),
            format!("{comm:>16} {tid:>5} 5678.123456: kvm:kvm_exit: vcpu 0 reason HLT rip 0x10\n"),
            format!(
                "{comm:>16}  1234/{tid:<5} 5678.123456: kvm:kvm_exit: vcpu 0 reason HLT rip 0x10\n"
            ),
        ] {
            let (seen, _) = read(&text);
            assert_eq!(seen.events.len(), 1, "{text}");
            let event = &seen.events[0];
            assert_eq!(
                (event.tid, event.comm.as_deref()),
                (tid, Some(comm)),
                "{text}"
            );
        }
    }
}

/// The same after what happens to a text on its way.
#[test]
fn mangled() {
    let each = |text: &str, change: &dyn Fn(&str) -> String| -> String {
        text.lines().map(|line| change(line) + "\n").collect()
    };
    for text in [SAMPLES, OLD_SAMPLES, KVM] {
        let (want, _) = read(text);
        let prose = text.replace("\n\n", "\n\nHier noch mehr davon, um 12:30 gesehen:\n\n");
        let prose =
            format!("Hello all,\n\nthis is what we see:\n\n{prose}\nAny idea? See [1] and: 5.\n");
        for mangled in [
            each(text, &|line| format!("> {line}")),
            each(text, &|line| format!("> > {line}")),
            each(text, &|line| format!("{line}\r")),
            each(text, &|line| format!("    {line}")),
            text.replace(' ', "\u{a0}"),
            text.replace('\t', "        "),
            text.replace(": ", ":\t"),
            wrapped(text, 72),
            each(&wrapped(text, 72), &|line| format!("> {line}")),
            prose.clone(),
            each(&prose, &|line| format!("> {line}")),
        ] {
            let (got, summary) = read(&mangled);
            assert_eq!(got.events.len(), want.events.len(), "{mangled}");
            assert_eq!(got.sides, want.sides, "{mangled}");
            for (got, want) in got.events.iter().zip(&want.events) {
                assert_eq!((got.time, got.data), (want.time, want.data), "{mangled}");
                assert_eq!(who(got), who(want), "{mangled}");
            }
            assert_eq!(summary.style, Some(TextProducer::PerfScript));
            let head = &mangled.as_bytes()[..mangled.len()];
            assert_eq!(
                tracetext::sniff(head),
                Some(TextProducer::PerfScript),
                "{mangled}"
            );
        }
    }
}
