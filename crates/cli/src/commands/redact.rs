//! `trapline redact`: a recording fit for a public ticket.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use doubts::DoubtKind;
use event::Quality;
use redact::{RedactionCounts, ReplacedNames};
use render::ClockUnit;
use source::RecordingBytes;

use crate::answer::Answer;
use crate::new_file;
use crate::options::Format;
use crate::output;

/// `trapline redact`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RedactArgs {
    /// A perf.data, a trace.dat, or the text of their events.
    #[arg(value_name = "FILE")]
    pub input: PathBuf,

    /// Write the recording to this file; without it to FILE.redacted.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    format: Format,
}

const HELP: &str = "Writes a recording of which every number is the same, and no name: names of threads and files are \
replaced, the same by the same, but for names that say what a thread is (CPU 3/KVM, vhost-4509, kworker/9:1). Texts in \
events are replaced, and bytes that a guest wrote to its devices are 0. The host's name, command lines, build ids, \
copied stacks and registers are left out, and of a trace.dat modules, texts of trace_printk and the symbols that no \
address of the recording falls into. Addresses of the kernel are moved by one distance that is random and kept nowhere.

Kept are times, CPUs, process and thread ids, the kernel's release, the processor's
name, and the names of events, of probes too.

A perf.data and a trace.dat can be redacted, whatever their form, and texts of perf
script, trace-cmd report and the kernel. Nobody knows of a text's words which are
private: numbers stay, names of events and fields, and the words that the kernel's
own events print; all others are replaced, whatever they are. The new file is
never packed. It is read when it is written: its events are compared
with those of the original, and the replaced names are looked for in it.

Examples:
  trapline redact perf.data
  trapline redact perf.data -o ticket.data
  trapline redact trace.dat -o ticket.dat
  trapline redact script.txt -o ticket.txt
  strings ticket.data | less       look at what is left before you send it";

/// Where random bytes come from.
const RANDOM: &str = "/dev/urandom";

/// Runs the command.
pub(crate) fn run(args: &RedactArgs) -> Result<()> {
    let read = [Some(args.input.as_path())];
    let to = new_file::beside(&args.input, args.output.as_deref(), ".redacted", &read)?;
    let recording = RecordingBytes::open(&args.input)?;
    let redactable = recording.redactable()?;
    let mut random = [0; 8];
    let filled = File::open(RANDOM).and_then(|mut file| file.read_exact(&mut random));
    filled.with_context(|| format!("{RANDOM}: cannot be read"))?;
    let (mut counts, mut replaced) = (RedactionCounts::default(), ReplacedNames::default());
    new_file::write(&to, |out| {
        (counts, replaced) = redactable.write(u64::from_ne_bytes(random), out)?;
        Ok(())
    })?;
    let check = redactable.check(&RecordingBytes::open(&to)?, &replaced)?;
    let name = to.display().to_string();
    let inputs = [recording.name().to_owned()];
    let mut quality = Quality::default();
    if !check.is_same {
        quality.raise(DoubtKind::RedactionDiffers {
            events: check.events,
            before: check.events_before,
        });
    }
    if let Some(first) = check.remaining.first() {
        quality.raise(DoubtKind::NamesRemain {
            names: check.remaining.len() as u64,
            first: format!("{:?}", first.name),
            times: first.times,
        });
    }
    let answer = Answer {
        format: args.format,
        command: "redact",
        inputs: &inputs,
        quality: &quality,
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || {
            let layout = output::layout(usize::MAX, true);
            let mut text = render::redact::text(&counts, &check, &name, layout);
            if !quality.doubts.is_empty() {
                text.push_str(&output::quality(recording.name(), &quality));
            }
            text
        },
        || render::redact::document(&counts, &check, &name),
        |_| render::redact::csv(&counts),
    )
}
