//! vCPUs of recordings without one exit or entry: what names and facts say.
//!
//! Only KVM's events show a thread entering a guest. Where there is none of these (recordings of the scheduler alone;
//! hosts whose KVM makes none, as PVM's), a thread that is called as VMMs call
//! their vCPUs', or that facts say is one, is presumed to be one as soon as an event of the scheduler is about it. When
//! it had a CPU, when it slept and when it waited behind whom is then known; what it did with its CPU, and whether its
//! guest was halted while it slept, is not.

use event::Data;

use crate::{NamedRole, Tasks, Threads};

impl Threads {
    /// Says that the recording has no exit and no entry.
    pub(crate) fn presume_vcpus(&mut self) {
        self.presumes = true;
    }

    /// Returns whether vCPUs are known by names and facts alone.
    pub(crate) fn presumes(&self) -> bool {
        self.presumes
    }

    /// Takes the tasks that an event of the scheduler is about.
    pub(crate) fn presume(&mut self, data: &Data, tasks: Tasks) {
        match data {
            Data::SchedSwitch(_) => {
                self.presume_one(tasks.prev);
                self.presume_one(tasks.task);
            }
            Data::SchedWaking(_) | Data::SchedWakeup(_) => self.presume_one(tasks.task),
            _ => {}
        }
    }

    fn presume_one(&mut self, slot: u32) {
        let Some(thread) = self.at_mut(slot) else {
            return;
        };
        if thread.is_vcpu {
            return;
        }
        let by_name = match thread.named_role() {
            NamedRole::Vcpu(number) => Some(number),
            _ => None,
        };
        let by_facts = thread.claim.map(|claim| claim.id);
        if let Some(number) = by_name.or(by_facts) {
            thread.is_vcpu = true;
            thread.presumed = true;
            thread.vcpu = Some(number);
        }
    }
}
