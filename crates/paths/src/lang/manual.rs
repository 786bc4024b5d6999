//! `docs/path-language.md` against the language: its examples are understood, and each key has one.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use super::table::{AltToml, ChainToml, FileToml, PartToml, StepToml};
use super::{ThreadClass, parse};

const MANUAL: &str = include_str!("../../../../docs/path-language.md");

/// Returns the examples, each as a whole file: most leave the path's name out.
fn examples() -> Vec<String> {
    let blocks = MANUAL.split("```toml\n").skip(1);
    blocks
        .map(|block| {
            let (example, _) = block.split_once("```").expect("an example has an end");
            match example.starts_with("name = ") {
                true => example.to_owned(),
                false => format!("name = \"example\"\n{example}"),
            }
        })
        .collect()
}

/// Returns the keys that a table may have, which are named where one is unknown.
fn keys<T: DeserializeOwned>() -> Vec<String> {
    let error = toml::from_str::<T>("unheard-of = 1").err();
    let error = error.expect("the key is unknown").message().to_owned();
    let quoted = error.split('`').skip(3).step_by(2);
    quoted.map(str::to_owned).collect()
}

/// Collects the names of keys by the table that they stand in: `step.unless` and `on.unless` are two.
fn collect(table: &toml::Table, kind: &str, found: &mut BTreeSet<String>) {
    for (key, value) in table {
        found.insert(format!("{kind}.{key}"));
        for inner in value.as_array().into_iter().flatten() {
            if let Some(inner) = inner.as_table() {
                collect(inner, key, found);
            }
        }
    }
}

#[test]
fn every_example_is_understood() {
    let examples = examples();
    assert!(examples.len() > 5);
    for example in &examples {
        if let Err(error) = parse(example) {
            panic!("{error}:\n{example}");
        }
    }
    let first = parse(&examples[0]).expect("a path");
    assert_eq!(first.chains[0].steps.len(), 3);
    assert_eq!(first.chains[0].roles, ["guest", "address", "backend"]);
}

#[test]
fn every_key_has_an_example() {
    let mut found = BTreeSet::new();
    for example in examples() {
        let table: toml::Table = example.parse().expect("TOML");
        collect(&table, "file", &mut found);
    }
    let of_tables = [
        ("file", keys::<FileToml>()),
        ("chain", keys::<ChainToml>()),
        ("part", keys::<PartToml>()),
        ("step", keys::<StepToml>()),
        ("on", keys::<AltToml>()),
    ];
    // What a step and an alternative have alike is shown in one of them.
    let twins: BTreeSet<&String> = {
        let [.., (_, step), (_, on)] = &of_tables;
        step.iter().filter(|key| on.contains(key)).collect()
    };
    let mut missing = Vec::new();
    for (table, keys) in &of_tables {
        assert!(keys.len() > 1, "{table}: {keys:?}");
        for key in keys {
            let tables: &[&str] = match twins.contains(key) {
                true => &["step", "on"],
                false => &[table],
            };
            if !(tables.iter()).any(|table| found.contains(&format!("{table}.{key}"))) {
                missing.push(format!("{table}.{key}"));
            }
        }
    }
    assert!(missing.is_empty(), "keys without an example: {missing:?}");
}

#[test]
fn every_class_is_explained() {
    for (name, _) in ThreadClass::NAMED {
        assert!(MANUAL.contains(&format!("`{name}`")), "{name}");
    }
}
