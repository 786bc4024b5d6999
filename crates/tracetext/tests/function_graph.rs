//! The function_graph tracer, in the kernel's file and in trace-cmd's report. Made by hand after
//! `kernel/trace/trace_functions_graph.c` of Linux 5.4 and 6.12 and `tracecmd/lib/plugins/plugin_function.c`, trace-cmd
//! 2.9 and 3.2.

use event::{Data, NONE};
use tracetext::TextProducer;

use crate::common::{read, who, wrapped};

/// Linux 5.4, with the default options.
const PLAIN: &str = "\
# tracer: function_graph
#
# CPU  DURATION                  FUNCTION CALLS
# |     |   |                     |   |   |   |
 1)               |  vcpu_enter_guest() {
 1)   0.541 us    |    kvm_arch_vcpu_put();
 1)               |    /* kvm_entry: vcpu 0, rip 0xffffffff8177a62c */
 0) ! 120.5 us | }
 ------------------------------------------
 1)  CPU 0/K-1240  =>   <idle>-0
 ------------------------------------------

 1) # 1234.567 us |  } /* vcpu_enter_guest */
 1)   ==========> |
 1)   0.500 us    |    irq_enter();
 1)   <========== |
";

/// Linux 6.12, with funcgraph-abstime and funcgraph-proc, and with arguments and returned values.
const TIMED: &str = "\
# tracer: function_graph
#
#     TIME        CPU  TASK/PID         DURATION                  FUNCTION CALLS
#      |          |     |    |           |   |                     |   |   |   |
  444.000100 |   1)  CPU 0/K-1240  |               |  vcpu_enter_guest [kvm]() {
  444.000101 |   1)  CPU 0/K-1240  |   0.541 us    |    kvm_arch_vcpu_put(vcpu=0xffff888100000000); /* ret=0x0 */
  444.000102 |   1)  CPU 0/K-1240  |               |    /* kvm_entry: vcpu 0, rip 0xffffffff8177a62c */
  444.000103 |   1)  CPU 0/K-1240  |               |    /* here we are */
  444.000220 |   1)  CPU 0/K-1240  | ! 120.500 us  |  }
  444.000230 |   0)    qemu-1230    |   0.100 us    |  ksys_ioctl();
";

/// trace-cmd report.
const REPORT: &str = "\
cpus=4
       CPU 0/KVM-1240  [001]   444.000100: funcgraph_entry:                   |  vcpu_enter_guest() {
       CPU 0/KVM-1240  [001]   444.000101: funcgraph_entry:        0.541 us   |    kvm_arch_vcpu_put();
       CPU 0/KVM-1240  [001]   444.000220: funcgraph_exit:       ! 120.500 us |  }
";

#[test]
fn without_a_time_they_are_counted() {
    assert_eq!(
        tracetext::sniff(PLAIN.as_bytes()),
        Some(TextProducer::FunctionGraph)
    );
    let (seen, summary) = read(PLAIN);
    assert_eq!(seen.events.len(), 0);
    let said = "8 lines of the function_graph tracer have no time of day, or no CPU (first: line 5): their functions \
                and durations are not used. The tracer's option funcgraph-abstime prints the time.";
    assert_eq!(summary.quality.texts(), [said]);
    assert_eq!(summary.not_understood, 0);
}

#[test]
fn with_time_and_cpu_they_are_events() {
    assert_eq!(
        tracetext::sniff(TIMED.as_bytes()),
        Some(TextProducer::Ftrace)
    );
    let (seen, summary) = read(TIMED);
    assert_eq!(summary.quality.texts(), [""; 0]);
    let names: Vec<&str> = seen
        .events
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    let whole = [
        "funcgraph_entry",
        "funcgraph_entry",
        "kvm_entry",
        "print",
        "funcgraph_exit",
        "funcgraph_entry",
    ];
    assert_eq!(names, whole);
    let times: Vec<u64> = seen.events.iter().map(|event| event.time / 1000).collect();
    assert_eq!(
        times,
        [
            444_000_100,
            444_000_101,
            444_000_102,
            444_000_103,
            444_000_220,
            444_000_230
        ]
    );
    // Names are cut off at seven bytes.
    assert_eq!(
        who(&seen.events[0]),
        (1, 1240, NONE, None, "funcgraph_entry")
    );
    assert_eq!(
        who(&seen.events[5]),
        (0, 1230, NONE, Some("qemu"), "funcgraph_entry")
    );
    assert_eq!(seen.events[0].text, "|  vcpu_enter_guest [kvm]() {");
    assert_eq!(seen.events[4].text, "! 120.500 us  |  }");
    let Data::KvmEntry(entry) = seen.events[2].data else {
        panic!("{:?}", seen.events[2]);
    };
    assert_eq!(entry.vcpu, Some(0));
}

#[test]
fn the_report_of_trace_cmd() {
    assert_eq!(
        tracetext::sniff(REPORT.as_bytes()),
        Some(TextProducer::TraceCmd)
    );
    let (seen, summary) = read(REPORT);
    assert_eq!(summary.quality.texts(), [""; 0]);
    let texts: Vec<&str> = seen
        .events
        .iter()
        .map(|event| event.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "|  vcpu_enter_guest() {",
            "0.541 us   |    kvm_arch_vcpu_put();",
            "! 120.500 us |  }"
        ]
    );
    assert_eq!(
        who(&seen.events[2]),
        (1, 1240, NONE, Some("CPU 0/KVM"), "funcgraph_exit")
    );
}

#[test]
fn mangled() {
    for text in [PLAIN, TIMED, REPORT] {
        let (want, whole) = read(text);
        let untimed = |texts: Vec<String>| {
            texts
                .iter()
                .filter(|text| text.contains("time of day"))
                .count()
        };
        let prose = text.replace("\n", "\n\nThat took long (see | above), at 12:30:\n\n");
        for mangled in [
            text.lines().map(|line| format!("> {line}\n")).collect(),
            text.lines().map(|line| format!("{line}\r\n")).collect(),
            text.lines()
                .map(|line| line.trim_start().to_owned() + "\n")
                .collect(),
            text.replace(' ', "\u{a0}"),
            text.replace("  ", "\t"),
            text.lines()
                .filter(|line| !line.starts_with('#'))
                .map(|line| format!("{line}\n"))
                .collect(),
            prose,
            wrapped(text, 72),
        ] {
            let mangled: String = mangled;
            let (got, summary) = read(&mangled);
            assert_eq!(got.events.len(), want.events.len(), "{mangled}");
            for (got, want) in got.events.iter().zip(&want.events) {
                assert_eq!((got.time, got.data), (want.time, want.data), "{mangled}");
                assert_eq!(who(got), who(want), "{mangled}");
            }
            assert_eq!(
                untimed(summary.quality.texts()),
                untimed(whole.quality.texts()),
                "{mangled}"
            );
            assert_eq!(
                tracetext::sniff(mangled.as_bytes()).map(TextProducer::is_table),
                Some(text == PLAIN)
            );
        }
    }
}
