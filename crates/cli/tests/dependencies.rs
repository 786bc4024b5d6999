//! What the program is built of: licences, sources and what may not be in it (`deny.toml`), and a reason for each crate
//! (`docs/dependencies.md`). 'cargo deny check' reads the same file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn manifest(name: &str) -> toml::Table {
    let text = fs::read_to_string(root().join(name)).expect("it is there");
    text.parse().expect("it is TOML")
}

/// What cargo says of all packages that are built for Linux on x86-64.
fn metadata() -> Value {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--offline",
        "--filter-platform=x86_64-unknown-linux-gnu",
    ]);
    let output = command.output().expect("cargo");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Whether a package is one that is banned, or a part of one: arrow is many crates, and who needs one of them, such as
/// arrow-array, brings it along without the one of its name.
fn is_banned(package: &str, banned: &BTreeSet<String>) -> bool {
    banned.iter().any(|name| {
        let rest = package.strip_prefix(name.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

/// Returns the texts of a list of `deny.toml`.
fn texts(list: &toml::Value) -> BTreeSet<String> {
    let all = list.as_array().expect("a list").iter();
    let text = |one: &toml::Value| {
        let text = one.get("crate").unwrap_or(one).as_str();
        text.expect("a text").to_owned()
    };
    all.map(text).collect()
}

/// Whether an expression of SPDX (or the older form with `/`) leaves a choice that is allowed. `AND` binds closer than
/// `OR`, and `WITH` belongs to its licence.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let expression = expression.replace('/', " OR ");
    if let Some(open) = expression.find('(') {
        let close = expression.find(')').expect("it is closed");
        let within = is_allowed(&expression[open + 1..close], allowed);
        let word = if within { "allowed" } else { "refused" };
        let whole = format!("{}{word}{}", &expression[..open], &expression[close + 1..]);
        return is_allowed(&whole, allowed);
    }
    let one = |licence: &str| licence == "allowed" || allowed.contains(licence);
    let all = |choice: &str| choice.split(" AND ").all(|each| one(each.trim()));
    expression.split(" OR ").any(all)
}

#[test]
fn expressions_are_read() {
    let allowed = BTreeSet::from(["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"]);
    for yes in [
        "MIT",
        "GPL-2.0 OR MIT",
        "GPL/MIT",
        "MIT AND Zlib",
        "(MIT OR GPL-2.0) AND Zlib",
    ] {
        assert!(is_allowed(yes, &allowed), "{yes}");
    }
    assert!(is_allowed("Apache-2.0 WITH LLVM-exception OR X", &allowed));
    for no in [
        "GPL-2.0",
        "MIT AND GPL-2.0",
        "(GPL-2.0 OR X) AND MIT",
        "Apache-2.0",
        "",
    ] {
        assert!(!is_allowed(no, &allowed), "{no}");
    }
}

#[test]
fn all_is_what_deny_toml_allows() {
    let deny = manifest("deny.toml");
    let allowed = texts(&deny["licenses"]["allow"]);
    let exceptions = deny["licenses"]["exceptions"].as_array().expect("a list");
    let banned = texts(&deny["bans"]["deny"]);
    for kind in ["unknown-registry", "unknown-git"] {
        assert_eq!(deny["sources"][kind].as_str(), Some("deny"));
    }
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 150);
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        assert!(!is_banned(name, &banned), "{name} is banned");
        let licence = package["license"].as_str().unwrap_or_default();
        let excepted = exceptions
            .iter()
            .find(|one| one["crate"].as_str() == Some(name));
        let allowed = match excepted {
            Some(one) => texts(&one["allow"]),
            None => allowed.clone(),
        };
        let allowed: BTreeSet<&str> = allowed.iter().map(String::as_str).collect();
        assert!(
            is_allowed(licence, &allowed),
            "{name} has the licence '{licence}'"
        );
        if let Some(source) = package["source"].as_str() {
            // cargo's name of crates.io, which is the default of cargo deny too.
            let known = source.starts_with("registry+") && source.ends_with("/crates.io-index");
            assert!(known, "{name} comes from {source}");
        }
    }
}

/// The engine of `sql` and `fleet` is a workspace of its own: the program has nothing of it, on any platform.
#[test]
fn the_program_brings_no_engine_along() {
    let banned = texts(&manifest("deny.toml")["bans"]["deny"]);
    for name in ["arrow", "datafusion", "tokio"] {
        assert!(banned.contains(name), "deny.toml allows {name}");
    }
    let packages = |lock: &str| -> BTreeSet<String> {
        let lock = manifest(lock);
        let all = lock["package"].as_array().expect("packages").iter();
        let names = all.map(|one| one["name"].as_str().expect("a name").to_owned());
        names.collect()
    };
    let own = packages("Cargo.lock");
    assert!(own.contains("parquet"), "{} packages", own.len());
    let wrong: Vec<&String> = own.iter().filter(|name| is_banned(name, &banned)).collect();
    assert!(wrong.is_empty(), "Cargo.lock has {wrong:?}");
    // The rule sees them where they are.
    let engine = packages("fleet/Cargo.lock");
    for name in ["arrow", "arrow-array", "datafusion-common", "tokio"] {
        assert!(engine.contains(name) && is_banned(name, &banned), "{name}");
    }
}

#[test]
fn each_crate_has_a_reason() {
    let workspace = manifest("Cargo.toml");
    let named = workspace["workspace"]["dependencies"]
        .as_table()
        .expect("a table");
    let named: BTreeSet<&str> = (named.iter())
        .filter(|(_, value)| value.get("path").is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let text = fs::read_to_string(root().join("docs/dependencies.md")).expect("it is there");
    let mut rows = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("| `")) {
        let cells: Vec<&str> = line.trim_end_matches(" |").split(" | ").collect();
        let [name, licence, why] = cells[..] else {
            panic!("{line}");
        };
        let before = rows.insert(name.trim_end_matches('`'), licence);
        assert!(before.is_none(), "{name} stands there twice");
        assert!(why.len() > 10, "{name} has no reason");
    }
    let described: BTreeSet<&str> = rows.keys().copied().collect();
    assert_eq!(
        described, named,
        "docs/dependencies.md and Cargo.toml differ"
    );
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    for (name, licence) in rows {
        let has = |package: &&Value| package["name"] == name;
        let all: Vec<&Value> = packages.iter().filter(has).collect();
        let fits = all.iter().any(|package| package["license"] == licence);
        // What is built with a feature alone is not among them.
        assert!(
            fits || all.is_empty() && licence == "-",
            "{name} is not under '{licence}'"
        );
    }
}
