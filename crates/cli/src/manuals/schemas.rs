//! The schemas of all documents in `docs/schema`, made of the tables' columns and of what documents have beside them.
//!
//! `TRAPLINE_WRITE_DOCS=1 cargo test -p trapline --bins schemas` writes them; without it the same test compares.
//! Another one looks whether the documents in `corpus/golden` are as the schemas say; `cli/tests/schemas.rs` asks
//! PyPI's `jsonschema-rs` of many more.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use facts::FactsDocument;
use render::schema::{HasShape, Shape};
use render::{
    bench, bench_compare, compare, compare_each, console, counters, diagnose, exits_document,
    flame, flame_diff, flame_folded, info, irqs, json, overhead, paths, paths_instance, redact,
    rules, salvage, top, vcpus, virtqueues, walk_costs,
};
use serde_json::Value;

use crate::commands::{self, export, report};

/// Returns what the documents of each command have, and whether their times are of a recording's clock.
fn documents() -> Vec<(&'static str, Shape, bool)> {
    let forms = |forms: &[fn() -> Shape]| Shape::OneOf(forms.iter().map(|shape| shape()).collect());
    vec![
        ("bench", bench::BenchDocument::<'static>::shape(), false),
        (
            "compare",
            forms(&[
                compare::CompareDocument::<'static>::shape,
                compare_each::CompareEachDocument::<'static>::shape,
                bench_compare::BenchCompareDocument::<'static>::shape,
            ]),
            true,
        ),
        (
            "diagnose",
            diagnose::DiagnoseDocument::<'static>::shape(),
            true,
        ),
        (
            "events",
            forms(&[commands::events::shape, console::Lines::shape]),
            true,
        ),
        ("exits", exits_document::ExitsDocument::shape(), true),
        ("explain", commands::explain::shape(), true),
        ("export", export::whole::shape(), true),
        ("facts", FactsDocument::<'static>::shape(), false),
        (
            "flame",
            forms(&[
                flame::FlameDocument::<'static>::shape,
                flame_diff::FlameDiffDocument::<'static>::shape,
                flame_folded::FlameFoldedDocument::shape,
            ]),
            true,
        ),
        ("info", info::InfoDocument::<'static>::shape(), true),
        ("irqs", irqs::IrqsDocument::shape(), true),
        ("counters", counters::CountersDocument::shape(), true),
        ("virtqueues", virtqueues::VirtqueuesDocument::shape(), true),
        ("overhead", overhead::OverheadDocument::shape(), false),
        (
            "paths",
            forms(&[
                paths::PathsDocument::<'static>::shape,
                paths_instance::Instances::shape,
                paths_instance::PathsInstanceDocument::<'static>::shape,
            ]),
            true,
        ),
        (
            "report",
            forms(&[
                report::document::Document::<'static>::shape,
                walk_costs::WalkCostsDocument::<'static>::shape,
            ]),
            true,
        ),
        ("rules", rules::RulesDocument::shape(), false),
        ("redact", redact::RedactDocument::<'static>::shape(), false),
        (
            "salvage",
            salvage::SalvageDocument::<'static>::shape(),
            true,
        ),
        ("sched", commands::sched::shape(), true),
        ("top", top::TopDocument::shape(), false),
        ("vcpus", vcpus::VcpusDocument::<'static>::shape(), true),
    ]
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the schemas by command.
fn schemas() -> BTreeMap<&'static str, Value> {
    let all = documents().into_iter();
    all.map(|(command, shape, clocked)| (command, json::schema(command, &shape, clocked)))
        .collect()
}

#[test]
fn schemas_are_those_that_are_kept() {
    let folder = root().join("docs/schema");
    let write = std::env::var_os("TRAPLINE_WRITE_DOCS").is_some();
    let schemas = schemas();
    for (command, schema) in &schemas {
        let file = folder.join(format!("{command}.json"));
        let text = serde_json::to_string_pretty(schema).expect("JSON") + "\n";
        if write {
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(&file, &text).expect("it can be written");
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            kept == text,
            "{} is not what the tables say; TRAPLINE_WRITE_DOCS=1 cargo test -p trapline --bins schemas writes it",
            file.display()
        );
    }
    let there = fs::read_dir(&folder).expect("the folder").flatten();
    assert_eq!(there.count(), schemas.len(), "a schema is of no command");
}

/// Returns why a value is not as a schema says, as far as our schemas say anything; `None` where it is.
fn mismatch(schema: &Value, value: &Value, place: &str) -> Option<String> {
    if let Some(forms) = schema["anyOf"].as_array() {
        let why: Vec<String> = forms
            .iter()
            .map(|form| mismatch(form, value, place))
            .collect::<Option<_>>()?;
        return Some(why.join(" or "));
    }
    if let Some(only) = schema.get("const") {
        return (only != value).then(|| format!("{place} is {value}"));
    }
    let is = |name: &str| match name {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    let typed = match &schema["type"] {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    };
    if !typed {
        return Some(format!("{place} is {value}, and not {}", schema["type"]));
    }
    if let Some(items) = value.as_array() {
        let mut items = items.iter().enumerate();
        return items
            .find_map(|(at, item)| mismatch(&schema["items"], item, &format!("{place}[{at}]")));
    }
    let members = value.as_object()?;
    let required = schema["required"].as_array().into_iter().flatten();
    let mut required = required.filter_map(Value::as_str);
    if let Some(missing) = required.find(|name| !members.contains_key(*name)) {
        return Some(format!("{place} has no {missing}"));
    }
    let (known, others) = (&schema["properties"], &schema["additionalProperties"]);
    members.iter().find_map(|(name, value)| {
        let place = format!("{place}.{name}");
        match (known.get(name), others) {
            (Some(schema), _) => mismatch(schema, value, &place),
            (None, Value::Bool(false)) => Some(format!("{place} is in no schema")),
            (None, schema) => mismatch(schema, value, &place),
        }
    })
}

/// Returns all documents below a folder.
fn kept(folder: &Path, out: &mut Vec<PathBuf>) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = file.path();
        match path.is_dir() {
            true => kept(&path, out),
            false if path.extension().is_some_and(|end| end == "json") => out.push(path),
            false => {}
        }
    }
}

#[test]
fn documents_are_as_their_schemas_say() {
    let schemas = schemas();
    let mut files = Vec::new();
    kept(&root().join("corpus/golden"), &mut files);
    let mut checked = 0;
    for file in files {
        let text = fs::read_to_string(&file).expect("it can be read");
        let Ok(document) = serde_json::from_str::<Value>(&text) else {
            // The first lines of a long document.
            continue;
        };
        let Some(schema) = document["command"]
            .as_str()
            .and_then(|name| schemas.get(name))
        else {
            continue;
        };
        let why = mismatch(schema, &document, "");
        assert_eq!(why, None, "{}", file.display());
        checked += 1;
    }
    assert!(checked > 20, "{checked} documents");
    let mut odd = serde_json::json!({"command": "irqs"});
    assert!(mismatch(&schemas["irqs"], &odd, "").is_some_and(|why| why.contains("has no")));
    odd = serde_json::json!([1]);
    assert!(mismatch(&schemas["irqs"], &odd, "").is_some());
}
