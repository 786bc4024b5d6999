//! Texts that were read off a picture: heads broken over lines, columns on lines of their own, names that lost a sign.
//! Made by hand after `trace-cmd report` 3.1 and `perf script` 5.15 on slides.

use event::{Data, NONE};

use crate::common::{read, who};

#[test]
fn a_line_with_a_cpu_and_a_time_continues_nothing() {
    let text = "\
qemu-kvm-1361 [006] 7593.924392: sched_wakeup: CPU 0/KVM:1362 [120] success=1 CPU:006
                      [006] 7593.924402: sched switch:
                                                swapper/1:0 [120] R ==> vhost-1781:1793 [120]
vhost-1781-1793 [001] 7593.924417: sched_switch:
                                                vhost-1781:1793 [120] S ==> swapper/1:0 [120]
                     [004] 7593.924420: sched wakeup:
                                                qemu-kvm:1781 [120] success=1 CPU:004
";
    let (seen, summary) = read(text);
    let names: Vec<&str> = seen
        .events
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    assert_eq!(names, ["sched_wakeup", "sched_switch"]);
    let Data::SchedSwitch(switch) = seen.events[1].data else {
        panic!("{:?}", seen.events[1]);
    };
    assert_eq!((switch.prev_tid, switch.next_tid), (1793, 0));
    assert_eq!(switch.next_comm, event::sched::TaskComm::new(b"swapper/1"));
    // What the two others say looks like a tracer's, and is not read.
    assert_eq!(summary.not_understood, 4 - 1);
    let said = summary.quality.texts().join(" ");
    assert!(
        said.contains("Of 4 lines that look like events 2 could be read (50 %"),
        "{said}"
    );
}

#[test]
fn a_task_or_a_time_on_a_line_of_its_own_is_no_part_of_an_event() {
    let text = "\
            <...>-1361 [006] 7593.924419: kvm_timer_update_irq: VCPU: 0, IRQ 27, level 0
qemu-kvm-1361
            <...>-1361 [006] 7593.924432: kvm_timer_emulate: arch_timer_ctx_index: 0 (should_fire: 0)
<idle>-0
7593.924441: kvm irq line:
            <...>-1361 [006] 7593.924450: sched_switch:
<idle>-0
                                                swapper/7:0 [120] R ==> qemu-kvm:1353 [120]
";
    let (seen, _) = read(text);
    let texts: Vec<&str> = seen
        .events
        .iter()
        .map(|event| event.text.as_str())
        .collect();
    let whole = [
        "VCPU: 0, IRQ 27, level 0",
        "arch_timer_ctx_index: 0 (should_fire: 0)",
        "",
    ];
    assert_eq!(texts, whole);
    assert_eq!(
        seen.events[2].data,
        Data::Other,
        "no task is called '<idle>-0 swapper/7'"
    );
}

#[test]
fn a_sample_whose_head_is_on_two_lines() {
    let text = "\
qemu-kvm 2822 [005] 105761.404072:
                                             8063588 cycles:
        ffff8000102cdb44 get page from freelist+0x174 ([kernel.kallsyms])
        ffffa2dfe298 ppoll+0x98 (/usr/lib/libc.so.6)
CPU 0/KVM 2829 105761.407769:
   2762147 cycles:
        ffff80001025e380 clear rseq cs+0x20 ([kernel.kallsyms])
";
    let quoted: String = text.lines().map(|line| format!("> {line}\r\n")).collect();
    for text in [text, &quoted] {
        let (seen, summary) = read(text);
        assert_eq!(seen.events.len(), 2, "{text}");
        assert_eq!(
            who(&seen.events[0]),
            (5, 2822, NONE, Some("qemu-kvm"), "cycles")
        );
        assert_eq!(
            who(&seen.events[1]),
            (NONE, 2829, NONE, Some("CPU 0/KVM"), "cycles")
        );
        assert_eq!((seen.sides.len(), summary.not_understood), (3, 0), "{text}");
    }
}
