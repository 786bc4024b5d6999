/*!
How late a timer fires: from the time that was asked for until the thread that waits runs, by clock_nanosleep(2) and by
timerfd. The thread's timer slack is 1 ns, so what is late is the machine. While it waits its CPU is idle, unless
another thread spins there (*busy*).
*/

use results::BenchRow;
use rustix::io::{Errno, read};
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::now::now;
use crate::run::{BenchRun, plain};
use crate::samples::{IterationBounds, RowSamples};
use crate::thread::{on_cpu, with_spinners};
use crate::why::why;

/// How long is waited.
const PERIODS: [u64; 3] = [100_000, 1_000_000, 10_000_000];

/// Measures.
pub(crate) fn rows(run: &BenchRun<'_>) -> Vec<BenchRow> {
    let from = run.places.from;
    let mut rows = Vec::new();
    for period in PERIODS {
        for (kind, busy) in [
            ("nanosleep", false),
            ("nanosleep", true),
            ("timerfd", false),
        ] {
            let row = BenchRow::new(format!("{kind} {}", plain(period))).from(from);
            let row = row.target(if busy { "busy" } else { "idle" });
            run.say(&row);
            let bounds = run.bounds;
            let spinners = [from];
            let spinners: &[u32] = if busy { &spinners } else { &[] };
            let measured = on_cpu(from, || {
                let row = with_spinners(spinners, |_| match kind {
                    "timerfd" => by_timerfd(bounds, row.clone(), period),
                    _ => by_sleep(bounds, row.clone(), period),
                })?;
                // On a busy CPU the wait for it is what is measured.
                Ok(match busy {
                    true => BenchRow {
                        waited_ns: None,
                        preempted: None,
                        ..row
                    },
                    false => row,
                })
            });
            rows.push(measured.unwrap_or_else(|why| row.missing(why)));
        }
    }
    rows
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
    }
}

fn by_sleep(bounds: IterationBounds<'_>, row: BenchRow, period: u64) -> Result<BenchRow, String> {
    let mut samples = RowSamples::new(bounds);
    while samples.go_on() {
        let due = now().saturating_add(period);
        loop {
            match clock_nanosleep_absolute(ClockId::Monotonic, &timespec(due)) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(format!("clock_nanosleep failed: {}", why(&error))),
            }
        }
        samples.add(due, now().saturating_sub(due));
    }
    Ok(samples.row(row))
}

fn by_timerfd(bounds: IterationBounds<'_>, row: BenchRow, period: u64) -> Result<BenchRow, String> {
    let failed = |error: Errno| format!("timerfd failed: {}", why(&error));
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).map_err(failed)?;
    let mut samples = RowSamples::new(bounds);
    while samples.go_on() {
        let due = now().saturating_add(period);
        let once = Itimerspec {
            it_interval: timespec(0),
            it_value: timespec(due),
        };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once).map_err(failed)?;
        let mut fired = [0; 8];
        loop {
            match read(&timer, &mut fired) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        samples.add(due, now().saturating_sub(due));
    }
    Ok(samples.row(row))
}
