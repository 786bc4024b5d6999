//! What a text was, and what is missing from it.

use event::{Isa, Quality};

/// What printed a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextProducer {
    /// `perf script`.
    PerfScript,
    /// `trace-cmd report`.
    TraceCmd,
    /// The kernel's `/sys/kernel/tracing/trace` or `trace_pipe`.
    Ftrace,
    /// The same in the latency format: times are microseconds since the buffer's first event.
    FtraceLatency,
    /// The same with the option `raw`: events have numbers instead of names, and no fields.
    FtraceRaw,
    /// The kernel's function_graph tracer without its option `funcgraph-abstime`: calls and durations, without a time
    /// of day. It holds no events.
    FunctionGraph,
    /// The table of `perf kvm stat report`. It holds no events.
    PerfKvmStatTable,
    /// The table of `perf sched latency`. It holds no events.
    PerfSchedTable,
}

impl TextProducer {
    /// Returns the name of what printed it.
    pub fn name(self) -> &'static str {
        match self {
            TextProducer::PerfScript => "perf script",
            TextProducer::TraceCmd => "trace-cmd report",
            TextProducer::Ftrace => "ftrace text",
            TextProducer::FtraceLatency => "ftrace text in latency format",
            TextProducer::FtraceRaw => "ftrace text with the option raw",
            TextProducer::FunctionGraph => "the function_graph tracer without times of day",
            TextProducer::PerfKvmStatTable => "perf kvm stat report",
            TextProducer::PerfSchedTable => "perf sched latency",
        }
    }

    /// Returns whether it is a printed table, from which no events can be had.
    pub fn is_table(self) -> bool {
        matches!(
            self,
            TextProducer::FunctionGraph
                | TextProducer::PerfKvmStatTable
                | TextProducer::PerfSchedTable
        )
    }
}

/// What the times of a text count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextTimeUnit {
    /// Nanoseconds: the text prints seconds with decimals.
    Nanoseconds,
    /// Whatever the clock counts: the text prints whole numbers. These are nanoseconds for the clock `boot`
    /// in trace-cmd and its option `--raw-ts`, cycles for `x86-tsc`, and events for `counter`. The text does
    /// not say which.
    Ticks,
}

/// One kind of event, with how often it was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeCount {
    /// Subsystem, empty where the text prints none.
    pub system: String,
    /// Name.
    pub name: String,
    /// Lines, wanted or not.
    pub count: u64,
}

/// A line that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadableLine {
    /// Its number, from 1.
    pub line: u64,
    /// Where it starts in the text, in bytes.
    pub offset: u64,
}

/// What was found in a text.
#[derive(Debug, Clone)]
pub struct TextSummary {
    /// What printed it; `None` when it held no events.
    pub style: Option<TextProducer>,
    /// What is lost and what is odd.
    pub quality: Quality,
    /// Lines.
    pub lines: u64,
    /// Lines that are events, the wanted and the others.
    pub events: u64,
    /// What times count.
    pub unit: TextTimeUnit,
    /// What the last printed digit of a time is worth, in nanoseconds: 1000 where microseconds are printed.
    /// Times are off by up to this: perf cuts digits off, the kernel and trace-cmd round.
    pub resolution: u64,
    /// The instruction set of the exits, or what perf's header says.
    pub isa: Option<Isa>,
    /// CPUs that events happened on, sorted.
    pub cpus: Vec<u32>,
    /// CPUs of the machine, where a header says how many.
    pub machine_cpus: Option<u32>,
    /// The kinds of events, in order of appearance; the position is [`event::EventType::index`].
    pub types: Vec<TypeCount>,
    /// Names of the files or buffers that a merged report distinguishes; the position is
    /// [`event::Event::buffer`]. Empty when the text is of one.
    pub sources: Vec<String>,
    /// Whether any line has a number where thread ids stand.
    pub thread_column: bool,
    /// Lines behind the first event that look like a tracer's output and were not understood. Prose is not counted.
    pub not_understood: u64,
    /// The first of them.
    pub first_not_understood: Vec<UnreadableLine>,
}
