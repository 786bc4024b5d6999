/*!
What an event costs the thread that makes it, measured on this machine: the same work with the event on and off.

The work is a signal that the process sends itself and ignores, since it does nothing else and each makes one event
(`signal:signal_generate`, `kernel/signal.c`). Its record is about as long as that of a VM-exit. Caches are warm here as
they are not behind a VM-exit, so the real cost is this much or more.
*/

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use std::{fs, io};

use rings::{EventSource, Ring, RingAttr, RingEvent, format, sample};
use rustix::process::{Signal, getpid, kill_process};
use rustix::thread::{CpuSet, gettid, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::pairs::KeepingProbe;
use crate::plan::{PlannedEvent, ProbeKind};
use crate::probes::Probes;
use crate::summary::{RecordSummary, RecordedCount};
use crate::tracefs::{Tracefs, Tracepoint};
use crate::{RecordError, reasons};

/// The event that is measured.
const EVENT: (&str, &str) = ("signal", "signal_generate");
/// Signals of a batch; the ring has room for the events of one.
const BATCH: u32 = 64;
const RING: usize = 64 << 10;
/// The function that a signal goes through: the system call, under the name that the architecture gives it
/// (`arch/*/include/asm/syscall_wrapper.h`).
const PROBED: &str = if cfg!(target_arch = "aarch64") {
    "__arm64_sys_kill"
} else {
    "__x64_sys_kill"
};
/// Batches with the event on and off, in pairs: as many as fit into a time, and at least and at most so many. A system
/// call of an emulated CPU takes a hundred times that of a real one.
const LEAST: usize = 5;
const MOST: usize = 101;
const TIME: Duration = Duration::from_millis(10);
/// A call chain that is as deep as chains are.
const CHAIN: u64 = sample::IP | sample::CALLCHAIN | sample::PERIOD;

/// How an event is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingForm {
    /// Its record goes to the ring.
    Whole,
    /// With the kernel's call chain.
    Chain,
    /// A filter leaves it out.
    FilteredOut,
    /// A breakpoint in a program makes it.
    Trap,
}

/// What events cost here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct EventCosts {
    /// An event whose record goes to the ring: the median, ns.
    pub event_ns: u64,
    /// One with the kernel's call chain, ns; `None` where it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain_ns: Option<u64>,
    /// One of which a program in the kernel keeps each thread's last, ns; `None` where it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_ns: Option<u64>,
    /// A probe of a function of the kernel, and of its return, ns; `None` where it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kprobe_ns: Option<u64>,
    /// See [`EventCosts::kprobe_ns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kretprobe_ns: Option<u64>,
    /// A probe of a function of a program, and of its return, ns; `None` where it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uprobe_ns: Option<u64>,
    /// See [`EventCosts::uprobe_ns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uretprobe_ns: Option<u64>,
    /// The mean over the events of a recording on the CPU where they cost most, where some cost something else than
    /// [`EventCosts::event_ns`], ns; `None` where none does, and before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<u64>,
    /// That CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busiest_cpu: Option<u32>,
    /// The CPU where that was measured.
    pub cpu: u32,
    /// CPU time of the recorder from its start to its end, ns; `None` in a recording that did not end in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorder_ns: Option<u64>,
}

impl EventCosts {
    /// Measures on the CPU where the calling thread runs, in some ten milliseconds for each kind of events that the
    /// recording has: call chains, events of pairs, and probes of these kinds. A probe that cannot be made is not
    /// measured.
    ///
    /// # Errors
    ///
    /// As [`measure`].
    pub fn here(
        tracefs: &Tracefs,
        chains: bool,
        kept: bool,
        probes: &BTreeSet<ProbeKind>,
    ) -> Result<EventCosts, RecordError> {
        let cpu = u32::try_from(sched_getcpu()).unwrap_or(u32::MAX);
        let chain = || measure(tracefs, RecordingForm::Chain);
        let probe = |kind| match probes.contains(&kind) {
            true => measure_probe(tracefs, kind).ok(),
            false => None,
        };
        Ok(EventCosts {
            event_ns: measure(tracefs, RecordingForm::Whole)?,
            chain_ns: if chains { Some(chain()?) } else { None },
            kept_ns: if kept {
                measure_kept(tracefs).ok()
            } else {
                None
            },
            kprobe_ns: probe(ProbeKind::Kernel),
            kretprobe_ns: probe(ProbeKind::KernelReturn),
            uprobe_ns: probe(ProbeKind::User),
            uretprobe_ns: probe(ProbeKind::UserReturn),
            mean_ns: None,
            busiest_cpu: None,
            cpu,
            recorder_ns: None,
        })
    }

    /// Returns what an event costs, ns: by what it is, where that was measured.
    pub fn of(&self, event: &RecordedCount) -> u64 {
        let chain = self.chain_ns.filter(|_| event.chain);
        let probe = event.probe.and_then(|kind| match kind {
            ProbeKind::Kernel => self.kprobe_ns,
            ProbeKind::KernelReturn => self.kretprobe_ns,
            ProbeKind::User => self.uprobe_ns,
            ProbeKind::UserReturn => self.uretprobe_ns,
        });
        match (self.kept_ns.filter(|_| event.kept), probe) {
            (Some(kept), None) => kept,
            (Some(_), Some(probe)) => probe,
            (None, _) => chain.into_iter().chain(probe).fold(self.event_ns, u64::max),
        }
    }

    /// Returns what events cost by CPU: how many they were, and ns. Samples are none of them.
    pub fn by_cpu(&self, summary: &RecordSummary) -> BTreeMap<u32, (u64, u64)> {
        let mut out: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for event in summary.events.iter().filter(|one| !one.sampled) {
            let each = self.of(event);
            for (cpu, count) in &event.by_cpu {
                let (events, ns) = out.entry(*cpu).or_default();
                *events = events.saturating_add(*count);
                *ns = ns.saturating_add(count.saturating_mul(each));
            }
        }
        out
    }

    /// Returns the same at the end of a recording: the mean over its events, and the CPU time that the process has
    /// taken until now.
    #[must_use]
    pub fn at_end(self, summary: &RecordSummary) -> EventCosts {
        let differs = |one: &RecordedCount| one.count > 0 && self.of(one) != self.event_ns;
        let by_cpu = self.by_cpu(summary).into_iter();
        let busiest = by_cpu.max_by_key(|(_, (_, ns))| *ns);
        let busiest = busiest.filter(|_| summary.events.iter().any(differs));
        EventCosts {
            mean_ns: busiest.map(|(_, (events, ns))| ns / events.max(1)),
            busiest_cpu: busiest.map(|(cpu, _)| cpu),
            recorder_ns: Some(now_ns(ClockId::ProcessCPUTime)),
            ..self
        }
    }

    /// Returns what a recording says of it ([`crate::file::Feature::Trapline`]): JSON.
    pub fn said(&self) -> Vec<u8> {
        serde_json::to_vec(&serde_json::json!({ "cost": self })).unwrap_or_default()
    }
}

/// Lets the calling thread run on one CPU alone.
///
/// # Errors
///
/// Fails where the CPU is off line, or the thread may not run there.
pub fn stay_on(cpu: u32) -> Result<(), RecordError> {
    let mut only = CpuSet::new();
    let number = usize::try_from(cpu).unwrap_or(usize::MAX);
    if number < CpuSet::MAX_CPU {
        only.set(number);
    }
    sched_setaffinity(Some(gettid()), &only).map_err(|_| RecordError::NotMeasured {
        why: "the CPU is off line, or this process may not run there".to_owned(),
    })
}

/// Returns what a signal's event costs the thread that makes it, ns.
///
/// # Errors
///
/// [`RecordError::NotMeasured`] where the kernel has no such event, and as [`measure_event`].
pub fn measure(tracefs: &Tracefs, how: RecordingForm) -> Result<u64, RecordError> {
    let tracepoint = tracefs.event(EVENT.0, EVENT.1)?;
    let tracepoint = tracepoint.ok_or_else(|| RecordError::NotMeasured {
        why: reasons::no_event(EVENT.0),
    })?;
    measure_event(&tracepoint, how)
}

/// Returns what an event that every signal makes costs the thread that makes it, ns: the median of batches with it less
/// that of batches without it.
///
/// # Errors
///
/// [`RecordError::NotMeasured`] where it cannot be opened, and where the kernel counts none.
pub fn measure_event(tracepoint: &Tracepoint, how: RecordingForm) -> Result<u64, RecordError> {
    measure_calls(tracepoint, how, &signal)
}

/// Returns what an event costs that each call of `work` makes, as [`measure_event`].
fn measure_calls(
    tracepoint: &Tracepoint,
    how: RecordingForm,
    work: &dyn Fn() -> io::Result<()>,
) -> Result<u64, RecordError> {
    let failed = |why: String| RecordError::NotMeasured { why };
    // A breakpoint stays where it is as long as its event is open, so what goes without it is measured before that.
    let traps = how == RecordingForm::Trap;
    // What is used for the first time takes longer.
    batch(work).map_err(RecordError::Wait)?;
    let mut off = Vec::new();
    while traps && off.len() < MOST {
        off.push(batch(work).map_err(RecordError::Wait)?);
    }
    let each = RingAttr::each(EventSource::Tracepoint(tracepoint.id));
    let attr = RingAttr {
        sample: each.sample
            | if how == RecordingForm::Chain {
                CHAIN
            } else {
                0
            },
        no_user_chain: how == RecordingForm::Chain,
        read: format::ID,
        ..each
    };
    let opened = RingEvent::open_own(&attr);
    let event = opened.map_err(|error| failed(reasons::not_opened(&error)))?;
    if how == RecordingForm::FilteredOut {
        let filtered = event.filter("sig == 0");
        filtered.map_err(|error| failed(error.to_string()))?;
    }
    let ring = Ring::of(event, RING / rings::page_size(), false);
    let mut ring = ring.map_err(|error| failed(reasons::no_ring(&error)))?;
    let mut on = Vec::new();
    let ends = now_ns(ClockId::Monotonic) + u64::try_from(TIME.as_nanos()).unwrap_or(0);
    batch(work).map_err(RecordError::Wait)?;
    while on.len() < LEAST || on.len() < MOST && now_ns(ClockId::Monotonic) < ends {
        if !traps {
            off.push(batch(work).map_err(RecordError::Wait)?);
        }
        ring.event().enable(true).map_err(RecordError::Wait)?;
        on.push(batch(work).map_err(RecordError::Wait)?);
        ring.event().enable(false).map_err(RecordError::Wait)?;
        ring.take(ring.waiting());
    }
    let counted = ring.event().counts().map_err(RecordError::Wait)?.value;
    if counted == 0 && how != RecordingForm::FilteredOut {
        return Err(failed("the kernel counted none of them".to_owned()));
    }
    let each = median(&mut on).saturating_sub(median(&mut off)) / u64::from(BATCH);
    Ok(each)
}

/// Returns what a probe of this kind costs the thread that runs into it, ns: of the kernel at the system call that
/// sends a signal, of a program at a function of this one that does nothing. It is made for that, and removed.
///
/// # Errors
///
/// [`RecordError::NotMeasured`] where the kernel has no such probes, and as [`measure_event`].
pub fn measure_probe(tracefs: &Tracefs, kind: ProbeKind) -> Result<u64, RecordError> {
    let failed = |why: String| RecordError::NotMeasured { why };
    let place = match kind.is_of_user() {
        true => own_place().ok_or_else(|| failed("this program's file is not known".to_owned()))?,
        false => PROBED.to_owned(),
    };
    let (letter, name) = match kind {
        ProbeKind::Kernel => ("p", "cost_call"),
        ProbeKind::KernelReturn => ("r", "cost_return"),
        ProbeKind::User => ("p", "cost_user_call"),
        ProbeKind::UserReturn => ("r", "cost_user_return"),
    };
    let (_probes, made, missing) = Probes::make(tracefs, &[format!("{letter}:{name} {place}")]);
    let Some(made) = made.first() else {
        let why = missing.first().map(|one| one.why.clone());
        return Err(failed(why.unwrap_or_default()));
    };
    let tracepoint = tracefs.event(&made.system, &made.name)?;
    let tracepoint = tracepoint.ok_or_else(|| failed(reasons::no_event(&made.system)))?;
    match kind.is_of_user() {
        true => measure_calls(&tracepoint, RecordingForm::Trap, &|| {
            probed();
            Ok(())
        }),
        false => measure_calls(&tracepoint, RecordingForm::Whole, &signal),
    }
}

/// Returns what it costs the thread that makes an event that a program keeps the last of, ns.
///
/// # Errors
///
/// [`RecordError::Pair`] where the kernel takes no such program.
pub fn measure_kept(tracefs: &Tracefs) -> Result<u64, RecordError> {
    let measured = |most: usize| -> io::Result<u64> {
        let batches: io::Result<Vec<u64>> = (0..most).map(|_| batch(&signal)).collect();
        Ok(median(&mut batches?))
    };
    let event = PlannedEvent::all(EVENT.0, EVENT.1);
    // What is used for the first time takes longer.
    measured(LEAST).map_err(RecordError::Wait)?;
    let off = measured(MOST).map_err(RecordError::Wait)?;
    let keeps = KeepingProbe::attach(&event, tracefs)?;
    measured(LEAST).map_err(RecordError::Wait)?;
    let on = measured(MOST).map_err(RecordError::Wait)?;
    drop(keeps);
    Ok(on.saturating_sub(off) / u64::from(BATCH))
}

/// Does nothing: a breakpoint in it is all that a call of it costs.
#[inline(never)]
fn probed() {
    std::hint::black_box(());
}

/// Returns where in its file [`probed`] is, as a probe takes it: by the mapping that has it (proc_pid_maps(5)).
fn own_place() -> Option<String> {
    let address = probed as fn() as usize as u64;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let [from, to] = [from, to].map(|hex| u64::from_str_radix(hex, 16).ok());
        let (from, to) = (from?, to?);
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        let path = words.nth(2)?;
        let has = (from..to).contains(&address) && path.starts_with('/');
        has.then(|| format!("{path}:{:#x}", offset + (address - from)))
    })
}

/// Works a batch, and returns the thread's CPU time for it, ns: what others run meanwhile is not in it.
fn batch(work: &dyn Fn() -> io::Result<()>) -> io::Result<u64> {
    let before = now_ns(ClockId::ThreadCPUTime);
    for _ in 0..BATCH {
        work()?;
    }
    Ok(now_ns(ClockId::ThreadCPUTime).saturating_sub(before))
}

/// Sends this process a signal that it ignores.
fn signal() -> io::Result<()> {
    Ok(kill_process(getpid(), Signal::URG)?)
}

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
