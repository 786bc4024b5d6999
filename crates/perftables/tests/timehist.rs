//! `perf sched timehist`, added up by task.

use std::fmt::Write;
use std::path::Path;

use perftables::{PerfTable, SchedLatency, SchedPrinter, SchedRow, read};

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[track_caller]
fn only(text: &str) -> SchedLatency {
    let (tables, notes) = read(text.as_bytes());
    // That rows were broken is said.
    let mut notes = notes.iter();
    assert!(
        notes.all(|note| note.text.contains("put together again")),
        "{text}"
    );
    match <[PerfTable; 1]>::try_from(tables) {
        Ok([PerfTable::SchedLatency(table)]) => table,
        other => panic!("{other:?}"),
    }
}

fn task(table: &SchedLatency, tid: i32) -> &SchedRow {
    let mut rows = table.rows.iter();
    rows.find(|row| row.tid == Some(tid)).expect("the task")
}

#[test]
fn tasks_have_run_times_delays_and_the_longest() {
    let table = only(&fixture("timehist-4.10.txt"));
    assert_eq!(table.printer, SchedPrinter::Timehist);
    assert_eq!(table.rows.len(), 4);
    let gcc = task(&table, 31949);
    assert_eq!((gcc.comm.as_str(), gcc.runtime_ns), ("gcc", 1_170_000));
    assert_eq!((gcc.switches, gcc.delay_mean_ns), (1, 78_000));
    let vcpu = task(&table, 171);
    // perf cannot have seen a wake-up before the wait began.
    assert_eq!((vcpu.comm.as_str(), vcpu.switches), ("CPU 0/KVM", 0));
    let longest = task(&table, 59);
    assert_eq!(longest.delay_max_ns, 4_000);
    assert_eq!(longest.delay_max_at_ns, Some(79_371_874_592_000));
    assert_eq!(longest.delay_max_start_ns, Some(79_371_874_588_000));
}

/// perf sched latency has 154 delays of this task in the same recording, and 41.778 ms for the longest of the vCPU.
#[test]
fn a_preempted_task_waits_until_it_runs_again() {
    let head = "time cpu task name wait time sch delay run time";
    let state = "1.010000 [0001] CPU 1/KVM[173/165] 0.100 0.020 9.000 R next: batchjob[568]\n\
                 1.020000 [0001] batchjob[568] 9.000 0.000 10.000 R next: CPU 1/KVM[173]\n\
                 1.025000 [0001] CPU 1/KVM[173/165] 10.000 0.000 5.000 S next: swapper/1[0]\n\
                 1.090000 [0001] CPU 1/KVM[173/165] 60.000 0.000 5.000 S next: swapper/1[0]\n";
    let table = only(&format!("{head} state\n{state}"));
    let vcpu = task(&table, 173);
    // The last one slept, and its wake-up is not there.
    assert_eq!((vcpu.switches, vcpu.delay_max_ns), (2, 10_000_000));
    assert_eq!(vcpu.delay_max_start_ns, Some(1_010_000_000));
    // Without the states it is one where the CPU was not idle.
    let bare = "1.001000 [0001] <idle> 1.000 0.000 1.000\n\
                1.010000 [0001] CPU 1/KVM[173/165] 0.100 0.020 9.000\n\
                1.020000 [0001] batchjob[568] 9.000 0.000 10.000\n\
                1.025000 [0001] CPU 1/KVM[173/165] 10.000 0.000 5.000\n\
                1.085000 [0001] <idle> 5.000 0.000 60.000\n\
                1.090000 [0001] CPU 1/KVM[173/165] 60.000 0.000 5.000\n";
    let table = only(&format!("{head}\n{bare}"));
    let vcpu = task(&table, 173);
    assert_eq!((vcpu.switches, vcpu.delay_max_ns), (2, 10_000_000));
    // Nor is it known where no idle CPU was printed.
    let filtered = bare.lines().filter(|line| !line.contains("<idle>"));
    let filtered: Vec<&str> = filtered.collect();
    let table = only(&format!("{head}\n{}\n", filtered.join("\n")));
    assert_eq!(task(&table, 173).switches, 1);
}

#[test]
fn a_summary_alone_has_run_times() {
    let table = only(&fixture("timehist-6.1-summary.txt"));
    assert_eq!(table.printer, SchedPrinter::TimehistSummary);
    assert_eq!(table.rows.len(), 40);
    let vcpu = task(&table, 171);
    assert_eq!(
        (vcpu.comm.as_str(), vcpu.runtime_ns),
        ("CPU 0/KVM", 3_922_466_000)
    );
    assert!(table.rows.iter().all(|row| row.switches == 0));
    // Behind rows it is of the same recording.
    let both = only(&fixture("timehist-6.1-all-columns.txt"));
    assert_eq!(both.printer, SchedPrinter::Timehist);
    assert!(both.rows.len() < 30);
}

#[test]
fn rows_are_read_without_a_heading_and_wrapped() {
    let text = fixture("timehist-6.1.txt");
    let want = only(&text);
    let bare: Vec<&str> = text.lines().skip(3).collect();
    assert_eq!(only(&bare.join("\n")).rows.len(), want.rows.len());
    for width in [60, 72, 76] {
        let mut wrapped = String::new();
        for line in text.lines() {
            let (first, rest) = line.split_at(line.len().min(width));
            writeln!(wrapped, "> {first}").unwrap();
            if !rest.is_empty() {
                writeln!(wrapped, "> {rest}").unwrap();
            }
        }
        let have = only(&wrapped);
        let numbers = |table: &SchedLatency| {
            let rows = table.rows.iter();
            rows.map(|row| (row.tid, row.runtime_ns, row.switches, row.delay_max_ns))
                .collect::<Vec<_>>()
        };
        assert_eq!(numbers(&have), numbers(&want), "{width}");
    }
}

#[test]
fn a_long_text_is_held_as_its_tasks() {
    let mut text = String::new();
    for at in 0..200_000u32 {
        let (seconds, us, tid) = (at / 1000, at % 1000 * 1000, 100 + at % 7);
        writeln!(
            text,
            "{:>8}.{us:06} [{:04}]  worker[{tid}]                       1.000      0.010      0.500",
            seconds, at % 4
        )
        .unwrap();
    }
    let table = only(&text);
    assert_eq!(table.rows.len(), 7);
    let runs: u64 = table.rows.iter().map(|row| row.switches).sum();
    assert_eq!(runs, 200_000);
}
