//! Recordings of the corpus, cut at many places and made whole: the reader finds in the new file what it finds in the
//! old one, and no cut.

use std::ops::ControlFlow;

use event::{Event, EventType, Sink};
use fixtures::{CorpusCase, Failures, cases, read};
use source::{ReaderOptions, RecordingBytes, WalkOutcome};

/// Counts the events of each kind.
struct EventCounts;

impl Sink for EventCounts {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Returns the events by kind, and what the walk came to; `None` if the bytes cannot be read.
fn walk(bytes: &[u8]) -> Option<(Vec<u64>, WalkOutcome)> {
    let recording = RecordingBytes::from_bytes("part", bytes.to_vec()).ok()?;
    let reader = recording.reader(ReaderOptions::default()).ok()?;
    let outcome = reader.walk(&mut EventCounts);
    Some((
        outcome.read.iter().map(|(_, count)| *count).collect(),
        outcome,
    ))
}

/// Returns where a recording is cut: around the sections of a perf.data, and at places that are the same in every run.
fn cuts(bytes: &[u8], count: usize) -> Vec<usize> {
    let word = |at: usize| {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
        usize::try_from(word.map_or(0, |word| u64::from_le_bytes(*word))).unwrap_or(usize::MAX)
    };
    let mut cuts = vec![bytes.len() - 1];
    let mut from = 0;
    if bytes.starts_with(b"PERFILE2") && word(8) == 104 {
        let (start, size) = (word(40), word(48));
        let end = start.saturating_add(size);
        cuts.extend(
            [start, end]
                .into_iter()
                .flat_map(|at| [at.saturating_sub(1), at, at.saturating_add(1)]),
        );
        from = start.min(bytes.len());
    }
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for number in 0..count {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // Half of them in the last twelfth, where a trace.dat has its data.
        let begin = if number % 2 == 0 {
            from
        } else {
            bytes.len() - (bytes.len() - from) / 12
        };
        let room = (bytes.len() - begin).max(1);
        cuts.push(begin + usize::try_from(state >> 33).unwrap_or(0) % room);
    }
    cuts.retain(|at| (120..bytes.len()).contains(at));
    cuts
}

fn check(case: &CorpusCase, whole: &RecordingBytes, failures: &mut Failures) -> usize {
    let name = &case.name;
    let bytes = whole.bytes();
    let salvage = whole.salvage(None);
    let sound = walk(bytes).is_some_and(|(_, outcome)| !outcome.quality.truncated);
    match &salvage {
        Ok(salvage) if sound => {
            let mut file = Vec::new();
            salvage.write(&mut file).expect("memory");
            let same = salvage.account().whole && file == bytes;
            failures.check(same, || format!("{name}: the bytes of a whole file"));
        }
        _ => failures.check(!sound, || format!("{name}: {:?}", salvage.as_ref().err())),
    }
    let lent = sound && bytes.starts_with(b"PERFILE2") && bytes.get(8) == Some(&104);
    let lent = lent.then_some(whole).filter(|whole| {
        // A profile has no formats to lend, and needs none.
        whole
            .reader(ReaderOptions::default())
            .is_ok_and(|reader| !reader.misses_formats())
            && perfdata_has_formats(whole)
    });
    let mut kept = 0;
    for cut in cuts(bytes, 12) {
        let part = RecordingBytes::from_bytes("part", bytes[..cut].to_vec()).expect("some bytes");
        let Ok(salvage) = part.salvage(lent) else {
            let events = walk(&bytes[..cut]).map_or(0, |(counts, _)| counts.iter().sum::<u64>());
            let formats = part
                .salvage(None)
                .is_err_and(|e| e.to_string().contains("formats"));
            failures.check(events == 0 || formats, || {
                format!("{name} cut at {cut}: refused")
            });
            continue;
        };
        kept += 1;
        let mut file = Vec::new();
        salvage.write(&mut file).expect("memory");
        let account = salvage.account();
        let (before, _) = walk(&bytes[..cut]).expect("a recording");
        let Some((after, outcome)) = walk(&file) else {
            failures.check(false, || format!("{name} cut at {cut}: cannot be read"));
            continue;
        };
        let quality = &outcome.quality;
        failures.check(!quality.truncated && quality.uneven_from.is_none(), || {
            format!("{name} cut at {cut}: {:?}", quality.all_doubts())
        });
        failures.check(account.places == 0 || quality.lost_events > 0, || {
            format!("{name} cut at {cut}: no loss is counted")
        });
        failures.equal(&format!("{name} cut at {cut}"), &after, &before);
        failures.equal(
            &format!("{name} cut at {cut}: bytes"),
            &account.output_bytes,
            &(file.len() as u64),
        );
    }
    kept
}

fn perfdata_has_formats(whole: &RecordingBytes) -> bool {
    let reader = whole.reader(ReaderOptions::default());
    reader.is_ok_and(|reader| {
        let perf = reader.perf_data();
        perf.is_some_and(perfdata::PerfRecording::has_formats)
    })
}

#[test]
fn what_is_left_of_a_recording_is_whole_again() {
    let mut failures = Failures::default();
    let mut kept = 0;
    for case in cases() {
        if !["perf.data", "trace.dat"].contains(&case.kind.as_str()) {
            continue;
        }
        let whole = RecordingBytes::from_bytes(&case.name, read(&case.path)).expect("a recording");
        kept += check(&case, &whole, &mut failures);
    }
    failures.check(kept > 100, || format!("{kept} parts were kept"));
    failures.finish(400);
}
