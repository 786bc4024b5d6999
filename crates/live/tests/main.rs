//! The programs in the running kernel. These tests need root, tracefs, KVM's events and a kernel that allows BPF;
//! elsewhere they are skipped and say so, unless `TRAPLINE_REQUIRE_TOOLS=1` is set.
#![allow(
    clippy::print_stderr,
    reason = "who reads the tests' output is to see that nothing was tested"
)]

use std::collections::HashSet;
use std::fs;
use std::panic::{RefUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use counts::Snapshot;
use live::{LiveError, LiveOptions, LivePrograms, Seed, ThreadSeed};
use model::State;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Starts counting, or says why it cannot.
fn start(vcpus: Vec<Seed>, threads: Vec<ThreadSeed>, without_btf: bool) -> Option<LivePrograms> {
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    let live = LivePrograms::start(&LiveOptions {
        vcpus,
        threads,
        now_ns: now_ns(),
        privileged: rustix::process::geteuid().is_root(),
        without_btf,
    });
    match live {
        Ok(live) => Some(live),
        Err(error @ (LiveError::Bpf(_) | LiveError::Field { .. })) => panic!("{error}"),
        Err(error) if required => panic!("TRAPLINE_REQUIRE_TOOLS is set: {error}"),
        Err(error) => {
            eprintln!("SKIPPED: BPF programs were not tested in this kernel: {error}");
            None
        }
    }
}

fn stay_on_cpu_0() {
    let mut cpus = CpuSet::new();
    cpus.set(0);
    sched_setaffinity(None, &cpus).expect("a thread may stay on CPU 0");
}

fn spin(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// A thread that works and sleeps when it is asked to, on CPU 0.
struct Worker {
    tid: i32,
    go: Sender<()>,
    done: Receiver<()>,
}

impl Worker {
    fn new() -> Worker {
        let (go, reported) = channel();
        let (tell, done) = channel();
        let (tell_tid, tid) = channel();
        thread::spawn(move || {
            stay_on_cpu_0();
            // So that it waits some milliseconds each time: what two clocks differ by at a switch is little beside
            // that.
            setpriority_process(None, 10).expect("a thread may wait longer");
            tell_tid
                .send(gettid().as_raw_nonzero().get())
                .expect("somebody waits");
            for () in reported {
                for _ in 0..40 {
                    spin(Duration::from_millis(1));
                    thread::sleep(Duration::from_millis(1));
                }
                if tell.send(()).is_err() {
                    break;
                }
            }
        });
        Worker {
            tid: tid.recv().expect("the thread answers"),
            go,
            done,
        }
    }

    /// What the kernel counts of it: time on a CPU, time on a run queue, and how often it got a CPU.
    fn schedstat(&self) -> [u64; 3] {
        let text = fs::read_to_string(format!("/proc/self/task/{}/schedstat", self.tid));
        let text = text.expect("the kernel has schedstat");
        let mut numbers = text
            .split_whitespace()
            .map(|number| number.parse().expect("a number"));
        [(); 3].map(|()| numbers.next().expect("three numbers"))
    }

    /// How often it went to sleep so far.
    fn sleeps(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/self/task/{}/status", self.tid));
        let status = status.expect("the thread is there");
        let switches = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let switches = switches.expect("the kernel counts them");
        switches.trim().parse().expect("a number")
    }

    /// Whether it is off its CPU. A state of S does not say that: it is set before the thread gives its CPU away, and
    /// the thread may be preempted in between. This file says "running" until it is gone (`wait_task_inactive` of
    /// `kernel/sched/core.c`).
    fn is_asleep(&self) -> bool {
        let call = fs::read_to_string(format!("/proc/self/task/{}/syscall", self.tid));
        !call.expect("the thread is there").starts_with("running")
    }

    fn wait_until_asleep(&self) {
        while !self.is_asleep() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Has it work while another thread spins on its CPU, and returns what the kernel counted of it meanwhile: as
    /// `schedstat` does, and how often it slept.
    ///
    /// It waits for its CPU for hundreds of milliseconds in all, so that a CPU that is taken away between the kernel's
    /// look at its clock and the programs' is little beside them.
    fn work_beside_another(&self) -> [u64; 4] {
        let stop = AtomicBool::new(false);
        let (before, slept) = (self.schedstat(), self.sleeps());
        thread::scope(|scope| {
            scope.spawn(|| {
                stay_on_cpu_0();
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            self.go.send(()).expect("the worker waits");
            self.done.recv().expect("the worker answers");
            stop.store(true, Ordering::Relaxed);
        });
        self.wait_until_asleep();
        let after = self.schedstat();
        let [ran, waited, times] = [0, 1, 2].map(|at: usize| after[at] - before[at]);
        [ran, waited, times, self.sleeps() - slept]
    }
}

/// Has a worker compete with a thread that spins, and returns what the programs and what the kernel itself count of it.
fn compete(without_btf: bool) -> Option<(Snapshot, [u64; 4])> {
    let worker = Worker::new();
    worker.wait_until_asleep();
    let seed = Seed {
        tid: worker.tid,
        pid: i32::try_from(std::process::id()).expect("ids are small"),
        number: 7,
    };
    let live = start(vec![seed], Vec::new(), without_btf)?;
    assert_eq!(live.by_record(), without_btf);
    let counted = worker.work_beside_another();
    let snapshot = live.snapshot(now_ns()).expect("maps can be read");
    Some((snapshot, counted))
}

fn close(ours: u64, kernels: u64, what: &str) {
    // Two clocks, read one after the other at every switch.
    let most = kernels / 20 + 1_000_000;
    assert!(
        ours.abs_diff(kernels) <= most,
        "{what}: {ours} ns, the kernel counts {kernels} ns"
    );
}

/// Tries a test up to eight times. A kernel may hide a switch from whoever traces, perf too: on some virtual machines
/// every switch away from the threads of process 1. Where such a one gave the CPU to the worker, its run began unseen.
fn where_nothing_is_hidden(test: impl Fn() + RefUnwindSafe) {
    for _ in 0..7 {
        if catch_unwind(&test).is_ok() {
            return;
        }
    }
    test();
}

fn waits_are_those_that_the_kernel_counts(without_btf: bool) {
    let Some((snapshot, [ran, waited, times, slept])) = compete(without_btf) else {
        return;
    };
    let vcpu = &snapshot.vcpus[0];
    assert_eq!((snapshot.vcpus.len(), vcpu.number), (1, Some(7)));
    assert_eq!(
        vcpu.times.total(),
        snapshot.to_ns - snapshot.from_ns,
        "times add up"
    );
    close(vcpu.times.get(State::Runnable), waited, "waited for a CPU");
    let waits = &vcpu.woken;
    // Now and then its timer fires before it has gone to sleep.
    assert!(
        waits.count.abs_diff(slept) <= 2 && slept >= 30,
        "it slept {slept} times: {waits:?}"
    );
    let all = vcpu.woken.count + vcpu.preempted.count;
    assert!(
        all.abs_diff(times) <= 2,
        "{all} waits; it got a CPU {times} times"
    );
    let total = vcpu.woken.total_ns + vcpu.preempted.total_ns;
    // Where it was woken before the programs saw it asleep, nobody knows behind whom it waited.
    let behind: u64 = snapshot.behind.iter().map(|one| one.ns).sum();
    assert!(behind <= total, "{behind} of {total}");
    close(behind, total, "waited behind tasks");
    assert!(ran > 0);
    assert_eq!(snapshot.dropped, counts::DroppedCounts::default());
    let names: Vec<_> = snapshot
        .behind
        .iter()
        .filter_map(|one| one.comm.as_deref())
        .collect();
    assert!(!names.is_empty(), "tasks have names");
}

#[test]
fn waits_are_those_that_the_kernel_counts_by_argument() {
    where_nothing_is_hidden(|| waits_are_those_that_the_kernel_counts(false));
}

#[test]
fn waits_are_those_that_the_kernel_counts_by_record() {
    where_nothing_is_hidden(|| waits_are_those_that_the_kernel_counts(true));
}

#[test]
fn a_thread_that_is_no_vcpu_runs_and_waits_as_the_kernel_counts() {
    where_nothing_is_hidden(a_thread_is_followed);
}

fn a_thread_is_followed() {
    let worker = Worker::new();
    worker.wait_until_asleep();
    let vm_pid = i32::try_from(std::process::id()).expect("ids are small");
    let seed = ThreadSeed {
        tid: worker.tid,
        vm_pid,
        asleep: true,
        cpu: 0,
    };
    let Some(live) = start(Vec::new(), vec![seed], false) else {
        return;
    };
    let [ran, waited, ..] = worker.work_beside_another();
    let snapshot = live.snapshot(now_ns()).expect("maps can be read");
    assert!(snapshot.vcpus.iter().all(|vcpu| vcpu.tid != worker.tid));
    let thread = snapshot.threads.iter().find(|one| one.tid == worker.tid);
    let thread = thread.expect("it is followed");
    assert_eq!(thread.vm_pid, vm_pid);
    close(thread.ran_ns, ran, "ran");
    close(thread.runnable_ns, waited, "waited for a CPU");
    assert_eq!(thread.unknown_ns, 0, "{thread:?}");
    let all = thread.ran_ns + thread.runnable_ns + thread.slept_ns;
    assert_eq!(all, snapshot.to_ns - snapshot.from_ns, "times add up");
}

#[test]
fn what_has_ended_is_reported_once_and_leaves_the_maps() {
    let worker = Worker::new();
    worker.wait_until_asleep();
    let seed = Seed {
        tid: worker.tid,
        pid: i32::try_from(std::process::id()).expect("ids are small"),
        number: 0,
    };
    let Some(mut live) = start(vec![seed], Vec::new(), false) else {
        return;
    };
    let tid = worker.tid;
    drop(worker);
    while fs::exists(format!("/proc/self/task/{tid}")).expect("/proc can be read") {
        thread::sleep(Duration::from_millis(1));
    }
    let snapshot = live.snapshot(now_ns()).expect("maps can be read");
    assert!(snapshot.vcpus[0].ended, "{snapshot:?}");
    assert_eq!(snapshot.ended().into_iter().collect::<Vec<_>>(), [tid]);
    live.forget(&snapshot.ended()).expect("maps can be changed");
    let snapshot = live.snapshot(now_ns()).expect("maps can be read");
    assert!(snapshot.vcpus.is_empty() && snapshot.behind.is_empty());
}

#[test]
fn two_snapshots_differ_by_what_was_between() {
    let worker = Worker::new();
    let Some(live) = start(Vec::new(), Vec::new(), false) else {
        return;
    };
    let first = live.snapshot(now_ns()).expect("maps can be read");
    let second = live.snapshot(now_ns()).expect("maps can be read");
    let between = second.since(&first);
    assert_eq!(between.from_ns, first.to_ns);
    assert!(
        between.vcpus.iter().all(|vcpu| vcpu.tid != worker.tid),
        "it is no vCPU"
    );
}

#[test]
fn room_is_given_back() {
    let Some(mut live) = start(Vec::new(), Vec::new(), false) else {
        return;
    };
    let empty = live.snapshot(now_ns()).expect("maps can be read");
    let before: Vec<i32> = empty.vcpus.iter().map(|vcpu| vcpu.tid).collect();
    let mut found = Vec::new();
    for round in 1..=3 {
        // Numbers that no thread has (PID_MAX_LIMIT is 2^22), and more than there is room for.
        let tids = 5_000_000 * round..5_000_000 * round + 2000;
        let seed = |tid| Seed {
            tid,
            pid: 1,
            number: 0,
        };
        let seeds: Vec<Seed> = tids.clone().map(seed).collect();
        live.follow(&seeds, &[], now_ns())
            .expect("maps can be changed");
        let snapshot = live.snapshot(now_ns()).expect("maps can be read");
        let followed = snapshot.vcpus.iter().map(|vcpu| vcpu.tid);
        let followed: HashSet<i32> = followed.filter(|tid| tids.contains(tid)).collect();
        found.push(followed.len());
        live.forget(&followed).expect("maps can be changed");
        let snapshot = live.snapshot(now_ns()).expect("maps can be read");
        assert!(snapshot.vcpus.iter().all(|vcpu| !tids.contains(&vcpu.tid)));
    }
    assert!(found[0] >= 1000 && found[0] < 2000, "{found:?}");
    if before.is_empty() {
        assert_eq!(found, [found[0]; 3], "as many as at first");
    }
}
