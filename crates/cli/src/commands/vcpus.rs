//! `trapline vcpus`: where each vCPU's time went.

use analysis::{Continuity, Study, Vcpus};
use anyhow::Result;
use render::{Layout, json, quality, vcpus};

use crate::args::{Format, VcpusArgs};
use crate::commands::VERSION;
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
    match args.common.format {
        Format::Table => {
            let layout = Layout {
                width: output::width(),
                limit: if args.wide { usize::MAX } else { LISTED },
                nanoseconds: recording.nanoseconds(),
            };
            let mut text = vcpus::table(&report, args.wide, layout);
            text.push('\n');
            text.push_str(&quality::lines(&name, &outcome.quality, output::width()));
            output::print(&text)
        }
        Format::Json => {
            let mut document = json::envelope(VERSION, "vcpus", &[name], &outcome.quality);
            vcpus::json(&mut document, &report);
            output::print(&json::text(document))
        }
        Format::Csv => output::print(&vcpus::csv(&report)),
    }
}
