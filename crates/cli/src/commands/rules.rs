//! `trapline rules`: the causes that are looked for.

use anyhow::Result;
use clap::Args;
use event::Quality;
use render::ClockUnit;
use render::rules as render_rules;

use crate::answer::Answer;
use crate::options::Format;
use crate::options::values::NameParser;
use crate::output;

/// `trapline rules`.
#[derive(Debug, Args)]
#[command(
    after_help = RULES_HELP,
    mut_arg("format", |arg| arg.help("Print text for people, JSON, or comma-separated values"))
)]
pub(crate) struct RulesArgs {
    /// Explain these rules. Without any, list all.
    #[arg(value_name = "ID", hide_possible_values = true, value_parser = NameParser::rule())]
    pub rule: Vec<String>,

    /// Explain all rules.
    #[arg(long)]
    pub explain: bool,

    #[command(flatten)]
    pub format: Format,
}

const RULES_HELP: &str = "\
Examples:
  trapline rules
  trapline rules timer-port-exits halted-target-ipi
  trapline rules --explain > rules.txt";

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
