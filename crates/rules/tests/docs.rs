//! The section of `docs/diagnose.md` on rules is made of what stands with the rules.
//!
//! `TRAPLINE_WRITE_DOCS=1 cargo test -p rules --test docs` writes it.

use std::fs;
use std::path::Path;

/// Where the section begins, and before what it ends.
const BEGIN: &str =
    "<!-- rules: written by TRAPLINE_WRITE_DOCS=1 cargo test -p rules --test docs -->\n";
const END: &str = "<!-- end of rules -->\n";

fn section() -> String {
    let rules = rules::all().iter().map(|rule| rule.describe());
    rules.collect::<Vec<String>>().join("\n")
}

#[test]
fn the_document_says_what_the_rules_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/diagnose.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}\n{}\n{END}{after}", section());
    if std::env::var_os("TRAPLINE_WRITE_DOCS").is_some() {
        fs::write(&path, &wanted).unwrap();
        return;
    }
    let differs = text
        .lines()
        .zip(wanted.lines())
        .find(|(is, should)| is != should);
    assert!(
        text == wanted,
        "docs/diagnose.md is not what the rules say ({differs:?}); TRAPLINE_WRITE_DOCS=1 writes it"
    );
}

#[test]
fn texts_have_all_their_parts() {
    for rule in rules::all() {
        let text = rule.describe();
        assert!(!rule.found.is_empty(), "{}: when is it found?", rule.id);
        assert!(!rule.remedies.is_empty(), "{}", rule.id);
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
            .match_indices("](#")
            .map(|(at, link)| text.split_at(at + link.len()))
        {
            let id = rest.split(')').next().unwrap_or_default();
            assert!(
                rules::rule(id).is_some() || id == "who-is-the-recorder",
                "{}: {id}",
                rule.id
            );
        }
    }
}
