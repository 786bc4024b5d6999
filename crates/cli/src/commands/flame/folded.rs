//! Folded stacks in the place of a recording.

use std::path::Path;

use anyhow::{Result, bail};
use clap::ValueEnum;
use doubts::{DoubtKind, Doubts};
use event::Quality;
use export::PprofProfile;
use render::ClockUnit;
use render::firefox::FirefoxProfile;
use render::flame_picture::{FlamePicture, Graph};
use render::{flame_folded, quality};
use session::{Input, Session};
use stacks::{CountMeaning, FoldedText, LineCount, ReadOptions};

use super::write::{Content, Form, write};
use super::{FlameArgs, FlameGrouping, limit, wrote};
use crate::answer::Answer;
use crate::output;

/// Nodes of stacks that are kept, about 50 bytes each.
const MAX_NODES: usize = 1 << 20;

/// What the counts of folded stacks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CountUnit {
    /// How many samples there were.
    Samples,
    /// Nanoseconds.
    Ns,
    /// Microseconds, as offcputime and offwaketime of bcc print them.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl CountUnit {
    fn counts(self) -> CountMeaning {
        match self {
            CountUnit::Samples => CountMeaning::Samples,
            CountUnit::Ns => CountMeaning::Nanoseconds,
            CountUnit::Us => CountMeaning::Microseconds,
            CountUnit::Ms => CountMeaning::Milliseconds,
            CountUnit::S => CountMeaning::Seconds,
        }
    }
}

/// Answers for folded stacks. Returns whether the input is that; if not, nothing was done.
pub(super) fn run(
    args: &FlameArgs,
    session: &Session,
    input: &Input<'_>,
    output: Option<(&Path, Form)>,
) -> Result<bool> {
    let name = input.name().to_owned();
    let options = ReadOptions {
        counts: args.unit.map(CountUnit::counts),
        idle: args.idle,
        most: MAX_NODES,
    };
    let Some((folded, mut quality)) = input.folded(options)? else {
        if args.unit.is_some() {
            bail!("{name}: is not folded stacks, and --unit says what their counts are");
        }
        return Ok(false);
    };
    for (given, option, why) in [
        (
            args.event.is_some(),
            "--event",
            "they do not say what was sampled",
        ),
        (
            args.diff.is_some(),
            "--diff",
            "difffolded.pl compares two files of stacks",
        ),
        (
            !args.guest.is_empty() || args.off_cpu || args.both || args.guest_exits || args.wakeup,
            "--guest, --off-cpu, --both, --wakeup or --guest-exits",
            "they are sums of something already",
        ),
        (
            args.by != FlameGrouping::Comm,
            "--by",
            "what stands below them is in the text already",
        ),
        (
            args.kallsyms.is_some(),
            "--kallsyms",
            "they have names and no addresses",
        ),
        (
            args.guest_kallsyms.is_some(),
            "--guest-kallsyms",
            "they have names and no addresses",
        ),
    ] {
        if given {
            bail!("{name}: is folded stacks, and {option} is for recordings: {why}");
        }
    }
    let read = summary(&folded);
    quality.doubts.extend(session.host_facts().doubts());
    quality.doubts.extend(doubts(&folded));
    if let Some((file, form)) = output {
        let left_out = picture(&folded, file, form, &name, &quality)?;
        output::say_doubts(&name, &quality)?;
        output::print(&wrote(file, &left_out))?;
        return Ok(true);
    }
    let answer = Answer {
        format: args.common.format,
        command: "flame",
        inputs: std::slice::from_ref(&name),
        quality: &quality,
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || {
            let mut text = flame_folded::table(&folded, output::layout(limit(args), true));
            text.push('\n');
            // What was lost before the text was written, it does not say.
            let read = format!("{name}: {read}");
            quality::wrap(&mut text, "quality: ", &read, output::width());
            text.push_str(&quality::doubts(&quality, output::width()));
            text
        },
        || flame_folded::document(&folded),
        |_| flame_folded::csv(&folded),
    )?;
    Ok(true)
}

/// Writes stacks to a file, and returns what it leaves out.
fn picture(
    folded: &FoldedText,
    file: &Path,
    form: Form,
    name: &str,
    quality: &Quality,
) -> Result<Vec<String>> {
    let content = Content {
        folded: &|most, line| stacks::folded(&folded.stacks, most, line),
        speedscope: &|| Ok(flame_folded::speedscope(folded, name)?),
        pprof: &|| {
            let profile = PprofProfile {
                stacks: &folded.stacks,
                event: flame_folded::EVENT,
                nanoseconds: folded.unit == stacks::WeightUnit::Nanoseconds,
                comments: &quality.all_doubts().texts(),
            };
            Ok(profile.encode())
        },
        firefox: &|| {
            let profile = FirefoxProfile {
                stacks: &folded.stacks,
                event: flame_folded::EVENT,
                nanoseconds: folded.unit == stacks::WeightUnit::Nanoseconds,
                name,
                comments: &quality.all_doubts().texts(),
            };
            Ok(profile.encode()?)
        },
        picture: FlamePicture {
            title: name,
            notes: &quality.all_doubts().texts(),
            graph: Graph::Stacks(&folded.stacks),
            nanoseconds: folded.unit == stacks::WeightUnit::Nanoseconds,
        },
    };
    write(file, form, &content)
}

/// How much of the text are stacks.
fn summary(folded: &FoldedText) -> String {
    let lines = words::plural(folded.lines, "line");
    match folded.odd.count + folded.messages.count {
        0 => format!("{lines}, all of them stacks"),
        others => format!("{lines} of stacks and {others} of something else"),
    }
}

/// Returns what is left out or not certain.
fn doubts(folded: &FoldedText) -> Doubts {
    let mut doubts = Doubts::default();
    if folded.messages.count > 0 {
        doubts.raise(DoubtKind::ToolMessages {
            messages: folded.messages.count,
            first: first_lines(&folded.messages),
        });
    }
    if folded.odd.count > 0 {
        doubts.raise(DoubtKind::LinesWithoutStack {
            lines: folded.odd.count,
            first: first_lines(&folded.odd),
        });
    }
    if folded.rounded > 0 {
        doubts.raise(DoubtKind::CountsRounded {
            lines: folded.rounded,
        });
    }
    if folded.cut > 0 {
        doubts.raise(DoubtKind::NamesCut { lines: folded.cut });
    }
    if folded.shortened.samples > 0 {
        doubts.raise(DoubtKind::FramesLeftOut {
            part: folded.shortened.amount,
            all: folded.all.amount,
        });
    }
    doubts
}

/// The first lines of a kind.
fn first_lines(lines: &LineCount) -> String {
    let first = lines.first.iter();
    let first: Vec<String> = first
        .map(|line| format!("line {}, '{}'", line.number, line.text))
        .collect();
    let more = match lines.count > first.len() as u64 {
        true => "; and more",
        false => "",
    };
    format!("{}{more}", first.join("; "))
}
