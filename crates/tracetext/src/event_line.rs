//! Whether a line is an event's head, without what stands around it: for cutting a document into its traces.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::clean;
use crate::event_like;
use crate::graph;
use crate::head::{self, EventHead, HeadRest};
use crate::lines::MAX_LINE;
use crate::other;
use crate::types::Types;

/// In which form a line of a trace was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventLineForm {
    /// `comm tid [cpu] time: event: text` of `perf script`, with columns missing or not.
    PerfScript,
    /// `comm-tid [cpu] flags time: event: text` of `trace-cmd report` and the kernel's `trace` file.
    Trace,
    /// The same in latency format, `comm-tid cpuflags time: event: text`.
    Latency,
    /// `tid cpu time type: number` of the kernel's option `raw`.
    Raw,
    /// A line of the function_graph tracer: ` 1)   0.541 us    |  f();`.
    FunctionGraph,
    /// A CPU in brackets and a time, as every form prints them, without an event's name that could be read: damage, or
    /// the name is on the next line.
    Nameless,
}

/// What an event's line says of itself at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLine {
    /// The form of it.
    pub form: EventLineForm,
    /// The time of its clock, in nanoseconds. Of the latency format it is the time since the buffer's first event;
    /// `None` where the line has no time, or counts something else (`x86-tsc`).
    pub time_ns: Option<u64>,
    /// The CPU, where the line has one.
    pub cpu: Option<u32>,
}

/// Names of events are not remembered from one line to the next.
static NO_TYPES: LazyLock<Types> = LazyLock::new(Types::default);

/// Says whether a line is the head of an event, in which form and of what time; `None` for everything else, such as
/// prose, headers, the lines of stacks, and tables.
///
/// Quote marks, line numbers and prompts before the line, HTML entities and no-break spaces do no harm. One line is
/// looked at alone: the rest of a broken line is none, and a sentence that is printed exactly like an event is one.
///
/// ```
/// let line = tracetext::event_line(b"> qemu-kvm-12 [001]  444.000100: kvm_exit: reason HLT").unwrap();
/// assert_eq!(line.time_ns, Some(444_000_100_000));
/// assert_eq!(tracetext::event_line(b"Since 12:00 the guest hangs."), None);
/// ```
pub fn event_line(line: &[u8]) -> Option<EventLine> {
    let line = line.trim_ascii_end();
    if line.len() > MAX_LINE {
        return None;
    }
    let clean = match clean::next_suspect(line, 0) {
        usize::MAX => Cow::Borrowed(line),
        _ => Cow::Owned(clean::clean(line)),
    };
    read(&clean).or_else(|| clean::repair(&clean).and_then(|line| read(&line)))
}

fn read(line: &[u8]) -> Option<EventLine> {
    // All forms but that tracer's have a colon.
    if memchr::memchr(b':', line).is_some() {
        if let Some(head) = head::parse(line, &NO_TYPES, false).filter(is_sure) {
            return Some(of_head(&head));
        }
        if let Some((cpu, time_ns)) = event_like::cpu_and_time(line) {
            return Some(EventLine {
                form: EventLineForm::Nameless,
                time_ns: Some(time_ns),
                cpu: Some(cpu),
            });
        }
        if other::is_raw_event(other::without_quotes(line, line)) {
            return Some(EventLine {
                form: EventLineForm::Raw,
                time_ns: None,
                cpu: None,
            });
        }
    }
    let graph = graph::parse(line)?;
    Some(EventLine {
        form: EventLineForm::FunctionGraph,
        time_ns: graph.time_ns,
        cpu: u32::try_from(graph.cpu).ok(),
    })
}

/// Whether a head alone, without others beside it, is enough. Clocks print six or nine decimals, and more than two are
/// left where some are lost.
fn is_sure(head: &EventHead) -> bool {
    match head.decimals {
        0 => head.who.cpu >= 0 && head.who.tid >= 0,
        decimals => decimals >= 3,
    }
}

fn of_head(head: &EventHead) -> EventLine {
    let who = &head.who;
    let form = if who.latency {
        EventLineForm::Latency
    } else if head.what == HeadRest::Record || head.has_system || (who.has_tid && !who.joined) {
        EventLineForm::PerfScript
    } else {
        EventLineForm::Trace
    };
    EventLine {
        form,
        time_ns: (head.decimals > 0).then_some(head.time),
        cpu: u32::try_from(who.cpu).ok(),
    }
}
