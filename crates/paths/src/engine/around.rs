//! What goes on around instances: what their vCPU was doing, and what happened meanwhile.

use event::{Data, LostKind, NONE, Side, index_of};
use model::{Machine, RetiredThreads, Threads};

use super::seen_vcpus::{self, EndedExit, SeenVcpu};
use super::watchers::InstanceWatcher;
use super::{EventContext, LiveInstance, MAX_REMEMBERED, Paths};
use crate::notes::{self, InstanceNotes, MAX_LISTED, VcpuActivity, WakeSource};
use crate::tally::DropReason;
use crate::tasks::{self, InterruptSource};
use crate::uses::NotificationTimes;

impl Paths {
    /// Begins to watch the vCPU of an instance, once it is known.
    #[inline]
    pub(super) fn notice(&mut self, at: u32, now: &EventContext<'_, '_>, machine: &mut Machine) {
        let live = &self.live[index_of(at)];
        let back_end = self.index.roles[index_of(live.chain)].back_end;
        if live.notes.is_none() || back_end.is_some() {
            self.begin_notes(at, now, machine);
        }
    }

    #[inline(never)]
    fn begin_notes(&mut self, at: u32, now: &EventContext<'_, '_>, machine: &mut Machine) {
        let live = &self.live[index_of(at)];
        let roles = &self.index.roles[index_of(live.chain)];
        let held = |role: usize| {
            live.role(role)
                .filter(|_| !live.is_pending(role))
                .and_then(|value| u32::try_from(value).ok())
        };
        let subject = roles.subjects.iter().find_map(|role| held(*role));
        let back_end = roles.back_end.and_then(held);
        if let Some(subject) = subject
            && live.notes.is_none()
        {
            let mut notes = self.live[index_of(at)].spare.take().unwrap_or_default();
            notes.clear();
            self.look_at(&mut notes, subject, now, machine);
            let watcher = InstanceWatcher {
                instance: at,
                chain: self.live[index_of(at)].chain,
            };
            self.watchers.add(subject, notes.cpu, watcher);
            self.live[index_of(at)].notes = Some(notes);
        }
        if let Some(back_end) = back_end
            && self.live[index_of(at)]
                .notes
                .as_ref()
                .is_some_and(|notes| notes.back_end.is_none())
        {
            let task = *self.tasks.entry(back_end, machine.threads());
            if let Some(notes) = &mut self.live[index_of(at)].notes {
                notes.back_end = Some((back_end, task.what, task.run));
            }
        }
    }

    /// What a vCPU is doing.
    fn look_at(
        &mut self,
        notes: &mut InstanceNotes,
        subject: u32,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
    ) {
        let time = now.event.time;
        let task = *self.tasks.entry(subject, machine.threads());
        notes.subject = subject;
        notes.cpu = task.cpu;
        let before = self.seen_vcpus.of(subject);
        let is_known_late = before.is_some();
        // What sleeps does what it did, whenever that began.
        let is_woken = now.task == Some(subject)
            && matches!(now.data, Data::SchedWaking(_) | Data::SchedWakeup(_));
        let seen = match before.map(|resolved| resolved.seen) {
            Some(Some(seen)) => seen,
            Some(None) if !is_woken => SeenVcpu::UNKNOWN,
            _ => seen_vcpus::seen(subject, task.run, machine),
        };
        notes.since = before.map_or(time, |resolved| resolved.accepted);
        notes.was = seen.was;
        notes.was_access = seen.access;
        notes.was_reason = seen.reason;
        for exit in before.iter().flat_map(|resolved| &resolved.exits) {
            exit.note(notes);
        }
        if now.guest.is_some() {
            // It happens in the guest, and says nothing of the vCPU's thread.
            return;
        }
        if let Data::KvmVcpuWakeup(wakeup) = now.data
            && now.thread == subject
        {
            notes.polled = Some(!wakeup.waited);
        }
        if matches!(now.data, Data::KvmExit(exit) if !exit.inner) && !is_known_late {
            // It was in its guest, as before every exit.
            notes.was = VcpuActivity::Unknown;
        }
        if is_woken {
            notes.waker = match self.accepted.get(&now.thread) {
                Some(raised) => (*raised).into(),
                None => self.unseen_waker(now, subject, machine.threads()),
            };
            // Who is woken did not run, whatever is known.
            if matches!(notes.was, VcpuActivity::Unknown | VcpuActivity::Running) {
                notes.was = VcpuActivity::Asleep;
            }
        }
    }

    pub(super) fn unwatch(&mut self, at: u32) {
        if let Some(notes) = &self.live[index_of(at)].notes {
            self.watchers.remove(notes.subject, notes.cpu, at);
        }
    }

    fn watchers(&mut self, slot: u32, mut with: impl FnMut(&mut InstanceNotes)) {
        for one in self.watchers.of(slot) {
            if let Some(notes) = &mut self.live[index_of(one.instance)].notes {
                with(notes);
            }
        }
    }

    /// A vCPU's thread is on another CPU.
    fn moves(&mut self, slot: u32, cpu: i32) {
        let live = &mut self.live;
        self.watchers.moved(slot, cpu, |at| {
            let notes = live[index_of(at)].notes.as_mut()?;
            Some(std::mem::replace(&mut notes.cpu, cpu))
        });
    }

    /// A vCPU's own timer interrupts it: what woke it, if nothing else did.
    pub(super) fn own_timer(&mut self, thread: u32) {
        self.watchers(thread, |notes| {
            let slept = matches!(notes.was, VcpuActivity::Halted | VcpuActivity::Asleep);
            if slept && notes.waker == WakeSource::Unknown {
                notes.waker = WakeSource::Timer;
            }
        });
    }

    /// Notes for the instances under way what happens, before they go on.
    #[inline]
    pub(super) fn watch(
        &mut self,
        now: &EventContext<'_, '_>,
        machine: &mut Machine,
        irq: Option<u32>,
    ) {
        if self.watchers.is_empty() && !self.seen_vcpus.is_watching() {
            return;
        }
        match now.data {
            Data::KvmEntry(_) => self.ends_exit(now, machine),
            Data::KvmVcpuWakeup(wakeup) => {
                self.watchers(now.thread, |notes| notes.polled = Some(!wakeup.waited));
            }
            Data::SchedSwitch(_) => self.gets_cpu(now),
            Data::SchedMigrateTask(migrate) => {
                if let Some(task) = now.task {
                    self.watchers(task, |notes| notes.migrated = true);
                    self.moves(task, migrate.dest_cpu);
                }
            }
            _ => {
                if let Some(irq) = irq {
                    self.interrupts_host(now.event.cpu, irq);
                }
            }
        }
    }

    /// A vCPU's exit ends: it enters its guest again.
    fn ends_exit(&mut self, now: &EventContext<'_, '_>, machine: &mut Machine) {
        let Some(vcpu) = machine.vcpu_of(now.event.tid) else {
            return;
        };
        let cause = machine.cause(vcpu);
        let vmm = machine.in_vmm(vcpu);
        let began = self.tasks.get(now.thread).exit_at;
        let exit = EndedExit {
            began,
            ended: now.event.time,
            reason: cause.reason,
            access: cause.access,
            vmm,
        };
        self.seen_vcpus.exit_ends(now.thread, exit);
        self.watchers(now.thread, |notes| exit.note(notes));
    }

    /// A task gets a CPU from another.
    fn gets_cpu(&mut self, now: &EventContext<'_, '_>) {
        let (Some(prev), Some(next)) = (now.prev, now.task) else {
            return;
        };
        let cpu = now.event.cpu;
        self.watchers(next, |notes| {
            if notes.behind.is_none() && prev < tasks::IDLE {
                notes.behind = Some(prev);
            }
            notes.migrated |= notes.cpu != cpu && notes.cpu != NONE;
        });
        self.moves(next, cpu);
        if next >= tasks::IDLE {
            return;
        }
        for one in self.watchers.on(cpu) {
            if let Some(notes) = &mut self.live[index_of(one.instance)].notes
                && notes.subject != next
                && notes.beside.len() < MAX_LISTED
                && !notes.beside.contains(&next)
            {
                notes.beside.push(next);
            }
        }
    }

    /// The host handles an interrupt on a CPU.
    fn interrupts_host(&mut self, cpu: i32, irq: u32) {
        for one in self.watchers.on(cpu) {
            if let Some(notes) = &mut self.live[index_of(one.instance)].notes {
                notes::count(&mut notes.host_irqs, irq);
            }
        }
    }

    /// Takes what the event changes, once instances have gone on.
    pub(super) fn after(&mut self, now: &EventContext<'_, '_>, machine: &Machine) {
        let threads: &Threads = machine.threads();
        match now.data {
            Data::SchedSwitch(_) => {
                let slots = (now.prev.unwrap_or_default(), now.task.unwrap_or_default());
                self.tasks
                    .sched(now.data, now.event.time, now.event.cpu, slots, threads);
                self.forget(slots.0);
            }
            Data::SchedWakeup(_) => {
                let slots = (0, now.task.unwrap_or_default());
                self.tasks
                    .sched(now.data, now.event.time, now.event.cpu, slots, threads);
            }
            Data::SchedWaking(_) => {
                // One interrupt wakes one vCPU, but for those that are sent to many.
                let accepted = self.accepted.get(&now.thread);
                if accepted.is_some_and(|raised| *raised != InterruptSource::Ipi)
                    && now
                        .task
                        .is_some_and(|task| self.tasks.get(task).what == tasks::TaskKind::Vcpu)
                {
                    self.accepted.remove(&now.thread);
                }
            }
            Data::KvmExit(_) | Data::KvmEntry(_) => {
                self.crossed(now.data, now.thread, now.event.time, threads);
            }
            Data::KvmUserspaceExit(_) | Data::KvmFpu(_) => self.forget(now.thread),
            Data::KvmVcpuWakeup(_) => {
                self.raised.remove(&now.thread);
            }
            Data::TaskRename(_) => {
                if let Some(slot) = now.task {
                    self.tasks.renamed(slot);
                }
            }
            Data::SchedProcessFork(_) => self.forget_slots(),
            _ => {}
        }
    }

    /// A thread has left its guest, or is about to be in it.
    #[inline]
    pub(super) fn crossed(&mut self, data: &Data, thread: u32, time: u64, threads: &Threads) {
        match data {
            Data::KvmExit(exit) => {
                let task = self.tasks.entry(thread, threads);
                if !exit.inner {
                    task.exit_at = time;
                }
                task.halts = exit.reason.is_waiting();
            }
            Data::KvmEntry(_) => {
                let task = self.tasks.entry(thread, threads);
                task.entry_at = time;
                if std::mem::take(&mut task.halts) {
                    task.idle_until = time;
                }
            }
            _ => {}
        }
        self.forget(thread);
    }

    /// Remembers the levels that the event has.
    pub(super) fn rises(&mut self) {
        for (key, level) in self.rising.drain(..) {
            // A line that is not remembered is low.
            if level == 0 {
                self.levels.remove(&key);
                continue;
            }
            if self.levels.len() >= MAX_REMEMBERED {
                self.levels.clear();
            }
            self.levels.insert(key, level);
        }
    }

    #[inline]
    pub(super) fn forget(&mut self, thread: u32) {
        if !self.raised.is_empty() {
            self.raised.remove(&thread);
        }
        if !self.accepted.is_empty() {
            self.accepted.remove(&thread);
        }
    }

    /// Takes a side record: a name, a loss, a mapping.
    pub fn side(&mut self, side: &Side<'_>) {
        match *side {
            // The recorder's sum comes when all is over, and counts again what was recorded where it happened.
            Side::Lost {
                cpu,
                kind: LostKind::Ring,
                ..
            } => self.lost(cpu),
            Side::Fork { .. } => self.forget_slots(),
            _ => {}
        }
    }

    /// Threads are not kept apart any more. Instances that they take part in may go on without their names.
    pub fn retire(&mut self, retired: &RetiredThreads) {
        self.forget_slots();
        self.tasks.retire(retired);
        self.interrupts.retire(retired);
        for slot in retired.slots() {
            self.raised.remove(&slot);
            self.accepted.remove(&slot);
            self.last_target.remove(&slot);
        }
        self.watchers.retire();
    }

    /// Events of a CPU were lost: what instances there would have gone on by may be among them.
    fn lost(&mut self, cpu: i32) {
        let tickets = self.interrupts.maybe_on(cpu, &self.tasks);
        let may_be = |live: &LiveInstance| {
            live.pending != 0
                && (0..crate::lang::MAX_ROLES).any(|role| {
                    let ticket = live.role(role).filter(|_| live.is_pending(role));
                    ticket.is_some_and(|ticket| tickets.contains(&ticket))
                })
        };
        let gone: Vec<u32> = (0u32..)
            .zip(&self.live)
            .filter(|(_, live)| live.live)
            .filter(|(_, live)| {
                let on = |slot: u32| self.tasks.get(slot).cpu == cpu;
                let noted = live.notes.as_ref();
                cpu == NONE
                    || may_be(live)
                    || (live.last().machine == 0 && live.last().cpu == cpu)
                    || on(live.last().thread)
                    || noted.is_some_and(|notes| notes.cpu == cpu || on(notes.subject))
                    || noted.is_some_and(|n| n.back_end.is_some_and(|(slot, ..)| on(slot)))
            })
            .map(|(at, _)| at)
            .collect();
        for at in gone {
            self.give_up(at, Some(DropReason::LostEvents));
        }
        // What ran there, and what was raised there, is not known any more.
        let tasks = &self.tasks;
        let there =
            |slot: u32| cpu == NONE || tasks.get(slot).cpu == cpu || slot == tasks::idle(cpu);
        self.raised.retain(|slot, _| !there(*slot));
        self.accepted.retain(|slot, _| !there(*slot));
        self.tasks.forget_cpu(cpu);
    }

    /// Ends the walk.
    pub fn finish(&mut self, machine: &Machine) {
        let mut left: Vec<(u64, u32)> = (0u32..)
            .zip(&self.live)
            .filter(|(_, live)| live.live)
            .map(|(at, live)| (live.born, at))
            .collect();
        left.sort_unstable();
        for (_, at) in left {
            if self.is_open(&self.live[index_of(at)]) {
                self.unregister(at);
                self.complete(at);
            } else {
                let live = &self.live[index_of(at)];
                let unresolved = self.is_unresolved(live, machine.threads());
                self.give_up(
                    at,
                    Some(if unresolved {
                        DropReason::Unresolved
                    } else {
                        DropReason::Ended
                    }),
                );
            }
        }
    }

    /// Returns whether an instance waits for a vCPU whose VM is not known.
    fn is_unresolved(&self, live: &LiveInstance, threads: &Threads) -> bool {
        (0..crate::lang::MAX_ROLES).any(|role| {
            live.is_pending(role)
                && live
                    .role(role)
                    .is_some_and(|ticket| !self.interrupts.has_one(ticket, &self.tasks, threads))
        })
    }

    /// A vCPU's write goes to user space, so that it notifies nobody.
    pub(super) fn goes_to_user(&mut self, at: u32) {
        let live = &self.live[index_of(at)];
        let roles = &self.index.roles[index_of(live.chain)];
        let address = roles.address.and_then(|role| live.role(role));
        if let (Some(address), Some(notes), false) = (address, &live.notes, live.counted) {
            let path = self.index.chains[index_of(live.chain)].0;
            let uses = &mut self.tallies[index_of(path)].uses;
            uses.goes_to_user(notes.subject, address);
        }
    }

    /// Adds a complete instance to the sums by device and by vCPU.
    pub(super) fn sum_up(&mut self, at: u32) {
        let live = &self.live[index_of(at)];
        let (path, chain) = self.index.chains[index_of(live.chain)];
        let roles = &self.index.roles[index_of(live.chain)];
        let (Some(first), Some(notes)) = (live.reached().first(), &live.notes) else {
            return;
        };
        let last = live.last();
        let uses = &mut self.tallies[index_of(path)].uses;
        if let (Some(role), Some((slot, what, _))) = (roles.address, notes.back_end) {
            let steps = &self.paths[index_of(path)].chains[usize::from(chain)].steps;
            let step = |reached: &super::ReachedStep| &steps[usize::from(reached.step)];
            // What a back end that is done waits for is not its time.
            let answer = live.reached().iter().find(|one| step(one).answers);
            let at = |name: &str| {
                let reached = live.reached().iter().find(|one| step(one).name == name);
                reached.map(|one| one.time)
            };
            let pending = at("back end done").zip(at("interrupt"));
            let one = NotificationTimes {
                from: first.time,
                to: answer.unwrap_or(&last).time,
                end: last.time,
                worked: at("work").is_some(),
                passed_on: at("handed over").is_some() || pending.is_some(),
                pending_ns: pending.map(|(done, raised)| raised.saturating_sub(done)),
            };
            uses.device(notes.subject, live.role(role), (slot, what), &one);
        }
        if roles.target {
            let made = notes.accesses.iter().filter(|((_, vmm), _)| *vmm);
            let most = made.max_by_key(|(_, count)| *count);
            let was = notes.was_access.filter(|_| notes.was.busy());
            let access = most.map(|((access, _), _)| *access).or(was);
            let total = last.time.saturating_sub(first.time);
            uses.meets(notes.subject, access, first.time, total);
        }
    }
}
