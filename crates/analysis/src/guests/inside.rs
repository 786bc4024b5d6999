//! How many events of guests lie where they can have happened: between an entry of their vCPU and the exit behind it.

use doubts::{Concern, Concerns, Doubt, DoubtKind, Doubts};
use event::{Data, Event, EventType, Kind};
use model::ByNumber;
use stats::Stats;

use crate::analysis::{Analysis, Context, EventDetail, GuestEvent, WalkState};

/// Events of one vCPU outside of windows that wait for the next entry, to know how far they are from it. KVM is out of
/// a guest for as long as it likes; a guest of which more events come meanwhile is no guest of that vCPU.
const MAX_WAITING: usize = 1 << 12;

/// What was found of one guest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InsideReport {
    /// Events between an entry of their vCPU and the exit behind it.
    pub inside: u64,
    /// Events that are not.
    pub outside: u64,
    /// Events of which the host's recording does not say where their vCPU was: before its first entry, behind its last
    /// event, where an entry or an exit is missing, and those of CPUs of which it is not known which vCPU they are.
    pub uncovered: u64,
    /// How far those outside are from the next window, in nanoseconds.
    pub away: Stats,
}

impl InsideReport {
    /// Returns how far all but one in a thousand of the events that could be tried are at most from their window: 0
    /// where so many are inside.
    pub fn residual_ns(&self) -> u64 {
        let tried = self.inside + self.outside;
        let allowed = tried / 1000;
        if self.outside <= allowed {
            return 0;
        }
        // Of those outside, as many may be further away as were allowed.
        let share = (self.outside - allowed) as f64 / self.outside as f64;
        self.away.percentile(share)
    }

    /// Returns which part of the events that could be tried is inside; `None` where none could.
    pub fn share(&self) -> Option<f64> {
        let tried = self.inside + self.outside;
        (tried > 0).then(|| self.inside as f64 / tried as f64)
    }
}

/// Where a vCPU is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum VcpuPosition {
    /// The host's recording has not said it yet, or not since something went missing.
    #[default]
    Unknown,
    In,
    /// Out of the guest, since that time.
    Out(u64),
}

/// A vCPU.
#[derive(Debug, Clone, Default)]
struct VcpuEvents {
    place: VcpuPosition,
    /// Whose guest's events were on it, and what is not settled yet: events since the last entry or exit, which may be
    /// the vCPU's last.
    machine: u16,
    inside: u64,
    /// Times of events since its last exit.
    outside: Vec<u64>,
    /// Events since then that are not in the list.
    more: u64,
}

impl VcpuEvents {
    /// Returns how many events are not settled yet.
    fn all(&self) -> u64 {
        self.inside + self.more + self.outside.len() as u64
    }
}

/// Counts them.
#[derive(Debug, Clone, Default)]
pub struct InsideEvents {
    vcpus: ByNumber<VcpuEvents>,
    guests: Vec<InsideReport>,
}

impl InsideEvents {
    /// Returns a counter that has seen nothing.
    pub fn new() -> InsideEvents {
        InsideEvents::default()
    }

    /// Returns what was found of a guest, by the number of its machine.
    pub fn report(&self, machine: u16) -> InsideReport {
        self.guests
            .get(usize::from(machine))
            .cloned()
            .unwrap_or_default()
    }

    fn guest(&mut self, machine: u16) -> &mut InsideReport {
        let at = usize::from(machine);
        if self.guests.len() <= at {
            self.guests.resize_with(at + 1, InsideReport::default);
        }
        &mut self.guests[at]
    }

    /// A vCPU enters its guest, or leaves it: what was said of it until now holds.
    fn moves(&mut self, tid: i32, time: u64, entry: bool) {
        let track = self.vcpus.entry(tid, VcpuEvents::default);
        let next = VcpuEvents {
            place: match entry {
                true => VcpuPosition::In,
                false => VcpuPosition::Out(time),
            },
            machine: track.machine,
            ..VcpuEvents::default()
        };
        let until = std::mem::replace(track, next);
        let all = until.all();
        if all == 0 {
            return;
        }
        let guest = self.guest(until.machine);
        match (until.place, entry) {
            (VcpuPosition::In, false) => guest.inside += all,
            (VcpuPosition::Out(since), true) => {
                guest.outside += all;
                let away = |at: u64| at.saturating_sub(since).min(time.saturating_sub(at));
                for at in until.outside {
                    guest.away.add(away(at));
                }
                if until.more > 0 {
                    guest.away.add(time.saturating_sub(since) / 2);
                }
            }
            // An entry behind an entry: the exit between them is missing, and so on.
            _ => guest.uncovered += all,
        }
    }
}

impl Analysis for InsideEvents {
    fn concerns(&self) -> Concerns {
        Concerns::of(&[Concern::Guests])
    }

    fn doubts(&self, _: &WalkState<'_>, doubts: &mut Doubts) {
        for (guest, machine) in self.guests.iter().zip(0u16..) {
            let tried = guest.inside + guest.outside;
            if guest.outside.saturating_mul(1000) > tried {
                let kind = DoubtKind::GuestClockUnsteady {
                    outside: guest.outside,
                    tried,
                    residual_ns: guest.residual_ns(),
                };
                doubts.raise(Doubt::from(kind).of_machine(machine));
            }
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind {
            Kind::KvmEntry | Kind::KvmExit => EventDetail::Order,
            _ => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, _: &mut Context<'_>) {
        match data {
            Data::KvmEntry(_) => self.moves(event.tid, event.time, true),
            Data::KvmExit(_) => self.moves(event.tid, event.time, false),
            _ => {}
        }
    }

    fn wants_of_guest(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn guest_event(&mut self, guest: &GuestEvent<'_>, _: &mut Context<'_>) {
        let machine = guest.event.machine();
        let Some(tid) = guest.vcpu_tid else {
            self.guest(machine).uncovered += 1;
            return;
        };
        let track = self.vcpus.entry(tid, VcpuEvents::default);
        track.machine = machine;
        match track.place {
            VcpuPosition::Unknown => self.guest(machine).uncovered += 1,
            VcpuPosition::In => track.inside += 1,
            VcpuPosition::Out(_) if track.outside.len() < MAX_WAITING => {
                track.outside.push(guest.event.time);
            }
            VcpuPosition::Out(_) => track.more += 1,
        }
    }

    fn finish(&mut self, _: &mut Context<'_>) {
        let vcpus = std::mem::take(&mut self.vcpus);
        for track in vcpus.values().filter(|track| track.all() > 0) {
            self.guest(track.machine).uncovered += track.all();
        }
    }
}
