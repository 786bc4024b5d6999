/*!
How long it takes from the call that wakes a thread until that thread runs, by futex, pipe and eventfd.

A *round trip* is a ping-pong: both threads sleep in turn, and a round trip has two wake-ups. In the other rows the
waking thread never sleeps: it waits, awake, until the other has slept for a while, and the woken thread reads the clock
when it runs. After a short while a CPU that polls before it halts, or a host that polls for a halted vCPU, is still at
it; after a long one nobody polls any more. On a *busy* target another thread spins on that CPU, and the scheduler has
to take it away.
*/

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use results::BenchRow;

use crate::bell::{Bell, KINDS};
use crate::now::now;
use crate::run::{BenchRun, plain};
use crate::samples::{IterationBounds, RowSamples};
use crate::thread::{ANSWERS, MEASURES, RaiseAtEnd, joined, on_cpu, pinned, with_spinners};

/// Measures.
pub(crate) fn rows(run: &BenchRun<'_>, short_ns: u64, idle_ns: u64) -> Vec<BenchRow> {
    let from = run.places.from;
    let mut rows = Vec::new();
    let mut add = |row: BenchRow, measured: &dyn Fn(BenchRow) -> Result<BenchRow, String>| {
        run.say(&row);
        rows.push(measured(row.clone()).unwrap_or_else(|why| row.missing(why)));
    };
    let bounds = run.bounds;
    if run.places.targets.is_empty() {
        for kind in KINDS {
            let row = BenchRow::new(format!("{kind} round trip"));
            let row = row.from(from).to(from);
            add(row, &|row| round_trips(bounds, row, kind, from, from));
        }
        let others =
            BenchRow::new("another CPU").missing("there is one CPU alone that may be used");
        rows.push(others);
        return rows;
    }
    for to in &run.places.targets {
        let to = to.cpu;
        for kind in KINDS {
            let row = BenchRow::new(format!("{kind} round trip"))
                .from(from)
                .to(to);
            add(row, &|row| round_trips(bounds, row, kind, from, to));
            let row = || BenchRow::new(kind).from(from).to(to);
            add(row().target(&format!("idle {}", plain(short_ns))), &|row| {
                one_way(bounds, row, kind, (from, to), short_ns)
            });
            add(row().target(&format!("idle {}", plain(idle_ns))), &|row| {
                one_way(bounds, row, kind, (from, to), idle_ns)
            });
            add(row().target("busy"), &|row| {
                with_spinners(&[to], |_| {
                    one_way(bounds, row.clone(), kind, (from, to), short_ns)
                })
            });
        }
    }
    rows
}

/// Rings when it is dropped, so that who waits ends whatever happens here.
struct RingAtEnd<'a>(&'a Bell, &'a AtomicBool);

impl Drop for RingAtEnd<'_> {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Release);
        self.0.ring();
    }
}

/// Measures wake-ups to and fro.
fn round_trips(
    bounds: IterationBounds<'_>,
    row: BenchRow,
    kind: &str,
    from: u32,
    to: u32,
) -> Result<BenchRow, String> {
    let (ping, pong) = (Bell::new(kind)?, Bell::new(kind)?);
    let over = AtomicBool::new(false);
    let (ping, pong, over) = (&ping, &pong, &over);
    std::thread::scope(|scope| {
        let answers = pinned(scope, to, ANSWERS, move || {
            let _end = RingAtEnd(pong, over);
            loop {
                ping.wait()?;
                if over.load(Ordering::Acquire) {
                    return Ok(());
                }
                pong.ring();
            }
        })?;
        let asks = pinned(scope, from, MEASURES, move || {
            let _end = RingAtEnd(ping, over);
            let mut samples = RowSamples::new(bounds);
            while samples.go_on() {
                let begin = now();
                ping.ring();
                pong.wait()?;
                if over.load(Ordering::Acquire) {
                    break;
                }
                samples.add(begin, now().saturating_sub(begin));
            }
            let row = samples.row(row);
            // Two threads of one CPU wait for each other, which is what is measured.
            Ok(match from == to {
                true => BenchRow {
                    waited_ns: None,
                    preempted: None,
                    ..row
                },
                false => row,
            })
        });
        let done = match asks {
            Ok(asks) => joined(asks),
            Err(why) => {
                drop(RingAtEnd(ping, over));
                Err(why)
            }
        };
        joined(answers)?;
        done
    })
}

/// What both threads of a one-way wake-up see.
struct WakeShare {
    bell: Bell,
    /// When it was rung.
    rung_ns: AtomicU64,
    /// How often the woken thread has woken.
    woken: AtomicU64,
    /// Whether it needs no more, or has failed.
    enough: AtomicBool,
    /// Whether it is to end.
    over: AtomicBool,
}

/// Measures wake-ups in one direction, of a thread that has slept for a while.
fn one_way(
    bounds: IterationBounds<'_>,
    row: BenchRow,
    kind: &str,
    (from, to): (u32, u32),
    pause_ns: u64,
) -> Result<BenchRow, String> {
    let shared = &WakeShare {
        bell: Bell::new(kind)?,
        rung_ns: AtomicU64::new(0),
        woken: AtomicU64::new(0),
        enough: AtomicBool::new(false),
        over: AtomicBool::new(false),
    };
    on_cpu(from, || {
        std::thread::scope(|scope| {
            let sleeper = pinned(scope, to, ANSWERS, move || sleep(bounds, row, shared));
            let end = RingAtEnd(&shared.bell, &shared.over);
            let sleeper = sleeper?;
            let mut rung = 0;
            while !shared.enough.load(Ordering::Acquire) && !sleeper.is_finished() {
                let until = now().saturating_add(pause_ns);
                while now() < until {
                    std::hint::spin_loop();
                }
                shared.rung_ns.store(now(), Ordering::Release);
                shared.bell.ring();
                rung += 1;
                while shared.woken.load(Ordering::Acquire) < rung
                    && !shared.enough.load(Ordering::Acquire)
                {
                    std::hint::spin_loop();
                }
            }
            drop(end);
            joined(sleeper)
        })
    })
}

/// Sleeps, and says how long ago it was woken.
fn sleep(
    bounds: IterationBounds<'_>,
    row: BenchRow,
    shared: &WakeShare,
) -> Result<BenchRow, String> {
    let _enough = RaiseAtEnd(&shared.enough);
    let mut samples = RowSamples::new(bounds);
    while samples.go_on() {
        shared.bell.wait()?;
        let awake = now();
        if shared.over.load(Ordering::Acquire) {
            break;
        }
        let rung = shared.rung_ns.load(Ordering::Acquire);
        samples.add(rung, awake.saturating_sub(rung));
        shared.woken.fetch_add(1, Ordering::Release);
    }
    // A sleeper waits for its CPU, on a busy one that is what is measured: its own waits are no noise.
    Ok(BenchRow {
        waited_ns: None,
        preempted: None,
        ..samples.row(row)
    })
}
