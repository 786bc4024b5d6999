//! A walk that hands out single things as they are found.

use std::ops::ControlFlow;

use analysis::{Exits, GuestPart, GuestTasks, SharedAnalysis, SingleExit, Study};
use event::sched::{SchedSwitch, SchedWakeup};
use event::{Event, EventOrder, EventType, Side, Sink};
use model::{Machine, RetiredThreads, Span};
use paths::{CompletedInstance, Paths};

use crate::known::{FirstWalk, VcpuName, VcpuNumbers};
use crate::tap::{Tap, TapEvent};

/// Something that was found.
#[derive(Debug)]
pub enum ExportedThing<'f> {
    /// A vCPU spent some time in one state. Those of a vCPU come in order; they are within the window of time asked
    /// for.
    Span {
        /// Whose.
        vcpu: &'f VcpuName,
        /// What it did, when, and why.
        span: &'f Span,
    },
    /// A guest did one thing for some time, which is a part of a span of its vCPU's. Those of a vCPU come in order,
    /// behind the spans that they are parts of. vCPUs whose guests are not known have them too.
    Guest {
        /// Whose vCPU.
        vcpu: &'f VcpuName,
        /// The part, and what the guest did.
        part: &'f GuestPart,
    },
    /// An exit is over. The spans of its time have come.
    Exit {
        /// Whose, with its number in the machine; `None` where its thread is not known as a vCPU.
        vcpu: Option<(u32, &'f VcpuName)>,
        /// The exit.
        exit: &'f SingleExit,
    },
    /// An instance of a path has completed.
    Instance(&'f CompletedInstance),
    /// A vCPU left its guest.
    Left {
        /// Its number in the machine.
        vcpu: u32,
        /// Whose.
        name: &'f VcpuName,
        /// When.
        time: u64,
    },
    /// A CPU went from one task to another.
    Switch {
        /// When.
        time: u64,
        /// The CPU; [`event::NONE`] when not recorded.
        cpu: i32,
        /// Both tasks.
        switch: &'f SchedSwitch,
    },
    /// A task was woken.
    Wakes {
        /// When.
        time: u64,
        /// The waker's CPU; [`event::NONE`] when not recorded.
        cpu: i32,
        /// The waker; [`event::NONE`] when not recorded.
        tid: i32,
        /// Whether that is `sched_waking`, not `sched_wakeup`.
        waking: bool,
        /// Who is woken.
        wakeup: &'f SchedWakeup,
    },
    /// Events were lost before this moment.
    Lost {
        /// When that was noticed; 0 when not recorded.
        time: u64,
        /// The CPU; [`event::NONE`] when not recorded.
        cpu: i32,
        /// How many; `None` when the recorder only noticed that some were.
        count: Option<u64>,
        /// Whether that was in a guest.
        guest: bool,
    },
}

/// What is at hand when something is found.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'s> {
    /// What a first walk found out.
    pub known: &'s FirstWalk<'s>,
    /// The machine at this moment.
    pub machine: &'s Machine,
    /// The paths that are followed, if any are.
    pub paths: Option<&'s Paths>,
    /// What guests do, if recordings of them are walked too.
    pub guests: Option<&'s GuestTasks>,
}

/// Makes a file of what is found.
pub trait ExportFile {
    /// Takes one thing.
    fn take(&mut self, found: &ExportedThing<'_>, scene: &Scene<'_>);

    /// Threads become part of sums: what is kept for each of them is to be dropped. All that was found of them has
    /// come; one that comes back is another.
    fn retire(&mut self, retired: &RetiredThreads);

    /// Ends the file. Returns what is to be said of what it does not hold, a sentence each.
    fn finish(&mut self) -> Vec<String>;

    /// Returns the bytes that were made and not taken yet. Whoever writes them clears them.
    fn made(&mut self) -> &mut Vec<u8>;

    /// Returns whether it takes no more, so that the walk may end.
    fn has_ended(&self) -> bool {
        false
    }
}

/// The analyses from which a walk takes single things, each as far as it is wanted.
#[derive(Debug)]
pub struct ExportSources {
    /// Spans, switches, wake-ups and losses.
    pub tap: Option<SharedAnalysis<Tap>>,
    /// Exits.
    pub exits: Option<SharedAnalysis<Exits>>,
    /// Instances of paths.
    pub paths: Option<SharedAnalysis<Paths>>,
    /// Parts of spans by what guests did.
    pub tasks: Option<SharedAnalysis<GuestTasks>>,
}

/// A walk over a recording that hands what it finds to whoever makes a file of it.
pub struct ExportWalk<'w> {
    study: Study,
    sources: ExportSources,
    known: &'w FirstWalk<'w>,
    vcpus: VcpuNumbers,
    into: &'w mut dyn ExportFile,
    write: &'w mut dyn FnMut(&mut Vec<u8>) -> ControlFlow<()>,
    items: Vec<TapEvent>,
    parts: Vec<GuestPart>,
    exits: Vec<SingleExit>,
    instances: Vec<CompletedInstance>,
}

impl std::fmt::Debug for ExportWalk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walk").finish_non_exhaustive()
    }
}

/// Bytes that wait at most before they are written.
const WAITING: usize = 64 << 10;

impl<'w> ExportWalk<'w> {
    /// Returns a walk of a study to which `sources` were added.
    ///
    /// `write` takes the bytes that were made; the walk ends when it breaks.
    pub fn new(
        study: Study,
        sources: ExportSources,
        known: &'w FirstWalk<'w>,
        into: &'w mut dyn ExportFile,
        write: &'w mut dyn FnMut(&mut Vec<u8>) -> ControlFlow<()>,
    ) -> ExportWalk<'w> {
        if let Some(exits) = &sources.exits {
            exits.get_mut().list();
        }
        if let Some(paths) = &sources.paths {
            paths.get_mut().list_alone();
        }
        if let Some(tasks) = &sources.tasks {
            tasks.get_mut().list();
        }
        ExportWalk {
            study,
            sources,
            known,
            vcpus: VcpuNumbers::default(),
            into,
            write,
            items: Vec::new(),
            parts: Vec::new(),
            exits: Vec::new(),
            instances: Vec::new(),
        }
    }

    /// Hands out all that has come, and forgets threads that were retired.
    fn hand_out(&mut self) {
        self.hand_out_found();
        let tap = self.sources.tap.as_ref();
        if let Some(retired) = tap.and_then(|tap| tap.get_mut().take_retired()) {
            self.vcpus.retire(&retired);
            self.into.retire(&retired);
        }
    }

    fn hand_out_found(&mut self) {
        if let Some(tap) = &self.sources.tap {
            let mut tap = tap.get_mut();
            if !tap.is_empty() {
                tap.swap(&mut self.items);
            }
        }
        if let Some(exits) = &self.sources.exits {
            exits.get_mut().swap_listed(&mut self.exits);
        }
        if let Some(paths) = &self.sources.paths {
            let mut paths = paths.get_mut();
            // The memory of those that were handed out is for the next ones.
            for instance in self.instances.drain(..) {
                paths.reuse(instance);
            }
            paths.swap_listed(&mut self.instances);
        }
        if let Some(tasks) = &self.sources.tasks {
            tasks.get_mut().swap_listed(&mut self.parts);
        }
        let none = self.items.is_empty() && self.parts.is_empty();
        if none && self.exits.is_empty() && self.instances.is_empty() {
            return;
        }
        let machine = self.study.walked().machine;
        let known = self.known;
        let paths = self.sources.paths.as_ref().map(SharedAnalysis::get);
        let guests = self.sources.tasks.as_ref().map(SharedAnalysis::get);
        let scene = Scene {
            known,
            machine,
            paths: paths.as_deref(),
            guests: guests.as_deref(),
        };
        for item in &self.items {
            item_found(item, &scene, &mut self.vcpus, self.into);
        }
        self.items.clear();
        for part in &self.parts {
            let vcpu = self.vcpus.at(part.span.vcpu, machine, known);
            if let Some(vcpu) = vcpu.filter(|vcpu| !vcpu.left_out) {
                self.into.take(&ExportedThing::Guest { vcpu, part }, &scene);
            }
        }
        self.parts.clear();
        for exit in &self.exits {
            let vcpu = self.vcpus.of(exit.tid, machine, known);
            self.into.take(&ExportedThing::Exit { vcpu, exit }, &scene);
        }
        self.exits.clear();
        for instance in &self.instances {
            self.into.take(&ExportedThing::Instance(instance), &scene);
        }
    }

    /// Ends the walk. Returns what is to be said of what the file does not hold.
    pub fn finish(mut self) -> Vec<String> {
        self.study.finish();
        self.hand_out();
        let missing = self.into.finish();
        let _ = (self.write)(self.into.made());
        missing
    }
}

/// Hands out one thing.
fn item_found(
    item: &TapEvent,
    scene: &Scene<'_>,
    vcpus: &mut VcpuNumbers,
    into: &mut dyn ExportFile,
) {
    let found = match item {
        TapEvent::Span(span) => match vcpus.at(span.vcpu, scene.machine, scene.known) {
            Some(vcpu) if !vcpu.left_out => ExportedThing::Span { vcpu, span },
            _ => return,
        },
        TapEvent::Left { vcpu, time } => match vcpus.at(*vcpu, scene.machine, scene.known) {
            Some(name) if !name.left_out => ExportedThing::Left {
                vcpu: *vcpu,
                name,
                time: *time,
            },
            _ => return,
        },
        TapEvent::Switch { time, cpu, switch } => ExportedThing::Switch {
            time: *time,
            cpu: *cpu,
            switch,
        },
        TapEvent::Wakes {
            time,
            cpu,
            tid,
            waking,
            wakeup,
        } => ExportedThing::Wakes {
            time: *time,
            cpu: *cpu,
            tid: *tid,
            waking: *waking,
            wakeup,
        },
        TapEvent::Lost {
            time,
            cpu,
            count,
            guest,
        } => ExportedThing::Lost {
            time: *time,
            cpu: *cpu,
            count: *count,
            guest: *guest,
        },
    };
    into.take(&found, scene);
}

impl Sink for ExportWalk<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.study.wants(ty)
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        // What is found is written as it is found: people want it as it happened, whatever thread did it.
        EventOrder::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let flow = self.study.event(event);
        self.hand_out();
        if self.into.made().len() >= WAITING {
            (self.write)(self.into.made())?;
        }
        if self.into.has_ended() {
            return ControlFlow::Break(());
        }
        flow
    }

    fn side(&mut self, side: &Side<'_>) {
        self.study.side(side);
    }

    fn side_of(&mut self, machine: u16, side: &Side<'_>) {
        self.study.side_of(machine, side);
    }
}
