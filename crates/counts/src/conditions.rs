//! Conditions under which a VM is not well, as one interval of counting shows them.
//!
//! A condition is one entry of [`CONDITIONS`]: what it looks at, its limit, for how long it has to last, and its
//! sentence. [`SymptomJudge`] holds the limits that a user chose and remembers who was beyond them before.

use std::collections::HashMap;

use model::State;

use crate::named::{NamedCounts, RowOwner};
use crate::snapshot::{LiveThread, LiveVcpu};

/// What a limit is a limit of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitUnit {
    /// A part of one CPU's time, from 0 to 1.
    CpuShare,
    /// So many a second.
    PerSecond,
}

/// How a condition measures an interval.
#[derive(Debug, Clone, Copy)]
enum ConditionMeasure {
    /// Each vCPU and its exits for waiting that were over: nanoseconds, or a number of times.
    Vcpu(fn(&LiveVcpu, u64) -> u64),
    /// Each other thread that works for a VM, in the same way.
    BackEnd(fn(&LiveThread) -> u64),
}

/// A condition under which a VM is not well.
#[derive(Debug)]
pub struct Condition {
    /// Its name, for options, documents and folders.
    pub id: &'static str,
    /// What it looks at.
    pub looks_at: &'static str,
    /// What its limit is a limit of.
    pub unit: LimitUnit,
    /// The limit where nobody chose another one.
    pub limit: f64,
    /// Intervals that it lasts before it is a symptom.
    pub intervals: u32,
    /// What is said of it: `{who}` and `{measured}` stand for the vCPU or thread and for what was measured.
    pub sentence: &'static str,
    measure: ConditionMeasure,
}

/// All conditions, in the order in which they are looked at.
///
/// Their limits are for a watch that is left on: each is far beyond what `diagnose` calls a problem once somebody looks
/// (`vcpu-preempted` from 4 % on, `halt-does-not-halt` from 1,000 a second on), so that nobody is called for what a
/// busy host does all day.
pub static CONDITIONS: [Condition; 4] = [
    Condition {
        id: "steal",
        looks_at: "how long each vCPU could run and another task had its CPU",
        unit: LimitUnit::CpuShare,
        // A guest whose clock stands still for a fifth of the time has seen it in all that it does.
        limit: 0.20,
        // A vCPU that starts, or a host that boots, waits for once.
        intervals: 2,
        sentence: "{who} waited for a CPU for {measured} of the time",
        measure: ConditionMeasure::Vcpu(|vcpu, _| vcpu.times.get(State::Runnable)),
    },
    Condition {
        id: "halt-polling",
        looks_at: "how long KVM polled in the halts of each vCPU",
        unit: LimitUnit::CpuShare,
        // KVM shrinks its polling where it finds nothing: half of a CPU is work that comes just in time, or a guest
        // that does not stay halted.
        limit: 0.50,
        intervals: 2,
        sentence: "KVM polled in the halts of {who} for {measured} of the time",
        measure: ConditionMeasure::Vcpu(|vcpu, _| vcpu.times.get(State::Poll)),
    },
    Condition {
        id: "short-halts",
        looks_at: "how often each vCPU halted",
        unit: LimitUnit::PerSecond,
        // Less than 50 us for a halt and what it waited for: a sleep and its wake-up alone take that.
        limit: 20_000.0,
        intervals: 2,
        sentence: "{who} halted {measured} times a second",
        // A halt that KVM lets go on at once is an exit and no wake-up; without exits there are wake-ups.
        measure: ConditionMeasure::Vcpu(|vcpu, waiting_exits| {
            let polls = &vcpu.polls;
            let polled = polls.succeeded.saturating_add(polls.failed);
            polled.saturating_add(polls.unpolled).max(waiting_exits)
        }),
    },
    Condition {
        id: "back-end-waits",
        looks_at: "how long each vhost worker, I/O thread and other thread of a VMM waited for a CPU",
        unit: LimitUnit::CpuShare,
        limit: 0.20,
        intervals: 2,
        sentence: "{who} waited for a CPU for {measured} of the time",
        measure: ConditionMeasure::BackEnd(|thread| thread.runnable_ns),
    },
];

/// The id of a symptom that a path had an instance which took too long.
pub const PATH_CONDITION: &str = "path";

/// Returns the condition of an id.
pub fn condition(id: &str) -> Option<&'static Condition> {
    CONDITIONS.iter().find(|one| one.id == id)
}

/// What an incident is of: symptoms of one subject belong together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum IncidentSubject {
    /// A VM, by its VMM's process.
    Vm(i32),
    /// A path of the whole host, by its name.
    Path(String),
}

/// Something that is beyond its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Symptom {
    /// The condition's id; [`PATH_CONDITION`] where a path took too long.
    pub condition: &'static str,
    /// Of what.
    pub subject: IncidentSubject,
    /// What the VM is called: its name, or its process; or the path's name.
    pub label: String,
    /// Which vCPU or thread; or the path's name.
    pub who: String,
    /// What was measured, in the condition's unit; nanoseconds of a path.
    pub measured: f64,
    /// The same as a sentence without its full stop.
    pub text: String,
    /// Whether it has lasted for as long as the condition asks. What has not does not begin an incident, and keeps one
    /// from ending.
    pub is_lasting: bool,
}

/// A condition and the limit that somebody chose.
#[derive(Debug, Clone, Copy)]
pub struct ConditionLimit {
    /// The condition.
    pub condition: &'static Condition,
    /// Its limit, in its unit.
    pub limit: f64,
}

impl ConditionLimit {
    /// Returns all conditions with their own limits.
    pub fn defaults() -> Vec<ConditionLimit> {
        let limits = CONDITIONS.iter().map(|condition| ConditionLimit {
            condition,
            limit: condition.limit,
        });
        limits.collect()
    }

    /// Writes something that was measured, or the limit, in the condition's unit.
    pub fn shown(&self, measured: f64) -> String {
        match self.condition.unit {
            LimitUnit::CpuShare => words::share::rough(measured),
            LimitUnit::PerSecond => words::large(measured),
        }
    }
}

/// Of what is counted in an interval that much may be of the time before: one reads a vCPU after the other.
const LONGEST: f64 = 1.5;
/// A subject that was there for less of the interval began or ended in it, and nobody knows how it would have gone on.
const SHORTEST: f64 = 0.5;

/// Judges one interval after the other.
#[derive(Debug)]
pub struct SymptomJudge {
    limits: Vec<ConditionLimit>,
    /// Who was beyond a limit in the last interval, and in how many before it: by the limit's place and the thread.
    beyond: HashMap<(usize, i32), u32>,
}

/// What was measured of one vCPU or thread.
struct MeasuredSubject<'c> {
    tid: i32,
    whose: &'c RowOwner,
    /// Its name, where it is no vCPU.
    thread: Option<String>,
    /// For how long it was watched, in nanoseconds.
    watched_ns: u64,
    amount: u64,
}

impl SymptomJudge {
    /// Begins with these limits.
    pub fn new(limits: Vec<ConditionLimit>) -> SymptomJudge {
        SymptomJudge {
            limits,
            beyond: HashMap::new(),
        }
    }

    /// Returns what is beyond its limit in an interval, which is the difference of two readings of one counter.
    ///
    /// Who ended in it, was there for less than half of it, or seems to have been there for longer than it lasted is
    /// left out.
    pub fn interval(&mut self, counted: &NamedCounts) -> Vec<Symptom> {
        let mut symptoms = Vec::new();
        let mut beyond = HashMap::new();
        let interval_ns = as_f64(counted.interval_ns);
        if interval_ns <= 0.0 {
            return symptoms;
        }
        for (at, limit) in self.limits.iter().enumerate() {
            let condition = limit.condition;
            for one in measured(condition.measure, counted) {
                let part = as_f64(one.watched_ns) / interval_ns;
                if !(SHORTEST..=LONGEST).contains(&part) {
                    continue;
                }
                let amount = as_f64(one.amount) / interval_ns;
                let amount = match condition.unit {
                    LimitUnit::CpuShare => amount,
                    LimitUnit::PerSecond => amount * 1e9,
                };
                if amount < limit.limit {
                    continue;
                }
                let before = self.beyond.get(&(at, one.tid)).copied().unwrap_or(0);
                beyond.insert((at, one.tid), before.saturating_add(1));
                let is_lasting = before.saturating_add(1) >= condition.intervals;
                symptoms.push(symptom(limit, &one, amount, is_lasting));
            }
        }
        self.beyond = beyond;
        symptoms
    }
}

fn measured(measure: ConditionMeasure, counted: &NamedCounts) -> Vec<MeasuredSubject<'_>> {
    match measure {
        ConditionMeasure::Vcpu(amount) => {
            let waiting = waiting_exits(counted);
            let alive = counted.vcpus.iter().filter(|one| !one.vcpu.ended);
            let all = alive.map(|one| MeasuredSubject {
                tid: one.vcpu.tid,
                whose: &one.whose,
                thread: None,
                watched_ns: one.vcpu.times.total(),
                amount: amount(&one.vcpu, waiting.get(&one.vcpu.tid).copied().unwrap_or(0)),
            });
            all.collect()
        }
        ConditionMeasure::BackEnd(amount) => {
            let alive = counted.threads.iter().filter(|one| !one.thread.ended);
            let all = alive.map(|one| {
                let thread = &one.thread;
                let name = one.comm.clone();
                let times = [thread.ran_ns, thread.slept_ns, thread.runnable_ns];
                let watched_ns = times
                    .into_iter()
                    .fold(thread.unknown_ns, u64::saturating_add);
                MeasuredSubject {
                    tid: thread.tid,
                    whose: &one.whose,
                    thread: Some(name.unwrap_or_else(|| one.role.name().to_owned())),
                    watched_ns,
                    amount: amount(thread),
                }
            });
            all.collect()
        }
    }
}

/// Returns how often each vCPU made an exit since its guest asked to wait.
fn waiting_exits(counted: &NamedCounts) -> HashMap<i32, u64> {
    let mut waiting = HashMap::new();
    for row in counted.rows.iter().filter(|row| row.waiting) {
        if let Some(tid) = row.whose.tid {
            let sum: &mut u64 = waiting.entry(tid).or_default();
            *sum = sum.saturating_add(row.durations.count);
        }
    }
    waiting
}

fn symptom(
    limit: &ConditionLimit,
    one: &MeasuredSubject<'_>,
    amount: f64,
    is_lasting: bool,
) -> Symptom {
    let condition = limit.condition;
    let vm = &one.whose.vm;
    let who = match (&one.thread, one.whose.vcpu) {
        (Some(name), _) => format!("{} of {vm}", words::with_thread(name, one.tid)),
        (None, Some(number)) => format!("{} of {vm}", words::vcpu(None, number)),
        (None, None) => format!("{} of {vm}", words::with_thread("vCPU", one.tid)),
    };
    let text = condition
        .sentence
        .replace("{measured}", &limit.shown(amount));
    Symptom {
        condition: condition.id,
        subject: IncidentSubject::Vm(one.whose.vm_pid),
        label: vm.clone(),
        text: text.replace("{who}", &who),
        who,
        measured: amount,
        is_lasting,
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "it is compared with limits of two digits"
)]
fn as_f64(amount: u64) -> f64 {
    amount as f64
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
