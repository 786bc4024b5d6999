//! `trapline vcpus`: where each vCPU's time went.

use analysis::{Study, Vcpus};
use anyhow::Result;
use render::{json, quality, vcpus};

use crate::args::{Format, VcpusArgs};
use crate::commands::VERSION;
use crate::filter::Scope;
use crate::{input, output};

/// Items of each list below the table.
const LISTED: usize = 5;

/// Runs the command.
pub fn run(args: &VcpusArgs) -> Result<()> {
    let lender = input::Lender::open(&args.common)?;
    let facts = input::Facts::open(&args.common)?;
    let devices = input::Devices::open(args.mtree.as_deref(), &facts)?;
    let recording = input::open(&args.recording, &args.common)?;
    let reader = recording.reader(lender.options(false))?;
    let name = input::name(&args.recording);
    let filter = &args.common.filter;
    let filters = input::Filter::new(filter, &facts, &reader, &name)?;
    let mut study = Study::default().vcpus(Vcpus::new(filters.window(&reader)));
    study.saved_names(input::saved_names(&reader));
    study.told(facts.told());
    if !input::nanoseconds(reader.header()) {
        study.counts_ticks();
    }
    let mut outcome = filters.walk(&reader, &mut study, Scope::Window);
    study.finish();
    let Some(mut report) = study.vcpus_report() else {
        return Ok(());
    };
    input::require_exits(
        &name,
        !report.rows.is_empty(),
        filter,
        reader.lacks_formats(),
    )?;
    facts.warn(&mut outcome.quality);
    for item in report.unknowable() {
        outcome.quality.warn(item.to_string());
    }
    devices.name_causes(&mut report, &mut outcome.quality);
    match args.common.format {
        Format::Table => {
            let layout = vcpus::Layout {
                rows: usize::MAX,
                limit: if args.wide { usize::MAX } else { LISTED },
                durations: args.wide,
                nanoseconds: input::nanoseconds(reader.header()),
            };
            let mut text = vcpus::table(&report, layout);
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
