//! The longest wait of each task: how long, since when, and who had the CPU meanwhile.

use serde_json::Value;

use crate::common::{json, run, write_text};

/// A switch of a CPU at a time in microseconds: of which task and in which state, and to which.
fn switch(
    cpu: u32,
    at_us: u64,
    (from, pid, state): (&str, u32, &str),
    (to, next): (&str, u32),
) -> String {
    format!(
        "    {from}-{pid} [{cpu:03}] d.... {}.{:06}: sched_switch: prev_comm={from} prev_pid={pid} prev_prio=120 \
         prev_state={state} ==> next_comm={to} next_pid={next} next_prio=120\n",
        at_us / 1_000_000,
        at_us % 1_000_000
    )
}

/// Wakes a task on CPU 1.
fn waking(at_us: u64, (by, pid): (&str, u32), (task, woken): (&str, u32)) -> String {
    ["sched_waking", "sched_wakeup"]
        .iter()
        .zip([at_us, at_us + 10])
        .map(|(event, at_us)| {
            format!(
                "    {by}-{pid} [001] d.... {}.{:06}: {event}: comm={task} pid={woken} prio=120 target_cpu=001\n",
                at_us / 1_000_000,
                at_us % 1_000_000
            )
        })
        .collect()
}

/// A woken kworker waits behind a vhost worker for 39 ms, and a preempted vCPU 90 ms while its CPU is idle, as under a
/// quota; a last one waits 50 us.
fn waits() -> String {
    let (vcpu, vhost, worker) = (("CPU 0/KVM", 10), ("vhost-9", 11), ("kworker/1:0", 12));
    [
        switch(0, 10_000_000, (vcpu.0, vcpu.1, "R"), ("swapper/0", 0)),
        waking(10_000_100, vhost, worker),
        switch(1, 10_039_100, (vhost.0, vhost.1, "S"), worker),
        waking(10_040_000, worker, vhost),
        switch(1, 10_040_060, (worker.0, worker.1, "I"), vhost),
        switch(0, 10_090_000, ("swapper/0", 0, "R"), vcpu),
    ]
    .concat()
}

#[test]
fn the_longest_wait_names_who_had_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_text(folder.path(), "waits.txt", &waits());
    let document = json(&["sched"], &path).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let of = |pid: i64| -> [&Value; 4] {
        let row = rows.iter().find(|row| row["pid"] == pid).unwrap();
        ["_ns", "_at_ns", "_behind", "_behind_pid"].map(|end| &row[format!("longest_wait{end}")])
    };
    let worker: [Value; 4] = [
        38_990_000.into(),
        10_000_110_000u64.into(),
        "vhost-9".into(),
        11.into(),
    ];
    let vcpu: [Value; 4] = [
        90_000_000.into(),
        10_000_000_000u64.into(),
        "swapper".into(),
        0.into(),
    ];
    assert_eq!(of(12), worker.each_ref());
    assert_eq!(of(10), vcpu.each_ref());
    // Waits below a millisecond are not kept.
    assert_eq!(of(11), [&Value::Null; 4]);
    let text = run(["sched".as_ref(), path.as_os_str()]).text();
    for line in [
        "90.00ms  CPU 0/KVM:10 while that CPU was idle",
        "38.99ms  kworker/1:0:12 behind vhost-9:11",
        "nobody: that CPU was idle",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// A KVM that makes no exits, as PVM's: other events of it say that a thread is in KVM, and neither keep it from being
/// a vCPU by its name nor say what it does between them.
#[test]
fn behind_whom_a_vcpu_waited_is_known_without_exits() {
    let (vcpu, other) = (("CPU 0/KVM", 10), ("stress", 20));
    let access = |at_us: u64| {
        format!(
            "    {}-{} [000] ..... {}.{:06}: kvm_pio: pio_write at 0x20 size 1 count 1 val 0x20\n",
            vcpu.0,
            vcpu.1,
            at_us / 1_000_000,
            at_us % 1_000_000
        )
    };
    let mut text = String::new();
    for turn in 0..20 {
        let at_us = 10_000_000 + turn * 20_000;
        text += &switch(0, at_us, (other.0, other.1, "R"), vcpu);
        text += &access(at_us + 2_000);
        text += &switch(0, at_us + 10_000, (vcpu.0, vcpu.1, "R"), other);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = write_text(folder.path(), "pvm.txt", &text);
    let rows = json(&["vcpus"], &path).expect("vCPUs")["rows"].clone();
    let row = &rows[0];
    assert_eq!(row["presumed"], true, "{rows}");
    assert_eq!(row["runnable_ns"], 190_000_000, "{rows}");
    for unknown in ["guest_ns", "kernel_ns", "user_ns", "halted_ns", "exits"] {
        assert_eq!(row[unknown], Value::Null, "{unknown}: {rows}");
    }
    let diagnosis = json(&["diagnose"], &path).expect("a diagnosis");
    let first = &diagnosis["findings"][0];
    assert_eq!(first["id"], "vcpu-preempted", "{diagnosis}");
    let confidence = first["confidence"].as_f64().expect("a number");
    assert!(confidence <= 0.8, "{first}");
}
