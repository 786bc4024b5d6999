//! Addresses at the ends of lines, and call chains behind them, as perf prints them.
//!
//! Source: `tools/perf/util/evsel_fprintf.c` (`sample__fprintf_callchain`) and `tools/perf/util/machine.c`
//! (`thread__resolve_callchain_sample`) of kernel 6.1.

use event::CallChain;
use symbols::{Addresses, CpuMode, FileRegion, Files, SpaceId, frames};
use tracefmt::FormatText;

use crate::columns::ShortText;
use crate::digits::{hex, hex16};
use crate::perf_columns::ThreadColumns;

/// Addresses of a call chain that are printed (`PERF_MAX_STACK_DEPTH`).
const MAX_STACK: usize = 127;

/// How an ending begins: the files are not looked into, so nothing names the function.
const UNKNOWN_SYMBOL: &[u8] = b" [unknown]";

/// How lines about each file end, ` [unknown] (NAME)` with the line feed: put together once a file.
#[derive(Debug, Default)]
pub(crate) struct Endings(Vec<ShortText<48>>);

impl Endings {
    /// Adds the endings of files that are new. To be called before lines about them are printed.
    pub(crate) fn follow(&mut self, files: &Files) {
        let names = files.names();
        if names.len() == self.0.len() {
            return;
        }
        for name in names.skip(self.0.len()) {
            let ending = [UNKNOWN_SYMBOL, b" (", name, b")\n"].concat();
            self.0.push(ShortText::new(&ending));
        }
    }
}

/// Where the addresses of one event are looked up.
pub(crate) struct StackLookup<'p> {
    pub addresses: &'p Addresses<ThreadColumns>,
    pub endings: &'p Endings,
    /// Whose code ran when the event happened.
    pub mode: CpuMode,
    pub space: Option<SpaceId>,
    /// Whether file names are printed.
    pub file: bool,
}

impl StackLookup<'_> {
    /// Appends the lines of a call chain.
    pub(crate) fn chain(&self, out: &mut FormatText, chain: CallChain<'_>) {
        let start = out.len();
        // Callers are mostly in the file of those they called.
        let mut region = FileRegion::EMPTY;
        let mut mode = CpuMode::User;
        for frame in frames(chain).take(MAX_STACK) {
            let Ok(frame) = frame else {
                // perf prints nothing of a chain that it takes for damaged.
                out.truncate(start);
                return;
            };
            if frame.mode != mode || !region.has(frame.address) {
                mode = frame.mode;
                region = self.find(frame.address, mode);
            }
            self.entry(out, frame.address, &region);
        }
    }

    /// Appends the line of one address in a call chain: where it is in its file, if it is in one of user space.
    #[inline]
    fn entry(&self, out: &mut FormatText, address: u64, region: &FileRegion) {
        let mut line = [b'\t'; 17];
        if let Some(place) = line.last_chunk_mut() {
            *place = hex16(address.wrapping_add(region.shift));
        }
        out.extend_from_slice(&line);
        self.ending(out, address, region);
    }

    /// Appends the one address of an event without a call chain, with the line feed.
    pub(crate) fn address(&self, out: &mut FormatText, address: u64) {
        out.push(b' ');
        out.extend_from_slice(&hex16(address));
        self.ending(out, address, &self.find(address, self.mode));
    }

    fn find(&self, address: u64, mode: CpuMode) -> FileRegion {
        self.addresses.find(self.mode, self.space, address, mode)
    }

    /// Appends symbol and file of an address, with the line feed.
    #[inline]
    fn ending(&self, out: &mut FormatText, address: u64, region: &FileRegion) {
        if region.symbol {
            self.symbol(out, address.wrapping_sub(region.start), region);
        } else if self.file {
            match self.endings.0.get(region.file.index()) {
                Some(ending) => ending.put(out),
                None => out.push(b'\n'),
            }
        } else {
            out.extend_from_slice(UNKNOWN_SYMBOL);
            out.push(b'\n');
        }
    }

    /// Appends a symbol that has the name of its file, ` NAME+0xOFFSET (NAME)`.
    fn symbol(&self, out: &mut FormatText, offset: u64, region: &FileRegion) {
        let name = self.addresses.files().name(region.file);
        out.push(b' ');
        out.extend_from_slice(name);
        out.extend_from_slice(b"+0x");
        hex(out, offset);
        if self.file {
            out.extend_from_slice(b" (");
            out.extend_from_slice(name);
            out.push(b')');
        }
        out.push(b'\n');
    }
}
