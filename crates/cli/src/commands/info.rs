//! `trapline info`: what is in a recording.

use analysis::{Info, InfoReport, Study};
use anyhow::Result;
use render::info::Head;
use render::{info, json, quality};
use source::{Header, Reader};

use crate::args::{Format, InfoArgs};
use crate::commands::VERSION;
use crate::filter::Scope;
use crate::{input, output, wrong_input};

/// Runs the command.
pub(crate) fn run(args: &InfoArgs) -> Result<()> {
    let lender = input::Lender::open(&args.common)?;
    let facts = input::Facts::open(&args.common)?;
    let recording = input::open(&args.recording, &args.common)?;
    let reader = wrong_input::reader(&recording, lender.options(false))?;
    let (report, mut outcome) = count(&reader, args, &facts)?;
    facts.warn(&mut outcome.quality);
    if let Some(guesses) = model::guesses(&report.vms) {
        outcome.quality.warn(guesses);
    }
    let name = input::name(&args.recording);
    let head = head(reader.header());
    match args.common.format {
        Format::Table => {
            let mut text = format!("{name}\n");
            text.push_str(&info::summary(&head, &report, output::width()));
            text.push('\n');
            text.push_str(&info::counts(&report, usize::MAX));
            text.push('\n');
            text.push_str(&quality::lines(&name, &outcome.quality, output::width()));
            output::print(&text)
        }
        Format::Json => {
            let mut document = json::envelope(VERSION, "info", &[name], &outcome.quality);
            info::json(&mut document, &head, &report);
            output::print(&json::text(document))
        }
        Format::Csv => output::print(&info::csv(&report)),
    }
}

fn count(
    reader: &Reader<'_>,
    args: &InfoArgs,
    facts: &input::Facts,
) -> Result<(InfoReport, source::Outcome)> {
    let mut study = Study::default().with(Info::new());
    study.saved_names(input::saved_names(reader));
    study.told(&facts.told_of(reader));
    let name = input::name(&args.recording);
    let filter = input::Filter::new(&args.common.filter, facts, reader, &name)?;
    let outcome = filter.walk(reader, &mut study, Scope::Events);
    let machine = study.walked().machine;
    let report = study.get::<Info>().map(|info| info.report(machine));
    Ok((report.unwrap_or_default(), outcome))
}

/// Returns what the header tells, as it is printed.
pub(crate) fn head(header: &Header) -> Head {
    let mut more = Vec::new();
    let mut add = |name: &str, text: Option<&String>| {
        if let Some(text) = text {
            more.push((name.to_owned(), text.clone()));
        }
    };
    add("host", header.hostname.as_ref());
    add("cpu", header.cpu_desc.as_ref());
    add("recorder", header.recorder.as_ref());
    add("command", header.command.as_ref());
    if !header.buffers.is_empty() {
        let names: Vec<&str> = header
            .buffers
            .iter()
            .map(|b| if b.is_empty() { "(top)" } else { b.as_str() })
            .collect();
        add("buffers", Some(&names.join(", ")));
    }
    more.extend(header.more.iter().cloned());
    Head {
        format: header.format.clone(),
        arch: header.arch.clone(),
        kernel: header.kernel.clone(),
        cpus: header.cpus,
        clock: header.clock.clone(),
        nanoseconds: input::nanoseconds(header),
        more,
    }
}
