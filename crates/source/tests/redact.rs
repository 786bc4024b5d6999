//! Recordings of the corpus without what is private: none of their names is left, and all of their events are.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use event::{Body, Event, EventType, Side, Sink};
use fixtures::{Failures, cases, read};
use source::{ReaderOptions, RecordingBytes};
use tracedat::TraceDat;

/// Collects names as the reader finds them.
#[derive(Default)]
pub(crate) struct PrivateNames {
    pub(crate) texts: BTreeSet<String>,
    /// Times, CPUs and threads of events, added up.
    pub(crate) sum: u64,
    pub(crate) events: u64,
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

pub(crate) fn found(recording: &RecordingBytes) -> PrivateNames {
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

const RANDOM: u64 = 987_654_321;

/// Compares the symbols of a trace.dat with those that are left of them. Returns how many are.
fn compared_symbols(
    whole: &RecordingBytes,
    redacted: &RecordingBytes,
    failures: &mut Failures,
) -> usize {
    let symbols = |recording: &RecordingBytes| {
        let mut dat = TraceDat::parse(recording.bytes()).ok()?;
        dat.load_symbols();
        Some(dat.formats().kallsyms.clone())
    };
    let Some((whole, left)) = symbols(whole).zip(symbols(redacted)) else {
        return 0;
    };
    // 1 MiB and as many pages as the random number says, below 512 MiB.
    let distance = (1 << 20) + RANDOM % (511 << 8) * 4096;
    failures.check(left.len() < 2_000, || {
        format!("{} symbols are left", left.len())
    });
    for address in left.starts() {
        let before = whole.lookup(address + distance);
        let after = left.lookup(address);
        let same = before == after || after.is_some_and(|(name, _)| name.starts_with("symbol-"));
        failures.check(same, || format!("{address:#x}: {after:?} was {before:?}"));
    }
    left.len()
}

/// Returns whether a text may stay: it says what a thread is, is the kernel's, or is too short to look for.
pub(crate) fn may_stay(text: &str) -> bool {
    model::public_form(text).is_some() || text.starts_with('[') || text.len() < 6
}

#[test]
fn no_name_is_left_and_all_events_are() {
    let mut failures = Failures::default();
    let (mut looked_for, mut symbols) = (0, 0);
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
        let (_, replaced) = redactable.write(RANDOM, &mut file).expect("memory");
        let before = found(&whole);
        let redacted = RecordingBytes::from_bytes(name, file).expect("some bytes");
        let check = redactable
            .check(&redacted, &replaced)
            .expect("both are read");
        let same = check.is_same && check.events == before.events;
        failures.check(same, || format!("{name}: {check:?}"));
        symbols += compared_symbols(&whole, &redacted, &mut failures);
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
        for one in check.remaining {
            let in_front = memchr::memmem::find(&bytes[..begins], one.name.as_bytes()).is_some();
            failures.check(in_front || in_formats(&one.name), || {
                format!("{name}: {one:?} remains")
            });
        }
        for text in before.texts.iter().filter(|text| !may_stay(text)) {
            looked_for += 1;
            let left = memchr::memmem::find(&bytes[begins..], text.as_bytes()).is_some();
            failures.check(!left || in_formats(text), || {
                format!("{name}: {text:?} is left")
            });
        }
    }
    failures.check(symbols > 10, || format!("{symbols} symbols"));
    failures.check(looked_for > 500, || format!("{looked_for} names"));
    failures.finish(500);
}
