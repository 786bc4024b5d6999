//! What a guest's agent has sent is looked at before anything is said of it: the agent may be wrong about it, and a
//! guest that is nobody's friend may send anything.

use std::ops::ControlFlow;
use std::path::Path;

use event::{Event, EventType, Sink};
use source::{ReaderOptions, RecordingBytes};

/// How far the times of a guest's events may be from those that its clock had when it was compared, ns: it is compared
/// after it begins and before it ends to record.
const AROUND_NS: u64 = 2_000_000_000;

/// What a guest's file is found to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FetchedGuestFile {
    /// Events that can be read.
    pub(crate) events: u64,
    /// Events that the file says are lost.
    pub(crate) lost: u64,
    /// Time of the first event and of the last one on the guest's clock, ns; `None` where there is none.
    pub(crate) span_ns: Option<[u64; 2]>,
    /// Whether it ends before its own end.
    pub(crate) truncated: bool,
}

#[derive(Default)]
struct EventSpan {
    events: u64,
    span_ns: Option<[u64; 2]>,
}

impl Sink for EventSpan {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.events += 1;
        let time = event.time;
        let [first, last] = self.span_ns.unwrap_or([time; 2]);
        self.span_ns = Some([first.min(time), last.max(time)]);
        ControlFlow::Continue(())
    }
}

impl FetchedGuestFile {
    /// Reads a file that came from an agent. `own` is the number of the recording that was begun.
    ///
    /// # Errors
    ///
    /// Returns why it is not that recording.
    pub(crate) fn read(path: &Path, own: u64) -> Result<FetchedGuestFile, String> {
        let unread = |error: &dyn std::fmt::Display| format!("it cannot be read: {error}");
        // What is packed is nothing that an agent sends, and may become large.
        let mut head = [0; 16];
        let mut file = std::fs::File::open(path).map_err(|error| unread(&error))?;
        let length = std::io::Read::read(&mut file, &mut head).map_err(|error| unread(&error))?;
        if !perfdata::is_perf_data(&head[..length]) {
            return Err("it is no perf.data".to_owned());
        }
        let recording = RecordingBytes::open(path).map_err(|error| unread(&error))?;
        let options = ReaderOptions {
            own_clock: true,
            ..ReaderOptions::default()
        };
        let reader = recording.reader(options).map_err(|error| unread(&error))?;
        if reader.header().together.own != Some(own) {
            return Err("it is not the recording that was begun".to_owned());
        }
        let mut span = EventSpan::default();
        let outcome = reader.walk(&mut span);
        Ok(FetchedGuestFile {
            events: span.events,
            lost: outcome.quality.lost_events,
            span_ns: span.span_ns,
            truncated: outcome.quality.truncated,
        })
    }

    /// Returns whether its events can have happened while the guest's clock had these times, ns.
    pub(crate) fn is_within(&self, clock_ns: [u64; 2]) -> bool {
        self.span_ns.is_none_or(|[first, last]| {
            first <= clock_ns[1].saturating_add(AROUND_NS)
                && last.saturating_add(AROUND_NS) >= clock_ns[0]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_recording_is_refused() {
        let folder = std::env::temp_dir().join(format!("guest-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("x");
        for bytes in [
            &b""[..],
            b"PERFILE",
            b"hello",
            b"\x28\xb5\x2f\xfd",
            b"PERFILE2",
        ] {
            std::fs::write(&path, bytes).expect("a file");
            FetchedGuestFile::read(&path, 1).expect_err("it is no recording");
        }
        assert!(FetchedGuestFile::read(&folder.join("none"), 1).is_err());
        std::fs::remove_dir_all(&folder).expect("it is removed");
    }

    #[test]
    fn events_happen_around_the_times_of_their_clock() {
        let of = |span_ns| FetchedGuestFile {
            span_ns,
            ..FetchedGuestFile::default()
        };
        let clock = [50_000_000_000, 60_000_000_000];
        assert!(of(None).is_within(clock));
        assert!(of(Some([49_000_000_000, 60_500_000_000])).is_within(clock));
        assert!(of(Some([59_000_000_000, 59_000_000_000])).is_within(clock));
        assert!(!of(Some([5, 6])).is_within(clock));
        assert!(!of(Some([u64::MAX - 1, u64::MAX])).is_within(clock));
        assert!(of(Some([0, u64::MAX])).is_within([0, u64::MAX]));
    }
}
