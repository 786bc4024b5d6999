//! The threads that measure and those that they measure with: each on one CPU, with what it waited for its CPU.

use std::fs;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

use rustix::thread::{CpuSet, gettid, sched_setaffinity, set_current_timer_slack};

use crate::now::now;
use crate::why::why;

/// Lets the calling thread run on one CPU alone, and its timers fire when they are due (`PR_SET_TIMERSLACK`; the
/// default is 50 us later).
pub(crate) fn stay_on(cpu: u32) -> Result<(), String> {
    let mut only = CpuSet::new();
    let number = usize::try_from(cpu).unwrap_or(usize::MAX);
    if number < CpuSet::MAX_CPU {
        only.set(number);
    }
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    sched_setaffinity(Some(gettid()), &only)
        .map_err(|error| format!("no thread may run on CPU {cpu} alone: {}", why(&error)))
}

/// What a thread waited for its CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuWaits {
    /// Time that it was ready to run and did not (`/proc/thread-self/schedstat`).
    pub waited_ns: Option<u64>,
    /// How often another took its CPU (`nonvoluntary_ctxt_switches`).
    pub preempted: Option<u64>,
}

impl CpuWaits {
    /// Returns those of the calling thread since it began.
    pub(crate) fn own() -> CpuWaits {
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        // Time on a CPU, time ready and not on one, and how often it ran.
        let waited = text.split_ascii_whitespace().nth(1);
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let mut lines = status.lines();
        let switches = lines.find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
        CpuWaits {
            waited_ns: waited.and_then(|number| number.parse().ok()),
            preempted: switches.and_then(|number| number.trim().parse().ok()),
        }
    }

    /// Returns what came since then.
    pub(crate) fn since(before: CpuWaits) -> CpuWaits {
        let now = CpuWaits::own();
        let less = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        CpuWaits {
            waited_ns: less(now.waited_ns, before.waited_ns),
            preempted: less(now.preempted, before.preempted),
        }
    }
}

/// Runs a closure in a thread of its own on a CPU, and returns what it does.
pub(crate) fn on_cpu<T: Send>(
    cpu: u32,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    std::thread::scope(|scope| joined(pinned(scope, cpu, MEASURES, work)?))
}

/// What threads are called, by what they do, so that a recording made meanwhile says whose CPU was whose.
pub(crate) const MEASURES: &str = "bench-measures";
/// One that answers, or that is woken.
pub(crate) const ANSWERS: &str = "bench-answers";
/// One that keeps a CPU busy.
const SPINS: &str = "bench-spins";

/// Starts a thread on a CPU.
pub(crate) fn pinned<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    cpu: u32,
    name: &str,
    work: impl FnOnce() -> Result<T, String> + Send + 's,
) -> Result<ScopedJoinHandle<'s, Result<T, String>>, String> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    let thread = thread.spawn_scoped(scope, move || {
        stay_on(cpu)?;
        work()
    });
    thread.map_err(|error| format!("a thread cannot be started: {}", why(&error)))
}

/// Waits for a thread's end.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    match thread.join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Raises a flag when it is dropped, so that who waits for it ends whatever happens here.
#[derive(Debug)]
pub(crate) struct RaiseAtEnd<'a>(pub &'a AtomicBool);

impl Drop for RaiseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A number that a thread counts up as long as it runs, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Beat(AtomicU64);

/// Threads that keep CPUs busy.
#[derive(Debug)]
pub(crate) struct Spinners<'a>(&'a [Beat]);

impl Spinners<'_> {
    /// Waits until each of them runs at this moment, as far as that can be known, or until `over` says so. Returns
    /// whether all run.
    pub(crate) fn all_run(&self, over: &dyn Fn() -> bool) -> bool {
        /// Looks at a thread between two questions whether it is over.
        const LOOKS: u32 = 100;
        /// Who took longer to see a thread count was off its own CPU meanwhile: the count says nothing of this moment.
        /// Where other tasks share both CPUs, the two threads may run in turn, slice by slice.
        const AT_ONCE_NS: u64 = 50_000;
        self.0.iter().all(|beat| {
            loop {
                let began_ns = now();
                let before = beat.0.load(Ordering::Relaxed);
                let counts = (0..LOOKS).any(|_| {
                    std::hint::spin_loop();
                    beat.0.load(Ordering::Relaxed) != before
                });
                if counts && now().saturating_sub(began_ns) < AT_ONCE_NS {
                    return true;
                }
                if over() {
                    return false;
                }
            }
        })
    }
}

/// Counts up until a flag is raised, in user space all the time.
fn spin(beat: &Beat, done: &AtomicBool) {
    let mut count = 0u64;
    while !done.load(Ordering::Relaxed) {
        count += 1;
        beat.0.store(count, Ordering::Relaxed);
        std::hint::spin_loop();
    }
}

/// Starts threads that keep CPUs busy, does some work once all of them run, and ends them.
pub(crate) fn with_spinners<T>(
    cpus: &[u32],
    work: impl FnOnce(&Spinners<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let done = AtomicBool::new(false);
    let beats: Vec<Beat> = cpus.iter().map(|_| Beat::default()).collect();
    let done = &done;
    std::thread::scope(|scope| {
        let raise = RaiseAtEnd(done);
        let mut threads = Vec::new();
        for (cpu, beat) in cpus.iter().zip(&beats) {
            threads.push(pinned(scope, *cpu, SPINS, move || {
                spin(beat, done);
                Ok(())
            })?);
        }
        let begun = || beats.iter().all(|beat| beat.0.load(Ordering::Relaxed) > 0);
        while !begun() {
            // One that may not run there has ended, and says so below.
            if threads.iter().any(ScopedJoinHandle::is_finished) {
                break;
            }
            std::thread::yield_now();
        }
        let worked = begun().then(|| work(&Spinners(&beats)));
        drop(raise);
        for thread in threads {
            joined(thread)?;
        }
        worked.unwrap_or_else(|| Err("a thread that keeps a CPU busy ended early".to_owned()))
    })
}
