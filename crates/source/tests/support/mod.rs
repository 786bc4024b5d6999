//! Reads bytes as the commands read recordings, and holds them to what has to be true of any input.

#![allow(dead_code, reason = "each test uses a part")]

mod exports;
pub(crate) mod meter;
pub(crate) mod pictures;
pub(crate) mod seeds;
pub(crate) mod trim_dat;
pub(crate) mod trim_perf;

use std::ops::ControlFlow;

use analysis::{
    Convention, ExitOptions, ExitRow, ExitTable, Exits, Merge, Picture, Profile, ProfileBy,
    ProfileOf, ProfileOptions, RecordingContents, RowSplit, SchedLatencies, Slices, Study, Vcpus,
    Window,
};
use event::{Event, EventType, Side, Sink};
use eventtext::{EventPrinter, PerfPrinter, PerfStyle, TextStyle, TimeColumns};
use paths::Paths;
use render::ClockUnit;
use render::clock_unit::ClockedDocument;
use source::{ReaderOptions, RecordingBytes, RecordingReader};
use symbols::{KernelFile, KernelFunctions};
use tracefmt::{FormatCatalog, FormatText};

/// What reading any input may hold at most, beside [`PER_BYTE`].
///
/// What it is made of, at its largest: the merge of perf.data holds 48 MiB of decompressed records and an
/// index of as many megabytes for runs and records; zstd streams in perf.data and trace.dat have windows of
/// 8 MiB; printing perf's lines keeps tables of threads, files and mappings that end at some tens of MiB.
pub(crate) const CONSTANT: usize = 128 << 20;
/// A wrapped input may ask for a window of 128 MiB more, as `zstd --long` writes it and `zstd -d` takes it.
pub(crate) const WRAPPED: usize = 160 << 20;
/// For each byte of the (unpacked) input. Tables built from the input grow with it: the shortest option,
/// list entry, field or row takes up some bytes of the input, and becomes a structure with strings of its
/// own, in vectors and hash tables that double when they are full.
pub(crate) const PER_BYTE: usize = 256;

/// Largest number of bytes that one byte of zstd becomes: a block of 4 bytes can stand for 128 KiB.
const ZSTD_RATIO: usize = 32 << 10;

/// What is read of one input.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Whether it was taken for a recording.
    pub recording: bool,
    pub events: u64,
    /// Bytes of lines.
    pub printed: u64,
}

/// Reads everything that can be read of the bytes, and prints it. `other` prints in the style of the other
/// tool where that is possible.
pub(crate) fn read(bytes: &[u8], other: bool) -> Seen {
    let mut seen = Seen::default();
    let mut unpacked = bytes.len();
    let wrapped = bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let input = bytes.to_vec();
    let most = meter::peak(|| {
        let recording = match RecordingBytes::from_bytes("input", input) {
            Ok(recording) => recording,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
        };
        unpacked = recording.bytes().len().max(bytes.len());
        let options = ReaderOptions {
            symbols: true,
            // The meter counts what one thread holds.
            threads: 1,
            ..ReaderOptions::default()
        };
        match recording.reader(options) {
            Ok(reader) => {
                seen.recording = true;
                print(&reader, other, &mut seen);
                // Something that differs from input to input.
                let sum = bytes.iter().map(|byte| usize::from(*byte)).sum();
                analyse(&reader, sum);
                exports::exports(&reader, sum);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    });
    let bound = if wrapped { WRAPPED } else { 0 } + CONSTANT + PER_BYTE * unpacked;
    assert!(
        most <= bound,
        "{most} bytes of memory for an input of {} ({unpacked} unpacked), {bound} are allowed",
        bytes.len()
    );
    let records = unpacked.saturating_mul(ZSTD_RATIO) / 8;
    assert!(
        seen.events <= records as u64,
        "{} events out of {unpacked} bytes",
        seen.events
    );
    seen
}

/// Prints the events as `trapline events` does.
fn print(reader: &RecordingReader<'_>, other: bool, seen: &mut Seen) {
    let none = FormatCatalog::default();
    let formats = reader.formats().unwrap_or(&none);
    let mut sink = Lines {
        printer: printer(reader, formats, other),
        out: FormatText::new(),
        seen,
    };
    let _ = reader.walk(&mut sink);
    sink.flush();
}

fn printer<'f>(
    reader: &'f RecordingReader<'_>,
    formats: &'f FormatCatalog,
    other: bool,
) -> EventPrinter<'f> {
    let header = reader.header();
    let times = TimeColumns {
        seconds: header.seconds,
        ns: header.nine_digits,
    };
    let perf = reader.is_perf() != other;
    if reader.formats().is_none() {
        let style = if perf {
            TextStyle::Perf
        } else {
            TextStyle::TraceCmd
        };
        return EventPrinter::text(formats, style, times);
    }
    if !perf {
        return EventPrinter::trace_cmd(formats, times, &header.buffers);
    }
    let mut style = PerfStyle::default();
    if let Some(perf) = reader.perf_data() {
        style.tracepoint_addresses = perf.attrs().iter().any(|a| a.has_callchain());
        style.addresses = true;
        style.pipe = perf.is_pipe();
        let kernel = perf.info().build_ids.iter().filter(|id| id.kernel);
        style.kernel_files = kernel
            .map(|id| KernelFile {
                path: &id.path,
                guest: id.guest,
            })
            .collect();
    }
    EventPrinter::perf(formats, PerfPrinter::new(&style))
}

/// Prints, and counts what was printed.
struct Lines<'f, 's> {
    printer: EventPrinter<'f>,
    out: FormatText,
    seen: &'s mut Seen,
}

impl Lines<'_, '_> {
    fn flush(&mut self) {
        self.seen.printed += self.out.len() as u64;
        self.out.clear();
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
        self.printer.event(event, &mut self.out);
        self.seen.events += 1;
        if self.out.len() >= 64 << 10 {
            self.flush();
        }
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        self.printer.side(side, &mut self.out);
    }
}

/// Profiles the first event sampled, and one of the others: switches as an event if their stacks were, waits, both,
/// where guests exited.
fn profile(reader: &RecordingReader<'_>, which: usize) {
    let of = |of, wakers| ProfileOptions {
        of,
        wakers,
        ..ProfileOptions::default()
    };
    let switches = ProfileOptions {
        event: Some("sched:sched_switch".to_owned()),
        by: ProfileBy::Cpu,
        ..ProfileOptions::default()
    };
    let others = [
        switches,
        of(ProfileOf::OffCpu, true),
        of(ProfileOf::Both, false),
        of(ProfileOf::Exits, false),
    ];
    let other = others.into_iter().nth(which % 4).expect("one of four");
    for options in [of(ProfileOf::OnCpu, false), other] {
        let on_cpu = options.of == ProfileOf::OnCpu;
        let mut study = Study::default();
        let profile = study.add(Profile::new(options, &[]));
        reader.walk(&mut study);
        let profile = study.finish().take(profile);
        let walked = study.walked();
        let mut beside = analysis::ProfileContext {
            namer: analysis::FunctionNamer::default(),
            keep: &|_, _| true,
            guests: &[],
            guest_ns: &[],
        };
        let report = profile.report(&walked, beside, &mut ());
        let mut sum = report.shown();
        // Whatever the recording says, every sample is shown or counted.
        assert_eq!(report.stacks.tree().totals()[0], sum);
        if on_cpu {
            sum.add(report.idle);
            assert_eq!(sum, report.samples);
        }
        let mut folded = 0;
        stacks::folded(&report.stacks, 1 << 16, |line| {
            assert!(!line.contains('\n') && line.len() < 1 << 17);
            folded += 1;
        });
        let nodes = report.stacks.tree().nodes();
        assert!(folded <= nodes.len());
        let layout = render::Layout {
            width: 80,
            limit: 20,
            nanoseconds: true,
        };
        assert!(!render::flame::table(&report, layout).is_empty());
        // Its own stacks in the place of its guests'.
        let mut side = profile.guest_side(&walked, analysis::FunctionNamer::default(), &mut ());
        side.vcpus = profile.vcpu_threads(&walked.machine.vms(), walked.machine);
        let sides = [&side];
        beside.guests = &sides;
        let spliced = profile.report(&walked, beside, &mut ());
        assert_eq!(spliced.shown(), report.shown());
        assert_eq!(spliced.stacks.tree().totals()[0], report.shown());
    }
}

/// Asks every question at once, and prints what was found.
fn analyse(reader: &RecordingReader<'_>, which: usize) {
    profile(reader, which);
    let mut study = Study::default().slices(Slices::new());
    let info = study.add(RecordingContents::new());
    let exits = study.add(Exits::new(ExitOptions {
        split: true,
        ..ExitOptions::default()
    }));
    let vcpus = study.add(Vcpus::new(Window::default()));
    let sched = study.add(SchedLatencies::new());
    let paths = study.add(Paths::new(paths::all_builtin()));
    let mut whole = Study::default().slices(Slices::new());
    let (handles, _) = pictures::ask(&mut whole, Paths::new(paths::all_builtin()));
    let mut perf = Study::default();
    let as_perf = perf.add(Exits::new(ExitOptions {
        tables: Vec::new(),
        convention: Convention::Perf,
        by: RowSplit {
            vm: true,
            vcpu: true,
            ..RowSplit::default()
        },
        split: false,
        ..ExitOptions::default()
    }));
    if let Some(formats) = reader.formats() {
        let names = formats
            .cmdlines
            .iter()
            .map(|(tid, name)| (*tid, name.as_str()));
        study.saved_names(names.clone());
        whole.saved_names(names.clone());
        perf.saved_names(names);
    }
    let outcome = reader.walk(&mut study);
    reader.walk(&mut whole);
    reader.walk(&mut perf);
    let (answers, of_perf, mut of_whole) = (study.finish(), perf.finish(), whole.finish());
    let walked = study.walked();
    let mut text = String::new();
    let layout = render::Layout {
        width: 80,
        limit: usize::MAX,
        nanoseconds: true,
    };
    let exits = [answers.take(exits), of_perf.take(as_perf)];
    for (exits, study) in exits.iter().zip([&study, &perf]) {
        let reports = exits.reports(study.walked().machine);
        for report in &reports {
            text.push_str(&render::exits::table(exits.isa(), report, true, layout));
            text.push_str(&render::exits::split(report, layout));
            text.push_str(&render::perf_kvm::table(report, None));
            let counts = report.rows.iter().map(|row| row.count()).sum::<u64>();
            assert_eq!(counts, report.total_count);
            // Either exits and entries were recorded, and what is counted is timed, or not. Reads of memory are timed
            // between other events.
            let reads = |row: &&ExitRow| report.table == ExitTable::Mmio && !row.write;
            let others = report.rows.iter().filter(|row| !reads(row));
            let untimed = others.clone().any(|row| row.untimed > 0);
            assert!(!untimed || others.clone().all(|row| row.stats.count() == 0));
        }
        text.push_str(&render::exits::csv(
            exits.isa(),
            &reports,
            ClockUnit::default(),
        ));
    }
    for (_, doubts) in &answers.doubts {
        text.push_str(&doubts.texts().concat());
    }
    let vcpus = answers.take(vcpus).report(&walked);
    for row in &vcpus.rows {
        // Whatever the recording says, every instant is in one state.
        assert_eq!(row.times.total(), row.to - row.from);
    }
    text.push_str(&render::vcpus::table(&vcpus, true, usize::MAX, layout));
    text.push_str(&render::vcpus::csv(&vcpus, ClockUnit::default()));
    let sched = answers.take(sched);
    for merge in [Merge::No, Merge::ByComm] {
        let report = sched.clone().report(
            walked.machine.threads(),
            merge,
            &|_, _| true,
            KernelFunctions::default(),
        );
        text.push_str(&render::sched::table(&report, layout));
        text.push_str(&render::sched::cpus(&report, layout));
        text.push_str(&render::sched::histogram(&report, layout));
        text.push_str(&render::sched::csv(&report, ClockUnit::default()));
    }
    text.push_str(&latencies(&answers.take(paths), &walked));
    let report = answers.take(info).report(&walked);
    text.push_str(&render::info::counts(&report, usize::MAX));
    text.push_str(&render::info::csv(&report));
    text.push_str(&render::quality::lines("input", &outcome.quality, 80));
    let picture = pictures::picture(handles, &mut of_whole, &whole, outcome.quality);
    text.push_str(&causes(&picture));
    assert!(!text.is_empty());
}

/// What rules find in the recording, and what changed against itself: nothing.
fn causes(picture: &Picture) -> String {
    let slices = picture.series.slice_ns.len();
    let counted = |amounts: &analysis::SliceAmounts| amounts.iter().all(|(at, _)| at < slices);
    assert!(picture.series.of.values().all(counted));
    let case = rules::Case {
        picture,
        facts: None,
        domain: None,
    };
    let diagnosis = rules::diagnose(&[case]);
    for finding in &diagnosis.findings {
        assert!(!finding.evidence.is_empty(), "{}", finding.rule.id);
        assert!((0.0..=1.0).contains(&finding.confidence));
    }
    let pictures = std::slice::from_ref(picture);
    let side = compare::ComparedSide {
        pictures,
        diagnosis: &diagnosis,
    };
    let same = compare::compare(side, side, None, compare::CompareOptions::default());
    let same = same.expect("the same input fits itself");
    assert_eq!(same.changes, []);
    render::json::line(ClockedDocument {
        clock: ClockUnit::default(),
        part: render::diagnose::document(&diagnosis, None, Vec::new()),
    });
    let layout = render::Layout {
        width: 80,
        limit: usize::MAX,
        nanoseconds: true,
    };
    render::diagnose::text(&diagnosis, render::diagnose::CauseList::Named, 80)
        + &render::compare::text(&same, &[], &[], true, layout)
}

/// What the recording shows of paths: stages add up to totals, and groups to all instances.
fn latencies(paths: &Paths, walked: &analysis::WalkState<'_>) -> String {
    let machine = walked.machine;
    assert_eq!(paths.in_flight(), 0);
    let reports = paths.report(machine, &|_| None);
    for report in &reports {
        assert_eq!(report.total.count(), report.count, "{}", report.name);
        let stages = report.stages.iter().map(|stage| stage.stats.total());
        let stages = stages.fold(0u64, u64::saturating_add);
        assert_eq!(stages, report.total.total(), "{}", report.name);
        let grouped: u64 = report.groups.iter().map(|group| group.stats.count()).sum();
        assert!(grouped <= report.count, "{}", report.name);
        if let Some(slow) = &report.slow {
            assert!(slow.count <= report.count, "{}", report.name);
            for one in &slow.because {
                for share in [one.slow_share, one.fast_share] {
                    assert!(
                        (0.0..=1.0).contains(&share),
                        "{}: {}",
                        report.name,
                        one.text
                    );
                }
            }
        }
    }
    let layout = render::Layout {
        width: 80,
        limit: 3,
        nanoseconds: true,
    };
    let document = serde_json::to_value(render::paths::document(
        &reports,
        &doubts::Doubts::default(),
    ));
    let document = document.expect("a document");
    assert_eq!(
        document["paths"].as_array().map(Vec::len),
        Some(reports.len())
    );
    render::paths::table(&reports, layout) + &render::paths::csv(&reports, ClockUnit::default())
}
