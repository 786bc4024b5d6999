//! The timeline: a place for the script to draw in, and the data that it draws.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use miniz_oxide::deflate::compress_to_vec;

use crate::Recording;
use crate::out::PageWriter;

/// How hard the data is packed: 6 takes twice the time and gains a tenth.
const LEVEL: u8 = 3;

/// Writes the section.
pub(crate) fn section(recording: &Recording<'_>, out: &mut PageWriter) {
    match recording.timeline.as_deref() {
        Some(json) => element(json, out),
        None if recording.is_printed() => {
            out.nothing("Tables have sums without times, so there is nothing to draw.");
        }
        None => out.nothing("This page was made without a timeline."),
    }
}

/// Writes the element with its data: JSON, deflated without a header, in base64.
fn element(json: &str, out: &mut PageWriter) {
    let packed = BASE64_STANDARD.encode(compress_to_vec(json.as_bytes(), LEVEL));
    let _ = writeln!(
        out.html,
        "<div class=\"timeline\" data-recording=\"{}\">\n<script type=\"application/octet-stream\" \
         class=\"timeline-data\">{packed}</script>\n<noscript>The timeline is drawn by the page's script, which does \
         not run here. All numbers stand in the tables.</noscript>\n</div>",
        out.recording
    );
}
