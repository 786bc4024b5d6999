//! Addresses at the ends of lines, and call chains behind them, as perf prints them.
//!
//! Source: `tools/perf/util/evsel_fprintf.c` (`sample__fprintf_callchain`) and `tools/perf/util/machine.c`
//! (`add_callchain_ip`, `thread__resolve_callchain_sample`) of kernel 6.1.

use crate::digits::{hex, hex16};
use crate::perf_maps::{Files, Region, SpaceId};
use crate::perf_threads::{CpuMode, Machine};

/// Addresses of a call chain that are printed (`PERF_MAX_STACK_DEPTH`).
const MAX_STACK: usize = 127;

/// Numbers in call chains that tell where the following addresses are (`PERF_CONTEXT_*`).
mod context {
    pub(super) const HV: u64 = -32i64 as u64;
    pub(super) const KERNEL: u64 = -128i64 as u64;
    pub(super) const USER: u64 = -512i64 as u64;
    /// The lowest number that is no address (`PERF_CONTEXT_MAX`).
    pub(super) const LOWEST: u64 = -4095i64 as u64;
}

/// Where the addresses of one event are looked up.
pub(crate) struct Place<'p> {
    pub machine: &'p Machine,
    pub files: &'p Files,
    pub space: Option<SpaceId>,
    /// Whether file names are printed.
    pub file: bool,
}

impl Place<'_> {
    /// Appends the lines of a call chain.
    pub(crate) fn chain(&self, out: &mut Vec<u8>, chain: &[u8], big_endian: bool) {
        let start = out.len();
        // Until a number tells otherwise, perf takes addresses for those of user space.
        let mut mode = CpuMode::User;
        let mut left = MAX_STACK;
        // Callers are mostly in the file of those they called.
        let mut region = Region::EMPTY;
        for bytes in chain.chunks_exact(8) {
            if left == 0 {
                break;
            }
            let bytes: [u8; 8] = bytes.try_into().unwrap_or_default();
            let address = if big_endian {
                u64::from_be_bytes(bytes)
            } else {
                u64::from_le_bytes(bytes)
            };
            if address < context::LOWEST {
                left -= 1;
                if !region.has(address) {
                    region = self.find(address, mode);
                }
                self.entry(out, address, &region);
                continue;
            }
            region = Region::EMPTY;
            mode = match address {
                context::KERNEL => CpuMode::Kernel,
                context::USER => CpuMode::User,
                context::HV => CpuMode::Other,
                _ => {
                    // perf takes a chain with any other number for damaged, and prints nothing of it.
                    out.truncate(start);
                    return;
                }
            };
        }
    }

    /// Appends the line of one address in a call chain: where it is in its file, if it is in one of user space.
    #[inline]
    fn entry(&self, out: &mut Vec<u8>, address: u64, region: &Region) {
        let mut line = [b'\t'; 17];
        if let Some(place) = line.last_chunk_mut() {
            *place = hex16(address.wrapping_add(region.shift));
        }
        out.extend_from_slice(&line);
        self.ending(out, address, region);
    }

    /// Appends the one address of an event without a call chain, with the line feed.
    pub(crate) fn address(&self, out: &mut Vec<u8>, address: u64, mode: CpuMode) {
        out.push(b' ');
        out.extend_from_slice(&hex16(address));
        self.ending(out, address, &self.find(address, mode));
    }

    /// Returns what an address belongs to, the empty region if it is nothing known.
    fn find(&self, address: u64, mode: CpuMode) -> Region {
        let found = match mode {
            CpuMode::Kernel | CpuMode::GuestKernel => self.machine.kernel().find(address),
            CpuMode::User | CpuMode::GuestUser => self.machine.user(self.space, address),
            CpuMode::Other => None,
        };
        found.unwrap_or(Region::EMPTY)
    }

    /// Appends symbol and file of an address, with the line feed.
    #[inline]
    fn ending(&self, out: &mut Vec<u8>, address: u64, region: &Region) {
        if region.symbol {
            self.symbol(out, address.wrapping_sub(region.start), region);
        } else if self.file {
            self.files.put_ending(out, region.file);
        } else {
            out.extend_from_slice(Files::UNKNOWN_SYMBOL);
            out.push(b'\n');
        }
    }

    /// Appends a symbol that has the name of its file, ` NAME+0xOFFSET (NAME)`.
    fn symbol(&self, out: &mut Vec<u8>, offset: u64, region: &Region) {
        let name_ending = self.files.name_ending(region.file);
        let name = name_ending.strip_prefix(b" (").unwrap_or(name_ending);
        let name = name.strip_suffix(b")\n").unwrap_or(name);
        out.push(b' ');
        out.extend_from_slice(name);
        out.extend_from_slice(b"+0x");
        hex(out, offset);
        out.extend_from_slice(if self.file { name_ending } else { b"\n" });
    }
}
