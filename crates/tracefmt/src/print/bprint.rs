//! `ftrace:bprint`: a `trace_printk` whose format string is in the kernel and whose arguments are in the
//! record, as binary numbers and strings.
//!
//! Sources: `vbin_printf` in the kernel's `lib/vsprintf.c` (which writes the arguments),
//! `make_bprint_args` of libtraceevent 1.7.1 (which the text has to equal).

use super::parser::Dialect;
use super::printer::Bprint;
use super::printf::{Spec, Splitter, put_number, put_padded};
use super::run::{MAX_LINE, ProgramRun, put_pointer};
use super::text::{put_hex, until_nul};
use crate::FormatText;
use crate::cast::int;
use crate::index_of;

/// Appends the line.
#[inline(never)]
pub(super) fn print(parts: &Bprint, run: &ProgramRun<'_>, out: &mut FormatText) {
    let abi = run.program.abi;
    let number = |(offset, size): (u32, u32)| {
        abi.endian
            .uint(run.record, index_of(offset), index_of(size))
            .unwrap_or(0)
    };
    run.symbol(number(parts.ip), false, out);
    out.extend_from_slice(b": ");
    let address = number(parts.format);
    let Some(format) = run.env.printk(address) else {
        out.extend_from_slice(b"(NO FORMAT FOUND at ");
        put_hex(out, address, 1);
        out.extend_from_slice(b")\n");
        return;
    };
    // The C dialect knows all conversions and never fails.
    let mut splitter = Splitter::new(format, Dialect::C, abi.long_size);
    let mut args = BprintArguments {
        record: run.record,
        at: index_of(parts.args),
        run,
    };
    let full = out.len() + MAX_LINE;
    let mut literal = Vec::new();
    loop {
        let conversion = splitter.next(&mut literal);
        out.extend_from_slice(&literal);
        literal.clear();
        let Ok(Some((mut spec, extension))) = conversion else {
            break;
        };
        let width = spec.stars.width.then(|| int(args.number(4)));
        let precision = spec.stars.precision.then(|| int(args.number(4)));
        spec = Spec {
            kernel: false,
            ..spec
        }
        .with_stars(width, precision);
        match spec.conversion {
            b's' => put_padded(out, args.string(), &spec),
            b'p' => args.pointer(extension, out),
            _ => {
                let value = args.number(if spec.bits == 64 { 8 } else { 4 });
                put_number(out, value, &spec);
            }
        }
        if out.len() > full {
            break;
        }
    }
}

/// Walks the arguments.
struct BprintArguments<'a> {
    record: &'a [u8],
    at: usize,
    run: &'a ProgramRun<'a>,
}

impl<'a> BprintArguments<'a> {
    /// Reads a number of 4 or 8 bytes; numbers begin at multiples of 4.
    fn number(&mut self, size: usize) -> u64 {
        self.at = self.at.saturating_add(3) & !3;
        let value = self.run.program.abi.endian.uint(self.record, self.at, size);
        self.at = self.at.saturating_add(size);
        value.unwrap_or(0)
    }

    fn string(&mut self) -> &'a [u8] {
        let text = until_nul(self.record.get(self.at..).unwrap_or(&[]));
        self.at = self.at.saturating_add(text.len() + 1);
        text
    }

    fn pointer(&mut self, extension: &str, out: &mut FormatText) {
        let long = usize::from(self.run.program.abi.long_size);
        match extension.as_bytes() {
            [] => put_pointer(out, self.number(long)),
            [b'x' | b'K', ..] => put_pointer(out, self.number(long)),
            [b's', ..] => {
                let address = self.number(long);
                self.run.symbol(address, false, out);
            }
            [b'S' | b'B', ..] => {
                let address = self.number(long);
                self.run.symbol(address, true, out);
            }
            [first @ (b'F' | b'f'), rest @ ..] if !rest.starts_with(b"w") => {
                let address = self.number(long);
                self.run.symbol(address, *first == b'F', out);
            }
            // Other extensions follow the pointer, which the kernel therefore printed when it recorded.
            _ => {
                let printable = self
                    .record
                    .get(self.at)
                    .is_some_and(|b| (0x20..0x7f).contains(b));
                if printable {
                    let text = self.string();
                    out.extend_from_slice(text);
                } else {
                    put_pointer(out, self.number(long));
                }
            }
        }
    }
}
