//! A press on a number of a table leads to its events: by a command that prints them, and on the timeline.

use serde_json::{Value, json};

use super::{OPEN, Opened};
use crate::common::Failures;
use crate::common::page::shell;
use crate::common::shipped;

/// Presses a cell of the first row of a table, and returns what then stands below it.
const PRESS: &str = "const [name, column] = arguments[0];
    const table = document.querySelector(`table[data-name='${name}']`);
    const at = [...table.tHead.rows[0].cells].findIndex(head => head.dataset.column === column);
    const cell = table.tBodies[0].rows[0].cells[at];
    cell.click();
    const line = table.parentElement.nextElementSibling;
    arguments[1]({
        cell: cell.textContent.trim(),
        exact: cell.dataset.v,
        command: line.querySelector('code')?.textContent ?? '',
        buttons: [...line.querySelectorAll('button')].map(button => button.textContent),
    })";

#[test]
fn numbers_lead_to_their_events() {
    let Some(page) = Opened::new("1") else {
        return;
    };
    let mut failures = Failures::default();
    let browser = &page.browser;
    browser.run(OPEN);
    let folder = shipped().join("..");
    let folder = folder.display().to_string();
    for (table, column) in [
        ("exits-vmexit", "count"),
        ("exits-vmexit", "max_ns"),
        ("exits-ioport", "total_ns"),
        ("vcpus", "runnable_ns"),
        ("sched-tasks", "delay_max_ns"),
        ("path-irqfd", "max_ns"),
        ("irqs", "accepted"),
    ] {
        let found = browser.run_async(PRESS, &json!([table, column]));
        let command = found["command"].as_str().unwrap_or_default();
        failures.check(command.starts_with("trapline explain "), || {
            format!("{table} {column}: {found}")
        });
        if command.is_empty() {
            continue;
        }
        // It is given in the folder in which the page was made.
        let command = command.replace(" corpus/", &format!(" {folder}/corpus/"));
        let explained = shell(&command, "--json --limit 1");
        failures.check(explained.status == 0, || {
            format!("{command}: {}", explained.stderr)
        });
        let document = explained.json().unwrap_or(Value::Null);
        let explained = &document["explained"];
        let number = match explained["value_ns"].is_null() {
            true => &explained["count"],
            false => &explained["value_ns"],
        };
        failures.equal(
            &command,
            &number.to_string().as_str(),
            &found["exact"].as_str().unwrap_or_default(),
        );
        let buttons = found["buttons"].to_string();
        let leads = buttons.contains("on timeline") || table == "irqs";
        failures.check(leads, || format!("{table} {column}: {buttons}"));
    }
    // The same by keys: Enter asks, an arrow leads to the next number.
    let keys = "const table = document.querySelector(\"table[data-name='exits-vmexit']\");
        const first = table.querySelector('td[tabindex]');
        first.focus();
        const press = key => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        press('ArrowDown');
        const next = document.activeElement;
        press('Enter');
        return [
            next !== first && next.cellIndex === first.cellIndex && next.classList.contains('asked'),
            table.querySelectorAll('td[tabindex]').length,
        ];";
    failures.equal("by keys", &browser.run(keys), &json!([true, 1]));
    // The button goes to the moment.
    let before = browser.run("return trapline.timelines[0].view.span");
    browser.run_async(PRESS, &json!(["sched-tasks", "delay_max_ns"]));
    browser.run("document.querySelector(\"table[data-name='sched-tasks']\").parentElement.nextElementSibling
        .querySelector('button:not(.copy)').click()");
    let after = browser.run("return trapline.timelines[0].view.span");
    failures.check(after.as_f64() < before.as_f64(), || {
        format!("{before} {after}")
    });
    failures.equal("complaints", &browser.complaints(), &Vec::new());
    failures.finish(7 * 4);
}
