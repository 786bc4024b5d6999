//! `trapline flame`: where CPUs were when perf sampled them.

mod binaries;
mod warnings;
mod write;

use std::path::PathBuf;

use analysis::{Profile, ProfileBy, ProfileOptions, Study};
use anyhow::Result;
use clap::{Args, ValueEnum};
use render::flame;
use session::Scope;

use crate::answer::Answer;
use crate::args::Common;
use crate::opening::{self, Beside};
use crate::output;
use binaries::BinaryArgs;
use warnings::warnings;
use write::Form;

/// Rows of each table on a terminal.
const LIMIT: usize = 20;

/// `trapline flame`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct FlameArgs {
    /// Recording, or - for standard input.
    #[arg(value_name = "REC")]
    recording: PathBuf,

    /// Write the stacks to FILE. If its name ends in .folded: a line for each stack, for flamegraph.pl, inferno and others; in
    /// .json: speedscope's file format.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Show the samples of this event. The default is the first one sampled that is no tracepoint.
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,

    /// What stands below the stacks that -o writes.
    #[arg(long, value_enum, default_value_t = By::Comm)]
    by: By,

    /// Show idle CPUs too.
    #[arg(long)]
    idle: bool,

    /// Show only the first N rows of each table; all with 0.
    #[arg(long, value_name = "N", default_value_t = LIMIT)]
    limit: usize,

    /// Name kernel functions with FILE, a copy of the host's /proc/kallsyms made by root.
    #[arg(long, value_name = "FILE")]
    kallsyms: Option<PathBuf>,

    /// Name functions of guests' kernels with FILE, a copy of a guest's /proc/kallsyms made by root.
    #[arg(long, value_name = "FILE")]
    guest_kallsyms: Option<PathBuf>,

    #[command(flatten)]
    binaries: BinaryArgs,

    #[command(flatten)]
    common: Common,
}

/// What stands below stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// The names of threads.
    Comm,
    /// Threads.
    Thread,
    /// CPUs.
    Cpu,
    /// VMs.
    Vm,
}

const HELP: &str = "Columns:
  share%   of the time that is shown, by the period of each sample
  guest%   of it in a guest, which has an address and no stack in a host's recording
  kernel%  in the host's kernel, for this thread
  user%    in the host's user space; of a thread of a VM that is its VMM
  self%    in the function itself
  total%   in it and in what it called

A function that nothing names is its file and where it is in that file. Functions of user
space are named by files that have the recording's build id. Filters choose samples. This needs samples of a CPU: 'perf record -a -g', or
'perf kvm --host --guest record -a -g' to see guests too.

Examples:
  trapline flame perf.data
  trapline flame --kallsyms kallsyms.txt perf.data -o out.folded
  trapline flame --by vm perf.data -o speedscope.json
  trapline flame --symfs rootfs --debug-dir rootfs/usr/lib/debug perf.data
  trapline flame --event sched:sched_switch --limit 0 perf.data
  trapline flame --pid 4863 --format json perf.data";

/// Runs the command.
pub(crate) fn run(args: &FlameArgs) -> Result<()> {
    let output = args.output.as_deref();
    let output = output.map(|file| Ok::<_, anyhow::Error>((file, Form::of(file)?)));
    let output = output.transpose()?;
    let beside = Beside {
        kallsyms: args.kallsyms.as_deref(),
        guest_kallsyms: args.guest_kallsyms.as_deref(),
        binaries: args.binaries.options(),
        ..Beside::default()
    };
    let session = opening::session(&args.common, &beside, &[&args.recording])?;
    let input = session.input(&args.recording)?;
    let recording = input.recording_with_symbols()?;
    let name = recording.name().to_owned();
    let options = ProfileOptions {
        event: args.event.clone(),
        idle: args.idle,
        by: match args.by {
            By::Comm => ProfileBy::Comm,
            By::Thread => ProfileBy::Thread,
            By::Cpu => ProfileBy::Cpu,
            By::Vm => ProfileBy::Vm,
        },
    };
    let profile = Profile::new(options, &recording.kernel_files());
    let mut study = Study::default().with(profile);
    recording.prepare(&mut study);
    let mut outcome = recording.walk_filtered(&mut study, Scope::Events);
    study.finish();
    let Some(profile) = study.get::<Profile>() else {
        return Ok(());
    };
    let functions = (recording.functions(), recording.guest_functions());
    let mut user = recording.user_functions();
    let report = profile.report(&study.walked(), functions.0, functions.1, &mut user);
    let wanted = args.event.as_deref().unwrap_or("sampled");
    recording.require(
        report.event.is_some(),
        "samples",
        wanted,
        "record with 'perf record -a -g', or 'perf kvm --host --guest record -a -g' to see guests too",
    )?;
    session.host_facts().warn(&mut outcome.quality);
    for warning in warnings(&report)
        .into_iter()
        .chain(args.binaries.warnings(&user))
    {
        outcome.quality.warn(warning);
    }
    if let Some((file, form)) = output {
        write::write(file, form, &report, &name)?;
        output::say_losses(&name, &outcome.quality)?;
        return output::print(&format!("wrote {}\n", file.display()));
    }
    let answer = Answer {
        format: args.common.format,
        command: "flame",
        inputs: std::slice::from_ref(&name),
        quality: &outcome.quality,
    };
    answer.print(
        || {
            let limit = if args.limit == 0 {
                usize::MAX
            } else {
                args.limit
            };
            let layout = output::layout(limit, recording.nanoseconds());
            let mut text = flame::table(&report, layout);
            text.push('\n');
            text.push_str(&output::quality(&name, &outcome.quality));
            text
        },
        || flame::document(&report),
        || flame::csv(&report),
    )
}
