//! `trapline vcpus`: where each vCPU's time went.

use analysis::{Continuity, GuestTasks, Study, Vcpus};
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
    let guests = &paired.guests;
    let names = host.names();
    let mut study = Study::default().with(Vcpus::new(recording.window()));
    study = study.choose(recording.window(), recording.left_out());
    if args.common.filter.cpu.is_none() {
        study = study.with(Continuity::new());
    }
    if !guests.is_empty() {
        study = study.with(GuestTasks::new(recording.window()));
    }
    recording.prepare_with(&mut study, guests);
    let outcomes = recording.walk_with(guests, &mut study);
    let mut quality = paired.quality(outcomes);
    study.finish();
    let Some(vcpus) = study.get::<Vcpus>() else {
        return Ok(());
    };
    let mut report = vcpus.report(&study.walked());
    if let Some(tasks) = study.get::<GuestTasks>() {
        report.with_guests(tasks, &study.walked());
    }
    session::warn_of_silence(guests, &study, &mut quality);
    recording.require_exits(!report.rows.is_empty())?;
    session.host_facts().warn(&mut quality);
    let continuity = study.get::<Continuity>().map(Continuity::report);
    if let Some(warning) = continuity.and_then(|report| report.warning()) {
        quality.warn(warning);
    }
    if let Some(guesses) = model::guesses(&study.walked().machine.vms()) {
        quality.warn(guesses);
    }
    for item in report.unknowable() {
        quality.warn(item.to_string());
    }
    let devices = session.devices();
    devices.name_causes(&mut report, &mut quality);
    let answer = Answer {
        format: args.common.format,
        command: "vcpus",
        inputs: &names,
        quality: &quality,
        clock: ClockUnit::of(recording.nanoseconds()),
    };
    answer.print(
        || {
            let layout = answer.layout(if args.wide { usize::MAX } else { LISTED });
            let mut text = vcpus::table(&report, args.wide, layout);
            text.push('\n');
            text.push_str(&output::quality(&names.join(", "), &quality));
            text
        },
        || vcpus::document(&report),
        |clock| vcpus::csv(&report, clock),
    )
}
