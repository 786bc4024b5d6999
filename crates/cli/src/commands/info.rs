//! `trapline info`: what is in a recording.

use analysis::{InsideReport, RecordingContents};
use anyhow::Result;
use clap::Args;
use render::info::{GuestRow, Head};
use render::{ClockUnit, info};
use session::{GuestAbout, GuestClock, PairingEvidence};
use source::{RecordingHeader, TimeStampUnit};

use crate::answer::Answer;
use crate::opening::{self, AccompanyingFiles};
use crate::options::{Common, GuestArgs};
use crate::output;

/// `trapline info`.
#[derive(Debug, Args)]
#[command(after_help = INFO_HELP)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub guests: GuestArgs,

    #[command(flatten)]
    pub common: Common,
}

const INFO_HELP: &str = "\
Examples:
  trapline info perf.data
  trapline info --vm web --time 12.5,13 trace.dat
  trapline info --facts ps.txt trace.dat       names of VMs that it does not have
  trapline info host.dat guest.dat             whose guest, and how its clock reads
  zstdcat trace.dat.zst | trapline info --format json -";

/// Runs the command.
pub(crate) fn run(args: &InfoArgs) -> Result<()> {
    let beside = AccompanyingFiles {
        with_guests: true,
        empty: true,
        ..AccompanyingFiles::default()
    };
    let named = args.guests.host()?;
    let inputs = named.inputs();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let host = session.host(&named.recording, &named.guests)?;
    let recording = host.input().recording()?;
    let paired = host.paired(&recording)?;
    let guests = &paired.guests;
    let mut question = recording.question(&paired);
    question.all_threads();
    let info = question.add(RecordingContents::new());
    let mut answers = question.walk();
    let report = answers.take(info).report(&answers.walked());
    recording.require_events(report.events.iter().any(|kind| kind.count > 0))?;
    // How well a guest fits is seen in all that its host saw of it, whatever is asked for.
    let apart = (!guests.is_empty() && answers.inside().is_none()).then(|| {
        let mut question = recording.question(&paired);
        question.guests_alone();
        question.walk()
    });
    let inside = apart.as_ref().unwrap_or(&answers).inside().cloned();
    let rows = guests.iter().zip(1..).map(|(guest, machine)| {
        let inside = inside.as_ref().map(|inside| inside.report(machine));
        row(guest.about(), &inside.unwrap_or_default())
    });
    let rows: Vec<GuestRow> = rows.collect();
    if let Some(apart) = apart {
        answers.quality.doubts.extend(apart.quality.doubts);
    }
    let quality = &answers.quality;
    let names = host.names();
    let head = head(recording.header());
    let answer = Answer {
        format: args.common.format,
        command: "info",
        inputs: &names,
        quality,
        clock: ClockUnit::of(recording.nanoseconds()),
    };
    answer.print(
        || {
            let mut text = format!("{}\n", names[0]);
            text.push_str(&info::summary(&head, &report, output::width()));
            text.push_str(&info::guests(&rows, output::width()));
            text.push('\n');
            text.push_str(&info::counts(&report, usize::MAX));
            text.push('\n');
            text.push_str(&output::quality(&names.join(", "), quality));
            text
        },
        || info::document(&head, &report, &rows),
        |_| info::csv(&report),
    )
}

/// Returns what is said of a guest.
pub(crate) fn row(guest: &GuestAbout, inside: &InsideReport) -> GuestRow {
    let fit = &guest.fit;
    let vcpu = |&(id, tid): &(u32, i32)| info::InfoVcpu { id, tid };
    GuestRow {
        input: guest.name.clone(),
        vm_pid: guest.vm.pid,
        vm_name: guest.vm.name.clone(),
        vcpus: guest.vcpus.iter().map(vcpu).collect(),
        whose: match guest.whose {
            PairingEvidence::Listed => "listed",
            PairingEvidence::Named => "named",
            PairingEvidence::Chosen => "chosen",
            PairingEvidence::Shown => "shown",
        },
        clock: match guest.clock {
            GuestClock::Fitted => "fitted",
            GuestClock::Recorded => "recorded",
            GuestClock::Undecided => "undecided",
        },
        offset_ns: fit.offset_ns,
        drift_ppb: fit.drift_ppb,
        bound_ns: fit.bound_ns,
        inside: inside.inside,
        outside: inside.outside,
        uncovered: inside.uncovered,
        residual_ns: inside.residual_ns(),
        chance_share: fit.chance_share(),
    }
}

/// Returns what the header says, as it is printed.
pub(crate) fn head(header: &RecordingHeader) -> Head {
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
        nanoseconds: header.time_unit == TimeStampUnit::Nanoseconds,
        host: header.hostname.clone(),
        wall_clock: header
            .wall_clock
            .map(|wall| (wall.offset_ns, wall.source.name())),
        more,
    }
}
