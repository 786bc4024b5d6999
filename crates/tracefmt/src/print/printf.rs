//! printf formats: their parts, and numbers and strings in every form they can ask for.

use super::parser::Dialect;
use super::text::decimal_at;
use crate::FormatText;
use crate::cast::low_8;
use crate::index_of;

/// Widths and precisions above this are taken for this: no kernel format comes near.
const MAX_WIDTH: u32 = 1024;

/// Where the width or precision of a conversion comes from when it is not written in the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stars {
    pub(super) width: bool,
    pub(super) precision: bool,
}

/// One conversion, as `%-16s` or `%#010llx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Spec {
    pub(super) left: bool,
    pub(super) zero: bool,
    pub(super) alternate: bool,
    pub(super) plus: bool,
    pub(super) space: bool,
    pub(super) width: Option<u32>,
    pub(super) precision: Option<u32>,
    pub(super) stars: Stars,
    /// `d`, `u`, `x`, `X`, `o`, `c`, `s` or `p`.
    pub(super) conversion: u8,
    /// Width of the number that is printed: 8, 16, 32 or 64 bits.
    pub(super) bits: u8,
    /// Whether `z` asks for the width of a `size_t`.
    pub(super) sized: bool,
    /// `#` as the kernel's own printf takes it, where 0 has a prefix too.
    pub(super) kernel: bool,
}

impl Spec {
    /// Returns whether nothing but the conversion itself is asked for.
    pub(super) fn is_plain(&self) -> bool {
        !self.left
            && !self.zero
            && !self.alternate
            && !self.plus
            && !self.space
            && self.width.is_none()
            && self.precision.is_none()
            && self.stars == Stars::default()
            && !self.sized
    }

    /// Returns whether it is plain apart from zeros in front up to a width, as `%08x`.
    pub(super) fn is_zero_padded(&self) -> bool {
        let plain = Spec {
            zero: false,
            width: None,
            ..*self
        };
        self.zero && plain.is_plain()
    }

    /// Returns whether it is plain apart from the prefix that the base has, as `%#x`.
    pub(super) fn is_prefixed(&self) -> bool {
        let plain = Spec {
            alternate: false,
            ..*self
        };
        self.alternate && plain.is_plain()
    }

    /// Puts in what the stars stand for; a negative width means left-justified.
    pub(super) fn with_stars(mut self, width: Option<i32>, precision: Option<i32>) -> Spec {
        if let Some(width) = width {
            self.left |= width < 0;
            self.width = Some(width.unsigned_abs().min(MAX_WIDTH));
        }
        if let Some(precision) = precision {
            self.precision = u32::try_from(precision).ok().map(|p| p.min(MAX_WIDTH));
        }
        self
    }
}

/// A part of a printf format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PrintfPart {
    /// Text, its escapes resolved.
    Literal(Vec<u8>),
    /// A conversion. For `%p`, the letters behind it.
    Conversion(Spec, String),
}

/// Splits a format into its parts.
///
/// # Errors
/// In the tool's dialect: says what libtraceevent 1.7.1 does not know of the format.
pub(super) fn split(
    format: &str,
    dialect: Dialect,
    long_size: u8,
) -> Result<Vec<PrintfPart>, String> {
    let mut splitter = Splitter::new(format, dialect, long_size);
    let mut parts = Vec::new();
    loop {
        let mut literal = Vec::new();
        let conversion = splitter.next(&mut literal)?;
        if !literal.is_empty() {
            parts.push(PrintfPart::Literal(literal));
        }
        match conversion {
            Some((spec, extension)) => {
                parts.push(PrintfPart::Conversion(spec, extension.to_owned()))
            }
            None => return Ok(parts),
        }
    }
}

/// Walks a format.
pub(super) struct Splitter<'f> {
    format: &'f str,
    at: usize,
    dialect: Dialect,
    long_size: u8,
}

impl<'f> Splitter<'f> {
    pub(super) fn new(format: &'f str, dialect: Dialect, long_size: u8) -> Self {
        Splitter {
            format,
            at: 0,
            dialect,
            long_size,
        }
    }

    /// Appends the literal text up to the next conversion, its escapes resolved, and returns the
    /// conversion, with the letters behind `%p`.
    ///
    /// # Errors
    /// In the tool's dialect: says what libtraceevent 1.7.1 does not know of the conversion.
    pub(super) fn next(
        &mut self,
        literal: &mut Vec<u8>,
    ) -> Result<Option<(Spec, &'f str)>, String> {
        let bytes = self.format.as_bytes();
        while let Some(&b) = bytes.get(self.at) {
            self.at += 1;
            let next = bytes.get(self.at).copied();
            match (b, next) {
                (b'\\', Some(escaped)) => {
                    self.at += 1;
                    literal.push(match escaped {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        other => other,
                    });
                }
                (b'\\', None) => {}
                (b'%', Some(b'%')) => {
                    self.at += 1;
                    literal.push(b'%');
                }
                (b'%', _) => match self.conversion() {
                    Ok(found) => return Ok(Some(found)),
                    Err(what) if self.dialect == Dialect::Tool => return Err(what),
                    // The kernel prints what it does not understand as it stands.
                    Err(_) => literal.push(b'%'),
                },
                _ => literal.push(b),
            }
        }
        Ok(None)
    }

    /// Reads the conversion behind a `%`; where there is none nothing is used up.
    fn conversion(&mut self) -> Result<(Spec, &'f str), String> {
        let bytes = self.format.as_bytes();
        let dialect = self.dialect;
        let mut at = self.at;
        let mut spec = Spec {
            bits: 32,
            kernel: dialect == Dialect::C,
            ..Spec::default()
        };
        let mut longs = 0i32;
        let mut in_precision = false;
        while let Some(&b) = bytes.get(at) {
            at += 1;
            match b {
                b'#' => spec.alternate = true,
                b'-' => spec.left = true,
                b'+' if dialect == Dialect::C => spec.plus = true,
                b' ' if dialect == Dialect::C => spec.space = true,
                b'0' if !in_precision && spec.width.is_none() => spec.zero = true,
                b'0'..=b'9' => {
                    let number = if in_precision {
                        &mut spec.precision
                    } else {
                        &mut spec.width
                    };
                    let value = number.unwrap_or(0) * 10 + u32::from(b - b'0');
                    *number = Some(value.min(MAX_WIDTH));
                }
                b'.' => {
                    in_precision = true;
                    spec.precision = Some(0);
                }
                b'*' => {
                    let stars = &mut spec.stars;
                    let star = if in_precision {
                        &mut stars.precision
                    } else {
                        &mut stars.width
                    };
                    if std::mem::replace(star, true) {
                        return Err("a width is given twice".to_owned());
                    }
                }
                b'h' => longs = longs.saturating_sub(1),
                b'l' => longs = longs.saturating_add(1),
                b'L' => longs = 2,
                b'z' | b'Z' => {
                    longs = 1;
                    spec.sized = true;
                }
                b'j' | b'q' if dialect == Dialect::C => longs = 2,
                b't' if dialect == Dialect::C => longs = 1,
                b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' | b's' | b'p' => {
                    if dialect == Dialect::Tool {
                        known_to_tool(&spec, b, longs)?;
                    }
                    spec.bits = match longs {
                        ..=-2 => 8,
                        -1 => 16,
                        0 => 32,
                        1 if dialect == Dialect::C && self.long_size == 4 => 32,
                        _ => 64,
                    };
                    spec.conversion = if b == b'i' { b'd' } else { b };
                    let letters = if b == b'p' { self.extension(at)? } else { 0 };
                    self.at = at + letters;
                    return Ok((spec, self.format.get(at..self.at).unwrap_or("")));
                }
                other => return Err(format!("conversion %{} is not known", other as char)),
            }
        }
        Err("the format ends in a conversion".to_owned())
    }

    /// Returns how many of the letters at an offset belong to the `%p` before them.
    fn extension(&self, at: usize) -> Result<usize, String> {
        let rest = self.format.as_bytes().get(at..).unwrap_or(&[]);
        let named = rest
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric())
            .count();
        if self.dialect == Dialect::C {
            return Ok(named);
        }
        let known = tool_pointer_extension(rest);
        if known < named {
            // The kernel takes all letters for its own; the tool prints what it does not know.
            return Err(format!(
                "%p{} is not known",
                String::from_utf8_lossy(&rest[..named])
            ));
        }
        Ok(known)
    }
}

/// Says what libtraceevent 1.7.1 does not know of a conversion.
fn known_to_tool(spec: &Spec, conversion: u8, longs: i32) -> Result<(), String> {
    if conversion == b'c' {
        return Err("conversion %c is not known".to_owned());
    }
    if spec.stars.width && spec.stars.precision {
        return Err("width and precision are both arguments".to_owned());
    }
    if !(-2..=2).contains(&longs) {
        return Err("too many length modifiers".to_owned());
    }
    Ok(())
}

/// Returns how many letters behind `%p` libtraceevent 1.7.1 takes as belonging to it.
fn tool_pointer_extension(rest: &[u8]) -> usize {
    let at = |i: usize| rest.get(i).copied().unwrap_or(0);
    match at(0) {
        b'F' | b'S' | b'f' | b's' => 1,
        b'M' | b'm' => 1 + usize::from(matches!(at(1), b'R' | b'F')),
        b'U' => 1 + usize::from(matches!(at(1), b'L' | b'l' | b'B' | b'b')),
        b'h' => 1 + usize::from(matches!(at(1), b'C' | b'D' | b'N')),
        b'I' | b'i' => match at(1) {
            b'4' => 2 + usize::from(matches!(at(2), b'h' | b'n' | b'l' | b'b')),
            b'6' => 2 + usize::from(at(2) == b'c'),
            b'S' => {
                let mut end = 2;
                while matches!(at(end), b'p' | b'f' | b's') {
                    end += 1;
                }
                end += usize::from(matches!(at(end), b'h' | b'n' | b'l' | b'b'));
                end + usize::from(at(end) == b'c')
            }
            _ => 1,
        },
        _ => 0,
    }
}

/// Appends a string with the width and precision asked for.
pub(super) fn put_padded(out: &mut FormatText, text: &[u8], spec: &Spec) {
    let text = match spec.precision {
        Some(precision) => &text[..text.len().min(index_of(precision))],
        None => text,
    };
    let gap = (spec.width.unwrap_or(0) as usize).saturating_sub(text.len());
    if !spec.left {
        out.fill(b' ', gap);
    }
    out.extend_from_slice(text);
    if spec.left {
        out.fill(b' ', gap);
    }
}

/// Appends a number in the form asked for.
pub(super) fn put_number(out: &mut FormatText, value: u64, spec: &Spec) {
    if spec.conversion == b'c' {
        return put_padded(
            out,
            &[low_8(value)],
            &Spec {
                precision: None,
                ..*spec
            },
        );
    }
    let signed = spec.conversion == b'd';
    let value = super::types::wrap(spec.bits, signed, value);
    let negative = signed && value.cast_signed() < 0;
    let magnitude = if negative {
        value.wrapping_neg()
    } else {
        value
    };

    let mut block = [0; 24];
    let start = match spec.conversion {
        b'x' | b'X' | b'o' => {
            let shift = if spec.conversion == b'o' { 3 } else { 4 };
            let letters = if spec.conversion == b'X' {
                b"0123456789ABCDEF"
            } else {
                b"0123456789abcdef"
            };
            let mut rest = magnitude;
            let mut at = block.len();
            loop {
                at -= 1;
                block[at] = letters[usize::from(low_8(rest & ((1 << shift) - 1)))];
                rest >>= shift;
                if rest == 0 {
                    break at;
                }
            }
        }
        _ => {
            let len = decimal_at(&mut block, 0, magnitude, 1);
            block.copy_within(..len, 24 - len);
            24 - len
        }
    };
    let digits = if magnitude == 0 && spec.precision == Some(0) {
        &[]
    } else {
        &block[start..]
    };
    let prefix: &[u8] = match spec.conversion {
        _ if negative => b"-",
        b'd' if spec.plus => b"+",
        b'd' if spec.space => b" ",
        b'x' if spec.alternate && (magnitude != 0 || spec.kernel) => b"0x",
        b'X' if spec.alternate && (magnitude != 0 || spec.kernel) => b"0X",
        b'o' if spec.alternate && (digits.first() != Some(&b'0')) => b"0",
        _ => b"",
    };
    let mut zeros = (spec.precision.unwrap_or(0) as usize).saturating_sub(digits.len());
    let width = spec.width.unwrap_or(0) as usize;
    let mut gap = width.saturating_sub(prefix.len() + zeros + digits.len());
    if spec.zero && !spec.left && spec.precision.is_none() {
        zeros += std::mem::take(&mut gap);
    }
    if !spec.left {
        out.fill(b' ', gap);
    }
    out.extend_from_slice(prefix);
    out.fill(b'0', zeros);
    out.extend_from_slice(digits);
    if spec.left {
        out.fill(b' ', gap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(format: &str, value: u64) -> String {
        let parts = split(format, Dialect::Tool, 8).unwrap();
        let [PrintfPart::Conversion(spec, _)] = parts.as_slice() else {
            panic!("{parts:?}")
        };
        let mut out = FormatText::new();
        put_number(&mut out, value, spec);
        String::from_utf8_lossy(out.as_bytes()).into_owned()
    }

    /// The expected texts are those of glibc 2.36, which libtraceevent hands its formats to.
    #[test]
    fn numbers_print_as_printf_prints_them() {
        for (format, value, want) in [
            ("%d", u64::MAX, "-1"),
            ("%d", 0xffff_ffff, "-1"),
            ("%ld", 0xffff_ffff, "4294967295"),
            ("%hhd", 0xff, "-1"),
            ("%hd", 0x1_8000, "-32768"),
            ("%hhx", 0x1ff, "ff"),
            ("%u", 0x1_0000_0001, "1"),
            ("%zu", 0x1_0000_0001, "4294967297"),
            ("%Lx", 0x1_0000_0001, "100000001"),
            ("%x", 0xabc, "abc"),
            ("%X", 0xabc, "ABC"),
            ("%o", 8, "10"),
            ("%#o", 8, "010"),
            ("%o", u64::MAX, "37777777777"),
            ("%llo", u64::MAX, "1777777777777777777777"),
            ("%#x", 0, "0"),
            ("%#x", 16, "0x10"),
            ("%#X", 171, "0XAB"),
            ("%#010x", 0xabc, "0x00000abc"),
            ("%#16llx", 0xabc, "           0xabc"),
            ("%08llx", 0xabc, "00000abc"),
            ("%03d", 7, "007"),
            ("%03d", u64::MAX, "-01"),
            ("%5d", 42, "   42"),
            ("%.5d", 42, "00042"),
            ("%8.5d", 42, "   00042"),
            ("%08.5d", 42, "   00042"),
            ("%.0d", 0, ""),
            ("%2d", 123, "123"),
        ] {
            assert_eq!(number(format, value), want, "{format} of {value:#x}");
        }
        assert_eq!(number("%-8x", 0xabc), "abc     ");
    }

    #[test]
    fn formats_fall_into_their_parts() {
        let parts = split(r"a\t100%%\n%pISpc %-16s", Dialect::Tool, 8).unwrap();
        assert_eq!(parts.len(), 4);
        assert_eq!(parts[0], PrintfPart::Literal(b"a\t100%\n".to_vec()));
        assert!(
            matches!(&parts[1], PrintfPart::Conversion(s, e) if s.conversion == b'p' && e == "ISpc")
        );
        assert_eq!(parts[2], PrintfPart::Literal(b" ".to_vec()));
        assert!(matches!(&parts[3], PrintfPart::Conversion(s, _) if s.left && s.width == Some(16)));
    }

    /// What libtraceevent 1.7.1 marks as unknown in its output (`>c<`) or takes for literal text.
    #[test]
    fn the_tool_does_not_know_all_conversions() {
        for format in [
            "%c", "%+d", "% d", "%pB", "%px", "%*pbl", "%*.*s", "%llld", "%k", "%5",
        ] {
            assert!(split(format, Dialect::Tool, 8).is_err(), "{format}");
        }
        assert_eq!(
            split("%k", Dialect::C, 8).unwrap(),
            [PrintfPart::Literal(b"%k".to_vec())]
        );
    }

    #[test]
    fn strings_are_cut_and_padded() {
        let put = |spec: Spec| {
            let mut out = FormatText::new();
            put_padded(&mut out, b"abc", &spec);
            String::from_utf8_lossy(out.as_bytes()).into_owned()
        };
        assert_eq!(
            put(Spec {
                width: Some(5),
                ..Spec::default()
            }),
            "  abc"
        );
        assert_eq!(
            put(Spec {
                width: Some(5),
                left: true,
                ..Spec::default()
            }),
            "abc  "
        );
        assert_eq!(
            put(Spec {
                precision: Some(2),
                ..Spec::default()
            }),
            "ab"
        );
        assert_eq!(put(Spec::default().with_stars(Some(-4), Some(-1))), "abc ");
        assert_eq!(
            put(Spec::default().with_stars(Some(i32::MIN), None)).len(),
            1024
        );
    }
}
