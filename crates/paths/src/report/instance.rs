//! One instance in words.

use model::Machine;

use super::names::AccessNamer;
use crate::engine::{CompletedInstance, Paths};

/// One instance in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceReport {
    /// Its path.
    pub path: String,
    /// Its number among those of the path.
    pub number: u64,
    /// The chain it went, where the path has several with names.
    pub chain: Option<String>,
    /// The group it belongs to, where the path has groups.
    pub by: Option<String>,
    /// The steps it reached; one at least.
    pub steps: Vec<StepReport>,
    /// Thread of the vCPU it is about, if known.
    pub vcpu_tid: Option<i32>,
    /// The same with its name.
    pub vcpu: Option<String>,
    /// What else is known of it.
    pub features: Vec<String>,
}

/// One step of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepReport {
    /// The step.
    pub name: String,
    /// When it was reached.
    pub time: u64,
    /// The recording of the guest in which it was reached; none where that was on the host.
    pub machine: Option<String>,
    /// The CPU of its event: in a guest, the guest's.
    pub cpu: i32,
    /// The thread that made it.
    pub tid: i32,
    /// The same with its name.
    pub thread: String,
    /// Who does it: the thread, or of a switch the task that gets the CPU.
    pub does: String,
    /// Who is woken by it.
    pub to: Option<String>,
}

impl InstanceReport {
    /// Returns how long it took, in the recording's unit.
    pub fn total_ns(&self) -> u64 {
        match (self.steps.first(), self.steps.last()) {
            (Some(first), Some(last)) => last.time.saturating_sub(first.time),
            _ => 0,
        }
    }
}

impl Paths {
    /// Returns an instance in words.
    pub fn describe(
        &self,
        one: &CompletedInstance,
        machine: &Machine,
        names: AccessNamer<'_>,
    ) -> InstanceReport {
        let Some(words) = self.words_of(one.path, machine, names) else {
            return InstanceReport::default();
        };
        let path = words.path;
        // A chain that no path has has no steps with names.
        let chain = u8::try_from(one.chain).unwrap_or(u8::MAX);
        let steps = one.reached.iter().map(|reached| StepReport {
            name: words.step(chain, reached.step).to_owned(),
            time: reached.time,
            machine: self.guest_name(reached.machine).map(str::to_owned),
            cpu: reached.cpu,
            tid: words.tid(reached.thread),
            thread: words.task(reached.thread),
            does: words.task(reached.does()),
            to: reached.wakes().map(|task| words.task(task)),
        });
        InstanceReport {
            path: path.name.clone(),
            number: one.number,
            chain: path
                .chains
                .get(one.chain)
                .and_then(|chain| chain.name.clone()),
            by: words.by(one),
            steps: steps.collect(),
            vcpu_tid: one.subject.map(|slot| words.tid(slot)),
            vcpu: one.subject.map(|slot| words.task(slot)),
            features: words.features(&one.traits),
        }
    }

    /// Returns what a task is called, by its slot: name and thread id.
    pub fn task_name(machine: &Machine, slot: u32) -> String {
        super::names::task(machine, slot)
    }
}
