//! Who records, what that takes, and what it makes others do: so that nobody takes the recorder's own doings for the
//! guest's.
//!
//! Which process made the recording `model` knows (`roles`). A guest that is recorded at the same time has an agent,
//! `trace-cmd agent`, which sends what it reads through vsock: in the host a vhost worker carries that
//! (`drivers/vhost/vsock.c`), and is known by who wakes it. A vhost worker of a network card is woken by vCPUs and by
//! tasks that send; that of vsock by the recorder's threads, which read and answer. kworkers do many things, and are
//! nobody's helpers here.

use event::{Data, Event, EventType, NONE};
use model::{BySlot, Machine, NamedRole, RetiredThreads, Threads};

use crate::Stats;
use crate::analysis::{Analysis, Context, EventDetail, Needs, Note, WalkState};
use crate::chosen::Window;

/// Wake-ups by a recorder's threads that make a vhost worker the recorder's helper: one may be an interrupt that came
/// while the recorder ran. Where the recording says that guests were recorded by an agent, fewer do, and so they do
/// while it is not known yet how many there will be.
const WAKES: u64 = 20;
const WAKES_OF_AGENT: u64 = 4;

/// How a thread belongs to the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is the recorder's own.
    Recorder,
    /// It carries what an agent in a guest recorded: the vhost worker of a vsock device.
    Helper,
}

/// A thread of the recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderThread {
    /// Its id.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// How it belongs to the recorder.
    pub role: Role,
    /// How long it had a CPU, between switches that were both seen; what of that is in the window that was asked for.
    pub ran_ns: u64,
}

/// What recording took, as far as the recording shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecorderReport {
    /// Threads that recorded, most CPU time first.
    pub threads: Vec<RecorderThread>,
    /// CPU time of the recorder's own threads.
    pub ran_ns: u64,
    /// CPU time of its helpers.
    pub helpers_ns: u64,
    /// Whether the recording says that guests were recorded with it, by an agent in each.
    pub agents: bool,
    /// From one event of a thread to its next on the same CPU, with no other thread's between: what the recorder
    /// does for an event is within.
    pub gaps: Stats,
    /// Time stamps are whole microseconds: a gap may be up to one longer.
    pub coarse: bool,
}

impl RecorderReport {
    /// Returns how a thread belongs to the recorder, if it does.
    pub fn role(&self, tid: i32) -> Option<Role> {
        let known = self.threads.iter().find(|thread| thread.tid == tid);
        known.map(|thread| thread.role)
    }

    /// Returns whether a thread is the recorder's, its helper's, or the command that perf is about to run.
    pub fn has(&self, tid: i32, comm: &str) -> bool {
        self.role(tid).is_some() || comm == model::PERF_WORKLOAD
    }

    /// Returns what an event costs at most: the 1st percentile of the gaps between a thread's events, since what the
    /// recorder does for one lies between its time stamp and the next one's; `None` where too few were seen.
    pub fn event_at_most_ns(&self) -> Option<u64> {
        let coarse = if self.coarse { 1_000 } else { 0 };
        (self.gaps.count() >= 100).then(|| self.gaps.percentile(0.01).saturating_add(coarse))
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Task {
    ran_ns: u64,
    /// Wake-ups by the recorder's threads, by vCPUs, and by others.
    by_recorder: u64,
    by_vcpus: u64,
    by_others: u64,
}

impl Task {
    /// Whether a vhost worker carries the recorder's traffic. What the recorder sends a guest answers: its vCPUs wake
    /// the worker about as often. That of a network card they wake far more often than an interrupt falls on the
    /// recorder.
    fn helps(&self, least: u64) -> bool {
        let of_recorder =
            self.by_recorder > self.by_others && self.by_recorder >= self.by_vcpus / 4;
        self.by_recorder >= least && of_recorder
    }
}

/// Finds out who records.
#[derive(Debug, Default)]
pub struct Recorder {
    /// By thread slot.
    tasks: BySlot<Task>,
    agents: bool,
    /// When and on which CPUs its run time counts.
    window: Window,
}

impl Recorder {
    /// Returns one that has seen nothing. `agents` says whether the recording knows that guests were recorded with it;
    /// of what it ran only what is in the window counts.
    pub fn new(agents: bool, window: Window) -> Recorder {
        Recorder {
            agents,
            window,
            ..Recorder::default()
        }
    }

    fn task(&mut self, slot: u32) -> &mut Task {
        self.tasks.entry(slot, Task::default)
    }

    /// Takes an event of the scheduler. Returns whether it is traffic between the recorder and an agent in a guest, and
    /// of which process the guest is, if the worker's name has it.
    #[inline]
    fn sched(&mut self, event: &Event<'_>, machine: &Machine) -> Option<Option<i32>> {
        let changes = machine.task_states().changes();
        if let Some(ran) = changes.cpu
            && let Some(task) = ran.thread
            // Where events were lost, nobody knows who had the CPU until the next switch.
            && !ran.idle
            && !ran.lost
        {
            let ns = self.window.ns(ran.start, ran.end, ran.cpu);
            let task = self.task(task);
            task.ran_ns = task.ran_ns.saturating_add(ns);
        }
        if let Some(switch) = changes.switch {
            return [switch.prev, switch.next]
                .into_iter()
                .find_map(|slot| self.carries(slot, WAKES_OF_AGENT, machine.threads()));
        }
        let wakeup = changes.wakeup?;
        self.wakes(event, (wakeup.task, wakeup.waker?), machine)
    }

    /// A thread wakes a task.
    fn wakes(
        &mut self,
        event: &Event<'_>,
        (task, waker): (u32, u32),
        machine: &Machine,
    ) -> Option<Option<i32>> {
        let threads = machine.threads();
        if vhost(threads, task).is_some() && event.tid != 0 && event.tid != NONE {
            let by = threads.at(waker).map(|(_, thread)| thread);
            let is_vcpu = by.is_some_and(|thread| thread.is_vcpu);
            let records = threads.may_record(event.tid, event.comm);
            let task = self.task(task);
            task.by_recorder += u64::from(records);
            task.by_vcpus += u64::from(is_vcpu);
            task.by_others += u64::from(!records && !is_vcpu);
        }
        self.carries(task, WAKES_OF_AGENT, machine.threads())
            .or_else(|| self.carries(waker, WAKES_OF_AGENT, machine.threads()))
    }

    /// Returns whether a thread is a vhost worker that carries the recorder's traffic, and for which process.
    fn carries(&self, slot: u32, least: u64, threads: &Threads) -> Option<Option<i32>> {
        let task = self.tasks.get(slot)?;
        task.helps(least).then(|| vhost(threads, slot))?
    }

    /// Returns what was found.
    pub fn report(&self, walked: &WalkState<'_>) -> RecorderReport {
        let machine = walked.machine;
        let threads = machine.threads();
        let least = if self.agents { WAKES_OF_AGENT } else { WAKES };
        let recorder = threads.recorder();
        let mut out = RecorderReport {
            agents: self.agents,
            gaps: walked.activity.gaps().clone(),
            coarse: !walked.activity.is_fine(),
            ..RecorderReport::default()
        };
        for (slot, tid, thread) in threads.slots() {
            let comm = thread.comm.as_deref().unwrap_or_default();
            let task = self.tasks.get(slot).copied().unwrap_or_default();
            let role = if recorder.has(tid, thread) {
                Role::Recorder
            } else if !recorder.is_unknown() && self.carries(slot, least, threads).is_some() {
                Role::Helper
            } else {
                continue;
            };
            let sum = match role {
                Role::Recorder => &mut out.ran_ns,
                Role::Helper => &mut out.helpers_ns,
            };
            *sum = sum.saturating_add(task.ran_ns);
            out.threads.push(RecorderThread {
                tid,
                comm: comm.to_owned(),
                role,
                ran_ns: task.ran_ns,
            });
        }
        out.threads.sort_by(|a, b| {
            let by = b.ran_ns.cmp(&a.ran_ns);
            by.then(a.tid.cmp(&b.tid))
        });
        out
    }
}

impl Analysis for Recorder {
    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        for slot in retired.slots() {
            self.tasks.remove(slot);
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            threads: true,
            task_spans: true,
            activity: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind.is_sched() {
            true => EventDetail::Order,
            false => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, _: &Data, context: &mut Context<'_>) {
        if let Some(pid) = self.sched(event, context.machine) {
            context.notes.push(Note::RecorderTalks(pid));
        }
    }
}

/// Returns whether a thread is a vhost worker, and for which process.
fn vhost(threads: &Threads, slot: u32) -> Option<Option<i32>> {
    match threads.at(slot)?.1.named_role() {
        NamedRole::Vhost(pid) => Some(pid),
        _ => None,
    }
}
