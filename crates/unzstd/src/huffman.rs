//! Huffman codes of literals.
//!
//! Source: RFC 8878, section 4.2.

use crate::Fault;
use crate::bits::Backward;
use crate::fse::Shares;

/// Longest code, in bits.
const MAX_BITS: u32 = 11;

/// A table by the next bits: the symbol and the length of its code.
pub(crate) struct Huffman {
    /// Length of the longest code; 0 before a table was read.
    bits: u32,
    /// Symbol in the low byte, length in the high one.
    table: Box<[u16; 1 << MAX_BITS]>,
}

impl Default for Huffman {
    fn default() -> Self {
        Huffman {
            bits: 0,
            table: Box::new([0; 1 << MAX_BITS]),
        }
    }
}

impl Huffman {
    /// Forgets the table.
    pub(crate) fn clear(&mut self) {
        self.bits = 0;
    }

    /// Reads the description of a table. Returns how many bytes it took.
    pub(crate) fn read(&mut self, data: &[u8]) -> Result<usize, Fault> {
        self.bits = 0;
        let mut weights = [0u8; 256];
        let (&head, rest) = data.split_first().ok_or(Fault::Ends)?;
        let (count, bytes) = if head >= 128 {
            let count = usize::from(head) - 127;
            let bytes = count.div_ceil(2);
            let packed = rest.get(..bytes).ok_or(Fault::Ends)?;
            for (pair, &byte) in weights.chunks_exact_mut(2).zip(packed) {
                pair[0] = byte >> 4;
                pair[1] = byte & 15;
            }
            (count, bytes)
        } else {
            let bytes = usize::from(head);
            (
                read_weights(rest.get(..bytes).ok_or(Fault::Ends)?, &mut weights)?,
                bytes,
            )
        };
        self.build(&mut weights, count)?;
        Ok(1 + bytes)
    }

    /// Builds the table. The weight of the last symbol is not stored: it fills what the others leave.
    fn build(&mut self, weights: &mut [u8; 256], count: usize) -> Result<(), Fault> {
        let mut sum = 0u32;
        let mut ranks = [0u32; 1 + 1 + MAX_BITS as usize];
        for &weight in &weights[..count] {
            if u32::from(weight) > MAX_BITS {
                return Err(Fault::Table);
            }
            sum += (1 << weight) >> 1;
            ranks[usize::from(weight)] += 1;
        }
        if sum == 0 || count >= 256 {
            return Err(Fault::Table);
        }
        let bits = sum.ilog2() + 1;
        let rest = (1 << bits) - sum;
        if bits > MAX_BITS || !rest.is_power_of_two() {
            return Err(Fault::Table);
        }
        let last = rest.ilog2() + 1;
        weights[count] = last as u8;
        ranks[last as usize] += 1;
        // Codes of one length stand together, the longest first; of one length in order of their symbol.
        let mut starts = [0usize; 2 + MAX_BITS as usize];
        let mut at = 0;
        for weight in 1..=bits as usize {
            starts[weight] = at;
            at += (ranks[weight] as usize) << (weight - 1);
        }
        for (symbol, &weight) in weights[..=count].iter().enumerate() {
            if weight == 0 {
                continue;
            }
            let len = 1usize << (weight - 1);
            let entry = symbol as u16 | ((bits as u16 + 1 - u16::from(weight)) << 8);
            let start = &mut starts[usize::from(weight)];
            let cells = self
                .table
                .get_mut(*start..*start + len)
                .ok_or(Fault::Table)?;
            cells.fill(entry);
            *start += len;
        }
        self.bits = bits;
        Ok(())
    }

    /// Decodes one stream, which must end exactly where `out` does.
    pub(crate) fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<(), Fault> {
        let bits = self.ready()?;
        let mut stream = Backward::new(data)?;
        let mut fives = out.chunks_exact_mut(5);
        for five in &mut fives {
            stream.refill();
            for byte in five {
                *byte = self.next(&mut stream, bits);
            }
        }
        stream.refill();
        for byte in fives.into_remainder() {
            *byte = self.next(&mut stream, bits);
        }
        if stream.remaining() == 0 {
            Ok(())
        } else {
            Err(Fault::Bits)
        }
    }

    /// Decodes four streams, each a quarter of `out`, side by side.
    pub(crate) fn decode_four(&self, data: &[u8], out: &mut [u8]) -> Result<(), Fault> {
        let bits = self.ready()?;
        let (sizes, data) = data.split_first_chunk::<6>().ok_or(Fault::Ends)?;
        let size = |at: usize| usize::from(u16::from_le_bytes([sizes[at], sizes[at + 1]]));
        let (first, data) = data.split_at_checked(size(0)).ok_or(Fault::Ends)?;
        let (second, data) = data.split_at_checked(size(2)).ok_or(Fault::Ends)?;
        let (third, fourth) = data.split_at_checked(size(4)).ok_or(Fault::Ends)?;
        let quarter = out.len().div_ceil(4);
        let (a, rest) = out.split_at_mut_checked(quarter).ok_or(Fault::Table)?;
        let (b, rest) = rest.split_at_mut_checked(quarter).ok_or(Fault::Table)?;
        let (c, d) = rest.split_at_mut_checked(quarter).ok_or(Fault::Table)?;
        let mut streams = [
            Backward::new(first)?,
            Backward::new(second)?,
            Backward::new(third)?,
            Backward::new(fourth)?,
        ];
        // The last quarter is the shortest; as many fives as it has, all have.
        let fives = d.len() / 5;
        {
            let [sa, sb, sc, sd] = &mut streams;
            let quarters = a
                .chunks_exact_mut(5)
                .zip(b.chunks_exact_mut(5))
                .zip(c.chunks_exact_mut(5))
                .zip(d.chunks_exact_mut(5));
            for (((a, b), c), d) in quarters {
                sa.refill();
                sb.refill();
                sc.refill();
                sd.refill();
                for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                    *a = self.next(sa, bits);
                    *b = self.next(sb, bits);
                    *c = self.next(sc, bits);
                    *d = self.next(sd, bits);
                }
            }
        }
        for (stream, quarter) in streams.iter_mut().zip([a, b, c, d]) {
            for byte in quarter.get_mut(fives * 5..).unwrap_or_default() {
                stream.refill();
                *byte = self.next(stream, bits);
            }
            if stream.remaining() != 0 {
                return Err(Fault::Bits);
            }
        }
        Ok(())
    }

    fn ready(&self) -> Result<u32, Fault> {
        if self.bits == 0 {
            Err(Fault::Table)
        } else {
            Ok(self.bits)
        }
    }

    #[inline(always)]
    fn next(&self, stream: &mut Backward<'_>, bits: u32) -> u8 {
        let entry = self.table[stream.peek(bits) & ((1 << MAX_BITS) - 1)];
        stream.skip(u32::from(entry >> 8));
        entry as u8
    }
}

/// Decodes weights: two states take turns until the bits run out.
fn read_weights(data: &[u8], weights: &mut [u8; 256]) -> Result<usize, Fault> {
    let (shares, used) = Shares::read(data, 6, 12)?;
    let mut table = [(0u8, 0u8, 0u16); 64];
    shares.lay_out(|state, symbol, bits, base| table[state & 63] = (symbol, bits, base));
    let mut stream = Backward::new(data.get(used..).ok_or(Fault::Ends)?)?;
    let mut states = [stream.read(shares.log), stream.read(shares.log)];
    if stream.remaining() < 0 {
        return Err(Fault::Bits);
    }
    let mut count = 0;
    for turn in 0.. {
        let state = &mut states[turn & 1];
        let (symbol, bits, base) = table[*state as usize & 63];
        *weights.get_mut(count).ok_or(Fault::Table)? = symbol;
        count += 1;
        stream.refill();
        *state = u32::from(base) + stream.read(u32::from(bits));
        if stream.remaining() < 0 {
            // The other state has one symbol left.
            let (symbol, ..) = table[states[(turn + 1) & 1] as usize & 63];
            *weights.get_mut(count).ok_or(Fault::Table)? = symbol;
            return Ok(count + 1);
        }
    }
    Err(Fault::Table)
}
