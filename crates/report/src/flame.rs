//! Flame graphs.

use analysis::ProfileOf;
use render::Layout;
use render::flame;
use render::flame_picture::{FlamePicture, Graph};
use stacks::LayoutBounds;

use crate::Recording;
use crate::out::PageWriter;

/// What all flame graphs of a page take at most, in bytes.
const BYTES: usize = 1 << 20;

/// Boxes of all flame graphs, the levels of each, and the share of a whole that is drawn at least: a page shows less
/// than a picture of its own, which `trapline flame -o` writes.
const BOXES: usize = 8_000;
const LEVELS: u32 = 200;
const PARTS: u64 = 12_000;

/// Writes the section. `graphs` is how many the page has in all.
pub(crate) fn section(recording: &Recording<'_>, out: &mut PageWriter) {
    if recording.flames.is_empty() {
        out.nothing(match recording.is_printed() {
            true => "Printed tables have no stacks.",
            false if recording.is_filtered() => "Of what passes the filters, nothing has a stack.",
            false => {
                "There are no samples with stacks and no switches with stacks. Record both with \
                 'trapline record --for stacks'."
            }
        });
        return;
    }
    let graphs = out.flames.max(1);
    for one in &recording.flames {
        let report = one.report;
        let (title, own) = match report.of {
            ProfileOf::OffCpu => ("What threads waited for without a CPU", "--off-cpu"),
            _ => ("What CPUs did", ""),
        };
        out.heading(title);
        let layout = Layout {
            nanoseconds: flame::is_time(report),
            ..recording.layout()
        };
        let mut notes = flame::headline(report, layout);
        notes.extend_from_slice(&one.notes);
        let picture = FlamePicture {
            title,
            notes: &[],
            graph: Graph::Stacks(&report.stacks),
            nanoseconds: flame::is_time(report),
        };
        let bounds = LayoutBounds {
            parts: PARTS,
            boxes: BOXES / graphs,
            name_bytes: BYTES / 4 / graphs,
            levels: LEVELS,
        };
        let drawn = picture.draw_at_most(bounds, BYTES / graphs);
        out.list(&notes);
        out.markup("<figure class=\"flames\">\n");
        out.markup(&drawn.element());
        out.markup("</figure>\n");
        let command = recording.invocation.command_with(one.guests, "flame", own);
        out.command(title, &command);
    }
}
