//! The helpers of `print fmt:` that make text: flags, bytes, masks, addresses.

use super::load::NumberLoad;
use super::operand::Operand;
use super::printf::{Spec, put_padded};
use super::program::{HexDump, Ipv6Form, PoolRange, RecordBytes, TextSource};
use super::run::ProgramRun;
use super::text::{put_decimal, put_hex, put_hex_byte, put_hex_bytes, put_signed, until_nul};
use crate::cast::{int, low_32, size};
use crate::index_of;
use crate::{Endian, FormatText};

impl ProgramRun<'_> {
    /// Appends the text of a source; the form is that of its `%s`.
    pub(super) fn source(&self, source: &TextSource, spec: &Spec, out: &mut FormatText) {
        match *source {
            TextSource::Literal(text) => put_padded(out, until_nul(self.pool(text)), spec),
            TextSource::Chars(data) => put_padded(out, until_nul(self.bytes(data)), spec),
            TextSource::Dynamic(locator) => {
                if let Some(text) = self.dynamic(locator) {
                    put_padded(out, text, spec);
                }
            }
            TextSource::Address(load) => self.printk(load, out),
            TextSource::Name(operand, table) => self.name(operand, table, spec, out),
            TextSource::Flags(operand, delim, table) => {
                self.flags(self.eval(operand), delim, table, spec, out)
            }
            TextSource::Hex { data, len, apart } => {
                let bytes = self.from(data);
                let len = size(self.eval(len)).min(bytes.len());
                put_hex_bytes(out, &bytes[..len], apart);
            }
            TextSource::Array {
                data,
                count,
                element,
            } => {
                self.array(data, self.eval(count), self.eval(element), out);
            }
            TextSource::HexDump(ref dump) => self.hex_dump(dump, out),
            TextSource::Bitmask(data, bits) => self.mask(data, bits, spec, put_bitmask, out),
            TextSource::CpuList(data, bits) => self.mask(data, bits, spec, put_bit_list, out),
            TextSource::Decimal(operand) => put_signed(out, self.eval(operand).cast_signed()),
            TextSource::UnsignedDecimal(operand) => put_decimal(out, self.eval(operand)),
            TextSource::HexNumber(operand) => {
                out.extend_from_slice(b"0x");
                put_hex(out, self.eval(operand), 1);
            }
            TextSource::Mac {
                data,
                between,
                reversed,
            } => put_mac(out, self.bytes(data), between, reversed),
            TextSource::Ipv4 {
                data,
                padded,
                reversed,
            } => {
                put_ipv4(out, first_four(self.bytes(data)), padded, reversed);
            }
            TextSource::Ipv6 { data, form } => put_ipv6(out, first_sixteen(self.bytes(data)), form),
            TextSource::Socket {
                data,
                padded,
                reversed,
                port,
                form,
            } => {
                self.socket(self.bytes(data), padded, reversed, port, form, out);
            }
            TextSource::Uuid {
                data,
                upper,
                little,
            } => put_uuid(out, self.bytes(data), upper, little),
            TextSource::Bytes {
                data,
                limit,
                between,
            } => {
                // C hands the number over as an `int`.
                let limit = usize::try_from(int(self.eval(limit))).unwrap_or(0);
                put_bytes(out, self.bytes(data).iter().take(limit), between);
            }
        }
    }

    /// Appends the string of the kernel at an address, or the address.
    ///
    /// Neither is subject to the form: libtraceevent prints them past it.
    fn printk(&self, load: NumberLoad, out: &mut FormatText) {
        let address = load.kind.read(self.record, index_of(load.offset));
        match self.env.printk(address) {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => put_hex(out, address, 1),
        }
    }

    /// Appends a bit mask, of which so many bits count where that is given.
    fn mask(
        &self,
        data: RecordBytes,
        bits: Option<Operand>,
        spec: &Spec,
        put: fn(&mut FormatText, &[u8], usize, Endian),
        out: &mut FormatText,
    ) {
        let bytes = self.bytes(data);
        let bits = bits.map_or(usize::MAX, |bits| size(self.eval(bits)));
        let endian = self.program.abi.endian;
        padded(out, spec, |out| put(out, bytes, bits, endian));
    }

    /// Appends the names of the flags that are set, then what has no name in hexadecimal.
    ///
    /// An entry without a value that is known names the number 0; one of value 0 names nothing
    /// (libtraceevent 1.7.1).
    fn flags(&self, value: u64, delim: PoolRange, table: u16, spec: &Spec, out: &mut FormatText) {
        let mut rest = value;
        let mut first = true;
        let Some(table) = self.program.tables.get(usize::from(table)) else {
            return;
        };
        for (at, &(flag, name)) in table.entries.iter().enumerate() {
            if rest == 0 {
                if flag < 0 && !self.program.kernel {
                    put_padded(out, self.pool(name), spec);
                    return;
                }
                if at >= table.unknown {
                    return;
                }
                continue;
            }
            let known = flag > 0 || (self.program.kernel && flag != 0);
            let bits = flag.cast_unsigned();
            if known && rest & bits == bits {
                if !std::mem::take(&mut first) {
                    self.pooled(out, delim);
                }
                if spec.is_plain() {
                    self.pooled(out, name);
                } else {
                    put_padded(out, self.pool(name), spec);
                }
                rest &= !bits;
            }
        }
        if rest != 0 {
            if !first {
                self.pooled(out, delim);
            }
            out.extend_from_slice(b"0x");
            put_hex(out, rest, 1);
        }
    }

    /// Appends numbers of an array, as many as the record holds: `{0x1,0x2}` as the kernel prints them, or
    /// in decimal with spaces as libtraceevent 1.7.1 does.
    ///
    /// A size no number has is noted once; then bytes are printed.
    fn array(&self, data: RecordBytes, count: u64, element: u64, out: &mut FormatText) {
        let kernel = self.program.kernel;
        let mut bytes = self.from(data);
        let mut step = size(element);
        let mut odd = !matches!(element, 1 | 2 | 4 | 8);
        if kernel {
            out.push(b'{');
        }
        for i in 0..count.min(u64::from(u32::MAX)) {
            let Some((chunk, rest)) = bytes.split_at_checked(if odd { 1 } else { step }) else {
                break;
            };
            bytes = rest;
            if i > 0 {
                out.push(if kernel { b',' } else { b' ' });
            }
            let value = self
                .program
                .abi
                .endian
                .uint(chunk, 0, chunk.len())
                .unwrap_or(0);
            if odd {
                out.extend_from_slice(b"BAD SIZE:");
                put_signed(out, i64::from(int(element)));
                out.push(b' ');
            }
            if odd || kernel {
                out.extend_from_slice(b"0x");
                put_hex(out, value, 1);
            } else {
                put_decimal(out, value);
            }
            if std::mem::take(&mut odd) {
                step = 1;
            }
        }
        if kernel {
            out.push(b'}');
        }
    }

    /// Appends bytes in rows, as the kernel's `print_hex_dump` (`lib/hexdump.c`) arranges them.
    fn hex_dump(&self, dump: &HexDump, out: &mut FormatText) {
        let bytes = self.from(dump.data);
        let len = size(self.eval(dump.len)).min(bytes.len());
        let row = if self.eval(dump.row) == 32 { 32 } else { 16 };
        let group = size(self.eval(dump.group));
        for (at, line) in bytes[..len].chunks(row).enumerate() {
            let group = match group {
                group @ (2 | 4 | 8) if line.len().is_multiple_of(group) => group,
                _ => 1,
            };
            out.extend_from_slice(self.pool(dump.prefix));
            if dump.offsets {
                put_hex(out, (at * row) as u64, 8);
                out.extend_from_slice(b": ");
            }
            let start = out.len();
            for (i, chunk) in line.chunks(group).enumerate() {
                if i > 0 {
                    out.push(b' ');
                }
                let value = self
                    .program
                    .abi
                    .endian
                    .uint(chunk, 0, chunk.len())
                    .unwrap_or(0);
                put_hex(out, value, low_32(chunk.len() as u64 * 2));
            }
            if self.eval(dump.ascii) != 0 {
                let column = start + row * 2 + row / group + 1;
                out.fill(b' ', column.saturating_sub(out.len()));
                for b in line {
                    out.push(if (0x20..0x7f).contains(b) { *b } else { b'.' });
                }
            }
            out.push(b'\n');
        }
    }

    /// Appends the address in a `struct sockaddr`; nothing for families other than IP.
    fn socket(
        &self,
        bytes: &[u8],
        padded: bool,
        reversed: bool,
        port: bool,
        form: Ipv6Form,
        out: &mut FormatText,
    ) {
        const AF_INET: u16 = 2;
        const AF_INET6: u16 = 10;
        let number = Endian::Big.u16(bytes, 2).unwrap_or(0);
        match self.program.abi.endian.u16(bytes, 0) {
            Some(AF_INET) if bytes.len() < 16 => out.extend_from_slice(b"INVALIDIPv4"),
            Some(AF_INET) => {
                put_ipv4(out, first_four(&bytes[4..]), padded, reversed);
                if port {
                    out.push(b':');
                    put_decimal(out, u64::from(number));
                }
            }
            Some(AF_INET6) if bytes.len() < 28 => out.extend_from_slice(b"INVALIDIPv6"),
            Some(AF_INET6) => {
                if port {
                    out.push(b'[');
                }
                put_ipv6(out, first_sixteen(&bytes[8..]), form);
                if port {
                    out.extend_from_slice(b"]:");
                    put_decimal(out, u64::from(number));
                }
            }
            _ => {}
        }
    }
}

fn first_four(bytes: &[u8]) -> [u8; 4] {
    std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0))
}

fn first_sixteen(bytes: &[u8]) -> [u8; 16] {
    std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0))
}

/// Appends what `put` appends, with the width and precision asked for.
fn padded(out: &mut FormatText, spec: &Spec, put: impl FnOnce(&mut FormatText)) {
    if spec.is_plain() {
        return put(out);
    }
    let mut text = FormatText::new();
    put(&mut text);
    put_padded(out, text.as_bytes(), spec);
}

/// Returns a bit of a mask, which is a row of `long`s and so in the machine's byte order.
fn bit(bytes: &[u8], bit: usize, endian: Endian) -> bool {
    let at = if endian == Endian::Big {
        bytes.len() - 1 - bit / 8
    } else {
        bit / 8
    };
    bytes[at] >> (bit % 8) & 1 == 1
}

/// Appends a bit mask in hexadecimal, with a comma every 32 bits, highest first.
fn put_bitmask(out: &mut FormatText, bytes: &[u8], bits: usize, endian: Endian) {
    let bits = bits.min(bytes.len() * 8);
    for digit in (0..bits.div_ceil(4)).rev() {
        let first = digit * 4;
        let value = (first..bits.min(first + 4))
            .map(|b| u64::from(bit(bytes, b, endian)) << (b - first))
            .sum();
        put_hex(out, value, 1);
        if digit > 0 && digit % 8 == 0 {
            out.push(b',');
        }
    }
}

/// Appends the bits that are set as a list of ranges: `0-3,7`.
fn put_bit_list(out: &mut FormatText, bytes: &[u8], bits: usize, endian: Endian) {
    let bits = bits.min(bytes.len() * 8);
    let mut at = 0;
    let mut first = true;
    while at < bits {
        if !bit(bytes, at, endian) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bits && bit(bytes, at, endian) {
            at += 1;
        }
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        put_decimal(out, start as u64);
        if at - 1 > start {
            out.push(b'-');
            put_decimal(out, at as u64 - 1);
        }
    }
}

/// Appends a MAC address; what is missing is zero.
fn put_mac(out: &mut FormatText, bytes: &[u8], between: Option<u8>, reversed: bool) {
    for i in 0..6 {
        if i > 0 {
            between.into_iter().for_each(|b| out.push(b));
        }
        let at = if reversed { 5 - i } else { i };
        put_hex_byte(out, bytes.get(at).copied().unwrap_or(0), false);
    }
}

/// Appends bytes in hexadecimal.
fn put_bytes<'b>(out: &mut FormatText, bytes: impl Iterator<Item = &'b u8>, between: Option<u8>) {
    for (i, byte) in bytes.enumerate() {
        if i > 0 {
            between.into_iter().for_each(|b| out.push(b));
        }
        put_hex_byte(out, *byte, false);
    }
}

fn put_ipv4(out: &mut FormatText, mut bytes: [u8; 4], padded: bool, reversed: bool) {
    if reversed {
        bytes.reverse();
    }
    for (i, byte) in bytes.into_iter().enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        if padded {
            out.extend_from_slice(&[b'0' + byte / 100, b'0' + byte / 10 % 10, b'0' + byte % 10]);
        } else {
            put_decimal(out, u64::from(byte));
        }
    }
}

fn put_ipv6(out: &mut FormatText, bytes: [u8; 16], form: Ipv6Form) {
    let group = |i: usize| u16::from_be_bytes([bytes[2 * i], bytes[2 * i + 1]]);
    if form != Ipv6Form::Compressed {
        for i in 0..8 {
            if i > 0 && form == Ipv6Form::Groups {
                out.push(b':');
            }
            put_hex(out, u64::from(group(i)), 4);
        }
        return;
    }
    // Addresses that carry an IPv4 address end in it (RFC 4291 2.5.5.2, RFC 5214 6.1).
    let mapped = (0..5).all(|i| group(i) == 0) && group(5) == 0xffff;
    let isatap = group(4) & !0x0200 == 0 && group(5) == 0x5efe;
    let range = if mapped || isatap { 6 } else { 8 };
    // The longest run of zero groups, the first of equals, of two or more.
    let mut run = (0, 1);
    for i in 0..range {
        let len = (i..range).take_while(|&j| group(j) == 0).count();
        if len > run.1 {
            run = (i, len);
        }
    }
    let mut colon = false;
    let mut i = 0;
    while i < range {
        if run.1 > 1 && i == run.0 {
            out.extend_from_slice(if colon || i == 0 { b"::" } else { b":" });
            colon = false;
            i += run.1;
            continue;
        }
        if colon {
            out.push(b':');
        }
        put_hex(out, u64::from(group(i)), 1);
        colon = true;
        i += 1;
    }
    if range == 6 {
        if colon {
            out.push(b':');
        }
        put_ipv4(out, first_four(&bytes[12..]), false, false);
    }
}

fn put_uuid(out: &mut FormatText, bytes: &[u8], upper: bool, little: bool) {
    const LITTLE: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    for (i, at) in LITTLE.into_iter().enumerate() {
        let at = if little { at } else { i };
        put_hex_byte(out, bytes.get(at).copied().unwrap_or(0), upper);
        if matches!(i, 3 | 5 | 7 | 9) {
            out.push(b'-');
        }
    }
}
