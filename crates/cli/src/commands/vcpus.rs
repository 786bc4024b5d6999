//! `trapline vcpus`: where each vCPU's time went.

use analysis::{Continuity, Study, Vcpus};
use anyhow::Result;
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
        mtree: args.mtree.as_deref(),
        ..Beside::default()
    };
    let session = opening::session(&args.common, &beside, &[&args.recording])?;
    let input = session.input(&args.recording)?;
    let recording = input.recording()?;
    let name = recording.name().to_owned();
    let mut study = Study::default().with(Vcpus::new(recording.window()));
    study = study.choose(recording.window(), recording.left_out());
    if args.common.filter.cpu.is_none() {
        study = study.with(Continuity::new());
    }
    recording.prepare(&mut study);
    let mut outcome = recording.walk(&mut study);
    study.finish();
    let Some(vcpus) = study.get::<Vcpus>() else {
        return Ok(());
    };
    let mut report = vcpus.report(&study.walked());
    recording.require_exits(!report.rows.is_empty())?;
    session.host_facts().warn(&mut outcome.quality);
    let continuity = study.get::<Continuity>().map(Continuity::report);
    if let Some(warning) = continuity.and_then(|report| report.warning()) {
        outcome.quality.warn(warning);
    }
    if let Some(guesses) = model::guesses(&study.walked().machine.vms()) {
        outcome.quality.warn(guesses);
    }
    for item in report.unknowable() {
        outcome.quality.warn(item.to_string());
    }
    let devices = session.devices();
    devices.name_causes(&mut report, &mut outcome.quality);
    let answer = Answer {
        format: args.common.format,
        command: "vcpus",
        inputs: std::slice::from_ref(&name),
        quality: &outcome.quality,
    };
    answer.print(
        || {
            let layout = output::layout(
                if args.wide { usize::MAX } else { LISTED },
                recording.nanoseconds(),
            );
            let mut text = vcpus::table(&report, args.wide, layout);
            text.push('\n');
            text.push_str(&output::quality(&name, &outcome.quality));
            text
        },
        || vcpus::document(&report),
        || vcpus::csv(&report),
    )
}
