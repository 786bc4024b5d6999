//! Exports a recording in every way, as `trapline export` does.

use std::ops::ControlFlow;

use analysis::{ExitOptions, ExitTable, Exits, Study, Vcpus, Window};
use export::{
    ExitRows, ExportFile, ExportSources, ExportWalk, ExportWish, FirstWalk, InstanceRows, Perfetto,
    SpanRows, Tap, TraceMachine,
};
use paths::Paths;
use render::ClockUnit;
use source::RecordingReader;

fn exits() -> Exits {
    Exits::new(ExitOptions {
        tables: vec![ExitTable::Vmexit],
        split: true,
        ..ExitOptions::default()
    })
}

/// Returns what is made of the recording.
fn made(reader: &RecordingReader<'_>, known: &FirstWalk<'_>, into: &mut dyn ExportFile) -> Vec<u8> {
    let wanted = ExportWish {
        spans: true,
        moments: true,
    };
    let mut study = Study::default();
    let sources = ExportSources {
        tap: Some(study.share(Tap::new(wanted, Window::default()))),
        exits: Some(study.share(exits())),
        paths: Some(study.share(Paths::new(paths::all_builtin()))),
        tasks: None,
    };
    let mut all = Vec::new();
    let mut write = |made: &mut Vec<u8>| {
        all.append(made);
        ControlFlow::Continue(())
    };
    let mut walk = ExportWalk::new(study, sources, known, into, &mut write);
    reader.walk(&mut walk);
    walk.finish();
    all
}

/// Sums up a column of CSV, by its name, of rows that nothing is quoted in.
fn sum(csv: &[u8], column: &str) -> (u64, u64) {
    let text = String::from_utf8_lossy(csv);
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let at = head.split(',').position(|name| name == column);
    let at = at.expect("a column");
    let (mut rows, mut sum) = (0, 0u64);
    for line in lines.filter(|line| !line.contains('"')) {
        rows += 1;
        let value = line.split(',').nth(at).and_then(|cell| cell.parse().ok());
        sum = sum.saturating_add(value.unwrap_or(0));
    }
    (rows, sum)
}

/// Exports the recording in one of the ways. What rows add up to is what the sums are.
pub(super) fn exports(reader: &RecordingReader<'_>, which: usize) {
    let mut first = Study::default();
    let vcpus = first.add(Vcpus::new(Window::default()));
    let exits = first.add(exits());
    reader.walk(&mut first);
    let answers = first.finish();
    let (vcpus, exits) = (answers.take(vcpus), answers.take(exits));
    let walked = first.walked();
    let names = analysis::builtin_names(exits.isa());
    let known = FirstWalk::new(&walked, &names);
    // Names with commas and quotes would have to be parsed.
    let plain = |csv: &[u8]| !csv.contains(&b'"');
    match which % 4 {
        0 => {
            let spans = made(reader, &known, &mut SpanRows::new(ClockUnit::default()));
            let vcpus = vcpus.report(&walked);
            let observed = vcpus.rows.iter().map(|row| row.times.total());
            let observed = observed.fold(0u64, u64::saturating_add);
            if plain(&spans) && vcpus.rows.iter().all(|row| row.others == 0) {
                assert_eq!(sum(&spans, "duration_ns").1, observed);
            }
        }
        1 => {
            let rows = made(reader, &known, &mut ExitRows::new(ClockUnit::default()));
            let reports = exits.reports(walked.machine);
            let count = reports.first().map_or(0, |report| report.total_count);
            if plain(&rows) {
                assert_eq!(sum(&rows, "duration_ns").0, count);
            }
        }
        2 => {
            let rows = made(
                reader,
                &known,
                &mut InstanceRows::new(ClockUnit::Nanoseconds),
            );
            assert!(rows.starts_with(b"path,"));
        }
        _ => {
            let about = TraceMachine::default();
            let trace = made(reader, &known, &mut Perfetto::new(&known, &about));
            assert!(!trace.is_empty());
        }
    }
}
