//! Rules, listed and explained.

use rules::{Remedy, Rule};
use serde::Serialize;
use serde_json::Value;

use crate::json;
use crate::quality::wrap;
use crate::schema::HasShape;
use crate::shape;
use crate::table::{Table, Unit};

/// Returns a line for each rule.
pub fn list(rules: &[&Rule], width: usize) -> String {
    let mut out = String::new();
    let longest = rules.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    for rule in rules {
        let label = format!("{:longest$}  ", rule.id);
        wrap(&mut out, &label, rule.title, width);
    }
    out.push_str("\n'trapline rules ID' explains one.\n");
    out
}

/// Returns all that rules say of themselves.
pub fn explained(rules: &[&Rule], width: usize) -> String {
    let mut out = String::new();
    for (at, rule) in rules.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        wrap(&mut out, "", &format!("{}: {}", rule.id, rule.title), width);
        wrap(&mut out, "  described as: ", &rule.descriptions(), width);
        wrap(&mut out, "  looks at: ", rule.looks_at, width);
        wrap(&mut out, "  needs: ", rule.needs, width);
        wrap(&mut out, "  cause: ", rule.cause, width);
        for (at, remedy) in rule.remedies.iter().enumerate() {
            wrap(
                &mut out,
                &format!("  remedy {}: ", at + 1),
                remedy.what,
                width,
            );
            wrap(&mut out, "    price: ", remedy.price, width);
            let since = remedy.since();
            if !since.is_empty() {
                wrap(&mut out, "    from: ", &format!("{since}."), width);
            }
            wrap(&mut out, "    caution: ", remedy.unless, width);
            wrap(&mut out, "    check: ", remedy.check, width);
        }
        for source in rule.sources {
            wrap(&mut out, "  from: ", source, width);
        }
    }
    out
}

/// Columns of rules.
pub(crate) fn columns() -> Table<'static, &'static Rule> {
    use Unit::{Nested, Text};
    Table::new()
        .column("id", Text, |rule: &&Rule| rule.id)
        .column("title", Text, |rule| rule.title)
        .column("described_as", Nested, |rule| rule.described_as)
        .json_only()
        .column("looks_at", Text, |rule| rule.looks_at)
        .json_only()
        .column("needs", Text, |rule| rule.needs)
        .column("cause", Text, |rule| rule.cause)
        .json_only()
        .column("remedy", Nested, |rule| json::list(rule.remedies))
        .within(Vec::<Remedy>::shape())
        .column("sources", Nested, |rule| rule.sources)
}

/// The fields of a document.
#[derive(Debug, Serialize)]
pub struct RulesDocument {
    rules: Value,
}

shape!(RulesDocument {
    rules: columns().shape().list()
});

/// Returns the fields of a document.
pub fn document(rules: &[&'static Rule]) -> RulesDocument {
    RulesDocument {
        rules: columns().json(rules),
    }
}

/// Returns rules as comma separated values.
pub fn csv(rules: &[&'static Rule]) -> String {
    columns().csv(rules)
}
