//! What the default program must not bring along: an engine, a runtime, a C library. `deny.toml` has the list; the
//! engine of `sql` and `fleet` is a workspace of its own.

use std::collections::BTreeSet;
use std::fs;

use super::root;

/// Reads a file of TOML at the root.
fn table(name: &str) -> toml::Table {
    let text = fs::read_to_string(root().join(name)).expect("it is read");
    text.parse().expect("it is TOML")
}

/// Returns the texts that the tables of a list have under a name.
fn texts<'t>(list: &'t toml::Value, name: &str) -> BTreeSet<&'t str> {
    let list = list.as_array().expect("a list").iter();
    list.filter_map(|one| one.get(name)?.as_str()).collect()
}

#[test]
fn the_program_brings_no_engine_along() {
    let deny = table("deny.toml");
    let banned = texts(&deny["bans"]["deny"], "crate");
    for name in ["arrow", "datafusion", "tokio"] {
        assert!(banned.contains(name), "deny.toml allows {name}");
    }
    // Large ones are many crates: arrow-array, datafusion-common.
    let is_banned = |package: &str| {
        let mut banned = banned.iter();
        banned.any(|name| {
            let rest = package.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    };
    let own = table("Cargo.lock");
    let own: BTreeSet<&str> = texts(&own["package"], "name");
    assert!(own.contains("parquet"), "{} packages", own.len());
    let wrong: Vec<&&str> = own.iter().filter(|name| is_banned(name)).collect();
    assert!(wrong.is_empty(), "Cargo.lock has {wrong:?}");
    // The rule sees them where they are.
    let engine = table("fleet/Cargo.lock");
    let engine = texts(&engine["package"], "name");
    for name in ["arrow", "arrow-array", "datafusion-common", "tokio"] {
        assert!(engine.contains(name) && is_banned(name), "{name}");
    }
}
