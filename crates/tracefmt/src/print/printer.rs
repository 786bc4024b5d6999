//! A `print fmt:` line, from its text to a program that runs for every record.

use super::compile::compile;
use super::parser::{Dialect, Fault, ParsedFormat, parse};
use super::program::Program;
use crate::{Abi, Diagnostic, FormatField};

/// A `print fmt:` line, parsed once and evaluated for every record.
#[derive(Debug, Clone, Default)]
pub struct FormatPrinter {
    pub(super) program: Program,
    pub(super) bprint: Option<Bprint>,
    /// Whether the line could not be read at all, and raw fields are printed.
    pub(super) failed: bool,
    /// Whether the reference tools print this line too.
    pub(super) tool_prints: bool,
    /// What of the line is not printed as the kernel prints it, and why.
    pub diagnostics: Vec<Diagnostic>,
}

impl FormatPrinter {
    /// Parses the text behind `print fmt:`.
    ///
    /// Never fails: a line that cannot be read prints raw fields.
    pub fn parse(text: &str, fields: &[FormatField], abi: Abi) -> FormatPrinter {
        let tool = parse(text, fields, abi, Dialect::Tool)
            .map_err(|fault| in_words(&fault))
            .and_then(|line| FormatPrinter::compiled(line, fields, abi));
        let why = match tool {
            Ok(printer) => {
                return FormatPrinter {
                    tool_prints: true,
                    ..printer
                };
            }
            Err(why) => why,
        };
        let printed = parse(text, fields, abi, Dialect::C)
            .map_err(|fault| in_words(&fault))
            .and_then(|line| FormatPrinter::compiled(line, fields, abi));
        let mut printer = printed.unwrap_or_else(|what| FormatPrinter {
            failed: true,
            diagnostics: vec![Diagnostic::new(format!(
                "print fmt not understood, fields are raw: {what}"
            ))],
            ..FormatPrinter::default()
        });
        printer.diagnostics.insert(
            0,
            Diagnostic::new(format!(
                "libtraceevent 1.7.1 does not print this format: {why}"
            )),
        );
        printer
    }

    /// Parses the line of one event: ftrace's own events have rules of their own.
    pub(crate) fn of_event(
        system: &str,
        name: &str,
        text: &str,
        fields: &[FormatField],
        abi: Abi,
    ) -> FormatPrinter {
        let mut printer = FormatPrinter::parse(text, fields, abi);
        if system == "ftrace" && name == "bprint" {
            printer.bprint = Bprint::new(fields);
        }
        printer
    }

    fn compiled(
        line: ParsedFormat,
        fields: &[FormatField],
        abi: Abi,
    ) -> Result<FormatPrinter, String> {
        let (program, notes) = compile(&line, fields, abi)?;
        let mut diagnostics = line.notes;
        diagnostics.extend(notes);
        Ok(FormatPrinter {
            program,
            diagnostics,
            ..FormatPrinter::default()
        })
    }

    /// Returns whether libtraceevent 1.7.1 prints this line, so that its text can be compared.
    pub fn is_printed_by_tools(&self) -> bool {
        self.tool_prints
    }

    /// Returns whether the line could not be read at all, so that raw fields are printed.
    pub fn is_raw(&self) -> bool {
        self.failed
    }
}

fn in_words(fault: &Fault) -> String {
    format!("{} at byte {}", fault.what, fault.at)
}

/// Where the parts of a `bprint` record lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bprint {
    pub(super) ip: (u32, u32),
    pub(super) format: (u32, u32),
    pub(super) args: u32,
}

impl Bprint {
    /// Finds the fields `ip`, `fmt` and `buf`.
    pub(super) fn new(fields: &[FormatField]) -> Option<Bprint> {
        let find = |name: &str| {
            fields
                .iter()
                .find(|f| f.name == name)
                .map(|f| (f.offset, f.size))
        };
        Some(Bprint {
            ip: find("ip")?,
            format: find("fmt")?,
            args: find("buf")?.0,
        })
    }
}
