//! What a page shows at once, in windows from a telephone's to a wall's: nothing is cut, and what has a finding is open
//! and near the top.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{open_page, write_page};
use crate::common::browser::Browser;
use crate::common::{Failures, file, note, read, tools_are_required};

/// Recordings whose pages are looked at: a finding with instances of a path, the same and another beside a recording
/// that they are compared with, one with rows of exits on arm64, two findings in a guest, a host that waits, and a
/// table.
const PAGES: [&[&str]; 7] = [
    &["corpus/x86/console-sick/perf.data.zst"],
    &[
        "corpus/x86/console-sick/perf.data.zst",
        "--against",
        "corpus/x86/console-healthy/perf.data.zst",
    ],
    &[
        "corpus/x86/preempted-sick/perf.data.zst",
        "--against",
        "corpus/x86/preempted-healthy/perf.data.zst",
    ],
    &["corpus/arm64/virtio-mmio/boot1/trace.dat.zst"],
    &["corpus/x86/clocksource-acpi_pm/loop/perf.data.guest.zst"],
    &[
        "--kallsyms",
        "corpus/host/kallsyms.txt",
        "corpus/host/sender-waits/perf.data.zst",
    ],
    &["corpus/seed-text/case2-windows-before.perf-kvm-stat-vmexit.txt"],
];

/// How many copies of a recording of two VMs make one of 64.
const COPIES: usize = 32;

/// How much is to be seen before everything with a finding is: three screens of 1280 x 800.
const SCREENS: f64 = 3.0 * 800.0;

/// What is cut or hidden in a page, as sentences.
const CUT: &str = "const found = [];
    const seen = element => element.getClientRects().length > 0;
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) found.push(`the page is ${root.scrollWidth - root.clientWidth} px too wide`);
    const scrolls = style => style === 'auto' || style === 'scroll';
    for (const element of document.querySelectorAll('body *')) {
        if (!seen(element) || element.closest('.sr-only, .compact, select')) continue;
        if (element.clientWidth === 0 || element.scrollWidth <= element.clientWidth + 1) continue;
        const style = getComputedStyle(element);
        const isCell = /^T[HD]$/.test(element.tagName);
        if (isCell ? !element.querySelector('.sr-only') : !['visible', 'auto', 'scroll'].includes(style.overflowX)) {
            found.push(`${element.tagName} ${element.className} is cut: ${element.textContent.slice(0, 60)}`);
        }
    }
    for (const table of document.querySelectorAll('table.data')) {
        const name = table.dataset.name;
        const box = table.parentElement;
        if (seen(table) && table.offsetWidth > box.clientWidth + 1 && !scrolls(getComputedStyle(box).overflowX)) {
            found.push(`${name} is wider than its box`);
        }
        const hidden = [...table.tHead?.rows[0]?.cells ?? []].filter(head => head.hidden);
        const tools = box.previousElementSibling;
        const unchecked = [...tools?.querySelectorAll('.columns-chooser label') ?? []]
            .filter(label => !label.querySelector('input').checked)
            .map(label => label.textContent.trim());
        const missing = hidden.map(head => head.textContent.trim()).filter(head => !unchecked.includes(head));
        if (missing.length > 0) found.push(`${name} hides ${missing}, which cannot be chosen`);
        if (hidden.length > 0 && seen(table) && !seen(tools.querySelector('.columns-chooser'))) {
            found.push(`${name} hides columns, and has no chooser`);
        }
    }
    return found;";

/// Sections with what findings rest on that are folded away, and where all that has a finding ends.
const REACHED: &str = "const seen = element => element !== null && element !== undefined && element.getClientRects().length > 0;
    const folded = [];
    const places = [...document.querySelectorAll('#overview, #timeline, .finding')];
    for (const link of document.querySelectorAll('.finding a')) {
        const row = link.hash.startsWith('#row-') ? document.getElementById(link.hash.slice(1)) : null;
        const path = /^(\\S+) of \\S+ at /.exec(link.textContent)?.[1];
        const heads = [...document.querySelectorAll('#paths .part > summary')];
        const part = path && heads.find(head => head.textContent.startsWith(`${path}:`))?.parentElement;
        for (const place of [row, part].filter(Boolean)) {
            if (!seen(place) || place.open === false) folded.push(link.textContent);
            // What else the section has stands behind it.
            places.push(place.closest('.part'));
        }
    }
    // Findings that are folded say what they are in their headings.
    const cut = [...document.querySelectorAll('.finding')].filter(one => !seen(one.querySelector('h3, h4, .facts')));
    return {
        folded: [...folded, ...cut.map(one => one.id)],
        end: Math.max(0, ...places.map(place => place.getBoundingClientRect().bottom + scrollY)),
    }";

/// Returns a recording of 64 VMs: what two did, many times at once. Nothing where there is no python.
pub(super) fn many_vms(folder: &Path) -> Option<PathBuf> {
    let one = folder.join("one.data");
    fs::write(&one, read(&file("x86/console-sick/perf.data.zst"))).expect("a written file");
    let wide = folder.join("wide.data");
    let script = "import pathlib, sys; from wide import perf_data; \
                  perf_data(pathlib.Path(sys.argv[1]), int(sys.argv[3]), pathlib.Path(sys.argv[2]))";
    let made = Command::new("python3")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-c", script])
        .args([one.as_os_str(), wide.as_os_str()])
        .arg(COPIES.to_string())
        .output();
    let Ok(made) = made else {
        assert!(
            !tools_are_required(),
            "TRAPLINE_REQUIRE_TOOLS=1 is set, and there is no python3"
        );
        note("no page of 64 VMs: there is no python3 here");
        return None;
    };
    assert!(made.status.success(), "{made:?}");
    Some(wide)
}

/// Returns what is cut in a window of a width.
fn cut_at(browser: &Browser, width: u32) -> Value {
    browser.resize(width, 800);
    // What looks at sizes runs after the next frame's layout.
    let frames =
        "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[1], 20)))";
    browser.run_async(frames, &Value::Null);
    browser.run(CUT)
}

/// Another width measures each table that shows once, and printing none: each measure lays all of the page out.
fn measured_once(browser: &Browser, failures: &mut Failures) {
    let times = || browser.run("return trapline.measured.times").as_u64();
    let tables = "return [...document.querySelectorAll('table.data')].filter(table => {
        const chooser = table.parentElement.previousElementSibling?.querySelector('.columns-chooser');
        return chooser && table.getClientRects().length > 0;
    }).length";
    let tables = browser.run(tables).as_u64().unwrap_or_default();
    failures.check(tables > 5, || {
        format!("{tables} tables with columns to choose")
    });
    for width in [1000, 700] {
        let before = times().unwrap_or_default();
        cut_at(browser, width);
        let measured = times().unwrap_or_default() - before;
        failures.check(measured > 0 && measured <= tables, || {
            format!("at {width} px {tables} tables were measured {measured} times")
        });
    }
    let before = times();
    for event in ["beforeprint", "afterprint"] {
        browser.run(&format!("window.dispatchEvent(new Event('{event}'))"));
        cut_at(browser, 700);
    }
    failures.equal("measures for a print", &times(), &before);
}

#[test]
fn nothing_is_cut_and_what_has_a_finding_is_near_the_top() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut pages: Vec<Vec<OsString>> = PAGES
        .iter()
        .map(|arguments| arguments.iter().map(OsString::from).collect())
        .collect();
    pages.extend(many_vms(folder.path()).map(|wide| vec![wide.into_os_string()]));
    let page = folder.path().join("report.html");
    let mut failures = Failures::default();
    for arguments in &pages {
        write_page(&page, arguments);
        let what = arguments.last().map(|name| name.to_string_lossy());
        let what = what.unwrap_or_default();
        browser.resize(1280, 800);
        open_page(&browser, &page, "");
        let reached = browser.run(REACHED);
        failures.equal(&format!("{what}: folded"), &reached["folded"], &json!([]));
        let end = reached["end"].as_f64().unwrap_or(f64::MAX);
        failures.check(end <= SCREENS, || {
            format!("{what}: what has a finding ends at {end} px")
        });
        let findings = browser.run("return document.querySelectorAll('.finding').length");
        failures.check(findings.as_u64() > Some(0), || {
            format!("{what}: no finding")
        });
        for width in [2560, 1920, 1280, 390] {
            let cut = cut_at(&browser, width);
            failures.equal(&format!("{what} at {width} px"), &cut, &json!([]));
        }
        // All that can be opened: of one page, since so many tables take their time.
        if arguments == &pages[0] {
            browser.run(super::OPEN);
            for width in [390, 1280] {
                let cut = cut_at(&browser, width);
                let name = format!("{what}, all open, at {width} px");
                failures.equal(&name, &cut, &json!([]));
            }
            measured_once(&browser, &mut failures);
        }
    }
    failures.equal("complaints", &browser.complaints(), &Vec::new());
    failures.finish(7 * 7);
}
