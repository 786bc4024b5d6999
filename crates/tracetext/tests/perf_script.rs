//! Texts of `perf script`.

use crate::common::{Seen, entry, exit, one, read, who, with_info};
use event::{Data, Isa, LostKind, NONE};
use tracetext::{TextProducer, TextTimeUnit};

#[test]
fn default_fields() {
    let (got, summary) = read(concat!(
        "       CPU 1/KVM  4043 [001]   770.258801:  kvm:kvm_exit: vcpu 1 reason io rip 0xffffffff81624254 ",
        "info1 0x0000000003fd0011 info2 0xffffffff81624255 intr_info 0x00000000 error_code 0x00000000\n",
        "       CPU 1/KVM  4043 [001]   770.258850: kvm:kvm_entry: vcpu 1, rip 0xffffffff81624255\n",
        "         swapper     0 [003]   770.258900: sched:sched_switch: prev_comm=swapper/3 prev_pid=0\n",
    ));
    assert_eq!(summary.style, Some(TextProducer::PerfScript));
    assert_eq!(
        (summary.lines, summary.events, summary.resolution),
        (3, 3, 1000)
    );
    assert_eq!(summary.unit, TextTimeUnit::Nanoseconds);
    assert_eq!(summary.cpus, [1, 3]);
    assert_eq!(summary.isa, Some(Isa::Svm));
    assert_eq!(summary.quality, event::Quality::default());
    let [a, b, c] = &got.events[..] else {
        panic!("{got:?}")
    };
    assert_eq!(who(a), (1, 4043, NONE, Some("CPU 1/KVM"), "kvm_exit"));
    assert_eq!((a.time, a.system.as_str()), (770_258_801_000, "kvm"));
    assert_eq!(
        a.data,
        with_info(
            exit(Isa::Svm, 0x7b, Some(1), Some(0xffff_ffff_8162_4254)),
            0x3fd_0011,
            Some(0xffff_ffff_8162_4255)
        )
    );
    assert!(a.text.starts_with("vcpu 1 reason io") && a.text.ends_with("error_code 0x00000000"));
    assert_eq!(b.data, entry(Some(1), Some(0xffff_ffff_8162_4255)));
    assert_eq!(who(c), (3, 0, NONE, Some("swapper"), "sched_switch"));
    assert_eq!(
        (c.data, c.text.as_str()),
        (Data::Other, "prev_comm=swapper/3 prev_pid=0")
    );
    assert_eq!(
        got.asked,
        ["kvm:kvm_exit", "kvm:kvm_entry", "sched:sched_switch"]
    );
}

#[test]
fn process_and_thread_ids_and_nanoseconds() {
    let seen = one(
        "       CPU 0/KVM   165/183   [000]    10.945974884: kvm:kvm_entry: vcpu 0, rip 0xfff0",
    );
    assert_eq!(who(&seen), (0, 183, 165, Some("CPU 0/KVM"), "kvm_entry"));
    assert_eq!(seen.time, 10_945_974_884);
    let (_, summary) = read("a 1/2 [000] 1.000000001: kvm:kvm_entry: vcpu 0, rip 0xfff0");
    assert_eq!(summary.resolution, 1);
}

/// Reads a text of one event without a CPU.
#[track_caller]
fn cpuless(line: &str) -> Seen {
    let (mut seen, summary) = read(line);
    let quality = summary.quality.texts();
    assert!(
        quality.len() == 1 && quality[0].contains("have no CPU"),
        "{quality:?}"
    );
    seen.events.pop().expect("one event")
}

#[test]
fn columns_that_were_not_asked_for_are_missing() {
    let seen =
        cpuless("            perf   303     9.951207:     sched:sched_waking: comm=a pid=16");
    assert_eq!(who(&seen), (NONE, 303, NONE, Some("perf"), "sched_waking"));
    let seen = one("  303 [000]     9.951207:     sched:sched_waking: comm=a pid=16");
    assert_eq!(who(&seen), (0, 303, NONE, None, "sched_waking"));
    let seen = one("  303/309   [000]     9.951207:     sched:sched_waking: comm=a pid=16");
    assert_eq!(who(&seen), (0, 309, 303, None, "sched_waking"));
    let seen = one("     vhost-1250 [002]     9.951207:     sched:sched_waking: comm=a pid=16");
    assert_eq!(
        who(&seen),
        (2, NONE, NONE, Some("vhost-1250"), "sched_waking")
    );
    let seen = cpuless("    9.951207:     sched:sched_waking: comm=a pid=16");
    assert_eq!(who(&seen), (NONE, NONE, NONE, None, "sched_waking"));
    let seen = one("       CPU 1/KVM   309 [001]     9.968100:     kvm:kvm_fpu:");
    assert_eq!(
        (who(&seen), seen.text.as_str()),
        ((1, 309, NONE, Some("CPU 1/KVM"), "kvm_fpu"), "")
    );
}

#[test]
fn columns_that_were_asked_for_besides() {
    // -F +misc, +period, +flags
    let seen = one("  perf   303 [000] K         9.951207:    sched:sched_waking: comm=a pid=16");
    assert_eq!(who(&seen), (0, 303, NONE, Some("perf"), "sched_waking"));
    let seen = one(
        "  perf   303 [000]     9.951207:    2750971     sched:sched_stat_runtime:              comm=perf",
    );
    assert_eq!(
        (seen.name.as_str(), seen.text.as_str()),
        ("sched_stat_runtime", "comm=perf")
    );
}

#[test]
fn names_of_threads_hold_anything() {
    for comm in [
        "CPU 12/KVM",
        "kworker/0:1-kvm",
        "a b  c",
        "[x]",
        "1 2",
        "(sd-pam)",
        "a: b",
        ":",
        "-",
        "vhost-12",
        "x [001] y",
        "1.5:",
        "\u{fc}ber",
    ] {
        let seen = one(&format!(
            "{comm:>16}  4043 [001]   770.258801: kvm:kvm_entry: vcpu 1, rip 0x10"
        ));
        assert_eq!(who(&seen), (1, 4043, NONE, Some(comm), "kvm_entry"));
    }
    // perf does not know the name of this thread.
    let seen =
        one("           :1256  1256 [003]   357.554272: kvm:kvm_entry: PC: 0xffffa535718cd498");
    assert_eq!(who(&seen), (3, 1256, NONE, None, "kvm_entry"));
    // Nor any thread.
    let seen =
        one("         swapper    -1 [003]   357.554272: kvm:kvm_entry: PC: 0xffffa535718cd498");
    assert_eq!(who(&seen), (3, -1, NONE, Some("swapper"), "kvm_entry"));
}

#[test]
fn events_of_perf_itself_have_no_system() {
    let (got, summary) = read(concat!(
        "perf  2860 [000]  1044.679775:          1   cycles:  ffffa351fbb823b8 [unknown] ([kernel.kallsyms])\n",
        "perf  2860 [000]  1044.679776:          1   cpu-clock:pppH:  ffffa351fbb823b8 a ([kernel.kallsyms])\n",
        "perf  2860 [000]  1044.679777:   cpu/event=0xc0,umask=0x1/u: \n",
        "perf  2860 [000]  1044.679778:   kvm:kvm_entry:u: vcpu 0, rip 0x10\n",
    ));
    let names: Vec<_> = got
        .events
        .iter()
        .map(|e| (e.system.as_str(), e.name.as_str()))
        .collect();
    let own = ["cycles", "cpu-clock:pppH", "cpu/event=0xc0,umask=0x1/u"].map(|n| ("", n));
    assert_eq!(names[..3], own);
    assert_eq!(names[3], ("kvm", "kvm_entry"));
    assert_eq!(got.events[3].data, entry(Some(0), Some(0x10)));
    assert_eq!(summary.quality.texts(), [""; 0]);
}

#[test]
fn call_chains_are_passed_over() {
    let stack = "perf 21604 [000]  5520.589077: sched:sched_waking: comm=migration/0 pid=18
	ffffffff813aa9c4 try_to_wake_up+0x3a4 ([kernel.kallsyms])
	ffffffff81467339 [unknown] ([kernel.kallsyms])
	           ee137 sched_setaffinity@@GLIBC_2.3.4+0x7 (/usr/lib/x86_64-linux-gnu/libc.so.6)
	               0 [unknown] ([unknown])
	    7ffdeadbeef0
  affinity.c:123
  libc.so.6[e3c10]

CPU 0/KVM  2860 [000]  5520.589078:          1   cycles: 
	ffffa351fbb823b8 generic_exec_single+0xd4
	           5ba20 main (inlined)
	           5ba20

CPU 0/KVM  2860 [000]  5520.589079: kvm:kvm_entry: vcpu 0, rip 0x10
	           5ba20

";
    let (got, summary) = read(stack);
    assert_eq!(got.events.len(), 3);
    assert_eq!(got.events[2].data, entry(Some(0), Some(0x10)));
    assert_eq!(got.events[0].text, "comm=migration/0 pid=18");
    assert_eq!(got.events[1].text, "");
    assert_eq!(summary.quality.texts(), [""; 0]);
    // With the indentation and the blank lines gone.
    let flat: String = stack
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .map(|l| format!("{l}\n"))
        .collect();
    let (got, summary) = read(flat);
    assert_eq!(got.events.len(), 3);
    assert!(got.events.iter().all(|e| e.text.len() < 30));
    // Source lines then look like anything, and so like no tracer's.
    assert_eq!(summary.not_understood, 0);
}

#[test]
fn records_beside_events() {
    let (got, summary) = read(concat!(
        "# captured on    : Mon Nov 20 15:40:00 2023\n",
        "# arch : aarch64\n",
        "         swapper     0 [000]     0.000000: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0xe01d32) @ \
         0xffffffff81000000]: x [kernel.kallsyms]_text\n",
        "          l1init     0 [000]     0.000000: PERF_RECORD_MMAP2 1/1: [0x560eb0b75000(0xc1000) @ 0x2f000 fe:00 \
         315 0]: r-xp /usr/bin/my bash\n",
        "          l1init     0 [000]     0.000000: PERF_RECORD_COMM: a:b:1/2\n",
        "           sleep  3959 [000]   792.672668: PERF_RECORD_COMM exec: sleep:3959/3960\n",
        "            perf  3957 [000]   792.340770: PERF_RECORD_FORK(3958:3961):(3957:3956)\n",
        "           sleep  3960 [001]   793.023059: PERF_RECORD_EXIT(3960:3961):(155:155)\n",
        "       CPU 1/KVM  3743 [002]   792.671170: PERF_RECORD_LOST lost 310\n",
        "       CPU 1/KVM  3743 [002]   792.671171: PERF_RECORD_LOST_SAMPLES lost 300\n",
        "       CPU 1/KVM  3743 [002]   792.671172: PERF_RECORD_SWITCH_CPU_WIDE IN\n",
        "PERF_RECORD_FINISHED_ROUND\n",
        "       CPU 1/KVM  3743 [002]   793.671173: kvm:kvm_entry: PC: 0x10\n",
    ));
    assert_eq!(got.events.len(), 1);
    assert_eq!(summary.style, Some(TextProducer::PerfScript));
    assert_eq!(summary.quality.lost_events, 310);
    assert_eq!(summary.quality.texts(), [""; 0]);
    assert_eq!(summary.isa, Some(Isa::Arm64));
    assert_eq!(
        got.sides,
        [
            "Mmap { time: 0, pid: -1, tid: 0, start: 18446744071578845184, len: 14687538, pgoff: 18446744071578845184, \
             misc: 1, exec: true, huge: false, build_id: None, path: \"[kernel.kallsyms]_text\" }",
            "Mmap { time: 0, pid: 1, tid: 1, start: 94621094334464, len: 790528, pgoff: 192512, misc: 2, \
             exec: true, huge: false, build_id: None, path: \"/usr/bin/my bash\" }",
            "Comm { time: 0, pid: 1, tid: 2, comm: \"a:b\", exec: false }",
            "Comm { time: 792672668000, pid: 3959, tid: 3960, comm: \"sleep\", exec: true }",
            "Fork { time: 792340770000, pid: 3958, tid: 3961, ppid: 3957, ptid: 3956 }",
            "Exit { time: 793023059000, pid: 3960, tid: 3961 }",
            "Lost { time: 792671170000, cpu: 2, buffer: 0, count: Some(310), kind: Ring }",
            "Lost { time: 792671171000, cpu: 2, buffer: 0, count: Some(300), kind: Sum }",
        ]
    );
    assert_eq!(got.lost[1].3, LostKind::Sum);
}

#[test]
fn warnings_that_went_into_the_text_are_reported() {
    let (got, summary) = read(concat!(
        "a  1 [002]   792.671170: kvm:kvm_entry: vcpu 0, rip 0x10\n",
        "Warning:\nProcessed 8391 events and lost 78 chunks!\n\nCheck IO/CPU overload!\n\n",
        "a  1 [002]   792.671171: kvm:kvm_entry: vcpu 0, rip 0x10\n",
    ));
    assert_eq!(got.events.len(), 2);
    assert_eq!(
        summary.quality.texts(),
        ["In line 3 perf says that it lost data; it does not say how many events."]
    );
}

#[test]
fn events_out_of_order_are_reported() {
    let (_, summary) = read(concat!(
        "a  1 [002]   2.000000: kvm:kvm_entry: vcpu 0, rip 0x10\n",
        "a  1 [002]   1.000000: kvm:kvm_entry: vcpu 0, rip 0x10\n",
    ));
    assert_eq!(
        summary.quality.texts(),
        [
            "1 event is earlier than the one before (first: line 2): the text is not in the order of time."
        ]
    );
}
