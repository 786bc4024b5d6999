//! What CPUs did, summaries of system calls, hierarchies and groups of `perf report`, lines that `bpftrace` printed.

use perftables::{CountPrinter, CpuUsageRow, PerfTable, SampledShares, SyscallTotals, read};

fn only(text: &str) -> PerfTable {
    let (mut tables, _) = read(text.as_bytes());
    assert_eq!(tables.len(), 1, "{tables:?}");
    tables.remove(0)
}

fn usage(text: &str) -> Vec<CpuUsageRow> {
    match only(text) {
        PerfTable::CpuUsage(table) => table.rows,
        other => panic!("{other:?}"),
    }
}

fn syscalls(text: &str) -> SyscallTotals {
    match only(text) {
        PerfTable::SyscallTotals(table) => table,
        other => panic!("{other:?}"),
    }
}

fn sampled(text: &str) -> SampledShares {
    match only(text) {
        PerfTable::SampledShares(table) => table,
        other => panic!("{other:?}"),
    }
}

#[test]
fn averages_of_mpstat_stand_for_all_intervals() {
    let rows = usage(include_str!("tables/mpstat-12.6.txt"));
    let cpus: Vec<Option<u32>> = rows.iter().map(|row| row.cpu).collect();
    assert_eq!(cpus, [None, Some(0), Some(1)]);
    for row in &rows {
        assert_eq!(row.shares.len(), 10);
        let sum: f64 = row.shares.values().sum();
        assert!((sum - 1.0).abs() < 0.001, "{row:?}");
    }
    let rows = usage(include_str!("tables/mpstat-11.4-french.txt"));
    assert_eq!(rows[0].shares["guest"], 0.6225);
    assert_eq!(
        (rows[2].shares["usr"], rows[1].shares["soft"]),
        (0.13, 0.04)
    );
    // Where it was interrupted, or cut off, the mean of the intervals.
    let rows = usage(include_str!("tables/mpstat-9.0.txt"));
    assert_eq!(
        (rows[0].shares["steal"], rows[1].shares["steal"]),
        (0.35, 0.6)
    );
    assert!(!rows[0].shares.contains_key("gnice"));
}

#[test]
fn interrupts_of_mpstat_are_by_cpu_and_kind() {
    let rows = usage(include_str!("tables/mpstat-12.6-interrupts.txt"));
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0].interrupts_per_s, Some(1163.37));
    assert_eq!(rows[1].interrupts_per_s, Some(206.93));
    assert_eq!(rows[2].rates_per_s["36"], 284.16);
    assert_eq!(rows[2].rates_per_s["BLOCK"], 284.16);
    assert_eq!(rows[1].rates_per_s.get("BLOCK"), None);
    for other in [
        "CPU 0 is busy\n",
        "CPU  0/s\n  0  1\n",
        "10:00:00 CPU %usr\n10:00:00 all 3\n",
    ] {
        assert!(read(other.as_bytes()).0.is_empty(), "{other}");
    }
}

#[test]
fn summaries_of_perf_trace_have_calls_of_each_thread() {
    let text = include_str!("tables/perf-trace-summary-6.1.txt");
    let table = syscalls(text);
    assert_eq!(table.printer, CountPrinter::PerfTrace);
    let rows = text
        .lines()
        .filter(|line| line.ends_with('%') && !line.contains("events"));
    assert_eq!(table.rows.len(), rows.count());
    let first = &table.rows[0];
    assert_eq!(
        (first.call.as_str(), first.count, first.errors),
        ("wait4", 6, 3)
    );
    assert_eq!(
        (first.thread.tid, first.thread.comm.as_deref()),
        (Some(22216), Some("sh"))
    );
    let table = syscalls(include_str!("tables/perf-trace-summary-4.9.txt"));
    let run = &table.rows[0];
    assert_eq!(
        (run.call.as_str(), run.count, run.errors),
        ("ioctl", 2130, 0)
    );
    assert_eq!(run.thread.comm.as_deref(), Some("CPU 0/KVM"));
    assert_eq!(table.rows[4].thread.tid, Some(2985));
    let all = " total, 2824 events\n\n syscall calls errors total min avg max stddev\n futex 372 18 4373.773 0.000 \
               11.757 997.715 660.42%\n   EAGAIN: 18\n";
    let heading = " Summary of events:\n\n";
    let table = syscalls(&format!("{heading}{all}"));
    assert_eq!((table.rows[0].count, table.rows[0].thread.tid), (372, None));
}

#[test]
fn leaves_of_a_hierarchy_are_rows() {
    let table = sampled(include_str!("tables/perf-report-hierarchy-6.1.txt"));
    let of = |comm: &str| -> Vec<(f64, Option<&str>, Option<&str>)> {
        let rows = table
            .rows
            .iter()
            .filter(|row| row.comm.as_deref() == Some(comm));
        rows.map(|row| (row.own, row.object.as_deref(), row.symbol.as_deref()))
            .collect()
    };
    let kernel = Some("[kernel.kallsyms]");
    assert_eq!(
        of("swapper"),
        [
            (0.4291, kernel, Some("0xffffffff81a592eb")),
            (0.0263, kernel, Some("0xffffffff810a8e6d")),
            (0.0144, kernel, None),
        ]
    );
    assert_eq!(of("CPU 0/KVM"), [(0.1844, None, None)]);
    let sum: f64 = of("vhost-2989").iter().map(|row| row.0).sum();
    assert!((sum - 0.1202).abs() < 0.000_01, "{sum}");
    let table = sampled(include_str!("tables/perf-report-hierarchy-counts-6.1.txt"));
    let kvm: Vec<_> = table
        .rows
        .iter()
        .filter(|row| row.object.as_deref() == Some("[kvm]"))
        .collect();
    let kvm: Vec<_> = kvm
        .iter()
        .map(|row| (row.comm.as_deref(), row.samples))
        .collect();
    assert_eq!(
        kvm,
        [(Some("CPU 0/KVM"), Some(32)), (Some("CPU 1/KVM"), Some(26))]
    );
}

#[test]
fn of_a_group_the_first_event_is_read() {
    let text = include_str!("tables/perf-report-group-6.1.txt");
    let table = sampled(text);
    assert_eq!(
        (table.event.as_deref(), table.rows.len()),
        (Some("cpu-clock"), 6)
    );
    assert_eq!(
        (table.rows[0].own, table.rows[0].with_callees),
        (0.167, None)
    );
    let (_, notes) = read(text.as_bytes());
    assert!(
        notes
            .iter()
            .any(|note| note.text.contains("group of 2 events")),
        "{notes:?}"
    );
    let table = sampled(include_str!("tables/perf-report-group-children-6.1.txt"));
    let row = &table.rows[0];
    assert_eq!(
        (row.own, row.with_callees, row.samples),
        (0.0465, Some(0.7674), Some(2))
    );
    assert_eq!(table.rows.len(), 19);
}

#[test]
fn printed_exits_are_counted_by_reason() {
    let counts = |text: &str| -> Vec<(String, u64)> {
        match only(text) {
            PerfTable::KvmTotals(table) => {
                assert_eq!(table.printer, CountPrinter::Bpftrace);
                table
                    .rows
                    .into_iter()
                    .map(|row| (row.event, row.total))
                    .collect()
            }
            other => panic!("{other:?}"),
        }
    };
    let of = |reason: &str, count: u64| (format!("@exit_reason[{reason}]"), count);
    let fields = counts(include_str!("tables/bpftrace-printf-fields.txt"));
    assert_eq!(fields, [of("12", 4), of("48", 2), of("30", 1)]);
    let threads = counts(include_str!("tables/bpftrace-printf-threads.txt"));
    assert_eq!(
        threads,
        [of("HLT", 4), of("EPT_VIOLATION", 1), of("MSR_WRITE", 1)]
    );
    for line in [
        "kvm_exit: vcpu 0 reason 12",
        "kvm:kvm_exit reason HLT 1234 ns",
        "exit_reason: EPT_VIOLATION, ns: 1203",
        "reason=0x30 guest_rip=0xffff",
    ] {
        let lines = format!("{line}\n").repeat(4);
        assert_eq!(counts(&lines)[0].1, 4, "{line}");
        assert!(
            read(format!("{line}\nand so on\n").as_bytes()).0.is_empty(),
            "{line}"
        );
    }
    for other in [
        "wlan0: CTRL-EVENT-DISCONNECTED bssid=00:11 reason=3 locally_generated=1\n",
        "the reason: 12 vCPUs are too many\n",
        "CPU 0/KVM 12 48 34567\n",
    ] {
        assert!(read(other.repeat(5).as_bytes()).0.is_empty(), "{other}");
    }
    let unnamed =
        "$ sudo bpftrace -e 'kprobe:kvm_exit { printf(\"%d %d\\n\", arg0, nsecs); }'\n12 1\n48 2\n";
    let (tables, notes) = read(unnamed.as_bytes());
    assert!(
        tables.is_empty() && notes[0].text.contains("@[args->exit_reason] = count()"),
        "{notes:?}"
    );
}
