//! Rules, listed and explained.

use rules::Rule;
use serde_json::{Map, Value, json};

use crate::csv;
use crate::quality::wrap;

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
            wrap(&mut out, "    unless: ", remedy.unless, width);
            wrap(&mut out, "    check: ", remedy.check, width);
        }
        for source in rule.sources {
            wrap(&mut out, "  from: ", source, width);
        }
    }
    out
}

/// Appends rules to a JSON document.
pub fn json(document: &mut Map<String, Value>, rules: &[&Rule]) {
    let list = rules.iter().map(|rule| {
        let remedies: Vec<Value> = rule
            .remedies
            .iter()
            .map(|remedy| {
                json!({
                    "do": remedy.what,
                    "price": remedy.price,
                    "check": remedy.check,
                    "unless": remedy.unless,
                })
            })
            .collect();
        json!({
            "id": rule.id,
            "title": rule.title,
            "looks_at": rule.looks_at,
            "needs": rule.needs,
            "cause": rule.cause,
            "remedy": remedies,
            "sources": rule.sources,
        })
    });
    document.insert("rules".to_owned(), list.collect());
}

/// Returns rules as comma separated values.
pub fn csv(rules: &[&Rule]) -> String {
    let mut out = String::from("id,title,needs\n");
    for rule in rules {
        csv::row(&mut out, [rule.id, rule.title, rule.needs]);
    }
    out
}
