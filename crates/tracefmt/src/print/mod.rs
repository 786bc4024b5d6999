//! `print fmt:`: what the kernel would print of an event, from its raw record.
//!
//! A format's line is parsed once ([`parser`]), compiled to a flat list of steps ([`compile`]) and run for
//! every record ([`run`]). The text equals what trace-cmd 3.1.6 (libtraceevent 1.7.1, no plugins) and perf
//! 6.1 print. What they cannot print, they mark (`[FAILED TO PARSE]`, `>c<`, `INVALIDMAC`); there the text is
//! the one of the kernel's own `trace` file, and only what even that way cannot be known shows as the raw
//! value of its field.

mod arith;
mod ast;
mod blocks;
mod bprint;
mod compile;
mod expr;
mod lexer;
mod load;
mod numbers;
mod operand;
mod parser;
mod plain;
mod pointers;
mod printer;
mod printf;
mod program;
mod raw;
mod run;
mod simplify;
mod sources;
mod strict;
mod style;
#[cfg(test)]
mod tests;
mod text;
mod tool;
mod types;
mod value;

use crate::{EventFormat, FormatCatalog, FormatText};
use run::ProgramRun;

pub use printer::FormatPrinter;
pub use style::PrintStyle;

impl EventFormat {
    /// Appends the event's text, as the tool of that style prints it behind the event's name.
    ///
    /// `record` is the raw record with the common fields, `env` the recording's tables: kernel symbols,
    /// `trace_printk` strings, byte order. What lies outside of the record reads as 0 or as nothing. Some
    /// texts end in a line feed (`ftrace:print`, `ftrace:kernel_stack`); it is part of the text.
    #[inline]
    pub fn print(
        &self,
        record: &[u8],
        env: &FormatCatalog,
        style: PrintStyle,
        out: &mut FormatText,
    ) {
        if self.printer.failed {
            return self.print_fields(record, env, out);
        }
        let run = ProgramRun {
            program: &self.printer.program,
            record,
            env,
            style,
        };
        if style == PrintStyle::TraceCmd {
            self.printer.program.exprs.resolve(&env.kallsyms);
        }
        match &self.printer.bprint {
            Some(parts) => bprint::print(parts, &run, out),
            None => run.line(out),
        }
    }

    /// Returns whether all texts of such events are plain ([`crate::is_plain`]), whatever their records hold: none of
    /// it is text of the record or of the recording's tables.
    pub fn prints_plain(&self) -> bool {
        let printer = &self.printer;
        !printer.failed && printer.bprint.is_none() && printer.program.prints_plain()
    }

    /// Appends ` name=value` of each of the event's own fields, as `trace-cmd report -R` prints them.
    pub fn print_fields(&self, record: &[u8], env: &FormatCatalog, out: &mut FormatText) {
        let own = self.common.min(self.fields.len());
        raw::print_fields(&self.printer, &self.fields, own, self.abi, record, env, out);
    }
}
