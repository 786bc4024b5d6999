//! Files made of recordings of the corpus: what is in them is what the tables say. A file is a module: `cargo test -p
//! export --test corpus -- trace::` runs the tests of one.

mod guests;
mod retired;
mod rows;
mod trace;

use std::path::Path;

use fixtures::perfetto::ReadTrace;
use fixtures::{FileForm, FixtureQuestion};

/// Exports a recording as a trace, and reads that.
fn traced(path: &Path, asked: &FixtureQuestion) -> ReadTrace {
    let bytes = asked.exported(path, FileForm::Trace);
    ReadTrace::read(&bytes.expect("a trace"))
}
