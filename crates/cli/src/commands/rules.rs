//! `trapline rules`: the causes that are looked for.

use anyhow::Result;
use event::Quality;
use render::{json, rules as render_rules};

use crate::args::{Format, RulesArgs};
use crate::commands::VERSION;
use crate::output;

/// Runs the command.
pub(crate) fn run(args: &RulesArgs) -> Result<()> {
    let mut chosen = Vec::new();
    chosen.extend(args.rule.iter().filter_map(|id| rules::rule(id)));
    let explain = !chosen.is_empty() || args.explain;
    if chosen.is_empty() {
        chosen = rules::all().to_vec();
    }
    match args.format {
        Format::Table if explain => {
            output::print(&render_rules::explained(&chosen, output::width()))
        }
        Format::Table => output::print(&render_rules::list(&chosen, output::width())),
        Format::Json => {
            let mut document = json::envelope(VERSION, "rules", &[], &Quality::default());
            render_rules::json(&mut document, &chosen);
            output::print(&json::text(document))
        }
        Format::Csv => output::print(&render_rules::csv(&chosen)),
    }
}
