//! The events of one CPU as packets.

use tracefmt::Endian;

use super::is_unknown;

/// What a packet begins with (CTF 1.8.3, 5.1).
const MAGIC: u32 = 0xc1fc_1fc1;
/// Bits of a byte: the format counts sizes in bits.
const BITS: u64 = 8;

/// The packets of a CPU's file, one after the other.
#[derive(Debug)]
pub(super) struct PacketStream {
    endian: Endian,
    cpu: i32,
    /// The events of the packet that is being filled.
    events: Vec<u8>,
    /// A packet that is whole.
    packet: Vec<u8>,
    /// When the packet begins; nothing before its first event.
    begin: Option<u64>,
    /// When the last event was, or loss.
    end: u64,
    /// Events that were lost so far.
    discarded: u64,
    /// What the last packet says of that.
    written: u64,
}

impl PacketStream {
    pub(super) fn new(endian: Endian, cpu: i32) -> PacketStream {
        PacketStream {
            endian,
            cpu,
            events: Vec::new(),
            packet: Vec::new(),
            begin: None,
            end: 0,
            discarded: 0,
            written: 0,
        }
    }

    /// Returns the number of bytes of events that wait.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether events wait.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether there is something that no packet has.
    pub(super) fn has_news(&self) -> bool {
        self.has_events() || self.discarded != self.written
    }

    /// Adds an event. Returns whether its time is before that of the event that came before it: times of a stream never
    /// go back, so it gets that one's.
    pub(super) fn add(&mut self, number: u32, time: u64, payload: &[u8]) -> bool {
        let is_late = time < self.end;
        self.end = self.end.max(time);
        self.begin.get_or_insert(self.end);
        self.events
            .extend_from_slice(&self.endian.u32_bytes(number));
        self.events
            .extend_from_slice(&self.endian.u64_bytes(self.end));
        self.events.extend_from_slice(payload);
        is_late
    }

    /// Takes note that events were lost. A loss without a recorded time, 0, was after the last event.
    pub(super) fn lose(&mut self, time: u64, count: u64) {
        self.end = self.end.max(time);
        self.discarded = self.discarded.saturating_add(count);
    }

    /// Returns the packet that is being filled: its header and context, as `metadata.rs` describes them, and its
    /// events.
    pub(super) fn packet(&mut self) -> &[u8] {
        let unknown = is_unknown(self.cpu);
        let context: usize = if unknown { 40 } else { 44 };
        let size = (8 + context + self.events.len()) as u64 * BITS;
        self.packet.clear();
        for number in [MAGIC, u32::from(unknown)] {
            self.packet
                .extend_from_slice(&self.endian.u32_bytes(number));
        }
        let begin = self.begin.unwrap_or(self.end);
        for number in [begin, self.end, size, size, self.discarded] {
            self.packet
                .extend_from_slice(&self.endian.u64_bytes(number));
        }
        if !unknown {
            let cpu = self.cpu.cast_unsigned();
            self.packet.extend_from_slice(&self.endian.u32_bytes(cpu));
        }
        self.packet.extend_from_slice(&self.events);
        &self.packet
    }

    /// Begins another packet.
    pub(super) fn begin(&mut self) {
        self.events.clear();
        self.begin = None;
        self.written = self.discarded;
    }
}
