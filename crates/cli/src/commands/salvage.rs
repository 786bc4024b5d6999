//! `trapline salvage`: a cut or damaged recording becomes a whole one.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use event::Quality;
use render::{ClockUnit, salvage};
use source::RecordingBytes;

use crate::answer::Answer;
use crate::new_file;
use crate::options::Format;
use crate::output;

/// `trapline salvage`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct SalvageArgs {
    /// A perf.data or trace.dat that is cut off or damaged.
    #[arg(value_name = "FILE")]
    pub input: PathBuf,

    /// Write the whole recording to this file; without it to FILE.salvaged.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Take the formats of events from another perf.data of the same kernel: those of a perf.data that is cut off stood
    /// behind its records.
    #[arg(long, value_name = "FILE")]
    formats: Option<PathBuf>,

    #[command(flatten)]
    format: Format,
}

const HELP: &str = "Writes a recording that perf and trace-cmd open: all records that are whole, and where some are \
missing a record of lost events of the file's own kind, which every tool counts. A recording that is whole comes out \
byte for byte. Nothing is invented: what stood in the part that is gone stays gone, and is named.

Columns:
  CPU          - for records of no CPU, and for gaps of which nobody knows the CPU
  events kept  events of this CPU in the new file
  gaps         places at which its events are missing
  bytes lost   bytes of its data that are gone or unreadable; - where that is
               unknown

Formats of tracepoints: perf writes them behind its records, so a perf.data of a
recorder that was killed has none, and no tool reads it. The same kernel's are as
good: 'perf record -e kvm:* -o other.data true', then --formats other.data. A file
of 'trapline record' still has them, but the list of its events is gone with its
end, so it needs --formats too. A trace.dat has them in front, and needs none.

Examples:
  trapline salvage trace.dat
  trapline salvage perf.data -o whole.data --formats other.data
  trapline salvage --json trace.dat";

/// Runs the command.
pub(crate) fn run(args: &SalvageArgs) -> Result<()> {
    let read = [Some(args.input.as_path()), args.formats.as_deref()];
    let to = new_file::beside(&args.input, args.output.as_deref(), ".salvaged", &read)?;
    let recording = RecordingBytes::open(&args.input)?;
    let lent = args.formats.as_deref().map(RecordingBytes::open);
    let lent = lent.transpose()?;
    let salvage = recording.salvage(lent.as_ref())?;
    new_file::write(&to, |out| salvage.write(out))?;
    let account = salvage.account();
    let quality = Quality {
        lost_events: account.places,
        truncated: !account.whole,
        ..Quality::default()
    };
    let name = to.display().to_string();
    let inputs = [recording.name().to_owned()];
    let answer = Answer {
        format: args.format,
        command: "salvage",
        inputs: &inputs,
        quality: &quality,
        clock: ClockUnit::of(salvage.has_nanoseconds()),
    };
    answer.print(
        || {
            let layout = output::layout(usize::MAX, salvage.has_nanoseconds());
            salvage::text(account, &name, layout)
        },
        || salvage::document(account, &name),
        |clock| salvage::csv(account, clock),
    )
}
