//! The programs of a pair in the kernel.

use std::os::fd::{AsFd, BorrowedFd};

use aya::maps::{Array, Map, MapData, PerCpuArray};
use aya::programs::{KProbe, Program, TracePoint};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};

use super::record_shape::RecordShape;

/// The programs.
static OBJECT: &[u8] = include_bytes_aligned!("../../bpf/pair.bpf.o");

/// What the programs count (the numbers of `bpf/pair.bpf.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PairCount {
    First = 0,
    Second = 1,
    WrittenFirst = 2,
    WrittenSecond = 3,
    Unseen = 4,
    Short = 5,
}

/// Which event of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PairEnd {
    First,
    Second,
}

/// The programs of a pair, loaded.
#[derive(Debug)]
pub(super) struct PairPrograms {
    bpf: Ebpf,
}

/// What the programs are steered by, and what they count.
pub(super) struct PairMaps {
    window: Array<MapData, u64>,
    counts: PerCpuArray<MapData, u64>,
    /// Whether the programs are to look: odd in a window, even between two, 0 where nothing is recorded.
    number: u64,
}

impl std::fmt::Debug for PairMaps {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("PairMaps").field(&self.number).finish()
    }
}

impl PairMaps {
    /// Begins or ends a window.
    pub(super) fn next_window(&mut self) {
        self.number += 1;
        self.put();
    }

    /// Begins to record, before the first window, or ends.
    pub(super) fn record(&mut self, on: bool) {
        self.number = if on { 2 } else { 0 };
        self.put();
    }

    fn put(&mut self) {
        // The map is this process' own, and has this element from the beginning.
        let _ = self.window.set(0, self.number, 0);
    }

    /// Returns what was counted since the programs were loaded, by CPU.
    pub(super) fn counts(&self, what: PairCount) -> Vec<u64> {
        let counts = self.counts.get(&(what as u32), 0);
        counts.map_or_else(|_| Vec::new(), |counts| counts.to_vec())
    }
}

/// Says why the kernel or the loader refuses.
fn why(error: &(dyn std::error::Error + 'static)) -> String {
    let (text, _) = words::causes(error);
    text
}

impl PairPrograms {
    /// Loads them.
    ///
    /// # Errors
    ///
    /// What the kernel says, in a sentence.
    pub(super) fn load(
        first: RecordShape,
        second: RecordShape,
        least_ns: u64,
    ) -> Result<(PairPrograms, PairMaps), String> {
        let [a, b] = first.words();
        let [c, d] = second.words();
        let words = [a, b, c, d, least_ns];
        let cpus = aya::util::nr_cpus().map_or(1024, |cpus| u32::try_from(cpus).unwrap_or(1024));
        let loaded = EbpfLoader::new()
            .override_global("pair", &words, true)
            .map_max_entries("firsts", cpus)
            .map_max_entries("seconds", cpus)
            .load(OBJECT);
        let mut bpf = loaded.map_err(|error| why(&error))?;
        let window = bpf.take_map("window").ok_or("no map of windows")?;
        let counts = bpf.take_map("counts").ok_or("no map of counts")?;
        let maps = PairMaps {
            window: Array::try_from(window).map_err(|error| why(&error))?,
            counts: PerCpuArray::try_from(counts).map_err(|error| why(&error))?,
            number: 0,
        };
        Ok((PairPrograms { bpf }, maps))
    }

    /// Loads the program of an end, for a tracepoint or a probe, and returns it for being attached.
    ///
    /// # Errors
    ///
    /// What the kernel says, in a sentence.
    pub(super) fn program(&mut self, end: PairEnd, probe: bool) -> Result<BorrowedFd<'_>, String> {
        let name = match (end, probe) {
            (PairEnd::First, false) => "first_tracepoint",
            (PairEnd::First, true) => "first_probe",
            (PairEnd::Second, false) => "second_tracepoint",
            (PairEnd::Second, true) => "second_probe",
        };
        let program = self.bpf.program_mut(name).ok_or("no such program")?;
        if program.fd().is_err() {
            let done = match program {
                Program::TracePoint(one) => TracePoint::load(one),
                Program::KProbe(one) => KProbe::load(one),
                _ => return Err("a program of another type".to_owned()),
            };
            done.map_err(|error| why(&error))?;
        }
        let fd = program.fd().map_err(|error| why(&error))?;
        Ok(fd.as_fd())
    }

    /// Returns the map of the events that records of an end are written to.
    pub(super) fn events(&self, end: PairEnd) -> Result<BorrowedFd<'_>, String> {
        let name = match end {
            PairEnd::First => "firsts",
            PairEnd::Second => "seconds",
        };
        match self.bpf.map(name) {
            Some(Map::PerfEventArray(map)) => Ok(map.fd().as_fd()),
            _ => Err("no map of events".to_owned()),
        }
    }
}
