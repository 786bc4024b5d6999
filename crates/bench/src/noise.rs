//! How quiet a CPU is: a thread that does nothing but read a clock sees what others take from it.

use std::fs;
use std::sync::atomic::Ordering;

use results::Noise;

use crate::now::now;
use crate::samples::IterationBounds;
use crate::thread::on_cpu;

/// How long a CPU is watched.
const WATCH_NS: u64 = 50_000_000;
/// Reads that are further apart than this lost their CPU in between: to an interrupt, another thread, or the
/// hypervisor.
const GAP_NS: u64 = 1_000;
/// `/proc/stat` counts in this (USER_HZ is 100 on every architecture that Linux calls x86 or arm64).
const TICK_NS: u64 = 10_000_000;

/// Watches a CPU.
pub(crate) fn watch(cpu: u32, bounds: IterationBounds<'_>) -> Noise {
    let stop = bounds.stop;
    let watched = on_cpu(cpu, || {
        let mut noise = Noise::default();
        let begin = now();
        let (mut last, mut lost) = (begin, 0u64);
        while last.saturating_sub(begin) < WATCH_NS && !stop.load(Ordering::Relaxed) {
            let read = now();
            let gap = read.saturating_sub(last);
            if gap > GAP_NS {
                noise.gaps += 1;
                lost = lost.saturating_add(gap);
                noise.longest_gap_ns = noise.longest_gap_ns.max(gap);
            }
            last = read;
        }
        noise.watched_ns = last.saturating_sub(begin);
        noise.lost_share = lost as f64 / noise.watched_ns.max(1) as f64;
        Ok(noise)
    });
    Noise {
        cpu: u64::from(cpu),
        ..watched.unwrap_or_default()
    }
}

/// Returns how long the hypervisor ran something else while this machine had work, since it started.
pub(crate) fn steal_ns() -> Option<u64> {
    steal(&fs::read_to_string("/proc/stat").ok()?)
}

/// Reads `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5)).
fn steal(text: &str) -> Option<u64> {
    let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: u64 = all.split_ascii_whitespace().nth(7)?.parse().ok()?;
    Some(ticks.saturating_mul(TICK_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number() {
        let text = "cpu  1 2 3 4 5 6 7 80 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(steal(text), Some(800_000_000));
        assert_eq!(steal("cpu  1 2\n"), None);
        assert_eq!(steal(""), None);
    }
}
