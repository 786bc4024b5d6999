/*!
One file a question: push sinks that turn events into numbers.

An analysis keeps state that grows with threads and rows, never with the length of the recording, and
knows nothing of containers, files or output.

A question is an [`Analysis`], and a [`Study`] puts several to one walk. Whoever adds one keeps its [`Handle`], by which it
gets the analysis back, as the type that it is:

```
use analysis::{Exits, Options, Study, Vcpus, Window};

let mut study = Study::default();
let exits = study.add(Exits::new(Options::default()));
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
mod chosen;
mod console;
mod continuity;
mod cost;
mod counts;
mod during;
mod exits;
mod faults;
mod follow_paths;
mod guests;
mod handle;
mod info;
mod ipis;
mod irqs;
mod moves;
mod names;
mod open_lanes;
mod picture;
mod profile;
mod ratios;
mod record;
mod recorder;
mod resume;
mod round;
mod sched;
mod series;
mod signs;
mod sleeps;
mod slices;
mod slow_instances;
mod stalls;
mod study;
mod tables;
mod timeline;
mod timers;
mod unknowable;
mod vcpus;
mod waits;

pub use activity::Activity;
pub use analysis::{
    AccountScope, Analysis, Context, EventAccount, FilterScope, GuestEvent, Needs, Note, Notes,
    States, Turn, Walked, Want,
};
pub use answers::{Answers, FilteredCount};
pub use chosen::{Chosen, LeftOut, Window};
pub use console::{Console, ConsoleLine, ConsoleSums, Uart};
pub use continuity::{Continuity, ContinuityReport, Turns};
pub use cost::{CostReport, recording_cost};
pub use counts::{Counts, CpuCount};
pub use during::{During, Meanwhile};
pub use exits::{
    By, Convention, ExitRow, ExitTable, Exits, ExitsReport, GuestCode, GuestFunction, GuestStarts,
    HandledBy, MAX_EXIT_ROWS, MAX_GROUPED_ROWS, OTHERS, Options, SingleExit, ThreadRow, Unpaired,
    access_key,
};
pub use faults::{APIC_PAGE, Faults, FaultsReport, Taken};
pub use guests::{
    GuestDid, GuestDidKind, GuestDoing, GuestHeld, GuestIrqs, GuestPart, GuestTask, GuestTasks,
    GuestTasksReport, GuestWho, Inside, InsideReport, IrqGuest, IrqHandler,
};
pub use handle::{Handle, Shared};
pub use info::{EventCount, Info, InfoReport};
pub use ipis::{IpiSums, Ipis, IpisReport};
pub use irqs::{IrqRow, Irqs, IrqsReport};
pub use moves::{Moves, MovesRow, Runs};
pub use names::{builtin_names, name_access, name_causes, name_rows};
pub use open_lanes::OpenLanes;
pub use picture::{About, NamesOf, Origin, Picture, PictureContext, PictureHandles};
pub use profile::{
    Beside, Doing, GuestSide, Namer, Profile, ProfileBy, ProfileOf, ProfileOptions, ProfileReport,
    ProfileRow, ProfileSums, ProfileThread, ProfileVm, SampleUnit, SampledTime, Spliced, Unit,
    VcpuBy, VcpuThread, is_function, plain,
};
pub use ratios::{RatioRow, ratios};
pub use recorder::{Recorder, RecorderReport, RecorderThread, Role};
pub use resume::Resume;
pub use sched::{
    CpuRow, MAX_TASKS, Merge, Other, Sched, SchedKinds, SchedReport, TaskRow, WorkRow,
};
pub use series::{Measured, PartCounts, Series};
pub use signs::{CpuSigns, Signs};
pub use sleeps::{SleepRow, Sleeps};
pub use slices::{Amount, Counter, MAX_SLICES, Slice, Slices};
pub use slow_instances::{SlowInstance, SlowInstances};
pub use stalls::{Held, LONG_NS, Ran, Stall, Stalls, StallsReport};
pub use stats::Stats;
pub use study::Study;
pub use tables::{ambiguous, of_tables};
pub use timeline::{
    Cell, KINDS, LaneGroup, Mark, OUTSIDE, PathExamples, Plan, Stretch, Sum, Timeline,
    TimelineEvent, TimelineLane, TimelineLimits, TimelineMarks, TimelineNames, TimelineReport,
    TimelineWindow,
};
pub use timers::{HOST_TIMER_VECTOR, TimerEvidence, TimerRow, Timers, TimersReport};
pub use unknowable::{Unknowable, known_amount, unknowable};
pub use vcpus::{Behind, LISTED, MAX_VCPUS, UserCause, VcpuRow, Vcpus, VcpusReport};
pub use waits::{Crowd, VcpuWaits, WaitsReport, Who};
