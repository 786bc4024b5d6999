//! A page in a browser.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::data::{Recording, write};
use crate::common::browser::Browser;

/// A page that is open.
pub(super) struct Page {
    pub browser: Browser,
    pub file: PathBuf,
    _folder: TempDir,
}

impl Page {
    /// Opens a page with the timelines of recordings. Nothing where there is no browser.
    pub(super) fn of(recordings: &[&Recording], arguments: &[&str]) -> Option<Page> {
        let browser = Browser::start_with(arguments)?;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.html");
        write(&file, recordings);
        let page = Page {
            browser,
            file,
            _folder: folder,
        };
        page.open("");
        Some(page)
    }

    /// Opens it again, at a fragment.
    pub(super) fn open(&self, fragment: &str) {
        // Else only the fragment changes, and nothing is loaded.
        self.browser.run("location.replace('about:blank')");
        self.browser.open_at(&self.file, fragment);
        self.browser
            .wait("return window.trapline !== undefined && trapline.ready");
        // One that draws, and one that has come to rest.
        self.browser
            .wait("return trapline.timelines.every(one => one.frames > 0)");
    }

    /// Runs a script, and returns what it returns.
    pub(super) fn run(&self, script: &str) -> Value {
        self.browser.run(script)
    }

    /// Returns what shows, relative to the recording's begin.
    pub(super) fn view(&self) -> [f64; 2] {
        let view = self.run("const { from, to } = trapline.timelines[0].view; return [from, to]");
        [view[0].as_f64().unwrap(), view[1].as_f64().unwrap()]
    }

    /// Returns where the middle of an element is in the window, after it was scrolled to.
    pub(super) fn middle(&self, selector: &str) -> (i64, i64) {
        let script = "const element = document.querySelector(SELECTOR); element.scrollIntoView({block: 'center'});
            const box = element.getBoundingClientRect();
            return [Math.round(box.left + box.width / 2), Math.round(box.top + Math.min(box.height / 2, 200))]";
        let at = self.run(&script.replace("SELECTOR", &json!(selector).to_string()));
        (at[0].as_i64().unwrap(), at[1].as_i64().unwrap())
    }

    /// Returns what is said above the picture.
    pub(super) fn status(&self) -> String {
        let status = self.run("return document.querySelector('.tl-status').textContent");
        status.as_str().unwrap().to_owned()
    }

    /// Presses a button, and returns what it copied.
    pub(super) fn copied(&self, selector: &str) -> String {
        self.run("trapline.copied.text = ''");
        self.run(&format!(
            "document.querySelector({}).scrollIntoView({{block: 'center'}})",
            json!(selector)
        ));
        self.browser.click(selector);
        self.browser.wait("return trapline.copied.text !== ''");
        let text = self.run("return trapline.copied.text");
        text.as_str().unwrap().to_owned()
    }

    /// Nothing was said on the console, and nothing asked for.
    pub(super) fn is_quiet(&self) {
        assert_eq!(self.browser.complaints(), Vec::<String>::new());
    }
}

/// Two numbers are as good as the same.
pub(super) fn near(a: f64, b: f64, within: f64) {
    assert!((a - b).abs() <= within, "{a} and {b}");
}

/// Sums are those that are known.
pub(super) fn same(reported: &Value, known: &BTreeMap<String, f64>) {
    let reported = reported.as_object().unwrap();
    assert_eq!(
        reported.keys().collect::<Vec<_>>().len(),
        known.len(),
        "{reported:?} {known:?}"
    );
    for (state, ns) in known {
        near(reported[state].as_f64().unwrap(), *ns, 0.01);
    }
}
