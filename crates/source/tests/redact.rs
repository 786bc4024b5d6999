//! Recordings of the corpus without what is private: none of their names is left, and all of their events are.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use event::{Body, Event, EventType, Side, Sink};
use fixtures::{Failures, cases, read};
use source::{ReaderOptions, RecordingBytes};

/// Collects names as the reader finds them.
#[derive(Default)]
struct PrivateNames {
    texts: BTreeSet<String>,
    /// Times, CPUs and threads of events, added up.
    sum: u64,
    events: u64,
}

impl Sink for PrivateNames {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.events += 1;
        let place = event.cpu.cast_unsigned() ^ event.tid.cast_unsigned().rotate_left(8);
        self.sum = self.sum.rotate_left(1) ^ event.time ^ u64::from(place);
        let (Body::Raw(record), Some(format)) = (event.body, event.ty.format) else {
            return ControlFlow::Continue(());
        };
        for field in format.fields.iter().filter(|field| field.is_string) {
            let text = field.text(record, format.abi).unwrap_or_default();
            self.texts
                .insert(String::from_utf8_lossy(text).into_owned());
        }
        ControlFlow::Continue(())
    }

    fn side(&mut self, side: &Side<'_>) {
        match side {
            Side::Comm { comm, .. } => self.texts.insert((*comm).to_owned()),
            Side::Mmap { path, .. } => self.texts.insert((*path).to_owned()),
            _ => false,
        };
    }
}

fn found(recording: &RecordingBytes) -> PrivateNames {
    let reader = recording
        .reader(ReaderOptions::default())
        .expect("a recording");
    let mut names = PrivateNames::default();
    reader.walk(&mut names);
    let header = reader.header();
    names.texts.extend(header.hostname.clone());
    let guests = header.guests.iter();
    names.texts.extend(guests.map(|guest| guest.name.clone()));
    let command = header.command.as_deref().unwrap_or_default();
    let words = command.split_whitespace().map(str::to_owned);
    names
        .texts
        .extend(words.filter(|word| word.contains('/') || word.len() > 12));
    names
}

/// Returns whether a text may stay: it says what a thread is, is the kernel's, or is too short to look for.
fn may_stay(text: &str) -> bool {
    model::public_form(text).is_some() || text.starts_with('[') || text.len() < 6
}

#[test]
fn no_name_is_left_and_all_events_are() {
    let mut failures = Failures::default();
    let mut looked_for = 0;
    for case in cases() {
        if !["perf.data", "trace.dat"].contains(&case.kind.as_str()) {
            continue;
        }
        let name = &case.name;
        let whole = RecordingBytes::from_bytes(name, read(&case.path)).expect("a recording");
        let Ok(redactable) = whole.redactable() else {
            continue;
        };
        let mut file = Vec::new();
        redactable.write(987_654_321, &mut file).expect("memory");
        let before = found(&whole);
        let redacted = RecordingBytes::from_bytes(name, file).expect("some bytes");
        let after = found(&redacted);
        failures.equal(
            name,
            &(after.events, after.sum),
            &(before.events, before.sum),
        );
        // Names and formats of events stay, and with them the words in them.
        let formats = whole.reader(ReaderOptions::default()).expect("a recording");
        let tracing = perfdata::tracing_section(whole.bytes()).unwrap_or_default();
        // In a trace.dat they stand in front of all else that has names in it.
        let bytes = redacted.bytes();
        let begins = match case.kind.as_str() {
            "trace.dat" => memchr::memmem::rfind(bytes, b"print fmt: ").unwrap_or(0),
            _ => 0,
        };
        let in_formats = |text: &str| {
            memchr::memmem::find(tracing, text.as_bytes()).is_some()
                || formats.perf_data().is_some_and(|perf| {
                    let info = perf.info();
                    [&info.cpu_desc, &info.arch, &info.cpuid]
                        .into_iter()
                        .flatten()
                        .any(|one| one.contains(text))
                })
        };
        for text in before.texts.iter().filter(|text| !may_stay(text)) {
            looked_for += 1;
            let left = memchr::memmem::find(&bytes[begins..], text.as_bytes()).is_some();
            failures.check(!left || in_formats(text), || {
                format!("{name}: {text:?} is left")
            });
        }
    }
    failures.check(looked_for > 500, || format!("{looked_for} names"));
    failures.finish(500);
}
