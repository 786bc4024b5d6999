//! Raw fields: what is printed of an event whose `print fmt:` cannot be.

use super::load::Locator;
use super::printer::FormatPrinter;
use super::program::ConversionKind;
use super::run::ProgramRun;
use super::style::PrintStyle;
use super::text::{put_decimal, put_hex, put_hex_byte, put_signed, until_nul};
use super::types::{is_array, is_text};
use crate::cast::{int, low_8, low_16};
use crate::index_of;
use crate::{Abi, FormatCatalog, FormatField, FormatText};

/// Appends ` name=value` of each field, as libtraceevent 1.7.1's `tep_print_fields` does.
///
/// A number that the line prints too is printed the way the line prints it; the search for it begins
/// behind the one found before, which is why formats that name a field twice are walked in order.
pub(super) fn print_fields(
    printer: &FormatPrinter,
    fields: &[FormatField],
    own: usize,
    abi: Abi,
    record: &[u8],
    env: &FormatCatalog,
    out: &mut FormatText,
) {
    let run = ProgramRun {
        program: &printer.program,
        record,
        env,
        style: PrintStyle::TraceCmd,
    };
    // Of a line it cannot parse libtraceevent uses nothing.
    let usable = printer.tool_prints
&& printer.bprint.is_none()
// The search is quadratic; no kernel has formats where that shows.
&& fields.len().saturating_mul(printer.program.pieces.len()) <= 1 << 16;
    let pieces = if usable {
        &printer.program.pieces[..]
    } else {
        &[][..]
    };
    let mut from = if pieces.is_empty() { None } else { Some(0) };
    for (index, field) in fields.iter().enumerate().skip(own) {
        out.push(b' ');
        out.extend_from_slice(field.name.as_bytes());
        out.push(b'=');
        match from
            .filter(|_| !is_array(field))
            .and_then(|from| find(pieces, from, index))
        {
            Some((at, action, after_0x)) => {
                if after_0x {
                    out.extend_from_slice(b"0x");
                }
                if let Some(action) = action {
                    run.action(&action, out);
                }
                from = Some(at + 1).filter(|at| *at < pieces.len());
            }
            None => print_field(field, abi, record, out),
        }
    }
}

/// Finds the conversion of a field, from a piece on and around.
fn find(
    pieces: &[ConversionKind],
    from: usize,
    field: usize,
) -> Option<(usize, Option<super::program::Action>, bool)> {
    let mut after_0x = false;
    for at in (from..pieces.len()).chain(0..from) {
        match &pieces[at] {
            ConversionKind::Literal(ends_in_0x) => after_0x = *ends_in_0x,
            ConversionKind::Field(of, action) if *of == field => {
                return Some((at, *action, after_0x));
            }
            _ => after_0x = false,
        }
    }
    None
}

/// Appends one field by its type: text as text, other arrays byte by byte, pointers and `long` in
/// hexadecimal, other numbers in decimal.
pub(super) fn print_field(field: &FormatField, abi: Abi, record: &[u8], out: &mut FormatText) {
    if is_array(field) {
        let (start, len) = match Locator::of(field, abi.endian) {
            Some(locator) => locator.resolve(record),
            None => (index_of(field.offset), index_of(field.size)),
        };
        let rest = record.get(start..).unwrap_or(&[]);
        let bytes = &rest[..len.min(rest.len())];
        let printable = |b: &u8| (0x20..0x7f).contains(b) || (0x09..=0x0d).contains(b);
        if is_text(field) && until_nul(bytes).iter().all(printable) {
            // Printed to the next NUL, be it in the field or behind it.
            out.extend_from_slice(until_nul(rest));
            return;
        }
        out.extend_from_slice(b"ARRAY[");
        for (i, byte) in bytes.iter().enumerate() {
            if i > 0 {
                out.extend_from_slice(b", ");
            }
            put_hex_byte(out, *byte, false);
        }
        out.push(b']');
        return;
    }
    let value = abi
        .endian
        .uint(record, index_of(field.offset), index_of(field.size))
        .unwrap_or(0);
    let long = field.ctype.contains("long");
    if field.ctype.contains('*') {
        out.extend_from_slice(b"0x");
        put_hex(out, value, 1);
    } else if field.signed {
        match field.size {
            4 if long => {
                out.extend_from_slice(b"0x");
                put_hex(out, value, 1);
            }
            4 => put_signed(out, i64::from(int(value))),
            2 => {
                let value = i64::from(low_16(value).cast_signed());
                if (0..10).contains(&value) {
                    out.push(b' ');
                }
                put_signed(out, value);
            }
            1 => put_signed(out, i64::from(low_8(value).cast_signed())),
            _ => put_signed(out, value.cast_signed()),
        }
    } else if long {
        out.extend_from_slice(b"0x");
        put_hex(out, value, 1);
    } else {
        put_decimal(out, value);
    }
}
