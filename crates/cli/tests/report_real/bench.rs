//! How large a page of 64 VMs is, how soon it is there, and how long frames take as it is zoomed.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::fits::many_vms;
use super::{open_page, write_page};
use crate::common::browser::Browser;
use crate::common::note;
use crate::report_web::bench::{ZOOM, reported};

/// How often it is opened; once before does not count.
const TIMES: usize = 7;

/// A page of 64 VMs of two vCPUs each: `bench/report-zoom`, or of the recording that `TRAPLINE_WIDE` names.
#[test]
#[ignore = "a benchmark"]
fn many_vms_open_and_zoom() {
    let Some(browser) = Browser::start_with(&["--window-size=1600,1000"]) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let given = std::env::var_os("TRAPLINE_WIDE").map(PathBuf::from);
    let Some(wide) = given.or_else(|| many_vms(folder.path())) else {
        return;
    };
    let page = folder.path().join("report.html");
    write_page(&page, [wide]);
    let size = fs::metadata(&page).expect("a page").len();
    open_page(&browser, &page, "");
    let open = || {
        open_page(&browser, &page, "");
        browser.run("return trapline.readyMs")
    };
    let opened: Vec<Value> = (0..TIMES).map(|_| open()).collect();
    let lanes = browser.run("return trapline.timelines[0].data.lanes.length");
    note(&format!("64 VMs of 2 vCPUs, {lanes} lanes: {size} bytes"));
    note(&format!(
        "64 VMs: opening: {}",
        reported(&Value::Array(opened))
    ));
    for (what, prepare) in [
        ("as it opens", ""),
        (
            "all VMs unfolded, all lanes in view",
            "[...document.querySelectorAll('.tl-tools button')].find(one => one.textContent === 'Unfold VMs').click();
            document.querySelector('.tl-scroll').style.maxHeight = 'none';",
        ),
    ] {
        browser.run(&format!(
            "{prepare} trapline.timelines[0].setView(0, trapline.timelines[0].data.length)"
        ));
        let times = browser.run_async(ZOOM, &Value::Null);
        note(&format!("64 VMs, {what}: drawing: {}", reported(&times[0])));
        note(&format!(
            "64 VMs, {what}: frame to frame: {}",
            reported(&times[1])
        ));
    }
}
