//! Stacks behind events, without the line that begins them, and as they arrive. After `seq_print_ip_sym` and
//! `trace_stack_print` of `kernel/trace/trace_output.c`, Linux 6.1 (5.4 has no module behind a function), and
//! `sample__fprintf_callchain` of `tools/perf/util`, perf 6.1 and 4.19.

use tracetext::TextProducer;

use crate::common::{Gathered, read};

const HEAD: &str = "       CPU 1/KVM-3743    [001] d..1.   902.873461: kvm_entry: vcpu 1, rip 0xffffffff8177a62c\n";

const STACKS: [&str; 4] = [
    " => vmx_vcpu_run
 => kvm_arch_vcpu_ioctl_run
 => __x64_sys_ioctl
",
    " => vmx_vcpu_run+0x23/0x60 [kvm_intel]
 => kvm_arch_vcpu_ioctl_run+0x1/0x2 [kvm]
 => __x64_sys_ioctl+0x8f/0xd0
",
    " => vmx_vcpu_run <ffffffffc045c31e>
 => kvm_arch_vcpu_ioctl_run <ffffffffc045c31f>
 => __x64_sys_ioctl <ffffffff81381dad>
",
    "=> vmx_vcpu_run (ffffffffc045c31e)
=> kvm_arch_vcpu_ioctl_run (ffffffffc045c31f)
=> __x64_sys_ioctl (ffffffff81381dad)
",
];

/// The functions of all stacks, in order.
fn functions(read: &Gathered) -> Vec<String> {
    let of = |side: &String| {
        let name = side.split_once("symbol: Some(\"")?.1;
        Some(name.split_once('"')?.0.to_owned())
    };
    read.sides.iter().filter_map(of).collect()
}

#[test]
fn the_kernels_stacks_have_their_functions_without_their_first_line() {
    let want = ["vmx_vcpu_run", "kvm_arch_vcpu_ioctl_run", "__x64_sys_ioctl"];
    for stack in STACKS {
        let text = format!("{HEAD}{stack}{}", HEAD.replace("461", "471"));
        for text in [
            text.clone(),
            text.lines().map(|line| format!("> {line}\r\n")).collect(),
            text.replace("=> ", "=&gt; "),
            text.lines()
                .map(|line| line.trim_start().to_owned() + "\n")
                .collect(),
            text.replace(' ', "\u{a0}"),
        ] {
            let (seen, summary) = read(&text);
            assert_eq!(seen.events.len(), 2, "{text}");
            assert_eq!(functions(&seen), want, "{text}");
            assert_eq!(summary.not_understood, 0);
            assert_eq!(
                tracetext::sniff(text.as_bytes()),
                Some(TextProducer::Ftrace),
                "{text}"
            );
        }
    }
}

#[test]
fn perfs_stacks_without_indentation_or_quoted() {
    for samples in [
        include_str!("texts/perf-6.1-samples-no-cpu.txt"),
        include_str!("texts/perf-4.19-samples-no-cpu.txt"),
    ] {
        let (want, _) = read(samples);
        for text in [
            samples
                .lines()
                .map(|line| line.trim_start().to_owned() + "\n")
                .collect(),
            samples
                .lines()
                .map(|line| format!("> {}\n", line.trim_start()))
                .collect(),
            samples
                .lines()
                .map(|line| format!(">{}\n", line.trim_start()))
                .collect(),
            samples.replace("\n\n", "\n"),
            samples.replace('\t', ""),
        ] {
            let text: String = text;
            let (got, _) = read(&text);
            assert_eq!(got.events.len(), want.events.len(), "{text}");
            assert_eq!(got.sides, want.sides, "{text}");
        }
    }
}

#[test]
fn an_event_that_was_misread_is_no_line_of_a_stack() {
    let text = format!(
        "{HEAD} => vmx_vcpu_run\n       CPU 1/KVM-3743    [001] d..1.   902.873465: kvm exit:\n => ioctl\n"
    );
    let (seen, summary) = read(&text);
    assert_eq!((seen.events.len(), summary.not_understood), (1, 1));
    // Nobody's: the event above it was not read.
    assert_eq!(functions(&seen), ["vmx_vcpu_run"]);
}
