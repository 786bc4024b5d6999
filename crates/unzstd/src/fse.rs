//! Finite state entropy: descriptions of tables, and the tables.
//!
//! Source: RFC 8878, section 4.1.

use crate::Fault;
use crate::bits::Forward;

/// Most symbols a table can have: match lengths have 53, weights of Huffman codes 256.
const MAX_SYMBOLS: usize = 256;

/// How often each symbol occurs, in parts of `1 << log`; -1 for less than once.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    pub log: u32,
    counts: [i16; MAX_SYMBOLS],
    len: usize,
}

impl Shares {
    /// Takes fixed shares.
    pub(crate) fn fixed(log: u32, counts: &[i16]) -> Shares {
        let mut shares = Shares {
            log,
            counts: [0; MAX_SYMBOLS],
            len: counts.len(),
        };
        shares.counts[..counts.len()].copy_from_slice(counts);
        shares
    }

    /// Reads a description. Returns how many bytes it took.
    pub(crate) fn read(
        data: &[u8],
        max_log: u32,
        max_symbols: usize,
    ) -> Result<(Shares, usize), Fault> {
        let mut bits = Forward::new(data);
        let log = bits.read(4) + 5;
        if log > max_log {
            return Err(Fault::Table);
        }
        let mut shares = Shares {
            log,
            counts: [0; MAX_SYMBOLS],
            len: 0,
        };
        let mut left = 1i32 << log;
        while left > 0 {
            if shares.len >= max_symbols.min(MAX_SYMBOLS) {
                return Err(Fault::Table);
            }
            // A number up to `left + 1` is stored; the smaller ones take one bit less.
            let width = (left as u32 + 1).ilog2() + 1;
            let value = bits.read(width);
            let low = value & ((1 << (width - 1)) - 1);
            let spare = (1 << width) - 1 - (left as u32 + 1);
            let value = if low < spare {
                bits.unread(1);
                low
            } else if value >= 1 << (width - 1) {
                value - spare
            } else {
                value
            };
            let count = value as i32 - 1;
            left -= count.abs();
            shares.counts[shares.len] = count as i16;
            shares.len += 1;
            if count == 0 {
                loop {
                    let zeros = bits.read(2);
                    shares.len += zeros as usize;
                    if zeros < 3 {
                        break;
                    }
                    if shares.len > MAX_SYMBOLS {
                        return Err(Fault::Table);
                    }
                }
            }
        }
        if left < 0 || shares.len > max_symbols {
            return Err(Fault::Table);
        }
        let bytes = bits.bytes().ok_or(Fault::Ends)?;
        Ok((shares, bytes))
    }

    /// Lays the symbols out over a table, and calls `set` with every state: its place, its symbol, how many bits
    /// lead to the next state, and what they are added to.
    pub(crate) fn lay_out(&self, mut set: impl FnMut(usize, u8, u8, u16)) {
        let size = 1usize << self.log;
        let mut symbols = [0u8; 512];
        let mut next = [0u16; MAX_SYMBOLS];
        // Symbols that are rarer than one state stand at the end.
        let mut end = size;
        for (symbol, &count) in self.counts[..self.len].iter().enumerate() {
            if count == -1 {
                end -= 1;
                symbols[end & 511] = symbol as u8;
                next[symbol] = 1;
            } else {
                next[symbol] = count as u16;
            }
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, &count) in self.counts[..self.len].iter().enumerate() {
            for _ in 0..count.max(0) {
                symbols[at & 511] = symbol as u8;
                at = (at + step) & (size - 1);
                while at >= end {
                    at = (at + step) & (size - 1);
                }
            }
        }
        for (state, &symbol) in symbols[..size].iter().enumerate() {
            let count = u32::from(next[usize::from(symbol)]);
            next[usize::from(symbol)] += 1;
            let bits = self.log - count.max(1).ilog2();
            let base = ((count << bits) as usize).wrapping_sub(size);
            set(state, symbol, bits as u8, base as u16);
        }
    }
}
