//! What is taken for a text of a trace, and what is not.

use tracetext::{TextProducer, sniff};

#[test]
fn a_line_of_each_style_is_enough() {
    let cases = [
        (
            "  CPU 1/KVM  4043 [001]   770.258801:  kvm:kvm_exit: vcpu 1 reason io rip 0x10\n",
            TextProducer::PerfScript,
        ),
        (
            "  perf  2860 [000]  1044.679775:          1   cycles: \n\tffffa351fbb823b8 a+0xd4 ([kernel.kallsyms])\n",
            TextProducer::PerfScript,
        ),
        (
            "  CPU 1/KVM-4043  [001]   844.831936: kvm_exit:             reason EXIT_IOIO rip 0x10\n",
            TextProducer::TraceCmd,
        ),
        ("cpus=4\n", TextProducer::TraceCmd),
        ("version = 7\ncpus=4\n", TextProducer::TraceCmd),
        (
            "  CPU 1/KVM-4043  [001] d..1.   844.831936: kvm_exit: vcpu 1 reason io rip 0x10\n",
            TextProducer::Ftrace,
        ),
        (
            "# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:4\n#\n",
            TextProducer::Ftrace,
        ),
        (
            "CPU 1/KV-4043      1d..1. 253645us : kvm_entry: vcpu 1, rip 0x10\n",
            TextProducer::FtraceLatency,
        ),
        (
            "# tracer: nop\n#\n3743 1 902873427582 type: 1578\n",
            TextProducer::FtraceRaw,
        ),
    ];
    for (text, style) in cases {
        assert_eq!(sniff(text.as_bytes()), Some(style), "{text}");
    }
}

#[test]
fn a_few_lines_behind_pages_of_prose() {
    let prose = "This goes on for a while, at 12:30 and [at] 5: as well.\n".repeat(500);
    let line =
        "  CPU 1/KVM-4043  [001]   844.831936: kvm_exit:             reason EXIT_IOIO rip 0x10\n";
    let text = format!("{prose}{}", line.repeat(3));
    assert_eq!(sniff(text.as_bytes()), Some(TextProducer::TraceCmd));
    // One line in a book is a quotation.
    assert_eq!(sniff(format!("{prose}{line}").as_bytes()), None);
}

#[test]
fn printed_tables_are_recognized_but_are_no_events() {
    let exits = "Analyze events for all VMs, all VCPUs:\n\n             VM-EXIT    Samples  Samples%     Time%    Min \
        Time    Max Time         Avg time\n\n                 HLT       1084     2.86%    99.77%     46.27us \
        1791869.86us  72652.91us ( +-   7.38% )\n";
    assert_eq!(
        sniff(exits.as_bytes()),
        Some(TextProducer::PerfKvmStatTable)
    );
    let ports = "      IO Port Access    Samples  Samples%     Time%    Min Time    Max Time         Avg \
        time\n\n           0x608:PIN      24618   100.00%   100.00%      1.03us      6.61us      1.44us ( +-   0.28% \
        )\n";
    assert_eq!(
        sniff(ports.as_bytes()),
        Some(TextProducer::PerfKvmStatTable)
    );
    let line = "-".repeat(113);
    let sched = format!(
        " {line}\n  Task                  |   Runtime ms  | Switches | Average delay ms | Maximum delay ms | Maximum \
         delay at       |\n"
    );
    assert_eq!(sniff(sched.as_bytes()), Some(TextProducer::PerfSchedTable));
    assert!(TextProducer::PerfKvmStatTable.is_table() && TextProducer::PerfSchedTable.is_table());
    assert!(!TextProducer::PerfScript.is_table());
}

#[test]
fn everything_else_is_nothing() {
    let texts = [
        "",
        "\n\n\n",
        "Hello world\n",
        // C
        "#include <stdio.h>\nint main(void)\n{\n\tswitch (a[1]) {\n\tcase 12: goto out; default: \
         break;\n\t}\nout:\n\treturn 0;\n}\n",
        // A kernel log
        "[    0.000000] Linux version 6.1.0\n[   12.345678] usb 1-1: new high-speed USB device number 2\n[   \
         12.400000] cpu[001] 5: foo: bar\n",
        // A system log
        "Nov 20 15:45:01 host7 systemd[1]: Started Session 12 of user root.\nNov 20 15:45:02 host7 sshd[123]: error: \
         foo: bar\n",
        // A phone's log
        "11-20 10:11:12.345  1234  5678 D Tag: message: more\n",
        // JSON, with an event's line in it
        "{\"a\": [001], \"lines\": [\n\"CPU 1/KVM-4043  [001]   844.831936: kvm_exit: vcpu 1 reason io rip \
         0x10\"\n]}\n",
        // perf trace, strace, ping
        "     0.000 ( 0.005 ms): qemu/123 ioctl(fd: 12, cmd: KVM_RUN) = 0\n",
        "12345 1700000000.123456 read(3, \"a: b: c\", 10) = 10\n",
        "64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.345 ms\n",
        // A Java collector's log
        "1234.567890: [GC (Allocation Failure) 1234.567891: [ParNew: 1K->2K]]\n",
        // perf stat, a table of numbers
        "     2,507,215,365      cache-references\n       111,415,469      cache-misses              #    4.444 % of \
         all cache refs\n",
        "1 2 3 4\n5 6 7 8\n",
        // A domain
        "<domain type='kvm'>\n  <name>ubuntu</name>\n</domain>\n",
    ];
    for text in texts {
        assert_eq!(sniff(text.as_bytes()), None, "{text}");
    }
    let picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x02\0\x08\x06\0\0\0";
    assert_eq!(sniff(picture), None);
    assert_eq!(sniff(&[0xff; 4096]), None);
}

#[test]
fn kernel_headers_in_the_middle_of_a_text_make_no_trace() {
    let text = "Documentation says:\n\n# tracer: nop\n\nand cpus=4 on the command line.\ncpus=4\n";
    assert_eq!(sniff(text.as_bytes()), None);
}

/// What the reader declares is so: each of its texts is known, and its events are read.
#[test]
fn every_fixture_of_a_form_is_read() {
    for form in tracetext::FORMS {
        assert!(!form.fixtures.is_empty(), "{}", form.printed_by);
        for file in form.fixtures {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let text = std::fs::read(path).expect(file);
            assert!(sniff(&text).is_some(), "{file}");
            assert!(tracetext::count_events(&text) > 1, "{file}");
        }
    }
}
