//! Follows what guests' CPUs do, for analyses of the host.

use event::{EventType, LostKind, NONE, Side};
use model::ByNumber;

use super::doing::{GuestContext, GuestCpu, Kinds};
use crate::analysis::GuestEvent;

/// A CPU of a guest.
#[derive(Debug)]
struct FollowedCpu {
    machine: u16,
    number: i32,
    cpu: GuestCpu,
}

/// What the CPUs of guests do now, by the host's threads that are these vCPUs.
#[derive(Debug, Default)]
pub(crate) struct GuestCpus {
    kinds: Kinds,
    cpus: ByNumber<FollowedCpu>,
    tids: Vec<i32>,
}

impl GuestCpus {
    /// Looks at a kind of events. Returns whether they say anything.
    pub(crate) fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.kinds.wants(ty)
    }

    /// Takes an event of a guest. Returns the thread of its vCPU, and what that guest's CPU does from now on.
    pub(crate) fn takes(&mut self, guest: &GuestEvent<'_>) -> Option<(i32, GuestContext)> {
        let tid = guest.vcpu_tid?;
        let tids = &mut self.tids;
        let followed = self.cpus.entry(tid, || {
            tids.push(tid);
            FollowedCpu {
                machine: guest.event.machine(),
                number: guest.event.cpu,
                cpu: GuestCpu::default(),
            }
        });
        followed.cpu.takes(&mut self.kinds, guest.event, guest.data);
        Some((tid, followed.cpu.doing()))
    }

    /// Takes a side record of a guest. Where it says that events are missing, nobody knows what its CPUs do:
    /// `forgotten` gets their threads, and since when.
    pub(crate) fn side(
        &mut self,
        machine: u16,
        side: &Side<'_>,
        mut forgotten: impl FnMut(i32, u64),
    ) {
        let (time, only) = match side {
            // The recorder's sum at the end counts again what the ring reported.
            Side::Lost {
                time,
                cpu,
                kind: LostKind::Ring,
                ..
            } => (*time, Some(*cpu).filter(|cpu| *cpu != NONE)),
            Side::End { time, cpu } => (*time, *cpu),
            _ => return,
        };
        for &tid in &self.tids {
            let Some(followed) = self.cpus.get_mut(tid) else {
                continue;
            };
            if followed.machine == machine && only.is_none_or(|only| only == followed.number) {
                followed.cpu = GuestCpu::default();
                forgotten(tid, time);
            }
        }
    }

    /// Returns what the guest's CPU does that is this thread.
    pub(crate) fn doing(&self, tid: i32) -> GuestContext {
        self.cpus
            .get(tid)
            .map_or(GuestContext::Unknown, |followed| followed.cpu.doing())
    }

    /// Returns the machine of the guest whose vCPU a thread is; `None` where no guest's recording has it.
    pub(crate) fn machine(&self, tid: i32) -> Option<u16> {
        self.cpus.get(tid).map(|followed| followed.machine)
    }

    /// Returns whether any event said what a guest did.
    pub(crate) fn has_heard_of(&self, machine: u16) -> bool {
        let mut cpus = self.tids.iter().filter_map(|tid| self.cpus.get(*tid));
        cpus.any(|cpu| cpu.machine == machine)
    }

    /// Returns what something is called that the guest does whose vCPU a thread is.
    pub(crate) fn called(&self, tid: i32, doing: GuestContext) -> Option<String> {
        self.kinds.called(self.machine(tid)?, doing)
    }

    /// Returns whether the guests' recordings have interrupts, and softirqs.
    pub(crate) fn has(&self) -> (bool, bool) {
        (self.kinds.interrupts, self.kinds.softirqs)
    }
}

#[cfg(test)]
mod tests {
    use event::{Body, Data, Decoder, Event, Kind};

    use super::*;

    fn lost(cpu: i32, kind: LostKind) -> Side<'static> {
        Side::Lost {
            time: 50,
            cpu,
            buffer: 0,
            count: None,
            kind,
        }
    }

    /// Two CPUs of a guest run a task each; returns what is forgotten at a side record.
    fn forgotten(machine: u16, side: &Side<'_>) -> Vec<(i32, u64)> {
        let ty = EventType {
            index: 0,
            machine: 1,
            system: "sched",
            name: "sched_wakeup",
            label: "sched:sched_wakeup",
            kind: Kind::SchedWakeup,
            format: None,
            decoder: Decoder::default(),
            recorded: true,
        };
        let mut follow = GuestCpus::default();
        assert!(follow.wants(&ty));
        for cpu in [0, 1] {
            let event = Event {
                time: 10,
                cpu,
                tid: 7,
                pid: -1,
                ty: &ty,
                body: Body::None,
                sample: None,
                buffer: 0,
                comm: None,
            };
            let guest = GuestEvent {
                event: &event,
                data: &Data::Other,
                vcpu_tid: Some(100 + cpu),
            };
            assert_eq!(
                follow.takes(&guest),
                Some((100 + cpu, GuestContext::Task(7)))
            );
        }
        let mut found = Vec::new();
        follow.side(machine, side, |tid, time| found.push((tid, time)));
        for (tid, _) in &found {
            assert_eq!(follow.doing(*tid), GuestContext::Unknown);
        }
        found
    }

    #[test]
    fn a_loss_of_nobody_knows_which_cpu_is_one_of_all() {
        assert_eq!(forgotten(1, &lost(1, LostKind::Ring)), [(101, 50)]);
        let all = [(100, 50), (101, 50)];
        assert_eq!(forgotten(1, &lost(NONE, LostKind::Ring)), all);
        assert_eq!(forgotten(1, &lost(1, LostKind::Sum)), []);
        assert_eq!(forgotten(2, &lost(NONE, LostKind::Ring)), []);
    }
}
