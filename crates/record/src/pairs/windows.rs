//! When the first event of a pair is looked at, where looking costs too much.
//!
//! A probe of a program is a breakpoint, and each hit a trap of some ten microseconds. A thread that polls runs into
//! it hundreds of thousands of times a second, and would do little else. So while that is so, the breakpoint is there
//! for a short time only, again and again, and the thread loses no more than a small part of its rate over all. How
//! often it is run into is counted in each window, since a loop may begin and end at any time.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What a loop around the event may lose of its rate.
const MOST_LOST: f64 = 0.03;
/// How long a window is at least. Behind it the kernel waits until all CPUs have passed a quiet state before it takes
/// the breakpoint away (`percpu_down_write` in `kernel/events/uprobes.c`), some 40 ms.
const WINDOW: Duration = Duration::from_millis(50);

/// What was counted in a time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct HitCount {
    /// Hits on the CPU where they were most.
    most: u64,
    /// Hits on all CPUs.
    all: u64,
}

impl HitCount {
    fn between(before: &[u64], after: &[u64]) -> HitCount {
        let hits = after.iter().zip(before);
        let hits = hits.map(|(after, before)| after.saturating_sub(*before));
        HitCount {
            most: hits.clone().max().unwrap_or(0),
            all: hits.sum(),
        }
    }

    /// Returns how long a loop did nothing else than to be hit, of so many hits on all CPUs: as many of them were on
    /// the busiest CPU as here.
    fn lost(self, all: u64, each_ns: u64) -> Duration {
        let most = all as f64 * self.most as f64 / self.all.max(1) as f64;
        Duration::from_nanos(each_ns).mul_f64(most)
    }
}

/// Returns how long nothing is looked at behind a time of which so much was lost.
fn rest(time: Duration, lost: Duration) -> Duration {
    lost.min(time).div_f64(MOST_LOST).saturating_sub(time)
}

/// What is looked at in windows.
pub(super) trait WatchedEvent: Send + 'static {
    /// What ends the window when it goes.
    type Window;

    /// Begins a window; `None` where the system does not let it, which ends all.
    fn open(&mut self) -> Option<Self::Window>;

    /// Returns how often the event came in windows until now, by CPU.
    fn hits(&mut self) -> Vec<u64>;

    /// Returns how often the breakpoint was run into until now, also while it is taken away; `None` where the kernel
    /// does not say.
    fn traps(&mut self) -> Option<u64>;

    /// Returns what a hit costs what makes it, ns.
    fn each_ns(&self) -> u64;
}

/// A thread that opens and closes windows until it is ended.
#[derive(Debug)]
pub(super) struct WindowThread {
    stop: Sender<()>,
    thread: JoinHandle<u64>,
}

impl WindowThread {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// The system gives no thread.
    pub(super) fn start(event: impl WatchedEvent) -> std::io::Result<WindowThread> {
        let (stop, stopped) = mpsc::channel();
        let work = move || {
            let ended = |time| stopped.recv_timeout(time) != Err(RecvTimeoutError::Timeout);
            nanoseconds(windows(event, ended))
        };
        let thread = thread::Builder::new().name("pair windows".to_owned());
        let thread = thread.spawn(work)?;
        Ok(WindowThread { stop, thread })
    }

    /// Ends it. Returns for how long windows were open, ns.
    pub(super) fn end(self) -> u64 {
        drop(self.stop);
        self.thread.join().unwrap_or(0)
    }
}

/// Opens and closes windows until `ended`, which waits for a time, says so. Returns for how long they were open.
fn windows<E: WatchedEvent>(mut event: E, ended: impl Fn(Duration) -> bool) -> Duration {
    let mut seen = Duration::ZERO;
    while let Some(window) = event.open() {
        let opened = Instant::now();
        loop {
            let (before, traps, since) = (event.hits(), event.traps(), Instant::now());
            let over = ended(WINDOW);
            let hits = HitCount::between(&before, &event.hits());
            let time = since.elapsed();
            let lost = hits.lost(hits.all, event.each_ns());
            if !over && rest(time, lost).is_zero() {
                continue;
            }
            seen += opened.elapsed();
            drop(window);
            let whole = since.elapsed();
            let lost = match (traps, event.traps()) {
                (Some(before), Some(after)) => {
                    hits.lost(after.saturating_sub(before), event.each_ns())
                }
                // As if the breakpoint was there to the end.
                _ => lost.mul_f64(whole.as_secs_f64() / time.as_secs_f64().max(1e-6)),
            };
            if over || ended(rest(whole, lost)) {
                return seen;
            }
            break;
        }
    }
    seen
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_keeps_its_rate_over_all() {
        let second = Duration::from_secs(1);
        let rest = |hits, each_ns| {
            let hits = HitCount::between(&[0, 5], &[hits, 5]);
            rest(second, hits.lost(hits.all, each_ns))
        };
        // What is seldom, or costs little, is looked at all the time.
        assert_eq!(rest(2_000, 10_000), Duration::ZERO);
        assert_eq!(rest(200_000, 130), Duration::ZERO);
        // Three tenths of the loop's time: a second in 10.
        assert_eq!(rest(30_000, 10_000).as_millis(), 9_000);
        // However often it comes, no more than all of its time can be lost.
        assert_eq!(rest(1_000_000, 10_000).as_millis(), 32_333);
    }

    #[test]
    fn hits_of_several_loops_cost_each_its_own() {
        let hits = HitCount::between(&[0, 0, 7], &[300, 100, 7]);
        assert_eq!(
            hits,
            HitCount {
                most: 300,
                all: 400
            }
        );
        // While the breakpoint is taken away there are half as many again.
        assert_eq!(hits.lost(600, 10_000), Duration::from_nanos(4_500_000));
        let none = HitCount::between(&[1], &[1]);
        assert_eq!(none.lost(0, 10_000), Duration::ZERO);
    }

    /// An event of which every window has as many hits, and is said.
    struct SteadyEvent {
        opened: Sender<()>,
        hits: u64,
        each: u64,
    }

    impl WatchedEvent for SteadyEvent {
        type Window = ();

        fn open(&mut self) -> Option<()> {
            self.opened.send(()).ok()
        }

        fn hits(&mut self) -> Vec<u64> {
            self.hits += self.each;
            vec![0, self.hits]
        }

        fn traps(&mut self) -> Option<u64> {
            None
        }

        fn each_ns(&self) -> u64 {
            10_000
        }
    }

    #[test]
    fn windows_follow_one_another_only_where_hits_are_many() {
        for (each, windows) in [(0, 1), (500, 2)] {
            let (opened, count) = mpsc::channel();
            let event = SteadyEvent {
                opened,
                hits: 0,
                each,
            };
            let thread = WindowThread::start(event).expect("a thread");
            for _ in 0..windows {
                count.recv().expect("a window");
            }
            assert!(thread.end() > 0);
            if each == 0 {
                assert_eq!(count.try_iter().count(), 0, "it stays open");
            }
        }
    }
}
