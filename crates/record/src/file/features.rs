//! What a perf.data file says of the machine and of the recording: the feature sections.

use std::collections::BTreeMap;

use super::described::FileEvent;

/// A feature section's number (`HEADER_*` in `tools/perf/util/header.h`).
mod number {
    pub(super) const TRACING_DATA: u32 = 1;
    pub(super) const HOSTNAME: u32 = 3;
    pub(super) const OSRELEASE: u32 = 4;
    pub(super) const VERSION: u32 = 5;
    pub(super) const ARCH: u32 = 6;
    pub(super) const NRCPUS: u32 = 7;
    pub(super) const CPUDESC: u32 = 8;
    pub(super) const CPUID: u32 = 9;
    pub(super) const TOTAL_MEM: u32 = 10;
    pub(super) const CMDLINE: u32 = 11;
    pub(super) const EVENT_DESC: u32 = 12;
    pub(super) const SAMPLE_TIME: u32 = 21;
    /// trapline's own, far from perf's: perf 6.18 has 32, and passes over those that it does not know.
    pub(super) const TRAPLINE: u32 = 200;
}

/// perf pads strings to multiples of this (`NAME_ALIGN`).
const STRING: usize = 64;

/// One thing that a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Feature {
    /// The formats of events, as [`crate::tracing_data`] puts them together.
    TracingData(Vec<u8>),
    /// The host's name.
    Hostname(String),
    /// The kernel's release, as `uname -r`.
    OsRelease(String),
    /// The version of the recorder.
    Version(String),
    /// The architecture, as `uname -m`.
    Arch(String),
    /// CPUs that the machine has, and those on line.
    Cpus(u32, u32),
    /// The CPU's name.
    CpuDescription(String),
    /// The CPU's identification: perf takes from it whose exits it counts.
    CpuId(String),
    /// Memory, KiB.
    TotalMemory(u64),
    /// The recorder's command line.
    CommandLine(Vec<String>),
    /// Times of the first and last record.
    SampleTime(u64, u64),
    /// What trapline says of the recording: an object of JSON. Its members are put beside those that are there.
    Trapline(Vec<u8>),
}

impl Feature {
    /// Returns what says which process records: no name does.
    pub fn recorder(pid: u32) -> Feature {
        let said = serde_json::json!({ "recorder": { "pid": pid } });
        Feature::Trapline(serde_json::to_vec(&said).unwrap_or_default())
    }

    /// Returns what says which time of day a time on the events' clock was: nanoseconds since 1970 in UTC, and on that
    /// clock.
    pub fn wall_clock(unix_ns: u64, event_ns: u64) -> Feature {
        let both = serde_json::json!({ "unix_ns": unix_ns, "event_ns": event_ns });
        let said = serde_json::json!({ "wall_clock": both });
        Feature::Trapline(serde_json::to_vec(&said).unwrap_or_default())
    }
}

/// What a file says.
#[derive(Debug, Clone, Default)]
pub struct Features {
    contents: BTreeMap<u32, Vec<u8>>,
    changed: Vec<u32>,
}

fn string(out: &mut Vec<u8>, text: &str) {
    // Strings end at their first NUL.
    let text = text.split('\0').next().unwrap_or_default();
    let length = (text.len() + 1).next_multiple_of(STRING);
    let size = u32::try_from(length).unwrap_or(0);
    out.extend_from_slice(&size.to_ne_bytes());
    out.extend_from_slice(text.as_bytes());
    out.resize(out.len() + length - text.len(), 0);
}

fn one_string(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    string(&mut out, text);
    out
}

/// Returns an object of JSON with the members of both; what is no object counts for nothing.
fn both(before: &[u8], new: &[u8]) -> Vec<u8> {
    let object = |bytes| serde_json::from_slice::<serde_json::Map<_, _>>(bytes).unwrap_or_default();
    let mut all: serde_json::Map<String, serde_json::Value> = object(before);
    all.extend(object(new));
    serde_json::to_vec(&all).unwrap_or_default()
}

impl Features {
    /// Adds a feature, or changes it.
    pub fn set(&mut self, feature: Feature) {
        let (number, bytes) = match feature {
            Feature::TracingData(bytes) => (number::TRACING_DATA, bytes),
            Feature::Hostname(text) => (number::HOSTNAME, one_string(&text)),
            Feature::OsRelease(text) => (number::OSRELEASE, one_string(&text)),
            Feature::Version(text) => (number::VERSION, one_string(&text)),
            Feature::Arch(text) => (number::ARCH, one_string(&text)),
            Feature::Cpus(all, on_line) => {
                let both = [all, on_line].map(u32::to_ne_bytes);
                (number::NRCPUS, both.concat())
            }
            Feature::CpuDescription(text) => (number::CPUDESC, one_string(&text)),
            Feature::CpuId(text) => (number::CPUID, one_string(&text)),
            Feature::TotalMemory(kib) => (number::TOTAL_MEM, kib.to_ne_bytes().to_vec()),
            Feature::CommandLine(words) => {
                let count = u32::try_from(words.len()).unwrap_or(0);
                let mut out = count.to_ne_bytes().to_vec();
                words.iter().for_each(|word| string(&mut out, word));
                (number::CMDLINE, out)
            }
            Feature::SampleTime(first, last) => {
                let both = [first, last].map(u64::to_ne_bytes);
                (number::SAMPLE_TIME, both.concat())
            }
            Feature::Trapline(json) => {
                let before = self.contents.get(&number::TRAPLINE);
                let all = before.map_or_else(|| json.clone(), |before| both(before, &json));
                (number::TRAPLINE, all)
            }
        };
        self.contents.insert(number, bytes);
        self.changed.push(number);
    }

    /// Adds what events are called.
    pub(super) fn describe(&mut self, events: &[FileEvent]) {
        let count = u32::try_from(events.len()).unwrap_or(0);
        let size = u32::try_from(rings::SIZE).unwrap_or(0);
        let mut out = [count, size].map(u32::to_ne_bytes).concat();
        for event in events {
            out.extend_from_slice(&event.attr);
            let ids = u32::try_from(event.ids.len()).unwrap_or(0);
            out.extend_from_slice(&ids.to_ne_bytes());
            string(&mut out, &event.name);
            out.extend(event.ids.iter().flat_map(|id| id.to_ne_bytes()));
        }
        self.contents.insert(number::EVENT_DESC, out);
    }

    /// Returns number and contents of each, lowest number first.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let all = self.contents.iter();
        all.map(|(number, bytes)| (*number, bytes.as_slice()))
    }

    /// Forgets what changed: it has been written.
    pub(super) fn settle(&mut self) {
        self.changed.clear();
    }

    /// Returns what a feature says now, if that has changed.
    pub(super) fn changed(&self, number: u32) -> Option<&[u8]> {
        let bytes = self.contents.get(&number)?;
        self.changed.contains(&number).then_some(bytes.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_say_of_a_recording_stands_together() {
        let mut features = Features::default();
        for text in [
            r#"{"cost":{"event_ns":1}}"#,
            r#"{"kept":2}"#,
            r#"{"cost":3}"#,
        ] {
            features.set(Feature::Trapline(text.as_bytes().to_vec()));
        }
        let all = features.changed(number::TRAPLINE).expect("it was set");
        assert_eq!(all, br#"{"cost":3,"kept":2}"#);
    }
}
