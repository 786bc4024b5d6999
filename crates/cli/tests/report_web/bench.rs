//! How long frames take.

use serde_json::Value;

use super::data::Recording;
use super::page::Page;
use crate::common::note;

/// Zooms in frame by frame from all of a recording to a point of it; ends with how long each frame took to draw, and
/// how long after the one before it came.
pub(crate) const ZOOM: &str = "const done = arguments[arguments.length - 1];
    const timeline = trapline.timelines[0];
    const whole = timeline.data.length;
    const [drawn, frames] = [[], []];
    let at = 0;
    let last = performance.now();
    const step = () => {
        const now = performance.now();
        if (at > 1) { drawn.push(timeline.lastFrameMs); frames.push(now - last); }
        last = now;
        if (at++ === 120) return done([drawn, frames]);
        const span = whole * 0.9 ** at;
        timeline.setView(whole / 3 - span / 3, whole / 3 + span * 2 / 3);
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);";

/// Says how long frames took.
pub(crate) fn reported(times: &Value) -> String {
    let times = times.as_array().unwrap().iter();
    let mut times: Vec<f64> = times.filter_map(Value::as_f64).collect();
    times.sort_by(f64::total_cmp);
    format!(
        "median {:.1} ms, 95 % {:.1} ms, longest {:.1} ms",
        times[times.len() / 2],
        times[times.len() * 95 / 100],
        times[times.len() - 1]
    )
}

/// Frame times with 400,000 cells in 130 lanes: `bench/report-zoom`.
#[test]
#[ignore = "a benchmark"]
fn zooming() {
    let recording = Recording::by_chance(52, 3300);
    let Some(page) = Page::of(&[&recording], &["--window-size=1600,1000"]) else {
        return;
    };
    let cells = page.run(
        "return trapline.timelines[0].data.lanes.reduce((sum, lane) => sum + lane.cells.count, 0)",
    );
    let lanes = recording.lanes.len();
    note(&format!(
        "{cells} cells in {lanes} lanes, zoomed from all of it to {:.0} ns",
        recording.length as f64 * 0.9_f64.powi(120)
    ));
    for (what, height) in [("as it opens", ""), ("all lanes in view", "none")] {
        page.run(&format!(
            "trapline.timelines[0].setView(0, trapline.timelines[0].data.length);
            document.querySelector('.tl-scroll').style.maxHeight = '{height}'"
        ));
        let times = page.browser.run_async(ZOOM, &Value::Null);
        note(&format!("{what}: drawing: {}", reported(&times[0])));
        note(&format!("{what}: frame to frame: {}", reported(&times[1])));
    }
}
