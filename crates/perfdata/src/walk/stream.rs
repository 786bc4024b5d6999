//! Compressed records: one stream of zstd, cut into records as it is decompressed.

use std::sync::Arc;

use super::PerfWalk;
use super::out::{RecordOrigin, RecordOutlet};
use crate::compressed::ZstdStream;
use crate::record::{HEADER, PerfRecordHeader, kind};

/// Decompressed bytes held back for the merge before it is forced on.
const MAX_HELD: usize = 256 << 20;
/// Decompressed bytes gathered before they are looked at.
const CHUNK: usize = 256 << 10;

impl<O: RecordOutlet, const BIG: bool> PerfWalk<'_, '_, '_, O, BIG> {
    pub(super) fn compressed(&mut self, payload: &[u8], at: usize) {
        let mut zstd = match self.zstd.take() {
            Some(zstd) => zstd,
            None => {
                self.copies.end(&mut self.chunks);
                ZstdStream::new()
            }
        };
        zstd.feed(payload);
        loop {
            match zstd.step(&mut self.tail) {
                Ok(true) if self.tail.len() < CHUNK => {}
                Ok(true) => self.cut_tail(),
                Ok(false) => break,
                Err(reason) => {
                    self.note(at, format!("compressed data cannot be read: {reason}"));
                    self.totals.truncated = true;
                    self.stop_reading = true;
                    break;
                }
            }
        }
        if !self.tail.is_empty() {
            self.cut_tail();
        }
        self.zstd = Some(zstd);
    }

    pub(super) fn finish_stream(&mut self) {
        let Some(mut zstd) = self.zstd.take() else {
            return;
        };
        if let Err(reason) = zstd.finish(&mut self.tail) {
            self.note(
                self.reading.recording.end,
                format!("end of compressed data cannot be read: {reason}"),
            );
        }
        self.cut_tail();
        if !self.tail.is_empty() {
            self.totals.truncated = true;
            let left = self.tail.len();
            self.note(
                self.reading.recording.end,
                format!("the compressed data ends in the middle of a record, {left} bytes of it"),
            );
        }
    }

    /// Takes samples of a piece that was decompressed, up to the end of a round and one step at most. Returns how far
    /// it came.
    fn take_unpacked(&mut self, data: &Arc<Vec<u8>>, number: u32, at: usize) -> usize {
        let round = self.rounds.front().map(|round| round - self.tail_at);
        let end = round.and_then(|end| usize::try_from(end).ok());
        let end = end.unwrap_or(data.len()).min(data.len());
        let piece = RecordOrigin::of_piece(number, Some(data));
        let from = RecordOrigin {
            data: &data[..end],
            ..piece
        };
        let next = self.take_samples_of(from, at);
        self.stop |= self.unordered.stop;
        next
    }

    /// Cuts what was decompressed into records; what is left of the last one waits for the rest.
    fn cut_tail(&mut self) {
        let data = Arc::new(std::mem::take(&mut self.tail));
        let number = self.chunks.begin(&data);
        let mut at = 0;
        loop {
            while self
                .rounds
                .front()
                .is_some_and(|&r| r <= self.tail_at + at as u64)
            {
                self.rounds.pop_front();
                self.finish_round();
            }
            let samples_end = self.take_unpacked(&data, number, at);
            if samples_end > at {
                at = samples_end;
                self.bound_runs(self.reading.recording.start);
                continue;
            }
            let Some(header) = PerfRecordHeader::read::<BIG>(&data, at) else {
                break;
            };
            if header.size < HEADER {
                self.note(
                    self.reading.recording.start,
                    "no record in the compressed data".to_owned(),
                );
                self.totals.truncated = true;
                self.stop_reading = true;
                at = data.len();
                break;
            }
            let next = at + header.size;
            if next > data.len() {
                break;
            }
            if header.kind < kind::USER_START {
                let from = RecordOrigin {
                    data: &data,
                    base: 0,
                    buffer: number,
                    piece: Some(&data),
                };
                self.take(from, header, &data[at + HEADER..next], at);
            } else if header.kind == kind::FINISHED_ROUND {
                self.finish_round();
            }
            at = next;
        }
        self.tail = data[at..].to_vec();
        self.tail_at += at as u64;
        self.chunks.end();
        if self.chunks.held() > MAX_HELD {
            self.queue.close();
            self.note(
                self.reading.recording.start,
                "rounds of compressed records are too long: order is not certain".to_owned(),
            );
            self.flush(self.newest());
        }
    }
}
