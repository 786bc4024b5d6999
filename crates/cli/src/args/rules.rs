//! `trapline rules`.

use clap::Args;

use super::Format;
use super::values::Named;

/// `trapline rules`.
#[derive(Debug, Args)]
#[command(after_help = RULES_HELP)]
pub(crate) struct RulesArgs {
    /// Explain these rules. Without any, list all.
    #[arg(value_name = "ID", hide_possible_values = true, value_parser = Named::rule())]
    pub rule: Vec<String>,

    /// Explain all rules.
    #[arg(long)]
    pub explain: bool,

    /// Print text for people, JSON, or comma-separated values.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

const RULES_HELP: &str = "\
Examples:
  trapline rules
  trapline rules timer-port-exits halted-target-ipi
  trapline rules --explain > rules.txt";
