//! Halts under other numbers and behind other exits: what newer CPUs and confidential guests make of the same halt
//! leads to the same states, exits and paths.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use event::Isa;
use fixtures::{Failures, FixtureQuestion, all_cases, events_text, small, sweeping};

/// What is found in a recording, as far as it has to stay the same: exits by reason, vCPUs, paths and findings.
#[derive(Debug, PartialEq)]
struct RecordingSummary {
    exits: BTreeMap<(String, bool), (u64, u64)>,
    vcpus: Vec<String>,
    paths: Vec<(String, u64, u64)>,
    findings: Vec<&'static str>,
}

fn found(path: &Path) -> Option<RecordingSummary> {
    let question = FixtureQuestion::new();
    let (_, reports, _) = question.exits(path).ok()?;
    let rows = reports.iter().flat_map(|report| &report.rows);
    let mut exits: BTreeMap<(String, bool), (u64, u64)> = BTreeMap::new();
    for row in rows {
        // One halt, whatever it is called.
        let key = match row.key.as_str() {
            "idle-halt" => "hlt",
            key => key,
        };
        let sum = exits.entry((key.to_owned(), row.waiting)).or_default();
        sum.0 += row.stats.count();
        sum.1 += row.stats.total();
    }
    let (vcpus, _) = question.vcpus(path).ok()?;
    let rows = vcpus.rows.into_iter().map(|mut row| {
        // Which port it was is in the exit's own detail, which the request of a confidential guest is not read for.
        let mut user: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        for cause in std::mem::take(&mut row.user) {
            let sum = user.entry(cause.reason).or_default();
            *sum = (sum.0 + cause.count, sum.1 + cause.ns);
        }
        format!("{row:?}, {user:?}")
    });
    let vcpus = rows.collect();
    let (paths, _) = question.paths(path).ok()?;
    let paths = paths
        .iter()
        .map(|path| (path.name.clone(), path.count, path.total.total()));
    let (diagnosis, _) = question.diagnosis(&[path.to_owned()]).ok()?;
    // What recording costs is taken from the gaps between events, and there are more events.
    let findings = diagnosis.findings.iter().map(|one| one.rule.id);
    let findings = findings.filter(|id| *id != "tracing-disturbs");
    Some(RecordingSummary {
        exits,
        vcpus,
        paths: paths.collect(),
        findings: findings.collect(),
    })
}

/// Returns the texts of the recordings of AMD's hosts in which a guest halts.
fn halting() -> Vec<(String, String)> {
    let all = all_cases().into_iter();
    let all = all.filter(|case| sweeping() || small(&case.path));
    let texts = all.filter_map(|case| {
        let (isa, ..) = FixtureQuestion::new().exits(&case.path).ok()?;
        let text = String::from_utf8(events_text(&case.path).ok()?).ok()?;
        let halts = isa == Some(Isa::Svm) && text.contains("reason hlt ");
        halts.then_some((case.name, text))
    });
    texts.collect()
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("a written file");
    path
}

/// Compares what is found in each text with what is found in it as another CPU or guest would have made it.
fn compare(change: impl Fn(&str) -> String) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut failures = Failures::default();
    for (name, text) in halting() {
        let before = found(&written(folder.path(), "text", &text));
        let after = found(&written(folder.path(), "text", &change(&text)));
        let (Some(after), Some(before)) = (after, before) else {
            failures.check(false, || format!("{name}: it cannot be read any more"));
            continue;
        };
        failures.equal(&format!("{name}: exits"), &after.exits, &before.exits);
        failures.equal(&format!("{name}: vCPUs"), &after.vcpus, &before.vcpus);
        failures.equal(&format!("{name}: paths"), &after.paths, &before.paths);
        failures.equal(
            &format!("{name}: findings"),
            &after.findings,
            &before.findings,
        );
    }
    failures.finish(20);
}

/// Zen 5 has an intercept of its own for a halt without a pending interrupt (`SVM_EXIT_IDLE_HLT`, 0xa6).
#[test]
fn an_idle_halt_is_a_halt() {
    compare(|text| text.replace("reason hlt ", "reason idle-halt "));
    // Kernels before 6.15 have no name for it. A number is of the table of the lines before.
    compare(|text| {
        let (first, rest) = text.split_once("reason hlt ").expect("a guest halts");
        format!(
            "{first}reason hlt {}",
            rest.replace("reason hlt ", "reason 0xa6 ")
        )
    });
}

/// An SEV-ES guest halts by asking its hypervisor for it.
#[test]
fn what_a_confidential_guest_asks_for_is_its_exit() {
    compare(|text| {
        let lines = text.split_inclusive('\n').map(|line| {
            let Some((head, rest)) = line.split_once("kvm_exit: ") else {
                return line.to_owned();
            };
            let code = match rest {
                rest if rest.contains(" reason hlt ") => ("hlt", 0x78),
                rest if rest.contains(" reason msr ") => ("msr", 0x7c),
                rest if rest.contains(" reason io ") => ("io", 0x7b),
                _ => return line.to_owned(),
            };
            let outer = rest.replace(&format!("reason {} ", code.0), "reason vmgexit ");
            let vcpu = rest.split_whitespace().nth(1).unwrap_or("0");
            format!(
                "{head}kvm_exit: {outer}{head}kvm_vmgexit_enter: vcpu {vcpu}, exit_reason {:x}, exit_info1 0, \
                 exit_info2 0\n",
                code.1
            )
        });
        lines.collect()
    });
}

/// A guest on LoongArch says with its own events what a privileged instruction was.
#[test]
fn halts_of_loongarch_are_those_of_its_idle_instruction() {
    let folder = tempfile::tempdir().expect("a folder");
    let vcpu = "       CPU 0/KVM    1700 [001]";
    let text = format!(
        "{vcpu}   444.000000: kvm:kvm_enter: vcpu 0 PC: 0x90001000\n\
         {vcpu}   444.000100: kvm:kvm_exit: vcpu 0 [0x16] PC: 0x90001000\n\
         {vcpu}   444.000101: kvm:kvm_exit_gspr: vcpu 0 Inst word: 0x06488000\n\
         {vcpu}   444.000102: kvm:kvm_exit_idle: vcpu 0 [IDLE] PC: 0x90001000\n\
         {vcpu}   444.002000: kvm:kvm_reenter: vcpu 0 PC: 0x90001000\n\
         {vcpu}   444.002100: kvm:kvm_exit: vcpu 0 [0x0] PC: 0x90001000\n\
         {vcpu}   444.002130: kvm:kvm_enter: vcpu 0 PC: 0x90001000\n"
    );
    let path = written(folder.path(), "text", &text);
    let (isa, reports, quality) = FixtureQuestion::new().exits(&path).expect("it reads");
    assert_eq!(isa, Some(Isa::Loongarch));
    let rows = reports[0].rows.iter();
    let rows: Vec<_> = rows
        .map(|row| (row.key.as_str(), row.waiting, row.stats.total()))
        .collect();
    assert_eq!(
        rows,
        [("Idle", true, 1_900_000), ("Interrupt", false, 30_000)]
    );
    assert!(!quality.all_doubts().ids().contains(&"events-missing"));
}

/// The highest bit of the cause separates a timer from an access fault, and the instruction that traps says whether the
/// guest waits.
#[test]
fn interrupts_of_riscv_are_no_faults() {
    let folder = tempfile::tempdir().expect("a folder");
    let vcpu = "       CPU 0/KVM    1700 [001]";
    let one = |at: u64, cause: &str, stval: &str| {
        format!(
            "{vcpu}   444.{at:06}: kvm:kvm_exit: SEPC:0xffffffff80001000, SCAUSE:{cause}, STVAL:{stval}, HTVAL:0x0, \
             HTINST:0x0\n{vcpu}   444.{:06}: kvm:kvm_entry: PC: 0x016ffffffff80001000\n",
            at + 10
        )
    };
    let text = format!("{vcpu}   444.000000: kvm:kvm_entry: PC: 0x016ffffffff80001000\n")
        + &one(100, "0x8000000000000005", "0x0")
        + &one(200, "0x5", "0x0")
        + &one(300, "0x16", "0x10500073");
    let path = written(folder.path(), "text", &text);
    let (_, reports, _) = FixtureQuestion::new().exits(&path).expect("it reads");
    let mut rows: Vec<_> = reports[0]
        .rows
        .iter()
        .map(|row| (row.key.as_str(), row.waiting))
        .collect();
    rows.sort_unstable();
    assert_eq!(
        rows,
        [
            ("EXC_LOAD_ACCESS", false),
            ("IRQ_S_TIMER", false),
            ("WFI", true)
        ]
    );
}
