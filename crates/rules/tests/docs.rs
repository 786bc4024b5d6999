//! `RULES.md`, the reference in this crate's documentation, is made of what stands with the rules.
//!
//! `TRAPLINE_WRITE_DOCS=1 cargo test -p rules --test docs` writes it.

use std::fs;
use std::path::Path;

/// What stands above the rules.
const INTRODUCTION: &str = "\
# The rules

Generated with `TRAPLINE_WRITE_DOCS=1 cargo test -p rules --test docs` from the rules in `crates/rules/src/rules`.
`trapline rules ID` also prints which events the rule needs, its sources, and for each remedy when not to use it and how
to check it. Limits are set so that a healthy guest stays below them, with room; none is tuned to a machine.

";

#[test]
fn the_document_says_what_the_rules_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("RULES.md");
    let sections = rules::all().iter().map(|rule| rule.describe());
    let wanted = INTRODUCTION.to_owned() + &sections.collect::<Vec<String>>().join("\n");
    if std::env::var_os("TRAPLINE_WRITE_DOCS").is_some() {
        fs::write(&path, &wanted).unwrap();
        return;
    }
    let text = fs::read_to_string(&path).unwrap();
    let differs = text
        .lines()
        .zip(wanted.lines())
        .find(|(is, should)| is != should);
    assert!(
        text == wanted,
        "RULES.md is not what the rules say ({differs:?}); TRAPLINE_WRITE_DOCS=1 writes it"
    );
}

#[test]
fn texts_have_all_their_parts() {
    for rule in rules::all() {
        let text = rule.describe();
        assert!(!rule.found.is_empty(), "{}: when is it found?", rule.id);
        assert!(!rule.remedies.is_empty(), "{}", rule.id);
        let least = rule.least_found();
        assert!(
            !least.is_empty() && !least.contains(['{', '`', '*']),
            "{}: what is 'not found' worth? {least}",
            rule.id
        );
        for remedy in rule.remedies {
            let parts = [remedy.what, remedy.price, remedy.unless, remedy.check];
            let whole = parts.iter().all(|part| part.ends_with('.'));
            assert!(whole, "{}: {parts:?}", rule.id);
        }
        // A name in braces that no limit has would stay.
        assert!(!text.contains(['{', '}']), "{}: {text}", rule.id);
        for (name, _) in rule.limits {
            let written = rule
                .found
                .iter()
                .chain([&rule.unknown])
                .any(|part| part.contains(&format!("{{{name}}}")));
            assert!(written, "{}: no text has the limit '{name}'", rule.id);
        }
    }
}

#[test]
fn links_lead_to_rules() {
    for rule in rules::all() {
        let text = rule.describe();
        for (_, rest) in text
            .match_indices("](")
            .map(|(at, link)| text.split_at(at + link.len()))
        {
            let link = rest.split(')').next().unwrap_or_default();
            let id = link.strip_prefix('#');
            let file = link.split('#').next().unwrap_or_default();
            let there = Path::new(env!("CARGO_MANIFEST_DIR")).join(file).is_file();
            assert!(
                id.is_some_and(|id| rules::rule(id).is_some()) || there,
                "{}: {link}",
                rule.id
            );
        }
    }
}
