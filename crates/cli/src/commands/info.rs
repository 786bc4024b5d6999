//! `trapline info`: what is in a recording.

use analysis::{Info, Study};
use anyhow::Result;
use render::info;
use render::info::Head;
use session::Scope;
use source::{Header, TimeUnit};

use crate::answer::Answer;
use crate::args::InfoArgs;
use crate::opening::{self, Beside};
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &InfoArgs) -> Result<()> {
    let beside = Beside {
        empty: true,
        ..Beside::default()
    };
    let session = opening::session(&args.common, &beside, &[&args.recording])?;
    let input = session.input(&args.recording)?;
    let recording = input.recording()?;
    let mut study = Study::default().with(Info::new());
    study.saved_names(recording.saved_names());
    study.told(recording.thread_facts());
    let mut outcome = recording.walk_filtered(&mut study, Scope::Events);
    let walked = study.walked();
    let report = study.get::<Info>().map(|info| info.report(&walked));
    let report = report.unwrap_or_default();
    session.host_facts().warn(&mut outcome.quality);
    if let Some(guesses) = model::guesses(&report.vms) {
        outcome.quality.warn(guesses);
    }
    let name = recording.name().to_owned();
    let head = head(recording.header());
    let answer = Answer {
        format: args.common.format,
        command: "info",
        inputs: std::slice::from_ref(&name),
        quality: &outcome.quality,
    };
    answer.print(
        || {
            let mut text = format!("{name}\n");
            text.push_str(&info::summary(&head, &report, output::width()));
            text.push('\n');
            text.push_str(&info::counts(&report, usize::MAX));
            text.push('\n');
            text.push_str(&output::quality(&name, &outcome.quality));
            text
        },
        || info::document(&head, &report),
        || info::csv(&report),
    )
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
        nanoseconds: header.time_unit == TimeUnit::Nanoseconds,
        more,
    }
}
