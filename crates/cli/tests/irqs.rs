//! `trapline irqs` counts every interrupt that the events say, once.

use crate::common::{Failures, cases, json, number, run, run_with, shipped};

#[test]
fn every_event_is_in_a_row_or_said_to_be_in_none() {
    let mut failures = Failures::default();
    for case in cases() {
        let Ok(document) = json(&["irqs"], &case.path) else {
            continue;
        };
        let lines = run(["events".as_ref(), case.path.as_os_str()]);
        let text = lines.text();
        let count = |event: &str, of: &dyn Fn(&str) -> bool| {
            let mut count = 0;
            for line in text.lines() {
                // The event's name stands once in its line.
                let said = line.split_once(&format!("{event}:")).map(|(_, said)| said);
                count += u64::from(said.is_some_and(of));
            }
            count
        };
        let sum = |name: &str| -> u64 {
            let rows = document["rows"].as_array().into_iter().flatten();
            rows.map(|row| number(row, name)).sum()
        };
        let of_device = |said: &str| said.contains("(Fixed|") || said.contains("(LowPrio|");
        let name = &case.name;
        failures.equal(
            &format!("{name}: accepted"),
            &(sum("accepted") + number(&document, "unresolved")),
            &count("kvm_apic_accept_irq", &of_device),
        );
        failures.equal(
            &format!("{name}: injected"),
            &(sum("injected") + sum("repeated")),
            &count("kvm_inj_virq", &|said| {
                said.contains("IRQ ") || said.contains("irq ")
            }),
        );
    }
    failures.finish(6);
}

/// With APICv nothing is injected: the processor takes what was posted.
#[test]
fn posted_interrupts_are_those_that_were_accepted() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../paths/tests/by_hand/ipi_posted.txt");
    let document = json(&["irqs"], &file).expect("a document");
    let row = &document["rows"][0];
    assert_eq!((number(row, "vector"), number(row, "vcpu")), (251, 1));
    assert_eq!((number(row, "accepted"), number(row, "posted")), (2, 2));
    assert_eq!(number(row, "injected"), 0);
}

#[test]
fn what_is_not_recorded_is_not_none() {
    let text = "cpus=2\n\
        \x20 CPU 0/KVM-1010 [001] 10.000001: kvm_entry: vcpu 0, rip 0x1000\n\
        \x20 CPU 0/KVM-1010 [001] 10.000002: kvm_apic_accept_irq: apicid 0 vec 236 (Fixed|edge)\n";
    let run = run_with(["irqs", "--format", "json", "-"], text.as_bytes());
    let document = run.json().expect("a document");
    let row = &document["rows"][0];
    assert_eq!((number(row, "accepted"), number(row, "vector")), (1, 236));
    for name in ["posted", "injected", "repeated"] {
        assert!(row[name].is_null(), "{name}: {row}");
    }
}

#[test]
fn a_recording_without_formats_is_not_called_one_without_interrupts() {
    let cut = shipped().join("x86/format-variants/truncated.perf.data.zst");
    let refused = run(["irqs".as_ref(), cut.as_os_str()]);
    assert_eq!(refused.status, 1);
    let said = refused.stderr;
    assert!(said.contains("event formats is missing"), "{said}");
}
