//! Texts of `trace-cmd report`.

use crate::common::{entry, exit, mmio, msr, one, pio, read, wakeup, who, with_info};
use event::sched::{SchedSwitch, TaskComm, TaskState};
use event::{Data, Isa, LostKind, MmioAccess, NONE};
use tracetext::{TextProducer, TextTimeUnit};

#[test]
fn default_report_in_the_wording_of_plugins() {
    let (got, summary) = read(
        r"cpus=4
       CPU 1/KVM-4043  [001]   844.831936: kvm_exit:             reason EXIT_IOIO rip 0xffffffff8177a62b info 6080041 ffffffff8177a62c
       CPU 1/KVM-4043  [001]   844.831958: kvm_pio:              pio_read at 0x608 size 4 count 1 val 0x3e38c9 
       CPU 1/KVM-4043  [001]   844.831963: kvm_entry:             vcpu 1 rip 0xffffffff8177a62c
          <idle>-0     [003]   844.832000: sched_switch:         swapper/3:0 [120] R ==> rcu_preempt:15 [120]
           <...>-77    [003]   844.832001: sched_waking:         comm=rcu_preempt pid=15 prio=120 target_cpu=003
",
    );
    assert_eq!(summary.style, Some(TextProducer::TraceCmd));
    assert_eq!(
        (summary.machine_cpus, summary.quality.clone()),
        (Some(4), event::Quality::default())
    );
    let data: Vec<_> = got.events.iter().map(|e| e.data).collect();
    assert_eq!(
        data,
        [
            // The plugin does not print the vCPU of an exit.
            with_info(
                exit(Isa::Svm, 0x7b, None, Some(0xffff_ffff_8177_a62b)),
                0x608_0041,
                None,
            ),
            pio(false, 0x608, 4, 1, 0x3e_38c9),
            entry(Some(1), Some(0xffff_ffff_8177_a62c)),
            Data::SchedSwitch(SchedSwitch {
                prev_tid: 0,
                prev_comm: TaskComm::new(b"swapper/3"),
                prev_state: TaskState(0),
                next_tid: 15,
                next_comm: TaskComm::new(b"rcu_preempt"),
            }),
            Data::SchedWaking(wakeup(15, "rcu_preempt", 3)),
        ]
    );
    assert_eq!(
        who(&got.events[0]),
        (1, 4043, NONE, Some("CPU 1/KVM"), "kvm_exit")
    );
    assert_eq!(
        who(&got.events[3]),
        (3, 0, NONE, Some("<idle>"), "sched_switch")
    );
    assert_eq!(
        got.events[3].text,
        "swapper/3:0 [120] R ==> rcu_preempt:15 [120]"
    );
    assert_eq!(who(&got.events[4]), (3, 77, NONE, None, "sched_waking"));
}

/// trace-cmd 3.4 leaves no blank between the flags and a time that is wider than its column.
#[test]
fn a_time_may_follow_the_flags_at_once() {
    let wide = [
        (
            "          <idle>-0     [003] d.s3.2217615388452: sched_waking:  comm=a pid=15 prio=120 target_cpu=003",
            0,
        ),
        (
            "          <idle>-0     [003] d.s312217615388452: sched_waking:  comm=a pid=15 prio=120 target_cpu=003",
            0,
        ),
        (
            "          <idle>-0       3d.s3.2217615388452: sched_waking:  comm=a pid=15 prio=120 target_cpu=003",
            0,
        ),
        (
            "          <idle>-0     [003] d.s3.2217615.388452: sched_waking:  comm=a pid=15 prio=120 target_cpu=003",
            6,
        ),
    ];
    for (line, decimals) in wide {
        let (got, summary) = read(format!("cpus=4\n{line}\n"));
        let event = got.events.first().unwrap_or_else(|| panic!("{line}"));
        assert_eq!(
            who(event),
            (3, 0, NONE, Some("<idle>"), "sched_waking"),
            "{line}"
        );
        let (time, unit) = match decimals {
            0 => (2_217_615_388_452, TextTimeUnit::Ticks),
            _ => (2_217_615_388_452_000, TextTimeUnit::Nanoseconds),
        };
        assert_eq!((event.time, summary.unit), (time, unit), "{line}");
    }
}

#[test]
fn latency_format() {
    let seen =
        one("CPU 0/KV-319     0d..1.    19.896127: kvm_entry:             vcpu 0 rip 0x10000");
    assert_eq!(who(&seen), (0, 319, NONE, Some("CPU 0/KV"), "kvm_entry"));
    assert_eq!(
        (seen.time, seen.data),
        (19_896_127_000, entry(Some(0), Some(0x10000)))
    );
    let seen =
        one("  <idle>-0      12dNh2..   19.896127: kvm_entry:             vcpu 0 rip 0x10000");
    assert_eq!(who(&seen), (12, 0, NONE, Some("<idle>"), "kvm_entry"));
    // -l -R
    let seen = one(
        "CPU 0/KV-319     3-0x1    19.896127: kvm_entry:            vcpu_id=0 rip=0x10000 immediate_exit=0",
    );
    assert_eq!(
        (who(&seen).0, seen.data),
        (3, entry(Some(0), Some(0x10000)))
    );
}

#[test]
fn newer_versions_print_flags_always() {
    let seen = one(
        "       CPU 0/KVM-319   [000] d..2.    19.896127: kvm_entry:            vcpu 0, rip 0x10000",
    );
    assert_eq!(who(&seen), (0, 319, NONE, Some("CPU 0/KVM"), "kvm_entry"));
    let seen = one(
        "       CPU 0/KVM-319   [000]-0x1    19.896127: kvm_entry:            vcpu_id=0 rip=0x10000",
    );
    assert_eq!(who(&seen), (0, 319, NONE, Some("CPU 0/KVM"), "kvm_entry"));
}

#[test]
fn full_times_and_differences() {
    let seen = one(
        "       CPU 0/KVM-319   [000]    19.896126526: (+33794) kvm_entry:             vcpu 0 rip 0x10000",
    );
    assert_eq!(
        (seen.time, seen.name.as_str()),
        (19_896_126_526, "kvm_entry")
    );
    let seen = one(
        "       CPU 0/KVM-319   [000]    19.896126:          kvm_entry:             vcpu 0 rip 0x10000",
    );
    assert_eq!(
        (seen.time, seen.name.as_str()),
        (19_896_126_000, "kvm_entry")
    );
}

#[test]
fn times_without_a_decimal_point() {
    let text = "\
cpus=4
          <idle>-0     [003]2217615388452: sched_waking:         comm=rcu_preempt pid=15
       CPU 1/KVM-3743  [001] 2217615924988: kvm_entry:            vcpu 1, rip 0x10
";
    let (got, summary) = read(text);
    let times: Vec<_> = got.events.iter().map(|e| (e.cpu, e.tid, e.time)).collect();
    assert_eq!(
        times,
        [(3, 0, 2_217_615_388_452), (1, 3743, 2_217_615_924_988)]
    );
    assert_eq!((summary.unit, summary.resolution), (TextTimeUnit::Ticks, 1));
    assert_eq!(summary.quality.doubts.len(), 1);
    assert!(summary.quality.texts()[0].contains("without a decimal point"));
    // A point that got lost on the way would make an event come three hundred thousand years late.
    let damaged = "a-1 [000] 5.000001: kvm_entry:            vcpu 1, rip 0x10\n\
                   a-1 [000] 5000002: kvm_exit:             vcpu 1 reason hlt rip 0x10\n";
    let (got, summary) = read(damaged);
    assert_eq!((got.events.len(), summary.not_understood), (1, 1));
}

#[test]
fn raw_fields() {
    let cases = [
        (
            "kvm_exit",
            "exit_reason=123 guest_rip=0xffffffff8177a62b isa=2 info1=0x0000000006080041 vcpu_id=1",
            with_info(
                exit(Isa::Svm, 0x7b, Some(1), Some(0xffff_ffff_8177_a62b)),
                0x608_0041,
                None,
            ),
        ),
        (
            "kvm_exit",
            "[FAILED TO PARSE] exit_reason=0x30 guest_rip=0x10 isa=0x1 info1=0x0 vcpu_id=2",
            exit(Isa::Vmx, 48, Some(2), Some(0x10)),
        ),
        (
            "kvm_exit",
            "ret=2 esr_ec=0x0024 vcpu_pc=0xffffa53559d6c68c",
            exit(Isa::Arm64, 0x124, None, Some(0xffff_a535_59d6_c68c)),
        ),
        (
            "kvm_entry",
            "vcpu_pc=0xffffa535718cd498",
            entry(None, Some(0xffff_a535_718c_d498)),
        ),
        (
            "kvm_mmio",
            "type=0 len=4 gpa=0xa003e60 val=0x0",
            mmio(MmioAccess::ReadUnsatisfied, 0xa00_3e60, 4, 0),
        ),
        (
            "kvm_pio",
            "rw=1 port=0x80 size=1 count=1 val=0x0",
            pio(true, 0x80, 1, 1, 0),
        ),
        // New versions print the register as the print format does, old ones in decimal.
        (
            "kvm_msr",
            "write=0 ecx=1b data=0xfee00800 exception=0",
            msr(false, 0x1b, 0xfee0_0800, false),
        ),
        (
            "kvm_msr",
            "write=1 ecx=174 data=0x10 exception=1",
            msr(true, 0x174, 0x10, true),
        ),
        (
            "kvm_msr",
            "write=0 ecx=27 data=4276094976 exception=0",
            msr(false, 27, 4_276_094_976, false),
        ),
        // The kernel's option `fields`.
        (
            "kvm_msr",
            "write=0x1 (1) ecx=0x174 (372) data=0x10 (16) exception=0x0 (0)",
            msr(true, 0x174, 0x10, false),
        ),
    ];
    for (name, args, want) in cases {
        let line = format!(
            "       CPU 0/KVM-319   [000]    19.896127: {name}: {:>w$}{args}",
            "",
            w = 21 - name.len()
        );
        assert_eq!(one(&line).data, want, "{line}");
    }
}

#[test]
fn lost_events_are_counted_where_they_happened() {
    let (got, summary) = read("\
cpus=2
          <idle>-0     [000]   867.700001: softirq_raise:        vec=9 [action=RCU]
CPU:1 [724 EVENTS DROPPED]
       CPU 1/KVM-3743  [001]   867.720908: kvm_exit:             reason EXIT_IOIO rip 0x10 info 6080041 11
CPU:1 [EVENTS DROPPED]
       CPU 1/KVM-3743  [001]   867.730000: kvm_exit:             reason EXIT_IOIO rip 0x10 info 6080041 11
");
    assert_eq!(got.events.len(), 3);
    assert_eq!(
        got.lost,
        [
            (867_720_908_000, 1, Some(724), LostKind::Ring),
            (867_730_000_000, 1, None, LostKind::Ring),
        ]
    );
    assert_eq!(summary.quality.lost_events, 725);
    assert_eq!(summary.quality.doubts.len(), 1);
    assert!(
        summary.quality.texts()[0]
            .starts_with("The text says 1 time that events were lost, but not how many")
    );
}

#[test]
fn stacks_of_the_kernel_span_lines() {
    let (got, summary) = read(
        "\
       CPU 1/KVM-3743  [001]   891.429061: kvm_userspace_exit:   reason KVM_EXIT_IO (2)
       CPU 1/KVM-3743  [001]   891.429076: kernel_stack:         <stack trace >
=> trace_event_raw_event_kvm_userspace_exit (ffffffffc042aab1)
=> kvm_vcpu_ioctl (ffffffffc04305f5)
       CPU 1/KVM-3743  [001]   891.429276: kvm_userspace_exit:   reason KVM_EXIT_IO (2)
",
    );
    let names: Vec<_> = got.events.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(
        names,
        ["kvm_userspace_exit", "kernel_stack", "kvm_userspace_exit"]
    );
    assert_eq!(summary.quality.texts(), [""; 0]);
}

#[test]
fn merged_reports_tell_files_apart() {
    let (got, summary) = read("\
       trace.dat: cpus=4
trace-guest1.dat: cpus=2
       trace.dat:        CPU 0/KVM-2711  [001]   991.517313: kvm_entry:            vcpu 0, rip 0x10
trace-guest1.dat:        trace-cmd-126   [000]   991.559185: sched_stat_runtime:   comm=trace-cmd pid=126
trace-guest1.dat:     kworker/1:2-128   [001]   991.571539: irq_handler_entry:    irq=11 name=arch_timer
       trace.dat:          <idle>-0     [003]   991.600000: sched_waking:         comm=a pid=1
");
    assert_eq!(summary.sources, ["trace.dat", "trace-guest1.dat"]);
    assert_eq!(
        (summary.machine_cpus, summary.quality),
        (Some(4), event::Quality::default())
    );
    let reported: Vec<_> = got
        .events
        .iter()
        .map(|e| (e.buffer, e.comm.as_deref(), e.tid))
        .collect();
    assert_eq!(
        reported,
        [
            (0, Some("CPU 0/KVM"), 2711),
            (1, Some("trace-cmd"), 126),
            (1, Some("kworker/1:2"), 128),
            (0, Some("<idle>"), 0),
        ]
    );
}

#[test]
fn buffer_instances_are_distinguished_from_the_main_buffer() {
    let (got, summary) = read(
        "\
     cpus=4
two: cpus=4
            CPU 1/KVM-3743  [001]   844.831936: kvm_entry:            vcpu 1, rip 0x10
two:           <idle>-0     [003]   844.832000: softirq_raise:        vec=9 [action=RCU]
",
    );
    assert_eq!(summary.sources, ["", "two"]);
    let reported: Vec<_> = got
        .events
        .iter()
        .map(|e| (e.buffer, e.comm.as_deref()))
        .collect();
    assert_eq!(reported, [(0, Some("CPU 1/KVM")), (1, Some("<idle>"))]);
}

#[test]
fn buffers_beyond_those_that_are_kept_apart_are_said() {
    let mut text = "cpus=4\n".to_owned();
    for buffer in 0..1_030 {
        text.push_str(&format!(
            "b{buffer}:   tinyvm-316   [000]   {}.872325: kvm_entry:            vcpu 0, rip 0x10\n",
            100 + buffer
        ));
    }
    let (got, summary) = read(&text);
    assert_eq!((got.events.len(), summary.sources.len()), (1_030, 1_024));
    // The file's own buffer is one of them, so seven have no number.
    let said = summary.quality.texts();
    assert!(
        said.iter()
            .any(|text| text.starts_with("7 lines are of more files or buffers")),
        "{said:?}"
    );
}

/// `trace-cmd split --top -b host` of 3.4, and its report.
#[test]
fn a_renamed_top_buffer_is_the_only_one() {
    let (got, summary) = read(
        "\
cpus=0
host:        trace-cmd-315   [001] d..2.    19.872158: kvm_entry:            vcpu 1, rip 0x10
host:           tinyvm-316   [000] .....    19.872325: kvm_entry:            vcpu 0, rip 0x10
",
    );
    assert_eq!(summary.sources, ["host"]);
    assert_eq!(summary.machine_cpus, None);
    assert!(got.events.iter().all(|e| e.buffer == 0));
    let threads: Vec<_> = got.events.iter().map(|e| e.tid).collect();
    assert_eq!(threads, [315, 316]);
}

#[test]
fn headers_and_debugging_lines_are_known() {
    let (got, summary) = read(
        r#"version = 7
CPU 1 is empty
cpus=4

Kernel buffer statistics:
  Note: "entries" are the entries left in the kernel ring buffer and are not
        recorded in the trace data. They should all be zero.

CPU: 0
entries: 2
overrun: 3317
commit overrun: 0
bytes: 108
oldest event ts:   868.376166
now ts:   868.378770
dropped events: 0
read events: 20989

CPU:1 [SUBBUFFER START] [867639530790:0x5000]
       CPU 1/KVM-3743  [001]   867.639531: kvm_pio:              pio_read at 0x608 size 4 count 1 val 0xefd6fc  [0:0x10:28]
       CPU 1/KVM-3743  [001]   867.639549: kvm_entry:             vcpu 1 rip 0xffffffff8177a62c [18588:0x30:32]
CPU:1 [SUBBUFFER START]
       CPU 1/KVM-3743  [001]   867.639550: function:             irqfd_inject
"#,
    );
    let data: Vec<_> = got.events.iter().map(|e| e.data).collect();
    assert_eq!(
        data,
        [
            pio(false, 0x608, 4, 1, 0xef_d6fc),
            entry(Some(1), Some(0xffff_ffff_8177_a62c)),
            Data::Other
        ]
    );
    assert_eq!(got.events[2].text, "irqfd_inject");
    assert_eq!(summary.quality.texts(), [""; 0]);
    assert_eq!(summary.quality.lost_events, 3317);
}

#[test]
fn what_plugins_make_of_arm64() {
    let line = "       CPU 0/KVM-1256  [003]   363.386208: kvm_exit:             <CANT FIND FIELD exit_reason>TRAP: \
        HSR_EC: 0x0024 (DABT_LOW), PC: 0xffffa53559d6c68c";
    assert_eq!(
        one(line).data,
        exit(Isa::Arm64, 0x124, None, Some(0xffff_a535_59d6_c68c))
    );
    let line = "       CPU 0/KVM-1256  [003]   363.385951: kvm_entry:            CAN'T FIND FIELD \"vcpu_id\"<CANT \
        FIND FIELD rip>PC: 0xffffa535718cd498";
    assert_eq!(one(line).data, entry(None, Some(0xffff_a535_718c_d498)));
}
