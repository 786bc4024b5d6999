//! Stacks to files, in the form that the file's name asks for.

use std::path::Path;

use anyhow::Result;
use render::flame_picture::{Drawn, FlamePicture};

use crate::new_file;
use crate::usage::Usage;

/// Bytes of a folded line: tools read lines whole.
const MAX_LINE: usize = 1 << 16;

/// What stacks are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Folded,
    Speedscope,
    Svg,
    Html,
}

impl Form {
    /// Returns what a file is to be, by its name.
    pub(super) fn of(file: &Path) -> Result<Form> {
        match file.extension().and_then(|form| form.to_str()) {
            Some("folded") => Ok(Form::Folded),
            Some("json") => Ok(Form::Speedscope),
            Some("svg") => Ok(Form::Svg),
            Some("html") => Ok(Form::Html),
            _ => Err(Usage::error(format!(
                "-o {}: what to write is known by the end of the name, and stacks are written as .svg, .html, \
                 .folded or .json",
                file.display()
            ))),
        }
    }
}

/// Hands out folded lines whose stacks take at most so many bytes.
type FoldedStacks<'c> = &'c dyn Fn(usize, &mut dyn FnMut(&str));

/// What can be written.
pub(super) struct Content<'c> {
    /// Folded text.
    pub folded: FoldedStacks<'c>,
    /// Makes a file of speedscope's.
    pub speedscope: &'c dyn Fn() -> Result<String>,
    /// The picture.
    pub picture: FlamePicture<'c>,
}

/// Writes a file, and returns what it leaves out, in sentences.
pub(super) fn write(file: &Path, form: Form, content: &Content<'_>) -> Result<Vec<String>> {
    let drawn = |text: fn(&Drawn) -> String| {
        let drawn = content.picture.draw();
        (text(&drawn), drawn.left_out)
    };
    let (text, left_out) = match form {
        Form::Folded => (String::new(), Vec::new()),
        Form::Speedscope => ((content.speedscope)()?, Vec::new()),
        Form::Svg => drawn(Drawn::svg),
        Form::Html => drawn(Drawn::page),
    };
    new_file::write(file, |out| {
        let mut result = out.write_all(text.as_bytes());
        if form == Form::Folded {
            (content.folded)(MAX_LINE, &mut |line| {
                if result.is_ok() {
                    result = writeln!(out, "{line}");
                }
            });
        }
        result
    })?;
    Ok(left_out)
}
