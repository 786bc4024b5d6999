//! The machine: which vCPU is in what state, on which CPU, and behind whom.

mod end;
mod follow;
mod retire;
mod sched;
mod tracks;
mod turns;

use event::{Data, Event, EventType, Kind, KvmFpu, LostKind, MmioAccess, NONE, Side};

use crate::by_number::ByNumber;
use crate::by_slot::BySlot;
use crate::retired::{RetiredCount, StateLimits};
use crate::seen::SeenEvents;
use crate::span::{Cause, GuestAccess, SpanSink, State, Times};
use crate::tasks::TaskStates;
use crate::track::{Polls, SchedState, TrackPlace, VcpuTrack};
use crate::{Tasks, ThreadFacts, Threads, Vm, find_vms};

use tracks::VcpuTracks;

pub use follow::Follow;

/// vCPUs that wait for one CPU at once, of which it is kept behind whom. More of them are as long on a run queue, and
/// nobody says what they wait for: each switch would cost as much as there are of them.
const MAX_WAITING: usize = 1 << 8;

/// `KVM_EXIT_HLT` (`include/uapi/linux/kvm.h`): the VMM is to wait for the guest's next interrupt.
const EXIT_HLT: u32 = 5;

/// Events of KVM that nobody records but who records all of KVM's, `kvm_halt_poll_ns` with them. A text does not say
/// what it is of, and a trace.dat not always.
const OF_ALL_KVM: [&str; 6] = [
    "kvm_hv_timer_state",
    "kvm_wait_lapic_expire",
    "kvm_pv_tlb_flush",
    "kvm_pv_eoi",
    "kvm_timer_save_state",
    "kvm_timer_restore_state",
];

/// One CPU.
#[derive(Debug, Clone, Default)]
struct CpuQueue {
    /// vCPUs on its run queue.
    waiting: Vec<u32>,
    /// Time of its last event.
    last: u64,
}

/// A vCPU in an exit in which its guest asked to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// It has its CPU: it polls, or is on its way to sleep or back.
    Running,
    /// It was woken, and waits for a CPU.
    Runnable,
    /// It sleeps.
    Asleep,
}

/// What is known of a vCPU at the end of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VcpuTimes {
    /// Its number in the walk, which is that of its spans.
    pub number: u32,
    /// Its thread.
    pub tid: i32,
    /// Slot of its thread.
    pub thread: u32,
    /// Time of its first event.
    pub from: u64,
    /// Time of its thread's end, or of the last event that the machine looked at.
    pub to: u64,
    /// Exits.
    pub exits: u64,
    /// Halts and how KVM polled in them.
    pub polls: Polls,
    /// Whether its thread has ended.
    pub ended: bool,
    /// Whether it is no vCPU, but another thread that is followed ([`Follow::Other`]).
    pub other: bool,
}

/// Rebuilds what every vCPU does from the events that show it.
///
/// A vCPU is a thread that enters a guest. It is followed from its first event of KVM; each of its instants
/// from then on is in exactly one [`State`]. The kernel's own rules are used: a thread is runnable from
/// `sched_wakeup` (it is on a run queue) to the `sched_switch` to it, as `run_delay` in
/// `/proc/PID/schedstat` counts; where wake-ups are recorded as `sched_waking` alone, from that. A thread
/// that is switched out runnable was preempted.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    threads: Threads,
    tracks: VcpuTracks,
    /// By thread slot, the vCPU it is.
    vcpus: BySlot<u32>,
    by_tid: ByNumber<u32>,
    /// The thread that made the last exits or entries, where threads alone are followed, and which of both it made:
    /// some kernels record the vCPU's number with entries alone.
    learned: (i32, LearnedKinds),
    /// The tasks of the scheduler's last event.
    tasks: Tasks,
    /// What all tasks do, and who has which CPU.
    task_states: TaskStates,
    cpus: Vec<CpuQueue>,
    seen: SeenEvents,
    /// Whether a thread can lose its CPU in guest mode without an exit event, as on s390: there the
    /// host's interrupts are taken behind the back of `sie_exit`.
    leaves_guest: bool,
    /// The recording's clock counts ticks, which durations in events cannot be compared with.
    ticks: bool,
    /// Nobody asks which access made an exit.
    no_accesses: bool,
    /// The recording's own formats say that it is x86's.
    x86: bool,
    /// `kvm_fpu` is recorded, which says when the VMM is done.
    fpu: bool,
    end: u64,
    /// From when on events of some CPUs are missing, and not those of others.
    uneven_from: Option<u64>,
    /// How many threads are kept apart, and how many are no longer.
    limits: StateLimits,
    retired: RetiredCount,
}

/// Which events of a vCPU's were looked at.
#[derive(Debug, Clone, Copy, Default)]
struct LearnedKinds {
    exit: bool,
    entry: bool,
}

impl Machine {
    /// Returns a machine of which nothing is known.
    pub fn new() -> Machine {
        Machine::default()
    }

    /// Says whether [`Cause::access`] is of no interest, which saves looking at accesses where that is all they
    /// would show.
    pub fn ignore_accesses(&mut self, ignore: bool) {
        self.no_accesses = ignore;
    }

    /// Says that the recording's clock counts ticks and no nanoseconds: how long a halt was polled, which its
    /// event has in nanoseconds, is then not known.
    pub fn counts_ticks(&mut self) {
        self.ticks = true;
    }

    /// Returns whether the recording's clock counts ticks.
    pub fn in_ticks(&self) -> bool {
        self.ticks
    }

    /// Returns its threads.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Returns about how many things it follows: threads, vCPUs and CPUs.
    pub fn len(&self) -> usize {
        let waiting = self.cpus.iter().map(|cpu| 1 + cpu.waiting.len());
        let pending = self.tracks.iter().map(|(_, track)| track.len());
        let tasks = self.threads.len() + self.task_states.len();
        tasks + pending.sum::<usize>() + waiting.sum::<usize>()
    }

    /// Returns whether it follows nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes thread names that the recorder saved apart from the events.
    pub fn saved_names<'n>(&mut self, names: impl IntoIterator<Item = (i32, &'n str)>) {
        self.threads.saved_names(names);
    }

    /// Takes facts given beside the recording, before its events.
    pub fn add_facts(&mut self, facts: &ThreadFacts) {
        self.threads.add_facts(facts);
    }

    /// Takes the name that a text has in its column of threads ([`Threads::called`]).
    pub fn called(&mut self, tid: i32, comm: &str) {
        self.threads.called(tid, comm);
    }

    /// Returns the tasks that the scheduler's event is about which the machine took last.
    #[inline]
    pub fn tasks(&self) -> Tasks {
        self.tasks
    }

    /// Returns the VMs the vCPUs belong to.
    pub fn vms(&self) -> Vec<Vm> {
        find_vms(&self.threads)
    }

    /// Returns which kinds of events there are.
    pub fn seen(&self) -> SeenEvents {
        self.seen
    }

    /// Returns the time a vCPU spent in each state so far; the difference of two readings is what was between.
    #[inline]
    pub fn times(&self, vcpu: u32) -> &Times {
        self.tracks
            .get(vcpu)
            .map_or(&Times::ZERO, |track| &track.times)
    }

    /// Returns whether the exit that a vCPU is in, or was in last, has been handled by the VMM so far.
    #[inline]
    pub fn in_vmm(&self, vcpu: u32) -> bool {
        self.tracks.get(vcpu).is_some_and(|track| track.vmm)
    }

    /// Returns what a vCPU does now, as far as events show.
    #[inline]
    pub fn state(&self, vcpu: u32) -> State {
        self.tracks
            .get(vcpu)
            .map_or(State::Unknown, VcpuTrack::state)
    }

    /// Returns why a vCPU is out of its guest now, and of which access; nothing of either while it is in it.
    #[inline]
    pub fn cause(&self, vcpu: u32) -> Cause {
        self.tracks
            .get(vcpu)
            .map_or(Cause::default(), |track| track.cause)
    }

    /// Returns whether a vCPU is in an exit in which the guest asked to wait, and if so whether it sleeps.
    #[inline]
    pub fn halt(&self, vcpu: u32) -> Option<Halt> {
        let track = self.tracks.get(vcpu)?;
        let asks = track.waiting() || track.place == (TrackPlace::User { halted: true });
        (asks && track.place != TrackPlace::Guest).then_some(match track.sched {
            SchedState::Blocked => Halt::Asleep,
            SchedState::Running if track.halt_over => return None,
            SchedState::Running => Halt::Running,
            SchedState::Runnable => Halt::Runnable,
        })
    }

    /// Returns the slot of the thread that has an id now.
    #[inline]
    pub fn slot(&mut self, tid: i32) -> u32 {
        self.threads.slot(tid)
    }

    /// Returns the halts of a vCPU so far and how KVM polled in them.
    pub fn polls(&self, vcpu: u32) -> Polls {
        self.tracks
            .get(vcpu)
            .map_or(Polls::default(), |track| track.polls)
    }

    /// Returns how many exits a vCPU has made. What an inner event says of one that is under way makes none.
    pub fn exits(&self, vcpu: u32) -> u64 {
        let track = self.tracks.get(vcpu);
        track.map_or(0, |track| track.exits)
    }

    /// Returns the vCPU that a thread is now.
    #[inline]
    pub fn vcpu_of(&mut self, tid: i32) -> Option<u32> {
        self.by_tid.get_mut(tid).copied()
    }

    /// Returns whether events of a kind are wanted, as [`event::Sink::wants`] asks.
    pub fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.announced(ty);
        match ty.kind {
            Kind::KvmUserspaceExit => self.seen.userspace_exits |= ty.recorded,
            Kind::KvmVcpuWakeup => self.seen.halts |= ty.recorded && !self.ticks,
            Kind::KvmHaltPollNs => self.seen.poll_lengths |= ty.recorded,
            Kind::Other if OF_ALL_KVM.contains(&ty.name) => {
                self.seen.poll_lengths |= ty.recorded;
                return false;
            }
            Kind::SchedSwitch => self.seen.switches |= ty.recorded,
            Kind::SchedWakeup | Kind::SchedWaking => self.seen.wakeups |= ty.recorded,
            // Arm has the format of kvm_fpu too, and never makes the event.
            Kind::KvmFpu => self.fpu |= ty.recorded && self.x86,
            // Where nothing else says that the VMM is done, an access that is answered does.
            Kind::KvmMmio | Kind::KvmPio | Kind::KvmMsr | Kind::KvmSysAccess => {
                return !(self.no_accesses && self.fpu);
            }
            Kind::KvmExit | Kind::KvmInnerExit => {
                self.seen.exits |= ty.recorded;
                let field = ty.format.and_then(|format| format.field("exit_reason"));
                self.x86 |= field.is_some();
            }
            Kind::KvmEntry => self.seen.entries |= ty.recorded,
            Kind::SchedWakeupNew
            | Kind::SchedMigrateTask
            | Kind::SchedProcessFork
            | Kind::SchedProcessExit
            | Kind::TaskRename => {}
            _ => return false,
        }
        true
    }

    /// Returns whether [`Machine::learn`] can learn anything from an event of the scheduler, of an exit or of an entry.
    #[inline]
    pub fn learns(&self, event: &Event<'_>) -> bool {
        let (tid, learned) = self.learned;
        match event.ty.kind {
            Kind::KvmExit | Kind::KvmInnerExit => tid != event.tid || !learned.exit,
            Kind::KvmEntry => tid != event.tid || !learned.entry,
            kind => kind.is_sched(),
        }
    }

    /// Takes of an event what it says of threads, their names and which are vCPUs, where nobody asks for states.
    #[inline]
    pub fn learn(&mut self, event: &Event<'_>, data: &Data) {
        let kind = event.ty.kind;
        if !matches!(kind, Kind::KvmEntry | Kind::KvmExit | Kind::KvmInnerExit) {
            self.learn_sched(event, data);
            let rule = self.task_states.wake_rule(event.ty.kind);
            return self.follow_tasks(event, data, rule);
        }
        let number = match data {
            Data::KvmEntry(entry) => entry.vcpu,
            Data::KvmExit(exit) => exit.vcpu,
            _ => None,
        };
        if event.tid < 0 {
            return;
        }
        if self.learned.0 != event.tid {
            self.learned = (event.tid, LearnedKinds::default());
        }
        match data {
            Data::KvmExit(_) => self.learned.1.exit = true,
            Data::KvmEntry(_) => self.learned.1.entry = true,
            // A record that was cut says nothing of its number.
            _ => {}
        }
        self.threads.vcpu_event(event, number);
    }

    /// Takes what an event of the scheduler says of threads: their names show which VM's they are, and so does who
    /// wakes them.
    #[inline]
    fn learn_sched(&mut self, event: &Event<'_>, data: &Data) {
        self.threads.shows_recorder(event, data);
        if let Some(tasks) = self.threads.sched(data) {
            self.tasks = tasks;
            if self.threads.presumes() {
                self.threads.presume(data, tasks);
            }
        }
        if let Data::SchedProcessFork(_) = data {
            // The new thread may have the id of one that was a vCPU.
            self.learned = (NONE, LearnedKinds::default());
        }
        if let Data::SchedWaking(wakeup) | Data::SchedWakeup(wakeup) = data {
            self.threads.wakes(event, wakeup.tid);
        }
    }

    /// Takes an event. Spans that are complete go to `spans`.
    #[inline]
    pub fn event<S: SpanSink>(&mut self, event: &Event<'_>, data: &Data, spans: &mut S) {
        self.end = self.end.max(event.time);
        if let Some(cpu) = self.cpu(event.cpu) {
            cpu.last = cpu.last.max(event.time);
        }
        match data {
            // Nobody knows whose it is.
            Data::KvmExit(_) | Data::KvmEntry(_) if event.tid < 0 => {}
            Data::KvmExit(exit) if exit.inner && self.inner(event, exit) => {}
            Data::KvmExit(exit) => self.exit(event, exit, spans),
            Data::KvmEntry(entry) => self.entry(event, entry.vcpu, spans),
            Data::KvmUserspaceExit(exit) => {
                self.seen.userspace_exits = true;
                if let Some(track) = self.in_kvm(event, spans) {
                    track.place = TrackPlace::User {
                        halted: exit.reason == Some(EXIT_HLT),
                    };
                    track.vmm = true;
                }
            }
            Data::KvmFpu(KvmFpu { load: true }) => {
                if let Some(track) = self.in_kvm(event, spans) {
                    track.loaded_from = Some(track.place);
                    track.place = TrackPlace::Kernel;
                }
            }
            Data::KvmFpu(KvmFpu { load: false }) => self.unload(event, spans),
            Data::KvmVcpuWakeup(wakeup) => {
                let ticks = self.ticks;
                self.seen.halts = !ticks;
                let seen = self.seen;
                if let Some(track) = self.in_kvm(event, spans)
                    && !ticks
                {
                    track.woken(event.time, wakeup.halted_ns, wakeup.waited, &seen);
                }
            }
            Data::KvmHaltPollNs(poll) => {
                self.seen.poll_lengths = true;
                if let Some(track) = self.in_kvm(event, spans) {
                    track.poll_set(poll.old_ns, poll.new_ns);
                }
            }
            Data::KvmPio(pio) => self.access(
                event,
                spans,
                GuestAccess::Port {
                    port: pio.port,
                    write: pio.write,
                },
            ),
            Data::KvmMsr(msr) => self.access(
                event,
                spans,
                GuestAccess::Msr {
                    msr: msr.msr,
                    write: msr.write,
                },
            ),
            Data::KvmSysAccess(sys) => self.access(
                event,
                spans,
                GuestAccess::Msr {
                    msr: sys.register().number(),
                    write: sys.write,
                },
            ),
            Data::KvmMmio(mmio) => self.access(
                event,
                spans,
                GuestAccess::Mmio {
                    gpa: mmio.gpa,
                    write: mmio.access == MmioAccess::Write,
                },
            ),
            _ => self.sched(event, data, spans),
        }
    }

    /// An event that a vCPU's thread makes in KVM: makes the thread known as one, and it runs.
    #[inline]
    fn kvm(&mut self, event: &Event<'_>, number: Option<u32>) -> u32 {
        let vcpu = match self.known_vcpu(event.tid) {
            Some(vcpu) => vcpu,
            None => self.first_event(event, number),
        };
        if number.is_some() && !self.tracks[vcpu].numbered {
            // Old kernels tell it of entries alone.
            self.tracks[vcpu].numbered = true;
            self.threads.vcpu_event(event, number);
        }
        self.runs(vcpu, event);
        vcpu
    }

    #[cold]
    fn first_event(&mut self, event: &Event<'_>, number: Option<u32>) -> u32 {
        // If it was followed as another thread, it was taken for what it is not.
        self.ends(event.tid, event.time);
        self.threads.vcpu_event(event, number);
        let thread = self.threads.acts(event.tid);
        self.begin(VcpuTrack::new(event.tid, thread, event.time, event.cpu))
    }

    /// Follows a thread from now on, and returns its number.
    fn begin(&mut self, track: VcpuTrack) -> u32 {
        let (tid, slot) = (track.tid, track.thread);
        let vcpu = self.tracks.push(track);
        *self.vcpus.entry(slot, || vcpu) = vcpu;
        *self.by_tid.entry(tid, || vcpu) = vcpu;
        vcpu
    }

    /// The thread makes an event, so it runs, on the event's CPU.
    #[inline]
    fn runs(&mut self, vcpu: u32, event: &Event<'_>) {
        let track = &mut self.tracks[vcpu];
        track.early = None;
        track.loaded_from = None;
        if track.sched != SchedState::Running {
            if self.seen.returns {
                track.gap(event.time);
            } else if track.sched == SchedState::Runnable {
                self.close_wait(vcpu, event.time);
            } else {
                track.advance(event.time);
            }
            self.leave_queue(vcpu);
            self.tracks[vcpu].sched = SchedState::Running;
        }
        let track = &mut self.tracks[vcpu];
        if track.cpu != event.cpu && event.cpu != NONE {
            if track.has_cpu() && self.seen.returns {
                // It changed its CPU without having been seen to leave the other one.
                track.gap(event.time);
            } else {
                track.advance(event.time);
            }
            track.cpu = event.cpu;
        }
    }

    /// An event inside `KVM_RUN`: the vCPU is out of its guest, whether its exit was seen or not.
    #[inline]
    fn in_kvm<S: SpanSink>(&mut self, event: &Event<'_>, spans: &mut S) -> Option<&mut VcpuTrack> {
        let vcpu = self.known_vcpu(event.tid)?;
        self.runs(vcpu, event);
        let track = &mut self.tracks[vcpu];
        if track.place == TrackPlace::Guest {
            track.gap(event.time);
            track.flush(vcpu, spans);
            track.cause = Cause::default();
            track.place = TrackPlace::Kernel;
        } else {
            track.advance(event.time);
            track.relieve(vcpu, spans);
        }
        track.left_guest = false;
        Some(track)
    }

    fn access<S: SpanSink>(&mut self, event: &Event<'_>, spans: &mut S, access: GuestAccess) {
        if let Some(track) = self.in_kvm(event, spans) {
            // KVM records accesses inside `KVM_RUN`, so the VMM is done with it if it had it.
            track.place = TrackPlace::Kernel;
            track.cause.access = Some(access);
        }
    }

    /// `kvm_fpu: unload` says little: kernels before 4.14 make it on behalf of a thread that has just left its
    /// CPU. One right behind a load is another request's than `KVM_RUN`'s (`KVM_GET_MP_STATE` on some hosts), and
    /// the VMM goes on.
    fn unload<S: SpanSink>(&mut self, event: &Event<'_>, spans: &mut S) {
        let Some(vcpu) = self.known_vcpu(event.tid) else {
            return;
        };
        let track = &mut self.tracks[vcpu];
        if let Some(place) = track.loaded_from.take()
            && track.sched == SchedState::Running
        {
            track.advance(event.time);
            track.place = place;
        } else if track.place == TrackPlace::Guest && track.sched == SchedState::Running {
            // `KVM_RUN` is about to end, and no exit was seen.
            track.gap(event.time);
            track.flush(vcpu, spans);
            track.place = TrackPlace::Kernel;
        }
    }

    /// Takes a side record: a name, a loss, a mapping.
    pub fn side(&mut self, side: &Side<'_>) {
        self.threads.side(side);
        if let Side::Fork { .. } = side {
            self.learned = (NONE, LearnedKinds::default());
        }
        match *side {
            Side::Lost {
                cpu,
                kind: LostKind::Ring,
                ..
            } => {
                self.task_states.lost(cpu);
                for (_, track) in self.tracks.iter_mut() {
                    track.lost |= cpu == NONE || track.cpu == cpu || !track.has_cpu();
                }
            }
            Side::Exit { time, tid, .. } => self.ends(tid, time),
            Side::Fork { time, tid, .. } => self.is_made(tid, time),
            Side::Cut { from } => self.uneven_from = Some(from),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
