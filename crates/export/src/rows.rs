//! Tables for spreadsheets, a row for each thing that is found.

use std::sync::Arc;

use model::{GuestAccess, RetiredThreads};
use render::ClockUnit;
use render::exit_list;
use render::paths_instance::Instances;
use render::spans;

use crate::known::{Devices, FirstWalk};
use crate::lines::LineMaker;
use crate::walk::{ExportFile, ExportedThing, Scene};

/// Spans of the vCPUs' states.
#[derive(Debug)]
pub struct SpanRows {
    made: Vec<u8>,
    line: String,
    spans: spans::Spans,
    lines: LineMaker,
    /// Rows are parts of spans, in each of which the guest did one thing.
    guests: bool,
}

impl SpanRows {
    /// Returns rows whose times count this.
    pub fn new(clock: ClockUnit) -> SpanRows {
        SpanRows::of(spans::Spans::new(clock), false)
    }

    /// Returns rows that say what guests did, too: a row for each part of a span in which the guest did one thing.
    pub fn with_guests(clock: ClockUnit) -> SpanRows {
        SpanRows::of(spans::Spans::with_guests(clock), true)
    }

    fn of(spans: spans::Spans, guests: bool) -> SpanRows {
        SpanRows {
            made: spans.csv_head().into_bytes(),
            line: String::new(),
            spans,
            lines: LineMaker::default(),
            guests,
        }
    }
}

impl ExportFile for SpanRows {
    fn take(&mut self, found: &ExportedThing<'_>, scene: &Scene<'_>) {
        if let Some(line) = self.lines.span(found, self.guests, scene) {
            self.line.clear();
            self.spans.put_csv(&line, &mut self.line);
            self.made.extend_from_slice(self.line.as_bytes());
        }
    }

    fn retire(&mut self, retired: &RetiredThreads) {
        self.lines.retire(retired);
    }

    fn finish(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn made(&mut self) -> &mut Vec<u8> {
        &mut self.made
    }
}

/// Exits, as `exits` counts them by reason.
#[derive(Debug)]
pub struct ExitRows {
    made: Vec<u8>,
    line: String,
    exits: exit_list::ExitList,
    lines: LineMaker,
}

impl ExitRows {
    /// Returns rows whose times count this.
    pub fn new(clock: ClockUnit) -> ExitRows {
        let exits = exit_list::ExitList::new(clock);
        ExitRows {
            made: exits.csv_head().into_bytes(),
            line: String::new(),
            exits,
            lines: LineMaker::default(),
        }
    }
}

impl ExportFile for ExitRows {
    fn take(&mut self, found: &ExportedThing<'_>, scene: &Scene<'_>) {
        if let Some(line) = self.lines.exit(found, scene) {
            self.line.clear();
            self.exits.put_csv(&line, &mut self.line);
            self.made.extend_from_slice(self.line.as_bytes());
        }
    }

    fn retire(&mut self, retired: &RetiredThreads) {
        self.lines.retire(retired);
    }

    fn finish(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn made(&mut self) -> &mut Vec<u8> {
        &mut self.made
    }
}

/// Instances of paths.
#[derive(Debug)]
pub struct InstanceRows {
    made: Vec<u8>,
    instances: Instances,
    words: paths::RecentWords,
    devices: std::cell::RefCell<Devices>,
}

impl InstanceRows {
    /// Returns rows whose times count this.
    pub fn new(clock: ClockUnit) -> InstanceRows {
        let instances = Instances::new(clock);
        InstanceRows {
            made: instances.csv_head().into_bytes(),
            instances,
            words: paths::RecentWords::default(),
            devices: std::cell::RefCell::default(),
        }
    }
}

/// Calls a function with what names the device behind an access.
pub(crate) fn with_names<R>(
    scene: &Scene<'_>,
    devices: &std::cell::RefCell<Devices>,
    call: impl FnOnce(paths::AccessNamer<'_>) -> R,
) -> R {
    let known: &FirstWalk<'_> = scene.known;
    call(&|access: &GuestAccess| {
        let cause = model::Cause {
            reason: None,
            access: Some(*access),
        };
        let name: Option<Arc<str>> = devices.borrow_mut().name(&cause, known);
        name.map(|name| name.to_string())
    })
}

impl ExportFile for InstanceRows {
    fn take(&mut self, found: &ExportedThing<'_>, scene: &Scene<'_>) {
        if let ExportedThing::Instance(one) = found
            && let Some(paths) = scene.paths
        {
            let describe = |names: paths::AccessNamer<'_>| {
                paths.describe_among(one, scene.machine, names, &mut self.words)
            };
            let reported = with_names(scene, &self.devices, describe);
            self.made
                .extend_from_slice(self.instances.csv(&reported).as_bytes());
        }
    }

    fn retire(&mut self, _: &RetiredThreads) {}

    fn finish(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn made(&mut self) -> &mut Vec<u8> {
        &mut self.made
    }
}
