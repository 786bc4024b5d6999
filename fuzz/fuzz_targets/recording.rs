//! Any recording, wrapped or not, from bytes to lines and tables.
#![no_main]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use analysis::{
    Continuity, Counters, Exits, Faults, Ipis, Irqs, Handling, Moves, NestedExits, VmmSleeps, MainLoops, IdleWakeups, Picture, PictureContext, PictureHandles,
    Progress, Recorder, RecordingContents, SchedLatencies, Signs, Sleeps, Slices, Stalls, Study,
    Timers, Unmaps, Vcpus, Window,
};
use event::{Event, EventType, Side, Sink};
use eventtext::{EventPrinter, PerfPrinter, PerfStyle, TextStyle, TimeColumns};
use libfuzzer_sys::fuzz_target;
use paths::{Paths, lang::PathDefinition};
use source::{ReaderOptions, RecordingBytes, RecordingReader};
use symbols::KernelFunctions;
use tracefmt::{FormatCatalog, FormatText};

/// Prints and counts in one pass.
struct All<'f> {
    printer: EventPrinter<'f>,
    out: FormatText,
    study: Study,
}

impl Sink for All<'_> {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        self.printer.declare(ty);
        self.study.wants(ty);
        true
    }

    fn wants_samples(&self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.out.clear();
        self.printer.event(event, &mut self.out);
        self.study.event(event)
    }

    fn side(&mut self, side: &Side<'_>) {
        self.printer.side(side, &mut self.out);
        self.study.side(side);
    }
}

fn printer<'f>(reader: &'f RecordingReader<'_>, formats: &'f FormatCatalog) -> EventPrinter<'f> {
    let header = reader.header();
    let times = TimeColumns {
        seconds: header.seconds,
        ns: header.nine_digits,
    };
    if reader.formats().is_none() {
        return EventPrinter::text(formats, TextStyle::Perf, times);
    }
    if !reader.is_perf() {
        return EventPrinter::trace_cmd(formats, times, &header.buffers);
    }
    let style = PerfStyle {
        tracepoint_addresses: true,
        addresses: true,
        ..PerfStyle::default()
    };
    EventPrinter::perf(formats, PerfPrinter::new(&style))
}

/// To read the built-in paths takes longer than most recordings.
static BUILTIN_PATHS: OnceLock<Vec<PathDefinition>> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let Ok(recording) = RecordingBytes::from_bytes("input", data.to_vec()) else {
        return;
    };
    let options = ReaderOptions {
        lent: None,
        symbols: true,
        // To begin a thread takes longer than most recordings, so one in eight has a second.
        threads: if data.len() % 16 < 2 { 2 } else { 1 },
        // Half of them as a guest's recording is read beside its host's.
        own_clock: !data.len().is_multiple_of(2),
    };
    let Ok(reader) = recording.reader(options) else {
        return;
    };
    let none = FormatCatalog::default();
    let formats = reader.formats().unwrap_or(&none);
    let mut follower = Paths::new(BUILTIN_PATHS.get_or_init(paths::all_builtin).clone());
    let ipis = Ipis::new(&mut follower);
    let mut study = Study::default().slices(Slices::new());
    let handles = PictureHandles {
        info: study.add(RecordingContents::new()),
        exits: study.add(Exits::default()),
        vcpus: study.add(Vcpus::new(Window::default())),
        sched: study.add(SchedLatencies::new()),
        sleeps: study.add(Sleeps::new()),
        signs: study.add(Signs::new()),
        faults: study.add(Faults::new()),
        timers: study.add(Timers::new()),
        handling: study.add(Handling::new()),
        moves: study.add(Moves::new()),
        progress: study.add(Progress::new()),
        unmaps: study.add(Unmaps::new()),
        nested: study.add(NestedExits::new()),
        vmm_sleeps: study.add(VmmSleeps::new()),
        main_loops: study.add(MainLoops::new()),
        idle: study.add(IdleWakeups::new()),
        stalls: study.add(Stalls::new()),
        recorder: study.add(Recorder::new(false, Window::default())),
        ipis: study.add(ipis),
        irqs: Some(study.add(Irqs::new())),
        counters: Some(study.add(Counters::new(Window::default()))),
        paths: Some(study.add(follower)),
        continuity: Some(study.add(Continuity::new())),
        timeline: None,
        guests: None,
    };
    let mut all = All {
        printer: printer(&reader, formats),
        out: FormatText::default(),
        study,
    };
    black_box(reader.walk(&mut all));
    let mut study = all.study;
    let mut answers = study.finish();
    let context = PictureContext {
        keep: None,
        functions: KernelFunctions::default(),
        names: &|isa| analysis::builtin_names(isa),
    };
    let picture = Picture::of(handles, &mut answers, &study.walked(), context);
    for row in picture.vcpus.iter().flat_map(|report| &report.rows) {
        assert_eq!(row.times.total(), row.to - row.from);
    }
    let case = rules::Case {
        picture: &picture,
        facts: None,
        domain: None,
    };
    black_box(rules::diagnose(&[case]));
});
