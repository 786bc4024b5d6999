//! `trapline facts`: the facts of a host.

use std::fs;

use anyhow::{Result, bail};
use doubts::DoubtKind;
use event::Quality;
use render::ClockUnit;
use render::{facts as render_facts, quality};

use crate::answer::Answer;
use crate::args::FactsArgs;
use crate::output;

/// Rows of each list of the table.
const ROWS: usize = 16;

/// Runs the command.
pub(crate) fn run(args: &FactsArgs) -> Result<()> {
    let mut quality = Quality::default();
    let (told, inputs) = if args.files.is_empty() {
        let root = args.root.display().to_string();
        match fs::metadata(&args.root) {
            Ok(data) if data.is_dir() => {}
            Ok(_) => {
                bail!("{root}: is no directory; expected one with a host's proc and sys in it")
            }
            Err(error) => bail!("{root}: {}", session::why(&error)),
        }
        (host::collect(&args.root), vec![root])
    } else {
        let (told, notes) = session::read_facts(&args.files)?;
        for note in notes {
            quality.raise(DoubtKind::FactsNotUnderstood { note });
        }
        (
            told,
            args.files
                .iter()
                .map(|file| file.display().to_string())
                .collect(),
        )
    };
    let answer = Answer {
        format: args.format,
        command: "facts",
        inputs: &inputs,
        quality: &quality,
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || {
            let layout = output::layout(if args.wide { usize::MAX } else { ROWS }, true);
            let mut text = render_facts::table(&told, layout);
            text.push_str(&quality::doubts(&quality, output::width()));
            text
        },
        || facts::write(&told),
        |_| render_facts::csv(&told),
    )
}
