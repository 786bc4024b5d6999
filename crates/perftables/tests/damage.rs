//! What pasting does to a table leaves its numbers as they were.

use perftables::{KvmStatEvent, PerfTable, StatCount, looks_like, read};
use proptest::prelude::*;

const KVM: &str = include_str!("tables/case2-windows-before.perf-kvm-stat-vmexit.txt");
const SCHED: &str =
    include_str!("tables/case5-slow-host-performance-governor.perf-sched-latency.txt");
const STAT: &str = include_str!("tables/case5-perf-stat.txt");

/// Returns the tables without their places and labels.
fn tables(text: &[u8]) -> Vec<PerfTable> {
    let (mut tables, _) = read(text);
    for table in &mut tables {
        match table {
            PerfTable::KvmStat(table) => {
                (table.line, table.label) = (0, None);
                table.rows.iter_mut().for_each(|row| row.line = 0);
            }
            PerfTable::SchedLatency(table) => {
                (table.line, table.label) = (0, None);
                table.rows.iter_mut().for_each(|row| row.line = 0);
            }
            PerfTable::PerfStat(table) => {
                (table.line, table.label) = (0, None);
                table.counts.iter_mut().for_each(|count| count.line = 0);
            }
            other => panic!("{other:?}"),
        }
    }
    tables
}

/// Damages each text and wants the tables of the undamaged one.
#[track_caller]
fn unharmed_in(texts: &[&str], damage: impl Fn(&str) -> String) {
    for text in texts {
        let damaged = damage(text);
        assert!(looks_like(damaged.as_bytes()), "{damaged}");
        assert_eq!(
            tables(damaged.as_bytes()),
            tables(text.as_bytes()),
            "{damaged}"
        );
    }
}

#[track_caller]
fn unharmed(damage: impl Fn(&str) -> String) {
    unharmed_in(&[KVM, SCHED, STAT], damage);
}

fn each_line(text: &str, damage: impl Fn(&str) -> String) -> String {
    text.lines().map(|line| damage(line) + "\n").collect()
}

#[test]
fn line_ends_quotes_and_blanks() {
    unharmed(|text| text.replace('\n', "\r\n"));
    unharmed(|text| text.replace('\n', "\r"));
    unharmed(|text| format!("\u{feff}{text}"));
    unharmed(|text| each_line(text, |line| format!("> {line}   ")));
    unharmed(|text| each_line(text, |line| format!("&gt;&gt; {line}")));
    unharmed(|text| each_line(text, |line| format!("        {line}\t")));
    unharmed(|text| each_line(text, |line| line.trim_start().to_owned()));
    unharmed(|text| text.replace("  ", "\t"));
    unharmed(|text| text.replace("  ", " \u{3000}"));
    unharmed(|text| text.replace("  ", "&nbsp; "));
    unharmed(|text| text.replace('\n', "\n\n"));
    unharmed(|text| text.replace("\n\n", "\n"));
    // A blank that does not break stands between groups of digits in some languages, so counts are kept from it.
    unharmed_in(&[KVM, SCHED], |text| text.replace(' ', "\u{a0}"));
    unharmed_in(&[KVM, SCHED], |text| {
        text.split_inclusive('\n')
            .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ") + "\n")
            .collect()
    });
}

#[test]
fn colours_and_full_width_characters() {
    unharmed(|text| each_line(text, |line| format!("\x1b[1;31m{line}\x1b[0m")));
    let wide = |c: char| {
        if c.is_ascii_digit() || c == '%' {
            char::from_u32(c as u32 + 0xfee0).unwrap()
        } else {
            c
        }
    };
    unharmed(|text| text.chars().map(wide).collect());
    unharmed_in(&[KVM], |text| text.replace("+-", "\u{b1}"));
    unharmed_in(&[KVM], |text| text.replace("us ", "\u{b5}s "));
}

#[test]
fn text_around() {
    unharmed(|text| format!("客户现场，虚拟机慢：\n```\n{text}```\n以上。\n"));
    unharmed(|text| format!("[root@host ~]# perf kvm stat report\n{text}[root@host ~]# \n"));
    unharmed(|text| format!("{{noformat}}\n{text}{{noformat}}\n"));
    unharmed(|text| format!("12 guests, 3 of them slow.\n\n{text}\nThanks\n12 34\n"));
}

/// Breaks each line at a column, as a terminal does, or between words before it, as mailers do.
fn broken(text: &str, width: usize, words: bool) -> String {
    each_line(text, |line| {
        let mut line = line.trim_end();
        let mut out = String::new();
        while line.len() > width {
            let at = match line[..width].rfind(' ') {
                Some(at) if words && !line[..at].trim().is_empty() => at,
                _ => width,
            };
            out.push_str(&line[..at]);
            out.push('\n');
            line = &line[at..];
        }
        out + line
    })
}

#[test]
fn broken_lines() {
    for width in 60..120 {
        unharmed_in(&[KVM, SCHED], |text| broken(text, width, false));
        unharmed_in(&[KVM, SCHED], |text| broken(text, width, true));
        unharmed_in(&[KVM, SCHED], |text| {
            broken(text, width, true).replace('\n', "\n> ")
        });
    }
}

#[test]
fn tables_of_a_wiki() {
    let cells = |line: &str| {
        let line = line.trim();
        if line.contains('%') && !line.contains("Samples%") {
            let (row, error) = line.split_once(" (").unwrap_or((line, ""));
            let row = row.split_whitespace().collect::<Vec<_>>().join(" | ");
            format!("| {row} ({error} |")
        } else {
            line.to_owned()
        }
    };
    unharmed_in(&[KVM], |text| each_line(text, cells));
    unharmed_in(&[SCHED], |text| {
        each_line(text, |line| {
            if line.contains('|') {
                format!("| {} |", line.trim().trim_end_matches('|'))
            } else {
                line.to_owned()
            }
        })
    });
}

#[test]
fn rows_without_heading_and_last_line() {
    let rows: Vec<&str> = KVM.lines().filter(|line| line.contains("+-")).collect();
    let (tables, notes) = read(rows.join("\n").as_bytes());
    let [PerfTable::KvmStat(table)] = &tables[..] else {
        panic!("{tables:?}")
    };
    assert_eq!(
        (table.rows.len(), table.event, table.total_count),
        (12, KvmStatEvent::Vmexit, None)
    );
    assert_eq!(notes, []);
    let text = format!("$ perf kvm stat report --event mmio\n{}", rows[1]);
    let (tables, notes) = read(text.as_bytes());
    let [PerfTable::KvmStat(table)] = &tables[..] else {
        panic!("{tables:?}")
    };
    assert_eq!((table.rows.len(), table.event), (1, KvmStatEvent::Mmio));
    // One row of 10.52% alone.
    assert!(notes[0].text.contains("10.52%"), "{notes:?}");
}

#[test]
fn rows_cut_off_by_a_screen() {
    let cut = |text: &str, width: usize| each_line(text, |line| line.chars().take(width).collect());
    let text = cut(KVM, 80);
    let (tables, _) = read(text.as_bytes());
    let [PerfTable::KvmStat(table)] = &tables[..] else {
        panic!("{tables:?}")
    };
    assert_eq!((table.rows.len(), table.total_count), (12, Some(351826)));
    let io = &table.rows[0];
    // 88.78% of 3.3 s.
    assert_eq!(
        (io.count, io.total_ns, io.error),
        (256738, 2_947_013_010, None)
    );
    assert_eq!(
        (io.mean_ns, io.min_ns, io.max_ns),
        (2_947_013_010 / 256738, Some(1490), Some(1_235_120))
    );
    // Without the last line the time is not known.
    let (tables, notes) = read(text.split("Total").next().unwrap().as_bytes());
    assert_eq!(tables.len(), 0, "{tables:?}");
    assert!(
        notes
            .iter()
            .any(|note| note.text.contains("EXTERNAL_INTERRUPT (37002 samples)")),
        "{notes:?}"
    );
}

#[test]
fn what_does_not_add_up_is_reported() {
    let reported = |text: &str, want: &str| {
        let (tables, notes) = read(text.as_bytes());
        assert_eq!(tables.len(), 1);
        assert!(
            notes.iter().any(|note| note.text.contains(want)),
            "{notes:?}"
        );
    };
    let without = |text: &str, word: &str| -> String {
        text.lines()
            .filter(|line| !line.contains(word))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    reported(
        &without(KVM, "EOI_INDUCED"),
        "The rows have 333117 samples together, the table's last line says 351826: rows are missing.",
    );
    reported(
        &KVM.replace("256738    72.97%", "256738    62.97%"),
        "The numbers of 1 row contradict the rest of the table: IO_INSTRUCTION in line 5 (256738 samples, 62.97%;",
    );
    reported(
        &KVM.replace("    88.78%", "    80.78%"),
        "(256738 samples, 72.97%; 80.78% of the time,",
    );
    reported(
        &without(SCHED, "iperf"),
        "The rows have 84 switches together, the row TOTAL says 16288: rows are missing.",
    );
    reported(
        &SCHED.replace("2116.851", "2110.851"),
        "The rows ran 2157453 us together, the row TOTAL says 2163453 us",
    );
    reported(
        &SCHED.replace("avg:    0.004 ms", "avg:    4.004 ms"),
        "The mean delay of iperf (4004 us) is longer than its longest (258 us).",
    );
}

#[test]
fn several_tables_in_one_text() {
    let text = format!("before:\n\n{KVM}\n\nafter:\n{SCHED}\n{STAT}\n{KVM}");
    let (all, _) = read(text.as_bytes());
    let reported: Vec<(u64, Option<&str>)> = all
        .iter()
        .map(|table| (table.line(), table.label()))
        .collect();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(reported.len(), 6);
    assert_eq!(
        (reported[0], reported[1]),
        ((3, Some("before")), (25, Some("after")))
    );
    for (line, _) in &reported {
        let line = lines[*line as usize - 1];
        assert!(
            line.contains("Analyze") || line.contains("Task") || line.contains("cache-references"),
            "{line}"
        );
    }
    assert_eq!(tables(KVM.as_bytes())[0], tables(text.as_bytes())[5]);
}

/// `perf kvm stat report > FILE 2>&1` puts what perf says on its standard error above the table: it names nothing.
#[test]
fn what_perf_complains_of_is_no_name_of_a_table() {
    let complaints = "libtraceevent: No such file or directory\n  [kvm:kvm_inj_exception] bad op token }\n  Error: \
        expected type 5 but read 0\n";
    let label = |text: &str| {
        let (tables, _) = read(text.as_bytes());
        tables[0].label().map(str::to_owned)
    };
    assert_eq!(label(&format!("{complaints}\n\n{KVM}")), None);
    let named = format!("# slow host\n{complaints}\n{KVM}");
    assert_eq!(label(&named).as_deref(), Some("slow host"));
    let bracketed = format!("[slow host] before\n{KVM}");
    assert_eq!(label(&bracketed).as_deref(), Some("[slow host] before"));
}

#[test]
fn live_tables_are_kept_with_their_time() {
    let one = |time: &str, count: u64| {
        format!(
            "\x1b[H\x1b[2J\n{time}\n\nAnalyze events for all VMs, all VCPUs:\n\n             VM-EXIT    Samples  \
             Samples%     Time%    Min Time    Max Time         Avg time \n\n                 HLT {count:>10}   \
             100.00%   100.00%      1.00us    100.00us     50.00us ( +-   3.00% )\n\nTotal Samples:{count}, Total \
             events handled time:{}.00us.\n\n\nLost events: 3\n\n",
            count * 50
        )
    };
    let text: String = (0..5)
        .map(|i| one(&format!("14:03:2{i}.123456"), 10 + i))
        .collect();
    let (tables, notes) = read(text.as_bytes());
    assert_eq!(notes, []);
    let reported = tables.iter().map(|table| match table {
        PerfTable::KvmStat(kvm) => (
            table.label().unwrap().to_owned(),
            kvm.total_count.unwrap(),
            kvm.lost_events,
        ),
        other => panic!("{other:?}"),
    });
    let want = (0..5).map(|i| (format!("14:03:2{i}.123456"), 10 + i, Some(3)));
    assert!(reported.eq(want));
}

#[test]
fn counts_in_another_language() {
    let text = " Performance counter stats for 'system wide' (5 runs):\n\n\
                          1.004,53 msec task-clock       #    0,999 CPUs utilized    ( +-  0,10% )\n\
                     2.507.215.365      cycles\n                                          #    0.05  insn per cycle\n\
                     <not counted>      LLC-loads                                   (0,00%)\n\n\
                  10,0473 +- 0,0012 seconds time elapsed  ( +-  0,01% )\n\n       0,5 seconds user\n";
    let (tables, notes) = read(text.as_bytes());
    assert_eq!(notes, []);
    let [PerfTable::PerfStat(stat)] = &tables[..] else {
        panic!("{tables:?}")
    };
    assert_eq!(
        (stat.target.as_deref(), stat.runs),
        (Some("system wide"), Some(5))
    );
    let values: Vec<StatCount> = stat.counts.iter().map(|count| count.value).collect();
    assert_eq!(
        values,
        [
            StatCount::Amount(1004.53),
            StatCount::Count(2_507_215_365),
            StatCount::NotCounted
        ]
    );
    assert_eq!(stat.counts[1].metrics[0].unit, "insn per cycle");
    assert_eq!(
        (stat.elapsed_ns, stat.elapsed_error, stat.user_ns),
        (Some(10_047_300_000), Some(0.01 / 100.0), Some(500_000_000))
    );
}

#[test]
fn reasons_without_a_name_keep_their_code() {
    let text = "  VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         Avg time\n\n\
                unknown kvm exit code:131072 on VMX\n\
                  UNKNOWN       60    60.00%    60.00%      1.00us    9.00us     6.00us ( +-  1.00% )\n\
                      HLT       10    10.00%    10.00%      1.00us    9.00us     6.00us ( +-  1.00% )\n\
                unknown kvm exit code:327680 on VMX\n\
                  UNKNOWN       30    30.00%    30.00%      1.00us    9.00us     6.00us ( +-  1.00% )\n\n\
                Total Samples:100, Total events handled time:600.00us.\n";
    let (tables, notes) = read(text.as_bytes());
    assert_eq!(notes, []);
    let [PerfTable::KvmStat(table)] = &tables[..] else {
        panic!("{tables:?}")
    };
    let codes: Vec<Option<u64>> = table.rows.iter().map(|row| row.unknown_code).collect();
    assert_eq!(codes, [Some(131072), None, Some(327680)]);
    assert_eq!(table.machine.as_deref(), Some("VMX"));
}

#[test]
fn counts_as_mailers_and_terminals_leave_them() {
    let text = "# perf stat -e cycles:H,cycles:G -I 1000 -C 1\n\
                #           time             counts unit events\n     \
                     1.001000004         2900000001      cycles:H\n\
                ^C     1.745000006          108000002      cycles:G\n\n \
                Performance counter stats for 'CPU(s) 0,1' (10 runs):\n\n\
                >     23,700,011  cache-references\n>                         (+-  0.04% )  (79.95%)\n\
                >      3,600,433      BR_INST_RETIRED.NEAR_TAKEN\n>                        (80.00%)\n\n\
                S0-D0-C0           1               1,56 Joules power/energy-cores/\n\n        \
                1.002000709 seconds time elapsed\n";
    let (tables, notes) = read(text.as_bytes());
    assert_eq!(notes, []);
    let [PerfTable::PerfStat(every), PerfTable::PerfStat(all)] = &tables[..] else {
        panic!("{tables:?}")
    };
    let at: Vec<_> = every
        .counts
        .iter()
        .map(|count| (count.at_ns, count.event.as_str()))
        .collect();
    assert_eq!(
        at,
        [
            (Some(1_001_000_004), "cycles:H"),
            (Some(1_745_000_006), "cycles:G")
        ]
    );
    let ends: Vec<_> = all
        .counts
        .iter()
        .map(|count| (count.error, count.running))
        .collect();
    assert_eq!(
        ends,
        [
            (Some(0.04 / 100.0), Some(79.95 / 100.0)),
            (None, Some(0.8)),
            (None, None)
        ]
    );
    assert_eq!(
        (all.counts[2].value, all.counts[2].of.as_deref()),
        (StatCount::Amount(1.56), Some("S0-D0-C0"))
    );
    assert_eq!(
        (all.target.as_deref(), all.elapsed_ns),
        (Some("CPU(s) 0,1"), Some(1_002_000_709))
    );
}

#[test]
fn mails_break_lines_softly() {
    let text = "  Task   |   Runtime ms  | Switches | Avg delay ms    | Max=\n delay ms    | Sum delay ms     | Max \
        delay start           | Max delay en=\nd          |\n  massive:(9)      |1500000.500 ms |   64000 | avg:   \
        0.940 ms | max=\n:  25.125 ms | sum:60160.000 ms | max start:   400.000875 s | max end:   =\n400.026000 s\n  \
        TOTAL:           |1500000.500 ms |   64000 |                      =\n               |   60160.000 ms |\n";
    let (tables, _) = read(text.as_bytes());
    let [PerfTable::SchedLatency(table)] = &tables[..] else {
        panic!("{tables:?}")
    };
    assert_eq!((table.rows.len(), table.total_switches), (1, Some(64000)));
    let row = &table.rows[0];
    assert_eq!(
        (row.delay_max_ns, row.delay_max_at_ns),
        (25_125_000, Some(400_026_000_000))
    );
}

#[test]
fn other_texts_are_no_tables() {
    for text in [
        "",
        "\n\n",
        "Analyze events for all VMs, all VCPUs:\n\n",
        "  Task | Runtime ms | Switches |\n",
        "12 guests\n3 hosts\n",
        "    123 kvm:kvm_exit\n    124 kvm:kvm_entry\n",
        "1,2,3,4,5\n12,foo,bar,3,4\n",
        "10.0 seconds time elapsed\n",
        "       CPU 1/KVM  4043 [001]   844.831936:  kvm:kvm_exit: vcpu 1 reason io rip 0xffffffff8177a62b\n",
        "  Name | Age | Share%\n a:1 | 2.0 ms | 3 | 10%\n",
        "\tpr_info(\"%9s \", \"Samples%\");\n\tpr_info(\"%9s \", \"Time%\");\n",
        "printf(\"  Task | Runtime ms | Switches |\\n\");\n",
    ] {
        assert!(
            !looks_like(text.as_bytes()),
            "{text:?}: {:?}",
            read(text.as_bytes()).0
        );
    }
    assert!(!looks_like(format!("\0{KVM}").as_bytes()));
}

/// Pieces of tables, to be put together at random.
fn piece() -> impl Strategy<Value = String> {
    let lines: Vec<String> = [KVM, SCHED, STAT]
        .iter()
        .flat_map(|text| text.lines())
        .map(str::to_owned)
        .collect();
    let signs = vec![
        "|",
        "( +-",
        "%",
        "us",
        "\u{a0}",
        "#",
        "18446744073709551615",
        "e9",
        "&#",
        "\x1b[",
    ];
    prop_oneof![
        6 => proptest::sample::select(lines),
        1 => "[ -~]{0,60}",
        1 => "\\PC{0,20}",
        1 => proptest::sample::select(signs).prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn nothing_panics_and_lines_stay_in_the_text(
        pieces in proptest::collection::vec((piece(), 0..4u8), 0..40),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
    ) {
        let mut text = Vec::new();
        for (piece, end) in &pieces {
            text.extend_from_slice(piece.as_bytes());
            text.extend_from_slice([&b"\n"[..], b"\r\n", b"", b" "][*end as usize]);
        }
        for (at, byte) in flips {
            if !text.is_empty() {
                let at = at.index(text.len());
                text[at] = byte;
            }
        }
        let lines = 1 + text.iter().filter(|b| matches!(**b, b'\n' | b'\r')).count() as u64;
        let (tables, notes) = read(&text);
        prop_assert!(notes.len() <= 100);
        prop_assert!(tables.iter().all(|table| (1..=lines).contains(&table.line())));
        prop_assert!(notes.iter().all(|note| (1..=lines).contains(&note.line)));
        // Several may stand in one line.
        prop_assert!(tables.windows(2).all(|pair| pair[0].line() <= pair[1].line()));
        let _ = looks_like(&text);
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read(&bytes);
        let _ = looks_like(&bytes);
    }
}
