//! The text about one input: one screen, or all that there is.

use analysis::{ExitTable, Origin};
use render::{Layout, diagnose, exits, info, perf_stat, quality, sched, vcpus};

use super::part::Part;
use crate::output;

/// Rows of the table of exits, and of the other tables, that one screen has room for.
const ROWS: usize = 6;
const ACCESS_ROWS: usize = 3;
const VCPU_ROWS: usize = 8;
const TASK_ROWS: usize = 3;
/// Findings that one screen has room for.
const FINDINGS: usize = 3;
/// Kinds of events that one screen has room for.
const KINDS: usize = 10;

impl Part {
    /// Returns the recording's screen; with `whole`, a page of all rows.
    pub(super) fn text(&self, whole: bool) -> String {
        let picture = &self.picture;
        let printed = picture.origin == Origin::Printed;
        let mut out = self.head(printed);
        out.push('\n');
        out.push_str(&self.findings(whole));
        if picture.info.has_exits || !picture.exits.is_empty() && printed {
            out.push_str(&self.vcpus(whole));
            out.push_str(&self.exits(whole));
        } else if !printed {
            let kinds = if whole { usize::MAX } else { KINDS };
            out.push_str(&info::counts(&picture.info, kinds));
            out.push('\n');
        }
        out.push_str(&self.sched(whole));
        if !picture.counts.is_empty() {
            let counts = analysis::ratios(picture);
            out.push_str(&perf_stat::table(
                &counts,
                picture.counted_ns,
                self.layout(usize::MAX),
            ));
            out.push('\n');
        }
        let quality = output::quality(&self.name, &picture.quality);
        out.push_str(&quality);
        out
    }

    fn layout(&self, limit: usize) -> Layout {
        output::layout(limit, self.head.nanoseconds)
    }

    fn head(&self, printed: bool) -> String {
        let mut out = format!("{}\n", self.name);
        if printed {
            let label = format!("{:<10}", "format");
            quality::wrap(&mut out, &label, &self.head.format, output::width());
        } else {
            let info = &self.picture.info;
            out.push_str(&info::summary(&self.head, info, output::width()));
        }
        out
    }

    fn findings(&self, whole: bool) -> String {
        if whole {
            diagnose::text(&self.diagnosis, output::width()) + "\n"
        } else if self.diagnosis.findings.is_empty() {
            String::new()
        } else {
            diagnose::summary(&self.diagnosis, FINDINGS, output::width()) + "\n"
        }
    }

    fn vcpus(&self, whole: bool) -> String {
        let Some(report) = &self.picture.vcpus else {
            return String::new();
        };
        if whole {
            return vcpus::table(report, false, self.layout(usize::MAX)) + "\n";
        }
        let unknowable = report.unknowable();
        let mut out = vcpus::summary(report, &unknowable, false, self.layout(VCPU_ROWS));
        if !unknowable.is_empty() {
            out.push_str("-: not known; 'trapline vcpus' says which events are missing\n");
        }
        out + "\n"
    }

    fn exits(&self, whole: bool) -> String {
        let mut out = String::new();
        for report in &self.picture.exits {
            let first = report.table == ExitTable::Vmexit;
            // What happened always shows; a kind of access that did not is not news.
            if !first && report.rows.is_empty() {
                continue;
            }
            let layout = self.layout(match (whole, first) {
                (true, _) => usize::MAX,
                (false, true) => ROWS,
                (false, false) => ACCESS_ROWS,
            });
            out.push_str(&exits::table(self.picture.isa, report, false, layout));
            if whole {
                out.push_str(&exits::split(report, layout));
            }
            out.push('\n');
        }
        out
    }

    fn sched(&self, whole: bool) -> String {
        let Some(report) = &self.picture.sched else {
            return String::new();
        };
        if whole {
            return sched::table(report, self.layout(usize::MAX)) + "\n";
        }
        let limit = if self.picture.info.has_exits {
            TASK_ROWS
        } else {
            ROWS
        };
        sched::summary(report, self.layout(limit)) + "\n"
    }
}
