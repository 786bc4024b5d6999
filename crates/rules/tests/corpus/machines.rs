//! What is said of a machine is of its own processor.

use fixtures::{Failures, file};

use crate::{CaseFiles, diagnosed};

/// What x86's processors alone have is neither looked for nor missing on arm64, and what could explain little stands
/// behind what could explain more.
#[test]
fn causes_of_another_processor_are_not_said_to_be_absent() {
    let mut failures = Failures::default();
    for (name, others) in [
        ("arm64/base-healthy", &ONLY_X86[..]),
        ("base-healthy", &["pml-full-exits"]),
    ] {
        let file = file(&format!("causes/{name}/perf.data.zst"));
        let found = diagnosed(&[file], CaseFiles::default()).expect("it is a recording");
        let diagnosis = &found.diagnosis;
        let of_others: Vec<&str> = diagnosis
            .not_of_machine
            .iter()
            .map(|rule| rule.id)
            .collect();
        failures.check(of_others == others, || format!("{name}: {of_others:?}"));
        let mut clear = diagnosis.clear.iter();
        let both = clear.find(|rule| others.contains(&rule.id));
        failures.check(both.is_none(), || format!("{name}: {both:?}"));
        let shares = diagnosis.unchecked.iter().map(|one| one.could_explain);
        let shares: Vec<f64> = shares.map(|share| share.unwrap_or(f64::MAX)).collect();
        failures.check(shares.is_sorted_by(|a, b| a >= b), || {
            format!("{name}: {shares:?}")
        });
        let ticks = diagnosis.unchecked.iter();
        let ticks = ticks.filter(|one| one.rule.id == "host-tick-on-isolated-cpu");
        failures.check(
            ticks.filter(|one| !one.is_worth_checking()).count() == 1,
            || format!("{name}: interrupts of the host take little there"),
        );
    }
    failures.finish(8);
}

/// Rules about what x86's processors alone have.
const ONLY_X86: [&str; 8] = [
    "timer-port-exits",
    "hpet-mmio-exits",
    "pause-loop-exits",
    "nx-hugepage-recovery",
    "pml-full-exits",
    "apic-exits-without-apicv",
    "hyperv-synic-autoeoi",
    "split-lock",
];

/// What is said of an arm64 host has no word that is x86's alone.
#[test]
fn words_are_those_of_the_machine() {
    const OF_X86: [&str; 14] = [
        "0x6e0",
        "0x830",
        "AMD",
        "Intel",
        "EPT",
        "HPET",
        "PML",
        "APICv",
        "AVIC",
        "Hyper-V",
        "x2APIC",
        "HLT",
        "MWAIT",
        "kvm_intel",
    ];
    let mut failures = Failures::default();
    // Remedies that are offered there, whatever has been found; those about both say what is arm64's.
    for rule in rules::all()
        .iter()
        .filter(|rule| !ONLY_X86.contains(&rule.id))
    {
        for remedy in rule.remedies.iter().filter(|one| !one.is_of_x86()) {
            for text in [remedy.what, remedy.price, remedy.unless, remedy.check] {
                let word = OF_X86.iter().find(|word| text.contains(**word));
                let both = text.contains("arm64") || text.contains("WFx");
                failures.check(word.is_none() || both, || {
                    format!("{}: {word:?} in {text}", rule.id)
                });
            }
        }
    }
    for (_, table) in fixtures::expected::tables() {
        for input in table.iter().filter(|input| input.name.contains("arm64/")) {
            let Ok(found) = diagnosed(&input.files, CaseFiles::default()) else {
                continue;
            };
            for finding in &found.diagnosis.findings {
                let evidence = finding.evidence.iter().map(|one| one.text.as_str());
                let remedies = finding.remedies.iter().flat_map(|one| {
                    let remedy = one.remedy;
                    [remedy.what, remedy.price, remedy.unless, remedy.check]
                });
                let texts = evidence.chain(remedies).chain([finding.title.as_str()]);
                for text in texts.chain([finding.cause.as_ref()]) {
                    let word = OF_X86.iter().find(|word| text.contains(**word));
                    failures.check(word.is_none(), || {
                        format!("{}: {}: {word:?} in {text}", input.name, finding.rule.id)
                    });
                }
            }
        }
    }
    failures.finish(200);
}
