//! `--each`: every instance, as it completes.

use std::io::IsTerminal;
use std::ops::ControlFlow;

use analysis::{SharedAnalysis, Study};
use anyhow::Result;
use event::{Event, EventType, Side, Sink};
use model::GuestAccess;
use paths::{CompletedInstance, Paths, RecentWords};
use render::ClockUnit;
use render::paths as render_paths;
use render::paths_instance::Instances;
use session::{DeviceNames, StudySink};

use super::PairedRecordings;
use crate::answer::Answer;
use crate::commands::paths::args::PathsArgs;
use crate::options::Format;
use crate::output;
use crate::stream::Stream;

/// Prints every instance.
pub(super) fn run(
    args: &PathsArgs,
    together: &PairedRecordings<'_>,
    devices: &DeviceNames,
    follower: &dyn Fn() -> Paths,
) -> Result<()> {
    let format = args.common.format;
    let clock = ClockUnit::of(together.recording.nanoseconds());
    let mut start = String::new();
    let mut isa = None;
    match format {
        Format::Table => {}
        Format::Csv => start.push_str(&Instances::new(clock).csv_head()),
        Format::Json => {
            // Quality stands first in every document and is known last: the recording is walked twice.
            let mut question = together.recording.question(together.paired);
            let paths = question.add(follower());
            let answered = question.walk();
            isa = answered.take(paths).isa();
            let answer = Answer {
                format,
                command: "paths",
                inputs: &together.names,
                quality: &answered.quality,
                clock,
            };
            start.push_str(&answer.up_to("instances"));
        }
    }
    let mut question = together.recording.question(together.paired);
    let paths = question.share(follower());
    paths.get_mut().list_alone();
    let make = |study| InstancePrinter {
        study,
        paths,
        devices,
        names: None,
        isa,
        format,
        clock,
        width: std::io::stdout().is_terminal().then(output::width),
        stream: Stream::new(&start),
        rows: Instances::new(clock),
        words: RecentWords::default(),
    };
    let (answered, mut each) = question.walk_by(make);
    if format == Format::Json {
        each.stream.text("\n  ]\n}\n");
    }
    each.stream.end()?;
    let (names, quality) = (together.names.join(", "), &answered.quality);
    match format {
        Format::Table | Format::Csv => output::say_doubts(&names, quality),
        Format::Json => Ok(()),
    }
}

/// Prints instances during the walk.
struct InstancePrinter<'d> {
    study: Study,
    paths: SharedAnalysis<Paths>,
    devices: &'d DeviceNames,
    names: Option<devices::AddressNames>,
    isa: Option<event::Isa>,
    format: Format,
    clock: ClockUnit,
    /// A terminal's; elsewhere an instance is a line.
    width: Option<usize>,
    stream: Stream<'static>,
    rows: Instances,
    words: RecentWords,
}

impl InstancePrinter<'_> {
    /// Appends the instances that have completed.
    fn take(&mut self) {
        let listed = self.paths.get_mut().take_listed();
        if listed.is_empty() {
            return;
        }
        let isa = self.paths.get().isa();
        if self.names.is_none() || self.isa != isa {
            self.isa = isa;
            self.names = Some(self.devices.names(isa));
            self.words = RecentWords::default();
        }
        for one in &listed {
            self.row(one);
        }
    }

    fn row(&mut self, one: &CompletedInstance) {
        let Some(names) = &self.names else {
            return;
        };
        let paths = self.paths.get();
        let machine = self.study.walked().machine;
        let name_access = |access: &GuestAccess| analysis::name_access(access, names);
        let instance = paths.describe_among(one, machine, &name_access, &mut self.words);
        let nanoseconds = self.clock.is_nanoseconds();
        match self.format {
            Format::Table => self.stream.text(&match self.width {
                Some(width) => render_paths::each_lines(&instance, nanoseconds, width),
                None => render_paths::each_line(&instance, nanoseconds),
            }),
            Format::Csv => self.stream.text(&self.rows.csv(&instance)),
            Format::Json => self.stream.item(self.rows.json(&instance), self.clock),
        }
    }
}

impl StudySink for InstancePrinter<'_> {
    fn study(&mut self) -> &mut Study {
        &mut self.study
    }

    fn ended(&mut self) {
        self.take();
    }
}

impl Sink for InstancePrinter<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.study.wants(ty)
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let flow = self.study.event(event);
        self.take();
        self.stream.flow()?;
        flow
    }

    fn side(&mut self, side: &Side<'_>) {
        self.study.side(side);
    }

    fn side_of(&mut self, machine: u16, side: &Side<'_>) {
        self.study.side_of(machine, side);
    }
}
