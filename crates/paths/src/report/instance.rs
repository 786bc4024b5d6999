//! One instance in words.

use std::sync::Arc;

use model::Machine;

use super::names::AccessNamer;
use super::wording::RecentWords;
use crate::engine::{CompletedInstance, Paths};

/// One instance in words. Instances have most of them in common, so that texts are shared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceReport {
    /// Its path.
    pub path: Arc<str>,
    /// Its number among those of the path.
    pub number: u64,
    /// The chain it went, where the path has several with names.
    pub chain: Option<Arc<str>>,
    /// The group it belongs to, where the path has groups.
    pub by: Option<Arc<str>>,
    /// The steps it reached; one at least.
    pub steps: Vec<StepReport>,
    /// Thread of the vCPU it is about, if known.
    pub vcpu_tid: Option<i32>,
    /// The same with its name.
    pub vcpu: Option<Arc<str>>,
    /// What else is known of it.
    pub features: Arc<[String]>,
}

/// One step of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepReport {
    /// The step.
    pub name: Arc<str>,
    /// When it was reached.
    pub time: u64,
    /// The recording of the guest in which it was reached; none where that was on the host.
    pub machine: Option<Arc<str>>,
    /// The CPU of its event: in a guest, the guest's.
    pub cpu: i32,
    /// The thread that made it.
    pub tid: i32,
    /// The same with its name.
    pub thread: Arc<str>,
    /// Who does it: the thread, or of a switch the task that gets the CPU.
    pub does: Arc<str>,
    /// Who is woken by it.
    pub to: Option<Arc<str>>,
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
        self.describe_among(one, machine, names, &mut RecentWords::default())
    }

    /// Returns an instance in words, one of many: it shares texts with those before it.
    pub fn describe_among(
        &self,
        one: &CompletedInstance,
        machine: &Machine,
        names: AccessNamer<'_>,
        recent: &mut RecentWords,
    ) -> InstanceReport {
        let words = self.words(one, machine, names, recent);
        let (by, features) = (words.by.clone(), Arc::clone(&words.features));
        let Some(texts) = recent.path(self, one.path) else {
            return InstanceReport::default();
        };
        let path = Arc::clone(&texts.name);
        let chain = texts.chain(one.chain);
        let steps = one.reached.iter().map(|reached| StepReport {
            name: chain
                .steps
                .get(usize::from(reached.step))
                .map_or_else(|| "?".into(), Arc::clone),
            time: reached.time,
            machine: self.guest_name(reached.machine).map(Arc::from),
            cpu: reached.cpu,
            tid: super::names::tid(machine, reached.thread),
            thread: recent.task(machine, reached.thread),
            does: recent.task(machine, reached.does()),
            to: reached.wakes().map(|task| recent.task(machine, task)),
        });
        InstanceReport {
            path,
            number: one.number,
            chain: chain.name,
            by,
            steps: steps.collect(),
            vcpu_tid: one.subject.map(|slot| super::names::tid(machine, slot)),
            vcpu: one.subject.map(|slot| recent.task(machine, slot)),
            features,
        }
    }

    /// Returns what a task is called, by its slot: name and thread id.
    pub fn task_name(machine: &Machine, slot: u32) -> String {
        super::names::task(machine, slot)
    }
}
