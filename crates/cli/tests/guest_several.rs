//! A host and two guests: what is said of tasks says of which guest they are.

use std::path::{Path, PathBuf};

use crate::common::list;
use crate::common::{file, number, read, run, write_text};
use crate::guests::{document, over, recorded};

/// Times in the life of a VM of one vCPU, where two guests have a task of the same name and number.
struct Vm {
    pid: i32,
    /// Turns of the task that write an MSR, of 200; the others only halt.
    writes: u64,
}

const VMS: [Vm; 2] = [
    Vm {
        pid: 100,
        writes: 150,
    },
    Vm {
        pid: 200,
        writes: 50,
    },
];

const TURNS: u64 = 200;

/// Numbers that look like chance and are the same each time.
fn chance(of: u64) -> u64 {
    let mixed = (of + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

fn line(comm: &str, pid: i32, tid: i32, cpu: usize, time: u64, event: &str) -> (u64, String) {
    let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
    let text = format!("{comm} {pid}/{tid} [{cpu:03}] {seconds}.{rest:09}: {event}\n");
    (time, text)
}

fn write(folder: &Path, name: &str, mut lines: Vec<(u64, String)>) -> PathBuf {
    lines.sort();
    let text: String = lines.into_iter().map(|(_, line)| line).collect();
    write_text(folder, name, &text)
}

/// Writes the recordings of the host and of both guests.
fn files(folder: &Path) -> [PathBuf; 3] {
    let mut host = Vec::new();
    let guests = [0, 1].map(|at| {
        let vm = &VMS[at];
        let mut guest = Vec::new();
        let mut time = 5_000_000_000 + chance(at as u64) % 100_000;
        for turn in 0..TURNS {
            let some = |what: u64, from: u64, to: u64| {
                from + chance(vm.pid.unsigned_abs() as u64 * 10_000 + turn * 10 + what) % (to - from)
            };
            let mut outside = |time, event: &str| {
                host.push(line("CPU 0/KVM", vm.pid, vm.pid + 1, at, time, event));
            };
            let entry = "kvm:kvm_entry: vcpu 0, rip 0x1";
            let exit = |why: &str| format!("kvm:kvm_exit: vcpu 0 reason {why} rip 0x1 info1 0 info2 0 intr_info 0 \
                                            error_code 0");
            let runs = some(1, 60_000, 300_000);
            outside(time, entry);
            let switch = |from: &str, to: &str| {
                format!("sched:sched_switch: prev_comm={from} prev_prio=120 prev_state=S ==> next_comm={to} \
                         next_prio=120")
            };
            let (idle, task) = ("swapper/0 prev_pid=0", "bench next_pid=700");
            guest.push(line("swapper", 0, 0, 0, time + 100, &switch(idle, task)));
            if turn < vm.writes {
                outside(time + runs / 2, &exit("msr"));
                outside(time + runs / 2 + some(2, 1_000, 5_000), entry);
            }
            let (task, idle) = ("bench prev_pid=700", "swapper/0 next_pid=0");
            guest.push(line("bench", 700, 700, 0, time + runs - 100, &switch(task, idle)));
            outside(time + runs, &exit("hlt"));
            time += runs + some(3, 20_000, 400_000);
        }
        write(folder, &format!("guest-{}.txt", vm.pid), guest)
    });
    let [a, b] = guests;
    [write(folder, "host.txt", host), a, b]
}

#[test]
fn tasks_of_several_guests_say_whose_they_are() {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let [host, a, b] = files(folder.path());
    let paths = [host.as_path(), &a, &b];
    for more in [&[][..], &["--by", "task"], &["--by", "vcpu,task"]] {
        let exits = document("exits", &paths, more);
        for vm in &VMS {
            let row = list(&exits["rows"]).iter().find(|row| {
                row["key"] == "msr" && row["task_name"] == "bench" && row["vm_pid"] == vm.pid
            });
            let row = row.unwrap_or_else(|| panic!("{more:?}: {}: {}", vm.pid, exits["rows"]));
            assert_eq!(number(row, "count"), vm.writes, "{more:?}: {row}");
            assert_eq!(row["task_tid"], 700);
        }
    }
    // So do tables, which stay within a terminal, and CSV.
    let table = over("exits", &paths, &[]).text();
    for vm in &VMS {
        let begins = format!("{:>8} bench", vm.pid);
        assert!(
            table.lines().any(|line| line.starts_with(&begins)),
            "{table}"
        );
    }
    let wide = table.lines().find(|line| line.len() > 80);
    assert_eq!(wide, None);
    let csv = over("exits", &paths, &["--format", "csv"]).text();
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a line of names");
    let vm = head
        .iter()
        .position(|name| *name == "vm_pid")
        .expect("a column");
    assert!(lines.all(|line| !line[vm].is_empty()), "{csv}");
    // With one guest there is nothing to distinguish.
    let one = document("exits", &paths[..2], &[]);
    assert!(list(&one["rows"]).iter().all(|row| row["vm_pid"].is_null()));
}

#[test]
fn what_a_folder_has_and_was_left_out_is_no_input() {
    let folder = recorded();
    let path = folder.path();
    let used = |names: &str| names.contains("guest-a.perf.data");
    for command in ["info", "vcpus", "exits", "irqs", "sched", "events", "paths"] {
        let inputs = document(command, &[path], &[])["inputs"].to_string();
        assert!(used(&inputs), "{command}: {inputs}");
        assert!(!inputs.contains("guest-b"), "{command}: {inputs}");
    }
    // What another is to run has the folder alone, which brings its guests.
    let whole = run(["report".as_ref(), path.as_os_str()]).text();
    let full = format!("trapline report --full {}", path.display());
    let next = whole.find(&full).map(|at| &whole[at + full.len()..]);
    let next = next.and_then(|rest| rest.chars().next());
    assert_eq!(next, Some('\n'), "{whole}");
}

#[test]
fn how_well_a_guest_fits_does_not_depend_on_what_is_asked_for() {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let [host, a, b] = files(folder.path());
    let paths = [host.as_path(), &a, &b];
    let all = document("info", &paths, &[])["guests"].take();
    assert_eq!(list(&all).len(), 2);
    for more in [["--vm", "100"], ["--cpu", "1"], ["--vcpu", "0"]] {
        let some = document("info", &paths, &more);
        assert_eq!(some["guests"], all, "{more:?}");
    }
}

#[test]
fn what_speaks_against_a_guest_is_said_as_it_is() {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let [host, a, _] = files(folder.path());
    let refused = |reported: &str| {
        let run = over("vcpus", &[&host], &[reported]);
        assert_eq!(run.status, 1, "{}", run.text());
        run.stderr
    };
    let web = refused(&format!("--guest=web={}", a.display()));
    let vms = "has no VM web, but the VM of process 100, the VM of process 200";
    assert!(web.contains(vms), "{web}");
    // A guest's file that ends before its first event.
    let all = read(&file("x86/preempted-sick/perf.data.zst"));
    let cut = folder.path().join("cut.perf.data");
    std::fs::write(&cut, &all[..all.len() / 50]).expect("there is room");
    let cut = refused(&format!("--guest={}", cut.display()));
    let none = "cut.perf.data: holds no events: it is cut off before the first one";
    assert!(cut.contains(none), "{cut}");
    // One that does not say what the guest did.
    let calls = std::fs::read_to_string(&a).expect("it was written");
    let calls = calls.lines().map(|line| {
        let (head, _) = line.split_once("sched:sched_switch").expect("nothing else");
        format!("{head}syscalls:sys_enter_getpid: \n")
    });
    let silent = write_text(folder.path(), "calls.txt", &calls.collect::<String>());
    for command in ["vcpus", "diagnose"] {
        let run = over(
            command,
            &[&host],
            &["--guest", &silent.display().to_string()],
        );
        let text = run.text();
        assert!(
            text.contains("calls.txt: it has no event"),
            "{command}: {text}"
        );
    }
    let sides = over(
        "compare",
        &[&host, &host],
        &["--with-guest", &silent.display().to_string()],
    );
    let text = sides.text();
    assert!(text.contains("calls.txt: no events lost"), "{text}");
    assert!(!text.contains("has no guest's recording"), "{text}");
}
