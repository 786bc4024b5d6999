//! Documents of comparisons are the contract's.

use std::path::PathBuf;

use fixtures::file;
use fixtures::json::{list, sides_of, text};
use fixtures::made_folder::MadeFolder;

use crate::{document, each_document, find, said};

#[test]
fn the_document_is_the_contract() {
    let folder = MadeFolder::new();
    let a = folder.record("a", |_| {});
    let b = folder.record("b", |process| {
        process.port_rate = 0.0;
        process.msr_rate = 3.0;
    });
    let document = document(&a, &b);
    let changes = list(&document["changes"]);
    assert!(changes.len() >= 2, "{:?}", said(&document, "changes"));
    let mut last = i64::MAX;
    for change in changes.iter().chain(list(&document["noise"])) {
        assert!(!text(&change["what"]).is_empty(), "{change}");
        assert!(text(&change["text"]).ends_with('.'), "{change}");
        for name in ["a", "b", "delta", "ratio", "confidence"] {
            assert!(change.get(name).is_some(), "{name}: {change}");
        }
        if let Some(confidence) = change["confidence"].as_f64() {
            assert!((0.0..=1.0).contains(&confidence), "{change}");
        }
        if let (Some(a), Some(b)) = (change["a"].as_f64(), change["b"].as_f64()) {
            let delta = change["delta"].as_f64().expect("a delta");
            assert!((b - a - delta).abs() <= 1.0 + 1e-9 * b.abs(), "{change}");
        }
        if change["unit"] == "ns" {
            assert!(!change["a"].is_f64() && !change["b"].is_f64(), "{change}");
        }
    }
    for change in changes {
        let effect = change["effect_ns"].as_i64().expect("an effect").abs();
        assert!(effect <= last, "{:?}", said(&document, "changes"));
        last = effect;
        let confidence = change["confidence"].as_f64();
        assert!(
            confidence.is_none_or(|confidence| confidence >= 0.99),
            "{change}"
        );
    }
    // What is gone is null, and its difference all of it.
    let gone = find(&document["changes"], "vmexit IO_INSTRUCTION");
    assert!(
        gone["b"].is_null() && gone["ratio"].as_f64() == Some(0.0),
        "{gone}"
    );
    assert_eq!(gone["delta"].as_f64(), gone["a"].as_f64().map(|a| -a));
    let work = list(&gone["per_work"]).first().expect("guest time");
    assert_eq!(work["of"], "second of guest time");
}

#[test]
fn four_clock_sources_stand_side_by_side() {
    let clocks = ["kvm-clock", "tsc", "acpi_pm", "hpet"]
        .map(|name| file(&format!("seed-text/case2-{name}.perf-kvm-stat-vmexit.txt")));
    let document = each_document(&clocks.each_ref().map(PathBuf::as_path));
    assert_eq!(list(&document["sides"]).len(), 4);
    let values = |what: &str| -> Vec<Option<f64>> {
        sides_of(&document, what)
            .iter()
            .map(|cell| cell["value"].as_f64())
            .collect()
    };
    let tiers = |what: &str| -> Vec<Option<String>> {
        let cells = sides_of(&document, what).iter();
        cells
            .map(|cell| cell["tier"].as_str().map(str::to_owned))
            .collect()
    };
    // The tables' own numbers.
    assert_eq!(
        values("exits"),
        [10421.0, 12863.0, 37847.0, 38804.0].map(Some)
    );
    assert_eq!(
        values("vmexit EPT_MISCONFIG"),
        [8.0, 8.0, 17.0, 22691.0].map(Some)
    );
    let news = Some("news".to_owned());
    assert_eq!(
        tiers("vmexit EPT_MISCONFIG"),
        [None, None, None, news.clone()]
    );
    // A reason that is in two of the four.
    assert_eq!(
        values("vmexit IO_INSTRUCTION"),
        [None, Some(1.0), Some(24618.0), None]
    );
    assert_eq!(tiers("vmexit IO_INSTRUCTION")[2], news);
    for cell in sides_of(&document, "vmexit IO_INSTRUCTION") {
        assert_eq!(cell["compared"], true, "{cell}");
    }
    let finding = sides_of(&document, "finding hpet-mmio-exits");
    assert!(finding[3]["value"].is_string() && finding[2]["value"].is_null());
    // The contract's changes, each with its side.
    let changes = list(&document["changes"]);
    assert!(changes.iter().any(|change| change["side"] == "D"
        && change["what"] == "vmexit EPT_MISCONFIG"
        && text(&change["text"]).contains("8 to 22691")));
    assert_eq!(list(&document["against"]).len(), 3);
}
