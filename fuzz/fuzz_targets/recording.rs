//! Any recording, wrapped or not, from bytes to lines and tables.
#![no_main]

use std::hint::black_box;
use std::ops::ControlFlow;

use analysis::{Exits, Info, Merge, Picture, Sched, Signs, Sleeps, Slices, Study, Vcpus, Window};
use event::{Event, EventType, Quality, Side, Sink};
use libfuzzer_sys::fuzz_target;
use paths::Paths;
use eventtext::{EventPrinter, PerfPrinter, PerfStyle, TextStyle, TimeColumns};
use source::{RecordingReader, ReaderOptions, RecordingBytes};
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

    fn wants_samples(&self) -> bool {
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

fuzz_target!(|data: &[u8]| {
    let Ok(recording) = RecordingBytes::from_bytes("input", data.to_vec()) else {
        return;
    };
    let options = ReaderOptions {
        lent: None,
        symbols: true,
        threads: 2,
        // Half of them as a guest's recording is read beside its host's.
        own_clock: !data.len().is_multiple_of(2),
    };
    let Ok(reader) = recording.reader(options) else {
        return;
    };
    let none = FormatCatalog::default();
    let formats = reader.formats().unwrap_or(&none);
    let mut all = All {
        printer: printer(&reader, formats),
        out: FormatText::default(),
        study: Study::default()
            .with(Info::new())
            .with(Exits::default())
            .with(Vcpus::new(Window::default()))
            .with(Sched::new())
            .with(Paths::new(paths::all_builtin()))
            .with(Sleeps::new())
            .with(Signs::new())
            .slices(Slices::new()),
    };
    black_box(reader.walk(&mut all));
    let mut study = all.study;
    study.finish();
    let walked = study.walked();
    let machine = walked.machine;
    if let Some(vcpus) = study.get::<Vcpus>() {
        for row in &vcpus.report(&walked).rows {
            assert_eq!(row.times.total(), row.to - row.from);
        }
    }
    black_box(study.get::<Exits>().map(|exits| (exits.reports(machine), exits.unpaired())));
    black_box(study.get::<Info>().map(|info| info.report(&walked)));
    black_box(study.get::<Sched>().map(|sched| {
        sched.report(machine.threads(), Merge::ByComm, &|_, _| true, KernelFunctions::default())
    }));
    let names = |isa, _: &mut Quality| analysis::builtin_names(isa);
    let picture = Picture::of(&mut study, Quality::default(), None, KernelFunctions::default(), &names);
    let case = rules::Case {
        picture: &picture,
        facts: None,
        domain: None,
    };
    black_box(rules::diagnose(&[case]));
});
