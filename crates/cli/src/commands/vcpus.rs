//! `trapline vcpus`: where each vCPU's time went.

use analysis::{Continuity, Study, Vcpus};
use anyhow::Result;
use render::{Layout, json, quality, vcpus};

use crate::args::{Format, VcpusArgs};
use crate::commands::VERSION;
use crate::{input, output, wrong_input};

/// Items of each list below the table.
const LISTED: usize = 5;

/// Runs the command.
pub(crate) fn run(args: &VcpusArgs) -> Result<()> {
    let lender = input::Lender::open(&args.common)?;
    let facts = input::Facts::open(&args.common)?;
    let devices = input::Devices::open(args.mtree.as_deref(), &facts)?;
    let recording = input::open(&args.recording, &args.common)?;
    let reader = wrong_input::reader(&recording, lender.options(false))?;
    let name = input::name(&args.recording);
    let filter = &args.common.filter;
    let filters = input::Filter::new(filter, &facts, &reader, &name)?;
    let mut study = Study::default().with(Vcpus::new(filters.window()));
    study = study.choose(filters.window(), filters.left_out(&reader));
    if filter.cpu.is_none() {
        study = study.with(Continuity::new());
    }
    study.saved_names(input::saved_names(&reader));
    study.told(&facts.told_of(&reader));
    if !input::nanoseconds(reader.header()) {
        study.counts_ticks();
    }
    let mut outcome = reader.walk(&mut study);
    study.finish();
    let Some(vcpus) = study.get::<Vcpus>() else {
        return Ok(());
    };
    let mut report = vcpus.report(&study.walked());
    input::require_exits(&name, !report.rows.is_empty(), filter, &reader)?;
    facts.warn(&mut outcome.quality);
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
    devices.name_causes(&mut report, &mut outcome.quality);
    match args.common.format {
        Format::Table => {
            let layout = Layout {
                width: output::width(),
                limit: if args.wide { usize::MAX } else { LISTED },
                nanoseconds: input::nanoseconds(reader.header()),
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
