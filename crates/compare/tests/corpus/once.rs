//! What happened once is listed as that, and APIC virtualization that came into use is one change.

use std::fmt::Write as _;

use fixtures::json::{list, text};
use fixtures::made_folder::MadeFolder;

use crate::{compared, document, find};

/// A recording of four seconds in which a vCPU exits each millisecond, and takes this long for one exit in the middle.
fn recording(one_exit_us: u64) -> String {
    let mut out = "cpus=1\n".to_owned();
    let mut now_us = 10_000_000u64;
    let mut line = |now_us: u64, event: &str| {
        let (seconds, rest) = (now_us / 1_000_000, now_us % 1_000_000);
        let _ = writeln!(
            out,
            "        CPU 0/KVM-1010  [000]    {seconds}.{rest:06}: {event}"
        );
    };
    for at in 0..4000u64 {
        let (reason, took_us) = match at == 2000 {
            true => ("npf", one_exit_us),
            // No two the same.
            false => ("msr", 10 + at * 7 % 5),
        };
        let places = "rip 0xffffffff81a17a0a info1 0x0000000000000000 info2 0x0000000000000000 intr_info 0x00000000 \
                      error_code 0x00000000";
        line(
            now_us,
            &format!("kvm_exit:             vcpu 0 reason {reason} {places}"),
        );
        now_us += took_us;
        line(
            now_us,
            "kvm_entry:            vcpu 0, rip 0xffffffff81a17a0b",
        );
        now_us += 1000 + at * 13 % 7;
    }
    out
}

#[test]
fn what_happened_once_is_neither_news_nor_nothing() {
    let folder = MadeFolder::new();
    let without = folder.write("without", recording(12));
    let with = folder.write("with", recording(400_000));
    let found = compared(&without, &with);
    let both = found.document();
    let once = find(&both["once"], "vmexit npf time");
    assert!(text(&once["text"]).ends_with(" B is worse."), "{once}");
    let printed = found.text(false);
    assert!(
        printed.contains("once, in one short stretch of one side"),
        "{printed}"
    );
    // The other way round it is the same, and A is worse.
    let turned = document(&with, &without);
    let back = find(&turned["once"], "vmexit npf time");
    assert!(text(&back["text"]).ends_with(" A is worse."), "{back}");
    // A short one is not worth a word, wherever it was.
    let short = folder.write("short", recording(500));
    assert!(list(&document(&without, &short)["once"]).is_empty());
    // Nor is what both have.
    let again = folder.write("again", recording(390_000));
    assert!(list(&document(&with, &again)["once"]).is_empty());
}

/// A printed table with these rows: reason, samples, nanoseconds each.
fn table(rows: &[(&str, u64, u64)]) -> String {
    let samples: u64 = rows.iter().map(|row| row.1).sum();
    let ns: u64 = rows.iter().map(|row| row.1 * row.2).sum();
    let mut out = "\nAnalyze events for all VMs, all VCPUs:\n\n             VM-EXIT    Samples  Samples%     Time%    \
                   Min Time    Max Time         Avg time\n\n"
        .to_owned();
    for (reason, count, each) in rows {
        let _ = writeln!(
            out,
            "{reason:>20} {count:>10} {:>8.2}% {:>8.2}% {:>9.2}us {:>9.2}us {:>9.2}us ( +-   0.20% )",
            *count as f64 * 100.0 / samples as f64,
            (count * each) as f64 * 100.0 / ns as f64,
            *each as f64 / 2000.0,
            *each as f64 / 100.0,
            *each as f64 / 1000.0,
        );
    }
    let _ = writeln!(
        out,
        "\nTotal Samples:{samples}, Total events handled time:{:.2}us.",
        ns as f64 / 1000.0
    );
    out
}

#[test]
fn apic_virtualization_that_came_into_use_is_one_change_before_its_parts() {
    let folder = MadeFolder::new();
    let rest = ("EXTERNAL_INTERRUPT", 20_000, 1500);
    let before = folder.write("before", table(&[("MSR_WRITE", 90_000, 3000), rest]));
    let after = table(&[("APIC_WRITE", 4000, 2000), ("MSR_WRITE", 900, 3000), rest]);
    let after = folder.write("after", after);
    let what = "apic virtualization";
    let both = document(&before, &after);
    let changes = &both["changes"];
    let change = find(changes, what);
    assert_eq!(
        (&change["a"], &change["b"]),
        (&"not in use".into(), &"in use".into())
    );
    assert!(text(&change["text"]).contains("came into use"), "{change}");
    let at = |name: &str| list(changes).iter().position(|one| one["what"] == name);
    assert!(at(what) < at("vmexit MSR_WRITE"), "{changes}");
    let turned = document(&after, &before);
    let change = find(&turned["changes"], what);
    assert!(
        text(&change["text"]).contains("is no longer in use"),
        "{change}"
    );
    // Writes of registers that go alone may be anything, and so may exits of APICv that come alone.
    let fewer = folder.write("fewer", table(&[("MSR_WRITE", 900, 3000), rest]));
    let beside = [
        ("APIC_WRITE", 4000, 2000),
        ("MSR_WRITE", 89_000, 3000),
        rest,
    ];
    let beside = folder.write("beside", table(&beside));
    for other in [&fewer, &beside] {
        let document = document(&before, other);
        let news = ["changes", "likely"].map(|name| list(&document[name]));
        assert!(
            news.into_iter().flatten().all(|one| one["what"] != what),
            "{document}"
        );
    }
}
