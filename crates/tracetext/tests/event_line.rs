//! Which lines are heads of events, one line at a time.

use tracetext::{EventLine, EventLineForm, event_line};

use EventLineForm::{FunctionGraph, Latency, Nameless, PerfScript, Raw, Trace};

fn is(line: &str, form: EventLineForm, time_ns: Option<u64>, cpu: Option<u32>) {
    let want = EventLine { form, time_ns, cpu };
    assert_eq!(event_line(line.as_bytes()), Some(want), "{line}");
}

/// Lines of each form: perf 6.1 and 4.19, trace-cmd 3.2, Linux 6.1 and 5.4, after the sources of their printers.
const LINES: [(&str, EventLineForm, Option<u64>, Option<u32>); 14] = [
    (
        "  CPU 1/KVM  4043 [001]   770.258801:  kvm:kvm_exit: vcpu 1 reason io rip 0x10",
        PerfScript,
        Some(770_258_801_000),
        Some(1),
    ),
    (
        "CPU 0/KVM 1234/1240 444.000100: kvm:kvm_exit: vcpu 0 reason HLT",
        PerfScript,
        Some(444_000_100_000),
        None,
    ),
    (
        "qemu-system-x86  1234  5678.123456:     250000 cycles: ",
        PerfScript,
        Some(5_678_123_456_000),
        None,
    ),
    (
        "qemu-system-x86  1234 [002]  5678.123456789:     250000 cycles:ppp:  ffffffff810 native+0x4 ([kernel])",
        PerfScript,
        Some(5_678_123_456_789),
        Some(2),
    ),
    (
        "  CPU 1/KVM-4043  [001]   844.831936: kvm_exit:             reason EXIT_IOIO rip 0x10",
        Trace,
        Some(844_831_936_000),
        Some(1),
    ),
    (
        "  CPU 1/KVM-4043  [001] d..1.   844.831936: kvm_exit: vcpu 1 reason io rip 0x10",
        Trace,
        Some(844_831_936_000),
        Some(1),
    ),
    (
        "[001] d..2  444.000100: kvm_exit: reason HLT rip 0x10",
        Trace,
        Some(444_000_100_000),
        Some(1),
    ),
    (
        "qemu-kvm-4043  [001] 917824918421: kvm_entry: vcpu 1",
        Trace,
        None,
        Some(1),
    ),
    (
        "CPU 1/KV-4043      1d..1. 253645us : kvm_entry: vcpu 1, rip 0x10",
        Latency,
        Some(253_645_000),
        Some(1),
    ),
    ("3743 1 902873427582 type: 1578", Raw, None, None),
    (
        " 1)   0.541 us    |  kvm_arch_vcpu_put() {",
        FunctionGraph,
        None,
        Some(1),
    ),
    (" 0) ! 120.5 us | }", FunctionGraph, None, Some(0)),
    (
        "  444.000100 |   1)  CPU 0/K-1240 |   0.541 us    |  kvm_arch_vcpu_put();",
        FunctionGraph,
        Some(444_000_100_000),
        Some(1),
    ),
    (
        "qemu-system-aar-1361 [006] 7593.923908: kvm guest fault:",
        Nameless,
        Some(7_593_923_908_000),
        Some(6),
    ),
];

#[test]
fn heads_of_every_form() {
    for (line, form, time_ns, cpu) in LINES {
        is(line, form, time_ns, cpu);
    }
    is(
        "qemu-system-aar 2822 [005] 105761.404072:",
        Nameless,
        Some(105_761_404_072_000),
        Some(5),
    );
}

#[test]
fn what_pasting_does_changes_nothing() {
    for (line, form, time_ns, cpu) in LINES {
        is(&format!("> {line}\r\n"), form, time_ns, cpu);
        is(&format!("> > {line}"), form, time_ns, cpu);
        is(&line.replace(' ', "\u{a0}"), form, time_ns, cpu);
        is(&line.replace(' ', "\t"), form, time_ns, cpu);
        if form != Raw {
            is(&format!("  12: {line}"), form, time_ns, cpu);
            is(&format!("out.txt:7:{line}"), form, time_ns, cpu);
        }
    }
    is(
        "&lt;idle&gt;-0 [001] 444.000100: sched_switch: swapper/1:0 [120] R ==&gt; a:12 [120]",
        Trace,
        Some(444_000_100_000),
        Some(1),
    );
}

#[test]
fn prose_and_tables_are_none() {
    for line in [
        "",
        "> ",
        "Since 12:30 the guest hangs; see [5] and: nothing.",
        "Am 3.5. um 12.30: nichts geht mehr.",
        "[   12.345678] kvm: disabled by bios",
        "Jan  5 12:30:01 host kernel: [   12.345678] kvm [1234]: vcpu0 unhandled rdmsr: 0x606",
        "  PID TTY          TIME CMD",
        "   1234 ?        00:00:12 qemu-system-x86",
        "root      1234  5.0  1.2 4194304 123456 ?  Sl   12:30   0:12 qemu-system-x86_64 -name guest=a",
        "             VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         Avg time",
        "                 HLT       1084     2.86%    99.77%     46.27us  1791869.86us  72652.91us ( +-   7.38% )",
        "  CPU 0/KVM:1240        |   1234.567 ms |     1000 | avg:   0.012 ms | max:   1.234 ms | max at: 12.345678 s",
        "    79.731934 [0002]  <idle>                              0.000      0.000      0.000",
        "    12.34%  qemu-system-x86  [kernel.kallsyms]  [k] vmx_vcpu_run",
        "     1.001234567        123,456      kvm:kvm_exit",
        "  <vcpupin vcpu='0' cpuset='4'/>",
        "\tffffffff821fb643 vmx_vcpu_run+0x23 ([kernel.kallsyms])",
        " => vmx_vcpu_run",
        "# tracer: function_graph",
        "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION",
        " ------------------------------------------",
        " 0)  CPU 0/K-1240  =>  swapper-0",
        "| kvm_exit | 12 | 1.5 us |",
        "swapper/1:0 [120] R ==> vhost-1781:1793 [120]",
        "CPU 1: 12.5: a and b",
    ] {
        assert_eq!(event_line(line.as_bytes()), None, "{line}");
    }
}
