//! `--instance N`: one instance, looked at closely.

use std::ops::ControlFlow;

use analysis::{SharedAnalysis, Study};
use anyhow::{Result, bail};
use event::{Event, EventType, Side, Sink};
use eventtext::EventPrinter;
use model::GuestAccess;
use paths::{CompletedInstance, InstanceReport, Paths};
use render::ClockUnit;
use render::paths_instance;
use session::{DeviceNames, StudySink};
use tracefmt::{FormatCatalog, FormatText};

use super::PairedRecordings;
use crate::answer::Answer;
use crate::commands::paths::args::{Diagram, PathsArgs};
use crate::options::Format;
use crate::output;
use crate::usage::Usage;

/// Events of an instance that are printed; what is beyond is counted.
const MAX_EVENTS: usize = 400;

/// Prints one instance.
pub(super) fn run(
    args: &PathsArgs,
    number: u64,
    together: &PairedRecordings<'_>,
    devices: &DeviceNames,
    follower: Paths,
) -> Result<()> {
    let recording = together.recording;
    let (name, reader) = (recording.name(), recording.reader());
    if args.common.format == Format::Csv {
        return Err(Usage::error(
            "--instance is a text or JSON; '--each --format csv' has a row for each instance",
        ));
    }
    let mut question = recording.question(together.paired);
    let paths = question.share(follower);
    paths.get_mut().list_alone();
    let (answered, mut find) = question.walk_by(|study| InstanceSearch {
        study,
        paths: paths.clone(),
        number,
        found: None,
        seen: 0,
    });
    let Some(found) = find.found.take() else {
        bail!(
            "{name}: has no instance {number} of this path; {} completed",
            find.seen
        );
    };
    let paths = paths.get();
    let machine = answered.walked().machine;
    let names = devices.names(paths.isa());
    let name_access = |access: &GuestAccess| analysis::name_access(access, &names);
    let instance = paths.describe(&found, machine, &name_access);
    let diagram = match args.diagram {
        Diagram::Text => paths_instance::text_diagram(&instance, recording.nanoseconds()),
        Diagram::Mermaid => paths_instance::mermaid(&instance, recording.nanoseconds()),
    };
    let none = FormatCatalog::default();
    let formats = reader.formats().unwrap_or(&none);
    let mut lines = Lines::new(
        session::event_printer(reader, Some(recording), formats, reader.is_perf(), false),
        &instance,
    );
    recording.hand_saved_names(&mut lines);
    reader.walk(&mut lines);
    let quality = &answered.quality;
    let answer = Answer {
        format: args.common.format,
        command: "paths",
        inputs: &together.names,
        quality,
        clock: ClockUnit::of(recording.nanoseconds()),
    };
    let nanoseconds = recording.nanoseconds();
    answer.print(
        || {
            let mut text = paths_instance::steps(&instance, nanoseconds, output::width());
            text.push('\n');
            text.push_str(&diagram);
            text.push_str("\nits events (* reaches a step):\n");
            text.push_str(&lines.text());
            text.push('\n');
            text.push_str(&output::quality(&together.names.join(", "), quality));
            text
        },
        || paths_instance::document(&instance, &diagram, lines.texts()),
        // Refused above.
        |_| String::new(),
    )
}

/// Follows paths until the instance has completed.
struct InstanceSearch {
    study: Study,
    paths: SharedAnalysis<Paths>,
    number: u64,
    found: Option<CompletedInstance>,
    seen: u64,
}

impl InstanceSearch {
    fn take(&mut self) {
        for one in self.paths.get_mut().take_listed() {
            self.seen = self.seen.max(one.number);
            if one.number == self.number {
                self.found = Some(one);
            }
        }
    }
}

impl StudySink for InstanceSearch {
    fn study(&mut self) -> &mut Study {
        &mut self.study
    }

    fn ended(&mut self) {
        if self.found.is_none() {
            self.take();
        }
    }

    fn handed_on_all(&self) -> bool {
        self.found.is_none()
    }
}

impl Sink for InstanceSearch {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.study.wants(ty)
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        // The walk goes on to the end, so that what is said of the quality is true of the whole recording.
        if self.found.is_some() {
            return ControlFlow::Continue(());
        }
        let flow = self.study.event(event);
        self.take();
        flow
    }

    fn side(&mut self, side: &Side<'_>) {
        self.study.side(side);
    }

    fn side_of(&mut self, machine: u16, side: &Side<'_>) {
        self.study.side_of(machine, side);
    }
}

/// Prints the events of the threads that take part, from the first step to the last.
struct Lines<'f, 't> {
    printer: EventPrinter<'f>,
    instance: &'t InstanceReport,
    tids: Vec<i32>,
    from: u64,
    to: u64,
    out: Vec<(bool, Vec<u8>)>,
    more: u64,
    /// The line that is being put together.
    line: FormatText,
}

impl<'f, 't> Lines<'f, 't> {
    fn new(printer: EventPrinter<'f>, instance: &'t InstanceReport) -> Lines<'f, 't> {
        let mut tids: Vec<i32> = instance.steps.iter().map(|step| step.tid).collect();
        tids.extend(instance.vcpu_tid);
        tids.retain(|tid| *tid > 0);
        tids.sort_unstable();
        tids.dedup();
        Lines {
            printer,
            instance,
            tids,
            from: instance.steps.first().map_or(0, |step| step.time),
            to: instance.steps.last().map_or(0, |step| step.time),
            out: Vec::new(),
            more: 0,
            line: FormatText::new(),
        }
    }

    /// The events, one a line; those that reach a step begin with a star.
    fn text(&self) -> String {
        let mut out = String::new();
        for (step, line) in &self.out {
            out.push_str(if *step { "* " } else { "  " });
            out.push_str(&String::from_utf8_lossy(line));
        }
        if self.more > 0 {
            out.push_str(&format!(
                "  ... and {} events that reach no step\n",
                self.more
            ));
        }
        out
    }

    fn texts(&self) -> Vec<String> {
        let lines = self.out.iter();
        lines
            .map(|(_, line)| String::from_utf8_lossy(line).trim_end().to_owned())
            .collect()
    }
}

impl Sink for Lines<'_, '_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.printer.declare(ty);
        true
    }

    fn wants_samples(&self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if event.time > self.to {
            return ControlFlow::Break(());
        }
        if event.time < self.from {
            return ControlFlow::Continue(());
        }
        let step = self.instance.steps.iter().any(|step| {
            step.machine.is_none()
                && step.time == event.time
                && step.cpu == event.cpu
                && step.tid == event.tid
        });
        if !step && !self.tids.contains(&event.tid) {
            return ControlFlow::Continue(());
        }
        // However many there are, those that reach steps are shown.
        if !step && self.out.len() >= MAX_EVENTS {
            self.more += 1;
            return ControlFlow::Continue(());
        }
        self.printer.event(event, &mut self.line);
        self.out.push((step, self.line.as_bytes().to_vec()));
        self.line.clear();
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        self.printer.side(side, &mut self.line);
        self.line.clear();
    }
}
