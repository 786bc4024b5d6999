//! Chunks that other threads decompress before their turn comes.
//!
//! The thread that merges asks for the chunks behind the one it reads, a few for each CPU. Workers take what was asked
//! for, first come, first served. When the merge comes to a chunk it takes it if it is ready, decompresses it itself if
//! nobody has begun it, and otherwise helps the workers until it is there. So it decides alone what is decompressed, in
//! which order and within which limits, as if there were no workers: what they do is either what it would have done, or
//! is not used.

use crate::chunks::FileChunk;
use crate::compress::{Compression, Decompressor};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};

/// Bytes of all chunks that were asked for and not taken, decompressed.
const MOST: usize = 4 << 20;
/// Largest chunk that is asked for, decompressed: ten pages of 64 KiB, and more. Larger ones are the merge's own.
const LARGEST: usize = 1 << 20;
/// Chunks of one CPU that are asked for at most: enough that workers find several when they are woken.
const DEEPEST: usize = 4;
/// Workers at most. Few are enough to be faster than the merge, and each has tables and a window of its own.
const MAX_WORKERS: usize = 3;
/// Chunks for each worker that make up for starting it: a chunk takes some 70 us, a thread as long or longer.
const CHUNKS_A_WORKER: usize = 8;
/// Chunks that wait, of whichever CPU, for which a worker is woken.
const BATCH: usize = 8;

/// Returns how many workers help with so many chunks, if there are to be so many threads.
pub(crate) fn workers(threads: usize, chunks: usize) -> usize {
    let others = threads.saturating_sub(1).min(MAX_WORKERS);
    others.min(chunks / CHUNKS_A_WORKER)
}

/// What the thread that merges and the workers share.
#[derive(Debug)]
pub(crate) struct AheadPool<'a> {
    state: Mutex<ChunkState<'a>>,
    /// Notifies a worker that chunks wait.
    wake: Condvar,
    /// Notifies the merge that a chunk is done.
    done: Condvar,
    depth: usize,
    early: bool,
}

/// How far a chunk has come.
#[derive(Debug)]
enum ChunkProgress {
    Waiting,
    Begun,
    Done(Vec<u8>),
    /// It is left to the merge, which finds out what is wrong with it.
    Failed,
}

#[derive(Debug)]
struct ChunkPiece<'a> {
    chunk: FileChunk<'a>,
    progress: ChunkProgress,
}

#[derive(Debug)]
struct ChunkState<'a> {
    /// By stream, the chunks that were asked for, in their order.
    lanes: Vec<VecDeque<ChunkPiece<'a>>>,
    /// Those that nobody has begun, in the order in which they were asked for.
    waiting: VecDeque<Job<'a>>,
    /// Bytes of all pieces.
    bytes: usize,
    /// Buffers that nobody uses.
    spare: Vec<Vec<u8>>,
    /// Bytes of all buffers, spare ones and those of pieces.
    buffers: usize,
    /// Workers that sleep and were not woken yet.
    asleep: usize,
    /// The merge waits for a chunk that a worker has begun.
    merge_waits: bool,
    closed: bool,
}

/// A chunk of a stream.
#[derive(Debug, Clone, Copy)]
struct Job<'a> {
    lane: usize,
    chunk: FileChunk<'a>,
}

impl<'a> AheadPool<'a> {
    /// Returns room for so many streams with chunks of about `size` bytes, decompressed.
    pub(crate) fn new(lanes: usize, size: usize) -> AheadPool<'a> {
        let each = MOST / lanes.max(1) / size.max(1);
        AheadPool {
            state: Mutex::new(ChunkState {
                lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
                waiting: VecDeque::new(),
                bytes: 0,
                spare: Vec::new(),
                buffers: 0,
                asleep: 0,
                merge_waits: false,
                closed: false,
            }),
            wake: Condvar::new(),
            done: Condvar::new(),
            depth: each.clamp(1, DEEPEST),
            early: each > 0,
        }
    }

    /// Returns how many chunks of a stream to ask for.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether there is room for all streams, so that chunks may be asked for long before they are needed.
    pub(crate) fn early(&self) -> bool {
        self.early
    }

    /// Starts workers. They end when what is returned is dropped.
    pub(crate) fn start<'s>(
        &'s self,
        workers: usize,
        compression: Compression,
        scope: &'s Scope<'s, '_>,
    ) -> Closing<'s, 'a> {
        for _ in 0..workers {
            // Without a thread the merge does more itself.
            let _ = Builder::new().spawn_scoped(scope, move || self.work(compression));
        }
        Closing(self)
    }

    fn lock(&self) -> MutexGuard<'_, ChunkState<'a>> {
        // Nothing that can fail is done under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the chunk of a stream behind the last that was asked for. Returns whether there was room.
    pub(crate) fn ask(&self, lane: usize, chunk: FileChunk<'a>) -> bool {
        if chunk.size > LARGEST {
            return false;
        }
        let mut state = self.lock();
        if state.bytes + chunk.size > MOST {
            return false;
        }
        let Some(pieces) = state.lanes.get_mut(lane) else {
            return false;
        };
        // To be woken takes a worker as long as a chunk does, so it is not woken for each.
        let waits = |piece: &&ChunkPiece<'_>| matches!(piece.progress, ChunkProgress::Waiting);
        let soon = pieces.len() - pieces.iter().filter(waits).count() <= self.depth / 2;
        pieces.push_back(ChunkPiece {
            chunk,
            progress: ChunkProgress::Waiting,
        });
        state.bytes += chunk.size;
        state.waiting.push_back(Job { lane, chunk });
        if state.asleep > 0 && (soon || state.waiting.len() >= BATCH) {
            state.asleep -= 1;
            drop(state);
            self.wake.notify_one();
        }
        true
    }

    /// Takes the first chunk of a stream that was asked for, into `out`; what was in `out` is reused.
    ///
    /// Returns `false` when the caller has to decompress it.
    pub(crate) fn take(&self, lane: usize, out: &mut Vec<u8>, own: &mut Decompressor) -> bool {
        let mut state = self.lock();
        loop {
            let pieces = state.lanes.get_mut(lane);
            let Some(first) = pieces.and_then(|pieces| pieces.front_mut()) else {
                return false;
            };
            match &mut first.progress {
                ChunkProgress::Waiting | ChunkProgress::Failed => {
                    state.drop_first(lane);
                    return false;
                }
                ChunkProgress::Done(buffer) => {
                    let done = std::mem::take(buffer);
                    state.buffers = state.buffers.saturating_sub(done.capacity());
                    state.keep(std::mem::replace(out, done));
                    state.drop_first(lane);
                    return true;
                }
                ChunkProgress::Begun => {}
            }
            if let Some((job, buffer)) = state.begin() {
                drop(state);
                self.run(job, buffer, own);
                state = self.lock();
            } else {
                state.merge_waits = true;
                state = self
                    .done
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.merge_waits = false;
            }
        }
    }

    /// Forgets the first chunk of a stream that was asked for.
    pub(crate) fn forget(&self, lane: usize) {
        self.lock().drop_first(lane);
    }

    /// What a worker does.
    fn work(&self, compression: Compression) {
        let mut decompressor = Decompressor::new(compression);
        let mut state = self.lock();
        while !state.closed {
            if let Some((job, buffer)) = state.begin() {
                drop(state);
                self.run(job, buffer, &mut decompressor);
                state = self.lock();
            } else {
                state.asleep += 1;
                state = self
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn run(&self, job: Job<'a>, buffer: Vec<u8>, decompressor: &mut Decompressor) {
        // Whatever happens, the merge must not wait for this chunk for ever.
        let mut ending = ChunkDecoding {
            ahead: self,
            job,
            buffer,
            sound: false,
        };
        let FileChunk { input, size, .. } = job.chunk;
        ending.sound = decompressor.run(input, size, &mut ending.buffer).is_ok();
    }
}

impl<'a> ChunkState<'a> {
    /// Takes the chunk that waits longest, with a buffer for it.
    fn begin(&mut self) -> Option<(Job<'a>, Vec<u8>)> {
        let job = self.waiting.pop_front()?;
        if let Some(piece) = self.piece(job) {
            piece.progress = ChunkProgress::Begun;
        }
        let size = job.chunk.size;
        while let Some(buffer) = self.spare.pop() {
            if buffer.capacity() >= size {
                return Some((job, buffer));
            }
            self.buffers = self.buffers.saturating_sub(buffer.capacity());
        }
        self.buffers += size;
        Some((job, Vec::with_capacity(size)))
    }

    /// Returns what has become of a chunk; `None` if it was forgotten.
    fn piece(&mut self, job: Job<'a>) -> Option<&mut ChunkPiece<'a>> {
        let pieces = self.lanes.get_mut(job.lane)?;
        pieces.iter_mut().find(|p| p.chunk.at == job.chunk.at)
    }

    fn drop_first(&mut self, lane: usize) {
        let pieces = self.lanes.get_mut(lane);
        let Some(piece) = pieces.and_then(VecDeque::pop_front) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(piece.chunk.size);
        match piece.progress {
            ChunkProgress::Waiting => {
                let at = piece.chunk.at;
                let same = |job: &Job<'_>| (job.lane, job.chunk.at) == (lane, at);
                if let Some(place) = self.waiting.iter().position(same) {
                    self.waiting.remove(place);
                }
            }
            ChunkProgress::Done(buffer) if buffer.capacity() > 0 => self.spare.push(buffer),
            _ => {}
        }
    }

    /// Keeps a buffer of the merge for another chunk.
    fn keep(&mut self, buffer: Vec<u8>) {
        let size = buffer.capacity();
        if size > 0 && size <= LARGEST && self.buffers + size <= MOST {
            self.buffers += size;
            self.spare.push(buffer);
        }
    }
}

/// A chunk that is being decompressed.
struct ChunkDecoding<'s, 'a> {
    ahead: &'s AheadPool<'a>,
    job: Job<'a>,
    buffer: Vec<u8>,
    sound: bool,
}

impl Drop for ChunkDecoding<'_, '_> {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        let mut state = self.ahead.lock();
        match state.piece(self.job) {
            Some(piece) if self.sound => piece.progress = ChunkProgress::Done(buffer),
            other => {
                if let Some(piece) = other {
                    piece.progress = ChunkProgress::Failed;
                }
                state.spare.push(buffer);
            }
        }
        if state.merge_waits {
            drop(state);
            self.ahead.done.notify_one();
        }
    }
}

/// Ends the workers when it is dropped, however a walk ends.
pub(crate) struct Closing<'s, 'a>(&'s AheadPool<'a>);

impl Drop for Closing<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        state.waiting.clear();
        drop(state);
        self.0.wake.notify_all();
    }
}
