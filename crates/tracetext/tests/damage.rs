//! What the way into a ticket does to a text, one kind of damage a test.

use crate::common::{Seen, entry, exit, mmio, msr, pio, read, wakeup, who, with_info};
use event::{Data, Isa, MmioAccess, NONE};
use tracetext::TextProducer;

/// An undamaged text of each style, and what it says.
const TRACE_CMD: &str = r"       CPU 1/KVM-4043  [001]   844.831936: kvm_exit:             reason EXIT_IOIO rip 0xffffffff8177a62b info 6080041 ffffffff8177a62c
       CPU 1/KVM-4043  [001]   844.831958: kvm_pio:              pio_read at 0x608 size 4 count 1 val 0x3e38c9 
       CPU 1/KVM-4043  [001]   844.831963: kvm_entry:             vcpu 1 rip 0xffffffff8177a62c
          <idle>-0     [003]   844.832000: sched_switch:         swapper/3:0 [120] R ==> kworker/3:1:15 [120]
     kworker/3:1-15    [003]   844.832001: sched_waking:         comm=qemu & co pid=15 prio=120 target_cpu=003
";

const PERF: &str = r"       CPU 1/KVM  4043 [001]   844.831936:           kvm:kvm_exit: vcpu 1 reason io rip 0xffffffff8177a62b info1 0x0000000006080041 info2 0xffffffff8177a62c intr_info 0x00000000 error_code 0x00000000
       CPU 1/KVM  4043 [001]   844.831958:            kvm:kvm_pio: pio_read at 0x608 size 4 count 1 val 0x3e38c9 
       CPU 1/KVM  4043 [001]   844.831963:          kvm:kvm_entry: vcpu 1, rip 0xffffffff8177a62c
         swapper     0 [003]   844.832000:     sched:sched_switch: prev_comm=swapper/3 prev_pid=0 ==> next_comm=kworker/3:1
     kworker/3:1    15 [003]   844.832001:     sched:sched_waking: comm=qemu & co pid=15 prio=120 target_cpu=003
";

const FTRACE: &str = r"       CPU 1/KVM-4043    [001] .....   844.831936: kvm_exit: vcpu 1 reason io rip 0xffffffff8177a62b info1 0x0000000006080041 info2 0xffffffff8177a62c intr_info 0x00000000 error_code 0x00000000
       CPU 1/KVM-4043    [001] .....   844.831958: kvm_pio: pio_read at 0x608 size 4 count 1 val 0x3e38c9 
       CPU 1/KVM-4043    [001] d..1.   844.831963: kvm_entry: vcpu 1, rip 0xffffffff8177a62c
          <idle>-0       [003] d..2.   844.832000: sched_switch: prev_comm=swapper/3 prev_pid=0 ==> next_comm=kworker/3:1
     kworker/3:1-15      [003] d..2.   844.832001: sched_waking: comm=qemu & co pid=15 prio=120 target_cpu=003
";

const STYLES: [&str; 3] = [TRACE_CMD, PERF, FTRACE];

fn lines(text: &str, change: impl Fn(usize, &str) -> String) -> String {
    text.lines()
        .enumerate()
        .map(|(n, line)| change(n, line) + "\n")
        .collect()
}

/// Breaks lines where a terminal of that width does.
fn broken_at(text: &str, width: usize) -> String {
    lines(text, |_, line| {
        let chars: Vec<char> = line.chars().collect();
        let parts = chars.chunks(width).map(|c| c.iter().collect::<String>());
        parts.collect::<Vec<_>>().join("\n")
    })
}

/// What of an event is compared: all but the spacing of its text.
fn plain(seen: &Seen) -> Seen {
    let text = seen.text.split_whitespace().collect::<Vec<_>>().join(" ");
    Seen {
        text,
        ..seen.clone()
    }
}

/// Compares event by event, to say where the difference is.
#[track_caller]
fn same(got: &[Seen], want: &[Seen], text: &str) {
    for (got, want) in got.iter().zip(want) {
        assert_eq!(got, want, "{text}");
    }
    assert_eq!(got.len(), want.len(), "{text}");
}

/// Checks that the damage changes nothing but that warnings are given.
#[track_caller]
fn undone(warnings: &[&str], damage: impl Fn(&str) -> String) {
    for text in STYLES {
        let (want, _) = read(text);
        let damaged = damage(text);
        let (got, summary) = read(&damaged);
        let want: Vec<_> = want.events.iter().map(plain).collect();
        let got: Vec<_> = got.events.iter().map(plain).collect();
        same(&got, &want, &damaged);
        assert_eq!(summary.quality.texts(), warnings, "{damaged}");
        // Without the padding trace-cmd's reports and the kernel's own look alike.
        let perf =
            |text: &str| tracetext::sniff(text.as_bytes()).map(|s| s == TextProducer::PerfScript);
        assert_eq!(perf(&damaged), perf(text), "{damaged}");
        assert!(perf(text).is_some());
    }
}

#[test]
fn nothing_is_wrong_with_the_undamaged_texts() {
    undone(&[], str::to_owned);
    for text in STYLES {
        let (got, _) = read(text);
        let (exit_vcpu, rip) = (got.events[0].data, 0xffff_ffff_8177_a62b);
        let info2 = text.contains("info1").then_some(rip + 1);
        let of = |vcpu| with_info(exit(Isa::Svm, 0x7b, vcpu, Some(rip)), 0x608_0041, info2);
        assert!(exit_vcpu == of(Some(1)) || exit_vcpu == of(None));
        assert_eq!(got.events[1].data, pio(false, 0x608, 4, 1, 0x3e_38c9));
        assert_eq!(got.events[2].data, entry(Some(1), Some(rip + 1)));
        assert_eq!(got.events[4].comm.as_deref(), Some("kworker/3:1"));
    }
}

#[test]
fn quote_marks_prompts_and_bullets() {
    for prefix in [
        "> ",
        ">",
        "> > ",
        ">> ",
        "| ",
        "$ ",
        "# ",
        "* ",
        "+ ",
        "- ",
        "\u{2502} ",
        "%  ",
        "    ",
    ] {
        undone(&[], |text| lines(text, |_, line| format!("{prefix}{line}")));
        // With the alignment gone.
        undone(&[], |text| {
            lines(text, |_, line| format!("{prefix}{}", line.trim()))
        });
    }
}

#[test]
fn line_numbers() {
    undone(&[], |text| {
        lines(text, |n, line| format!("{:6}\t{line}", n + 1))
    });
    undone(&[], |text| {
        lines(text, |n, line| format!("{:6}  {line}", n + 95))
    });
    undone(&[], |text| {
        lines(text, |n, line| format!("{}: {line}", n + 1))
    });
    undone(&[], |text| {
        lines(text, |n, line| format!("{:4}| {}", n + 1, line.trim()))
    });
    undone(&[], |text| {
        lines(text, |n, line| format!("> {:4}:  {line}", n + 1))
    });
}

#[test]
fn names_of_files_before_each_line() {
    undone(&[], |text| {
        lines(text, |n, line| format!("host.txt:{}:{line}", n + 1))
    });
    undone(&[], |text| {
        lines(text, |n, line| {
            format!("a-long-name.txt:{}:{}", n + 1, line.trim())
        })
    });
}

#[test]
fn the_kernel_log_around_each_line() {
    undone(&[], |text| {
        lines(text, |n, line| format!("[   45.12345{n}] {line}"))
    });
    undone(&[], |text| {
        lines(text, |n, line| format!("[   45.12345{n}][  T123] {line}"))
    });
    undone(&[], |text| {
        lines(text, |n, line| format!("<4>[   45.12345{n}] {line}"))
    });
    undone(&[], |text| {
        lines(text, |n, line| {
            format!("Nov 20 15:45:01 host7 kernel: [   45.12345{n}] {line}")
        })
    });
    undone(&[], |text| {
        lines(text, |_, line| {
            format!("2023-11-20T15:45:01.123456+01:00 host7 kernel:  {line}")
        })
    });
}

#[test]
fn white_space_lost_or_changed() {
    undone(&[], |text| lines(text, |_, line| line.trim().to_owned()));
    undone(&[], |text| lines(text, |_, line| format!("{line}   \t ")));
    undone(&[], |text| {
        lines(text, |_, line| {
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        })
    });
    undone(&[], |text| lines(text, |_, line| line.replace("  ", "\t")));
    undone(&[], |text| text.replace('\n', "\r\n"));
    undone(&[], |text| text.replace('\n', "\r"));
    undone(&[], |text| text.replace('\n', "\n\n"));
    undone(&[], |text| text.trim_end().to_owned());
}

#[test]
fn html() {
    undone(&[], |text| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('=', "&#61;")
    });
    undone(&[], |text| {
        text.replace('&', "&amp;amp;").replace('>', "&amp;gt;")
    });
    undone(&[], |text| text.replace("  ", "&nbsp; "));
    undone(&[], |text| text.replace("  ", "\u{a0} "));
    undone(&[], |text| {
        lines(text, |_, line| format!("{line}<br>")).replace(' ', "\u{2002}")
    });
}

#[test]
fn colours_marks_and_fences() {
    undone(&[], |text| {
        text.replace("kvm_", "\x1b[01;31m\x1b[Kkvm_\x1b[m\x1b[K")
    });
    undone(&[], |text| format!("\u{feff}{text}"));
    undone(&[], |text| format!("```\n{text}```\n"));
    undone(&[], |text| format!("{{noformat}}\n{text}{{noformat}}\n"));
    undone(&[], |text| format!("<pre>\n{text}</pre>\n"));
    undone(&[], |text| lines(text, |_, line| format!("| {line} |")));
}

#[test]
fn prose_around_is_nothing_to_speak_of() {
    undone(&[], |text| {
        format!(
            "Hello,\n\nsince 12:30 our guest is slow. Here is a trace of it: see\nhost [1] 5: below.\n\n$ cat \
             it\n{text}"
        )
    });
    undone(&[], |text| {
        format!("Hello,\n{text}What could this be?\n\nYours, A.\n")
    });
}

#[test]
fn lines_left_out_are_reported() {
    for mark in [
        "...",
        "[...]",
        "[snip]",
        "<snip>",
        "-- snip --",
        "--",
        "\u{2026}",
        "(...)",
        "... 120 lines omitted ...",
        "> ...",
    ] {
        let warning = "Lines were left out of the text in 1 place (first: line 3); times across a gap are wrong.";
        undone(&[warning], |text| {
            let at = text.match_indices('\n').nth(1).expect("three lines").0;
            format!("{}\n{mark}{}", &text[..at], &text[at..])
        });
    }
}

#[test]
fn lines_broken_by_a_terminal() {
    // A last part of a few letters cannot be distinguished from anything else, so widths are those that leave more.
    for width in [80, 100, 120] {
        for text in STYLES {
            let (want, _) = read(text);
            let broken = broken_at(text, width);
            let (got, summary) = read(&broken);
            let want: Vec<_> = want.events.iter().map(plain).collect();
            let got: Vec<_> = got.events.iter().map(plain).collect();
            same(&got, &want, &format!("{width}\n{broken}"));
            assert_eq!(summary.not_understood, 0);
        }
    }
}

#[test]
fn numbers_of_kvm_events_survive_any_terminal() {
    for width in 44..130 {
        for text in STYLES {
            let (want, _) = read(text);
            let broken = broken_at(text, width);
            let (got, _) = read(&broken);
            // The numbers of the scheduler's events are not promised to survive: words are not searched there.
            let says = |e: &Seen| match e.data {
                Data::SchedSwitch(_) | Data::SchedWaking(_) => Data::Other,
                data => data,
            };
            let reported = |events: &[Seen]| {
                events
                    .iter()
                    .map(|e| (e.time, e.cpu, e.tid, e.name.clone(), says(e)))
                    .collect::<Vec<_>>()
            };
            for (got, mut want) in reported(&got.events).iter().zip(reported(&want.events)) {
                // Numbers without padding may have been broken anywhere: then they are none, and never others.
                if let (Data::KvmExit(got), Data::KvmExit(want)) = (&got.4, &mut want.4)
                    && !text.contains("info1")
                {
                    want.info = want.info.filter(|_| got.info.is_some());
                }
                assert_eq!(*got, want, "{width}\n{broken}");
            }
            assert_eq!(got.events.len(), want.events.len(), "{width}\n{broken}");
        }
    }
}

#[test]
fn lines_broken_between_words_by_a_mail_program() {
    for width in [60, 72, 76, 78, 90] {
        for prefix in ["", "> "] {
            for text in STYLES {
                let (want, _) = read(text);
                let broken = lines(text, |_, line| {
                    let mut parts = vec![String::new()];
                    for word in line.split_whitespace() {
                        let last = parts.last_mut().expect("a part");
                        if last.is_empty() {
                            *last = word.to_owned();
                        } else if last.len() + 1 + word.len() <= width {
                            *last += " ";
                            *last += word;
                        } else {
                            parts.push(word.to_owned());
                        }
                    }
                    parts
                        .iter()
                        .map(|p| format!("{prefix}{p}"))
                        .collect::<Vec<_>>()
                        .join("\n")
                });
                let (got, summary) = read(&broken);
                let want: Vec<_> = want.events.iter().map(plain).collect();
                let got: Vec<_> = got.events.iter().map(plain).collect();
                same(&got, &want, &format!("{width}\n{broken}"));
                assert_eq!(summary.not_understood, 0, "{broken}");
            }
        }
    }
}

#[test]
fn what_an_event_says_on_a_line_of_its_own() {
    let (got, summary) = read(
        "\
qemu-system-aar-1361 [006] 7593.923907: kvm_exit:
                              <CANT FIND FIELD exit_reason>TRAP: HSR_EC: 0x0024
(DABT_LOW), PC: 0xffffffc00872cd74
qemu-system-aar-1361 [006] 7593.923910: kvm_mmio:
                              mmio write len 4 gpa 0xa003a50 val 0x1
qemu-system-aar-1361 [006] 7593.923919: sched_waking:
                              comm=qemu-system-aar pid=1353 prio=120 target_cpu=007
qemu-system-aar-1361 [006] 7593.923926: sched_wakeup:
                              qemu-system-aar:1353 [120] success=1 CPU:007
",
    );
    let data: Vec<_> = got.events.iter().map(|e| e.data).collect();
    assert_eq!(
        data,
        [
            exit(Isa::Arm64, 0x124, None, Some(0xffff_ffc0_0872_cd74)),
            mmio(MmioAccess::Write, 0xa00_3a50, 4, 1),
            Data::SchedWaking(wakeup(1353, "qemu-system-aar", 7)),
            Data::SchedWakeup(wakeup(1353, "qemu-system-aar", 7)),
        ]
    );
    assert_eq!(
        got.events[3].text,
        "qemu-system-aar:1353 [120] success=1 CPU:007"
    );
    assert_eq!(summary.not_understood, 0);
}

#[test]
fn a_head_on_two_lines() {
    let (got, summary) = read(
        "\
qemu-system-aar 2822 [005] 105761.404072:
                                             8063588 cycles:
        ffff8000102cdb44 get_page_from_freelist+0x174 ([kernel.kallsyms])
",
    );
    assert_eq!(
        who(&got.events[0]),
        (5, 2822, NONE, Some("qemu-system-aar"), "cycles")
    );
    assert_eq!((got.events.len(), summary.not_understood), (1, 0));
}

#[test]
fn a_value_broken_in_two_is_read_whole() {
    let (got, _) = read(
        "\
       CPU 0/KVM  1228 [002]   300.320076:   kvm:kvm_msr: msr_write 6e0 = 0x2cdea
76f99
       CPU 0/KVM  1228 [002]   300.320158: kvm:kvm_entry: vcpu 0, rip 0x10
",
    );
    assert_eq!(got.events[0].data, msr(true, 0x6e0, 0x2c_dea7_6f99, false));
    // A sentence is no part of a value.
    let (got, summary) = read(
        "\
       CPU 0/KVM  1228 [002]   300.320076:   kvm:kvm_msr: msr_write 6e0 = 0x2cdea
76 of these came each second, which is a lot
",
    );
    assert_eq!(got.events[0].data, msr(true, 0x6e0, 0x2_cdea, false));
    assert_eq!(summary.not_understood, 0);
}

#[test]
fn bytes_that_are_no_text() {
    let mut bytes = PERF.as_bytes().to_vec();
    let at = PERF.find("qemu").expect("it is there");
    bytes[at] = 0xe9;
    let at = PERF.find("kworker").expect("it is there");
    bytes[at] = 0xff;
    let (got, summary) = read(&bytes);
    assert_eq!(got.events.len(), 5);
    assert_eq!(
        got.events[3].text,
        "prev_comm=swapper/3 prev_pid=0 ==> next_comm=\u{fffd}worker/3:1"
    );
    assert_eq!(
        got.events[4].text,
        "comm=\u{fffd}emu & co pid=15 prio=120 target_cpu=003"
    );
    assert_eq!(
        summary.quality.texts(),
        ["2 lines hold bytes that are no UTF-8 (first: line 4)."]
    );
}

#[test]
fn a_text_cut_off_in_a_line_keeps_what_is_there() {
    for text in STYLES {
        let (want, _) = read(text);
        let last = text.trim_end().rfind('\n').expect("lines") + 1;
        for end in last..text.len() {
            let (got, _) = read(&text[..end]);
            assert!(got.events.len() >= 4, "{}", &text[..end]);
            assert_eq!(got.events[..4], want.events[..4]);
        }
    }
}

#[test]
fn lines_not_understood_are_reported_with_their_places() {
    let text = "a-1 [000] 1.000001: kvm_entry: vcpu 0, rip 0x10\nwhat is this\na-1 [000] 1.000002: kvm_fpu: \
        load\n\nand this?\na-1 [000] 1.000003: kvm exit:\nno\na-1 [000] kvm_exit\n";
    let (_, summary) = read(text);
    let places: Vec<_> = summary
        .first_not_understood
        .iter()
        .map(|p| (p.line, p.offset as usize))
        .collect();
    assert_eq!(
        places,
        [
            (6, text.find("a-1 [000] 1.000003").unwrap_or(0)),
            (8, text.find("a-1 [000] kvm_exit").unwrap_or(0))
        ]
    );
    assert_eq!(summary.not_understood, 2);
}

#[test]
fn a_reason_that_a_terminal_broke_is_the_known_one() {
    for reason in ["PF\n excp", "PF excp", "EXIT_EX\nCP_PF"] {
        let text = format!(
            "a-1 [000] 1.000001: kvm_exit: vcpu 0 reason {reason} rip 0xffffffff81000010\n"
        );
        let (got, _) = read(&text);
        assert_eq!(
            got.events[0].data,
            exit(Isa::Svm, 0x4e, Some(0), Some(0xffff_ffff_8100_0010)),
            "{text}"
        );
    }
}

#[test]
fn a_reason_without_a_number_goes_by_its_name() {
    let (got, summary) =
        read("a-1 [000] 1.000001: kvm_exit: vcpu 0 reason FROM_THE_FUTURE rip 0x10\n");
    let Data::KvmExit(exit) = got.events[0].data else {
        panic!("{:?}", got.events[0]);
    };
    assert_eq!(exit.reason.key(), "FROM_THE_FUTURE");
    assert_eq!((exit.vcpu, exit.guest_pc), (Some(0), Some(0x10)));
    assert!(summary.quality.doubts.is_empty());
    // What was cut off may be the beginning of a known one, and what is no name is none.
    for text in ["FROM_THE_FUT", "\u{fffd}\u{fffd} rip 0x10", "? rip 0x10"] {
        let (got, summary) = read(format!(
            "a-1 [000] 1.000001: kvm_exit: vcpu 0 reason {text}\n"
        ));
        assert_eq!(got.events[0].data, Data::Other, "{text}");
        assert_eq!(
            summary.quality.texts(),
            ["1 KVM event has no fields that could be read (first: line 1)."]
        );
    }
}

#[test]
fn numbers_for_reasons_belong_to_the_table_of_earlier_lines() {
    let amd = "a-1 [000] 1.000001: kvm_exit: vcpu 0 reason npf rip 0x10\na-1 [000] 1.000002: kvm_exit: vcpu 0 reason \
        0x83 rip 0x10\n";
    assert_eq!(
        read(amd).0.events[1].data,
        exit(Isa::Svm, 0x83, Some(0), Some(0x10))
    );
    let intel = "a-1 [000] 1.000001: kvm_exit: vcpu 0 reason HLT rip 0x10\na-1 [000] 1.000002: kvm_exit: vcpu 0 reason \
        0x83 rip 0x10\n";
    assert_eq!(
        read(intel).0.events[1].data,
        exit(Isa::Vmx, 0x83, Some(0), Some(0x10))
    );
    let plugin =
        "a-1 [000] 1.000002: kvm_exit:             reason UNKNOWN (131) rip 0x10 info 0 0\n";
    assert_eq!(
        read(plugin).0.events[0].data,
        exit(Isa::Vmx, 131, None, Some(0x10))
    );
    let failed =
        "a-1 [000] 1.000002: kvm_exit: vcpu 0 reason INVALID_STATE FAILED_VMENTRY rip 0x10\n";
    assert_eq!(
        read(failed).0.events[0].data,
        exit(Isa::Vmx, 0x8000_0021, Some(0), Some(0x10))
    );
    let headed = "# cpuid : AuthenticAMD,25,1,1\na 1 [000] 1.000002: kvm:kvm_exit: vcpu 0 reason 0x83 rip 0x10\n";
    assert_eq!(
        read(headed).0.events[0].data,
        exit(Isa::Svm, 0x83, Some(0), Some(0x10))
    );
}
