//! The spans of one vCPU in one state, which its cell in the table of vCPUs is the sum of.

use event::{EventType, ExitReason};
use model::{SeenEvents, Span, State};

use crate::analysis::{Analysis, Context, EventDetail, Needs, States};
use crate::chosen::Window;

/// Collects the spans of one vCPU in one state or a few, within a window of time.
#[derive(Debug)]
pub struct StateSpans {
    window: Window,
    tid: i32,
    states: Vec<State>,
    seen: SeenEvents,
    spans: Vec<(u64, u64)>,
}

impl StateSpans {
    /// Returns a collector of the spans that the vCPU of a thread spends in some states, as sums have them: of a
    /// recording with these kinds of events.
    pub fn new(window: Window, tid: i32, states: Vec<State>, seen: SeenEvents) -> StateSpans {
        StateSpans {
            window,
            tid,
            states,
            seen,
            spans: Vec::new(),
        }
    }

    /// Hands out the beginning and the end of each span that has come, and forgets them.
    pub fn drain(&mut self) -> impl Iterator<Item = (u64, u64)> {
        std::mem::take(&mut self.spans).into_iter()
    }
}

impl Analysis for StateSpans {
    fn needs(&self) -> Needs {
        Needs {
            states: States::All,
            spans: true,
            ..Needs::default()
        }
    }

    fn wants(&mut self, _: &EventType<'_>) -> EventDetail {
        EventDetail::Nothing
    }

    fn spans(&mut self, spans: &[Span], context: &Context<'_>) {
        for span in spans {
            let waiting = span.cause.reason.is_some_and(ExitReason::is_waiting);
            let vcpu = context.machine.vcpu(span.vcpu);
            if self.states.contains(&self.seen.state(span.state, waiting))
                && vcpu.is_some_and(|vcpu| vcpu.tid == self.tid)
                && let Some((start, end)) = self.window.part(span)
                && start < end
            {
                self.spans.push((start, end));
            }
        }
    }
}
