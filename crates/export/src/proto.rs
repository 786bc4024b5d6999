//! Messages of protocol buffers, written: variable-length integers, lengths before what is nested.
//!
//! The encoding is that of <https://protobuf.dev/programming-guides/encoding/>.

/// Kinds of fields on the wire.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

/// Numbers below this have their groups of 7 bits in the bytes of one word.
const IN_A_WORD: u64 = 1 << 56;

/// Bytes of messages.
#[derive(Debug, Default)]
pub(crate) struct ProtoMessage(Vec<u8>);

/// Returns a number below [`IN_A_WORD`] as the encoding has it, its first byte the lowest, and how many bytes it has.
#[inline(always)]
fn groups(value: u64) -> (u64, usize) {
    // From two groups of 28 bits to four of 14, and to eight of 7.
    let spread = (value & 0x0fff_ffff) | (value & 0x00ff_ffff_f000_0000) << 4;
    let spread = (spread & 0x0000_3fff_0000_3fff) | (spread & 0x0fff_c000_0fff_c000) << 2;
    let spread = (spread & 0x007f_007f_007f_007f) | (spread & 0x3f80_3f80_3f80_3f80) << 1;
    let length = (70 - (value | 1).leading_zeros()) / 7;
    // All but the last one say that another follows.
    let follows = 0x0080_8080_8080_8080 & ((1u64 << (8 * (length - 1))) - 1);
    (spread | follows, length as usize)
}

impl ProtoMessage {
    /// Adds the lowest bytes of a word.
    #[inline(always)]
    fn put(&mut self, word: u64, length: usize) {
        let end = self.0.len() + length;
        self.0.extend_from_slice(&word.to_le_bytes());
        self.0.truncate(end);
    }

    #[inline(always)]
    fn varint(&mut self, value: u64) {
        if value < IN_A_WORD {
            let (word, length) = groups(value);
            return self.put(word, length);
        }
        // Eight groups, be they 0, are before the last one or two.
        let (word, _) = groups(value & (IN_A_WORD - 1));
        self.put(word | 0x8080_8080_8080_8080, 8);
        let (word, length) = groups(value >> 56);
        self.put(word, length);
    }

    #[inline(always)]
    fn tag(&mut self, field: u32, kind: u64) {
        self.varint(u64::from(field) << 3 | kind);
    }

    /// Adds a field of one of the types `uint32`, `uint64`, `bool` and enumerations.
    #[inline(always)]
    pub(crate) fn uint(&mut self, field: u32, value: u64) {
        // Callers name their field: its tag is known when this is compiled.
        let (tag, before) = groups(u64::from(field) << 3 | VARINT);
        if before + 6 <= 8 && value < 1 << 42 {
            let (word, length) = groups(value);
            return self.put(tag | word << (8 * before), before + length);
        }
        self.put(tag, before);
        self.varint(value);
    }

    /// Adds a field of the types `int32` or `int64`.
    pub(crate) fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value.cast_unsigned());
    }

    /// Adds a field of the type `fixed64`.
    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Adds a field of the type `double`.
    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    /// Adds a field of the types `string` or `bytes`.
    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Adds a field that is a message.
    #[inline]
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut ProtoMessage)) {
        // Most are so short that one byte has their length.
        let (tag, before) = groups(u64::from(field) << 3 | LENGTH);
        self.put(tag, before + 1);
        let at = self.0.len() - 1;
        fill(self);
        let length = self.0.len() - at - 1;
        if let (Ok(short @ 0..0x80), Some(place)) = (u8::try_from(length), self.0.get_mut(at)) {
            *place = short;
            return;
        }
        let mut prefix = ProtoMessage::default();
        prefix.varint(length as u64);
        self.0.splice(at..=at, prefix.0);
    }

    /// Returns the bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_as_the_encoding_has_them() {
        let mut out = ProtoMessage::default();
        // The examples of the encoding's own description.
        out.uint(1, 150);
        out.bytes(2, b"testing");
        out.message(3, |inner| inner.uint(1, 150));
        let expected = [
            &[0x08, 0x96, 0x01][..],
            b"\x12\x07testing",
            &[0x1a, 0x03, 0x08, 0x96, 0x01],
        ];
        assert_eq!(out.as_bytes(), expected.concat());
        out.clear();
        out.int(1, -2);
        assert_eq!(
            out.as_bytes(),
            [
                0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
            ]
        );
        out.clear();
        out.double(1, 1.0);
        assert_eq!(out.as_bytes(), [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }

    #[test]
    fn numbers_of_all_lengths_are_as_the_encoding_has_them() {
        for bits in 0..=64 {
            for value in [(1u128 << bits) - 1, 1 << bits, (1 << bits) + 1] {
                let value = value as u64;
                let (mut rest, mut expected) = (value, vec![0xf8, 0x05]);
                while rest >= 0x80 {
                    expected.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                expected.push(rest as u8);
                let mut out = ProtoMessage::default();
                out.uint(95, value);
                assert_eq!(out.as_bytes(), expected, "{value:#x}");
                out.clear();
                out.uint(1, value);
                assert_eq!(out.as_bytes()[..1], [0x08]);
                assert_eq!(out.as_bytes()[1..], expected[2..], "{value:#x}");
            }
        }
    }

    #[test]
    fn long_messages_have_their_length_too() {
        for length in [0usize, 127, 128, 20_000, 3_000_000] {
            let mut out = ProtoMessage::default();
            out.message(1, |inner| inner.bytes_mut().extend(vec![7; length]));
            out.uint(2, 1);
            let mut expected = ProtoMessage::default();
            expected.bytes(1, &vec![7; length]);
            expected.uint(2, 1);
            assert_eq!(out.as_bytes(), expected.as_bytes(), "{length}");
        }
    }
}
