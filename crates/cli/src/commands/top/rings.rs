//! Counting out of the kernel's rings, where it allows no BPF.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use counts::Snapshot;
use live::{EVENTS, EventCounter, Seed, ThreadSeed};
use record::file::{Feature, Features};
use record::{Flight, KeepLimit, OpenedEvents, PlannedEvent, RecordPlan, Tracefs};
use rustix::thread::{CapabilitySet, CapabilitySets};
use source::{ReaderOptions, RecordingBytes};

/// How long a look at the rings waits for more, where none fills.
const TURN: Duration = Duration::from_millis(50);
/// Looks after which everything that had happened when the first began is counted.
const TURNS_BEHIND: usize = 2;
/// What the reader is asked.
enum RingRequest {
    /// For what was counted, all that had happened when this was asked.
    Snapshot(Sender<Snapshot>),
    /// To follow these threads, unless they are followed already.
    Follow(Vec<Seed>, Vec<ThreadSeed>),
    /// Says that nothing is to be reported any more of threads that have ended.
    Forget(HashSet<i32>),
}

/// A thread that reads the rings and counts. It ends with this value.
#[derive(Debug)]
pub(super) struct Rings {
    ask: Option<Sender<RingRequest>>,
    reader: Option<JoinHandle<Result<()>>>,
    /// Whether the kernel says how many events found no room.
    counts_losses: bool,
}

impl Rings {
    /// Opens the events and begins to count.
    pub(super) fn start(vcpus: Vec<Seed>, threads: Vec<ThreadSeed>) -> Result<Rings> {
        let (ask, asked) = channel();
        let (sender, begun) = channel();
        let reader = thread::Builder::new().name("trapline-rings".to_owned());
        // Rings and analyses are the reader's own.
        let reader =
            reader.spawn(move || read(EventCounter::new(vcpus, threads), &asked, &sender))?;
        let mut rings = Rings {
            ask: Some(ask),
            reader: Some(reader),
            counts_losses: true,
        };
        match begun.recv() {
            Ok(counts_losses) => rings.counts_losses = counts_losses,
            Err(_) => return Err(rings.why()),
        }
        Ok(rings)
    }

    /// Returns why the reader has ended.
    fn why(&mut self) -> anyhow::Error {
        self.ask = None;
        let ended = self.reader.take().map(JoinHandle::join);
        match ended {
            Some(Ok(Err(error))) => error,
            _ => anyhow!("the thread that reads the kernel's rings has ended"),
        }
    }

    fn ask(&mut self, what: RingRequest) -> Result<()> {
        let asked = self.ask.as_ref().map(|ask| ask.send(what));
        match asked {
            Some(Ok(())) => Ok(()),
            _ => Err(self.why()),
        }
    }

    /// Returns what was counted, all that had happened when this was called.
    pub(super) fn snapshot(&mut self) -> Result<Snapshot> {
        let (sender, begun) = channel();
        self.ask(RingRequest::Snapshot(sender))?;
        begun.recv().map_err(|_| self.why())
    }

    /// Follows these threads, unless they are followed already.
    pub(super) fn follow(&mut self, vcpus: Vec<Seed>, threads: Vec<ThreadSeed>) -> Result<()> {
        self.ask(RingRequest::Follow(vcpus, threads))
    }

    /// Counts nothing any more of threads that have ended.
    pub(super) fn forget(&mut self, tids: &HashSet<i32>) -> Result<()> {
        match tids.is_empty() {
            true => Ok(()),
            false => self.ask(RingRequest::Forget(tids.clone())),
        }
    }

    /// Returns whether the kernel says how many events found no room in its rings.
    pub(super) fn counts_losses(&self) -> bool {
        self.counts_losses
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        // Nobody can ask any more: that ends the reader.
        self.ask = None;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Opens the events. Returns what stands before them in a recording as well.
fn open() -> Result<(Flight, RecordingBytes)> {
    let tracefs = Tracefs::find()?;
    let events = EVENTS.map(|(system, name)| PlannedEvent::all(system, name));
    let plan = RecordPlan {
        events: events.to_vec(),
        ..RecordPlan::default()
    };
    let opened = OpenedEvents::open(&plan, &tracefs)?;
    let tracepoints = opened.tracepoints();
    if !tracepoints
        .iter()
        .any(|one| one.full_name() == "kvm:kvm_exit")
    {
        bail!("the kernel has no KVM events: load the module kvm_intel or kvm_amd, or start a VM");
    }
    let mut features = Features::default();
    let formats = record::tracing_data::of(&tracefs, tracepoints, &[])?;
    features.set(Feature::TracingData(formats));
    // Nothing is kept: who counts holds what it has yet to count.
    let keep = KeepLimit {
        time: Duration::ZERO,
        bytes: 0,
    };
    let head = Flight::head(&opened, &features, &[]);
    let head = RecordingBytes::from_bytes("the kernel's events", head)?;
    let flight = Flight::begin(opened, features, Vec::new(), keep, Duration::ZERO)?;
    Ok((flight, head))
}

/// Reads the rings until it is asked to stop.
fn read(
    mut events: EventCounter,
    asked: &Receiver<RingRequest>,
    begun: &Sender<bool>,
) -> Result<()> {
    let (mut flight, head) = open()?;
    let head = head.reader(ReaderOptions::default())?;
    let mut pieces = head.pieces()?;
    // What is open needs no capability. Whether they can be given away or not, everything works.
    let none = CapabilitySet::empty();
    let _ = rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    );
    let start = Instant::now();
    let mut turn = |flight: &mut Flight, events: &mut EventCounter| -> Result<()> {
        let round = flight.turn(TURN, || start.elapsed())?;
        events.look(&mut pieces, &round);
        Ok(())
    };
    turn(&mut flight, &mut events)?;
    // Who waits for the beginning may be gone: then so is who asks.
    let _ = begun.send(flight.so_far()?.lost().is_some());
    let mut withheld = 0;
    loop {
        turn(&mut flight, &mut events)?;
        match asked.try_recv() {
            Ok(RingRequest::Snapshot(sender)) => {
                let before = flight.so_far()?;
                for _ in 0..TURNS_BEHIND {
                    turn(&mut flight, &mut events)?;
                }
                let mut snapshot = events.snapshot();
                let now = flight.so_far()?;
                snapshot.dropped.events = now.lost().unwrap_or(0);
                // What was counted then has been taken out of the rings by now, or never will be. What was written
                // since hides some of it.
                withheld = withheld.max(now.withheld_of(before.count()).unwrap_or(0));
                snapshot.dropped.withheld = withheld;
                let _ = sender.send(snapshot);
            }
            Ok(RingRequest::Follow(vcpus, threads)) => events.follow(vcpus, threads),
            Ok(RingRequest::Forget(tids)) => events.forget(&tids),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
    }
}
