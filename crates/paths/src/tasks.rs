//! What tasks are, and whether they run: for vCPUs where [`model::Machine`] does not know.

use std::collections::BTreeSet;

use event::sched::{Leaves, TaskComm};
use event::{Data, NONE};
use model::{BySlot, NamedRole, RetiredThreads, Threads, vcpu_from_comm};

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TaskRun {
    /// Not known yet.
    #[default]
    Unknown,
    /// It has a CPU.
    Running,
    /// It waits for one.
    Runnable,
    /// It sleeps.
    Asleep,
}

/// What a task's name and doings say it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TaskKind {
    /// A vCPU's thread.
    Vcpu,
    /// A kworker.
    Kworker,
    /// A vhost worker: in the kernel, one for each device or queue.
    Vhost,
    /// An idle task.
    Idle,
    /// Another thread of the kernel.
    Kernel,
    /// Anything else: the VMM's other threads among them.
    #[default]
    Other,
}

/// Whose thread of user space one is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedOwner {
    /// A VMM's.
    Vmm,
    /// A switch's: it polls.
    Switch,
}

impl NamedOwner {
    fn of(comm: &str) -> Option<NamedOwner> {
        match NamedRole::from(comm) {
            NamedRole::Qemu | NamedRole::Iothread => Some(NamedOwner::Vmm),
            NamedRole::PollMode => Some(NamedOwner::Switch),
            _ => None,
        }
    }
}

/// Who raised the interrupt that a thread makes accepted next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InterruptSource {
    /// Nobody: the vCPU's own timer.
    #[default]
    Local,
    /// A vCPU, by an inter-processor interrupt.
    Ipi,
    /// A message.
    Msi,
    /// A pin of an interrupt controller.
    Pin,
}

/// Slots from here on stand for idle tasks: each CPU has one, all with the thread id 0.
pub(crate) const IDLE: u32 = 1 << 31;

/// Returns the slot that stands for a CPU's idle task.
pub(crate) fn idle(cpu: i32) -> u32 {
    IDLE | cpu.cast_unsigned()
}

/// One task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PathTask {
    pub what: TaskKind,
    /// Who its name says that it works for, if it is a thread of user space and no vCPU.
    pub named: Option<NamedOwner>,
    /// The vCPU's number, if the thread is one's and it is known.
    pub vcpu: Option<u32>,
    pub run: TaskRun,
    /// Since when.
    pub since: u64,
    /// The CPU it had last, if known.
    pub cpu: i32,
    /// Its id.
    pub tid: i32,
    /// When it last left its guest, if it is a vCPU, and when it last entered it.
    pub exit_at: u64,
    pub entry_at: u64,
    /// It has raised a device's interrupt.
    pub raises: bool,
    /// How long it did what before `since`, by [`TaskRun`].
    done: [u64; 4],
    /// Until when it slept last; a vCPU, until when it was in a halt.
    pub idle_until: u64,
    /// It is a vCPU in a halt.
    pub halts: bool,
    known: bool,
    entered: bool,
    /// Its thread's name was looked for, and there was none.
    nameless: bool,
}

impl PathTask {
    /// Returns how long it has done what up to a time: the difference of two readings is what was between.
    pub(crate) fn done_at(&self, time: u64) -> [u64; 4] {
        let mut done = self.done;
        let now = &mut done[self.run as usize];
        *now = now.saturating_add(time.saturating_sub(self.since));
        done
    }

    /// The number it has as a vCPU.
    fn number(&self) -> Option<u32> {
        self.vcpu.filter(|_| self.what == TaskKind::Vcpu)
    }
}

/// All tasks, by slot.
#[derive(Debug)]
pub(crate) struct PathTasks {
    all: BySlot<PathTask>,
    /// vCPUs: number and slot; and those whose number is not known.
    vcpus: BTreeSet<(u32, u32)>,
    nameless: BTreeSet<u32>,
    unknown: PathTask,
    /// Stands for all idle tasks.
    idle: PathTask,
    scratch: PathTask,
}

impl Default for PathTasks {
    fn default() -> PathTasks {
        let unknown = PathTask {
            cpu: NONE,
            ..PathTask::default()
        };
        PathTasks {
            all: BySlot::default(),
            vcpus: BTreeSet::new(),
            nameless: BTreeSet::new(),
            unknown,
            idle: PathTask {
                what: TaskKind::Idle,
                known: true,
                ..unknown
            },
            scratch: unknown,
        }
    }
}

impl PathTasks {
    /// Returns a task.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &PathTask {
        if slot >= IDLE {
            return &self.idle;
        }
        self.all.get(slot).unwrap_or(&self.unknown)
    }

    /// Returns a task, which is made known if it is not.
    #[inline]
    pub(crate) fn entry(&mut self, slot: u32, threads: &Threads) -> &mut PathTask {
        if slot >= IDLE {
            self.scratch = self.idle;
            return &mut self.scratch;
        }
        if self.all.get(slot).is_none_or(|task| !task.known) {
            self.learn(slot, threads);
        }
        let unknown = self.unknown;
        self.all.entry(slot, || unknown)
    }

    /// Looks at a thread's name.
    #[inline(never)]
    fn learn(&mut self, slot: u32, threads: &Threads) {
        let Some((tid, thread)) = threads.at(slot) else {
            return;
        };
        let named = thread.comm.is_some();
        let unknown = self.unknown;
        let task = self.all.entry(slot, || unknown);
        let numbered = || thread.vcpu.is_some() && task.number().is_none();
        if task.nameless && !named && !numbered() {
            return;
        }
        task.nameless = !named;
        let comm = thread.comm.clone().unwrap_or_default();
        let before = task.number();
        task.tid = tid;
        task.known = named || tid == 0;
        task.named = NamedOwner::of(&comm);
        if !task.entered {
            task.what = what(tid, &comm);
        }
        task.vcpu = task.vcpu.or(match task.what {
            TaskKind::Vcpu => thread.vcpu.or_else(|| vcpu_from_comm(&comm)),
            _ => None,
        });
        self.changed(slot, before);
    }

    /// What a task is may have changed.
    fn changed(&mut self, slot: u32, before: Option<u32>) {
        let task = self.get(slot);
        let now = task.number();
        if task.what == TaskKind::Vcpu && task.entered && now.is_none() {
            self.nameless.insert(slot);
        } else if !self.nameless.is_empty() {
            self.nameless.remove(&slot);
        }
        if before == now {
            return;
        }
        if let Some(number) = before {
            self.vcpus.remove(&(number, slot));
        }
        if let Some(number) = now {
            self.vcpus.insert((number, slot));
        }
    }

    /// A thread entered or left a guest.
    #[inline]
    pub(crate) fn is_vcpu(&mut self, slot: u32, number: Option<u32>, threads: &Threads) {
        let task = self.entry(slot, threads);
        if !task.entered || task.vcpu.is_none() {
            let before = task.number();
            task.entered = true;
            task.what = TaskKind::Vcpu;
            let numbered = || threads.at(slot).and_then(|(_, thread)| thread.vcpu);
            task.vcpu = number.or(task.vcpu).or_else(numbered);
            self.changed(slot, before);
        }
    }

    /// An event of the scheduler has a task's name, which may be another than before.
    #[inline]
    pub(crate) fn named(&mut self, slot: u32, tid: i32, comm: &TaskComm, threads: &Threads) {
        let task = self.entry(slot, threads);
        if !task.known {
            let name = comm.to_str_lossy();
            let before = task.number();
            task.known = true;
            task.named = NamedOwner::of(&name);
            if !task.entered {
                task.what = what(tid, &name);
                if task.what == TaskKind::Vcpu {
                    task.vcpu = vcpu_from_comm(&name);
                }
            }
            self.changed(slot, before);
        }
    }

    /// A text has a name before each event; it may be an old one, or none (`<...>`).
    #[inline]
    pub(crate) fn called(&mut self, slot: u32, tid: i32, comm: &str, threads: &Threads) {
        let task = self.entry(slot, threads);
        if !task.known && !comm.starts_with('<') && !comm.starts_with(':') {
            let before = task.number();
            task.known = true;
            task.named = NamedOwner::of(comm);
            task.tid = tid;
            if !task.entered {
                task.what = what(tid, comm);
                if task.what == TaskKind::Vcpu {
                    task.vcpu = vcpu_from_comm(comm);
                }
            }
            self.changed(slot, before);
        }
    }

    /// A thread makes an event on a CPU.
    #[inline]
    pub(crate) fn seen_on(&mut self, slot: u32, cpu: i32) {
        if slot < IDLE {
            let unknown = self.unknown;
            self.all.entry(slot, || unknown).cpu = cpu;
        }
    }

    /// Returns the vCPUs of that number.
    pub(crate) fn vcpus(&self, number: u32) -> impl Iterator<Item = u32> {
        let all = self.vcpus.range((number, 0)..=(number, u32::MAX));
        all.map(|(_, slot)| *slot)
    }

    /// Returns all vCPUs.
    pub(crate) fn all_vcpus(&self) -> impl Iterator<Item = u32> {
        let named = self.vcpus.iter().map(|(_, slot)| *slot);
        named.chain(self.nameless.iter().copied())
    }

    /// Returns the only vCPU of that number, if there is just one; or the only vCPU of all, where its number is not
    /// known.
    pub(crate) fn only_vcpu(&self, number: u32) -> Option<u32> {
        if self.vcpus.is_empty() && self.nameless.len() == 1 {
            return self.nameless.first().copied();
        }
        let mut all = self.vcpus(number);
        let slot = all.next()?;
        all.next().is_none().then_some(slot)
    }

    /// A thread has another name.
    pub(crate) fn renamed(&mut self, slot: u32) {
        if let Some(task) = self.all.get_mut(slot) {
            task.known = false;
            task.nameless = false;
        }
    }

    /// Forgets threads that are not kept apart any more.
    pub(crate) fn retire(&mut self, retired: &RetiredThreads) {
        for slot in retired.slots() {
            if let Some(number) = self.all.remove(slot).and_then(|task| task.number()) {
                self.vcpus.remove(&(number, slot));
            }
            self.nameless.remove(&slot);
        }
    }

    /// Events of a CPU were lost: who has it is not known; -1 stands for all.
    pub(crate) fn forget_cpu(&mut self, cpu: i32) {
        for (_, task) in self.all.iter_mut() {
            if task.run == TaskRun::Running && (cpu == NONE || task.cpu == cpu) {
                task.run = TaskRun::Unknown;
            }
        }
    }

    /// Takes an event of the scheduler. `slots` are those of the thread that leaves the CPU and of the one that it is
    /// about.
    #[inline]
    pub(crate) fn sched(
        &mut self,
        data: &Data,
        time: u64,
        cpu: i32,
        slots: (u32, u32),
        threads: &Threads,
    ) {
        match data {
            Data::SchedSwitch(switch) => {
                let (prev, next) = slots;
                let leaves = match switch.prev_state.leaves() {
                    Leaves::Runnable => TaskRun::Runnable,
                    Leaves::Blocked | Leaves::Dead => TaskRun::Asleep,
                };
                self.set(prev, leaves, time, cpu, threads);
                self.set(next, TaskRun::Running, time, cpu, threads);
            }
            Data::SchedWaking(_) => {}
            Data::SchedWakeup(wakeup) => {
                let task = self.entry(slots.1, threads);
                if task.run != TaskRun::Running {
                    let cpu = wakeup.target_cpu.unwrap_or(task.cpu);
                    self.set(slots.1, TaskRun::Runnable, time, cpu, threads);
                }
            }
            _ => {}
        }
    }

    fn set(&mut self, slot: u32, run: TaskRun, time: u64, cpu: i32, threads: &Threads) {
        let task = self.entry(slot, threads);
        if task.run != run {
            // A vCPU's thread sleeps for other reasons too, such as a page.
            if task.run == TaskRun::Asleep && (task.what != TaskKind::Vcpu || task.halts) {
                task.idle_until = time;
            }
            task.done = task.done_at(time);
            task.run = run;
            task.since = time;
        }
        task.cpu = cpu;
    }
}

/// Returns what a name says. Kernel threads are known by theirs; a VMM's thread may be called anything.
fn what(tid: i32, comm: &str) -> TaskKind {
    if tid == 0 {
        return TaskKind::Idle;
    }
    match NamedRole::from(comm) {
        NamedRole::Kworker(_) => TaskKind::Kworker,
        NamedRole::Vhost(_) => TaskKind::Vhost,
        NamedRole::Vcpu(_) => TaskKind::Vcpu,
        NamedRole::Kernel | NamedRole::Kvm(_) | NamedRole::Irq => TaskKind::Kernel,
        _ => TaskKind::Other,
    }
}
