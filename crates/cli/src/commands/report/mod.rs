//! `trapline report`: one screen about each recording, ten lines, all that there is, or one HTML file.

mod document;
mod page;
mod part;
mod screen;

use std::path::{Path, PathBuf};

use anyhow::Result;
use render::exits;
use session::PictureOptions;

use crate::answer::Answer;
use crate::args::{Format, ReportArgs};
use crate::opening::{self, Beside};
use crate::output;

use part::Part;

/// Runs the command.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    let beside = Beside {
        mtree: args.mtree.as_deref(),
        ..Beside::default()
    };
    let inputs: Vec<&Path> = args.recordings.iter().map(PathBuf::as_path).collect();
    let session = opening::session(&args.common, &beside, &inputs)?;
    let options = match args.output {
        Some(_) => PictureOptions::to_report(),
        None => PictureOptions::default(),
    };
    let mut parts = Vec::new();
    for path in inputs {
        let input = session.input(path)?;
        let given = page::invocation(args, path);
        let (tables, beside) = match input.tables()? {
            Some(pictures) => (pictures, false),
            None => {
                parts.push(part::read(&input, &options, &session, given.clone())?);
                match args.common.filter.any() {
                    true => (Vec::new(), true),
                    false => (input.tables_beside(), true),
                }
            }
        };
        let given = match beside || tables.len() > 1 {
            true => given.only_report(),
            false => given,
        };
        let tables = tables.into_iter();
        parts.extend(tables.map(|one| part::of_tables(one, &session, given.clone())));
    }
    let names: Vec<String> = parts.iter().map(|p| p.name.clone()).collect();
    if let Some(file) = &args.output {
        return page::write(args, file, &names, &parts, &session);
    }
    let quality = output::merged(parts.iter().map(|part| &part.picture));
    let answer = Answer {
        format: args.common.format,
        command: "report",
        inputs: &names,
        quality: &quality,
    };
    let table = args.common.format == Format::Table;
    if table && args.brief {
        let texts: Vec<String> = parts.iter().map(Part::brief).collect();
        return output::print(&texts.join("\n"));
    }
    if table && !args.full {
        let screens: Vec<_> = parts.iter().map(Part::screen).collect();
        return output::screens(&screens);
    }
    answer.print(
        || {
            let texts: Vec<String> = parts.iter().map(|part| part.text(true)).collect();
            texts.join("\n")
        },
        || document::Document {
            recordings: parts.iter().map(document::recording).collect(),
        },
        || {
            let tables = parts
                .iter()
                .map(|p| exits::csv(p.picture.isa, &p.picture.exits));
            tables.collect()
        },
    )
}
