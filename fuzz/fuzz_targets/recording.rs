//! Any recording, wrapped or not, from bytes to lines and tables.
#![no_main]

use std::hint::black_box;
use std::ops::ControlFlow;

use analysis::{Exits, Info, Merge, Picture, Sched, Signs, Sleeps, Slices, Study, Vcpus, Window};
use event::{Event, EventType, Quality, Side, Sink};
use libfuzzer_sys::fuzz_target;
use paths::Paths;
use eventtext::{EventPrinter, PerfPrinter, PerfStyle, TextStyle, Times};
use source::{Reader, ReaderOptions, Recording};
use tracefmt::Formats;

/// Prints and counts in one pass.
struct All<'f> {
    printer: EventPrinter<'f>,
    out: Vec<u8>,
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

fn printer<'f>(reader: &'f Reader<'_>, formats: &'f Formats) -> EventPrinter<'f> {
    let header = reader.header();
    let times = Times {
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
    let Ok(recording) = Recording::from_bytes("input", data.to_vec()) else {
        return;
    };
    let options = ReaderOptions {
        lent: None,
        symbols: true,
    };
    let Ok(reader) = recording.reader(options) else {
        return;
    };
    let none = Formats::default();
    let formats = reader.formats().unwrap_or(&none);
    let mut all = All {
        printer: printer(&reader, formats),
        out: Vec::new(),
        study: Study::default()
            .info(Info::new())
            .exits(Exits::default())
            .vcpus(Vcpus::new(Window::default()))
            .sched(Sched::new())
            .paths(Paths::new(paths::all_builtin()))
            .sleeps(Sleeps::new())
            .signs(Signs::new())
            .slices(Slices::new()),
    };
    black_box(reader.walk(&mut all));
    let mut study = all.study;
    study.finish();
    if let Some(vcpus) = study.vcpus_report() {
        for row in &vcpus.rows {
            assert_eq!(row.times.total(), row.to - row.from);
        }
    }
    let names = |isa, _: &mut Quality| analysis::builtin_names(isa);
    let picture = Picture::of(&mut study, Quality::default(), None, &|_| None, &names);
    let case = rules::Case {
        picture: &picture,
        facts: None,
        domain: None,
    };
    black_box(rules::diagnose(&[case]));
    let machine = study.machine.as_ref();
    black_box(study.exits.as_ref().map(|exits| (exits.reports(machine), exits.unpaired())));
    black_box(study.info.as_ref().map(Info::report));
    let sched = study.sched.as_ref();
    black_box(sched.map(|sched| sched.report(Merge::ByComm, &|_, _| true, &|_| None)));
});
