//! What is kept of an event until it is exported.

use analysis::{Analysis, Context, EventDetail, Needs, States, Window};
use event::sched::{SchedSwitch, SchedWakeup};
use event::{Data, Event, EventType, Kind, LostKind, NONE, Side};
use model::{Machine, RetiredThreads, Span};

/// What is wanted of a recording beside exits and instances of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportWish {
    /// Spans of the vCPUs' states.
    pub spans: bool,
    /// Switches and wake-ups of the scheduler, exits as they happen, and losses.
    pub moments: bool,
}

/// Something that happened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TapEvent {
    Span(Span),
    /// A vCPU left its guest.
    Left {
        vcpu: u32,
        time: u64,
    },
    Switch {
        time: u64,
        cpu: i32,
        switch: SchedSwitch,
    },
    Wakes {
        time: u64,
        cpu: i32,
        /// Who wakes it.
        tid: i32,
        /// Whether it is `sched_waking`, not `sched_wakeup`.
        waking: bool,
        wakeup: SchedWakeup,
    },
    Lost {
        time: u64,
        cpu: i32,
        count: Option<u64>,
        guest: bool,
    },
}

/// Keeps what an event says until it is taken.
#[derive(Debug)]
pub struct Tap {
    wanted: ExportWish,
    window: Window,
    items: Vec<TapEvent>,
    /// Threads of which no more is kept, behind all items.
    retired: Option<RetiredThreads>,
}

impl Tap {
    /// Returns one that keeps what is wanted, of what happens in a window.
    pub fn new(wanted: ExportWish, window: Window) -> Tap {
        Tap {
            wanted,
            window,
            items: Vec::new(),
            retired: None,
        }
    }

    /// Exchanges what has come for an empty list.
    pub(crate) fn swap(&mut self, empty: &mut Vec<TapEvent>) {
        std::mem::swap(&mut self.items, empty);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the threads of which no more is kept now. They are to be taken with the items of each event: what is
    /// kept of them may be needed for these.
    pub(crate) fn take_retired(&mut self) -> Option<RetiredThreads> {
        self.retired.take()
    }
}

impl Analysis for Tap {
    fn needs(&self) -> Needs {
        Needs {
            states: States::All,
            spans: self.wanted.spans,
            ..Needs::default()
        }
    }

    fn wants(&mut self, ty: &EventType<'_>) -> EventDetail {
        match ty.kind {
            _ if !self.wanted.moments => EventDetail::Nothing,
            Kind::KvmExit
            | Kind::SchedSwitch
            | Kind::SchedWaking
            | Kind::SchedWakeup
            | Kind::SchedWakeupNew => EventDetail::Order,
            _ => EventDetail::Nothing,
        }
    }

    fn event(&mut self, event: &Event<'_>, data: &Data, context: &mut Context<'_>) {
        if !context.chosen.inside {
            return;
        }
        let (time, cpu) = (event.time, event.cpu);
        match *data {
            Data::KvmExit(_) if context.chosen.counts => {
                if let Some(vcpu) = context.machine.vcpu_of(event.tid) {
                    self.items.push(TapEvent::Left { vcpu, time });
                }
            }
            Data::SchedSwitch(switch) => self.items.push(TapEvent::Switch { time, cpu, switch }),
            Data::SchedWaking(wakeup) | Data::SchedWakeup(wakeup) => {
                self.items.push(TapEvent::Wakes {
                    time,
                    cpu,
                    tid: event.tid,
                    waking: event.ty.kind == Kind::SchedWaking,
                    wakeup,
                })
            }
            _ => {}
        }
    }

    fn spans(&mut self, spans: &[Span], _: &Context<'_>) {
        for span in spans {
            if let Some((start, end)) = self.window.part(span) {
                self.items.push(TapEvent::Span(Span {
                    start,
                    end,
                    ..*span
                }));
            }
        }
    }

    fn retire(&mut self, retired: &RetiredThreads, _: &Machine) {
        self.retired = Some(retired.clone());
    }

    fn side(&mut self, side: &Side<'_>) {
        self.lost(side, false);
    }

    fn guest_side(&mut self, _: u16, side: &Side<'_>) {
        self.lost(side, true);
    }
}

impl Tap {
    /// Keeps a loss. The CPU of a guest's is none of the host's.
    fn lost(&mut self, side: &Side<'_>, guest: bool) {
        if let Side::Lost {
            time,
            cpu,
            count,
            kind: LostKind::Ring,
            ..
        } = *side
            && self.wanted.moments
            && (time == 0 || self.window.has_time(time))
        {
            self.items.push(TapEvent::Lost {
                time,
                cpu: if guest { NONE } else { cpu },
                count,
                guest,
            });
        }
    }
}
