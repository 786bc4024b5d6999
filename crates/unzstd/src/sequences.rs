//! Sequences: how many literals to copy, and what of the output to copy again.
//!
//! Source: RFC 8878, sections 3.1.1.3.2 to 3.1.1.5 and appendix A.

use crate::bits::Backward;
use crate::fse::Shares;
use crate::{Fault, SLACK};

/// One state of a sequence table.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// What the extra bits are added to.
    base: u32,
    /// What the bits that lead to the next state are added to.
    next: u16,
    /// How many bits lead to the next state.
    next_bits: u8,
    /// How many extra bits there are.
    extra: u8,
}

/// The table of one part of a sequence.
struct Table {
    log: u32,
    states: Box<[State; 512]>,
    /// Whether it was read in this frame, so that a later block may use it again.
    known: bool,
}

impl Default for Table {
    fn default() -> Self {
        Table {
            log: 0,
            states: Box::new([State::default(); 512]),
            known: false,
        }
    }
}

/// What the codes of one part of a sequence mean.
#[derive(Debug)]
struct Part {
    /// Base and number of extra bits by code; `None` for offsets, whose code is the number of bits.
    codes: Option<&'static [(u32, u8)]>,
    max_code: u8,
    max_log: u32,
    default_log: u32,
    defaults: &'static [i16],
}

const LITERALS: Part = Part {
    codes: Some(&[
        (0, 0),
        (1, 0),
        (2, 0),
        (3, 0),
        (4, 0),
        (5, 0),
        (6, 0),
        (7, 0),
        (8, 0),
        (9, 0),
        (10, 0),
        (11, 0),
        (12, 0),
        (13, 0),
        (14, 0),
        (15, 0),
        (16, 1),
        (18, 1),
        (20, 1),
        (22, 1),
        (24, 2),
        (28, 2),
        (32, 3),
        (40, 3),
        (48, 4),
        (64, 6),
        (128, 7),
        (256, 8),
        (512, 9),
        (1024, 10),
        (2048, 11),
        (4096, 12),
        (8192, 13),
        (16384, 14),
        (32768, 15),
        (65536, 16),
    ]),
    max_code: 35,
    max_log: 9,
    default_log: 6,
    defaults: &[
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
        1, 1, -1, -1, -1, -1,
    ],
};

const MATCHES: Part = Part {
    codes: Some(&[
        (3, 0),
        (4, 0),
        (5, 0),
        (6, 0),
        (7, 0),
        (8, 0),
        (9, 0),
        (10, 0),
        (11, 0),
        (12, 0),
        (13, 0),
        (14, 0),
        (15, 0),
        (16, 0),
        (17, 0),
        (18, 0),
        (19, 0),
        (20, 0),
        (21, 0),
        (22, 0),
        (23, 0),
        (24, 0),
        (25, 0),
        (26, 0),
        (27, 0),
        (28, 0),
        (29, 0),
        (30, 0),
        (31, 0),
        (32, 0),
        (33, 0),
        (34, 0),
        (35, 1),
        (37, 1),
        (39, 1),
        (41, 1),
        (43, 2),
        (47, 2),
        (51, 3),
        (59, 3),
        (67, 4),
        (83, 4),
        (99, 5),
        (131, 7),
        (259, 8),
        (515, 9),
        (1027, 10),
        (2051, 11),
        (4099, 12),
        (8195, 13),
        (16387, 14),
        (32771, 15),
        (65539, 16),
    ]),
    max_code: 52,
    max_log: 9,
    default_log: 6,
    defaults: &[
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
    ],
};

const OFFSETS: Part = Part {
    codes: None,
    max_code: 31,
    max_log: 8,
    default_log: 5,
    defaults: &[
        1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
    ],
};

impl Part {
    fn state(&self, code: u8, next: u16, next_bits: u8) -> State {
        let (base, extra) = match self.codes {
            Some(codes) => codes.get(usize::from(code)).copied().unwrap_or_default(),
            None => (1 << (code & 31), code & 31),
        };
        State {
            base,
            next,
            next_bits,
            extra,
        }
    }
}

impl Table {
    /// Reads the table of a part as the block's mode says. Returns how many bytes it took.
    fn read(&mut self, part: &Part, mode: u8, data: &[u8]) -> Result<usize, Fault> {
        match mode {
            0 => {
                self.fill(part, &Shares::fixed(part.default_log, part.defaults));
                Ok(0)
            }
            1 => {
                let &code = data.first().ok_or(Fault::Ends)?;
                if code > part.max_code {
                    return Err(Fault::Table);
                }
                self.log = 0;
                self.states[0] = part.state(code, 0, 0);
                self.known = true;
                Ok(1)
            }
            2 => {
                let (shares, used) =
                    Shares::read(data, part.max_log, usize::from(part.max_code) + 1)?;
                self.fill(part, &shares);
                Ok(used)
            }
            _ if self.known => Ok(0),
            _ => Err(Fault::Table),
        }
    }

    fn fill(&mut self, part: &Part, shares: &Shares) {
        self.log = shares.log;
        self.known = true;
        shares.lay_out(|at, code, bits, next| self.states[at & 511] = part.state(code, next, bits));
    }
}

/// The tables of sequences and the last three offsets, kept from block to block of a frame.
#[derive(Default)]
pub(crate) struct Sequences {
    literals: Table,
    offsets: Table,
    matches: Table,
    repeats: [u32; 3],
}

impl Sequences {
    /// Forgets everything of the frame before.
    pub(crate) fn clear(&mut self) {
        self.literals.known = false;
        self.offsets.known = false;
        self.matches.known = false;
        self.repeats = [1, 4, 8];
    }

    /// Reads the section of a block and carries it out: `out` is filled from `at` on, from `literals` and from
    /// itself since `start`. Behind `limit`, and behind `literals_len`, both have [`SLACK`] bytes of no meaning.
    /// Returns where the output ends.
    pub(crate) fn run(
        &mut self,
        data: &[u8],
        literals: &[u8],
        literals_len: usize,
        out: &mut [u8],
        (start, at, limit): (usize, usize, usize),
    ) -> Result<usize, Fault> {
        let (count, data) = read_count(data)?;
        let mut output = Output {
            out,
            at,
            start,
            limit,
            literals,
            taken: 0,
            literals_len,
        };
        if count == 0 {
            if !data.is_empty() {
                return Err(Fault::Bits);
            }
            return output.finish();
        }
        let (&modes, mut data) = data.split_first().ok_or(Fault::Ends)?;
        if modes & 3 != 0 {
            return Err(Fault::Table);
        }
        for (table, part, shift) in [
            (&mut self.literals, &LITERALS, 6),
            (&mut self.offsets, &OFFSETS, 4),
            (&mut self.matches, &MATCHES, 2),
        ] {
            let used = table.read(part, modes >> shift & 3, data)?;
            data = data.get(used..).ok_or(Fault::Ends)?;
        }
        let mut bits = Backward::new(data)?;
        let mut states = States {
            literals: bits.read(self.literals.log) as usize,
            offsets: bits.read(self.offsets.log) as usize,
            matches: bits.read(self.matches.log) as usize,
        };
        let mut batch = [Sequence::default(); BATCH];
        let mut left = count;
        let mut beyond = 0;
        while left > 0 {
            let batch = &mut batch[..left.min(BATCH)];
            left -= batch.len();
            beyond = self.decode(&mut bits, &mut states, batch);
            output.carry_out(batch)?;
        }
        // No next states follow the last sequence: the bits read for them are not there.
        if bits.remaining() + beyond as isize != 0 {
            return Err(Fault::Bits);
        }
        output.finish()
    }

    /// Decodes as many sequences as there is room for, and the states after each. Returns how many bits the last of
    /// those states took.
    fn decode(
        &mut self,
        bits: &mut Backward<'_>,
        states: &mut States,
        batch: &mut [Sequence],
    ) -> u32 {
        let (literals, offsets, matches) = (
            &*self.literals.states,
            &*self.offsets.states,
            &*self.matches.states,
        );
        let mut reader = bits.clone();
        let States {
            literals: mut literal_at,
            offsets: mut offset_at,
            matches: mut match_at,
        } = *states;
        let mut repeats = self.repeats;
        let mut beyond = 0;
        for sequence in batch {
            let literal = literals[literal_at & 511];
            let offset = offsets[offset_at & 511];
            let matched = matches[match_at & 511];
            reader.refill();
            let distance = offset
                .base
                .wrapping_add(reader.read(u32::from(offset.extra)));
            sequence.matched = matched.base + reader.read(u32::from(matched.extra));
            // An offset and both lengths take up to 63 bits, the next states up to 26.
            if offset.extra + matched.extra + literal.extra > 30 {
                reader.refill();
            }
            sequence.literals = literal.base + reader.read(u32::from(literal.extra));
            literal_at =
                usize::from(literal.next) + reader.read(u32::from(literal.next_bits)) as usize;
            match_at =
                usize::from(matched.next) + reader.read(u32::from(matched.next_bits)) as usize;
            offset_at =
                usize::from(offset.next) + reader.read(u32::from(offset.next_bits)) as usize;
            beyond = u32::from(literal.next_bits)
                + u32::from(matched.next_bits)
                + u32::from(offset.next_bits);
            let distance = if offset.extra > 1 {
                repeats = [distance - 3, repeats[0], repeats[1]];
                distance - 3
            } else {
                // Codes of up to one bit name one of the last distances; without literals, the next one.
                let which = distance - 1 + u32::from(sequence.literals == 0);
                let distance = match which {
                    0..=2 => repeats[which as usize],
                    _ => repeats[0].wrapping_sub(1),
                };
                match which {
                    0 => {}
                    1 => repeats = [distance, repeats[0], repeats[2]],
                    _ => repeats = [distance, repeats[0], repeats[1]],
                }
                distance
            };
            sequence.distance = distance;
        }
        *bits = reader;
        *states = States {
            literals: literal_at,
            offsets: offset_at,
            matches: match_at,
        };
        self.repeats = repeats;
        beyond
    }
}

/// How many sequences are decoded before they are carried out. Each of the two is a loop of its own, so that what it
/// works on fits into registers.
const BATCH: usize = 64;

/// So many literals, then a match of such a length from so far back.
#[derive(Debug, Clone, Copy, Default)]
struct Sequence {
    literals: u32,
    matched: u32,
    distance: u32,
}

/// Which states are next.
struct States {
    literals: usize,
    offsets: usize,
    matches: usize,
}

/// Reads how many sequences there are.
fn read_count(data: &[u8]) -> Result<(usize, &[u8]), Fault> {
    let (&first, rest) = data.split_first().ok_or(Fault::Ends)?;
    let first = usize::from(first);
    if first < 128 {
        return Ok((first, rest));
    }
    let (&second, rest) = rest.split_first().ok_or(Fault::Ends)?;
    if first < 255 {
        return Ok((((first - 128) << 8) + usize::from(second), rest));
    }
    let (&third, rest) = rest.split_first().ok_or(Fault::Ends)?;
    Ok((
        usize::from(second) + (usize::from(third) << 8) + 0x7f00,
        rest,
    ))
}

/// Where the output grows.
struct Output<'o> {
    out: &'o mut [u8],
    at: usize,
    start: usize,
    limit: usize,
    literals: &'o [u8],
    taken: usize,
    literals_len: usize,
}

impl Output<'_> {
    /// Copies literals, then a match, for each sequence.
    fn carry_out(&mut self, batch: &[Sequence]) -> Result<(), Fault> {
        for sequence in batch {
            let literals = sequence.literals as usize;
            let matched = sequence.matched as usize;
            let distance = sequence.distance as usize;
            let to = self.at + literals;
            let end = to + matched;
            let taken = self.taken + literals;
            if end > self.limit || taken > self.literals_len {
                return Err(Fault::TooLong);
            }
            // A distance of zero, or one that reaches before the frame, is none.
            if distance.wrapping_sub(1) >= to - self.start {
                return Err(Fault::Offset);
            }
            // Sixteen bytes at a time, whatever the length: what is too much is written over later. Both buffers
            // have room for that.
            copy_sixteen(self.literals, self.taken, self.out, self.at);
            let mut done = 16;
            while done < literals {
                copy_sixteen(self.literals, self.taken + done, self.out, self.at + done);
                done += 16;
            }
            self.taken = taken;
            self.at = end;
            let from = to - distance;
            if distance >= 16 {
                // Half of all matches are longer than sixteen bytes: guessing which costs more than copying.
                repeat_sixteen(self.out, from, to);
                repeat_sixteen(self.out, from + 16, to + 16);
                let mut done = 32;
                while done < matched {
                    repeat_sixteen(self.out, from + done, to + done);
                    repeat_sixteen(self.out, from + done + 16, to + done + 16);
                    done += 32;
                }
            } else {
                self.repeat_near(from, to, matched);
            }
        }
        Ok(())
    }

    /// Copies a match that overlaps what it makes.
    fn repeat_near(&mut self, from: usize, to: usize, matched: usize) {
        let offset = to - from;
        if offset == 1 {
            let byte = self.out[from];
            self.out[to..to + matched].fill(byte);
            return;
        }
        // What was copied can be copied again: the piece doubles each time.
        let mut done = 0;
        while done < matched {
            let piece = (offset + done).min(matched - done);
            self.out.copy_within(from..from + piece, to + done);
            done += piece;
        }
    }

    /// Copies the literals that are left.
    fn finish(self) -> Result<usize, Fault> {
        let rest = &self.literals[self.taken..self.literals_len];
        let end = self.at + rest.len();
        if end > self.limit {
            return Err(Fault::TooLong);
        }
        self.out[self.at..end].copy_from_slice(rest);
        Ok(end)
    }
}

const _: () = assert!(SLACK >= 48);

#[inline(always)]
fn copy_sixteen(from: &[u8], at: usize, out: &mut [u8], to: usize) {
    if let (Some(from), Some(to)) = (from.get(at..at + 16), out.get_mut(to..to + 16)) {
        to.copy_from_slice(from);
    }
}

#[inline(always)]
fn repeat_sixteen(out: &mut [u8], from: usize, to: usize) {
    let Some(&piece) = out.get(from..from + 16).and_then(|b| b.first_chunk::<16>()) else {
        return;
    };
    if let Some(to) = out.get_mut(to..to + 16) {
        to.copy_from_slice(&piece);
    }
}
