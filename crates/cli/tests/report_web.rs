//! The report's front end in a browser: on a page that is made by hand in the shape that the report has, with lanes
//! whose sums are known. What it computes is tested in `web/test` too.

pub(crate) mod bench;
mod data;
mod page;
mod timeline;

use std::fs;

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use self::data::{BEGIN, HOSTILE, Recording, front};
use self::page::{Page, near, same};
use crate::common::axe;

/// WebDriver's keys.
const ENTER: char = '\u{e007}';
const SHIFT: char = '\u{e008}';
const ESCAPE: char = '\u{e00c}';
const END: char = '\u{e010}';
const HOME: char = '\u{e011}';
const LEFT: char = '\u{e012}';
const DOWN: char = '\u{e015}';

#[test]
fn a_page_opens_quietly_and_its_sums_are_known() {
    let recording = Recording::by_chance(6, 500);
    let Some(page) = Page::of(&[&recording], &[]) else {
        return;
    };
    let length = recording.length as f64;
    assert_eq!(page.view(), [0.0, length]);
    let ranges = [
        [0.0, length],
        [1e9, 1.1e9],
        [1_234_567.0, 1_234_967.0],
        [length - 5e6, length],
    ];
    for [from, to] in ranges {
        for lane in &recording.lanes {
            let script = format!(
                "return trapline.timelines[0].sums('{}', {from}, {to}).states",
                lane.id
            );
            same(&page.run(&script), &lane.sums(from, to));
        }
    }
    // What the table below the picture says, of all and of a piece.
    for [from, to] in [ranges[0], [1e9, 1.2e9]] {
        page.run(&format!("trapline.timelines[0].setView({from}, {to})"));
        let seconds = |time: f64| {
            let ns = BEGIN + time as u64;
            format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
        };
        let caption = format!("shown: {} to {}", seconds(from), seconds(to));
        let shown = "return document.querySelector('table[data-name=timeline-vcpus-0] \
                     caption').textContent.includes(CAPTION)";
        page.browser
            .wait(&shown.replace("CAPTION", &json!(caption).to_string()));
        for (at, lane) in recording.lanes.iter().enumerate().take(6) {
            let row = "const table = document.querySelector('table[data-name=timeline-vcpus-0]');
                const heads = [...table.tHead.rows[0].cells].map(head => head.dataset.column);
                return Object.fromEntries([...table.tBodies[0].rows[AT].cells]
                    .map((cell, at) => [heads[at], Number(cell.dataset.v)])
                    .filter(([head, ns]) => head.endsWith('_ns') && head !== 'observed_ns' && ns > 0)
                    .map(([head, ns]) => [head.slice(0, -3), ns]))";
            let reported = page.run(&row.replace("AT", &at.to_string()));
            for (state, ns) in lane.sums(from, to) {
                near(reported[&state].as_f64().unwrap_or_default(), ns, 0.51);
            }
        }
    }
    page.is_quiet();
}

#[test]
fn what_is_drawn_is_the_sum_of_each_column() {
    let recording = Recording::by_chance(4, 4000);
    let Some(page) = Page::of(&[&recording], &["--force-device-scale-factor=1"]) else {
        return;
    };
    page.run("document.querySelector('.timeline').scrollIntoView()");
    // The colours of a column of the first vCPU's lane, each counted as the state whose tile has it.
    let script = "const timeline = trapline.timelines[0];
        const canvas = document.querySelector('.tl-canvas');
        const row = document.querySelector('.tl-row.lane');
        const top = Math.round(row.getBoundingClientRect().top - canvas.getBoundingClientRect().top) + 2;
        const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, top, canvas.width, 18).data.buffer);
        const width = canvas.width;
        const columns = [];
        for (const x of [3, 50, 123, 301, 555, 700]) {
            const seen = new Map();
            for (let y = 0; y < 18; y++) seen.set(pixels[y * width + x], (seen.get(pixels[y * width + x]) ?? 0) + 1);
            const counts = {};
            timeline.data.kinds.forEach((kind, at) => {
                if (kind.of !== 'vcpu') return;
                let rows = 0;
                for (const colour of new Set(timeline.colours.looks[at].tile)) rows += seen.get(colour) ?? 0;
                if (rows > 0) counts[kind.id] = rows;
            });
            columns.push([x, counts]);
        }
        return [width, columns]";
    let drawn = page.run(script);
    let width = drawn[0].as_f64().unwrap();
    let unit = recording.length as f64 / width;
    for column in drawn[1].as_array().unwrap() {
        let x = column[0].as_f64().unwrap();
        let known = recording.lanes[0].sums(x * unit, (x + 1.0) * unit);
        // A grid line may lie on it: then no colour is any state's.
        let rows: f64 = column[1]
            .as_object()
            .unwrap()
            .values()
            .filter_map(Value::as_f64)
            .sum();
        assert!(rows > 12.0, "{column}");
        for (state, ns) in known {
            let reported = column[1][&state].as_f64().unwrap_or_default();
            near(reported, ns / unit * 18.0, 1.01);
        }
    }
    page.is_quiet();
}

#[test]
fn tables_sort_and_copy() {
    let recording = Recording::by_chance(2, 20);
    let Some(page) = Page::of(&[&recording], &[]) else {
        return;
    };
    let names = || {
        page.run("return [...document.querySelectorAll('table[data-name=exits-vmexit] tbody tr')].map(row => \
                  row.cells[0].textContent)")
    };
    let order = |at: usize| names()[at].as_str().unwrap().to_owned();
    let head =
        |column: usize| format!("table[data-name=exits-vmexit] th:nth-child({column}) button");
    let sort = |column: usize| {
        let script = format!(
            "return document.querySelector('table[data-name=exits-vmexit] \
             th:nth-child({column})').getAttribute('aria-sort')"
        );
        page.run(&script)
    };
    page.browser.click(&head(2));
    assert_eq!(
        (order(0), order(4)),
        ("IO_INSTRUCTION".to_owned(), HOSTILE.to_owned())
    );
    assert_eq!(sort(2), "descending");
    page.browser.click(&head(2));
    assert_eq!(order(0), HOSTILE);
    assert_eq!(sort(2), "ascending");
    // By keyboard; an empty cell is last in either order.
    page.run(&format!("document.querySelector('{}').focus()", head(4)));
    page.browser.keys(&ENTER.to_string());
    assert_eq!(
        (order(0), order(4)),
        ("HLT".to_owned(), "=cmd|' /C calc'!A0, \"x\"".to_owned())
    );
    assert_eq!(sort(2), Value::Null);
    page.browser.keys(&ENTER.to_string());
    assert_eq!(order(4), "=cmd|' /C calc'!A0, \"x\"");

    let tools = |at: usize| format!("#exits .table-tools button:nth-child({at})");
    page.browser.click(&head(2));
    let text = page.copied(&tools(1));
    assert!(text.starts_with("VM-exits by reason\n\nreason "), "{text}");
    assert!(text.contains("IO_INSTRUCTION"), "{text}");
    assert!(
        text.contains("\n$ trapline exits a.trace.dat --event vmexit\n"),
        "{text}"
    );
    let csv = page.copied(&tools(2));
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "name,count,total_ns,p99_ns,share");
    assert_eq!(lines[1], "IO_INSTRUCTION,12635,310000000,76060,0.4");
    assert!(
        lines.contains(&"\"'=cmd|' /C calc'!A0, \"\"x\"\"\",3,999,,0.0001"),
        "{csv}"
    );
    assert_eq!(
        page.copied(&tools(3)),
        "trapline exits a.trace.dat --event vmexit"
    );
    assert_eq!(
        page.copied("#commands p.command button"),
        "trapline report a.trace.dat -o report.html"
    );
    // A browser that gives no clipboard to a page that is a file: the older way, which leaves nothing behind.
    page.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    let before = page.run("return document.querySelectorAll('*').length");
    assert_eq!(page.copied(&tools(2)), csv);
    assert_eq!(page.run("return trapline.copied.way"), "command");
    assert_eq!(
        page.run("return document.querySelectorAll('*').length"),
        before
    );
    page.is_quiet();
}

/// Where columns are cut off at the side, that shows, and is said.
#[test]
fn a_table_wider_than_the_page_says_so() {
    let recording = Recording::by_chance(2, 50);
    let Some(page) = Page::of(&[&recording], &[]) else {
        return;
    };
    let state = "const box = document.querySelector('#exits .table-box');
        const said = box.previousElementSibling.querySelector('.wider');
        const classes = ['more-left', 'more-right'].map(name => box.classList.contains(name));";
    let reported = |wanted: Value| {
        let state =
            format!("{state} return JSON.stringify([...classes, !said.hidden]) === '{wanted}';");
        page.browser.wait(&state);
    };
    reported(json!([false, false, false]));
    page.run("document.querySelector('#exits .table-box').style.width = '8rem'");
    reported(json!([false, true, true]));
    page.run("document.querySelector('#exits .table-box').scrollLeft = 100000");
    reported(json!([true, false, true]));
}

#[test]
fn a_search_goes_over_everything() {
    let recording = Recording::by_chance(4, 100);
    let Some(page) = Page::of(&[&recording], &[]) else {
        return;
    };
    let found = || page.run("return document.querySelector('.found').textContent");
    let wait = |text: &str| {
        let script = format!(
            "return document.querySelector('.found').textContent === {}",
            json!(text)
        );
        page.browser.wait(&script);
    };
    page.browser.keys("/");
    page.browser.write("io_instr");
    wait("1 hit");
    page.browser.keys(&ENTER.to_string());
    wait("1 of 1 hit");
    assert_eq!(
        page.run("return document.querySelector('.hit-now').cells[1].textContent"),
        "12635"
    );
    page.browser.keys(&ESCAPE.to_string());
    assert_eq!(found(), "");
    assert_eq!(
        page.run("return document.querySelectorAll('.hit, .hit-now').length"),
        0
    );
    // In the timeline: the finding's mark, by what it is called.
    page.browser.keys("/");
    page.browser.write("slowest interrupt");
    wait("1 hit");
    page.browser.keys(&ENTER.to_string());
    let [from, to] = page.view();
    assert!(from < 1e9 && to > 1.067e9 && to - from < 1e9, "{from} {to}");
    page.browser.keys(&ESCAPE.to_string());
    // Exits, a lane's cause and events have this; one after the other and back.
    page.browser.keys("/");
    page.browser.write("HLT");
    page.browser.keys(&ENTER.to_string());
    page.browser
        .wait("return /^1 of .* hits$/.test(document.querySelector('.found').textContent)");
    let count = page.run(
        "return Number(document.querySelector('.found').textContent.match(/of (.*) hits/)[1])",
    );
    assert!(count.as_i64().unwrap() > 10);
    page.browser.keys(&ENTER.to_string());
    wait(&format!("2 of {count} hits"));
    page.browser.keys(&format!("{SHIFT}{ENTER}"));
    wait(&format!("1 of {count} hits"));
    page.browser.keys(&format!("{SHIFT}{ENTER}"));
    wait(&format!("{count} of {count} hits"));
    page.browser.keys(&ESCAPE.to_string());
    page.browser.keys("/");
    page.browser.write("nowhere at all");
    wait("nothing found");
    page.is_quiet();
}

#[test]
fn the_timeline_zooms_by_wheel_mouse_and_keys() {
    let recording = Recording::by_chance(6, 500);
    let Some(page) = Page::of(&[&recording], &[]) else {
        return;
    };
    let length = recording.length as f64;
    let (x, y) = page.middle(".tl-plot");
    let share = page.run(&format!(
        "const box = document.querySelector('.tl-plot').getBoundingClientRect(); return ({x} - box.left) / box.width"
    ));
    let under = |page: &Page| {
        let [from, to] = page.view();
        from + (to - from) * share.as_f64().unwrap()
    };
    // There is nothing to zoom out to, so the lanes or the page scroll.
    let scrolled = || page.run("return window.scrollY").as_f64().unwrap();
    let top = scrolled();
    page.browser.wheel((x, y), (0, 40));
    page.browser.wait(&format!(
        "return document.querySelector('.tl-scroll').scrollTop > 0 || window.scrollY > {top}"
    ));
    assert_eq!(page.view(), [0.0, length]);
    std::thread::sleep(std::time::Duration::from_millis(400));
    let (x, y) = page.middle(".tl-plot");
    let before = under(&page);
    for _ in 0..8 {
        page.browser.wheel((x, y), (0, -200));
    }
    let [from, to] = page.view();
    assert!(to - from < length / 20.0, "{from} {to}");
    // What was under the mouse is there still.
    near(under(&page), before, (to - from) / 500.0);
    page.browser.wheel((x, y), (300, 0));
    let moved = page.view();
    assert!(moved[0] > from);
    near(moved[1] - moved[0], to - from, 1.0);
    page.browser
        .mouse(&[(x, y), (x + 100, y), (x + 200, y)], true);
    assert!(page.view()[0] < moved[0]);
    page.browser.mouse(&[(x, y)], false);
    page.browser
        .wait("return !document.querySelector('.tl-tip').hidden");
    let tip = page.run("return document.querySelector('.tl-tip').textContent");
    assert!(tip.as_str().unwrap().contains(", from 1"), "{tip}");

    page.run("document.querySelector('.tl-plot').focus({preventScroll: true})");
    page.browser.keys("0");
    assert_eq!(page.view(), [0.0, length]);
    page.browser.keys("w");
    page.browser.keys("+");
    near(page.view()[1] - page.view()[0], length / 2.25, 10.0);
    page.browser.keys(&HOME.to_string());
    assert_eq!(page.view()[0], 0.0);
    page.browser.keys("d");
    assert!(page.view()[0] > 0.0);
    page.browser.keys(&END.to_string());
    near(page.view()[1], length, 1e-3);
    page.browser.keys(&LEFT.to_string());
    assert!(page.view()[1] < length);
    page.browser.keys("s");
    page.browser.keys("-");
    page.browser.keys("-");
    assert_eq!(page.view(), [0.0, length]);
    // Marks, in the order of time.
    page.browser.keys("n");
    let mark = page.status();
    assert!(mark.starts_with("Mark "), "{mark}");
    page.browser.keys("n");
    assert_ne!(page.status(), mark);
    page.browser.keys("p");
    assert_eq!(page.status(), mark);
    page.run("document.querySelector('.tl-plot').dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))");
    assert_eq!(page.view(), [0.0, length]);
    page.browser.keys(&ESCAPE.to_string());
    page.browser.keys(&DOWN.to_string());
    for _ in 0..4 {
        page.browser.keys(&DOWN.to_string());
    }
    assert!(page.status().contains("tid-170"), "{}", page.status());
    page.browser.keys(".");
    let stretch = page.status();
    page.browser.keys(".");
    page.browser.keys(",");
    assert_eq!(page.status(), stretch);
    page.browser.keys(&ENTER.to_string());
    let [from, to] = page.view();
    assert!(to - from < length / 50.0);
    page.is_quiet();
}

#[test]
fn the_timeline_zooms_by_two_fingers() {
    let recording = Recording::by_chance(4, 200);
    let Some(page) = Page::of(&[&recording], &["--touch-events=enabled"]) else {
        return;
    };
    let (x, y) = page.middle(".tl-plot");
    page.browser
        .pinch([[(x - 50, y), (x - 200, y)], [(x + 50, y), (x + 200, y)]]);
    let [from, to] = page.view();
    let length = recording.length as f64;
    near(to - from, length / 4.0, length / 20.0);
    assert!(from > 0.0 && to < length);
    page.is_quiet();
}

#[test]
fn ranges_links_and_groups() {
    let (first, second) = (Recording::by_chance(4, 200), Recording::by_chance(2, 50));
    let Some(page) = Page::of(&[&first, &second], &[]) else {
        return;
    };
    page.browser.click("#first-link");
    // A browser reports a new address a while after the click.
    let followed = "return trapline.timelines[0].view.span < 2e8";
    page.browser.wait(followed);
    let begin = BEGIN as f64;
    near(page.view()[0], 101e9 - begin, 1.0);
    near(page.view()[1], 101.1e9 - begin, 1.0);
    assert_eq!(
        page.run(
            "return [...document.querySelectorAll('.tl-row.marked')].map(row => row.dataset.lane)"
        ),
        json!(["tid-1700"])
    );
    let top = page
        .run("return Math.abs(document.querySelector('#timeline').getBoundingClientRect().top)");
    assert!(top.as_f64().unwrap() < 200.0);
    // The same link again, after moving away.
    page.browser.keys("0");
    page.run("document.querySelector('#first-link').click()");
    page.browser.wait(followed);
    near(page.view()[1] - page.view()[0], 1e8, 2.0);
    // As an address, of the second recording, with a lane that is below others; and as an address that changes.
    page.open("#t=110.5,110.6&lane=tid-2700,cpu-1&rec=1");
    let view = page.run("const { from, to } = trapline.timelines[1].view; return [from, to]");
    near(view[0].as_f64().unwrap(), 110.5e9 - begin, 1.0);
    assert_eq!(page.run("return \
                         document.querySelectorAll('.timeline')[1].querySelectorAll('.tl-row.marked').length"), 2);
    assert_eq!(page.view(), [0.0, first.length as f64]);
    page.run("location.hash = '#t=105,106'");
    page.browser
        .wait("return trapline.timelines[0].view.span < 2e9");
    // What is moved writes its place, and its link says the same.
    page.browser.keys("w");
    page.browser
        .wait("return location.hash.startsWith('#t=105.1')");
    let link = page.copied(".tl-tools .tl-link");
    assert!(
        link.starts_with("file://") && link.contains("#t=105.166666,105.833333"),
        "{link}"
    );
    // A range on the ruler, which the tables are of.
    let (x, y) = page.middle(".tl-ruler");
    page.browser
        .mouse(&[(x - 100, y), (x, y), (x + 100, y)], true);
    page.browser.wait(
        "return document.querySelector('table[data-name=timeline-cpus-0] \
                       caption').textContent.includes('selected')",
    );
    let span = page.view()[1] - page.view()[0];
    page.browser.keys("f");
    let width = page.run("return document.querySelector('.tl-plot').clientWidth");
    near(
        page.view()[1] - page.view()[0],
        span * 200.0 / width.as_f64().unwrap(),
        span / 200.0,
    );
    // Folded, a group is one row.
    let lanes =
        "return document.querySelectorAll('.timeline')[0].querySelectorAll('.tl-row.lane').length";
    assert_eq!(page.run(lanes), 10);
    page.browser.click(".tl-row.group[data-group=cpus]");
    assert_eq!(page.run(lanes), 6);
    page.browser.keys(&ENTER.to_string());
    assert_eq!(page.run(lanes), 10);
    page.is_quiet();
}

#[test]
fn names_in_the_page_are_text() {
    let recording = Recording::by_chance(2, 30);
    let Some(page) = Page::of(&[&recording], &[]) else {
        return;
    };
    page.run("trapline.timelines[0].setView(999e6, 1003e6); document.querySelectorAll('details').forEach(one => \
              one.open = true)");
    page.browser.keys("/");
    page.browser.write("</script");
    page.browser
        .wait("return /hits/.test(document.querySelector('.found').textContent)");
    for _ in 0..8 {
        page.browser.keys(&ENTER.to_string());
    }
    let (x, y) = page.middle(".tl-plot");
    page.browser.mouse(&[(x, y), (x + 50, y + 20)], false);
    assert_eq!(
        page.run("return [document.images.length, window.owned ?? null]"),
        json!([0, null])
    );
    let label = page.run("return document.querySelector('.tl-row.lane .soft').textContent");
    assert_eq!(label, HOSTILE);
    page.is_quiet();
}

#[test]
fn a_spoilt_timeline_is_said() {
    let recording = Recording::by_chance(2, 30);
    let Some(page) = Page::of(&[&recording], &[]) else {
        return;
    };
    let text = fs::read_to_string(&page.file).unwrap();
    let at = text.find("class=\"timeline-data\">").unwrap() + 60;
    fs::write(
        &page.file,
        format!("{}AAAA{}", &text[..at], &text[at + 8..]),
    )
    .unwrap();
    page.open("");
    let note = page.run("return document.querySelector('.timeline .note').textContent");
    assert!(
        note.as_str()
            .unwrap()
            .starts_with("The timeline cannot be shown: "),
        "{note}"
    );
}

/// In light and dark: nothing that axe-core finds wrong. With `TRAPLINE_SCREENSHOTS` naming a folder, pictures are put
/// there.
#[test]
fn a_page_can_be_read_by_all() {
    let Some(axe) = axe() else {
        return;
    };
    let recording = Recording::by_chance(6, 300);
    for (name, scheme) in [("dark", "0"), ("light", "1")] {
        let argument = format!("--blink-settings=preferredColorScheme={scheme}");
        let Some(page) = Page::of(&[&recording], &[&argument, "--window-size=1300,1000"]) else {
            return;
        };
        let is_dark = page.run("return matchMedia('(prefers-color-scheme: dark)').matches");
        assert_eq!(is_dark, name == "dark");
        page.browser.keys("/");
        page.browser.write("HLT");
        page.browser.keys(&ENTER.to_string());
        page.run(&axe);
        let found = page.browser.run_async(
            "axe.run(document, arguments[0]).then(found => arguments[1]([found.passes.length, \
             found.violations.map(one =>
                [one.id, one.help, one.nodes.map(node => node.html.slice(0, 200) + ' ' + node.failureSummary)])]))",
            &json!({}),
        );
        assert!(found[0].as_u64().unwrap() > 20, "axe-core looked at little");
        assert_eq!(found[1], json!([]), "{name}: {found:#}");
        if let Some(folder) = std::env::var_os("TRAPLINE_SCREENSHOTS") {
            page.open("#t=101.000,101.100&lane=tid-1700");
            let picture = BASE64_STANDARD.decode(page.browser.screenshot()).unwrap();
            fs::write(
                front("..").join(folder).join(format!("report-{name}.png")),
                picture,
            )
            .unwrap();
        }
        page.is_quiet();
    }
}
