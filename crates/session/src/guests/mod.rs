//! A host's recording with those of its guests: whose guest each is, how its clock reads on the host's, and all of them
//! in one walk.

mod functions;
mod gather;
mod host_input;
mod lockstep;
mod pair;
mod quality;
mod spread;

use analysis::Study;
use clocks::Fit;
use event::Sink;
use model::Vm;
use paths::Paths;
use source::{RecordingReader, WalkOutcome};

use crate::{Error, FilterScope, OpenRecording};

pub use host_input::{GuestPairing, HostInput, NamedGuest};
pub use pair::PairingEvidence;

/// A recording that was made inside a guest, and what the user says of it.
#[derive(Debug)]
pub struct GuestInput<'s> {
    pub(crate) name: &'s str,
    /// On the guest's own clock.
    pub(crate) reader: RecordingReader<'s>,
    /// The VM whose guest it is said to be.
    pub(crate) vm: Option<String>,
}

/// A guest whose recording belongs to a host's.
#[derive(Debug)]
pub struct Guest<'s> {
    reader: RecordingReader<'s>,
    about: GuestAbout,
    /// When its CPUs' last events are, on its own clock, where it was cut off and these differ by that.
    ends: Vec<(u64, i32)>,
    /// When its last event is.
    last: Option<u64>,
}

/// What was found of how a guest's recording joins its host's.
#[derive(Debug, Clone)]
pub struct GuestAbout {
    /// Its recording's name, as it was given.
    pub name: String,
    /// Its VM, as the host's recording shows it.
    pub vm: Vm,
    /// Its CPUs, each with the thread of the host that is that vCPU.
    pub vcpus: Vec<(u32, i32)>,
    /// How it is known whose guest it is.
    pub whose: PairingEvidence,
    /// How its clock reads on the host's.
    pub fit: Fit,
    /// How well that is known.
    pub clock: GuestClock,
}

/// What is known of a guest's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestClock {
    /// Its events have one offset, and a drift if that is not 0, by which they lie between entries and exits of their
    /// vCPUs.
    Fitted,
    /// The offset is the one that the recorder used, which its events do not contradict.
    Recorded,
    /// The offset is the one that the recorder used: too few of its events say anything, since the vCPUs were in the
    /// guest nearly all the time, or nearly never.
    Undecided,
}

impl<'s> Guest<'s> {
    /// Returns its recording's name, as it was given.
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// Returns what was found of how it joins its host's.
    pub fn about(&self) -> &GuestAbout {
        &self.about
    }

    /// Returns its recording.
    pub fn reader(&self) -> &RecordingReader<'s> {
        &self.reader
    }

    /// Returns its VM, as the host's recording shows it.
    pub fn vm(&self) -> &Vm {
        &self.about.vm
    }

    /// Returns its CPUs, each with the thread of the host that is that vCPU.
    pub fn vcpus(&self) -> &[(u32, i32)] {
        &self.about.vcpus
    }

    /// Returns how it is known whose guest it is.
    pub fn whose(&self) -> PairingEvidence {
        self.about.whose
    }

    /// Returns how its clock reads on the host's.
    pub fn fit(&self) -> &Fit {
        &self.about.fit
    }

    /// Returns how well that is known.
    pub fn clock(&self) -> GuestClock {
        self.about.clock
    }
}

impl OpenRecording<'_> {
    /// Finds whose guest each of some recordings is, and how its clock reads on this recording's. Where that is known
    /// beforehand it is still held against what both sides recorded.
    ///
    /// # Errors
    ///
    /// Fails when a recording is of no guest of this host, or of none that was recorded at this time, and says what
    /// speaks against it.
    pub fn guests<'g>(&self, inputs: Vec<GuestInput<'g>>) -> Result<Vec<Guest<'g>>, Error> {
        pair::pair(self, inputs, &mut |_, error| Err(error))
    }

    /// Walks a sink over all events of this recording and of guests, in the order of this one's clock. Events of the
    /// first guest are of machine 1 ([`event::EventType::machine`]), and so on. Returns what is missing in each
    /// recording, this one's first.
    pub fn walk_with(&self, guests: &[Guest<'_>], sink: &mut dyn Sink) -> Vec<WalkOutcome> {
        if guests.is_empty() {
            return vec![self.walk(sink)];
        }
        let walked = guests
            .iter()
            .zip(1..)
            .map(|(guest, machine)| lockstep::GuestWalk {
                reader: &guest.reader,
                fit: *guest.fit(),
                machine,
                ends: &guest.ends,
                last: guest.last,
            });
        let walked: Vec<lockstep::GuestWalk<'_>> = walked.collect();
        let outcomes = lockstep::walk(self.reader(), &walked, sink).into_iter();
        // CPUs and threads that are chosen are the host's.
        let outcomes = outcomes.enumerate().map(|(at, outcome)| match at {
            0 => self.limited(outcome),
            _ => outcome,
        });
        outcomes.collect()
    }

    /// Walks a sink over the events that the filters let through, and those of guests at the time that was asked for,
    /// as [`OpenRecording::walk_with`] does.
    pub fn walk_events_with(&self, guests: &[Guest<'_>], sink: &mut dyn Sink) -> Vec<WalkOutcome> {
        let walk = |sink: &mut dyn Sink| self.walk_with(guests, sink);
        self.filtered(sink, FilterScope::Events, walk).0
    }

    /// Gives paths what is known beside the events ([`OpenRecording::locate`]), and which guests' recordings are walked
    /// with this one.
    pub fn locate_with(&self, paths: &mut Paths, guests: &[Guest<'_>]) {
        self.locate(paths);
        for (guest, machine) in guests.iter().zip(1..) {
            paths.guest(machine, guest.name(), guest.vcpus().iter().copied());
        }
    }

    /// Gives a study what is known beside the events ([`OpenRecording::prepare`]), and which of this host's threads are
    /// the vCPUs of guests that are walked with it.
    pub fn prepare_with(&self, study: &mut Study, guests: &[Guest<'_>]) {
        self.prepare(study);
        for (guest, machine) in guests.iter().zip(1..) {
            study.guest_vcpus(machine, guest.vcpus().iter().copied());
        }
    }
}
