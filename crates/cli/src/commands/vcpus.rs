//! `trapline vcpus`: where each vCPU's time went.

use analysis::{GuestTasks, Vcpus};
use anyhow::Result;
use render::ClockUnit;
use render::vcpus;

use crate::answer::Answer;
use crate::args::VcpusArgs;
use crate::opening::{self, Beside};
use crate::output;

/// Items of each list below the table.
const LISTED: usize = 5;

/// Runs the command.
pub(crate) fn run(args: &VcpusArgs) -> Result<()> {
    let beside = Beside {
        with_guests: true,
        mtree: args.mtree.as_deref(),
        ..Beside::default()
    };
    let inputs = args.guests.inputs(&args.recording);
    let session = opening::session(&args.common, &beside, &inputs)?;
    let host = session.host(&args.recording, &args.guests.told())?;
    let recording = host.input().recording()?;
    let paired = host.paired(&recording)?;
    let mut question = recording.question(&paired);
    let vcpus = question.add(Vcpus::new(recording.window()));
    let tasks = question.share_guest_tasks(GuestTasks::new(recording.window()));
    let answers = question.walk();
    let walked = answers.walked();
    let mut report = answers.take(vcpus).report(&walked);
    if let Some(tasks) = tasks {
        report.with_guests(&tasks.get(), &walked);
    }
    recording.require_exits(!report.rows.is_empty())?;
    session.devices().name_causes(&mut report);
    let (names, quality) = (host.names(), &answers.quality);
    let answer = Answer {
        format: args.common.format,
        command: "vcpus",
        inputs: &names,
        quality,
        clock: ClockUnit::of(recording.nanoseconds()),
    };
    answer.print(
        || {
            let layout = answer.layout(if args.wide { usize::MAX } else { LISTED });
            let mut text = vcpus::table(&report, args.wide, layout);
            text.push('\n');
            text.push_str(&output::quality(&names.join(", "), quality));
            text
        },
        || vcpus::document(&report),
        |clock| vcpus::csv(&report, clock),
    )
}
