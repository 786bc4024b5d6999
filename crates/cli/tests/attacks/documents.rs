//! Documents in JSON - facts, QMP, results of benchmarks - in which anything stands in the place of anything.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::draw::Draw;

static DOCUMENTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all: Vec<Value> = Vec::new();
    for (kind, forms) in session::input_forms() {
        let folder = if kind == "result" { "results" } else { "facts" };
        for file in forms.iter().flat_map(|form| form.fixtures) {
            let text = fs::read_to_string(crates.join(folder).join(file)).unwrap_or_default();
            all.extend(serde_json::from_str::<Value>(&text));
        }
    }
    all.retain(|one| one.is_object() && one.to_string().len() < 60_000);
    all
});

/// Writes a document.
pub(super) fn write(draw: &mut Draw) -> Vec<u8> {
    let mut document = draw.of(&DOCUMENTS);
    let rate = draw.of(&[200, 40, 8]);
    // What is repeated within what is repeated would have no bound.
    change(&mut document, rate, &mut 50_000, draw);
    let text = document.to_string();
    let mut text = match draw.below(8) {
        // A number that JSON has and no type holds.
        0 => text.replacen(":0", &format!(":{}", "9".repeat(1 + draw.below(400))), 3),
        1 => text.replacen(":1", ":1e999", 2),
        // Members twice.
        2 => text.replacen(
            '{',
            "{\"facts_version\":1,\"facts_version\":{},\"threads\":[],\"vms\":0,",
            1,
        ),
        3 => {
            let deep = draw.of(&[10, 127, 128, 5000]);
            format!("{}{text}{}", "[".repeat(deep), "]".repeat(deep))
        }
        4 => text.repeat(1 + draw.below(4)),
        5 => text.replace('"', "\"\\u0000\\ud800"),
        _ => text,
    }
    .into_bytes();
    if draw.once_in(6) {
        text.truncate(draw.below(text.len()));
    }
    text
}

/// Returns how many values a value is made of.
fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.values().map(size).sum::<usize>(),
        _ => 0,
    }
}

fn change(value: &mut Value, rate: usize, room: &mut usize, draw: &mut Draw) {
    if draw.once_in(rate) {
        *value = odd(draw);
        return;
    }
    match value {
        Value::Array(items) => {
            for item in items.iter_mut() {
                change(item, rate, room, draw);
            }
            if let Some(first) = items.first().cloned()
                && draw.once_in(rate)
            {
                let each = size(&first);
                let more = draw.of(&[1, 30, 3000]).min(*room / each);
                *room -= more * each;
                items.extend(vec![first; more]);
            }
        }
        Value::Object(members) => {
            for member in members.values_mut() {
                change(member, rate, room, draw);
            }
        }
        _ => {}
    }
}

fn odd(draw: &mut Draw) -> Value {
    match draw.below(12) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(draw.edge()),
        3 => json!(draw.edge() as i64),
        4 => json!(-1.5e300),
        5 => json!(1e-300),
        6 => json!(draw.odd_number()),
        7 => json!(String::from_utf8_lossy(&draw.odd_name())),
        8 => json!([]),
        9 => json!({}),
        10 => json!([[[[{"cpu": -1}]]], 1, "x", null]),
        _ => json!({"": {"pid": "1", "tid": [1], "cpus": "0-4294967295"}}),
    }
}
