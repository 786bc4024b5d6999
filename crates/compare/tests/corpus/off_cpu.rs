//! Comparisons of what threads waited for without a CPU: made-up threads that sleep in a function each, for longer or
//! more often on one side, and those of which nobody can say that they miss it.

use std::fmt::Write as _;
use std::path::PathBuf;

use fixtures::made_folder::MadeFolder;
use fixtures::random::Random;
use serde_json::Value;

use crate::{document, find, notes, said};
use fixtures::json::{list, text};

/// A thread on a CPU of its own: how long it runs and is away each time, on average, how it leaves, and where.
#[derive(Clone, Copy)]
struct Sleeper {
    comm: &'static str,
    ran_us: u64,
    away_us: u64,
    state: &'static str,
    stack: &'static [&'static str],
}

const DISK: Sleeper = Sleeper {
    comm: "iothread",
    ran_us: 300,
    away_us: 1000,
    state: "D",
    stack: &[
        "__schedule",
        "schedule",
        "io_schedule",
        "blk_mq_get_tag",
        "submit_bio",
        "handle_aio",
    ],
};

const LOOP: Sleeper = Sleeper {
    comm: "qemu-main",
    ran_us: 200,
    away_us: 2000,
    state: "S",
    stack: &[
        "__schedule",
        "schedule",
        "schedule_hrtimeout_range",
        "poll_schedule_timeout.constprop.0",
        "do_sys_poll",
    ],
};

const FUTEX: Sleeper = Sleeper {
    comm: "worker",
    ran_us: 200,
    away_us: 700,
    state: "S",
    stack: &["__schedule", "schedule", "futex_wait_queue", "do_futex"],
};

const LOCK: Sleeper = Sleeper {
    comm: "mapper",
    ran_us: 500,
    away_us: 200,
    state: "S",
    stack: &[
        "schedule",
        "rwsem_down_write_slowpath",
        "down_write",
        "do_mmap",
    ],
};

/// Writes 6 s of what threads do, as `perf script` prints it.
fn record(
    folder: &MadeFolder,
    name: &str,
    seed: u64,
    threads: &[Sleeper],
    stacks: bool,
) -> PathBuf {
    let mut random = Random(seed);
    let mut events: Vec<(u64, usize, String)> = Vec::new();
    for (cpu, one) in threads.iter().enumerate() {
        let (comm, tid) = (one.comm, 4001 + cpu);
        let mut now = 10_000_000 + random.below(1000);
        while now < 16_000_000 {
            now += one.ran_us / 2 + random.below(one.ran_us);
            let mut text = line(comm, tid, cpu, now);
            writeln!(
                text,
                "sched:sched_switch: prev_comm={comm} prev_pid={tid} prev_prio=120 prev_state={} ==> \
                 next_comm=swapper/{cpu} next_pid=0 next_prio=120",
                one.state
            )
            .unwrap();
            for function in one.stack.iter().filter(|_| stacks) {
                let at = match function.starts_with("handle_") {
                    true => "55d0c0001020",
                    false => "ffffffff81000020",
                };
                let file = match function.starts_with("handle_") {
                    true => "/usr/bin/qemu-system-x86_64",
                    false => "[kernel.kallsyms]",
                };
                writeln!(text, "\t{at} {function}+0x20 ({file})").unwrap();
            }
            text.push('\n');
            events.push((now, cpu, text));
            now += one.away_us / 2 + random.below(one.away_us);
            let mut text = line("swapper", 0, cpu, now);
            writeln!(
                text,
                "sched:sched_switch: prev_comm=swapper/{cpu} prev_pid=0 prev_prio=120 prev_state=R ==> \
                 next_comm={comm} next_pid={tid} next_prio=120\n"
            )
            .unwrap();
            events.push((now, cpu, text));
        }
    }
    events.sort();
    let text: String = events.into_iter().map(|(_, _, text)| text).collect();
    folder.write(name, text)
}

fn line(comm: &str, tid: usize, cpu: usize, us: u64) -> String {
    let (s, us) = (us / 1_000_000, us % 1_000_000);
    format!("{comm:>16} {tid:>5} [{cpu:03}] {s:>5}.{us:06}: ")
}

fn usual() -> Vec<Sleeper> {
    vec![DISK, LOOP, FUTEX, LOCK]
}

/// Compares the usual threads with others.
fn compared(change: impl FnOnce(&mut Vec<Sleeper>)) -> Value {
    let folder = MadeFolder::new();
    let mut threads = usual();
    change(&mut threads);
    let a = record(&folder, "a", 1, &usual(), true);
    let b = record(&folder, "b", 2, &threads, true);
    document(&a, &b)
}

/// What changes of off-CPU time are called.
fn off_cpu(document: &Value) -> Vec<String> {
    let changes = list(&document["changes"]).iter();
    let whats = changes.map(|change| text(&change["what"]));
    whats.filter(|what| what.starts_with("off-cpu ")).collect()
}

#[test]
fn a_slower_disk_is_what_its_thread_misses() {
    let document = compared(|threads| threads[0].away_us = 4000);
    assert_eq!(off_cpu(&document), ["off-cpu iothread D in blk_mq_get_tag"]);
    let change = find(&document["changes"], "off-cpu iothread D in blk_mq_get_tag");
    assert_eq!(
        (&change["worse"], &change["unit"]),
        (&"b".into(), &"ns".into())
    );
    // 1 ms of every 1.3 ms, then 4 ms of 4.3 ms.
    let [a, b] = ["a", "b"].map(|side| change[side].as_f64().unwrap() / 1e6);
    assert!(
        (755.0..785.0).contains(&a) && (915.0..945.0).contains(&b),
        "{change}"
    );
    let words = text(&change["text"]);
    assert!(
        words.starts_with(
            "iothread was uninterruptible (D) in blk_mq_get_tag, called by handle_aio, for 7"
        ),
        "{words}"
    );
    assert!(words.ends_with("B is worse."), "{words}");
}

#[test]
fn a_longer_wait_for_a_lock_is_missed_whatever_the_state() {
    let document = compared(|threads| threads[3].away_us = 900);
    let change = find(
        &document["changes"],
        "off-cpu mapper S in rwsem_down_write_slowpath",
    );
    assert_eq!(change["worse"], "b", "{change}");
}

#[test]
fn a_thread_that_waits_for_work_misses_nothing() {
    let document = compared(|threads| threads[1].away_us = 9000);
    assert_eq!(off_cpu(&document), [""; 0]);
    let notes = notes(&document);
    assert!(
        notes.contains("off-CPU time in poll_schedule_timeout is not compared"),
        "{notes}"
    );
}

#[test]
fn a_futex_may_be_work_or_a_lock() {
    let document = compared(|threads| threads[2].away_us = 2500);
    let change = find(&document["changes"], "off-cpu worker S in futex_wait_queue");
    assert!(change["worse"].is_null(), "{change}");
    let words = text(&change["text"]);
    assert!(
        words.ends_with("Neither is worse by that alone."),
        "{words}"
    );
}

/// A thread that asks its disk more often and waits as long each time does more.
#[test]
fn more_requests_that_take_as_long_make_no_side_worse() {
    let document = compared(|threads| {
        threads[0].ran_us = 50;
    });
    let change = find(&document["changes"], "off-cpu iothread D in blk_mq_get_tag");
    assert!(change["b"].as_f64() > change["a"].as_f64(), "{change}");
    assert!(change["worse"].is_null(), "{change}");
}

#[test]
fn without_stacks_states_are_compared() {
    let folder = MadeFolder::new();
    let mut slower = usual();
    slower[0].away_us = 4000;
    let a = record(&folder, "a", 1, &usual(), false);
    let b = record(&folder, "b", 2, &slower, false);
    let apart = document(&a, &b);
    let change = find(&apart["changes"], "off-cpu iothread D");
    assert_eq!(change["worse"], "b", "{change}");
    assert!(!notes(&apart).contains("by thread and state"));
    // One side with stacks is compared as the other can be.
    let b = record(&folder, "stacks", 2, &slower, true);
    let mixed = document(&a, &b);
    find(&mixed["changes"], "off-cpu iothread D");
    let notes = notes(&mixed);
    assert!(
        notes.contains("by thread and state and not by function: A has no stacks"),
        "{notes}"
    );
}

/// A thread that is on one side alone cannot have waited less on the other.
#[test]
fn a_thread_of_one_side_makes_neither_worse() {
    let document = compared(|threads| {
        threads.push(Sleeper {
            comm: "backup",
            ..DISK
        });
    });
    let change = find(&document["changes"], "off-cpu backup D in blk_mq_get_tag");
    assert!(
        change["a"].is_null() && change["worse"].is_null(),
        "{change}"
    );
}

#[test]
fn the_same_again_is_no_news() {
    let folder = MadeFolder::new();
    let mut wrong = Vec::new();
    for pair in 0..20u64 {
        let a = record(&folder, "a", 100 + 2 * pair, &usual(), true);
        let b = record(&folder, "b", 101 + 2 * pair, &usual(), true);
        wrong.extend(said(&document(&a, &b), "changes"));
    }
    assert!(wrong.len() <= 1, "{wrong:#?}");
}
