//! From the sentence at the top to the moment on the timeline to the stages of what happened there, in three clicks,
//! for the recordings that the guides of `docs/guide` are about.

use serde_json::{Value, json};

use super::{open_page, write_page};
use crate::common::Failures;
use crate::common::browser::Browser;

/// What shows the stages of a moment at the end.
#[derive(Clone, Copy)]
enum ShownStages {
    /// The steps of an instance of a path, which its link shows at once.
    Path(&'static str),
    /// Single events of an exit, which a button shows.
    Exit(&'static str),
    /// A stretch of a thread's lane, which is clicked on.
    Lane(&'static str),
}

/// The guides with the recordings of their pages: slow pings, IPIs in a VM, a slow Windows guest, a slower twin, virtio
/// or vhost.
const GUIDES: [(&[&str], ShownStages); 5] = [
    (
        &["corpus/x86/console-sick/perf.data.zst"],
        ShownStages::Path("device-irq"),
    ),
    (
        &["corpus/x86/ipi-default/trace-cmd.pingpong.txt.gz"],
        ShownStages::Path("ipi"),
    ),
    (
        &["corpus/x86/clocksource-acpi_pm/loop/perf.data.guest.zst"],
        ShownStages::Exit("0x608:PIN"),
    ),
    (
        &[
            "--kallsyms",
            "corpus/host/kallsyms.txt",
            "corpus/host/sender-waits/perf.data.zst",
        ],
        ShownStages::Lane("tid-21596"),
    ),
    (
        &["corpus/arm64/virtio-mmio/boot1/trace.dat.zst"],
        ShownStages::Path("kick"),
    ),
];

/// Whether an element is within the window, at least its first lines.
const IN_SIGHT: &str = "const element = document.querySelector(SELECTOR);
    if (!element) return false;
    const box = element.getBoundingClientRect();
    const head = document.querySelector('body > header').getBoundingClientRect();
    return box.height > 0 && box.top >= Math.min(head.bottom, 120) - 2 && box.top + Math.min(box.height, 60) <= innerHeight";

/// The steps that are listed: their names, and the time from the first to the last.
const STEPS: &str = "const table = document.querySelector('.tl-stages table');
    const rows = [...table?.tBodies[0].rows ?? []];
    return [rows.map(row => row.cells[1].textContent), Number(rows.at(-1)?.cells[5].dataset.v)]";

/// The length of what shows.
const SHOWN: &str = "const { from, to } = trapline.timelines[0].view; return Math.round(to - from)";

#[test]
fn a_moment_s_stages_are_three_clicks_away() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("report.html");
    let mut failures = Failures::default();
    browser.resize(1280, 800);
    for (arguments, stages) in GUIDES {
        let name = arguments.last().copied().unwrap_or_default();
        write_page(&page, arguments);
        open_page(&browser, &page, "");
        let mut sees = |what: &str, selector: &str| {
            let script = IN_SIGHT.replace("SELECTOR", &json!(selector).to_string());
            let seen = (0..40).any(|_| {
                let seen = browser.run(&script) == true;
                if !seen {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
                seen
            });
            failures.check(seen, || format!("{name}: {what} is not in sight"));
        };
        sees("the first sentence", ".first-findings a");
        browser.click(".first-findings a");
        sees("the finding", "#finding-1 h3");
        match stages {
            ShownStages::Path(path) => {
                browser.click(&format!("#finding-1 a[href*='&path={path}']"));
                sees("the timeline", ".tl-canvas");
                sees("its stages", ".tl-stages table");
                let steps = browser.run(STEPS);
                let names = steps[0].as_array().map_or(0, Vec::len);
                failures.check(names > 2, || format!("{name}: {steps}"));
                // The instance fills what shows, but for some room.
                let shown = browser.run(SHOWN).as_f64().unwrap_or_default();
                let part = steps[1].as_f64().unwrap_or_default() / shown;
                failures.check((0.8..1.0).contains(&part), || {
                    format!("{name}: {part} of what shows")
                });
                let hops = browser.run("return trapline.timelines[0].focus.instance.steps.length");
                failures.equal(name, &hops.as_u64(), &Some(names as u64));
            }
            ShownStages::Exit(key) => {
                browser.click(&format!("#finding-1 button[aria-label*='{key}']"));
                sees("the timeline", ".tl-canvas");
                let status = browser.run("return document.querySelector('.tl-status').textContent");
                failures.check(
                    status.as_str().is_some_and(|status| status.contains(key)),
                    || format!("{name}: {status}"),
                );
                browser.run("trapline.timelines[0].settled()");
                let events = "const table = document.querySelector('table[data-name=timeline-events-0]');
                    const seen = table.getClientRects().length > 0;
                    return seen ? [...table.tBodies[0].rows].map(row => row.cells[4].textContent) : []";
                let events = browser.run(events);
                let has = |event: &str| {
                    events
                        .as_array()
                        .is_some_and(|all| all.iter().any(|one| one == event))
                };
                failures.check(has("kvm_exit") && has("kvm_entry"), || {
                    format!("{name}: {events}")
                });
            }
            ShownStages::Lane(lane) => {
                browser.click(&format!("#finding-1 a[href*='lane={lane}']"));
                sees("the timeline", ".tl-canvas");
                let place = "const [lane, plot] = ['.tl-row.lane.marked', '.tl-plot']
                        .map(one => document.querySelector(one).getBoundingClientRect());
                    return [Math.round(plot.left + plot.width / 3), Math.round(lane.top + lane.height / 2)]";
                let place = browser.run(place);
                let at = |number: usize| place[number].as_i64().unwrap_or_default();
                browser.mouse(&[(at(0), at(1))], true);
                let status = browser.run("return document.querySelector('.tl-status').textContent");
                let says = |status: &Value| {
                    status
                        .as_str()
                        .is_some_and(|status| status.contains("iperf"))
                };
                failures.check(says(&status), || format!("{name}: {status}"));
            }
        }
        failures.equal(name, &browser.complaints(), &Vec::new());
    }
    failures.finish(5 * 5);
}
