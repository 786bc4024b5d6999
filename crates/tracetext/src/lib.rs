/*!
Recordings that exist only as text: what `perf script`, `trace-cmd report` and the kernel's own `trace` file
print, read back into events.

[`sniff`] says whether something is such a text, [`walk`] reads a whole one, [`TraceTextReader`] reads one that comes
in pieces. Events go into an [`event::Sink`] in the order of the text, with what KVM's events say as
[`event::Data`], equal to what the binary recording gives, as far as the text holds it.

# What is read

| style | from | columns |
| --- | --- | --- |
| [`TextProducer::PerfScript`] | `perf script`, also with `-F`, `--ns`, `--show-*-events` | `comm tid [cpu] time: system:event: text`; `pid/tid`; any of them missing |
| [`TextProducer::TraceCmd`] | `trace-cmd report`, with or without plugins, `-l`, `-t`, `-N`, `-R`, `--ts-diff`, several files | `comm-tid [cpu] flags time: event: text` |
| [`TextProducer::Ftrace`] | `/sys/kernel/tracing/trace`, `trace_pipe` | `comm-tid (tgid) [cpu] flags time: event: text` |
| [`TextProducer::FtraceLatency`] | the same in latency format | `comm-tid cpuflags time: event: text` |
| [`TextProducer::FtraceRaw`] | the same with the option `raw` | `tid cpu time type: number` |
| [`TextProducer::Ftrace`] | the tracer function_graph with `funcgraph-abstime` | <code>time &#124; cpu) comm-tid &#124; duration &#124; call</code>; events stand in comments |

Columns before the time may be cut away: the task, and the CPU too. [`event_line`] says of one line whether it is an
event's, and when that was.

The function_graph tracer without times ([`TextProducer::FunctionGraph`]) holds no events. The tables of
`perf kvm stat report` and `perf sched latency` are recognized and hold no events.

# What each loses

| | `perf script` | `trace-cmd report` | `trace` file |
| --- | --- | --- | --- |
| time | microseconds, cut off; nanoseconds with `--ns` | microseconds, rounded; nanoseconds with `-t` | microseconds, rounded; latency format: since the first event |
| clock | not recorded | not recorded; `boot`, `x86-tsc` and `--raw-ts` print whole numbers, see [`TextTimeUnit::Ticks`] | not recorded; `x86-tsc`, `counter` and `uptime` print whole numbers |
| process | only with `-F +pid` | never | only with the option `record-tgid` |
| thread's name | kept | kept; eight bytes with `-l` | kept if it was saved; eight bytes in latency format |
| subsystem | kept | lost | lost |
| vCPU of an exit | kept | lost by the kvm plugin, kept with `-N` and `-R` | kept |
| vCPU, on arm64 | never recorded | never recorded | never recorded |
| VMX or SVM | the name of the reason shows it; a number is taken for the table of earlier lines | the same; `-R` shows it | the same |
| failed entry (VMX) | kept | reason as one number, with the plugin | kept |
| buffer instance | | the name before each line | a file each |
| lost events | with `--show-lost-events` | kept; sometimes without their number | `trace`: in the header; `trace_pipe`: kept |
| samples in a guest | left out by perf unless `--guestkallsyms` is given: all of a vCPU's on arm64 | kept | kept |
| call chains | kept, line by line | kept | kept |
| CPU | not recorded by `perf record COMMAND` and `-p`, and with `-F` as asked | kept | kept |

Event kinds have no binary formats, and fields beside those of [`event::Data`] stay in the text.

# What damage is undone

Prompts, quote marks, bullets, line numbers, the kernel log's time stamps and file names before a line; blanks
and tabs lost, added or changed; line ends of any system; HTML entities; terminal colours; no-break spaces and
other spaces of Unicode; a byte order mark; code fences; prose before, between and after; lines left out, which
are counted; lines broken in two. What is left is counted, and reported with line numbers and offsets.

Every line is looked at a bounded number of times, and memory does not grow with the text.
*/
#![forbid(unsafe_code)]
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod clean;
mod cpus;
mod event_like;
mod event_line;
mod forms;
mod graph;
mod head;
mod head_cache;
mod line_parts;
mod lines;
mod name;
mod notes;
mod other;
mod reader;
mod record;
mod scan;
mod sniff;
mod span;
mod split_line;
mod state;
mod summary;
mod types;
mod who;
mod wrap;

use std::ops::ControlFlow;

use event::Sink;

pub use event_line::{EventLine, EventLineForm, event_line};
pub use forms::FORMS;
pub use reader::{FeedProgress, TraceTextReader};
pub use sniff::{count_events, sniff};
pub use split_line::{LineContent, LineSplitter, SplitLine};
pub use summary::{TextProducer, TextSummary, TextTimeUnit, TypeCount, UnreadableLine};

/// Bytes read at a time: they stay in the processor's cache while they are looked at.
const PIECE: usize = 1 << 18;

/// Reads a whole text and pushes its events into `sink`.
pub fn walk(text: &[u8], sink: &mut dyn Sink) -> TextSummary {
    walk_telling(text, sink, &mut |_, _| ControlFlow::Continue(()))
}

/// Reads a whole text and pushes its events into `sink`. Reports after each piece up to where the text was read, so
/// that its memory can be given back, and the reader, which knows what it has found until then; the walk ends there if
/// that returns `Break`.
pub fn walk_telling(
    text: &[u8],
    sink: &mut dyn Sink,
    read: &mut dyn FnMut(usize, &TraceTextReader) -> ControlFlow<()>,
) -> TextSummary {
    let mut reader = TraceTextReader::new();
    let mut at = 0;
    let mut size = PIECE;
    while at < text.len() {
        let end = text.len().min(at + size);
        let fed = reader.feed(&text[at..end], end == text.len(), sink);
        at += fed.consumed;
        if read(at, &reader).is_break()
            || fed.flow.is_break()
            || (fed.consumed == 0 && end == text.len())
        {
            break;
        }
        size = if fed.consumed == 0 { size * 2 } else { PIECE };
    }
    reader.finish(sink)
}
