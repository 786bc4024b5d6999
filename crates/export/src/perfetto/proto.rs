//! Messages of protocol buffers, written: variable-length integers, lengths before what is nested.
//!
//! The encoding is that of <https://protobuf.dev/programming-guides/encoding/>.

/// Kinds of fields on the wire.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

/// Bytes of messages.
#[derive(Debug, Default)]
pub(super) struct ProtoMessage(Vec<u8>);

impl ProtoMessage {
    #[inline]
    fn varint(&mut self, value: u64) {
        if value < 0x80 {
            return self.0.push(value as u8);
        }
        // Gathered first, so that there is one look for room.
        let mut bytes = [0; 10];
        let (mut rest, mut length) = (value, 0);
        for place in &mut bytes {
            length += 1;
            if rest < 0x80 {
                *place = rest as u8;
                break;
            }
            *place = rest as u8 | 0x80;
            rest >>= 7;
        }
        self.0
            .extend_from_slice(bytes.get(..length).unwrap_or_default());
    }

    #[inline]
    fn tag(&mut self, field: u32, kind: u64) {
        self.varint(u64::from(field) << 3 | kind);
    }

    /// Adds a field of one of the types `uint32`, `uint64`, `bool` and enumerations.
    #[inline]
    pub(super) fn uint(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// Adds a field of the types `int32` or `int64`.
    pub(super) fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value.cast_unsigned());
    }

    /// Adds a field of the type `fixed64`.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Adds a field of the type `double`.
    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    /// Adds a field of the types `string` or `bytes`.
    pub(super) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Adds a field that is a message.
    #[inline]
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut ProtoMessage)) {
        self.tag(field, LENGTH);
        // Most are so short that one byte has their length.
        let at = self.0.len();
        self.0.push(0);
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
    pub(super) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
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
