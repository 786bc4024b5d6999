//! `trapline flame`: where CPUs were when perf sampled them, and what threads waited for without one.

mod binaries;
mod diff;
mod folded;
mod guest;
mod picture;
mod write;

use std::path::{Path, PathBuf};

use analysis::{
    FunctionNamer, GuestSide, ProfileBy, ProfileOf, ProfileOptions, ProfileReport, Vcpus,
};
use anyhow::Result;
use binaries::BinaryArgs;
use clap::{Args, ValueEnum};
use doubts::{Concern, Concerns, DoubtKind, Doubts};
use event::Quality;
use folded::CountUnit;
use guest::GuestRecording;
use render::{ClockUnit, flame};
use session::{
    GuestPairing, GuestStacks, Input, NamedGuest, OpenRecording, RequiredEvents, Session,
};
use write::Form;

use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::options::{Common, GivenRecordings, named_guest};
use crate::output;
use crate::usage::Usage;

/// Rows of each table on a terminal.
const LIMIT: usize = 20;

/// `trapline flame`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = HELP,
    mut_arg("recordings", |words| words.value_names(["REC", "GUEST"]).help(INPUTS))
)]
pub(crate) struct FlameArgs {
    #[command(flatten)]
    recordings: GivenRecordings,

    /// Write the stacks to FILE. If its name ends in .svg or .html: a flame graph for a browser; in .folded: a line for
    /// each stack, for flamegraph.pl, inferno and others; in .json: speedscope's file format; in .pb.gz or .pprof: a
    /// profile for pprof, Grafana, Parca and others.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write FILE in this form, whatever its name is. A profile for the Firefox Profiler (profiler.firefox.com) is
    /// compressed if FILE ends in .gz.
    #[arg(long = "as", value_enum, value_name = "FORM", requires = "output")]
    form: Option<Form>,

    /// Show what threads waited for without a CPU instead: the time from switch to switch, by the stack with which they
    /// left.
    #[arg(long, conflicts_with_all = ["both", "guest_exits", "event"])]
    off_cpu: bool,

    /// Show the time on and off CPU together. The time on CPU is by switches too, shared out by samples.
    #[arg(long, conflicts_with = "guest_exits")]
    both: bool,

    /// Put the stack of who woke a thread, upside down, upon the stack with which it slept. Needs --off-cpu or --both.
    #[arg(long)]
    wakeup: bool,

    /// Show where guests exited, by the instruction pointers of kvm_exit, one for each exit. These are no samples.
    #[arg(long, conflicts_with_all = ["wakeup", "event"])]
    guest_exits: bool,

    /// Show the samples of this event. The default is the one of time with the most samples, else the first that is no
    /// tracepoint.
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,

    /// What stands below the stacks that -o writes.
    #[arg(long, value_enum, default_value_t = FlameGrouping::Comm)]
    by: FlameGrouping,

    /// What the counts of folded stacks are. Without it they are numbers, unless the text says so in its first line.
    #[arg(long, value_enum, value_name = "UNIT")]
    unit: Option<CountUnit>,

    /// Show idle CPUs and idle guests too.
    #[arg(long)]
    idle: bool,

    /// Show only the first N rows of each table; all with 0.
    #[arg(long, value_name = "N", default_value_t = LIMIT)]
    limit: usize,

    /// Name kernel functions with FILE, a copy of the host's /proc/kallsyms made by root. Without FILE, names are of
    /// this machine's kernel, or of a file, that has the build id.
    #[arg(long, value_name = "FILE")]
    kallsyms: Option<PathBuf>,

    /// Name functions of guests' kernels with FILE, a copy of a guest's /proc/kallsyms made by root.
    #[arg(long, value_name = "FILE")]
    guest_kallsyms: Option<PathBuf>,

    /// Say where modules of guests' kernels are with FILE, a copy of a guest's /proc/modules made by root.
    #[arg(long, value_name = "FILE")]
    guest_modules: Option<PathBuf>,

    /// Name functions of each guest's kernel with DIR/PID/proc/kallsyms (and modules), PID being its VM's process, as
    /// perf kvm has it.
    #[arg(long, value_name = "DIR")]
    guestmount: Option<PathBuf>,

    /// Put the stacks of REC in the place of what the host knows of a guest. REC was recorded inside the guest at the
    /// same time. Where the host has several VMs, NAME says whose it is: the VM's name, UUID or process. Without it the
    /// events of both show it, where the host's has kvm_entry and kvm_exit. May be repeated.
    #[arg(
        long, value_name = "[NAME=]REC", value_parser = named_guest,
        conflicts_with_all = ["diff", "off_cpu", "guest_exits"]
    )]
    guest: Vec<NamedGuest>,

    /// Show what changed from REC to this recording, B. Shares are compared, so neither has to be as long as the other.
    #[arg(long, value_name = "B")]
    diff: Option<PathBuf>,

    /// Name kernel functions of B with FILE. The default is that of --kallsyms, which holds until the host boots again.
    #[arg(long, value_name = "FILE", requires = "diff")]
    diff_kallsyms: Option<PathBuf>,

    /// Name functions of the kernels of B's guests with FILE. The default is that of --guest-kallsyms.
    #[arg(long, value_name = "FILE", requires = "diff")]
    diff_guest_kallsyms: Option<PathBuf>,

    #[command(flatten)]
    binaries: BinaryArgs,

    #[command(flatten)]
    common: Common,
}

/// What stands below stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FlameGrouping {
    /// The names of threads.
    Comm,
    /// Threads.
    Thread,
    /// CPUs.
    Cpu,
    /// VMs.
    Vm,
}

const INPUTS: &str = "Recording, or folded stacks (a line for each: frame;frame;frame COUNT), or - for standard input; \
                      behind it recordings of guests, as --guest GUEST names them.";

const HELP: &str = "Columns, on CPU:
  share%   of the time that is shown, by the period of each sample
  guest%   of it in a guest, of which a host records an address and no stack
  kvm%     in KVM
  kernel%  in the rest of the host's kernel, for this thread
  user%    in the host's user space; of a thread of a VM that is its VMM
  self%    in the function itself
  total%   in it and in what it called
Columns, off CPU:
  sleeping  waited for something; D state: the same, and could not be killed
  runnable  waited for a CPU: preempted, or woken and not yet running

Idle CPUs, idle guests and the waits of guests that had halted are left out. A
function that nothing names is its file and where it is in that file; those of
user space are named by files with the recording's build ids. Filters choose
samples, and with --off-cpu threads.

On CPU needs samples, off CPU switches with stacks, --both needs both, and
'trapline record --for stacks' has them. Of perf: 'perf record -a -g', 'perf kvm
--host --guest record -a -g' to see guests too, and for switches 'perf record -a
-g -e sched:sched_switch -e sched:sched_waking', for --both with '-e
cpu-clock/freq=997/' before these, since -F would thin out switches too.

Examples:
  trapline flame perf.data
  trapline flame --kallsyms kallsyms.txt perf.data -o out.svg
  trapline flame perf.data -o out.folded
  trapline flame before.data --diff after.data -o changes.svg
  trapline flame --by vm perf.data -o speedscope.json
  trapline flame perf.data -o out.pb.gz && go tool pprof -top out.pb.gz
  trapline flame --as firefox perf.data -o profile.json.gz
  trapline flame --symfs rootfs --debug-dir rootfs/usr/lib/debug perf.data
  trapline flame --off-cpu --wakeup sched.data -o waits.folded
  trapline flame host.perf.data --guest guest.perf.data -o out.svg
  trapline flame --guest-exits --guest-kallsyms guest.txt perf.data.guest
  trapline flame --pid 4863 --format json perf.data
  trapline flame --unit us offcputime.folded";

/// Says that a file is written, and what it leaves out.
fn wrote(file: &Path, left_out: &[String]) -> String {
    let mut text = format!("wrote {}\n", file.display());
    for sentence in left_out {
        text.push_str(&format!("{sentence}\n"));
    }
    text
}

/// What was found of one recording.
struct CollectedProfile {
    report: ProfileReport,
    name: String,
    quality: Quality,
    /// Whether its times are nanoseconds.
    nanoseconds: bool,
}

/// Returns what is asked for.
fn options(args: &FlameArgs) -> Result<ProfileOptions> {
    if args.wakeup && !args.off_cpu && !args.both {
        return Err(Usage::error(
            "--wakeup says who ended a wait, so it goes with --off-cpu or --both",
        ));
    }
    Ok(ProfileOptions {
        of: match (args.off_cpu, args.both, args.guest_exits) {
            (true, ..) => ProfileOf::OffCpu,
            (_, true, _) => ProfileOf::Both,
            (.., true) => ProfileOf::Exits,
            _ => ProfileOf::OnCpu,
        },
        wakers: args.wakeup,
        event: args.event.clone(),
        idle: args.idle,
        by: match args.by {
            FlameGrouping::Comm => ProfileBy::Comm,
            FlameGrouping::Thread => ProfileBy::Thread,
            FlameGrouping::Cpu => ProfileBy::Cpu,
            FlameGrouping::Vm => ProfileBy::Vm,
        },
    })
}

/// Reads a recording.
fn collect(args: &FlameArgs, session: &Session, input: &Input<'_>) -> Result<CollectedProfile> {
    let recording = input.recording_with_stacks()?;
    let name = recording.name().to_owned();
    let options = options(args)?;
    let waits = args.off_cpu || args.both;
    let paired = GuestPairing::default();
    let mut question = recording.question(&paired);
    question.all_threads();
    let profile = question.add(recording.collector(options));
    // How long vCPUs were in their guests, where events of KVM say so.
    let vcpus = args
        .both
        .then(|| question.add(Vcpus::new(recording.window())));
    let mut shown = Concerns::of(&[Concern::Stacks, Concern::Guests, Concern::Host]);
    if waits {
        question.add_continuity();
        shown = shown.with(Concern::Sched);
    }
    question.showing_only(shown);
    let mut answered = question.walk();
    let profile = &answered.take(profile);
    let guests = session.guest_kernels(&profile.guests())?;
    let mut doubts = Doubts::default();
    for pid in guests.without() {
        doubts.raise(DoubtKind::GuestKernelUnnamed { pid: *pid });
    }
    let of_guests = guests.functions();
    let namer = FunctionNamer {
        host: recording.functions(),
        guest: recording.guest_functions(),
        guests: &of_guests,
    };
    let keep = |tid: i32, pid: Option<i32>| !waits || recording.keeps(tid, pid);
    let walked = answered.walked();
    let vcpus = vcpus.map(|vcpus| answered.take(vcpus).report(&walked));
    let guest_ns = guest::guest_ns(vcpus.as_ref());
    let within: Vec<GuestRecording> = args.guest.iter().map(GuestRecording::from).collect();
    let mut inside = Vec::new();
    if !within.is_empty() {
        let session = session.inside()?;
        for guest in &within {
            inside.push(guest.stacks(&session, &recording, profile, &walked)?);
        }
    }
    guest::each_of_its_own(&inside)?;
    let sides: Vec<&GuestSide> = inside.iter().map(GuestStacks::side).collect();
    let beside = analysis::ProfileContext {
        namer,
        keep: &keep,
        guests: &sides,
        guest_ns: &guest_ns,
    };
    let mut user = recording.user_functions();
    let report = profile.report(&walked, beside, &mut user);
    require(args, &recording, &report)?;
    for guest in &inside {
        guest::check(guest, &report)?;
        doubts.extend(guest.doubts(&report));
    }
    if waits && args.common.filter.cpu.is_some() {
        doubts.raise(DoubtKind::OtherCpusHidden);
    }
    doubts.extend(session::flame_doubts(&report));
    doubts.extend(recording.naming_doubts());
    doubts.extend(args.binaries.doubts(&user));
    answered.quality.doubts.extend(doubts);
    Ok(CollectedProfile {
        report,
        name,
        quality: answered.quality,
        nanoseconds: recording.nanoseconds(),
    })
}

/// Rows of a table that are shown.
fn limit(args: &FlameArgs) -> usize {
    match args.limit {
        0 => usize::MAX,
        limit => limit,
    }
}

/// Returns the recording, and what is asked for with those of guests that stand behind it among the guests.
fn settled(args: &FlameArgs) -> Result<(PathBuf, FlameArgs)> {
    if args.recordings.is_empty() && args.diff.is_some() {
        return Err(Usage::error(
            "--diff compares two recordings, and one is named: name the one before it, too",
        ));
    }
    let alone = args.diff.is_some() || args.off_cpu || args.guest_exits || !args.guest.is_empty();
    if args.recordings.len() > 1 && alone {
        return Err(Usage::error(
            "a guest's recording as second word cannot be used with --guest, --diff, --off-cpu or --guest-exits",
        ));
    }
    let mut recordings = args.recordings.or_newest()?;
    let mut settled = args.clone();
    let guests = recordings.split_off(1).into_iter();
    let guests = guests.map(|path| NamedGuest { path, vm: None });
    settled.guest.splice(0..0, guests);
    let recording = recordings.drain(..).next().unwrap_or_default();
    Ok((recording, settled))
}

/// Runs the command.
pub(crate) fn run(args: &FlameArgs) -> Result<()> {
    let output = args.output.as_deref();
    let output = output.map(|file| Ok::<_, anyhow::Error>((file, Form::of(file, args.form)?)));
    let output = output.transpose()?;
    let beside = AccompanyingFiles {
        kallsyms: args.kallsyms.as_deref(),
        guest_kallsyms: args.guest_kallsyms.as_deref(),
        guest_modules: args.guest_modules.as_deref(),
        guestmount: args.guestmount.as_deref(),
        binaries: args.binaries.options(),
        kernels: Some(args.binaries.options()),
        ..AccompanyingFiles::default()
    };
    let (recording, args) = &settled(args)?;
    let inputs: Vec<&Path> = std::iter::once(recording)
        .chain(&args.diff)
        .map(PathBuf::as_path)
        .collect();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let input = session.input(recording)?;
    if folded::run(args, &session, &input, output)? {
        return Ok(());
    }
    let collected = collect(args, &session, &input)?;
    if let Some(after) = &args.diff {
        return diff::run(args, output, collected, after);
    }
    let CollectedProfile {
        report,
        name,
        quality,
        nanoseconds,
    } = collected;
    if let Some((file, form)) = output {
        let left_out = picture::write_one(file, form, &report, &name, &quality)?;
        output::say_doubts(&name, &quality)?;
        return output::print(&wrote(file, &left_out));
    }
    let answer = Answer {
        format: args.common.format,
        command: "flame",
        inputs: std::slice::from_ref(&name),
        quality: &quality,
        clock: ClockUnit::of(nanoseconds),
    };
    answer.print(
        || {
            let layout = answer.layout(limit(args));
            let mut text = flame::table(&report, layout);
            text.push('\n');
            text.push_str(&output::quality(&name, &quality));
            text
        },
        || flame::document(&report, &quality.all_doubts()),
        |clock| flame::csv(&report, clock),
    )
}

/// Refuses a recording that does not have what is asked for.
fn require(args: &FlameArgs, recording: &OpenRecording<'_>, report: &ProfileReport) -> Result<()> {
    if args.off_cpu || args.both {
        recording.require(
            report.switches > 0,
            &RequiredEvents {
                what: "waits",
                events: &["sched_switch"],
                stacks: true,
                ..RequiredEvents::default()
            },
        )?;
    }
    recording.require_choice(report.samples.samples > 0)?;
    if args.guest_exits {
        recording.require(
            report.event.is_some(),
            &RequiredEvents {
                what: "exits",
                events: &["kvm_exit"],
                ..RequiredEvents::default()
            },
        )?;
    } else if !args.off_cpu {
        // Of events it is tracepoints that can be recorded by name.
        let tracepoint = args.event.as_deref().filter(|name| name.contains(':'));
        let otherwise = "where there are switches --off-cpu shows waits, and where there are exits --guest-exits \
                         shows where guests were";
        recording.require(
            report.event.is_some(),
            &RequiredEvents {
                what: "stacks on CPUs",
                events: tracepoint.as_slice(),
                called: Some(args.event.as_deref().unwrap_or("sampled")),
                stacks: tracepoint.is_none(),
                otherwise,
            },
        )?;
    }
    Ok(())
}
