//! Delays of tasks are the numbers of `perf sched latency`, to the printed digit, for every task of every
//! recording.

use std::collections::BTreeMap;

use analysis::DelayConvention;
use fixtures::json::number;
use fixtures::{Failures, FixtureQuestion, case, cases, note};
use serde_json::Value;

/// A line of perf's table: task, run time, switches, mean and longest delay, and when that began; as printed.
fn lines(table: &str) -> Vec<(String, Vec<String>)> {
    let mut out = Vec::new();
    for line in table.lines() {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [task, runtime, switches, mean, max, start, _] = columns[..] else {
            continue;
        };
        let Some(mean) = mean.strip_prefix("avg:") else {
            continue;
        };
        let number = |text: &str, before: &str, behind: &str| {
            let text = text.strip_prefix(before).unwrap_or(text);
            text.strip_suffix(behind).unwrap_or(text).trim().to_owned()
        };
        out.push((
            task.to_owned(),
            vec![
                number(runtime, "", "ms"),
                switches.to_owned(),
                number(mean, "", "ms"),
                number(max, "max:", "ms"),
                number(start, "max start:", "s"),
            ],
        ));
    }
    out
}

/// Milliseconds as perf prints them.
fn ms(row: &Value, field: &str) -> String {
    format!("{:.3}", number(row, field) as f64 / 1e6)
}

/// A row as perf prints it.
fn printed(row: &Value) -> Vec<String> {
    let at = number(row, "delay_max_at_ns") / 1000;
    vec![
        ms(row, "runtime_ns"),
        number(row, "switches").to_string(),
        ms(row, "delay_mean_ns"),
        ms(row, "delay_max_ns"),
        format!("{}.{:06}", at / 1_000_000, at % 1_000_000),
    ]
}

#[test]
fn every_task_has_the_numbers_of_perf() {
    let mut failures = Failures::default();
    let mut tables = 0;
    for case in cases() {
        for (reference, by) in [("sched-latency", "task"), ("sched-latency-comm", "comm")] {
            let Some(table) = case.reference(reference) else {
                continue;
            };
            tables += 1;
            let what = format!("{} by {by}", case.name);
            let question = match by {
                "comm" => FixtureQuestion::new().by_comm(),
                _ => FixtureQuestion::new(),
            };
            let document = match question.sched_document(&case.path) {
                Ok(document) => document,
                Err(error) => {
                    failures.check(false, || format!("{what}: {error}"));
                    continue;
                }
            };
            let mut ours = BTreeMap::new();
            let mut nameless = Vec::new();
            for row in document["rows"].as_array().into_iter().flatten() {
                let comm = row["comm"].as_str().unwrap_or_default();
                let (pid, threads) = (number(row, "pid"), number(row, "threads"));
                nameless.push((pid, printed(row)));
                let task = if threads == 1 {
                    format!("{comm}:{pid}")
                } else {
                    format!("{comm}:({threads})")
                };
                // perf has no line for a task that only waited after preemption.
                if number(row, "switches") > 0 {
                    ours.insert(task, printed(row));
                }
            }
            let expected = lines(&table);
            failures.check(!expected.is_empty(), || format!("{what}: no line"));
            // Where perf has no name of a thread, which it takes from no event of the scheduler, ours is listed
            // under the name that those have.
            let unnamed = expected.iter().filter(|(task, _)| task.starts_with(':'));
            let mut unnamed_count = 0;
            for (task, _) in unnamed {
                unnamed_count += 1;
                let tid = task.rsplit(':').next().and_then(|tid| tid.parse().ok());
                let found = nameless.iter().any(|(pid, _)| Some(*pid) == tid);
                failures.check(by == "comm" || found, || {
                    format!("{what}: {task} is missing")
                });
            }
            for (task, numbers) in &expected {
                if !task.starts_with(':') {
                    failures.equal(&format!("{what}: {task}"), &ours.get(task), &Some(numbers));
                } else if by == "task" {
                    let same = nameless.iter().any(|(_, row)| row == numbers);
                    failures.check(same, || format!("{what}: {task} {numbers:?}"));
                }
            }
            if by == "task" {
                failures.equal(&what, &ours.len(), &expected.len());
            } else {
                let named = expected.len() - unnamed_count;
                failures.check(ours.len() >= named, || {
                    format!("{what}: {} rows", ours.len())
                });
            }
        }
    }
    note(&format!("{tables} tables"));
    failures.check(tables >= 14, || format!("{tables} tables only"));
    failures.finish(200);
}

/// A recording made by hand, with known answers.
const BY_HAND: &str = "# tracer: nop
          <idle>-0     [001] d..2.     1.000000: sched_waking: comm=vhost-100 pid=105 prio=120 target_cpu=001
          <idle>-0     [001] d..2.     1.000010: sched_wakeup: comm=vhost-100 pid=105 prio=120 target_cpu=001
          <idle>-0     [001] d..2.     1.000030: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=vhost-100 next_pid=105 next_prio=120
       vhost-100-105   [001] d..2.     1.000100: sched_switch: prev_comm=vhost-100 prev_pid=105 prev_prio=120 prev_state=R+ ==> next_comm=kworker/1:1 next_pid=45 next_prio=120
     kworker/1:1-45    [001] ....1     1.000110: workqueue_execute_start: work struct 0000000012345678: function od_dbs_update
     kworker/1:1-45    [001] ....1     1.000150: workqueue_execute_end: work struct 0000000012345678: function od_dbs_update
     kworker/1:1-45    [001] d..2.     1.000160: sched_waking: comm=CPU 0/KVM pid=101 prio=120 target_cpu=002
          <idle>-0     [002] d..2.     1.000170: sched_wakeup: comm=CPU 0/KVM pid=101 prio=120 target_cpu=002
          <idle>-0     [002] d..2.     1.000200: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=CPU 0/KVM next_pid=101 next_prio=120
     kworker/1:1-45    [001] d..2.     1.000220: sched_switch: prev_comm=kworker/1:1 prev_pid=45 prev_prio=120 prev_state=I ==> next_comm=vhost-100 next_pid=105 next_prio=120
       CPU 0/KVM-101   [002] d..2.     1.000300: sched_switch: prev_comm=CPU 0/KVM prev_pid=101 prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 next_prio=120
       vhost-100-105   [001] d..2.     1.000400: sched_migrate_task: comm=CPU 0/KVM pid=101 prio=120 orig_cpu=2 dest_cpu=1
       vhost-100-105   [001] d..2.     1.000400: sched_waking: comm=CPU 0/KVM pid=101 prio=120 target_cpu=001
       vhost-100-105   [001] d..2.     1.000405: sched_wakeup: comm=CPU 0/KVM pid=101 prio=120 target_cpu=001
       vhost-100-105   [001] d..2.     1.000410: sched_switch: prev_comm=vhost-100 prev_pid=105 prev_prio=120 prev_state=S ==> next_comm=CPU 0/KVM next_pid=101 next_prio=120
       CPU 0/KVM-101   [001] d..2.     1.000500: sched_stat_runtime: comm=CPU 0/KVM pid=101 runtime=190000 [ns] vruntime=1 [ns]
";

#[test]
fn a_recording_made_by_hand_has_known_answers() {
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sched.txt");
    std::fs::write(&path, BY_HAND).expect("a file");
    let document = FixtureQuestion::new().sched_document(&path).expect("sched");
    let rows = document["rows"].as_array().expect("rows");
    let row = |pid: u64| {
        let found = rows.iter().find(|row| row["pid"].as_u64() == Some(pid));
        found.unwrap_or_else(|| panic!("no row of {pid}"))
    };
    for (pid, field, value) in [
        (105, "switches", 1),
        (105, "delay_mean_ns", 20_000),
        (105, "delay_max_ns", 20_000),
        (105, "delay_max_at_ns", 1_000_010_000),
        (105, "on_cpu_ns", 70_000 + 190_000),
        (105, "preempted", 1),
        (105, "woken_waits", 1),
        (105, "woken_wait_ns", 20_000),
        (101, "woken_waits", 2),
        (101, "woken_wait_ns", 35_000),
        (45, "woken_waits", 0),
        (105, "preempted_wait_ns", 120_000),
        (101, "switches", 2),
        (101, "delay_mean_ns", 17_500),
        (101, "delay_max_ns", 30_000),
        (101, "delay_max_at_ns", 1_000_170_000),
        (101, "runtime_ns", 190_000),
        (101, "on_cpu_ns", 100_000 + 90_000),
        (101, "migrations", 1),
        (101, "preempted", 0),
        (45, "switches", 1),
        (45, "delay_max_ns", 0),
        (45, "on_cpu_ns", 120_000),
    ] {
        failures.equal(&format!("{pid} {field}"), &number(row(pid), field), &value);
    }
    let other = |row: &Value, list: &str, at: usize| {
        let item = &row[list][at];
        let comm = item["comm"].as_str().unwrap_or_default().to_owned();
        (comm, item["pid"].as_u64(), item["count"].as_u64())
    };
    let kworker = ("kworker/1:1".to_owned(), Some(45), Some(1));
    failures.equal(
        "preempted by",
        &other(row(105), "preempted_by", 0),
        &kworker,
    );
    failures.equal("woken by", &other(row(101), "woken_by", 0), &kworker);
    let vhost = ("vhost-100".to_owned(), Some(105), Some(1));
    failures.equal("woken by", &other(row(101), "woken_by", 1), &vhost);
    failures.equal(
        "woken by an interrupt of an idle CPU",
        &other(row(105), "woken_by", 0).1,
        &Some(0),
    );
    failures.equal(
        "work",
        &document["work"][0]["function"],
        &"od_dbs_update".into(),
    );
    failures.equal("work", &number(&document["work"][0], "total_ns"), &40_000);

    let cpus = document["cpus"].as_array().expect("CPUs");
    let cpu = |n: u64| {
        let found = cpus.iter().find(|cpu| cpu["cpu"].as_u64() == Some(n));
        found.unwrap_or_else(|| panic!("no CPU {n}"))
    };
    for (number_of, field, value) in [
        (1, "switches", 4),
        (1, "busy_ns", 470_000),
        (1, "idle_ns", 0),
        (1, "wakeups", 2),
        (1, "delay_max_ns", 20_000),
        (2, "busy_ns", 100_000),
        (2, "idle_ns", 200_000),
        (2, "delay_max_ns", 30_000),
    ] {
        failures.equal(
            &format!("CPU {number_of} {field}"),
            &number(cpu(number_of), field),
            &value,
        );
    }
    let buckets = document["delays"].as_array().expect("a histogram").iter();
    let counted: u64 = buckets.map(|bucket| number(bucket, "count")).sum();
    failures.equal("histogram", &counted, &4);

    let one = FixtureQuestion::new()
        .pid(101)
        .sched_document(&path)
        .expect("sched");
    let rows = one["rows"].as_array().map(Vec::len);
    failures.equal("one row", &rows, &Some(1));
    let layout = render::Layout {
        width: 80,
        limit: usize::MAX,
        nanoseconds: true,
    };
    let (report, _) = FixtureQuestion::new().sched(&path).expect("sched");
    let (by_comm, _) = FixtureQuestion::new()
        .by_comm()
        .sched(&path)
        .expect("sched");
    for (what, text) in [
        ("CPUs", render::sched::cpus(&report, layout)),
        ("by name", render::sched::table(&by_comm, layout)),
        ("histogram", render::sched::histogram(&report, layout)),
    ] {
        let width = text.lines().map(|line| line.chars().count()).max();
        failures.check(width.is_some_and(|width| width <= 80), || {
            format!("{what}: {width:?} columns")
        });
    }
    failures.finish(39);
}

/// Stacks, as perf script prints them, say what kworkers ran too.
#[test]
fn stacks_show_the_functions_of_kworkers() {
    const TEXT: &str = "kworker/1:1-eve    45 [001]  5520.601216: sched:sched_switch: prev_comm=kworker/1:1 prev_pid=45 prev_prio=120 prev_state=D ==> next_comm=opt next_pid=83 next_prio=120
\tffffffff821facd8 __schedule+0x618 ([kernel.kallsyms])
\tffffffff821fb643 schedule+0x23 ([kernel.kallsyms])
\tffffffff81383898 od_dbs_update+0x98 ([cpufreq_ondemand])
\tffffffff8138bbe8 process_one_work+0xf8 ([kernel.kallsyms])
\tffffffff8138bbe8 worker_thread+0xf8 ([kernel.kallsyms])

opt    83 [001]  5520.601349: sched:sched_switch: prev_comm=opt prev_pid=83 prev_prio=120 prev_state=S ==> next_comm=kworker/1:1 next_pid=45 next_prio=110
\tffffffff821facd8 __schedule+0x618 ([kernel.kallsyms])
\tffffffff821fb643 process_one_work+0x23 (/usr/bin/opt)

kworker/1:1-eve    45 [001]  5520.601416: sched:sched_switch: prev_comm=kworker/1:1 prev_pid=45 prev_prio=120 prev_state=R ==> next_comm=swapper/1 next_pid=0 next_prio=120
\tffffffff821facd8 __cond_resched+0x18 ([kernel.kallsyms])
\tffffffff8138bbe8 process_one_work+0xf8 ([kernel.kallsyms])
";
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stacks.txt");
    std::fs::write(&path, TEXT).expect("a file");
    let document = FixtureQuestion::new().sched_document(&path).expect("sched");
    let work = document["work"].as_array().expect("work");
    failures.equal("functions", &work.len(), &1);
    failures.equal("function", &work[0]["function"], &"od_dbs_update".into());
    failures.equal("stacks", &number(&work[0], "stacks"), &1);
    failures.finish(3);
}

/// The sums over all tasks and CPUs are the recording's.
#[test]
fn time_on_cpus_is_the_tasks() {
    let mut failures = Failures::default();
    for name in [
        "vmx/tiny-irqchip/perf.data.zst",
        "vmx/tiny-irqchip/trace.dat",
    ] {
        let document = FixtureQuestion::new()
            .sched_document(&case(name).path)
            .expect("sched");
        let sum = |list: &str, field: &str| {
            let rows = document[list].as_array().into_iter().flatten();
            rows.map(|row| number(row, field)).sum::<u64>()
        };
        // Tasks that neither waited nor were preempted have no row.
        let (tasks, cpus) = (sum("rows", "on_cpu_ns"), sum("cpus", "busy_ns"));
        failures.check(tasks <= cpus && tasks * 10 >= cpus * 9, || {
            format!("{name}: {tasks} of tasks, {cpus} of CPUs")
        });
    }
    failures.finish(2);
}

/// perf 6.12 and later: a delay begins at `sched_waking` where that is recorded, at the wake-up of a new task, and at
/// any preemption.
#[test]
fn newer_perfs_count_from_waking_and_preemption_on() {
    let line =
        |at: u32, text: &str| format!("             a-1     [001] d..2.     1.{at:06}: {text}\n");
    let wake = |name: &str, pid: u32| {
        format!("sched_{name}: comm=t{pid} pid={pid} prio=120 target_cpu=001")
    };
    let switch = |from: u32, state: &str, to: u32| {
        format!(
            "sched_switch: prev_comm=t{from} prev_pid={from} prev_prio=120 prev_state={state} ==> next_comm=t{to} \
             next_pid={to} next_prio=120"
        )
    };
    let text = [
        line(0, &switch(5, "S", 1)),
        // 5 is woken: 30 us from waking, 20 us from wakeup.
        line(10, &wake("waking", 5)),
        line(20, &wake("wakeup", 5)),
        line(40, &switch(1, "R+", 5)),
        // 1 was preempted, and waits for 60 us.
        line(100, &switch(5, "S", 1)),
        // 6 is new, and has no sched_waking: 50 us.
        line(150, &wake("wakeup_new", 6)),
        line(200, &switch(1, "S", 6)),
    ]
    .concat();
    let path = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(path.path(), text).expect("a written file");
    let delays = |convention: DelayConvention| -> Vec<(i32, u64, u64)> {
        let asked = FixtureQuestion::new().delays_as(convention);
        let (report, _) = asked.sched(path.path()).expect("it reads");
        assert_eq!(report.delays_as, Some(convention));
        let mut rows: Vec<_> = report
            .rows
            .iter()
            .map(|row| (row.tid, row.delays.count(), row.delays.max()))
            .collect();
        rows.sort_unstable();
        rows
    };
    assert_eq!(
        delays(DelayConvention::Perf61),
        [(1, 1, 0), (5, 1, 20_000), (6, 1, 50_000)]
    );
    assert_eq!(
        delays(DelayConvention::Perf612),
        [(1, 2, 60_000), (5, 1, 30_000), (6, 1, 50_000)]
    );
}
