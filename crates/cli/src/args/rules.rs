//! `trapline rules`.

use clap::Args;

use super::Format;

/// `trapline rules`.
#[derive(Debug, Args)]
#[command(after_help = RULES_HELP)]
pub(crate) struct RulesArgs {
    /// Explain these rules. Without any, list all.
    #[arg(value_name = "ID", value_parser = parse_rule)]
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

/// Reads the name of a rule.
pub(super) fn parse_rule(id: &str) -> Result<String, String> {
    match rules::rule(id) {
        Some(rule) => Ok(rule.id.to_owned()),
        None => Err("there is no such rule; 'trapline rules' lists them".to_owned()),
    }
}
