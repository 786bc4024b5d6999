//! Stacks to files, in the form that the file's name asks for.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use flate2::Compression;
use flate2::write::GzEncoder;
use render::flame_picture::{Drawn, FlamePicture};

use crate::new_file;
use crate::usage::Usage;

/// Bytes of a folded line: tools read lines whole.
const MAX_LINE: usize = 1 << 16;

/// What stacks are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// A flame graph for a browser.
    Svg,
    /// A page with a flame graph.
    Html,
    /// A line for each stack.
    Folded,
    /// Speedscope's file format.
    Speedscope,
    /// A profile for pprof.
    Pprof,
    /// A profile for the Firefox Profiler.
    Firefox,
}

impl Form {
    /// Returns what a file is to be: what the user says, or by its name.
    pub(super) fn of(file: &Path, said: Option<Form>) -> Result<Form> {
        if let Some(form) = said {
            return Ok(form);
        }
        let name = file.file_name().map(|name| name.as_encoded_bytes());
        // As Go's tools call it.
        if name.is_some_and(|name| name.ends_with(b".pb.gz")) {
            return Ok(Form::Pprof);
        }
        match file.extension().and_then(|form| form.to_str()) {
            Some("folded") => Ok(Form::Folded),
            Some("json") => Ok(Form::Speedscope),
            Some("svg") => Ok(Form::Svg),
            Some("html") => Ok(Form::Html),
            Some("pprof") => Ok(Form::Pprof),
            _ => Err(Usage::error(format!(
                "-o {}: what to write is known by the end of the name, and stacks are written as .svg, .html, \
                 .folded, .json or .pb.gz; --as says it for other names",
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
    /// Makes a profile of pprof's.
    pub pprof: &'c dyn Fn() -> Result<Vec<u8>>,
    /// Makes a profile for the Firefox Profiler.
    pub firefox: &'c dyn Fn() -> Result<String>,
    /// The picture.
    pub picture: FlamePicture<'c>,
}

/// Writes a file, and returns what it leaves out, in sentences.
pub(super) fn write(file: &Path, form: Form, content: &Content<'_>) -> Result<Vec<String>> {
    let drawn = |text: fn(&Drawn) -> String| {
        let drawn = content.picture.draw();
        (text(&drawn), drawn.left_out)
    };
    let mut bytes = Vec::new();
    let (text, left_out) = match form {
        Form::Pprof => {
            bytes = gzip(&(content.pprof)()?)?;
            (String::new(), Vec::new())
        }
        Form::Folded => (String::new(), Vec::new()),
        Form::Speedscope => ((content.speedscope)()?, Vec::new()),
        Form::Firefox => {
            let text = (content.firefox)()?;
            // The profiler reads both, and calls what it saves .json.gz.
            match file.extension().is_some_and(|end| end == "gz") {
                true => {
                    bytes = gzip(text.as_bytes())?;
                    (String::new(), Vec::new())
                }
                false => (text, Vec::new()),
            }
        }
        Form::Svg => drawn(Drawn::svg),
        Form::Html => drawn(Drawn::page),
    };
    new_file::write(file, |out| {
        let mut result = out
            .write_all(text.as_bytes())
            .and_then(|()| out.write_all(&bytes));
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

/// Compresses bytes, without a time in them: the same stacks are the same file.
fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(bytes)?;
    out.finish()
}
