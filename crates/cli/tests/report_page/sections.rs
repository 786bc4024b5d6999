//! Which sections a page has, and in which order.

use std::fs;

use serde_json::Value;

use crate::common::browser::Browser;
use crate::common::page::Page;
use crate::common::{Failures, cases, file};

/// In their order; what a recording has nothing of is left out, with its reason in the last one.
const SECTIONS: [&str; 13] = [
    "overview", "timeline", "findings", "exits", "paths", "compare", "quality", "vcpus", "sched",
    "irqs", "flame", "commands", "absent",
];
/// What each page has.
const ALWAYS: [&str; 4] = ["overview", "findings", "quality", "commands"];

/// Returns what is wrong with a page's sections: each is one of those that there are, in their order, and what is not
/// there has a reason.
pub(super) fn wrong_sections(ids: &[&str], absent: &str) -> Option<String> {
    let expected: Vec<&str> = SECTIONS.into_iter().filter(|id| ids.contains(id)).collect();
    let missing: Vec<&str> = SECTIONS
        .into_iter()
        .filter(|id| !ids.contains(id))
        .collect();
    let reasons = absent.lines().filter(|line| line.contains(": ")).count();
    let unexplained = missing.iter().filter(|id| **id != "absent").count() > reasons;
    let always = ALWAYS.iter().all(|id| ids.contains(id));
    (ids != expected || unexplained || !always).then(|| format!("{ids:?}, {reasons} reasons"))
}

#[test]
fn a_page_opens_in_a_browser_and_asks_for_nothing() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let mut failures = Failures::default();
    let folder = tempfile::tempdir().expect("a folder");
    let chosen = ["perf.data", "trace.dat"].map(|kind| {
        let found = cases().into_iter().find(|one| one.kind == kind);
        found.expect("a recording").path
    });
    for (number, path) in chosen.iter().enumerate() {
        let (_, page) = Page::of(&[path], &[]);
        let file = folder.path().join(format!("{number}.html"));
        fs::write(&file, page.expect("a page").text).expect("a written file");
        browser.open(&file);
        let ids = "return [...document.querySelectorAll('section[id]')].map(one => one.id)";
        let found = browser.run(ids);
        let found: Vec<&str> = found
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let reasons = browser.run("return document.querySelector('#absent')?.innerText ?? ''");
        let wrong = wrong_sections(&found, reasons.as_str().unwrap_or_default());
        failures.equal("sections", &wrong, &None);
        let tall = "return [...document.querySelectorAll('section')].every(one => one.getBoundingClientRect().height \
                    > 20)";
        failures.equal("shown", &browser.run(tall), &Value::Bool(true));
        failures.equal("complaints", &browser.complaints(), &Vec::new());
    }
    failures.finish(6);
}

/// Waits without a stack make no flame graph: the section is left out, with its reason.
#[test]
fn flame_graphs_are_of_stacks_with_frames() {
    for (name, has_frames) in [
        ("x86/ipi-default/trace-cmd.pingpong.txt.gz", false),
        ("x86/flame-iperf3/l1.perf.data.zst", true),
    ] {
        let (_, page) = Page::of(&[&file(name)], &[]);
        let page = page.expect("a page");
        let has = |id: &str| page.xml.contains(&format!("<section id=\"{id}\">"));
        assert_eq!(has("flame"), has_frames, "{name}");
        let reason = "<li>Flame graphs: There are no samples with stacks";
        assert_eq!(page.xml.contains(reason), !has_frames, "{name}");
    }
}
