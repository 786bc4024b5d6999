//! Recordings of hosts and their guests that trace-cmd made together, of the corpus that `TRAPLINE_CORPUS` names.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clocks::{Vcpu, Window, fit};
use tracedat::{Record, TraceDat, Visitor};

/// When each thread was in its guest.
struct Host {
    entry: u32,
    exit: u32,
    entered: BTreeMap<i32, u64>,
    windows: BTreeMap<i32, Vec<Window>>,
}

impl Visitor for Host {
    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        if record.id == self.entry {
            self.entered.insert(record.pid, record.time);
        } else if record.id == self.exit
            && let Some(entry) = self.entered.remove(&record.pid)
        {
            self.windows.entry(record.pid).or_default().push(Window {
                entry,
                exit: record.time,
            });
        }
        ControlFlow::Continue(())
    }
}

/// When there was something on each CPU.
#[derive(Default)]
struct Guest(BTreeMap<u32, Vec<u64>>);

impl Visitor for Guest {
    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        self.0.entry(record.cpu).or_default().push(record.time);
        ControlFlow::Continue(())
    }
}

fn windows(host: &TraceDat<'_>) -> BTreeMap<i32, Vec<Window>> {
    let id = |name: &str| host.formats().by_name("kvm", name).map(|one| one.id);
    let (Some(entry), Some(exit)) = (id("kvm_entry"), id("kvm_exit")) else {
        return BTreeMap::new();
    };
    let mut found = Host {
        entry,
        exit,
        entered: BTreeMap::new(),
        windows: BTreeMap::new(),
    };
    host.walk(&vec![true; 65536], &mut found);
    found.windows
}

/// What the recorder measured between the clocks, in nanoseconds: the middle of it.
fn measured(guest: &TraceDat<'_>) -> i64 {
    let info = guest.info();
    let shift = info.time_shift.as_ref().expect("it has measurements");
    let mut offsets: Vec<i64> = shift.cpus.iter().flatten().map(|one| one.offset).collect();
    offsets.sort_unstable();
    let middle = i128::from(offsets[offsets.len() / 2]);
    let ns = match info.tsc2nsec {
        Some(tsc) => (middle * i128::from(tsc.mult)) >> tsc.shift,
        None => middle,
    };
    i64::try_from(ns).expect("it is a time")
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
    let files: Vec<(PathBuf, Vec<u8>)> = paths
        .into_iter()
        .filter_map(|path| Some((path.clone(), std::fs::read(path).ok()?)))
        .collect();
    let parsed = files.iter();
    let parsed: Vec<(&Path, TraceDat<'_>)> = parsed
        .filter_map(|(path, bytes)| Some((path.as_path(), TraceDat::parse(bytes).ok()?)))
        .collect();
    let mut pairs = 0;
    for (path, host) in &parsed {
        for of in &host.info().guests {
            let mut guests = parsed
                .iter()
                .filter(|(_, one)| one.info().trace_id == Some(of.trace_id));
            let Some((_, guest)) = guests.next() else {
                continue;
            };
            let windows = windows(host);
            // Where the recorder did not find the threads, they stand in the order of their vCPUs, as VMMs start them.
            let threads = windows.keys().copied();
            let map: BTreeMap<u32, i32> = match of.vcpus.is_empty() {
                true => (0..).zip(threads).collect(),
                false => of.vcpus.iter().copied().collect(),
            };
            let mut events = Guest::default();
            guest.on_own_clock().walk(&vec![true; 65536], &mut events);
            let vcpus = map.iter().filter_map(|(cpu, tid)| {
                Some(Vcpu {
                    windows: windows.get(tid)?,
                    events: events.0.get(cpu)?,
                })
            });
            let vcpus: Vec<Vcpu<'_>> = vcpus.collect();
            let path = path.display();
            let found = fit(&vcpus, measured(guest), 1_000_000).expect("it has events");
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
