//! Counts of kvm_stat: its screen, `-1` and `-l`; and those of bcc's kvmexit.

use perftables::{KvmTotals, PerfTable, read};

/// The screen, as people paste it.
const SCREEN: &str = "\
kvm statistics - summary

 Event                                         Total %Total CurAvg/s
 kvm_entry                                   5198993   23.1   277007
 kvm_exit                                    5198976   23.1   277006
   kvm_exit(HLT)                                 120    0.0
 halt_poll_success_ns                             36    0.0        2
 Total                                      22521394         1199967
";

fn totals(text: &str) -> Vec<KvmTotals> {
    let (tables, notes) = read(text.as_bytes());
    assert_eq!(notes, []);
    let tables = tables.into_iter();
    tables
        .map(|table| match table {
            PerfTable::KvmTotals(totals) => totals,
            other => panic!("{other:?}"),
        })
        .collect()
}

/// Counters with their totals and rates.
fn rows(totals: &KvmTotals) -> Vec<(&str, u64, Option<u64>)> {
    let rows = totals.rows.iter();
    rows.map(|row| (row.event.as_str(), row.total, row.per_second))
        .collect()
}

#[test]
fn the_screen_has_totals_and_rates() {
    let [one] = &totals(SCREEN)[..] else {
        panic!("one table");
    };
    assert_eq!(
        (one.line, one.label.as_deref()),
        (3, Some("kvm statistics - summary"))
    );
    assert_eq!(
        rows(one),
        [
            ("kvm_entry", 5_198_993, Some(277_007)),
            ("kvm_exit", 5_198_976, Some(277_006)),
            // Nothing happened in the last interval.
            ("kvm_exit(HLT)", 120, Some(0)),
            ("halt_poll_success_ns", 36, Some(2)),
        ]
    );
    // Two screens are two tables.
    assert_eq!(totals(&format!("{SCREEN}\nafter:\n{SCREEN}")).len(), 2);
    for pasted in [
        SCREEN.replace('\n', "\n> "),
        SCREEN.replace("  ", "\t"),
        SCREEN.replace('\n', "\r\n"),
    ] {
        assert_eq!(rows(&totals(&pasted)[0]), rows(one), "{pasted}");
    }
}

#[test]
fn once_is_what_happened_in_a_second() {
    let once = "kvm_ack_irq                                       12         1\n\
                kvm_entry                                    5198993    277007\n\
                kvm_exit                                     5198976    277006\n";
    let found = totals(once);
    assert_eq!(rows(&found[0])[1], ("kvm_entry", 5_198_993, Some(277_007)));
    // Two of them may be anything.
    assert_eq!(read(b"kvm_ack_irq 1 2\nkvm_entry 2 3\n").0, []);
}

#[test]
fn a_log_is_the_sum_of_its_lines() {
    let log = "kvm_ack_irq kvm_entry kvm_exit \n         1      100       99\n         2      110      111\n\
               kvm_ack_irq kvm_entry kvm_exit \n         0       10       10\n";
    let found = totals(log);
    let wanted = [
        ("kvm_ack_irq", 3, None),
        ("kvm_entry", 220, None),
        ("kvm_exit", 220, None),
    ];
    assert_eq!(rows(&found[0]), wanted);
}

#[test]
fn prose_and_other_tables_are_none() {
    for text in [
        "The events kvm_entry kvm_exit kvm_msr are recorded.\n",
        "kvm_entry kvm_exit kvm_msr\n",
        "Event Total %Total CurAvg/s\n",
        "kvm_entry: 3 4\nkvm_exit: 4 5\nkvm_pio: 5 6\n",
        "kvm_intel 434176 0\nkvm 1146880 1\n",
    ] {
        let (tables, _) = read(text.as_bytes());
        assert_eq!(tables, [], "{text}");
    }
}

#[test]
fn kvmexit_has_exits_by_reason_of_all_threads() {
    let text = "Display kvm exit reasons and statistics for all threads... Hit Ctrl-C to end.\n\
                PID      TID      KVM_EXIT_REASON                     COUNT\n\
                ^C1273551  1273568  EXIT_REASON_HLT                     12\n\
                1273551  1273568  EXIT_REASON_MSR_WRITE               6\n\
                1273551  1273569  EXIT_REASON_HLT                     30\n\
                $ \n";
    let found = totals(text);
    let wanted = [
        ("kvm_exit", 48, None),
        ("kvm_exit(HLT)", 42, None),
        ("kvm_exit(MSR_WRITE)", 6, None),
    ];
    assert_eq!(rows(&found[0]), wanted);
    // Of one thread there are no ids.
    let one = totals("KVM_EXIT_REASON                     COUNT\nEXIT_REASON_HLT      12\n");
    assert_eq!(rows(&one[0])[1], ("kvm_exit(HLT)", 12, None));
}
