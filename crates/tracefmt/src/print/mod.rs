//! `print fmt:`: what the kernel would print of an event, from its raw record.
//!
//! A format's line is parsed once ([`parser`]), compiled to a flat list of steps ([`compile`]) and run for
//! every record ([`run`]). The text equals what trace-cmd 3.1.6 (libtraceevent 1.7.1, no plugins) and perf
//! 6.1 print. What they cannot print, they mark (`[FAILED TO PARSE]`, `>c<`, `INVALIDMAC`); there the text is
//! the one of the kernel's own `trace` file, and only what even that way cannot be known shows as the raw
//! value of its field.

mod ast;
mod blocks;
mod bprint;
mod compile;
mod expr;
mod lexer;
mod numbers;
mod parser;
mod pointers;
mod printf;
mod program;
mod raw;
mod run;
mod sources;
mod strict;
#[cfg(test)]
mod tests;
mod text;
mod tool;
mod types;

use crate::{Abi, Diagnostic, Field, Format, Formats};
use bprint::Bprint;
use parser::{Dialect, Fault, Line};
use program::Program;
use run::Run;

/// Whose text is wanted, where the tools differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrintStyle {
    /// That of `trace-cmd report -N`: kernel functions by the symbols in the recording.
    #[default]
    TraceCmd,
    /// That of `perf script`.
    Perf,
}

/// A `print fmt:` line, parsed once and evaluated for every record.
#[derive(Debug, Clone, Default)]
pub struct Printer {
    program: Program,
    bprint: Option<Bprint>,
    /// Whether the line could not be read at all, and raw fields are printed.
    failed: bool,
    /// Whether the reference tools print this line too.
    tool_prints: bool,
    /// What of the line is not printed as the kernel prints it, and why.
    pub diagnostics: Vec<Diagnostic>,
}

impl Printer {
    /// Parses the text behind `print fmt:`.
    ///
    /// Never fails: a line that cannot be read prints raw fields.
    pub fn parse(text: &str, fields: &[Field], abi: Abi) -> Printer {
        let tool = parser::parse(text, fields, abi, Dialect::Tool)
            .map_err(|fault| told(&fault))
            .and_then(|line| Printer::compiled(line, fields, abi));
        let why = match tool {
            Ok(printer) => {
                return Printer {
                    tool_prints: true,
                    ..printer
                };
            }
            Err(why) => why,
        };
        let printed = parser::parse(text, fields, abi, Dialect::C)
            .map_err(|fault| told(&fault))
            .and_then(|line| Printer::compiled(line, fields, abi));
        let mut printer = printed.unwrap_or_else(|what| Printer {
            failed: true,
            diagnostics: vec![Diagnostic::new(format!(
                "print fmt not understood, fields are raw: {what}"
            ))],
            ..Printer::default()
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
        fields: &[Field],
        abi: Abi,
    ) -> Printer {
        let mut printer = Printer::parse(text, fields, abi);
        if system == "ftrace" && name == "bprint" {
            printer.bprint = Bprint::new(fields);
        }
        printer
    }

    fn compiled(line: Line, fields: &[Field], abi: Abi) -> Result<Printer, String> {
        let (program, notes) = compile::compile(&line, fields, abi)?;
        let mut diagnostics = line.notes;
        diagnostics.extend(notes);
        Ok(Printer {
            program,
            diagnostics,
            ..Printer::default()
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

fn told(fault: &Fault) -> String {
    format!("{} at byte {}", fault.what, fault.at)
}

impl Format {
    /// Appends the event's text, as the tool of that style prints it behind the event's name.
    ///
    /// `record` is the raw record with the common fields, `env` the recording's tables: kernel symbols,
    /// `trace_printk` strings, byte order. What lies outside of the record reads as 0 or as nothing. Some
    /// texts end in a line feed (`ftrace:print`, `ftrace:kernel_stack`); it is part of the text.
    pub fn print(&self, record: &[u8], env: &Formats, style: PrintStyle, out: &mut Vec<u8>) {
        if self.printer.failed {
            return self.print_fields(record, env, out);
        }
        let run = Run {
            program: &self.printer.program,
            record,
            env,
            style,
        };
        if style == PrintStyle::TraceCmd {
            self.printer.program.exprs.resolve(&env.kallsyms);
        }
        match &self.printer.bprint {
            Some(bprint) => bprint.print(&run, out),
            None => run.line(out),
        }
    }

    /// Appends ` name=value` of each of the event's own fields, as `trace-cmd report -R` prints them.
    pub fn print_fields(&self, record: &[u8], env: &Formats, out: &mut Vec<u8>) {
        let own = self.common.min(self.fields.len());
        raw::print_fields(&self.printer, &self.fields, own, self.abi, record, env, out);
    }
}
