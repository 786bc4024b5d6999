//! The timeline in a browser: points of paths, and lanes by VM.

use serde_json::json;

use super::ESCAPE;
use super::data::Recording;
use super::page::{Page, near};

/// Slow instances are points of their own: gone through by keys and by buttons, shown beside the cursor, and counted in
/// the table of what is shown.
#[test]
fn slow_instances_are_gone_through() {
    let recording = Recording::by_chance(4, 100);
    let Some(page) = Page::of(&[&recording], &[]) else {
        return;
    };
    page.run("document.querySelector('.tl-plot').focus({preventScroll: true})");
    page.browser.keys("j");
    assert!(
        page.status()
            .starts_with("Slow instance 1 of 1: irq: a slow instance"),
        "{}",
        page.status()
    );
    // What the pointer would show stands beside the cursor, within the picture.
    page.browser
        .wait("return !document.querySelector('.tl-tip').hidden");
    let tip = page.run("return document.querySelector('.tl-tip').textContent");
    assert!(
        tip.as_str().unwrap().starts_with("irq: a slow instance"),
        "{tip}"
    );
    let inside = "const tip = document.querySelector('.tl-tip').getBoundingClientRect();
        const box = document.querySelector('.tl-frame').getBoundingClientRect();
        return tip.left >= box.left && tip.right <= box.right && tip.top >= box.top";
    assert_eq!(page.run(inside), true);
    let [from, to] = page.view();
    assert!(from < 5e8 && to > 5.02e8 && to - from < 1e8, "{from} {to}");
    page.browser.keys("j");
    assert_eq!(page.status(), "This was the last slow instance");
    page.browser
        .click("button[aria-label='Previous slow instance']");
    assert_eq!(page.status(), "This was the first slow instance");
    page.run("document.querySelector('.tl-plot').focus({preventScroll: true})");
    page.browser.keys(&ESCAPE.to_string());
    page.browser
        .wait("return document.querySelector('.tl-tip').hidden");
    let row = |[from, to]: [f64; 2]| {
        page.run(&format!(
            "trapline.timelines[0].setView({from}, {to}); trapline.timelines[0].settled()"
        ));
        page.run(
            "const table = document.querySelector('table[data-name=timeline-paths-0]');
            const [, from, to] = /: (\\S+) to (\\S+),/.exec(table.caption.textContent);
            if (!table.dataset.command.endsWith(` --time ${from},${to}`)) return table.dataset.command;
            return [...table.tBodies[0].rows[0].cells].map(cell => cell.textContent)",
        )
    };
    assert_eq!(
        row([0.0, recording.length as f64]),
        json!(["irq", "2", "1", "1.500ms", "2.000ms"])
    );
    assert_eq!(
        row([3e9, 4e9]),
        json!(["irq", "1", "0", "1.500ms", "1.000us"])
    );
    page.is_quiet();
}

/// Lanes stand below their VM, which folds them; names are whole however narrow the window is, and time that was not
/// recorded is hatched.
#[test]
fn lanes_of_a_vm_are_named_whole() {
    let recording = Recording::by_chance(4, 40);
    for width in ["--window-size=1280,900", "--window-size=500,900"] {
        let Some(page) = Page::of(&[&recording], &[width, "--force-device-scale-factor=1"]) else {
            return;
        };
        let lanes = "return [...document.querySelectorAll('.tl-row.lane .name')].map(name => name.textContent)";
        let all = page.run(lanes);
        assert_eq!(all.as_array().unwrap().len(), 10, "{all}");
        assert_eq!(all[0], "lane tid-1700");
        let cut = "return [...document.querySelectorAll('.tl-row')]
            .filter(row => row.scrollWidth > row.clientWidth + 1 || row.scrollHeight > row.clientHeight + 1)
            .map(row => row.textContent)";
        assert_eq!(page.run(cut), json!([]), "{width}");
        // Names stand beside what they name.
        let beside = "const timeline = trapline.timelines[0];
            const labels = [...document.querySelectorAll('.tl-labels .tl-row')];
            return labels.map((label, at) => Math.abs(label.offsetTop - labels[0].offsetTop - timeline.rows[at].top))
                .every(away => away < 1.5)";
        assert_eq!(page.run(beside), true, "{width}");
        page.browser.click(".tl-row.group[data-group='vm:a']");
        assert_eq!(
            page.run(lanes),
            json!(["lane cpu-0", "lane cpu-1", "lane cpu-2", "lane cpu-3"])
        );
        page.browser.click(".tl-row.group[data-group='vm:a']");
        assert_eq!(page.run(lanes), all);
        page.is_quiet();
    }
}

/// What lies between stretches was not recorded, and is drawn so.
#[test]
fn what_was_not_recorded_is_hatched() {
    let recording = Recording::by_chance(4, 400);
    let Some(page) = Page::of(&[&recording], &["--force-device-scale-factor=1"]) else {
        return;
    };
    // The longest gap of the first lane, with its time around it.
    let script = "const timeline = trapline.timelines[0];
        const { begin, end, count } = timeline.data.lanes[0].cells;
        let [from, to] = [0, 0];
        for (let i = 1; i < count; i++) if (begin[i] - end[i - 1] > to - from) [from, to] = [end[i - 1], begin[i]];
        timeline.setView(from - (to - from), to + (to - from));
        timeline.draw();
        const canvas = document.querySelector('.tl-canvas');
        const row = timeline.rows.find(row => row.type === 'lane');
        const image = canvas.getContext('2d').getImageData(0, row.top + 3, canvas.width, 8);
        const pixels = new Uint32Array(image.data.buffer);
        const hatch = new Set(timeline.colours.left.tile);
        const isLeft = (part) => {
            const seen = new Set();
            for (let at = 0; at < 64; at++) {
                seen.add(pixels[(at >> 3) * canvas.width + Math.round(canvas.width * part) + (at & 7)]);
            }
            return seen.size === hatch.size && [...seen].every(colour => hatch.has(colour));
        };
        return [to - from, isLeft(0.42), isLeft(0.9)]";
    page.run("document.querySelector('.timeline').scrollIntoView()");
    let drawn = page.run(script);
    assert!(drawn[0].as_f64().unwrap() > 1e6, "{drawn}");
    assert_eq!((&drawn[1], &drawn[2]), (&json!(true), &json!(false)));
    page.is_quiet();
}

/// Of an instance that is chosen: who woke whom, as arrows and in words. All others have none meanwhile.
#[test]
fn wake_ups_are_of_what_is_chosen() {
    let recording = Recording::by_chance(4, 100);
    let Some(page) = Page::of(&[&recording], &[]) else {
        return;
    };
    let shown = "const { wakes } = trapline.timelines[0].focus;
        return [wakes.map(wake => [wake.waker, wake.wakee, wake.ran - wake.time]),
        [...document.querySelectorAll('.tl-focus li')].map(line => line.textContent)]";
    assert_eq!(page.run(shown), json!([[], []]));
    page.run("document.querySelector('.tl-plot').focus({preventScroll: true})");
    // The marks before it are those of an instance without a name and of a finding.
    page.browser.keys("nn");
    assert_eq!(page.run(shown), json!([[], []]));
    page.browser.keys("n");
    let text = "lane tid-1700 (thread 1700) was woken at 103.500733242 by lane tid-2700 (thread 2700); it ran 500ns \
        later on CPU 3";
    assert_eq!(page.run(shown), json!([[[2700, 1700, 500]], [text]]));
    assert!(page.status().ends_with(text), "{}", page.status());
    page.browser.keys(&ESCAPE.to_string());
    assert_eq!(page.run(shown), json!([[], []]));
    page.is_quiet();
}

/// A click on a stretch in which a vCPU waited says who had its CPU meanwhile, and that adds up to the wait.
#[test]
fn one_click_says_who_ran_while_a_vcpu_waited() {
    let recording = Recording::by_chance(4, 100);
    let Some(page) = Page::of(&[&recording], &["--window-size=1280,1000"]) else {
        return;
    };
    let find = "const timeline = trapline.timelines[0];
        const { data } = timeline;
        const { begin, end, kind } = data.lanes[0].cells;
        const at = kind.findIndex(kind => kind >= 0 && data.kinds[kind].id === 'runnable');
        timeline.setView(begin[at], end[at]);
        document.querySelector('.tl-scroll').scrollIntoView({ block: 'center' });
        const row = document.querySelector('.tl-row.lane').getBoundingClientRect();
        const plot = document.querySelector('.tl-plot').getBoundingClientRect();
        return [end[at] - begin[at], Math.round(plot.left + plot.width / 2), Math.round(row.top + 8)]";
    let found = page.run(find);
    let place = (found[1].as_i64().unwrap(), found[2].as_i64().unwrap());
    page.browser.mouse(&[place], true);
    page.browser
        .wait("return document.querySelector('.tl-focus table') !== null");
    let table = "const table = document.querySelector('.tl-focus table');
        const rows = [...table.tBodies[0].rows];
        const sum = rows.reduce((sum, row) => sum + Number(row.cells[1].dataset.v), 0);
        return [sum, rows.length, table.caption.textContent]";
    let shown = page.run(table);
    let (sum, rows) = (shown[0].as_f64().unwrap(), shown[1].as_f64().unwrap());
    near(sum, found[0].as_f64().unwrap(), rows);
    assert!(rows > 1.0, "{shown}");
    let caption = shown[2].as_str().unwrap();
    assert!(
        caption.starts_with("Who ran on CPU 3 while lane tid-1700 waited"),
        "{caption}"
    );
    page.is_quiet();
}
