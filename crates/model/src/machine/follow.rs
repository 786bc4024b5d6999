//! The machine while events still come: what is known of vCPUs now, and threads that are followed before an event of
//! KVM shows that they are vCPUs, or though none ever will.

use event::{Data, Event, NONE};

use super::{Machine, VcpuTimes};
use crate::Tasks;
use crate::span::{Span, State, Times};
use crate::track::{SchedState, TrackPlace, VcpuTrack};

/// As what a thread is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// As a vCPU of which nobody knows what it does, with its number.
    Vcpu(u32),
    /// As a thread that never enters a guest, such as a back end's: on a CPU it is in [`State::User`], asleep in
    /// [`State::UserBlocked`], and events of KVM that it makes say nothing of it.
    Other {
        /// Whether it sleeps now.
        asleep: bool,
        /// The CPU that it was on last.
        cpu: i32,
    },
}

impl Machine {
    /// Follows a thread from `time` on, unless it is followed already. What it did before is not known.
    pub fn follow(&mut self, tid: i32, pid: i32, time: u64, follow: Follow) {
        if self.vcpu_of(tid).is_some() {
            return;
        }
        let thread = self.threads.acts(tid);
        let mut track = VcpuTrack::new(tid, thread, time, NONE);
        match follow {
            Follow::Vcpu(number) => {
                let known = self.threads.entry(tid);
                known.pid = known.pid.or(Some(pid));
                known.vcpu = known.vcpu.or(Some(number));
            }
            Follow::Other { asleep, cpu } => {
                track.other = true;
                track.cpu = cpu;
                track.place = TrackPlace::User { halted: false };
                if asleep {
                    track.sched = SchedState::Blocked;
                }
            }
        }
        self.begin(track);
    }

    /// Says that the recording has no exit and no entry: threads are presumed to be vCPUs by their names and by facts.
    pub fn presume_vcpus(&mut self) {
        self.threads.presume_vcpus();
    }

    /// Begins to follow the presumed vCPUs that an event of the scheduler is about. What they did before is not known:
    /// one that leaves its CPU had it, one that is woken slept.
    pub(super) fn follow_presumed(&mut self, event: &Event<'_>, data: &Data) {
        let Tasks { prev, task } = self.tasks;
        match data {
            Data::SchedSwitch(_) => {
                self.follow_slot(prev, event, SchedState::Running);
                self.follow_slot(task, event, SchedState::Running);
            }
            Data::SchedWaking(_) | Data::SchedWakeup(_) => {
                self.follow_slot(task, event, SchedState::Blocked);
            }
            _ => {}
        }
    }

    fn follow_slot(&mut self, slot: u32, event: &Event<'_>, sched: SchedState) {
        let Some((tid, thread)) = self.threads.at(slot) else {
            return;
        };
        if !thread.presumed || self.vcpu_in(slot).is_some() || self.vcpu_of(tid).is_some() {
            return;
        }
        self.seen.presumed = true;
        let mut track = VcpuTrack::new(tid, slot, event.time, event.cpu);
        track.sched = sched;
        self.begin(track);
    }

    /// Returns the vCPU that a thread is now, for an event of KVM: none if it is followed as another thread. Of a
    /// presumed one such an event says nothing: between two of them it may have run its guest.
    #[inline]
    pub(super) fn known_vcpu(&mut self, tid: i32) -> Option<u32> {
        if self.threads.presumes() {
            return None;
        }
        let vcpu = self.vcpu_of(tid)?;
        (!self.tracks[vcpu].other).then_some(vcpu)
    }

    /// Returns the vCPUs that are followed, in the order they were first seen.
    pub fn vcpus(&self) -> impl Iterator<Item = VcpuTimes> {
        self.tracks
            .iter()
            .map(|(number, track)| times_of(number, track))
    }

    /// Returns how many vCPUs were followed so far: numbers from here on are nobody's yet.
    pub fn vcpu_numbers(&self) -> u32 {
        self.tracks.next_number()
    }

    /// Returns a vCPU that is followed, by its number.
    pub fn vcpu(&self, number: u32) -> Option<VcpuTimes> {
        let track = self.tracks.get(number)?;
        Some(times_of(number, track))
    }

    /// Returns the time a vCPU spent in each state up to a time that no event of it came after: since its last event it
    /// does what that said, if its thread has not ended.
    pub fn times_at(&self, vcpu: u32, time: u64) -> Times {
        let Some(track) = self.tracks.get(vcpu) else {
            return Times::default();
        };
        let mut times = track.times;
        if track.ended.is_none() {
            let state = match track.lost {
                true => State::Unknown,
                false => track.state(),
            };
            times.add(state, time.saturating_sub(track.at));
        }
        times
    }

    /// Returns the spans of a vCPU that wait for its exit to end.
    pub fn kept(&self, vcpu: u32) -> impl Iterator<Item = Span> + '_ {
        let track = self.tracks.get(vcpu);
        track.into_iter().flat_map(move |track| track.kept(vcpu))
    }
}

fn times_of(number: u32, track: &VcpuTrack) -> VcpuTimes {
    VcpuTimes {
        number,
        tid: track.tid,
        thread: track.thread,
        from: track.first,
        to: track.at,
        exits: track.exits,
        polls: track.polls,
        ended: track.ended.is_some(),
        other: track.other,
    }
}
