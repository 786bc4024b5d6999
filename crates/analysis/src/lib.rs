/*!
One file a question: push sinks that turn events into numbers.

An analysis keeps state that grows with threads and rows, never with the length of the recording, and
knows nothing of containers, files or output.

A question is an [`Analysis`], and a [`Study`] puts several to one walk. Whoever adds one keeps its [`Handle`],
by which it gets the analysis back, as the type that it is:

```
use analysis::{ExitOptions, Exits, Study, Vcpus, Window};

let mut study = Study::default();
let exits = study.add(Exits::new(ExitOptions::default()));
let vcpus = study.add(Vcpus::new(Window::default()));
// A reader of `source` pushes the events: `reader.walk(&mut study)`.
let answers = study.finish();
assert!(!answers.take(exits).saw_exits());
assert!(answers.take(vcpus).report(&study.walked()).rows.is_empty());
```
*/
#![forbid(unsafe_code)]

mod activity;
mod analysis;
mod answers;
mod cells;
mod chosen;
mod console;
mod continuity;
mod cost;
mod counters;
mod counts;
mod during;
mod exits;
mod faults;
mod follow_paths;
mod guests;
mod handle;
mod handling;
mod idle_wakeups;
mod info;
mod ipis;
mod irqs;
mod main_loops;
mod map_keys;
mod moves;
mod names;
mod nested;
mod open_lanes;
mod picture;
mod printed_interrupts;
mod printed_shares;
mod profile;
mod progress;
mod ratios;
mod record;
mod recorder;
mod register_exits;
mod resume;
mod retired_names;
mod round;
mod sched;
mod series;
mod signs;
mod sleeps;
mod slices;
mod slow_instances;
mod spins;
mod stalls;
mod state_spans;
mod study;
mod tables;
mod thread_turns;
mod timeline;
mod timers;
mod together;
mod unknowable;
mod unmaps;
mod vcpu_pairs;
mod vcpu_rows;
mod vcpus;
mod virtqueues;
mod vmm_sleeps;
mod waits;
mod walk_costs;

pub use activity::Activity;
pub use analysis::{
    AccountScope, AccountedEvents, Analysis, Context, EventAccount, EventDetail, FilterScope,
    GuestEvent, Needs, Note, Notes, States, Turn, WalkState,
};
pub use answers::{Answers, FilteredCount};
pub use cells::CellSum;
pub use chosen::{Chosen, LeftOut, Window};
pub use console::{Console, ConsoleLine, ConsoleSums, Uart};
pub use continuity::{Continuity, ContinuityReport, Turns};
pub use cost::{CostReport, recording_cost};
pub use counters::{
    CounterColumn, CounterSum, Counters, CountersReport, CountersRow, ModeCounts, ThreadCounts,
};
pub use counts::{Counts, CpuCount};
pub use during::{StretchWatch, WatchedStretch};
pub use exits::{
    Convention, ExitCell, ExitOptions, ExitRow, ExitTable, Exits, ExitsReport, GuestCode,
    GuestFunction, GuestStarts, HandledBy, MAX_EXIT_ROWS, MAX_GROUPED_ROWS, OTHERS, RowSplit,
    SingleExit, ThreadRow, UnpairedExits, access_key,
};
pub use faults::{APIC_PAGE, ExitSum, Faults, FaultsReport};
pub use guests::{
    ContextKind, ContextName, GuestContext, GuestHeld, GuestIrqs, GuestPart, GuestTask, GuestTasks,
    GuestTasksReport, InsideEvents, InsideReport, IrqGuest, IrqHandler, NamedContext,
};
pub use handle::{Handle, SharedAnalysis};
pub use handling::{HandledClass, Handling, HandlingRow};
pub use idle_wakeups::{IdleWakeups, IdleWakeupsReport, IdleWakeupsRow};
pub use info::{EventCount, InfoReport, RecordingContents};
pub use ipis::{IpiDistance, IpiDistanceRow, IpiSums, Ipis, IpisReport};
pub use irqs::{GicIrq, IrqColumn, IrqPlace, IrqRow, Irqs, IrqsReport};
pub use main_loops::{MainLoopRow, MainLoops};
pub use moves::{Moves, MovesRow, Runs};
pub use names::{
    builtin_names, is_notification_register, known_devices, name_access, name_causes, name_rows,
    with_used,
};
pub use nested::{NestedExits, NestedExitsReport};
pub use open_lanes::OpenLanes;
pub use perftables::{
    CountPrinter, CpuUsageRow, DistributionBucket, FileWrites, KvmStatPrinter, ModeShares,
    PrintedDistribution, SampledShare, SchedPrinter, VirtioQueue,
};
pub use picture::{NamesOf, Origin, Picture, PictureContext, PictureHandles, RecordedMachine};
pub use printed_interrupts::{CountedInterrupt, OneCpuDevice, PrintedInterrupts};
pub use printed_shares::{PrintedShares, ShareLine};
pub use profile::{
    FunctionNamer, GuestSide, OffCpuRow, OffCpuSums, Profile, ProfileBy, ProfileContext, ProfileOf,
    ProfileOptions, ProfileReport, ProfileRow, ProfileSums, ProfileThread, ProfileUnit, ProfileVm,
    SampleUnit, SampledTime, SplicedVcpu, ThreadState, VcpuBy, VcpuThread, WaitedTime, is_function,
    plain,
};
pub use progress::{
    AT_ONCE_NS, ExitPlace, ExitRun, Progress, ProgressReport, ProgressRow, VcpuEnd,
};
pub use ratios::{RatioRow, counter_bases, counts_exits, counts_switches, ratios};
pub use recorder::{Recorder, RecorderReport, RecorderThread, Role};
pub use register_exits::RegisterExits;
pub use resume::Resume;
pub use sched::{
    CpuRow, DelayConvention, LongestWait, Merge, OtherTask, SchedColumn, SchedKinds,
    SchedLatencies, SchedReport, TaskRow, WorkRow,
};
pub use series::{PartCounts, Series, SliceMeasure};
pub use signs::{CpuSigns, Signs};
pub use sleeps::{SleepRow, Sleeps};
pub use slices::{Amount, MAX_SLICES, SliceAmounts, SliceCounter, Slices};
pub use slow_instances::{SlowInstance, SlowInstances};
pub use spins::SpinRun;
pub use stalls::{LONG_NS, Ran, Stall, StallCause, Stalls, StallsReport};
pub use state_spans::StateSpans;
pub use stats::Stats;
pub use study::{Study, StudySilence};
pub use tables::{ambiguous, counted_reason, first_group, of_tables, repeated};
pub use timeline::{
    Cell, KINDS, LaneGroup, Mark, OUTSIDE, PathExamples, Stretch, StretchPlan, StretchSum,
    Timeline, TimelineEvent, TimelineLane, TimelineLimits, TimelineMarks, TimelineNames,
    TimelineReport, TimelineWindow,
};
pub use timers::{HOST_TIMER_VECTOR, TimerEvidence, TimerRow, Timers, TimersReport};
pub use together::AnalysisTuple;
pub use unknowable::{Unknowable, known_amount, unknowable};
pub use unmaps::{UnmapRow, Unmaps, UnmapsReport};
pub use vcpu_pairs::LISTED;
pub use vcpu_rows::{CpuHolder, UserCause, VcpuRow, VcpusReport};
pub use vcpus::Vcpus;
pub use virtqueues::{
    CountedBuffers, VirtqueueColumn, VirtqueueRow, VirtqueueSource, VirtqueueTraffic, Virtqueues,
    VirtqueuesReport,
};
pub use vmm_sleeps::{VmmSleeps, VmmSleepsRow};
pub use waits::{CpuOwner, Crowd, VcpuWaits, WaitsReport};
pub use walk_costs::{WalkCost, WalkCosts, WalkTimes};
