//! Texts of the kernel's own `trace` and `trace_pipe`.

use crate::common::{entry, exit, one, pio, read, who, with_info};
use event::{Data, Isa, LostKind, NONE};
use tracetext::{TextProducer, TextTimeUnit};

const HEADER: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 3/3   #P:4
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

#[test]
fn the_default_format() {
    let (got, summary) = read(format!("{HEADER}\
       CPU 1/KVM-3743    [001] .....   902.873428: kvm_pio: pio_read at 0x608 size 4 count 1 val 0x738dc3 
       CPU 1/KVM-3743    [001] d..1.   902.873461: kvm_entry: vcpu 1, rip 0xffffffff8177a62c
          <idle>-0       [000] dNh2.   902.873500: sched_switch: prev_comm=swapper/0 prev_pid=0 ==> next_comm=bash
"));
    assert_eq!(
        (summary.style, summary.machine_cpus),
        (Some(TextProducer::Ftrace), Some(4))
    );
    assert_eq!((summary.lines, summary.events), (15, 3));
    assert_eq!(summary.quality, event::Quality::default());
    assert_eq!(got.events[0].data, pio(false, 0x608, 4, 1, 0x73_8dc3));
    assert_eq!(
        got.events[1].data,
        entry(Some(1), Some(0xffff_ffff_8177_a62c))
    );
    assert_eq!(
        who(&got.events[2]),
        (0, 0, NONE, Some("<idle>"), "sched_switch")
    );
    assert_eq!(got.events[2].time, 902_873_500_000);
}

/// The hypervisor of pKVM has a buffer of its own (`remotes/hypervisor/trace`, Linux 7.0): neither threads, nor a
/// colon behind the name.
#[test]
fn events_of_a_remote_buffer() {
    let (got, summary) = read(
        "\
[000]\t   15.123456: hyp_enter reason=guest_exit vcpu=2711
[000]\t   15.123460: hyp_exit
[LOST 12 EVENTS]
[003]\t   15.123999: hyp_enter reason=host_abort vcpu=0
[001]\t   15.124100: selftest id=7
",
    );
    let read: Vec<_> = got
        .events
        .iter()
        .map(|e| (e.time, e.cpu, e.tid, e.name.as_str()))
        .collect();
    assert_eq!(
        read,
        [
            (15_123_456_000, 0, NONE, "hyp_enter"),
            (15_123_460_000, 0, NONE, "hyp_exit"),
            (15_123_999_000, 3, NONE, "hyp_enter"),
            (15_124_100_000, 1, NONE, "selftest"),
        ]
    );
    assert_eq!(summary.events, 4);
    // Prose that begins like this is none, nor is a line of a thread whose name has lost its colon.
    for line in [
        "[000] 15.123456: the guest froze here",
        "       CPU 1/KVM-3743    [001] d..1.   902.873461: kvm_entry vcpu=1",
        "note [000] 15.123456: hyp_enter reason=smc",
    ] {
        assert_eq!(read_events(line), 0, "{line}");
    }
}

fn read_events(line: &str) -> usize {
    read(line).0.events.len()
}

#[test]
fn options_add_and_drop_columns() {
    let with_tgid = one(
        "       CPU 1/KVM-3743    (   3736) [001] d..1.   902.873461: kvm_entry: vcpu 1, rip 0x10",
    );
    assert_eq!(
        who(&with_tgid),
        (1, 3743, 3736, Some("CPU 1/KVM"), "kvm_entry")
    );
    let unknown_tgid = one(
        "       CPU 1/KVM-3743    (-------) [001] d..1.   902.873461: kvm_entry: vcpu 1, rip 0x10",
    );
    assert_eq!(
        who(&unknown_tgid),
        (1, 3743, NONE, Some("CPU 1/KVM"), "kvm_entry")
    );
    let without_irq_info =
        one("       CPU 1/KVM-3743    [001]   902.873461: kvm_entry: vcpu 1, rip 0x10");
    assert_eq!(
        who(&without_irq_info),
        (1, 3743, NONE, Some("CPU 1/KVM"), "kvm_entry")
    );
    let four_flags =
        one("       CPU 1/KVM-3743  [001] d..1   902.873461: kvm_entry: vcpu 1, rip 0x10");
    assert_eq!(
        who(&four_flags),
        (1, 3743, NONE, Some("CPU 1/KVM"), "kvm_entry")
    );
}

#[test]
fn latency_format_has_relative_times() {
    let (got, summary) = read(
        "\
# tracer: nop
#
# nop latency trace v1.1.5 on 6.1.0
# --------------------------------------------------------------------
# latency: 0 us, #3/10, CPU#1 | (M:desktop VP:0, KP:0, SP:0 HP:0 #P:4)
#    -----------------
#    | task: -0 (uid:0 nice:0 policy:0 rt_prio:0)
#  cmd     pid     |||||| time  |   caller     
#     \\   /        ||||||  \\    |    /       
trace-cm-4205      2dN.5. 243321us!: sched_waking: comm=bash pid=3731
  <idle>-0         0d..2. 243431us#: sched_switch: prev_comm=swapper/0
CPU 1/KV-3743      1d..1. 253645us : kvm_entry: vcpu 1, rip 0x10
",
    );
    assert_eq!(
        (summary.style, summary.machine_cpus),
        (Some(TextProducer::FtraceLatency), Some(4))
    );
    assert_eq!(summary.resolution, 1000);
    let reported: Vec<_> = got
        .events
        .iter()
        .map(|e| (e.time, e.cpu, e.tid, e.comm.as_deref()))
        .collect();
    assert_eq!(
        reported,
        [
            (243_321_000, 2, 4205, Some("trace-cm")),
            (243_431_000, 0, 0, Some("<idle>")),
            (253_645_000, 1, 3743, Some("CPU 1/KV")),
        ]
    );
    // Of ten entries written the buffer holds three: the others are older, and nothing is lost between these.
    assert_eq!(summary.quality.lost_events, 0);
    assert_eq!(got.lost, []);
    assert!(!summary.quality.truncated);
    assert_eq!(
        summary.quality.texts(),
        [
            "7 older entries were overwritten before, as in every full buffer of the kernel: nothing is missing \
             between those that are here, but not all CPUs begin at the same time."
        ]
    );
}

#[test]
fn a_part_of_the_file_is_reported_by_its_header() {
    let (_, summary) = read(format!(
        "{HEADER}a-1 [000] .....   902.873428: kvm_entry: vcpu 1, rip 0x10\n"
    ));
    assert!(!summary.quality.truncated);
    assert_eq!(
        summary.quality.texts(),
        ["It is an excerpt: 1 of the 3 entries that the kernel's buffer held."]
    );
}

#[test]
fn lost_events_of_the_pipe() {
    let (got, summary) = read(
        "\
       CPU 1/KVM-3743    [001] .....   902.873428: kvm_entry: vcpu 1, rip 0x10
CPU:2 [LOST 123 EVENTS]
          <idle>-0       [002] d..2.   902.873500: softirq_raise: vec=9 [action=RCU]
##### CPU 3 buffer started ####
          <idle>-0       [003] d..2.   902.873501: softirq_raise: vec=9 [action=RCU]
",
    );
    assert_eq!(got.lost, [(902_873_500_000, 2, Some(123), LostKind::Ring)]);
    assert_eq!(
        (summary.quality.lost_events, summary.quality.doubts.len()),
        (123, 0)
    );
}

#[test]
fn raw_option_has_numbers_for_names() {
    let (got, summary) =
        read("# tracer: nop\n#\n3743 1 902873427582 type: 1578\n0 0 902873460512 type: 1583\n");
    let reported: Vec<_> = got
        .events
        .iter()
        .map(|e| (e.time, e.cpu, e.tid, e.name.as_str()))
        .collect();
    assert_eq!(
        reported,
        [
            (902_873_427_582, 1, 3743, "type:1578"),
            (902_873_460_512, 0, 0, "type:1583")
        ]
    );
    assert_eq!(
        (summary.style, summary.unit),
        (Some(TextProducer::FtraceRaw), TextTimeUnit::Ticks)
    );
    assert_eq!(summary.quality.doubts.len(), 1);
    assert!(summary.quality.texts()[0].contains("noraw"));
}

#[test]
fn lines_of_tracers_have_names_given() {
    let (got, summary) = read(
        "\
            bash-1977    [000] .....  17284.993652: sys_close <-system_call_fastpath
            bash-1977    [000] .....  17284.993653: <stack trace>
 => trace_event_raw_event_kvm_userspace_exit
 => kvm_vcpu_ioctl
            bash-1977    [000] .....  17284.993654: my_function: printed by trace_printk
",
    );
    let reported: Vec<_> = got
        .events
        .iter()
        .map(|e| (e.name.as_str(), e.text.as_str()))
        .collect();
    assert_eq!(
        reported,
        [
            ("function", "sys_close <-system_call_fastpath"),
            ("kernel_stack", "<stack trace>"),
            ("my_function", "printed by trace_printk"),
        ]
    );
    assert_eq!(summary.quality.texts(), [""; 0]);
}

#[test]
fn old_wordings() {
    let cases = [
        (
            "kvm_exit",
            "reason EXTERNAL_INTERRUPT rip 0xffffffff8177a62b info 0 800000f6",
            exit(Isa::Vmx, 1, None, Some(0xffff_ffff_8177_a62b)),
        ),
        (
            "kvm_exit",
            "reason npf rip 0x10 info 10000000d fee00000",
            with_info(exit(Isa::Svm, 0x400, None, Some(0x10)), 0x1_0000_000d, None),
        ),
        (
            "kvm_exit",
            "reason PF excp rip 0x10 info 2 3",
            exit(Isa::Svm, 0x4e, None, Some(0x10)),
        ),
        ("kvm_entry", "vcpu 3", entry(Some(3), None)),
        (
            "kvm_entry",
            "vcpu 3, rip 0x10[immediate exit]",
            entry(Some(3), Some(0x10)),
        ),
        (
            "kvm_exit",
            "HSR_EC: 0x0024, PC: 0xffffffc000084680",
            exit(Isa::Arm64, 0x124, None, Some(0xffff_ffc0_0008_4680)),
        ),
        (
            "kvm_exit",
            "IRQ: HSR_EC: 0x0000 (UNKNOWN), PC: 0xffffffc000084680",
            exit(Isa::Arm64, 0, None, Some(0xffff_ffc0_0008_4680)),
        ),
        (
            "kvm_exit",
            "SEPC:0xffffffff80003c4c, SCAUSE:0x15, STVAL:0x10001008, HTVAL:0x4000402, HTINST:0x0",
            exit(Isa::Riscv, 0x15, None, Some(0xffff_ffff_8000_3c4c)),
        ),
    ];
    for (name, args, want) in cases {
        let seen = one(&format!(
            "   qemu-kvm-3743    [001] d..1.   902.873461: {name}: {args}"
        ));
        assert_eq!((seen.data, seen.text.as_str()), (want, args));
    }
}

#[test]
fn other_architectures() {
    let seen = one(
        "   CPU 0/KVM-3743    [001] d..1.   902.873461: kvm_s390_sie_exit: 01[0705000180000000-000000000010ab32]: \
         intercept Instruction",
    );
    assert_eq!(seen.data, exit(Isa::S390, 4, Some(1), Some(0x10_ab32)));
    let seen = one(
        "   CPU 0/KVM-3743    [001] d..1.   902.873461: kvm_s390_sie_enter: 01[0705000180000000-000000000010ab32]: \
         entering sie flags 20",
    );
    assert_eq!(seen.data, entry(Some(1), Some(0x10_ab32)));
    let seen = one(
        "   CPU 0/KVM-3743    [001] d..1.   902.873461: kvm_guest_exit: VCPU 2: trap=EXTERNAL pc=0xc000000000010000 \
         msr=0x8000000000009033, ceded=0",
    );
    assert_eq!(
        seen.data,
        exit(Isa::Powerpc, 0x500, Some(2), Some(0xc000_0000_0001_0000))
    );
    let seen = one(
        "   CPU 0/KVM-3743    [001] d..1.   902.873461: kvm_guest_enter: VCPU 2: pc=0xc000000000010000 pexcp=0x0 \
         ceded=0",
    );
    assert_eq!(seen.data, entry(Some(2), Some(0xc000_0000_0001_0000)));
    // RISC-V's format string misplaces a percent sign.
    let seen =
        one("   CPU 0/KVM-3743    [001] d..1.   902.873461: kvm_entry: PC: 0x016ffffffff80003c4c");
    assert_eq!(seen.data, entry(None, Some(0xffff_ffff_8000_3c4c)));
    assert_eq!(
        Data::KvmFpu(event::KvmFpu { load: true }),
        one("a-1 [001] d..1.   902.873461: kvm_fpu: load").data
    );
    assert_eq!(
        Data::Other,
        one("a-1 [001] d..1.   902.873461: kvm_eoi: apicid 0 vector 236").data
    );
}
