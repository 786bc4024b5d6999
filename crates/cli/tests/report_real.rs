//! The page of real recordings in a browser: what its timeline sums is what `vcpus` prints, its links lead to the
//! places that they name, and everybody can read it.
//!
//! `TRAPLINE_SCREENSHOTS=docs/screenshots` writes the pictures that the README and docs/tour.md show.

mod bench;
mod explained;
mod fits;
mod guides;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use crate::common::browser::Browser;
use crate::common::{Failures, axe, file, shipped, trapline};

/// A page of two recordings side by side: the sick one, against the healthy one.
struct Opened {
    browser: Browser,
    page: PathBuf,
    _folder: tempfile::TempDir,
}

impl Opened {
    /// Makes the page, and opens it in light or dark. Nothing where there is no browser.
    fn new(scheme: &str) -> Option<Opened> {
        let scheme = format!("--blink-settings=preferredColorScheme={scheme}");
        let browser = Browser::start_with(&[&scheme, "--window-size=1280,900"])?;
        let folder = tempfile::tempdir().expect("a folder");
        let page = folder.path().join("report.html");
        let sick = "corpus/x86/console-sick/perf.data.zst";
        let healthy = "corpus/x86/console-healthy/perf.data.zst";
        write_page(&page, [sick, "--against", healthy]);
        let opened = Opened {
            browser,
            page,
            _folder: folder,
        };
        opened.at("");
        Some(opened)
    }

    /// Opens it at a fragment.
    fn at(&self, fragment: &str) {
        open_page(&self.browser, &self.page, fragment);
    }

    /// Puts a picture into the folder of screenshots, if there is one.
    fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("TRAPLINE_SCREENSHOTS") else {
            return;
        };
        let picture = BASE64_STANDARD.decode(self.browser.screenshot());
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let file = file.join(folder).join(name);
        fs::write(file, picture.expect("a picture")).expect("the folder is there");
    }
}

/// Writes the page of what arguments name, which begin with a recording.
fn write_page<A: AsRef<OsStr>>(page: &Path, arguments: impl IntoIterator<Item = A>) {
    let output = trapline()
        .current_dir(shipped().join(".."))
        .arg("report")
        .args(arguments)
        .arg("-o")
        .arg(page)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{output:?}");
}

/// Opens a page anew, at a fragment, and waits until it is drawn.
fn open_page(browser: &Browser, page: &Path, fragment: &str) {
    // Else only the fragment changes, and nothing is loaded.
    browser.run("location.replace('about:blank')");
    browser.open_at(page, fragment);
    browser.wait("return window.trapline !== undefined && trapline.ready");
    browser.wait("return trapline.timelines.every(one => one.frames > 0)");
}

#[test]
fn the_timeline_sums_what_vcpus_prints() {
    let Some(page) = Opened::new("1") else {
        return;
    };
    let mut failures = Failures::default();
    let path = file("x86/console-sick/perf.data.zst");
    let output = trapline()
        .args(["vcpus", "--format", "json"])
        .arg(&path)
        .output()
        .expect("the program starts");
    let reported: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let rows = reported["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4);
    for row in rows {
        let script = format!(
            "const one = trapline.timelines[0]; return one.sums('tid-{}', 0, one.data.length).states",
            row["tid"]
        );
        let shown = page.browser.run(&script);
        let state = |name: &str| shown[name].as_f64().unwrap_or_default();
        for (column, states) in [
            ("guest_ns", &["guest"][..]),
            ("kernel_ns", &["kernel", "kernel_blocked"]),
            ("user_ns", &["user", "user_blocked"]),
            ("poll_ns", &["poll"]),
            ("halted_ns", &["halted"]),
            ("runnable_ns", &["runnable"]),
            ("unknown_ns", &["unknown"]),
        ] {
            let sum: f64 = states.iter().map(|name| state(name)).sum();
            let ns = row[column].as_f64().unwrap_or(f64::NAN);
            failures.check((sum - ns).abs() < 1.0, || {
                format!("{} {column}: {sum} in the page, {ns} printed", row["tid"])
            });
        }
    }
    failures.equal("complaints", &page.browser.complaints(), &Vec::new());
    failures.finish(4 * 7);
}

#[test]
fn links_lead_to_what_they_name() {
    let Some(page) = Opened::new("1") else {
        return;
    };
    let mut failures = Failures::default();
    let links = "return [...document.querySelectorAll('a[href^=\"#t=\"]')].map(link => link.getAttribute('href'))";
    let links = page.browser.run(links);
    let links = links.as_array().expect("links");
    assert!(!links.is_empty());
    let begin = "return Number(trapline.timelines[0].data.begin)";
    let begin = page.browser.run(begin).as_f64().expect("a time") / 1e9;
    for link in links.iter().filter_map(Value::as_str).take(12) {
        let place = link.trim_start_matches("#t=");
        let (place, path) = place.split_once("&path=").unwrap_or((place, ""));
        let (time, lanes) = place.split_once("&lane=").unwrap_or((place, ""));
        let (from, to) = time.split_once(',').expect("from and to");
        page.browser
            .run(&format!("location.hash = {}", json!(link)));
        for lane in lanes.split(',').filter(|lane| !lane.is_empty()) {
            let known =
                format!("return trapline.timelines[0].data.lanes.some(one => one.id === '{lane}')");
            failures.equal(link, &page.browser.run(&known), &Value::Bool(true));
        }
        let view = "const { from, to } = trapline.timelines[0].view; return [from / 1e9, to / 1e9]";
        let view = page.browser.run(view);
        let seconds = |text: &str| text.parse::<f64>().expect("seconds");
        let (from, to) = (seconds(from), seconds(to));
        // An instance has room beside it.
        let room = if path.is_empty() {
            0.0
        } else {
            (to - from) / 25.0
        };
        let near = |shown: &Value, named: f64| {
            shown
                .as_f64()
                .is_some_and(|shown| (shown + begin - named).abs() < 1e-5)
        };
        failures.check(
            near(&view[0], from - room) && near(&view[1], to + room),
            || format!("{link}: {view} from {begin}"),
        );
    }
    failures.finish(2);
}

/// Shows one VM alone, as somebody does who chooses it in the page's head.
const CHOOSE: &str = "const select = document.querySelector('#vm-filter');
    select.value = [...select.options].map(one => one.value).find(one => one.includes('PROCESS'));
    select.dispatchEvent(new Event('change'));";

/// What shows of lanes, of rows of tables by their process, and of findings.
const SHOWN: &str = "const seen = element => element.getClientRects().length > 0;
    document.querySelectorAll('details').forEach(one => one.open = true);
    const { rows, data } = trapline.timelines[0];
    const lanes = rows.filter(row => row.type === 'lane').map(row => data.lanes[row.index]);
    const table = document.querySelector('#table-vcpus');
    const pid = [...table.tHead.rows[0].cells].findIndex(head => head.dataset.column === 'vm_pid');
    const pids = [...table.tBodies[0].rows].filter(seen).map(row => row.cells[pid].textContent);
    const sums = document.querySelectorAll('table[data-name=timeline-vcpus-0] tbody tr');
    return {
        lanes: [...new Set(lanes.map(lane => lane.group === 'cpus' ? 'CPUs' : lane.vm))],
        pids: [...new Set(pids)],
        sums: sums.length,
        findings: [...document.querySelectorAll('.finding')].filter(seen).length,
        first: [...document.querySelectorAll('.first-findings li')].filter(seen).length,
        pins: [...document.querySelectorAll('.pin')].filter(seen).length,
    };";

#[test]
fn one_vm_alone() {
    let Some(page) = Opened::new("1") else {
        return;
    };
    let whole = page.browser.run(SHOWN);
    assert_eq!(whole["pids"].as_array().map(Vec::len), Some(2), "{whole}");
    assert_eq!((&whole["sums"], &whole["findings"]), (&json!(4), &json!(1)));
    assert!(whole["pins"].as_u64() > Some(0), "{whole}");
    // The finding is about one of the VMs: it goes with the other one alone.
    for (process, findings) in [("1691", 1), ("1689", 0)] {
        page.browser.run(&CHOOSE.replace("PROCESS", process));
        page.browser.run("trapline.timelines[0].settled()");
        let shown = page.browser.run(SHOWN);
        let vm = format!("qemu-system-x86 (process {process})");
        assert_eq!(shown["lanes"], json!([vm, "CPUs"]));
        assert_eq!(shown["pids"], json!([process]));
        assert_eq!(shown["sums"], 2);
        assert_eq!(
            (&shown["findings"], &shown["first"]),
            (&json!(findings), &json!(findings))
        );
        assert_eq!(shown["pins"].as_u64() > Some(0), findings > 0, "{shown}");
        let note = page
            .browser
            .run("return document.querySelector('.vm-note').textContent");
        let left = format!("{} findings of other VMs are left out", 1 - findings);
        let left = left.replace("1 findings", "1 finding");
        let said = note.as_str().unwrap_or_default();
        assert!(
            said.starts_with(&format!("Only {vm}: ")) && said.contains(&left),
            "{said}"
        );
    }
    // A link to a lane of another VM shows all of them again.
    let begin = "location.hash = `#t=${trapline.timelines[0].data.begin / 1000000000n},9999999999&lane=tid-1705`";
    page.browser.run(begin);
    page.browser
        .wait("return document.querySelector('#vm-filter').value === ''");
    let lanes = "return trapline.timelines[0].rows.filter(row => row.type === 'lane').length > 20";
    assert_eq!(page.browser.run(lanes), true);
    page.browser.run(&CHOOSE.replace("PROCESS", "1689"));
    page.browser.click(".vm-note button");
    page.browser.run("trapline.timelines[0].settled()");
    assert_eq!(page.browser.run(SHOWN), whole);
    assert_eq!(page.browser.complaints(), Vec::<String>::new());
}

/// What shows of lanes, by their VMs.
const LANES: &str = "const { rows, data } = trapline.timelines[0];
    const lanes = rows.filter(row => row.type === 'lane').map(row => data.lanes[row.index]);
    return [...new Set(lanes.map(lane => lane.group === 'cpus' ? 'CPUs' : lane.vm))]";

#[test]
fn a_link_has_the_vm_that_is_shown_alone() {
    let Some(page) = Opened::new("1") else {
        return;
    };
    let whole = page.browser.run(LANES);
    page.browser.run(&CHOOSE.replace("PROCESS", "1689"));
    let vm = "qemu-system-x86 (process 1689)";
    // The address says it too, soon after.
    page.browser.wait(
        "return location.hash.includes('&vm=') && location.hash === trapline.timelines[0].hash()",
    );
    let link = page.browser.run("return location.hash");
    page.at(link.as_str().unwrap_or_default());
    assert_eq!(page.browser.run(LANES), json!([vm, "CPUs"]));
    let chosen = "return document.querySelector('#vm-filter').value";
    assert_eq!(page.browser.run(chosen), vm);
    // A VM that this page does not have changes nothing.
    page.at("#t=447.38,447.48&vm=another");
    assert_eq!(page.browser.run(LANES), whole);
    // One button folds the lanes of all, and unfolds them.
    let press = "const button = [...document.querySelectorAll('.tl-tools button')].find(one => /old VMs$/.test(one.textContent));
        const before = button.textContent;
        button.click();
        return before";
    assert_eq!(page.browser.run(press), "Fold VMs");
    assert_eq!(page.browser.run(LANES), json!(["", "CPUs"]));
    assert_eq!(page.browser.run(press), "Unfold VMs");
    assert_eq!(page.browser.run(LANES), whole);
    assert_eq!(page.browser.complaints(), Vec::<String>::new());
}

#[test]
fn plots_say_which_path_and_which_unit() {
    let Some(page) = Opened::new("1") else {
        return;
    };
    page.browser.run(OPEN);
    // They are drawn once they show.
    page.browser.wait(
        "return [...document.querySelectorAll('#paths figure.plot')].every(plot => plot.querySelector('.u-title'))",
    );
    let plots = "return [...document.querySelectorAll('#paths figure.plot')].map(plot => {
        const path = plot.closest('.part').querySelector('h3').textContent.split(':')[0];
        const { y_label: label } = JSON.parse(plot.querySelector('script').textContent);
        return [path === plot.querySelector('.u-title').textContent, label];
    })";
    let plots = page.browser.run(plots);
    let plots = plots.as_array().expect("plots");
    assert!(plots.len() > 4, "{plots:?}");
    let wanted = json!([true, "time (ns, us, ms, s; logarithmic)"]);
    assert!(plots.iter().all(|plot| *plot == wanted), "{plots:?}");
}

#[test]
fn the_overview_stays_in_sight_and_leads_to_places() {
    let Some(page) = Opened::new("1") else {
        return;
    };
    let compact = "return document.querySelector('.compact').getClientRects().length > 0";
    assert_eq!(page.browser.run(compact), false);
    page.browser
        .run("document.querySelector('#exits').scrollIntoView()");
    page.browser.wait(compact);
    let below = "const bar = document.querySelector('.compact').getBoundingClientRect();
        const head = document.querySelector('body > header').getBoundingClientRect();
        return [Math.abs(bar.top - head.bottom) < 2, bar.left <= head.left + 1 && bar.right >= head.right - 1]";
    assert_eq!(page.browser.run(below), json!([true, true]));
    page.browser.run("window.scrollTo(0, 0)");
    page.browser.wait(&compact.replace("> 0", "=== 0"));
    // A pin leads to the time that its finding names.
    page.browser
        .run("document.querySelector('.overview-timeline .pin').click()");
    let shown = "const [, from, to] = /t=([0-9.]+),([0-9.]+)/.exec(document.querySelector('.pin').hash);
        const { view, data } = trapline.timelines[0];
        const begin = Number(data.begin);
        // With some room beside it.
        const room = (to - from) * 5e7 + 2e3;
        return Math.abs(view.from + begin - from * 1e9) < room && Math.abs(view.to + begin - to * 1e9) < room";
    page.browser.wait(shown);
    let text =
        "document.querySelector('.finding .copy-ticket').click(); return trapline.copied.text";
    let text = page.browser.run(text);
    let text = text.as_str().unwrap_or_default();
    let title = page
        .browser
        .run("return document.querySelector('.finding h3').textContent.replace('1. ', '')");
    assert!(
        text.starts_with(&format!("### {}", title.as_str().unwrap_or_default())),
        "{text}"
    );
    for part in [
        "**Evidence**\n\n- ",
        "**Cause:** ",
        "**Remedy 1:** ",
        "`trapline diagnose ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(page.browser.complaints(), Vec::<String>::new());
}

#[test]
fn on_paper_all_is_open_and_nothing_can_be_pressed() {
    let Some(page) = Opened::new("0") else {
        return;
    };
    page.browser.print();
    let shown = "const seen = element => element.getClientRects().length > 0;
        const all = selector => [...document.querySelectorAll(selector)];
        const place = getComputedStyle(document.querySelector('body > header')).position;
        return {
            folded: all('main details:not(.tl-keys, .columns-chooser)').filter(one => !one.open).length,
            buttons: all('button:not(.tl-row, .sort), select, input').filter(seen).length,
            names: all('.tl-row').filter(seen).length > 0,
            head: place,
            compact: all('.compact').filter(seen).length,
            columns: all('table.data th, table.data td').filter(one => !seen(one)).length,
            dark: getComputedStyle(document.body).backgroundColor,
        }";
    let expected = json!({
        "folded": 0, "buttons": 0, "names": true, "head": "static", "compact": 0, "columns": 0,
        "dark": "rgb(255, 255, 255)",
    });
    assert_eq!(page.browser.run(shown), expected);
}

/// All that is folded is opened, but for choices of columns.
const OPEN: &str = "document.querySelectorAll('details:not(.columns-chooser, .tl-keys)')
    .forEach(one => one.open = true);";

/// Boxes of tables that are too narrow for them, and whether the page is wider than the window.
const WIDE: &str = "const root = document.documentElement;
    const boxes = [...document.querySelectorAll('.table-box')].filter(box => box.scrollWidth > box.clientWidth + 1);
    return [boxes.map(box => box.querySelector('table').dataset.name), root.scrollWidth > root.clientWidth]";

#[test]
fn wide_tables_show_their_first_columns() {
    let Some(page) = Opened::new("1") else {
        return;
    };
    page.browser.run(OPEN);
    let fits = WIDE.replace("return [", "return JSON.stringify([") + ") === '[[],false]'";
    page.browser.wait(&fits);
    // A time of a finding is seen in each table that has it, and columns are hidden in some of them.
    let times = "const finding = document.querySelector('.finding').textContent.replace(/\\s+/g, ' ');
        const times = new Set(finding.match(/\\d+\\.\\d+(ns|us|ms|s)\\b/g));
        const cells = [...document.querySelectorAll('section table.data td')].filter(one => !one.closest('.timeline'));
        const same = cells.filter(one => times.has(one.textContent));
        const hidden = cells.filter(one => one.hidden);
        return [same.length > 0, same.every(one => one.getClientRects().length > 0), hidden.length > 100]";
    assert_eq!(page.browser.run(times), json!([true, true, true]));
    // A column that is hidden is in the CSV, and in the text once it is chosen.
    let copies = "const tools = document.querySelector('#table-vcpus').parentElement.previousElementSibling;
        const [text, csv] = tools.querySelectorAll('button');
        text.click();
        const shown = trapline.copied.text.includes('wait p99');
        csv.click();
        return [shown, trapline.copied.text.includes('wait_p99_ns'), tools.querySelector('summary').textContent]";
    let before = page.browser.run(copies);
    assert_eq!((&before[0], &before[1]), (&json!(false), &json!(true)));
    let chosen = "const tools = document.querySelector('#table-vcpus').parentElement.previousElementSibling;
        [...tools.querySelectorAll('label')].find(one => one.textContent.trim() === 'wait p99').click()";
    page.browser.run(chosen);
    let after = page.browser.run(copies);
    assert_eq!((&after[0], &after[1]), (&json!(true), &json!(true)));
    assert_ne!(before[2], after[2]);
    // On a telephone a table scrolls in its own box, and the page does not.
    page.browser.resize(390, 900);
    page.browser.wait(
        &WIDE
            .replace("return [", "return !([")
            .replace("clientWidth]", "clientWidth])[1]"),
    );
    let wide = page.browser.run(WIDE);
    assert!(
        wide[0].as_array().is_some_and(|boxes| boxes.len() > 5),
        "{wide}"
    );
    assert_eq!(page.browser.complaints(), Vec::<String>::new());
}

#[test]
fn everybody_can_read_it() {
    let Some(axe) = axe() else {
        return;
    };
    for (name, scheme) in [("dark", "0"), ("light", "1")] {
        let Some(page) = Opened::new(scheme) else {
            return;
        };
        page.browser.run(&axe);
        let found = page.browser.run_async(
            "axe.run(document, arguments[0]).then(found => arguments[1]([found.passes.length, \
             found.violations.map(one =>
                [one.id, one.help, one.nodes.slice(0, 5).map(node => node.html.slice(0, 200) + ' ' + \
                node.failureSummary)])]))",
            &json!({}),
        );
        assert!(found[0].as_u64().unwrap_or_default() > 20, "{found}");
        assert_eq!(found[1], json!([]), "{name}: {found:#}");
        if name == "light" {
            // Without the comparison, which would stand before the timeline.
            write_page(&page.page, ["corpus/x86/console-sick/perf.data.zst"]);
            page.browser.resize(1280, 1400);
            page.at("");
            page.picture("page.png");
            page.browser.resize(1280, 900);
            page.at("#finding-1");
            page.picture("findings.png");
            // A guest's notification, its way to the back end and the interrupt's way back.
            page.at("#t=447.377138274,447.378705057&path=kick");
            page.picture("timeline.png");
            page.at("#paths");
            page.browser.run(
                "const more = document.querySelector('#paths .more');
                more.open = true;
                more.scrollIntoView()",
            );
            page.picture("paths.png");
        }
        assert_eq!(page.browser.complaints(), Vec::<String>::new());
    }
}
