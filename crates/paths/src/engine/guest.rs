//! Events of guests whose recordings are walked with the host's.
//!
//! They are steps of instances, and no more: what is known of the host's threads, vCPUs and interrupts does not change
//! by them.

use event::{Data, Event, EventType, LostKind, NONE, Side, index_of};
use model::Machine;

use super::guest_tasks::{GuestActor, machine_of_task, number, task};
use super::instance::LiveInstance;
use super::{EventContext, Paths};
use crate::tally::DropReason;
use crate::tasks::InterruptSource;

impl Paths {
    /// Says that a guest's recording is walked with the host's: the number of its machine, what the recording is
    /// called, and its CPUs, each with the host's thread that is the vCPU.
    pub fn guest(&mut self, machine: u16, name: &str, vcpus: impl IntoIterator<Item = (u32, i32)>) {
        let at = usize::from(machine);
        if self.guests.names.len() <= at {
            self.guests.names.resize(at + 1, String::new());
        }
        name.clone_into(&mut self.guests.names[at]);
        for (cpu, tid) in vcpus {
            let cpu = i32::try_from(cpu).unwrap_or(NONE);
            self.guests.vcpus.insert(tid, (machine, cpu));
        }
        self.nexts.clear();
    }

    /// Returns what the recording of a machine is called, if it is a guest's.
    pub fn guest_name(&self, machine: u16) -> Option<&str> {
        let name = self.guests.names.get(usize::from(machine))?;
        (machine != 0).then_some(name.as_str())
    }

    /// Returns whether events of a kind of a guest's are steps of any path.
    pub fn wants_of_guest(&mut self, ty: &EventType<'_>) -> bool {
        let wanted = self.wants(ty);
        let binding = self.bindings.get(index_of(ty.index));
        if let Some(Some(binding)) = binding
            && ty.recorded
        {
            self.guests.marks(ty.machine, &binding.marks);
        }
        wanted
    }

    /// Returns whether the events of a guest's step are recorded in the guest that a vCPU's thread is of.
    pub(super) fn is_recorded_in_guest(&self, number: usize, vcpu: Option<u64>) -> bool {
        let machine = vcpu.and_then(|slot| self.guest_of(slot));
        let recorded = machine.and_then(|machine| self.guests.recorded.get(usize::from(machine)));
        recorded.is_some_and(|steps| steps.get(number).copied().unwrap_or(false))
    }

    /// Returns the machine of whose recorded guest a slot's thread is a vCPU, or a task.
    pub(super) fn guest_of(&self, slot: u64) -> Option<u16> {
        if let Some(machine) = machine_of_task(slot) {
            return Some(machine);
        }
        let slot = u32::try_from(slot).ok()?;
        if self.guests.is_empty() {
            return None;
        }
        let of = self.guests.vcpus.get(&self.tasks.get(slot).tid);
        of.map(|(machine, _)| *machine)
    }

    /// Returns whether all that could come is in a guest that is not recorded, so that an instance that has reached a
    /// step is complete.
    #[inline]
    pub(super) fn is_all_of_host(&self, at: u32, number: usize) -> bool {
        self.index.steps[number].rest_in_guest && self.rest_is_unrecorded(&self.live[index_of(at)])
    }

    #[inline(never)]
    fn rest_is_unrecorded(&self, live: &LiveInstance) -> bool {
        let first = self.index.first_step[index_of(live.chain)] as usize;
        let rest = live.last_step() + 1..self.index.lengths[index_of(live.chain)];
        let mut rest = rest.map(|step| first + step);
        self.is_open(live)
            && !rest.any(|number| {
                let role = self.index.steps[number].guest_of;
                let vcpu = role.and_then(|role| live.known(role));
                self.is_recorded_in_guest(number, vcpu)
            })
    }

    /// Takes an event of a guest, which happened on a vCPU that is a thread of the host.
    pub fn take_of_guest(
        &mut self,
        event: &Event<'_>,
        data: &Data,
        vcpu: i32,
        machine: &mut Machine,
    ) {
        let at = index_of(event.ty.index);
        // The host has shown no such thread yet: the guest cannot run there.
        if machine.threads().get(vcpu).is_none() {
            return;
        }
        let Some(mut binding) = self.bindings.get_mut(at).and_then(Option::take) else {
            return;
        };
        let number = event.machine();
        let of = (number, event.cpu);
        if self.guests.vcpus.get(&vcpu) != Some(&of) {
            self.guests.vcpus.insert(vcpu, of);
            self.nexts.clear();
        }
        if !binding.seen {
            self.guests.marks(number, &binding.marks);
            self.nexts.clear();
            binding.seen = true;
        }
        self.last_time = self.last_time.max(event.time);
        if self.is_due(&binding, event, data) {
            self.seq += 1;
            self.advanced = None;
            let thread = self.slot(vcpu, NONE, machine);
            self.tasks.entry(thread, machine.threads());
            let of = |tid: i32| task(number, tid, event.cpu);
            let (task, prev) = match data {
                Data::SchedSwitch(switch) => (Some(of(switch.next_tid)), Some(of(switch.prev_tid))),
                Data::SchedWaking(wakeup) | Data::SchedWakeup(wakeup) => {
                    (Some(of(wakeup.tid)), None)
                }
                _ => (None, None),
            };
            let now = EventContext {
                event,
                data,
                thread,
                tid: vcpu,
                guest: Some(GuestActor {
                    inside: of(event.tid),
                    task,
                    prev,
                }),
                task: None,
                prev: None,
                target: None,
                raised: InterruptSource::Local,
            };
            for word in &binding.alt_words.0 {
                let mut left = word.own;
                while let Some(at) = word.due(&mut left, &self.waiting.awaited) {
                    self.alternative(&binding.alts[at], &now, machine);
                }
            }
            if !self.rising.is_empty() {
                self.rises();
            }
        }
        self.bindings[at] = Some(binding);
    }

    /// Takes a side record of a guest: where events were lost, what instances wait for may be among them.
    pub fn guest_side(&mut self, machine: u16, side: &Side<'_>) {
        let Side::Lost {
            cpu,
            kind: LostKind::Ring,
            ..
        } = *side
        else {
            return;
        };
        let all = (0u32..).zip(&self.live);
        let waits = all.filter(|(_, live)| live.live && self.waits_there(live, machine, cpu));
        let gone: Vec<u32> = waits.map(|(at, _)| at).collect();
        for at in gone {
            self.give_up(at, Some(DropReason::LostEvents));
        }
    }

    /// Returns whether an instance waits for an event of a guest's CPU, or of any for [`NONE`].
    fn waits_there(&self, live: &LiveInstance, machine: u16, cpu: i32) -> bool {
        let on = |slot: u64| {
            let tid = u32::try_from(slot).map(|slot| self.tasks.get(slot).tid);
            let of = tid.ok().and_then(|tid| self.guests.vcpus.get(&tid));
            of.is_some_and(|of| of.0 == machine && (cpu == NONE || of.1 == NONE || of.1 == cpu))
        };
        let mut waits = live.waits.iter();
        waits.any(|(alt, _)| {
            let alt = &self.index.alts[index_of(*alt)];
            let by = alt.guest_by;
            let held = |role: Option<usize>| role.and_then(|role| live.known(role));
            let task = held(by.task).and_then(machine_of_task);
            alt.in_guest
                && held(by.thread).is_none_or(on)
                && task.is_none_or(|of| of == machine)
                && held(by.machine).is_none_or(|held| held == number(machine))
        })
    }
}
