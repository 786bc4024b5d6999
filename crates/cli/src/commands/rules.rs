//! `trapline rules`: the causes that are looked for.

use anyhow::Result;
use event::Quality;
use render::ClockUnit;
use render::rules as render_rules;

use crate::answer::Answer;
use crate::args::RulesArgs;
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &RulesArgs) -> Result<()> {
    let mut chosen = Vec::new();
    chosen.extend(args.rule.iter().filter_map(|id| rules::rule(id)));
    let explain = !chosen.is_empty() || args.explain;
    if chosen.is_empty() {
        chosen = rules::all().to_vec();
    }
    let answer = Answer {
        format: args.format,
        command: "rules",
        inputs: &[],
        quality: &Quality::default(),
        clock: ClockUnit::Nanoseconds,
    };
    answer.print(
        || match explain {
            true => render_rules::explained(&chosen, output::width()),
            false => render_rules::list(&chosen, output::width()),
        },
        || render_rules::document(&chosen),
        |_| render_rules::csv(&chosen),
    )
}
