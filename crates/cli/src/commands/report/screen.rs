//! The text about one input: one screen, ten lines, or all that there is.

use analysis::{ExitTable, Origin};
use render::diagnose::CauseList;
use render::parts::PARTS;
use render::screen::{self, Line, ScreenInput};
use render::{Layout, cost, diagnose, exits, info, paths, perf_stat, quality, sched, vcpus};

use session::TicketFile;

use super::part::Part;
use crate::output;

/// Returns what stands above the screens of a text's parts.
pub(super) fn of_ticket(file: &TicketFile, parts: &[Part]) -> Vec<Line> {
    let inputs = parts.iter().filter(|part| part.is_of(file));
    let inputs: Vec<ScreenInput<'_>> = inputs.map(|part| part.input("")).collect();
    let gravest = inputs
        .iter()
        .filter(|input| screen::gravity(input).is_some());
    // Of several that are as grave the first.
    let gravest = gravest.rev().max_by_key(|input| screen::gravity(input));
    screen::ticket(file.name(), file.ticket(), gravest, output::width())
}

impl Part {
    fn input<'a>(&'a self, more: &'a str) -> ScreenInput<'a> {
        ScreenInput {
            name: &self.name,
            more,
            filters: self.invocation.filters(),
            head: &self.head,
            picture: &self.picture,
            diagnosis: &self.diagnosis,
        }
    }

    /// Returns the recording's screen, which can be coloured. Among several its title stands above it.
    pub(super) fn screen(&self, several: bool) -> Vec<Line> {
        let width = output::width();
        let screen = screen::screen(&self.input(&self.more()), width);
        let title = several.then(|| screen::title(&self.title, width));
        title.into_iter().flatten().chain(screen).collect()
    }

    /// Returns the sentence that counts most.
    pub(super) fn headline(&self) -> String {
        screen::headline(&self.input(""))
    }

    /// Returns the command that shows all that there is.
    fn more(&self) -> String {
        self.invocation.command("report", "--full")
    }

    /// Returns ten lines of plain text.
    pub(super) fn brief(&self) -> String {
        screen::brief(&self.input(&self.more()))
    }

    /// Returns a page of all rows.
    pub(super) fn text(&self) -> String {
        let picture = &self.picture;
        let printed = picture.origin == Origin::Printed;
        let mut out = self.head(printed);
        out.push('\n');
        out.push_str(&diagnose::text(
            &self.diagnosis,
            CauseList::Named,
            output::width(),
        ));
        out.push('\n');
        if picture.info.has_exits || !picture.exits.is_empty() && printed {
            out.push_str(&self.vcpus());
            out.push_str(&self.exits());
        } else if !printed {
            out.push_str(&info::counts(&picture.info, usize::MAX));
            out.push('\n');
        }
        if let Some(report) = &picture.sched {
            out.push_str(&sched::table(report, self.layout()));
            out.push('\n');
        }
        for part in PARTS
            .iter()
            .filter(|part| (part.document)(picture).is_some())
        {
            out.push_str(&(part.text)(picture, self.layout()));
            out.push('\n');
        }
        out.push_str(&self.guest_paths());
        if !picture.counts.is_empty() {
            let counts = analysis::ratios(picture);
            out.push_str(&perf_stat::table(
                &counts,
                picture.counted_by,
                picture.counted_ns,
                self.layout(),
            ));
            out.push('\n');
        }
        let quality = output::quality(&self.name, &picture.quality);
        out.push_str(&quality);
        for sentence in analysis::recording_cost(picture)
            .iter()
            .flat_map(cost::sentences)
        {
            quality::wrap(&mut out, "cost: ", &sentence, output::width());
        }
        out
    }

    fn layout(&self) -> Layout {
        output::layout(usize::MAX, self.head.nanoseconds)
    }

    fn head(&self, printed: bool) -> String {
        let mut out = format!("{}\n", self.name);
        if printed {
            let label = format!("{:<10}", "format");
            quality::wrap(&mut out, &label, &self.head.format, output::width());
        } else {
            let info = &self.picture.info;
            out.push_str(&info::summary(&self.head, info, output::width()));
            out.push_str(&info::guests(&self.guests, output::width()));
        }
        out
    }

    fn vcpus(&self) -> String {
        let Some(report) = &self.picture.vcpus else {
            return String::new();
        };
        vcpus::table(report, false, usize::MAX, self.layout()) + "\n"
    }

    /// Returns tables of the paths through guests that were found.
    fn guest_paths(&self) -> String {
        let paths = self.picture.guest_paths.iter();
        let mut found = paths
            .filter(|path| path.count > 0 || !path.dropped.is_empty())
            .peekable();
        match found.peek() {
            Some(_) => paths::table(found, self.layout()) + "\n",
            None => String::new(),
        }
    }

    fn exits(&self) -> String {
        let mut out = String::new();
        for report in &self.picture.exits {
            // What happened always shows; a kind of access that did not is not news.
            if report.table != ExitTable::Vmexit && report.rows.is_empty() {
                continue;
            }
            let layout = self.layout();
            out.push_str(&exits::table(self.picture.isa, report, false, layout));
            out.push_str(&exits::split(report, layout));
            out.push('\n');
        }
        out
    }
}
