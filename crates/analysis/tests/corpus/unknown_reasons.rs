//! Exits whose reason no table knows are counted under the name that the text has for them.

use fixtures::{FixtureQuestion, write_text};
use serde_json::Value;

/// Returns the rows of a text in which the reasons come one after the other, so many times each.
fn rows(reasons: &[(&str, usize)]) -> Vec<(String, u64)> {
    let mut text = String::new();
    let mut at = 0;
    let mut line = |event: &str| {
        at += 1;
        text.push_str(&format!(
            "       CPU 0/KVM-1010  [001]    10.{at:06}: {event}\n"
        ));
    };
    line("kvm_entry:            vcpu 0, rip 0xffffffff81000000");
    for (reason, count) in reasons {
        for _ in 0..*count {
            line(&format!(
                "kvm_exit:             vcpu 0 reason {reason} rip 0xffffffff81000000 info1 0x0000000000000000 info2 \
                 0x0000000000000000 intr_info 0x00000000 error_code 0x00000000"
            ));
            line("kvm_entry:            vcpu 0, rip 0xffffffff81000000");
        }
    }
    let place = tempfile::tempdir().unwrap();
    let path = write_text(place.path(), "exits.txt", &text);
    let document = FixtureQuestion::new().exits_document(&path).unwrap();
    let warnings = document["quality"]["warnings"].to_string();
    assert!(!warnings.contains("not understood"), "{warnings}");
    let rows = document["rows"].as_array().unwrap().iter();
    let row = |row: &Value| {
        let key = row["key"].as_str().unwrap().to_owned();
        (key, row["count"].as_u64().unwrap())
    };
    rows.map(row).collect()
}

#[test]
fn a_reason_that_no_table_has_is_a_row_of_its_own() {
    let found = rows(&[
        ("hlt", 5),
        ("apic_access", 4),
        ("SNP_GUEST_REQUEST", 3),
        ("two words", 2),
        ("EXIT_0x403", 1),
    ]);
    let expected = [
        ("hlt", 5),
        ("apic_access", 4),
        ("SNP_GUEST_REQUEST", 3),
        ("two words", 2),
        // A number has the name that its table has for it.
        ("vmgexit", 1),
    ];
    assert_eq!(found, expected.map(|(key, count)| (key.to_owned(), count)));
}

#[test]
fn names_without_end_share_a_row() {
    let names: Vec<String> = (0..400).map(|n| format!("reason_{n}")).collect();
    let reasons: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let found = rows(&reasons);
    let all: u64 = found.iter().map(|(_, count)| count).sum();
    assert_eq!(all, 400);
    // Names are kept for the process: tests beside this one may have taken some of the 256.
    let apart = found.len() - 1;
    assert!((200..=256).contains(&apart), "{apart}");
    let others = 400 - apart as u64;
    assert_eq!(found[0], ("other unknown reasons".to_owned(), others));
}
