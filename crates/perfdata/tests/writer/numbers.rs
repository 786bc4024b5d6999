//! Numbers, names and records as bytes.

/// Numbers in a byte order.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    pub big: bool,
    pub out: Vec<u8>,
}

impl Numbers {
    pub(crate) fn new(big: bool) -> Numbers {
        Numbers {
            big,
            out: Vec::new(),
        }
    }

    pub(crate) fn u16(&mut self, n: u16) -> &mut Self {
        let bytes = if self.big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        };
        self.out.extend(bytes);
        self
    }

    pub(crate) fn u32(&mut self, n: u32) -> &mut Self {
        let bytes = if self.big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        };
        self.out.extend(bytes);
        self
    }

    pub(crate) fn u64(&mut self, n: u64) -> &mut Self {
        let bytes = if self.big {
            n.to_be_bytes()
        } else {
            n.to_le_bytes()
        };
        self.out.extend(bytes);
        self
    }

    pub(crate) fn u64s(&mut self, numbers: &[u64]) -> &mut Self {
        for &n in numbers {
            self.u64(n);
        }
        self
    }

    /// Bytes, and NULs up to a multiple of 8, one at least.
    pub(crate) fn name(&mut self, name: &[u8]) {
        self.out.extend(name);
        self.out.push(0);
        while !self.out.len().is_multiple_of(8) {
            self.out.push(0);
        }
    }
}

/// A record with its header.
pub(crate) fn framed(big: bool, kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut n = Numbers::new(big);
    let size = u16::try_from(8 + body.len()).expect("records are below 64 KiB");
    n.u32(kind).u16(misc).u16(size);
    n.out.extend(body);
    n.out
}

pub(crate) fn magic(big: bool) -> [u8; 8] {
    *if big { b"2ELIFREP" } else { b"PERFILE2" }
}
