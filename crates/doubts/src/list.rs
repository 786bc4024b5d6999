//! The list of all doubts: id, severity, what each concerns, and its one wording.
//!
//! A new doubt is one entry here and one place that raises it. `DOUBTS.md` is written from this list.

use words::{counted, list, plural, share};

use crate::concern::{Concern, Concerns, DoubtSeverity};

/// What the list says of a kind of doubts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoubtDescription {
    /// Stable for scripts.
    pub id: &'static str,
    /// How much it changes.
    pub severity: DoubtSeverity,
    /// The kinds of numbers that it touches.
    pub concerns: Concerns,
    /// What it means, for documents.
    pub about: &'static str,
}

macro_rules! doubt_list {
    ($(
        $(#[doc = $about:literal])+
        $name:ident $({ $($field:ident: $ty:ty),+ $(,)? })? = $id:literal, $severity:ident, [$($concern:ident),+]
        => $text:expr;
    )+) => {
        /// A kind of doubts, with the numbers and names that its wording has.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum DoubtKind {
            $(
                $(#[doc = $about])+
                $name $({ $(#[allow(missing_docs, reason = "the entry says what they are")] $field: $ty),+ })?,
            )+
        }

        /// Every kind, in the order of the list.
        pub const DOUBT_LIST: &[DoubtDescription] = &[$(
            DoubtDescription {
                id: $id,
                severity: DoubtSeverity::$severity,
                concerns: Concerns::of(&[$(Concern::$concern),+]),
                about: concat!($($about),+),
            },
        )+];

        impl DoubtKind {
            /// Returns what the list says of it.
            pub fn entry(&self) -> &'static DoubtDescription {
                enum Place { $($name),+ }
                let place = match self {
                    $(DoubtKind::$name $({ $($field: _),+ })? => Place::$name,)+
                };
                &DOUBT_LIST[place as usize]
            }

            /// Returns its sentences.
            pub fn text(&self) -> String {
                match self {
                    $(DoubtKind::$name $({ $($field),+ })? => String::from($text),)+
                }
            }
        }
    };
}

doubt_list! {
    /// The recorder says that it lost events.
    EventsLost { events: u64 } = "events-lost", Serious, [All]
        => format!(
            "{} lost while recording: counts are lower bounds, and times between events may span lost ones.",
            counted(*events, "event was", "events were")
        );
    /// The recording ends before its own end.
    CutOff = "cut-off", Warning, [All]
        => "It is cut off before its end: later events are missing.";
    /// Where a recording was cut, the events of some CPUs end earlier than those of others.
    CutUneven = "cut-uneven", Serious, [All]
        => "Near the cut the events of some CPUs end earlier than those of others: what a vCPU did after its last \
             event is unknown.";
    /// The file became shorter while it was read.
    CutWhileRead { byte: usize } = "cut-while-read", Serious, [All]
        => format!("The file was cut off at byte {byte} while it was read; what was read until then is used.");
    /// A stream or a packed file breaks off, or was not read whole.
    InputBroken { reason: String } = "input-broken", Serious, [All] => reason.clone();
    /// A guest's recording was not read to its end, because the system gave no thread for it.
    NotReadWhole = "not-read-whole", Serious, [All]
        => "It was not read to its end, because the system gave no thread for it; stop other programs, or allow more \
             (ulimit -u).";
    /// Of an event of KVM or of the scheduler the recorder wrote no more than what belongs to pairs.
    EventsPaired { events: String, kept: String } = "events-paired", Serious, [All]
        => format!(
            "As it was asked to, the recorder wrote of {events} {kept}: counts of them are of these alone, and what a \
            vCPU or a task did between two of them is not known."
        );
    /// The same of an event that no analysis counts, as a probe.
    ExtrasPaired { events: String, kept: String } = "extras-paired", Note, [All]
        => format!("As it was asked to, the recorder wrote of {events} {kept}: counts of them are of these alone.");
    /// A flight recorder kept less time than it was to keep.
    KeptLess { held_ns: u64, asked_ns: u64, rings: Vec<String> } = "kept-less", Note, [All]
        => format!(
            "The recorder was asked to keep {} and kept {}: older events were overwritten in the rings of {}. More \
            --memory keeps more.",
            words::duration::human(*asked_ns),
            words::duration::human(*held_ns),
            list(rings)
        );
    /// Something in the file is not as its format wants it.
    FileDamaged { format: String, what: String } = "file-damaged", Serious, [All] => format!("{format}: {what}.");
    /// Records of a kind that came after this release.
    RecordTypesUnknown { records: u64, kind: u64 } = "record-types-unknown", Warning, [All]
        => format!(
            "{} of types that are not known (the first is {kind}) were passed over: a newer perf or kernel wrote them.",
            plural(*records, "record")
        );
    /// Events stand in other files of the recording's folder.
    FilesNotRead = "files-not-read", Serious, [All]
        => "This is one file of a folder that perf record --threads made. The events are in the files beside it: give \
            the folder, and they are read together.";
    /// User space's part of stacks that comes later than the stack, and did not.
    StacksDeferred { stacks: u64 } = "stacks-deferred", Warning, [Stacks]
        => format!(
            "The callers in user space of {} are not shown: they are recorded when the thread goes back there \
            (perf record --call-graph fp,defer), and that was not, or is of a wait.",
            plural(*stacks, "stack")
        );
    /// The number of lost events is a lower bound.
    LossUncounted { places: u64 } = "loss-uncounted", Warning, [All]
        => format!(
            "At {} events were lost and the kernel did not count them; one is counted for each place.",
            plural(*places, "place")
        );
    /// The number of lost events that a text has is a lower bound.
    LossUncountedText { times: u64, line: u64 } = "loss-uncounted-text", Warning, [All]
        => format!(
            "The text says {} that events were lost, but not how many (first in line {line}); one is counted for \
            each.",
            counted(*times, "time", "times")
        );
    /// perf's own warning stands in a text, without a number.
    LossMentioned { line: u64 } = "loss-mentioned", Serious, [All]
        => format!("In line {line} perf says that it lost data; it does not say how many events.");
    /// Parts of a file hold no records.
    Holes { bytes: u64, holes: u64 } = "holes", Serious, [All]
        => format!(
            "{} hold no records and were skipped. Their events are missing, and count as {}, one for each place.",
            plural(*bytes, "byte"),
            plural(*holes, "lost event")
        );
    /// Records of which nobody knows what they are, because the formats are missing.
    FormatMissing { events: u64 } = "format-missing", Serious, [All]
        => format!(
            "{events} events have no format, because it is missing in the file: --formats OTHER takes it from another \
            recording of the same kernel."
        );
    /// Records of a trace.dat whose event has no format.
    RecordsUnknown { records: u64 } = "records-unknown", Warning, [All]
        => format!("{records} records are of events that have no format.");
    /// Samples whose id is none of the recording's.
    SamplesUnknown { samples: u64 } = "samples-unknown", Warning, [All]
        => format!("Samples that belong to no known event: {samples}.");
    /// Samples stand behind later ones, further than the recorder's rounds explain.
    OutOfOrder { samples: u64 } = "out-of-order", Warning, [All]
        => format!("Samples written out of order, behind later ones: {samples}.");
    /// Data of a hardware tracer is not read.
    AuxNotRead { bytes: u64 } = "aux-not-read", Note, [All]
        => format!("{bytes} bytes of AUX trace (Intel PT, CoreSight, SPE) are not read.");
    /// Lines of a text that are no event that is known.
    LinesNotUnderstood { lines: u64, line: u64 } = "lines-not-understood", Warning, [All]
        => format!("{} not understood (first: line {line}).", counted(*lines, "line was", "lines were"));
    /// Less than half of a text's events were read.
    EventsMostlyUnread { read: u64, lines: u64, line: u64 } = "events-mostly-unread", Serious, [All]
        => format!(
            "Of {lines} lines that look like events {read} could be read ({} %; the first that could not is line \
             {line}): numbers are of those, and no verdict rests on them.",
            (read * 100).checked_div(*lines).unwrap_or(0)
        );
    /// Some of a text's events were not read.
    EventsPartlyUnread { read: u64, lines: u64, line: u64 } = "events-partly-unread", Warning, [All]
        => format!(
            "Of {lines} lines that look like events {read} could be read ({} %; the first that could not is line \
             {line}).",
            (read * 100).checked_div(*lines).unwrap_or(0)
        );
    /// KVM's events of a text without readable fields.
    FieldsUnreadable { events: u64, line: u64 } = "fields-unreadable", Serious, [All]
        => format!(
            "{} no fields that could be read (first: line {line}).",
            counted(*events, "KVM event has", "KVM events have")
        );
    /// Somebody left lines out of a text.
    LinesLeftOut { places: u64, line: u64 } = "lines-left-out", Serious, [All]
        => format!(
            "Lines were left out of the text in {} (first: line {line}); times across a gap are wrong.",
            counted(*places, "place", "places")
        );
    /// Lines of a text were broken, and put together.
    LinesJoined { lines: u64, line: u64 } = "lines-joined", Note, [All]
        => format!(
            "{} broken and put together again (first: line {line}).",
            counted(*lines, "line was", "lines were")
        );
    /// Events of a text are not in the order of time.
    TextBackwards { events: u64, line: u64 } = "text-backwards", Warning, [All]
        => format!(
            "{} earlier than the one before (first: line {line}): the text is not in the order of time.",
            counted(*events, "event is", "events are")
        );
    /// Lines of a text hold bytes that are no UTF-8.
    OddBytes { lines: u64, line: u64 } = "odd-bytes", Note, [All]
        => format!(
            "{} bytes that are no UTF-8 (first: line {line}).",
            counted(*lines, "line holds", "lines hold")
        );
    /// The kernel's option raw was on.
    RawOption = "raw-option", Serious, [All]
        => "The kernel's option raw was on: events have numbers and no fields. Print the buffer again with noraw.";
    /// A text has events of more files or buffers than are kept apart.
    BuffersMerged { lines: u64, line: u64 } = "buffers-merged", Serious, [All]
        => format!(
            "{} of more files or buffers than are kept apart (first: line {line}): their events are taken for those \
             of the first one.",
            counted(*lines, "line is", "lines are")
        );
    /// Lines of the function_graph tracer without a time of day.
    GraphUntimed { lines: u64, line: u64 } = "graph-untimed", Warning, [All]
        => format!(
            "{} of the function_graph tracer {} no time of day, or no CPU (first: line {line}): their functions and \
             durations are not used. The tracer's option funcgraph-abstime prints the time.",
            plural(*lines, "line"),
            match lines { 1 => "has", _ => "have" }
        );
    /// Times of a text have no decimal point.
    TimesWithoutPoint = "times-without-point", Warning, [All]
        => "Times are printed without a decimal point: nanoseconds of the clock boot, or ticks of another clock.";
    /// A text has fewer entries than its header says.
    EntriesMissing { header: u64, found: u64 } = "entries-missing", Warning, [All]
        => format!("It is an excerpt: {found} of the {header} entries that the kernel's buffer held.");
    /// What a buffer of the kernel held before what a text has of it was overwritten.
    OlderOverwritten { events: u64 } = "older-overwritten", Note, [All]
        => format!(
            "{} overwritten before, as in every full buffer of the kernel: nothing is missing between those that are \
             here, but not all CPUs begin at the same time.",
            counted(*events, "older entry was", "older entries were")
        );
    /// A text does not say which thread made an event.
    ThreadsUnknown { text: String } = "threads-unknown", Warning, [All] => text.clone();
    /// Events of a text have no CPU.
    CpusNotPrinted { events: u64, of: u64 } = "cpus-not-printed", Warning, [All]
        => format!(
            "{} no CPU: what is said of CPUs, and who had one, is not recorded. perf script -F +cpu prints it, where \
             it was recorded (perf record -a, or --sample-cpu); trace-cmd report and the kernel always do.",
            match events == of {
                true => "The text's events have".to_owned(),
                false => format!("{} of {of}", counted(*events, "event has", "events have")),
            }
        );
    /// The clock counts ticks of unknown length.
    ClockTicks = "clock-ticks", Warning, [All]
        => "The recording's clock counts ticks of unknown length: times are in ticks, in fields that end in _ticks, \
             and fields that end in _ns are empty.";
    /// The clock says a time at which nobody records: it was set wrong, or time stamps are damaged.
    ClockImplausible { clock: String, says: String } = "clock-implausible", Warning, [All]
        => format!(
            "The clock{clock} says that {says}: it was set wrong, or time stamps are damaged. Times that the recording \
            prints are wrong, and durations may be."
        );
    /// Which vCPU is of which VM is a guess.
    VmsGuessed { vms: String } = "vms-guessed", Warning, [Vms]
        => format!(
            "Which vCPU is of which VM is a guess, by the order of thread ids: the recording has no processes. \
            Threads taken \
             for one VM: {vms}. --facts with the text of 'ps -eLo pid,tid,comm,args' says which are."
        );
    /// Which threads are vCPUs is known by names or facts alone.
    VcpusPresumed { vcpus: u64 } = "vcpus-presumed", Warning, [Vms, States]
        => format!(
            "No exit and no entry of a vCPU was recorded: {}, by names or by facts beside the recording. When they had \
            a CPU and when they waited for one is known; what they did with it is not, nor whether their guests were \
            halted while they slept.",
            counted(*vcpus, "thread is taken for a vCPU", "threads are taken for vCPUs")
        );
    /// Events that come in turns do not.
    TurnsMissed { holes: Vec<String> } = "turns-missed", Serious, [Exits, States, Sched, Paths]
        => format!(
            "Events are missing all through the recording: {}. Times between events may be wrong.",
            holes.join("; ")
        );
    /// Tasks went to a CPU of which nothing was recorded.
    CpuNotRecorded { cpu: u32 } = "cpu-not-recorded", Serious, [States, Sched, Paths]
        => format!("Tasks went to CPU {cpu}, of which no switch was recorded: what happened there is unknown.");
    /// Exits before the first entry of their vCPU.
    NoEntryBefore { exits: String } = "no-entry-before", Note, [Exits]
        => format!("Not timed, because no entry of their vCPU was recorded before: {exits}.");
    /// Exits that no entry followed.
    NoEntryBehind { exits: String } = "no-entry-behind", Note, [Exits]
        => format!("Not timed, because no entry followed: {exits}.");
    /// Accesses to ports, memory and registers that are in no row of their table.
    AccessesLeftOut { accesses: String } = "accesses-left-out", Note, [Exits]
        => format!(
            "In no row of a table of accesses, as with perf: {accesses}. Another access came before the vCPU entered \
             its guest, no entry followed, or no exit came before."
        );
    /// Exits of which the recording does not say which thread made them.
    ExitsWithoutThread { exits: u64 } = "exits-without-thread", Warning, [Exits]
        => format!(
            "{} in no row: the recording does not say which thread made them.",
            counted(*exits, "exit is", "exits are")
        );
    /// The clock went back between an exit and the entry behind it.
    ClockWentBack { exits: u64 } = "clock-went-back", Serious, [Exits]
        => format!(
            "Not timed, because the clock went back before the entry that followed: {}.",
            plural(*exits, "exit")
        );
    /// A table of exits has as many rows as are kept apart.
    ExitRowsMerged { table: String, rows: usize, more: u64, key: String } = "exit-rows-merged", Warning, [Exits]
        => format!(
            "The table {table} has its maximum of {rows} rows: {more} more were counted in its row \"{key}\"."
        );
    /// A part of vCPUs' time cannot be separated from another without events that were not recorded.
    StateUnknown { fields: Vec<&'static str>, why: &'static str } = "state-unknown", Note, [States]
        => format!("{} could not be measured: {why}.", list(fields));
    /// No exits were recorded.
    NoExits = "no-exits", Warning, [Exits]
        => "There are no kvm_exit events, so nothing can be said about exits; record on the host with 'trapline \
            record --for exits'.";
    /// Exits were recorded, and none occurred.
    ExitsDidNotOccur = "exits-did-not-occur", Warning, [Exits]
        => "kvm_exit was recorded and did not occur, so there is nothing to say about exits.";
    /// No exit passes the filters.
    NoExitsPass = "no-exits-pass", Warning, [Exits]
        => "No kvm_exit event passes the filters, so nothing can be said about exits; 'trapline info' without \
             filters says \
            what is in the recording.";
    /// Threads that had the least time are not kept apart: what was counted of them is in sums called "others".
    ThreadsMerged { threads: u64, vcpus: u64, most: (usize, usize), busy_ns: (u64, u64) }
        = "threads-merged", Warning, [All]
        => format!(
            "Only {} threads and {} vCPUs are kept apart at once. {} not, because others had more time (vCPUs among \
             them: {vcpus}; their part of the time of all that was not asleep: {}): what was counted of them is in \
             rows and sums called \"others\", and one that did something later is counted as another.",
            most.0,
            most.1,
            counted(*threads, "thread is", "threads are"),
            share::of(busy_ns.0, busy_ns.1),
        );
    /// Delays are counted from sched_waking, since sched_wakeup was not recorded.
    WakeupsFromWaking = "wakeups-from-waking", Note, [Sched]
        => "There are no sched_wakeup events, so delays are those of tasks that left their CPU runnable, as in perf; \
             woken_wait_ns has the waits since sched_waking.";
    /// How long woken tasks waited is not known.
    NoWakeups = "no-wakeups", Warning, [Sched]
        => "There are no sched_wakeup events: delays are those of tasks that left their CPU runnable, and the waits of \
             woken tasks are unknown.";
    /// Run time is counted from switches.
    NoRuntimes = "no-runtimes", Note, [Sched]
        => "There are no sched_stat_runtime events: runtime_ns is empty (perf prints 0); the table has on_cpu_ns \
             instead, from sched_switch.";
    /// Migrations are seen by the CPUs of runs alone.
    NoMigrations = "no-migrations", Note, [Sched]
        => "There are no sched_migrate_task events: migrations are changes of CPU between runs.";
    /// No switches were recorded.
    NoSwitches = "no-switches", Note, [Sched]
        => "There are no sched_switch events, or none passes the filters: nothing can be said about who had the \
             CPUs.";
    /// Switches on a CPU do not follow each other.
    SwitchesMissed { missed: u64, all: u64 } = "switches-missed", Serious, [Sched]
        => format!(
            "In {missed} of {all} switches the task that leaves is not the one that its CPU had switched to: switches \
            are missing, and times between them may be wrong."
        );
    /// Switches were recorded of some threads alone.
    SwitchesOfSomeThreads = "switches-of-some-threads", Warning, [Sched]
        => "Only switches away from some threads were recorded, as by perf record -p: how long other threads ran and \
             waited is not recorded.";
    /// --cpu hides where a thread runs meanwhile.
    OtherCpusHidden = "other-cpus-hidden", Warning, [Stacks]
        => "--cpu leaves out switches on other CPUs: a thread that went to one of them counts as waiting meanwhile.";
    /// Interrupts of which the recording does not show the vCPU.
    InterruptsUnresolved { interrupts: u64 } = "interrupts-unresolved", Warning, [Interrupts]
        => format!(
            "{} accepted that are in no row: the recording does not show whose vCPU they were for.",
            counted(*interrupts, "interrupt was", "interrupts were")
        );
    /// More threads than a host has.
    InterruptsBeyond { interrupts: u64 } = "interrupts-beyond", Serious, [Interrupts]
        => format!(
            "{} of more threads than a host has are in no row: the recording is damaged.",
            plural(*interrupts, "interrupt")
        );
    /// Guests' handlers that are in no row.
    HandlersUnplaced { runs: u64 } = "handlers-unplaced", Warning, [Interrupts]
        => format!(
            "{} of guests' handlers are in no row: it is not known which vCPU they were on, or there are more \
            handlers than \
             are kept.",
            plural(*runs, "run")
        );
    /// Guests' recordings have no handlers.
    NoHandlers = "no-handlers", Note, [Interrupts]
        => "The guests' recordings have no handlers of interrupts: record them in the guest with 'trapline \
            agent'.";
    /// A guest's recording does not say what the guest did.
    GuestSilent = "guest-silent", Note, [Guests]
        => "it has no event that says what the guest did: record sched:sched_switch, irq:irq_handler_entry and \
            irq:softirq_entry with their ends, as 'trapline agent' does.";
    /// A guest's recording was left out.
    GuestLeftOut { text: String } = "guest-left-out", Warning, [All] => text.clone();
    /// A guest's clock is as its recorder measured it.
    GuestClockUndecided = "guest-clock-undecided", Warning, [Guests]
        => "its clock is as the recorder measured it, and its events do not say whether that is right.";
    /// Events of a guest lie outside of the time in which their vCPU was in the guest.
    GuestClockUnsteady { outside: u64, tried: u64, residual_ns: u64 } = "guest-clock-unsteady", Serious, [Guests]
        => format!(
            "{outside} of {} lie up to {} outside of the time in which their vCPU was in the guest: its times are \
            not of one \
             steady clock, or events of the host are missing.",
            plural(*tried, "event"),
            words::duration::human(*residual_ns)
        );
    /// Events of a guest's recording were lost.
    GuestEventsLost { events: u64 } = "guest-events-lost", Serious, [Guests]
        => format!("{} lost while the guest was recorded.", plural(*events, "event"));
    /// Exits whose function has no name.
    FunctionsUnnamed { exits: u64, of: u64 } = "functions-unnamed", Warning, [Exits]
        => format!(
            "{exits} of {of} exits not in user space were at addresses that no symbol covers. Symbols of another \
            boot or \
             kernel do not fit; a list with gaps names nothing in them."
        );
    /// Functions in stacks without a name.
    FramesUnnamed { samples: u64, of: u64, what: &'static str, parts: Vec<String> } = "frames-unnamed", Note, [Stacks]
        => format!("{samples} of {of} {what} shown have functions without a name: {}.", parts.join("; "));
    /// Names of kernel functions are from the machine that reads the recording.
    KernelNamedHere { origin: &'static str } = "kernel-named-here", Note, [Stacks]
        => format!("Kernel functions are named by {origin}, which has the recording's build id.");
    /// KVM cannot be separated from the rest of the kernel.
    KvmUnnamed = "kvm-unnamed", Note, [Stacks]
        => "No function of the host's kernel has a name, so KVM cannot be separated from the rest of it.";
    /// Waits without a stack.
    WaitsWithoutStack { waits: String } = "waits-without-stack", Note, [Stacks]
        => format!("{waits} no stack: record switches with 'trapline record --for stacks' to see what was waited for.");
    /// A halted guest's wait looks like any other.
    HaltsNotSeparated = "halts-not-separated", Warning, [Stacks]
        => "Waits of halted guests are included, because without a stack they look like any other wait.";
    /// Waits that had not ended when the recording did.
    WaitsOpen { threads: u64 } = "waits-open", Note, [Stacks]
        => format!(
            "{} still without a CPU when the recording ended; the wait counts up to there.",
            counted(*threads, "thread was", "threads were")
        );
    /// Interrupts of idle CPUs are left out.
    IdleInterrupts { samples: u64 } = "idle-interrupts", Note, [Stacks]
        => format!(
            "{} of idle CPUs are in interrupts, which is work that no thread did; --idle shows it.",
            plural(*samples, "sample")
        );
    /// Stacks that cannot be read whole.
    StacksDamaged { samples: u64 } = "stacks-damaged", Warning, [Stacks]
        => format!(
            "Stacks of {} are damaged: their innermost address alone is shown.",
            plural(*samples, "sample")
        );
    /// Stacks that are shown in part.
    StacksShortened { samples: u64 } = "stacks-shortened", Warning, [Stacks]
        => format!("Stacks of {} are shown in part: they are too deep, or too many.", plural(*samples, "sample"));
    /// Samples beyond the threads and stacks that are kept are in no row.
    SamplesLeftOut { samples: u64, all: u64 } = "samples-left-out", Serious, [Stacks]
        => format!(
            "{} in no row: there are more threads and different stacks than are kept ({} of the samples). --time, \
             --cpu or --vm show a part.",
            counted(*samples, "sample is", "samples are"),
            share::of(*samples, *all),
        );
    /// Samples of events that are not shown.
    OtherSamples { samples: u64 } = "other-samples", Note, [Stacks]
        => format!("{} of other events are not shown; --event chooses the event.", plural(*samples, "sample"));
    /// Why functions of a file have no names.
    FileWithoutNames { file: String, why: String, places: u64 } = "file-without-names", Note, [Stacks]
        => format!("{file} {why}: {} in it without a name.", plural(*places, "place"));
    /// The kernel of a guest has no symbols.
    GuestKernelUnnamed { pid: i32 } = "guest-kernel-unnamed", Note, [Stacks]
        => format!("--guestmount has no {pid}/proc/kallsyms, which would name the kernel of that VM's guest.");
    /// How a guest's stacks were put below the host's vCPUs.
    StacksJoined { by: &'static str } = "stacks-joined", Note, [Stacks]
        => format!(
            "CPU n of the guest is taken for vCPU n, and the host's threads for vCPUs {by}. Clocks are not \
            related: all of \
             both recordings counts."
        );
    /// A guest has another number of CPUs than the host shows.
    StacksOtherCpus { cpus: u64, vcpus: u64 } = "stacks-other-cpus", Warning, [Stacks]
        => format!(
            "the guest had {}, and the host's recording has {} of it: some may be another's.",
            plural(*cpus, "CPU"),
            plural(*vcpus, "vCPU")
        );
    /// A guest's recording has no samples of a CPU.
    StacksWithoutCpu { cpu: u32 } = "stacks-without-cpu", Note, [Stacks]
        => format!("has no samples of CPU {cpu}: what the host knows of it stays [guest].");
    /// Both sides of a difference have other units, or other events.
    SidesDiffer { text: String } = "sides-differ", Warning, [Stacks] => text.clone();
    /// Messages of the tool that wrote folded stacks.
    ToolMessages { messages: u64, first: String } = "tool-messages", Warning, [Stacks]
        => format!("{} of the tool that wrote this: {first}.", plural(*messages, "message"));
    /// Lines that are no folded stacks.
    LinesWithoutStack { lines: u64, first: String } = "lines-without-stack", Warning, [Stacks]
        => format!(
            "{} with a count behind, and left out: {first}.",
            counted(*lines, "line is no stack", "lines are no stacks")
        );
    /// Counts with decimals.
    CountsRounded { lines: u64 } = "counts-rounded", Note, [Stacks]
        => format!(
            "Counts of {} have decimals and are rounded to whole numbers; where they are times, --unit us, ms or \
            s keeps them.",
            plural(*lines, "line")
        );
    /// Names that are cut.
    NamesCut { lines: u64 } = "names-cut", Note, [Stacks]
        => format!("Names in {} are too long and are cut off.", plural(*lines, "line"));
    /// More stacks than are kept.
    FramesLeftOut { part: u64, all: u64 } = "frames-left-out", Warning, [Stacks]
        => format!("There are too many stacks: inner frames are left out of {}.", share::of(*part, *all));
    /// A printed table is of no kind that is known.
    TableLeftOut { line: u64 } = "table-left-out", Warning, [All]
        => format!("The table in line {line} does not say what its rows are, and is left out.");
    /// perf times arm64's exits from the entry to the exit.
    ArmTimesAreGuests = "arm-times-are-guests", Serious, [Exits]
        => "perf times arm64's exits from the entry to the exit: its table has how long the guest ran before each \
             exit, not how long the exit took. Counts are right.";
    /// A block of perf stat has no counts.
    NoCounts { line: u64 } = "no-counts", Warning, [All]
        => format!("The block of perf stat in line {line} has no counts.");
    /// Lines of printed tables that were not understood.
    TableNotUnderstood { note: String } = "table-not-understood", Warning, [All] => note.clone();
    /// What of a file of facts was not understood.
    FactsNotUnderstood { note: String } = "facts-not-understood", Note, [Host] => note.clone();
    /// What of QEMU's device map was not understood.
    DeviceMapNotUnderstood { note: String } = "device-map-not-understood", Note, [Names]
        => format!("info mtree: {note}");
    /// What of a guest's definition was not understood, or not changed.
    DefinitionNote { note: String } = "definition-note", Note, [Host] => note.clone();
    /// What of a measurement of this machine may not hold.
    MeasurementNote { note: String } = "measurement-note", Warning, [Measurements] => note.clone();
    /// A redacted recording has other events than the original.
    RedactionDiffers { events: u64, before: u64 } = "redaction-differs", Serious, [All]
        => format!(
            "The new file has {}, of the {before} that the original has, or others: numbers in it are not those of the \
             original. A damaged original is put together as 'trapline salvage' does; otherwise this is a defect of \
             trapline.",
            plural(*events, "event")
        );
    /// Names that were replaced still stand in a redacted recording.
    NamesRemain { names: u64, first: String, times: u64 } = "names-remain", Serious, [All]
        => format!(
            "{} replaced and still in the new file, {first} {}: as a word of a format or of a release, or where it was \
             not expected. Look at it before you send it.",
            counted(*names, "name was", "names were"),
            counted(*times, "time", "times")
        );
    /// Events that an analysis got from the reader are in no row, and were not said to be left out: a defect of
    /// trapline.
    NotAccounted { noun: &'static str, of: &'static str, events: u64, all: u64 } = "not-accounted", Serious, [All]
        => format!(
            "{events} of {} {of} are neither in a row nor counted as left out: this is a defect of trapline.",
            plural(*all, noun)
        );
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_words_with_hyphens() {
        let ids: BTreeSet<&str> = DOUBT_LIST.iter().map(|entry| entry.id).collect();
        assert_eq!(ids.len(), DOUBT_LIST.len());
        let plain = |id: &str| id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        assert!(ids.iter().all(|id| plain(id)), "{ids:?}");
    }

    #[test]
    fn each_kind_has_its_own_entry() {
        assert_eq!(DoubtKind::ClockTicks.entry().id, "clock-ticks");
        let last = DoubtKind::NotAccounted {
            noun: "event",
            of: "kvm_exit",
            events: 1,
            all: 7,
        };
        assert_eq!(last.entry().id, "not-accounted");
        assert!(last.text().starts_with("1 of 7 events kvm_exit"));
    }
}
