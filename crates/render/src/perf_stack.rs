//! Addresses at the ends of lines, and call chains behind them, as perf prints them.
//!
//! Source: `tools/perf/util/evsel_fprintf.c` (`sample__fprintf_callchain`) and `tools/perf/util/machine.c`
//! (`add_callchain_ip`, `thread__resolve_callchain_sample`) of kernel 6.1.

use crate::perf_digits::{hex, hex16};
use crate::perf_maps::{FileId, Files, SpaceId};
use crate::perf_threads::{CpuMode, Machine};

/// Addresses of a call chain that are printed (`PERF_MAX_STACK_DEPTH`).
const MAX_STACK: usize = 127;

/// Numbers in call chains that tell where the following addresses are (`PERF_CONTEXT_*`).
mod context {
    pub const HV: u64 = -32i64 as u64;
    pub const KERNEL: u64 = -128i64 as u64;
    pub const USER: u64 = -512i64 as u64;
    /// The lowest number that is no address (`PERF_CONTEXT_MAX`).
    pub const LOWEST: u64 = -4095i64 as u64;
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
    pub fn chain(&self, out: &mut Vec<u8>, chain: &[u8], big_endian: bool) {
        let start = out.len();
        // Until a number tells otherwise, perf takes addresses for those of user space.
        let mut mode = CpuMode::User;
        let mut left = MAX_STACK;
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
                self.entry(out, address, mode);
                continue;
            }
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
    fn entry(&self, out: &mut Vec<u8>, address: u64, mode: CpuMode) {
        let found = self.find(address, mode);
        let printed = match &found {
            Found::User { printed, .. } => *printed,
            _ => address,
        };
        let mut line = [b'\t'; 17];
        for (place, digit) in line[1..].iter_mut().zip(hex16(printed)) {
            *place = digit;
        }
        out.extend_from_slice(&line);
        self.ending(out, found);
    }

    /// Appends the one address of an event without a call chain, with the line feed.
    pub fn address(&self, out: &mut Vec<u8>, address: u64, mode: CpuMode) {
        out.push(b' ');
        out.extend_from_slice(&hex16(address));
        self.ending(out, self.find(address, mode));
    }

    fn find(&self, address: u64, mode: CpuMode) -> Found {
        match mode {
            CpuMode::Kernel | CpuMode::GuestKernel => match self.machine.kernel().find(address) {
                Some(place) => match place.offset {
                    Some(offset) => Found::Symbol {
                        file: place.file,
                        offset,
                    },
                    None => Found::Kernel { file: place.file },
                },
                None => Found::Nothing,
            },
            CpuMode::User | CpuMode::GuestUser => match self.machine.user(self.space, address) {
                Some((printed, file)) => Found::User { file, printed },
                None => Found::Nothing,
            },
            CpuMode::Other => Found::Nothing,
        }
    }

    /// Appends symbol and file of an address, with the line feed.
    fn ending(&self, out: &mut Vec<u8>, found: Found) {
        let file = match found {
            Found::Symbol { file, offset } => {
                return self.symbol(out, self.files.name_ending(file), offset);
            }
            Found::Kernel { file } | Found::User { file, .. } => file,
            Found::Nothing => FileId::UNKNOWN,
        };
        if self.file {
            out.extend_from_slice(self.files.ending(file));
        } else {
            out.extend_from_slice(Files::UNKNOWN_SYMBOL);
            out.push(b'\n');
        }
    }

    /// Appends a symbol that has the name of its file, ` NAME+0xOFFSET (NAME)`.
    fn symbol(&self, out: &mut Vec<u8>, name_ending: &[u8], offset: u64) {
        let name = name_ending.strip_prefix(b" (").unwrap_or(name_ending);
        let name = name.strip_suffix(b")\n").unwrap_or(name);
        out.push(b' ');
        out.extend_from_slice(name);
        out.extend_from_slice(b"+0x");
        hex(out, offset);
        out.extend_from_slice(if self.file { name_ending } else { b"\n" });
    }
}

/// What is known of an address.
#[derive(Debug, Clone, Copy)]
enum Found {
    Nothing,
    Kernel { file: FileId },
    Symbol { file: FileId, offset: u64 },
    User { file: FileId, printed: u64 },
}
