//! A guest's recording on its own clock, and what it says of its host.

use std::ops::ControlFlow;
use std::path::Path;

use event::{Event, EventOrder, EventType, Sink};
use source::{ReaderOptions, RecordingBytes};

/// The time of the first event, and how many there are.
#[derive(Default)]
struct First(Option<u64>, u64);

impl Sink for First {
    fn wants(&mut self, _: &EventType<'_>) -> bool {
        true
    }

    fn order(&self, _: &EventType<'_>) -> EventOrder {
        EventOrder::Time
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.0.get_or_insert(event.time);
        self.1 += 1;
        ControlFlow::Continue(())
    }
}

#[test]
fn its_own_clock_is_what_the_recorder_measured_away_from_the_hosts() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    for name in [
        "arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst",
        "x86/host-guest-pingpong/host-a.dat.zst",
    ] {
        let recording = RecordingBytes::open(&corpus.join(name)).expect("it is in the corpus");
        let read = |own_clock| {
            let options = ReaderOptions {
                own_clock,
                ..ReaderOptions::default()
            };
            let reader = recording.reader(options).expect("it is a recording");
            let mut first = First::default();
            reader.walk(&mut first);
            (first, reader.header().together.clone())
        };
        let (hosts, together) = read(false);
        let (own, same) = read(true);
        assert_eq!(
            together, same,
            "{name}: what it says does not depend on how it is read"
        );
        assert!(
            together.own.is_some() && together.host.is_some(),
            "{name}: {together:?}"
        );
        assert_eq!((hosts.1, together.guests.len()), (own.1, 0), "{name}");
        let offset = together.offset_ns.expect("it was measured");
        let moved = hosts.0.expect("events").abs_diff(own.0.expect("events"));
        // Measurements of one recording differ by some hundred microseconds.
        assert!(
            moved.abs_diff(offset.unsigned_abs()) < 1_000_000,
            "{name}: {moved} {offset}"
        );
    }
}
