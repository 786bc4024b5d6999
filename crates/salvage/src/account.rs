//! What is kept and what is lost.

use std::collections::BTreeMap;

/// Why no whole recording can be made of what is left: a sentence each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SalvageRefusal {
    /// The file ends before its first event.
    #[error("ends at byte {0:#x}, before its first event: there is nothing to keep")]
    NoEvents(u64),
    /// No tool can read its events, as nothing says what their fields are.
    #[error(
        "the formats of its events are gone with the part that is missing, and without them no tool reads its \
         tracepoints; --formats FILE takes them from another perf.data of the same kernel"
    )]
    FormatsGone,
    /// It has no records.
    #[error("holds the kernel's own text, of which nothing can be made again; expected records")]
    KernelText,
    /// It is not laid out as its recorder lays out files.
    #[error("cannot be made whole: {0}")]
    Layout(String),
}

/// A CPU of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SalvagedCpu {
    /// Events that are kept.
    pub events: u64,
    /// Time of the first and of the last of them, in the unit of the recording.
    pub times: Option<(u64, u64)>,
    /// Places at which events of this CPU are missing.
    pub places: u64,
    /// Bytes of its data that are missing or were left out; `None` where nobody knows how many.
    pub lost_bytes: Option<u64>,
}

impl SalvagedCpu {
    /// Counts an event.
    pub fn event(&mut self, time: u64) {
        self.events += 1;
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
    }
}

/// What is kept of a recording, and what is lost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SalvageAccount {
    /// Whether nothing is missing, so that the new file has the bytes of the old one.
    pub whole: bool,
    /// Bytes of the file as it was found.
    pub input_bytes: u64,
    /// Bytes of the new one.
    pub output_bytes: u64,
    /// Events that are kept: samples of a perf.data, records of a trace.dat.
    pub events: u64,
    /// Other records that are kept: names of threads, mappings, ends of rounds.
    pub other_records: u64,
    /// Bytes of the file that are not in the new one, as they are part of no whole record.
    pub left_out_bytes: u64,
    /// Bytes that the file says it had behind its end; `None` where nobody knows.
    pub missing_bytes: Option<u64>,
    /// Places at which events are missing, each written into the new file as lost events.
    pub places: u64,
    /// By buffer (empty for the only one, or the top one) and CPU; -1 stands for what is of no CPU that is known.
    pub cpus: BTreeMap<(String, i64), SalvagedCpu>,
    /// What else is lost or was made again, a sentence each.
    pub notes: Vec<String>,
}

/// More CPUs than this are counted as one, that nobody knows.
const MAX_CPUS: usize = 1 << 16;

impl SalvageAccount {
    /// Returns the count of a CPU.
    pub fn cpu(&mut self, buffer: &str, cpu: i64) -> &mut SalvagedCpu {
        let key = (buffer.to_owned(), cpu);
        let is_there = self.cpus.len() < MAX_CPUS || self.cpus.contains_key(&key);
        let key = if is_there { key } else { (String::new(), -1) };
        self.cpus.entry(key).or_insert(SalvagedCpu {
            lost_bytes: Some(0),
            ..SalvagedCpu::default()
        })
    }

    /// Returns the times of the first and of the last event that are kept, in the unit of the recording.
    pub fn times(&self) -> Option<(u64, u64)> {
        let mut times = self.cpus.values().filter_map(|cpu| cpu.times);
        let first = times.next()?;
        Some(times.fold(first, |all, one| (all.0.min(one.0), all.1.max(one.1))))
    }

    /// Notes a sentence once.
    pub fn note(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }
}
