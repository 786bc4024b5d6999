//! What attacks have found, made small.

use super::checks;

/// Reads an input in every way.
fn read(text: impl AsRef<[u8]>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("input");
    std::fs::write(&path, text).expect("a file");
    (0..8).for_each(|which| checks::recording(&path, which));
}

/// A vCPU's thread falls asleep in the kernel, and has a CPU again before that.
#[test]
fn a_vcpu_wakes_before_it_slept() {
    read(include_str!("went_back.txt"));
}

/// Counts that no counter has come to add up to no more than fits.
#[test]
fn counts_add_up_to_the_largest() {
    const ALL: u64 = u64::MAX;
    let sched = |name: &str| {
        format!(
            "  {name:20} |       0.029 ms | {ALL} | avg: 2184.930 ms | max: 4016.295 ms | max at: 910804.377561 s\n"
        )
    };
    let head = "  Task |   Runtime ms  | Switches | Average delay ms | Maximum delay ms | Maximum delay at |\n";
    let rows = [
        "kworker/1:0-ev:20",
        "kworker/2:0-ev:21",
        "iperf:(6)",
        "migration/1:7",
    ]
    .map(sched);
    read(format!("{head}{}", rows.concat()));
    let exit = |name: &str| {
        format!(
            "{name:>20} {ALL:>20}    50.00%    50.00%      1.00us     10.00us     {ALL}.00us ( +-   1.00% )\n"
        )
    };
    let head = "             VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time         Avg time\n\n";
    let rows = ["io", "hlt", "npf", "msr"].map(exit);
    let total = format!("\nTotal Samples:{ALL}, Total events handled time:{ALL}.00us.\n");
    read(format!(
        "Analyze events for all VMs, all VCPUs:\n\n{head}{}{total}",
        rows.concat()
    ));
}
