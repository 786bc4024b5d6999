/*!
How long an inter-processor interrupt takes until its function has run on the target CPU, as `smp_call_function_single`
and `smp_call_function_many` wait for it, without a kernel module.

A **busy** target runs a thread of this process that spins in user space, and the call is membarrier(2): the kernel
sends an IPI to the CPUs that run a thread of the calling process, and waits until all have passed a barrier
(`membarrier_private_expedited` of `kernel/sched/membarrier.c`). One CPU is named by `MEMBARRIER_CMD_FLAG_CPU` (Linux
5.10); before that, and for all CPUs, it goes to whoever spins.

To an **idle** CPU membarrier sends nothing, since none of the process's threads runs there. There the call reads a
counter that is open on that CPU: the kernel has the CPU read it, and waits (`perf_event_read` of
`kernel/events/core.c`). The counter counts nothing (`PERF_COUNT_SW_DUMMY`). It takes CAP_PERFMON, or
`kernel.perf_event_paranoid` of 0 or less.

What both take without any IPI has a row of its own.
*/

use results::BenchRow;
use rings::{EventSource, RingAttr, RingEvent};
use rustix::thread::{MembarrierCommand, membarrier};

use crate::now::now;
use crate::place::OTHER_NODE;
use crate::run::BenchRun;
use crate::samples::{IterationBounds, RowSamples};
use crate::thread::{on_cpu, with_spinners};
use crate::why::why;
use crate::{call, interrupts};

/// Most CPUs whose pairs are measured.
pub const MAX_PAIRED: usize = 64;
/// Why the kernel sends fewer interrupts than there are calls.
const BUSY: &str =
    "the target's thread was off its CPU when the others were made, and those took no IPI";
const IDLE: &str = "a CPU that polls in its idle loop is woken without one (TIF_POLLING_NRFLAG)";

/// Measures.
pub(crate) fn rows(run: &BenchRun<'_>, pairs: bool, idle_ns: u64) -> Vec<BenchRow> {
    let from = run.places.from;
    let barrier = Barrier::register();
    let paused = format!("idle {}", crate::run::plain(idle_ns));
    let states = |place: &str, from: u32, to: u32| {
        let row = BenchRow::new(place).from(from).to(to);
        vec![
            busy(run, &barrier, row.clone().target("busy"), from, &[to]),
            idle(run, row.clone().target("idle"), from, to, 0),
            idle(run, row.target(&paused), from, to, idle_ns),
        ]
    };
    let mut rows = vec![
        busy(
            run,
            &barrier,
            BenchRow::new("no IPI").target("busy").from(from),
            from,
            &[],
        ),
        idle(
            run,
            BenchRow::new("no IPI").target("idle").from(from),
            from,
            from,
            0,
        ),
    ];
    for target in &run.places.targets {
        rows.extend(states(target.place, from, target.cpu));
    }
    if run.places.others.is_empty() {
        rows.push(BenchRow::new("another CPU").missing("there is one CPU alone that may be used"));
        return rows;
    }
    if !run.places.targets.iter().any(|to| to.place == OTHER_NODE) {
        rows.push(
            BenchRow::new(OTHER_NODE)
                .missing("all CPUs are of one NUMA node, as far as the kernel says"),
        );
    }
    let all = BenchRow::new("all others").from(from).to(run.others());
    rows.push(busy(
        run,
        &barrier,
        all.target("busy"),
        from,
        &run.places.others,
    ));
    if pairs {
        let cpus: Vec<u32> = std::iter::once(from)
            .chain(run.places.others.iter().copied())
            .collect();
        for from in &cpus {
            for to in cpus.iter().filter(|to| *to != from) {
                let row = BenchRow::new("pair").from(*from).to(to);
                rows.push(busy(
                    run,
                    &barrier,
                    row.clone().target("busy"),
                    *from,
                    &[*to],
                ));
                rows.push(idle(run, row.target("idle"), *from, *to, 0));
            }
        }
    }
    rows
}

/// How the barrier is asked for.
#[derive(Debug)]
struct Barrier {
    /// Why not.
    refused: Option<String>,
    /// Whether one CPU can be named.
    by_cpu: bool,
}

impl Barrier {
    /// Notifies the kernel that this process will ask.
    fn register() -> Barrier {
        let all = membarrier(MembarrierCommand::RegisterPrivateExpedited);
        let one = membarrier(MembarrierCommand::RegisterPrivateExpeditedRseq);
        Barrier {
            refused: all
                .err()
                .map(|error| format!("membarrier is not allowed or not there: {}", why(&error))),
            by_cpu: one.is_ok() && call::barrier_on(0).is_ok(),
        }
    }

    fn pass(&self, one: Option<u32>) -> std::io::Result<()> {
        match one {
            Some(cpu) if self.by_cpu => call::barrier_on(cpu),
            _ => Ok(membarrier(MembarrierCommand::PrivateExpedited)?),
        }
    }
}

/// Measures calls, each when it may begin.
fn calls(
    bounds: IterationBounds<'_>,
    row: BenchRow,
    ready: impl Fn(&RowSamples<'_>) -> bool,
    call: impl Fn() -> std::io::Result<()>,
) -> Result<(BenchRow, u64), String> {
    let mut samples = RowSamples::new(bounds);
    while samples.go_on() && ready(&samples) {
        let begin = now();
        call().map_err(|error| format!("the call failed: {}", why(&error)))?;
        samples.add(begin, now().saturating_sub(begin));
    }
    Ok((samples.row(row), samples.made()))
}

/// Measures calls to CPUs that run a thread of this process.
fn busy(run: &BenchRun<'_>, barrier: &Barrier, row: BenchRow, from: u32, to: &[u32]) -> BenchRow {
    run.say(&row);
    if let Some(why) = &barrier.refused {
        return row.missing(why);
    }
    let one = match to {
        [cpu] => Some(*cpu),
        _ => None,
    };
    let before = interrupts::function_calls(to);
    let bounds = run.bounds;
    let measured = on_cpu(from, || {
        with_spinners(to, |spinners| {
            // A thread that is off its CPU gets no IPI, and the call would be a short one.
            let ready = |samples: &RowSamples<'_>| spinners.all_run(&|| samples.is_over(now()));
            calls(bounds, row.clone(), ready, || barrier.pass(one))
        })
    });
    match measured {
        Ok((done, made)) => {
            let wanted = made.saturating_mul(to.len() as u64);
            counted(done, before, to, wanted, BUSY)
        }
        Err(why) => row.missing(why),
    }
}

/// Measures calls to a CPU that runs nothing of this process.
fn idle(run: &BenchRun<'_>, row: BenchRow, from: u32, to: u32, pause_ns: u64) -> BenchRow {
    run.say(&row);
    let Ok(cpu) = i32::try_from(to) else {
        return row.missing("there is no such CPU");
    };
    let opened = RingEvent::open(&RingAttr::each(EventSource::Nothing), cpu);
    let event = match opened {
        Ok(event) => event,
        Err(error) => {
            return row.missing(format!(
                "a counter on CPU {to} cannot be opened ({}): it takes root, CAP_PERFMON or \
                 kernel.perf_event_paranoid=0",
                why(&error)
            ));
        }
    };
    if let Err(error) = event.enable(true) {
        return row.missing(format!("the counter cannot be started: {}", why(&error)));
    }
    let before = interrupts::function_calls(&[to]);
    let bounds = run.bounds;
    let measured = on_cpu(from, || {
        let ready = |_: &RowSamples<'_>| {
            let until = now().saturating_add(pause_ns);
            while now() < until {
                std::hint::spin_loop();
            }
            true
        };
        calls(bounds, row.clone(), ready, || event.counts().map(drop))
    });
    match measured {
        Ok((done, _)) if from == to => done,
        Ok((done, made)) => counted(done, before, &[to], made, IDLE),
        Err(why) => row.missing(why),
    }
}

/// Adds how many interrupts the kernel has counted meanwhile, and says so where they are fewer than the calls. They may
/// be more: others have functions called there, too.
fn counted(
    row: BenchRow,
    before: Option<u64>,
    cpus: &[u32],
    calls: u64,
    because: &str,
) -> BenchRow {
    if cpus.is_empty() {
        return row;
    }
    let after = interrupts::function_calls(cpus);
    let (Some(before), Some(after)) = (before, after) else {
        return row;
    };
    let interrupts = after.saturating_sub(before);
    let few = interrupts < calls - calls / 20;
    let row = BenchRow {
        interrupts: Some(interrupts),
        ..row
    };
    if few && row.missing.is_none() {
        return row.note(format!(
            "{interrupts} interrupts where {calls} were to be expected: {because}"
        ));
    }
    row
}
