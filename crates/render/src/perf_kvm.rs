//! Exit statistics laid out as `perf kvm stat report` prints them (`tools/perf/builtin-kvm.c`, 6.1).

use std::fmt::Write;

use analysis::{ExitTable, ExitsReport};

/// Returns one table in perf's layout.
pub fn table(report: &ExitsReport, vcpu: Option<u32>) -> String {
    let mut out = String::from("\n\n");
    let vcpu = vcpu.map_or("all VCPUs".to_owned(), |v| format!("VCPU {v}"));
    let _ = writeln!(out, "Analyze events for all VMs, {vcpu}:\n");
    let title = match report.table {
        ExitTable::Vmexit => "VM-EXIT",
        ExitTable::Ioport => "IO Port Access",
        ExitTable::Mmio => "MMIO Access",
        ExitTable::Msr => "MSR Access",
    };
    let _ = writeln!(
        out,
        "{title:>20} {:>10} {:>9} {:>9} {:>11} {:>11} {:>16} \n",
        "Samples", "Samples%", "Time%", "Min Time", "Max Time", "Avg time"
    );
    let us = |ns: u64| ns as f64 / 1e3;
    let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
    for row in &report.rows {
        let stats = &row.stats;
        let _ = writeln!(
            out,
            "{:>20} {:>10} {:>8.2}% {:>8.2}% {:>9.2}us {:>9.2}us {:>9.2}us ( +-{:>7.2}% )",
            row.key,
            stats.count(),
            percent(stats.count(), report.total_count),
            percent(stats.total(), report.total_ns),
            us(stats.min()),
            us(stats.max()),
            stats.mean_f64() / 1e3,
            stats.relative_error() * 100.0,
        );
    }
    let _ = writeln!(
        out,
        "\nTotal Samples:{}, Total events handled time:{:.2}us.\n",
        report.total_count,
        us(report.total_ns)
    );
    out
}
