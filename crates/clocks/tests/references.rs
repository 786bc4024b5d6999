//! Recordings of hosts and their guests that trace-cmd made together, of the corpus that `TRAPLINE_CORPUS` names.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clocks::{GuestWindow, VcpuWindows, fit};
use event::{Event, EventOrder, EventType, Kind, Sink};
use source::{ReaderOptions, RecordingBytes, RecordingHeader};

/// When each thread was in its guest.
#[derive(Default)]
struct Host {
    entered: BTreeMap<i32, u64>,
    windows: BTreeMap<i32, Vec<GuestWindow>>,
}

impl Sink for Host {
    fn wants(&mut self, ty: &EventType<'_>) -> bool {
        matches!(ty.kind, Kind::KvmEntry | Kind::KvmExit)
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if event.ty.kind == Kind::KvmEntry {
            self.entered.insert(event.tid, event.time);
        } else if let Some(entry) = self.entered.remove(&event.tid) {
            self.windows
                .entry(event.tid)
                .or_default()
                .push(GuestWindow {
                    entry,
                    exit: event.time,
                });
        }
        ControlFlow::Continue(())
    }
}

/// When there was something on each CPU.
#[derive(Default)]
struct Guest(BTreeMap<u32, Vec<u64>>);

impl Sink for Guest {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let cpu = u32::try_from(event.cpu).expect("trace-cmd knows the CPU");
        self.0.entry(cpu).or_default().push(event.time);
        ControlFlow::Continue(())
    }
}

/// Walks a recording on its own clock.
fn walk(recording: &RecordingBytes, sink: &mut dyn Sink) {
    let options = ReaderOptions {
        own_clock: true,
        ..ReaderOptions::default()
    };
    let reader = recording.reader(options).expect("it was read before");
    reader.walk(sink);
}

fn recordings(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            recordings(&path, found);
        } else if path.extension().is_some_and(|end| end == "dat") {
            found.push(path);
        }
    }
}

#[test]
fn one_constant_puts_events_of_guests_into_the_windows_of_their_vcpus() {
    let Some(corpus) = std::env::var_os("TRAPLINE_CORPUS") else {
        return;
    };
    let mut paths = Vec::new();
    recordings(Path::new(&corpus), &mut paths);
    let all = paths.iter().filter_map(|path| {
        let recording = RecordingBytes::open(path).ok()?;
        let reader = recording.reader(ReaderOptions::default()).ok()?;
        let header = reader.header().clone();
        drop(reader);
        Some((path.display(), recording, header))
    });
    let all: Vec<(_, RecordingBytes, RecordingHeader)> = all.collect();
    let mut pairs = 0;
    for (path, host, header) in &all {
        for of in &header.together.guests {
            let mut guests = all
                .iter()
                .filter(|(_, _, one)| one.together.own == Some(*of));
            let Some((_, guest, guests_header)) = guests.next() else {
                continue;
            };
            let (mut hosts, mut events) = (Host::default(), Guest::default());
            walk(host, &mut hosts);
            walk(guest, &mut events);
            // Where the recorder did not find the threads, they stand in the order of their vCPUs, as VMMs start them.
            let map: BTreeMap<u32, i32> = match header.guests.as_slice() {
                [one] => one.vcpus.iter().copied().collect(),
                _ => (0..).zip(hosts.windows.keys().copied()).collect(),
            };
            let vcpus = map.iter().filter_map(|(cpu, tid)| {
                Some(VcpuWindows {
                    windows: hosts.windows.get(tid)?,
                    events: events.0.get(cpu)?,
                })
            });
            let vcpus: Vec<VcpuWindows<'_>> = vcpus.collect();
            let around = guests_header.together.offset_ns.expect("it was measured");
            let found = fit(&vcpus, around, 1_000_000).expect("it has events");
            let all = found.inside + found.outside;
            assert!(found.outside * 1000 <= all, "{path}: {found:?}");
            assert!(found.by_chance * 10 <= all * 9, "{path}: {found:?}");
            assert_eq!(found.drift_ppb, 0, "{path}: {found:?}");
            assert!(found.bound_ns < 50_000, "{path}: {found:?}");
            pairs += 1;
        }
    }
    assert!(pairs >= 3, "only {pairs} pairs");
}
