//! Stacks to files, in the form that the file's name asks for.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use stacks::Stacks;

/// Bytes of a folded line: tools read lines whole.
const MAX_LINE: usize = 1 << 16;

/// What stacks are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Folded,
    Speedscope,
}

impl Form {
    /// Returns what a file is to be, by its name.
    pub(super) fn of(file: &Path) -> Result<Form> {
        match file.extension().and_then(|form| form.to_str()) {
            Some("folded") => Ok(Form::Folded),
            Some("json") => Ok(Form::Speedscope),
            _ => bail!(
                "-o {}: what to write is known by the end of the name, and stacks are written as .folded or .json",
                file.display()
            ),
        }
    }
}

/// Makes a file of speedscope's.
type Speedscope<'s> = &'s dyn Fn() -> serde_json::Result<String>;

/// Writes a file.
pub(super) fn write(
    file: &Path,
    form: Form,
    stacks: &Stacks,
    speedscope: Speedscope<'_>,
) -> Result<()> {
    write_to(file, form, stacks, speedscope)
        .with_context(|| format!("{}: cannot be written", file.display()))
}

fn write_to(
    file: &Path,
    form: Form,
    stacks: &Stacks,
    speedscope: Speedscope<'_>,
) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    if form == Form::Speedscope {
        out.write_all(speedscope()?.as_bytes())?;
        return out.flush();
    }
    let mut result = Ok(());
    stacks::folded(stacks, MAX_LINE, |line| {
        if result.is_ok() {
            result = writeln!(out, "{line}");
        }
    });
    result?;
    out.flush()
}
