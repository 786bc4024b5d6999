//! What each analysis costs a recording.

use anyhow::{Result, bail};
use event::Quality;
use render::{ClockUnit, walk_costs};
use rustix::time::{ClockId, clock_gettime};
use session::{PictureOptions, PrintedTables, Session};

use super::args::ReportArgs;
use crate::answer::Answer;
use crate::output;
use crate::usage::Usage;

/// Pairs of walks for each analysis, where the user does not say.
const PAIRS: u8 = 3;

/// Prints it, and nothing else.
pub(super) fn print(args: &ReportArgs, session: &Session, options: &PictureOptions) -> Result<()> {
    if args.guests.paths().next().is_some() {
        return Err(Usage::error(
            "--cost and --guest exclude each other: what analyses cost is measured of one recording",
        ));
    }
    let pairs = usize::from(args.pairs.unwrap_or(PAIRS));
    let (mut all, mut inputs) = (Vec::new(), Vec::new());
    for path in args.recordings.iter() {
        let input = session.input(path)?;
        if input.printed(&mut PrintedTables::default(), options)? {
            bail!(
                "{} holds printed tables, and no events: --cost measures walks over recordings",
                input.name()
            );
        }
        let costs = input.walk_costs(options, pairs, &thread_ns)?;
        inputs.push(input.name().to_owned());
        all.push((input.name().to_owned(), costs));
    }
    let answer = Answer {
        format: args.common.format,
        command: "report",
        inputs: &inputs,
        // What the recordings do not have says nothing of what they cost.
        quality: &Quality::default(),
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || {
            let layout = output::layout(usize::MAX, true);
            let tables = all.iter();
            let tables = tables.map(|(name, costs)| walk_costs::table(name, costs, layout));
            tables.collect::<Vec<String>>().join("\n")
        },
        || walk_costs::document(&all),
        |_| {
            all.iter()
                .map(|(_, costs)| walk_costs::csv(costs))
                .collect()
        },
    )
}

/// Returns how long this thread has worked, in nanoseconds.
fn thread_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let ns = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}
