//! A cell of a table, and the things that it counts.

use analysis::{
    CounterColumn, Merge, SchedColumn, SchedLatencies, StateSpans, Stats, Study, VcpuRow, Vcpus,
    VcpusReport,
};
use anyhow::{Result, bail};
use event::{Event, Kind, NONE, Quality};
use model::State;
use paths::Paths;
use render::spans::state_name;
use session::{CellPart, CellParts, GuestPairing, OpenRecording, read_path_of};

use crate::commands::explain::single::SingleEvent;
use crate::usage::Usage;

/// What a cell is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellName<'a> {
    pub row: &'a str,
    pub column: Option<&'a str>,
    /// What the guest did meanwhile, as tables by that call it.
    pub task: Option<&'a str>,
    /// Whether filters choose events, which no other tool does.
    pub filtered: bool,
}

/// A cell, and what it counts.
#[derive(Debug)]
pub(super) struct FoundCell {
    /// The row and the column, as tables call them.
    pub row: String,
    pub column: String,
    /// What the table has, where that is a time.
    pub value_ns: Option<u64>,
    /// What it has where that is neither a time nor how many things there are, and what it is an amount of.
    pub amount: Option<(u64, &'static str)>,
    /// What one and several of the things that are counted are called.
    pub nouns: (&'static str, &'static str),
    /// What is counted, and how; a sentence each.
    pub rule: Vec<String>,
    /// The command of another tool that counts the same; `None` where there is none.
    pub elsewhere: Option<String>,
    pub parts: CellParts,
    /// How many the table has counted that have no events here.
    pub without_events: u64,
    pub events: PartEvents,
    pub quality: Quality,
}

/// Which events begin and end the things that a cell counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum PartEvents {
    /// An exit or an access of a thread, from an event of the first kinds to one of the second.
    Exits {
        begin: &'static [Kind],
        end: &'static [Kind],
    },
    /// A wait of a task, from its wake-up or preemption to the switch to it.
    Waits(i32),
    /// What the kernel says that a task ran.
    Runtime(i32),
    /// A vCPU's state: events of its thread, and those of the scheduler about it.
    State(i32),
    /// Events that count by themselves, each at the time of its part.
    Single(SingleEvent),
    /// Readings of a thread's counters, each at the time of its part.
    Readings(i32, CounterColumn),
    /// Events of whatever kind; the last one is of the part's thread.
    Any,
}

impl PartEvents {
    /// Returns the kinds of events that may be meant.
    pub(super) fn wants(self, kind: Kind) -> bool {
        match self {
            PartEvents::Exits { begin, end } => begin.contains(&kind) || end.contains(&kind),
            PartEvents::Waits(_) | PartEvents::Runtime(_) => kind.is_sched(),
            PartEvents::State(_) | PartEvents::Single(_) | PartEvents::Any => true,
            PartEvents::Readings(..) => false,
        }
    }

    /// Returns whether an event is itself what counts, so that none begins it.
    pub(super) fn is_single(self) -> bool {
        matches!(
            self,
            PartEvents::Single(_) | PartEvents::Runtime(_) | PartEvents::Readings(..)
        )
    }

    /// Returns whether any event of a part's time may be what begins or ends it, where none is of its thread: what
    /// another task does ends a wait behind it.
    pub(super) fn takes_any(self) -> bool {
        matches!(self, PartEvents::State(_) | PartEvents::Any)
    }

    /// Returns whether an event begins a part that begins at its time.
    pub(super) fn begins(self, event: &Event<'_>, part: &CellPart) -> bool {
        use event::Data;
        match self {
            PartEvents::Exits { begin, .. } => {
                event.tid == part.tid && begin.contains(&event.ty.kind)
            }
            PartEvents::Waits(tid) => match event.data() {
                Data::SchedSwitch(switch) => switch.prev_tid == tid,
                Data::SchedWaking(woken) | Data::SchedWakeup(woken) => woken.tid == tid,
                _ => false,
            },
            // It is the event itself that counts.
            PartEvents::Runtime(_) | PartEvents::Single(_) | PartEvents::Readings(..) => false,
            PartEvents::State(tid) => is_about(event, tid),
            PartEvents::Any => event.tid == part.begin_tid,
        }
    }

    /// Returns whether an event ends a part that ends at its time.
    pub(super) fn ends(self, event: &Event<'_>, part: &CellPart) -> bool {
        use event::Data;
        match self {
            PartEvents::Exits { end, .. } => event.tid == part.tid && end.contains(&event.ty.kind),
            PartEvents::Waits(tid) => {
                matches!(event.data(), Data::SchedSwitch(switch) if switch.next_tid == tid)
            }
            PartEvents::Runtime(tid) => {
                matches!(event.data(), Data::SchedStatRuntime(ran) if ran.tid == tid)
            }
            PartEvents::State(tid) => is_about(event, tid),
            PartEvents::Single(single) => event.tid == part.tid && single.is(event),
            PartEvents::Readings(..) => false,
            PartEvents::Any => event.tid == part.tid,
        }
    }
}

/// Returns whether an event changes what a vCPU's thread does: its own, or one of the scheduler about it.
fn is_about(event: &Event<'_>, tid: i32) -> bool {
    use event::Data;
    match event.data() {
        Data::SchedSwitch(switch) => switch.prev_tid == tid || switch.next_tid == tid,
        Data::SchedWaking(woken) | Data::SchedWakeup(woken) => woken.tid == tid,
        _ => event.tid == tid,
    }
}

/// Returns what a column of times has of a distribution; `None` of a column that counts.
pub(super) fn amount(stats: &Stats, column: &str) -> Option<u64> {
    let percentile = |p: f64| stats.has_percentiles().then(|| stats.percentile(p));
    match column {
        "time" | "total" => Some(stats.total()),
        "mean" => stats.total().checked_div(stats.count()),
        "min" => Some(stats.min()),
        "max" => Some(stats.max()),
        "p50" => percentile(0.5),
        "p90" => percentile(0.9),
        "p99" => percentile(0.99),
        _ => None,
    }
}

/// Leaves the longest, or the shortest.
fn only(parts: &mut CellParts, better: impl Fn(u64, u64) -> bool) {
    let ns = |part: &CellPart| part.end.saturating_sub(part.start);
    let best = parts.parts.iter().copied().reduce(|best, one| {
        if better(ns(&one), ns(&best)) {
            one
        } else {
            best
        }
    });
    parts.parts = best.into_iter().collect();
}

/// Leaves what a column is about: one of the things where it is the longest or shortest.
pub(super) fn choose(parts: &mut CellParts, column: &str) {
    match column {
        "max" => only(parts, |one, best| one > best),
        "min" => only(parts, |one, best| one < best),
        _ => {}
    }
}

/// Returns the column that somebody means, of those that there are.
pub(super) fn column<'c>(
    asked: Option<&str>,
    columns: &[&'c str],
    command: &str,
) -> Result<&'c str> {
    let Some(asked) = asked else {
        return Ok(columns[0]);
    };
    let asked = asked.strip_suffix("_ns").unwrap_or(asked);
    let found = columns.iter().find(|one| one.eq_ignore_ascii_case(asked));
    found.copied().ok_or_else(|| {
        let near = words::did_you_mean(asked, columns.iter().copied());
        Usage::error(format!(
            "{command} has no column '{asked}' to explain{near}; there are {}",
            columns.join(", ")
        ))
    })
}

/// Finds the waits or the run times of a task.
pub(super) fn sched(recording: &OpenRecording<'_>, cell: CellName<'_>) -> Result<FoundCell> {
    let columns = ["switches", "mean", "max", "woken", "preempted", "runtime"];
    let column = column(cell.column, &columns, "sched")?;
    let Ok(tid) = cell.row.parse::<i32>() else {
        return Err(Usage::error(format!(
            "'{}' is no thread id; 'trapline sched' prints them behind the names",
            cell.row
        )));
    };
    let what = match column {
        "woken" => SchedColumn::Woken,
        "preempted" => SchedColumn::Preempted,
        "runtime" => SchedColumn::Runtime,
        _ => SchedColumn::Delays,
    };
    let paired = GuestPairing::default();
    let mut question = recording.question(&paired);
    question.all_threads();
    let shared = question.share(SchedLatencies::new());
    let looked_at = shared.clone();
    let (answers, mut parts) = question.walk_cell(|study: &Study| {
        let threads = study.walked().machine.threads();
        looked_at.get().cell(threads, tid, what)
    });
    let sched = std::mem::take(&mut *shared.get_mut());
    recording.require_switches(sched.saw_switches())?;
    let threads = answers.walked().machine.threads();
    let report = sched.report(threads, Merge::No, &|_, _| true, recording.functions());
    let Some(row) = report.rows.iter().find(|row| row.tid == tid) else {
        bail!(
            "{}: no row of sched is of thread {tid}; 'trapline sched' prints all",
            recording.name()
        );
    };
    let rule = match what {
        SchedColumn::Delays => {
            "A delay lasts from the wake-up (sched_wakeup), or from the switch away from the task while it was \
             runnable, to the switch to it, as perf 6.1 counts it."
        }
        SchedColumn::Woken => "A wait lasts from the wake-up to the switch to the task.",
        SchedColumn::Preempted => {
            "A wait lasts from the switch away from the task while it was runnable to the switch to it."
        }
        SchedColumn::Runtime => {
            "Each sched_stat_runtime event says how long the task ran since the last one."
        }
    };
    let perf = recording.reader().is_perf() && !cell.filtered;
    let known = !matches!(what, SchedColumn::Woken | SchedColumn::Preempted);
    choose(&mut parts, column);
    Ok(FoundCell {
        row: format!("{}:{tid}", row.comm),
        column: column.to_owned(),
        value_ns: match column {
            "woken" => Some(row.woken_waits.total()),
            "preempted" => Some(row.preempted.total()),
            "runtime" => Some(row.runtime_ns),
            _ => amount(&row.delays, column),
        },
        amount: None,
        nouns: match what {
            SchedColumn::Runtime => ("event", "events"),
            SchedColumn::Delays => ("delay", "delays"),
            SchedColumn::Woken | SchedColumn::Preempted => ("wait", "waits"),
        },
        rule: vec![rule.to_owned()],
        elsewhere: (perf && known).then(|| {
            format!(
                "perf sched latency -p -i {} (perf up to 6.8)",
                super::unpacked(recording.name())
            )
        }),
        parts,
        without_events: 0,
        events: match what {
            SchedColumn::Runtime => PartEvents::Runtime(tid),
            _ => PartEvents::Waits(tid),
        },
        quality: answers.quality.clone(),
    })
}

/// Finds the instances of a path.
pub(super) fn paths(recording: &OpenRecording<'_>, cell: CellName<'_>) -> Result<FoundCell> {
    let columns = ["count", "total", "mean", "max", "min", "p50", "p90", "p99"];
    let column = column(cell.column, &columns, "paths")?;
    let path = read_path_of("ROW", cell.row)?;
    let row = path.name.clone();
    let paired = GuestPairing::default();
    let mut question = recording.question(&paired);
    let mut follower = Paths::new(vec![path]);
    follower.only(recording.instances());
    recording.locate_with(&mut follower, &[]);
    follower.list();
    let shared = question.share(follower);
    let (answers, mut parts) = question.walk_parts(|study, _, found| {
        let threads = study.walked().machine.threads();
        let tid = |slot: u32| threads.at(slot).map_or(NONE, |(tid, _)| tid);
        for one in shared.get_mut().take_listed() {
            if let (Some(first), Some(last)) = (one.reached.first(), one.reached.last()) {
                found.push(CellPart {
                    start: first.time,
                    end: last.time,
                    begin_tid: tid(first.thread),
                    tid: tid(last.thread),
                });
            }
        }
    });
    let counted = shared.get().report(answers.walked().machine, &|_| None);
    recording.require_choice(counted.iter().any(|report| report.count > 0))?;
    let count: u64 = counted
        .iter()
        .map(|report| report.count)
        .fold(0, u64::saturating_add);
    let without_events = count.saturating_sub(parts.sum.count);
    choose(&mut parts, column);
    Ok(FoundCell {
        row,
        column: column.to_owned(),
        value_ns: counted
            .first()
            .and_then(|report| amount(&report.total, column)),
        amount: None,
        nouns: ("instance", "instances"),
        rule: vec![
            "An instance lasts from the event of its first step to that of its last one; 'trapline paths --instance N' \
             shows all steps of one."
                .to_owned(),
        ],
        elsewhere: None,
        parts,
        without_events,
        events: PartEvents::Any,
        quality: answers.quality,
    })
}

/// Returns the only vCPU that has a number.
fn vcpu_row<'r>(report: &'r VcpusReport, name: &str, row: &str) -> Result<&'r VcpuRow> {
    let Ok(number) = row.parse::<u32>() else {
        return Err(Usage::error(format!(
            "'{}' is no number of a vCPU; 'trapline vcpus' prints them",
            row
        )));
    };
    let rows = report.rows.iter();
    let rows: Vec<_> = rows
        .filter(|row| row.vcpu == number && row.others == 0)
        .collect();
    let [row] = rows[..] else {
        match rows.is_empty() {
            true => bail!("{name}: has no vCPU {number}; 'trapline vcpus' prints all"),
            false => {
                let vms = rows.iter().map(|row| row.vm.clone());
                let vms: Vec<String> = vms.collect();
                return Err(Usage::error(format!(
                    "{name}: {} VMs have a vCPU {number}: choose one with --vm ({})",
                    rows.len(),
                    words::list(&vms)
                )));
            }
        }
    };
    Ok(row)
}

/// Finds the time that a vCPU spent in a state.
pub(super) fn vcpus(recording: &OpenRecording<'_>, cell: CellName<'_>) -> Result<FoundCell> {
    let names = State::ALL.map(state_name);
    let Some(asked) = cell.column else {
        return Err(Usage::error(format!(
            "of vcpus a state is explained: name one of {} behind the vCPU's number",
            names.join(", ")
        )));
    };
    let column = column(Some(asked), &names, "vcpus")?;
    let state = State::ALL
        .into_iter()
        .find(|one| state_name(*one) == column);
    let state = state.unwrap_or(State::Unknown);
    let paired = GuestPairing::default();
    let mut question = recording.question(&paired);
    let vcpus = question.add(Vcpus::new(recording.window()));
    let answers = question.walk();
    let report = answers.take(vcpus).report(&answers.walked());
    recording.require_exits(!report.rows.is_empty())?;
    let row = vcpu_row(&report, recording.name(), cell.row)?;
    let (tid, called) = (row.tid, row.called.clone());
    // As columns have it, sleep during an exit is a part of its handling.
    let states = match state {
        State::Kernel => vec![state, State::KernelBlocked],
        State::User => vec![state, State::UserBlocked],
        _ => vec![state],
    };
    let counted = states
        .iter()
        .map(|one| row.times.get(*one))
        .fold(0u64, u64::saturating_add);
    let seen = answers.walked().machine.seen();
    let mut question = recording.question(&paired);
    let shared = question.share(StateSpans::new(recording.window(), tid, states, seen));
    let (_, mut parts) = question.walk_parts(|_, _, found| {
        let spans: Vec<(u64, u64)> = shared.get_mut().drain().collect();
        for (start, end) in spans {
            found.push(CellPart {
                start,
                end,
                begin_tid: NONE,
                tid: NONE,
            });
        }
    });
    parts.parts.sort_by_key(|part| (part.end, part.start));
    let missing = counted.saturating_sub(parts.sum.total_ns);
    let mut rule = vec![
        "A vCPU is in one state at every instant. A state lasts from the event that shows that it began to the event \
         that shows another one."
            .to_owned(),
    ];
    if matches!(state, State::Kernel | State::Poll | State::Halted) && seen.halts {
        rule.push(
            "A halt poll began as long before its event (kvm_halt_poll_ns, kvm_vcpu_wakeup) as that says, so no event \
             stands where it began."
                .to_owned(),
        );
    }
    if missing > 0 {
        rule.push(format!(
            "The row has {missing} ns more: what went on when the recording ended."
        ));
    }
    Ok(FoundCell {
        row: called,
        column: column.to_owned(),
        value_ns: Some(counted),
        amount: None,
        nouns: ("span", "spans"),
        rule,
        elsewhere: None,
        parts,
        without_events: 0,
        events: PartEvents::State(tid),
        quality: answers.quality,
    })
}
